"""Fits with B-splines in data, sites, weights, knots and the smoothing factor."""

import numpy as np
import pytest
from tests.scipy.agreement import agrees, slope, weighted

import plaingrad

interpolate = pytest.importorskip("scipy.interpolate")
optimize = pytest.importorskip("scipy.optimize")
pytestmark = pytest.mark.filterwarnings("ignore")

X = np.arange(12.0) + 0.3 * np.sin(np.arange(12.0))
Y = np.cos(X) + 0.05 * np.sin(37 * X)
W = 1 + 0.3 * np.cos(np.arange(12.0))
Q = np.array([0.5, 3.3, 7.1, 9.2])
T = np.array([3.1, 5.2, 8.4])


def ended(t, low=X[:1], high=X[-1:], k=3):
    return np.concatenate([np.repeat(low, k + 1), t, np.repeat(high, k + 1)])


EXACT = {
    "splrep in y": (lambda y: interpolate.splev(Q, interpolate.splrep(X, y)), Y),
    "splrep in x": (lambda x: interpolate.splev(Q, interpolate.splrep(x, Y)), X),
    "splrep of even degree in x": (lambda x: interpolate.splev(Q, interpolate.splrep(x, Y, k=2)), X),
    "splrep in knots": (lambda t: interpolate.splev(Q, interpolate.splrep(X, Y, t=t)), T),
    "splrep in weights": (lambda w: interpolate.splev(Q, interpolate.splrep(X, Y, w=w, t=T)), W),
    "splrep in its ends": (lambda e: interpolate.splev(Q, interpolate.splrep(X, Y, xb=e[0], xe=e[1], t=T)), [-1.0, 12.0]),
    "the sum of squares": (lambda y: interpolate.splrep(X, y, t=T, full_output=1)[1], Y),
    "a periodic one in x": (
        lambda x: interpolate.splev(Q, interpolate.splrep(x, np.append(Y[:-1], Y[0]), per=1)), X,
    ),
    "splprep in points": (lambda y: np.array(interpolate.splev(Q / 10, interpolate.splprep([X, y], s=0)[0])), Y),
    "splprep in parameters": (
        lambda u: np.array(interpolate.splev(Q / 10, interpolate.splprep([X, Y], u=u, s=0)[0])), X / 11,
    ),
    "InterpolatedUnivariateSpline in x": (lambda x: interpolate.InterpolatedUnivariateSpline(x, Y)(Q), X),
    "LSQUnivariateSpline in knots": (lambda t: interpolate.LSQUnivariateSpline(X, Y, t)(Q), T),
    "LSQUnivariateSpline in x": (lambda x: interpolate.LSQUnivariateSpline(x, Y, T)(Q), X),
    "LSQUnivariateSpline in weights": (lambda w: interpolate.LSQUnivariateSpline(X, Y, T, w=w)(Q), W),
    "a polynomial, nothing being asked": (lambda y: interpolate.UnivariateSpline(X, y, s=50)(Q), Y),
    "its integral": (lambda y: interpolate.UnivariateSpline(X, y, s=0).integral(0.7, 6.0), Y),
    "its derivatives": (lambda y: interpolate.UnivariateSpline(X, y, s=0).derivatives(2.2), Y),
    "its roots": (lambda y: interpolate.UnivariateSpline(X, y, s=0).roots(), Y),
    "its antiderivative": (lambda y: interpolate.UnivariateSpline(X, y, s=0).antiderivative()(Q), Y),
    "beyond its ends": (lambda y: interpolate.UnivariateSpline(X, y, s=0, ext=3)(Q + 5), Y),
    "make_interp_spline in x": (lambda x: interpolate.make_interp_spline(x, Y)(Q), X),
    "a natural one in x": (lambda x: interpolate.make_interp_spline(x, Y, bc_type="natural")(Q), X),
    "a given slope at the ends": (
        lambda d: interpolate.make_interp_spline(X, Y, bc_type=([(1, d[0])], [(1, d[1])]))(Q), [0.3, 0.4],
    ),
    "a periodic one in its sites": (
        lambda x: interpolate.make_interp_spline(x, np.append(Y[:-1], Y[0]), bc_type="periodic")(Q), X,
    ),
    "make_lsq_spline in knots": (lambda t: interpolate.make_lsq_spline(X, Y, ended(t))(Q), T),
    "make_lsq_spline in x": (lambda x: interpolate.make_lsq_spline(x, Y, ended(T, x[:1], x[-1:]))(Q), X),
    "make_lsq_spline of several": (lambda y: interpolate.make_lsq_spline(X, np.stack([y, y * y], 1), ended(T))(Q), Y),
    "make_smoothing_spline in x": (lambda x: interpolate.make_smoothing_spline(x, Y, lam=0.1)(Q), X),
    "make_smoothing_spline in weights": (lambda w: interpolate.make_smoothing_spline(X, Y, w=w, lam=0.1)(Q), W),
    "make_smoothing_spline in lam": (lambda q: interpolate.make_smoothing_spline(X, Y, lam=q[0])(Q), [0.1]),
}  # fmt: skip
NESTED = {"splrep in x", "LSQUnivariateSpline in knots", "make_lsq_spline in knots", "splprep in points"}


@pytest.mark.parametrize("name", EXACT)
def test_interpolations_and_least_squares(name):
    f, at = EXACT[name]
    agrees(f, at, tolerance=1e-6, nested=name in NESTED)


# -- smoothing: FITPACK stops when sum (w (y - s))^2 is s to a thousandth; the truth is the exact fit ------------------


def truth(x, y, w, s, knots, k=3, closed=False):
    """The smoothing spline at Q by dense matrices; how much is smoothed by bisection. Knots are sites, or near them."""
    inside = np.where(knots[1] >= 0, x[knots[1]], knots[0])
    low, high, period = x[:1], x[-1:], x[-1] - x[0]
    t = ended(inside, low, high, k)
    if closed:
        inner = np.concatenate([low, inside, high])
        t = np.concatenate([inner[-k - 1 : -1] - period, inner, inner[1 : k + 1] + period])
        x, y, w = x[:-1], y[:-1], w[:-1]
    n = len(t) - k - 1
    wrap = np.eye(n - k)[np.arange(n) % (n - k)] if closed else np.eye(n)
    values = interpolate.BSpline(t, np.eye(n), k)(x) @ wrap * w[:, None]
    middles = (t[k : n] + t[k + 1 : n + 1]) / 2
    jumps = np.diff(interpolate.BSpline(t, np.eye(n), k)(middles, nu=k), axis=0) @ wrap

    def coefficients(u):
        gram = values.T @ values + np.exp(u) * jumps.T @ jumps
        return np.linalg.solve(gram, values.T @ (w * y))

    u = optimize.brentq(lambda u: np.sum((w * y - values @ coefficients(u)) ** 2) - s, -40, 30, xtol=1e-13, rtol=1e-14)
    return interpolate.BSpline(t, wrap @ coefficients(u), k)(Q)


def structure(t, k=3):
    inside = t[k + 1 : -k - 1]
    return inside, np.array([int(np.flatnonzero(v == X)[0]) if v in X else -1 for v in inside])


CLOSED = np.append(Y[:-1], Y[0])
SMOOTH = {
    "y": (lambda v: (X, v, W, 0.3), Y),
    "x": (lambda v: (v, Y, W, 0.3), X),
    "w": (lambda v: (X, Y, v, 0.3), W),
    "s": (lambda v: (X, Y, W, v[0]), np.array([0.3])),
}
SPLINES = {
    "splrep": lambda x, y, w, s: interpolate.splev(Q, interpolate.splrep(x, y, w=w, s=s)),
    "UnivariateSpline": lambda x, y, w, s: interpolate.UnivariateSpline(x, y, w=w, s=s)(Q),
}
if hasattr(interpolate, "make_splrep"):
    SPLINES["make_splrep"] = lambda x, y, w, s: interpolate.make_splrep(x, y, w=w, s=s)(Q)


@pytest.mark.parametrize("name", SPLINES)
@pytest.mark.parametrize("argument", SMOOTH)
def test_smoothing_is_that_of_the_exact_fit(name, argument):
    make, at = SMOOTH[argument]
    knots = structure(interpolate.splrep(X, Y, w=W, s=0.3)[0])
    assert knots[1].size > 0 and np.all(knots[1] >= 0)
    v = np.sin(2.0 + np.arange(at.size))
    total, exact = weighted(lambda at: SPLINES[name](*make(at))), weighted(lambda at: truth(*make(at), knots))
    expected = slope(exact, at, v)
    # In x the coefficients of SciPy's fit enter, too, which are right to its thousandth.
    tolerance = 2e-3 if argument == "x" else 1e-6
    assert abs((plaingrad.grad(total)(at) * v).sum() - expected) <= tolerance * (1 + abs(expected))
    assert abs(plaingrad.jvp(total, (at,), (v,))[1] - expected) <= tolerance * (1 + abs(expected))


def test_second_derivatives_of_smoothing():
    knots = structure(interpolate.splrep(X, Y, w=W, s=0.3)[0])
    v = np.sin(2.0 + np.arange(12))
    total, exact = weighted(lambda y: SPLINES["splrep"](X, y, W, 0.3)), weighted(lambda y: truth(X, y, W, 0.3, knots))
    twice = (exact(Y + 1e-3 * v) - 2 * exact(Y) + exact(Y - 1e-3 * v)) / 1e-6
    forward = plaingrad.jvp(lambda y: plaingrad.jvp(total, (y,), (v,))[1], (Y,), (v,))[1]
    reverse = (plaingrad.grad(lambda y: (plaingrad.grad(total)(y) * v).sum())(Y) * v).sum()
    assert abs(forward - twice) <= 1e-4 * (1 + abs(twice)) and abs(reverse - twice) <= 1e-4 * (1 + abs(twice))


def test_smoothing_of_periodic_data():
    knots = structure(interpolate.splrep(X, CLOSED, w=W, s=0.3, per=1)[0])
    v = np.sin(2.0 + np.arange(11))
    total = weighted(lambda y: interpolate.splev(Q, interpolate.splrep(X, np.append(y, y[:1]), w=W, s=0.3, per=1)))
    exact = weighted(lambda y: truth(X, np.append(y, y[:1]), W, 0.3, knots, closed=True))
    expected = slope(exact, Y[:-1], v)
    assert abs((plaingrad.grad(total)(Y[:-1]) * v).sum() - expected) <= 1e-6 * (1 + abs(expected))


def test_what_is_left_over_of_a_smoothing_spline_is_s():
    assert np.allclose(plaingrad.grad(lambda y: interpolate.UnivariateSpline(X, y, s=0.3).get_residual())(Y), 0, atol=1e-12)
    assert np.isclose(plaingrad.grad(lambda s: interpolate.UnivariateSpline(X, Y, s=s).get_residual())(0.3), 1)


def test_a_long_interpolation_needs_no_dense_matrix():
    x = np.linspace(0, 1, 20000)
    y = np.sin(9 * x)
    gradient = plaingrad.grad(lambda y: interpolate.UnivariateSpline(x, y, s=0)(0.123456))(y)
    assert np.isclose(gradient @ y, np.sin(9 * 0.123456), atol=1e-12) and np.isclose(gradient.sum(), 1)


def test_smoothing_by_cross_validation_is_that_of_the_exact_minimum():
    def smoother(lam, at):
        return np.stack([interpolate.make_smoothing_spline(X, unit, lam=lam)(at) for unit in np.eye(12)], -1)

    def truth(y):
        def score(u):
            a = smoother(np.exp(u), X)
            return np.sum((y - a @ y) ** 2) / (1 - np.trace(a) / 12) ** 2

        u = np.log(0.1)
        for _ in range(8):  # Newton's method: the minimum itself is flat
            h = 1e-3
            low, middle, high = score(u - h), score(u), score(u + h)
            u -= (high - low) * h / (2 * (high - 2 * middle + low))
        return smoother(np.exp(u), Q) @ y

    y, v = np.cos(X) + 0.2 * np.sin(37 * X), np.sin(2.0 + np.arange(12))
    expected = (weighted(truth)(y + 1e-3 * v) - weighted(truth)(y - 1e-3 * v)) / 2e-3
    total = weighted(lambda y: interpolate.make_smoothing_spline(X, y)(Q))
    assert np.isclose((plaingrad.grad(total)(y) * v).sum(), expected, rtol=2e-4)
    assert np.isclose(plaingrad.jvp(total, (y,), (v,))[1], expected, rtol=2e-4)
