"""Discrepancies of points, and robust slopes."""

import numpy as np
import pytest
from tests.scipy.agreement import agrees

import plaingrad

stats = pytest.importorskip("scipy.stats")
qmc = stats.qmc
POINTS = 0.5 + 0.45 * np.cos(np.arange(21.0) ** 1.7).reshape(7, 3)
Y = np.cos(np.arange(9.0) * 1.7) + np.arange(9.0) * 0.3
T = np.arange(9.0) ** 1.1


@pytest.mark.parametrize("method", ["CD", "WD", "MD", "L2-star"])
def test_discrepancies(method):
    for iterative in (False, True):
        agrees(lambda x, i=iterative: qmc.discrepancy(x, method=method, iterative=i), POINTS, nested=not iterative)


def test_a_point_more():
    agrees(lambda x: qmc.update_discrepancy(x[0], x[1:], x[1, 1]), POINTS)
    whole = plaingrad.grad(lambda x: qmc.discrepancy(x))(POINTS)
    step = plaingrad.grad(lambda x: qmc.update_discrepancy(x[0], x[1:], qmc.discrepancy(x[1:], iterative=True)))(POINTS)
    assert np.allclose(whole, step)


@pytest.mark.skipif(not hasattr(qmc, "geometric_discrepancy"), reason="SciPy 1.12 has it first")
def test_distances_of_points():
    for method in ("mindist", "mst"):
        agrees(lambda x, m=method: qmc.geometric_discrepancy(x, m), POINTS, nested=False)


@pytest.mark.parametrize("method", ["hierarchical", "separate"])
def test_repeated_medians(method):
    agrees(lambda y: np.array(stats.siegelslopes(y, T, method)), Y)
    agrees(lambda t: np.array(stats.siegelslopes(Y, t, method)), T, nested=False)
    twice = np.where(np.arange(9) == 3, T[4], T)
    agrees(lambda y: np.array(stats.siegelslopes(y, twice, method)), Y, nested=False)
    agrees(lambda y: np.array(stats.siegelslopes(y, method=method)), Y[:8], nested=False)
    agrees(lambda y: np.array(stats.mstats.siegelslopes(y, method=method)), Y, nested=False)


def test_a_line_has_its_slope():
    slope = plaingrad.grad(lambda a: stats.siegelslopes(a * T + 1.0, T)[0])(0.7)
    assert abs(slope - 1.0) < 1e-12
