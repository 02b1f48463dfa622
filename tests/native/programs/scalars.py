"""Numbers: float32 and float64, complex, int, bool."""

import cmath
import math

import numpy as np

from tests.native.programs.entries import program


@program(1.3, 0.7, compiled=True)
def a_polynomial_and_a_quotient(x, y):
    return (x**3 - 2 * x * y + 1.5) / (x * x + y * y)


@program(np.float32(1.25), np.float32(0.5))
def single_precision_all_through(x, y):
    return np.float32(x * y + x * x) * y


@program(np.float32(1.25), 0.5)
def single_precision_meets_double(x, y):
    z = x * y
    return z * x + math.sin(y)


@program(0.4 + 0.3j, 1.1, compiled=True)
def a_complex_argument(z, x):
    w = z * z + x
    return (w * w.conjugate()).real + w.imag * x + np.conj(w).imag + (x * 2.0).conjugate()


@program(0.4, 0.3)
def complex_inside_and_real_outside(x, y):
    z = complex(x, y)
    w = cmath.exp(z) * z + z**2 / (z + 2.0)
    return w.real * abs(z) + w.imag


@program(0.4, 0.3, 5)
def a_complex_iteration(x, y, n):
    c = complex(x, y)
    z = 0j
    for _ in range(n):
        z = z * z + c
    return z.real * z.real + z.imag


@program(0.4, 0.3)
def a_complex_part_makes_another_complex_number(x, y):
    z = complex((complex(x, y) ** 2).imag, x)
    return (z * complex(y, 0.3)).real


@program(1.3, 7, 3)
def quotients_and_remainders_of_integers(x, i, j):
    return x * (i // j) + x**2 * (i % j) + (-i // j) * math.sin(x) + (-i % j)


@program(1.3, 6)
def bits_of_integers(x, i):
    return x * (i & 3) + x * x * (i | 1) + (i ^ 5) * x + (i << 2) * x + (i >> 1) * x**3 + ~i * x


@program(1.3, True, False)
def booleans_as_numbers_and_conditions(x, p, q):
    s = x * p + x * x * (p and not q)
    if p ^ q:
        s += math.sin(x)
    return s + (x if p == q else x * x)


@program(1.3, 0.5)
def truth_of_numbers_as_a_number(x, y):
    return bool(x) * x + (not x) * y + bool(y) * x * x + x * (x > 1) * True


@program(3.0)
def a_bool_compared_with_true(x):
    assert (x == x) is True and (x != 2.0) is True and (x >= 4) is not True
    return x * (x > 1) * True


@program(-1.3, 0.8)
def signs_and_magnitudes(x, y):
    return abs(x) * y + math.fabs(y) * x + math.copysign(x, y) + np.sign(x) * y


@program(2.6, 0.7)
def remainders_of_floats(x, y):
    return (x % y) * x + np.fmod(x, y) + (x // y) * y + x % 1.0


@program(1.3)
def special_values_in_branches_not_taken(x):
    if x > 1e300:
        return x / 0.5 * math.inf
    return x * x if not math.isnan(x) else math.nan


@program(0.7, 3)
def powers_of_every_kind(x, n):
    return x**n + x**-n + n**x + x**0.5 + x**x + (-x) ** n + 0.0**n * x


@program(0.7, 0.2)
def kinks_taken_on_one_side(x, y):
    return max(x, y, 0.1) * min(x, y) + max(0.0, x - y) + min(y, y * 2)


@program(0.7)
def a_long_chain_of_library_functions(x):
    y = math.exp(math.sin(x)) + math.log(1 + x * x)
    z = math.tanh(y) * math.atan(x) + math.sqrt(y)
    return math.erf(z) * math.lgamma(2.0 + x) + math.gamma(1.5 + x) + math.expm1(z) * math.asinh(x) + math.hypot(x, z)
