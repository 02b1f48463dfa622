"""Gradients of ordinary programs beside a plain call, autograd, PyTorch and JAX, taken side by side in one run.

    python -m benchmarks.ordinary                   # every program
    python -m benchmarks.ordinary bodies lstm       # those with these words in their names
    python -m benchmarks.ordinary --whole           # whole programs only
    python -m benchmarks.ordinary --alone           # without other packages
    python -m benchmarks.ordinary --forms           # also with the Python form of the core, in another process

Every derivative of ours is compared with central differences first. One thread. The candidates of a program take
turns and the least time of each counts; the table says how many plain calls each takes. Others run the same source
with their own functions; "-" is what they refuse, do not finish in 5 s, or get wrong, said below the table.
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
import warnings
from collections.abc import Callable
from typing import Any

import plaingrad
from benchmarks.ordinary import arrays, scalars
from benchmarks.ordinary.check import check, direction
from benchmarks.ordinary.peers import all_peers, gradients
from benchmarks.ordinary.program import Program, programs_of
from benchmarks.ordinary.wholes import wholes

OURS = ["gradient", "jvp", "hvp"]


def ours(p: Program) -> dict[str, Callable[[], Any]]:
    """Our derivatives, to be called."""
    gradient, dot = plaingrad.grad(p.f), direction(p.x)
    return {
        "gradient": lambda: gradient(p.x),
        "jvp": lambda: plaingrad.jvp(p.f, (p.x,), (dot,)),
        "hvp": lambda: plaingrad.hvp(p.f, (p.x,), (dot,)),
    }


def least(candidates: dict[str, Callable[[], Any]], seconds: float, rounds: int = 5) -> dict[str, float]:
    """The least time of one call of each; they take turns, in each of which they have as much time."""
    best = dict.fromkeys(candidates, float("inf"))
    turn = seconds / rounds / len(candidates)
    for k in range(rounds):
        for name, call in candidates.items():
            if k > 1 and best[name] > seconds:
                continue  # two calls of what takes that long are enough
            until = time.perf_counter() + turn
            while True:
                begun = time.perf_counter()
                call()
                ended = time.perf_counter()
                best[name] = min(best[name], ended - begun)
                if ended >= until:
                    break
    return best


def row(p: Program, seconds: float, with_peers: bool, jit: bool = False) -> dict[str, Any]:
    """The figures of a program: seconds of a plain call, all else in plain calls, and what others refuse."""
    check(p)
    works, refused = gradients(p, jit) if with_peers else ({}, {})
    times = least({"plain": lambda: p.f(p.x), **ours(p), **works}, seconds)
    plain = times.pop("plain")
    return {"plain": plain, **{name: t / plain for name, t in times.items()}, "refused": refused}


def in_python(chosen: list[Program], seconds: float) -> dict[str, Any]:
    """The rows with the Python form of the core, from another process."""
    again = [sys.executable, "-m", "benchmarks.ordinary", "--json", "--seconds", str(seconds)]
    text = subprocess.run(
        [*again, *(p.name for p in chosen)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PLAINGRAD_COMPILED": "0"},
    )
    return json.loads(text.stdout)


def summary(title: str, rows: dict[str, dict[str, Any]]) -> None:
    """The medians and the worst rows."""
    print(f"\n{title}, {len(rows)}:")
    for column, unit in (("gradient", "plain calls"), ("jvp", "plain calls"), ("hvp", "gradients")):
        of = {
            name: found[column] / (found["gradient"] if unit == "gradients" else 1)
            for name, found in rows.items()
        }
        worst = max(of, key=of.__getitem__)
        median = statistics.median(of.values())
        print(f"  {column:9} median {median:5.1f} {unit}, worst {of[worst]:6.1f} ({worst})")


def line(name: str, figures: dict[str, Any], columns: list[str], goal: float | None) -> str:
    """A row of the table."""
    cells = "".join(f"{figures[c]:10.1f}" if c in figures else f"{'-':>10}" for c in columns)
    return f"{name:50}{figures['plain'] * 1e3:9.3f}{cells}{goal or '':>6}"


def main() -> int:
    """Print the table."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("words", nargs="*", help="programs with one of these in their names")
    options.add_argument("--seconds", type=float, default=2.0, help="for each program (default %(default)g)")
    options.add_argument("--whole", action="store_true", help="whole programs only")
    options.add_argument("--alone", action="store_true", help="without other packages")
    options.add_argument(
        "--jit", action="store_true", help="JAX compiled, too: that can take minutes a program"
    )
    options.add_argument("--forms", action="store_true", help="the Python form of the core, too")
    options.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    warnings.simplefilter("ignore")  # other packages'
    groups = {"parts of programs": programs_of(scalars) + programs_of(arrays), "whole programs": wholes()}
    if given.whole:
        del groups["parts of programs"]
    for title, group in groups.items():
        groups[title] = [p for p in group if not given.words or any(w in p.name for w in given.words)]
    chosen = [p for group in groups.values() for p in group]
    alone = given.alone or given.json
    if given.json:
        print(json.dumps({p.name: row(p, given.seconds, False) for p in chosen}))
        return 0
    columns = OURS + ([] if alone else list(all_peers(given.jit)))
    others = in_python(chosen, given.seconds) if given.forms else {}
    if given.forms:
        columns.insert(1, "in Python")
    print(f"in plain calls; core: {plaingrad.info()['core']}\n")
    print(f"{'program':50}{'ms plain':>9}" + "".join(f"{c:>10}" for c in columns) + f"{'goal':>6}")
    rows = {}
    for p in chosen:
        rows[p.name] = row(p, given.seconds, not alone, given.jit)
        if p.name in others:
            rows[p.name]["in Python"] = others[p.name]["gradient"]
        print(line(p.name, rows[p.name], columns, p.goal), flush=True)
    for title, group in groups.items():
        if group:
            summary(title, {p.name: rows[p.name] for p in group})
    if any(rows[p.name]["refused"] for p in chosen):
        print("\nno figure:")
    for p in chosen:
        for name, why in rows[p.name]["refused"].items():
            print(f"  {p.name}: {name}: {why}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
