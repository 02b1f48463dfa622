"""Hazard 1: one element of memory appears many times in a view, so `+=` into the view loses terms."""

import numpy as np
import plaingrad
import pytest
from cases_b import check, check_or_refuse
from numpy.lib.stride_tricks import as_strided, sliding_window_view

X = np.array([1.5, -0.5, 2.0, 0.25, 3.0])


def test_a_sliding_window_read_once_counts_each_element_as_often_as_it_appears():
    check(lambda x: sliding_window_view(x, 3).sum(), X, np.array([1.0, 2.0, 3.0, 2.0, 1.0]))


def test_a_weighted_sliding_window_is_a_correlation():
    w = np.array([0.5, -1.0, 2.0])
    # y_i = sum_k w_k x_(i+k), f = sum y_i^2: x_bar_j = 2 sum_k w_k y_(j-k)
    y = np.correlate(X, w, "valid")
    check(lambda x: ((sliding_window_view(x, 3) @ w) ** 2).sum(), X, 2 * np.convolve(y, w, "full"))


def test_a_moving_average_of_windows_of_a_matrix():
    x = np.arange(12.0).reshape(3, 4)
    count = np.outer([1, 2, 1], [1, 2, 2, 1]).astype(float)
    check(lambda x: (sliding_window_view(x, (2, 2)) * 0.25).sum(), x, 0.25 * count)


def test_a_broadcast_view_has_stride_zero():
    c = np.array([1.0, 2.0, 3.0, 4.0])
    check(lambda x: (np.broadcast_to(x[1], (4,)) * c).sum(), X, np.array([0.0, 10.0, 0.0, 0.0, 0.0]))
    check(lambda x: (np.broadcast_to(x, (3, 5)) ** 2).sum(), X, 6 * X)
    check(lambda x: (np.broadcast_to(x[:, None], (5, 2)) * np.array([1.0, 10.0])).sum(), X, np.full(5, 11.0))


def test_broadcast_arrays_share_memory():
    def f(x):
        rows, columns = np.broadcast_arrays(x[:, None], x[None, :])
        return (rows * columns).sum()

    check(f, X, np.full(5, 2 * X.sum()))


def test_a_view_that_overlaps_itself_by_one_element():
    def f(x):
        pairs = as_strided(x, (4, 2), (x.strides[0], x.strides[0]), writeable=False)
        return (pairs[:, 0] * pairs[:, 1]).sum()

    # sum of x_i x_(i+1)
    check(f, X, np.r_[0.0, X[:-1]] + np.r_[X[1:], 0.0])


def test_an_overlapping_view_used_twice_in_one_operation():
    def f(x):
        w = sliding_window_view(x, 2)
        return (w * w[::-1]).sum()

    # sum over i, k of x_(i+k) x_(3-i+k)
    g = np.zeros(5)
    for i in range(4):
        for k in range(2):
            g[i + k] += X[3 - i + k]
            g[3 - i + k] += X[i + k]
    check(f, X, g)


def test_negative_strides_with_overlap():
    def f(x):
        w = sliding_window_view(x[::-1], 2)
        return (w @ np.array([1.0, 10.0])).sum()

    # windows of reversed x: (x4, x3), (x3, x2), (x2, x1), (x1, x0)
    check(f, X, np.array([10.0, 11.0, 11.0, 11.0, 1.0]))


def test_the_memory_is_written_between_two_reads_of_an_overlapping_view():
    def f(x):
        a = x.copy()
        w = sliding_window_view(a, 3)
        first = (w * 2.0).sum()
        a[2] = a[0] * a[4]
        second = (w**2).sum()
        return first + second

    count = np.array([1.0, 2.0, 3.0, 2.0, 1.0])
    y = X.copy()
    y[2] = X[0] * X[4]
    g = 2 * count * y
    g[0] += g[2] * X[4]
    g[4] += g[2] * X[0]
    g[2] = 0.0
    check(f, X, 2 * count + g)


def test_a_reduction_of_an_overlapping_view_along_an_axis():
    # mean over windows, weighted: x_bar = convolution of weights / 3
    weights = np.array([1.0, -2.0, 4.0])
    check(
        lambda x: sliding_window_view(x, 3).mean(axis=1) @ weights,
        X,
        np.convolve(weights, np.ones(3), "full") / 3,
    )


def test_a_write_through_a_view_that_overlaps_itself_is_right_or_refused():
    def f(x):
        a = x.copy()
        as_strided(a, (3,), (0,))[...] = x[:3] * 2.0  # the last write stays
        return (a * np.arange(1.0, 6.0)).sum()

    check_or_refuse(f, X, np.array([0.0, 2.0, 3.0 + 2.0, 4.0, 5.0]))


def test_diagonals_and_einsum_views_of_one_matrix():
    m = np.arange(9.0).reshape(3, 3)

    def f(m):
        d = np.einsum("ii->i", m)
        return (d * m.diagonal() * np.diag(m)).sum()

    check(f, m, np.diag(3 * np.diag(m) ** 2))


def row_into_column(m, i, j):
    m[:, j] = m[i]
    return (m * m).sum()


def row_into_column_by_name(m, i, j):
    np.copyto(m[:, j], m[i])
    return (m * m).sum()


def column_into_row(m, i, j):
    m[i] = m[:, j]
    return (m * m).sum()


SQUARE = np.random.default_rng(3).normal(size=(4, 4))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("f", [row_into_column, row_into_column_by_name, column_into_row])
def test_a_row_assigned_to_a_column_is_that_of_numpy_or_an_error(f, order):
    """NumPy writes the element that both have before it reads it, or after: only the latter is an assignment."""
    refused = 0
    for i in range(4):
        for j in range(4):
            m = np.array(SQUARE, order=order)
            copied = m.copy(order="K")
            row, column = copied[i].copy(), copied[:, j].copy()
            if f is column_into_row:
                copied[i] = column
            else:
                copied[:, j] = row
            plainly = f(m.copy(order="K"), i, j)
            try:
                value, found = plaingrad.value_and_grad(f)(m.copy(order="K"), i, j)
            except plaingrad.AliasError as error:
                refused += 1
                assert "test_01_overlapping_views.py" in str(error)
                with pytest.raises(plaingrad.AliasError):
                    plaingrad.jvp(f, (m.copy(order="K"), i, j), (m, None, None))
                assert plainly != (copied * copied).sum()
                continue
            assert value == plainly == (copied * copied).sum()
            expected = 2.0 * copied
            if f is column_into_row:
                expected[i] = 0.0
                expected[:, j] += 2.0 * copied[i]
            else:
                expected[:, j] = 0.0
                expected[i] += 2.0 * copied[:, j]
            np.testing.assert_allclose(found, expected, rtol=1e-12)
            _, along = plaingrad.jvp(f, (m.copy(order="K"), i, j), (m, None, None))
            np.testing.assert_allclose(along, (found * m).sum(), rtol=1e-12)
    assert 0 < refused < 8


def test_vectors_that_overlap_in_the_same_direction_are_assigned_as_if_copied():
    def shifted(x):
        x[1:] = x[:-1]
        x[::2] = x[2:]
        return (x * X).sum()

    # x -> [x0, x0, x1, x2, x3] -> [x1, x0, x2, x2, x3]
    check(shifted, X.copy(), np.array([X[1], X[0], X[2] + X[3], X[4], 0.0]))
