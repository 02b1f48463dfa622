"""Sparse direct solvers: the factors of A serve its derivative, too."""

import numpy as np
import pytest
from tests.scipy.agreement import agrees
from tests.scipy.test_sparse import MANY, VECTOR, B, N, X, matrix

import plaingrad

sparse = pytest.importorskip("scipy.sparse")

from scipy.sparse import linalg  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


def regular(x, form="csc"):
    return (matrix(x) + 5 * sparse.eye(N)).asformat(form)


CONSTANT = (B + 5 * sparse.eye(N)).tocsc()
LU = linalg.splu(CONSTANT)
COMPLEX_LU = linalg.splu((CONSTANT * (1 + 1j)).tocsc())

SOLUTIONS = {
    "columns": lambda x: linalg.spsolve(regular(x), VECTOR * x[:N]),
    "rows": lambda x: linalg.spsolve(regular(x, "csr"), VECTOR * x[:N]),
    "many": lambda x: linalg.spsolve(regular(x), MANY),
    "sparse right side": lambda x: linalg.spsolve(regular(x), matrix(x, "csc")).toarray(),
    "constant matrix": lambda x: linalg.spsolve(CONSTANT, x[:N]),
    "factors": lambda x: linalg.splu(regular(x)).solve(VECTOR * x[:N]),
    "factors transposed": lambda x: linalg.splu(regular(x)).solve(MANY, "T"),
    "factors of a constant": lambda x: LU.solve(x[:N]) + LU.solve(x[1 : N + 1], trans="T"),
    "complex": lambda x: np.abs(linalg.splu(regular(x) * (1 + 1j)).solve(VECTOR * (1 + 0j), "H")),
    "complex transposed": lambda x: np.abs(linalg.splu((matrix(x) * (1 + 1j) + CONSTANT).tocsc()).solve(VECTOR * 1j, "T")),
    "complex factors": lambda x: np.abs(COMPLEX_LU.solve(x[:N] + 1j) + COMPLEX_LU.solve(x[:N] * 1j, "T")),
    "factorized": lambda x: linalg.factorized(regular(x))(x[:N]),
    "inverse": lambda x: linalg.inv(regular(x)).toarray(),
    "lower": lambda x: linalg.spsolve_triangular(sparse.tril(regular(x), format="csr"), VECTOR * x[:N]),
    "upper": lambda x: linalg.spsolve_triangular(sparse.triu(regular(x), format="csc"), MANY, lower=False),
    "exponential times a vector": lambda x: linalg.expm_multiply(matrix(x), VECTOR),
    "norm": lambda x: linalg.norm(matrix(x)) + linalg.norm(sparse.csr_matrix(matrix(x)), 1),
    "operator": lambda x: (2 * linalg.aslinearoperator(matrix(x)) + linalg.aslinearoperator(B)).matvec(VECTOR),
    "operator of the program": lambda x: linalg.LinearOperator((N, N), matvec=lambda v: matrix(x) @ v, dtype=float) @ VECTOR,
}


@pytest.mark.parametrize("how", SOLUTIONS)
def test_solutions_derive(how):
    agrees(SOLUTIONS[how], X)


def definite(x):
    a = matrix(x)
    return a @ a.T + 5 * sparse.eye(N)


def operator(x):
    return linalg.LinearOperator((N, N), matvec=lambda v: regular(x) @ v, dtype=float)


KRYLOV = {
    "cg": lambda x: linalg.cg(definite(x), VECTOR * x[:N], rtol=1e-13)[0],
    "cg with a preconditioner": lambda x: linalg.cg(definite(x), VECTOR, rtol=1e-13, M=sparse.eye(N) * x[0])[0],
    "cg of an array": lambda x: linalg.cg(definite(x).toarray(), VECTOR * x[0], rtol=1e-13)[0],
    "minres": lambda x: linalg.minres(definite(x), VECTOR * x[:N], rtol=1e-13, shift=0.3)[0],
    "gmres": lambda x: linalg.gmres(regular(x), VECTOR * x[:N], rtol=1e-13)[0],
    "gmres with spilu": lambda x: linalg.gmres(
        regular(x), VECTOR, rtol=1e-13, M=linalg.LinearOperator((N, N), linalg.spilu(regular(x)).solve)
    )[0],
    "gmres of an operator": lambda x: linalg.gmres(operator(x), VECTOR, rtol=1e-13)[0],
    "complex gmres": lambda x: np.abs(linalg.gmres(regular(x) * (1 + 0.3j), VECTOR * x[:N] + 1j, rtol=1e-13)[0]),
    "bicgstab": lambda x: linalg.bicgstab(regular(x), VECTOR * x[:N], rtol=1e-12)[0],
    "lgmres": lambda x: linalg.lgmres(regular(x), VECTOR * x[:N], rtol=1e-13, atol=0.0)[0],
}


@pytest.mark.skipif(not hasattr(sparse, "diags_array"), reason="rtol came with SciPy 1.12")
@pytest.mark.parametrize("how", KRYLOV)
def test_krylov_solvers_are_differentiated_as_what_they_solve(how):
    agrees(KRYLOV[how], X, tolerance=1e-6)


def test_a_matrix_that_is_written_after_its_solution_does_not_change_the_gradient():
    def f(x):
        a = definite(x)
        y = linalg.cg(a, VECTOR, atol=1e-13)[0]
        a.data[...] = 0.0
        return y

    agrees(f, X, tolerance=1e-4, nested=False)


def test_a_solver_that_has_not_converged_refuses():
    with pytest.raises(plaingrad.MissingRuleError, match="not converged"):
        plaingrad.grad(lambda x: linalg.cg(definite(x), VECTOR, maxiter=1)[0].sum())(X)


def test_a_gradient_factorizes_once(monkeypatch):
    from plaingrad.rules.scipy.sparse import superlu

    calls = []
    plain = superlu._superlu.gstrf

    class Counting:
        gssv = superlu._superlu.gssv

        @staticmethod
        def gstrf(*args, **options):
            calls.append(1)
            return plain(*args, **options)

    monkeypatch.setattr(superlu, "_superlu", Counting)
    plaingrad.grad(lambda x: linalg.spsolve(regular(x), VECTOR).sum())(X)
    assert len(calls) == 1


def test_a_singular_matrix_gives_what_scipy_gives():
    singular = sparse.csc_array((np.array([1.0, 0.0]), ([0, 1], [0, 1])))
    plain = linalg.spsolve(singular, np.ones(2))
    value, pullback = plaingrad.vjp(lambda x: linalg.spsolve(singular * x, np.ones(2)), 1.0)
    assert np.array_equal(value, plain, equal_nan=True)


def test_factors_themselves_and_incomplete_ones_refuse():
    with pytest.raises(plaingrad.MissingRuleError, match="places of fill"):
        plaingrad.grad(lambda x: linalg.splu(regular(x)).L.sum())(X)
    with pytest.raises(plaingrad.MissingRuleError, match="spilu"):
        plaingrad.grad(lambda x: linalg.spilu(regular(x)).solve(VECTOR).sum())(X)


@pytest.mark.parametrize("name", ["lsqr", "lsmr"])
@pytest.mark.parametrize("form", [sparse.csr_array, np.asarray])
@pytest.mark.parametrize("shape, damp", [((7, 4), 0.0), ((7, 4), 0.3), ((4, 7), 0.0), ((4, 7), 0.3), ((5, 5), 0.0)])
def test_least_squares_by_iteration(name, form, shape, damp):
    """As the normal equations, or the equations of least norm, say; NumPy differentiates these."""
    rng = np.random.default_rng(3)
    a, b, v = rng.standard_normal(shape), rng.standard_normal(shape[0]), rng.standard_normal(shape)
    tight = {"atol": 1e-14, "btol": 1e-14, "conlim": 1e12}

    def iterated(a, b, damp):
        return (getattr(linalg, name)(form(a), b, damp=damp, **tight)[0] ** 2).sum()

    def direct(a, b, damp):
        if shape[0] < shape[1] and not damp:
            return ((a.T @ np.linalg.solve(a @ a.T, b)) ** 2).sum()
        return (np.linalg.solve(a.T @ a + damp * damp * np.eye(shape[1]), a.T @ b) ** 2).sum()

    at = (a, b, damp) if damp else (a, b)
    names = tuple(range(len(at)))
    f, g = (lambda *at: iterated(*at, *(() if damp else (0.0,)))), (lambda *at: direct(*at, *(() if damp else (0.0,))))
    for found, expected in zip(plaingrad.grad(f, names)(*at), plaingrad.grad(g, names)(*at), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)
    one, other = (lambda a: iterated(a, b, damp)), (lambda a: direct(a, b, damp))
    np.testing.assert_allclose(plaingrad.jvp(one, (a,), (v,))[1], plaingrad.jvp(other, (a,), (v,))[1], rtol=1e-7)
    twice = plaingrad.jvp(plaingrad.grad(other), (a,), (v,))[1]
    np.testing.assert_allclose(plaingrad.jvp(plaingrad.grad(one), (a,), (v,))[1], twice, rtol=1e-5, atol=1e-7)


def test_least_squares_that_are_not_determined_are_refused():
    a = np.outer(np.arange(1.0, 5.0), [1.0, 2.0, 3.0]) + 1e-9 * np.eye(4, 3)
    with pytest.raises(plaingrad.MissingRuleError, match="lower rank|not converged"):
        plaingrad.grad(lambda b: linalg.lsqr(a, b)[0].sum())(np.arange(4.0))
    with pytest.raises(plaingrad.MissingRuleError, match="result of `scipy.sparse.linalg.lsmr`"):
        plaingrad.grad(lambda b: linalg.lsmr(np.eye(4), b)[7])(np.arange(4.0))


@pytest.mark.parametrize("name", ["gmres", "bicgstab", "gcrotmk", "cg"])
def test_a_tolerance_of_the_program_holds_for_cotangents_and_tangents_of_any_size(name):
    """`atol` is for the right-hand side that the program has: below it, no derivative is taken to be zero."""
    diagonals = [np.full(19, -1.0), np.full(20, 3.0), np.full(19, -1.0)]

    def total(p, scale):
        a = sparse.diags(diagonals, [-1, 0, 1], format="csr") + p * sparse.eye(20, format="csr")
        return scale * getattr(linalg, name)(a, np.ones(20), atol=1e-7)[0].sum()

    expected = plaingrad.grad(total)(0.7, 1.0)
    assert plaingrad.grad(total)(0.7, 1e-12) == pytest.approx(1e-12 * expected, rel=1e-5)
    assert plaingrad.jvp(lambda p: total(p, 1.0), (0.7,), (1e-12,))[1] == pytest.approx(1e-12 * expected, rel=1e-5)
