"""exp, expm1 and tanh of vectors, with the bits of glibc's.

exp (since glibc 2.28): 2^(k/128) (1 + p(r)), x = k log(2)/128 + r, with a table of 128 powers of two and a polynomial
of fifth degree (S. Nagy, ARM optimized routines). expm1: x = k log(2) + r and a rational function of r (Sun
Microsystems, fdlibm); tanh(x) = 1 - 2 / (expm1(2 |x|) + 2) with the sign of x. Products are added in one rounding where
glibc's code for processors with fused multiply-add does so.
"""

from __future__ import annotations

import functools
import struct
from decimal import Decimal, localcontext

import numpy as np

from plaingrad.native.runtime.vector.code import Doubles, Test, Whole, looked_up, polynomial

hexadecimal = float.fromhex

# exp ------------------------------------------------------------------------------------------------------------------

LIMIT = 511.0  # from 512 on glibc rounds in other places
PIECES = 128
PER_PIECE = hexadecimal("0x1.71547652b82fep0") * PIECES  # 128 / log(2)
PIECE_HIGH = hexadecimal("0x1.62e42fefa0000p-8")  # log(2) / 128, short enough for exact products
PIECE_LOW = hexadecimal("0x1.cf79abc9e3b39p-47")
SHIFT = hexadecimal("0x1.8p52")  # x + SHIFT has the nearest integer to x in its last bits
C2 = hexadecimal("0x1.ffffffffffdbdp-2")
C3 = hexadecimal("0x1.555555555543cp-3")
C4 = hexadecimal("0x1.55555cf172b91p-5")
C5 = hexadecimal("0x1.1111167a4d017p-7")


@functools.cache
def _powers() -> np.ndarray:
    """Rows for j = 0..127: what the nearest float to 2^(j/128) lacks relative to itself, and that float.

    Of the bits of the float, j has been subtracted where k will be added: k has j for its last 7 bits.
    """
    table = np.empty((PIECES, 2))
    with localcontext() as context:
        context.prec = 60
        root = Decimal(2) ** (Decimal(1) / PIECES)
        for j in range(PIECES):
            power = root**j
            head = float(power)
            table[j, 0] = float((power - Decimal(head)) / Decimal(head))
            [bits] = struct.unpack("<q", struct.pack("<d", head))
            [table[j, 1]] = struct.unpack("<d", struct.pack("<q", bits - (j << 45)))
    return table


def exp(x: Doubles) -> Doubles:
    """e to the power x, |x| <= LIMIT."""
    shifted = x.fma(PER_PIECE, SHIFT)
    k = shifted.bits()
    whole = shifted - SHIFT
    r = whole.fma(-PIECE_LOW, whole.fma(-PIECE_HIGH, x))
    tail, head = looked_up(_powers(), "exp", k & (PIECES - 1))
    power = (head.bits() + (k << 45)).doubles()
    square = r * r
    p = square.fma(r.fma(C3, C2), tail + r)
    p = (square * square).fma(r.fma(C5, C4), p)
    return power.fma(p, power)


def exp_is_done(x: Doubles) -> Test:
    """Where `exp` is right."""
    return abs(x) <= LIMIT


# expm1 ----------------------------------------------------------------------------------------------------------------

LOG2_HIGH = hexadecimal("0x1.62e42fee00000p-1")  # log(2), short enough for exact products with small integers
LOG2_LOW = hexadecimal("0x1.a39ef35793c76p-33")
PER_LOG2 = hexadecimal("0x1.71547652b82fep0")
SMALL = hexadecimal("0x1.62e43p-2")  # about log(2) / 2: from here on k is not 0
MIDDLE = hexadecimal("0x1.0a2b2p0")  # about 3 log(2) / 2: from here on k is rounded
SATURATED = hexadecimal("0x1.3687ap5")  # 56 log(2): expm1(-x) is -1
LARGEST = 700.0
Q = (
    1.0,
    hexadecimal("-0x1.11111111110f4p-5"),
    hexadecimal("0x1.a01a019fe5585p-10"),
    hexadecimal("-0x1.4ce199eaadbb7p-14"),
    hexadecimal("0x1.0cfca86e65239p-18"),
    hexadecimal("-0x1.afdb76e09c32dp-23"),
)


def _power(k: Whole) -> Doubles:
    """2^k."""
    return ((k + 1023) << 52).doubles()


def expm1(x: Doubles) -> Doubles:
    """exp(x) - 1, x <= LARGEST."""
    size = abs(x)
    away = Doubles.of(x.builder, 0.5).copysign(x)
    unit = Doubles.of(x.builder, 1.0).copysign(x)
    rounded = (x * PER_LOG2 + away).truncated().float()
    whole = (size < SMALL).choose(0.0, (size < MIDDLE).choose(unit, rounded))
    whole = (x <= -SATURATED).choose(0.0, whole)
    k = whole.truncated()
    high, low = whole.fma(-LOG2_HIGH, x), whole * LOG2_LOW
    r = high - low
    lost = (high - r) - low  # r + lost is x - k log(2)

    half = r * 0.5
    square = r * half
    fourth = square * square
    r1 = fourth.fma(polynomial(square, Q[2], Q[3]), square.fma(Q[1], Q[0]))
    r1 = (fourth * fourth).fma(polynomial(square, Q[4], Q[5]), r1)
    t = (-r1).fma(half, 3.0)
    e = square * ((r1 - t) / (-r).fma(t, 6.0))

    alone = r - e.fma(r, -square)  # k = 0
    e = (e - lost).fma(r, -lost) - square
    rest = e - r
    twice = (r < -0.25).choose((e - (r + 0.5)) * -2.0, (-rest).fma(2.0, 1.0))  # k = 1
    once = (-rest).fma(0.5, -0.5)  # k = -1
    inverse = _power(Whole.of(x.builder, 0) - k)
    below = (1.0 - inverse) - rest  # 1 < k < 20
    above = (r - (e + inverse)) + 1.0  # 19 < k < 57
    scaled = (k < 20).choose(below, above)
    scaled = (scaled.bits() + (k << 52)).doubles()
    far = (((1.0 - rest).bits() + (k << 52)).doubles()) - 1.0  # all others

    found = ((k > 1) & (k < 57)).choose(scaled, far)
    found = k.equals(1).choose(twice, found)
    found = k.equals(-1).choose(once, found)
    found = k.equals(0).choose(alone, found)
    return (x <= -SATURATED).choose(-1.0, found)


def expm1_is_done(x: Doubles) -> Test:
    """Where `expm1` is right."""
    return x <= LARGEST


# tanh -----------------------------------------------------------------------------------------------------------------


def tanh(x: Doubles) -> Doubles:
    """The hyperbolic tangent of any number but nan."""
    size = abs(x)
    small = size < 1.0
    size = (size < 22.0).choose(size, 22.0)
    twice = size + size
    e = expm1(small.choose(-twice, twice))
    share = small.choose(-e, 2.0) / (e + 2.0)
    found = small.choose(share, 1.0 - share)
    return (abs(x) >= 22.0).choose(1.0, found).copysign(x)


def tanh_is_done(x: Doubles) -> Test:
    """Where `tanh` is right."""
    return x.equals(x)
