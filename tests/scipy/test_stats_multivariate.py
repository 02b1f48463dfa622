"""Distributions of vectors and matrices, kernel estimates: in points, means, covariances and degrees of freedom."""

import numpy as np
import plaingrad
import pytest
from tests.scipy.agreement import agrees

stats = pytest.importorskip("scipy.stats")
special = pytest.importorskip("scipy.special")
pytestmark = pytest.mark.filterwarnings("ignore")

RNG = np.random.default_rng(3)
ROOT = RNG.normal(size=(3, 3))
COV = ROOT @ ROOT.T + 2 * np.eye(3)
MEAN = RNG.normal(size=3)
X = RNG.normal(size=(4, 3))


def symmetric(t, n=3):
    return (t.reshape(n, n) + t.reshape(n, n).T) / 2


def test_the_normal_density_in_everything():
    def density(t):
        return stats.multivariate_normal.logpdf(X + t[:3], t[3:6], symmetric(t[6:]))

    agrees(density, np.concatenate([np.zeros(3), MEAN, COV.ravel()]), 1e-6)


@pytest.mark.parametrize("entries", [[2.0, 2.0, 2.0], [1.0, 1.0, 3.0]])
def test_covariances_with_equal_eigenvalues(entries):
    """Eigenvectors are not determined there; the density does not see which ones SciPy took."""
    agrees(lambda t: stats.multivariate_normal.logpdf(X, MEAN, symmetric(t)), np.diag(entries).ravel(), 1e-6)
    direction = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    inverse = np.diag(1 / np.array(entries))
    gap = X[0] - MEAN
    exact = gap @ inverse @ direction @ inverse @ gap / 2
    slope = plaingrad.grad(lambda s: stats.multivariate_normal.logpdf(X[0], MEAN, np.diag(entries) + s * direction))(0.0)
    assert slope == pytest.approx(exact, rel=1e-12)


def test_a_scalar_times_the_identity():
    exact = (X[0] @ X[0]) / (2 * 1.7**2) - 3 / (2 * 1.7)
    assert plaingrad.grad(lambda s: stats.multivariate_normal.logpdf(X[0], np.zeros(3), s))(1.7) == pytest.approx(exact)


def test_a_singular_covariance_along_its_range():
    basis = np.array([[1.0, 0.2], [0.3, 1.0], [0.5, -0.4]])

    def density(t):
        cov = basis @ np.diag(t) @ basis.T
        return stats.multivariate_normal.logpdf(basis @ np.array([0.3, -0.4]), np.zeros(3), cov, allow_singular=True)

    agrees(density, [1.2, 0.7], 1e-6)


def test_entropies():
    agrees(lambda t: stats.multivariate_normal.entropy(MEAN, symmetric(t)), COV.ravel(), 1e-6)
    agrees(lambda t: stats.dirichlet.entropy(t), [1.3, 2.1, 0.7], 1e-6)
    agrees(lambda t: stats.wishart.entropy(t[0], symmetric(t[1:])), np.r_[5.0, COV.ravel()], 1e-6, nested=False)


def test_other_distributions():
    agrees(lambda t: stats.multivariate_t.logpdf(X, t[:3], symmetric(t[4:]), t[3]), np.r_[MEAN, 4.5, COV.ravel()], 1e-6)
    agrees(lambda t: stats.dirichlet.logpdf([0.2, 0.3, 0.5], t), [1.3, 2.1, 0.7], 1e-6)
    agrees(lambda t: stats.wishart.logpdf(COV, t[0], symmetric(t[1:])), np.r_[5.0, COV.ravel()], 1e-6, nested=False)
    agrees(lambda t: stats.invwishart.logpdf(COV, t[0], symmetric(t[1:])), np.r_[5.0, COV.ravel()], 1e-6, nested=False)
    agrees(lambda t: stats.matrix_normal.logpdf(X, None, np.eye(4) * t[0], symmetric(t[1:])), np.r_[1.5, COV.ravel()], 1e-6)


def test_counts_of_several_kinds():
    """A mask without an entry left nothing to reshape."""
    agrees(lambda t: stats.multinomial.logpmf([2, 1, 4], 7, t / t.sum()), [0.2, 0.3, 0.5], 1e-6)


# -- probabilities of boxes --------------------------------------------------------------------------------------------


def test_the_normal_distribution_function_of_two_variables():
    cov = np.array([[2.0, 0.4], [0.4, 3.0]])

    def cdf(t):
        return stats.multivariate_normal.cdf(t[:2], t[2:4], np.array([[t[4], t[5]], [t[5], t[6]]]))

    agrees(cdf, [0.3, 0.2, -0.1, 0.4, 2.0, 0.4, 3.0], 1e-5)
    given = special.ndtr((0.2 - 0.2 * 0.3) / np.sqrt(3.0 - 0.08))  # of the second variable where the first is 0.3
    density = np.exp(-(0.3**2) / 4) / np.sqrt(4 * np.pi)
    found = plaingrad.grad(lambda x: stats.multivariate_normal.cdf(np.array([x, 0.2]), np.zeros(2), cov))(0.3)
    assert found == pytest.approx(density * given, rel=1e-12)


def test_boxes_and_ends_that_are_exchanged():
    cov = np.array([[2.0, 0.4], [0.4, 3.0]])

    def box(t):
        return stats.multivariate_normal.cdf(t[:2], np.zeros(2), cov, lower_limit=t[2:])

    agrees(box, [0.3, 0.2, -1.1, -0.6], 1e-5)
    agrees(box, [0.3, -0.8, -1.1, -0.6], 1e-5, nested=False)


def test_three_independent_variables_in_closed_form():
    x = np.array([0.3, -0.2, 0.8])
    scale = np.array([1.0, 1.5, 0.7])
    each = special.ndtr(x / scale)
    exact = np.prod(each) / each * np.exp(-(x**2) / (2 * scale**2)) / np.sqrt(2 * np.pi) / scale
    found = plaingrad.grad(lambda x: stats.multivariate_normal.cdf(x, np.zeros(3), np.diag(scale**2)))(x)
    np.testing.assert_allclose(found, exact, rtol=1e-4)  # SciPy's sums of boxes of two


def test_a_singular_covariance_of_a_box_is_refused():
    with pytest.raises(plaingrad.MissingRuleError, match="covariance is singular"):
        plaingrad.grad(lambda x: stats.multivariate_normal.cdf(x, np.zeros(2), np.ones((2, 2)), True))(np.array([0.3, 0.2]))


# -- kernel estimates --------------------------------------------------------------------------------------------------


def test_kernel_estimates_in_data_points_weights_and_bandwidth():
    data = RNG.normal(size=12)
    agrees(lambda t: stats.gaussian_kde(t[:12])(t[12:]), np.r_[data, 0.1, 0.5], 1e-6)
    agrees(lambda t: stats.gaussian_kde(data, weights=t).logpdf([0.1, 0.5]), np.abs(data) + 0.2, 1e-6)
    agrees(lambda t: stats.gaussian_kde(data, bw_method=t[0]).pdf([0.1, 0.5]), [0.4], 1e-6)
    agrees(lambda t: stats.gaussian_kde(t.reshape(2, 6)).pdf(np.array([[0.1, 0.5], [0.2, 0.3]])), data, 1e-6, nested=False)
    agrees(lambda t: stats.gaussian_kde(t).integrate_box_1d(-1, 0.5), data, 1e-6, nested=False)


def test_a_kernel_estimate_in_blocks():
    """More pairs than one block holds."""
    data = RNG.normal(size=900)
    points = np.linspace(-2, 2, 500)
    width = stats.gaussian_kde(data).covariance[0, 0]
    gaps = points[:, None] - data
    exact = -(np.exp(-gaps**2 / (2 * width)) * gaps).mean(1) / width / np.sqrt(2 * np.pi * width)
    found = plaingrad.grad(lambda x: stats.gaussian_kde(data)(x).sum())(points)
    np.testing.assert_allclose(found, exact, rtol=1e-9, atol=1e-14)
