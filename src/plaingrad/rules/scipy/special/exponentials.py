"""Sums of exponentials: their slope is a softmax, also where the exponentials alone overflow."""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.rules.scipy.forms import find
from plaingrad.rules.scipy.implicit import Rules, called, carrying, fresh, is_active

RULES = Rules()


def greatest(a: Any, axis: Any) -> Any:
    """The greatest real part along the axes, 0 where that is infinite: what the exponentials are divided by."""
    top = np.max(np.real(a), axis=axis, keepdims=True)
    return np.where(np.isfinite(top), top, 0.0)


@RULES.defined(find("logsumexp", ("scipy.special",)))
def logsumexp(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """log sum b exp(a), and its sign if asked for. SciPy also computes exp(a), whose overflow spoils slopes backwards."""
    found = called(function, call)
    a, b, axis = given["a"], given["b"], given["axis"]
    if not is_active((a, b)):
        return found
    a = np.asarray(a)
    if not a.size:
        return found
    with np.errstate(all="ignore"):
        if b is not None:
            a, b = np.broadcast_arrays(a, np.asarray(b))
            a = np.where(b == 0, -np.inf, a)
        top = fresh(greatest(a, axis))
        parts = np.exp(a - top) if b is None else b * np.exp(a - top)
        total = np.sum(parts, axis=axis, keepdims=True)
        if not given["return_sign"]:
            return carrying(fresh(found), np.reshape(np.log(total) + top, np.shape(found)))
        sign = fresh(found[1])
        # Until NumPy 2 the sign of a complex number is that of its real part, and the logarithm complex.
        is_old = np.iscomplexobj(found[0])
        size = total * np.reshape(sign, np.shape(total)) if is_old else np.abs(total)
        z = np.log(size) + top
    if np.iscomplexobj(total) and not is_old:
        sign = carrying(sign, np.reshape(total / size, np.shape(sign)))
    return carrying(fresh(found[0]), np.reshape(z, np.shape(found[0]))), sign
