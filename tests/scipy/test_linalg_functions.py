"""scipy.linalg: functions of matrices, structured matrices and norms, against differences and closed forms."""

import numpy as np
import pytest
from tests.scipy.linalg_cases import matrix, moves, positive, vector

import plaingrad

sl = pytest.importorskip("scipy.linalg")
pytestmark = pytest.mark.filterwarnings("ignore")  # of SciPy about what it is given
both = pytest.mark.parametrize("c", [False, True], ids=["real", "complex"])


@both
@pytest.mark.parametrize("name", ["expm", "logm", "sqrtm", "cosm", "sinm", "tanm", "coshm", "sinhm", "tanhm"])
def test_functions_of_matrices(c, name):
    a = positive(1, 3, c) + 0.5 * matrix(2, 3, 3, c) if name in ("logm", "sqrtm") else 0.5 * matrix(2, 3, 3, c)
    moves(getattr(sl, name), a, nested=name in ("expm", "logm", "sqrtm", "cosm", "tanhm"))


@both
def test_signs_and_powers(c):
    a = positive(1, 3, c) + 0.5 * matrix(2, 3, 3, c)
    moves(sl.signm, a - 4 * np.eye(3))
    for t in (0.3, -0.7, 2, 3.0):
        moves(lambda a: sl.fractional_matrix_power(a, t), a, nested=t == 0.3)
    moves(lambda a, t: sl.fractional_matrix_power(a, t[()]), a, np.float64(0.4), nested=False)


@both
def test_derivatives_of_the_exponential_are_differentiated(c):
    moves(lambda a, e: sl.expm_frechet(a, e), 0.5 * matrix(1, 3, 3, c), matrix(2, 3, 3, c))
    moves(lambda a, e: sl.expm_frechet(a, e, compute_expm=False), 0.5 * matrix(1, 3, 3, c), matrix(2, 3, 3, c), nested=False)
    moves(sl.expm_cond, 0.5 * matrix(1, 3, 3, c), nested=False)


@both
def test_any_function_of_a_matrix_and_what_it_closes_over(c):
    moves(lambda a, t: sl.funm(a, lambda x: np.exp(t * x)), matrix(1, 3, 3, c), np.float64(0.3))
    value, error = sl.funm(matrix(1, 3), np.exp, disp=False)
    found = plaingrad.value_and_grad(lambda a: np.sum(sl.funm(a, np.exp, disp=False)[0]))(matrix(1, 3))
    assert found[0] == pytest.approx(np.sum(value), rel=1e-12) and error < 1e-10
    np.testing.assert_allclose(found[1], plaingrad.grad(lambda a: np.sum(sl.expm(a)))(matrix(1, 3)), rtol=1e-9)


def test_any_function_is_nan_where_eigenvalues_are_equal():
    value, slope = plaingrad.value_and_grad(lambda a: np.sum(sl.funm(a, np.exp)))(np.eye(2))
    assert value == pytest.approx(2 * np.e) and np.isnan(slope).all()


def test_exponentials_against_mpmath():
    """The slope of expm(A + t E)[0, 1] with 40 digits."""
    mpmath = pytest.importorskip("mpmath")
    a, e = matrix(3, 4), matrix(4, 4)
    with mpmath.workdps(40):
        big = mpmath.zeros(8)
        for i in range(4):
            for j in range(4):
                big[i, j] = big[i + 4, j + 4] = mpmath.mpf(a[i, j])
                big[i, j + 4] = mpmath.mpf(e[i, j])
        truth = float(mpmath.expm(big)[0, 5])
    assert np.sum(plaingrad.grad(lambda a: sl.expm(a)[0, 1])(a) * e) == pytest.approx(truth, rel=1e-13)
    assert plaingrad.jvp(lambda a: sl.expm(a)[0, 1], (a,), (e,))[1] == pytest.approx(truth, rel=1e-13)


def test_identities_of_slopes():
    a = positive(1, 4)
    inverse = np.linalg.inv(a)
    np.testing.assert_allclose(plaingrad.grad(lambda a: np.log(sl.det(a)))(a), inverse.T, rtol=1e-12)
    np.testing.assert_allclose(plaingrad.grad(lambda a: np.trace(sl.expm(a / 9)))(a), sl.expm(a / 9).T / 9, rtol=1e-12)
    np.testing.assert_allclose(plaingrad.grad(lambda a: np.trace(sl.logm(a)))(a), inverse.T, rtol=1e-9)
    np.testing.assert_allclose(plaingrad.grad(lambda a: np.trace(sl.sqrtm(a)))(a), np.linalg.inv(sl.sqrtm(a)).T / 2, rtol=1e-9)
    half = plaingrad.grad(lambda a: 2 * np.sum(np.log(np.diag(sl.cholesky(a, lower=True)))))(a)
    np.testing.assert_allclose(half, 2 * np.tril(inverse) - np.diag(np.diag(inverse)), rtol=1e-9, atol=1e-14)


@both
def test_structured_matrices(c):
    x, y = vector(1, 4, c), vector(2, 5, c)
    moves(lambda x, y: [sl.toeplitz(x, y), sl.toeplitz(x), sl.hankel(x, y), sl.circulant(x), sl.companion(x)], x, y)
    moves(lambda x, y: [sl.leslie(x, y[:3]), sl.fiedler(x.real), sl.fiedler_companion(x), sl.block_diag(np.outer(x, y), x)], x, y)
    moves(lambda x, y: [sl.convolution_matrix(x, 6, mode) for mode in ("full", "same", "valid")], x, y, nested=False)
    moves(sl.khatri_rao, matrix(1, 2, 3, c), matrix(2, 4, 3, c))
    moves(lambda s: sl.diagsvd(s, 4, 6), x, nested=False)


@both
@pytest.mark.parametrize("order", [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
def test_norms(c, order):
    moves(lambda a: sl.norm(a, order), matrix(1, 4, 3, c), nested=order in (None, "nuc"))
    if not isinstance(order, str):
        moves(lambda a: sl.norm(a, order), vector(1, 4, c), nested=False)
        moves(lambda a: sl.norm(a, order, axis=1, keepdims=True), matrix(1, 4, 3, c), nested=False)


@both
def test_balancing(c):
    badly = np.outer([1, 11, 90, 700.0], [1, 0.09, 0.011, 0.0014])
    moves(lambda a: sl.matrix_balance(badly * a)[0], matrix(1, 4, 4, c))
    moves(lambda a: sl.matrix_balance(badly * a, permute=False, separate=True)[0], matrix(1, 4, 4, c), nested=False)


def test_eigenvalues_in_real_form():
    moves(lambda a: sl.cdf2rdf(*sl.eig(a)), matrix(1, 4), tolerance=1e-5)
