"""sin and cos of vectors, with the bits of glibc's.

x = n pi/2 + a + da, pi/2 in four parts; sin and cos of a + da from those of the nearest k/128, of which a table has
heads and tails, and short polynomials (IBM accurate mathematical library, as shortened for glibc 2.28). Products are
added in one rounding where glibc's code for processors with fused multiply-add does so.
"""

from __future__ import annotations

import functools
from decimal import Decimal, localcontext

import numpy as np

from plaingrad.native.runtime.vector.code import Doubles, Test, Whole, looked_up, polynomial

hexadecimal = float.fromhex

PIECES = 110
BIG = 1.5 * 2.0**45  # |x| + BIG has the nearest multiple of 1/128
SHIFT = 1.5 * 2.0**52  # x + SHIFT has the nearest integer in its last bits
PER_QUARTER = hexadecimal("0x1.45f306dc9c883p-1")  # 2 / pi
QUARTER = tuple(  # pi / 2; products of the first three with small integers are exact
    map(
        hexadecimal,
        (
            "0x1.921fb58000000p+0",
            "-0x1.dde973c000000p-27",
            "-0x1.cb3b398000000p-55",
            "-0x1.d747f23e32ed7p-83",
        ),
    )
)
QUARTER_HIGH, QUARTER_LOW = hexadecimal("0x1.921fb54442d18p0"), hexadecimal("0x1.1a62633145c07p-54")
DIRECT = hexadecimal("0x1.b6p-1")  # from here on x is taken from pi / 2
REDUCED = hexadecimal("0x1.368fdp1")  # from here on n is computed
LARGEST = hexadecimal("0x1.921fbp26")
TINY = 2.0**-26  # sin(x) is x
SERIES_TO = 0.126
SERIES = tuple(
    map(
        hexadecimal,
        (
            "-0x1.5555555555555p-3",
            "0x1.1111111110ecep-7",
            "-0x1.a01a019db08b8p-13",
            "0x1.71de27b9a7ed9p-19",
            "-0x1.addffc2fcdf59p-26",
        ),
    )
)
SINE = (hexadecimal("-0x1.5555555555515p-3"), hexadecimal("0x1.11110e829872fp-7"))
COSINE = (0.5, hexadecimal("-0x1.5555555555535p-5"), hexadecimal("0x1.6c16bedd9e239p-10"))


@functools.cache
def _table() -> np.ndarray:
    """Rows for k = 0..109: sin(k/128), what it lacks, cos(k/128), what it lacks."""
    table = np.empty((PIECES, 4))
    with localcontext() as context:
        context.prec = 60
        for k in range(PIECES):
            x, term, sums = Decimal(k) / 128, Decimal(1), [Decimal(0), Decimal(0)]
            for power in range(36):
                sums[power % 2] += term if power % 4 < 2 else -term
                term *= x / (power + 1)
            for column, value in ((0, sums[1]), (2, sums[0])):
                table[k, column] = float(value)
                table[k, column + 1] = float(value - Decimal(float(value)))
    return table


def _both(a: Doubles, da: Doubles) -> tuple[Doubles, Doubles]:
    """(sin, cos) of a + da, |a| < DIRECT."""
    size = abs(a)
    da_of_size = (a < 0.0).choose(-da, da)
    shifted = size + BIG
    sine, sine_tail, cosine, cosine_tail = looked_up(_table(), "sin", shifted.bits() & 127)
    rest = size - (shifted - BIG)

    square = rest * rest
    s = rest + (rest * square).fma(polynomial(square, *SINE), da_of_size)
    c = rest.fma(da_of_size, square * polynomial(square, *COSINE))
    lacking = s.fma(cosine, (-c).fma(sine, s.fma(cosine_tail, sine_tail)))
    of_sine = (sine + lacking).copysign(a)
    square = a * a
    p = polynomial(square, *SERIES).fma(a, da * -0.5)
    of_sine = (size < SERIES_TO).choose(a + square.fma(p, da), of_sine)

    rest = rest + da_of_size
    square = rest * rest
    s = (rest * square).fma(polynomial(square, *SINE), rest)
    c = square * polynomial(square, *COSINE)
    lacking = (-s).fma(sine, (-c).fma(cosine, (-s).fma(sine_tail, cosine_tail)))
    return of_sine, cosine + lacking


def _reduced(x: Doubles) -> tuple[Doubles, Doubles, Whole]:
    """(a, da, n) of x = n pi/2 + a + da."""
    shifted = x.fma(PER_QUARTER, SHIFT)
    n = shifted - SHIFT
    y = n.fma(-QUARTER[1], n.fma(-QUARTER[0], x))
    third = n.fma(-QUARTER[2], y)
    da = n.fma(-QUARTER[2], y - third)
    a = n.fma(-QUARTER[3], third)
    return a, da + n.fma(-QUARTER[3], third - a), shifted.bits()


def sin(x: Doubles) -> Doubles:
    """The sine of x, |x| < LARGEST."""
    size = abs(x)
    direct, reduced = size < DIRECT, size >= REDUCED
    a, da, n = _reduced(x)
    a = direct.choose(x, reduced.choose(a, QUARTER_HIGH - size))
    da = direct.choose(0.0, reduced.choose(da, QUARTER_LOW))
    of_sine, of_cosine = _both(a, da)
    odd = (n & 1).equals(1)
    found = direct.choose(of_sine, reduced.choose(odd.choose(of_cosine, of_sine), of_cosine.copysign(x)))
    found = (reduced & (n & 2).equals(2)).choose(-found, found)
    return (size < TINY).choose(x, found)


def cos(x: Doubles) -> Doubles:
    """The cosine of x, |x| < LARGEST."""
    size = abs(x)
    direct, reduced = size < DIRECT, size >= REDUCED
    a, da, n = _reduced(x)
    n = n + 1
    rest = QUARTER_HIGH - size
    middle = rest + QUARTER_LOW
    lost = (rest - middle) + QUARTER_LOW
    a = direct.choose(x, reduced.choose(a, middle))
    da = direct.choose(0.0, reduced.choose(da, lost))
    of_sine, of_cosine = _both(a, da)
    odd = (n & 1).equals(1)
    found = direct.choose(of_cosine, reduced.choose(odd.choose(of_cosine, of_sine), of_sine))
    return (reduced & (n & 2).equals(2)).choose(-found, found)


def is_done(x: Doubles) -> Test:
    """Where `sin` and `cos` are right."""
    return abs(x) < LARGEST
