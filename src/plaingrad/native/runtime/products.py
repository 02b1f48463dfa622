"""Matrix products added to what is there: target += a @ b in one call of BLAS, without a matrix for the product.

Numba's `np.dot` can write a product, but not add it. The cotangents of the operands of a product are such sums, in
loops (weights that are used in every step) and outside of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np.linalg import ensure_blas

from plaingrad.native.runtime.array_helpers import conj_of
from plaingrad.native.runtime.declare import overload
from plaingrad.native.runtime.helpers import add_to
from plaingrad.native.runtime.product_formulas import dot_bar_a, dot_bar_b
from plaingrad.native.runtime.workspace import room

KINDS = {types.float32: "s", types.float64: "d", types.complex64: "c", types.complex128: "z"}


def _gemm(a_is_turned: bool, b_is_turned: bool, keep: float) -> Any:
    """What makes c = keep * c + a @ b in compiled programs, a or b turned, for matrices of one type, c in C order."""

    @intrinsic
    def product(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            ensure_blas()
            char, word, pointer = ir.IntType(8), ir.IntType(64), ir.IntType(8).as_pointer()
            parameters = (
                [char] * 3 + [word] * 3 + [pointer, pointer, word, pointer, word, pointer, pointer, word]
            )
            gemm = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(ir.IntType(32), parameters), "numba_xxgemm"
            )
            alpha, beta = (
                builder.bitcast(
                    cgutils.alloca_once_value(builder, context.get_constant(c.dtype, factor)), pointer
                )
                for factor in (1.0, keep)
            )
            found = []  # (the flag of BLAS, length of a row in memory, data, shape as a factor)
            for kind, x, is_turned in zip(
                signature.args, args, (a_is_turned, b_is_turned, False), strict=True
            ):
                matrix = context.make_array(kind)(context, builder, x)
                rows, columns = cgutils.unpack_tuple(builder, matrix.shape, 2)
                flag = ir.Constant(char, ord("t" if is_turned != (kind.layout == "F") else "n"))
                length = columns if kind.layout == "C" else rows
                shape = (columns, rows) if is_turned else (rows, columns)
                found.append((flag, length, builder.bitcast(matrix.data, pointer), shape))
            (a_flag, a_length, a_data, (m, k)), (b_flag, b_length, b_data, (_, n)), (_, _, c_data, _) = found
            sizes = (ir.Constant(char, ord(KINDS[c.dtype])), b_flag, a_flag, n, m, k)
            # a matrix in C order is its transpose in BLAS: c^T += b^T a^T
            return builder.call(gemm, (*sizes, alpha, b_data, b_length, a_data, a_length, beta, c_data, n))

        return types.int32(a, b, c), codegen

    return product


_add_times_turned, _add_turned_times = _gemm(False, True, 1.0), _gemm(True, False, 1.0)
_put_times_turned, _put_turned_times = _gemm(False, True, 0.0), _gemm(True, False, 0.0)


def _are_alike(*kinds: Any) -> bool:
    """Whether all are arrays of one type of numbers that BLAS knows, without gaps in memory, the first in C order."""
    return kinds[0].layout == "C" and all(
        isinstance(t, types.Array) and t.layout in "CF" and t.dtype == kinds[0].dtype and t.dtype in KINDS
        for t in kinds
    )


def add_dot_a(a_bar: Any, z_bar: Any, a: Any, b: Any) -> None:
    """a_bar += the cotangent of `a` in z = a @ b."""
    add_to(a_bar, dot_bar_a(z_bar, None, a, b))


def add_dot_b(b_bar: Any, z_bar: Any, a: Any, b: Any) -> None:
    """b_bar += the cotangent of `b` in z = a @ b."""
    add_to(b_bar, dot_bar_b(z_bar, None, a, b))


@overload(add_dot_a)
def _add_dot_a(a_bar, z_bar, a, b):  # type: ignore[no-untyped-def]
    if not isinstance(z_bar, types.Array) or not _are_alike(a_bar, z_bar, b):
        return lambda a_bar, z_bar, a, b: add_to(a_bar, dot_bar_a(z_bar, None, a, b))
    if a_bar.ndim == 2 and b.ndim == 2:

        def add_product(a_bar, z_bar, a, b):  # type: ignore[no-untyped-def]
            if a_bar.size > 0 and b.size > 0:
                _add_times_turned(z_bar, conj_of(b), a_bar)

        return add_product
    if a_bar.ndim == 2:

        def add_outer(a_bar, z_bar, a, b):  # type: ignore[no-untyped-def]
            for i in range(z_bar.size):
                for j in range(b.size):
                    a_bar[i, j] += z_bar[i] * conj_of(b[j])

        return add_outer
    return lambda a_bar, z_bar, a, b: add_to(a_bar, dot_bar_a(z_bar, None, a, b))


@overload(add_dot_b)
def _add_dot_b(b_bar, z_bar, a, b):  # type: ignore[no-untyped-def]
    if not isinstance(z_bar, types.Array) or not _are_alike(b_bar, z_bar, a):
        return lambda b_bar, z_bar, a, b: add_to(b_bar, dot_bar_b(z_bar, None, a, b))
    if a.ndim == 2 and b_bar.ndim == 2:

        def add_product(b_bar, z_bar, a, b):  # type: ignore[no-untyped-def]
            if b_bar.size > 0 and a.size > 0:
                _add_turned_times(conj_of(a), z_bar, b_bar)

        return add_product
    if a.ndim == 2:

        def add_rows(b_bar, z_bar, a, b):  # type: ignore[no-untyped-def]
            for i in range(z_bar.size):
                for j in range(b_bar.size):
                    b_bar[j] += z_bar[i] * conj_of(a[i, j])

        return add_rows
    return lambda b_bar, z_bar, a, b: add_to(b_bar, dot_bar_b(z_bar, None, a, b))


def put_dot_a(a_bar: Any, z_bar: Any, a: Any, b: Any) -> None:
    """a_bar = the cotangent of `a` in z = a @ b, whatever is in its memory."""
    a_bar.fill(0.0)
    add_dot_a(a_bar, z_bar, a, b)


def put_dot_b(b_bar: Any, z_bar: Any, a: Any, b: Any) -> None:
    """b_bar = the cotangent of `b` in z = a @ b, whatever is in its memory."""
    b_bar.fill(0.0)
    add_dot_b(b_bar, z_bar, a, b)


@overload(put_dot_a)
def _put_dot_a(a_bar, z_bar, a, b):  # type: ignore[no-untyped-def]
    if isinstance(z_bar, types.Array) and _are_alike(a_bar, z_bar, b) and a_bar.ndim == b.ndim == 2:

        def put_product(a_bar, z_bar, a, b):  # type: ignore[no-untyped-def]
            if a_bar.size > 0 and b.size > 0:
                _put_times_turned(z_bar, conj_of(b), a_bar)
            else:
                a_bar.fill(0.0)

        return put_product

    def put_in_two_steps(a_bar, z_bar, a, b):  # type: ignore[no-untyped-def]
        a_bar.fill(0.0)
        add_dot_a(a_bar, z_bar, a, b)

    return put_in_two_steps


@overload(put_dot_b)
def _put_dot_b(b_bar, z_bar, a, b):  # type: ignore[no-untyped-def]
    if isinstance(z_bar, types.Array) and _are_alike(b_bar, z_bar, a) and a.ndim == b_bar.ndim == 2:

        def put_product(b_bar, z_bar, a, b):  # type: ignore[no-untyped-def]
            if b_bar.size > 0 and a.size > 0:
                _put_turned_times(conj_of(a), z_bar, b_bar)
            else:
                b_bar.fill(0.0)

        return put_product

    def put_in_two_steps(b_bar, z_bar, a, b):  # type: ignore[no-untyped-def]
        b_bar.fill(0.0)
        add_dot_b(b_bar, z_bar, a, b)

    return put_in_two_steps


def product(arena: Any, a: Any, b: Any) -> Any:
    """a @ b, of two matrices, in memory of the arena."""
    return a @ b


@overload(product)
def _product(arena, a, b):  # type: ignore[no-untyped-def]
    def product(arena, a, b):  # type: ignore[no-untyped-def]
        out = room(arena, (a.shape[0], b.shape[1]), a.dtype)
        if a.shape[1] == 0:
            out.fill(0.0)
        return np.dot(a, b, out)

    return product


def may_be_in_arena(a: Any, b: Any) -> bool:
    """Whether `product` is for operands of these types."""
    return all(
        isinstance(t, types.Array) and t.ndim == 2 and t.layout in "CF" and t.dtype == types.float64
        for t in (a, b)
    )


ADDING = {dot_bar_a: add_dot_a, dot_bar_b: add_dot_b}  # helper of a cotangent -> the one that adds it at once
