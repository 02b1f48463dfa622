"""Minima of more unknowns than a matrix is made for: beside sparse direct solutions of the same equations."""

import sys

import numpy as np
import plaingrad
import pytest
from tests.scipy.agreement import agrees

so = pytest.importorskip("scipy.optimize")
sparse = pytest.importorskip("scipy.sparse")
spla = pytest.importorskip("scipy.sparse.linalg")
pytestmark = pytest.mark.filterwarnings("ignore")
MODULE = "plaingrad.rules.scipy.optimize.large_minima"


@pytest.fixture
def few_are_many(monkeypatch):
    """No matrix is made for more than five unknowns."""
    plaingrad.grad(lambda x: so.brentq(lambda t: t - x, 0.0, 9.0))(1.0)  # the rules are there
    monkeypatch.setattr(sys.modules[MODULE], "LARGEST", 5)


def energy(x, a, p):
    """A chain of springs, each pulled to its own place."""
    return np.sum((x - a) ** 2) + 0.1 * np.sum(x**4) + p * np.sum((x[1:] - x[:-1]) ** 2)


def slope(x, a, p):
    z = 2 * (x - a) + 0.4 * x**3
    z[1:] += 2 * p * (x[1:] - x[:-1])
    z[:-1] -= 2 * p * (x[1:] - x[:-1])
    return z


def curvature(x, p):
    n = x.size
    ends = np.where((np.arange(n) == 0) | (np.arange(n) == n - 1), 1.0, 2.0)
    middle = 2 + 1.2 * x**2 + 2 * p * ends
    return sparse.diags([middle, np.full(n - 1, -2 * p), np.full(n - 1, -2 * p)], [0, 1, -1]).tocsc()


def lowest(a, p, **options):
    tight = {"maxiter": 500, "ftol": 1e-15, "gtol": 1e-10}
    return so.minimize(energy, 0.0 * np.asarray(a), (a, p), "L-BFGS-B", slope, options=tight, **options).x


def test_a_minimum_of_4500_unknowns():
    n = 4500
    a, w = np.sin(np.arange(n)), np.cos(np.arange(n))
    x = lowest(a, 0.7)
    multipliers = spla.spsolve(curvature(x, 0.7), w)
    exact = 2 * multipliers
    of_p = -multipliers @ (slope(x, a, 1.0) - slope(x, a, 0.0))
    found = plaingrad.grad(lambda a, p: lowest(a, p) @ w, (0, 1))(a, 0.7)
    np.testing.assert_allclose(found[0], exact, rtol=1e-5, atol=1e-8)
    assert found[1] == pytest.approx(of_p, rel=1e-5)


def test_bounds_that_hold_some_of_the_unknowns():
    n = 4500
    a, w = np.sin(np.arange(n)), np.cos(np.arange(n))
    bounds = so.Bounds(-0.3, 0.2)
    x = lowest(a, 0.7, bounds=bounds)
    free = np.flatnonzero((x > -0.3) & (x < 0.2))
    assert 0 < free.size < n
    whole = curvature(x, 0.7)
    exact, multipliers = np.zeros(n), spla.spsolve(whole[free][:, free], w[free])
    exact[free] = 2 * multipliers
    found = plaingrad.grad(lambda a, top: lowest(a, 0.7, bounds=so.Bounds(-0.3, top)) @ w, (0, 1))(a, 0.2)
    np.testing.assert_allclose(found[0], exact, rtol=1e-5, atol=1e-8)
    held = np.flatnonzero(x == 0.2)
    of_top = w[held].sum() - multipliers @ np.asarray(whole[free][:, held].sum(1)).ravel()
    assert found[1] == pytest.approx(of_top, rel=1e-5)


def test_every_mode_and_order(few_are_many):
    def f(z):
        return lowest(z[:8], z[8] ** 2)

    agrees(f, np.append(np.sin(np.arange(8.0)), 0.8), tolerance=1e-5)
    series = plaingrad.taylor(lambda t: lowest(t * np.sin(np.arange(8.0)), 0.7).sum(), 1.1, 2)
    values = [lowest(t * np.sin(np.arange(8.0)), 0.7).sum() for t in (1.1 - 1e-3, 1.1, 1.1 + 1e-3)]
    assert series[1] == pytest.approx((values[2] - values[0]) / 2e-3, rel=1e-4)
    assert series[2] == pytest.approx((values[2] - 2 * values[1] + values[0]) / 2e-6, rel=1e-2)


def test_many_residuals_and_unknowns(few_are_many):
    matrix = np.eye(9) + 0.2 * np.eye(9, k=1)

    def f(b):
        return so.least_squares(lambda x: matrix @ x + 0.1 * x**2 - b, np.zeros(9), xtol=1e-15, gtol=1e-14, ftol=1e-15).x

    b = np.linspace(0.5, 1.5, 9)
    found = plaingrad.jacobian(f)(b)
    np.testing.assert_allclose(found, np.linalg.inv(matrix + 0.2 * np.diag(f(b))), atol=1e-8)


def test_what_is_no_minimum_is_refused(few_are_many):
    def saddle(a):  # nothing moves from there
        return so.minimize(lambda x: np.sum(x[1:] ** 2) - x[0] ** 2 + a * np.sum(x**4), np.zeros(7), method="BFGS").x.sum()

    with pytest.raises(plaingrad.MissingRuleError, match="no minimum"):
        plaingrad.grad(saddle)(1.0)

    def flat(a):
        return so.minimize(lambda x: np.sum((x - a) ** 4), np.zeros(7), method="BFGS").x.sum()

    with pytest.raises(plaingrad.MissingRuleError, match="regular minimum|conjugate gradients"):
        plaingrad.grad(flat)(1.0)
