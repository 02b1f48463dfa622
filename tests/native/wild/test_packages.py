"""Functions that others wrote for Numba, unmodified, differentiated natively, beside differences of what they compute.

A row is a package's module and calls of its functions; packages that are not installed are skipped by name. Left out are
functions of the same packages with internals in single precision, which differences do not show, and those that return
memory that nothing was written into.
"""

import importlib
import importlib.util
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import plaingrad
from tests.native.comparison import assert_close, copied, leaves
from tests.sampling import ALL, is_in_sample

pytest.importorskip("numba")

X, Y = np.array([0.3, 0.7, 1.1, 0.5, 0.9]), np.array([0.6, 0.2, 0.8, 1.3, 0.35])
P, Q = X / X.sum(), Y / Y.sum()
X3, Y3 = X[:3].copy(), Y[:3].copy()
METRIC = np.array([[2.0, 0.3, 0.1], [0.3, 1.5, 0.2], [0.1, 0.2, 1.2]])
R, V = np.array([7000.0, -1200.0, 800.0]), np.array([1.1, 7.0, 0.8])
STATE = np.concatenate([R, V])
PRICES = 10.0 + np.cumsum(np.cos(np.arange(12.0) ** 1.3))
HIGH, LOW = PRICES + 0.3 + 0.1 * np.sin(np.arange(12.0)), PRICES - 0.4 - 0.1 * np.cos(np.arange(12.0))
VOLUME, BACK = 2.0 + np.cos(np.arange(12.0)), PRICES[::-1].copy()
RETURNS = 0.02 * np.sin(np.arange(10.0) ** 1.7)
MOVE, SEEN = np.array([[0.9, 0.1], [0.05, 0.8]]), np.array([[1.0, 0.2], [0.1, 1.1]])
SERIES, PAIR = np.cos(np.arange(8.0)).reshape(4, 2), np.array([X, Y])
PAIR2 = PAIR[::-1] * 1.5
POINTS, POINTS2 = np.sin(np.arange(12.0) ** 1.2).reshape(4, 3), np.cos(np.arange(12.0) ** 1.1).reshape(4, 3)
BOUNDS = np.ones((5, 2)) * [1e-3, 10.0]
TWO = X[:2].copy()

VECTORS = "braycurtis canberra chebyshev cityblock correlation cosine euclidean sqeuclidean".split()
TABLE = {
    "fastdist.fastdist": [
        *[(name, X, Y) for name in VECTORS],
        ("jensenshannon", P, Q), ("minkowski", X, Y, 3), ("mahalanobis", X3, Y3, METRIC), ("seuclidean", X, Y, Y)],
    "hapsira.core.angles": [
        ("D_to_nu", 0.3), ("nu_to_D", 0.4), ("nu_to_E", 0.5, 0.2), ("nu_to_F", 0.5, 1.4), ("E_to_nu", 0.4, 0.3),
        ("F_to_nu", 0.4, 1.3), ("M_to_D", 0.3), ("E_to_M", 0.4, 0.3), ("F_to_M", 0.4, 1.3), ("D_to_M", 0.4),
        ("fp_angle", 0.5, 0.2)],
    "hapsira.core.elements": [
        ("eccentricity_vector", 398600.0, R, V), ("circular_velocity", 398600.0, 7000.0),
        ("coe2mee", 1.2, 0.1, 0.3, 0.4, 0.5, 0.6)],
    "hapsira.core.perturbations": [
        ("J2_perturbation", 0.0, STATE, 398600.0, 1e-3, 6378.0), ("J3_perturbation", 0.0, STATE, 398600.0, 1e-3, 6378.0)],
    "numba_stats.norm": [("_logpdf", X, 0.3, 0.8), ("_cdf", X, 0.3, 0.8)],
    "numba_stats.laplace": [("_logpdf", X, 0.1, 0.8), ("_cdf", X, 0.1, 0.8)],
    "numba_stats.expon": [("_logpdf", X, 0.1, 0.8), ("_cdf", X, 0.1, 0.8)],
    "fynance.features.momentums": [
        ("_sma_1d", PRICES, 3), ("_wma_1d", PRICES, 3), ("_ema_1d", PRICES, 0.3), ("_smstd_1d", PRICES, 4, 1),
        ("_emstd_1d", PRICES, 0.3), ("_ema_2d", SERIES, 0.3)],
    "fynance.features._metrics_helpers": [
        ("_drawdown_1d", PRICES, False), ("_roll_drawdown_1d", PRICES, 4, True), ("_roll_mdd_1d", PRICES, 4, False),
        ("_roll_annual_return_1d", PRICES, 4, 4, 1), ("_roll_annual_volatility_1d", PRICES, 4, False, 4, 1),
        ("_roll_mad_1d", PRICES, 4)],
    "fynance.features.roll_functions": [
        ("_roll_min_1d", PRICES, 4), ("_roll_cov_1d", PRICES, HIGH, 5), ("_roll_corr_1d", PRICES, BACK, 5),
        ("_roll_beta_1d", PRICES, BACK, 5), ("_cross_corr_1d", PRICES, HIGH, 2)],
    "fynance.features.filters": [
        ("_kalman_filter_core", SERIES, MOVE, SEEN, 0.1 * np.eye(2), 0.2 * np.eye(2), TWO, np.eye(2))],
    "fynance.features.ohlcv": [
        ("_atr_kernel", HIGH, LOW, PRICES, 3), ("_williams_kernel", HIGH, LOW, PRICES, 3),
        ("_obv_kernel", PRICES, VOLUME), ("_vwap_kernel", PRICES, VOLUME, 3)],
    "fynance.portfolio.covariance": [("_ewma_cov_kernel", SERIES, 0.9)],
    "fynance.portfolio.rebalance": [("_drift_step", P, Y)],
    "fynance.metrics.risk": [("_roll_window_moments_1d", RETURNS, 4)],
    "ta_numba.others": [
        ("daily_return_numba", PRICES), ("daily_log_return_numba", PRICES), ("cumulative_return_numba", PRICES),
        ("rolling_zscore_numba", PRICES, 4), ("linear_regression_slope_numba", PRICES, 4),
        ("rolling_percentile_numba", PRICES, 4)],
    "ta_numba.trend": [
        ("sma_numba", PRICES, 3, 1), ("ema_numba", PRICES, 3, True), ("weighted_moving_average", PRICES, 3),
        ("trix_numba", PRICES, 2), ("cci_numba", HIGH, LOW, PRICES, 3, 0.015), ("dpo_numba", PRICES, 3),
        ("mass_index_numba", HIGH, LOW, 2, 3)],
    "fastjmd95.jmd95numba": [
        ("rho", np.array([35.0, 34.0]), np.array([10.0, 4.0]), np.array([100.0, 500.0])),
        ("drhodt", 35.0, 10.0, 100.0), ("drhods", 35.0, 10.0, 100.0)],
    "kearsley_numba.kearsley": [("fit", POINTS, POINTS2), ("mean_numba", POINTS), ("eucl_dist", X, Y)],
    "hyper_corr.pearsonr": [("_pearsonr", X, Y, False)],
    "arch.univariate.recursions_python": [
        ("arch_recursion_python", np.array([0.1, 0.2]), X, X.copy(), 1, 5, 0.5, BOUNDS)],
    "aeon.distances.pointwise._euclidean": [("_univariate_euclidean_distance", X, Y), ("euclidean_distance", X, Y)],
    "aeon.distances.pointwise._manhattan": [
        ("_univariate_manhattan_distance", X, Y), ("_multivariate_manhattan_distance", PAIR, PAIR2)],
    "aeon.distances.elastic._dtw": [
        ("_dtw_distance_sakoe_equal", PAIR, PAIR2, 3), ("_dtw_cost_matrix", PAIR, PAIR2, np.ones((5, 5), bool)),
        ("dtw_distance", X, Y)],
    "aeon.distances.elastic._soft_dtw": [("soft_dtw_distance", X, Y), ("soft_dtw_cost_matrix", X, Y)],
    "aeon.distances.elastic._msm": [("msm_distance", X, Y)],
    "aeon.distances.elastic._erp": [("erp_distance", X, Y)],
    "aeon.distances.elastic._twe": [("twe_distance", X, Y)],
    "aeon.distances.elastic._wdtw": [("wdtw_distance", X, Y)],
    "umap.distances": [
        *[(name, X, Y) for name in "euclidean manhattan canberra bray_curtis cosine correlation hellinger".split()],
        ("minkowski", X, Y, 3.0), ("symmetric_kl", X, Y), ("haversine", TWO, Y[:2].copy()),
        ("poincare", 0.3 * X3, 0.3 * Y3), ("euclidean_grad", X, Y), ("log_beta", 2.3, 3.4), ("approx_log_Gamma", 2.3),
        ("ll_dirichlet", X * 9, Y * 9), ("mahalanobis_f64", X3, Y3, METRIC), ("softmax", X)],
    "pynndescent.optimal_transport": [
        ("K_from_cost", METRIC, 0.5), ("transport_plan", METRIC, X3, Y3), ("precompute_K_prime", METRIC, X3)],
    "quantecon.quad": [
        ("gammaln", 2.4), ("_qnwcheb1", 5, 0.3, 1.4), ("_qnwlege1", 5, 0.3, 1.4), ("_qnwsimp1", 5, 0.3, 1.4),
        ("_qnwtrap1", 5, 0.3, 1.4)],
    "quantecon._inequality": [("lorenz_curve", X), ("gini_coefficient", X)],
    "quantecon._lss": [("simulate_linear_model", MOVE, TWO, SERIES.T.copy(), 4)],
    "quantecon.optimize.pivoting": [("_pivoting", METRIC, 1, 1)],
    "quantecon.markov.approximation": [("std_norm_cdf", 0.4)],
    "stumpy.core": [
        ("_sliding_dot_product", X3, PRICES), ("_welford_nanvar", PRICES, 4, np.ones(9, bool)),
        ("_rolling_nanstd_1d", PRICES, 4), ("_p_norm_distance_profile", X3, PRICES, 3.0),
        ("_calculate_squared_distance", 4, 1.2, 0.3, 0.5, 0.4, 0.6, False, False)],
    "interpolation.splines.filter_cubic": [
        ("filter_coeffs_1d", np.array([2.0]), X), ("filter_coeffs_2d", np.array([2.0, 3.0]), METRIC)],
    "interpolation.multilinear.fungen": [("clamp", 0.3, 0.0, 1.0)],
    "numba_celltree.geometry_utils": [("polygon_area", POINTS)],
}  # fmt: skip
CASES = [(module, name, tuple(args)) for module, calls in TABLE.items() for name, *args in calls]


def module_of(name):
    """A module by its own file: what its package imports beside it is heavy, and has other packages as conditions."""
    if name in sys.modules:
        return sys.modules[name]
    parts = name.split(".")
    spec = importlib.util.find_spec(parts[0])
    if spec is None:
        pytest.skip(f"{parts[0]} is not installed")
    above = {}
    for k in range(1, len(parts)):
        package = ".".join(parts[:k])
        if package not in sys.modules:
            above[package] = types.ModuleType(package)
            above[package].__path__ = [str(Path(spec.origin).parent.joinpath(*parts[1:k]))]
            above[package].__version__ = "unknown"
    sys.modules.update(above)
    try:
        return importlib.import_module(name)
    except ImportError as error:
        pytest.skip(f"{name} is not to be had: {error}")
    finally:
        for package in above:
            sys.modules.pop(package, None)


def weighed(y):
    """A number that every part of a result takes part in, but for what is not there (nan)."""
    parts = [np.nan_to_num(part) for part in leaves(y) if part.dtype.kind == "f"]
    return sum(float(np.sum(np.cos(np.arange(part.size) + k).reshape(part.shape) * part)) for k, part in enumerate(parts))


def weights(y):
    """The cotangent that belongs to `weighed`."""
    parts = [
        np.where(np.isnan(part), 0.0, np.cos(np.arange(part.size) + k).reshape(part.shape))
        for k, part in enumerate(leaves(y))
    ]
    parts = [part if part.ndim else float(part) for part in parts]
    return tuple(parts) if isinstance(y, tuple) else parts[0]


def differences(f, args, k):
    """The gradient in one argument by central differences of the compiled function."""
    x = np.array(args[k], float)
    h = 1e-6 * max(1.0, np.abs(x).max())
    found = np.empty_like(x)
    for at in np.ndindex(x.shape):
        sides = []
        for step in (h, -h):
            moved = x.copy()
            moved[at] += step
            all_args = [copied(a) for a in args]
            all_args[k] = moved if x.ndim else float(moved)
            sides.append(weighed(f(*all_args)))
        found[at] = (sides[0] - sides[1]) / (2 * h)
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("module, name, args", CASES, ids=[f"{module}.{name}" for module, name, _ in CASES])
def test_a_function_of_a_package_has_the_slopes_that_differences_show(module, name, args, request):
    if not ALL and not is_in_sample(request.node.nodeid, 24):
        pytest.skip("one in twenty-four")
    f = getattr(module_of(module), name)
    y, pullback = plaingrad.vjp(f, *map(copied, args), tier="native")
    found = pullback(weights(y))
    for k, x in enumerate(args):
        if isinstance(x, (float, np.ndarray)) and np.asarray(x).dtype.kind == "f":
            assert_close(found[k], differences(f, args, k), 2e-5, f"argument {k}")
