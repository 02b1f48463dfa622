"""Jacobians, Hessians and products with them: many directions at once beside one at a time, in one run.

    python -m benchmarks.jacobian
    python -m benchmarks.jacobian --repeat 5 --check

One thread, one process; the candidates of a workload take turns, the minimum of the turns counts.
"""

import argparse
import math
import sys
from collections.abc import Iterator

import numpy as np

import plaingrad
from benchmarks.plain import Figure, best_times, report

INPUTS = 100


def neighbours(x):
    """100 numbers out of 100, in scalar code."""
    return [math.sin(x[i]) * x[i - 1] + x[i] * x[i - 2] for i in range(len(x))]


def layers(w, x):
    """100 numbers out of 100, in array code."""
    for _ in range(5):
        x = np.tanh(w @ x)
    return x


def rosenbrock(x):
    """One number out of 100, in scalar code."""
    total = 0.0
    for i in range(len(x) - 1):
        a, b = x[i + 1] - x[i] * x[i], 1.0 - x[i]
        total = total + 100.0 * a * a + b * b
    return total


def rosenbrock_of_arrays(x):
    """One number out of 100, in array code."""
    a, b = x[1:] - x[:-1] ** 2, 1.0 - x[:-1]
    return np.sum(100.0 * a * a + b * b)


def one_at_a_time(f, x):
    """The Jacobian by one `jvp` for each input."""
    columns = []
    for k in range(INPUTS):
        if isinstance(x, list):
            x_dot = [0.0] * INPUTS
            x_dot[k] = 1.0
        else:
            x_dot = np.zeros(INPUTS)
            x_dot[k] = 1.0
        columns.append(plaingrad.jvp(f, (x,), (x_dot,))[1])
    return np.array(columns).T


def jacobian(repeat: int) -> Iterator[Figure]:
    """All directions pushed together, one at a time, and pulled back one output at a time."""
    x = np.linspace(0.1, 1.0, INPUTS)
    w = np.random.default_rng(0).normal(size=(INPUTS, INPUTS)) / math.sqrt(INPUTS)
    for name, f, at in (("scalar code", neighbours, x.tolist()), ("array code", lambda x: layers(w, x), x)):
        together = plaingrad.jacobian(f, mode="forward")
        back = plaingrad.jacobian(f, mode="reverse")
        np.testing.assert_allclose(np.array(together(at)), one_at_a_time(f, at), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(np.array(together(at)), np.array(back(at)), rtol=1e-9, atol=1e-12)
        candidates = {
            "the function": lambda f=f, at=at: f(at),
            "forward, one at a time": lambda f=f, at=at: one_at_a_time(f, at),
            "forward, together": lambda together=together, at=at: together(at),
            "reverse": lambda back=back, at=at: back(at),
        }
        times = best_times(candidates, repeat)
        workload = f"100 x 100 Jacobian, {name}"
        for candidate, seconds in times.items():
            yield Figure(workload, candidate, 1e3 * seconds, "ms")
        ratio = times["forward, one at a time"] / times["forward, together"]
        yield Figure(workload, "one at a time / together", ratio, "x", at_least=5)


def hessian(repeat: int) -> Iterator[Figure]:
    """Hessians of 100 variables, and products with them, beside a gradient."""
    x = np.linspace(-1.0, 1.0, INPUTS)
    for name, f, at in (("scalar code", rosenbrock, x.tolist()), ("array code", rosenbrock_of_arrays, x)):
        gradient, whole = plaingrad.grad(f), plaingrad.hessian(f)
        _, times_hessian = plaingrad.linearize(gradient, at)
        candidates = {
            "gradient": lambda gradient=gradient, at=at: gradient(at),
            "hvp": lambda f=f, at=at: plaingrad.hvp(f, (at,), (at,)),
            "linearized gradient": lambda g=times_hessian, at=at: g(at),
            "hessian": lambda whole=whole, at=at: whole(at),
        }
        times = best_times(candidates, repeat)
        workload = f"Rosenbrock-100, {name}"
        for candidate, seconds in times.items():
            yield Figure(workload, candidate, 1e3 * seconds, "ms")
        yield Figure(workload, "hvp / gradient", times["hvp"] / times["gradient"], "x")
        yield Figure(workload, "linearized / gradient", times["linearized gradient"] / times["gradient"], "x")


def perceptron(w, x):
    """A mean square error through three layers of 400, for a batch of 64."""
    h = x
    for _ in range(3):
        h = np.tanh(w @ h)
    return np.mean((h - x) ** 2)


def product(repeat: int) -> Iterator[Figure]:
    """A product with a Hessian of 160,000 variables, where NumPy does the work."""
    random = np.random.default_rng(0)
    w, x = random.normal(size=(400, 400)) / 20.0, random.normal(size=(400, 64))
    v = random.normal(size=w.shape)
    f = lambda w: perceptron(w, x)
    candidates = {
        "gradient": lambda: plaingrad.grad(f)(w),
        "jvp": lambda: plaingrad.jvp(f, (w,), (v,)),
        "hvp": lambda: plaingrad.hvp(f, (w,), (v,)),
        "vhp": lambda: plaingrad.vhp(f, (w,), (v,)),
    }
    times = best_times(candidates, 4 * repeat)
    workload = "perceptron, 160,000 weights"
    for candidate, seconds in times.items():
        yield Figure(workload, candidate, 1e3 * seconds, "ms")
    yield Figure(workload, "hvp / gradient", times["hvp"] / times["gradient"], "x", at_most=4)


def derivative(repeat: int) -> Iterator[Figure]:
    """The eighth derivative of a sine: from Taylor coefficients, and by forward mode applied to itself."""
    nested = math.sin
    for _ in range(8):
        nested = plaingrad.derivative(nested)
    candidates = {
        "derivative(order=8)": lambda: plaingrad.derivative(math.sin, order=8)(0.5),
        "eight times derivative": lambda: nested(0.5),
    }
    for candidate, seconds in best_times(candidates, 5 * repeat).items():
        yield Figure("eighth derivative", candidate, 1e6 * seconds, "us")


def main(arguments: list[str] | None = None) -> int:
    """Run all of it; returns the exit status."""
    parser = argparse.ArgumentParser(description="Time Jacobians and Hessians.")
    parser.add_argument("--repeat", type=int, default=5, help="turns of each candidate (default 5)")
    parser.add_argument("--check", action="store_true", help="exit with status 1 when a target is missed")
    options = parser.parse_args(arguments)
    figures: list[Figure] = []

    def measured() -> Iterator[Figure]:
        for workload in (jacobian, hessian, product, derivative):
            for figure in workload(options.repeat):
                figures.append(figure)
                yield figure

    report(measured())
    return 1 if options.check and any(figure.is_missed for figure in figures) else 0


if __name__ == "__main__":
    sys.exit(main())
