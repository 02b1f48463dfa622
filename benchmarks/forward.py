"""Times of forward mode, and of forward over reverse, beside the plain call and the gradient, in one run.

    python -m benchmarks.forward                # everything
    python -m benchmarks.forward sine rosenbrock_list --repeat 9
    python -m benchmarks.forward --check        # exit status 1 when a target is missed

One thread, one process; the candidates of a workload take turns, the minimum of the turns counts.
"""

import argparse
import resource
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import plaingrad
from benchmarks import plain
from benchmarks.plain import Figure, best_times, report
from plaingrad.engine.forward.push import push

CHUNK = 8


def rosenbrock(x):
    """Element by element; `x` is a list or an array."""
    total = 0.0
    for i in range(len(x) - 1):
        total = total + 100.0 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2
    return total


def rosenbrock_whole(x):
    """In array operations."""
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def directions(dot: Any, count: int) -> Any:
    """`dot` on a leading axis, so many times."""
    if isinstance(dot, list):
        return [directions(entry, count) for entry in dot]
    return None if dot is None else np.array([dot] * count)


def compare(
    workload: str, f: Callable[..., Any], args: tuple, dots: tuple, repeat: int, limits: dict[str, float]
) -> Iterator[Figure]:
    """What derivatives of f(*args) along `dots` (None: held fixed) cost, in gradients."""
    active = tuple(n for n, dot in enumerate(dots) if dot is not None)
    gradient = plaingrad.grad(f, active)
    wide = tuple(directions(dot, CHUNK) for dot in dots)
    value, slope = push(f, args, dots, {})
    plain.assert_close(value, f(*args), workload)
    plain.assert_close(slope, along(gradient(*args), [dots[n] for n in active]), workload)
    (_, moved), h = push(gradient, args, dots, {}), 1e-5
    ahead, behind = (gradient(*[shifted(x, dot, s) for x, dot in zip(args, dots)]) for s in (h, -h))
    curvature = along(moved, [dots[n] for n in active])
    differences = [along(g, [dots[n] for n in active]) / (2 * h) for g in (ahead, behind)]
    np.testing.assert_allclose(curvature, differences[0] - differences[1], rtol=1e-4, atol=1e-6)
    candidates = {
        "value only": lambda: f(*args),
        "gradient": lambda: gradient(*args),
        "jvp": lambda: push(f, args, dots, {}),
        f"jvp, chunk of {CHUNK}": lambda: push(f, args, wide, {}, CHUNK),
        "hvp, forward over reverse": lambda: push(gradient, args, dots, {}),
    }
    if None not in dots[1:] and dots[0] is not None:
        candidates["plaingrad.hvp"] = lambda: plaingrad.hvp(f, args, dots)
    times = best_times(candidates, repeat)
    yield Figure(workload, "gradient", 1e3 * times["gradient"], "ms")
    yield Figure(workload, "jvp / value", times["jvp"] / times["value only"], "x")
    for name in list(candidates)[2:]:
        yield Figure(
            workload, f"{name} / gradient", times[name] / times["gradient"], "x", at_most=limits.get(name)
        )


def along(bars: Any, dots: Any) -> float:
    """The inner product of two structures."""
    if isinstance(dots, (list, tuple)):
        return sum(along(bar, dot) for bar, dot in zip(bars, dots))
    return float(np.sum(bars * dots))


def shifted(x: Any, dot: Any, h: float) -> Any:
    """x + h dot."""
    if isinstance(x, list):
        return [shifted(a, b, h) for a, b in zip(x, dot)]
    return x if dot is None else x + h * dot


SCALAR = {"jvp": 1.0, "hvp, forward over reverse": 4.0}


def sine(repeat: int) -> Iterator[Figure]:
    """The sine loop of `benchmarks/plain.py`, fewer turns: its derivative underflows."""
    yield from compare("sine loop", plain.sine_loop, (0.7, 1000), (1.0, None), repeat, SCALAR)


def rk4(repeat: int) -> Iterator[Figure]:
    """Lotka-Volterra by Runge-Kutta."""
    args = (0.55, 0.028, 0.8, 0.024, 30.0, 4.0, 0.01, 100)
    dots = (0.1, 0.01, -0.1, 0.01, 1.0, -1.0, None, None)
    yield from compare("RK4 step", plain.lotka_volterra, args, dots, repeat, SCALAR)


def rosenbrock_list(repeat: int) -> Iterator[Figure]:
    """Rosenbrock over a list of 100 floats."""
    x = [float(v) for v in np.linspace(-1.0, 1.0, 100)]
    limits = {"hvp, forward over reverse": 4.0}
    yield from compare("Rosenbrock, list", rosenbrock, (x,), ([1.0] * 100,), repeat, limits)


def rosenbrock_elements(repeat: int) -> Iterator[Figure]:
    """Rosenbrock over an array of 100, element by element."""
    x = np.linspace(-1.0, 1.0, 100)
    limits = {"hvp, forward over reverse": 4.0}
    yield from compare("Rosenbrock, elements", rosenbrock, (x,), (np.ones(100),), repeat, limits)


def rosenbrock_arrays(repeat: int) -> Iterator[Figure]:
    """Rosenbrock in array operations."""
    for n in (100, 100_000):
        x = np.linspace(-1.0, 1.0, n)
        yield from compare(f"Rosenbrock, n = {n:,}", rosenbrock_whole, (x,), (np.ones(n),), repeat, {})


def long_loop(x, n):
    """A decaying recurrence."""
    y = x
    for _ in range(n):
        z = y * 0.5 + x
        y = z - y * 0.25
    return y


def memory(repeat: int) -> Iterator[Figure]:
    """How much the process grows by when a loop of forward mode gets a hundred times as long."""
    push(long_loop, (0.7, 100_000), (1.0, None), {})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    push(long_loop, (0.7, 10_000_000), (1.0, None), {})
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    yield Figure("memory", "10^7 turns over 10^5", grown, "KiB", at_most=1024)


# Memory is first: what counts is the largest that the process has ever been.
WORKLOADS = {
    f.__name__: f for f in (memory, sine, rk4, rosenbrock_list, rosenbrock_elements, rosenbrock_arrays)
}


def main() -> int:
    """Run the workloads that were asked for; returns the exit status."""
    parser = argparse.ArgumentParser(description="Time forward mode beside the gradient.")
    parser.add_argument("workloads", nargs="*", help=f"which ones: {', '.join(WORKLOADS)}; default: all")
    parser.add_argument("--repeat", type=int, default=5, help="turns of each candidate (default 5)")
    parser.add_argument("--check", action="store_true", help="exit with status 1 when a target is missed")
    options = parser.parse_args()
    figures: list[Figure] = []
    for name in options.workloads or WORKLOADS:
        found = list(WORKLOADS[name](options.repeat))
        report(iter(found))
        figures += found
    return int(options.check and any(figure.is_missed for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
