"""Fit a curve by `least_squares` and by `curve_fit`. Search: fit. Page: docs/how-to/fit-a-model.md."""

import numpy as np

from plaingrad.optimize import curve_fit, least_squares

t = np.linspace(0.0, 4.0, 30)
y = 2.0 * np.exp(-0.5 * t)
found = least_squares(lambda p: p["a"] * np.exp(-p["k"] * t) - y, {"a": 1.0, "k": 1.0})
assert np.isclose(found.x["a"], 2.0) and np.isclose(found.x["k"], 0.5)

best, covariance = curve_fit(lambda t, a, k: a * np.exp(-k * t), t, y, p0=[1.0, 1.0])
assert np.allclose(best, [2.0, 0.5]) and covariance.shape == (2, 2)
