"""SciPy: its own Python is differentiated, its compiled code is refused by name; nothing is silently wrong."""

import datetime
import math

import numpy as np
import pytest

import plaingrad
from plaingrad.errors import PlaingradError

scipy = pytest.importorskip("scipy")
import scipy.fft  # noqa: E402
import scipy.integrate  # noqa: E402
import scipy.interpolate  # noqa: E402
import scipy.linalg  # noqa: E402
import scipy.ndimage  # noqa: E402
import scipy.optimize  # noqa: E402
import scipy.signal  # noqa: E402
import scipy.sparse  # noqa: E402
import scipy.spatial  # noqa: E402
import scipy.spatial.transform  # noqa: E402
import scipy.special  # noqa: E402
import scipy.stats  # noqa: E402


@pytest.mark.parametrize("method", ["RK45", "DOP853", "RK23"])
def test_a_differential_equation_by_adaptive_runge_kutta(method):
    """y' = -k y: the sensitivity of y(1) to k and to y(0)."""

    def end(k, start):
        solution = scipy.integrate.solve_ivp(lambda t, y: -k * y, (0, 1), [start], method, rtol=1e-8, atol=1e-10)
        return solution.y[0, -1]

    gradients = plaingrad.grad(end, (0, 1))(0.7, 2.0)
    assert gradients == pytest.approx((-2.0 * math.exp(-0.7), math.exp(-0.7)), rel=1e-6)


def test_quadratures_written_in_python(agrees):
    nodes = np.linspace(0.0, 1.0, 11)
    agrees(lambda x: scipy.integrate.fixed_quad(lambda t: np.sin(x * t), 0, 1)[0], 0.7)
    agrees(lambda x: scipy.integrate.simpson(np.sin(x * nodes), dx=0.1), 0.7)
    agrees(lambda x: scipy.integrate.cumulative_trapezoid(np.sin(x * nodes), dx=0.1)[-1], 0.7)


def test_a_root_by_newtons_method():
    """t^2 = x."""
    root = plaingrad.grad(lambda x: scipy.optimize.newton(lambda t: t * t - x, 1.5, fprime=lambda t: 2 * t))
    assert root(0.7) == pytest.approx(0.5 / math.sqrt(0.7), rel=1e-6)


def test_stable_sums_of_exponentials(agrees):
    agrees(scipy.special.logsumexp, np.array([0.3, -1.0, 2.0]))
    agrees(lambda x: scipy.special.softmax(x)[1], np.array([0.3, -1.0, 2.0]))


def test_distances(agrees):
    agrees(scipy.spatial.distance.braycurtis, np.array([0.3, -1.0]), np.array([0.1, 2.0]))
    agrees(scipy.spatial.distance.cosine, np.array([0.3, -1.0]), np.array([0.1, 2.0]))


def hull(x):
    return scipy.spatial.ConvexHull(np.array([[0.0, 0.0], [x, 0.0], [0.0, 1.0]])).volume


def nearest(x):
    return scipy.spatial.cKDTree(np.array([[0.0, 0.0], [x, 1.0]])).query([[0.3, 0.6]])[0][0]


def linear_program(x):
    return scipy.optimize.linprog([-1.0], A_ub=[[1.0]], b_ub=[x]).x[0]


def bracketed_root(x):
    return scipy.optimize.brentq(lambda t: t * t - x, 0.0, 5.0)


def minimum(x):
    return scipy.optimize.minimize(lambda t: (t[0] - x) ** 2, [0.0]).x[0]


def integral(x):
    return scipy.integrate.quad(lambda t: math.sin(x * t), 0.0, 1.0)[0]


def fortran_equation(x):
    return scipy.integrate.odeint(lambda y, t: -x * y, [1.0], [0.0, 1.0])[-1, 0]


def implicit_equation(x):
    return scipy.integrate.solve_ivp(lambda t, y: -x * y, (0, 1), [1.0], method="Radau").y[0, -1]


def linear_filter(x):
    return scipy.signal.lfilter([1.0], [1.0, -0.3 * x], np.ones(5))[-1]


def linear_system(x):
    return scipy.signal.lsim((np.array([1.0]), np.array([1.0, x])), np.ones(5), np.arange(5.0))[1][-1]


def transfer_function(x):
    return scipy.signal.lti(np.array([1.0]), np.array([1.0, x])).den[1] ** 2


def fast_fourier_transform(x):
    return abs(scipy.fft.fft(np.array([x, 1.0, 2.0]))[1])


def smoothed(x):
    return scipy.ndimage.gaussian_filter(x * np.eye(4), 1.0)[0, 0]


def rotation(x):
    return scipy.spatial.transform.Rotation.from_euler("z", x).apply([1.0, 0.0, 0.0])[0]


def spline(x):
    return float(scipy.interpolate.CubicSpline([0.0, 1.0, 2.0], [0.0, x, 4.0])(0.5))


def sparse_product(x):
    return (scipy.sparse.csr_matrix(np.array([[x, 0.0], [1.0, 2.0]])) @ np.array([1.0, x])).sum()


def sparse_data_written(x):
    matrix = scipy.sparse.eye(3, format="csr")
    matrix.data[:] = x
    return matrix.sum()


def matrix_exponential(x):
    return scipy.linalg.expm(np.array([[0.0, x], [x, 0.0]]))[0, 0]


def cholesky(x):
    return scipy.linalg.cholesky(np.array([[2.0, x], [x, 3.0]])).sum()


def special_function(x):
    return scipy.special.erf(x) + scipy.special.gammaln(x)


def density(x):
    return scipy.stats.norm.logpdf(0.3, x, 1.5)


def duration(x):
    return (datetime.timedelta(seconds=10) * x).total_seconds()


@pytest.mark.parametrize(
    "f",
    [
        hull, nearest, linear_program, bracketed_root, minimum, integral, fortran_equation, implicit_equation,
        linear_filter, linear_system, transfer_function, fast_fourier_transform, smoothed, rotation, spline,
        sparse_product, sparse_data_written, matrix_exponential, cholesky, special_function, density, duration,
    ],
    ids=lambda f: f.__name__,
)
def test_it_is_right_or_refused(f):
    x = 0.7071234
    by_differences = (f(x + 1e-5) - f(x - 1e-5)) / 2e-5
    try:
        value, gradient = plaingrad.value_and_grad(f)(x)
    except PlaingradError as refusal:
        assert ".py:" in str(refusal), "a refusal names file and line"
    else:
        assert value == f(x)
        assert gradient == pytest.approx(by_differences, rel=1e-4)
