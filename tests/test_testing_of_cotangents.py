"""`check_rule` gives pullbacks cotangents that tests seldom give: with zeros, large, read-only, not contiguous, empty."""

import numpy as np
import pytest
from tests.test_testing import complaint, entered, named  # noqa: F401

import plaingrad
from plaingrad.tangents import ZeroTangent
from plaingrad.testing import check_rule

X = np.array([0.5, -1.5, 2.0])


def square(x):
    return x * x


def pair(x):
    return x * x, 3.0 * x


def rule_with(cotangent):
    return lambda x: (x * x, lambda z_bar: (cotangent(z_bar, 2 * x),))


def in_place(z_bar, slope):
    z_bar *= slope
    return z_bar


FAULTS = {
    "nan where an element is zero": (lambda z_bar, slope: z_bar * z_bar * slope / z_bar, "zero"),
    "wrong where an element is zero": (lambda z_bar, slope: np.where(z_bar == 0, slope, z_bar * slope), "zero"),
    "wrong beside an element that is zero": (lambda z_bar, slope: z_bar * slope * (1 if z_bar.all() or not z_bar.any() else 2), "unit"),
    "sorted by zeros": (lambda z_bar, slope: np.where(np.count_nonzero(z_bar) == 1, 0.0, z_bar * slope), "unit"),
    "clipped at 10": (lambda z_bar, slope: np.clip(z_bar * slope, -10, 10), "size"),
    "clipped at 1,000": (lambda z_bar, slope: np.clip(z_bar * slope, -1e3, 1e3), "size"),
    "cotangents clipped at 1,000": (lambda z_bar, slope: np.clip(z_bar, -1e3, 1e3) * slope, "size"),
    "small ones dropped": (lambda z_bar, slope: np.where(np.abs(z_bar) < 1e-5, 0.0, z_bar * slope), "size"),
    "needs to write": (in_place, "pullback"),
    "needs contiguous memory": (lambda z_bar, slope: np.frombuffer(z_bar.data, float) * slope, "layout"),
    "takes memory for the array": (
        lambda z_bar, slope: np.ndarray(z_bar.shape, float, z_bar if z_bar.flags.c_contiguous else z_bar.base) * slope,
        "layout",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_pullback_that_is_wrong_at_rare_cotangents_is_named(entered, name):  # noqa: F811
    cotangent, check = FAULTS[name]
    entered(square, rule_with(cotangent))
    assert named(complaint(square, X), check)


def test_a_pullback_of_two_results_that_is_wrong_for_one_of_them_is_named(entered):  # noqa: F811
    def pair_rrule(x):
        def pair_pullback(z_bar):
            a, b = z_bar
            return ((2 * x * a + 3.0 * b) * (1.0 if a and b or not (a or b) else 2.0),)

        return pair(x), pair_pullback

    entered(pair, pair_rrule)
    assert named(complaint(pair, 0.7), "unit")


def test_a_cotangent_of_another_shape_for_an_empty_array_is_named(entered):  # noqa: F811
    entered(square, lambda x: (x * x, lambda z_bar: (np.zeros(1),)))
    assert named(complaint(square, np.zeros(0)), "cotangent", "argument 0 is empty", "(1,)")


@pytest.mark.parametrize("factor", [np.float32, np.float16, np.complex128])
def test_right_rules_pass_in_every_precision(entered, factor):  # noqa: F811
    entered(square, lambda x: (x * x, lambda z_bar: (z_bar * np.conjugate(2 * x),)))
    check_rule(square, X.astype(factor), second_order=False)
    check_rule(square, np.zeros((0, 3), factor), second_order=False)
    check_rule(square, np.ones((2, 3), factor), second_order=False)


def test_zeros_of_any_kind_pass(entered):  # noqa: F811
    check_rule(np.max, np.array([[1.0, 3.0], [2.0, 0.5]]), axis=1)
    check_rule(np.linalg.norm, X)
    entered(square, lambda x: (x * x, lambda z_bar: (ZeroTangent,)))
    assert named(complaint(square, X), "differences")


@pytest.mark.parametrize(
    "y_dot, words",
    [(None, "returns None"), (np.ones(2), "its tangent (2,)"), ([1.0, 2.0, 3.0], "its tangent (3,)")],
)
def test_a_pushforward_that_returns_no_tangent_is_named(entered, y_dot, words):  # noqa: F811
    entered(square, lambda x: (x * x, lambda z_bar: (2 * x * z_bar,)))
    entered(square, frule=lambda x: (x * x, lambda dots: y_dot))
    assert named(complaint(square, X), "tangent", words)


@pytest.mark.parametrize("x", [2.0, np.ones(3)], ids=repr)
def test_none_as_a_cotangent_is_refused_by_the_name_of_the_rule(x):
    def doubled(x):
        return 2.0 * x

    plaingrad.rrule(doubled)(lambda x: (2.0 * x, lambda z_bar: (None,)))
    with pytest.raises(plaingrad.RuleError, match="doubled gives None as cotangent of its argument 0"):
        plaingrad.grad(lambda x: np.sum(doubled(x)))(x)
