"""exp of many numbers at once, equal to the C library's to the last bit, in a form that LLVM vectorises.

Numba calls the C library for every single exp, which keeps a loop from being vectorised. glibc (since 2.28) computes it
as 2^(k/128) (1 + p(r)), x = k log(2)/128 + r, with a table of 128 powers of two and a polynomial of fifth degree, in
fused multiply-adds where the processor has them (S. Nagy, ARM optimized routines). The same steps without branches give
the same bits, four times as fast. `exp_is_exact` compares them with the C library of the machine before they are used:
a value stays what the user's own compiled function gives.
"""

from __future__ import annotations

import functools
import math
import struct
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.codegen import get_host_cpu_features
from numba.extending import intrinsic

from plaingrad.native.declare import njit, overload, register_jitable

LIMIT = 511.0  # from 512 on the C library rounds in other places
PIECES = 128
PER_LOG2 = float.fromhex("0x1.71547652b82fep0") * PIECES  # 128 / log(2)
LOG2_HIGH = float.fromhex("0x1.62e42fefa0000p-8")  # log(2)/128, short enough for exact products
LOG2_LOW = float.fromhex("0x1.cf79abc9e3b39p-47")
SHIFT = float.fromhex("0x1.8p52")  # x + SHIFT has the nearest integer to x in its last bits
C2 = float.fromhex("0x1.ffffffffffdbdp-2")
C3 = float.fromhex("0x1.555555555543cp-3")
C4 = float.fromhex("0x1.55555cf172b91p-5")
C5 = float.fromhex("0x1.1111167a4d017p-7")


def _bits_of(x: float) -> int:
    return struct.unpack("<q", struct.pack("<d", x))[0]


def _powers() -> tuple[np.ndarray, np.ndarray]:
    """2^(j/128), j = 0..127: (bits of the nearest float less j in the place of k, what it lacks relative to itself)."""
    heads, tails = np.empty(PIECES, np.int64), np.empty(PIECES)
    with localcontext() as context:
        context.prec = 60
        root = Decimal(2) ** (Decimal(1) / PIECES)
        for j in range(PIECES):
            power = root**j
            head = float(power)
            heads[j] = _bits_of(head) - (j << 45)  # k has its last 7 bits there, too
            tails[j] = float((power - Decimal(head)) / Decimal(head))
    return heads, tails


HEADS, TAILS = _powers()


@intrinsic
def _fma(typing: Any, x: Any, y: Any, z: Any) -> Any:
    """x * y + z, rounded once."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fma(*args)

    return types.float64(types.float64, types.float64, types.float64), codegen


@intrinsic
def _bits(typing: Any, x: Any) -> Any:
    """The bits of a float as an integer."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), codegen


@intrinsic
def _float(typing: Any, k: Any) -> Any:
    """The float of these bits."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), codegen


@register_jitable(inline="always")
def _exp(x):  # type: ignore[no-untyped-def]
    """exp(x) for |x| <= LIMIT."""
    shifted = _fma(x, PER_LOG2, SHIFT)
    k = _bits(shifted)
    whole = shifted - SHIFT
    r = _fma(whole, -LOG2_LOW, _fma(whole, -LOG2_HIGH, x))
    j = np.uint64(k & (PIECES - 1))
    head = _float(HEADS[j] + (k << 45))
    square = r * r
    p = _fma(square, _fma(r, C3, C2), TAILS[j] + r)
    p = _fma(square * square, _fma(r, C5, C4), p)
    return _fma(head, p, head)


def exp_each(x, n):  # type: ignore[no-untyped-def]
    """x[k] = exp(x[k]) for k < n, x a vector; inf where it is too large, as compiled."""
    for k in range(n):
        x[k] = math.exp(x[k]) if not x[k] > 709.0 else np.exp(x[k])


@overload(exp_each)
def _exp_each(x, n):  # type: ignore[no-untyped-def]
    def each(x, n):  # type: ignore[no-untyped-def]
        odd = 0
        for k in range(n):
            odd |= not abs(x[k]) <= LIMIT
        if odd:
            for k in range(n):
                x[k] = math.exp(x[k])
        else:
            for k in range(n):
                x[k] = _exp(x[k])

    return each


@njit
def _differences(x):  # type: ignore[no-untyped-def]
    """How many exp(x[k]) differ from the C library's."""
    found = 0
    for k in range(x.size):
        if _exp(x[k]) != math.exp(x[k]):
            found += 1
    return found


@functools.cache
def exp_is_exact() -> bool:
    """Whether `exp_each` gives what the C library gives, by 20,000 points of all magnitudes.

    False on processors without fused multiply-add, and with other C libraries than glibc since 2.28.
    """
    if "+fma" not in get_host_cpu_features().split(","):
        return False
    random = np.random.default_rng(0)
    small = random.choice([-1.0, 1.0], 10_000) * 2.0 ** random.uniform(-60.0, 8.9, 10_000)
    x = np.concatenate([random.uniform(-LIMIT, LIMIT, 5_000), random.normal(size=5_000), small])
    return _differences(x) == 0
