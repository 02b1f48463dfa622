"""Random programs with caches: value, slope, what the bodies did, and the caches afterwards, against the plain call.

    python -m tests.hunts.caches --count 2000 --seed 0

A program has a world of its own: cached functions of several kinds (with active keys, with constant keys that read
active state, singletons, recursions, bodies that raise, methods, properties), called before, inside, and again by a
second derivative in the same world. Slopes are compared with differences of plain calls in worlds of the same past.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import functools
import math
import random
import traceback
from typing import Any

import numpy as np

import plaingrad

MODES = {
    "chunks": lambda f: lambda x: plaingrad.jacobian(lambda a: f(a[1]), mode="forward", chunk_size=1)(
        np.array([0.5, x])
    )[1],
    "grad": plaingrad.grad,
    "derivative": plaingrad.derivative,
    "checkpoint": lambda f: plaingrad.grad(lambda x: plaingrad.checkpoint(f, x)),
    "inside": lambda f: lambda x: plaingrad.grad(lambda y: plaingrad.derivative(lambda z: f(z) * y)(x) * y)(1.0) / 2.0,
}


class Held:
    """A singleton."""

    def __init__(self, scale: Any) -> None:
        self.scale = scale
        self.items: list[Any] = []


class World:
    """The cached functions of one program, made by its recipe."""

    def __init__(self, recipe: dict[str, Any]) -> None:
        self.log: list[Any] = []
        self.box: list[Any] = [0.7]
        self.cached: dict[str, Any] = {}
        for name, (kind, maxsize, typed) in recipe.items():
            make = functools.lru_cache(maxsize, typed)
            self.cached[name] = make(getattr(self, kind)(name))
        self.model = self.model_of(recipe)

    def number(self, name):
        def number(v, scale=1.0):
            return math.sin(v) * scale + v * v

        return number

    def parts(self, name):
        def parts(v, scale=1.0):
            return [math.cos(v), {"v": v * scale}]

        return parts

    def state(self, name):
        def state(k, scale=1.0):
            self.log.append((name, k, scale))
            return self.box[0] * k * scale + 0.5

        return state

    def single(self, name):
        def single(k, scale=1.0):
            self.log.append((name, k, scale))
            return Held(scale + k)

        return single

    def recursive(self, name):
        def recursive(k, scale=1.0):
            self.log.append((name, k, scale))
            again = self.cached[name]
            return self.box[0] * scale if k < 2 else again(k - 1, scale=scale) + 0.5 * again(k - 2, scale=scale)

        return recursive

    def raising(self, name):
        def raising(k, scale=1.0):
            self.log.append((name, k, scale))
            if k == 2:
                raise KeyError(k)
            return k * scale

        return raising

    def model_of(self, recipe):
        maxsize, typed = list(recipe.values())[0][1:]

        class Model:
            def __init__(self, v):
                self.v = v

            @functools.lru_cache(maxsize, typed)
            def rate(self, k):
                return self.v * k + 1.0

            @property
            @functools.lru_cache(None)
            def area(self):
                return self.v * self.v

            @functools.cached_property
            def whole(self):
                return math.exp(-self.v)

        @dataclasses.dataclass(frozen=True)
        class Point:
            v: Any

            @property
            @functools.lru_cache(maxsize)
            def area(self):
                return self.v * self.v

        self.point = Point
        self.outside = Model(1.5)
        return Model

    def step(self, do, x, v):
        """One step of a program, with the input `x` and a number `v` so far."""
        kind, name, key, scale = do
        f = self.cached[name]
        if kind == "number":
            return v + f(x * key, scale) + f(v) * 0.1 + f(float(key), scale) * x
        if kind == "number again":
            y = x * key
            return v + f(y) * f(y) + f(y * 1.0)
        if kind == "parts":
            a, b = f(x * key), f(x * key)
            c = f((x, key)[0])
            return v + a[0] * b[1]["v"] + c[0]
        if kind == "state":
            return v + f(key) * x + f(key, scale)
        if kind == "single":
            held = f(key)
            held.items.append(v)
            return v * (1.0 if f(key) is held else 0.25) + held.scale * x + held.items[-1]
        if kind == "recursive":
            return v + f(key + 3) * x + f(key + 1, scale=scale) * 0.1
        if kind == "raising":
            try:
                return v + f(key, scale) * x
            except KeyError as error:
                return v * 1.5 + error.args[0] * x
        if kind == "set":
            self.box[0] = x * key
            return v
        if kind == "clear":
            f.cache_clear()
            return v
        if kind == "method":
            model = self.model(x)
            outside = self.outside
            return v + model.rate(key) * model.rate(key) * outside.rate(key) + model.area * outside.area + model.whole
        if kind == "point":
            return v + self.point(x).area * self.point(x * 1.0).area + self.point(float(key)).area * x
        raise ValueError(kind)


KINDS = {
    "number": ("number", "number again"),
    "parts": ("parts",),
    "state": ("state",),
    "single": ("single",),
    "recursive": ("recursive",),
    "raising": ("raising",),
}
CONSTANT_KEYS = ("state", "single", "recursive", "raising")


def chosen(chance):
    """A recipe for worlds, calls made before, and the steps of a program."""
    recipe = {}
    for k in range(chance.randint(2, 4)):
        kind = chance.choice(list(KINDS))
        recipe[f"{kind}{k}"] = (kind, chance.choice((None, None, 128, 2, 1, 0)), chance.random() < 0.3)
    steps = []
    for _ in range(chance.randint(2, 7)):
        name = chance.choice(list(recipe))
        kind = chance.choice((*KINDS[recipe[name][0]], *KINDS[recipe[name][0]], "set", "clear", "method", "point"))
        steps.append((kind, name, chance.randint(1, 4), chance.choice((1.0, 0.5, 2.0))))
    past = [(name, chance.randint(1, 4)) for name in recipe for _ in range(chance.choice((0, 1, 2)))]
    return recipe, steps, past


def world_of(recipe, past):
    """A world in which some cached functions were called."""
    world = World(recipe)
    for name, key in past:
        try:
            world.cached[name](float(key) if recipe[name][0] in ("number", "parts") else key)
        except KeyError:
            continue
    return world


def program_in(world, steps, resets=False):
    """The program, in a world; it may be called several times for one derivative if it resets what it changes."""

    def program(x):
        if resets:
            world.box[0] = 0.7
        v = x * 1.0
        for do in steps:
            v = world.step(do, x, v)
        return v

    return program


def state_of(world, recipe):
    """What a plain call leaves: what bodies did, the box, and the caches whose keys are constants."""
    caches = {}
    for name, (kind, _, _) in recipe.items():
        if kind in CONSTANT_KEYS:
            caches[name] = tuple(world.cached[name].cache_info())
    return world.log, world.box, caches


def outcome_of(recipe, steps, past, mode, inputs):
    """right, or what is wrong."""
    if mode == "chunks":  # a program that clears what was there before is another one when it runs again
        steps = [do for do in steps if do[0] != "clear"]
    plain, ours = world_of(recipe, past), world_of(recipe, past)
    f, g = program_in(plain, steps, mode == "chunks"), program_in(ours, steps, mode == "chunks")
    for n, x in enumerate(inputs):
        slopes = []
        for h in (1e-5, -1e-5):
            world = world_of(recipe, past)
            again = program_in(world, steps, mode == "chunks")
            for before in inputs[:n]:
                again(before)
            slopes.append(again(x + h))
        truth = (slopes[0] - slopes[1]) / 2e-5
        f(x)
        slope = MODES[mode](g)(x)
        if not math.isclose(slope, truth, rel_tol=1e-5, abs_tol=1e-5):
            return f"slope {slope} for {truth} (call {n})"
        if mode in ("grad", "derivative") and state_of(plain, recipe) != state_of(ours, recipe):
            return f"state {state_of(ours, recipe)} for {state_of(plain, recipe)} (call {n})"
    return "right"


def main() -> None:
    """Run random programs, and count what comes of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    outcomes: collections.Counter[str] = collections.Counter()
    for n in range(options.count):
        seed = options.seed * 1_000_003 + n
        chance = random.Random(seed)
        recipe, steps, past = chosen(chance)
        mode = chance.choice(("grad", "grad", "derivative", "derivative", "checkpoint", "inside", "chunks"))
        inputs = [chance.uniform(0.3, 1.2) for _ in range(chance.choice((1, 2)))] if mode in ("grad", "derivative") else [0.8]
        try:
            outcome = outcome_of(recipe, steps, past, mode, inputs)
        except plaingrad.PlaingradError as refusal:
            outcome = f"refused {type(refusal).__name__}"
        except Exception:
            outcome = "crashed"
            traceback.print_exc()
        outcomes[outcome.split(" ")[0]] += 1
        if outcome != "right":
            print(seed, mode, recipe, past, steps, inputs, outcome, sep="\n  ")
    print(dict(outcomes))


if __name__ == "__main__":
    main()
