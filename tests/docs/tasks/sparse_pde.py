"""The sparse Jacobian of a discretised equation, and a step of Newton with it. Search: sparse. Page: docs/how-to/sparse.md."""

import numpy as np
from scipy.sparse.linalg import spsolve

from plaingrad import sparse_jacobian


def residual(u):
    """Of -u'' + u^3 = 1, with u = 0 at both ends."""
    h = 1.0 / (len(u) + 1)
    around = np.concatenate([[0.0], u, [0.0]])
    return (2.0 * u - around[:-2] - around[2:]) / h**2 + u**3 - 1.0


u = np.zeros(50)
for _ in range(6):
    u = u - spsolve(sparse_jacobian(residual, u).tocsc(), residual(u))
assert np.abs(residual(u)).max() < 1e-8
