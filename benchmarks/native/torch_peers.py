"""The workloads as a user of PyTorch writes them: eager tensors of float64, and Python loops over steps.

Loops over scalars take minutes: these are measured on a part of their steps, which are all alike.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from benchmarks.native.case import Case, Peer, flat
from benchmarks.native.problems import gathered

torch.set_num_threads(1)

Made = Iterator[tuple[str, Peer]]


def peer(f: Callable[..., Any], case: Case, args: tuple[Any, ...] | None = None, **options: Any) -> Peer:
    """A peer: value and gradient of `f`."""
    given = [torch.tensor(x) if isinstance(x, np.ndarray) else x for x in args or case.args]
    active = [given[k].requires_grad_() for k in case.argnums]

    def run() -> tuple[Any, np.ndarray]:
        value = f(*given)
        gradient = torch.autograd.grad(value, active)
        return value.item(), flat([part.numpy() for part in gradient])

    return Peer(run, args, **options)


def lotka_volterra(case: Case) -> Made:
    p, y0, h, n = case.args
    yield "PyTorch", peer(case.f, case, (p, y0, h, n // 200), times=200.0, turns=1, note="1/200 of the steps")


def newton(case: Case) -> Made:
    p, n = case.args

    def mean_square(p: Any, n: int) -> Any:
        s, total = p[3], 0.0
        for k in range(n):
            y = torch.ones((), dtype=torch.float64)
            while True:
                f = y * y * y + p[0] * y - s
                if not abs(f) > 1e-10:
                    break
                y = y - f / (3.0 * y * y + p[0])
            total = total + y * y
            s = p[1] * y + p[2] * math.sin(0.01 * k) + 1.0
        return total / n

    yield "PyTorch", peer(mean_square, case, (p, n // 100), times=100.0, turns=1, note="1/100 of the steps")


def _heat(case: Case) -> Made:
    def energy(u: Any, c: Any, *k: Any) -> Any:
        for _ in range(k[-1]):
            inner = u[1:-1, 1:-1]
            new = inner + c * (u[1:-1, :-2] + u[1:-1, 2:] + u[:-2, 1:-1] + u[2:, 1:-1] - 4.0 * inner)
            if len(k) == 2:
                new = new + k[0] * inner * (1.0 - inner)
            v = u.clone()
            v[1:-1, 1:-1] = new
            u = v
        return 0.5 * torch.sum(u * u)

    yield "PyTorch", peer(energy, case, turns=3)


def asian(case: Case) -> Made:
    def price(theta: Any, z: Any) -> Any:
        m = z.shape[1]
        dt = theta[4] / m
        logs = torch.cumsum((theta[2] - 0.5 * theta[3] ** 2) * dt + theta[3] * torch.sqrt(dt) * z, 1)
        mean = torch.mean(theta[0] * torch.exp(logs), 1)
        return torch.exp(-theta[2] * theta[4]) * torch.mean(torch.relu(mean - theta[1]))

    yield "PyTorch", peer(price, case, turns=3)


def logistic(case: Case) -> Made:
    def loss(w: Any, data: Any, labels: Any) -> Any:
        s = data @ w
        return torch.mean(torch.nn.functional.softplus(s) - labels * s)

    yield "PyTorch", peer(loss, case)


def mlp(case: Case) -> Made:
    def loss(w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, x: Any, labels: Any) -> Any:
        h = torch.relu(torch.addmm(b1, x, w1))
        z = torch.addmm(b3, torch.relu(torch.addmm(b2, h, w2)), w3)
        return torch.nn.functional.cross_entropy(z, labels)

    yield "PyTorch", peer(loss, case)


def gmm(case: Case) -> Made:
    d = case.args[1].shape[1]
    columns, rows = np.triu_indices(d, 1)

    def likelihood(alphas: Any, means: Any, logs: Any, lowers: Any, points: Any, gamma: Any, m: Any) -> Any:
        k, n = len(alphas), len(points)
        factors = torch.diag_embed(torch.exp(logs))
        factors[:, rows, columns] = lowers
        y = torch.einsum("kij,knj->kni", factors, points[None] - means[:, None])
        terms = (alphas + torch.sum(logs, 1))[:, None] - 0.5 * torch.sum(y**2, 2)
        w = d + m + 1
        log_gamma = 0.25 * d * (d - 1) * math.log(math.pi) + sum(math.lgamma(0.5 * (w - j)) for j in range(d))
        squares = torch.sum(torch.exp(2 * logs)) + torch.sum(lowers**2)
        prior = k * (w * d * math.log(gamma / math.sqrt(2.0)) - log_gamma) - 0.5 * gamma**2 * squares
        normal = n * torch.logsumexp(alphas, 0) + 0.5 * n * d * math.log(2.0 * math.pi)
        return torch.sum(torch.logsumexp(terms, 0)) - normal + prior + m * torch.sum(logs)

    yield "PyTorch", peer(likelihood, case)


def ba(case: Case) -> Made:
    inputs, features = map(torch.tensor, (gathered(case.args), case.args[3]))
    inputs.requires_grad_()

    def distances(x: Any) -> Any:
        axis, y = x[:, :3], x[:, 11:14] - x[:, 3:6]
        square = torch.sum(axis**2, 1, keepdim=True)
        angle = torch.sqrt(square)
        turned = torch.linalg.cross(axis, y)
        y = (
            y
            + torch.sin(angle) / angle * turned
            + (1 - torch.cos(angle)) / square * torch.linalg.cross(axis, turned)
        )
        uv = y[:, :2] / y[:, 2:]
        s = torch.sum(uv**2, 1, keepdim=True)
        seen = uv * (x[:, 6:7] * (1 + x[:, 9:10] * s + x[:, 10:11] * s**2)) + x[:, 7:9]
        return x[:, 14:] * (seen - features)

    def run() -> tuple[Any, np.ndarray]:
        values = distances(inputs)
        seeds = torch.eye(2, dtype=torch.float64)[:, None, :].expand(2, len(inputs), 2)
        rows = [torch.autograd.grad(values, inputs, seed, retain_graph=True)[0].numpy() for seed in seeds]
        w = inputs[:, 14].detach().numpy()
        both = np.concatenate([values.detach().numpy().ravel(), 1 - w * w])
        return both, np.concatenate([np.stack(rows, axis=1).ravel(), -2 * w])

    yield "PyTorch", Peer(run, turns=5)


def lstm(case: Case) -> Made:
    def loss(main: Any, extra: Any, state: Any, text: Any) -> Any:
        length, b = text.shape
        hidden, cell = list(state[0::2]), list(state[1::2])
        total = torch.zeros((), dtype=torch.float64)
        for t in range(length - 1):
            z = text[t] * extra[0]
            for k in range(len(hidden)):
                w, bias = main[2 * k].reshape(4, b), main[2 * k + 1].reshape(4, b)
                forget, give = torch.sigmoid(z * w[0] + bias[0]), torch.sigmoid(z * w[2] + bias[2])
                take, change = (
                    torch.sigmoid(hidden[k] * w[1] + bias[1]),
                    torch.tanh(hidden[k] * w[3] + bias[3]),
                )
                cell[k] = cell[k] * forget + take * change
                z = hidden[k] = give * torch.tanh(cell[k])
            y = z * extra[1] + extra[2]
            total = total + text[t + 1] @ (y - torch.log(torch.sum(torch.exp(y)) + 2))
        return -total / ((length - 1) * b)

    yield "PyTorch", peer(loss, case, turns=2)


PEERS = {f.__name__: f for f in (lotka_volterra, newton, asian, logistic, mlp, gmm, ba, lstm)} | {
    "heat": _heat,
    "reaction": _heat,
}
