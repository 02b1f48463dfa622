"""Integrals over half lines by the double exponential rule, for every element of arrays of arguments.

The variable is s = width exp(t - exp(-t)): nodes are dense at 0 on a logarithmic scale, and the trapezoidal rule in t
converges exponentially for integrands that fall off exponentially in s and are analytic beside the axis, also with
powers and logarithms of s + constant in them (Takahasi and Mori, Publ. RIMS 9, 1974).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

NODES = 260
FIRST = -4.5  # s is 1e-41 of the width there, so that a pole of order 1/2 at 0 does no harm
BLOCK = 2000  # elements at a time: with their nodes they fit into the cache


def kind_of(*args: Any) -> Any:
    """The dtype of a function of `args`, as NumPy has it: numbers of Python's do not widen, integers are taken as float."""
    kind = np.result_type(*args)
    return kind if kind.kind in "fc" else np.dtype(float)


def over_half_line(integrand: Callable[..., Any], width: Any, end: Any, *args: Any) -> Any:
    """The integral of integrand(s, *args) over s > 0 for every element of `args`, which are broadcast together.

    Args:
        integrand: takes arrays with an axis of nodes behind those of the arguments.
        width: the scale on which it falls off.
        end: beyond that it is negligible.
        args: further arguments of the integrand.
    """
    arrays = np.broadcast_arrays(width, end, *args)
    shape = arrays[0].shape
    flat = [np.ravel(a) for a in arrays]
    parts = [
        of_block(integrand, *[a[k : k + BLOCK, None] for a in flat]) for k in range(0, flat[0].size, BLOCK)
    ]
    return np.reshape(np.concatenate(parts) if parts else np.zeros(0), shape)


def of_block(integrand: Callable[..., Any], width: Any, end: Any, *args: Any) -> Any:
    """The same for columns of arguments."""
    last = np.log(np.maximum(end / width, 2.0)) + 0.1
    h = (last - FIRST) / (NODES - 1)
    t = FIRST + h * np.arange(NODES)
    e = np.exp(-t)
    s = width * np.exp(t - e)
    with np.errstate(all="ignore"):
        values = integrand(s, *args) * (s * (1 + e))
    return (values * h).sum(-1)
