"""Loops of sums, several iterations at once: the same bits, the gradients of the plain tier, and what is left alone."""

import math

import numpy as np
import pytest

import plaingrad

numba = pytest.importorskip("numba")

from plaingrad.native.compile import build  # noqa: E402
from plaingrad.native.runtime.vector import simd, vecmath  # noqa: E402
from plaingrad.native.loops import sums  # noqa: E402

pytestmark = pytest.mark.optimised

RANDOM = np.random.default_rng(5)
WEIGHTS = RANDOM.normal(size=3)


def logistic(w, data):
    total = 0.0
    for i in range(data.shape[0]):
        s = 0.0
        for j in range(data.shape[1]):
            s += data[i, j] * w[j]
        total += (s if s > 0.0 else 0.0) + math.log1p(math.exp(-abs(s))) - data[i, 0] * s
    return total / 3.0


def paths(w, data):
    total = 0.0
    for i in range(data.shape[0]):
        price, mean = w[0], 0.0
        for t in range(data.shape[1]):
            price *= math.exp(0.1 * w[1] + 0.2 * w[2] * data[i, t])
            mean += price
        mean = mean / data.shape[1] - w[1]
        if mean > 0.0:
            total += mean
    return math.exp(-w[2]) * total


def mixture(w, data):
    terms = np.empty(w.size)
    total = 0.0
    for i in range(data.shape[0]):
        for k in range(w.size):
            distance = 0.0
            for j in range(data.shape[1]):
                distance += (data[i, j] - w[k]) * (data[i, j] - w[k])
            terms[k] = w[k] - 0.5 * distance
        highest = terms[0]
        for k in range(1, w.size):
            highest = max(highest, terms[k])
        s = 0.0
        for k in range(w.size):
            s += math.exp(terms[k] - highest)
        total += highest + math.log(s)
    return total


def rows_of_a_matrix(w, data):
    total = 1.5
    for i in range(data.shape[0]):
        row = data[i]
        low, s = 10.0, 0.0
        for j in range(row.size):
            low = min(low, row[j] * w[j])
            s += math.sin(row[j] * w[0]) * math.sqrt(1.0 + row[j] * row[j])
        total -= low * s / (2.0 + math.cos(s))
    return total * w[1]


def reads_of_columns(w, data):
    total = 0.0
    for i in range(data.shape[0]):
        s = data[i, 0] * w[0]
        for j in range(1, 3):
            s = s * 0.5 + math.tanh(data[i, -j] * w[j]) * data[i, 0]
        if s <= 0.1:
            s = -s
        else:
            s = 0.3 * s * s
        total += s
    return total


def triangle(w, data):
    total = 0.0
    for i in range(data.shape[0]):
        squares = 0.0
        for row in range(data.shape[1]):
            s = w[0] * (data[i, row] - w[1])
            for column in range(row):
                s += w[(row + column) % 3] * (data[i, column] - w[2]) * data[i, -1 - column]
            squares += s * s
        total += math.log(1.0 + squares)
    return total


def a_division_in_a_branch(w, data):
    total = 0.0
    for i in range(data.shape[0]):
        s = 0.0
        for j in range(3):
            s += data[i, j] * w[j]
        if s != 0.0:
            s = 1.0 / s
        total += s
    return total


def two_terms(w, data):
    total = 0.0
    for i in range(data.shape[0]):
        s = 0.0
        for j in range(3):
            s += data[i, j] * w[j]
        total += s
        total += math.sin(s)
    return total


def the_counter_is_a_number(w, data):
    total = 0.0
    for i in range(data.shape[0]):
        s = i * w[0]
        for j in range(3):
            s += data[i, j] * w[j]
        total += s
    return total


def as_many_times_as_the_counter(w, data):
    total = 0.0
    for i in range(data.shape[0]):
        s = 0.0
        for j in range(i):
            s += data[j, 0] * w[1]
        total += s * s
    return total


IN_BLOCKS = (logistic, paths, mixture, rows_of_a_matrix, reads_of_columns, triangle)
ALONE = (a_division_in_a_branch, two_terms, the_counter_is_a_number, as_many_times_as_the_counter)


def derived(f, data):
    return build.derived("pullback", f, (numba.typeof(WEIGHTS), numba.typeof(data)), (0,))


def gradient(f, data, run):
    shadow = np.zeros(3)
    value = run(WEIGHTS, data, 1.0, shadow)[0]
    return value, shadow


@pytest.mark.parametrize("f", [*IN_BLOCKS, *ALONE], ids=lambda f: f.__name__)
def test_only_iterations_that_do_the_same_are_done_at_once(f):
    assert ("lanes_between(" in derived(f, np.zeros((2, 3))).text) == (f in IN_BLOCKS)


@pytest.mark.parametrize("n", [0, 1, simd.WIDTH - 1, simd.WIDTH, simd.WIDTH + 3])
@pytest.mark.parametrize("f", IN_BLOCKS, ids=lambda f: f.__name__)
def test_the_uncompiled_gradient_is_that_of_the_plain_tier_for_every_number_of_iterations(f, n):
    data = RANDOM.normal(size=(n, 3))
    value, found = gradient(f, data, derived(f, data).python)
    expected_value, expected = plaingrad.value_and_grad(f, tier="plain")(WEIGHTS, data)
    np.testing.assert_allclose(value, expected_value, rtol=1e-13)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("f", IN_BLOCKS, ids=lambda f: f.__name__)
def test_the_compiled_value_has_the_bits_of_the_compiled_primal(f):
    run, primal = derived(f, np.zeros((2, 3))).run, numba.njit(f)
    for n in (0, 1, 7, 8, 21):
        data = RANDOM.normal(size=(n, 3))
        value, found = gradient(f, data, run)
        assert value == primal(WEIGHTS, data)
        expected = plaingrad.grad(f, tier="plain")(WEIGHTS, data)
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)


def test_wide_matrices_are_turned_in_squares_and_what_remains():
    data = RANDOM.normal(size=(19, 13))
    run = derived(paths, data).run
    value, found = gradient(paths, data, run)
    assert value == numba.njit(paths)(WEIGHTS, data)
    np.testing.assert_allclose(found, plaingrad.grad(paths, tier="plain")(WEIGHTS, data), rtol=1e-11)
    turned = np.asfortranarray(data)
    value, again = gradient(paths, turned, derived(paths, turned).run)
    np.testing.assert_allclose(again, found, rtol=1e-13)


def test_a_row_that_is_read_as_a_whole_somewhere_is_gathered_once_for_all_reads():
    assert "gather(" not in derived(triangle, np.zeros((2, 3))).text.replace("gather_rows(", "")


def test_values_that_are_not_finite_stay_in_their_iteration():
    data = RANDOM.normal(size=(11, 3))
    data[4, 1], data[9, 0] = math.inf, math.nan
    run = derived(logistic, data).run
    value, found = gradient(logistic, data, run)
    assert math.isnan(value)
    expected = plaingrad.grad(logistic, tier="plain")(WEIGHTS, data)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))


def test_a_division_by_zero_is_raised_as_in_the_primal():
    def ratio(w, data):
        total = 0.0
        for i in range(data.shape[0]):
            s = 0.0
            for j in range(3):
                s += data[i, j]
            total += w[0] / s
        return total

    data = np.ones((9, 3))
    data[7] = 0.0
    for f in (numba.njit(ratio), ratio):
        run = derived(f, data).run
        with pytest.raises(ZeroDivisionError):
            run(WEIGHTS, data, 1.0, np.zeros(3))


def test_where_bounds_are_checked_they_are_checked_in_every_iteration():
    def too_far(w, data):
        total = 0.0
        for i in range(12):
            s = 0.0
            for j in range(3):
                s += data[i, j] * w[j]
            total += s
        return total

    checked = numba.njit(boundscheck=True)(too_far)
    data = np.ones((11, 3))
    assert "lanes_between(" not in derived(checked, data).text
    with pytest.raises(IndexError):
        derived(checked, data).run(WEIGHTS, data, 1.0, np.zeros(3))


def test_a_gradient_of_few_inputs_takes_the_blocks_too():
    data = RANDOM.normal(size=(30, 3))
    value, found = plaingrad.value_and_grad(numba.njit(paths))(WEIGHTS, data)
    np.testing.assert_allclose(found, plaingrad.grad(paths, tier="plain")(WEIGHTS, data), rtol=1e-11)


def test_without_blocks_the_gradients_are_the_same(monkeypatch):
    data = RANDOM.normal(size=(30, 3))
    monkeypatch.setattr(sums, "in_packs", lambda *_: None)
    build._built.clear()
    value, found = gradient(mixture, data, derived(mixture, data).run)
    build._built.clear()
    np.testing.assert_allclose(found, plaingrad.grad(mixture, tier="plain")(WEIGHTS, data), rtol=1e-11)


def test_where_the_c_library_is_another_one_numbers_are_given_to_it_one_by_one(monkeypatch):
    data = RANDOM.normal(size=(19, 3))
    monkeypatch.setenv("PLAINGRAD_CACHE_DIR", "")
    monkeypatch.setattr(vecmath, "is_exact", lambda name: False)
    build._built.clear()
    value, found = gradient(logistic, data, derived(logistic, data).run)
    build._built.clear()
    assert value == numba.njit(logistic)(WEIGHTS, data)
    np.testing.assert_allclose(found, plaingrad.grad(logistic, tier="plain")(WEIGHTS, data), rtol=1e-11)
