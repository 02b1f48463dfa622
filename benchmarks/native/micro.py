"""The micro-workloads: their primals in Python, and how their C adjoints in `../shared/bench/micro.c` are called."""

import ctypes
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.native.case import Case, Run, address


def lotka_volterra_primal(p, y0, h, n):
    """x + y after n Runge-Kutta steps of fourth order."""
    x, y = y0[0], y0[1]
    for _ in range(n):
        a1 = p[0] * x - p[1] * x * y
        b1 = p[3] * x * y - p[2] * y
        u, v = x + h / 2 * a1, y + h / 2 * b1
        a2 = p[0] * u - p[1] * u * v
        b2 = p[3] * u * v - p[2] * v
        u, v = x + h / 2 * a2, y + h / 2 * b2
        a3 = p[0] * u - p[1] * u * v
        b3 = p[3] * u * v - p[2] * v
        u, v = x + h * a3, y + h * b3
        a4 = p[0] * u - p[1] * u * v
        b4 = p[3] * u * v - p[2] * v
        x, y = x + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4), y + h / 6 * (b1 + 2 * b2 + 2 * b3 + b4)
    return x + y


def lotka_volterra() -> Case:
    """Lotka-Volterra by Runge-Kutta, 1e5 steps: derivatives in four parameters and two initial values."""
    p, y0, n, h = np.array([1.5, 1.0, 3.0, 1.0]), np.array([1.0, 1.0]), 100_000, 1e-4

    def in_c(library: Any) -> dict[str, Run]:
        out, tape = np.empty(6), np.empty(2 * n)
        library.lv_grad.restype = ctypes.c_double

        def run() -> Any:
            arrays = map(address, (p, y0, out, tape))
            return library.lv_grad(n, ctypes.c_double(h), *arrays), out

        return {"C adjoint": run}

    def objective(library: Any) -> Run:
        library.lv.restype = ctypes.c_double
        return lambda: library.lv(n, ctypes.c_double(h), address(p), address(y0))

    title = "Lotka-Volterra, Runge-Kutta, 1e5 steps"
    args = (p, y0, h, n)
    return Case(title, lotka_volterra_primal, args, (0, 1), 0.95, None, 3.0, in_c, objective)


def newton_primal(p, n):
    """The mean square of roots, each found by Newton's method, that depend on one another."""
    s, total = p[3], 0.0
    for k in range(n):
        y = 1.0
        while True:
            f = y * y * y + p[0] * y - s
            if not abs(f) > 1e-10:
                break
            y -= f / (3.0 * y * y + p[0])
        total += y * y
        s = p[1] * y + p[2] * math.sin(0.01 * k) + 1.0
    return total / n


def newton() -> Case:
    """A Newton `while` inside a loop of 1e5."""
    p, n = np.array([1.3, 0.8, 2.0, 5.0]), 100_000

    def in_c(library: Any) -> dict[str, Run]:
        out, counts, states = np.empty(4), np.empty(n, np.int32), np.empty(n)
        tape, room = ctypes.c_void_p(), ctypes.c_long()
        library.nw_grad.restype = ctypes.c_double

        def run() -> Any:
            memory = (ctypes.byref(tape), ctypes.byref(room), address(counts), address(states))
            return library.nw_grad(n, address(p), address(out), *memory), out

        return {"C adjoint": run}

    def objective(library: Any) -> Run:
        library.nw.restype = ctypes.c_double
        return lambda: library.nw(n, address(p))

    title = "Newton's method inside a loop of 1e5"
    return Case(title, newton_primal, (p, n), (0,), 1.05, None, 3.0, in_c, objective)


def heat_primal(u0, c, steps):
    """Half the sum of squares after so many steps of the heat equation."""
    u = u0.copy()
    for _ in range(steps):
        v = u.copy()
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                v[i, j] = u[i, j] + c * (
                    u[i, j - 1] + u[i, j + 1] + u[i - 1, j] + u[i + 1, j] - 4.0 * u[i, j]
                )
        u = v
    total = 0.0
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            total += u[i, j] * u[i, j]
    return 0.5 * total


def reaction_primal(u0, c, k, steps):
    """The same with a logistic reaction of rate k."""
    u = u0.copy()
    for _ in range(steps):
        v = u.copy()
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                spread = c * (u[i, j - 1] + u[i, j + 1] + u[i - 1, j] + u[i + 1, j] - 4.0 * u[i, j])
                v[i, j] = u[i, j] + spread + k * u[i, j] * (1.0 - u[i, j])
        u = v
    total = 0.0
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            total += u[i, j] * u[i, j]
    return 0.5 * total


def heat_in_c(
    u0: np.ndarray, c: float, k: float, steps: int
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The C adjoint and the C objective of both heat equations."""
    n = u0.shape[0]
    numbers = (n, steps, ctypes.c_double(c), ctypes.c_double(k))

    def in_c(library: Any) -> dict[str, Run]:
        out, memory = np.empty_like(u0), np.empty(((steps + 1 if k else 2) + 2) * u0.size)
        library.heat_grad.restype = ctypes.c_double

        def run() -> Any:
            return library.heat_grad(*numbers, address(u0), address(out), address(memory)), out

        return {"C adjoint": run}

    def objective(library: Any) -> Run:
        memory = np.empty(2 * u0.size)
        library.heat.restype = ctypes.c_double
        return lambda: library.heat(*numbers, address(u0), address(memory))

    return in_c, objective


def heat() -> Case:
    """A heat stencil, 256x256, 200 steps."""
    u0 = np.random.default_rng(0).random((256, 256))
    title = "heat equation, 256x256, 200 steps"
    in_c = heat_in_c(u0, 0.2, 0.0, 200)
    return Case(title, heat_primal, (u0, 0.2, 200), (0,), 1.2, None, 3.0, *in_c)


def reaction() -> Case:
    """Heat and reaction, 256x256, 200 steps."""
    u0 = np.random.default_rng(0).random((256, 256))
    title = "heat and reaction, 256x256, 200 steps"
    in_c = heat_in_c(u0, 0.2, 0.05, 200)
    return Case(title, reaction_primal, (u0, 0.2, 0.05, 200), (0,), 1.2, None, 3.0, *in_c)


def heat_with_k() -> Case:
    """The heat equation by the program that knows a reaction, whose rate is given as 0.0."""
    u0 = np.random.default_rng(0).random((256, 256))
    title = "the same, rate 0.0 passed"
    in_c = heat_in_c(u0, 0.2, 0.0, 200)
    return Case(title, reaction_primal, (u0, 0.2, 0.0, 200), (0,), 1.2, None, 3.0, *in_c)


def logistic_primal(w, data, labels):
    """The mean of softplus(x.w) - y x.w."""
    total = 0.0
    for i in range(data.shape[0]):
        s = 0.0
        for j in range(data.shape[1]):
            s += data[i, j] * w[j]
        total += (s if s > 0.0 else 0.0) + math.log1p(math.exp(-abs(s))) - labels[i] * s
    return total / data.shape[0]


def logistic() -> Case:
    """Logistic regression, 1e5 points of 100 features."""
    random = np.random.default_rng(0)
    data, w = random.normal(size=(100_000, 100)), 0.1 * random.normal(size=100)
    labels = (random.random(100_000) < 1.0 / (1.0 + np.exp(-data @ w))).astype(float)

    def in_c(library: Any) -> dict[str, Run]:
        out = np.empty(100)
        library.lr_grad.restype = ctypes.c_double

        def run() -> Any:
            return library.lr_grad(*data.shape, *map(address, (data, labels, w, out))), out

        return {"C adjoint": run}

    def objective(library: Any) -> Run:
        library.lr.restype = ctypes.c_double
        return lambda: library.lr(*data.shape, *map(address, (data, labels, w)))

    title = "logistic regression, 1e5 points of 100 features"
    return Case(title, logistic_primal, (w, data, labels), (0,), 0.5, None, None, in_c, objective)


def asian_primal(theta, z):
    """The price of an Asian call by Monte Carlo; theta: spot, strike, rate, volatility, maturity."""
    n, m = z.shape
    dt = theta[4] / m
    drift = (theta[2] - 0.5 * theta[3] * theta[3]) * dt
    spread = theta[3] * math.sqrt(dt)
    total = 0.0
    for i in range(n):
        price, mean = theta[0], 0.0
        for t in range(m):
            price *= math.exp(drift + spread * z[i, t])
            mean += price
        mean = mean / m - theta[1]
        if mean > 0.0:
            total += mean
    return math.exp(-theta[2] * theta[4]) * total / n


def asian() -> Case:
    """An Asian option by Monte Carlo, 100,032 paths of 50 steps."""
    theta = np.array([100.0, 100.0, 0.03, 0.2, 1.0])
    z = np.random.default_rng(0).normal(size=(100_032, 50))

    def in_c(library: Any) -> dict[str, Run]:
        out, tape = np.empty(5), np.empty(2 * 50 * 64)
        turned = np.ascontiguousarray(z.T)
        library.mc_grad.restype = library.mcb_grad.restype = ctypes.c_double

        def run(function: Any, normals: np.ndarray) -> Any:
            arrays = map(address, (theta, normals, out, tape))
            return function(*z.shape, *arrays), out

        # the target of BASELINES is a multiple of the first
        return {
            "C adjoint": lambda: run(library.mc_grad, z),
            "C adjoint, in blocks": lambda: run(library.mcb_grad, turned),
        }

    def objective(library: Any) -> Run:
        library.mc.restype = ctypes.c_double
        return lambda: library.mc(*z.shape, address(theta), address(z))

    title = "Asian option by Monte Carlo, 1e5 paths of 50 steps"
    return Case(title, asian_primal, (theta, z), (0,), 0.5, None, 3.0, in_c, objective)
