"""What generated programs call: sums over the axes of broadcasting, counts of iterations, slopes."""

from __future__ import annotations

import numba
import numpy as np
from numba.core import types
from numba.cpython.unsafe.tuple import tuple_setitem

from plaingrad.engine.memory.memory import overwrites_unread
from plaingrad.errors import NativeError
from plaingrad.native.runtime.declare import overload, register_jitable
from plaingrad.native.runtime.vector.simd import native
from plaingrad.rules import elementwise


@register_jitable(moves=True)
def extent(a):  # type: ignore[no-untyped-def]
    """(address of the first byte of an array, address behind its last)."""
    low = high = a.ctypes.data
    for k in range(a.ndim):
        reach = a.strides[k] * (a.shape[k] - 1)
        if reach > 0:
            high += reach
        else:
            low += reach
    return low, high + a.itemsize


@register_jitable(moves=True)
def check_disjoint(a, b):  # type: ignore[no-untyped-def]
    """Raise if arrays overlap: Numba does a += b element after element, NumPy as if b were copied first."""
    if a.size == 0 or b.size == 0:
        return
    low_a, high_a = extent(a)
    low_b, high_b = extent(b)
    if low_a < high_b and low_b < high_a:
        if a.ndim == 1 and b.ndim == 1 and a.strides[0] == b.strides[0]:
            if a.strides[0] != 0 and (low_a - low_b) % abs(a.strides[0]) != 0:
                return  # every other element each
        raise NativeError(
            "an array is changed in place by an overlapping view of itself; pass a copy of the view"
        )


def check_read_first(array, index, value):  # type: ignore[no-untyped-def]
    """Raise if array[index] = value overwrites elements of `value` that are not read yet: run by CPython only.

    Numba reads them all before, so nothing is left of this when it is compiled.
    """
    if overwrites_unread(array[index], value):
        raise NativeError("a vector is assigned to one that shares elements with it; assign a copy of it")


@overload(check_read_first)
def _check_read_first(array, index, value):  # type: ignore[no-untyped-def]
    return lambda array, index, value: None


@register_jitable(moves=True)
def place_in_list(index, n):  # type: ignore[no-untyped-def]
    """The place of an element of a list of `n`, counted from the end if `index` is negative."""
    place = index + n if index < 0 else index
    if place < 0 or place >= n:
        raise IndexError("list index out of range")
    return place


def trips(start, stop, step):  # type: ignore[no-untyped-def]
    """The length of range(start, stop, step)."""
    if step == 0:
        raise ValueError("range() arg 3 must not be zero")
    if step > 0:
        return (stop - start + step - 1) // step if stop > start else 0
    return (start - stop - step - 1) // -step if start > stop else 0


def _trips(context, builder, sig, args):  # type: ignore[no-untyped-def]
    start, stop, step = (
        context.cast(builder, x, t, types.int64) for x, t in zip(args, sig.args, strict=True)
    )
    zero, one = (context.get_constant(types.int64, n) for n in (0, 1))
    with builder.if_then(builder.icmp_signed("==", step, zero), likely=False):
        context.call_conv.return_user_exc(builder, ValueError, ("range() arg 3 must not be zero",))
    up = builder.icmp_signed(">", step, zero)
    reach = builder.select(up, builder.sub(stop, start), builder.sub(start, stop))
    size = builder.select(up, step, builder.neg(step))
    count = builder.sdiv(builder.add(reach, builder.sub(size, one)), size)
    return builder.select(builder.icmp_signed(">", reach, zero), count, zero)


def _type_of_trips(*bounds):  # type: ignore[no-untyped-def]
    # a count that stands among arguments with derivatives comes as a float
    return types.int64 if all(isinstance(t, (types.Integer, types.Float)) for t in bounds) else None


native(trips, _type_of_trips, _trips)


@register_jitable
def choice(test, a, b):  # type: ignore[no-untyped-def]
    """a if `test`, else b; both have been computed."""
    return a if test else b


@register_jitable(moves=True)
def clamped(index, n):  # type: ignore[no-untyped-def]
    """An index of an axis of n elements; the nearest one for what is none."""
    return min(max(index, -n), n - 1)


@register_jitable
def where_taken(taken, bar):  # type: ignore[no-untyped-def]
    """The cotangent of the operand that min or max took, 0 of the others, whatever the cotangent is."""
    return bar if taken else 0.0


def add_to(target, term):  # type: ignore[no-untyped-def]
    """target += term, summed over the axes along which target was broadcast; arrays.

    Axes of length 1 that target has and term has not are those of what was written into an array with fewer axes.
    """
    extra = np.ndim(term) - target.ndim
    if extra < 0 < np.ndim(term):
        for part in target:
            add_to(part, term)
        return
    if extra > 0:
        term = np.sum(term, axis=tuple(range(extra)))
    if target.shape != np.shape(term) and np.ndim(term):
        stretched = tuple(k for k in range(target.ndim) if target.shape[k] == 1)
        term = np.sum(term, axis=stretched, keepdims=True)
    target += term.real if target.dtype.kind == "f" and np.iscomplexobj(term) else term


@overload(add_to)
def _add_to(target, term):  # type: ignore[no-untyped-def]
    if not isinstance(term, types.Array) or term.ndim == 0:

        def add_number(target, term):  # type: ignore[no-untyped-def]
            target += np.asarray(term)[()]

        return add_number
    if term.ndim > target.ndim:

        def add_each(target, term):  # type: ignore[no-untyped-def]
            for k in range(term.shape[0]):
                add_to(target, term[k])

        return add_each
    if term.ndim < target.ndim:

        def add_within(target, term):  # type: ignore[no-untyped-def]
            for k in range(target.shape[0]):
                add_to(target[k], term)

        return add_within
    real = isinstance(term.dtype, types.Complex) and not isinstance(target.dtype, types.Complex)
    ndim = target.ndim

    def add_alike(target, term):  # type: ignore[no-untyped-def]
        if target.shape == term.shape:
            if real:
                target += term.real
            else:
                target += term
            return
        for k in range(ndim):
            if target.shape[k] != term.shape[k] and target.shape[k] != 1:
                raise ValueError("a cotangent has not the shape of its array")
        for place in np.ndindex(term.shape):
            at = place
            for k in range(ndim):
                if target.shape[k] == 1:
                    at = tuple_setitem(at, k, 0)
            if real:
                target[at] += term[place].real
            else:
                target[at] += term[place]

    return add_alike


@register_jitable
def power_slope(x, y):  # type: ignore[no-untyped-def]
    """d(x**y)/dx; 0 where y is 0, also of nan."""
    if y == 0:
        return 0.0 * np.power(x, 0.0)
    if y == 1:
        return np.power(x, 0.0)
    if y == 2:
        return 2.0 * x
    slope = y * np.power(x, y - 1.0)
    if abs(slope) == np.inf and x != 0 and abs(x) < 1:  # 1 / x of a denormal number
        return y * np.power(x, y) / x
    return slope


@register_jitable
def second_power_slope(x, y):  # type: ignore[no-untyped-def]
    """d2(x**y)/dx2; 0 where y is 0 or 1."""
    if y == 0 or y == 1:
        return 0.0 * np.power(x, 0.0)
    if y == 2:
        return 2.0 * np.power(x, 0.0)
    return y * (y - 1.0) * np.power(x, y - 2.0)


def log_of_base(x, z):  # type: ignore[no-untyped-def]
    """d log(x**y)/dy: log x, of a real power `z` log |x|; 0 where x is 0."""
    if x == 0:
        return 0.0 * x
    return np.log(x + 0j) if np.iscomplexobj(z) else np.log(abs(x))


@overload(log_of_base)
def _log_of_base(x, z):  # type: ignore[no-untyped-def]
    if isinstance(z, types.Complex):
        return lambda x, z: 0j if x == 0 else np.log(x + 0j)
    return lambda x, z: 0.0 * x if x == 0 else np.log(abs(x))


@register_jitable
def mixed_power_slope(x, y):  # type: ignore[no-untyped-def]
    """d2(x**y)/dx dy; 0 where x is 0."""
    z = np.power(x, y - 1.0)
    return 0.0 * z if x == 0 else z * (1.0 + y * log_of_base(x, z))


@register_jitable
def inverse_size(x):  # type: ignore[no-untyped-def]
    """1 / |x|, and 0 at 0."""
    return 1.0 / abs(x) if x != 0 else 0.0


def sign_pushed(x, x_dot):  # type: ignore[no-untyped-def]
    """The tangent of conj(x) / |x|, the slope of |x|, for complex x: the part of x_dot that turns x, over |x|."""
    slope = elementwise._sign(x)
    turning = np.conj(x_dot) - slope * (slope * x_dot).real
    return elementwise.direction(turning, abs(x))


@overload(sign_pushed)
def _sign_pushed(x, x_dot):  # type: ignore[no-untyped-def]
    slope_of, direction = elementwise._sign, elementwise.direction

    def pushed(x, x_dot):  # type: ignore[no-untyped-def]
        slope = slope_of(x)
        turning = np.conj(x_dot) - slope * (slope * x_dot).real
        return direction(turning, np.abs(x))

    return pushed


def exponent_slope(x, y, z):  # type: ignore[no-untyped-def]
    """d(x**y)/dy = z log x, for a real power z log |x|; 0 where x is 0."""
    if x == 0:
        return 0.0 * z
    return z * (np.log(x + 0j) if np.iscomplexobj(z) else np.log(abs(x)))


@overload(exponent_slope)
def _exponent_slope(x, y, z):  # type: ignore[no-untyped-def]
    if isinstance(z, types.Complex):
        return lambda x, y, z: 0.0 * z if x == 0 else z * np.log(x + 0j)
    return lambda x, y, z: 0.0 * z if x == 0 else z * np.log(abs(x))


@numba.vectorize
def power_slopes(x, y):  # type: ignore[no-untyped-def]
    """`power_slope` of arrays."""
    return power_slope(x, y)


@numba.vectorize
def second_power_slopes(x, y):  # type: ignore[no-untyped-def]
    """`second_power_slope` of arrays."""
    return second_power_slope(x, y)


@numba.vectorize
def exponent_slopes(x, y, z):  # type: ignore[no-untyped-def]
    """`exponent_slope` of arrays."""
    return exponent_slope(x, y, z)


# to[place] = of[place] wherever not low <= place < high along all axes, for arrays of one shape, of rank 1, 2 and 3;
# everywhere, if the box is empty along an axis or reaches out of the arrays


@register_jitable(moves=True)
def copy_around_1(to, of, low, high, behind):  # type: ignore[no-untyped-def]
    """Copy what lies outside of a range that a loop fills: `behind` the loop, when the lines of memory that
    it has stored to are near. Where the range is none, copy everything, in front of the loop."""
    n = to.shape[0]
    box = 0 <= low[0] < high[0] <= n
    if box != behind:
        return
    for i in range(low[0] if box else n):
        to[i] = of[i]
    for i in range(high[0] if box else n, n):
        to[i] = of[i]


@register_jitable(moves=True)
def copy_around_2(to, of, low, high, behind):  # type: ignore[no-untyped-def]
    """The same for a rectangle."""
    rows, n = to.shape
    box = 0 <= low[0] < high[0] <= rows and 0 <= low[1] < high[1] <= n
    if box != behind:
        return
    for i in range(rows):
        crosses = box and low[0] <= i < high[0]
        for j in range(low[1] if crosses else n):
            to[i, j] = of[i, j]
        for j in range(high[1] if crosses else n, n):
            to[i, j] = of[i, j]


@register_jitable(moves=True)
def copy_around_3(to, of, low, high, behind):  # type: ignore[no-untyped-def]
    """The same for a box."""
    layers, rows, n = to.shape
    box = 0 <= low[0] < high[0] <= layers and 0 <= low[1] < high[1] <= rows and 0 <= low[2] < high[2] <= n
    if box != behind:
        return
    for i in range(layers):
        for j in range(rows):
            crosses = box and low[0] <= i < high[0] and low[1] <= j < high[1]
            for k in range(low[2] if crosses else n):
                to[i, j, k] = of[i, j, k]
            for k in range(high[2] if crosses else n, n):
                to[i, j, k] = of[i, j, k]


COPY_AROUND = {1: copy_around_1, 2: copy_around_2, 3: copy_around_3}
