"""The heat equation on a square, as a sparse matrix."""

import math

import numpy as np
from scipy import sparse


def heat_equation(k):
    """The matrix of -div(k grad u) + u / 10, with conductivities k in the cells of a square; no flow over its edges."""
    n = math.isqrt(k.size)
    k = k.reshape(n, n)
    across, down = np.zeros((n, n)), np.zeros((n, n))
    across[:, :-1] = 0.5 * (k[:, :-1] + k[:, 1:])
    down[:-1] = 0.5 * (k[:-1] + k[1:])
    across, down = across.ravel(), down.ravel()
    middle = across + down + 0.1
    middle[1:] += across[:-1]
    middle[n:] += down[:-n]
    parts = [middle, -across[:-1], -across[:-1], -down[:-n], -down[:-n]]
    return sparse.diags(parts, [0, 1, -1, n, -n], format="csc")
