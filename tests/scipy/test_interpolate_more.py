"""Surfaces, polynomials in other bases, splines of several variables, radial and rational functions."""

import numpy as np
import pytest
from tests.scipy.agreement import agrees, slope, weighted

import plaingrad

interpolate = pytest.importorskip("scipy.interpolate")
optimize = pytest.importorskip("scipy.optimize")
pytestmark = pytest.mark.filterwarnings("ignore")

X = np.arange(12.0) + 0.3 * np.sin(np.arange(12.0))
Y = np.cos(X) + 0.05 * np.sin(37 * X)
Q = np.array([0.5, 3.3, 7.1, 9.2])
GX, GY = np.arange(7.0) ** 1.05, np.arange(8.0) ** 1.1
V = np.cos(np.outer(np.arange(1.0, 8.0), np.arange(1.0, 9.0)) * 0.35)
U = np.array([[0.4, 0.6], [2.2, 3.3], [4.4, 5.5]])
RANDOM = np.random.default_rng(0)
SX, SY = RANDOM.uniform(0, 1, (2, 60))
SZ = np.sin(3 * SX) * np.cos(2 * SY) + 0.1 * RANDOM.normal(size=60)
SW = 1 + 0.2 * np.cos(np.arange(60.0))
QX, QY = np.array([0.3, 0.5, 0.62]), np.array([0.2, 0.4, 0.71])
TX, TY = np.array([0.35, 0.66]), np.array([0.5])
BOX = [-0.1, 1.1, -0.1, 1.1]
PX = RANDOM.uniform(0, 1, (14, 2))
PV = np.sin(3 * PX[:, 0]) * PX[:, 1]
PQ = np.array([[0.4, 0.41], [0.52, 0.6], [0.3, 0.66]])
CUBIC = interpolate.splrep(X, Y)
KNOTS, COEFFICIENTS = CUBIC[0], CUBIC[1][: len(CUBIC[0]) - 4]
SURFACE = interpolate.bisplrep(SX, SY, SZ, s=60)
ND = np.cos(np.arange(3 * 2 * 4 * 5.0)).reshape(3, 2, 4, 5)
BREAKS = (np.arange(5.0), np.arange(6.0))


def tck(c):
    return KNOTS, np.concatenate([c, np.zeros(4)]), 3


def lsq(x=SX, y=SY, z=SZ, tx=TX, w=None):
    return interpolate.LSQBivariateSpline(x, y, z, tx, TY, w=w, bbox=BOX).ev(QX, QY)


AT_SURFACES = {
    "a grid in values": (lambda v: interpolate.RectBivariateSpline(GX, GY, v)(Q[:3] / 2, Q[:3] / 3), V),
    "a grid in sites": (lambda x: interpolate.RectBivariateSpline(x, GY, V)(Q[:3] / 2, Q[:3] / 3), GX),
    "a grid of other degrees": (lambda y: interpolate.RectBivariateSpline(GX, y, V, kx=2, ky=5).ev(Q / 3, Q / 3), GY),
    "a grid in queries": (lambda q: interpolate.RectBivariateSpline(GX, GY, V).ev(q / 2, q / 3, dx=1), Q),
    "an integral in its ends": (lambda q: interpolate.RectBivariateSpline(GX, GY, V).integral(q[0], q[1], q[0], q[2]), Q),
    "an integral in values": (lambda v: interpolate.RectBivariateSpline(GX, GY, v).integral(0.5, 3, 0.4, 4), V),
    "points in values": (lambda z: lsq(z=z), SZ),
    "points in sites": (lambda x: lsq(x=x), SX),
    "points in knots": (lambda t: lsq(tx=t), TX),
    "points in weights": (lambda w: lsq(w=w), SW),
    "a polynomial": (lambda z: interpolate.SmoothBivariateSpline(SX, SY, z, s=60).ev(QX, QY), SZ),
    "bisplrep": (lambda z: interpolate.bisplev(QX, QY, interpolate.bisplrep(SX, SY, z, s=60)), SZ),
    "bisplev in coefficients": (lambda c: interpolate.bisplev(QX, QY, [*SURFACE[:2], c, 3, 3], dx=1), SURFACE[2]),
    "bisplev in queries": (lambda q: interpolate.bisplev(q[:1], q[1:], SURFACE), QX),
}
SPLINES = {
    "derivatives": (lambda c: interpolate.splev(Q, tck(c), der=2), COEFFICIENTS),
    "derivatives in knots": (
        lambda t: interpolate.splev(Q, (t, COEFFICIENTS, 3), der=1), KNOTS + 0.01 * np.arange(len(KNOTS)),
    ),
    "splint": (lambda c: interpolate.splint(0.7, 6.0, tck(c)), COEFFICIENTS),
    "splint in its ends": (lambda q: interpolate.splint(q[0], q[2], CUBIC), Q),
    "splint beyond the knots": (lambda q: interpolate.splint(q[0] - 3, q[2], CUBIC), Q),
    "splint in knots": (
        lambda t: interpolate.splint(0.7, 6.0, (t, COEFFICIENTS, 3)), KNOTS + 0.01 * np.arange(len(KNOTS)),
    ),
    "sproot": (lambda c: interpolate.sproot(tck(c)), COEFFICIENTS),
    "spalde": (lambda q: np.array(interpolate.spalde(q, CUBIC)), Q),
    "insert": (lambda x: interpolate.splev(Q, interpolate.insert(x[0], CUBIC)), [2.2]),
    "insert in coefficients": (lambda c: interpolate.insert(2.2, tck(c), m=2)[1], COEFFICIENTS),
    "splder": (lambda c: interpolate.splev(Q, interpolate.splder(tck(c))), COEFFICIENTS),
    "splantider": (lambda c: interpolate.splev(Q, interpolate.splantider(tck(c))), COEFFICIENTS),
    "PPoly.from_spline": (lambda c: interpolate.PPoly.from_spline(tck(c))(Q), COEFFICIENTS),
    "design_matrix": (lambda q: interpolate.BSpline.design_matrix(q, KNOTS, 3).toarray(), Q),
}
POLYNOMIALS = {
    "BPoly": (lambda c: interpolate.BPoly(c.reshape(3, 4), X[:5])(Q[:2], nu=1), Y),
    "BPoly in breaks": (lambda x: interpolate.BPoly(Y.reshape(3, 4), x)(Q[:2]), X[:5]),
    "BPoly in queries": (lambda q: interpolate.BPoly(Y.reshape(3, 4), X[:5])(q), Q[:2]),
    "BPoly.integrate": (lambda c: interpolate.BPoly(c.reshape(3, 4), X[:5]).integrate(0.4, 3.0), Y),
    "BPoly.from_derivatives": (lambda x: interpolate.BPoly.from_derivatives(x, np.stack([Y, Y * Y], 1))(Q), X),
    "NdPPoly": (lambda c: interpolate.NdPPoly(c, BREAKS)(U[:2], nu=(1, 0)), ND),
    "NdPPoly in queries": (lambda q: interpolate.NdPPoly(ND, BREAKS)(q), U[:2]),
    "NdPPoly in breaks": (lambda x: interpolate.NdPPoly(ND, (x, BREAKS[1]))(U[:2]), BREAKS[0]),
    "roots": (lambda y: interpolate.CubicSpline(X, y).roots(), Y),
    "solve": (lambda v: interpolate.CubicSpline(X, Y).solve(v[0]), [0.2]),
    "roots at jumps": (lambda x: interpolate.PPoly(np.array([[0.1, 0.1], [-1.0, 1.0]]), x).roots(), [0.0, 1.5, 2.0]),
    "pade": (lambda c: np.concatenate([p.coeffs for p in interpolate.pade(c, 2)]), [1, 1, 0.5, 1 / 6, 1 / 24]),
    "approximate_taylor_polynomial": (
        lambda a: interpolate.approximate_taylor_polynomial(lambda x: np.sin(a[0] * x), a[1], 4, 1.0).coeffs, [1.2, 0.3],
    ),
    "krogh_interpolate": (lambda y: interpolate.krogh_interpolate(X[:5], y[:5], Q[:2], der=1), Y),
    "pchip_interpolate": (lambda x: interpolate.pchip_interpolate(x, Y, Q, der=1), X),
}  # fmt: skip
RADIAL = {
    kernel: (lambda p, kernel=kernel: interpolate.RBFInterpolator(p, PV, kernel=kernel, epsilon=2.0)(PQ), PX)
    for kernel in (
        "linear", "thin_plate_spline", "cubic", "quintic", "multiquadric", "inverse_multiquadric", "inverse_quadratic",
        "gaussian",
    )
} | {
    "values": (lambda v: interpolate.RBFInterpolator(PX, v)(PQ), PV),
    "queries": (lambda q: interpolate.RBFInterpolator(PX, PV)(q), PQ),
    "queries at points": (lambda q: interpolate.RBFInterpolator(PX, PV)(q), PX[:2]),
    "epsilon": (lambda e: interpolate.RBFInterpolator(PX, PV, kernel="gaussian", epsilon=e[0])(PQ), [2.0]),
    "smoothing": (lambda s: interpolate.RBFInterpolator(PX, PV, smoothing=s)(PQ), 0.1 + 0.1 * PV**2),
    "neighbours, in points": (lambda p: interpolate.RBFInterpolator(p, PV, neighbors=9)(PQ), PX),
    "neighbours, in queries": (lambda q: interpolate.RBFInterpolator(PX, PV, neighbors=9)(q), PQ),
    "Rbf in points": (lambda p: interpolate.Rbf(*p.T, PV)(*PQ.T), PX),
    "Rbf, thin plates": (lambda p: interpolate.Rbf(*p.T, PV, function="thin_plate")(*PQ.T), PX),
    "Rbf in queries": (lambda q: interpolate.Rbf(PX[:, 0], PX[:, 1], PV, function="cubic")(q[:, 0], q[:, 1]), PQ),
    "Rbf in epsilon": (lambda e: interpolate.Rbf(*PX.T, PV, epsilon=e[0], smooth=e[1])(*PQ.T), [0.5, 0.1]),
    "neighbours, in values": (lambda v: interpolate.RBFInterpolator(PX, v, neighbors=9)(PQ), PV),
}  # fmt: skip
CASES = {
    f"{group}: {name}": case
    for group, cases in (("surfaces", AT_SURFACES), ("splines", SPLINES), ("polynomials", POLYNOMIALS), ("radial", RADIAL))
    for name, case in cases.items()
}
NESTED = {
    "surfaces: a grid in sites", "splines: sproot", "splines: splint in its ends", "polynomials: BPoly in breaks",
    "polynomials: roots", "radial: thin_plate_spline", "radial: queries",
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_other_interpolators(name):
    f, at = CASES[name]
    agrees(f, at, tolerance=1e-6, nested=name in NESTED)


@pytest.mark.skipif(not hasattr(interpolate, "NdBSpline"), reason="since SciPy 1.12")
def test_splines_of_several_variables():
    t = (np.r_[(0,) * 4, 2.0, 3.0, (6.0,) * 4], np.r_[(0,) * 4, 2.5, (7.0,) * 4])
    c = np.cos(np.arange(30.0)).reshape(6, 5)
    agrees(lambda c: interpolate.NdBSpline(t, c, 3)(U, nu=(1, 0)), c, nested=False)
    agrees(lambda q: interpolate.NdBSpline(t, c, 3)(q), U, tolerance=1e-6, nested=False)
    inside = np.array([2.0, 3.0])
    agrees(
        lambda v: interpolate.NdBSpline((np.concatenate([[0] * 4, v, [6.0] * 4]), t[1]), c, 3)(U), inside, nested=False
    )


@pytest.mark.parametrize(("method", "k"), [("slinear", 1), ("cubic", 3), ("quintic", 5)])
def test_regular_grids_by_splines(method, k):
    """SciPy solves for the coefficients to 1e-6 only; the truth is the tensor product of splines of one variable."""

    def truth(x, y, v, q):
        half = [interpolate.make_interp_spline(y, v, k=k, axis=1)(at[1]) for at in q]
        return np.stack([interpolate.make_interp_spline(x, part, k=k)(at[0]) for part, at in zip(half, q, strict=True)])

    def of(x, y, v, q):
        return interpolate.RegularGridInterpolator((x, y), v, method=method)(q)

    for number, at in enumerate((GX, GY, V, U)):
        arguments = [GX, GY, V, U]

        def one(f, value, arguments=arguments, number=number):
            return f(*arguments[:number], value, *arguments[number + 1 :])

        v = np.sin(2.0 + np.arange(at.size)).reshape(at.shape)
        expected = slope(weighted(lambda value, one=one: one(truth, value)), at, v)
        found = plaingrad.grad(weighted(lambda value, one=one: one(of, value)))(at)
        assert abs((found * v).sum() - expected) <= 2e-3 * (1 + abs(expected))


def test_smoothing_on_a_grid_is_that_of_the_exact_fit():
    s, v = 0.05, np.sin(2.0 + np.arange(V.size)).reshape(V.shape)
    spline = interpolate.RectBivariateSpline(GX, GY, V, s=s)
    assert np.isclose(spline.get_residual(), s, rtol=1e-2)
    sides = []
    for x, t in zip((GX, GY), spline.get_knots(), strict=True):
        n = len(t) - 4
        basis = interpolate.BSpline(t, np.eye(n), 3)
        middles = (t[3:n] + t[4 : n + 1]) / 2
        # Third derivatives of the two axes are weighed as if each had knots one apart.
        scale = ((t[n] - t[3]) / (n - 3)) ** 3
        jumps = np.diff(basis(middles, nu=3), axis=0) * scale
        sides.append((basis(x), jumps, basis(np.clip(Q, t[3], t[n]))))

    def exact(values):
        (a, da, qa), (b, db, qb) = sides

        def coefficients(u):
            left = np.linalg.solve(a.T @ a + np.exp(u) * da.T @ da, a.T @ values @ b)
            return np.linalg.solve(b.T @ b + np.exp(u) * db.T @ db, left.T).T

        u = optimize.brentq(lambda u: np.sum((values - a @ coefficients(u) @ b.T) ** 2) - s, -40, 30, xtol=1e-13)
        return qa @ coefficients(u) @ qb.T

    expected = slope(weighted(exact), V, v)
    found = plaingrad.grad(weighted(lambda z: interpolate.RectBivariateSpline(GX, GY, z, s=s)(Q, Q)))(V)
    assert abs((found * v).sum() - expected) <= 1e-5 * (1 + abs(expected))


def test_knots_that_move_with_all_points_are_refused():
    smooth = interpolate.SmoothBivariateSpline(SX, SY, SZ, s=0.3)
    assert len(smooth.get_knots()[0]) > 8 or len(smooth.get_knots()[1]) > 8
    with pytest.raises(plaingrad.MissingRuleError, match="knots at weighted means"):
        plaingrad.grad(lambda z: interpolate.SmoothBivariateSpline(SX, SY, z, s=0.3)(0.3, 0.4)[0, 0])(SZ)


def test_surfaces_that_the_data_do_not_determine_are_refused():
    with pytest.raises(plaingrad.MissingRuleError, match="not determined"):
        plaingrad.grad(
            lambda z: interpolate.LSQBivariateSpline(SX[:20], SY[:20], z, TX, TY, bbox=BOX).ev(0.3, 0.4)
        )(SZ[:20])


@pytest.mark.skipif(not hasattr(interpolate, "AAA"), reason="since SciPy 1.15")
def test_rational_approximation():
    z = np.linspace(-1, 1, 30)
    f, v = np.exp(z) / (1 + z * z), 0.1 * np.sin(2.0 + np.arange(30))
    total = weighted(lambda f: interpolate.AAA(z, f, rtol=1e-3)(np.array([0.123, 0.77])))
    expected = (total(f + 1e-6 * v) - total(f - 1e-6 * v)) / 2e-6
    assert abs((plaingrad.grad(total)(f) * v).sum() - expected) <= 1e-6
    assert abs(plaingrad.jvp(total, (f,), (v,))[1] - expected) <= 1e-6
    agrees(lambda f: interpolate.FloaterHormannInterpolator(z, f)(np.array([0.123, 0.77])), f, nested=False)


SCATTERED = {
    "linear": interpolate.LinearNDInterpolator,
    "linear, rescaled": lambda p, v: interpolate.LinearNDInterpolator(p, v, rescale=True),
    "cubic": interpolate.CloughTocher2DInterpolator,
    "cubic, rescaled": lambda p, v: interpolate.CloughTocher2DInterpolator(p, v, rescale=True),
    "nearest": interpolate.NearestNDInterpolator,
    "griddata": lambda p, v: lambda q: interpolate.griddata(p, v, q, method="cubic"),
}
DENSE = np.random.default_rng(3).uniform(0, 1, (25, 2)) * [1.0, 2.0]
AT = np.array([[0.4, 0.82], [0.52, 1.2], [0.3, 1.32]])


@pytest.mark.parametrize("name", SCATTERED)
def test_scattered_points_in_points_values_and_queries(name):
    make = SCATTERED[name]
    values = np.sin(3 * DENSE[:, 0]) * DENSE[:, 1]
    nested = name == "cubic"
    agrees(lambda v: make(DENSE, v)(AT), values, tolerance=2e-3, nested=False)
    agrees(lambda p: make(p, values)(AT), DENSE, tolerance=2e-3, nested=False)
    agrees(lambda q: make(DENSE, values)(q), AT, tolerance=2e-3, nested=nested)


def test_queries_outside_of_all_simplices_have_no_slope():
    values = np.sin(3 * DENSE[:, 0])
    q = np.array([[0.4, 0.8], [5.0, 5.0]])
    value, slopes = plaingrad.jvp(lambda v: interpolate.LinearNDInterpolator(DENSE, v, fill_value=7.0)(q), (values,), (values,))
    assert value[1] == 7.0 and slopes[1] == 0.0 and np.isclose(slopes[0], value[0])


def test_cubics_of_several_values_reproduce_what_is_linear():
    plane = DENSE @ np.array([[2.0, 1.0], [-1.0, 3.0]])
    gradient = plaingrad.jacobian(lambda q: interpolate.CloughTocher2DInterpolator(DENSE, plane)(q))(AT)
    for k in range(3):
        assert np.allclose(gradient[k, :, k], [[2.0, -1.0], [1.0, 3.0]], atol=1e-4)


@pytest.mark.parametrize("name", ["LinearNDInterpolator", "CloughTocher2DInterpolator"])
def test_scattered_values_and_points_in_single_precision(name):
    make = getattr(interpolate, name)
    values = PV.astype(np.float32)
    gradient = plaingrad.grad(lambda v: make(PX, v)(PQ).sum())(values)
    assert gradient.dtype == np.float32
    np.testing.assert_allclose(gradient, plaingrad.grad(lambda v: make(PX, v)(PQ).sum())(PV), atol=1e-6)
    agrees(lambda v: make(PX, v)(PQ), PV, nested=False)


def test_triangles_at_the_edge_whose_own_centre_is_exact():
    """A triangle without neighbour divides by what is 0 for some points, not by rounding errors."""
    points = np.array([[0.1, 0.2], [1.3, 0.1], [0.4, 1.2], [1.5, 1.4], [0.8, 0.6], [0.2, 0.9], [1.1, 0.9], [0.6, 0.1]])
    points = points.astype(np.float32).astype(float)
    values = np.cos(np.arange(8.0))
    inside = np.array([[0.65, 0.5], [0.9, 0.8]])
    agrees(lambda p: interpolate.CloughTocher2DInterpolator(p, values)(inside), points, tolerance=1e-5, nested=False)
