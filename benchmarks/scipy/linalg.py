"""Dense linear algebra at the sizes of models."""

import numpy as np
from scipy import linalg

from benchmarks.ordinary.program import program

RANDOM = np.random.default_rng(2)
FACTOR = RANDOM.normal(size=(300, 300)) / 17.0
RIGHT = RANDOM.normal(size=(300,))
SQUARE = RANDOM.normal(size=(150, 150)) / 12.0
TALL = RANDOM.normal(size=(400, 80))
WEIGHTS = RANDOM.normal(size=(150,))


@program("solve, 300 x 300", FACTOR + 2.0 * np.eye(300), goal=4)
def solve(a):
    return np.sum(linalg.solve(a, RIGHT) ** 2)


@program("solve, positive definite, 300 x 300", FACTOR, goal=4)
def solve_positive(a):
    return RIGHT @ linalg.solve(a @ a.T + np.eye(300), RIGHT, assume_a="pos")


@program("cho_factor, cho_solve and log determinant, 300 x 300", FACTOR, goal=4)
def cholesky(a):
    factor = linalg.cho_factor(a @ a.T + np.eye(300), lower=True)
    return RIGHT @ linalg.cho_solve(factor, RIGHT) + 2.0 * np.sum(np.log(np.diag(factor[0])))


@program("inv, 300 x 300", FACTOR + 2.0 * np.eye(300), goal=4)
def inverse(a):
    return np.sum(linalg.inv(a) ** 2)


@program("lu_factor and lu_solve, 300 x 300", FACTOR + 2.0 * np.eye(300), goal=4)
def lu(a):
    return np.sum(linalg.lu_solve(linalg.lu_factor(a), RIGHT) ** 2)


@program("det, 300 x 300", FACTOR + 2.0 * np.eye(300), goal=4)
def determinant(a):
    return np.log(np.abs(linalg.det(a)))


@program("singular values, 150 x 150", SQUARE, goal=4)
def singular_values(a):
    return np.sum(linalg.svd(a, compute_uv=False) * WEIGHTS)


@program("svd, 150 x 150", SQUARE, goal=4)
def svd(a):
    u, s, vt = linalg.svd(a)
    return np.sum(s * WEIGHTS) + np.sum((u[:, :5] * s[:5]) @ vt[:5] * SQUARE[::-1])


@program("eigh, 150 x 150", SQUARE, goal=4)
def eigh(a):
    w, v = linalg.eigh(a + a.T)
    return np.sum(w * WEIGHTS) + WEIGHTS @ (v[:, -1] * v[:, -1])


@program("qr, 400 x 80", TALL, goal=4)
def qr(a):
    q, r = linalg.qr(a, mode="economic")
    return np.sum(q[:80] * r)


@program("lstsq, 400 x 80", TALL, goal=4)
def lstsq(a):
    return np.sum(linalg.lstsq(a, TALL[:, 0] + TALL[::-1, 1])[0] ** 2)


@program("expm, 150 x 150", SQUARE, goal=6)
def expm(a):
    return np.sum(linalg.expm(a) * SQUARE)


@program("sqrtm, 150 x 150", SQUARE, goal=4)
def sqrtm(a):
    return np.sum(linalg.sqrtm(a @ a.T + np.eye(150)) * SQUARE)


@program("solve_sylvester, 150 x 150", SQUARE, goal=4)
def sylvester(a):
    return np.sum(linalg.solve_sylvester(a + 2.0 * np.eye(150), a.T + 2.0 * np.eye(150), SQUARE) ** 2)


@program(
    "solve_banded, 10^5 x 3", RANDOM.uniform(0.1, 0.4, (3, 100_000)) + np.array([[0.0], [2.0], [0.0]]), goal=4
)
def banded(bands):
    return np.sum(linalg.solve_banded((1, 1), bands, bands[1]) ** 2)
