"""scipy.linalg at the edges: sizes 0 and 1, strides, float32, flags that overwrite, equal eigenvalues, wrappers, names."""

import types

import numpy as np
import pytest
from tests.scipy.linalg_cases import matrix, moves, positive

import plaingrad
from plaingrad import rulebook
from plaingrad.errors import MissingRuleError

sl = pytest.importorskip("scipy.linalg")
from scipy.linalg import blas, lapack  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # of SciPy about what it is given


def half(a):
    return (a + a.T) / 2


FUNCTIONS = {
    "solve": lambda a: sl.solve(a, a[:, :1]), "inv": sl.inv, "det": sl.det, "pinv": sl.pinv, "pinvh": sl.pinvh,
    "lstsq": lambda a: sl.lstsq(a, a[:, 0])[0], "cholesky": sl.cholesky, "cho_solve": lambda a: sl.cho_solve((a, True), a[:, :1]),
    "lu": lambda a: sl.lu(a)[2], "lu_solve": lambda a: sl.lu_solve(sl.lu_factor(a), a[:, :1]), "ldl": lambda a: sl.ldl(a)[1],
    "solve_triangular": lambda a: sl.solve_triangular(a, a[:, :1]), "qr": lambda a: sl.qr(a)[1], "rq": lambda a: sl.rq(a)[0],
    "svd": lambda a: sl.svd(a)[1], "svdvals": sl.svdvals, "eig": lambda a: np.real(sl.eig(a)[0]), "eigvals": lambda a: np.real(sl.eigvals(a)),
    "eigh": lambda a: sl.eigh(a)[1] ** 2, "eigvalsh": sl.eigvalsh, "schur": lambda a: np.diag(sl.schur(a)[0]), "hessenberg": sl.hessenberg,
    "polar": lambda a: sl.polar(a)[1], "expm": lambda a: sl.expm(a / 10), "logm": sl.logm, "sqrtm": sl.sqrtm,
    "fractional_matrix_power": lambda a: sl.fractional_matrix_power(a, 0.5), "cosm": lambda a: sl.cosm(a / 10),
    "solve_sylvester": lambda a: sl.solve_sylvester(a, a, a), "solve_continuous_lyapunov": lambda a: sl.solve_continuous_lyapunov(a, a),
    "norm": sl.norm, "toeplitz": lambda a: sl.toeplitz(a[:, 0]), "solve_toeplitz": lambda a: sl.solve_toeplitz(a[:, 0], a[0]),
    "matmul_toeplitz": lambda a: sl.matmul_toeplitz(a[:, 0], a[0]), "matrix_balance": lambda a: sl.matrix_balance(a)[0],
    "solve_banded": lambda a: sl.solve_banded((1, 0), a[:2], a[0]), "eig_banded": lambda a: sl.eig_banded(a[:2], lower=True)[0],
    "eigh_tridiagonal": lambda a: sl.eigh_tridiagonal(a[:, 0], a[0][1:])[0], "orth": lambda a: sl.orth(a) ** 2,
}  # fmt: skip
every = pytest.mark.parametrize("name", FUNCTIONS)


def total(name):
    return lambda a: np.sum(np.sin(FUNCTIONS[name](a)))


@every
def test_strides_and_precision_do_not_matter(name):
    a = positive(1, 3)
    expected = plaingrad.grad(total(name))(a)
    scale = max(np.abs(expected).max(), 1.0)  # the gradient of one of them is 0, but for rounding
    for form in (np.asfortranarray(a), a[::-1, ::-1].copy()[::-1, ::-1], np.repeat(np.repeat(a, 2, 0), 2, 1)[::2, ::2]):
        np.testing.assert_allclose(plaingrad.grad(total(name))(form), expected, rtol=1e-8, atol=1e-9 * scale)
    single = plaingrad.grad(total(name))(a.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, rtol=2e-2, atol=2e-2 * scale + 1e-6)


@every
@pytest.mark.parametrize("n", [0, 1])
def test_no_rows_and_one(name, n):
    a = positive(2, n)
    try:
        value = total(name)(a)
    except Exception as error:  # what SciPy raises comes through
        with pytest.raises(type(error)):
            plaingrad.grad(total(name))(a)
        with pytest.raises(type(error)):
            plaingrad.jvp(total(name), (a,), (a,))
        return
    found, slope = plaingrad.value_and_grad(total(name))(a)
    assert found == value and slope.shape == a.shape
    tangent = plaingrad.jvp(total(name), (a,), (np.ones_like(a),))[1]
    if n == 0:
        assert tangent == 0
        return
    h = 1e-6
    expected = (total(name)(a + h) - total(name)(a - h)) / (2 * h)
    assert slope[0, 0] == pytest.approx(expected, rel=1e-6, abs=1e-8) and tangent == pytest.approx(expected, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("f", [
    lambda a: sl.solve(a, a[:, 0].copy(), overwrite_a=True, overwrite_b=True), lambda a: sl.cholesky(a, overwrite_a=True), lambda a: sl.inv(a, overwrite_a=True),
    lambda a: sl.lu_factor(a, overwrite_a=True)[0], lambda a: sl.qr(a, overwrite_a=True, mode="economic")[1], lambda a: sl.svdvals(a, overwrite_a=True),
    lambda a: sl.eigvalsh(a, overwrite_a=True), lambda a: sl.hessenberg(a, overwrite_a=True),
])  # fmt: skip
def test_flags_that_let_scipy_overwrite_change_no_derivative(f):
    a = positive(1, 3)
    moves(lambda a: f(a.copy()), a, nested=False)
    a = np.asfortranarray(a)
    before = a.copy()
    plaingrad.grad(lambda a: np.sum(f(a)))(a)
    np.testing.assert_array_equal(a, before)


def test_lists_and_integers():
    a = [[4.0, 1.0], [1.0, 3.0]]
    assert plaingrad.grad(lambda a: sl.det(a))(a) == [[3.0, -1.0], [-1.0, 4.0]]
    whole = np.array([[4, 1], [1, 3]])
    slope = plaingrad.grad(lambda b: np.sum(sl.solve(whole, b)))(np.ones(2))
    np.testing.assert_allclose(slope, np.linalg.solve(whole, np.ones(2)))
    assert plaingrad.grad(lambda t: sl.expm(t * whole)[0, 1])(0.0) == 1.0


def test_equal_eigenvalues():
    a = np.diag([1.0, 1.0, 1.0, 3.0])
    np.testing.assert_allclose(plaingrad.grad(lambda a: np.sum(sl.eigvalsh(a) ** 3))(a), 3 * a @ a)  # symmetric in them
    np.testing.assert_allclose(plaingrad.grad(lambda a: np.sum(sl.svdvals(a) ** 2))(a), 2 * a)
    last = plaingrad.grad(lambda a: sl.eigh(a)[1][0, 3] ** 2 + sl.eigh(a)[1][3, 3])(a)  # the others are not used
    np.testing.assert_array_equal(last, np.zeros((4, 4)))
    moved = plaingrad.grad(lambda a: sl.eigh(a)[1][0, 3] * np.sign(sl.eigh(a)[1][3, 3]))(a)
    assert moved[3, 0] == pytest.approx(0.5) and np.count_nonzero(moved) == 1
    # V exp(w) V^H is a smooth function of A, but not one that the slopes in w and V determine.
    assert np.isnan(plaingrad.grad(lambda a: np.sum((lambda w, v: (v * np.exp(w)) @ v.T)(*sl.eigh(a))[0, 1]))(a)).any()
    assert np.isnan(plaingrad.jvp(lambda a: sl.eigh(a)[1], (a,), (np.ones((4, 4)),))[1][:, :3]).any()
    assert np.isfinite(plaingrad.jvp(lambda a: sl.eigh(a)[1], (a,), (np.ones((4, 4)),))[1][:, 3]).all()
    assert np.isnan(plaingrad.grad(lambda a: np.sum(sl.svd(a)[0]))(a)).any()
    np.testing.assert_allclose(plaingrad.grad(lambda a: np.trace(sl.sqrtm(a)))(a), np.diag(0.5 / np.sqrt(np.diag(a))), atol=1e-12)
    np.testing.assert_allclose(plaingrad.grad(lambda a: sl.logm(a)[0, 1])(a), np.outer(np.eye(4)[0], np.eye(4)[1]), atol=1e-9)


PAIRS = {
    "gemm": lambda a, b: blas.dgemm(0.7, a, b, trans_a=1), "gemm with c": lambda a, b: blas.dgemm(0.7, a, b, 0.3, c=b),
    "gemv": lambda a, b: blas.dgemv(0.7, a, b[:, 0], beta=2.0, y=b[:, 1], trans=1), "dot": lambda a, b: blas.ddot(a[0], b[:, 0]),
    "nrm2": lambda a, b: blas.dnrm2(a[0]), "trsm": lambda a, b: blas.dtrsm(0.7, a, b, lower=1, trans_a=1),
    "trsm from the right": lambda a, b: blas.dtrsm(0.7, a, b.T, side=1, diag=1), "trmm": lambda a, b: blas.dtrmm(0.7, a, b, lower=1),
    "potrf": lambda a, b: lapack.dpotrf(a, lower=1)[0], "potrs": lambda a, b: lapack.dpotrs(a, b)[0],
    "syrk": lambda a, b: blas.dsyrk(a[0, 1], b, beta=b[0, 1], c=a, lower=1),
    "syrk of the transpose": lambda a, b: blas.dsyrk(0.7, b, trans=1, c=a[:2, :2]) * blas.dsyrk(0.3, b, trans=1),
    "trtri": lambda a, b: lapack.dtrtri(a)[0], "trtri of ones": lambda a, b: lapack.dtrtri(a, lower=1, unitdiag=1)[0],
    "potri": lambda a, b: lapack.dpotri(a, lower=1)[0], "potri of the upper factor": lambda a, b: lapack.dpotri(a)[0],
    "trtrs": lambda a, b: lapack.dtrtrs(a, b, lower=1, trans=1)[0], "getrf": lambda a, b: lapack.dgetrf(a)[0],
    "getrs": lambda a, b: lapack.dgetrs(*lapack.dgetrf(a)[:2], b, trans=1)[0], "gesv": lambda a, b: lapack.dgesv(a, b)[::2],
    "by name": lambda a, b: sl.get_lapack_funcs(("gesv",), (a, b))[0](a, b)[2], "product by name": lambda a, b: sl.get_blas_funcs("gemm", (a, b))(1.0, a, b),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_wrappers_of_blas_and_lapack(name):
    nested = name in ("gemm", "trsm", "potrf", "getrs", "syrk", "trtri", "potri")
    moves(PAIRS[name], positive(1, 3), matrix(2, 3, 2), nested=nested)


def test_complex_wrappers():
    a, b = positive(1, 3, True), matrix(2, 3, 2, True)
    moves(lambda a, b: blas.zgemm(0.7 + 0.2j, a, b, trans_a=2), a, b)
    moves(lambda a, b: [blas.zdotc(a[0], b[:, 0]), blas.zdotu(a[0], b[:, 0]), blas.dznrm2(b[:, 0])], a, b, nested=False)
    moves(lambda a, b: blas.ztrsm(0.7, a, b, trans_a=2), a, b, nested=False)
    moves(lambda a, b: lapack.zgesv(a, b)[2], a, b, nested=False)
    moves(lambda a, b: blas.zsyrk(0.7 + 0.2j, b, trans=1, lower=1), a, b, nested=False)
    moves(lambda a, b: lapack.ztrtri(a)[0], a, b, nested=False)


def test_wrappers_that_would_write_into_their_arguments_are_refused():
    a = np.asfortranarray(positive(1, 3))
    with pytest.raises(MissingRuleError, match="overwrite"):
        plaingrad.grad(lambda a: np.sum(blas.dgemm(1.0, a, a, 1.0, c=a.copy(order="F"), overwrite_c=1)))(a)
    with pytest.raises(MissingRuleError, match="daxpy|fortran"):
        plaingrad.grad(lambda x: np.sum(blas.daxpy(x, np.ones(3))))(np.ones(3))
    with pytest.raises(MissingRuleError, match="takes parts of vectors"):
        plaingrad.grad(lambda x: blas.ddot(x, x, n=2, incx=2, incy=2))(np.ones(4))


# Python of SciPy's that is differentiated as it is.
DERIVED = {
    "block_diag", "cdf2rdf", "circulant", "clarkson_woodruff_transform", "companion", "convolution_matrix", "coshm", "cosm", "diagsvd",
    "expm_cond", "fiedler", "fiedler_companion", "get_blas_funcs", "get_lapack_funcs", "hankel", "khatri_rao", "kron", "leslie", "rsf2csf",
    "sinhm", "sinm", "solve_circulant", "tanhm", "tanm", "toeplitz", "qr_delete", "qr_insert", "qr_update",
}  # fmt: skip
REFUSED = {"cossin", "ordqz", "qz"}
OTHERS = {"LinAlgError", "LinAlgWarning", "test", "tri", "tril", "triu"}


def test_every_public_name_is_accounted_for():
    assert [*rulebook.rules()]
    names = {name for name in sl.__all__ if not isinstance(getattr(sl, name), types.ModuleType)}
    with_rule = {name for name in names if rulebook.find(getattr(sl, name)) is not None}
    assert names - with_rule - DERIVED - REFUSED - OTHERS == set()


@pytest.mark.parametrize("name, f", [
    ("cossin", lambda q: sl.cossin(q, 2, 2)[0]), ("qz", lambda a: sl.qz(a, a)[0]), ("ordqz", lambda a: sl.ordqz(a, a)[0]),
])  # fmt: skip
def test_what_has_no_rule_is_refused_by_name(name, f):
    with pytest.raises(MissingRuleError, match=r"test_linalg_edges\.py"):
        plaingrad.grad(lambda a: np.sum(f(a)))(np.linalg.qr(matrix(1, 4))[0])


def test_exceptions_are_those_of_scipy():
    for f, a in ((sl.cholesky, -np.eye(2)), (sl.inv, np.zeros((2, 2))), (sl.det, np.ones((2, 3))), (sl.eigvalsh, np.full((2, 2), np.nan)), (sl.lu_factor, np.full((2, 2), np.inf))):
        with pytest.raises((sl.LinAlgError, ValueError)) as plain:
            f(a)
        for derive in (lambda: plaingrad.grad(lambda a: np.sum(f(a)))(a), lambda: plaingrad.jvp(f, (a,), (a,))):
            with pytest.raises(plain.type) as found:
                derive()
            assert str(found.value) == str(plain.value)
