"""A gradient for each example of a batch. Search: per example. Page: docs/how-to/train-a-model.md."""

import numpy as np

from plaingrad import grad, vmap

rng = np.random.default_rng(3)
W, X, y = rng.normal(size=(3, 2)), rng.normal(size=(8, 3)), rng.normal(size=(8, 2))
loss = lambda W, x, y: np.sum((x @ W - y) ** 2)
each = vmap(grad(loss), in_axes=(None, 0, 0))(W, X, y)
assert np.allclose(each, 2.0 * X[:, :, None] * (X @ W - y)[:, None, :])
