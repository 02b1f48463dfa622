"""Roots of many equations: their matrix is not made; products with it, and with its adjoint, are derivatives of F.

The systems of the derivative are solved by GMRES, and refused where that does not converge.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import linalg as solvers

from plaingrad.rules import derivatives
from plaingrad.rules.scipy.implicit import (
    AT_ROOT,
    LARGEST,
    at_root,
    is_active,
    is_near,
    outside,
    refuse,
    stepped,
)
from plaingrad.rules.scipy.sparse.iterative import EXACT, SYSTEMS, Hidden, improved

RESTART, ROUNDS = 100, 20


def at_any_root(function: Any, f: Any, x: Any) -> Any:
    """The root x of f(x), of as many equations as unknowns, with its derivative."""
    if np.size(x) <= LARGEST:
        return at_root(function, f, x)
    flat = np.reshape(x, (-1,))
    r = f(flat)
    if not is_active(r):
        return x
    return np.reshape(stepped(improved, f, flat, r, krylov_system(function, f, flat)), np.shape(x))


@outside
def krylov_system(order: int, function: Any, f: Any, x: Any) -> Hidden:
    """dF/dx at a root, under a name."""
    if np.iscomplexobj(x):
        refuse(function, f"it has more than {LARGEST} unknowns, which are complex")

    def product(v: Any) -> Any:
        return derivatives.along(f, x, np.reshape(np.real(v), (-1,)))

    def transposed(y: Any) -> Any:
        weights = np.reshape(np.real(y), (-1,))
        return derivatives.gradient(lambda z: (f(z) * weights).sum(), x)

    operator = solvers.LinearOperator((x.size, x.size), matvec=product, rmatvec=transposed, dtype=float)
    options = {**EXACT, "restart": RESTART, "maxiter": ROUNDS}
    r = f(x)
    step, info = solvers.gmres(operator, r, **options) if np.any(r) else (r, 0)
    if info != 0 or not np.all(np.isfinite(step)) or not is_near(step, x, AT_ROOT):
        refuse(function, "what was found is no regular solution, or GMRES does not solve the equations of its derivative")
    name = Hidden()
    SYSTEMS[name] = solvers.gmres, operator, product(x), options, None
    return name
