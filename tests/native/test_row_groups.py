"""Arithmetic on rows inside loops, as loops over elements: differences, the plain tier, the bits of the primal."""

import numpy as np
import pytest

import plaingrad

numba = pytest.importorskip("numba")

from numba import types  # noqa: E402
from plaingrad.native.compile import build  # noqa: E402
from tests.sampling import some  # noqa: E402
from tests.native.uncompiled import check  # noqa: E402

RANDOM = np.random.default_rng(31)
MATRIX, VECTOR = types.float64[:, ::1], types.float64[::1]


def softmax_rows(x, w):
    out = np.empty_like(x)
    for i in range(x.shape[0]):
        row = x[i]
        row = row - row.max()
        e = np.exp(row)
        out[i] = e / e.sum()
    return np.sum(out * w)


def layernorm_rows(x, g, b, w):
    n, d = x.shape
    out = np.empty((n, d))
    for i in range(n):
        c = x[i] - x[i].mean()
        var = (c * c).mean()
        out[i, :] = c / np.sqrt(var + 1e-5) * g + b
    return np.sum(out * w)


def from_the_second_row(x, w):
    n = x.shape[0]
    t = 0.0
    for i in range(1, n - 1):
        e = np.exp(x[i] * w[i, 0]) * x[i - 1]
        s = np.sum(e)
        t += s * t * 0.1 + np.log(1.0 + s * s)
    return t


def masked(x, w):
    out = np.zeros_like(x)
    for i in range(x.shape[0]):
        if w[i, 0] > 0.0:
            e = np.exp(x[i] - np.max(x[i]))
            out[i] = e / np.sum(e)
        else:
            out[i] = x[i] * 2.0
    return np.sum(out * w)


def nested(x, w):
    total = 0.0
    y = x * 1.0
    for t in range(3):
        z = np.empty_like(x)
        for i in range(x.shape[0]):
            e = np.exp(y[i] * 0.5)
            z[i] = e / np.sum(e) + w[i] * t
        y = z
    return np.sum(y * y * w)


def extremes_between(x, w):
    t = 0.0
    for i in range(x.shape[0]):
        a = np.abs(x[i] * w[i] + w[i])
        b = np.maximum(a, x[i] * x[i] - 0.3)
        hi = b.max()
        lo = np.min(b * a)
        t += hi * lo + np.sum(np.sqrt(b + 0.1) / (hi + 1.0))
    return t


def power(x, w):
    t = 0.0
    for i in range(x.shape[0]):
        p = (x[i] * x[i] + 0.5) ** w[0, 0]
        m = np.mean(p)
        t += np.sum((p - m) ** 2 * p) + m
    return t


def two_families(x, w):
    t = 0.0
    for i in range(x.shape[0]):
        a = x[i] * x[i]
        s = np.sum(w[0, 1:] * w[0, 1:] * 1.5)
        b = w[1 - w.shape[0]] * s
        t += np.sum(b * b) * np.sum(a * np.exp(a * s * 0.01))
    return t


def three_axes(x, w):
    y = np.empty((2, x.shape[0], x.shape[1]))
    for h in range(2):
        for i in range(x.shape[0]):
            r = x[i] * (h + 1.0)
            e = np.exp(r - r.max())
            y[h, i] = e / e.sum()
    t = 0.0
    for h in range(2):
        for i in range(x.shape[0]):
            q = y[h, i] * w[i]
            t += np.sum(q * q) / (1.0 + np.sum(q))
    return t


def one_column(x, w):
    t = 0.0
    s = w[0, :1] * 1.0
    for i in range(x.shape[0]):
        r = x[i] * s
        q = np.exp(r) * s
        t += np.sum(q * r)
    return t


def scalars_between(x, w):
    out = np.empty((x.shape[0], 2))
    for i in range(x.shape[0]):
        r = x[i] * w[i]
        m = np.sum(r)
        v = np.sum((r - m) ** 2)
        out[i, 0] = m * v + x[i, 0]
        out[i, 1] = np.sin(m)
    return np.sum(out * out)


def carried_vector(x, w):
    acc = np.zeros(x.shape[1])
    for i in range(x.shape[0]):
        e = x[i] * x[i]
        s = np.sum(e)
        acc = acc + e * s
    return np.sum(acc * w[0])


def masked_later(x, w):
    out = np.zeros_like(x)
    t = 0.0
    for k in range(2):
        for i in range(1, x.shape[0]):
            if w[i, 0] > 0.0:
                e = np.exp(x[i] * w[i - 1] * (k + 1)) / (1.0 + t * t)
                m = np.sum(e)
                t = t * 0.5 + m / (1.0 + m * m)
                b = e / m
                t += np.sum(b * b * x[i]) + b.max()
    return t


def divided_by_ints(x, w):
    t = 0.0
    for i in range(x.shape[0]):
        a = x[i] / (i + 1)
        b = a / (2.0 + w[i, 0] ** 2)
        c = b / np.sum(b * b)
        t += np.sum(c * w[i]) + np.mean(np.abs(a))
    return t


def early(x, w):
    t = 0.0
    for i in range(x.shape[0]):
        if w[i, 0] < -0.5:
            continue
        c = x[i] / np.sum(x[i] * x[i])
        if w[i, 0] > 0.9:
            t += np.sum(c)
        else:
            t += np.sum(c * c * c / t) if t > 0.1 else 0.3
    return t


def strided(x, w):
    t = 0.0
    for i in range(0, x.shape[0], 2):
        c = x[i, :] * w[i, :]
        t += np.sum(c / (1.0 + np.sum(c * c)))
    for i in range(x.shape[0] - 1, -1, -1):
        c = x[i] * w[i]
        t += np.sum(np.exp(c) / (1.0 + np.sum(c * c)))
    return t


def stored_backwards(x, w):
    u = w[0].copy()
    t = 0.0
    for i in range(x.shape[0]):
        u[::-1] = np.exp(x[i] * 0.3)
        t += np.sum(u * x[i])
    return t


def stored_into_parts(x, w):
    n = x.shape[1]
    u = np.zeros(2 * n + x.shape[0])
    for i in range(x.shape[0]):
        u[i : i + n] = np.exp(x[i] * w[i])
        u[n + i :][:n] = x[i] * x[i]
    return np.sum(u * u)


def stored_by_indices(x, w):
    u = w[0].copy()
    v = w[0].copy()
    order = np.arange(x.shape[1])[::-1].copy()
    t = 0.0
    for i in range(x.shape[0]):
        u[order] = np.exp(x[i] * 0.3)
        v[u > 0.0] = x[i] * x[i]
        t += np.sum(u * x[i]) + np.sum(u * v)
    return t


def stored_as_a_whole(x, w):
    u = w[0].copy()
    t = 0.0
    for i in range(x.shape[0]):
        u[:] = np.exp(x[i] * 0.3)
        t += np.sum(u * x[i] * w[i])
    return t


PROGRAMS = (
    stored_backwards,
    stored_into_parts,
    stored_by_indices,
    stored_as_a_whole,
    masked_later,
    divided_by_ints,
    early,
    strided,
    softmax_rows,
    from_the_second_row,
    masked,
    nested,
    extremes_between,
    power,
    two_families,
    three_axes,
    one_column,
    scalars_between,
    carried_vector,
)


STORED = (stored_backwards, stored_into_parts, stored_by_indices, stored_as_a_whole)
NOT_GROUPED = (one_column, carried_vector, early, strided, *STORED)


def text_of(f, *kinds):
    """The sweeps that are derived of a program."""
    return build.derived("pullback", f, kinds or (MATRIX, MATRIX), (0, 1)).text


@pytest.mark.parametrize("shape", [(4, 5), (3, 1), (1, 3)], ids=str)
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_loops_over_elements_have_the_derivatives_of_the_statements(f, shape):
    check(f, RANDOM.normal(size=shape), RANDOM.normal(size=shape))


def test_a_layer_norm_row_by_row_is_right():
    x, w = RANDOM.normal(size=(4, 6)), RANDOM.normal(size=(4, 6))
    check(layernorm_rows, x, RANDOM.normal(size=6), RANDOM.normal(size=6), w)


@pytest.mark.parametrize(
    "f",
    [f for f in PROGRAMS if f not in NOT_GROUPED],
    ids=lambda f: f.__name__,
)
def test_no_vector_is_made_in_the_loop(f):
    text = text_of(f)
    assert "add_to(" not in text and ".sum()" not in text and "sum_bar" not in text


@pytest.mark.optimised
@pytest.mark.parametrize(
    "f", some([softmax_rows], [extremes_between, masked, scalars_between]), ids=lambda f: f.__name__
)
def test_the_value_has_the_bits_of_the_compiled_primal(f):
    x, w = RANDOM.normal(size=(7, 19)), RANDOM.normal(size=(7, 19))
    y, bars = plaingrad.value_and_grad(numba.njit(f), (0, 1), tier="native")(x, w)
    assert y == numba.njit(f)(x, w)
    expected = plaingrad.grad(f, (0, 1), tier="plain")(x, w)
    for bar, other in zip(bars, expected, strict=True):
        np.testing.assert_allclose(bar, other, rtol=1e-11, atol=1e-13)


def gradient(f, *args):
    """(value, cotangents of all arguments), uncompiled."""
    shadows = [np.zeros_like(x) for x in args]
    kinds = tuple(map(numba.typeof, args))
    out = build.derived("pullback", f, kinds, tuple(range(len(args)))).python(*args, 1.0, *shadows)
    return out[0], shadows


def test_a_softmax_of_rows_has_the_closed_form_of_its_derivative():
    x, w = RANDOM.normal(size=(3, 4)), RANDOM.normal(size=(3, 4))
    p = np.exp(x) / np.sum(np.exp(x), axis=1, keepdims=True)
    _, (x_bar, w_bar) = gradient(softmax_rows, x, w)
    np.testing.assert_allclose(x_bar, p * (w - np.sum(p * w, axis=1, keepdims=True)), atol=1e-15)
    np.testing.assert_allclose(w_bar, p, atol=1e-15)


def greatest(x, w):
    t = 0.0
    for i in range(x.shape[0]):
        t += np.max(x[i]) * w[i, 0] + (x[i] * x[i]).min() * w[i, 1]
    return t


def test_equal_extremes_have_equal_shares_as_in_the_plain_tier():
    x = np.array([[1.0, 3.0, 3.0, -1.0], [2.0, 2.0, 2.0, 2.0]])
    w = RANDOM.normal(size=x.shape)
    _, (x_bar, _) = gradient(greatest, x, w)
    expected = plaingrad.grad(greatest, tier="plain")(x, w)
    np.testing.assert_allclose(x_bar, expected, rtol=1e-14)


def test_masked_elements_of_minus_infinity_have_no_derivative():
    x = np.array([[0.3, -np.inf, 1.0], [-np.inf, 0.5, -np.inf]])
    w = RANDOM.normal(size=x.shape)
    p = np.exp(x - x.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    y, (x_bar, _) = gradient(softmax_rows, x, w)
    np.testing.assert_allclose(y, np.sum(p * w), rtol=1e-14)
    np.testing.assert_allclose(x_bar, p * (w - np.sum(p * w, axis=1, keepdims=True)), atol=1e-15)


def test_a_row_without_any_number_gives_nan_there_and_nowhere_else():
    x = np.array([[0.3, np.nan, 1.0], [0.1, 0.5, 0.2], [-np.inf, -np.inf, -np.inf]])
    w = RANDOM.normal(size=x.shape)
    with np.errstate(invalid="ignore"):
        y, (x_bar, _) = gradient(softmax_rows, x, w)
    assert np.isnan(y)
    assert np.isnan(x_bar[[0, 2]]).all() and np.isfinite(x_bar[1]).all()


@pytest.mark.parametrize("shape", [(0, 3), (0, 0)], ids=str)
def test_no_rows_are_no_error(shape):
    x = np.zeros(shape)
    y, (x_bar, _) = gradient(softmax_rows, x, x.copy())
    assert y == 0.0 and x_bar.shape == shape


def test_the_maximum_of_no_elements_raises_as_the_primal_does():
    x = np.zeros((2, 0))
    with pytest.raises(ValueError, match="zero-size array"):
        gradient(softmax_rows, x, x.copy())


def test_sums_of_no_elements_are_zero():
    x = np.zeros((2, 0))
    y, _ = gradient(scalars_between_sums, x, x.copy())
    assert y == 2.0


def scalars_between_sums(x, w):
    t = 0.0
    for i in range(x.shape[0]):
        r = x[i] * w[i]
        t += np.exp(np.sum(r) + np.sum(r * r))
    return t


def test_rows_that_do_not_fit_raise_as_the_primal_does():
    with pytest.raises(ValueError, match="broadcast"):
        gradient(scalars_between_sums, np.ones((2, 3)), np.ones((2, 4)))


def test_rows_of_one_element_are_broadcast():
    x, w = RANDOM.normal(size=(3, 1)), RANDOM.normal(size=(3, 4))
    check(scalars_between_sums, x, w)
    check(softmax_and_scale, w, x)


def softmax_and_scale(x, s):
    t = 0.0
    for i in range(x.shape[0]):
        e = np.exp(x[i]) * s[i]
        t += np.sum(e * e)
    return t


def added_up_and_broadcast(x, s):
    t = 0.0
    for i in range(x.shape[0]):
        r = s[i] * 2.0
        t += np.sum(x[i] * r) * np.sum(r)
    return t


def test_a_vector_that_is_broadcast_and_added_up_is_refused_when_it_is_shorter():
    x, s = RANDOM.normal(size=(3, 4)), RANDOM.normal(size=(3, 4))
    check(added_up_and_broadcast, x, s)
    with pytest.raises(plaingrad.NativeError, match="length 1"):
        gradient(added_up_and_broadcast, x, s[:, :1].copy())


def stored_in_longer_rows(x, w):
    out = np.zeros((x.shape[0], x.shape[1] + 1))
    for i in range(x.shape[0]):
        out[i] = x[i] * w[i]
    return np.sum(out)


def test_a_vector_that_does_not_fit_where_it_is_stored_raises_as_the_primal_does():
    x = RANDOM.normal(size=(3, 4))
    with pytest.raises(ValueError, match="different size"):
        gradient(stored_in_longer_rows, x, x.copy())


def in_place(x, w):
    y = x * 1.0
    for i in range(x.shape[0]):
        e = np.exp(y[i] - y[i].max())
        y[i] = e / e.sum()
    return np.sum(y * w)


def previous_row(x, w):
    y = np.zeros_like(x)
    for i in range(1, x.shape[0]):
        e = y[i - 1] * 0.5 + x[i] * w[i]
        y[i] = e / (1.0 + np.sum(e * e))
    return np.sum(y * y)


@pytest.mark.parametrize("f", [in_place, previous_row], ids=lambda f: f.__name__)
def test_rows_that_the_loop_writes_are_left_to_the_general_form(f):
    check(f, RANDOM.normal(size=(4, 3)), RANDOM.normal(size=(4, 3)))


def test_a_transposed_matrix_has_rows_too():
    x = RANDOM.normal(size=(5, 3)).T
    check(softmax_and_scale, x, RANDOM.normal(size=(3, 5)))


def divided_by_an_element(x, s, w):
    out = np.empty_like(x)
    for i in range(x.shape[0]):
        z = x[i] / s[i]
        out[i] = z * w[i]
    return np.sum(out)


@pytest.mark.usefixtures("machine_code")
@pytest.mark.parametrize("s", [3.0, 1e-200, 1e-305, 1e-310, 5e-324, 1e200, 1.7e308])
def test_divisors_whose_inverse_is_infinite_divide_all_the_same(s):
    x, w = RANDOM.normal(size=(2, 10)), RANDOM.normal(size=(2, 10))
    if s < 1.0:  # so that the slopes are finite, and normal numbers
        x, w = x * 1e-100, w * 1e-200
    elif s > 1e100:
        x, w = x * 1e200, w * 1e200
    run = plaingrad.grad(divided_by_an_element, argnums=(0, 1), tier="native")
    to_x, to_s = run(x, np.array([s, -s]), w)
    by = np.array([[s], [-s]])
    np.testing.assert_allclose(to_x, w / by, rtol=1e-15)
    with np.errstate(over="ignore", under="ignore"):
        np.testing.assert_allclose(to_s, -np.sum(w * (x / by), axis=1) / by[:, 0], rtol=1e-13)
    assert "scale(" in text_of(divided_by_an_element, MATRIX, types.float64[::1], MATRIX)
