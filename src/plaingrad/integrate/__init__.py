"""`scipy.integrate.solve_ivp` with Jacobians filled in, and states in any structure. Importing it imports SciPy."""

from plaingrad.integrate.initial import solve_ivp

__all__ = ["solve_ivp"]
