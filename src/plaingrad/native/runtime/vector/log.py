"""log and log1p of vectors, with the bits of glibc's.

log (since glibc 2.28): x = 2^k z, z near a c of 128 for which log(c) is close to a short number; log(x) = k log(2) +
log(c) + log(1 + r), r = z / c - 1, with a polynomial of sixth degree for the last; of twelfth degree and in two parts
near 1 (S. Nagy, ARM optimized routines). log1p: 1 + x = 2^k (1 + f) and a series in s = f / (2 + f) (Sun Microsystems,
fdlibm). Products are added in one rounding where glibc's code for processors with fused multiply-add does so.
"""

from __future__ import annotations

import functools
from decimal import Decimal, localcontext

import numpy as np

from plaingrad.native.runtime.vector.code import Doubles, Test, looked_up, polynomial

hexadecimal = float.fromhex

# log ------------------------------------------------------------------------------------------------------------------

PIECES = 128
FIRST = 0x3FE6000000000000  # the bits of the first z, 0.6875
LOG2_HIGH = hexadecimal("0x1.62e42fefa3800p-1")
LOG2_LOW = hexadecimal("0x1.ef35793c76730p-45")
NEAR, BEHIND = 1.0 - 2.0**-4, 1.0 + hexadecimal("0x1.09p-4")  # where the other polynomial is taken
A = tuple(
    map(
        hexadecimal,
        (
            "-0x1.0000000000001p-1",
            "0x1.555555551305bp-2",
            "-0x1.fffffffeb4590p-3",
            "0x1.999b324f10111p-3",
            "-0x1.55575e506c89fp-3",
        ),
    )
)
B = tuple(
    map(
        hexadecimal,
        (
            "-0x1.0000000000000p-1",
            "0x1.5555555555577p-2",
            "-0x1.ffffffffffdcbp-3",
            "0x1.999999995dd0cp-3",
            "-0x1.55555556745a7p-3",
            "0x1.24924a344de30p-3",
            "-0x1.fffffa4423d65p-4",
            "0x1.c7184282ad6cap-4",
            "-0x1.999eb43b068ffp-4",
            "0x1.78182f7afd085p-4",
            "-0x1.5521375d145cdp-4",
        ),
    )
)

# 1 / c: the leading 1 and the point left out, p0 for the first INVERSES_ABOVE_1, p-1 for the others.
INVERSES_ABOVE_1 = 80
INVERSES = """
734f0c3e0de9f 713786a2ce91f 6f26008fab5a0 6d1a61f138c7d 6b1490bc5b4d1 69147332f0cba 6719f18224223 6524f99a51ed9
63356aa8f24c4 614b36b9ddc14 5f66452c65c4c 5d867b5912c4f 5babccb5b90de 59d61f2d91a78 5805612465687 56397cee76bd3
54725e2a77f93 52aff42064583 50f22dbb2bddf 4f38f4734ded7 4d843cfde2840 4bd3ec078a3c8 4a27fc3e0258a 4880524d48434
46dce1b192d0b 453d9d3391854 43a2744b4845a 420b54115f8fb 40782da3ef4b1 3ee8f5d57fe8f 3d5d9a00b4ce9 3bd60c010c12b
3a5242b75dab8 38d22cd9fd002 3755bc5847a1c 35dce49ad36e2 34679984dd440 32f5cceffcb24 3187775a10d49 301c8373e3990
2eb4ebb95f841 2d50a0219a9d1 2bef9a8b7fd2a 2a91c7a0c1bab 293726014b530 27dfa5757a1f5 268b39b1d3bbf 2539d838ff5bd
23eb7aac9083b 22a012ba940b6 2157996cc4132 201201dd2fc9b 1ecf4494d480b 1d8f5528f6569 1c52311577e7c 1b17c74cb26e9
19e010c2c1ab6 18ab07bb670bd 1778a25efbcb6 1648d354c31da 151b990275fdd 13f0ea432d24c 12c8b7210f9da 11a3028ecb531
107fbda8434af 0f5ee0f4e6bb3 0e4065d2a9fce 0d244632ca521 0c0a77ce2981a 0af2f83c636d1 09ddb98a01339 08cabaf52e7df
07b9f2f4e28fb 06ab58c358f19 059eea5ecf92c 04949cdd12c90 038c6c6f0ada9 02865137932a9 0182427ea7348 008040614b195
fe01ff726fa1a fa11cc261ea74 f6310b081992e f25f63ceeadcd ee9c8039113e7 eae8078cbb1ab e741aa29d0c9b e3a91830a99b5
e01e009609a56 dca01e577bb98 d92f20b7c9103 d5cac66fb5cce d272caa5ede9d cf26e3e6b2ccd cbe6da2a77902 c8b266d37086d
c5894bd5d5804 c26b533bb9f8c bf583eeece73f bc4fd75db96c1 b951e0c864a28 b65e2c5ef3e2c b374867c9888b b094b211d304a
adbe885f2ef7e aaf1d31603da2 a82e63fd358a7 a5740ef09738b a2c2a90ab4b27 a01a01393f2d1 9d79f24db3c1b 9ae2505c7b190
9852ef297ce2f 95cbaeea44b75 934c69de74838 90d4f2f6752e6 8e6528effd79d 8bfce9fcc007c 899c0dabec30e 87427aa2317fb
84f00acb39a08 82a49e8653e55 8060195f40260 7e22563e0a329 7beb377dcb5ad 79baa679725c2 77907f2170657 756cadbd6130c
"""


@functools.cache
def _pieces() -> np.ndarray:
    """Rows (1 / c, log(c) to the 2^-43 to which it is close)."""
    table = np.empty((PIECES, 2))
    with localcontext() as context:
        context.prec = 40
        for k, digits in enumerate(INVERSES.split()):
            table[k, 0] = hexadecimal(f"0x1.{digits}p{0 if k < INVERSES_ABOVE_1 else -1}")
            table[k, 1] = float(round(-Decimal(table[k, 0]).ln() * 2**43)) / 2**43
    return table


def log(x: Doubles) -> Doubles:
    """The logarithm of x, positive, normal and finite."""
    bits = x.bits()
    offset = bits - FIRST
    k = (offset >> 52).float()
    z = (bits - (offset & -(1 << 52))).doubles()
    inverse, log_c = looked_up(_pieces(), "log", (offset >> 45) & (PIECES - 1))
    r = z.fma(inverse, -1.0)
    head = k.fma(LOG2_HIGH, log_c)
    high = r + head
    low = k.fma(LOG2_LOW, (head - high) + r)
    square = r * r
    low = square.fma(A[0], low)
    p = r.fma(A[4], A[3]).fma(square, r.fma(A[2], A[1]))
    away = (r * square).fma(p, low) + high
    return ((x >= NEAR) & (x < BEHIND)).choose(_log_near_1(x), away)


def _log_near_1(x: Doubles) -> Doubles:
    r = x - 1.0
    square = r * r
    cube = r * square
    p = square.fma(B[9], polynomial(r, B[7], B[8]))
    p = cube.fma(B[10], p)
    p = p.fma(cube, square.fma(B[6], polynomial(r, B[4], B[5])))
    p = p.fma(cube, square.fma(B[3], polynomial(r, B[1], B[2])))
    front = r.fma(-(2.0**27), r.fma(2.0**27, r))  # the first 26 bits of r
    back = r - front
    front_square = front * front
    high = front_square.fma(B[0], r)
    low = front_square.fma(B[0], r - high)
    low = (back * B[0]).fma(r + front, low)
    return p.fma(cube, low) + high


def log_is_done(x: Doubles) -> Test:
    """Where `log` is right."""
    return (x >= 2.0**-1022) & (x < float("inf"))


# log1p ----------------------------------------------------------------------------------------------------------------

LN2_HIGH = hexadecimal("0x1.62e42fee00000p-1")
LN2_LOW = hexadecimal("0x1.a39ef35793c76p-33")
ABOVE = hexadecimal("0x1.a827ap-2")  # sqrt(2) - 1: from here on, and
BELOW = hexadecimal("-0x1.2bec4p-2")  # 1 / sqrt(2) - 1: up to here, 1 + x is taken apart
TINY = 2.0**-29
ONE = 1023 << 52
ROOT = 0x6A09E  # the first 20 bits behind the point of sqrt(2)
L = tuple(
    map(
        hexadecimal,
        (
            "0x1.5555555555593p-1",
            "0x1.999999997fa04p-2",
            "0x1.2492494229359p-2",
            "0x1.c71c51d8e78afp-3",
            "0x1.7466496cb03dep-3",
            "0x1.39a09d078c69fp-3",
            "0x1.2f112df3e5244p-3",
        ),
    )
)


def log1p(x: Doubles) -> Doubles:
    """log(1 + x), -1 < x < 2^53."""
    direct = (x < ABOVE) & (x > BELOW)
    u = x + 1.0
    bits = u.bits()
    exponent = (bits >> 52) - 1023
    digits = (bits >> 32) & 0xFFFFF
    larger = ~(digits < ROOT)
    lost = (exponent > 0).choose(1.0 - (u - x), x - (u - 1.0)) / u  # of 1 + x in u
    mantissa = (bits & ((1 << 52) - 1)) | ONE
    halved = larger.choose(mantissa - (1 << 52), mantissa)
    f = direct.choose(x, halved.doubles() - 1.0)
    k = direct.choose(0, larger.choose(exponent + 1, exponent))
    digits = larger.choose((0x100000 - digits) >> 2, digits)
    no_digits = ~direct & digits.equals(0)  # |f| < 2^-20

    half_square = (f * 0.5) * f
    s = f / (f + 2.0)
    z = s * s
    z2 = z * z
    z4 = z2 * z2
    z6 = z2 * z4
    series = z.fma(L[0], z2 * z.fma(L[2], L[1]))
    series = z4.fma(z.fma(L[4], L[3]), series)
    series = z6.fma(z.fma(L[6], L[5]), series)
    term = s * (series + half_square)
    short = half_square * f.fma(-L_SHORT, 1.0)

    times = k.float()
    low = times.fma(LN2_LOW, lost)
    inner = no_digits.choose(short - low, half_square - (low + term)) - f
    with_k = times.fma(LN2_HIGH, -inner)
    with_k = (no_digits & f.equals(0.0)).choose(times.fma(LN2_HIGH, low), with_k)
    without = f - no_digits.choose(short, half_square - term)
    found = k.equals(0).choose(without, with_k)
    return (abs(x) < TINY).choose((x * x).fma(-0.5, x), found)


L_SHORT = hexadecimal("0x1.5555555555555p-1")


def log1p_is_done(x: Doubles) -> Test:
    """Where `log1p` is right."""
    return (x > -1.0) & (x < 2.0**53)
