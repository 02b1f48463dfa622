"""Jacobians in each mode: which is cheapest for how many inputs and outputs, and what `mode="auto"` chooses.

    python -m benchmarks.modes                # every style
    python -m benchmarks.modes scalar array   # some
    PLAINGRAD_COMPILED=0 python -m benchmarks.modes

Processor time of one thread; the candidates of a row take turns and the least time of each counts. The costs are in
runs with one tangent (`jvp`): of recording a run, of a pullback, of directions one by one, of all directions as one
chunk. The last column is what "auto" takes beside the best of the three.
"""

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import plaingrad

INPUTS = (1, 2, 3, 4, 6, 8, 16, 64)
OUTPUTS = (1, 3, 10, 100)


def scalar(steps: int) -> Callable[[Any, int], Any]:
    """Arithmetic on floats out of a list."""

    def f(x, m):
        total = 0.0
        for k in range(steps):
            total = total * 0.9 + math.sin(x[k % len(x)]) * x[(k + 1) % len(x)]
        return [total * (k + 1.0) for k in range(m)]

    return f


def array(size: int) -> Callable[[Any, int], Any]:
    """Whole arrays, of a few parameters in a list."""
    t = np.linspace(0.0, 1.0, size)

    def f(x, m):
        u = t
        for k in range(20):
            u = np.tanh(u * x[k % len(x)] + t) + 0.1 * u
        return u[:m] if m > 1 else np.sum(u)

    return f


def layers(width: int) -> Callable[[Any, int], Any]:
    """Whole arrays, out of an array."""
    w = np.random.default_rng(0).normal(size=(width, width)) / math.sqrt(width)

    def f(x, m):
        u = np.resize(x, width) if len(x) != width else x
        for _ in range(10):
            u = np.tanh(w @ u)
        return u[:m] if m > 1 else np.sum(u)

    return f


def elements(steps: int) -> Callable[[Any, int], Any]:
    """Elements of arrays, read and written one by one."""

    def f(x, m):
        out = np.zeros(max(m, 4))
        for k in range(steps):
            out[k % len(out)] = out[k % len(out)] * 0.5 + math.cos(x[k % len(x)])
        return out[:m] if m > 1 else out[0]

    return f


def mixed(steps: int) -> Callable[[Any, int], Any]:
    """A model with numbers and small arrays."""

    def f(x, m):
        a, position = 0.0, np.array([x[0], x[-1], 1.0])
        for k in range(steps):
            a = a * 0.9 + x[k % len(x)] * math.exp(-0.1 * a)
            position = position + 0.01 * np.array([a, -a, x[0]])
        return [a * float(position[k % 3]) for k in range(m)]

    return f


STYLES: dict[str, tuple[Callable[[Any, int], Any], bool]] = {  # whether the argument is an array
    "scalar, 20 steps": (scalar(20), False),
    "scalar, 2000 steps": (scalar(2000), False),
    "array of 10": (array(10), False),
    "array of 1000": (array(1000), False),
    "array of 100,000": (array(100_000), False),
    "layers of 100": (layers(100), True),
    "elements, 500 steps": (elements(500), True),
    "mixed, 100 steps": (mixed(100), False),
}


def least(candidates: dict[str, Callable[[], Any]], seconds: float) -> dict[str, float]:
    """The least time of each, which take turns."""
    best = dict.fromkeys(candidates, math.inf)
    until = time.perf_counter() + seconds
    while True:
        for name, call in candidates.items():
            begun = time.thread_time()
            call()
            best[name] = min(best[name], time.thread_time() - begun)
        if time.perf_counter() > until:
            return best


def row(f: Callable[[Any, int], Any], is_array: bool, n: int, m: int, seconds: float) -> dict[str, float]:
    """Seconds of each mode."""
    x: Any = [0.3 + 0.01 * k for k in range(n)]
    x = np.array(x) if is_array else x
    x_dot: Any = np.ones(n) if is_array else [1.0] * n
    auto = plaingrad.jacobian(f)
    candidates = {
        "jvp": lambda: plaingrad.jvp(f, (x, m), (x_dot, None)),
        "record": lambda: plaingrad.vjp(lambda x: f(x, m), x),
        "reverse": lambda: plaingrad.jacobian(f, mode="reverse")(x, m),
        "singly": lambda: plaingrad.jacobian(f, mode="forward", chunk_size=1)(x, m),
        "together": lambda: plaingrad.jacobian(f, mode="forward", chunk_size=n)(x, m),
        "auto": lambda: auto(x, m),
    }
    return least(candidates, seconds)


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("words", nargs="*", help="styles with one of these in their names")
    options.add_argument("--seconds", type=float, default=0.1, help="for each row (default %(default)g)")
    given = options.parse_args()
    print(f"core: {plaingrad.info()['core']}; in runs with one tangent\n")
    print(f"{'style':22}{'inputs':>7}{'outputs':>8}{'ms jvp':>9}{'record':>8}{'pullback':>9}", end="")
    print(f"{'reverse':>9}{'singly':>8}{'together':>9}{'auto':>7}{'auto / best':>12}")
    worst = []
    for style, (f, is_array) in STYLES.items():
        if given.words and not any(word in style for word in given.words):
            continue
        for n in INPUTS:
            for m in OUTPUTS:
                found = row(f, is_array, n, m, given.seconds)
                jvp, best = found["jvp"], min(found["reverse"], found["singly"], found["together"])
                excess = found["auto"] / best
                worst.append((excess, style, n, m))
                pullback = (found["reverse"] - found["record"]) / m
                cells = [found["record"] / jvp, pullback / jvp]
                cells += [found[name] / jvp for name in ("reverse", "singly", "together", "auto")]
                print(f"{style:22}{n:7}{m:8}{1e3 * jvp:9.3f}{cells[0]:8.2f}{cells[1]:9.3f}", end="")
                print(
                    f"{cells[2]:9.2f}{cells[3]:8.2f}{cells[4]:9.2f}{cells[5]:7.2f}{excess:12.2f}", flush=True
                )
    worst.sort(reverse=True)
    print("\nfarthest from the best:")
    for excess, style, n, m in worst[:10]:
        print(f"  {excess:5.2f}  {style}, {n} inputs, {m} outputs")


if __name__ == "__main__":
    main()
