"""Products along axes, and their running forms.

In a rule `a` is the array, `z` the result; `where` selects the elements that take part.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.define import rrule
from plaingrad.rules.numpy.names import ABSENT, array, axes_of, both, conj, given, refuse_out, restored
from plaingrad.rules.numpy.reductions import masked, summed, with_numbers
from plaingrad.rules.pushforwards import (
    both_forms,
    dot_of,
    flattened,
    from_back,
    joined,
    lined_up,
    total,
    varies,
)
from plaingrad.tangents import NoTangent, Thunk, ZeroTangent

# ---------------------------------------------------------------------------------------------------------
# Products, right at zeros: nothing is divided by an element that may be 0


def merged(x: Any, axes: tuple[int, ...]) -> Any:
    """`x` with `axes` taken together as its last axis."""
    rest = tuple(i for i in range(np.ndim(x)) if i not in axes)
    shape = np.shape(x)
    n = 1
    for i in axes:
        n *= shape[i]
    return np.reshape(np.transpose(x, rest + axes), tuple(shape[i] for i in rest) + (n,))


def unmerged(x: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    """The inverse of `merged`, for an `x` that was of `shape`."""
    rest = tuple(i for i in range(len(shape)) if i not in axes)
    order = rest + axes
    x = np.reshape(x, tuple(shape[i] for i in order))
    return np.transpose(x, tuple(order.index(i) for i in range(len(shape))))


def products_of_others(x: Any) -> Any:
    """For each element, the product of all others on the last axis, without division."""
    n = np.shape(x)[-1]
    one = np.ones_like(x[..., :1])
    if n < 2:
        return np.broadcast_to(one, np.shape(x))
    before = np.concatenate([one, np.cumprod(x[..., :-1], -1)], -1)
    after = np.concatenate([np.cumprod(x[..., :0:-1], -1)[..., ::-1], one], -1)
    return before * after


def prod_bar(z_bar: Any, a: Any, z: Any, axis: Any, where: Any) -> Any:
    """z_bar times the product of the others."""
    shape = np.shape(a)
    if np.size(a) == 0:
        return np.zeros(shape, np.asarray(a).dtype)
    axes = axes_of(axis, len(shape))
    everything = where is True or where is ABSENT
    factors = np.asarray(a) if everything else np.where(where, a, 1)
    if np.all(np.isfinite(z)) and np.all(z != 0):
        return masked(restored(z_bar * conj(z), shape, axis) / conj(factors), where)
    others = unmerged(products_of_others(merged(factors, axes)), shape, axes)
    return masked(restored(z_bar, shape, axis) * conj(others), where)


def enter_prod(function: Any, skip_nan: bool = False) -> None:
    """a_bar = z_bar * conj(product of the other elements)."""

    @rrule(function)
    def prod_rrule(a, axis=None, dtype=None, out=None, keepdims=ABSENT, initial=ABSENT, where=True):
        refuse_out("np.prod", out)
        options = given(keepdims=keepdims, initial=initial)
        if where is not True:
            options["where"] = where
        z = function(a, axis, dtype, None, **options)
        a = array(a)

        def prod_pullback(z_bar):
            selected = with_numbers(where, a) if skip_nan else where
            if initial is ABSENT:
                return (Thunk(lambda: prod_bar(z_bar, a, z, axis, selected)),)

            def initial_bar():
                factors = a if selected is True else np.where(selected, a, 1)
                return z_bar * conj(np.prod(factors, axis, **given(keepdims=keepdims)))

            def a_bar():  # z may be 0 only because `initial` is
                product = np.prod(a if selected is True else np.where(selected, a, 1), axis)
                return prod_bar(np.reshape(z_bar, np.shape(product)) * conj(initial), a, product, axis, selected)

            return Thunk(a_bar), NoTangent, NoTangent, NoTangent, NoTangent, Thunk(initial_bar)

        return z, prod_pullback

    @both_forms(function)
    def prod_frule(a, axis=None, dtype=None, out=None, keepdims=ABSENT, initial=ABSENT, where=True):
        refuse_out("np.prod", out)
        options = given(keepdims=keepdims, initial=initial)
        if where is not True:
            options["where"] = where
        z = function(a, axis, dtype, None, **options)

        def prod_pushforward(dots):
            x = array(a)
            selected = with_numbers(where, x) if skip_nan else where
            factors = np.asarray(x) if selected is True or selected is ABSENT else np.where(selected, x, 1)
            product = z if initial is ABSENT else np.prod(factors, axis, **given(keepdims=keepdims))
            a_dot, initial_dot = joined(dots[0], a), dot_of(dots, 5)
            z_dot = ZeroTangent
            if varies(a_dot):
                others = other_factors(factors, product, axis)
                z_dot = summed(others * masked(a_dot, selected), from_back(axis, np.ndim(x)), keepdims, dtype)
                if initial is not ABSENT:
                    z_dot = initial * z_dot
            if varies(initial_dot):
                z_dot = total(z_dot, lined_up(initial_dot, initial, np.ndim(z)) * product)
            return z_dot

        return z, prod_pushforward


def other_factors(x: Any, product: Any, axis: Any) -> Any:
    """For each element, the product of the others that are taken together with it over `axis`."""
    shape = np.shape(x)
    if np.size(x) == 0:
        return np.ones(shape, x.dtype)
    if np.all(np.isfinite(product)) and np.all(product != 0):
        return restored(product, shape, axis) / x
    axes = axes_of(axis, len(shape))
    return unmerged(products_of_others(merged(x, axes)), shape, axes)


def cumprod_bar(z_bar: Any, x: Any, z: Any) -> Any:
    """x_bar along the last axis for z_k = x_0 ... x_k."""
    if np.size(x) == 0:
        return z_bar
    if np.all(np.isfinite(z)) and np.all(z != 0):
        weighted = z_bar * conj(z)
        return np.cumsum(weighted[..., ::-1], -1)[..., ::-1] / conj(x)
    # x_bar_k = (x_0 ... x_(k-1)) s_k  with  s_k = z_bar_k + x_(k+1) s_(k+1)
    n = np.shape(x)[-1]
    before = np.concatenate([np.ones_like(x[..., :1]), z[..., :-1]], -1)
    s = [z_bar[..., n - 1]]
    for k in range(n - 2, -1, -1):
        s.append(z_bar[..., k] + conj(x[..., k + 1]) * s[-1])
    return conj(before) * np.stack(s[::-1], -1)


def enter_cumprod(function: Any, skip_nan: bool = False) -> None:
    """a_bar as in `cumprod_bar`."""

    @rrule(function)
    def cumprod_rrule(a, axis=None, dtype=None, out=None):
        refuse_out("np.cumprod", out)
        z = function(a, axis, dtype)
        a = array(a)

        def cumprod_pullback(z_bar):
            shape = np.shape(a)
            factors = np.where(np.isnan(a), 1, a) if skip_nan else np.asarray(a)
            if axis is None or len(shape) == 0:
                a_bar = np.reshape(cumprod_bar(z_bar, np.reshape(factors, (-1,)), z), shape)
            else:
                last = [np.moveaxis(x, axis, -1) for x in (z_bar, factors, z)]
                a_bar = np.moveaxis(cumprod_bar(*last), -1, axis)
            return (np.where(np.isnan(a), 0, a_bar) if skip_nan else a_bar,)

        return z, cumprod_pullback

    @both_forms(function)
    def cumprod_frule(a, axis=None, dtype=None, out=None):
        refuse_out("np.cumprod", out)
        z = function(a, axis, dtype)

        def cumprod_pushforward(dots):
            if not varies(dots[0]):
                return ZeroTangent
            a_dot, x = joined(dots[0], a), np.asarray(a)
            if skip_nan:
                a_dot, x = np.where(np.isnan(x), 0, a_dot), np.where(np.isnan(x), 1, x)
            if axis is None or np.ndim(x) == 0:
                return cumprod_dot(flattened(a_dot, x), np.ravel(x), z)
            back = axis % np.ndim(x) - np.ndim(x)
            last = [np.moveaxis(part, back, -1) for part in (a_dot, x, z)]
            return np.moveaxis(cumprod_dot(*last), -1, back)

        return z, cumprod_pushforward


def cumprod_dot(x_dot: Any, x: Any, z: Any) -> Any:
    """z_dot along the last axis for z_k = x_0 ... x_k."""
    if np.size(x) == 0:
        return x_dot
    if np.all(np.isfinite(z)) and np.all(z != 0):
        return z * np.cumsum(x_dot / x, -1)
    z_dot = [x_dot[..., 0]]
    for k in range(1, np.shape(x)[-1]):
        z_dot.append(z_dot[-1] * x[..., k] + z[..., k - 1] * x_dot[..., k])
    return np.stack(z_dot, -1)


for f in both("prod", "product"):
    enter_prod(f)
for f in both("cumprod", "cumproduct"):
    enter_cumprod(f)
enter_prod(np.nanprod, skip_nan=True)
enter_cumprod(np.nancumprod, skip_nan=True)
