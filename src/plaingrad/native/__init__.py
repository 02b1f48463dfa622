"""The native tier: derivatives of what Numba can type, derived from its typed IR and compiled by it.

A function with its arguments comes in at the `border`, values and derivatives go out there. `compile` makes a derived
program, or finds it in memory or on disk: the `frontend` turns Numba's typed IR into a `program`, `lowering` brings it
into the form that `reverse` and `forward` mode take (`modes` is what they share, `loops` what has a faster way back,
`rules` the derivatives of what is called, `analysis` the questions), and `finish` cleans up what they make. `runtime`
is what compiled programs call, `machine` what differs between machines. A room imports from those below it only.
Called by `plaingrad.api`, and by the plain tier where a program calls a function that Numba compiles.
"""
