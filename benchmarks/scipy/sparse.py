"""Sparse matrices: assembled, multiplied, and solved with directly and by iteration."""

import numpy as np
from scipy import sparse
from scipy.sparse import linalg

from benchmarks.ordinary.program import program
from benchmarks.scipy.heat import heat_equation

RANDOM = np.random.default_rng(3)
SIDE = 120


CELLS = RANDOM.uniform(1.0, 2.0, SIDE * SIDE)
HEAT = RANDOM.normal(size=SIDE * SIDE)
ROWS, COLUMNS = np.repeat(np.arange(100_000), 10), RANDOM.integers(0, 100_000, 1_000_000)
MATRIX = sparse.csr_array((RANDOM.normal(size=1_000_000), (ROWS, COLUMNS)), (100_000, 100_000))
VECTOR = RANDOM.normal(size=100_000)
BASE = MATRIX[:20_000, :20_000].tocsr()


@program("heat equation, spsolve, 14,400 cells", CELLS, goal=3)
def direct(k):
    return np.sum(linalg.spsolve(heat_equation(k), HEAT) ** 2)


@program("heat equation, splu, five right sides", CELLS, goal=3)
def factored(k):
    factors = linalg.splu(heat_equation(k))
    return sum(np.sum(factors.solve(HEAT * j) ** 2) for j in range(1, 6))


@program("heat equation, cg, 14,400 cells", CELLS, goal=4)
def conjugate_gradients(k):
    return np.sum(linalg.cg(heat_equation(k).tocsr(), HEAT, rtol=1e-10)[0] ** 2)


@program("constant matrix times x, 10^6 entries", VECTOR, goal=4)
def product(x):
    return np.sum(np.tanh(MATRIX @ x))


@program("entries of a csr array, times a vector", MATRIX.data, goal=4)
def entries(data):
    a = sparse.csr_array((data, MATRIX.indices, MATRIX.indptr), MATRIX.shape)
    return np.sum((a @ VECTOR) ** 2)


@program("product of two sparse matrices", BASE.data, goal=4)
def square(data):
    a = sparse.csr_array((data, BASE.indices, BASE.indptr), BASE.shape)
    return (a @ a).sum()
