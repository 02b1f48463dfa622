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
