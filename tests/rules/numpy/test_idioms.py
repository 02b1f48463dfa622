"""Numerical programs as people write them, with NumPy."""

import io
from dataclasses import dataclass

import numpy as np
import pytest

from plaingrad import value_and_grad
from tests.rules.numpy.test_programs import differences

PROGRAMS = {}


def program(f):
    PROGRAMS[f.__name__] = f
    return f


@program
def functions_of_the_complex_plane(x):
    return np.emath.sqrt(np.abs(x)).sum() + np.emath.log(np.abs(x)).sum() + np.abs(np.emath.sqrt(x)).sum()


@program
def assertions_on_the_way(x):
    np.testing.assert_allclose(x, x + 0)
    np.testing.assert_array_equal(x.shape, (3, 4))
    assert np.allclose(x, x)
    assert np.array_equal(x, x)
    return x.prod()


@program
def numbers_that_are_printed(x):
    s = str(x) + repr(x) + f"{x[0, 0]:.3f}" + np.array2string(x)
    print(len(s), file=io.StringIO())
    return x.prod()


@program
def polynomial_objects(x):
    p = np.polynomial.Polynomial(x[0])
    q = p * p + p.deriv() - p.integ()
    return (
        q(0.3)
        + np.polynomial.chebyshev.Chebyshev(x[1])(x[2]).sum()
        + np.polynomial.polynomial.polyfromroots(x[0, :2]).prod()
    )


@program
def gaussian_quadrature(x):
    n, w = np.polynomial.legendre.leggauss(5)
    return (w * np.exp(n * x[0, 0])).sum()


@program
def a_fitted_polynomial(x):
    return np.polynomial.Polynomial.fit(np.arange(4.0), x[0], 2)(1.3)


@program
def windows(x):
    return (x[0] * np.hanning(4)).sum() + (x[1] * np.kaiser(4, 2.0)).sum()


@program
def gaps_filled_by_interpolation(x):
    y = x.copy()
    y[y > 1] = np.nan
    m = np.isnan(y)
    y[m] = np.interp(np.flatnonzero(m), np.flatnonzero(~m), y[~m])
    return y.sum()


@program
def sums_by_group(x):
    k = np.array([0, 1, 0, 2])
    u, inv = np.unique(k, return_inverse=True)
    s = np.zeros(len(u))
    np.add.at(s, inv, x[0])
    c = np.bincount(inv, x[1])
    return (s * c).sum()


@program
def a_recurrence_in_place(x):
    y = np.zeros(7)
    y[:3] = x[0, :3]
    for i in range(3, 7):
        y[i] = 0.5 * y[i - 1] - 0.2 * y[i - 2] * y[i - 3] + x[1, i - 3]
    return y @ y


@program
def a_runge_kutta_method(x):
    f = lambda t, y: np.array([y[1], -y[0] * x[0, 0]])
    y = np.array([x[0, 1], x[0, 2]])
    h = 0.1
    for i in range(5):
        k1 = f(0, y)
        k2 = f(0, y + h / 2 * k1)
        k3 = f(0, y + h / 2 * k2)
        k4 = f(0, y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y.sum()


@program
def a_newton_iteration(x):
    z = np.array([1.0, 1.0])
    for _ in range(6):
        F = np.array([z[0] ** 2 + z[1] - x[0, 0] ** 2 - 2, z[0] - z[1] ** 2 + x[0, 1]])
        J = np.array([[2 * z[0], 1.0], [1.0, -2 * z[1]]])
        z = z - np.linalg.solve(J, F)
    return z.sum()


@program
def an_elimination_in_place(x):
    A = x[:, :3].copy() + 3 * np.eye(3)
    n = 3
    for k in range(n):
        for i in range(k + 1, n):
            A[i, k] /= A[k, k]
            A[i, k + 1 :] -= A[i, k] * A[k, k + 1 :]
    return np.diag(A).prod()


@program
def gram_schmidt(x):
    Q = np.zeros((4, 3))
    for j in range(3):
        v = x[j].copy()
        for i in range(j):
            v -= (Q[:, i] @ x[j]) * Q[:, i]
        Q[:, j] = v / np.linalg.norm(v)
    return (Q * np.arange(12).reshape(4, 3)).sum()


@program
def a_convolution_by_loops(x):
    k = np.ones((2, 2)) * x[0, 0]
    o = np.zeros((2, 3))
    for i in range(2):
        for j in range(3):
            o[i, j] = np.sum(x[i : i + 2, j : j + 2] * k)
    return (o**2).sum()


@program
def a_convolution_by_windows(x):
    w = np.lib.stride_tricks.sliding_window_view(x, (2, 2))
    return np.tensordot(w, x[:2, :2], axes=([2, 3], [0, 1])).prod()


@program
def batches_of_products(x):
    a = x.reshape(3, 2, 2)
    return np.matmul(a, a.transpose(0, 2, 1)).sum() * np.einsum("bij,bjk->", a, a)


@program
def a_layer_norm(x):
    m = x.mean(-1, keepdims=True)
    v = x.var(-1, keepdims=True)
    return (((x - m) / np.sqrt(v + 1e-5)) ** 3).sum()


@program
def activations(x):
    return (
        (0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))).sum()
        + np.maximum(x, 0).sum()
        + np.where(x > 0, x, np.expm1(x)).sum()
        + np.log1p(np.exp(-np.abs(x))).sum()
    )


@program
def similarities(x):
    return (x[0] @ x[1]) / (np.linalg.norm(x[0]) * np.linalg.norm(x[1])) + np.linalg.norm(
        x[:, None] - x[None], axis=-1
    )[0, 1:].sum()


@program
def distances_between_all_pairs(x):
    d = np.sqrt(((x[:, None] - x[None]) ** 2).sum(-1) + np.eye(3))
    return (1 / d).sum()


@program
def a_gaussian_process(x):
    K = np.exp(-0.5 * (x[0][:, None] - x[0][None]) ** 2) + 0.1 * np.eye(4)
    L = np.linalg.cholesky(K)
    a = np.linalg.solve(L.T, np.linalg.solve(L, x[1]))
    return -0.5 * x[1] @ a - np.log(np.diag(L)).sum()


@program
def k_means(x):
    c = x[:2].copy()
    for _ in range(3):
        d = ((x[:, None] - c[None]) ** 2).sum(-1)
        k = d.argmin(1)
        for j in range(2):
            c[j] = x[k == j].mean(0)
    return (c**2).sum()


@program
def a_hidden_markov_model(x):
    A = np.exp(x[:3, :3])
    A /= A.sum(1, keepdims=True)
    al = np.ones(3) / 3
    ll = 0.0
    for t in range(4):
        al = (al @ A) * np.exp(-(x[:, t] ** 2))
        s = al.sum()
        ll += np.log(s)
        al /= s
    return ll


@program
def a_convolution_by_transforms(x):
    n = 7
    return np.fft.irfft(np.fft.rfft(x[0], n) * np.fft.rfft(x[1], n), n)[:7].prod()


@program
def principal_components(x):
    u, s, vt = np.linalg.svd(x - x.mean(0), full_matrices=False)
    return (s[:2] ** 2).sum() + np.abs(vt[0]).sum()


@program
def a_model_in_a_dataclass(x):
    @dataclass
    class P:
        w: np.ndarray
        b: float

        def __call__(self, v):
            return self.w @ v + self.b

    p = P(x[:, :3], x[0, 3])
    return p(x[:, 1]).prod()


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore")
def test_(name):
    f = PROGRAMS[name]
    x = np.random.default_rng(3).standard_normal((3, 4))
    value, x_bar = value_and_grad(f)(x.copy())
    assert value == f(x.copy())
    np.testing.assert_allclose(x_bar, differences(f, x), rtol=2e-5, atol=1e-6)
