"""Sums over axes, and of expressions that are broadcast, as loops of reverse mode."""

import numpy as np
import pytest

import plaingrad

numba = pytest.importorskip("numba")

from numba import types  # noqa: E402
from plaingrad.native.compile import build  # noqa: E402
from tests.sampling import some  # noqa: E402
from tests.native.uncompiled import check  # noqa: E402

RANDOM = np.random.default_rng(37)
MATRIX = types.float64[:, ::1]


def softmax(x, w):
    e = np.exp(x)
    p = e / np.sum(e, axis=1).reshape(x.shape[0], 1)
    return np.sum(p * w)


def layer_norm(x, w):
    n, d = x.shape
    c = x - (np.sum(x, axis=1) / d)[:, None]
    var = np.expand_dims((c * c).sum(axis=1) / d, 1)
    y = c / np.sqrt(var + 1e-2) * w[0] + w[-1]
    return np.sum(y * w)


def batch_norm(x, w):
    n = x.shape[0]
    c = x - np.sum(x, axis=0) / n
    sd = np.sqrt(np.sum(c * c, 0) / n + 1e-2)
    return np.sum(c / sd * w[0] + w)


def log_sum_exp(x, w):
    s = np.log(np.sum(np.exp(x * w), axis=-1)) + np.sum(w, axis=-1)
    return np.dot(s, s)


def attention(x, w):
    scores = x @ w.T
    e = np.exp(scores)
    p = e / np.expand_dims(np.sum(e, axis=1), -1)
    return np.sum((p @ w) ** 2)


def three_axes(x, w):
    y = x.reshape(x.shape[0], x.shape[1], 1) * w
    a = np.sum(y * y, axis=0)
    b = np.sum(np.sin(y), axis=1)
    c = np.sum(y * y + y, axis=2)
    return np.sum(a * a) + np.sum(b * b * b) + np.sum(c * c)


def in_a_loop(x, w):
    t = 0.0
    for k in range(3):
        s = np.sum(x * w * k + x, axis=0)
        m = np.mean(x * s + w)
        t += np.dot(s, s) * m
    return t


def of_a_vector(x, w):
    v = x[0] * w[0]
    return np.sum(v * v, axis=0) * np.sum(v)


def distances(x, w):
    d = x.reshape(x.shape[0], 1, x.shape[1]) - w
    q = np.sum(d * d, axis=2)
    return np.sum(np.exp(-q))


def with_kinks(x, w):
    h = np.maximum(x * w + x, w)
    s = np.sum(np.abs(h - x), axis=1)
    return np.sum(np.abs(h) * s.reshape(s.size, 1))


def a_column_of_powers(x, w):
    s = np.sum(x * x, axis=1).reshape(-1, 1)
    return np.sum(x * s**1.5 / (1.0 + np.exp(s))) + s[0, 0]


def row_in_front(x, w):
    r = x[0][None, :] * w
    return np.sum(r * w[:, 0].copy().reshape(-1, 1))


def mean_of_what_is_broadcast(x, w):
    return np.mean(np.sin(x) * np.sum(w, axis=0)) * np.mean(w[0])


def in_other_order(x, w):
    s = np.sum(x.T * x.T, axis=0) + np.sum(w.T, axis=0)
    return np.sum(s * s)


PROGRAMS = (
    in_other_order,
    softmax,
    layer_norm,
    batch_norm,
    log_sum_exp,
    attention,
    three_axes,
    in_a_loop,
    of_a_vector,
    with_kinks,
    a_column_of_powers,
    row_in_front,
    mean_of_what_is_broadcast,
    distances,
)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_sums_over_axes_have_the_derivatives_of_the_statements(f):
    for shape in (4, 4), (3, 1), (1, 3):
        check(f, RANDOM.normal(size=shape), RANDOM.normal(size=shape))


@pytest.mark.parametrize("f", [softmax, layer_norm, batch_norm, log_sum_exp], ids=lambda f: f.__name__)
def test_the_terms_of_sums_over_axes_are_in_no_array(f):
    text = build.derived("pullback", f, (MATRIX, MATRIX), (0, 1)).text
    assert "sum_bar" not in text and "axis=" not in text


@pytest.mark.optimised
@pytest.mark.parametrize("f", some([in_a_loop], [layer_norm, batch_norm, three_axes]), ids=lambda f: f.__name__)
def test_the_value_has_the_bits_of_the_compiled_primal(f):
    x, w = RANDOM.normal(size=(9, 9)), RANDOM.normal(size=(9, 9))
    y, bars = plaingrad.value_and_grad(numba.njit(f), (0, 1), tier="native")(x, w)
    assert y == numba.njit(f)(x, w)
    for bar, other in zip(bars, plaingrad.grad(f, (0, 1), tier="plain")(x, w), strict=True):
        np.testing.assert_allclose(bar, other, rtol=1e-10, atol=1e-12)


def gradient(f, *args):
    """(value, cotangents of all arguments), uncompiled."""
    shadows = [np.zeros_like(x) for x in args]
    out = build.derived("pullback", f, tuple(map(numba.typeof, args)), (0, 1)).python(*args, 1.0, *shadows)
    return out[0], shadows


def of_squares(x, w):
    s, r = np.sum(x * x, axis=1), np.sum(x * w, axis=0)
    return np.sum(s * s) + np.sum(r * r)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)], ids=str)
def test_sums_of_nothing_are_zero(shape):
    y, (x_bar, _) = gradient(of_squares, np.zeros(shape), np.zeros(shape))
    assert y == 0.0 and x_bar.shape == shape


def test_masked_elements_of_minus_infinity_have_no_derivative():
    x = np.array([[0.3, -np.inf, 1.0], [-np.inf, 0.5, -np.inf]])
    w = RANDOM.normal(size=x.shape)
    p = np.exp(x) / np.sum(np.exp(x), axis=1, keepdims=True)
    y, (x_bar, _) = gradient(softmax, x, w)
    np.testing.assert_allclose(y, np.sum(p * w), rtol=1e-14)
    np.testing.assert_allclose(x_bar, p * (w - np.sum(p * w, axis=1, keepdims=True)), atol=1e-15)


def test_a_nan_stays_in_its_row():
    x = np.array([[0.3, np.nan, 1.0], [0.1, 0.5, 0.2]])
    _, (x_bar, _) = gradient(softmax, x, np.ones_like(x))
    assert np.isnan(x_bar[0]).all() and np.isfinite(x_bar[1]).all()


def test_shapes_that_do_not_fit_raise_as_in_the_primal():
    with pytest.raises(ValueError, match="broadcast"):
        gradient(of_squares, np.zeros((2, 3)), np.zeros((3, 2)))


def squares_of_sums(x):
    s = np.sum(x * x, axis=1)
    return np.sum(s * s)


def test_second_derivatives_of_sums_over_axes_are_right():
    x, v = RANDOM.normal(size=(2, 3)), RANDOM.normal(size=(2, 3))
    found = plaingrad.hvp(numba.njit(squares_of_sums), (x,), (v,), tier="native")[0]
    s, xv = np.sum(x * x, axis=1, keepdims=True), np.sum(x * v, axis=1, keepdims=True)
    np.testing.assert_allclose(found, 8.0 * x * xv + 4.0 * s * v, rtol=1e-12)
