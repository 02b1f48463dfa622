"""Second derivatives of programs over arrays, against hyper-dual numbers in arrays of objects.

The way back of reverse mode inside forward mode carries cotangents of arrays with their tangents: in the compiled core
as two sets of arrays. The same programs run where the core is not in use.
"""

import math
import threading

import mpmath
import numpy as np
import pytest

import plaingrad
from plaingrad import grad, hessian, hvp, jvp, vhp, vjp

X = np.array([0.7, -1.2, 0.4, 1.9, -0.6, 1.1])
V = np.array([0.3, 1.0, -0.5, 0.2, 0.8, -1.1])
A = np.cos(np.arange(36.0)).reshape(6, 6)


class HyperDual:
    """x + a e + b i + c e i with e * e = i * i = 0: the second derivative along two directions is `c`."""

    def __init__(self, x, a=0.0, b=0.0, c=0.0):
        self.parts = x, a, b, c

    def through(self, z, slope, curvature):
        _, a, b, c = self.parts
        return HyperDual(z, slope * a, slope * b, slope * c + curvature * a * b)

    def __add__(self, other):
        if isinstance(other, np.ndarray):
            return NotImplemented
        return HyperDual(*(p + q for p, q in zip(self.parts, lifted(other), strict=True)))

    __radd__ = __add__

    def __neg__(self):
        return HyperDual(*(-p for p in self.parts))

    def __sub__(self, other):
        if isinstance(other, np.ndarray):
            return NotImplemented
        return self + -HyperDual(*lifted(other))

    def __rsub__(self, other):
        return HyperDual(*lifted(other)) + -self

    def __mul__(self, other):
        if isinstance(other, np.ndarray):
            return NotImplemented
        x, a, b, c = self.parts
        y, d, e, f = lifted(other)
        return HyperDual(x * y, x * d + a * y, x * e + b * y, x * f + a * e + b * d + c * y)

    __rmul__ = __mul__

    def __truediv__(self, other):
        if isinstance(other, np.ndarray):
            return NotImplemented
        y = lifted(other)[0]
        return self * HyperDual(*lifted(other)).through(1 / y, -1 / y**2, 2 / y**3)

    def __rtruediv__(self, other):
        return HyperDual(*lifted(other)) / self

    def __pow__(self, n):
        x = self.parts[0]
        return self.through(x**n, n * x ** (n - 1), n * (n - 1) * x ** (n - 2))

    def exp(self):
        z = math.exp(self.parts[0])
        return self.through(z, z, z)

    def log(self):
        x = self.parts[0]
        return self.through(math.log(x), 1 / x, -1 / x**2)

    def sqrt(self):
        z = math.sqrt(self.parts[0])
        return self.through(z, 0.5 / z, -0.25 / z**3)

    def tanh(self):
        z = math.tanh(self.parts[0])
        return self.through(z, 1 - z * z, -2 * z * (1 - z * z))

    def sin(self):
        s, c = math.sin(self.parts[0]), math.cos(self.parts[0])
        return self.through(s, c, -s)

    def cos(self):
        s, c = math.sin(self.parts[0]), math.cos(self.parts[0])
        return self.through(c, -s, -c)


def lifted(x):
    return x.parts if isinstance(x, HyperDual) else (float(x), 0.0, 0.0, 0.0)


def second(f, x, v):
    """The Hessian of `f` at `x` times `v`."""
    units = np.eye(x.size).reshape(x.size, *x.shape)

    def at(unit):
        numbers = [HyperDual(*parts) for parts in zip(x.flat, v.flat, unit.flat, strict=True)]
        made = np.empty(len(numbers), object)
        made[:] = numbers
        return f(made.reshape(x.shape)).parts[3]

    return np.array([at(unit) for unit in units]).reshape(x.shape)


PROGRAMS = {}


def program(f):
    PROGRAMS[f.__name__] = f
    return f


@program
def quotients_of_arrays_and_numbers(x):
    s = x[1] * x[2]
    y = x / (x * x + 2.0) - s / (x * x + 1.0) + x / s
    z = 2.0 / (s * s + 1.0) * y / (y * y + s * s)
    return (z / 4.0 + y / (s * s + 3.0)).sum() * s


@program
def operands_that_are_the_same(x):
    y = x * x - x
    return (y * y + y / y - (y + y) * y + y @ y * (y - y)).sum() + (y * y / y).sum()


@program
def broadcast_to_few_and_to_many(x):
    m = x[:, None] * x[None, :3] - x[:3] / (x[3:] * x[3:] + 1.0)
    s = x[0] * x[5]
    n = m * s + s - m[:2][0] * x.reshape(6, 1)
    k = np.zeros((2, 3)) + s
    return (n * m).sum() + (k * k / (s * s + 2.0)).sum() + (x[:1] * m.T).sum()


@program
def views_that_overlap(x):
    y = x * x
    z = y[1:] * y[:-1] + x[::-1][1:] * y[:5]
    z[1:] += z[:-1] * x[0]
    w = y[::-2] * z[::2]
    w[::-1] -= y[1:4] * w
    m = y.reshape(2, 3).T
    m[1] = x[2:4] * m[0]
    return (w * w).sum() + (z * y[1:]).sum() + (m * m).sum() + (y * y[::-1]).sum()


@program
def written_in_place(x):
    y = x * 1.0
    z = y * y
    y[1:] += x[:-1] * z[1:]
    y *= 0.5
    y[::2] /= 3.0
    y -= x[0] * x[1]
    u = y * z
    y[2:4] = x[3:5] * x[4:]
    y[-1] = x[0] * x[1]
    y[0] = 2.0
    y[3:5] = x[2]
    w = u * y
    y[...] = w * 0.5
    z += y
    z[:3] -= x[1]
    return (z * w).sum() + (y * u).sum()


@program
def elements_read_and_written(x):
    y = x * x
    m = y.reshape(2, 3) * 1.0
    for k in range(1, 6):
        y[k] = y[k] * x[k - 1] + y[k - 1] * m[k % 2, k % 3]
        m[1, -1] = y[k] * m[0, 0]
    y[0] = m[1, 2]
    return y[0] * y[5] + (y * x).sum() + (m * m).sum() + m[0, 1] * y[1:4].sum()


@program
def products_of_matrices_and_vectors(x):
    m = x.reshape(2, 3) * x.reshape(2, 3)
    n = m @ m.T
    y = A @ x
    k = (A * x)[:3, 1:4]
    return (
        (x @ y) * (x[:3] @ m[1])
        + (n @ n).sum()
        + (n * (m @ A[:3, :2])).sum()
        + (x[:2] @ m) @ m[0]
        + ((k @ k)[1] * (k @ k[0])).sum()
        + (x[::2] @ k) @ x[3:]
        + np.dot(y[::-1], x)
    )


@program
def sums_and_means_over_axes(x):
    m = x.reshape(2, 3) * x.reshape(2, 3)
    return (
        (m.sum(axis=0) * x[:3]).sum() * m.mean()
        + (m.sum(1) * m.sum(axis=1)).sum()
        + (m.mean(axis=0) @ m[1])
        + m[:, 1:].sum(axis=0)[1] * m.T.sum(axis=0)[0]
        + np.sum(x[1:4]) * np.mean(x[::2])
    )


@program
def functions_of_arrays(x):
    y = x * x + 0.5
    z = np.exp(-y) + np.tanh(x) * np.sqrt(y) + np.log(y) + np.sin(x * 2.0) * np.cos(y) - x**2 + y**3
    return (z * z + np.square(y[::-1]) * -z + np.sqrt(y[1:].sum()) + np.sin(x[1:])[0] + np.exp(-x[::-1])).sum()


@program
def arrays_made_of_numbers(x):
    a, b, c = x[0] * x[1], x[2] * x[2], x[3] / x[4]
    y = np.array([a, b, c, a * c])
    m = np.array([[a, b], [c, x[5]]])
    return y @ y * b + (m @ m[0]).sum() + (m * m).sum() * (y * a).sum()


@program
def steps_that_are_not_compiled(x):
    y = x * x
    y[[0, 2]] = y[3:5] * x[1]
    t = y[1] * y[4]
    m = np.concatenate([y, y[::-1] * t]).reshape(3, 4)
    y[1:] *= x[:-1]
    k = np.where(X > 0, y * x, x * t)
    k[1:3] -= m[1, 2:]
    return (m[:, [0, 2]] * k[:3, None]).sum() + (np.outer(y, k) * A).sum() + (y * k).sum() * m[0, 0]


@program
def columns_first(x):
    f = np.asfortranarray(A) * x
    f[1:, 2] += x[1:]
    f[0] = x * x
    g = f.T * f
    f[:, 3] *= 2.0
    g[2:4, 1] = x[:2] * x[1]
    return (f * g).sum() + f[2, 3] * g[4, 1] + (f @ x) @ g[:, 5]


@program
def more_than_a_few_elements(x):
    y = np.zeros(70) + x[0] * x[1]
    z = (y * np.linspace(0.0, 1.0, 70) + x[2]) * y
    m = z.reshape(7, 10) * x[3]
    m += m.mean()
    return (np.sin(m[:, ::2]) * m[:, 1::2]).sum() / 50 + (m.sum(axis=0) * m[2]).sum() / 100


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("layout", ["its own", "every second", "backwards"])
def test_a_hessian_times_a_direction_is_that_of_hyper_dual_numbers(name, layout):
    f, wanted = PROGRAMS[name], second(PROGRAMS[name], X, V)
    x, v = X.copy(), V.copy()
    if layout == "every second":
        x, v = np.repeat(x, 2)[::2], np.repeat(v, 3)[::3]
    elif layout == "backwards":
        x = x[::-1].copy()[::-1]
    (found,) = hvp(f, (x,), (v,))
    np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-10 * (1 + abs(wanted).max()))
    gradient, dot = jvp(grad(f), (x,), (v,))
    np.testing.assert_array_equal(gradient, grad(f)(x))
    np.testing.assert_allclose(dot, wanted, rtol=1e-11, atol=1e-10 * (1 + abs(wanted).max()))
    assert (x == X).all()


@pytest.mark.parametrize("name", ["views_that_overlap", "written_in_place", "products_of_matrices_and_vectors"])
def test_a_hessian_has_such_columns_and_is_symmetric(name):
    found = hessian(PROGRAMS[name])(X)
    wanted = np.array([second(PROGRAMS[name], X, unit) for unit in np.eye(6)])
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found, found.T, rtol=1e-10, atol=1e-10)


FUNCTIONS = {
    np.sin: mpmath.sin,
    np.cos: mpmath.cos,
    np.tan: mpmath.tan,
    np.arcsin: mpmath.asin,
    np.arccos: mpmath.acos,
    np.arctan: mpmath.atan,
    np.sinh: mpmath.sinh,
    np.cosh: mpmath.cosh,
    np.tanh: mpmath.tanh,
    np.arcsinh: mpmath.asinh,
    np.arctanh: mpmath.atanh,
    np.exp: mpmath.exp,
    np.exp2: lambda x: mpmath.mpf(2) ** x,
    np.expm1: mpmath.expm1,
    np.log: mpmath.log,
    np.log1p: mpmath.log1p,
    np.log2: lambda x: mpmath.log(x, 2),
    np.log10: mpmath.log10,
    np.sqrt: mpmath.sqrt,
    np.cbrt: mpmath.cbrt,
    np.square: lambda x: x * x,
    np.negative: lambda x: -x,
    np.reciprocal: lambda x: 1 / x,
    np.radians: mpmath.radians,
}


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("is_view", [False, True])
def test_second_and_mixed_derivatives_of_functions_of_arrays(f, is_view):
    x, v, w = np.array([0.15, 0.3, 0.62, 0.93]), np.array([1.0, -0.5, 0.25, 2.0]), np.array([0.5, 1.5, -1.0, 2.0])
    with mpmath.workdps(60):
        slope, curvature = ([float(mpmath.diff(FUNCTIONS[f], mpmath.mpf(t), n)) for t in x] for n in (1, 2))
    part = slice(None, None, -1) if is_view else slice(None)
    (found,) = hvp(lambda x: (f((x * 1.0)[part]) * w[part]).sum(), (x,), (v,))
    np.testing.assert_allclose(found, w * curvature * v, rtol=1e-12, atol=1e-14)
    by_x, by_w = hvp(lambda x, w: (f(x[part]) * w[part]).sum(), (x, w), (v, w))
    np.testing.assert_allclose(by_x, w * (np.array(curvature) * v + slope), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(by_w, slope * v, rtol=1e-12, atol=1e-14)


def roots(a, b):
    z, w = complex(a, b), complex(0.3 * b, a)
    for k in range(1, 5):
        z = z - (z * z * z - w * a) / (3.0 * z * z + b) + 2 - 1j
        w = -w / (z + 2.5) + w**3 * 0.1 - b / (w + 3) + a**k
        w *= z
        z += 0.1j * b - z.conjugate() * abs(w) * 0.01
        if abs(w) > 3:
            w = w * 0.1
    return (z * w).real + abs(z) * z.imag


def in_parts(a, b):
    """`roots` of hyper-dual numbers, with real and imaginary parts."""

    def times(x, y):
        return x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]

    def plus(*terms):
        return sum((t[0] for t in terms), 0.0), sum((t[1] for t in terms), 0.0)

    def by(x, y):
        d = y[0] * y[0] + y[1] * y[1]
        return (x[0] * y[0] + x[1] * y[1]) / d, (x[1] * y[0] - x[0] * y[1]) / d

    def scaled(x, s):
        return x[0] * s, x[1] * s

    def size(x):
        return (x[0] * x[0] + x[1] * x[1]).sqrt()

    z, w = (a, b), (0.3 * b, a)
    for k in range(1, 5):
        zz = times(z, z)
        step = by(plus(times(zz, z), scaled(scaled(w, a), -1.0)), plus(scaled(zz, 3.0), (b, 0.0)))
        z = plus(z, scaled(step, -1.0), (2.0, -1.0))
        cube = times(times(w, w), w)
        w = plus(
            scaled(by(w, plus(z, (2.5, 0.0))), -1.0),
            scaled(cube, 0.1),
            scaled(by((b, 0.0), plus(w, (3.0, 0.0))), -1.0),
            (a**k, 0.0),
        )
        w = times(w, z)
        z = plus(z, (0.0, 0.1 * b), scaled((z[0], -z[1]), size(w) * -0.01))
        if size(w).parts[0] > 3:
            w = scaled(w, 0.1)
    return times(z, w)[0] + size(z) * z[1]


def test_complex_numbers_in_second_derivatives():
    at, along = (0.8, 0.7), (0.4, -1.3)
    found = hvp(roots, at, along)
    pairs = list(zip(at, along, strict=True))
    for k, value in enumerate(found):
        duals = [HyperDual(x, v, float(k == n)) for n, (x, v) in enumerate(pairs)]
        assert value == pytest.approx(in_parts(*duals).parts[3], rel=1e-10)
    y, dot = jvp(grad(roots, (0, 1)), at, along)
    np.testing.assert_allclose(dot, found, rtol=1e-12)
    np.testing.assert_allclose(y, grad(roots, (0, 1))(*at), rtol=1e-14)
    np.testing.assert_allclose(vhp(roots, at, along), found, rtol=1e-10)


FUNCTIONS_OF_TWO = {
    "hypot": (math.hypot, mpmath.hypot),
    "atan2": (math.atan2, mpmath.atan2),
    "power": (lambda a, b: a**b, lambda a, b: a**b),
}


@pytest.mark.parametrize("name", FUNCTIONS_OF_TWO)
@pytest.mark.parametrize("at", [(0.7, 1.3), (2.5, -0.4), (1e-3, 3.0), (3.0, 2.0)])
def test_second_derivatives_of_functions_of_two_numbers(name, at):
    f, truth = FUNCTIONS_OF_TWO[name]
    v = np.array([0.3, -1.2])
    with mpmath.workdps(60):
        place = tuple(map(mpmath.mpf, at))
        table = {n: float(mpmath.diff(truth, place, n)) for n in ((2, 0), (1, 1), (0, 2))}
    wanted = np.array([[table[2, 0], table[1, 1]], [table[1, 1], table[0, 2]]])
    np.testing.assert_allclose(hvp(f, at, tuple(v)), wanted @ v, rtol=1e-13, atol=1e-16)
    np.testing.assert_allclose(hvp(lambda x: f(x[0] * 1.0, x[1]), (list(at),), (list(v),))[0], wanted @ v, rtol=1e-13, atol=1e-16)
    for k in range(2):  # one of them moves, or is active, only
        only = lambda x, k=k: f(*(x if n == k else at[n] for n in range(2)))
        assert hvp(only, (at[k],), (1.0,))[0] == pytest.approx(wanted[k, k], rel=1e-13)
        _, mixed = jvp(lambda y, k=k: grad(lambda x: f(*((x, y) if k == 0 else (y, x))))(at[k]), (at[1 - k],), (1.0,))
        assert mixed == pytest.approx(wanted[0, 1], rel=1e-13)


def test_arguments_in_lists_tuples_and_objects():
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    def rosenbrock(x):
        return sum(100.0 * (b - a * a) ** 2 + (1.0 - a) ** 2 for a, b in zip(x[:-1], x[1:], strict=True))

    x, v = list(X), list(V)
    wanted = second(lambda x: rosenbrock(list(x)), X, V)
    for kind in (list, tuple):
        (found,) = hvp(rosenbrock, (kind(x),), (kind(v),))
        assert type(found) is kind
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert x == list(X)
    shared = [0.5, 2.0]
    both = hvp(lambda x, y: x[0] * y[1] ** 2 + y[0], (shared, shared), ([1.0, 2.0], [1.0, 2.0]))
    np.testing.assert_allclose(both[0], [2 * 2.0 * 2.0, 2 * 2.0 * 1.0 + 2 * 0.5 * 2.0])
    (found,) = hvp(lambda p: p.a * p.b**2, (Pair(0.5, 2.0),), ({"a": 1.0, "b": 2.0},))
    assert (found["a"], found["b"]) == (8.0, 6.0)
    first, second_, third = hvp(lambda a, b, c: a * b[0] ** 2 * c[1], (2.0, (3.0,), X), (1.0, None, V))
    assert first == pytest.approx(9.0 * V[1])
    assert second_ is None
    np.testing.assert_allclose(third, [0.0, 9.0, 0.0, 0.0, 0.0, 0.0])


@pytest.mark.parametrize("size", [5000, 20000])
def test_arrays_of_any_size(size):
    u = np.linspace(-1.0, 1.0, size)

    def f(x):
        y = np.zeros(size) + x[0] * x[1]
        y *= 2.0
        y[1:] += x[2] * u[1:]
        z = np.tanh(y * u) / (y * y + 2.0)
        z[10:20] = y[30:40]
        return (z * y).sum() / size + (z @ u) * x[3] / size + z[3] * y[-1]

    (found,) = hvp(f, (X,), (V,))
    h = 1e-3
    g = grad(f)
    steps = [(g(X + k * h * V) - g(X - k * h * V)) / (2 * k * h) for k in (1, 2, 3)]
    np.testing.assert_allclose(found, 1.5 * steps[0] - 0.6 * steps[1] + 0.1 * steps[2], rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(found, grad(lambda x: g(x) @ V)(X), rtol=1e-11, atol=1e-12)


def test_nothing_moves_where_there_is_nothing():
    def f(x):
        e = x[:0] * x[:0]
        e += 1.0
        e[...] = x[:0]
        m = np.zeros((0, 6)) * x
        return (e * np.exp(e)).sum() + (m * m).sum() + (A[:0] @ x).sum() + (x**3).sum()

    (found,) = hvp(f, (X,), (V,))
    np.testing.assert_allclose(found, 6 * X * V, rtol=1e-13)
    (empty,) = hvp(lambda x: (x * x).sum() + 1.0, (np.zeros(0),), (np.zeros(0),))
    assert empty.shape == (0,)


def test_single_precision_goes_the_general_way():
    x, v = X.astype(np.float32), V.astype(np.float32)

    def f(x):
        y = x * x
        y[1:] += x[:-1]
        y *= np.float32(0.5)
        return (np.tanh(y) * y).sum()

    (found,) = hvp(f, (x,), (v,))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, hvp(f, (x.astype(float),), (v.astype(float),))[0], rtol=1e-4, atol=1e-5)
    (mixed,) = hvp(lambda x: (x.astype(np.float32) * x).sum(), (X,), (V,))
    np.testing.assert_allclose(mixed, 2 * V, rtol=1e-6)


def test_infinite_slopes_of_what_has_no_tangent_stay_out():
    x = np.array([0.0, 4.0])
    with np.errstate(all="ignore"):
        (found,) = hvp(lambda x: (np.sqrt(x) * np.array([0.0, 1.0]))[1:].sum(), (x,), (np.array([0.0, 1.0]),))
        y, dot = jvp(grad(lambda x, s: (np.sqrt(x) * s).sum(), 1), (x, 2.0), (np.zeros(2), 1.0))
        infinite = hvp(lambda x: (1.0 / x).sum(), (np.array([math.inf, math.nan, 2.0]),), (np.ones(3),))[0]
    assert found[1] == pytest.approx(-0.25 * 4.0**-1.5)
    assert y == 2.0
    assert dot == 0.0 or math.isnan(dot)
    assert infinite[0] == 0.0
    assert math.isnan(infinite[1])
    assert infinite[2] == pytest.approx(0.25)


def test_memory_is_put_back_for_the_way_back_and_again_after_it():
    kept = []

    def f(x):
        y = x * x
        z = y * y
        y[1:] = x[:-1] * 3.0
        y[0] = x[5]
        w = y * z
        y *= 2.0
        kept.append(y)
        return (w * y).sum()

    wanted = second(lambda x: f(x), X, V)
    kept.clear()
    (found,) = hvp(f, (X,), (V,))
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    np.testing.assert_allclose(kept[0], 2.0 * np.concatenate([X[5:], 3.0 * X[:-1]]), rtol=1e-15)


def test_an_exception_in_the_middle_leaves_what_was_done_before():
    def f(x):
        y = x * x
        try:
            y[2] = x[0] * x[1]
            y += x
            y[7] = x[0]
        except IndexError:
            y[3:] *= x[0]
        try:
            y @ x[:2]
        except ValueError:
            y[:2] = y[1:3] * x[2]
        return (y * y).sum()

    np.testing.assert_allclose(hvp(f, (X,), (V,))[0], second(f, X, V), rtol=1e-12)

    def g(x):
        raise KeyError((x * x).sum())

    with pytest.raises(KeyError):
        hvp(g, (X,), (V,))
    np.testing.assert_allclose(hvp(f, (X,), (V,))[0], second(f, X, V), rtol=1e-12)


def test_a_pullback_at_the_level_around_is_pulled_twice_with_arrays_for_cotangents():
    def f(x):
        y = np.tanh(x) * x[1:4].sum()
        y[1:] += x[:-1] * y[1:]
        return y

    def twice(x):
        y, pullback = vjp(f, x)
        first = pullback(y)[0]
        return (first * pullback(first)[0]).sum()

    h = 1e-3
    steps = [(twice(X + k * h * V) - twice(X - k * h * V)) / (2 * k * h) for k in (1, 2, 3)]
    wanted = 1.5 * steps[0] - 0.6 * steps[1] + 0.1 * steps[2]
    y, dot = jvp(twice, (X,), (V,))
    assert y == twice(X)
    assert dot == pytest.approx(wanted, rel=1e-7)
    assert dot == pytest.approx(grad(twice)(X) @ V, rel=1e-11)


def test_the_result_itself_is_a_cotangent_although_the_function_has_written_it_twice():
    def f(x):
        y = x * 1.0
        z = y * y
        y += z
        w = y * y
        y[1:] *= 2.0
        return y, [w, y[::2]]

    y, pullback = vjp(f, X)
    copied = y[0].copy(), [y[1][0].copy(), y[1][1].copy()]
    wanted = vjp(f, X)[1](copied)[0]
    for _ in range(2):
        np.testing.assert_array_equal(pullback(y)[0], wanted)
    u = X + X * X
    by_hand = (4.0 * u * np.array([0.25, 1, 1, 1, 1, 1]) + 2 * u**3 + u * np.array([1.0, 0, 4, 0, 4, 0])) * (1 + 2 * X)
    np.testing.assert_allclose(wanted, by_hand, rtol=1e-13)
    np.testing.assert_array_equal(y[0], copied[0])

    def squared(x):
        y, pullback = vjp(f, x)
        return (pullback(y)[0] * V).sum()

    h = 1e-3
    steps = [(squared(X + k * h * V) - squared(X - k * h * V)) / (2 * k * h) for k in (1, 2, 3)]
    wanted = 1.5 * steps[0] - 0.6 * steps[1] + 0.1 * steps[2]
    assert jvp(squared, (X,), (V,))[1] == pytest.approx(wanted, rel=1e-7)
    assert grad(squared)(X) @ V == pytest.approx(wanted, rel=1e-7)


def test_directions_of_a_hessian_are_pushed_one_by_one_where_that_is_quicker():
    calls = []

    def long(x):
        calls.append(1)
        x *= 0.5
        s = x[0] * x[1]
        for k in range(200):
            s = s * 0.99 + x[k % 6] * x[(k + 1) % 6] * s * 0.01
        return s

    def short(x):
        calls.append(1)
        return (x * x * x).sum()

    is_compiled = plaingrad.info()["core"] == "compiled"
    x = X.copy()
    by_columns = hessian(long)(x)
    assert len(calls) == (6 if is_compiled else 1)
    np.testing.assert_array_equal(x, 0.5 * X)
    calls.clear()
    np.testing.assert_allclose(hessian(long, chunk_size=4)(X.copy()), by_columns, rtol=1e-12, atol=1e-14)
    assert len(calls) == 2
    wanted = np.array([second(lambda x: long(x * 1.0), X, unit) for unit in np.eye(6)])
    np.testing.assert_allclose(by_columns, wanted, rtol=1e-11, atol=1e-13)
    calls.clear()
    np.testing.assert_allclose(hessian(short)(np.arange(40.0)), np.diag(6 * np.arange(40.0)), rtol=1e-13)
    assert len(calls) == (2 if is_compiled else 1)


def test_hessians_by_several_arguments_and_of_complex_steps():
    def f(a, b, z):
        w = complex(a, b[0]) * z
        for _ in range(30):
            w = w * w * 0.1 + b[1]
        return abs(w) + w.real * a * b[0]

    found = hessian(lambda a, b: f(a, b, 1.0 - 0.5j), (0, 1))(0.3, [0.7, 0.2])
    columns = [
        hvp(lambda a, b: f(a, b, 1.0 - 0.5j), (0.3, [0.7, 0.2]), v)
        for v in [(1.0, [0.0, 0.0]), (0.0, [1.0, 0.0]), (0.0, [0.0, 1.0])]
    ]
    assert found[0][0] == pytest.approx(columns[0][0], rel=1e-12)
    for k in range(2):
        assert found[0][1][k] == pytest.approx(columns[k + 1][0], rel=1e-12)
        assert found[1][k][0] == pytest.approx(columns[0][1][k], rel=1e-12)
        for m in range(2):
            assert found[1][k][1][m] == pytest.approx(columns[m + 1][1][k], rel=1e-12)


def test_three_levels():
    f = PROGRAMS["written_in_place"]
    h = 1e-3
    along = lambda x: hvp(f, (x,), (V,))[0]
    steps = [(along(X + k * h * V) - along(X - k * h * V)) / (2 * k * h) for k in (1, 2, 3)]
    wanted = 1.5 * steps[0] - 0.6 * steps[1] + 0.1 * steps[2]
    _, found = jvp(along, (X,), (V,))
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(grad(lambda x: hvp(f, (x,), (V,))[0] @ V)(X), wanted, rtol=1e-6, atol=1e-6)


def test_gradients_that_are_handed_over_have_memory_of_their_own():
    kept = []

    def f(x, p, c):
        kept.append(x)
        return (x * p["w"][0]).sum() * c + (p["w"][1] * p["w"][1]).sum() + p["s"] * x[0]

    p = {"w": [X[::-1].copy(), np.ones((2, 2)), np.ones(3)], "s": 2.0}
    p_dot = {"w": [V, np.full((2, 2), 3.0), np.zeros(3)], "s": 1.0}

    def inner(x, p, c):
        first = grad(f, (0, 1, 2))(x, p, c)
        second = grad(f, (0, 1, 2))(x, p, c)
        first[0][...] = 7.0
        first[1]["w"][1] *= 0.0
        return second

    (x_bar, p_bar, c_bar), (x_dot, p_bar_dot, c_dot) = jvp(inner, (X, p, 1.5), (V, p_dot, 0.5))
    np.testing.assert_allclose(x_bar, 1.5 * p["w"][0] + 2.0 * np.eye(6)[0])
    np.testing.assert_allclose(x_dot, 1.5 * V + 0.5 * p["w"][0] + np.eye(6)[0], rtol=1e-13)
    np.testing.assert_allclose(p_bar["w"][0], 1.5 * X)
    np.testing.assert_allclose(p_bar_dot["w"][0], 1.5 * V + 0.5 * X, rtol=1e-13)
    np.testing.assert_array_equal(p_bar_dot["w"][1], np.full((2, 2), 6.0))
    np.testing.assert_array_equal(p_bar_dot["w"][2], np.zeros(3))
    assert p_bar["s"] == X[0]
    assert p_bar_dot["s"] == V[0]
    assert c_bar == pytest.approx(X @ p["w"][0])
    assert c_dot == pytest.approx(V @ p["w"][0] + X @ V)
    x_bar[...] = 0.0
    assert (kept[0] != 0.0).all()


def test_a_rule_of_the_users_counts_in_second_derivatives():
    plaingrad.scalar_rule(np.sin, lambda x, z: x**3)
    try:
        (found,) = hvp(lambda x: np.sin(x).sum(), (X,), (V,))
    finally:
        plaingrad.remove_rule(np.sin)
    np.testing.assert_allclose(found, 3 * X**2 * V, rtol=1e-13)
    np.testing.assert_allclose(hvp(lambda x: np.sin(x).sum(), (X,), (V,))[0], -np.sin(X) * V, rtol=1e-13)


def test_eight_threads_at_once_agree():
    names = list(PROGRAMS)[:8]
    wanted = {name: hvp(PROGRAMS[name], (X,), (V,))[0] for name in names}
    wrong = []

    def work(name):
        for _ in range(15):
            if not np.array_equal(hvp(PROGRAMS[name], (X,), (V,))[0], wanted[name]):
                wrong.append(name)

    threads = [threading.Thread(target=work, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
