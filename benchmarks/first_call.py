"""What the first derivative of a function costs: its bytecode is rewritten, and that of what it calls.

    python -m benchmarks.first_call
    python -m benchmarks.first_call --check     # exit status 1 when a target is missed

Processor time of fresh functions in one process; the least of several turns counts. "rewritten" is the bytecode alone,
beside CPython's own compiler on the same source.
"""

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import plaingrad
from benchmarks.plain import Figure, report
from plaingrad.rewrite import rewritten
from plaingrad.rewrite.hooks import EXPRESSIONS, FUSED

LINES = (10, 100, 1000, 2000)
STATEMENTS = (
    "a = a * 0.99 + b * x",
    "b = math.sin(a) - 0.5 * b",
    "a = a + b / 3.0",
    "if a > 100.0: a = a - 1.0",
)


def straight(lines: int) -> str:
    """A function of so many lines of arithmetic."""
    body = "\n".join(f"    {STATEMENTS[k % len(STATEMENTS)]}" for k in range(lines))
    return f"def f(x):\n    a, b = x, 1.0\n{body}\n    return a + b\n"


def of_a_class(methods: int = 20) -> str:
    """A function that calls each method of a class."""
    source = "class Thing:\n    def __init__(self, x):\n        self.x = x\n        self.y = x * 2.0\n"
    for k in range(methods):
        source += f"    def m{k}(self, a):\n        b = self.x * a + self.y\n"
        source += "        if b > 3.0:\n            b = b / 2.0\n"
        source += "        self.x = b - a\n        return math.sin(b) * self.y\n"
    calls = "".join(f"    x = x + thing.m{k}(x)\n" for k in range(methods))
    return f"{source}def f(x):\n    thing = Thing(x)\n{calls}    return x\n"


def of_functions(count: int = 50) -> str:
    """A function that calls so many others, with a loop and a list in each."""
    source = ""
    for k in range(count):
        source += f"def h{k}(a, b):\n    c = a * b + {k}.0\n    for i in range(2):\n"
        source += (
            "        c = c * 0.5 + math.cos(a) * i\n    d = [c, a, b]\n    return sum(d) / (1.0 + c * c)\n"
        )
    calls = "".join(f"    y = h{k}(x, y)\n" for k in range(count))
    return f"{source}def f(x):\n    y = x\n{calls}    return y\n"


def made(source: str) -> Callable[[float], float]:
    """A fresh function."""
    namespace: dict[str, Any] = {"math": math}
    exec(compile(source, "<first call>", "exec"), namespace)
    return namespace["f"]


def least(source: str, work: Callable[[Callable[[float], float]], object], repeat: int) -> float:
    """Milliseconds of `work` with a fresh function."""
    best = math.inf
    for _ in range(repeat):
        f = made(source)
        begun = time.thread_time()
        work(f)
        best = min(best, time.thread_time() - begun)
    return 1e3 * best


def first_calls(repeat: int) -> Iterator[Figure]:
    """All figures."""
    is_compiled = plaingrad.info()["core"] == "compiled"
    form = EXPRESSIONS if is_compiled else FUSED
    for lines in LINES:
        source = straight(lines)
        workload, turns = f"{lines} straight lines", max(repeat * 100 // lines, 3)
        compiled = least(source, lambda f, source=source: compile(source, "<first call>", "exec"), turns)
        rewriting = least(source, lambda f: rewritten(f.__code__, form), turns)
        yield Figure(workload, "CPython compiles the source", compiled, "ms")
        yield Figure(workload, "rewritten", rewriting, "ms")
        per_hundred = 100 * rewriting / lines if lines >= 100 else None
        if per_hundred is not None:
            limit = 1.0 if is_compiled else None
            yield Figure(workload, "rewritten, a hundred lines", per_hundred, "ms", at_most=limit)
        yield Figure(workload, "first gradient", least(source, lambda f: plaingrad.grad(f)(0.3), turns), "ms")
    for workload, source in (("a class of 20 methods", of_a_class()), ("50 functions", of_functions())):
        count = source.count("\n")
        first = least(source, lambda f: plaingrad.grad(f)(0.3), repeat)
        yield Figure(f"{workload}, {count} lines", "first gradient", first, "ms")


def main(arguments: list[str] | None = None) -> int:
    """Print the figures; returns the exit status."""
    parser = argparse.ArgumentParser(description="Time first derivatives.")
    parser.add_argument("--repeat", type=int, default=15, help="turns of each (default 15)")
    parser.add_argument("--check", action="store_true", help="exit with status 1 when a target is missed")
    options = parser.parse_args(arguments)
    plaingrad.grad(made(straight(4)))(0.3)  # what is imported at the first derivative of all
    figures: list[Figure] = []

    def measured() -> Iterator[Figure]:
        for figure in first_calls(options.repeat):
            figures.append(figure)
            yield figure

    print(f"core: {plaingrad.info()['core']}")
    report(measured())
    return 1 if options.check and any(figure.is_missed for figure in figures) else 0


if __name__ == "__main__":
    sys.exit(main())
