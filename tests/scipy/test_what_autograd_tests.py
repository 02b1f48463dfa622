"""The functions of SciPy that autograd has rules for, to second order: special, stats, convolve, odeint, linalg.

Each is compared with differences of what SciPy computes, in all modes; more of each is in the files of its module.
"""

import itertools

import numpy as np
import pytest
from tests.scipy.agreement import agrees

import plaingrad

special = pytest.importorskip("scipy.special")
integrate = pytest.importorskip("scipy.integrate")
linalg = pytest.importorskip("scipy.linalg")
signal = pytest.importorskip("scipy.signal")
stats = pytest.importorskip("scipy.stats")
pytestmark = pytest.mark.filterwarnings("ignore")

RANDOM = np.random.default_rng(0)
X = np.array([0.21, 0.74, 1.3, 2.6])  # positive, away from integers and zeros
SIGNED = np.array([-1.4, -0.3, 0.4, 2.1])
SHARE = np.array([0.12, 0.37, 0.61, 0.88])
SPECIAL = {
    "beta": (lambda x: special.beta(x[:2], x[2:]), X),
    "betaln": (lambda x: special.betaln(x[:2], x[2:]), X),
    "betainc in x": (lambda x: special.betainc(1.7, 2.3, x), SHARE),
    "betainc in a and b": (lambda x: special.betainc(x[:2], x[2:], 0.3), X),
    "polygamma": (lambda x: special.polygamma(2, x), X),
    "psi": (special.psi, X),
    "digamma": (special.digamma, X),
    "gamma": (special.gamma, SIGNED),
    "gammaln": (special.gammaln, SIGNED),
    "rgamma": (special.rgamma, SIGNED),
    "gammasgn": (lambda x: special.gammasgn(x) * x, SIGNED),
    "multigammaln": (lambda x: special.multigammaln(x[0] + 3, 3), X),
    "gammainc": (lambda x: special.gammainc(1.3, x), X),
    "gammaincc": (lambda x: special.gammaincc(1.3, x), X),
    "gammainc in a": (lambda x: special.gammainc(x, 1.1), X),
    "j0": (special.j0, SIGNED),
    "y0": (special.y0, X),
    "j1": (special.j1, SIGNED),
    "y1": (special.y1, X),
    "jn": (lambda x: special.jn(2, x), SIGNED),
    "yn": (lambda x: special.yn(2, x), X),
    "i0": (special.i0, SIGNED),
    "i1": (special.i1, SIGNED),
    "iv": (lambda x: special.iv(1.5, x), X),
    "ive": (lambda x: special.ive(1.5, x), X),
    "erf": (special.erf, SIGNED),
    "erfc": (special.erfc, SIGNED),
    "erfinv": (lambda x: special.erfinv(x / 3), SIGNED),
    "erfcinv": (lambda x: special.erfcinv(2 * x), SHARE),
    "logit": (special.logit, SHARE),
    "expit": (special.expit, SIGNED),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions(name):
    f, x = SPECIAL[name]
    agrees(f, x, tolerance=1e-6)


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_logsumexp_over_axes(axis, keepdims):
    x = RANDOM.normal(size=(2, 3, 2))
    agrees(lambda x: special.logsumexp(x, axis=axis, keepdims=keepdims), x, nested=keepdims)


def test_logsumexp_with_weights():
    x, b = RANDOM.normal(size=(3, 4)), RANDOM.uniform(0.5, 2, size=(3, 4))
    agrees(lambda x: special.logsumexp(x, axis=1, b=b), x)
    agrees(lambda b: special.logsumexp(x, axis=1, b=b), b)


@pytest.mark.parametrize("x", [[-np.inf, 0.3, 1.2], [4.0, -np.inf, -np.inf], [900.0, 901.0, -900.0]])
def test_the_slope_of_logsumexp_is_the_softmax_far_out_too(x):
    x = np.array(x)
    weights = np.exp(x - x.max())
    weights /= weights.sum()
    v = np.array([0.3, -1.0, 0.5])
    assert np.allclose(plaingrad.grad(special.logsumexp)(x), weights)
    assert np.isclose(plaingrad.jvp(special.logsumexp, (x,), (v,))[1], weights @ v)
    curved = plaingrad.grad(lambda x: plaingrad.grad(special.logsumexp)(x) @ v)(x)
    assert np.allclose(curved, weights * v - weights * (weights @ v))


# -- stats: every function in every argument ---------------------------------------------------------------------------

CONTINUOUS = {
    "norm": (("pdf", "cdf", "logpdf", "logcdf", "sf", "logsf"), (SIGNED, 0.3, 1.7)),
    "t": (("pdf", "cdf", "logpdf", "logcdf"), (SIGNED, 4.3, 0.3, 1.7)),
    "beta": (("pdf", "cdf", "logpdf"), (SHARE, 1.6, 2.4)),
    "gamma": (("pdf", "cdf", "logpdf"), (X, 1.6)),
    "chi2": (("pdf", "cdf", "logpdf"), (X, 3.4)),
    "poisson": (("pmf", "cdf", "logpmf"), (np.array([0.0, 1.0, 3.0, 6.0]), 2.6)),
}
ARGUMENTS = [
    (law, method, k)
    for law, (methods, arguments) in CONTINUOUS.items()
    for method in methods
    for k in range(law == "poisson", len(arguments))
]


@pytest.mark.parametrize(("law", "method", "k"), ARGUMENTS)
def test_distributions_in_every_argument(law, method, k):
    if law == "beta" and method != "logpdf" and not hasattr(special._ufuncs, "_beta_pdf"):
        pytest.skip("the beta distribution of SciPy 1.11 has ufuncs of its own")
    arguments = list(CONTINUOUS[law][1])

    def f(value):
        return getattr(getattr(stats, law), method)(*arguments[:k], value if k == 0 else value[0], *arguments[k + 1 :])

    # Once nested where the argument is a shape, or the number itself.
    agrees(f, np.atleast_1d(arguments[k]), tolerance=1e-6, nested=method in ("pdf", "cdf", "pmf") and k < 2)


def test_arguments_that_are_broadcast():
    x, mean, scale = RANDOM.normal(size=(3, 1)), RANDOM.normal(size=(1, 4)), np.array([0.7, 1.1, 0.9, 2.0])
    agrees(lambda m: stats.norm.logpdf(x, m, scale), mean)
    agrees(lambda s: stats.norm.cdf(x, mean, s), scale)
    agrees(lambda m: stats.poisson.logpmf(np.array([[0.0], [3.0]]), m), np.array([1.2, 0.4, 5.0]))
    agrees(lambda df: stats.t.logpdf(x, df), np.array([[2.2, 3.5]]))


def test_dirichlet_in_points_and_concentrations():
    points, alpha = np.array([0.2, 0.3, 0.5]), np.array([0.8, 1.7, 2.2])
    for method in (stats.dirichlet.pdf, stats.dirichlet.logpdf):
        agrees(lambda a, method=method: method(points, a), alpha, tolerance=1e-6)
        # Points stay on the simplex.
        agrees(lambda p, method=method: method(np.exp(p) / np.exp(p).sum(), alpha), np.log(points), tolerance=1e-6)


def test_multivariate_normal_in_points_means_and_covariances():
    points, mean, root = RANDOM.normal(size=(4, 3)), RANDOM.normal(size=3), RANDOM.normal(size=(3, 3))

    def cov(root):
        return root @ root.T + 2 * np.eye(3)

    for method in (stats.multivariate_normal.pdf, stats.multivariate_normal.logpdf):
        agrees(lambda p, method=method: method(p, mean, cov(root)), points, tolerance=1e-6, nested=False)
        agrees(lambda m, method=method: method(points, m, cov(root)), mean, tolerance=1e-6)
        agrees(lambda r, method=method: method(points, mean, cov(r)), root, tolerance=1e-6)
    agrees(lambda r: stats.multivariate_normal.entropy(mean, cov(r)), root, tolerance=1e-6)


# -- convolve ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["full", "valid", "same"])
@pytest.mark.parametrize(("a", "b"), [((6,), (3,)), ((5, 4), (2, 3)), ((4, 3, 3), (2, 2, 2))])
def test_convolutions_of_any_dimension(mode, a, b):
    x, y = RANDOM.normal(size=a), RANDOM.normal(size=b)
    agrees(lambda x: signal.convolve(x, y, mode=mode), x, nested=False)
    agrees(lambda y: signal.convolve(x, y, mode=mode), y, nested=False)
    agrees(lambda x: signal.convolve(x, y[tuple([slice(0, 2)] * len(b))] * x.sum(), mode=mode), x)


def generalised(x, y, axes, contracted, mode):
    """Convolve along `axes`, sum products over `contracted`, take all others by all others: autograd's signature."""
    x = np.moveaxis(x, (*axes[0], *contracted[0]), range(-len(axes[0]) - len(contracted[0]), 0))
    y = np.moveaxis(y, (*axes[1], *contracted[1]), range(-len(axes[1]) - len(contracted[1]), 0))
    n, inner = len(axes[0]), len(contracted[0])
    outer_x, outer_y = x.shape[: x.ndim - n - inner], y.shape[: y.ndim - n - inner]
    sums = [
        sum(
            signal.convolve(x[(*i, ..., *d)], y[(*j, ..., *d)], mode=mode)
            for d in np.ndindex(*x.shape[x.ndim - inner :])
        )
        for i, j in itertools.product(np.ndindex(*outer_x), np.ndindex(*outer_y))
    ]
    return np.reshape(np.stack(sums), (*outer_x, *outer_y, *np.shape(sums[0])))


@pytest.mark.parametrize("mode", ["full", "valid"])
@pytest.mark.parametrize(
    ("a", "b", "axes", "contracted"),
    [
        ((5, 2), (3, 2), ([0], [0]), ([], [])),
        ((5, 2), (3, 2), ([0], [0]), ([1], [1])),
        ((2, 4, 3), (2, 2, 3), ([1], [1]), ([0, 2], [0, 2])),
        ((4, 4, 2), (2, 2, 2), ([0, 1], [1, 0]), ([2], [2])),
    ],
)
def test_convolutions_along_some_axes_and_products_along_others(mode, a, b, axes, contracted):
    x, y = RANDOM.normal(size=a), RANDOM.normal(size=b)
    agrees(lambda x: generalised(x, y, axes, contracted, mode), x, nested=False)
    agrees(lambda y: generalised(x * y.sum(), y, axes, contracted, mode), y, nested=len(a) == 2)


# -- odeint ------------------------------------------------------------------------------------------------------------

TIMES = np.array([0.0, 0.3, 0.7, 1.1])


def pendulum(y, t, a, b):
    return np.array([y[1], -a * np.sin(y[0]) - b * y[1] * t])


@pytest.mark.parametrize("argument", ["y0", "parameters", "times"])
def test_odeint_in_initial_values_parameters_and_times(argument):
    def solution(y0, parameters, times):
        return integrate.odeint(pendulum, y0, times, args=tuple(parameters), rtol=1e-11, atol=1e-11)

    arguments = {"y0": np.array([0.8, -0.2]), "parameters": np.array([1.3, 0.4]), "times": TIMES}
    agrees(
        lambda value: solution(**{**arguments, argument: value}), arguments[argument],
        tolerance=1e-5, nested=argument == "parameters",
    )  # fmt: skip


# -- linalg ------------------------------------------------------------------------------------------------------------

A = RANDOM.normal(size=(3, 3)) + 4 * np.eye(3)
C = RANDOM.normal(size=(3, 3)) + 2 * np.eye(3)
B = RANDOM.normal(size=(3, 2))
LINALG = {
    "sqrtm": (lambda a: linalg.sqrtm(a @ a.T + np.eye(3)), A),
    "sqrtm of one that is not symmetric": (linalg.sqrtm, A),
    "solve_sylvester, first": (lambda a: linalg.solve_sylvester(a, C, np.ones((3, 3))), A),
    "solve_sylvester, second": (lambda b: linalg.solve_sylvester(A, b, np.ones((3, 3))), C),
    "solve_sylvester, right": (lambda q: linalg.solve_sylvester(A, C, q), np.ones((3, 3))),
    "solve_banded, matrix": (lambda ab: linalg.solve_banded((1, 1), ab + 3 * np.eye(3)[[1, 1, 1]], B), A),
    "solve_banded, right": (lambda b: linalg.solve_banded((1, 1), A + 3, b), B),
    "solve": (lambda a: linalg.solve(a, B), A),
    "inv": (linalg.inv, A),
    "det": (linalg.det, A),
}


@pytest.mark.parametrize("name", LINALG)
def test_linear_algebra(name):
    f, x = LINALG[name]
    agrees(f, x, tolerance=1e-6)


@pytest.mark.parametrize("trans", [0, 1, 2])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("right", [B, B[:, 0]], ids=["matrix", "vector"])
def test_triangular_systems(trans, lower, right):
    agrees(lambda a: linalg.solve_triangular(a, right, trans=trans, lower=lower), A, nested=trans == 1)
    agrees(lambda b: linalg.solve_triangular(A, b, trans=trans, lower=lower), right, nested=False)
