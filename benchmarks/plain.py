"""Times of the plain tier beside its peers, taken side by side in one run.

    python benchmarks/plain.py                  # everything
    python benchmarks/plain.py sine mlp --repeat 9
    python benchmarks/plain.py --check          # exit status 1 when a target is missed
    python benchmarks/plain.py --json out.json

One thread, one process. Machines are noisy: the candidates of a workload take turns, the minimum of the turns
counts, and only ratios within one run mean something. PyTorch and autograd are left out where they are not installed.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"  # before NumPy and PyTorch load their BLAS

import argparse
import dataclasses
import dis
import json
import math
import platform
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import plaingrad

try:
    import torch
except ImportError:
    torch = None
else:
    torch.set_num_threads(1)

try:
    import autograd
    import autograd.numpy as autograd_numpy
except ImportError:
    autograd = autograd_numpy = None

OURS = "plaingrad"


@dataclasses.dataclass
class Figure:
    """One measured number; `target` says which side of which limit it should be on."""

    workload: str
    name: str
    value: float
    unit: str
    at_most: float | None = None
    at_least: float | None = None

    @property
    def target(self) -> str:
        if self.at_most is not None:
            return f"<= {self.at_most:g}"
        return f">= {self.at_least:g}" if self.at_least is not None else ""

    @property
    def is_missed(self) -> bool:
        too_high = self.at_most is not None and not self.value <= self.at_most
        return too_high or (self.at_least is not None and not self.value >= self.at_least)


def best_times(candidates: dict[str, Callable[[], Any]], repeat: int) -> dict[str, float]:
    """Seconds of the fastest of `repeat` runs of each candidate; the candidates take turns."""
    times = dict.fromkeys(candidates, math.inf)
    for run in candidates.values():
        run()
    for _ in range(repeat):
        for name, run in candidates.items():
            begun = time.process_time()  # a neighbour on the machine does not count
            run()
            times[name] = min(times[name], time.process_time() - begun)
    return times


def assert_close(ours: Any, expected: Any, workload: str) -> None:
    """A fast wrong gradient is worth nothing."""
    np.testing.assert_allclose(ours, expected, rtol=1e-9, err_msg=workload)


# --- a chain of scalar operations ------------------------------------------------------------------------------


def sine_loop(x, n):
    """Three operations an iteration."""
    for _ in range(n):
        x = math.sin(x) * 1.01 + 0.1
    return x


def sine_loop_by_hand(x, n):
    """The value and the derivative of `sine_loop`, the reverse pass written by hand."""
    tape = []
    for _ in range(n):
        tape.append(x)
        x = math.sin(x) * 1.01 + 0.1
    x_bar = 1.0
    for x_before in reversed(tape):
        x_bar = x_bar * 1.01 * math.cos(x_before)
    return x, x_bar


def sine_loop_torch(x, n):
    x = leaf = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    for _ in range(n):
        x = torch.sin(x) * 1.01 + 0.1
    x.backward()
    return x.item(), leaf.grad.item()


def sine_loop_autograd(x, n):
    for _ in range(n):
        x = autograd_numpy.sin(x) * 1.01 + 0.1
    return x


def sine(repeat: int) -> Iterator[Figure]:
    """The sine loop of three operations an iteration, a scalar at a time."""
    n, x = 3000, 0.7
    operations = 3 * n
    ours = plaingrad.value_and_grad(sine_loop)
    assert_close(ours(x, 60), sine_loop_by_hand(x, 60), "sine")  # a long chain's derivative underflows
    candidates = {
        "Python, value only": lambda: sine_loop(x, n),
        "Python reverse by hand": lambda: sine_loop_by_hand(x, n),
        OURS: lambda: ours(x, n),
    }
    if torch is not None:
        candidates["PyTorch"] = lambda: sine_loop_torch(x, n)
    if autograd is not None:
        theirs = autograd.value_and_grad(sine_loop_autograd)
        candidates["autograd"] = lambda: theirs(x, n)
    times = best_times(candidates, repeat)
    for name, seconds in times.items():
        limit = 0.3 if name == OURS else None
        yield Figure("sine loop", name, 1e6 * seconds / operations, "us/operation", at_most=limit)
    for name, least in (("PyTorch", 10), ("autograd", 25)):
        if name in times:
            yield Figure("sine loop", f"{name} / {OURS}", times[name] / times[OURS], "x", at_least=least)


def lotka_volterra(a, b, c, d, x, y, h, steps):
    """x + y after so many Runge-Kutta steps of fourth order."""
    half, sixth = h / 2, h / 6
    for _ in range(steps):
        p1 = a * x - b * x * y
        q1 = d * x * y - c * y
        u = x + half * p1
        v = y + half * q1
        p2 = a * u - b * u * v
        q2 = d * u * v - c * v
        u = x + half * p2
        v = y + half * q2
        p3 = a * u - b * u * v
        q3 = d * u * v - c * v
        u = x + h * p3
        v = y + h * q3
        p4 = a * u - b * u * v
        q4 = d * u * v - c * v
        x = x + sixth * (p1 + 2.0 * (p2 + p3) + p4)
        y = y + sixth * (q1 + 2.0 * (q2 + q3) + q4)
    return x + y


def rk4(repeat: int) -> Iterator[Figure]:
    """Lotka-Volterra by Runge-Kutta: a long straight line of arithmetic in a loop."""
    steps, arguments = 100, (0.55, 0.028, 0.8, 0.024, 30.0, 4.0, 0.01)
    names = [one.opname for one in dis.get_instructions(lotka_volterra)]
    operations = names.count("BINARY_OP") * steps
    argnums = (0, 1, 2, 3, 4, 5)
    ours = plaingrad.value_and_grad(lotka_volterra, argnums)

    def run_torch():
        leaves = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in arguments[:6]]
        lotka_volterra(*leaves, arguments[6], steps).backward()
        return [leaf.grad.item() for leaf in leaves]

    candidates = {
        "Python, value only": lambda: lotka_volterra(*arguments, steps),
        OURS: lambda: ours(*arguments, steps),
    }
    if torch is not None:
        assert_close(ours(*arguments, steps)[1], run_torch(), "rk4")
        candidates["PyTorch"] = run_torch
    if autograd is not None:
        theirs = autograd.value_and_grad(lotka_volterra, argnums)
        candidates["autograd"] = lambda: theirs(*arguments, steps)
    times = best_times(candidates, repeat)
    for name, seconds in times.items():
        limit = 0.1 if name == OURS else None
        yield Figure("RK4 step", name, 1e6 * seconds / operations, "us/operation", at_most=limit)
    for name in ("PyTorch", "autograd"):
        if name in times:
            yield Figure("RK4 step", f"{name} / {OURS}", times[name] / times[OURS], "x")


def inactive_work(x, n):
    """A loop on numbers that do not depend on x, then one operation that does."""
    y = 0.3
    for _ in range(n):
        y = math.sin(y) * 1.01 + 0.1
    return x * y


def inactive(repeat: int) -> Iterator[Figure]:
    """What an operation costs that has nothing to do with the differentiated argument."""
    n = 5000
    ours = plaingrad.grad(inactive_work)
    candidates = {"Python, value only": lambda: inactive_work(2.0, n), OURS: lambda: ours(2.0, n)}
    for name, seconds in best_times(candidates, repeat).items():
        limit = 0.15 if name == OURS else None
        yield Figure("inactive operations", name, 1e6 * seconds / (3 * n), "us/operation", at_most=limit)


# --- arrays ----------------------------------------------------------------------------------------------------


def mlp_loss(layers, images, labels, np=np):
    """The mean cross-entropy of a softmax over two ReLU layers and a linear one."""
    (w1, b1), (w2, b2), (w3, b3) = layers
    h1 = np.maximum(images @ w1 + b1, 0.0)
    h2 = np.maximum(h1 @ w2 + b2, 0.0)
    z = h2 @ w3 + b3
    z = z - np.max(z, axis=1, keepdims=True)
    log_p = z - np.log(np.sum(np.exp(z), axis=1, keepdims=True))
    return -np.mean(log_p[np.arange(len(labels)), labels])


def mlp_by_hand(layers, images, labels):
    """The value and gradient of `mlp_loss`, written by hand as one would in NumPy."""
    (w1, b1), (w2, b2), (w3, b3) = layers
    count = len(labels)
    h1 = np.maximum(images @ w1 + b1, 0.0)
    h2 = np.maximum(h1 @ w2 + b2, 0.0)
    z = h2 @ w3 + b3
    z = z - np.max(z, axis=1, keepdims=True)
    exp_z = np.exp(z)
    sums = np.sum(exp_z, axis=1, keepdims=True)
    log_p = z - np.log(sums)
    loss = -np.mean(log_p[np.arange(count), labels])
    z_bar = exp_z / sums
    z_bar[np.arange(count), labels] -= 1.0
    z_bar /= count
    h2_bar = z_bar @ w3.T
    h2_bar *= h2 > 0
    h1_bar = h2_bar @ w2.T
    h1_bar *= h1 > 0
    return loss, [
        (images.T @ h1_bar, h1_bar.sum(0)),
        (h1.T @ h2_bar, h2_bar.sum(0)),
        (h2.T @ z_bar, z_bar.sum(0)),
    ]


def mlp(repeat: int) -> Iterator[Figure]:
    """A multilayer perceptron 784-256-128-10 on a batch of 256: matrix products and a few elementwise passes."""
    random = np.random.default_rng(0)
    sizes = (784, 256, 128, 10)
    layers = [
        (random.normal(size=(m, n)) / math.sqrt(m), random.normal(size=n) * 0.1)
        for m, n in zip(sizes, sizes[1:])
    ]
    images, labels = random.normal(size=(256, 784)), random.integers(0, 10, 256)
    ours = plaingrad.value_and_grad(mlp_loss)
    for mine, expected in zip(ours(layers, images, labels)[1], mlp_by_hand(layers, images, labels)[1]):
        for one, other in zip(mine, expected):
            np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-12)
    candidates = {
        "NumPy, value only": lambda: mlp_loss(layers, images, labels),
        "NumPy adjoint by hand": lambda: mlp_by_hand(layers, images, labels),
        OURS: lambda: ours(layers, images, labels),
    }
    if torch is not None:
        from torch.nn.functional import cross_entropy

        weights = [[torch.tensor(v, requires_grad=True) for v in layer] for layer in layers]
        images_torch, labels_torch = torch.tensor(images), torch.tensor(labels)

        def run_torch():
            h = images_torch
            for w, b in weights[:-1]:
                h = torch.relu(h @ w + b)
            loss = cross_entropy(h @ weights[-1][0] + weights[-1][1], labels_torch)
            return torch.autograd.grad(loss, [v for layer in weights for v in layer])

        candidates["PyTorch"] = run_torch
    if autograd is not None:
        theirs = autograd.value_and_grad(lambda ls: mlp_loss(ls, images, labels, autograd_numpy))
        candidates["autograd"] = lambda: theirs(layers)
    times = best_times(candidates, 12 * repeat)  # memory traffic of neighbours disturbs it most
    for name, seconds in times.items():
        yield Figure("MLP gradient", name, 1e3 * seconds, "ms")
    by_hand = times["NumPy adjoint by hand"]
    yield Figure("MLP gradient", f"{OURS} / by hand", times[OURS] / by_hand, "x", at_most=1.15)


def write_elements(x, n):
    """Fill an array one element at a time, each from the one before."""
    a = np.zeros(n)
    a[0] = x
    for i in range(1, n):
        a[i] = a[i - 1] * 0.999 + 0.001
    return a[n - 1]


def elements(repeat: int) -> Iterator[Figure]:
    """A loop that reads and writes an array element by element: the cost of an element must not grow with n."""
    ours = plaingrad.grad(write_elements)
    costs = {}
    for n in (1_000, 10_000, 100_000):
        assert_close(ours(2.0, n), 0.999 ** (n - 1), "elements")
        costs[n] = best_times({OURS: lambda n=n: ours(2.0, n)}, repeat if n < 100_000 else 1)[OURS] / n
        yield Figure("array by element", f"{OURS}, n = {n:,}", 1e6 * costs[n], "us/element")
    growth = costs[100_000] / costs[1_000]
    yield Figure("array by element", "n = 100,000 / n = 1,000", growth, "x", at_most=2.0)


def small_array_work(a, b, n):
    """Five operations an iteration on short arrays."""
    for _ in range(n):
        a = np.sin(a) * b + 0.5 * a - b
    return a.sum()


def small(repeat: int) -> Iterator[Figure]:
    """What is added to an operation on arrays of 10 elements."""
    n, a, b = 400, np.linspace(0.1, 1.0, 10), np.linspace(0.2, 0.4, 10)
    operations = 5 * n
    ours = plaingrad.value_and_grad(small_array_work)
    candidates = {"NumPy, value only": lambda: small_array_work(a, b, n), OURS: lambda: ours(a, b, n)}

    def run_torch():
        leaf, other = torch.tensor(a, requires_grad=True), torch.tensor(b)
        y = leaf
        for _ in range(n):
            y = torch.sin(y) * other + 0.5 * y - other
        y.sum().backward()

    if torch is not None:
        candidates["PyTorch"] = run_torch
    times = best_times(candidates, repeat)
    for name, seconds in times.items():
        yield Figure("arrays of 10", name, 1e6 * seconds / operations, "us/operation")
    overhead = 1e6 * (times[OURS] - times["NumPy, value only"]) / operations
    yield Figure("arrays of 10", "added by plaingrad", overhead, "us/operation", at_most=2.0)


def call(repeat: int) -> Iterator[Figure]:
    """The least that a call of `grad` costs."""
    count = 200
    derivative = plaingrad.grad(lambda x: x * x)

    def run():
        for _ in range(count):
            derivative(3.0)

    yield Figure("trivial call", OURS, 1e6 * best_times({OURS: run}, repeat)[OURS] / count, "us")


# --- memory ----------------------------------------------------------------------------------------------------


def memory(repeat: int) -> Iterator[Figure]:
    """The peak of what Python allocates through a gradient of half a million operations."""
    n = 170_000
    derivative = plaingrad.grad(sine_loop)
    derivative(0.7, 1000)
    tracemalloc.start()
    try:
        derivative(0.7, n)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    yield Figure("memory", OURS, peak / (3 * n), "bytes/operation", at_most=150)


# --- the report ------------------------------------------------------------------------------------------------

WORKLOADS = {f.__name__: f for f in (sine, rk4, inactive, mlp, elements, small, call, memory)}


def report(figures: Iterator[Figure]) -> None:
    """Print figures as they come, a line each."""
    workload = None
    for figure in figures:
        if figure.workload != workload:
            workload = figure.workload
            print(f"\n{workload}")
        verdict = f"   {figure.target:<8} {'MISSED' if figure.is_missed else 'ok'}" if figure.target else ""
        print(f"  {figure.name:<34}{figure.value:>12.3f} {figure.unit:<16}{verdict}", flush=True)


def measure(names: list[str], repeat: int, figures: list[Figure], failures: list[str]) -> Iterator[Figure]:
    """The figures of the named workloads; one that fails is noted and the rest go on."""
    for name in names:
        try:
            for figure in WORKLOADS[name](repeat):
                figures.append(figure)
                yield figure
        except Exception as error:
            failures.append(name)
            print(f"\n{name} failed: {type(error).__name__}: {error}", file=sys.stderr)


def main(arguments: list[str] | None = None) -> int:
    """Run the workloads that were asked for; returns the exit status."""
    parser = argparse.ArgumentParser(description="Time the plain tier beside its peers.")
    parser.add_argument("workloads", nargs="*", help=f"which ones: {', '.join(WORKLOADS)}; default: all")
    parser.add_argument("--repeat", type=int, default=5, help="turns of each candidate (default 5)")
    parser.add_argument("--check", action="store_true", help="exit with status 1 when a target is missed")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE as well")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.workloads if name not in WORKLOADS]
    if unknown:
        parser.error(f"no workload named {', '.join(unknown)}; there are {', '.join(WORKLOADS)}")
    peers = [f"NumPy {np.__version__}"]
    peers += [f"PyTorch {torch.__version__}"] if torch is not None else ["no PyTorch"]
    peers += ["autograd"] if autograd is not None else ["no autograd"]
    print(f"CPython {platform.python_version()}, {', '.join(peers)}; one thread, best of {options.repeat}")
    figures, failures = [], []
    report(measure(options.workloads or list(WORKLOADS), options.repeat, figures, failures))
    if options.json:
        with open(options.json, "w") as file:
            json.dump([dataclasses.asdict(figure) for figure in figures], file, indent=1)
    missed = [figure for figure in figures if figure.is_missed]
    if missed:
        print(f"\n{len(missed)} of the targets missed.")
    return 1 if failures or (options.check and missed) else 0


if __name__ == "__main__":
    sys.exit(main())
