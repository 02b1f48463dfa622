"""Hamiltonian Monte Carlo by hand. Search: HMC. Page: docs/how-to/hamiltonian-monte-carlo.md."""

import math

import numpy as np

from plaingrad import grad

precision = np.array([[2.0, 0.6], [0.6, 1.0]])
log_density = lambda x: -0.5 * x @ precision @ x
slope = grad(log_density)
rng = np.random.default_rng(2)
x, kept = np.zeros(2), []
for _ in range(250):
    p = rng.normal(size=2)
    y, q = x, p + 0.15 * slope(x)
    for k in range(5):
        y = y + 0.3 * q
        q = q + (0.3 if k < 4 else 0.15) * slope(y)
    if math.log(rng.random()) < log_density(y) - log_density(x) + (p @ p - q @ q) / 2:
        x = y
    kept.append(x)
assert np.allclose(np.cov(np.array(kept).T), np.linalg.inv(precision), atol=0.35)
