"""Numeric programs, natively: against central differences and against the plain tier."""

import math

import numpy as np
import pytest

import plaingrad

numba = pytest.importorskip("numba")


def straight(x, y):
    return math.sin(x) * y + x / y - x**2


def loop(x, n):
    s = x
    for _ in range(n):
        s = math.sin(s) * 1.01 + 0.1 * x
    return s


def recurrence_in_an_array(x, n):
    a = np.zeros(n)
    a[0] = x
    for i in range(1, n):
        a[i] = a[i - 1] * x + math.cos(a[i - 1])
    s = 0.0
    for i in range(n):
        if a[i] > 1.0:
            s += a[i] ** 2
        else:
            s -= a[i] * x
    return s


def while_with_break(x, c):
    while x < c:
        x = x * x + 0.3 * x
        if x > 3:
            break
    return x * c


def swapped_buffers(u, n, c):
    for _ in range(n):
        v = u.copy()
        for i in range(1, u.shape[0] - 1):
            v[i] = u[i] + c * (u[i - 1] - 2 * u[i] + u[i + 1]) * u[i]
        u = v
    return np.sum(u * u)


def matrices(A, x):
    for _ in range(3):
        x = np.tanh(A @ x) + x * 0.1
    return np.dot(x, x) + np.sum(A[0])


def tuple_assignment(p, n):
    x = p[0]
    y = p[1]
    for _ in range(n):
        k1 = x * p[2] - x * y
        k2 = -y * p[3] + x * y
        x, y = x + 0.01 * k1, y + 0.01 * k2
    return x + y


def nested_loops(x, n):
    s = 0.0
    for i in range(n):
        r = x[i]
        for j in range(i):
            t = x[j] * r
            while t > 0.5:
                t = t * 0.5
                r = r * 0.9
            s += t * r
    return s


def helper(a, b):
    return a * b + math.exp(a)


def calls(x, y):
    s = 0.0
    for _ in range(4):
        s = helper(s * 0.1, x) + helper(x, y)
    return s


def writes_into_its_argument(a, b):
    for i in range(a.shape[0]):
        for j in range(a.shape[1] - 1, -1, -1):
            a[i, j] += a[i, j - 1] * b if j > 0 else b
    a *= b
    r = a[1]
    r[0] = 7.0 * b
    return a.sum()


def early_returns(x):
    if x[0] > 0:
        return x[1] * 2
    for i in range(3):
        if x[i] > 1:
            return x[i] * x[0]
        x[i] = x[i] * 3
    return max(x[0], x[1], x[2])


def slices(x):
    y = np.empty(3)
    y[:2] = x[1:] * x[:-1]
    y[2] = x[0]
    z = np.exp(y) / x + x.mean()
    return (z**2).sum()


def loop_with_else(x, n):
    for i in range(n):
        for j in range(n):
            if x + i * j > 7:
                return x * i
            if j == 3:
                break
        else:
            x += 1 * x
        if x > 4:
            x -= 0.5
    else:
        x *= 2
    return x


def enumerated(v, w):
    s = 0.0
    for k, x in enumerate(v):
        if x < 0:
            continue
        s += k * x * x
    for x, y in zip(v, w):
        s += x * y
    return s


RANDOM = np.random.default_rng(0)
PROGRAMS = [
    (straight, 1.3, 2.1),
    (loop, 0.3, 10),
    (loop, 0.3, 0),
    (recurrence_in_an_array, 0.8, 6),
    (while_with_break, 0.9, 2.5),
    (while_with_break, 0.9, 50.0),
    (while_with_break, 2.0, 1.0),
    (swapped_buffers, RANDOM.random(7), 4, 0.1),
    (matrices, RANDOM.random((3, 3)), RANDOM.random(3)),
    (tuple_assignment, np.array([1.0, 0.5, 1.1, 0.7]), 5),
    (nested_loops, RANDOM.random(5) + 0.5, 5),
    (calls, 0.3, 0.7),
    (writes_into_its_argument, RANDOM.random((2, 3)), 0.7),
    (early_returns, np.array([0.1, 2.0, 3.0])),
    (early_returns, np.array([-0.1, 2.0, 3.0])),
    (early_returns, np.array([-0.1, 0.2, 0.03])),
    (slices, np.array([0.1, 0.2, 0.5])),
    (loop_with_else, 0.7, 3),
    (loop_with_else, 3.1, 5),
    (enumerated, np.array([1.0, -2.0, 3.0]), np.array([0.5, 0.25, 2.0, 9.0])),
]


def copied(args):
    return [x.copy() if isinstance(x, np.ndarray) else x for x in args]


def differentiated(args):
    """The positions of real arguments."""
    return tuple(k for k, x in enumerate(args) if isinstance(x, (float, np.ndarray)))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program[0].__name__)
def test_gradients_agree_with_differences_and_with_the_plain_tier(program):
    f, *args = program
    at = differentiated(args)
    plain_args = copied(args)
    plain_value = f(*plain_args)
    native_args = copied(args)
    value, gradient = plaingrad.value_and_grad(f, at, tier="native")(*native_args)
    assert math.isclose(value, plain_value, rel_tol=1e-13)
    for left, plain in zip(native_args, plain_args, strict=True):
        np.testing.assert_allclose(left, plain, rtol=1e-13)
    plain_gradient = plaingrad.grad(f, at, tier="plain")(*copied(args))
    for g, p in zip(gradient, plain_gradient, strict=True):
        np.testing.assert_allclose(g, p, rtol=1e-12, atol=1e-13)
    for k, g in zip(at, gradient, strict=True):
        along = np.random.default_rng(1).normal(size=np.shape(args[k]))

        def value_at(step, k=k, along=along):
            moved = copied(args)
            moved[k] = moved[k] + step * along
            return f(*moved)

        def central(h, value_at=value_at):
            return (value_at(h) - value_at(-h)) / (2 * h)

        expected = float(np.sum(g * along))
        errors = [abs((4 * central(h / 2) - central(h)) / 3 - expected) for h in (1e-3, 1e-4, 1e-5)]
        assert min(errors) <= 1e-7 * max(1.0, abs(expected))


def test_a_numba_function_is_native_by_default_and_one_step_inside_plain_code():
    compiled = numba.njit(loop)
    assert math.isclose(plaingrad.grad(compiled)(0.3, 10), plaingrad.grad(loop)(0.3, 10), rel_tol=1e-13)
    inside = plaingrad.grad(lambda x: compiled(x * 2.0, 5) ** 2)(0.3)
    assert math.isclose(inside, plaingrad.grad(lambda x: loop(x * 2.0, 5) ** 2)(0.3), rel_tol=1e-13)


@pytest.mark.usefixtures("machine_code")
def test_numba_functions_under_nested_derivatives_and_in_forward_mode():
    compiled = numba.njit(loop)
    second = plaingrad.grad(plaingrad.grad(loop))(0.3, 10)
    assert math.isclose(plaingrad.grad(plaingrad.grad(compiled))(0.3, 10), second, rel_tol=1e-12)
    first = plaingrad.grad(loop)(0.3, 10)
    assert math.isclose(plaingrad.jvp(compiled, (0.3, 10), (1.0, None))[1], first, rel_tol=1e-12)


def test_a_numba_function_that_writes_its_argument_inside_plain_code():
    @numba.njit
    def fill(a):
        a[0] = a[1] * 2
        return a.sum()

    np.testing.assert_allclose(plaingrad.grad(lambda a: fill(a * 3.0))(np.ones(3)), [0.0, 9.0, 3.0])


def test_exceptions_are_those_of_the_primal():
    def f(x, a):
        if x > 1:
            raise ValueError("too large")
        return x * a[0]

    gradient = plaingrad.grad(f, tier="native")
    assert gradient(0.5, np.array([3.0])) == 3.0
    with pytest.raises(ValueError, match="too large"):
        gradient(2.0, np.array([3.0]))
    with pytest.raises(ZeroDivisionError):
        plaingrad.grad(lambda x: 1.0 / x, tier="native")(0.0)


def test_what_cannot_be_compiled_is_refused_with_a_way_out():
    with pytest.raises(plaingrad.NativeError, match="tier='plain'"):
        plaingrad.grad(lambda x: {"a": x}["a"] * len(str(x)), tier="native")(1.0)


def test_two_names_of_an_array_that_is_written_are_refused():
    def f(a, b):
        a[0] = b[1] * 2.0
        return a.sum() + b.sum()

    x = np.ones(3)
    with pytest.raises(plaingrad.AliasError):
        plaingrad.grad(f, (0, 1), tier="native")(x, x)


def test_tuples_have_gradients_of_their_structure():
    def f(p, a):
        (x, y), z = p
        return x * y + np.sum(z) * a

    g = plaingrad.grad(f, (0, 1), tier="native")(((1.0, 2.0), np.ones(3)), 0.5)
    assert g[0][0] == (2.0, 1.0)
    np.testing.assert_array_equal(g[0][1], [0.5, 0.5, 0.5])
    assert g[1] == 3.0


def test_a_derivative_that_numba_cannot_compile_is_taken_in_the_plain_tier():
    @numba.njit
    def f(x):
        return math.lgamma(x) * x

    expected = plaingrad.grad(f.py_func)(1.7)
    assert math.isclose(plaingrad.grad(f)(1.7), expected, rel_tol=1e-13)
    assert math.isclose(plaingrad.grad(lambda x: f(2.0 * x))(0.85), 2.0 * expected, rel_tol=1e-13)


def test_a_class_that_answers_for_its_fields_with_anything_is_no_container():
    class Odd:
        def __getattribute__(self, name):
            return 7 if name == "__dict__" else object.__getattribute__(self, name)

    odd = Odd()
    assert plaingrad.grad(lambda x: (x, odd)[0] * 2.0)(1.0) == 2.0
