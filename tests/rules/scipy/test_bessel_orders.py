"""Order derivatives of Bessel functions of whole arrays: sums where these hold, contour integrals for the rest."""

import numpy as np
import pytest

import plaingrad

mp = pytest.importorskip("mpmath").mp
special = pytest.importorskip("scipy.special")

RANDOM = np.random.default_rng(16)
TRUE = {
    "jv": lambda v, x: mp.besselj(v, x),
    "ive": lambda v, x: mp.besseli(v, x) * mp.exp(-x),
    "kve": lambda v, x: mp.besselk(v, x) * mp.exp(x),
    "iv": lambda v, x: mp.besseli(v, x),
    "kv": lambda v, x: mp.besselk(v, x),
}


def slope_in_mpmath(name, v, x, n=1):
    with mp.workdps(50):
        return mp.diff(lambda s: TRUE[name](s, mp.mpf(x)), mp.mpf(v), n, h=mp.mpf(10) ** -12)


def far_apart(found, truth, goal):
    return [(k, found[k], t) for k, t in enumerate(truth) if not abs(mp.mpf(float(found[k])) - t) <= goal * abs(t)]


def slopes(name, v, x):
    return plaingrad.grad(lambda v: np.sum(getattr(special, name)(v, x)))(v)


@pytest.mark.parametrize("name", sorted(TRUE))
def test_slopes_of_arrays_agree_with_mpmath_at_random_orders_and_arguments(name):
    v = np.concatenate([RANDOM.uniform(-3, 60, 30), RANDOM.integers(1, 6, 10) * 1.0, RANDOM.uniform(0, 3, 30)])
    x = np.concatenate([np.exp(RANDOM.uniform(np.log(0.01), np.log(90), 40)), RANDOM.uniform(0.1, 5, 30)])
    found = slopes(name, v, x)
    # Near zeros of the slope of J its digits are those of the function.
    goal = 1e-10 if name != "jv" else 1e-8
    assert not far_apart(found, [slope_in_mpmath(name, a, b) for a, b in zip(v, x, strict=True)], goal)


@pytest.mark.parametrize("name", ["jv", "ive", "kve"])
def test_both_sides_of_every_switch_of_method(name):
    edges = []
    for step in (-1e-9, 1e-9):
        edges += [(-0.5 + step, 1.3), (1.7, 40.0 + 40 * step), (9.5, 40.0 + 40 * step), (0.0, 2.0 + step)]
        edges += [(2.0 * np.log(2.0) / 300 + step, 2.0), (12.0 * np.log(12.0) / 300 + step, 12.0)]
        edges += [(3.0, np.sqrt(12 * 4.0) + step), (0.3, np.sqrt(12 * 7.3) + step), (5.2, 1e-3)]
    edges = np.array(edges * 3)  # so many that they are summed
    v, x = edges.T
    truth = {(a, b): slope_in_mpmath(name, a, b) for a, b in edges.tolist()}
    assert not far_apart(slopes(name, v, x), [truth[tuple(pair)] for pair in edges.tolist()], 1e-10)


@pytest.mark.parametrize("name", ["jv", "ive", "kve"])
def test_second_derivatives_in_the_order_of_arrays(name):
    v, x = RANDOM.uniform(0.2, 20, 40), np.exp(RANDOM.uniform(np.log(0.05), np.log(30), 40))
    found = plaingrad.grad(lambda v: np.sum(slopes(name, v, x)))(v)
    assert not far_apart(found, [slope_in_mpmath(name, a, b, 2) for a, b in zip(v, x, strict=True)], 1e-8)


def test_what_has_no_slope_is_nan_beside_others():
    v = np.array([1.5, np.nan, 2.0, 0.7, 400.0] * 10)
    x = np.array([2.0, 2.0, np.inf, 0.0, 3.0] * 10)
    found = slopes("jv", v, x)
    assert np.all(np.isnan(found.reshape(-1, 5)[:, 1:]))
    np.testing.assert_allclose(found[::5], float(slope_in_mpmath("jv", 1.5, 2.0)), rtol=1e-12)


def test_few_numbers_and_many_have_one_slope():
    v, x = RANDOM.uniform(0.1, 10, 50), RANDOM.uniform(0.1, 30, 50)
    for name in ("jv", "ive", "kve"):
        one_by_one = [slopes(name, v[k : k + 1], x[k : k + 1])[0] for k in range(50)]
        np.testing.assert_allclose(slopes(name, v, x), one_by_one, rtol=1e-9)
