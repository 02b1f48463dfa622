"""Gradients of ordinary programs beside a plain call, autograd and PyTorch, taken side by side in one run.

    python -m benchmarks.ordinary                   # every program
    python -m benchmarks.ordinary bodies lstm       # those with these words in their names
    python -m benchmarks.ordinary --forms           # also with the Python form of the core, in another process

One thread. The candidates of a program take turns and the least time of each counts; the table says how many plain
calls each takes. PyTorch runs programs of floats on numbers of its own.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import plaingrad
from benchmarks.ordinary import arrays, scalars  # noqa: F401 - their programs
from benchmarks.ordinary.program import PROGRAMS, Program

try:
    import autograd
    import autograd.numpy as autograd_numpy
except ImportError:
    autograd = autograd_numpy = None
try:
    import torch
except ImportError:
    torch = None
else:
    torch.set_num_threads(1)


def ours(p: Program) -> dict[str, Callable[[], Any]]:
    """Our derivatives, to be called."""
    gradient = plaingrad.grad(p.f)
    if isinstance(p.x, np.ndarray):
        dot: Any = np.ones_like(p.x)
    else:
        dot = [1.0] * len(p.x) if isinstance(p.x, list) else 1.0
    return {
        "gradient": lambda: gradient(p.x),
        "jvp": lambda: plaingrad.jvp(p.f, (p.x,), (dot,)),
        "hvp": lambda: plaingrad.hvp(p.f, (p.x,), (dot,)),
    }


def peers(p: Program) -> dict[str, Callable[[], Any]]:
    """Gradients by other packages, where they are installed and can."""
    found: dict[str, Callable[[], Any]] = {}
    if autograd is not None and "autograd" in p.peers:
        by_autograd = autograd.grad(lambda x: p.f(x, autograd_numpy))
        found["autograd"] = lambda: by_autograd(p.x)
    if torch is not None and "torch" in p.peers:

        def by_torch() -> Any:
            xs = p.x if isinstance(p.x, list) else [p.x]
            leaves = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in xs]
            p.f(leaves if isinstance(p.x, list) else leaves[0], torch).backward()
            return [leaf.grad for leaf in leaves]

        found["torch"] = by_torch
    return found


def least(candidates: dict[str, Callable[[], Any]], seconds: float) -> dict[str, float]:
    """The least time of one call of each; they take turns for so many seconds."""
    best: dict[str, float] = {}
    for name, call in candidates.items():
        call()
        begun = time.perf_counter()
        call()
        best[name] = time.perf_counter() - begun
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        for name, call in candidates.items():
            begun = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - begun)
    return best


def row(p: Program, seconds: float) -> dict[str, Any]:
    """The figures of a program: seconds of a plain call, all else in plain calls."""
    times = least({"plain": lambda: p.f(p.x), **ours(p), **peers(p)}, seconds)
    plain = times.pop("plain")
    return {"plain": plain, **{name: t / plain for name, t in times.items()}}


def main() -> int:
    """Print the table."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("words", nargs="*", help="programs with one of these in their names")
    options.add_argument("--seconds", type=float, default=1.5, help="for each program (default %(default)g)")
    options.add_argument("--forms", action="store_true", help="the Python form of the core, too")
    options.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    chosen = [p for p in PROGRAMS.values() if not given.words or any(w in p.name for w in given.words)]
    rows = {p.name: row(p, given.seconds) for p in chosen}
    if given.json:
        print(json.dumps(rows))
        return 0
    columns = ["gradient", "jvp", "hvp", "autograd", "torch"]
    if given.forms:
        columns.insert(1, "in Python")
        again = [
            sys.executable,
            "-m",
            "benchmarks.ordinary",
            "--json",
            "--seconds",
            str(given.seconds),
            *given.words,
        ]
        text = subprocess.run(
            again, capture_output=True, text=True, check=True, env={**os.environ, "PLAINGRAD_COMPILED": "0"}
        )
        for name, found in json.loads(text.stdout).items():
            rows[name]["in Python"] = found["gradient"]
    print(f"in plain calls; core: {plaingrad.info()['core']}\n")
    print(f"{'program':52}{'ms plain':>9}" + "".join(f"{c:>10}" for c in columns) + f"{'goal':>6}")
    for p in chosen:
        figures = rows[p.name]
        cells = "".join(f"{figures[c]:10.1f}" if c in figures else f"{'':10}" for c in columns)
        print(f"{p.name:52}{figures['plain'] * 1e3:9.3f}{cells}{p.goal or '':>6}")
    gradients = [rows[p.name]["gradient"] for p in chosen]
    print(f"\ngradient: median {statistics.median(gradients):.1f} plain calls, worst {max(gradients):.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
