"""Sums, products and lengths of many numbers: the primal to the last bit, the derivative against differences."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from tests.rules.agreement import assert_partials_agree

from plaingrad import rulebook
from plaingrad.rules.python import arithmetic
from plaingrad.tangents import unthunk

POINTS = [(0.7, -1.2, 2.5), (3.0, 4.0, 1e-3)]


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("f, fixed", [
    (arithmetic._sum_of_numbers, ()), (math.hypot, ()), (arithmetic._exact_sum, ()), (arithmetic._distance, (2,)),
    *([(arithmetic._exact_sum_of_products, (2,))] if hasattr(math, "sumprod") else []),
])
def test_partials_agree_with_differences(f, fixed, point):
    args = (*fixed, *point, *([1.5] if fixed else []))
    assert_partials_agree(rulebook.find(f).rrule, args)


def test_a_distance_of_zero_has_slope_zero():
    _, pullback = rulebook.find(arithmetic._distance).rrule(1, 2.0, 2.0)
    assert list(map(unthunk, pullback(1.0)))[1:] == [0, 0]


class Money:
    def __init__(self, amount):
        self.amount = amount

    def __add__(self, other):
        return Money(self.amount + other.amount)

    def __divmod__(self, n):
        return Money(self.amount // n), Money(self.amount % n)

    def __eq__(self, other):
        return self.amount == other.amount


random.seed(7)
MANY = [random.lognormvariate(0, 9) * random.choice((-1, 1)) for _ in range(999)]


@pytest.mark.parametrize("f, args, options", [
    (sum, (MANY,), {}),
    (sum, (MANY, 5), {}),
    (sum, ([1, True, 0.1, *MANY[:9], np.float64(0.3), *MANY[9:]],), {}),
    (sum, ([0.1, 1j, 0.2, 3],), {}),
    (sum, ([],), {}),
    (sum, ([0.1, np.arange(3.0), 0.2],), {}),
    (sum, ([Fraction(1, 3), 2, 0.5],), {}),
    (sum, ([[1], [2]], []), {}),
    (sum, ([Money(2), Money(3)], Money(0)), {}),
    (divmod, (7.5, -2.0), {}),
    (divmod, (-7, 2), {}),
    (divmod, (np.float64(7.5), 2), {}),
    (divmod, (Fraction(7, 2), Fraction(2, 3)), {}),
    (divmod, (Money(7), 2), {}),
    (math.fsum, (MANY,), {}),
    (math.prod, ([0.1, 3, 1e-5, 7.7],), {}),
    (math.prod, ([0.1, 3],), {"start": 2.5}),
    (math.prod, ([],), {}),
    (math.dist, ((1.0, 2.0), [0.5, 7]), {}),
    (math.dist, (np.array([1.0, 2.0]), (0.5, 7)), {}),
    *([(math.sumprod, (MANY, MANY[::-1]), {}), (math.sumprod, ([0.1, Fraction(1, 3)], [3, 2]), {})] if hasattr(math, "sumprod") else []),
])
def test_a_definition_gives_what_the_function_gives(f, args, options):
    found, expected = rulebook.find(f).definition(*args, **options), f(*args, **options)
    if isinstance(expected, np.ndarray):
        np.testing.assert_array_equal(found, expected)
    else:
        assert found == expected
    assert type(found) is type(expected)


def test_a_definition_raises_what_the_function_raises():
    for f, args in [(sum, (["a"], "")), (math.dist, ((1.0,), (1.0, 2.0))), (sum, (3,)), (divmod, (1.0, "a")),
                    (divmod, (1.0, 0.0))]:
        with pytest.raises(Exception) as expected:
            f(*args)
        with pytest.raises(type(expected.value)):
            rulebook.find(f).definition(*args)


def test_no_rule_here_is_without_a_test():
    tested = {arithmetic._sum_of_numbers, math.hypot, arithmetic._exact_sum, arithmetic._distance, sum, divmod, math.fsum,
              math.prod, math.dist}
    if hasattr(math, "sumprod"):
        tested |= {arithmetic._exact_sum_of_products, math.sumprod}
    here = {rule.function for rule in rulebook.rules()
            if rule.source.split(":")[0] == arithmetic.__file__ and rule.kind in ("full", "linear", "composed", "scalar")}
    assert here == tested
