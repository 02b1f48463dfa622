"""Gradients of programs that call SciPy, beside a plain call and JAX, taken side by side in one run.

    python -m benchmarks.scipy                      # every family
    python -m benchmarks.scipy special linalg       # these
    python -m benchmarks.scipy --alone              # without JAX
    python -m benchmarks.scipy --slopes             # elementwise functions beside their slopes, 10^6 points
    python -m benchmarks.scipy --million            # a differential equation with 10^6 unknowns: minutes, 2 GB

Every gradient is compared with central differences first. One thread. The candidates of a program take turns and the
least time of each counts; the table says how many plain calls of SciPy each takes. JAX runs the same source,
compiled, in double precision and in one thread. "-" is what is refused or missing, said below the table.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import argparse
import importlib
import sys
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

import plaingrad
from benchmarks.ordinary.__main__ import least
from benchmarks.ordinary.check import gap, like, numbers
from benchmarks.ordinary.program import Program, programs_of
from benchmarks.scipy import million, peers, slopes

FAMILIES = (
    "special", "linalg", "sparse", "optimize", "integrate", "interpolate", "signal", "ndimage", "fft", "stats",
    "spatial",
)  # fmt: skip
COLUMNS = ["gradient", "JAX", "JAX gradient"]


def check(p: Program, gradient: Any, tolerance: float) -> None:
    """Raise unless the gradient agrees with differences along all axes, or along three random directions."""
    x = numbers(p.x)
    directions = np.eye(x.size) if x.size <= 8 else np.random.default_rng(0).normal(size=(3, x.size))
    error = gap(directions @ numbers(gradient), lambda y: p.f(like(p.x, y)), x, directions, 0.0)
    if not error < tolerance:
        raise AssertionError(f"{p.name}: the gradient is off by {error:.1e}")


def row(p: Program, family: ModuleType, seconds: float, alone: bool) -> dict[str, Any]:
    """The figures of a program: milliseconds of a plain call, all else in plain calls, and who has none and why."""
    gradient = plaingrad.grad(p.f)
    candidates: dict[str, Callable[[], Any]] = {"plain": lambda: p.f(p.x)}
    refused = {}
    try:
        found = gradient(p.x)
    except plaingrad.MissingRuleError as error:
        refused["plaingrad"] = str(error).splitlines()[0]
    else:
        check(p, found, getattr(family, "TOLERANCE", 1e-6))
        candidates["gradient"] = lambda: gradient(p.x)
        if not alone:
            works, why = peers.gradients(p, found)
            candidates.update(works)
            if why:
                refused["JAX"] = why
    times = least(candidates, seconds)
    plain = times.pop("plain")
    return {"plain": 1e3 * plain, **{name: t / plain for name, t in times.items()}, "refused": refused}


def line(name: str, figures: dict[str, Any], goal: float | None) -> str:
    """A row of the table."""
    cells = "".join(f"{figures[c]:14.1f}" if c in figures else f"{'-':>14}" for c in COLUMNS)
    over = " *" if goal and figures.get("gradient", 0.0) > goal else ""
    return f"{name:56}{figures['plain']:9.2f}{cells}{goal or '':>6}{over}"


def main() -> int:
    """Print the table."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("families", nargs="*", metavar="FAMILY", help=", ".join(FAMILIES))
    options.add_argument("--seconds", type=float, default=2.0, help="for each program (default %(default)g)")
    options.add_argument("--alone", action="store_true", help="without JAX")
    options.add_argument("--slopes", action="store_true", help="only elementwise functions and their slopes")
    options.add_argument("--million", action="store_true", help="only the differential equation")
    given = options.parse_args()
    if unknown := set(given.families) - set(FAMILIES):
        options.error(f"no such family: {', '.join(sorted(unknown))}")
    warnings.simplefilter("ignore")  # other packages'
    if given.slopes:
        return slopes.main(given.seconds)
    if given.million:
        return million.main()
    print(f"in plain calls of SciPy; core: {plaingrad.info()['core']}; * costs more than the goal\n")
    print(f"{'program':56}{'ms plain':>9}" + "".join(f"{c:>14}" for c in COLUMNS) + f"{'goal':>6}")
    refused = []
    for name in given.families or FAMILIES:
        family = importlib.import_module(f"benchmarks.scipy.{name}")
        print(name)
        for p in programs_of(family):
            figures = row(p, family, given.seconds, given.alone)
            print(line(f"  {p.name}", figures, p.goal), flush=True)
            refused += [f"  {name}, {p.name}: {who}: {why}" for who, why in figures["refused"].items()]
    if refused:
        print("\nno figure:", *refused, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
