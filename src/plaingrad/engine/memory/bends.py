"""Second derivatives of functions of whole arrays: a pullback together with how it changes.

One function is one fact: from the arguments, the result z and their tangents, and from z_bar and its tangent, come the
cotangents of the arguments and the tangents of these. A tangent that is None is zero; where the one of z_bar and those
of the arguments are, so are those that come out. The compiled core takes them where reverse mode runs inside forward
mode, and for reverse mode alone. Real float64 only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from plaingrad.rules.numpy.kernels import kept, spread_of

la = np.linalg


def total(*terms: Any) -> Any:
    """The sum of what is not None; None if nothing is left."""
    found = None
    for term in terms:
        if term is not None:
            found = term if found is None else found + term
    return found


def transposed(a: Any) -> Any:
    """The matrices of a stack, transposed."""
    return a.swapaxes(-1, -2)


def solve_bend(args: Any, z: Any, dots: Any, z_dot: Any, z_bar: Any, z_bar_dot: Any) -> Any:
    """A z = b: b_bar = A^-T z_bar, A_bar = -b_bar z^T."""
    a, _ = args
    vectors = z.ndim == a.ndim - 1
    if vectors:
        z, z_bar = z[..., None], z_bar[..., None]
        z_dot = None if z_dot is None else z_dot[..., None]
        z_bar_dot = None if z_bar_dot is None else z_bar_dot[..., None]
    back = transposed(a)
    b_bar = la.solve(back, z_bar)
    a_bar = -(b_bar @ transposed(z))
    right = total(z_bar_dot, None if dots is None or dots[0] is None else -(transposed(dots[0]) @ b_bar))
    b_bar_dot = None if right is None else la.solve(back, right)
    a_bar_dot = total(
        None if b_bar_dot is None else -(b_bar_dot @ transposed(z)),
        None if z_dot is None else -(b_bar @ transposed(z_dot)),
    )
    if vectors:
        b_bar = b_bar[..., 0]
        b_bar_dot = None if b_bar_dot is None else b_bar_dot[..., 0]
    return (a_bar, b_bar), (a_bar_dot, b_bar_dot)


def inv_bend(args: Any, z: Any, dots: Any, z_dot: Any, z_bar: Any, z_bar_dot: Any) -> Any:
    """z = A^-1: A_bar = -z^T z_bar z^T."""
    back = transposed(z)
    left = back @ z_bar
    a_bar = -(left @ back)
    moved = None if z_bar_dot is None else -(back @ z_bar_dot @ back)
    if z_dot is not None:
        back_dot = transposed(z_dot)
        moved = total(moved, -(back_dot @ z_bar @ back), -(left @ back_dot))
    return (a_bar,), (moved,)


def slogdet_bend(args: Any, z: Any, dots: Any, z_dot: Any, z_bar: Any, z_bar_dot: Any) -> Any:
    """z = log |det A|: A_bar = z_bar A^-T."""
    inverse = la.inv(args[0])
    moved = None if z_bar_dot is None else z_bar_dot * inverse.T
    if dots is not None and dots[0] is not None:
        moved = total(moved, -z_bar * (inverse @ dots[0] @ inverse).T)
    return (z_bar * inverse.T,), (moved,)


def norm_bend(
    args: Any,
    z: Any,
    dots: Any,
    z_dot: Any,
    z_bar: Any,
    z_bar_dot: Any,
    ord: Any = None,
    axis: Any = None,
    keepdims: Any = False,
) -> Any:
    """z = |x|: x_bar = (z_bar / z) x."""
    x, _, axis, keepdims = (*args, *(ord, axis, keepdims)[len(args) - 1 :])
    slope = z_bar / z
    moved = total(
        None if z_bar_dot is None else z_bar_dot / z, None if z_dot is None else -slope * (z_dot / z)
    )
    x_bar_dot = total(
        None if moved is None else kept(moved, axis, keepdims) * x,
        None if dots is None or dots[0] is None else kept(slope, axis, keepdims) * dots[0],
    )
    return (kept(slope, axis, keepdims) * x,), (x_bar_dot,)


def variance_bend(is_root: bool) -> Callable[..., Any]:
    """z = sum (a - mean)^2 / n, or its root."""

    def bend(
        args: Any, z: Any, dots: Any, z_dot: Any, z_bar: Any, z_bar_dot: Any,
        axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False,
    ) -> Any:  # fmt: skip
        a, axis, _, _, ddof, keepdims = (*args, *(axis, dtype, out, ddof, keepdims)[len(args) - 1 :])
        apart, n = spread_of(a, axis, ddof)
        scale = z * n if is_root else n / 2.0
        slope = z_bar / scale
        moved = total(
            None if z_bar_dot is None else z_bar_dot / scale,
            -slope * (z_dot / z) if is_root and z_dot is not None else None,
        )
        a_bar_dot = None if moved is None else kept(moved, axis, keepdims) * apart
        if dots is not None and dots[0] is not None:
            apart_dot = dots[0] - dots[0].mean(axis, keepdims=True)
            a_bar_dot = total(a_bar_dot, kept(slope, axis, keepdims) * apart_dot)
        return (kept(slope, axis, keepdims) * apart,), (a_bar_dot,)

    return bend


BENDS: dict[Any, Callable[..., Any]] = {
    la.solve: solve_bend,
    la.inv: inv_bend,
    la.slogdet: slogdet_bend,
    la.norm: norm_bend,
    np.var: variance_bend(False),
    np.ndarray.var: variance_bend(False),
    np.std: variance_bend(True),
    np.ndarray.std: variance_bend(True),
}
