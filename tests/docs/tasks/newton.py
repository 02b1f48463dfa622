"""Newton's method for a minimum, with the Hessian. Search: Newton. Page: docs/how-to/newton-and-hessians.md."""

import numpy as np

from plaingrad import grad, hessian


def f(x):
    return np.sum(np.cosh(x - 1.0)) + (x[0] * x[1]) ** 2


x = np.zeros(2)
for _ in range(8):
    x = x - np.linalg.solve(hessian(f)(x), grad(f)(x))
assert np.allclose(grad(f)(x), 0.0, atol=1e-12)
