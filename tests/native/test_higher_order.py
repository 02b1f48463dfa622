"""Second derivatives natively: the transform applied to what it made."""

import math
import threading
from typing import NamedTuple

import numpy as np
import pytest

import plaingrad
from plaingrad import derivative, grad, hessian, hvp, jvp, value_and_grad

numba = pytest.importorskip("numba")

from numba import types  # noqa: E402

from plaingrad.native.compile import build  # noqa: E402

F, VECTOR = types.float64, types.Array(types.float64, 1, "C")
X = np.linspace(0.3, 1.0, 6)


def loop_of_numbers(x, y, n):
    s = x
    for _ in range(n):
        s = math.sin(s) * 1.01 + 0.1 * y * x**2 + math.sqrt(abs(s)) + x**y + math.exp(-s / y)
        if s > 3:
            s = s - y / x
    return s


def while_loop(x, c):
    while x < c:
        x = x * x + 0.3 * x
        if x > 3:
            break
    return x * c


def stencil(u, c):
    for _ in range(3):
        v = u.copy()
        for i in range(1, u.shape[0] - 1):
            v[i] = u[i] + c * (u[i - 1] - 2 * u[i] + u[i + 1]) * u[i]
        u = v
    s = 0.0
    for i in range(u.shape[0]):
        s += u[i] ** 3
    return s


def in_place(u, c):
    v = u * c
    for i in range(1, u.size):
        v[i] = v[i] * v[i - 1] + math.tanh(u[i])
        v[i - 1] = v[i] * u[i]
    return np.sum(v * v)


def whole_arrays(u, c):
    w = np.tanh(u * c) * u + np.exp(u) - np.log(u) / u
    return np.sum(w * w) + w @ u + np.mean(u**3)


def products(a, b):
    m = np.outer(a, b)
    return np.sum((m @ m.T) @ a) + np.sum(m[0] * b)


@numba.njit
def inner(x, k):
    return x * x if k == 0 else math.sin(x) * inner(x, k - 1)


def recursive(x, y):
    return inner(x, 3) * y + inner(y, 2)


def extremes(x, y):
    return max(x * x, y) * min(x, y * y) + abs(x - y) ** 3 + math.atan2(x, y) + math.hypot(x, y)


class Point(NamedTuple):
    x: float
    v: np.ndarray


def structured(p, k):
    return p.x**2 * p.v[0] * k + p.v @ p.v * p.x


PROGRAMS = (
    (loop_of_numbers, (0, 1), 0.7, 0.6, 3),
    (while_loop, (0, 1), 0.9, 20.0),
    (stencil, (0, 1), X, 0.3),
    (in_place, (0, 1), X, 0.3),
    (whole_arrays, (0, 1), X, 0.3),
    (recursive, (0, 1), 0.8, 1.1),
    (extremes, (0, 1), 0.8, 0.7),
    (structured, (0, 1), Point(0.5, np.array([1.0, 2.0])), 3.0),
)


def flat(tree):
    """All numbers of a derivative as one vector."""
    if isinstance(tree, (tuple, list)):
        return np.concatenate([flat(part) for part in tree]) if tree else np.zeros(0)
    return np.ravel(np.asarray(tree, float))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program[0].__name__)
def test_hessians_equal_those_of_the_plain_tier(program):
    f, argnums, *args = program
    found = hessian(f, argnums, tier="native")(*args)
    expected = hessian(f, argnums, tier="plain")(*args)
    np.testing.assert_allclose(flat(found), flat(expected), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("program", [PROGRAMS[1], PROGRAMS[2]], ids=lambda program: program[0].__name__)
def test_products_with_a_hessian_equal_those_of_the_plain_tier(program):
    f, argnums, *args = program
    tangents = [np.cos(np.asarray(a)) if k in argnums else None for k, a in enumerate(args)]
    tangents = [t if t is None or t.shape else float(t) for t in tangents]
    found = hvp(f, args, tangents, tier="native")
    expected = hvp(f, args, tangents, tier="plain")
    for x, y in zip(found, expected, strict=True):
        assert (x is None) == (y is None)
        if x is not None:
            np.testing.assert_allclose(x, y, rtol=1e-11)


def test_a_hessian_is_the_closed_form():
    f = numba.njit(lambda x: np.sum(x[:-1] ** 2 * x[1:]))
    x = np.arange(1.0, 5.0)
    expected = np.zeros((4, 4))
    for k in range(3):
        expected[k, k] += 2 * x[k + 1]
        expected[k, k + 1] += 2 * x[k]
        expected[k + 1, k] += 2 * x[k]
    np.testing.assert_allclose(hessian(f)(x), expected, rtol=1e-14)
    np.testing.assert_allclose(hessian(f, chunk_size=2)(x), expected, rtol=1e-14)


def test_a_hessian_agrees_with_differences_of_native_gradients():
    g, h = grad(stencil, tier="native"), 1e-5
    found = hessian(stencil, tier="native")(X, 0.3)
    for k in range(X.size):
        e = np.zeros(X.size)
        e[k] = h
        np.testing.assert_allclose(
            found[:, k], (g(X + e, 0.3) - g(X - e, 0.3)) / (2 * h), rtol=1e-6, atol=1e-8
        )


@pytest.mark.parametrize(("x", "y"), [(0.0, 2.0), (-1.5, 2.0), (0.0, 1.0), (0.0, 0.0), (2.0, 3.0)])
def test_second_slopes_of_powers_at_special_points(x, y):
    f = numba.njit(lambda x, y: x**y)
    expected = y * (y - 1) * x ** max(y - 2, 0.0)
    assert hessian(f)(x, y) == expected


def test_the_mixed_second_slope_of_a_power_is_not_that_of_a_shortcut():
    ((_, mixed), (other, _)) = hessian(lambda x, y: x**y, (0, 1), tier="native")(3.0, 2.0)
    expected = 3.0 * (1 + 2.0 * math.log(3.0))
    assert math.isclose(mixed, expected) and math.isclose(other, expected)


def test_forward_over_forward_and_reverse_over_forward_are_the_same():
    signature = (F, F, types.int64)
    pushed = build.derived("pushforward", loop_of_numbers, signature, (0, 1)).run
    both = build.derived("pushforward", pushed, (*signature, F, F), (0, 1)).run
    back = build.derived("pullback", pushed, (*signature, F, F), (0, 1)).run
    args = 0.7, 0.6, 3
    expected = hessian(loop_of_numbers, (0, 1), tier="plain")(*args)
    along_x = [both(*args, 1.0, 0.0, *e)[-1] for e in ((1.0, 0.0), (0.0, 1.0))]
    np.testing.assert_allclose(along_x, expected[0], rtol=1e-11)
    np.testing.assert_allclose(back(*args, 1.0, 0.0, 0.0, 1.0)[-2:], expected[0], rtol=1e-11)


def test_random_numbers_are_not_drawn_for_each_chunk():
    with pytest.raises(plaingrad.NativeError, match="draws random numbers"):
        hessian(lambda x: x * x * np.random.random(), tier="native")(1.0)


def test_an_unknown_write_in_a_derived_program_is_refused():
    from plaingrad.native.analysis import helper_calls

    assert helper_calls.may_write(build.derived) and not helper_calls.may_write(math.sin)


# -- nested --------------------------------------------------------------------------------------------------------------


@numba.njit
def wave(x):
    return math.sin(x) * x**2


def first(x):
    return math.cos(x) * x**2 + 2 * x * math.sin(x)


def second(x):
    return -math.sin(x) * x**2 + 4 * x * math.cos(x) + 2 * math.sin(x)


def third(x):
    return -math.cos(x) * x**2 - 6 * x * math.sin(x) + 6 * math.cos(x)


@numba.njit
def cubic(a, c):
    return np.sum(a**3) * c + a[0] * a[1]


@pytest.mark.usefixtures("machine_code")
def test_gradients_of_gradients_of_numba_functions():
    x = 0.7
    assert math.isclose(grad(grad(wave))(x), second(x), rel_tol=1e-13)
    assert math.isclose(grad(grad(grad(wave)))(x), third(x), rel_tol=1e-13)
    assert math.isclose(derivative(grad(wave))(x), second(x), rel_tol=1e-13)
    assert math.isclose(derivative(wave, order=3)(x), third(x), rel_tol=1e-13)
    y, y_dot = jvp(grad(wave), (x,), (2.0,))
    assert math.isclose(y, first(x), rel_tol=1e-13) and math.isclose(y_dot, 2.0 * second(x), rel_tol=1e-13)


@pytest.mark.usefixtures("machine_code")
def test_a_gradient_inside_a_gradient_is_one_native_step(monkeypatch):
    from plaingrad.native.border import nested

    steps = []
    original = nested.Step.second
    monkeypatch.setattr(nested.Step, "second", lambda *args: steps.append(1) or original(*args))
    assert math.isclose(grad(lambda x: grad(wave)(x) * x)(0.7), second(0.7) * 0.7 + first(0.7), rel_tol=1e-13)
    assert steps


@pytest.mark.usefixtures("machine_code")
@pytest.mark.parametrize("tier", ["auto", "plain"])
def test_plain_code_around_a_native_gradient(tier):
    def loss(a, c):
        y, (a_bar, c_bar) = value_and_grad(cubic, (0, 1), tier=tier)(a * c, c)
        return y * c + np.sum(a_bar**2) * c_bar

    a, c, h = np.array([1.0, 2.0, 0.5]), 0.3, 1e-5
    a_bar, c_bar = grad(loss, (0, 1))(a, c)
    e = np.array([0.0, h, 0.0])
    assert math.isclose(c_bar, (loss(a, c + h) - loss(a, c - h)) / (2 * h), rel_tol=1e-7)
    assert math.isclose(a_bar[1], (loss(a + e, c) - loss(a - e, c)) / (2 * h), rel_tol=1e-7)


@pytest.mark.usefixtures("machine_code")
def test_chunks_of_a_level_go_through_a_native_gradient():
    a = np.array([1.0, 2.0, 0.5])
    found = plaingrad.jacobian(lambda a: grad(cubic)(a, 0.3) * 2.0, mode="forward")(a)
    np.testing.assert_allclose(found, 2.0 * hessian(cubic, tier="plain")(a, 0.3), rtol=1e-13)


def test_second_derivatives_of_plain_code_with_a_native_step():
    def f(a):
        return cubic(a * 2.0, 0.5) * a[0]

    def g(a):
        return cubic.py_func(a * 2.0, 0.5) * a[0]

    a, v = np.array([1.0, 2.0, 0.5]), np.ones(3)
    np.testing.assert_allclose(hessian(f)(a), hessian(g)(a), rtol=1e-13)
    np.testing.assert_allclose(hvp(f, (a,), (v,))[0], hvp(g, (a,), (v,))[0], rtol=1e-13)
    assert math.isclose(grad(lambda x: jvp(wave, (x,), (1.0,))[1])(0.7), second(0.7), rel_tol=1e-13)


def test_second_derivatives_in_threads_and_twice():
    found = {}

    def work(k):
        x = 0.5 + 0.1 * k
        found[k] = [(grad(grad(wave))(x), float(hessian(wave)(x))) for _ in range(20)]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for k in range(4):
        np.testing.assert_allclose(found[k], np.full((20, 2), second(0.5 + 0.1 * k)), rtol=1e-12)


# -- derivatives of functions of one number, linear maps ------------------------------------------------------------------


def spiral(t, n):
    x, y = 1.0, t
    for _ in range(n):
        x, y = x * math.cos(t) - y * 0.1, y + math.sin(x * t)
    return x, (y, n)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_derivatives_of_several_orders_equal_those_of_taylor_arithmetic(order):
    value, found = derivative(spiral, order, value=True, tier="native")(0.4, 3)
    y, expected = derivative(spiral, order, value=True, tier="plain")(0.4, 3)
    assert value == y
    np.testing.assert_allclose((found[0], found[1][0]), (expected[0], expected[1][0]), rtol=1e-12)


def test_a_derivative_of_high_order_is_refused_natively():
    with pytest.raises(plaingrad.NativeError, match="order up to 3"):
        derivative(wave, 4, tier="native")(0.3)


def test_a_derivative_with_an_array_for_a_result():
    found = derivative(lambda t, a: np.sin(a * t), 2, tier="native")(0.5, X)
    np.testing.assert_allclose(found, -(X**2) * np.sin(X * 0.5), rtol=1e-13)


def test_a_linear_map_is_used_many_times_and_keeps_its_point():
    def f(a, c):
        return a * c, np.sum(a * a) * c

    a = np.array([1.0, 2.0])
    y, f_jvp = plaingrad.linearize(f, a, 3.0, tier="native")
    a[:] = 99.0
    np.testing.assert_array_equal(y[0], [3.0, 6.0])
    assert y[1] == 15.0
    for scale in (1.0, -2.0):
        first_dot, second_dot = f_jvp(scale * np.array([1.0, 0.0]), scale * 0.5)
        np.testing.assert_allclose(first_dot, scale * np.array([3.5, 1.0]))
        assert math.isclose(second_dot, scale * (6.0 + 2.5))
    np.testing.assert_allclose(f_jvp(None, 1.0)[0], [1.0, 2.0])


def test_the_tangents_of_an_argument_that_is_written_stay_as_they_are():
    def f(a):
        a[0] = a[0] * a[1]
        return a[0] * a[0] + a[1]

    x, v = np.array([2.0, 3.0]), np.array([1.0, -1.0])
    found = hvp(f, (x,), (v,), tier="native")[0]
    np.testing.assert_array_equal(v, [1.0, -1.0])
    np.testing.assert_allclose(found, [2 * 9 * 1.0 + 4 * 6 * -1.0, 4 * 6 * 1.0 + 2 * 4 * -1.0])


def left_from_a_branch(x, v, n):
    s = 0.0
    for k in range(1, n):
        if x > v[k - 1]:
            if v[k] > 2.5:
                break
            s -= v[k] ** 2 * x**3
    return s


@pytest.mark.parametrize("last", [1.5, 3.0], ids=["to the end", "left"])
def test_a_loop_that_is_left_from_a_branch_of_a_branch_has_second_derivatives(last):
    v = np.array([0.5, -1.0, 2.0, 0.25, last, 0.75, 0.5])
    x, directions = 1.7, (0.4, np.linspace(-1.0, 1.0, 7), None)
    taken = [k for k in range(1, 4 if last > 2.5 else 7) if x > v[k - 1]]
    q, dq = sum(v[k] ** 2 for k in taken), sum(2 * v[k] * directions[1][k] for k in taken)
    of_v = np.zeros(7)
    for k in taken:
        of_v[k] = -2 * directions[1][k] * x**3 - 2 * v[k] * 3 * x**2 * 0.4
    found = hvp(left_from_a_branch, (x, v, 7), directions, tier="native")
    np.testing.assert_allclose(found[0], -q * 6 * x * 0.4 - dq * 3 * x**2, rtol=1e-12)
    np.testing.assert_allclose(found[1], of_v, rtol=1e-12)
    assert found[2] is None
