"""Tangents in lanes on their way into the matrix of a compiled Jacobian."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from plaingrad.errors import ArgumentError
from plaingrad.native.forward.chunks import Lanes
from plaingrad.native.runtime.declare import overload
from plaingrad.native.runtime.workspace import address_of


def check_columns(out, columns):  # type: ignore[no-untyped-def]
    """Raise if `out` is no matrix with so many columns."""
    if out.shape[1] != columns:
        raise ValueError(
            "the matrix for a Jacobian has a column for each number of the differentiated arguments"
        )


@overload(check_columns)
def _check_columns(out, columns):  # type: ignore[no-untyped-def]
    def check(out, columns):  # type: ignore[no-untyped-def]
        if out.shape[1] != columns:
            raise ValueError(
                "the matrix for a Jacobian has a column for each number of the differentiated arguments"
            )

    return check


def check_rows(out, rows):  # type: ignore[no-untyped-def]
    """Raise if the matrix `out` has more rows than were filled."""
    if out.shape[0] != rows:
        raise ValueError("the matrix for a Jacobian has a row for each number of the results, and no more")


@overload(check_rows)
def _check_rows(out, rows):  # type: ignore[no-untyped-def]
    def check(out, rows):  # type: ignore[no-untyped-def]
        if out.shape[0] != rows:
            raise ValueError(
                "the matrix for a Jacobian has a row for each number of the results, and no more"
            )

    return check


SHARES = (
    "`out`, the last argument of a compiled Jacobian, shares memory with an argument of the function, which would be "
    "overwritten while it is read.\n  To go on: pass a matrix of its own, np.empty((rows, columns)).\n"
    "  See docs: errors#argument"
)


def check_apart(out, x):  # type: ignore[no-untyped-def]
    """Raise if the matrix `out` shares memory with the array `x`."""
    if np.shares_memory(out, x):
        raise ArgumentError(SHARES)


@overload(check_apart)
def _check_apart(out, x):  # type: ignore[no-untyped-def]
    if x.ndim == 0:

        def check_number(out, x):  # type: ignore[no-untyped-def]
            check_apart(out, x.reshape(1))

        return check_number

    if out.layout in "CF" and x.layout in "CF":  # without gaps: what overlaps shares elements

        def check_bounds(out, x):  # type: ignore[no-untyped-def]
            first, begin = address_of(out), address_of(x)
            if first < begin + x.nbytes and begin < first + out.nbytes and out.size * x.size:
                raise ArgumentError(SHARES)

        return check_bounds

    def check(out, x):  # type: ignore[no-untyped-def]
        if out.size == 0 or x.size == 0:
            return
        low, high = extent(out)
        bottom, top = extent(x)
        if low < top and bottom < high and shares_elements(out, x):
            raise ArgumentError(SHARES)

    return check


def extent(x):  # type: ignore[no-untyped-def]
    """(the lowest address, the end of the highest one) of the elements of an array that is not empty."""
    return np.lib.array_utils.byte_bounds(x)


@overload(extent)
def _extent(x):  # type: ignore[no-untyped-def]
    if x.layout in "CF":
        return lambda x: (address_of(x), address_of(x) + x.nbytes)
    ndim = x.ndim

    def bounds(x):  # type: ignore[no-untyped-def]
        low = address_of(x)
        high = low + x.itemsize
        for k in range(ndim):
            reach = x.strides[k] * (x.shape[k] - 1)
            low, high = low + min(reach, 0), high + max(reach, 0)
        return low, high

    return bounds


def shares_elements(out, x):  # type: ignore[no-untyped-def]
    """Whether a matrix and an array have bytes in common: asked only where their extents overlap."""
    return np.shares_memory(out, x)


@overload(shares_elements)
def _shares_elements(out, x):  # type: ignore[no-untyped-def]
    ndim = x.ndim

    def share(out, x):  # type: ignore[no-untyped-def]
        first, begin = address_of(out), address_of(x)
        for i in range(out.shape[0]):
            for j in range(out.shape[1]):
                place = first + i * out.strides[0] + j * out.strides[1]
                for n in range(x.size):
                    rest, other = n, begin
                    for k in range(ndim):
                        other += x.strides[k] * (rest % x.shape[k])
                        rest //= x.shape[k]
                    if place < other + x.itemsize and other < place + out.itemsize:
                        return True
        return False

    return share


def put(out, row, first, x_dot):  # type: ignore[no-untyped-def]
    """out[row, first : first + n] = the tangents of a number, or of an array in so many rows; the next row."""
    if not isinstance(x_dot, np.ndarray) or x_dot.dtype != object:
        count = min(len(x_dot), out.shape[1] - first)
        out[row, first : first + count] = x_dot[:count]
        return row + 1
    for place in np.ndindex(x_dot.shape):
        row = put(out, row, first, x_dot[place])
    return row


@overload(put)
def _put(out, row, first, x_dot):  # type: ignore[no-untyped-def]
    if isinstance(x_dot, Lanes):

        def one(out, row, first, x_dot):  # type: ignore[no-untyped-def]
            if row >= out.shape[0]:
                raise ValueError("the matrix for a Jacobian has a row for each number of the results")
            _put_lanes(out[row], first, x_dot)
            return row + 1

        return one

    def each(out, row, first, x_dot):  # type: ignore[no-untyped-def]
        for place in np.ndindex(x_dot.shape):
            if row >= out.shape[0]:
                raise ValueError("the matrix for a Jacobian has a row for each number of the results")
            _put_lanes(out[row], first, x_dot[place])
            row += 1
        return row

    return each


@intrinsic
def _put_lanes(context, row, first, x):  # type: ignore[no-untyped-def]
    """row[first : first + n] = x, as far as the vector `row` reaches."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array = context.make_array(sig.args[0])(context, builder, args[0])
        start = args[1]
        (size,) = cgutils.unpack_tuple(builder, array.shape)
        (stride,) = cgutils.unpack_tuple(builder, array.strides)
        if sig.args[0].layout == "C":
            stride = ir.Constant(ir.IntType(64), 8)
        room = builder.sub(size, start)
        begin = builder.add(builder.ptrtoint(array.data, ir.IntType(64)), builder.mul(start, stride))
        for k in range(x.n):
            lane = ir.Constant(ir.IntType(64), k)
            with builder.if_then(builder.icmp_signed("<", lane, room)):
                address = builder.add(begin, builder.mul(lane, stride))
                value = builder.extract_element(args[2], ir.Constant(ir.IntType(32), k))
                builder.store(value, builder.inttoptr(address, ir.DoubleType().as_pointer()))
        return context.get_dummy_value()

    return types.none(row, types.int64, x), generate
