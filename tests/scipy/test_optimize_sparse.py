"""Least squares and linear programs whose matrices are sparse, or operators."""

import numpy as np
import pytest
from tests.scipy.agreement import agrees

optimize = pytest.importorskip("scipy.optimize")
sparse = pytest.importorskip("scipy.sparse")
pytest.importorskip("scipy.sparse.linalg")
pytestmark = pytest.mark.filterwarnings("ignore")

SPARSE = (sparse.random(30, 8, density=0.5, random_state=0) + sparse.vstack([sparse.eye(8), sparse.csr_matrix((22, 8))])).tocsr()


@pytest.mark.parametrize("bounds", [(-np.inf, np.inf), (-0.2, 0.3)])
def test_linear_least_squares_with_a_sparse_matrix_or_an_operator(bounds):
    b, options = np.cos(np.arange(30.0)), {"bounds": bounds, "tol": 1e-14, "lsmr_tol": 1e-14}

    def of_entries(entries):
        return sparse.csr_matrix((entries, SPARSE.indices, SPARSE.indptr), shape=SPARSE.shape)

    agrees(lambda b: optimize.lsq_linear(SPARSE, b, **options).x, b, tolerance=1e-5, nested=False)
    agrees(lambda d: optimize.lsq_linear(of_entries(d), b, **options).x, SPARSE.data, tolerance=1e-5)
    operator = sparse.linalg.aslinearoperator(SPARSE)
    agrees(lambda b: optimize.lsq_linear(operator, b, **options).x, b, tolerance=1e-5, nested=False)


def test_least_squares_with_sparse_jacobians():
    t = np.linspace(0, 1, 12)
    pattern = sparse.csr_matrix(np.eye(12) + np.eye(12, k=-1))

    def residuals(x, a):
        return x**3 + x - a * t - np.concatenate([np.zeros(1), 0.1 * x[:-1]])

    def slopes(x, a):
        return sparse.csr_matrix(np.diag(3 * x**2 + 1) - 0.1 * np.eye(12, k=-1))

    tight = {"xtol": 1e-14, "ftol": 1e-14, "gtol": 1e-14}
    for options in ({"jac_sparsity": pattern}, {"jac": slopes}):
        agrees(
            lambda a, options=options: optimize.least_squares(
                residuals, np.ones(12), args=(a[0],), **options, **tight
            ).x,
            [1.3],
        )


def test_a_linear_program_with_sparse_constraints():
    a = sparse.csr_matrix([[1.0, 2.0, 0.0], [0.0, 1.0, 3.0]])

    def of(right):
        return optimize.linprog([-1.0, -1.5, -1.0], A_ub=a, b_ub=right, bounds=(0, 3)).x

    agrees(of, [4.0, 5.0])
