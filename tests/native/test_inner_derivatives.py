"""Derivatives that a program takes itself, differentiated again natively: what the plain tier gives, or a refusal."""

import math
import threading

import numpy as np
import pytest

import plaingrad
from plaingrad import derivative, grad, hessian, hvp, jacobian, jvp, value_and_grad
from tests.sampling import some

numba = pytest.importorskip("numba")

K = np.array([0.3, 0.4, 1.0])


def wave(x, a):
    return math.sin(a * x) * x * x


def energy(x, k):
    s = 0.0
    for i in range(x.size):
        s += math.exp(-k[i] * x[i]) * x[i]
    return s * s


def of_arrays(x, k):
    return np.sum(np.sin(k * x) * x) + x @ k


def neighbours(x, k):
    y = np.empty(x.size)
    for i in range(x.size):
        y[i] = x[i] * x[i - 1] * k[i]
    return y


def grown(x, a):
    s, k = x, 0
    while s * s < 100.0:
        s = s + math.exp(a * s) * 0.3 + 0.1
        k += 1
        if k > 30:
            break
    return s * s


slope_of_wave = grad(wave)


# -- programs ----------------------------------------------------------------------------------------------------------


def descent(a, n):
    x = 1.0
    for _ in range(n):
        x = x - 0.1 * slope_of_wave(x, a)
    return x


def both_arguments(a):
    x = 0.3
    for _ in range(3):
        v, (d, da) = value_and_grad(wave, argnums=(0, -1))(x, a)
        x = x - 0.1 * d + v * da
    return x


def along_a_direction(a):
    v, d = jvp(wave, (0.4 * a, a), (1, None))
    return v * d


def products(a):
    (h,) = hvp(lambda x: wave(x, a), (0.4 * a,), (2.0 * a,))
    return h + hvp(wave, (0.3, a), (None, 1.0))[1]


def lambdas(a):
    return grad(lambda y: grad(lambda x: grad(wave)(x, a) * x)(y) * y)(0.7)


def orders(a):
    return (
        derivative(wave, 2)(0.4, a) + derivative(lambda x: x**3 * a)(2.0) + derivative(wave, order=3)(0.2, a)
    )


def relaxed(k):
    x = np.ones(3)
    for _ in range(4):
        x = x - 0.1 * plaingrad.grad(energy)(x, k)
    return np.sum(x * x)


def in_place(k):
    x = np.ones(3)
    for i in range(4):
        x -= 0.1 * grad(energy)(x, k)
        x[i % 3] *= k[0]
    return np.sum(x * x)


def curvature(k):
    h = hessian(energy)(np.linspace(0.1, 1.0, 3), k)
    return np.sum(h * h) + h[0, 1]


def matrix(k):
    j = jacobian(neighbours)(np.linspace(0.1, 1.0, 3), k)
    return np.sum(j * j * j) + j[0, 1]


def gradient_written(k):
    x = np.linspace(0.1, 1.0, 3)
    e, g = value_and_grad(energy)(x, k)
    g[0] = 2.0 * g[1]
    return e * np.sum(g) + hvp(energy, (x, k), (g, None))[0] @ x


def captured_late(k):
    def loss(x):
        s = 0.0
        for i in range(x.size):
            s += math.cos(k[i] * x[i]) * x[i]
        return s

    x = np.linspace(0.1, 1.0, 3)
    v = grad(loss)(x)
    k = k * 2.0
    return v @ grad(loss)(x)


def of_vectors(k):
    return np.sum(jvp(neighbours, (np.linspace(0.1, 1.0, 3), k), (k, None))[1])


def whole_arrays(k):
    x = np.linspace(0.1, 1.0, 3)
    g = grad(of_arrays)(x, k)
    return g @ g + hvp(of_arrays, (x, k), (g, None))[0] @ x


def loops_without_a_count(a):
    return grad(grown)(0.1, a) + grad(grown, argnums=1)(0.1, a)


def steepest(f, x, a):
    for _ in range(3):
        x = x - 0.1 * grad(f)(x, a)
    return x


def given_a_function(a):
    return steepest(wave, 0.3, a) + steepest(grown, 0.2, a)


def simulated(a, b):
    y = 0.2
    for _ in range(3):
        x = 0.5
        for _ in range(3):
            x = x - 0.1 * grad(lambda z: wave(z, a) * y + z * z * b)(x)
        y = y + 0.1 * x
    return y


def three_deep(a):
    return grad(simulated)(a, 0.3) * grad(simulated, argnums=1)(a, 0.3)


def of_a_whole_number(a):
    return grad(lambda x: x * x * a)(2)


def under_a_branch(a):
    g = 0.0
    for k in range(4):
        if k % 2 == 1 and g < 0.8:
            g += grad(wave)(a + g, 0.3)
        else:
            g += a * a
    return g


NUMBERS = some(
    [both_arguments, products, given_a_function],
    [along_a_direction, lambdas, orders, three_deep, of_a_whole_number, under_a_branch],
)
ARRAYS = some(
    [relaxed, matrix, captured_late],
    [in_place, curvature, gradient_written, of_vectors, whole_arrays],
)
def coupled(x):
    return x * x * x + np.array([x[1], x[2], x[0]]) - 1.0


def root(x):
    """Newton's method with the Jacobian of a function of arrays."""
    x = x.copy()
    for _ in range(3):
        x = x - np.linalg.solve(jacobian(coupled)(x), coupled(x))
    return np.sum(x * np.arange(1.0, 4.0))


def broadcast(x):
    return np.sum(jvp(lambda v: np.outer(v, v) + np.sin(v) + v[0], (x,), (x * x,))[1] ** 2)


PROGRAMS = [
    *some([(descent, (0.7, 5))], [(descent, (0.7, 0)), (loops_without_a_count, (0.1,))]),
    *[(f, (0.6,)) for f in NUMBERS],
    *[(f, (K,)) for f in (*ARRAYS, root, broadcast)],
]


@pytest.mark.parametrize(("f", "args"), PROGRAMS, ids=lambda x: getattr(x, "__name__", None))
def test_the_tiers_agree(f, args):
    value, slope = value_and_grad(f, tier="plain")(*args)
    for _ in range(2):
        found, natively = value_and_grad(f, tier="native")(*args)
        np.testing.assert_allclose(found, value, rtol=1e-11)
        np.testing.assert_allclose(natively, slope, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize(("f", "x"), [(products, 0.6), (relaxed, K)])
def test_forward_mode_agrees(f, x):
    dot = np.ones(3) if x is K else 1.0
    expected = jvp(f, (x,), (dot,), tier="plain")
    np.testing.assert_allclose(jvp(f, (x,), (dot,), tier="native"), expected, rtol=1e-9)


@pytest.mark.parametrize("size", some([0, 7], [1, 2]))
def test_arrays_of_any_size_and_stride(size):
    def stepped(x, k):
        return np.sum(np.cos(x - grad(energy)(x, k)))

    for step in (1, -1, 2):
        x, k = np.linspace(0.1, 1.0, 2 * size)[::step][:size], np.linspace(1.0, 2.0, 2 * size)[::step][:size]
        expected = grad(stepped, argnums=(0, 1), tier="plain")(x, k)
        found = grad(stepped, argnums=(0, 1), tier="native")(x, k)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-13)


def test_single_precision():
    x, k = np.linspace(0.1, 1.0, 3, dtype=np.float32), K.astype(np.float32)
    found = grad(lambda x, k: np.sum(x - grad(energy)(x, k)), argnums=1, tier="native")(x, k)
    assert found.dtype == np.float32
    expected = grad(lambda x, k: np.sum(x - grad(energy)(x, k)), argnums=1, tier="plain")(x, k)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


rate = 2.0


def squared(x):
    return rate * x * x


slope_of_squared = grad(squared)


def test_what_the_inner_function_reads_may_change(monkeypatch):
    def f(x):
        return slope_of_squared(x) * x

    assert grad(f, tier="native")(3.0) == 24.0
    monkeypatch.setitem(globals(), "rate", 5.0)
    assert grad(f, tier="native")(3.0) == 60.0


def halves(a):
    return grad(lambda x: grad(wave)(x, a))(0.5)


def test_in_two_threads():
    expected = grad(halves, tier="plain")(0.7)
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(grad(halves, tier="native")(0.7))) for _ in range(2)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    np.testing.assert_allclose(found, [expected, expected], rtol=1e-10)


def writes(x):
    x[0] = 2.0
    return np.sum(x)


def itself(x, n):
    if n == 0:
        return x * x
    return grad(itself)(x, n - 1)


def noisy(x):
    return np.sum(x**3) * np.random.normal()


def changed_list(x):
    dots = [1.0]
    dots[0] = 3.0
    return jvp(squared, (x[0],), dots)[1]


REFUSED = {
    "draws, and every column would draw anew": lambda x: np.sum(hessian(noisy)(x)),
    "a list that may have been changed": changed_list,
    "writes into its arguments": lambda x: np.sum(grad(writes)(x)),
    "returns no float": lambda x: np.sum(grad(neighbours)(x, x)),
    "derivative of itself": lambda x: itself(x[0], 2),
    "there are no arguments": lambda x: grad(wave, argnums=2)(x[0], 1.0),
    "otherwise than to take": lambda x: grad(wave) or x[0],
    "of a bool": lambda x: grad(wave)(True, x[0]),
    "has_aux": lambda x: grad(wave, has_aux=True)(x[0], 1.0)[0],
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_is_refused(why):
    with pytest.raises(plaingrad.NativeError):
        grad(REFUSED[why], tier="native")(K)


def test_nothing_stands_in_the_way_of_it():
    assert not plaingrad.why_not_native(halves, 0.3)
    assert plaingrad.why_not_native(lambda x: grad(wave, has_aux=True)(x, 1.0)[0], 0.3)
