"""Generated programs whose surroundings change between native derivatives: are these those of the call that would run now?

A function of one number reads globals, captured variables, a module, an array, a default and helpers; between gradients one
of these changes. For plain functions the truth is the plain tier, for compiled ones the difference quotient of the
dispatcher itself; a refusal by name counts as right. Run as a script: `python -m tests.hunts.native_faith 200 SEED`.
"""

from __future__ import annotations

import random
import sys
import types
from collections import Counter
from typing import Any

import numba
import numpy as np

from plaingrad import PlaingradError, grad, hvp, jvp

PIECES = {
    "RATE": "RATE * x",
    "MODULE.rate": "MODULE.rate * x * x",
    "TABLE": "TABLE[{place}] * x",
    "helper": "helper(x)",
    "outer": "outer(x)",
    "cell": "cell * x * x",
    "default": "default * x",
    "PAIR": "PAIR[0] * PAIR[1][0] * x",
}
SOURCE = """
def deeper(x):
    return x * DEEP
def helper(x):
    return deeper(x) * x
def outer(x):
    return x * x * OUTER
def make(cell):
    def f(x, default=2.0):
        v = {expression}
        if v > {threshold}:
            v = v * 0.5 + x
        return v
    def change(value):
        nonlocal cell
        cell = value
    return f, change
"""


def program(rng: random.Random, kind: str) -> tuple[Any, dict[str, Any], Any, list[str]]:
    """(the function, its globals, what changes its captured variable, the things that it reads)."""
    read = rng.sample(sorted(PIECES), rng.randint(1, 4))
    terms = [PIECES[name].format(place=rng.randrange(2)) for name in read]
    source = SOURCE.format(expression=" + ".join(terms), threshold=rng.choice(["-1e9", "3.0", "1e9"]))
    module = types.ModuleType("module_of_a_hunt")
    module.rate = 1.5
    space: dict[str, Any] = {
        "__name__": __name__,
        "RATE": 2.0,
        "DEEP": 0.5,
        "OUTER": 3.0,
        "TABLE": np.array([1.0, 2.0]),
        "PAIR": (2.0, np.array([0.5])),
        "MODULE": module,
    }
    exec(source, space)
    if kind != "plain":  # what a compiled function calls is compiled
        for name in ("deeper", "helper", "outer"):
            space[name] = numba.njit(space[name])
    f, change = space["make"](1.25)
    return numba.njit(f) if kind == "compiled" else f, space, change, read


def change_something(rng: random.Random, f: Any, space: dict[str, Any], change: Any, kind: str) -> None:
    """Change one of the things that the function may read."""
    value = rng.choice([0.25, -1.0, 3.5, 0.0, 7.0])
    what = rng.choice(
        [
            "RATE",
            "DEEP",
            "OUTER",
            "TABLE",
            "TABLE new",
            "PAIR",
            "PAIR new",
            "MODULE",
            "helper",
            "cell",
            "default",
        ]
    )
    if what in ("RATE", "DEEP", "OUTER"):
        space[what] = value
    elif what == "TABLE":
        space["TABLE"][rng.randrange(2)] = value
    elif what == "TABLE new":
        space["TABLE"] = np.array([value, 1.0])
    elif what == "PAIR":
        space["PAIR"][1][0] = value
    elif what == "PAIR new":
        space["PAIR"] = (value, np.array([2.0]))
    elif what == "MODULE":
        space["MODULE"].rate = value
    elif what == "helper":
        made = eval(f"lambda x: x * {value}", space)
        space["outer"] = made if kind == "plain" else numba.njit(made)
    elif what == "cell":
        change(value)
    elif kind != "compiled":
        f.__defaults__ = (value,)


def truth(f: Any, kind: str, x: float) -> tuple[float, float]:
    """(value, slope)."""
    if kind == "compiled":
        step = 1e-4
        return f(x), (f(x + step) - f(x - step)) / (2.0 * step)
    return f(x), grad(f, tier="plain")(x)


def hunt(count: int, seed: int) -> Counter[str]:
    """What came of so many programs; a wrong number is printed."""
    outcomes: Counter[str] = Counter()
    for n in range(count):
        rng = random.Random(f"{seed} {n}")
        kind = rng.choice(["plain", "plain calls compiled", "compiled"])
        f, space, change, read = program(rng, kind)
        for turn in range(3):
            x = rng.choice([0.5, 1.25, 2.0])
            if kind != "plain" and (turn or rng.random() < 0.5):
                f(x)
            try:
                mode = rng.choice(["grad", "grad", "jvp", "hvp"])
                if mode == "grad":
                    found = grad(f, tier="native")(x)
                elif mode == "jvp":
                    found = jvp(f, (x,), (1.0,), tier="native")[1]
                else:
                    hvp(f, (x,), (1.0,), tier="native")
                    found = grad(f, tier="native")(x)
            except PlaingradError:
                outcomes["refused"] += 1
            else:
                y, expected = truth(f, kind, x)
                if np.isclose(found, expected, rtol=1e-6, atol=1e-6):
                    outcomes["right"] += 1
                else:
                    outcomes["WRONG"] += 1
                    print(
                        f"WRONG: program {n} of seed {seed}, {kind}, {read}, turn {turn}, {mode}: {found} for {expected}"
                    )
            change_something(rng, f, space, change, kind)
    return outcomes


if __name__ == "__main__":
    print(hunt(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0))
