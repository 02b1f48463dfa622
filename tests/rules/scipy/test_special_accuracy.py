"""Slopes of scipy.special against mpmath at random arguments, real and complex, in every argument, orders and shapes too.

`make test` tries one function in four with two points each; all with PLAINGRAD_TEST_ALL=1.
"""

import zlib

import mpmath as mp
import numpy as np
import pytest
from tests.sampling import count, is_in_sample

pytest.importorskip("scipy.special")

from tests.rules.scipy.special_table import COMPLEX, REAL  # noqa: E402

import plaingrad  # noqa: E402
from plaingrad import rulebook  # noqa: E402
from plaingrad.rules.scipy import forms  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
ACCURACY = 1e-10
# SciPy itself has fewer digits of what the slope is made of.
LESS = {"ker": 1e-9, "kei": 1e-9, "_smirnovp": 1e-7, "gammaincc": 1e-9}
SLOW = {"nctdtr", "chndtr", "ncfdtr"}
NO_REGION = {("lpmv", 1)}  # nan where the series of the slope has lost its digits
CASES = [("real", name) for name in REAL] + [("complex", name) for name in COMPLEX]


def slope_in_mpmath(f, args, k):
    """The derivative of f in argument k by differences of fourth order with sixty digits."""
    x = [mp.mpmathify(a) for a in args]
    h = mp.mpf(10) ** -10 * max(mp.mpf(1) / 1000, abs(x[k]))
    with mp.workdps(60):
        def g(step):
            return f(*x[:k], x[k] + step, *x[k + 1 :])

        return (8 * (g(h) - g(-h)) - (g(2 * h) - g(-2 * h))) / (12 * h)


@pytest.mark.parametrize("kind, name", [case for case in CASES if is_in_sample(case, 4) and case[1] not in SLOW])
def test_a_slope_agrees_with_mpmath_to_ten_digits(kind, name):
    function = forms.find(name)
    if function is None:
        pytest.skip(f"this SciPy has no {name}")
    f, samplers = (REAL if kind == "real" else COMPLEX)[name]
    rng = np.random.default_rng(zlib.crc32(f"{kind} {name}".encode()))
    for _ in range(count(2, 12)):
        args = [sampler(rng) for sampler in samplers]
        partials = rulebook.find(function).partials
        for k, x in enumerate(args):
            if type(x) is int or (partials and partials[k] is None):
                continue
            along = lambda t, k=k, args=args: function(*args[:k], t, *args[k + 1 :])
            _, found = plaingrad.jvp(along, (x,), (type(x)(1),))
            if not np.isfinite(found):
                assert (name, k) in NO_REGION, (args, k)
                continue
            truth = slope_in_mpmath(f, args, k)
            if abs(truth) < 1e-30:
                continue  # mpmath's own differences have nothing left
            assert abs(mp.mpmathify(complex(found)) - truth) <= LESS.get(name, ACCURACY) * abs(truth), (args, k, found, truth)


@pytest.mark.parametrize("name", sorted(SLOW))
def test_a_slope_of_a_noncentral_distribution_agrees_with_mpmath(name):
    function = forms.find(name)
    f, _ = REAL[name]
    args = {"nctdtr": (4.5, 0.7, 1.3), "chndtr": (3.1, 2.4, 1.7), "ncfdtr": (3.2, 4.1, 1.5, 0.9)}[name]
    with mp.workdps(25):
        for k in range(len(args)):
            along = lambda t, k=k: function(*args[:k], t, *args[k + 1 :])
            x = [mp.mpf(a) for a in args]
            h = mp.mpf(10) ** -5
            g = lambda step, k=k: f(*x[:k], x[k] + step, *x[k + 1 :])
            truth = (8 * (g(h) - g(-h)) - (g(2 * h) - g(-2 * h))) / (12 * h)
            assert plaingrad.grad(along)(args[k]) == pytest.approx(float(truth), rel=1e-10)


# Both sides of every switch of method ---------------------------------------------------------------------------

SWITCHES = [
    ("gammainc", (5.0, 5.0), 1), ("gammainc", (1e-3, 1e-3), 1), ("gammainc", (1e4, 1e4), 1),
    ("betainc", (2.0, 3.0, 0.4), 2), ("betainc", (200.0, 3.0, 200 / 203), 2),
    ("jv", (1.5, 40.0), 1), ("jv", (30.0, 30.0), 0), ("yv", (1.5, 40.0), 1),
    ("iv", (1.5, 40.0), 1), ("kv", (1.5, 40.0), 1), ("struve", (1.5, 9.0), 1),
    ("hyp1f1", (1.3, 2.1, 0.0), 2), ("hyp2f1", (1.3, 0.4, 2.1, -0.5), 3), ("hyperu", (1.0, 0.4, 2.1), 0),
    ("erfcx", (7.0,), 0), ("erfcx", (-7.0,), 0), ("dawsn", (7.0,), 0), ("i0e", (1000.0,), 0),
    ("k1e", (1000.0,), 0), ("spence", (0.7,), 0), ("spence", (1.3,), 0), ("exprel", (1.0,), 0),
    ("kolmogorov", (0.9,), 0), ("ellipkinc", (1.5707963, 0.4), 0),
]  # fmt: skip


@pytest.mark.parametrize("name, args, place", SWITCHES)
def test_slopes_agree_with_mpmath_on_both_sides_of_a_switch_of_method(name, args, place):
    function, (f, samplers) = forms.find(name), REAL[name]
    for factor in (1 - 1e-9, 1 + 1e-9):
        x = list(args)
        x[place] = args[place] * factor or factor - 1
        partials = rulebook.find(function).partials
        for k in range(len(x)):
            if partials[k] is None:
                continue
            found = plaingrad.grad(lambda t, k=k, x=x: function(*x[:k], t, *x[k + 1 :]))(x[k])
            truth = slope_in_mpmath(f, x, k)
            assert abs(found - truth) <= ACCURACY * abs(truth), (x, k, found, truth)


# Arrays: series and continued fractions where numbers have integrals --------------------------------------------


def shape_points(name):
    """Arguments in an array: both sides of each switch of method, ends, and what is left to the integrals."""
    rng = np.random.default_rng(11)
    a = np.exp(rng.uniform(np.log(0.01), np.log(300.0), 12))
    if name == "gammainc":
        middle = a + 2 * np.sqrt(a) + 2
        x = np.concatenate([a * rng.uniform(0.05, 1.5, 12), middle * (1 - 1e-9), middle * (1 + 1e-9), [30.0, 4.0e-3]])
        return np.concatenate([a, a, a, [1001.0, 1e-9]]), np.minimum(x, 60.0)
    b = np.exp(rng.uniform(np.log(0.05), np.log(300.0), 12))
    mean = a / (a + b)
    x = np.concatenate([rng.uniform(0.02, 0.98, 12), mean * (1 - 1e-9), mean * (1 + 1e-9), [0.9, 0.4]])
    return np.concatenate([a, a, a, [1001.0, 1e-9]]), np.concatenate([b, b, b, [20.0, 2.0]]), x


@pytest.mark.parametrize("name, places", [("gammainc", (0,)), ("betainc", (0, 1))])
def test_slopes_in_the_parameters_of_arrays_agree_with_mpmath(name, places):
    function, args = forms.find(name), shape_points(name)
    for k in places:
        total = lambda t, k=k: np.sum(function(*args[:k], t, *args[k + 1 :]))
        found = plaingrad.grad(total)(args[k])
        for n in range(found.size):
            truth = slope_in_mpmath(REAL[name][0], [float(y[n]) for y in args], k)
            if abs(truth) > 1e-30 and args[0][n] > 1e-6:  # a smaller one: SciPy's own psi has fewer digits there
                assert abs(found[n] - truth) <= ACCURACY * abs(truth), ([y[n] for y in args], k, found[n], truth)


@pytest.mark.parametrize("name, places", [("gammainc", (0,)), ("betainc", (0, 1))])
def test_slopes_in_the_parameters_of_arrays_have_slopes_and_keep_shape_and_dtype(name, places):
    function = forms.find(name)
    args = [np.linspace(0.6, 3.1, 24).reshape(2, 12), np.linspace(0.5, 2.5, 12), np.linspace(0.1, 0.9, 12)]
    args = [args[0], args[2]] if name == "gammainc" else args
    h = 1e-5
    for k in places:
        slope = plaingrad.grad(lambda t, k=k: np.sum(function(*args[:k], t, *args[k + 1 :])))
        steps = (slope(args[k] + h) - slope(args[k] - h)) / (2 * h)
        bend = plaingrad.grad(lambda t, slope=slope: np.sum(slope(t)))(args[k])
        np.testing.assert_allclose(bend, steps, rtol=1e-7, atol=1e-9)
        _, along = plaingrad.jvp(slope, (args[k],), (np.ones_like(args[k]),))
        np.testing.assert_allclose(along, bend, rtol=1e-9)
        half = [y.astype(np.float32) for y in args]
        narrow = plaingrad.grad(lambda t, k=k: np.sum(function(*half[:k], t, *half[k + 1 :])))(half[k][..., ::-1])
        assert narrow.dtype == np.float32 and narrow.shape == args[k].shape


def test_slopes_in_the_parameters_of_arrays_are_zero_at_the_ends_and_nan_outside():
    a = np.linspace(0.5, 3.0, 10)
    x = np.array([0.0, np.inf, -1.0, np.nan, 1.0, 2.0, 0.5, 0.0, 3.0, 1.0])
    found = plaingrad.grad(lambda a: np.sum(forms.find("gammainc")(a, x)))(a)
    assert (found[[0, 1, 7]] == 0).all() and np.isnan(found[[2, 3]]).all() and (found[[4, 5, 6, 8, 9]] < 0).all()
    x = np.array([0.0, 1.0, -0.1, np.nan, 0.3, 0.4, 0.5, 0.6, 1.1, 0.8])
    found = plaingrad.grad(lambda a: np.sum(forms.find("betainc")(a, 2.0, x)))(a)
    assert (found[:2] == 0).all() and np.isnan(found[[2, 3, 8]]).all() and (found[[4, 5, 6, 7, 9]] < 0).all()
    empty = plaingrad.grad(lambda a: np.sum(forms.find("betainc")(a, 2.0, 0.3)))(np.zeros(0))
    assert empty.shape == (0,)
