"""Loops and formulas that rules of arrays call from generated code; they run compiled and as plain Python alike.

`*_bar` functions take the cotangent of the result, the result, and the operands of the function (in its own order)
and return the cotangent of one operand; `*_dot` take the tangents, the result and the operands.
"""

from __future__ import annotations

import numpy as np
from numba.core import types
from numba.extending import intrinsic

from plaingrad.native.runtime.declare import overload, register_jitable
from plaingrad.native.runtime.helpers import add_to

# Sums and shapes ------------------------------------------------------------------------------------------------------


def conj_of(x):  # type: ignore[no-untyped-def]
    """conj(x), of real arrays x itself."""
    return np.conj(x) if np.iscomplexobj(x) else x


@overload(conj_of)
def _conj_of(x):  # type: ignore[no-untyped-def]
    if isinstance(getattr(x, "dtype", x), types.Complex):
        return lambda x: np.conj(x)
    return lambda x: x


@register_jitable
def number_bar(z_bar, z, a):  # type: ignore[no-untyped-def]
    """The only element of an array."""
    return z_bar


@register_jitable
def total(x):  # type: ignore[no-untyped-def]
    """The sum of all elements of an array; of a number the number."""
    return np.sum(np.asarray(x))


@register_jitable
def real_total(x):  # type: ignore[no-untyped-def]
    """The real part of `total`."""
    return np.sum(np.asarray(x)).real


def fitted(z, term):  # type: ignore[no-untyped-def]
    """`term` in new memory, with the shape and dtype of `z`; a tangent of z."""
    out = np.empty_like(z)
    out[...] = term.real if z.dtype.kind == "f" and np.iscomplexobj(term) else term
    return out


@overload(fitted)
def _fitted(z, term):  # type: ignore[no-untyped-def]
    real = isinstance(getattr(term, "dtype", term), types.Complex) and not isinstance(z.dtype, types.Complex)
    if isinstance(term, types.Array) and term.ndim:
        if real:

            def fitted_real(z, term):  # type: ignore[no-untyped-def]
                out = np.empty_like(z)
                out[...] = term.real
                return out

            return fitted_real

        def fitted_array(z, term):  # type: ignore[no-untyped-def]
            out = np.empty_like(z)
            out[...] = term
            return out

        return fitted_array

    def fitted_number(z, term):  # type: ignore[no-untyped-def]
        out = np.empty_like(z)
        value = np.asarray(term)[()]
        if real:
            value = value.real
        out[...] = value
        return out

    return fitted_number


@register_jitable
def expanded(z_bar, like, axis):  # type: ignore[no-untyped-def]
    """`z_bar`, the cotangent of a sum along `axis`, with that axis back, broadcast to the shape of `like`.

    A new array: derivatives of derived programs have no rule for a view that is broadcast.
    """
    return np.expand_dims(z_bar, axis if axis >= 0 else like.ndim + axis) + np.zeros(like.shape, z_bar.dtype)


@register_jitable
def sum_bar(z_bar, z, a, axis, dtype):  # type: ignore[no-untyped-def]
    """Sums of all elements: every one gets the cotangent."""
    return z_bar


@register_jitable
def sum_along_bar(z_bar, z, a, axis, dtype):  # type: ignore[no-untyped-def]
    """Sums along an axis: every element gets the cotangent of the sum that it was added to."""
    return expanded(z_bar, a, axis)


@register_jitable
def mean_bar(z_bar, z, a):  # type: ignore[no-untyped-def]
    """Mean of all elements."""
    return z_bar / max(a.size, 1)


@register_jitable
def same_shape_bar(z_bar, z, a):  # type: ignore[no-untyped-def]
    """Copies."""
    return np.ascontiguousarray(z_bar).reshape(a.shape)


@register_jitable
def plain_bar(z_bar, z, a, other):  # type: ignore[no-untyped-def]
    """Conversions, broadcasting: z_bar itself, summed where it is added."""
    return z_bar


@register_jitable
def conj_bar(z_bar, z, a):  # type: ignore[no-untyped-def]
    """conj(a)."""
    return np.conj(z_bar)


@register_jitable
def flip_sign_of_shift(z_bar, z, a, shift):  # type: ignore[no-untyped-def]
    """np.roll(a, shift)."""
    return np.roll(np.ascontiguousarray(z_bar), -shift)


@register_jitable
def repeat_bar(z_bar, z, a, repeats):  # type: ignore[no-untyped-def]
    """np.repeat(a, repeats) of all elements, one count or one for each."""
    out = np.zeros(a.size, z_bar.dtype)
    counts = np.asarray(repeats)
    each = counts.ravel()
    k = 0
    for i in range(a.size):
        n = each[0] if each.size == 1 else each[i]
        for _ in range(n):
            out[i] += z_bar[k]
            k += 1
    return out.reshape(a.shape)


@register_jitable
def diff_bar(z_bar, z, a):  # type: ignore[no-untyped-def]
    """np.diff(a) along the last axis."""
    out = np.zeros(a.shape, z_bar.dtype)
    if a.shape[-1] > 1:
        out[..., 1:] += z_bar
        out[..., :-1] -= z_bar
    return out


@register_jitable
def trace_bar(z_bar, z, a, offset):  # type: ignore[no-untyped-def]
    """np.trace(a, offset)."""
    out = np.zeros(a.shape, np.asarray(z_bar).dtype)
    for i in range(a.shape[0]):
        j = i + offset
        if 0 <= j < a.shape[1]:
            out[i, j] = z_bar
    return out


@register_jitable
def diag_bar(z_bar, z, a, k):  # type: ignore[no-untyped-def]
    """np.diag(a, k) of a vector or matrix."""
    out = np.zeros(a.shape, z_bar.dtype)
    rows, columns = max(-k, 0), max(k, 0)
    if a.ndim == 1:
        for i in range(a.size):
            out[i] = z_bar[i + rows, i + columns]
    else:
        for i in range(z_bar.size):
            out[i + rows, i + columns] = z_bar[i]
    return out


@register_jitable
def tril_bar(z_bar, z, a, k):  # type: ignore[no-untyped-def]
    """np.tril(a, k)."""
    return np.tril(z_bar, k)


@register_jitable
def triu_bar(z_bar, z, a, k):  # type: ignore[no-untyped-def]
    """np.triu(a, k)."""
    return np.triu(z_bar, k)


@register_jitable
def extent(like, axis):  # type: ignore[no-untyped-def]
    """The length along an axis."""
    return like.shape[axis]


@register_jitable
def piece(z_bar, like, start, n, axis):  # type: ignore[no-untyped-def]
    """Of a joined array the part that came from an array like `like`: `n` layers along `axis`, from `start` on."""
    outer = 1
    for k in range(axis):
        outer *= z_bar.shape[k]
    inner = 1
    for k in range(axis + 1, z_bar.ndim):
        inner *= z_bar.shape[k]
    whole = np.ascontiguousarray(z_bar).reshape((outer, z_bar.shape[axis], inner))
    return np.ascontiguousarray(whole[:, start : start + n, :]).reshape(like.shape)


@register_jitable
def places(a, index):  # type: ignore[no-untyped-def]
    """The numbers of the elements a[index], counted in C order."""
    return np.ascontiguousarray(np.arange(a.size).reshape(a.shape)[index])


@register_jitable
def scattered(z_bar, like, numbers):  # type: ignore[no-untyped-def]
    """The cotangent of `a` where z = a[index]; `numbers` are its `places`."""
    out = np.zeros(like.size, like.dtype)
    terms = np.ascontiguousarray(z_bar).reshape(-1)
    each = numbers.reshape(-1)
    for k in range(each.size):
        out[each[k]] += terms[k]
    return out.reshape(like.shape)


def withdrawn(bar, numbers):  # type: ignore[no-untyped-def]
    """Of a[index] = value: the cotangent of the value; that of what was overwritten becomes zero."""
    out = np.zeros(numbers.shape, bar.dtype)
    for place in reversed(list(np.ndindex(numbers.shape))):  # the last of equal indices was written
        at = np.unravel_index(numbers[place], bar.shape)
        out[place] = bar[at]
        bar[at] = 0
    return out


@overload(withdrawn)
def _withdrawn(bar, numbers):  # type: ignore[no-untyped-def]
    def taken(bar, numbers):  # type: ignore[no-untyped-def]
        flat = bar.flatten()
        each = numbers.reshape(-1)
        out = np.zeros(each.size, bar.dtype)
        for k in range(each.size - 1, -1, -1):
            out[k] = flat[each[k]]
            flat[each[k]] = 0
        bar[...] = flat.reshape(bar.shape)
        return out.reshape(numbers.shape)

    return taken


@register_jitable
def take_bar(z_bar, z, a, indices):  # type: ignore[no-untyped-def]
    """np.take(a, indices) of the flattened array."""
    out = np.zeros(a.size, np.asarray(z_bar).dtype)
    each = np.ascontiguousarray(np.asarray(indices)).reshape(-1)
    terms = np.ascontiguousarray(np.asarray(z_bar)).reshape(-1)
    for k in range(each.size):
        out[each[k]] += terms[k]
    return out.reshape(a.shape)


@register_jitable
def linspace_start_bar(z_bar, z, start, stop, num):  # type: ignore[no-untyped-def]
    """np.linspace(start, stop, num) in `start`."""
    found = z_bar[0] * 0.0
    for k in range(z_bar.size):
        found += z_bar[k] * (1.0 - k / max(z_bar.size - 1, 1))
    return found


@register_jitable
def linspace_stop_bar(z_bar, z, start, stop, num):  # type: ignore[no-untyped-def]
    """np.linspace(start, stop, num) in `stop`."""
    found = z_bar[0] * 0.0
    for k in range(z_bar.size):
        found += z_bar[k] * (k / max(z_bar.size - 1, 1))
    return found


@register_jitable
def linspace_dot(start_dot, stop_dot, z, start, stop, num):  # type: ignore[no-untyped-def]
    """np.linspace(start, stop, num)."""
    return np.linspace(start_dot, stop_dot, num)


def array_of(*numbers):  # type: ignore[no-untyped-def]
    """np.array([number, ...])."""
    return np.array(numbers)


@overload(array_of)
def _array_of(*numbers):  # type: ignore[no-untyped-def]
    return lambda *numbers: np.array(numbers)


# Elementwise loops ----------------------------------------------------------------------------------------------------


@register_jitable(moves=True)
def along(x, length):  # type: ignore[no-untyped-def]
    """`x`, in C order, broadcast along its last axis to this length; itself if it has it.

    Element by element: Numba takes seconds to compile an assignment of arrays to slices.
    """
    if x.shape[-1] == length:
        return x
    if x.shape[-1] != 1:
        raise ValueError("operands could not be broadcast together")
    out = np.empty(x.shape[:-1] + (length,), x.dtype)
    of, to = x.reshape(x.size), out.reshape(x.size, length)
    for i in range(x.size):
        for k in range(length):
            to[i, k] = of[i]
    return out


@register_jitable(moves=True)
def room_along(bar, length):  # type: ignore[no-untyped-def]
    """What the cotangent of `along(x, length)` is added into: `bar`, that of x, or zeros if x was broadcast."""
    if bar.shape[-1] == length:
        return bar
    return np.zeros(bar.shape[:-1] + (length,), bar.dtype)


@register_jitable
def folded(bar, room):  # type: ignore[no-untyped-def]
    """Add to `bar` what is in its `room_along`, if that is another array."""
    if bar.shape != room.shape:
        add_to(bar, room)


def plus_in_any_order(a, b):  # type: ignore[no-untyped-def]
    """a + b, of a sum whose terms the compiler may add in any order."""
    return a + b


@intrinsic
def _plus_in_any_order(typingctx, a, b):  # type: ignore[no-untyped-def]
    """`plus_in_any_order` of two numbers of float64."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.fadd(*args, flags=("reassoc", "nsz", "contract"))

    return types.float64(types.float64, types.float64), codegen


@overload(plus_in_any_order)
def _plus(a, b):  # type: ignore[no-untyped-def]
    return lambda a, b: _plus_in_any_order(a, b)


# Reductions -----------------------------------------------------------------------------------------------------------


# Choices --------------------------------------------------------------------------------------------------------------


@register_jitable
def where_x_bar(z_bar, z, condition, x, y):  # type: ignore[no-untyped-def]
    """np.where(condition, x, y) in x."""
    return np.where(condition, z_bar, np.zeros_like(z_bar))


@register_jitable
def where_y_bar(z_bar, z, condition, x, y):  # type: ignore[no-untyped-def]
    """np.where(condition, x, y) in y."""
    return np.where(condition, np.zeros_like(z_bar), z_bar)


@register_jitable
def where_dot(x_dot, y_dot, z, condition, x, y):  # type: ignore[no-untyped-def]
    """np.where(condition, x, y)."""
    return np.where(condition, x_dot, y_dot)


@register_jitable
def clip_a_bar(z_bar, z, a, low, high):  # type: ignore[no-untyped-def]
    """np.clip(a, low, high) in a: 1 at the bounds too."""
    inside = a == a
    if low is not None:
        inside = inside & (a >= low)
    if high is not None:
        inside = inside & (a <= high)
    return np.where(inside | (a != a), z_bar, np.zeros_like(z_bar))


@register_jitable
def clip_low_bar(z_bar, z, a, low, high):  # type: ignore[no-untyped-def]
    """np.clip(a, low, high) in low."""
    below = a < low
    if high is not None:
        below = below & (low <= high)
    return np.where(below, z_bar, np.zeros_like(z_bar))


@register_jitable
def clip_high_bar(z_bar, z, a, low, high):  # type: ignore[no-untyped-def]
    """np.clip(a, low, high) in high."""
    above = a > high
    if low is not None:
        above = above | (low > high)
    return np.where(above, z_bar, np.zeros_like(z_bar))


@register_jitable
def clip_dot(a_dot, low_dot, high_dot, z, a, low, high):  # type: ignore[no-untyped-def]
    """np.clip(a, low, high)."""
    ones = np.ones_like(z)
    out = clip_a_bar(ones, z, a, low, high) * a_dot
    if low is not None:
        out = out + clip_low_bar(ones, z, a, low, high) * low_dot
    if high is not None:
        out = out + clip_high_bar(ones, z, a, low, high) * high_dot
    return out


@register_jitable
def interp_piece(x, xp):  # type: ignore[no-untyped-def]
    """(the piece of the polygon that x lies on, whether it lies on one at all)."""
    n = xp.size
    if n < 2 or x < xp[0] or x > xp[n - 1]:
        return (0 if n < 2 or x < xp[0] else n - 1), False
    k = min(np.searchsorted(xp, x, side="right") - 1, n - 2)
    return k, True


@register_jitable
def interp_x_bar(z_bar, z, x, xp, fp):  # type: ignore[no-untyped-def]
    """np.interp(x, xp, fp) in x: the slope of the piece, 0 outside."""
    points = np.asarray(x)
    out = np.zeros(points.shape)
    bars = np.asarray(z_bar)
    for place in np.ndindex(points.shape):
        k, inside = interp_piece(points[place], xp)
        if inside and points[place] != xp[xp.size - 1]:
            out[place] = bars[place] * (fp[k + 1] - fp[k]) / (xp[k + 1] - xp[k])
    return out


@register_jitable
def interp_fp_bar(z_bar, z, x, xp, fp):  # type: ignore[no-untyped-def]
    """np.interp(x, xp, fp) in fp."""
    points = np.asarray(x)
    bars = np.asarray(z_bar)
    out = np.zeros(fp.shape)
    for place in np.ndindex(points.shape):
        k, inside = interp_piece(points[place], xp)
        if inside:
            t = (points[place] - xp[k]) / (xp[k + 1] - xp[k])
            out[k] += bars[place] * (1 - t)
            out[k + 1] += bars[place] * t
        else:
            out[k] += bars[place]
    return out


@register_jitable
def interp_xp_bar(z_bar, z, x, xp, fp):  # type: ignore[no-untyped-def]
    """np.interp(x, xp, fp) in xp: as in x, shared by the ends of the piece, and the other way round."""
    points = np.asarray(x)
    bars = np.asarray(z_bar)
    out = np.zeros(xp.shape)
    for place in np.ndindex(points.shape):
        k, inside = interp_piece(points[place], xp)
        if inside and points[place] != xp[xp.size - 1]:
            width = xp[k + 1] - xp[k]
            t = (points[place] - xp[k]) / width
            pull = bars[place] * (fp[k + 1] - fp[k]) / width
            out[k] -= pull * (1 - t)
            out[k + 1] -= pull * t
    return out


@register_jitable
def interp_dot(x_dot, xp_dot, fp_dot, z, x, xp, fp):  # type: ignore[no-untyped-def]
    """np.interp(x, xp, fp)."""
    slope = interp_x_bar(np.ones_like(np.asarray(x)), z, x, xp, fp)
    return slope * (x_dot - np.interp(x, xp, xp_dot)) + np.interp(x, xp, fp_dot)


# Products -------------------------------------------------------------------------------------------------------------
