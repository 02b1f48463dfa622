"""Discrete distributions in k: between whole numbers the derivative is 0; both modes say the same."""

import numpy as np
import pytest

import plaingrad

stats = pytest.importorskip("scipy.stats")
COUNTS = {
    "binom": (10, 0.3), "nbinom": (5, 0.3), "poisson": (2.0,), "geom": (0.3,), "hypergeom": (20, 7, 12), "betabinom": (8, 2.0, 3.0),
    "skellam": (2.0, 3.0), "zipf": (2.5,), "logser": (0.6,), "planck": (0.5,), "boltzmann": (0.5, 9), "nhypergeom": (20, 7, 12),
}  # fmt: skip


def both(f, x):
    backward = plaingrad.grad(f)(x)
    forward = plaingrad.jvp(f, (x,), (np.ones_like(x),))[1]
    return backward, forward


@pytest.mark.parametrize("name", COUNTS)
def test_both_modes_say_the_same_in_k(name):
    dist, shapes = getattr(stats, name), COUNTS[name]
    for method in ("pmf", "logpmf", "cdf", "sf", "logcdf"):
        for k in (3.0, np.array(3.0)):
            backward, forward = both(lambda k, m=method: getattr(dist, m)(k, *shapes), k)
            assert backward == pytest.approx(forward, rel=1e-12), method
            if "pmf" not in method and name != "logser":  # whose formula SciPy does not step
                assert backward == 0.0  # a step function


@pytest.mark.filterwarnings("ignore")
def test_compiled_probabilities_in_their_integers():
    from scipy import special

    for f, args in ((special.bdtr, (3.0, 10.0, 0.4)), (special.pdtr, (3.0, 0.4)), (special.expn, (3.0, 0.4)), (special.kn, (2.0, 0.4))):
        first = np.array([args[0], args[0] + 1])
        backward, forward = both(lambda k, f=f, args=args: f(k, *args[1:]).sum(), first)
        assert not backward.any() and forward == 0.0


def test_moments_of_pareto_have_a_closed_form():
    for n in (1, 2):
        backward, forward = both(lambda b, n=n: stats.pareto.moment(n, b), 2.62)
        assert backward == pytest.approx(-n / (2.62 - n) ** 2) and forward == pytest.approx(backward)
    second = plaingrad.grad(plaingrad.grad(lambda b: stats.pareto.moment(2, b)))(2.62)
    assert second == pytest.approx(4 / 0.62**3, rel=1e-6)
