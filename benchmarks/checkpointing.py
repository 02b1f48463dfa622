"""Memory, calls and time of checkpoints: a long recurrence with few states in memory, and a deep chain of arrays.

    python -m benchmarks.checkpointing              # 10^5 steps, 20 states
    python -m benchmarks.checkpointing --steps 20000 --budget 5
    python -m benchmarks.checkpointing --check      # exit status 1 when a target is missed

Calls are counted and compared with the theoretical minimum. Peaks are what `tracemalloc` sees beyond what was there
before; times are taken in runs of their own, without it.
"""

import argparse
import json
import math
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import plaingrad
from benchmarks.plain import Figure, report
from plaingrad import checkpoint, checkpoint_sequence


def minimum(steps: int, budget: int) -> int:
    """The fewest calls of the step that a value and a gradient can take, by Griewank and Walther (2000)."""
    r = next(r for r in range(steps) if math.comb(budget + r, budget) >= steps)
    return steps + r * steps - math.comb(budget + r, budget + 1)


def peak(f: Callable[..., Any], *args: Any) -> int:
    """Bytes that a call takes beyond what was there before."""
    tracemalloc.start()
    try:
        f(*args)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def seconds(f: Callable[..., Any], *args: Any) -> float:
    """Processor time of a call."""
    begun = time.process_time()
    f(*args)
    return time.process_time() - begun


def recurrence(steps: int, budget: int) -> Iterator[Figure]:
    """A pendulum, one step of Euler's method after another: numbers."""
    calls = 0

    def step(state):
        nonlocal calls
        calls += 1
        q, p = state
        p = p - 1e-4 * math.sin(q)
        return q + 1e-4 * p, p

    def by_loop(q):
        state = q, 0.0
        for _ in range(steps):
            state = step(state)
        return state[0]

    def by_sequence(q):
        return checkpoint_sequence(step, (q, 0.0), steps, budget)[0]

    name = f"pendulum, {steps} steps, {budget} states"
    value, slope = plaingrad.value_and_grad(by_sequence)(0.5)
    assert (value, slope) == plaingrad.value_and_grad(by_loop)(0.5)
    calls = 0
    plaingrad.grad(by_sequence)(0.5)
    least = minimum(steps, budget)
    yield Figure(name, "calls of the step", calls, "")
    yield Figure(name, "calls beyond the theoretical minimum", calls - least, "", at_most=1)
    yield Figure(name, "calls / steps", calls / steps, "x")
    whole, few = peak(plaingrad.grad(by_loop), 0.5), peak(plaingrad.grad(by_sequence), 0.5)
    yield Figure(name, "peak, everything kept", whole / 1e6, "MB")
    yield Figure(name, "peak, checkpoint_sequence", few / 1e6, "MB", at_most=1)
    plain = seconds(by_loop, 0.5)
    yield Figure(name, "time, value only", plain, "s")
    yield Figure(name, "time, everything kept", seconds(plaingrad.grad(by_loop), 0.5), "s")
    yield Figure(name, "time, checkpoint_sequence", seconds(plaingrad.grad(by_sequence), 0.5), "s")


def field(budget: int) -> Iterator[Figure]:
    """A wave on a string, an array a state: the peak in states."""
    u = np.sin(np.linspace(0.0, 6.0, 50_000))

    def step(state):
        u, v = state
        v = v + 0.1 * (np.roll(u, 1) - 2.0 * u + np.roll(u, -1))
        return u + 0.1 * v, v

    def energy(u, run):
        u, v = run((u, np.zeros_like(u)))
        return (v * v).sum() + (u * u).sum()

    def by_loop(state):
        for _ in range(200):
            state = step(state)
        return state

    name = f"wave, 200 steps, {budget} states"
    kept = plaingrad.grad(energy)
    a, b = kept(u, by_loop), kept(u, lambda s: checkpoint_sequence(step, s, 200, budget))
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    state = 2 * u.nbytes
    yield Figure(name, "peak, everything kept", peak(kept, u, by_loop) / state, "states")
    few = peak(kept, u, lambda s: checkpoint_sequence(step, s, 200, budget))
    yield Figure(name, "peak, checkpoint_sequence", few / state, "states", at_most=budget + 20)


def layers() -> Iterator[Figure]:
    """64 blocks of 8 operations on arrays, each block a checkpoint; and checkpoints of 8 of them around."""
    u = np.linspace(0.1, 1.0, 50_000)

    def block(u):
        for _ in range(4):
            u = np.sin(u) + 0.5 * u
        return u

    def kept(u):
        for _ in range(64):
            u = block(u)
        return u.sum()

    def each(u):
        for _ in range(64):
            u = checkpoint(block, u)
        return u.sum()

    def eight(u):
        for _ in range(8):
            u = checkpoint(block, u)
        return u

    def nested(u):
        for _ in range(8):
            u = checkpoint(eight, u)
        return u.sum()

    name = "64 blocks of arrays"
    value = plaingrad.grad(kept)(u)
    runs = {"everything kept": kept, "a checkpoint each": each, "nested checkpoints": nested}
    for what, f in runs.items():
        assert (plaingrad.grad(f)(u) == value).all()
        limit = {"a checkpoint each": 110, "nested checkpoints": 70}.get(what)
        yield Figure(name, f"peak, {what}", peak(plaingrad.grad(f), u) / u.nbytes, "arrays", at_most=limit)
    once = min(seconds(plaingrad.grad(kept), u) for _ in range(5))
    for what, f in runs.items():
        yield Figure(
            name, f"time, {what} / kept", min(seconds(plaingrad.grad(f), u) for _ in range(5)) / once, "x"
        )


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; returns the exit status."""
    parser = argparse.ArgumentParser(description="Memory, calls and time of checkpoints.")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--budget", type=int, default=20)
    parser.add_argument("--check", action="store_true", help="exit with status 1 when a target is missed")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE as well")
    options = parser.parse_args(arguments)
    figures = [*recurrence(options.steps, options.budget), *field(10), *layers()]
    report(iter(figures))
    if options.json:
        with open(options.json, "w") as file:
            json.dump([vars(figure) for figure in figures], file, indent=1)
    return 1 if options.check and any(figure.is_missed for figure in figures) else 0


if __name__ == "__main__":
    sys.exit(main())
