"""Sparse arrays and matrices: what is computed with them has the derivatives that differences say."""

import numpy as np
import pytest
from tests.scipy.agreement import agrees

import plaingrad

sparse = pytest.importorskip("scipy.sparse")
pytestmark = pytest.mark.filterwarnings("ignore")

N = 6
ROWS = np.array([0, 0, 1, 2, 2, 2, 3, 4, 4, 5, 5])
COLUMNS = np.array([1, 4, 1, 0, 3, 5, 2, 0, 4, 2, 5])
X = np.array([0.7, -1.2, 0.4, 1.9, -0.3, 0.8, 1.1, -0.6, 0.5, 1.4, -0.9])
B = sparse.csr_array((np.arange(1.0, 8.0), ([0, 1, 1, 3, 4, 5, 5], [4, 1, 2, 5, 4, 0, 5])), shape=(N, N))
VECTOR = np.linspace(-1, 2, N)
MANY = np.outer(VECTOR, [1.0, 0.3, -2.0]) + [0.1, 0.5, 0.2]


def matrix(x, form="csr", kind="array"):
    made = getattr(sparse, f"coo_{kind}")((x, (ROWS, COLUMNS)), shape=(N, N))
    return made.tobsr((2, 3)) if form == "bsr" else made.asformat(form)


OPERATIONS = {
    "times a vector": lambda a, x: a @ (VECTOR * x[:N]),
    "times columns": lambda a, x: a @ (MANY * x[0]),
    "after a vector": lambda a, x: (VECTOR * x[:N]) @ a,
    "transposed": lambda a, x: a.T @ VECTOR,
    "sum": lambda a, x: (a + 2.0 * a.T - B).toarray(),
    "products of entries": lambda a, x: (a.multiply(B) + a.multiply(a)).toarray(),
    "scaled": lambda a, x: (x[0] * a / x[1]).toarray(),
    "power": lambda a, x: a.power(3).toarray(),
    "matrix product": lambda a, x: (a @ B @ a).toarray(),
    "sums": lambda a, x: np.append(np.ravel(a.sum(axis=0)) * np.ravel(a.mean(axis=1)), a.sum()),
    "diagonals": lambda a, x: np.append(a.diagonal(), a.diagonal(-1) * a.diagonal(1)) + a.trace(),
    "columns first": lambda a, x: a.toarray(order="F"),
    "complex": lambda a, x: np.abs((a * (1 + 2j)) @ (VECTOR + 1j)),
    "maximum": lambda a, x: a.maximum(B).toarray(),
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"])
def test_every_format_derives(form, operation):
    f = OPERATIONS[operation]
    agrees(lambda x: f(matrix(x, form), x), X, nested=form in ("csr", "bsr", "dia"))


@pytest.mark.parametrize("operation", ["times a vector", "matrix product", "sums"])
@pytest.mark.parametrize("form", ["csr", "coo", "lil"])
def test_matrices_derive_as_arrays_do(form, operation):
    f = OPERATIONS[operation]
    agrees(lambda x: f(matrix(x, form, "matrix"), x), X, nested=False)


SLICES = {
    "one number": lambda a: a[2, 3] * a[0, 4],
    "a row": lambda a: a[[2]].toarray(),
    "a column": lambda a: a[:, [1]].toarray(),
    "a part": lambda a: a[1:4, ::2].toarray(),
    "backwards": lambda a: a[::-1].toarray(),
    "rows and columns again": lambda a: a[[3, 0, 3]][:, [2, 1, 0, 2]].toarray(),
    "numbers": lambda a: a.tocsr()[[3, 0, 2], [2, 1, 5]],
}


@pytest.mark.parametrize("part", SLICES)
@pytest.mark.parametrize("form", ["csr", "csc", "lil"])
def test_slices_derive(form, part):
    agrees(lambda x: SLICES[part](matrix(x, form)), X, nested=form == "csr")


def assigned(x):
    a = matrix(x, "lil")
    a[1, 3] = x[0] * x[1]
    a[0, 0] = x[2]
    b = sparse.dok_array((N, N))
    b[2, 2] = x[3]
    b[2, 2] = b[2, 2] * x[4]
    return a.tocsr() + b.tocsr()


def rewritten(x):
    a = matrix(x)
    before = a @ VECTOR
    a *= 2.0
    a.data[0] = x[1] ** 2
    a.setdiag(x[0] * VECTOR)
    a.sort_indices()
    a.sum_duplicates()
    return before + a @ VECTOR


BUILT = {
    "duplicates": lambda x: sparse.csr_array((np.append(x, x * x), (np.tile(ROWS, 2), np.tile(COLUMNS, 2)))),
    "dense": lambda x: sparse.csr_array(np.outer(x, x)),
    "diagonals": lambda x: sparse.diags([x, x[1:] * 2], [0, 1]),
    "diagonals in rows": lambda x: sparse.spdiags(np.vstack([x, x * x]), [0, -1], 11, 11).tocsc(),
    "identity": lambda x: sparse.eye(N) * x[0] + matrix(x),
    "kron": lambda x: sparse.kron(matrix(x)[:2, :2] + sparse.eye(2), B[:2]),
    "kron of blocks": lambda x: sparse.kron(sparse.eye(2), matrix(x), format="csr"),
    "beside": lambda x: sparse.hstack([matrix(x), B, matrix(x * x)], format="csr"),
    "below": lambda x: sparse.vstack([matrix(x, "csc"), B]),
    "blocks": lambda x: sparse.bmat([[matrix(x), None], [B, matrix(x * x)]]),
    "on the diagonal": lambda x: sparse.block_diag([matrix(x), B]),
    "triangles": lambda x: sparse.tril(matrix(x)) @ sparse.triu(matrix(x), 1),
    "assigned": assigned,
    "blocks times blocks": lambda x: matrix(x).tobsr((2, 2)) @ matrix(x * x).tobsr((2, 3)),
    "diagonals times diagonals": lambda x: sparse.diags([x, x[1:]], [0, 1]) @ sparse.diags([x * x, x[2:]], [0, -2]),
}


@pytest.mark.parametrize("how", BUILT)
def test_constructions_derive(how):
    agrees(lambda x: BUILT[how](x).toarray(), X)


def test_what_is_written_in_place_leaves_earlier_products_as_they_were():
    agrees(rewritten, X)


def test_a_difference_that_is_zero_has_a_derivative():
    a = matrix(X)
    gradient = plaingrad.grad(lambda x: ((matrix(x) - a) @ VECTOR).sum())(X)
    assert np.allclose(gradient, VECTOR[COLUMNS])
    gradient = plaingrad.grad(lambda x: (sparse.diags([x], [0]).tocsr() @ np.ones(11)).sum())(np.zeros(11))
    assert gradient.tolist() == [1.0] * 11


def test_a_product_whose_terms_cancel_has_a_derivative():
    column = sparse.csr_array([[1.0], [1.0]])
    gradient = plaingrad.grad(lambda x: (sparse.csr_array((x, [0, 1], [0, 2])) @ column).sum())(np.array([1.0, -1.0]))
    assert gradient.tolist() == [1.0, 1.0]


def test_a_matrix_as_argument_has_a_gradient_with_its_places():
    a = matrix(X)
    gradient = plaingrad.grad(lambda a: (a @ VECTOR).sum())(a)
    assert np.allclose(gradient.data, VECTOR[a.indices])


def test_a_matrix_in_single_precision_has_a_gradient_in_it():
    x = X.astype(np.float32)
    gradient = plaingrad.grad(lambda x: (matrix(x) @ VECTOR.astype(np.float32)).sum())(x)
    assert gradient.dtype == np.float32 and np.allclose(gradient, VECTOR[COLUMNS], atol=1e-6)


def test_empty_matrices_derive():
    assert plaingrad.grad(lambda x: (sparse.csr_array((3, 2)) @ x).sum() + x[0])(np.ones(2)).tolist() == [1.0, 0.0]
    empty = sparse.csr_array((0, 2))
    assert plaingrad.grad(lambda x: (empty @ x).sum() + x[1])(np.ones(2)).tolist() == [0.0, 1.0]


def test_strided_vectors_derive():
    gradient = plaingrad.grad(lambda x: (B @ x[::-1]) @ VECTOR)(np.ones(N))
    assert np.allclose(gradient, (B.T @ VECTOR)[::-1])


def test_nothing_is_made_dense():
    n = 200_000
    a = sparse.diags([np.ones(n - 1), np.full(n, 3.0), np.ones(n - 1)], [-1, 0, 1], format="csr")
    gradient = plaingrad.grad(lambda s: (((a * s) @ (a + a.T * s)) @ np.ones(n)).sum())(2.0)
    ones = np.ones(n)
    first, second = (a @ (a @ ones)).sum(), (a @ (a.T @ ones)).sum()
    assert np.isclose(gradient, first + 2 * 2.0 * second)


def test_folding_arrays_without_elements_keeps_their_shape():
    def f(x):
        return x.sum() + np.logical_or.reduce([x[:0] != x[:0], x[:0] != x[:0]]).size

    assert plaingrad.grad(f)(np.ones(2)).tolist() == [1.0, 1.0]
