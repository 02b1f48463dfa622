"""What SciPy cannot do: exceptions and warnings are those of a plain call, and no solution has no derivative."""

import warnings

import numpy as np
import pytest
import scipy
import scipy.cluster.hierarchy as hierarchy
import scipy.cluster.vq as vq
import scipy.fft as fft
import scipy.integrate as integrate
import scipy.interpolate as interpolate
import scipy.linalg as la
import scipy.ndimage as ndimage
import scipy.optimize as optimize
import scipy.signal as signal
import scipy.sparse as sparse
import scipy.sparse.linalg as spla
import scipy.spatial as spatial
import scipy.stats as stats
from tests.sampling import is_in_sample

from plaingrad import grad, jvp
from plaingrad.errors import MissingRuleError

NAN = np.nan
SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])
MATRICES = {
    "singular": SINGULAR, "nan": np.array([[1.0, NAN], [2.0, 3.0]]), "empty": np.zeros((0, 0)),
    "not square": np.ones((2, 3)), "a vector": np.ones(3),
}  # fmt: skip
OF_MATRICES = {
    "solve": lambda a: la.solve(a, np.ones(2)), "inv": la.inv, "cholesky": la.cholesky, "lu": la.lu, "eigh": la.eigh,
    "cho_solve": lambda a: la.cho_solve(la.cho_factor(a), np.ones(2)), "eigvals": la.eigvals, "svd": la.svd,
    "lu_solve": lambda a: la.lu_solve(la.lu_factor(a), np.ones(2)), "qr": la.qr, "det": la.det, "pinv": la.pinv,
    "logm": la.logm, "sqrtm": la.sqrtm, "expm": la.expm, "lstsq": lambda a: la.lstsq(a, np.ones(2)), "schur": la.schur,
    "solve_triangular": lambda a: la.solve_triangular(a * np.array([[1, 0], [1, 0.0]]), np.ones(2)), "ldl": la.ldl,
}  # fmt: skip
CSR = sparse.csr_array(SINGULAR)
POINTS = np.array([0.0, 1.0, 2.0])
ONES = {n: np.ones(n) for n in (1, 2, 3, 4, 9)}
EMPTY = np.zeros(0)

# Older versions of SciPy find out about these later, in compiled code, or warn less.
SINCE_1_15 = ("lombscargle", "ttest, empty")
IS_OLD = tuple(map(int, scipy.__version__.split(".")[:2])) < (1, 15)

OTHERS = {
    "solve, shapes": (lambda b: la.solve(np.eye(2), b), ONES[3]),
    "toeplitz, singular": (lambda x: la.solve_toeplitz(x, ONES[3]), np.zeros(3)),
    "sylvester": (lambda x: la.solve_sylvester(x, -x, np.eye(2)), SINGULAR + np.eye(2)),
    "riccati": (lambda x: la.solve_continuous_are(x, np.eye(2), np.zeros((2, 2)), np.eye(2)), np.array([[0.0, 1.0], [-1.0, 0.0]])),
    "brentq, signs": (lambda x: optimize.brentq(lambda t: t * t + x, 0, 1), 1.0),
    "brentq, nan": (lambda x: optimize.brentq(lambda t: t - x, 0, NAN), 0.5),
    "newton": (lambda x: optimize.newton(lambda t: t * t + x, 1.0, maxiter=5), 1.0),
    "bisect": (lambda x: optimize.bisect(lambda t: t - x, 0, 1, maxiter=2), 0.3),
    "fixed_point": (lambda x: optimize.fixed_point(lambda t: 2 * t + x, 1.0, maxiter=5), 1.0),
    "root_scalar, no start": (lambda x: optimize.root_scalar(lambda t: t - x), 0.5),
    "minimize, method": (lambda x: optimize.minimize(lambda t: ((t - x) ** 2).sum(), [3.0], method="none").x, ONES[1]),
    "minimize_scalar, bracket": (lambda x: optimize.minimize_scalar(lambda t: (t - x) ** 2, bracket=(3, 2, 1, 0)).x, 1.0),
    "curve_fit, shapes": (lambda x: optimize.curve_fit(lambda t, a: a * t, x, ONES[4])[0], ONES[3]),
    "curve_fit, nan": (lambda x: optimize.curve_fit(lambda t, a: a * t, x, ONES[3])[0], np.array([1.0, NAN, 2.0])),
    "curve_fit, too few": (lambda x: optimize.curve_fit(lambda t, a, b: a * t + b, x, ONES[1])[0], ONES[1]),
    "least_squares, nan": (lambda x: optimize.least_squares(lambda t: t * x * NAN, [1.0]).x, ONES[1]),
    "least_squares, bounds": (lambda x: optimize.least_squares(lambda t: t - x, [1.0], bounds=(2, 3)).x, ONES[1]),
    "root, shapes": (lambda x: optimize.root(lambda t: t[:1] - x, [1.0, 2.0]).x, ONES[1]),
    "nnls, shapes": (lambda x: optimize.nnls(x, ONES[3])[0], np.ones((2, 2))),
    "lsq_linear, shapes": (lambda x: optimize.lsq_linear(x, ONES[3]).x, np.ones((2, 2))),
    "simpson, empty": (integrate.simpson, EMPTY),
    "trapezoid, shapes": (lambda y: integrate.trapezoid(y, x=ONES[2]), ONES[3]),
    "cumulative_trapezoid": (integrate.cumulative_trapezoid, np.array(1.0)),
    "romb": (integrate.romb, ONES[4]),
    "solve_ivp, shapes": (lambda x: integrate.solve_ivp(lambda t, y: y * x, [0, 1], [[1.0]]).y, 1.0),
    "solve_ivp, result": (lambda x: integrate.solve_ivp(lambda t, y: np.array([x, x]), [0, 1], [1.0]).y, 1.0),
    "solve_ivp, method": (lambda x: integrate.solve_ivp(lambda t, y: y * x, [0, 1], [1.0], method="x").y, 1.0),
    "solve_ivp, times": (lambda x: integrate.solve_ivp(lambda t, y: y * x, [0, 1], [1.0], t_eval=[2.0]).y, 1.0),
    "interp1d, outside": (lambda x: interpolate.interp1d(POINTS, x)(3.0), ONES[3]),
    "interp1d, shapes": (lambda x: interpolate.interp1d([0, 1.0], x)(0.3), ONES[3]),
    "CubicSpline, order": (lambda x: interpolate.CubicSpline([0, 2, 1.0], x)(0.3), ONES[3]),
    "CubicSpline, nan": (lambda x: interpolate.CubicSpline(POINTS, x)(0.3), np.array([1, NAN, 2])),
    "Pchip, one": (lambda x: interpolate.PchipInterpolator([0.0], x)(0.3), ONES[1]),
    "grid, outside": (lambda x: interpolate.RegularGridInterpolator(([0, 1.0], [0, 1.0]), np.eye(2))(x), np.full((1, 2), 2.0)),
    "grid, axes": (lambda x: interpolate.RegularGridInterpolator(([0, 1.0], [0, 1.0]), np.eye(2))(x), np.ones((1, 3))),
    "splrep, too few": (lambda x: interpolate.splev(0.5, interpolate.splrep(POINTS, x)), ONES[3]),
    "BSpline, too few": (lambda x: interpolate.BSpline(POINTS, x, 3)(0.5), ONES[3]),
    "RBF, singular": (lambda x: interpolate.RBFInterpolator(np.zeros((3, 1)), x)([[0.2]]), ONES[3]),
    "griddata, flat": (lambda x: interpolate.griddata(np.zeros((3, 2)), x, [[0.1, 0.1]]), ONES[3]),
    "UnivariateSpline, too few": (lambda x: interpolate.UnivariateSpline(POINTS, x)(0.4), ONES[3]),
    "lfilter, zero": (lambda x: signal.lfilter([1.0], x, ONES[3]), np.array([0.0, 1.0])),
    "filtfilt, too short": (lambda x: signal.filtfilt([1.0, 1], [1.0, 0.5], x), ONES[3]),
    "savgol, too short": (lambda x: signal.savgol_filter(x, 7, 2), ONES[4]),
    "savgol, degree": (lambda x: signal.savgol_filter(x, 3, 3), ONES[9]),
    "convolve, empty": (lambda x: signal.convolve(x, ONES[2]), EMPTY),
    "convolve, axes": (lambda x: signal.convolve(x, np.ones((2, 2))), ONES[3]),
    "sosfilt, shapes": (lambda x: signal.sosfilt(x, ONES[4]), np.ones((1, 5))),
    "resample_poly": (lambda x: signal.resample_poly(x, 0, 1), ONES[4]),
    "butter, band": (lambda x: signal.butter(2, x)[0], 1.5),
    "welch, too short": (lambda x: signal.welch(x, nperseg=8)[1], ONES[4]),
    "hilbert, empty": (lambda x: np.real(signal.hilbert(x)), EMPTY),
    "lombscargle": (lambda x: signal.lombscargle(x, ONES[2], [1.0]), ONES[3]),
    "norm, scale": (lambda x: stats.norm.pdf(1.0, scale=x), -1.0),
    "gamma, shape": (lambda x: stats.gamma.pdf(1.0, x), -1.0),
    "fit, nan": (lambda x: np.array(stats.norm.fit(x)), np.array([1.0, NAN])),
    "ttest, empty": (lambda x: stats.ttest_1samp(x, 0.0)[0], EMPTY),
    "pearsonr, constant": (lambda x: stats.pearsonr(x, [1.0, 2.0, 3.0])[0], ONES[3]),
    "pearsonr, one": (lambda x: stats.pearsonr(x, [1.0])[0], ONES[1]),
    "normal, singular": (lambda x: stats.multivariate_normal.logpdf([0.0, 0.0], cov=x), SINGULAR),
    "normal, indefinite": (lambda x: stats.multivariate_normal.logpdf([0.0, 0.0], cov=x), np.array([[1.0, 2.0], [2.0, 1.0]])),
    "kde, constant": (lambda x: stats.gaussian_kde(x)(0.0), ONES[3]),
    "skew, constant": (stats.skew, ONES[3]),
    "gmean, negative": (stats.gmean, np.array([-1.0, 2.0])),
    "linregress, constant": (lambda x: stats.linregress(x, [1.0, 2.0, 3.0])[0], ONES[3]),
    "boxcox, negative": (lambda x: stats.boxcox(x, 0.5), np.array([-1.0, 2.0])),
    "chisquare, sums": (lambda x: stats.chisquare(x, [1.0, 2.0, 4.0])[0], ONES[3]),
    "dirichlet": (lambda x: stats.dirichlet.pdf(x, [1.0, 2.0]), np.array([0.5, 0.6])),
    "trim_mean": (lambda x: stats.trim_mean(x, 0.6), ONES[4]),
    "spsolve, singular": (lambda b: spla.spsolve(CSR.tocsc(), b), ONES[2]),
    "spsolve, shapes": (lambda b: spla.spsolve(CSR.tocsc(), b), ONES[3]),
    "gmres, shapes": (lambda b: spla.gmres(CSR, b)[0], ONES[3]),
    "splu, singular": (lambda x: spla.splu(sparse.csc_array(SINGULAR) * x[0]).solve(ONES[2]), ONES[1]),
    "a sparse product": (lambda x: CSR @ x, ONES[3]),
    "cdist, axes": (lambda x: spatial.distance.cdist(x, np.ones((2, 3))), np.ones((2, 2))),
    "cdist, metric": (lambda x: spatial.distance.cdist(x, x, "foo"), np.ones((2, 2))),
    "a rotation of zero": (lambda x: spatial.transform.Rotation.from_quat(x).as_matrix(), np.zeros(4)),
    "a flat hull": (lambda x: spatial.ConvexHull(x).volume, np.zeros((4, 2))),
    "map_coordinates": (lambda x: ndimage.map_coordinates(x, [[0.0], [0.0]]), ONES[4]),
    "fft, no points": (lambda x: np.real(fft.fft(x, n=0)), ONES[3]),
    "dct, type": (lambda x: fft.dct(x, type=7), ONES[3]),
    "whiten, constant": (vq.whiten, np.ones((3, 2))),
    "kmeans": (lambda x: vq.kmeans(x, 0, seed=1)[0], np.ones((3, 1))),
}  # fmt: skip
# Families that those above leave out.
MORE = {
    "linkage, one": (lambda x: hierarchy.linkage(x)[:, 2], np.ones((1, 2))),
    "linkage, nan": (lambda x: hierarchy.linkage(x)[:, 2], np.array([[1.0, NAN], [2, 3], [4, 5]])),
    "linkage, method": (lambda x: hierarchy.linkage(x, "foo")[:, 2], np.eye(3)),
    "cophenet": (lambda x: hierarchy.cophenet(x), np.ones((2, 3))),
    "cdf2rdf": (lambda x: la.cdf2rdf(x[:2], x)[0], np.ones((3, 3))),
    "solveh_banded, indefinite": (lambda x: la.solveh_banded(x, ONES[3]), np.array([[0, 1.0, 1], [-1, 2, 3]])),
    "solve_circulant, singular": (lambda x: la.solve_circulant(x, ONES[3]), ONES[3]),
    "discrete lyapunov": (lambda x: la.solve_discrete_lyapunov(x, np.eye(2)), np.eye(3)),
    "subspace_angles": (lambda x: la.subspace_angles(x, np.ones((2, 1))), np.ones((3, 1))),
    "eigh_tridiagonal": (lambda x: la.eigh_tridiagonal(x, ONES[3])[0], ONES[3]),
    "fht, empty": (lambda x: fft.fht(x, 0.1, 0.3), EMPTY),
    "irfft, no points": (lambda x: fft.irfft(x, n=-1), ONES[3]),
    "dctn, shapes": (lambda x: fft.dctn(x, s=(2,), axes=(0, 1)), np.eye(2)),
    "barycentric, twice": (lambda x: interpolate.BarycentricInterpolator([0, 0, 1.0], x)(0.3), ONES[3]),
    "krogh, shapes": (lambda x: interpolate.KroghInterpolator([0, 1.0], x)(0.3), ONES[3]),
    "make_interp_spline, order": (lambda x: interpolate.make_interp_spline([0, 1.0, 2, 3], x, k=5)(0.3), ONES[4]),
    "PPoly, breaks": (lambda x: interpolate.PPoly(x, [0, 2.0, 1])(0.3), np.ones((2, 2))),
    "zoom, negative": (lambda x: ndimage.zoom(x, -1.0), np.eye(3)),
    "affine_transform": (lambda x: ndimage.affine_transform(np.eye(3), x), np.ones((4, 2))),
    "correlate1d, no weights": (lambda x: ndimage.correlate1d(ONES[4], x), EMPTY),
    "shift, too many": (lambda x: ndimage.shift(np.eye(3), x), ONES[3]),
    "linprog, infeasible": (lambda x: optimize.linprog(ONES[1], A_ub=[[1.0], [-1.0]], b_ub=x).x, np.array([-1.0, -1.0])),
    "linprog, shapes": (lambda x: optimize.linprog(x, A_ub=[[1.0]], b_ub=[1.0]).x, ONES[2]),
    "brenth, tolerance": (lambda x: optimize.brenth(lambda t: t - x, 0, 1, xtol=-1), 0.5),
    "ridder, arguments": (lambda x: optimize.ridder(lambda t, a: t - x, 0, 1), 0.5),
    "minimize, bounds": (lambda x: optimize.minimize(lambda t: ((t - x) ** 2).sum(), [1.0], bounds=[(2, 1)]).x, ONES[1]),
    "minimize, a vector": (lambda x: optimize.minimize(lambda t: t - x, [1.0, 2.0]).x, ONES[2]),
    "lfilter, empty": (lambda x: signal.lfilter(x, [1.0], ONES[3]), EMPTY),
    "lfilter_zi, singular": (lambda x: signal.lfilter_zi(x, [1.0, -1.0]), ONES[2]),
    "stft, overlap": (lambda x: signal.stft(x, nperseg=4, noverlap=4)[2], ONES[9]),
    "firwin, cutoff": (lambda x: signal.firwin(5, x), 1.5),
    "coo, indices": (lambda x: sparse.coo_array((x, ([0, 5], [0, 1])), shape=(2, 2)).toarray(), ONES[2]),
    "hstack, shapes": (lambda x: sparse.hstack([sparse.csr_array(x), sparse.csr_array(ONES[2][None])]).toarray(), np.eye(3)),
}  # fmt: skip
# What is no solution has no derivative: refused, where a plain call gives a number.
NO_SOLUTION = {
    "fsolve": (lambda x: optimize.fsolve(lambda t: t * t + x[0], [1.0]), ONES[1]),
    "minimize": (lambda x: optimize.minimize(lambda t: (t[0] - x[0]) ** 4, [3.0], options={"maxiter": 1}).x, ONES[1]),
    "quad": (lambda x: integrate.quad(lambda t: np.sin(x * 100 * t), 0, 10, limit=2)[0], 1.0),
    "cg": (lambda b: spla.cg(sparse.csr_array(np.diag([1.0, 2, 3, 4])), b, maxiter=1)[0], ONES[4]),
}  # fmt: skip


def sum_of(y):
    """All numbers of a result, added up."""
    if isinstance(y, (tuple, list)):
        return sum([sum_of(part) for part in y], 0.0)
    if isinstance(y, np.ndarray) and y.dtype.kind in "fc":
        return np.real(y).sum()
    return np.real(y) if isinstance(y, (float, complex, np.inexact)) else 0.0


def outcome(f):
    """The exception that a call raises, and its warnings."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            f()
        except Exception as error:
            what = type(error), str(error)
        else:
            what = None
    return what, {(w.category, str(w.message)) for w in seen}


def compare(f, x):
    plain, said = outcome(lambda: sum_of(f(np.array(x) if np.ndim(x) else x)))
    along = np.ones_like(x) if np.ndim(x) else 1.0
    for derivative in (
        lambda: grad(lambda v: sum_of(f(v)))(x), lambda: jvp(lambda v: sum_of(f(v)), (x,), (along,))
    ):  # fmt: skip
        assert outcome(derivative) == (plain, said)


ONCE_WRONG = ("lu", "lu_solve", "logm", "sqrtm", "expm")  # of the others one in three is tried


@pytest.mark.parametrize(
    ("name", "matrix"),
    [
        (name, m)
        for name in OF_MATRICES
        for m in MATRICES
        if name in ONCE_WRONG or is_in_sample(f"{name} {m}", 3)
    ],
)
def test_matrices(name, matrix):
    compare(OF_MATRICES[name], MATRICES[matrix])


@pytest.mark.skipif(IS_OLD, reason="older versions of SciPy raise elsewhere")
@pytest.mark.parametrize("name", MORE)
def test_more_functions(name):
    compare(*MORE[name])


@pytest.mark.parametrize("name", OTHERS)
def test_other_functions(name):
    if IS_OLD and name in SINCE_1_15:
        pytest.skip("older versions of SciPy raise elsewhere")
    compare(*OTHERS[name])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NO_SOLUTION)
def test_what_is_no_solution_is_refused_by_name(name):
    f, x = NO_SOLUTION[name]
    f(x)
    with pytest.raises(MissingRuleError, match=f"{name}.*has no derivative here"):
        grad(lambda v: sum_of(f(v)))(x)
