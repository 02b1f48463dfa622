"""A small network, trained with Adam on minibatches. Search: Adam. Page: docs/how-to/train-a-model.md."""

import numpy as np

from plaingrad import grad
from plaingrad.optimizers import Adam

rng = np.random.default_rng(1)
x = rng.uniform(-1.0, 1.0, (200, 2))
y = (x[:, 0] * x[:, 1] > 0.0).astype(float)
net = {"W": rng.normal(size=(2, 12)), "b": np.zeros(12), "v": rng.normal(size=12) / 3.0}


def loss(net, x, y):
    z = np.tanh(x @ net["W"] + net["b"]) @ net["v"]
    return np.mean(np.logaddexp(0.0, z) - y * z)


optimizer = Adam(learning_rate=0.05)
state, before = optimizer.init(net), loss(net, x, y)
for _ in range(150):
    rows = rng.integers(0, len(x), 50)
    net, state = optimizer.step(net, grad(loss)(net, x[rows], y[rows]), state)
assert loss(net, x, y) < 0.3 * before
