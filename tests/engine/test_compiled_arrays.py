"""Operations on arrays that the compiled core does itself, in every mode, against complex steps and differences.

The same programs run where the core is not in use.
"""

import gc
import math
import threading
import tracemalloc

import numpy as np
import pytest

import plaingrad
from plaingrad import grad, hvp, jvp, linearize, value_and_grad, vjp

pytestmark = pytest.mark.usefixtures("collections_as_usual")

X = np.array([0.7, -1.2, 0.4, 1.9, -0.6, 1.1])
V = np.array([0.3, 1.0, -0.5, 0.2, 0.8, -1.1])
A = np.linspace(-1.0, 1.3, 36).reshape(6, 6)
PROGRAMS = {}


def program(f):
    PROGRAMS[f.__name__] = f
    return f


@program
def arithmetic(x):
    y = x * 2.0 + 1.0 - x / 4.0
    y = 3.0 - y * x + 2.0 / (x * x + 2.0)
    y = -y / (1.5 + x * x) - (x - 0.5) * x
    return (y * y).sum()


@program
def whole_numbers_and_numpys(x):
    y = 2 * x + np.float64(1.5) - x / 4
    return ((y - 1) * np.float64(0.5) / 2 + 3 / (x * x + 2)).sum()


@program
def both_operands_the_same(x):
    y = x + x
    z = y * y - y / (y + 9.0)
    return (z - z * 0.5 + z / z).sum()


@program
def views(x):
    y = x * x
    z = y[1:] - y[:-1] * x[:-1]
    w = y[::2] * z[::-1][:3] / (3.0 + x[::-2])
    return (w * w).sum() + (z[1:4] * x[2:5]).sum()


@program
def views_of_one_region(x):
    y = x * 1.5
    return (y[1:] * y[:-1] + y[2:].sum() * y[::-1][0]).sum()


@program
def rows_and_columns(x):
    m = x.reshape(2, 3) * x.reshape(2, 3)
    t = m.T
    return (t[0] * m[:, 0] + m[1, 1] * t[2]).sum() + (m[0] * m[1]).sum() - (t * t).sum()


@program
def broadcast(x):
    m = x[:, None] * x[None, :3] + x[:3] / 5.0
    y = m - x.reshape(6, 1)
    return (y * m).sum() + (m / (x[:3] * x[:3] + 1.0)).sum()


@program
def broadcast_to_many(x):
    m = np.zeros((40, 6)) + x
    return (m * x * np.arange(240.0).reshape(40, 6)).sum() / 100


@program
def a_number_of_the_array_with_arrays(x):
    s = x[1] * x[2]
    y = x * s + s / (x * x + 1.0) - s
    return (y * y / (s * s + 2.0)).sum() + (np.ones(12) * s).sum()


@program
def elements(x):
    total = x[0] * 1.0
    for k in range(1, 6):
        total = total * 0.5 + x[k] * x[k - 1] + x[-k]
    return total


@program
def elements_of_matrices(x):
    m = x.reshape(3, 2) * 2.0
    total = 0.0
    for i in range(3):
        for j in range(2):
            total = total + m[i, j] * m[i - 1, -1] * m.T[j, i]
    return total


@program
def elements_written(x):
    y = np.zeros_like(x)
    for k in range(6):
        y[k] = x[k] * x[k - 1]
    for k in range(1, 6):
        y[k] = y[k] + y[k - 1] * 0.5
    y[0] = 2.0
    m = np.zeros_like(x.reshape(2, 3))
    for i in range(2):
        for j in range(3):
            m[i, j] = y[i + j] * x[j]
    return (y * y).sum() + m[1, 1] * m[0, 2]


@program
def slices_written(x):
    y = np.zeros_like(x)
    y[1:4] = x[:3] * x[3:]
    y[4:] = x[0]
    y[::5] = 1.5
    y[2:4] = y[1:3].copy()
    m = np.zeros_like(A * x)
    m[2] = y
    m[:, 1] = x * y
    m[3:, 3:] = x[:3]
    m[0, 2:5] = 0.0
    return (m * A).sum() + (y * x).sum()


@program
def slices_changed_in_place(x):
    y = x * 1.0
    y[1:] += x[:-1]
    y[:-1] -= x[1:] * y[1:]
    y[::2] *= 3.0
    y[1::2] /= 2
    y += x[0]
    y -= 0.25
    return (y * y).sum()


@program
def what_a_pullback_reads_is_overwritten(x):
    y = x * 1.0
    z = y * y
    y[2] = x[0] * 4.0
    w = y * z
    y[:3] = x[3:]
    u = w * y
    y += x
    y *= 2.0
    return (u * y).sum()


@program
def fortran_order(x):
    m = np.zeros_like(np.asfortranarray(A)) * x
    f = np.asfortranarray(A) * 1.0
    g = np.asfortranarray(A) * x
    g[1:, 2] += x[1:]
    g[0] = x * x
    return (g * A).sum() + (f * g.T).sum() + g[3, 4] * x[1] + m.sum()


@program
def copies_out_of_order(x):
    a = (x.reshape(2, 3)).T.copy(order="K")
    b = a * 2.0
    b[1] = x[4:]
    b[2, 1] = x[0]
    return (b * a).sum() + b[1, 0] * b[2, 1]


@program
def products(x):
    y = A @ x
    m = x.reshape(2, 3)
    n = m @ m.T
    return (
        x @ y
        + np.dot(x, x)
        + (x @ A).sum()
        + (n @ n).sum()
        + (A[:2] @ x)[1] * y[0]
        + (m.T @ np.array([1.0, 2.0]))[2]
        + np.matmul(m.T, m)[0, 1] * m.dot(x[::2])[0]
        + (x[:2] @ m).sum()
    )


@program
def products_with_themselves(x):
    m = (A * x)[:4, :4] * 1.0
    return (m @ m).sum() + (m @ m[0]).sum() + (m[:, 1] @ m).sum() + m[0].dot(m[0])


@program
def sums_and_means(x):
    m = A * x
    return (
        (m.sum(axis=0) * x).sum()
        + (m.sum(axis=1) * m.sum(1)).sum()
        + np.sum(m, 0)[2] * np.mean(x)
        + m.mean(axis=0) @ x
        + m.mean() * x[1:4].sum()
        + np.sum(m[1:4, ::2], axis=-1)[0]
        + np.mean(m[2]) * m[0].mean()
    )


@program
def functions(x):
    y = x * x + 0.5
    return (
        np.exp(-y)
        + np.tanh(x) * np.sqrt(y)
        + np.log(y)
        + np.sin(x * 2.0) * np.cos(y)
        + np.square(x)
        + x**2
        - np.negative(y[::-1])
        + np.arctan(x)
        + np.exp(x[::-1])
        + np.sqrt(y[::-1])
    ).sum()


@program
def functions_of_elements(x):
    return np.exp(x[0]) * np.sin(x[1]) + np.tanh(x[2]) * np.cos(x[0]) + np.sqrt(x[3]) + np.log(x[5]) * np.arctan(x[4])


@program
def arrays_made_of_numbers(x):
    a, b, c = x[0] * x[1], x[2], x[3] / 2.0
    y = np.array([a, b, 1, c])
    m = np.array([[a, 2.0], (b, c)])
    t = np.array((c, a))
    return y @ y + (m @ t).sum() + np.array([x[4] * x[5]]).sum()


@program
def more_elements_than_are_done_by_hand(x):
    y = np.zeros(6000) + x[0] * x[1]
    z = y * np.linspace(0.0, 1.0, 6000) + x[2]
    z[10:5010] = z[:5000] * x[3]
    z[1] = x[5]
    m = z.reshape(60, 100)
    m += m.mean()
    w = np.sin(m)
    return (w * m).sum() / 1000 + (m.T @ (m @ np.ones(100))).sum() / 1e6


@program
def powers(x):
    y = x * x + 0.3
    z = y**3 - y**-1 + y**0.5 * y**1.5 + x**1 + x**2.0 + y ** np.float64(2.5)
    z = z * x**0 + (y[1:] ** -0.5).sum() * x**4
    return (z[::-1] ** 3).sum() / 100 + (y.reshape(2, 3) ** 1.25).sum()


@program
def copies(x):
    y = x.copy()
    y[1:] += x[:-1]
    z = np.array(y)
    z[0] = y[1] * y[2]
    m = np.copy(z.reshape(2, 3).T)
    m[1] *= 2.0
    w = y[::-2].copy()
    w[:2] = np.array(x[1:3])
    return (m * m).sum() * w[0] + (w * z[3:]).sum() + (np.array(m)[:, 1] * z[:3]).sum()


@program
def other_shapes(x):
    m = np.reshape(x * x, (2, 3))
    t = m.T.reshape(6)
    m[1] += x[:3]
    flat = m.ravel()
    flat[2] = x[0] * x[1]
    f = np.ravel(m.T) * m.reshape(-1)
    k = m.reshape((3, 2), order="F")
    k[0] = x[1]
    return (f * t).sum() + (m * m).sum() + (k @ k.T)[0, 1] + (x.reshape(1, 6, 1)[0] * m.reshape(6, 1)).sum()


@program
def cross_products(x):
    a, b = x[:3], x[3:] * 2.0
    c = np.cross(a, b)
    d = np.cross(x[::-2], c)
    e = np.cross(d, np.array([1.0, 2.0, 3.0]))
    c = np.cross(c, c + x[:3])
    e += c
    g = np.cross(x.reshape(3, 2)[:, 1], A[1:4, 2])
    g[1] = x[0]
    h = np.cross(e, g) * 0.5
    h[0] += x[1] * np.cross(a, a)[1]
    y = x * 1.0
    k = np.cross(y[1:4], y[2:5])
    y[2] = x[5]
    return (d * e).sum() + h @ g + (k * y[:3]).sum() + (np.cross(x.reshape(2, 3), A[:2, :3]) * e).sum()


@program
def nothing_in_it(x):
    e = x[:0] * 2.0
    e += 1.0
    return (e * e).sum() + x.sum() + (np.zeros((0, 6)) * x).sum() + np.exp(e).sum() + (A[:0] @ x).sum()


@program
def no_axes(x):
    z = np.array(2.0) * x[0] + (x[1:2].reshape(()) * x).sum()
    d = x[3:4].reshape(()) * 1.0
    return z * d + d[()]


@program
def numbers_read_beside_views(x):
    y = x * 1.0
    t = y[4] * y[4]
    return y[1:3].sum() + y[::2].sum() * t + t


@program
def numbers_read_beside_copies_by_index(x):
    y = x * 1.0
    t = y[1] * y[1]
    y[[0, 2]] = y[3:5]
    m = y.reshape(2, 3)
    return (y[1:] * 3).sum() * t + m[:, [0, 1]].sum() * m[1, 2] + y[[0, 4]].sum() * t


@program
def numbers_read_beside_copies_in_another_order(x):
    y = x * 1.0
    t = np.tanh(y[4])
    m = y.reshape(3, 2).T.copy(order="K") * 1.0
    return (m * m).sum() * t + m[1, 2] * m.T[0, 1]


@program
def a_loop_of_stencils(x):
    u = x * 1.0
    for _ in range(4):
        u[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        u[0] = u[1]
        u[-1] = x[0] * u[-2]
    return (u * u).sum()


def complex_step(f, x, v):
    return f(x + 1e-30j * v).imag / 1e-30


@pytest.mark.parametrize("name", PROGRAMS)
def test_first_derivatives_are_those_of_complex_steps(name):
    f, x = PROGRAMS[name], abs(X) if name == "functions_of_elements" else X.copy()
    before, value = x.copy(), f(x.copy())
    wanted = np.array([complex_step(f, x, e) for e in np.eye(6)])
    for _ in range(2):
        y, found = value_and_grad(f)(x)
        np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-11)
        assert y == value
    y, y_dot = jvp(f, (x,), (V,))
    assert y == value
    assert y_dot == pytest.approx(wanted @ V, rel=1e-11, abs=1e-11)
    assert linearize(f, x)[1](V) == pytest.approx(wanted @ V, rel=1e-11, abs=1e-11)
    assert (x == before).all()


@pytest.mark.parametrize("name", PROGRAMS)
def test_second_derivatives_are_those_of_differences_and_of_reverse_over_reverse(name):
    f, x = PROGRAMS[name], abs(X) if name == "functions_of_elements" else X.copy()
    gradient = grad(f)
    found = hvp(f, (x,), (V,))
    found = found[0] if isinstance(found, tuple) else found
    h = 1e-5
    differences = (
        8 * (gradient(x + h * V) - gradient(x - h * V)) - (gradient(x + 2 * h * V) - gradient(x - 2 * h * V))
    ) / (12 * h)
    np.testing.assert_allclose(found, differences, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found, grad(lambda x: gradient(x) @ V)(x), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found, jvp(gradient, (x,), (V,))[1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["views", "slices_written", "products", "elements_written", "a_loop_of_stencils"])
def test_a_pullback_is_pulled_twice_and_under_other_derivatives(name):
    f = PROGRAMS[name]
    wanted = grad(f)(X)
    _, pullback = vjp(f, X)
    for scale in (1.0, -2.0):
        np.testing.assert_allclose(pullback(scale)[0], scale * wanted, rtol=1e-13)
    np.testing.assert_allclose(jvp(lambda t: pullback(t * t)[0], (3.0,), (1.0,))[1], 6.0 * wanted, rtol=1e-13)
    assert grad(lambda t: pullback(t)[0] @ V)(2.0) == pytest.approx(wanted @ V, rel=1e-12)
    kept = []
    _, y_dot = jvp(lambda x: kept.append(vjp(f, x)[1]) or kept[-1](1.0)[0], (X,), (V,))
    np.testing.assert_allclose(y_dot, jvp(grad(f), (X,), (V,))[1], rtol=1e-12)
    np.testing.assert_allclose(kept[0](1.0)[0], wanted, rtol=1e-13)  # once the level around is closed


def test_a_number_that_moves_only_at_the_level_around_keeps_its_tangent_on_the_tape():
    def f(x, s):
        u = x * s - s / x
        u *= s
        u[1:] = s
        u += s * x
        return (u * u / s).sum() + s * x[0] + sum([x[1], s]) * s

    def inner(s):
        return grad(f)(X, s)

    h = 1e-5
    want = (8 * (inner(1.3 + h) - inner(1.3 - h)) - (inner(1.3 + 2 * h) - inner(1.3 - 2 * h))) / (12 * h)
    np.testing.assert_allclose(jvp(inner, (1.3,), (1.0,))[1], want, rtol=1e-7, atol=1e-8)
    twice = jvp(lambda s: linearize(lambda x: f(x, s), X)[1](V), (1.3,), (1.0,))[1]
    assert twice == pytest.approx(want @ V, rel=1e-7)


def test_eight_threads_record_at_one_level_each_and_agree():
    names = ["slices_written", "products", "elements_written", "arithmetic"]
    wanted = {name: grad(PROGRAMS[name])(X) for name in names}
    wrong = []

    def work(name):
        for _ in range(20):
            if not np.array_equal(grad(PROGRAMS[name])(X), wanted[name]):
                wrong.append(name)

    threads = [threading.Thread(target=work, args=(names[k % 4],)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_memory_is_given_back():
    f = PROGRAMS["more_elements_than_are_done_by_hand"]
    for _ in range(3):
        grad(f)(X)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(20):
        grad(f)(X)
        jvp(f, (X,), (V,))
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 1e5


def test_a_rule_of_the_users_is_the_one_that_counts():
    plaingrad.scalar_rule(np.square, lambda x, z: 7.0 * x)
    try:
        assert (grad(lambda x: np.square(x).sum())(X) == 7.0 * X).all()
        assert jvp(lambda x: np.square(x).sum(), (X,), (V,))[1] == pytest.approx((7.0 * X) @ V)
    finally:
        plaingrad.remove_rule(np.square)
    assert (grad(lambda x: np.square(x).sum())(X) == 2.0 * X).all()


def test_exceptions_and_read_only_arrays_are_those_of_the_plain_call():
    def f(x):
        y = x * 2.0
        try:
            y[9] = x[0]
        except IndexError as error:
            message = str(error)
        try:
            y[1:3] = x
        except ValueError as error:
            message += str(error)
        y.flags.writeable = False
        try:
            y += x
        except ValueError as error:
            message += str(error)
        try:
            y[0] = 1.0
        except ValueError as error:
            message += str(error)
        try:
            y @ x[:3]
        except ValueError as error:
            message += str(error)
        return y.sum(), message

    want = f(X)
    got = {}

    def g(x):
        total, got["message"] = f(x)
        return total

    assert (grad(g)(X) == 2.0).all()
    assert got["message"] == want[1]
    assert jvp(g, (X,), (V,))[1] == pytest.approx(2.0 * V.sum())
    assert got["message"] == want[1]


def test_memory_that_was_written_before_an_exception_counts():
    def f(x):
        y = x * 1.0
        z = y * y
        w = x * 1e307
        big = x * 1e307
        with np.errstate(over="raise"):
            for by in (1e308, np.full(4, 10.0)):
                try:
                    y *= by
                except FloatingPointError:
                    pass
            try:
                w += big
            except FloatingPointError:
                pass
        return (y[1:2] / 1e300).sum() + z[1:3].sum() + w[1] / 1e298

    x = np.array([0.5, 0.05, -0.1, 10.0])
    with np.errstate(all="ignore"):
        wanted = [0.0, 1e9 + 0.1 + 2e9, -0.2, 0.0]
        np.testing.assert_allclose(grad(f)(x), wanted, rtol=1e-7)
        _, y_dot = jvp(f, (x,), (np.array([0.1, 0.1, 0.1, 0.1]),))
    assert y_dot == pytest.approx(0.1 * sum(wanted), rel=1e-9)


def test_a_function_of_one_element_warns_as_often_as_in_the_plain_call():
    def f(x):
        return np.log(x[0] * 0.0) + np.sqrt(x[1]) + np.exp(x[2] * 1e4)

    with pytest.warns(RuntimeWarning) as plain:
        f(X)
    for derived in (grad(f), lambda x: jvp(f, (x,), (V,)), lambda x: hvp(f, (x,), (V,))):
        with pytest.warns(RuntimeWarning) as found:
            derived(X)
        assert sorted(str(w.message) for w in found) == sorted(str(w.message) for w in plain)


def test_an_overflow_warns_once_as_the_plain_call_does():
    def f(x):
        return (x * 1e308 * 10.0).sum()

    with pytest.warns(RuntimeWarning) as plain:
        f(X)
    with pytest.warns(RuntimeWarning) as found:
        grad(f)(X)
    assert [str(w.message) for w in found] == [str(w.message) for w in plain]


def test_nan_and_infinity_go_as_numpy_has_them():
    x = np.array([0.0, math.inf, math.nan, -1.0])
    with np.errstate(all="ignore"):
        found = grad(lambda x: (np.sqrt(x) + 1.0 / x + np.log(x) * 0.0).sum())(x)
    assert np.isnan(found[2])
    assert np.isinf(found[0]) or np.isnan(found[0])
    assert (grad(lambda x: (x * 2.0).sum())(x) == 2.0).all()
