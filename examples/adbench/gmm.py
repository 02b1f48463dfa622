"""The log-likelihood of a mixture of normal distributions, and its gradient: ADBench's problem GMM.

The inverse covariance of component k is L^T L, where L has exp(log_diagonals[k]) on the diagonal and lowers[k], column
by column, below it. A Wishart distribution with parameters gamma and m is the prior of all of them.

    python examples/adbench/gmm.py [FILE]
"""

import math
import sys
import timeit
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np

import plaingrad

DATA = Path(__file__).resolve().parents[1] / "data" / "adbench" / "gmm_d10_K25.txt"


class Mixture(NamedTuple):
    """The arguments of `log_likelihood`, n points of d dimensions and k components.

    Attributes:
        alphas: (k,) the logarithms of the weights, up to a constant.
        means: (k, d).
        log_diagonals: (k, d).
        lowers: (k, d (d - 1) / 2).
        points: (n, d).
        gamma: Wishart prior: the scale.
        m: Wishart prior: degrees of freedom beyond d + 1.
    """

    alphas: np.ndarray
    means: np.ndarray
    log_diagonals: np.ndarray
    lowers: np.ndarray
    points: np.ndarray
    gamma: float
    m: int


def read(path: Path | str) -> Mixture:
    """A problem: `d k n`; k lines of a weight; of means; of diagonal and triangle; n lines of points; `gamma m`."""
    numbers = iter(Path(path).read_text().split())
    d, k, n = (int(next(numbers)) for _ in range(3))

    def table(rows: int, columns: int) -> np.ndarray:
        return np.array([float(next(numbers)) for _ in range(rows * columns)]).reshape(rows, columns)

    alphas, means, factors, points = table(k, 1)[:, 0], table(k, d), table(k, d * (d + 1) // 2), table(n, d)
    diagonals, lowers = np.ascontiguousarray(factors[:, :d]), np.ascontiguousarray(factors[:, d:])
    return Mixture(alphas.copy(), means, diagonals, lowers, points, float(next(numbers)), int(next(numbers)))


@numba.njit
def log_sum_exp(x):
    """log(sum(exp(x)))."""
    highest = x[0]
    for i in range(1, x.size):
        highest = max(highest, x[i])
    total = 0.0
    for i in range(x.size):
        total += math.exp(x[i] - highest)
    return highest + math.log(total)


@numba.njit
def squared_distance(point, mean, diagonal, lower):
    """|L (point - mean)|^2, L lower triangular."""
    d = point.size
    total = 0.0
    for row in range(d):
        s = diagonal[row] * (point[row] - mean[row])
        for column in range(row):
            entry = column * (2 * d - column - 1) // 2 + row - column - 1
            s += lower[entry] * (point[column] - mean[column])
        total += s * s
    return total


@numba.njit
def log_gamma(x, d):
    """The logarithm of the gamma function in d dimensions (Wishart distribution)."""
    total = 0.25 * d * (d - 1) * math.log(math.pi)
    for j in range(d):
        total += math.lgamma(x - 0.5 * j)
    return total


@numba.njit
def log_prior(log_diagonals, lowers, gamma, m):
    """The Wishart prior of all components."""
    k, d = log_diagonals.shape
    w = d + m + 1
    constant = w * d * math.log(gamma / math.sqrt(2.0)) - log_gamma(0.5 * w, d)
    squares = 0.0
    logs = 0.0
    for c in range(k):
        for j in range(d):
            squares += math.exp(2.0 * log_diagonals[c, j])
            logs += log_diagonals[c, j]
        for j in range(lowers.shape[1]):
            squares += lowers[c, j] * lowers[c, j]
    return k * constant - 0.5 * gamma * gamma * squares + m * logs


@numba.njit
def log_likelihood(alphas, means, log_diagonals, lowers, points, gamma, m):
    """The logarithm of the posterior density of a mixture, see `Mixture`."""
    n, d = points.shape
    k = alphas.size
    diagonals = np.exp(log_diagonals)
    levels = alphas + np.sum(log_diagonals, axis=1)
    terms = np.empty(k)
    total = 0.0
    for i in range(n):
        for c in range(k):
            distance = squared_distance(points[i], means[c], diagonals[c], lowers[c])
            terms[c] = levels[c] - 0.5 * distance
        total += log_sum_exp(terms)
    normalised = total - n * log_sum_exp(alphas) - 0.5 * n * d * math.log(2.0 * math.pi)
    return normalised + log_prior(log_diagonals, lowers, gamma, m)


PARAMETERS = (0, 1, 2, 3)
gradient = plaingrad.value_and_grad(log_likelihood, PARAMETERS, tier="native")


def main(arguments: list[str] | None = None) -> tuple[float, Any]:
    """Print and return the value and the gradient for a file of ADBench's."""
    paths = sys.argv[1:] if arguments is None else arguments
    mixture = read(paths[0] if paths else DATA)
    value, parts = gradient(*mixture)  # compiles
    milliseconds = 1e3 * min(timeit.repeat(lambda: gradient(*mixture), number=1, repeat=5))
    norm = math.sqrt(sum(float(np.sum(part * part)) for part in parts))
    print(f"log-likelihood {value:.10g}, |gradient| {norm:.10g}, {milliseconds:.2f} ms")
    return value, parts


if __name__ == "__main__":
    main()
