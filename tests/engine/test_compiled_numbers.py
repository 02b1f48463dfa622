"""Operations on numbers that the compiled core does itself, beyond plain arithmetic: powers, pairs, sums, complex ones.

The same programs run where the core is not in use.
"""

import cmath
import collections
import heapq
import itertools
import math
import statistics

import numpy as np
import pytest

from plaingrad import grad, hvp, jvp

PROGRAMS = {}


def program(f):
    PROGRAMS[f.__name__] = f
    return f


@program
def powers(x):
    y = x**0.5 + x**-1.5 + x**3.7 + x**1 + x**0 + x**0.0 + x**2.0
    return y + (-x) ** 3 + (-x) ** -2 + (-x) ** 2.0 + (-x) ** -1.0


@program
def powers_of_constants_and_of_themselves(x):
    return 2.0**x + 3**x + x**x + np.float64(1.5) ** x + 1.0**x + x ** (1 / 3) * x ** (x * x)


@program
def powers_of_numpys_numbers(x):
    n = x * np.float64(1.0)
    return np.float64(2) * x**1.5 + n**-2 + n**0.5 + n**3 + 2.0**n


@program
def powers_in_place(x):
    y = x * 1.0
    y **= 2
    y **= 0.5
    y **= x
    return y


@program
def functions_of_two_numbers(x):
    y = math.atan2(x, 2.0 * x * x) + math.atan2(1, x) + math.atan2(x, -1.0) + math.atan2(-x, -x * x)
    return y + math.hypot(x, x * x) + math.hypot(x, 3) + math.hypot(-2, x) + math.hypot(x) + math.hypot(x, 1.0, 2.0)


@program
def angles_and_absolute_values(x):
    return math.degrees(x * x) * math.radians(x) + abs(-x * x) * math.fabs(x) + abs(x * 2.0) + math.atan(x * x) / x


@program
def sums_with_a_start(x):
    y = sum([x * k for k in range(4)], x) * sum((x, 2), 1.5) + sum([1, 2], x) * sum([x], np.float64(2.0))
    return y + sum((x * k for k in range(3)), x * x) + sum([], x) + sum([x, x], 2)


@program
def whole_numbers_beside(x):
    total = x
    for k in range(9):
        total = total * (1.0 + k // 2 * 0.1) + x * (k % 3) + (k & 1) + (k | 2) * x + (k ^ 1) + (k << 1) - (k >> 1)
    k = 17
    k //= 2
    k %= 5
    return total * k + 7.5 // 2.0 + 7.5 % 2.0


@program
def remainders(x):
    y = (7.0 * x * x) % 1.7 + 5.3 % (x * x) + (-7.0 * x * x) % (x + 1.0) + (9 * x) % -1.37 + np.float64(3.0) * x % 0.8
    z = 9.0 * x * x
    z %= x
    return y * y + z * z + (x * x) % 2 * x + 7 % x


@program
def functions_of_two_numbers_by_their_slopes(x):
    y = math.fmod(7.0 * x * x, x + 1.0) + math.fmod(-7.0 * x * x, 1.3) + math.remainder(7.0 * x * x, x + 0.2)
    y = y * y + math.pow(x * x, x) + math.pow(x, 3) * math.pow(2, x) + math.log(x + 1.0, x * x + 2.0)
    return y + math.copysign(x * x, -x) * math.copysign(-x, 2)


@program
def further_functions(x):
    y = 0.4 * x
    z = math.log1p(y) * math.expm1(y) + math.exp2(y) * math.log2(x) + math.log10(x) * math.cbrt(x)
    z = z + math.sinh(y) * math.cosh(y) + math.asin(y) * math.acos(y) + math.asinh(x) * math.acosh(1.2 + x)
    return z + math.atanh(y) * math.erf(x) + math.erfc(y) * x


@program
def parts_of_complex_numbers(x):
    z = complex(x, x * x)
    w = complex(2.0, 0.5 * x) * z
    y = abs(w) * z.real - w.imag * abs(z) + abs(complex(0.5, 1.0) * x)
    return y + complex(3, x).imag * abs(complex(x, 0)) + complex(1.0, 2.0).real * x


@program
def sums_of_what_is_no_list(x):
    window = collections.deque([x, x * x, 2.0], 5)
    table = {"a": x, "b": 2 * x, x: 1}
    y = sum(window) * sum(table.values(), 1.0) + sum({x, 3.0}) * sum(itertools.islice(window, 2))
    return y + sum(filter(None, [x, 0.0, x])) * sum(itertools.chain(window, [x])) + sum(table.keys() - {"a", "b"})


@program
def lengths_and_exact_sums(x):
    y = math.dist([x, 1.0], (0.5, x * x)) * math.hypot(x, 2, -x * x) + math.dist((x,), [3]) + math.hypot(-x) * x
    y = y * math.fsum([x, 1, x * x]) + math.fsum(v * x for v in (1.0, x)) + math.fsum(()) + math.fsum([x]) ** 2
    return y + math.dist((x, x, 0.0), (x, 1.0, 0.0)) + statistics.fmean([x, x * x, 0.5]) * math.fsum({x, 2.0})


@program
def numbers_of_numpy_made_and_summed(x):
    a = np.array([0.5, 1.0, 2.0]) * x
    y = np.float64(x) * sum(v * v for v in a) + sum(a[1:], x) * math.fsum(a) + sum([np.float64(x * x), x, 1])
    return y * np.float64(np.float64(x)) + np.float64(2) * float(sum(a))


@program
def functions_of_complex_numbers(x):
    z = complex(x, 0.3 * x * x)
    w = cmath.exp(z) * cmath.sin(z) + cmath.log(z) / cmath.sqrt(z + 1j) - cmath.cosh(z * 0.5) + cmath.atan(z)
    w = w + cmath.tanh(w * 0.1) * cmath.exp(complex(0.0, x)) + cmath.asinh(cmath.exp(1j)) + cmath.sqrt(x)
    return w.real * cmath.phase(w) + abs(w) - w.imag


@program
def complex_arithmetic(x):
    z = complex(x, 0.5 * x)
    z = z * x + x / z - x
    z = x - z
    z = z * z / (x + 1) + 2.0 * z - z / 2 + 1
    z = -z
    z = z**3 * (2.0 - z) / (z * z + 4) + 1 / z - 2
    z = z * 1j + cmath.exp(z * 0.1)
    for _ in range(4):
        z = z - (z * z * z - x) / (3.0 * z * z + 0.1)
    z += x
    z *= 2.0
    return z.real * z.imag + abs(z)


@program
def heaps_of_pairs(x):
    heap = []
    for k in range(90):
        heapq.heappush(heap, (math.sin(k) * 3.0, k, x * k))
    total = 0.0
    while heap:
        _, k, value = heapq.heappop(heap)
        total = total * 0.9 + value * value / (k + 1.0)
    return total


def difference(f, x, h):
    return (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h)


@pytest.mark.parametrize("x", [0.6, 1.3])
@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_are_those_of_differences(name, x):
    f = PROGRAMS[name]
    slope = difference(f, x, 1e-4)
    assert grad(f)(x) == pytest.approx(slope, rel=1e-8)
    y, y_dot = jvp(f, (x,), (1.0,))
    assert (y, y_dot) == (f(x), pytest.approx(slope, rel=1e-8))
    curvature = difference(grad(f), x, 1e-4)
    assert hvp(f, (x,), (1.0,))[0] == pytest.approx(curvature, rel=1e-7, abs=1e-7)
    assert grad(grad(f))(x) == pytest.approx(curvature, rel=1e-7, abs=1e-7)
    assert jvp(lambda x: jvp(f, (x,), (1.0,))[1], (x,), (1.0,))[1] == pytest.approx(curvature, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("z", [1 + 2j, -0.5 + 0.3j])
def test_gradients_with_respect_to_complex_numbers(z):
    def f(z):
        return (z * z * 2 + z / (z + 1) - 3 / z + (2 - z) * 1.5 - z**3).real + abs(z) * 0.1

    along = difference(lambda t: f(z + t), 0.0, 1e-4) + 1j * difference(lambda t: f(z + 1j * t), 0.0, 1e-4)
    assert grad(f)(z) == pytest.approx(along, rel=1e-8)


def test_what_python_refuses_is_refused():
    for f, error in [(lambda x: x**-1, ZeroDivisionError), (lambda x: x // 0, ZeroDivisionError)]:
        for derived in (grad(f), lambda x, f=f: jvp(f, (x,), (1.0,))):
            with pytest.raises(error):
                derived(0.0)
    assert grad(lambda x: (x - x) ** 2 + (x - x) ** 1)(1.0) == 0.0
    assert grad(lambda x: x**1)(0.0) == 1.0
    assert grad(lambda x: x**0.5)(0.0) == math.inf
    for x in (2e-313, 5e-324, 1.5, -2e-313):
        for derived in (grad(grad(lambda x: x**1)), grad(lambda x: x**0), lambda x: hvp(lambda x: x**1, (x,), (1.0,))[0]):
            assert derived(x) == 0.0
    assert grad(lambda x: x**0.3)(1e-310) == pytest.approx(0.3 * 1e-310**0.3 / 1e-310, rel=1e-12)
    assert grad(lambda x: math.hypot(x - x, 0.0) + x)(1.0) == 1.0
    assert math.isnan(grad(abs)(math.nan))
    assert hvp(lambda x: x / 1e-310, (1.0,), (1.0,))[0] == 0.0
    assert hvp(math.sqrt, (0.0,), (1.0,))[0] == -math.inf
    for x in (5e-324, 1e-310, 1.0):
        assert hvp(lambda x: x**0, (x,), (1.0,))[0] == 0.0
    assert grad(lambda x: math.hypot(x, 5e-324))(5e-324) == pytest.approx(math.sqrt(0.5))
    assert grad(lambda x: math.atan2(x, 1e-300))(0.0) == pytest.approx(1e300)
    assert grad(np.i0)(np.array(0.5)) == pytest.approx(0.2578943053908963)  # I_1(0.5)


def test_kinks_and_refusals_of_lengths_are_those_of_the_rules():
    assert grad(lambda x: math.dist([x, 1.0], [x, 1.0]) + x)(2.0) == 1.0
    assert grad(lambda x: math.hypot(x - x, 0.0, 0.0) + x)(2.0) == 1.0
    assert grad(lambda x: math.dist([x, 0.0], [0.0, 0.0]))(1e-320) == 1.0
    for f in (lambda x: math.dist([x], [x, 1.0]), lambda x: math.fsum([x, "a"])):
        with pytest.raises((TypeError, ValueError)) as plain:
            f(1.0)
        with pytest.raises(type(plain.value)) as derived:
            grad(f)(1.0)
        assert str(derived.value) == str(plain.value)
    with pytest.raises(OverflowError):
        grad(lambda x: math.fsum([x, 1.7e308, 1.7e308]))(1.0)
    assert math.isnan(grad(lambda x: math.dist([x], [math.nan]))(1.0))
