"""Cases of one package: gradients against central differences at several steps, as lines of JSON."""

from __future__ import annotations

import ast
import json
import math
import signal
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import plaingrad

CASES = Path(__file__).with_name("cases.txt")
STEPS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
TOLERANCE = 1e-5


class Case(NamedTuple):
    """One function of a package."""

    package: str
    setup: str
    expression: str
    x: list[float]


def cases() -> list[Case]:
    """All of them."""
    found = []
    for line in CASES.read_text().splitlines():
        if line and not line.startswith("#"):
            package, setup, expression, x = (part.strip() for part in line.split(" | "))
            found.append(Case(package, setup, expression, ast.literal_eval(x)))
    return found


def weighted(y: Any) -> Any:
    """One number of what a function returns."""
    if isinstance(y, (int, float)):
        return y
    if isinstance(y, (list, tuple)):
        return sum([(0.3 + math.sin(k + 1)) * weighted(part) for k, part in enumerate(y)])
    y = np.asarray(y)
    weights = np.sin(np.arange(1.0, y.size + 1.0)) + 0.3
    return np.sum(np.reshape(y, -1) * weights)


def function_of(case: Case) -> Callable[[Any], Any]:
    """x -> a number."""
    names: dict[str, Any] = {"np": np, "weighted": weighted}
    exec(case.setup, names)
    exec(f"def f(x):\n    return weighted({case.expression})", names)
    return names["f"]  # type: ignore[no-any-return]


def moved(f: Callable[[Any], Any], x: np.ndarray, k: int, by: float) -> float:
    """f where entry `k` of x is changed."""
    x = x.copy()
    x[k] += by
    return float(f(x))


def differences(f: Callable[[Any], Any], x: np.ndarray, step: float) -> np.ndarray:
    """Central differences at a step relative to x, and at half of it, extrapolated."""
    slopes = np.empty(x.size)
    for k in range(x.size):
        h = step * max(abs(x[k]), 1e-2)

        wide = (moved(f, x, k, h) - moved(f, x, k, -h)) / (2 * h)
        narrow = (moved(f, x, k, h / 2) - moved(f, x, k, -h / 2)) / h
        slopes[k] = (4 * narrow - wide) / 3
    return slopes


def error_of(slope: np.ndarray, f: Callable[[Any], Any], x: np.ndarray) -> tuple[float, float]:
    """The relative error of a gradient against the differences that it agrees with best, and their size."""
    best, size = math.inf, 0.0
    for step in STEPS:
        try:
            expected = differences(f, x, step)
        except Exception:
            continue
        scale = max(float(np.abs(expected).max()), float(np.abs(slope).max()), 1e-300)
        error = float(np.abs(slope - expected).max()) / scale
        if error < best:
            best, size = error, scale
        if best < TOLERANCE:
            break
    return best, size


def seconds(f: Callable[[Any], Any], x: np.ndarray) -> float:
    """The shortest of several calls."""
    best, until = math.inf, time.perf_counter() + 0.15
    while True:
        begin = time.perf_counter()
        f(x)
        end = time.perf_counter()
        best = min(best, end - begin)
        if end > until:
            return best


def outcome_of(case: Case) -> dict[str, Any]:
    """What becomes of one case."""
    found: dict[str, Any] = {"package": case.package, "expression": case.expression}
    x = np.array(case.x)
    try:
        f = function_of(case)
        before = float(f(x.copy()))
    except Exception as error:
        return {**found, "outcome": "no such call", "why": f"{type(error).__name__}: {error}"[:300]}
    try:
        y, slope = plaingrad.value_and_grad(f)(x.copy())
    except plaingrad.PlaingradError as error:
        return {**found, "outcome": "refused", "why": str(error)[:600], "error": type(error).__name__}
    except Exception as error:
        return {**found, "outcome": "crash", "why": f"{type(error).__name__}: {error}"[:600]}
    if not (float(y) == before or float(y) != float(y)):
        return {**found, "outcome": "wrong", "why": f"value {y} instead of {before}"}
    error, size = error_of(np.asarray(slope, float), f, x)
    found["error"] = error
    if not error < TOLERANCE:
        return {**found, "outcome": "wrong", "why": f"{slope} and {differences(f, x, 1e-4)}"}
    found["outcome"] = "right" if size > 0 else "zero"
    found["ratio"] = seconds(plaingrad.value_and_grad(f), x) / seconds(f, x)
    return found


LIMIT = 20.0  # seconds of the processor that one case may take, with what it imports


def stopped(*_: Any) -> None:
    """A case takes too long."""
    raise TimeoutError


def main() -> None:
    """The cases of the packages that are named."""
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGVTALRM, stopped)
    for case in sorted(
        cases(), key=lambda case: sys.argv.index(case.package) if case.package in sys.argv else 0
    ):
        if case.package in sys.argv[1:]:
            signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT)
            try:
                found = outcome_of(case)
            except TimeoutError:
                found = {"package": case.package, "expression": case.expression, "outcome": "too long"}
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            print("@" + json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
