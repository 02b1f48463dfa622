"""One test for each line of docs/explanation/singular-points.md."""

import math

import numpy as np
import pytest

from plaingrad import derivative, grad, hessian


def both(f, x, y):
    """The derivatives of `f` with respect to both arguments."""
    return grad(f, argnums=(0, 1))(x, y)


@pytest.mark.parametrize("f", [abs, math.fabs, np.abs, np.absolute, lambda x: x.__abs__()])
def test_abs_at_zero_is_flat(f):
    assert grad(f)(0.0) == 0.0
    assert grad(f)(-0.0) == 0.0


def test_abs_of_an_array_is_flat_at_its_zeros():
    assert grad(lambda x: np.abs(x).sum())(np.array([-2.0, 0.0, 3.0])).tolist() == [-1.0, 0.0, 1.0]


@pytest.mark.parametrize("f", [abs, np.abs])
def test_abs_of_a_complex_zero_is_flat(f):
    assert grad(f)(0j) == 0


@pytest.mark.parametrize("f", [math.hypot, np.hypot, lambda x, y: math.dist([x, y], [0.0, 0.0])])
def test_hypot_at_the_origin_is_flat(f):
    assert both(f, 0.0, 0.0) == (0.0, 0.0)


@pytest.mark.parametrize("order", [None, 2, 1])
def test_norm_of_the_zero_vector_is_flat(order):
    assert grad(lambda x: np.linalg.norm(x, order))(np.zeros(3)).tolist() == [0.0, 0.0, 0.0]


def test_std_of_equal_elements_is_flat():
    assert grad(np.std)(np.full(3, 2.0)).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("f", [max, min])
def test_a_tie_of_max_goes_to_the_argument_that_is_returned(f):
    assert both(f, 2.0, 2.0) == (1.0, 0.0)
    assert grad(lambda xs: f(xs))([1.0, 1.0, 1.0]) == [1.0, 0.0, 0.0]


def test_equal_elements_keep_their_order_in_sorted():
    weights = (1.0, 10.0, 100.0)

    def weighted(xs):
        return sum(w * x for w, x in zip(weights, sorted(xs)))

    assert grad(weighted)([2.0, 1.0, 2.0]) == [10.0, 1.0, 100.0]


def test_equal_elements_keep_their_order_in_np_sort():
    weights = np.array([1.0, 10.0, 100.0])
    assert grad(lambda x: np.sort(x) @ weights)(np.array([2.0, 1.0, 2.0])).tolist() == [10.0, 1.0, 100.0]


@pytest.mark.parametrize("f", [np.max, np.min, lambda x: x.max(), lambda x: x.min(), np.amax])
def test_a_reduction_shares_among_equal_extremes(f):
    assert grad(f)(np.full(4, 3.0)).tolist() == [0.25] * 4


def test_a_reduction_along_an_axis_shares_within_each_row():
    x = np.array([[1.0, 1.0], [2.0, 5.0]])
    assert grad(lambda x: x.max(axis=1).sum())(x).tolist() == [[0.5, 0.5], [0.0, 1.0]]


@pytest.mark.parametrize("f", [np.maximum, np.minimum])
def test_maximum_of_equal_elements_is_the_first(f):
    assert both(f, 2.0, 2.0) == (1.0, 0.0)


def test_clip_passes_at_its_bounds():
    x = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    assert grad(lambda x: np.clip(x, -1.0, 1.0).sum())(x).tolist() == [0.0, 1.0, 1.0, 1.0, 0.0]


@pytest.mark.parametrize("x", [0.0, -2.0, 3.0])
@pytest.mark.parametrize(
    "f", [lambda x: x**0, lambda x: x**0.0, lambda x: np.power(x, 0), lambda x: pow(x, 0)]
)
def test_the_zeroth_power_is_constant(f, x):
    assert grad(f)(x) == 0.0


@pytest.mark.parametrize("x", [0.0, -3.0])
@pytest.mark.parametrize(
    "f", [lambda x: x**2, lambda x: x**2.0, lambda x: math.pow(x, 2), lambda x: np.power(x, 2)]
)
def test_a_constant_exponent_asks_for_no_logarithm(f, x):
    assert grad(f)(x) == 2 * x


def test_zero_to_an_active_power_is_flat_in_the_exponent():
    assert both(lambda x, y: x**y, 0.0, 2.0) == (0.0, 0.0)
    assert grad(lambda y: 0.0**y)(3.0) == 0.0


@pytest.mark.parametrize("f", [math.sqrt, np.sqrt, lambda x: x**0.5])
def test_a_root_has_a_pole_at_zero(f):
    with np.errstate(all="ignore"):
        assert grad(f)(0.0) == math.inf


@pytest.mark.parametrize("f, slope", [(math.asin, math.inf), (math.acos, -math.inf), (np.arcsin, math.inf)])
@pytest.mark.parametrize("x", [1.0, -1.0])
def test_arc_functions_have_poles_at_the_ends(f, slope, x):
    with np.errstate(all="ignore"):
        assert grad(f)(x) == slope


def test_the_logarithm_has_a_pole_where_numpy_gives_minus_infinity():
    with np.errstate(all="ignore"):
        assert grad(np.log)(0.0) == math.inf


def test_math_log_of_zero_raises_as_in_a_plain_call():
    with pytest.raises(ValueError):
        grad(math.log)(0.0)


@pytest.mark.parametrize("f", [math.atan2, np.arctan2])
def test_the_angle_of_the_origin_has_no_derivative(f):
    with np.errstate(all="ignore"):
        assert all(map(math.isnan, both(f, 0.0, 0.0)))


def test_a_remainder_at_a_jump_keeps_its_slopes():
    assert both(lambda x, y: x % y, 6.0, 3.0) == (1.0, -2.0)
    assert both(lambda x, y: divmod(x, y)[1], 6.0, 3.0) == (1.0, -2.0)


@pytest.mark.parametrize("x", [2.0, 2.5, -0.5])
@pytest.mark.parametrize(
    "f", [lambda x: x // 1.0, math.floor, math.ceil, np.floor, np.round, np.sign, np.trunc, round]
)
def test_steps_are_flat_everywhere(f, x):
    assert grad(lambda x: f(x) + 0.0 * x)(x) == 0.0


def test_the_sign_that_copysign_takes_is_flat():
    assert both(math.copysign, 2.0, -3.0) == (-1.0, 0.0)


@pytest.mark.parametrize(
    "x, expected",
    [([2.0, 0.0, 5.0], [0.0, 10.0, 0.0]), ([0.0, 0.0, 5.0], [0.0, 0.0, 0.0]), ([2.0, 3.0], [3.0, 2.0])],
)
def test_a_product_is_right_at_zeros(x, expected):
    assert grad(np.prod)(np.array(x)).tolist() == expected
    assert grad(math.prod)(x) == expected


def test_where_gives_nothing_to_the_element_that_was_not_chosen():
    def f(x, y):
        return np.where(np.array([True, False]), x, y).sum()

    x_bar, y_bar = both(f, np.ones(2), np.ones(2))
    assert (x_bar.tolist(), y_bar.tolist()) == ([1.0, 0.0], [0.0, 1.0])


def test_the_branch_that_ran_decides():
    def ramp(x):
        return x if x > 0 else 0.0 * x

    def steep(x):
        return 2 * x if x >= 0 else x

    assert (grad(ramp)(0.0), grad(steep)(0.0)) == (0.0, 2.0)


def test_an_inactive_argument_poisons_nothing():
    def f(x, y):
        return np.arctan2(x, y) + x**y + np.hypot(x, y)

    assert math.isfinite(grad(f)(0.0, 2.0))
    assert grad(lambda x: (x * np.array([0.0, 1.0])).sum() + np.sqrt(np.zeros(2)).sum())(1.0) == 1.0


@pytest.mark.parametrize(
    "f",
    [
        lambda x: abs(x) ** 2,
        lambda x: math.fabs(x) * math.fabs(x),
        lambda x: np.abs(x) ** 2,
        lambda x: math.hypot(x, 2 * x) ** 2,
        lambda x: np.hypot(x, x) ** 2,
        lambda x: math.dist((x, x), (0.0, 0.0)) ** 2,
        lambda x: np.linalg.norm(np.array([x, x])) ** 2,
        lambda x: abs(complex(x, x)) ** 2,
        lambda x: np.std(np.array([x, -x])) ** 2,
    ],
)
def test_the_second_derivative_of_a_square_of_a_kink_is_flat_at_the_kink_only(f):
    for second in (grad(grad(f)), derivative(derivative(f)), derivative(f, order=2), hessian(f)):
        assert second(0.0) == 0.0
        assert second(0.5) == pytest.approx(f(1.0) * 2)
    assert grad(f)(0.0) == 0.0
