"""Truncated power series: what arithmetic and the elementary functions do to Taylor coefficients.

A series is an array with a leading axis of n coefficients, normalised (c_k = f^(k)(0) / k!, so nothing grows like k!);
element 0 is the value. What follows the leading axis may have any shape, the same for all operands, or none for one
number. `exp(x, z)` and its like take the series `x` and the value `z` of the function at x[0], and cost O(n**2).

The recurrences are those of Griewank and Walther, Evaluating Derivatives (2nd edition, 2008), chapter 13, and Knuth,
The Art of Computer Programming 2, section 4.7: multiply the differential equation that the function satisfies by its
denominator, and compare coefficients. Where it reads z' = p x' with a series p that is known, z is an integral.

This module is ordinary Python: under an outer derivative it runs rewritten, one level out. For one number the
coefficients are worked on as a list of Python numbers, which is faster than small arrays; a pole needs IEEE arithmetic
and therefore arrays. Callers ignore floating-point warnings: the primal has warned already.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from plaingrad.engine.taylor.series_pieces import (
    begun,
    closed,
    dot_product,
    exponents,
    opened,
    plain_number,
    plus,
    scaled,
    with_value,
)
from plaingrad.rules.special import BERNOULLI, digamma

LN2, LN10, TWO_OVER_ROOT_PI = math.log(2), math.log(10), 2 / math.sqrt(math.pi)


# Pieces ------------------------------------------------------------------------------------------------------


def constant(x: Any, n: int, shape: tuple[int, ...] = ()) -> np.ndarray:
    """The series of the constant `x`, with n coefficients of the given shape."""
    first = np.asarray(x)
    s = np.zeros((n, *shape), first.dtype if first.dtype.kind in "fcO" else float)
    s[0] = x
    return s


def aligned(x: np.ndarray, ndim: int) -> np.ndarray:
    """`x` with room after its leading axis, so that what follows broadcasts against an array of `ndim` axes."""
    missing = ndim + 1 - x.ndim
    return x if missing <= 0 else np.reshape(x, (x.shape[0], *(1,) * missing, *x.shape[1:]))


def derivative(x: np.ndarray) -> np.ndarray:
    """x', with one coefficient less."""
    return x[1:] * exponents(x)[1:]


def integral(z: Any, y: np.ndarray) -> np.ndarray:
    """The series that begins with `z` and has the derivative `y`."""
    first = np.broadcast_to(np.asarray(z, y.dtype), (1, *y.shape[1:]))
    return np.concatenate((first, y / (exponents(y) + 1)))


def as_complex(x: np.ndarray) -> np.ndarray:
    """`x` with complex coefficients."""
    return x if x.dtype.kind == "c" else x.astype(np.result_type(x.dtype, np.complex64))


# Arithmetic --------------------------------------------------------------------------------------------------


def multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a b: c_k = sum of a_i b_(k-i)."""
    n = a.shape[0]
    if n == 0:
        return a * b
    if a.ndim == 1 and b.ndim == 1:
        return np.convolve(a, b)[:n]
    c = a[0] * b
    for i in range(1, n):
        c[i:] += a[i] * b[: n - i]
    return c


def divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a / b, from b c = a."""
    n = a.shape[0]
    if n == 0:
        return a * b
    if a.ndim == 1 and b[0] != 0:
        x, y = opened(a), opened(b)
        c = [x[0] / y[0]]
        for k in range(1, n):
            c.append((x[k] - dot_product(y[1 : k + 1], c[::-1])) / y[0])
        return np.array(c, np.result_type(a, b))
    c = np.zeros(np.broadcast_shapes(a.shape, b.shape), np.result_type(a, b))
    c[0] = a[0] / b[0]
    for k in range(1, n):
        c[k] = (a[k] - dot_product(b[1 : k + 1], c[k - 1 :: -1])) / b[0]
    return c


def reciprocal(x: np.ndarray) -> np.ndarray:
    """1 / x."""
    return divide(constant(np.ones_like(x[0]), x.shape[0], x.shape[1:]), x)


def square(x: np.ndarray) -> np.ndarray:
    """x x."""
    return multiply(x, x)


def absolute(x: np.ndarray, z: Any) -> np.ndarray:
    """|x|: on the branch that the value is on, 0 at the kink; of complex x a real series."""
    if x.dtype.kind == "c":
        return hypot(x.real, x.imag, z)
    return np.sign(x[0]) * x


# Powers ------------------------------------------------------------------------------------------------------


def sqrt(x: np.ndarray, z: Any) -> np.ndarray:
    """The root of x, from z z = x; its sign is that of the value `z`."""
    u = x if x.ndim > 1 or z == 0 else opened(x)
    s = begun(z, u)
    first = s[0]
    for k in range(1, len(x)):
        s[k] = (u[k] - dot_product(s[1:k], s[k - 1 : 0 : -1])) / (2 * first)
    return closed(s, x)


def cbrt(x: np.ndarray, z: Any) -> np.ndarray:
    """The cube root of x."""
    return power(x, 1 / 3, z)


def power(x: np.ndarray, r: Any, z: Any) -> np.ndarray:
    """x ** r for a constant r (a number, or one for every element), from x z' = r x' z.

    Whole powers from 0 on are polynomials, so they are right at 0 too. There, for other r, the coefficient k is the
    limit binom(r, k) x_1**k 0**(r - k): 0 below r, infinite beyond.
    """
    n = x.shape[0]
    if np.ndim(r) == 0:
        if r == 0:
            return constant(np.ones_like(x[0]), n, x.shape[1:])
        whole = not isinstance(r, (complex, np.complexfloating)) and r % 1 == 0
        if whole and 0 < r < max(n, 4):
            return whole_power(x, int(r))
    if np.iscomplexobj(r) or np.iscomplexobj(z):
        x = as_complex(x)
    s = _power_through_zero(x, r, z) if np.any(x[0] == 0) else _power_away_from_zero(x, r, z)
    if np.ndim(r) and np.any(np.equal(r, 0)):  # of nan and infinities, too
        s = np.concatenate((s[:1], np.where(np.equal(r, 0), 0, s[1:])))
    return s


def whole_power(x: np.ndarray, r: int) -> np.ndarray:
    """x ** r for r >= 1 by repeated squaring (Knuth, section 4.6.3)."""
    while r % 2 == 0:
        x = multiply(x, x)
        r //= 2
    z = x
    while r > 1:
        x = multiply(x, x)
        r //= 2
        if r % 2:
            z = multiply(z, x)
    return z


def _power_away_from_zero(x: np.ndarray, r: Any, z: Any) -> np.ndarray:
    u = opened(x) if np.ndim(r) == 0 else x
    s = begun(z, u)
    if type(u) is list:
        r = plain_number(r)
        for k in range(1, len(u)):
            w = [((r + 1) * j - k) * u[j] for j in range(1, k + 1)]
            s[k] = dot_product(w, s[k - 1 :: -1]) / (k * u[0])
        return closed(s, x)
    orders = exponents(x)
    for k in range(1, len(x)):
        w = (orders[1 : k + 1] * (r + 1) - k) * x[1 : k + 1]
        s[k] = dot_product(w, s[k - 1 :: -1]) / (k * x[0])
    return s.astype(x.dtype, copy=False)


def _power_through_zero(x: Any, r: Any, z: Any) -> np.ndarray:
    """x ** r where some of the values are 0; there c_k = sum of binom(r, j) x_0**(r - j) [(x - x_0)**j]_k over j <= k.

    These are formulas in x_0, so an outer derivative finds how they move with it. Beyond a power that is not whole,
    coefficients are infinite.
    """
    n = x.shape[0]
    zero = x[0] == 0
    power = np.real(r)
    whole = np.logical_not(np.iscomplex(r)) & (power >= 0) & (power % 1 == 0)
    base = np.where(zero, x[0], np.zeros_like(x[0]))
    step = np.concatenate((np.zeros_like(x[:1]), x[1:]))
    steps = step
    s = constant(z, n, x.shape[1:]).astype(x.dtype, copy=False)
    binomial: Any = 1.0
    for k in range(1, n):
        binomial = binomial * ((r - (k - 1)) / k)
        inside = power >= k
        slope = np.where(inside, binomial, 0) * base ** np.where(inside, r - k, 0)
        s = np.concatenate((s[:k], s[k:] + slope * steps[k:]))
        infinite = np.where(whole | inside, 0.0, np.inf) * (binomial * x[1] ** k)
        s = np.concatenate((s[:k], np.where(whole | inside, s[k : k + 1], infinite), s[k + 1 :]))
        steps = multiply(steps, step)
    shifted = np.concatenate((np.where(zero, np.ones_like(x[:1]), x[:1]), x[1:]))
    away = _power_away_from_zero(shifted, r, np.where(zero, np.ones_like(x[0]), z))
    return np.where(zero, s, away).astype(x.dtype, copy=False)


def power_of_constant(b: Any, y: np.ndarray, z: Any) -> np.ndarray:
    """b ** y for a constant base, from z' = log(b) y' z: Re(log b) for a real base, and constant for base 0."""
    return exp(y * _log_of_size(b), z)


def power_of_series(x: np.ndarray, y: np.ndarray, z: Any) -> np.ndarray:
    """x ** y, from z' = (y log x)' z; where x is 0 the exponent counts as constant."""
    zero = x[0] == 0
    if np.iscomplexobj(z) or np.iscomplexobj(y):
        x, y = as_complex(x), as_complex(y)
    base = np.concatenate((np.where(zero, np.ones_like(x[:1]), x[:1]), x[1:]))
    s = exp(multiply(y, log(base, _log_of_size(x[0]))), z)
    return np.where(zero, power(x, y[0], z), s) if np.any(zero) else s


def _log_of_size(b: Any) -> Any:
    """log b, of a negative number log |b|, and 0 where b is 0."""
    if not np.iscomplexobj(b):
        b = np.absolute(b)
    return np.log(np.where(np.equal(b, 0), np.ones_like(b), b))


# Exponentials and logarithms -------------------------------------------------------------------------------------


def exp(x: np.ndarray, z: Any) -> np.ndarray:
    """z e^(x - x_0), from z' = x' z: with z = e^(x_0) the exponential of x."""
    if np.iscomplexobj(z):
        x = as_complex(x)
    u = opened(x)
    w, s = scaled(u), begun(z, u)
    for k in range(1, len(x)):
        s[k] = dot_product(w[1 : k + 1], s[k - 1 :: -1]) / k
    return closed(s, x)


def exp2(x: np.ndarray, z: Any) -> np.ndarray:
    """2 ** x."""
    return exp(x * LN2, z)


def expm1(x: np.ndarray, z: Any) -> np.ndarray:
    """e^x - 1."""
    return with_value(z, exp(x, np.exp(x[0])))


def log(x: np.ndarray, z: Any) -> np.ndarray:
    """log x, from x z' = x'."""
    return integral(z, divide(derivative(x), x[:-1]))


def log2(x: np.ndarray, z: Any) -> np.ndarray:
    """The logarithm to base 2."""
    return with_value(z, log(x, z) / LN2)


def log10(x: np.ndarray, z: Any) -> np.ndarray:
    """The logarithm to base 10."""
    return with_value(z, log(x, z) / LN10)


def log1p(x: np.ndarray, z: Any) -> np.ndarray:
    """log(1 + x)."""
    return integral(z, divide(derivative(x), plus(1, x[:-1])))


def logaddexp(x: np.ndarray, y: np.ndarray, z: Any) -> np.ndarray:
    """log(e^x + e^y), whose derivative shares x' and y' in the ratio of e^x and e^y."""
    return _softer_maximum(x, y, z, 1.0)


def logaddexp2(x: np.ndarray, y: np.ndarray, z: Any) -> np.ndarray:
    """log2(2^x + 2^y)."""
    return _softer_maximum(x, y, z, LN2)


def _softer_maximum(x: np.ndarray, y: np.ndarray, z: Any, scale: float) -> np.ndarray:
    # e^x / (e^x + e^y) = (1 + tanh((x - y) / 2)) / 2. Equal infinities share equally; the difference of equal numbers
    # still moves with them.
    same = np.equal(x[:1], y[:1]) & np.isinf(x[:1])
    difference = np.concatenate((np.where(same, np.zeros_like(x[:1]), x[:1] - y[:1]), x[1:] - y[1:]))
    half = difference[:-1] * (scale / 2)
    share = plus(1, tanh(half, np.tanh(half[0]))) / 2 if len(half) else half
    return integral(z, multiply(share, derivative(difference)) + derivative(y))


# Trigonometry ----------------------------------------------------------------------------------------------------


def sin_cos(x: np.ndarray, s: Any, c: Any) -> tuple[np.ndarray, np.ndarray]:
    """sin x and cos x, from s' = c x' and c' = -s x'."""
    return _two_of_a_kind(x, s, c, -1)


def sinh_cosh(x: np.ndarray, s: Any, c: Any) -> tuple[np.ndarray, np.ndarray]:
    """sinh x and cosh x, from s' = c x' and c' = s x'."""
    return _two_of_a_kind(x, s, c, 1)


def _two_of_a_kind(x: np.ndarray, s: Any, c: Any, sign: int) -> tuple[np.ndarray, np.ndarray]:
    u = opened(x)
    w, s, c = scaled(u), begun(s, u), begun(c, u)
    for k in range(1, len(x)):
        moved = w[1 : k + 1]
        s[k] = dot_product(moved, c[k - 1 :: -1]) / k
        c[k] = sign * dot_product(moved, s[k - 1 :: -1]) / k
    return closed(s, x), closed(c, x)


def sin(x: np.ndarray, z: Any) -> np.ndarray:
    """sin x."""
    return sin_cos(x, z, np.cos(x[0]))[0]


def cos(x: np.ndarray, z: Any) -> np.ndarray:
    """cos x."""
    return sin_cos(x, np.sin(x[0]), z)[1]


def sinh(x: np.ndarray, z: Any) -> np.ndarray:
    """sinh x."""
    return sinh_cosh(x, z, np.cosh(x[0]))[0]


def cosh(x: np.ndarray, z: Any) -> np.ndarray:
    """cosh x."""
    return sinh_cosh(x, np.sinh(x[0]), z)[1]


def tan(x: np.ndarray, z: Any) -> np.ndarray:
    """tan x, from z' = (1 + z z) x'."""
    return _tangent(x, z, 1 + z * z, 1)


def tanh(x: np.ndarray, z: Any) -> np.ndarray:
    """tanh x, from z' = (1 - z z) x'; the slope's value as 1 / cosh**2, which does not cancel."""
    return _tangent(x, z, np.cosh(x[0]) ** -2.0, -1)


def _tangent(x: np.ndarray, z: Any, slope: Any, sign: int) -> np.ndarray:
    u = opened(x)
    w, s, p = scaled(u), begun(z, u), begun(slope, u)
    for k in range(1, len(x)):
        s[k] = dot_product(w[1 : k + 1], p[k - 1 :: -1]) / k
        p[k] = sign * dot_product(s[: k + 1], s[k::-1])
    return closed(s, x)


def asin(x: np.ndarray, z: Any) -> np.ndarray:
    """The inverse sine, on the branch of `z`."""
    return _inverse(x, z, plus(1, -x), plus(1, x), np.cos, 1)


def acos(x: np.ndarray, z: Any) -> np.ndarray:
    """The inverse cosine, on the branch of `z`."""
    return _inverse(x, z, plus(1, -x), plus(1, x), np.sin, -1)


def asinh(x: np.ndarray, z: Any) -> np.ndarray:
    """The inverse hyperbolic sine, on the branch of `z`."""
    return _inverse(x, z, plus(1, multiply(x, x)), None, np.cosh, 1)


def acosh(x: np.ndarray, z: Any) -> np.ndarray:
    """The inverse hyperbolic cosine, on the branch of `z`."""
    return _inverse(x, z, plus(-1, x), plus(1, x), np.sinh, 1)


def _inverse(x: np.ndarray, z: Any, a: np.ndarray, b: Any, root: Any, sign: int) -> np.ndarray:
    """The function with z' = sign x' / sqrt(a b), where the root has the value root(z) for complex x."""
    if x.dtype.kind == "c":
        r = root(z)
    else:
        r = np.sqrt(a[0]) if b is None else np.sqrt(a[0]) * np.sqrt(b[0])
    s = sqrt((a if b is None else multiply(a, b))[:-1], r) if len(x) > 1 else x[:-1]
    return integral(z, sign * divide(derivative(x), s))


def atan(x: np.ndarray, z: Any) -> np.ndarray:
    """The inverse tangent."""
    return integral(z, divide(derivative(x), plus(1, multiply(x, x))[:-1]))


def atanh(x: np.ndarray, z: Any) -> np.ndarray:
    """The inverse hyperbolic tangent."""
    return integral(z, divide(derivative(x), multiply(plus(1, -x), plus(1, x))[:-1]))


def atan2(y: np.ndarray, x: np.ndarray, z: Any) -> np.ndarray:
    """The angle of the point (x, y), from z' = (x y' - y x') / (x**2 + y**2)."""
    size = np.maximum(np.absolute(x[0]), np.absolute(y[0]))
    size = np.where(size == 0, np.ones_like(size), size)  # squares neither overflow nor vanish
    y, x = y / size, x / size
    turning = multiply(x[:-1], derivative(y)) - multiply(y[:-1], derivative(x))
    return integral(z, divide(turning, (multiply(x, x) + multiply(y, y))[:-1]))


def hypot(x: np.ndarray, y: np.ndarray, z: Any) -> np.ndarray:
    """sqrt(x**2 + y**2), and 0 beyond the value at the kink."""
    kink = np.equal(z, 0)
    size = np.where(kink, np.ones_like(z), z)
    x, y = x / size, y / size
    squares = multiply(x, x) + multiply(y, y)
    whole = np.where(kink, np.ones_like(squares[:1]), squares[:1])
    s = sqrt(np.concatenate((whole, squares[1:])), np.ones_like(x[0])) * size
    return with_value(z, np.where(kink, 0.0, s).astype(x.dtype, copy=False))


# Special functions -----------------------------------------------------------------------------------------------


def erf(x: np.ndarray, z: Any) -> np.ndarray:
    """The error function, from z' = 2 / sqrt(pi) e^(-x x) x'."""
    return integral(z, multiply(_bell(x)[:-1], derivative(x)))


def erfc(x: np.ndarray, z: Any) -> np.ndarray:
    """1 - erf x."""
    return integral(z, multiply(-_bell(x)[:-1], derivative(x)))


def _bell(x: np.ndarray) -> np.ndarray:
    return exp(-multiply(x, x), TWO_OVER_ROOT_PI * np.exp(-x[0] * x[0]))


def compose(c: Any, x: np.ndarray) -> np.ndarray:
    """f(x) for a function whose Taylor coefficients at x[0] are `c` (Horner's scheme)."""
    step = np.concatenate((np.zeros_like(x[:1]), x[1:]))
    z = constant(c[-1], x.shape[0], x.shape[1:])
    for value in c[-2::-1]:
        z = multiply(z, step)
        z = np.concatenate((z[:1] + value, z[1:]))
    return z


def lgamma(x: np.ndarray, z: Any) -> np.ndarray:
    """The logarithm of |gamma(x)| of one number, from z' = digamma(x) x'."""
    first = plain_number(x[0])
    c = [(-1) ** (k + 1) * zeta(k + 1, first) if k else digamma(first) for k in range(len(x) - 1)]
    return integral(z, multiply(compose(c, x[:-1]), derivative(x)) if c else x[:-1])


def zeta(s: int, x: float) -> Any:
    """The sum of (x + i)**-s from i = 0 on, s > 1, by the Euler-Maclaurin formula (Abramowitz and Stegun 23.1.30).

    Coefficient k of the digamma function is (-1)**(k + 1) zeta(k + 1, x).
    """
    terms = []
    while x < 12 + s:
        terms.append(np.power(x, -float(s)))
        x = x + 1
    power = np.power(x, -float(s))
    terms += [power * x / (s - 1), 0.5 * power]
    factor = power * s / x  # s (s + 1) ... (s + 2k - 2) / (2k)! x**(1 - s - 2k), times (2k)!
    for k, bernoulli in enumerate(BERNOULLI, 1):
        terms.append(bernoulli / math.factorial(2 * k) * factor)
        factor = factor * (s + 2 * k - 1) * (s + 2 * k) / (x * x)
    return math.fsum(terms)


def gamma(x: np.ndarray, z: Any) -> np.ndarray:
    """The gamma function of one number: the exponential of its logarithm, with its own sign."""
    return exp(lgamma(x, 0.0), z)
