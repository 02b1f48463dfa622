"""Forward mode in chunks: many columns of a Jacobian, or a whole gradient, in one sweep."""

import math

import numpy as np
import pytest

import plaingrad
from plaingrad import grad, jacobian, value_and_grad

numba = pytest.importorskip("numba")

from numba import types  # noqa: E402

from plaingrad.native.compile import build  # noqa: E402
from plaingrad.native.border import call  # noqa: E402

BY_COLUMNS = True  # see conftest.py
VECTOR = types.Array(types.float64, 1, "C")
X = np.linspace(0.4, 1.3, 5)


def orbit(x, y, n):
    s = x
    for _ in range(n):
        s = math.sin(s) * 1.01 + 0.1 * y * x
        if s > 0.3:
            s = s - y / x
    return s, (s * y, n)


def by_elements(a, c):
    u = a.copy()
    for _ in range(3):
        v = np.zeros(u.shape[0])
        for i in range(1, u.shape[0] - 1):
            v[i] = u[i] + c * (u[i - 1] - 2 * u[i] + u[i + 1]) * u[i]
        v[0] = 1.0
        u = v
    return u


def by_arrays(a, c):
    u = a * np.sin(a) + c
    u[1:] *= a[:-1]
    u += c
    u *= u
    u /= a + 2.0
    u -= a[::-1]
    u[2:] = c
    return u, np.sum(u * a), u @ a, np.max(u), np.sum(np.exp(u[::2])), np.mean(u)


def matrices(a, b):
    m = np.outer(a, b)
    n = m.T @ m + np.diag(b)
    return n @ a, b @ m, (m * b).T.copy(), n.flatten()[1:4]


def helper(x, y):
    if x > y:
        return x * y
    return math.cos(x) - y


def calls(x, y):
    s = x
    for _ in range(3):
        s = helper(s, y) + y
    return s


def factorial(x, n):
    if n == 0:
        return x
    return x * factorial(x, n - 1) + n


def parts(p, scale):
    (a, b), v = p
    return a * b * v[0] * scale, v * a


def smallest(a):
    x = a[0]
    for k in range(1, a.size):
        x = min(x, a[k] * a[0])
    return x, max(x, 0.5) ** 3, abs(x - 1.0)


PROGRAMS = (
    (orbit, (0, 1), 0.3, 0.2, 5),
    (by_elements, (0, 1), X, 0.3),
    (by_arrays, (0, 1), X, 0.3),
    (matrices, (0, 1), X[:3].copy(), X[2:].copy()),
    (calls, (0, 1), 0.7, 0.4),
    (factorial, (0,), 1.3, 4),
    (parts, (0, 1), ((0.3, 2.0), X), 1.7),
    (smallest, (0,), X),
)


def flat(tree):
    """All numbers of a Jacobian as one vector."""
    if isinstance(tree, (tuple, list)):
        return np.concatenate([flat(part) for part in tree]) if tree else np.zeros(0)
    return np.zeros(0) if tree is None else np.ravel(np.asarray(tree, float))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program[0].__name__)
def test_columns_equal_the_plain_tier(program):
    f, argnums, *args = program
    found = jacobian(f, argnums, mode="forward", tier="native")(*args)
    expected = jacobian(f, argnums, mode="forward", tier="plain")(*args)
    np.testing.assert_allclose(flat(found), flat(expected), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("program", PROGRAMS[1:4], ids=lambda program: program[0].__name__)
def test_columns_compute_the_same_without_a_compiler(program):
    f, argnums, *args = program
    signature = call.signature_of(tuple(args))
    python = build.derived("columns4", f, signature, argnums).python
    out = python(*args, 2)
    expected = jacobian(f, argnums, mode="forward", tier="plain")(*args)
    total = 0
    for z, row in zip(out[: len(out) // 2], out[len(out) // 2 :], strict=True):
        assert np.shape(row) == (*np.shape(z), 4)
        total += np.sum(row, axis=tuple(range(np.ndim(z))))
    columns = sum(np.size(args[k]) for k in argnums)
    sums = np.zeros(columns + 4)
    for y in expected if isinstance(expected[0], tuple) else (expected,):
        start = 0
        for x, d in zip((args[k] for k in argnums), y, strict=True):
            d = np.reshape(d, (-1, np.size(x)))
            sums[start : start + np.size(x)] += d.sum(0)
            start += np.size(x)
    np.testing.assert_allclose(total, sums[2:6], rtol=1e-11, atol=1e-13)


def test_small_chunks_give_the_same_as_large_ones():
    expected = jacobian(by_elements, tier="plain")(X, 0.3)
    for size in (1, 3, 16):
        found = jacobian(by_elements, mode="forward", chunk_size=size, tier="native")(X, 0.3)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_rows_and_columns_are_the_same_jacobian():
    forward, reverse = (
        jacobian(by_elements, (0, 1), mode=m, tier="native")(X, 0.3) for m in ("forward", "reverse")
    )
    np.testing.assert_allclose(flat(forward), flat(reverse), rtol=1e-12, atol=1e-14)


def test_a_jacobian_of_many_inputs_and_few_results_is_found():
    x = np.linspace(0.0, 1.0, 300)
    found = jacobian(lambda a: (np.sum(a * a), np.sum(np.sin(a))), tier="native")(x)
    np.testing.assert_allclose(found[0], 2 * x)
    np.testing.assert_allclose(found[1], np.cos(x))


def test_an_argument_without_influence_has_columns_of_zeros():
    found = jacobian(lambda x, y: (x * x, 3.0), (0, 1), tier="native")(2.0, 5.0)
    assert found == ((4.0, 0.0), (0.0, 0.0))


def test_an_empty_argument_has_no_columns():
    found = jacobian(lambda a, x: a * x, (0,), tier="native")(np.zeros(0), 2.0)
    assert found[0].shape == (0, 0)


def test_float32_stays_float32():
    x = np.array([1.0, 2.0], np.float32)
    found = jacobian(lambda a: a * a, tier="native")(x)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [[2, 0], [0, 4]])


def test_arguments_that_are_written_are_as_after_one_call():
    def f(a):
        a[0] = a[0] * a[1]
        return a * 2.0

    x = np.linspace(1.0, 2.0, 20)
    y = x.copy()
    found = jacobian(f, mode="forward", tier="native", chunk_size=8)(x)
    expected = jacobian(f, tier="plain")(y)
    np.testing.assert_allclose(found, expected)
    np.testing.assert_array_equal(x, y)


def test_complex_jacobians_are_those_of_the_plain_tier():
    f = numba.njit(lambda z: z * z + 1j * z)
    found = jacobian(f)(np.array([1.0 + 2.0j, 0.5]))
    np.testing.assert_allclose(found, np.diag([2 + 5j, 1 + 1j]))


def test_an_njit_function_is_differentiated_by_columns_without_being_asked():
    f = numba.njit(by_elements)
    np.testing.assert_allclose(jacobian(f)(X, 0.3), jacobian(by_elements, tier="plain")(X, 0.3), rtol=1e-12)


def test_a_gradient_of_few_inputs_is_one_sweep_forward(monkeypatch):
    asked = []
    original = build.derived
    monkeypatch.setattr(build, "derived", lambda mode, *rest: asked.append(mode) or original(mode, *rest))

    def f(p, x):
        s = x
        for _ in range(20):
            s = s * p[0] + p[1] * math.sin(s)
        return s

    p = np.array([0.9, 0.3])
    found = value_and_grad(f, (0, 1), tier="native")(p, 0.5)
    expected = value_and_grad(f, (0, 1), tier="plain")(p, 0.5)
    assert found[0] == expected[0]
    np.testing.assert_allclose(flat(found[1]), flat(expected[1]), rtol=1e-13)
    assert found[1][0].shape == (2,) and type(found[1][1]) is float
    assert asked[-1] == "gradient4"


@pytest.mark.usefixtures("machine_code")
def test_an_infinite_slope_does_not_poison_other_arguments():
    assert grad(lambda x, y: math.sqrt(x) + y * y, (0, 1), tier="native")(0.0, 1.0) == (math.inf, 2.0)


def test_exceptions_are_those_of_the_function():
    def f(x):
        if x > 1.0:
            raise ValueError("too large")
        return x

    with pytest.raises(ValueError, match="too large"):
        grad(f, tier="native")(2.0)
    assert grad(f, tier="native")(0.5) == 1.0


def test_a_function_that_draws_random_numbers_is_not_called_twice():
    def f(a):
        return a * np.random.random()

    with pytest.raises(plaingrad.NativeError, match="draws random numbers"):
        jacobian(f, mode="forward", tier="native")(np.ones(40))


def projected(camera, point, weight, feature):
    x, y, z = camera[0] * point[0] - camera[1], point[1] * camera[-1], point[2] + camera[2] ** 2
    r = (x * x + y * y) / (z * z)
    scale = 1.0 + camera[3] * r if r > 0.0 else 1.0
    return weight * (x / z * scale - feature[0]), weight * (y / z * scale - feature[1])


def test_a_compiled_jacobian_is_called_from_compiled_loops():
    rng = np.random.default_rng(5)
    cameras, points, weights, features = (rng.uniform(0.5, 1.5, s) for s in ((3, 4), (2, 3), 6, (6, 2)))
    jac = plaingrad.compiled_jacobian(projected, cameras[0], points[0], 1.0, features[0], argnums=(0, 1, 2))

    @numba.njit
    def every(out, values):
        for i in range(weights.size):
            values[i, 0], values[i, 1] = jac(cameras[i % 3], points[i % 2], weights[i], features[i], out[i])

    out, values = np.full((6, 2, 8), np.nan), np.empty((6, 2))
    every(out, values)
    for i in range(6):
        args = cameras[i % 3], points[i % 2], float(weights[i]), features[i]
        rows = jacobian(projected, (0, 1, 2), tier="plain")(*args)
        np.testing.assert_allclose(out[i], [flat(row) for row in rows], rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(values[i], projected(*args), rtol=1e-15)


def test_a_compiled_jacobian_of_arrays_has_a_row_for_each_number():
    f = numba.njit(lambda a, b: (a * b[0], np.sum(b)))
    a, b = np.arange(1.0, 4.0), np.linspace(1.0, 2.0, 20)
    out = np.empty((4, 23))
    plaingrad.compiled_jacobian(f, a, b, argnums=(0, 1))(a, b, out)
    expected = np.zeros((4, 23))
    expected[:3, :3] = np.eye(3)
    expected[:3, 3] = a
    expected[3, 3:] = 1.0
    np.testing.assert_allclose(out, expected)


def test_a_matrix_of_the_wrong_shape_is_refused_by_a_compiled_jacobian():
    jac = plaingrad.compiled_jacobian(lambda a: (a[0], a[1] * a[0]), np.ones(2))
    for shape in ((2, 3), (1, 2)):
        with pytest.raises(ValueError, match="matrix for a Jacobian"):
            jac(np.ones(2), np.zeros(shape))


def test_a_unit_tangent_is_found_from_the_end_and_in_matrices():
    def f(m, v):
        return m[-1, 0] * v[-2], m[0, -1] * m[1, 2]

    m, v = np.arange(1.0, 7.0).reshape(2, 3), np.array([3.0, 5.0])
    found = jacobian(f, (0, 1), tier="native")(m, v)
    np.testing.assert_allclose(flat(found), flat(jacobian(f, (0, 1), tier="plain")(m, v)))


def test_a_copy_of_a_constant_array_that_is_the_first_of_several_states_has_tangents_of_zero():
    def heated(p, u0):
        u = u0.copy()
        for _ in range(2):
            v = u.copy()
            for i in range(1, u.shape[0] - 1):
                v[i] = u[i] + p[0] * (u[i - 1] - 2 * u[i] + u[i + 1]) * p[1]
            u = v
        return u[1] * u[2]

    p, u0 = np.array([0.3, 0.7]), np.array([1.0, 3.0, -1.0, 2.0, 5.0])
    native, plain = (grad(heated, tier=tier)(p, u0) for tier in ("native", "plain"))
    np.testing.assert_allclose(native, plain, rtol=1e-13)
