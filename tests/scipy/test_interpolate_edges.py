"""Complex scattered values, and LAPACK's band solvers, which give factors beside the solution."""

import numpy as np
import pytest
from tests.scipy.agreement import agrees

import plaingrad

interpolate = pytest.importorskip("scipy.interpolate")
from scipy.linalg import lapack  # noqa: E402

POINTS = np.array([[0.1, 0.2], [1.3, 0.1], [0.4, 1.2], [1.5, 1.4], [0.8, 0.6], [0.2, 0.9], [1.1, 0.9], [0.6, 0.1]])
INSIDE = np.array([[0.65, 0.5], [0.9, 0.8], [0.7, 1.1]])
V = np.cos(np.arange(8.0))


@pytest.mark.parametrize("name", ["CloughTocher2DInterpolator", "LinearNDInterpolator"])
def test_complex_values_of_scattered_points(name):
    f = getattr(interpolate, name)
    options = {"tol": 1e-12} if name[0] == "C" else {}
    agrees(lambda v: f(POINTS, v * (1 + 2j) + 1j * v * v, **options)(INSIDE), V, tolerance=1e-5)
    agrees(lambda q: f(POINTS, V * (1 + 2j), **options)(q), INSIDE, tolerance=1e-5, nested=False)


def test_band_solvers_of_lapack_give_all_that_they_give():
    rng = np.random.default_rng(0)
    n = 6
    plaingrad.grad(lambda y: interpolate.make_interp_spline(np.arange(9.0), y)(0.3))(np.arange(9.0))  # its rules come with those of splines
    ab, b = rng.normal(size=(6, n)), rng.normal(size=n)
    ab[3] += 6
    agrees(lambda x: lapack.dgbsv(2, 1, x[:-1], x[-1])[2], np.vstack([ab, b]))
    e, d, u = rng.normal(size=n - 1), rng.normal(size=n) + 5, rng.normal(size=n - 1)
    agrees(lambda x: lapack.dgtsv(x[: n - 1], x[n - 1 : 2 * n - 1], x[2 * n - 1 : 3 * n - 2], x[3 * n - 2 :])[3], np.concatenate([e, d, u, b]))
    seen = []

    def total(ab):
        seen.append(lapack.dgbsv(2, 1, ab, b)[:2])
        return lapack.dgbsv(2, 1, ab, b)[2].sum()

    plaingrad.grad(total)(ab)
    for ours, plain in zip(seen[-1], lapack.dgbsv(2, 1, ab, b)[:2]):
        np.testing.assert_allclose(ours, plain)
    with pytest.raises(plaingrad.MissingRuleError, match="a factor of `scipy.linalg.lapack.dgbsv`"):
        plaingrad.grad(lambda ab: lapack.dgbsv(2, 1, ab, b)[0].sum())(ab)


def test_fits_on_a_sphere_are_refused_by_name_and_right_in_queries():
    u, w = np.linspace(0.3, 2.8, 8), np.linspace(0.1, 6, 9)
    z = np.cos(u)[:, None] * np.sin(w)[None] + 1.0
    agrees(lambda q: interpolate.RectSphereBivariateSpline(u, w, z).ev(q, 1.2), [1.0], tolerance=1e-6, nested=False)
    with pytest.raises(plaingrad.MissingRuleError, match="RectSphereBivariateSpline"):
        plaingrad.grad(lambda z: interpolate.RectSphereBivariateSpline(u, w, z)(1.0, 1.2).sum())(z)
