"""The workloads as a user of autograd writes them: NumPy, and Python loops over steps.

Loops over scalars take minutes: these are measured on a part of their steps, which are all alike.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import autograd
import autograd.numpy as anp
import numpy as np
from autograd.scipy.special import logsumexp

from benchmarks.native.case import Case, Peer, flat
from benchmarks.native.problems import gathered

Made = Iterator[tuple[str, Peer]]


def peer(f: Callable[..., Any], case: Case, args: tuple[Any, ...] | None = None, **options: Any) -> Peer:
    """A peer: value and gradient of `f`."""
    both = autograd.value_and_grad(f, case.argnums)

    def run() -> tuple[Any, np.ndarray]:
        value, gradient = both(*(args or case.args))
        return float(value), flat(gradient)

    return Peer(run, args, **options)


def lotka_volterra(case: Case) -> Made:
    p, y0, h, n = case.args
    yield (
        "autograd",
        peer(case.f, case, (p, y0, h, n // 500), times=500.0, turns=1, note="1/500 of the steps"),
    )


def newton(case: Case) -> Made:
    p, n = case.args

    yield "autograd", peer(case.f, case, (p, n // 200), times=200.0, turns=1, note="1/200 of the steps")


def _heat(case: Case) -> Made:
    steps = case.args[-1]

    def energy(u: Any, c: Any, *k: Any) -> Any:
        for _ in range(k[-1]):
            inner = u[1:-1, 1:-1]
            change = c * (u[1:-1, :-2] + u[1:-1, 2:] + u[:-2, 1:-1] + u[2:, 1:-1] - 4.0 * inner)
            if len(k) == 2:
                change = change + k[0] * inner * (1.0 - inner)
            u = u + anp.pad(change, 1, "constant")
        return 0.5 * anp.sum(u * u)

    fewer = (*case.args[:-1], steps // 10)
    yield "autograd", peer(energy, case, fewer, times=10.0, turns=2, note="1/10 of the steps")


def asian(case: Case) -> Made:
    def price(theta: Any, z: Any) -> Any:
        m = z.shape[1]
        dt = theta[4] / m
        logs = anp.cumsum((theta[2] - 0.5 * theta[3] ** 2) * dt + theta[3] * anp.sqrt(dt) * z, axis=1)
        mean = anp.mean(theta[0] * anp.exp(logs), axis=1)
        return anp.exp(-theta[2] * theta[4]) * anp.mean(anp.maximum(mean - theta[1], 0.0))

    yield "autograd", peer(price, case, turns=3)


def logistic(case: Case) -> Made:
    def loss(w: Any, data: Any, labels: Any) -> Any:
        s = data @ w
        return anp.mean(anp.logaddexp(0.0, s) - labels * s)

    yield "autograd", peer(loss, case)


def mlp(case: Case) -> Made:
    def loss(w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, x: Any, labels: Any) -> Any:
        h = anp.maximum(anp.maximum(x @ w1 + b1, 0.0) @ w2 + b2, 0.0)
        z = h @ w3 + b3
        return anp.mean(logsumexp(z, axis=1) - z[np.arange(len(labels)), labels])

    yield "autograd", peer(loss, case)


def gmm(case: Case) -> Made:
    d = case.args[1].shape[1]
    columns, rows = np.triu_indices(d, 1)
    place = np.zeros((d * (d - 1) // 2, d, d))
    place[np.arange(len(rows)), rows, columns] = 1.0

    def likelihood(alphas: Any, means: Any, logs: Any, lowers: Any, points: Any, gamma: Any, m: Any) -> Any:
        k, n = len(alphas), len(points)
        factors = anp.einsum("ki,ij->kij", anp.exp(logs), np.eye(d)) + anp.einsum(
            "kt,tij->kij", lowers, place
        )
        y = anp.einsum("kij,knj->kni", factors, points[None] - means[:, None])
        terms = (alphas + anp.sum(logs, axis=1))[:, None] - 0.5 * anp.sum(y**2, axis=2)
        w = d + m + 1
        log_gamma = 0.25 * d * (d - 1) * math.log(math.pi) + sum(math.lgamma(0.5 * (w - j)) for j in range(d))
        squares = anp.sum(anp.exp(logs) ** 2) + anp.sum(lowers**2)
        prior = k * (w * d * math.log(gamma / math.sqrt(2.0)) - log_gamma) - 0.5 * gamma**2 * squares
        normal = n * logsumexp(alphas) + 0.5 * n * d * math.log(2.0 * math.pi)
        return anp.sum(logsumexp(terms, axis=0)) - normal + prior + m * anp.sum(logs)

    yield "autograd", peer(likelihood, case)


def ba(case: Case) -> Made:
    inputs, features = gathered(case.args), case.args[3]

    def distances(x: Any) -> Any:
        axis, y = x[:, :3], x[:, 11:14] - x[:, 3:6]
        square = anp.sum(axis**2, axis=1)[:, None]
        angle = anp.sqrt(square)
        turned = crossed(axis, y)
        y = y + anp.sin(angle) / angle * turned + (1 - anp.cos(angle)) / square * crossed(axis, turned)
        uv = y[:, :2] / y[:, 2:]
        s = anp.sum(uv**2, axis=1)[:, None]
        seen = uv * (x[:, 6:7] * (1 + x[:, 9:10] * s + x[:, 10:11] * s**2)) + x[:, 7:9]
        return x[:, 14:] * (seen - features)

    def run() -> tuple[Any, np.ndarray]:
        pullback, values = autograd.make_vjp(distances)(inputs)
        seeds = [np.tile(seed, (len(inputs), 1)) for seed in np.eye(2)]
        rows = np.stack([pullback(seed) for seed in seeds], axis=1)
        w = inputs[:, 14]
        return np.concatenate([values.ravel(), 1 - w * w]), np.concatenate([rows.ravel(), -2 * w])

    yield "autograd", Peer(run, turns=5)


def crossed(a: Any, b: Any) -> Any:
    """The vector products of rows."""
    a0, a1, a2, b0, b1, b2 = (x[:, k] for x in (a, b) for k in range(3))
    return anp.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], axis=1)


def lstm(case: Case) -> Made:
    def sigmoid(x: Any) -> Any:
        return 1.0 / (1.0 + anp.exp(-x))

    def loss(main: Any, extra: Any, state: Any, text: Any) -> Any:
        length, b = text.shape
        hidden, cell = list(state[0::2]), list(state[1::2])
        total = 0.0
        for t in range(length - 1):
            z = text[t] * extra[0]
            for k in range(len(hidden)):
                w, bias = main[2 * k], main[2 * k + 1]
                forget, give = (
                    sigmoid(z * w[:b] + bias[:b]),
                    sigmoid(z * w[2 * b : 3 * b] + bias[2 * b : 3 * b]),
                )
                take = sigmoid(hidden[k] * w[b : 2 * b] + bias[b : 2 * b])
                cell[k] = cell[k] * forget + take * anp.tanh(hidden[k] * w[3 * b :] + bias[3 * b :])
                z = hidden[k] = give * anp.tanh(cell[k])
            y = z * extra[1] + extra[2]
            total = total + anp.sum(text[t + 1] * (y - anp.log(anp.sum(anp.exp(y)) + 2)))
        return -total / ((length - 1) * b)

    yield "autograd", peer(loss, case, turns=1)


PEERS = {f.__name__: f for f in (lotka_volterra, newton, asian, logistic, mlp, gmm, ba, lstm)} | {
    "heat": _heat,
    "reaction": _heat,
}
