"""The workloads on arrays: a network of three layers, and ADBench's three problems with their C adjoints here."""

import ctypes
from typing import Any

import numpy as np
from examples.adbench import ba as scenes
from examples.adbench import gmm as mixtures
from examples.adbench import lstm as networks

from benchmarks.native.case import Case, Run, address, flat

SIZES, BATCH = (784, 256, 128, 10), 256


def mlp_primal(w1, b1, w2, b2, w3, b3, x, labels):
    """The cross entropy of a network with two hidden layers of rectifiers."""
    h1 = np.maximum(x @ w1 + b1, 0.0)
    h2 = np.maximum(h1 @ w2 + b2, 0.0)
    z = h2 @ w3 + b3
    total = 0.0
    for i in range(z.shape[0]):
        highest = np.max(z[i])
        total += np.log(np.sum(np.exp(z[i] - highest))) + highest - z[i, labels[i]]
    return total / z.shape[0]


def mlp_by_hand(w1, b1, w2, b2, w3, b3, x, labels):
    """(value, gradient) with NumPy."""
    h1 = x @ w1
    h1 += b1
    np.maximum(h1, 0.0, out=h1)
    h2 = h1 @ w2
    h2 += b2
    np.maximum(h2, 0.0, out=h2)
    z = h2 @ w3
    z += b3
    rows = np.arange(len(z))
    z -= z.max(axis=1, keepdims=True)
    chosen = z[rows, labels]
    np.exp(z, out=z)
    sums = z.sum(axis=1)
    value = (np.log(sums) - chosen).mean()
    z /= sums[:, None]
    z[rows, labels] -= 1.0
    z /= len(z)
    h2_bar = z @ w3.T
    h2_bar *= h2 > 0.0
    h1_bar = h2_bar @ w2.T
    h1_bar *= h1 > 0.0
    pairs = ((x, h1_bar), (h1, h2_bar), (h2, z))
    return value, [part for h, bar in pairs for part in (h.T @ bar, bar.sum(axis=0))]


def mlp() -> Case:
    """A network 784-256-128-10, batches of 256."""
    random = np.random.default_rng(0)
    args: list[np.ndarray] = []
    for before, after in zip(SIZES, SIZES[1:]):
        args += [random.normal(size=(before, after)) / np.sqrt(before), np.zeros(after)]
    args += [random.normal(size=(BATCH, SIZES[0])), random.integers(0, SIZES[-1], BATCH)]

    def by_hand(_: Any) -> dict[str, Run]:
        def run() -> tuple[Any, np.ndarray]:
            value, gradient = mlp_by_hand(*args)
            return value, flat(gradient)

        return {"NumPy by hand": run}

    title = "network 784-256-128-10, batch 256"
    return Case(title, mlp_primal, tuple(args), tuple(range(6)), 1.0, in_c=by_hand, best="NumPy by hand")


def gmm() -> Case:
    """ADBench's mixture of normal distributions, d 10, K 25, n 1000."""
    mixture = mixtures.read(mixtures.DATA)
    (n, d), k = mixture.points.shape, mixture.alphas.size
    arrays, prior = mixture[:5], (ctypes.c_double(mixture.gamma), mixture.m)
    memory = np.empty(2 * k * (1 + d) + 2 * k * d)

    def in_c(library: Any) -> dict[str, Run]:
        out = np.empty(k * (1 + 2 * d + d * (d - 1) // 2))
        library.gmm.restype = ctypes.c_double

        def run() -> Any:
            return library.gmm(n, d, k, *map(address, arrays), *prior, address(out), address(memory)), out

        return {"C adjoint": run}

    def objective(library: Any) -> Run:
        library.gmm.restype = ctypes.c_double
        return lambda: library.gmm(n, d, k, *map(address, arrays), *prior, None, address(memory))

    title = "ADBench GMM d10 K25 n1000"
    primal = mixtures.log_likelihood.py_func
    return Case(title, primal, tuple(mixture), mixtures.PARAMETERS, 0.25, 1.8, None, in_c, objective)


def ba() -> Case:
    """ADBench's bundle adjustment ba1: 31843 observations, the entries of the sparse Jacobian."""
    scene = scenes.read(scenes.DATA)
    n, m, p = len(scene.cameras), len(scene.points), scene.weights.size

    def in_c(library: Any) -> dict[str, Run]:
        residuals, entries = np.empty(3 * p), np.empty(31 * p)
        library.ba.restype = None

        def run() -> Any:
            library.ba(n, m, p, *map(address, scene), address(residuals), address(entries))
            return residuals, entries

        return {"C adjoint": run}

    def objective(library: Any) -> Run:
        residuals = np.empty(3 * p)
        library.ba.restype = None
        return lambda: library.ba(n, m, p, *map(address, scene), address(residuals), None)

    title = "ADBench BA ba1, sparse Jacobian"
    primal, ours = scenes.residuals.py_func, scenes.entries
    return Case(title, primal, tuple(scene), (0,), 1.2, 6.8, None, in_c, objective, ours)


def gathered(scene: tuple[np.ndarray, ...]) -> np.ndarray:
    """(p, 15) camera, point and weight of each observation: for systems that differentiate arrays, not loops."""
    cameras, points, weights, _ = scene
    i = np.arange(weights.size)
    return np.concatenate([cameras[i % len(cameras)], points[i % len(points)], weights[:, None]], axis=1)


def lstm() -> Case:
    """ADBench's recurrent network, 2 layers, 1024 characters."""
    network = networks.read(networks.DATA)
    layers, (length, bits) = len(network.state) // 2, network.text.shape
    memory = np.empty(((length - 1) * (8 * layers + 2) + 2 * layers + 3) * bits)

    def in_c(library: Any) -> dict[str, Run]:
        out = np.empty((8 * layers + 3) * bits)
        library.lstm.restype = ctypes.c_double

        def run() -> Any:
            arrays = map(address, network)
            return library.lstm(layers, length, bits, *arrays, address(out), address(memory)), out

        return {"C adjoint": run}

    def objective(library: Any) -> Run:
        library.lstm.restype = ctypes.c_double
        return lambda: library.lstm(layers, length, bits, *map(address, network), None, address(memory))

    title = "ADBench LSTM l2 c1024"
    primal = networks.loss.py_func
    return Case(title, primal, tuple(network), networks.PARAMETERS, 0.8, 3.6, 4.0, in_c, objective)
