"""Whole numbers among the arguments: real numbers as for the plain tier, or counts."""

import math

import numpy as np
import pytest

import plaingrad
from plaingrad import grad, hessian, hvp, jacobian, jvp, linearize, vjp

pytest.importorskip("numba")


def power(x, n):
    return x**n


def mean_of_counts(x, n):
    total = 0.0
    for i in range(n):
        total += x * x * i
    return total / n


def power_and_count(x, n, k):
    for _ in range(k):
        x = x * 1.5
    return x**n


def part(x, n):
    return np.sum(x[:n] * x[:n])


def of_tier(take):
    return take("native"), take("plain")


@pytest.mark.parametrize("n", [3, np.int64(3), np.array([1, 2])], ids=["int", "np.int64", "array"])
def test_a_whole_number_that_is_computed_with_has_a_cotangent_in_both_tiers(n):
    for y, pullback in of_tier(lambda tier: vjp(power, 2.0, n, tier=tier)):
        np.testing.assert_allclose(y, 2.0**n)
        x_bar, n_bar = pullback(np.ones_like(y))
        np.testing.assert_allclose(x_bar, np.sum(n * 2.0 ** (n - 1)), rtol=1e-14)
        np.testing.assert_allclose(n_bar, math.log(2.0) * 2.0**n, rtol=1e-14)


def test_only_whole_numbers_are_real_numbers_too():
    for _, pullback in of_tier(lambda tier: vjp(power, 2, 3, tier=tier)):
        np.testing.assert_allclose(pullback(1.0), (12.0, 8.0 * math.log(2.0)), rtol=1e-14)


@pytest.mark.parametrize("dots", [(0.0, 1.0), (None, 1.0), (1.0, 2.0), (1.0, None), (None, None)])
def test_a_tangent_of_a_whole_number_counts(dots):
    expected = sum(d * t for d, t in zip((12.0, 8.0 * math.log(2.0)), dots, strict=True) if t)
    for y, y_dot in of_tier(lambda tier: jvp(power, (2.0, 3), dots, tier=tier)):
        assert y == 8.0
        np.testing.assert_allclose(y_dot, expected, rtol=1e-14)


@pytest.mark.parametrize("dots", [(1.0, 0.0), (0.0, 1.0), (0.5, 2.0)])
def test_a_product_with_the_hessian_has_an_entry_for_a_whole_number(dots):
    mixed = 4.0 + 12.0 * math.log(2.0)  # d/dx of x**n log(x)
    rows = ((12.0, mixed), (mixed, 8.0 * math.log(2.0) ** 2))
    expected = [sum(a * t for a, t in zip(row, dots, strict=True) if t) for row in rows]
    for found in of_tier(lambda tier: hvp(power, (2.0, 3), dots, tier=tier)):
        np.testing.assert_allclose(found, expected, rtol=1e-13)
    for found in of_tier(lambda tier: linearize(grad(power, (0, 1)), 2.0, 3)[1](*dots)):
        np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_a_product_with_the_hessian_holds_a_whole_number_without_a_direction_fixed():
    for found in of_tier(lambda tier: hvp(power, (2.0, 3), (1.0, None), tier=tier)):
        assert found == (12.0, None)


def test_jacobians_and_hessians_are_by_whole_numbers_too():
    for found in of_tier(lambda tier: jacobian(power, (1, 0), tier=tier)(2.0, 3)):
        np.testing.assert_allclose(found, (8.0 * math.log(2.0), 12.0), rtol=1e-14)
    for found in of_tier(lambda tier: hessian(lambda x: np.sum(x**3), tier=tier)(np.array([1, 2]))):
        np.testing.assert_allclose(found, [[6.0, 0.0], [0.0, 12.0]], rtol=1e-14)
    for found in of_tier(lambda tier: grad(lambda x: np.sum(x**3), tier=tier)(np.array([1, 2]))):
        np.testing.assert_allclose(found, [3.0, 12.0])
        assert found.dtype == float


@pytest.mark.parametrize(
    ("f", "args", "x_bar"),
    [
        (mean_of_counts, (2.0, 3), 4.0),
        (part, (np.arange(4.0), 2), np.array([0.0, 2.0, 0.0, 0.0])),
        (lambda x, n: x[n] * n, (np.arange(4.0), 2), np.array([0.0, 0.0, 2.0, 0.0])),
        (lambda x, n: np.sum(np.ones(n)) * x, (2.0, 3), 3.0),
    ],
    ids=["range", "slice", "index", "shape"],
)
def test_a_whole_number_that_counts_has_no_cotangent(f, args, x_bar):
    y, pullback = vjp(f, *args, tier="native")
    assert y == f(*args)
    found = pullback(1.0)
    np.testing.assert_allclose(found[0], x_bar, rtol=1e-14)
    assert found[1] is None
    pushed = linearize(f, *args, tier="native")[1](np.ones_like(args[0]), None)
    np.testing.assert_allclose(pushed, np.sum(x_bar), rtol=1e-14)


def test_each_whole_number_is_a_count_or_a_real_number_by_itself():
    found = vjp(power_and_count, 2.0, 3, 2, tier="native")[1](1.0)
    np.testing.assert_allclose(found[0], 3 * 4.5**2 * 1.5**2, rtol=1e-14)
    np.testing.assert_allclose(found[1], 4.5**3 * math.log(4.5), rtol=1e-14)
    assert found[2] is None


def test_products_with_hessians_beside_a_count():
    found = hvp(mean_of_counts, (2.0, 3), (1.0, None), tier="native")
    np.testing.assert_allclose(found[0], 2.0, rtol=1e-14)
    assert found[1] is None


def test_a_tangent_of_a_count_is_refused_rather_than_dropped():
    for take in (
        lambda: jvp(mean_of_counts, (2.0, 3), (1.0, 1.0), tier="native"),
        lambda: hvp(mean_of_counts, (2.0, 3), (1.0, 1.0), tier="native"),
        lambda: linearize(mean_of_counts, 2.0, 3, tier="native")[1](1.0, 1.0),
    ):
        with pytest.raises(plaingrad.NativeError, match=r"argument 1 .*counts"):
            take()


def test_a_function_that_only_counts_has_nothing_to_differentiate():
    with pytest.raises(plaingrad.ArgumentError, match="counts"):
        vjp(lambda n: np.sum(np.ones(n)), 3, tier="native")
