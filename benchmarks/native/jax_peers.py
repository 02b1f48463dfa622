"""The workloads as a user of JAX writes them: `lax.scan` over steps, arrays over everything else; jit, float64.

Where a loop is long, a second form wraps the body in `jax.checkpoint`, so that it is computed again on the way back.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, logsumexp

from benchmarks.native.case import Case, Peer, flat
from benchmarks.native.problems import gathered

jax.config.update("jax_enable_x64", True)

Made = Iterator[tuple[str, Peer]]
FORMS: dict[str, Callable[..., Any]] = {"JAX": lambda body: body, "JAX, checkpointed": jax.checkpoint}


def peer(f: Callable[..., Any], case: Case, args: tuple[Any, ...] | None = None, **options: Any) -> Peer:
    """A peer: value and gradient of `f`, compiled."""
    both = jax.jit(jax.value_and_grad(f, case.argnums))
    given = [jnp.asarray(x) if isinstance(x, np.ndarray) else x for x in args or case.args]

    def run() -> tuple[Any, np.ndarray]:
        value, gradient = jax.block_until_ready(both(*given))
        return float(value), flat(gradient)

    return Peer(run, **options)


def lotka_volterra(case: Case) -> Made:
    n = case.args[3]

    def slope(p: Any, x: Any, y: Any) -> Any:
        return p[0] * x - p[1] * x * y, p[3] * x * y - p[2] * y

    for label, form in FORMS.items():

        def final(p: Any, y0: Any, h: Any, _: Any, form: Any = form) -> Any:
            def body(state: Any, _: Any) -> Any:
                x, y = state
                a1, b1 = slope(p, x, y)
                a2, b2 = slope(p, x + h / 2 * a1, y + h / 2 * b1)
                a3, b3 = slope(p, x + h / 2 * a2, y + h / 2 * b2)
                a4, b4 = slope(p, x + h * a3, y + h * b3)
                return (
                    x + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4),
                    y + h / 6 * (b1 + 2 * b2 + 2 * b3 + b4),
                ), None

            (x, y), _ = jax.lax.scan(form(body), (y0[0], y0[1]), length=n)
            return x + y

        yield label, peer(final, case, turns=3 if label == "JAX" else 1_000)


def newton(case: Case) -> Made:
    n = case.args[1]
    most = 12  # iterations of the slowest root; `run` compares values, so one that is cut short is noticed

    def outer(p: Any, root: Callable[..., Any]) -> Any:
        def body(state: Any, k: Any) -> Any:
            s, total = state
            y = root(p, s)
            return (p[1] * y + p[2] * jnp.sin(0.01 * k) + 1.0, total + y * y), None

        (_, total), _ = jax.lax.scan(jax.checkpoint(body), (p[3], 0.0), jnp.arange(n))
        return total / n

    def residual(p: Any, s: Any, y: Any) -> Any:
        return y * y * y + p[0] * y - s

    def better(p: Any, s: Any, y: Any) -> Any:
        return y - residual(p, s, y) / (3.0 * y * y + p[0])

    def masked(p: Any, s: Any) -> Any:
        y = 1.0
        for _ in range(most):
            y = jnp.where(jnp.abs(residual(p, s, y)) > 1e-10, better(p, s, y), y)
        return y

    def looped(p: Any, s: Any) -> Any:
        return jax.lax.while_loop(
            lambda y: jnp.abs(residual(p, s, y)) > 1e-10, lambda y: better(p, s, y), jnp.ones(())
        )

    yield (
        "JAX, masked",
        peer(lambda p, _: outer(p, masked), case, turns=3, note="`while` has no reverse mode"),
    )
    both = jax.jit(lambda p: (outer(p, looped), jax.jacfwd(outer)(p, looped)))
    p = jnp.asarray(case.args[0])

    def forward() -> tuple[Any, np.ndarray]:
        value, gradient = jax.block_until_ready(both(p))
        return float(value), np.asarray(gradient)

    yield "JAX, forward mode", Peer(forward, turns=3)


def _heat(case: Case) -> Made:
    steps = case.args[-1]
    for label, form in FORMS.items():

        def energy(u0: Any, c: Any, *k: Any, form: Any = form) -> Any:
            def body(u: Any, _: Any) -> Any:
                inner = u[1:-1, 1:-1]
                change = c * (u[1:-1, :-2] + u[1:-1, 2:] + u[:-2, 1:-1] + u[2:, 1:-1] - 4.0 * inner)
                if len(k) == 2:
                    change += k[0] * inner * (1.0 - inner)
                return u + jnp.pad(change, 1), None  # twice as fast as u.at[...].set

            u, _ = jax.lax.scan(form(body), u0, length=steps)
            return 0.5 * jnp.sum(u * u)

        yield label, peer(energy, case)


def asian(case: Case) -> Made:
    for label, form in FORMS.items():

        def price(theta: Any, z: Any, form: Any = form) -> Any:
            n, m = z.shape
            dt = theta[4] / m
            drift, spread = (theta[2] - 0.5 * theta[3] ** 2) * dt, theta[3] * jnp.sqrt(dt)

            def body(state: Any, z_t: Any) -> Any:
                price, mean = state
                price = price * jnp.exp(drift + spread * z_t)
                return (price, mean + price), None

            start = (jnp.full(n, 1.0) * theta[0], jnp.zeros(n))
            (_, mean), _ = jax.lax.scan(form(body), start, z.T)
            return jnp.exp(-theta[2] * theta[4]) * jnp.mean(jnp.maximum(mean / m - theta[1], 0.0))

        yield label, peer(price, case)


def logistic(case: Case) -> Made:
    def loss(w: Any, data: Any, labels: Any) -> Any:
        s = data @ w
        return jnp.mean(jnp.logaddexp(0.0, s) - labels * s)

    yield "JAX", peer(loss, case)


def mlp(case: Case) -> Made:
    def loss(w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, x: Any, labels: Any) -> Any:
        h = jax.nn.relu(x @ w1 + b1)
        z = jax.nn.relu(h @ w2 + b2) @ w3 + b3
        return jnp.mean(logsumexp(z, axis=1) - jnp.take_along_axis(z, labels[:, None], 1)[:, 0])

    yield "JAX", peer(loss, case)


def gmm(case: Case) -> Made:
    d = case.args[1].shape[1]
    columns, rows = np.triu_indices(d, 1)

    def likelihood(alphas: Any, means: Any, logs: Any, lowers: Any, points: Any, gamma: Any, m: Any) -> Any:
        k, n = alphas.size, points.shape[0]
        factors = jax.vmap(jnp.diag)(jnp.exp(logs)).at[:, rows, columns].set(lowers)
        y = jnp.einsum("kij,nkj->nki", factors, points[:, None, :] - means)
        terms = alphas + jnp.sum(logs, axis=1) - 0.5 * jnp.sum(y * y, axis=2)
        w = d + m + 1
        log_gamma = 0.25 * d * (d - 1) * math.log(math.pi) + jnp.sum(gammaln(0.5 * (w - jnp.arange(d))))
        squares = jnp.sum(jnp.exp(logs) ** 2) + jnp.sum(lowers**2)
        prior = (
            k * (w * d * jnp.log(gamma / math.sqrt(2.0)) - log_gamma)
            - 0.5 * gamma**2 * squares
            + m * jnp.sum(logs)
        )
        normal = n * logsumexp(alphas) + 0.5 * n * d * math.log(2.0 * math.pi)
        return jnp.sum(logsumexp(terms, axis=1)) - normal + prior

    yield "JAX", peer(likelihood, case)


def projected(x: Any) -> Any:
    """The place where a camera sees a point; x: its fifteen numbers."""
    axis, y = x[:3], x[11:14] - x[3:6]
    square = axis @ axis
    angle = jnp.sqrt(square)
    turned = jnp.cross(axis, y)
    y = y + jnp.sin(angle) / angle * turned + (1 - jnp.cos(angle)) / square * jnp.cross(axis, turned)
    uv = y[:2] / y[2]
    s = uv @ uv
    return uv * (x[6] * (1 + x[9] * s + x[10] * s * s)) + x[7:9]


def ba(case: Case) -> Made:
    inputs, features = map(jnp.asarray, (gathered(case.args), case.args[3]))

    def distances(x: Any, feature: Any) -> Any:
        return x[14] * (projected(x) - feature)

    def everything(inputs: Any, features: Any) -> Any:
        values = jax.vmap(distances)(inputs, features)
        rows = jax.vmap(jax.jacrev(distances))(inputs, features)
        w = inputs[:, 14]
        both = jnp.concatenate([values.ravel(), 1 - w * w]), jnp.concatenate([rows.ravel(), -2 * w])
        return both

    both = jax.jit(everything)

    def run() -> tuple[Any, np.ndarray]:
        value, entries = jax.block_until_ready(both(inputs, features))
        return np.asarray(value), np.asarray(entries)

    yield "JAX", Peer(run)


def lstm(case: Case) -> Made:
    for label, form in FORMS.items():

        def loss(main: Any, extra: Any, state: Any, text: Any, form: Any = form) -> Any:
            length, b = text.shape
            layers = state.shape[0] // 2

            def body(carried: Any, pair: Any) -> Any:
                now, following = pair
                hidden, cell, new_hidden, new_cell = *carried, [], []
                z = now * extra[0]
                for k in range(layers):
                    w, bias = main[2 * k].reshape(4, b), main[2 * k + 1].reshape(4, b)
                    forget, give = jax.nn.sigmoid(z * w[0] + bias[0]), jax.nn.sigmoid(z * w[2] + bias[2])
                    take, change = (
                        jax.nn.sigmoid(hidden[k] * w[1] + bias[1]),
                        jnp.tanh(hidden[k] * w[3] + bias[3]),
                    )
                    new_cell.append(cell[k] * forget + take * change)
                    z = give * jnp.tanh(new_cell[-1])
                    new_hidden.append(z)
                y = z * extra[1] + extra[2]
                return (new_hidden, new_cell), following @ (y - jnp.log(jnp.sum(jnp.exp(y)) + 2))

            start = list(state[0::2]), list(state[1::2])
            _, terms = jax.lax.scan(form(body), start, (text[:-1], text[1:]))
            return -jnp.sum(terms) / ((length - 1) * b)

        yield label, peer(loss, case)


PEERS = {f.__name__: f for f in (lotka_volterra, newton, asian, logistic, mlp, gmm, ba, lstm)} | {
    "heat": _heat,
    "reaction": _heat,
}
