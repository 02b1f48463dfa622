"""Entries of Jacobians: from derivatives along 1 and along i to dy/dx, in its dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.api import recorded
from plaingrad.api.leaves import Leaf, here
from plaingrad.errors import NotHolomorphicError


def entry_type(y: Leaf, x: Leaf) -> Any:
    """The dtype of dy/dx where it is an array: that of the two together; Python's numbers adapt."""
    known = [leaf.x.dtype for leaf in (y, x) if isinstance(leaf.x, (np.ndarray, np.generic))]
    if not known:
        return complex if y.is_complex or x.is_complex else float
    found = np.result_type(*known)
    return np.result_type(found, np.complex64) if y.is_complex or x.is_complex else found


def jacobian_entry(along_1: Any, along_i: Any, y: Leaf, x: Leaf, f: Any) -> Any:
    """dy/dx, from the derivatives along 1 and, for complex x, along i."""
    if along_i is None:
        return finished(along_1, y, x)
    if y.is_complex:
        check_holomorphic(along_1, along_i, f)
        return finished(along_1, y, x)
    return finished(here(recorded.along_both, along_1, along_i), y, x)


def wirtinger_entry(along_1: Any, along_i: Any, y: Leaf, x: Leaf, f: Any) -> Any:
    """dy/dx."""
    return finished(here(recorded.half_difference, along_1, along_i), y, x)


def conjugate_entry(along_1: Any, along_i: Any, y: Leaf, x: Leaf, f: Any) -> Any:
    """dy/dx*."""
    return finished(here(recorded.half_sum, along_1, along_i), y, x)


def finished(d: Any, y: Leaf, x: Leaf) -> Any:
    """An entry in its dtype; a Python number where y or x is one and neither is an array."""
    if y.is_array or x.is_array:
        dtype = entry_type(y, x)
        return d if isinstance(d, np.ndarray) and d.dtype == dtype else here(recorded.as_dtype, d, dtype)
    if isinstance(y.x, np.generic) and isinstance(x.x, np.generic):
        return d if isinstance(d, np.generic) else here(recorded.in_type, d, entry_type(y, x).type)
    return here(recorded.python_number, d) if isinstance(d, np.generic) else d


def check_holomorphic(along_1: Any, along_i: Any, f: Any) -> None:
    """The derivative along i is i times that along 1."""
    one, i = np.asarray(along_1), np.asarray(along_i)
    size = np.maximum(np.abs(one), np.abs(i))
    finite = size[np.isfinite(size)]
    if not finite.size:
        return
    eps = np.finfo(one.dtype if one.dtype.kind == "c" else complex).eps
    bound = np.sqrt(eps) * size + 1e3 * eps * finite.max()
    if np.any(np.abs(i - 1j * one) > bound):
        raise NotHolomorphicError(
            f"{getattr(f, '__name__', 'the function')} has no complex derivative here: along i it is not i times that "
            "along 1 (Cauchy-Riemann).\n  To go on: wirtinger(f) gives the derivatives by z and by its conjugate; "
            "jacobian of the real or imaginary part, or vjp, gives real ones.\n  See docs: errors#not-holomorphic"
        )
