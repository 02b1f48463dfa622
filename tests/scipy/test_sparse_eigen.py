"""Eigenvalues, singular values and their vectors of sparse matrices, against differences and the dense decompositions."""

import numpy as np
import pytest
from scipy import linalg, sparse
from scipy.sparse import linalg as solvers

import plaingrad
from plaingrad import errors

from tests.scipy.agreement import agrees

N = 16
RNG = np.random.default_rng(1)
FIRST = np.ones(N)


def symmetric_base():
    rows, columns = RNG.integers(0, N, 30), RNG.integers(0, N, 30)
    m = sparse.coo_matrix((RNG.random(30), (rows, columns)), shape=(N, N)).tocsr()
    return (m + m.T + sparse.diags(0.4 * np.arange(N))).tocsr()


BASE = symmetric_base()
UPPER = sparse.triu(BASE).tocsr()
MASS = (sparse.diags(5.0 + RNG.random(N)) + 0.05 * BASE).tocsr()
GENERAL = BASE.copy()
GENERAL.data = BASE.data * (1 + 0.5 * RNG.standard_normal(BASE.nnz))
WIDE = sparse.csr_matrix(np.where(RNG.random((14, 9)) < 0.5, RNG.random((14, 9)), 0.0))


def symmetric(x):
    m = sparse.csr_matrix((x, UPPER.indices, UPPER.indptr), shape=UPPER.shape)
    return m + sparse.triu(m, 1).T


def general(x):
    return sparse.csr_matrix((x, GENERAL.indices, GENERAL.indptr), shape=GENERAL.shape)


def rectangular(x):
    return sparse.csr_matrix((x, WIDE.indices, WIDE.indptr), shape=WIDE.shape)


def both(found):
    """Values, and what does not depend on signs and phases of the vectors."""
    return np.concatenate([found[0], (np.abs(found[1]) ** 2).ravel()])


@pytest.mark.parametrize("options", [
    {"which": "LM"}, {"which": "SA"}, {"which": "BE"}, {"sigma": 3.3}, {"M": MASS}, {"M": MASS, "sigma": 0.1},
    {"M": MASS, "sigma": 0.1, "mode": "cayley"},
], ids=str)  # fmt: skip
def test_eigsh_is_right_in_values_and_vectors(options):
    agrees(lambda x: both(solvers.eigsh(symmetric(x), 4, v0=FIRST, **options)), UPPER.data, 1e-6)


def test_the_mass_matrix_of_eigsh_has_a_derivative():
    def f(x):
        mass = sparse.csr_matrix(
            (MASS.data * x[0] + x[1] * (MASS.data > 3), MASS.indices, MASS.indptr), shape=(N, N)
        )
        return both(solvers.eigsh(BASE, 3, M=mass, sigma=0.5, v0=FIRST))

    agrees(f, [1.0, 0.5], 1e-6)


def test_operators_of_the_program_are_differentiated_in_what_they_capture():
    def f(x):
        a = solvers.LinearOperator((N, N), matvec=lambda v: BASE @ v.ravel() + x * v.ravel(), dtype=float)
        return both(solvers.eigsh(a, 3, v0=FIRST))

    agrees(f, RNG.random(N), 1e-6)


def test_values_without_vectors_stand_in_the_order_that_scipy_gives_them():
    agrees(lambda x: solvers.eigsh(symmetric(x), 4, v0=FIRST, return_eigenvectors=False), UPPER.data, 1e-6)
    agrees(
        lambda x: solvers.svds(rectangular(x), 3, v0=np.ones(9), return_singular_vectors=False),
        WIDE.data,
        1e-6,
    )


@pytest.mark.parametrize(
    "options", [{"which": "LM"}, {"which": "SR"}, {"sigma": 2.2 + 0.4j}, {"M": MASS}], ids=str
)
def test_eigs_is_right_in_values_and_vectors(options):
    def f(x):
        w, v = solvers.eigs(general(x), 3, v0=FIRST, **options)
        order = np.lexsort((w.imag, np.round(w.real, 6)))
        return np.concatenate([w[order].real, w[order].imag, (np.abs(v) ** 2).sum(1)])

    x = GENERAL.data
    total = plaingrad.grad(lambda x: (f(x) * np.cos(np.arange(2 * 3 + N))).sum())
    v = np.sin(np.arange(x.size))
    h = 1e-5
    expected = ((f(x + h * v) - f(x - h * v)) / (2 * h) * np.cos(np.arange(2 * 3 + N))).sum()
    assert abs((total(x) * v).sum() - expected) < 1e-6 * (1 + abs(expected))


def test_complex_hermitian_matrices_are_right_where_phases_do_not_matter():
    def matrix(x):
        a = symmetric(x)
        upper = sparse.triu(a, 1)
        return a + 0.3j * (upper - upper.T)

    def f(x):
        return (both(solvers.eigsh(matrix(x), 3, v0=FIRST + 0j)) * np.cos(np.arange(3 + 3 * N))).sum()

    x, v, h = UPPER.data, np.sin(np.arange(UPPER.nnz)), 1e-5
    expected = (f(x + h * v) - f(x - h * v)) / (2 * h)
    assert abs((plaingrad.grad(f)(x) * v).sum() - expected) < 1e-6 * (1 + abs(expected))
    values = lambda x: solvers.eigsh(matrix(x), 3, v0=FIRST + 0j)[0]  # noqa: E731
    agrees(values, x, 1e-6)
    with pytest.raises(errors.MissingRuleError, match="phase"):
        plaingrad.grad(lambda x: solvers.eigsh(matrix(x), 3, v0=FIRST + 0j)[1].real[0, 0])(x)
    assert np.isnan(plaingrad.jvp(lambda x: solvers.eigsh(matrix(x), 3)[1].real[0, 0], (x,), (v,))[1])


def test_a_gradient_has_the_places_of_the_matrix():
    a = sparse.csr_array(BASE)
    gradient = plaingrad.grad(lambda a: solvers.eigsh(a, 2, v0=FIRST)[0].sum())(a)
    assert gradient.data.shape == a.data.shape
    w, v = linalg.eigh(BASE.toarray())
    chosen = v[:, np.argsort(-np.abs(w))[:2]]
    dense = chosen @ chosen.T
    rows, columns = a.nonzero()
    np.testing.assert_allclose(gradient.data, dense[rows, columns], atol=1e-9)


def test_vectors_of_equal_eigenvalues_are_nan_and_their_sum_is_right():
    x = np.arange(1.0, 9.0)
    x[-2] = x[-1]
    v0 = np.cos(np.arange(8.0))

    def pair(x):
        return solvers.eigsh(sparse.diags(x, format="csr"), 2, v0=v0)

    np.testing.assert_allclose(plaingrad.grad(lambda x: pair(x)[0].sum())(x), [0] * 6 + [1, 1], atol=1e-12)
    assert np.isnan(plaingrad.grad(lambda x: (pair(x)[1][6, 0]) ** 2)(x)).any()


@pytest.mark.parametrize("largest", [True, False])
def test_lobpcg_is_right_in_both_matrices(largest):
    start = RNG.random((N, 2))

    def f(x):
        mass = MASS + sparse.diags(0.1 * x[:N])
        with np.errstate(all="ignore"):
            return both(solvers.lobpcg(symmetric(x), start, B=mass, largest=largest, tol=1e-11, maxiter=200))

    agrees(f, UPPER.data, 1e-6, largest)


def test_lobpcg_refuses_what_has_not_converged():
    start = RNG.random((N, 2))
    with pytest.warns(UserWarning), pytest.raises(errors.MissingRuleError, match="converged"):
        plaingrad.grad(lambda x: solvers.lobpcg(symmetric(x), start, maxiter=1, tol=1e-12)[0].sum())(
            UPPER.data
        )


@pytest.mark.parametrize("solver", ["arpack", "lobpcg"])
def test_svds_is_right_in_values_and_vectors(solver):
    def f(x):
        u, s, vh = solvers.svds(rectangular(x), 2 if solver == "arpack" else 1, v0=np.ones(9), solver=solver)
        return np.concatenate([s, ((u * s) @ vh).ravel(), (u * u).ravel(), (vh * vh).ravel()])

    agrees(f, WIDE.data, 1e-6)


def test_svds_gives_one_side_where_one_is_asked_for():
    agrees(
        lambda x: solvers.svds(rectangular(x), 2, v0=np.ones(9), return_singular_vectors="u")[0] ** 2,
        WIDE.data,
        1e-6,
    )
    transposed = lambda x: solvers.svds(rectangular(x).T, 2, return_singular_vectors="vh")[2] ** 2  # noqa: E731
    agrees(transposed, WIDE.data, 1e-6, False)


def test_constant_matrices_give_what_scipy_gives():
    a = BASE.astype(np.float32)
    w = solvers.eigsh(a, 2, v0=np.ones(N, np.float32), return_eigenvectors=False)
    gradient = plaingrad.grad(
        lambda x: (x * solvers.eigsh(a, 2, v0=np.ones(N, np.float32), return_eigenvectors=False)).sum()
    )
    np.testing.assert_array_equal(gradient(np.ones(2)), w)


def test_onenormest_is_the_norm_of_a_column():
    def f(x):
        return solvers.onenormest(symmetric(x))

    x = UPPER.data
    column = np.argmax(np.abs(symmetric(x).toarray()).sum(0))
    found = plaingrad.grad(f)(x)
    rows = np.repeat(np.arange(N), np.diff(UPPER.indptr))
    expected = ((rows == column) | (UPPER.indices == column)) * np.sign(x)
    np.testing.assert_allclose(found, expected)
