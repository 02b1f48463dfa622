"""`scipy.optimize` with derivatives filled in, and unknowns in any structure: dictionaries, dataclasses, lists.

The functions take what SciPy's take, and hand it on. `jac`, `hess` and `hessp` that are not given are plaingrad's,
those of constraints too. `import plaingrad.optimize` imports SciPy.
"""

from plaingrad.optimize.fits import curve_fit, least_squares
from plaingrad.optimize.minima import minimize
from plaingrad.optimize.packing import opened, packed, unpacker
from plaingrad.optimize.roots import root

__all__ = ["curve_fit", "least_squares", "minimize", "opened", "packed", "root", "unpacker"]
