"""scikit-learn: metrics, scalers, kernels and fitted models, behind validation of every argument."""

import warnings

import numpy as np
import pytest

import plaingrad

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("sklearn")
    from sklearn import covariance, decomposition, linear_model, metrics, preprocessing
    from sklearn.gaussian_process import kernels
    from sklearn.metrics import pairwise
    from sklearn.utils.extmath import row_norms, softmax

RNG = np.random.default_rng(0)
X = RNG.standard_normal((5, 3))
Y = X @ np.array([1.0, 2.0, 3.0]) + 0.1
TRUE, PREDICTED = np.array([1.0, 2.0, 3.5, 2.2]), np.array([1.1, 2.3, 3.0, 2.0])
LABELS, PROBABILITIES = [0, 1, 1, 0], np.array([0.2, 0.7, 0.6, 0.3])


@pytest.mark.parametrize(
    "metric",
    [
        metrics.mean_squared_error, metrics.root_mean_squared_error, metrics.mean_absolute_error, metrics.r2_score,
        metrics.mean_squared_log_error, metrics.mean_absolute_percentage_error, metrics.median_absolute_error,
        metrics.explained_variance_score, metrics.d2_absolute_error_score, metrics.mean_pinball_loss,
    ],
    ids=lambda f: f.__name__,
)
def test_metrics_of_regression(agrees, metric):
    agrees(lambda p: metric(TRUE, p), PREDICTED)


def test_metrics_of_classification(agrees):
    agrees(lambda p: metrics.log_loss(LABELS, p), PROBABILITIES)
    agrees(lambda p: metrics.brier_score_loss(LABELS, p), PROBABILITIES)
    agrees(lambda p: metrics.auc([0.0, 0.5, 1.0, 2.0], p), PROBABILITIES)


def test_predictions_given_as_a_list(agrees):
    agrees(lambda p: metrics.mean_squared_error(TRUE.tolist(), p), PREDICTED.tolist())


def test_distances_and_kernels_of_pairs(agrees):
    for kernel in (pairwise.rbf_kernel, pairwise.cosine_similarity, pairwise.polynomial_kernel, pairwise.euclidean_distances):
        agrees(lambda a: kernel(a, X[3:]).sum(), X[:2] + 0.1)


def test_kernels_of_gaussian_processes(agrees):
    agrees(lambda l: kernels.RationalQuadratic(l, 0.7)(X).sum(), 1.3)
    agrees(lambda l: kernels.ExpSineSquared(l, 2.0)(X).sum(), 1.3)
    agrees(lambda l: kernels.DotProduct(l)(X).sum(), 1.3)


def test_scalers(agrees):
    agrees(lambda a: (preprocessing.scale(a) ** 3).sum(), X, atol=1e-7)
    agrees(lambda a: (preprocessing.MinMaxScaler().fit_transform(a) ** 3).sum(), X)
    agrees(lambda a: (preprocessing.MaxAbsScaler().fit_transform(a) ** 3).sum(), X)
    agrees(lambda a: preprocessing.normalize(a).sum(), X)
    agrees(lambda a: preprocessing.PolynomialFeatures(2).fit_transform(a).sum(), X[:2])


def test_a_fitted_scaler_transforms(agrees):
    scaler = preprocessing.StandardScaler().fit(X)
    agrees(lambda a: (scaler.transform(a) ** 2).sum(), X[:2])


def test_fitting_a_scaler_in_forward_mode():
    """It computes 0/0 where nothing was seen before and overwrites it, which in reverse mode gives nan."""

    def spread(a):
        return preprocessing.StandardScaler().fit(a).scale_.sum()

    direction = X[::-1].copy()
    slope = (spread(X + 1e-5 * direction) - spread(X - 1e-5 * direction)) / 2e-5
    assert plaingrad.jvp(spread, (X,), (direction,))[1] == pytest.approx(slope, rel=1e-7)


def test_fitted_models_predict(agrees):
    line = linear_model.LinearRegression().fit(X, Y)
    agrees(lambda a: line.predict(a).sum(), X[:2])
    agrees(lambda a: line.score(a, Y), X + 0.1)
    classifier = linear_model.LogisticRegression().fit(X, (Y > 0).astype(int))
    agrees(lambda a: classifier.decision_function(a).sum(), X[:2])
    components = decomposition.PCA(2).fit(X)
    agrees(lambda a: (components.transform(a) ** 2).sum(), X[:2])


def test_covariance_and_helpers(agrees):
    agrees(lambda a: covariance.empirical_covariance(a).sum(), X)
    agrees(lambda a: softmax(a)[0, 1], X)
    agrees(lambda a: row_norms(a).sum(), X)


def test_distances_that_scipy_computes(agrees):
    agrees(lambda a: pairwise.manhattan_distances(a, X).sum(), X[:2])
    agrees(lambda l: kernels.RBF(l)(X).sum(), 1.3)


def test_compiled_code_is_refused_by_what_was_called(refuses):
    refuses(lambda t: linear_model.Lasso(0.01).fit(X, t).coef_.sum(), Y, called="sklearn.linear_model.")


def test_a_fit_by_equations(agrees):
    agrees(lambda a: linear_model.Ridge(a).fit(X, Y).coef_.sum(), 0.3)
