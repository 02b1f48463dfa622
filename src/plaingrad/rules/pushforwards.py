"""What the forward halves of rules share.

A pushforward gets one tangent `x_dot` per argument, `ZeroTangent` for one that does not vary. Most are written so that
they serve chunks too, where every tangent has a leading axis: axes are counted from the back, and `lead` is the shape
that a tangent has in front of that of its argument: () or (n,).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

from plaingrad import define
from plaingrad.tangents import NoTangent, ZeroTangent


def both_forms(*functions: Any, affine: bool = False) -> Callable[[Any], Any]:
    """Decorate a forward rule that is right for one tangent and for a chunk of them; `affine` as in `define.frule`."""

    def enter(rule: Any) -> Any:
        define.frule(*functions, affine=affine)(rule)
        return define.frule(*functions, chunked=True)(rule)

    return enter


def of_each_number(function: Any, push: Callable[..., Any]) -> None:
    """Enter z_dot = push(x_dot) for a linear function that works on each number by itself."""
    call = define.as_callable(function)

    @both_forms(function)
    def of_each_number_frule(x: Any, *others: Any, **options: Any) -> Any:
        return call(x, *others, **options), lambda dots: pushed(push, dots[0])


def varies(x_dot: Any) -> bool:
    """Whether `x_dot` is a tangent that is not known to be zero."""
    return x_dot is not ZeroTangent and x_dot is not NoTangent


def dot_of(dots: tuple[Any, ...], place: int) -> Any:
    """The tangent of the argument at `place`, if it was given."""
    return dots[place] if place < len(dots) else ZeroTangent


def total(*parts: Any) -> Any:
    """The sum of tangents."""
    z_dot: Any = ZeroTangent
    for part in parts:
        if part is not ZeroTangent and part is not NoTangent:
            z_dot = part if z_dot is ZeroTangent else z_dot + part
    return z_dot


def pushed(f: Callable[..., Any], x_dot: Any, *others: Any, **options: Any) -> Any:
    """f(x_dot, *others) of a linear f."""
    return (
        f(x_dot, *others, **options) if x_dot is not ZeroTangent and x_dot is not NoTangent else ZeroTangent
    )


def joined(x_dot: Any, x: Any) -> Any:
    """`x_dot` as an array where `x` is a list or tuple, nested or not."""
    if not isinstance(x_dot, (list, tuple)):
        return x_dot
    z = np.array(x_dot)
    if np.ndim(z) == np.ndim(x):
        return z
    depth = 0
    while isinstance(x, (list, tuple)):
        x, depth = x[0], depth + 1
    return np.moveaxis(z, depth, 0)


def lead_of(*pairs: tuple[Any, Any]) -> tuple[int, ...]:
    """The leading shape of the tangents in pairs (x_dot, x)."""
    for x_dot, x in pairs:
        if varies(x_dot):
            return np.shape(x_dot)[: np.ndim(x_dot) - np.ndim(x)]
    return ()


def from_back(axis: Any, ndim: int) -> Any:
    """`axis` (None, a number or a sequence) as a tuple of negative axes."""
    if axis is None:
        return tuple(range(-ndim, 0))
    if isinstance(axis, (tuple, list)):
        return tuple([i % ndim - ndim for i in axis]) if ndim else ()
    return (axis % ndim - ndim,) if ndim else ()


def lined_up(x_dot: Any, x: Any, ndim: int) -> Any:
    """`x_dot` with axes of length 1 behind the leading one, as if `x` had `ndim` axes."""
    lead = np.ndim(x_dot) - np.ndim(x)
    if not lead or np.ndim(x) >= ndim:
        return x_dot
    shape = np.shape(x_dot)
    return np.reshape(x_dot, (*shape[:lead], *(1,) * (ndim - np.ndim(x)), *shape[lead:]))


def reshaped(x_dot: Any, x: Any, shape: Any) -> Any:
    """`x_dot` for x.reshape(shape)."""
    return np.reshape(x_dot, (*np.shape(x_dot)[: np.ndim(x_dot) - np.ndim(x)], *shape))


def flattened(x_dot: Any, x: Any) -> Any:
    """`x_dot` for x.ravel()."""
    return reshaped(x_dot, x, (math.prod(np.shape(x)),))


def filled(x_dot: Any, x: Any, lead: tuple[int, ...]) -> Any:
    """`x_dot`, or the zeros that it stands for."""
    return joined(x_dot, x) if varies(x_dot) else np.zeros((*lead, *np.shape(x)), np.asarray(x).dtype)


def real_if(z: Any, z_dot: Any) -> Any:
    """`z_dot`, its real part where z is real."""
    return np.real(z_dot) if np.iscomplexobj(z_dot) and not np.iscomplexobj(z) else z_dot


def of_each(f: Callable[..., Any], x_dot: Any, x: Any) -> Any:
    """f(x_dot) for one tangent, or for each of a chunk, of a nested list."""
    leaf_dot, leaf = x_dot, x
    while isinstance(leaf, (list, tuple)):
        leaf_dot, leaf = leaf_dot[0], leaf[0]
    if np.ndim(leaf_dot) == np.ndim(leaf):
        return f(x_dot)
    return np.stack([f(chosen(x_dot, k)) for k in range(len(leaf_dot))])


def chosen(x_dot: Any, k: int) -> Any:
    """Tangent `k` of a chunk."""
    return type(x_dot)([chosen(part, k) for part in x_dot]) if isinstance(x_dot, (list, tuple)) else x_dot[k]


def as_number(z: Any, x_dot: Any) -> Any:
    """The tangent `x_dot` of a number as that of the equal number z, which is of another type."""
    if isinstance(x_dot, np.ndarray):  # a chunk; Decimals and Fractions are in arrays of objects
        if isinstance(z, Decimal):
            return np.array([Decimal(float(part)) if isinstance(part, float) else part for part in x_dot], object)
        return x_dot.astype(type(z)) if x_dot.dtype.kind == "O" and isinstance(z, (float, complex)) else real_if(z, x_dot)
    if type(z) is float:
        return float(x_dot.real)
    if type(z) is complex:
        return complex(x_dot)
    return Decimal(x_dot) if isinstance(z, Decimal) else x_dot
