"""Chunks of tangents and Taylor coefficients of small arrays, against mpmath in arrays of objects.

The same programs run where the core is not in use.
"""

import math
import threading

import mpmath
import numpy as np
import pytest
from plaingrad import jacobian, jvp, taylor

POINT = np.array([0.7, 1.3, 0.4, 1.9, 0.6, 1.1])


class Exact:
    """Functions of NumPy for arrays of mpmath's numbers."""

    def __getattr__(self, name):
        return np.frompyfunc(getattr(mpmath, {"arctan": "atan"}.get(name, name)), 1, 1)


def arithmetic(x, m):
    n = 3 * x - x / 4 + 2.5 / x - (1 - x) * (x + 2) + x * x[0] - x[1] / x
    return n * n - (-n) / (1 + n * n) + x**2 + (n - x[2]) * 2


def functions(x, m):
    return m.sin(x) * m.cos(x) + m.exp(-x) - m.tan(x / 4) / m.tanh(x) + m.sqrt(x) * m.log(x) + m.arctan(x)


def in_place(x, m):
    u = x * 2
    u += x
    u -= 0.5
    u *= x
    u /= x + 1
    u *= x[3]
    u += u  # of itself
    u -= x[1]
    v = u[1:4]
    v *= u[2:5] * 1
    v /= 4
    u[0] = u[1] * x[0]
    return u


def tables(x, m):
    a = x.reshape(2, 3)
    b = a * a + a / (1 + a)
    c = a @ b.T
    d = c @ b + 2 * a
    d += a
    row = d[1] * x[0]
    return [
        row @ d[0],
        d @ row,
        row @ d.T,
        d.sum(),
        d.mean(),
        (d[0] + row).sum() * row[2],
        d[:, 1] * 2,
        d.T @ c,
    ]


def copies(x, m):
    y = x.copy()
    y *= x
    z = y.copy()
    z[2] = x[0] * 3
    y -= z
    return [y, z, y[::2] + z[1::2], (y * z)[::-1] * 2, (y + z).sum() - y[0]]


PROGRAMS = [arithmetic, functions, in_place, tables, copies]
by_name = pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)


def flat(y):
    if isinstance(y, list):
        return [value for part in y for value in flat(part)]
    return list(np.ravel(y))


def exact_along(program, point, direction, order):
    """Taylor coefficients of all results along a direction, a list for each."""

    def at(t):
        x = np.array(
            [mpmath.mpf(float(a)) + t * mpmath.mpf(float(d)) for a, d in zip(point, direction, strict=True)]
        )
        return flat(program(x, Exact()))

    with mpmath.workdps(60):
        count = len(at(mpmath.mpf(0)))
        return [[float(c) for c in mpmath.taylor(lambda t, i=i: at(t)[i], 0, order)] for i in range(count)]


def plain_flat(y):
    if isinstance(y, list):
        return np.concatenate([plain_flat(part) for part in y], axis=1)
    y = np.asarray(y)
    return y.reshape(len(y), -1)


@by_name
@pytest.mark.parametrize("order", [1, 4])
def test_taylor_coefficients_are_those_of_mpmath(program, order):
    direction = np.array([1.0, -0.5, 0.25, 0.3, 0.7, -0.2])
    found = plain_flat(taylor(lambda x: program(x, np), POINT.copy(), order, direction))
    exact = np.array(exact_along(program, POINT, direction, order)).T
    np.testing.assert_allclose(found, exact, rtol=1e-9, atol=1e-11 * np.abs(exact).max())


@by_name
def test_a_chunk_of_tangents_is_the_jacobian(program):
    found = jacobian(lambda x: program(x, np), mode="forward", chunk_size=6)(POINT.copy())
    found = np.concatenate(
        [np.reshape(part, (-1, 6)) for part in (found if isinstance(found, list) else [found])]
    )
    for k in range(6):
        exact = np.array(exact_along(program, POINT, np.eye(6)[k], 1))[:, 1]
        np.testing.assert_allclose(found[:, k], exact, rtol=1e-11, atol=1e-12)


@by_name
def test_values_are_those_of_the_plain_call_to_the_last_bit(program):
    plain = flat(program(POINT.copy(), np))
    seen = []

    def f(x):
        y = program(x, np)
        seen.append([float(value) for value in flat(y)])
        return y

    jacobian(f, mode="forward", chunk_size=6)(POINT.copy())
    taylor(f, POINT.copy(), 3, np.ones(6))
    assert seen == [plain, plain]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_arrays_of_other_types_and_shapes(dtype):
    def f(x, t):
        u = np.arange(6).reshape(2, 3).astype(dtype) * t
        u = u + x[0]
        whole = u * u.T[1, 1] + np.array(2.0) * u
        empty = (u[:, :0] * x[0]).sum()
        return (
            (whole[:, ::2] * np.array([[x[1]], [2.0]])).real.sum()
            + empty
            + (np.asfortranarray(u) * 2).real[1, 2]
        )

    tolerance = 1e-5 if dtype is np.float32 else 1e-12
    x = np.array([0.5, 1.5])

    def exact(x):
        u = np.arange(6).reshape(2, 3) * mpmath.mpf(1) + x[0]
        whole = u * u.T[1, 1] + 2 * u
        return (whole[:, ::2] * np.array([[x[1]], [2]])).sum() + 2 * u[1, 2]

    with mpmath.workdps(40):
        true = [
            float(
                mpmath.diff(
                    lambda s, k=k: exact([mpmath.mpf(v) + (s if k == i else 0) for i, v in enumerate(x)]), 0
                )
            )
            for k in range(2)
        ]
    found = jacobian(lambda x: f(x, dtype(1)), mode="forward", chunk_size=2)(x)
    np.testing.assert_allclose(found, true, rtol=tolerance)
    series = taylor(lambda x: f(x, dtype(1)), x, 1, np.array([1.0, 2.0]))
    np.testing.assert_allclose(series[1], true[0] + 2 * true[1], rtol=tolerance)


def test_poles_and_ends_of_domains_are_those_of_the_general_rules():
    def f(x):
        return [
            np.sqrt(x * np.array([0.0, 1.0])),
            1.0 / (x * np.array([0.0, 2.0])),
            x * np.array([np.inf, 1.0]),
        ]

    with np.errstate(all="ignore"):
        root, inverse, infinite = jacobian(lambda p: f(p[0] + p[1]), mode="forward", chunk_size=2)([1.0, 1.0])
        single = jvp(lambda x: f(x), (2.0,), (1.0,))[1]
    assert root[0][1] == pytest.approx(0.5 / math.sqrt(2))
    np.testing.assert_array_equal(np.isfinite(inverse[0]), np.isfinite(single[1]))
    assert infinite[0].tolist() == [np.inf, 1.0]
    assert np.array(inverse)[:, 1].tolist() == [-0.125, -0.125]


def test_warnings_and_floating_point_errors_are_those_of_numpy():
    def divided(p):
        a = np.array([p[0], p[1]])
        return (a / (a - a)).sum()

    with pytest.warns(RuntimeWarning, match="divide by zero") as caught:
        jacobian(divided, mode="forward", chunk_size=2)([1.0, 2.0])
    assert len(caught) == 1

    def overflowing(p):
        a = np.array([p[0], p[1]])
        try:
            a *= 1e308
        except FloatingPointError:
            a *= 1e-300
        return a[1] * 1.0

    with np.errstate(over="raise"):
        found = jacobian(overflowing, mode="forward", chunk_size=2)([1e10, 2.0])
    assert found == pytest.approx([0.0, 1e8])


def test_threads_that_work_on_one_array():
    def f(p):
        a = np.array([p[0], p[1], p[0] * p[1], 1.0])
        sums = [None] * 4

        def work(k):
            u = a * p[k % 2]
            for _ in range(300):
                u = u * 0.5 + np.sin(a) * 0.1
                u += a
            sums[k] = u.sum()

        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sums

    found = jacobian(f, mode="forward", chunk_size=2)([0.4, 0.9])
    for k, direction in enumerate(([1.0, 0.0], [0.0, 1.0])):
        alone = jvp(f, ([0.4, 0.9],), (direction,))[1]
        np.testing.assert_allclose(np.array(found)[:, k], alone, rtol=1e-13)
