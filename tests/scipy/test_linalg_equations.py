"""scipy.linalg: equations and matrix equations have the derivatives that differences say."""

import numpy as np
import pytest
from tests.scipy.linalg_cases import hermitian, matrix, moves, positive, vector

import plaingrad
from plaingrad.errors import MissingRuleError

sl = pytest.importorskip("scipy.linalg")
pytestmark = pytest.mark.filterwarnings("ignore")  # of SciPy about what it is given
NEW = hasattr(sl.solve_triangular, "__wrapped__")  # batches; structures by name

both = pytest.mark.parametrize("c", [False, True], ids=["real", "complex"])
triangles = pytest.mark.parametrize("lower", [False, True], ids=["upper", "lower"])


@both
def test_general_equations(c):
    a, b = matrix(1, 4, 4, c) + 3 * np.eye(4), matrix(2, 4, 3, c)
    moves(sl.solve, a, b)
    moves(lambda a, b: sl.solve(a, b=b, overwrite_a=True, check_finite=False), a, b[:, 0], nested=False)
    moves(sl.solve, positive(3, 4, c), b, nested=False)  # the structure is found: the derivative is still that of any A
    moves(sl.inv, a)
    moves(sl.det, a)
    if not c:
        moves(lambda a, b: sl.solve(a, b, transposed=True), a, b)


@both
@triangles
@pytest.mark.parametrize("kind", ["gen", "sym", "her", "pos"])
def test_what_a_solver_does_not_read_has_no_derivative(c, lower, kind):
    moves(lambda a, b: sl.solve(a, b, assume_a=kind, lower=lower), positive(3, 4, c), matrix(2, 4, 2, c), nested=kind == "sym")


@pytest.mark.skipif(not NEW, reason="this SciPy does not know them")
@both
@pytest.mark.parametrize("kind", ["diagonal", "tridiagonal", "banded", "upper triangular", "lower triangular"])
def test_structures_by_name(c, kind):
    moves(lambda a, b: sl.solve(a, b, assume_a=kind), positive(3, 4, c), matrix(2, 4, 2, c), nested=False)


@both
@triangles
@pytest.mark.parametrize("trans", [0, 1, "C"])
def test_triangular_equations(c, lower, trans):
    a, b = matrix(1, 4, 4, c) + 3 * np.eye(4), matrix(2, 4, 2, c)
    moves(lambda a, b: sl.solve_triangular(a, b, trans, lower), a, b)
    moves(lambda a, b: sl.solve_triangular(a, b, trans=trans, lower=lower, unit_diagonal=True), a, b[:, 0], nested=False)


@both
@triangles
def test_equations_in_bands(c, lower):
    ab, b = matrix(1, 4, 6, c), matrix(2, 6, 2, c)
    ab[1] += 5
    if lower:
        moves(lambda ab, b: sl.solve_banded((2, 1), ab, b), ab, b)
        moves(lambda ab, b: sl.solve_banded((1, 1), ab, b), ab[:3], b[:, 0], nested=False)
    h = 0.3 * ab[:3]
    h[0 if lower else 2] = 6 + np.arange(6)
    moves(lambda h, b: sl.solveh_banded(h, b, lower=lower), h, b)
    moves(lambda h, b: sl.cho_solve_banded((h, lower), b), h, b)
    exists = band_mask(lower)
    moves(lambda h: exists * sl.cholesky_banded(h, lower=lower), h)


def band_mask(lower):
    row, column = np.indices((3, 6))
    return (row + column < 6) if lower else (column >= 2 - row)


@both
def test_toeplitz_and_circulant_equations(c):
    column, row, b = vector(1, 5, c) + 4 * np.eye(5)[0], vector(2, 5, c), matrix(3, 5, 2, c)
    moves(lambda c_, b: sl.solve_toeplitz(c_, b), column, b)
    moves(lambda c_, r, b: sl.solve_toeplitz((c_, r), b), column, row, b[:, 0])
    moves(lambda c_, r, x: sl.matmul_toeplitz((c_, r), x), column[:4], row, b)
    moves(lambda c_, x: sl.matmul_toeplitz(c_, x), column, b[:, 0], nested=False)
    moves(lambda c_, b: sl.solve_circulant(c_, b), column, b, nested=False)


@both
@triangles
def test_equations_by_factors(c, lower):
    a, b = positive(1, 4, c), matrix(2, 4, 2, c)
    moves(lambda a, b: sl.cho_solve(sl.cho_factor(a, lower=lower), b), a, b)
    moves(lambda f, b: sl.cho_solve((f, lower), b), sl.cho_factor(a, lower)[0], b[:, 0])
    for trans in (0, 1, 2):
        moves(lambda a, b: sl.lu_solve(sl.lu_factor(a), b, trans), matrix(3, 4, 4, c), b, nested=trans == 1)


@both
def test_sylvester_and_lyapunov(c):
    a, b, q = matrix(1, 3, 3, c), matrix(2, 2, 2, c) + 5 * np.eye(2), matrix(3, 3, 2, c)
    moves(sl.solve_sylvester, a, b, q)
    moves(sl.solve_continuous_lyapunov, a, matrix(4, 3, 3, c))
    for method in ("direct", "bilinear"):
        moves(lambda a, q: sl.solve_discrete_lyapunov(a, q, method), 0.4 * a, matrix(4, 3, 3, c), nested=method == "direct")


@both
@pytest.mark.parametrize("name", ["solve_continuous_are", "solve_discrete_are"])
def test_riccati(c, name):
    f = getattr(sl, name)

    def balanced(x):
        return (x + x.conj().T) / 2

    a, b, q, r = matrix(1, 3, 3, c), matrix(2, 3, 2, c), 4 * positive(3, 3, c), positive(4, 2, c)
    e, s = np.eye(3) + 0.1 * matrix(5, 3, 3, c), 0.1 * matrix(6, 3, 2, c)
    moves(lambda a, b, q, r: f(a, b, balanced(q), balanced(r)), a, b, q, r)
    moves(lambda a, b, q, r, s: f(a, b, balanced(q), balanced(r), s=s), a, b, q, r, s, nested=False)
    moves(lambda *x: f(*x[:2], balanced(x[2]), balanced(x[3]), *x[4:], balanced=False), a, b, q, r, e, s, nested=not c)


@pytest.mark.parametrize("name", ["solve_continuous_are", "solve_discrete_are"])
def test_riccati_of_numbers_and_vectors(name):
    f = getattr(sl, name)
    a, b, q = matrix(1, 2, 2), matrix(2, 2, 1), positive(3, 2)
    moves(lambda a, b, r: f(a, b, q, r), a, b, np.array(1.3))
    moves(lambda a, b, r, e, s: f(a, b, 1.1, r, e, s), *(np.array(x) for x in (0.4, [0.7], [1.3], 1.2, [0.1])), nested=False)


def test_what_does_not_solve_riccatis_equation_is_refused():
    """With `e` and balancing, SciPy 1.17 gives something else."""
    a, b, q, r = matrix(1, 3, 3), matrix(2, 3, 2), 4 * positive(3, 3), positive(4, 2)
    e = np.eye(3) + 0.1 * matrix(5, 3, 3)
    x = sl.solve_discrete_are(a, b, q, r, e)
    if np.allclose(x, sl.solve_discrete_are(a, b, q, r, e, balanced=False)):
        pytest.skip("this SciPy solves it")
    with pytest.raises(MissingRuleError, match="does not solve"):
        plaingrad.grad(lambda a: np.sum(sl.solve_discrete_are(a, b, q, r, e)))(a)


@both
def test_least_squares_of_full_and_of_any_rank(c):
    for m, n in ((5, 3), (3, 5), (4, 4)):
        a, b = matrix(1, m, n, c), matrix(2, m, 2, c)
        moves(lambda a, b: sl.lstsq(a, b), a, b)
        moves(lambda a, b: sl.lstsq(a, b, lapack_driver="gelsy")[0], a, b[:, 0], nested=False)
        moves(sl.pinv, a)
        cut = sl.svdvals(a)[1] - 0.05
        moves(lambda a: sl.pinv(a, atol=cut, rtol=0.0), a, nested=False)
        moves(lambda a, b: sl.lstsq(a, b, cond=cut / sl.svdvals(matrix(1, m, n, c))[0])[0], a, b, nested=False)


@both
@triangles
def test_pseudoinverses_of_hermitian_matrices(c, lower):
    h = hermitian(1, 4, c)
    moves(lambda a: sl.pinvh(a, lower=lower), h)
    moves(lambda a: sl.pinvh(a, atol=1.0, lower=lower, return_rank=True)[0], h, nested=False)


def test_a_pseudoinverse_of_deficient_rank_along_matrices_of_that_rank():
    left, right = matrix(1, 5, 2), matrix(2, 2, 4)
    moves(lambda left, right: sl.pinv(left @ right), left, right)
    moves(lambda left, right: sl.lstsq(left @ right, np.arange(5.0))[0], left, right)


@pytest.mark.skipif(not NEW, reason="this SciPy takes no batches")
def test_batches_are_broadcast():
    a, b = np.stack([positive(1, 3), positive(2, 3)]), matrix(3, 3, 2)
    moves(sl.solve, a, b, nested=False)
    moves(sl.solve, a, b[:, 0], nested=False)
    moves(lambda a, b: sl.solve_triangular(a, b, lower=True), a, b)
    moves(lambda a, b: sl.cho_solve((a, True), b), a, b, nested=False)
    moves(lambda a, b: sl.lstsq(a, b)[0], a, b, nested=False)
    moves(lambda a, q: sl.solve_continuous_lyapunov(a, q), a, b @ b.T, nested=False)
    moves(sl.det, a, nested=False)
    moves(sl.inv, a, nested=False)
    ab = np.stack([matrix(4, 3, 5), matrix(5, 3, 5)])
    ab[:, 1] += 5
    moves(lambda ab, b: sl.solve_banded((1, 1), ab, b), ab, matrix(6, 5, 2), nested=False)
