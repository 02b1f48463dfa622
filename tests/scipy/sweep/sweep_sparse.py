"""scipy.sparse: construction, arithmetic and solvers in every format."""

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph
from scipy.sparse import linalg as solvers
from tests.scipy.sweep.harness import Table

TABLE = Table(sparse, "scipy.sparse")
SOLVERS = Table(solvers, "scipy.sparse.linalg")
GRAPHS = Table(csgraph, "scipy.sparse.csgraph")
add, each = TABLE.add, TABLE.each
ROWS = np.array([0, 0, 1, 2, 2, 3, 4, 4, 1, 3])
COLUMNS = np.array([0, 2, 1, 2, 0, 3, 4, 1, 3, 1])
X = np.array([4.0, -1.0, 3.0, 5.0, 0.7, 4.2, 3.1, -0.6, 0.4, 0.9])
B = np.array([1.0, -0.5, 2.0, 0.3, 1.1])
FORMS = ("strided", "reversed", "float32", "complex")


def matrix(x):
    return sparse.coo_matrix((x, (ROWS, COLUMNS)), shape=(5, 5)).tocsr()


def spd(x):
    a = matrix(x)
    return a.T @ a + sparse.identity(5)


for kind in ("coo", "csr", "csc", "lil", "dok", "bsr", "dia"):
    each(f"{kind}_matrix {kind}_array", lambda f, x: f(matrix(x)).toarray(), X, forms=FORMS if kind == "csr" else ())
    each(f"{kind}_matrix {kind}_array", lambda f, x: f(matrix(x)) @ B, X, label="product", forms=())
    each(f"{kind}_array", lambda f, x: (f(matrix(x)) + 2 * f(matrix(x * x))).sum(0), X, label="sum", forms=())
each("csr_array csr_matrix", lambda f, x: (f(matrix(x)) @ f(matrix(x))).toarray(), X, label="matmul", forms=())
each("csr_array csc_array", lambda f, x: f(matrix(x)).multiply(B).toarray(), X, label="multiply", forms=())
each("csr_array csc_array coo_array", lambda f, x: f(matrix(x)).T.toarray(), X, label="transpose", forms=())
each("csr_array csc_array lil_array", lambda f, x: f(matrix(x))[1:4, [0, 2, 1]].toarray(), X, label="slice", forms=())
each("csr_array", lambda f, x: [f(matrix(x)).mean(0), f(matrix(x)).diagonal(), f(matrix(x)).trace(), f(matrix(x)).power(2).data], X, label="reduce", forms=())
each("csr_array", lambda f, x: [f(matrix(x)).max(0).toarray(), f(matrix(x)).min(1).toarray()], X, label="extremes", forms=())
each("csr_array", lambda f, x: [np.sqrt(abs(f(matrix(x)))).data, f(matrix(x)).sin().data, f(matrix(x)).expm1().data], X, label="ufuncs", forms=())
each("diags diags_array", lambda f, x: f([x[:4], x[5:]], offsets=[1, 0]).toarray(), X, forms=())
each("spdiags", lambda f, x: f(x.reshape(2, 5), [0, 1], 5, 5).toarray(), X, forms=())
each("block_diag", lambda f, x: f([matrix(x), matrix(x * x)]).toarray(), X, forms=())
each("hstack vstack", lambda f, x: f([matrix(x), matrix(x * x)]).toarray(), X, forms=())
each("bmat block_array", lambda f, x: f([[matrix(x), None], [None, matrix(x)]]).toarray(), X, forms=())
each("kron kronsum", lambda f, x: f(matrix(x), matrix(x)).toarray(), X, forms=())
each("tril triu", lambda f, x: f(matrix(x)).toarray(), X, forms=())
each("eye identity eye_array", lambda f, x: f(5) @ x[:5], X, forms=(), constant=True)
each("find", lambda f, x: f(matrix(x))[2], X, forms=())
each("csr_array", lambda f, x: f(x.reshape(2, 5)).data, X, label="dense", forms=())

add, each = SOLVERS.add, SOLVERS.each
each("spsolve", lambda f, x: f(matrix(x).tocsc(), x[:5]), X, forms=FORMS)
each("spsolve", lambda f, x: f(matrix(x).tocsc(), matrix(x * x).tocsc()).toarray(), X, label="sparse", forms=())
each("splu", lambda f, x: f(matrix(x).tocsc()).solve(B), X, forms=())
each("factorized", lambda f, x: f(matrix(x).tocsc())(B), X, forms=())
each("spsolve_triangular", lambda f, x: f(sparse.tril(matrix(x)).tocsr(), B), X, forms=())
each("inv", lambda f, x: f(matrix(x).tocsc()).toarray(), X, forms=())
each("expm", lambda f, x: f(matrix(0.2 * x).tocsc()).toarray(), X, forms=())
each("expm_multiply", lambda f, x: f(matrix(0.2 * x).tocsc(), x[:5]), X, forms=(), loose=1e-4)
each("matrix_power", lambda f, x: f(matrix(x), 3).toarray(), X, forms=())
each("norm", lambda f, x: [f(matrix(x)), f(matrix(x), 1), f(matrix(x), axis=0)], X, forms=())
TIGHT = {"rtol": 1e-12} if "rtol" in solvers.cg.__code__.co_varnames else {"tol": 1e-12}
each("cg minres cr", lambda f, x: f(spd(x), x[:5], **TIGHT)[0], X, forms=(), loose=1e-4)
each("gmres lgmres gcrotmk bicg bicgstab cgs qmr tfqmr", lambda f, x: f(matrix(x), x[:5], **TIGHT)[0], X, forms=(), loose=1e-4)
each("lsqr lsmr", lambda f, x: f(matrix(x), x[:5], 0.0, 1e-13, 1e-13)[0], X, forms=(), loose=1e-4)
each("eigsh", lambda f, x: f(spd(x), k=2, v0=B)[0], X, forms=(), loose=1e-4)
each("eigs", lambda f, x: abs(f(matrix(x), k=2, v0=B)[0]), X, forms=(), loose=1e-4)
each("svds", lambda f, x: f(matrix(x), k=2, v0=B)[1], X, forms=(), loose=1e-4)
each("lobpcg", lambda f, x: f(spd(x), np.eye(5, 1), tol=1e-10, maxiter=80)[0], X, forms=(), loose=1e-4)
each("aslinearoperator", lambda f, x: f(matrix(x)) @ B, X, forms=())
each("LinearOperator", lambda f, x: f((5, 5), matvec=lambda v: x[:5] * v, dtype=float) @ B, X, forms=())
each("spilu", lambda f, x: f(matrix(x).tocsc()).solve(B), X, forms=(), free=True)
GRAPHS.each("laplacian", lambda f, x: f(np.abs(x.reshape(2, 5).T @ x.reshape(2, 5))), X, forms=())
GRAPHS.each("shortest_path dijkstra bellman_ford johnson floyd_warshall minimum_spanning_tree", lambda f, x: f(abs(matrix(x))), X, forms=())
TABLES = (TABLE, SOLVERS, GRAPHS)
