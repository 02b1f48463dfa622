"""Chunks of tangents and Taylor coefficients of numbers, which the compiled core keeps as columns, against mpmath.

The same programs run where the core is not in use.
"""

import math
import threading

import mpmath
import numpy as np
import pytest


from plaingrad import grad, hessian, jacobian, jvp, taylor
from plaingrad.engine.compiled import core
from plaingrad.engine.forward.forward import ForwardLevel
from plaingrad.engine.taylor.jets import JetLevel
from plaingrad.rewrite import PLAIN

needs_core = pytest.mark.skipif(core is None, reason="of the compiled core")
POINT = [0.7, -1.3, 0.4, 1.9, -0.6, 1.1, 2.3, 0.2, -0.9, 1.6]


class Steps:
    """Objects with attributes, special methods and numbers in lists."""

    def __init__(self, x, v):
        self.x, self.v = x, [v, 2]

    def __add__(self, other):
        return Steps(self.x + other.x, self.v[0] - other.v[0] / 3)

    def move(self, h):
        self.v[0] += -h * self.x / (1 + self.x * self.x)
        self.x += h * self.v[0] * self.v[1]


def arithmetic(p, m):
    a, b = p[0], p[1]
    c = a + b - 3 * a * b / (2 + b * b) - (1 - a) / a + -b
    c += 2.5
    c *= a
    c -= b / 4
    c /= 1 + a * a
    return [c, 2 - a, 2 + b, a - 2, a / 8, 8 / a, a * b, a - b, a + b, b / a, a * True]


def functions(p, m):
    a, b = p[0], p[2]
    s = m.sin(a) * m.cos(b) + m.exp(a * b) - m.tan(b) / m.tanh(a)
    return [
        s,
        m.sqrt(a + b),
        m.log(a),
        m.atan(b),
        m.log(a * a, 3),
        m.asin(b),
        m.sinh(a) - m.acosh(1 + a),
        abs(-a),
    ]


def powers(p, m):
    a, b = p[3], p[2]
    negative = [(-a) ** 3, (-a) ** -2, (-a) ** 5, (-a) ** -1]
    return [a**2, a**3 + a**7 - a**-3, a**0.5, a**b, 2**b, 3.0**a, a**0 + b**1, a ** (1 / 3), *negative]


def pairs(p, m):
    a, b = p[0], p[2]
    hypot = m.hypot(a, b) + m.hypot(a, 3) + m.hypot(2, b)
    return [hypot, m.atan2(a, b), m.atan2(-a, -b), m.atan2(b, -1), m.atan2(2, a)]


def objects(p, m):
    all_steps = [Steps(x, k * 0.1) for k, x in enumerate(p)]
    for _ in range(5):
        for one in all_steps:
            one.move(0.25)
    whole = all_steps[0]
    for one in all_steps[1:]:
        whole = whole + one
    return [
        whole.x,
        whole.v[0],
        sum([one.x for one in all_steps]),
        sum((one.v[0] for one in all_steps), p[0]),
    ]


def containers(p, m):
    table = {k: x * k for k, x in enumerate(p)}
    table[1] -= table[2] * p[0]
    pieces = [table[k] * x for k, x in enumerate(p) if x > 0]
    pieces.append(max(p) * min(p))
    first, *rest = sorted(pieces)
    return [first, *rest, sum(pieces, 1.0), (lambda x, y=p[1]: x / y)(first)]


PROGRAMS = [arithmetic, functions, powers, pairs, objects, containers]
by_name = pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)


def exactly(program, p):
    with mpmath.workdps(40):
        return program(p, mpmath)


@by_name
def test_a_chunk_of_tangents_is_the_jacobian(program):
    point = POINT
    found = jacobian(lambda p: program(p, math), mode="forward", chunk_size=len(point))(list(point))
    with mpmath.workdps(40):
        for j in range(len(point)):

            def along(t, j=j):
                return program([mpmath.mpf(x) + (t if k == j else 0) for k, x in enumerate(point)], mpmath)

            count = len(along(mpmath.mpf(0)))
            for i in range(count):
                exact = mpmath.diff(lambda t, i=i: along(t)[i], 0)
                assert found[i][j] == pytest.approx(float(exact), rel=1e-12, abs=1e-13)


@by_name
@pytest.mark.parametrize("order", [1, 2, 5, 9])
def test_taylor_coefficients_are_those_of_mpmath(program, order):
    direction = [1.0, 0.5, -0.25, 0.3, 0.2, -0.4, 0.7, 0.9, -0.1, 0.6]
    found = taylor(lambda p: program(p, math), list(POINT), order, direction)
    with mpmath.workdps(60):

        def along(t):
            return program(
                [mpmath.mpf(x) + t * mpmath.mpf(d) for x, d in zip(POINT, direction, strict=True)], mpmath
            )

        for i, coefficients in enumerate(found):
            exact = mpmath.taylor(lambda t, i=i: along(t)[i], 0, order)
            scale = max(abs(float(c)) for c in exact)
            np.testing.assert_allclose(
                coefficients, [float(c) for c in exact], rtol=1e-10, atol=1e-12 * scale
            )


@by_name
def test_values_are_those_of_the_plain_call_to_the_last_bit(program):
    plain = program(list(POINT), math)
    seen = []

    def f(p):
        found = program(p, math)
        seen.append([float(x) for x in found])
        return found

    jacobian(f, mode="forward", chunk_size=10)(list(POINT))
    series = taylor(f, list(POINT), 4, [1.0] * 10)
    assert seen == [plain, plain]
    assert [s[0] for s in series] == plain


def test_powers_of_zero_have_their_series():
    for n in range(1, 12):
        found = taylor(lambda x, n=n: x**n + 0.0, 0.0, 6)
        np.testing.assert_array_equal(found, [float(k == n) for k in range(7)])
    assert taylor(lambda x: x**0 * 1.0, 0.0, 3).tolist() == [1.0, 0.0, 0.0, 0.0]
    root = taylor(lambda x: x**2.5, 0.0, 4)
    assert root[:3].tolist() == [0.0, 0.0, 0.0]
    assert np.isinf(root[3:]).all()


def test_series_at_the_ends_of_domains():
    assert taylor(abs, 0.0, 2).tolist() == [0.0, 0.0, 0.0]
    assert taylor(lambda x: abs(x) * math.fabs(x), -2.0, 2).tolist() == [4.0, -4.0, 1.0]
    with np.errstate(all="ignore"):
        assert not np.isfinite(taylor(math.sqrt, 0.0, 2)[1])
    with pytest.raises(ValueError, match=r"math domain error|expected a positive input"):
        taylor(math.log, 0.0, 2)
    with pytest.raises(ZeroDivisionError):
        taylor(lambda x: 1 / x, 0.0, 2)
    with pytest.raises(OverflowError):
        taylor(lambda x: x**400, 1e10, 2)
    big = taylor(lambda x: math.hypot(x, 3.0) + math.atan2(x, 3e200), 4e200, 1)
    assert big[1] == pytest.approx(1.0, rel=1e-15)


def mixed(x):
    n = np.float64(2.0) * x
    n = n * n - n / np.float64(3.0) + np.sin(n) - 3**2 * x + np.sqrt(n) + n**3 - -n
    z = (x + 2j) * (x - 1j) ** 2
    return n + z.real * z.imag + np.float64(x) * np.float32(0.5) + (x if x > 0 else -x) + abs(n)


def mixed_exactly(x):
    n = 2 * x
    n = n * n - n / 3 + mpmath.sin(n) - 9 * x + mpmath.sqrt(n) + n**3 + n
    # (x + 2i)(x - i)**2 = x**3 + 3 x + ..., taken apart by hand
    real = x * (x * x - 1) + 4 * x
    imaginary = 2 * (x * x - 1) - 2 * x * x
    return n + real * imaginary + x / 2 + x + abs(n)


def test_numbers_of_other_kinds_beside_floats():
    with mpmath.workdps(40):
        exact = [float(c) for c in mpmath.taylor(mixed_exactly, 0.8, 5)]
    np.testing.assert_allclose(taylor(mixed, 0.8, 5), exact, rtol=1e-12)

    def f(p):
        return mixed(p[0]) * p[1]

    found = jacobian(f, mode="forward", chunk_size=2)([0.8, 3.0])
    assert found == pytest.approx([3 * exact[1], exact[0]], rel=1e-13)


def test_an_exception_in_the_middle_of_an_expression_is_caught_and_the_program_goes_on():
    class Odd:
        def __radd__(self, other):
            raise KeyError(other)

    def f(p):
        total = p[0] * 1.0
        for k in range(3000):
            try:
                total = total + (p[0] * p[1] - p[1] / p[0] + Odd()) * k
            except KeyError as error:
                total = total + error.args[0] * 0.001
            try:
                total = total + p[0] * p[1] / (p[1] - p[1])
            except ZeroDivisionError:
                total = total - p[1] * 0.001
        return total

    x, y = 0.7, 1.3
    found = jacobian(f, mode="forward", chunk_size=2)([x, y])
    assert found == pytest.approx([1 + 3 * (y + y / x**2), 3 * (x - 1 / x) - 3], rel=1e-12)
    series = taylor(f, [x, y], 2, [0.0, 1.0])
    np.testing.assert_allclose(series[1:], [3 * (x - 1 / x) - 3, 0.0], rtol=1e-11, atol=1e-11)


def test_columns_of_dead_numbers_are_used_again():
    def f(p):
        kept = []
        x = p[0]
        for k in range(30_000):
            x = 0.5 * x + 0.25 * p[k % 3] * x + 0.1
            if k % 1000 == 0:
                kept.append(x)
        return kept

    def fast(p):  # the same, with its own three derivatives
        kept, x, dots = [], p[0], [1.0, 0.0, 0.0]
        for k in range(30_000):
            i = k % 3
            own = [0.25 * x if j == i else 0.0 for j in range(3)]
            dots = [(0.5 + 0.25 * p[i]) * d + o for d, o in zip(dots, own, strict=True)]
            x = 0.5 * x + 0.25 * p[i] * x + 0.1
            if k % 1000 == 0:
                kept.append(dots)
        return kept

    point = [0.3, 0.9, 1.4]
    found = jacobian(f, mode="forward", chunk_size=3)(point)
    np.testing.assert_allclose(np.array(found), np.array(fast(point)), rtol=1e-12)


def test_threads_at_one_level():
    def f(p):
        results = [None] * 6

        def work(k):
            x = p[k % 3]
            for n in range(4000):
                x = x * 0.9 + p[(k + n) % 3] * 0.1 * math.cos(x) / (1 + x * x)
            results[k] = x

        threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results

    def alone(p):
        results = []
        for k in range(6):
            x = p[k % 3]
            for n in range(4000):
                x = x * 0.9 + p[(k + n) % 3] * 0.1 * math.cos(x) / (1 + x * x)
            results.append(x)
        return results

    point = [0.3, 0.9, 1.4]
    exact = [jvp(alone, (point,), ([float(j == k) for k in range(3)],))[1] for j in range(3)]
    found = jacobian(f, mode="forward", chunk_size=3)(list(point))
    np.testing.assert_allclose(np.array(found), np.array(exact).T, rtol=1e-13)


def program_of_one(x):
    y = x * x
    for _ in range(3):
        y = math.sin(y) * x + math.exp(-y * y) / (1 + x * x)
    return y * x**3


def exact_derivatives(order):
    def exact(x):
        y = x * x
        for _ in range(3):
            y = mpmath.sin(y) * x + mpmath.exp(-y * y) / (1 + x * x)
        return y * x**3

    with mpmath.workdps(50):
        return [float(mpmath.diff(exact, 0.8, k)) for k in range(order + 1)]


def test_levels_inside_one_another():
    d = exact_derivatives(4)
    x = 0.8
    assert taylor(grad(program_of_one), x, 2).tolist() == pytest.approx([d[1], d[2], d[3] / 2], rel=1e-10)
    assert jvp(lambda x: taylor(program_of_one, x, 2)[2], (x,), (1.0,))[1] == pytest.approx(
        d[3] / 2, rel=1e-10
    )
    assert grad(lambda x: taylor(program_of_one, x, 2)[2])(x) == pytest.approx(d[3] / 2, rel=1e-10)
    nested = taylor(lambda x: taylor(program_of_one, x, 2)[2], x, 2)
    assert nested.tolist() == pytest.approx([d[2] / 2, d[3] / 2, d[4] / 4], rel=1e-9)

    def two(p):
        return program_of_one(p[0]) * p[1] + p[1] ** 2

    def slope(p):
        return jacobian(two, mode="forward", chunk_size=2)(p)[0]

    assert jacobian(slope, mode="forward", chunk_size=2)([x, 2.0]) == pytest.approx(
        [2 * d[2], d[1]], rel=1e-10
    )
    assert grad(slope)([x, 2.0]) == pytest.approx([2 * d[2], d[1]], rel=1e-10)
    second = hessian(two, chunk_size=2)([x, 2.0])
    np.testing.assert_allclose(second, [[2 * d[2], d[1]], [d[1], 2.0]], rtol=1e-10)


def test_a_users_rule_for_a_function_of_math_is_used():
    def f(p):
        return [math.erf(p[0]) + math.sinh(p[1]), math.cosh(p[0]) * p[1]]

    point = [0.4, 0.6]
    found = jacobian(f, mode="forward", chunk_size=2)(point)
    bell = 2 / math.sqrt(math.pi) * math.exp(-0.16)
    assert found[0] == pytest.approx([bell, math.cosh(0.6)], rel=1e-14)
    assert found[1] == pytest.approx([math.sinh(0.4) * 0.6, math.cosh(0.4)], rel=1e-14)


def test_arrays_made_of_numbers_and_numbers_of_arrays():
    def f(p):
        a = np.array([p[0] * p[1], p[2], 1.0])
        a[1] += p[0]
        b = a * a
        b[2] = a[0] * b[1]
        return b[0] * b[2] + b.sum() + np.array([[p[0], p[1]], [p[2], 2.0]])[1, 0]

    def exact(p):
        a = [p[0] * p[1], p[2] + p[0], 1]
        b = [a[0] * a[0], a[1] * a[1], 1]
        b[2] = a[0] * b[1]
        return b[0] * b[2] + sum(b) + p[2]

    point = [0.7, -1.2, 0.4]
    with mpmath.workdps(40):
        true = [
            float(
                mpmath.diff(lambda t, j=j: exact([x + (t if j == k else 0) for k, x in enumerate(point)]), 0)
            )
            for j in range(3)
        ]
        series = [float(c) for c in mpmath.taylor(lambda t: exact([x + t for x in point]), 0, 4)]
    assert jacobian(f, mode="forward", chunk_size=3)(list(point)) == pytest.approx(true, rel=1e-12)
    np.testing.assert_allclose(taylor(f, list(point), 4, [1.0, 1.0, 1.0]), series, rtol=1e-11)
    array = np.array(point)
    np.testing.assert_allclose(jacobian(f, mode="forward", chunk_size=3)(array), true, rtol=1e-12)


@needs_core
@pytest.mark.parametrize("level_class", [ForwardLevel, JetLevel])
def test_the_table_of_columns_is_a_dictionary_of_arrays(level_class):
    recorder = level_class(PLAIN, 3).recorder
    table = recorder.index
    numbers = [float(k) + 0.5 for k in range(400)]
    for k, x in enumerate(numbers):
        recorder.file(x, np.array([k, 2.0 * k, -1.0]))
    assert len(table) == 400
    for k, x in enumerate(numbers):
        assert table[id(x)].tolist() == [k, 2.0 * k, -1.0]
    for x in numbers[::2]:
        del table[id(x)]
    table[id(numbers[1])] = np.array([7, 8, 9], np.float32)
    said = table.get(id(numbers[1]))
    said[:] = 0.0  # nobody else's
    assert table.pop(id(numbers[1])).tolist() == [7.0, 8.0, 9.0]
    assert table.get(id(numbers[1])) is None
    for k, x in enumerate(numbers[3::2]):
        assert table[id(x)].tolist() == [2 * k + 3, 4.0 * k + 6, -1.0]
    with pytest.raises(ValueError, match="4 tangents for a chunk of 3"):
        recorder.file(0.25 * 3, np.ones(4))
    recorder.file(numbers[0], 0.0)
    assert table[id(numbers[0])].tolist() == [0.0, 0.0, 0.0]
    table.clear()
    assert len(table) == 0
    recorder.file(numbers[0], 1.5)
    assert table[id(numbers[0])].tolist() == [1.5, 1.5, 1.5]


@needs_core
def test_levels_of_columns_are_compiled():
    assert type(ForwardLevel(PLAIN, 4).recorder) is core.ChunkPusher
    assert type(JetLevel(PLAIN, 4).recorder) is core.JetPusher
