"""Find the line that makes a gradient nan. Search: nan. Page: docs/how-to/find-a-nan.md."""

import numpy as np

from plaingrad import explain, grad


def loss(x):
    safe = np.where(x > 0.0, np.sqrt(x), 0.0)
    return np.sum(safe)


x = np.array([4.0, 0.0])
assert not np.isfinite(grad(loss)(x)).all()
said = str(explain(loss, x))
assert "find_the_nan.py:9" in said and "where" in said, said
