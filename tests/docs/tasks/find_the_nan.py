"""Find the line that makes a gradient nan. Search: nan. Page: docs/how-to/find-a-nan.md."""

import numpy as np

from plaingrad import explain, grad


def loss(x):
    shifted = x - 1.0
    root = np.sqrt(shifted)
    return np.where(shifted > 0.0, root, 0.0).sum()


x = np.array([2.0, 1.0])
assert np.isnan(grad(loss)(x)).any()
found = explain(loss, x)
assert found.first.place.expression == "np.sqrt(shifted)" and "double where" in found.hint
