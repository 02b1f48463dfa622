"""Fit a differential equation with a stiff region, by the solver that is made for it. Search: ODE. Page: docs/how-to/fit-a-model.md."""

import numpy as np

from plaingrad import jacobian
from plaingrad.integrate import solve_ivp

times = np.linspace(0.0, 3.0, 7)


def curve(p):
    """A fast and a slow decay."""
    rates = lambda t, y, fast, slow: [-fast * (y[0] - np.cos(t)), y[0] - slow * y[1]]
    return solve_ivp(rates, (0.0, 3.0), [0.0, 0.0], method="LSODA", t_eval=times, args=tuple(p), rtol=1e-8, atol=1e-10).y


p = np.array([200.0, 0.5])
slopes = jacobian(curve)(p)
assert slopes.shape == (2, 7, 2) and np.isfinite(slopes).all()
for k, h in enumerate((1e-2, 1e-5)):
    moved = np.eye(2)[k] * h
    assert np.allclose(slopes[:, :, k], (curve(p + moved) - curve(p - moved)) / (2 * h), atol=1e-5)
