"""Interrupts at random instructions of plaingrad's code: is everything as before, and is the next gradient right?

    python -m tests.hunts.interrupts --count 100000 --seed 0

Programs with special methods, containers, arrays that are written, generators, nested levels, forward mode, checkpoints
and rules are traced instruction by instruction, and ended by an exception at one of them, at random. Afterwards classes,
code, arguments, the context, counts and locks are compared with what they were, and now and then a gradient is taken.
Whatever differs is printed, with the program and the number of the instruction.
"""

from __future__ import annotations

import argparse
import collections
import functools
import gc
import random
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import plaingrad as pg
from tests.hunts.injected import State, Tracer, free_locks, interrupted


class Money:
    """A number with special methods of every kind."""

    def __init__(self, v: Any) -> None:
        self.v = v

    def __add__(self, other: Any) -> Money:
        return Money(self.v + getattr(other, "v", other))

    __radd__ = __add__

    def __mul__(self, k: Any) -> Money:
        return Money(self.v * k)

    def __lt__(self, other: Any) -> bool:
        return self.v < other.v

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Money) and self.v == other.v

    def __hash__(self) -> int:
        return 1

    def __call__(self, t: Any) -> Any:
        return self.v * t

    def __enter__(self) -> Money:
        return self

    def __exit__(self, *_: object) -> None:
        self.v = self.v * 1.0

    @property
    def double(self) -> Any:
        return self.v * 2.0


class Box:
    """Fields that are patched."""

    def __init__(self, a: float) -> None:
        self.a = a


P = {"a": 1.5, "list": [2.0, 3.0], "box": Box(0.5), "w": np.array([1.0, 2.0, 3.0])}
X = np.array([0.5, 1.5])


def cube(x: Any) -> Any:
    """x^3, with a rule of its own."""
    return x**3


@pg.rrule(cube)
def cube_rule(x: Any) -> Any:
    """Its pullback."""
    return x**3, lambda y_bar: (3.0 * x * x * y_bar,)


def structured(p: Any) -> Any:
    """Of a structure; special methods are entered by C code."""
    w = p["w"]
    w *= 1.0  # nothing else than what was there: an interrupt leaves a plain call's changes half done, too
    p["list"][1] = p["list"].copy()[1]
    with Money(p["a"]) as money:
        best = sorted([money, Money(p["box"].a), Money(-1.0)])[-1]
    w[1:] = w[1:] * 1.0
    return sum([best, Money(p["list"][0])]).double + (w * w).sum()


def stepped(x: Any) -> Any:
    """Generators and a pool of numbers."""
    return sum(Money(x)(t) for t in (x * k for k in range(3)))


def expect(found: Any, right: Any) -> None:
    """Raise if a derivative is wrong."""
    if not np.allclose(found, right, rtol=1e-12):
        raise AssertionError(f"{found} for {right}")


def a_gradient() -> None:
    g = pg.grad(structured)(P)
    expect([g["a"], *g["list"], g["box"].a, *g["w"]], [2.0, 2.0, 0.0, 0.0, 2.0, 4.0, 6.0])


def a_pullback() -> None:
    _, pullback = pg.vjp(structured, P)
    for _ in range(2):
        expect(pullback(1.0)[0]["w"], [2.0, 4.0, 6.0])


PROGRAMS: dict[str, Callable[[], None]] = {
    "structure": a_gradient,
    "pullback": a_pullback,
    "generator": lambda: expect(pg.grad(stepped)(1.5), 9.0),
    "second": lambda: expect(pg.grad(pg.grad(lambda x: Money(x).double * x * x))(1.5), 18.0),
    "forward": lambda: expect(pg.jvp(lambda x: (x * x).sum() * Money(x[0]).double, (X,), (np.array([1.0, 0.0]),))[1], 6.0),
    "forward over reverse": lambda: expect(pg.hvp(lambda x: (x**3).sum(), (X,), (np.ones(2),)), 6.0 * X),
    "jacobian": lambda: expect(pg.jacobian(lambda x: x * Money(x[0]).double)(X), [[2.0, 0.0], [3.0, 1.0]]),
    "checkpoint": lambda: expect(
        pg.grad(lambda x: pg.checkpoint(lambda a: (a * a).sum() * Money(a[1]).double, x))(X), [3.0, 14.0]
    ),
    "sequence": lambda: expect(
        pg.grad(lambda x: pg.checkpoint_sequence(lambda s: [Money(s[0]).double, s[1] * s[0]], [x, x], 4, 2)[1])(1.0), 320.0
    ),
    "rule": lambda: expect(pg.grad(lambda x: cube(x) * Money(x).double)(1.5), 8.0 * 1.5**3),
    "exception": lambda: expect(pg.grad(failing)(1.5), 3.0),
    "sparse": lambda: expect(pg.sparse_jacobian(lambda x: x * x * Money(2.0).v, X).toarray(), np.diag(4.0 * X)),
    "hessian": lambda: expect(pg.hessian(lambda x: (x * x * x).sum() * Money(x[0]).double)(X), [[6.0, 13.5], [13.5, 9.0]]),
    "cached": lambda: expect(pg.grad(lambda x: settings().v * remembered(x) * remembered(x))(1.5), 2.0 * 4.0 * 1.5**3),
    "subclass": lambda: expect(np.asarray(pg.grad(lambda x: (x.view(Tagged) * x * 2.0).sum())(X)), 4.0 * X),
    "buffer": lambda: expect(pg.grad(lambda x: (np.frombuffer(MEMORY) * x * x).sum())(X), 2.0 * X * np.frombuffer(MEMORY)),
    "taylor": lambda: expect(pg.derivative(lambda x: x * x * Money(x).double, order=3)(1.5), 12.0),
    "many": lambda: expect(pg.jacobian(lambda x: np.sort(x) * Money(x[1]).double, mode="reverse")(X), [[3.0, 1.0], [0.0, 6.0]]),
}


class Tagged(np.ndarray):
    """An array with a method of its own."""

    tag = "m"

    def __array_finalize__(self, obj: Any) -> None:
        self.tag = getattr(obj, "tag", "m")

    def __mul__(self, other: Any) -> Any:
        return super().__mul__(other)


MEMORY = bytearray(np.array([1.0, 3.0]).tobytes())


@functools.cache
def settings() -> Box:
    """Made once."""
    box = Box(0.0)
    box.v = 2.0
    return box


@functools.lru_cache(4)
def remembered(x: Any) -> Any:
    """A number."""
    return (Money(x) * x + Money(0.0)).v


def failing(x: Any) -> Any:
    """Carries its value out by an exception."""
    try:
        sorted([Money(x), Money(2.0)])
        raise KeyError(Money(x) * x)
    except KeyError as error:
        return error.args[0].v


def main() -> int:
    """The number of faults."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    programs = {}
    for name, program in PROGRAMS.items():
        try:
            for _ in range(2):
                program()
        except TypeError as error:
            print(f"left out: {name}: {error}")
            continue
        tracer = Tracer(None)
        tracer.run(program)
        programs[name] = program, tracer.count
    print({name: count for name, (_, count) in programs.items()})
    gc.collect()
    state = State((Money, Box), [P, X])
    counts: collections.Counter[str] = collections.Counter()
    faults = 0
    begun = time.monotonic()
    names = [name for name in programs if programs[name][1]]
    weights = [1.0 / programs[name][1] for name in names]  # as much time for each
    for number in range(options.count):
        name = chance.choices(names, weights)[0]
        program, events = programs[name]
        at = chance.randrange(1, events + 1)
        try:
            counts["stopped" if interrupted(program, at) else "ended by itself"] += 1
        except Exception as error:
            faults += 1
            print(f"{name} at {at}: {type(error).__name__}: {error}")
        found = state.differences()
        if found:
            faults += 1
            print(f"{name} at {at}: not as before: {', '.join(found)}")
            state = State((Money, Box), [P, X])
        if number % 500 == 499:
            a_gradient()
            if not free_locks():
                faults += 1
                print(f"{name} at {at}: a lock is held")
    print(f"{options.count} interrupts in {time.monotonic() - begun:.0f} s: {dict(counts)}, {faults} faults")
    return faults


if __name__ == "__main__":
    sys.exit(bool(main()))
