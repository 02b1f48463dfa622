"""The border of the native tier: what users pass becomes what Numba takes, and what comes out has the form they expect.

In come a function and its arguments as they were passed, out go values and derivatives (gradients, Jacobians, Hessians,
linear maps) with the structure of the arguments. Called by the operators of `plaingrad.api` and, for native calls
inside of plain programs, by the plain tier.
"""
