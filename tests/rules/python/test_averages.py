"""The functions of `statistics`: their own digits, and derivatives against differences."""

import math
import statistics
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from tests.rules.agreement import assert_partials_agree, difference, inner

from plaingrad import rulebook
from plaingrad.rules.python import averages
from plaingrad.tangents import unthunk

ITEMS = (0.7, 1.3, 2.9, 4.1)
SPREADS = (statistics.variance, statistics.pvariance, statistics.stdev, statistics.pstdev)


def smooth(f, centre):
    """f without its final rounding steps, which differences of eighth order would see."""

    def of(*items):
        n, c = len(items), centre
        if c is None:
            c = math.fsum(items) / n
        d = n - 1 if f in (statistics.variance, statistics.stdev) else n
        z = math.fsum((x - c) ** 2 for x in items) / d
        return math.sqrt(z) if f in (statistics.stdev, statistics.pstdev) else z

    return of


@pytest.mark.parametrize("centre", [None, 2.0])
@pytest.mark.parametrize("f", SPREADS)
def test_the_slopes_of_the_variances(f, centre):
    z, pullback = rulebook.find(averages._spread).rrule(f.__name__, centre, *ITEMS)
    assert z == (f(ITEMS) if centre is None else f(ITEMS, centre))
    f_bar, centre_bar, *items_bar = map(unthunk, pullback(1.0))
    for i, x in enumerate(ITEMS):
        truth = difference(lambda t: smooth(f, centre)(*ITEMS[:i], t, *ITEMS[i + 1 :]), x)
        assert items_bar[i] == pytest.approx(truth, rel=1e-9)
    if centre is not None:
        assert centre_bar == pytest.approx(difference(lambda c: smooth(f, c)(*ITEMS), centre), rel=1e-9)


def test_a_deviation_of_equal_items_has_slope_zero():
    _, pullback = rulebook.find(averages._spread).rrule("stdev", None, 2.0, 2.0, 2.0)
    assert list(map(unthunk, pullback(1.0)))[2:] == [0, 0, 0]


def test_the_slopes_of_the_means():
    assert_partials_agree(rulebook.find(averages._mean).rrule, ITEMS)
    assert_partials_agree(rulebook.find(averages._float_mean).rrule, ITEMS)
    assert_partials_agree(rulebook.find(averages._harmonic_mean).rrule, (None, *ITEMS))


def test_the_slopes_of_a_weighted_harmonic_mean():
    weights = [0.2, 3.0, 0.0, 1.5]
    rrule = rulebook.find(averages._harmonic_mean).rrule
    assert_partials_agree(rrule, (weights, *ITEMS))
    weights_bar = rrule(weights, *ITEMS)[1](1.0)[0]
    for i in (0, 1, 3):
        truth = difference(lambda w: rrule([*weights[:i], w, *weights[i + 1 :]], *ITEMS)[0], weights[i])
        assert inner(weights_bar[i], 1.0) == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize("p", [0.1, 0.4, 0.5, 0.9])
def test_the_slopes_of_the_normal_quantile(p):
    assert_partials_agree(rulebook.find(statistics._normal_dist_inv_cdf).rrule, (p, 0.3, 1.7), rel=1e-7)


DATA = [
    [1.5, 2.5, 2.75, 1.5e-3, 7.7], (3, 4, 5.5), [Fraction(1, 6), Fraction(1, 2), Fraction(5, 3)],
    [Decimal("27.5"), Decimal("30.25"), Decimal("34.5")], np.array([0.1, 0.2, 0.7]),
]


@pytest.mark.parametrize("f", [statistics.mean, statistics.harmonic_mean, *SPREADS, statistics._mean_stdev])
@pytest.mark.parametrize("data", DATA, ids=str)
def test_a_definition_gives_what_the_function_gives(f, data):
    found, expected = rulebook.find(f).definition(data), f(data)
    assert found == expected and type(found) is type(expected)
    assert rulebook.find(f).definition(iter(data)) == expected


def test_a_definition_raises_what_the_function_raises():
    for f in (statistics.mean, statistics.stdev, statistics.variance, statistics.harmonic_mean):
        with pytest.raises(statistics.StatisticsError):
            rulebook.find(f).definition([])


def test_a_given_centre_and_given_weights_are_used():
    assert rulebook.find(statistics.variance).definition([1.0, 2.0], 0.5) == statistics.variance([1.0, 2.0], 0.5)
    weights = iter([1.0, 3.0])
    assert rulebook.find(statistics.harmonic_mean).definition([1.0, 2.0], weights) == statistics.harmonic_mean([1.0, 2.0], [1.0, 3.0])


def test_no_rule_here_is_without_a_test():
    tested = {averages._mean, averages._float_mean, averages._harmonic_mean, averages._spread, statistics._normal_dist_inv_cdf, statistics.mean,
              statistics.harmonic_mean, *SPREADS, statistics._mean_stdev}
    here = {rule.function for rule in rulebook.rules() if rule.source.split(":")[0] == averages.__file__}
    assert here == tested
