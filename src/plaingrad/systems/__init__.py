"""Other systems of automatic differentiation, whose arrays and functions a program may use: PyTorch and JAX.

An array of theirs is one value, and a call of one of their functions one step, which they differentiate themselves.
None is imported for it: a system is known by the names of its classes once the program has imported it.
"""

from plaingrad.systems.steps import Conversion, Derived, Step, System
from plaingrad.systems.table import LIKE_PROGRAMS, ROOTS, WHOLE, find, imported, owner

__all__ = [
    "LIKE_PROGRAMS",
    "ROOTS",
    "WHOLE",
    "Conversion",
    "Derived",
    "Step",
    "System",
    "find",
    "imported",
    "owner",
]
