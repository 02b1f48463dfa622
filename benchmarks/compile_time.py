"""How long a first native gradient takes as programs grow, beside Numba's own compile of the function alone.

    python -m benchmarks.compile_time                       # 10 to 1000 statements, all kinds of programs
    python -m benchmarks.compile_time straight --sizes 10,100
    python -m benchmarks.compile_time --passes              # where Numba's time goes, and how its passes grow
    python -m benchmarks.compile_time --check               # exit status 1 when a target is missed

Processor time of one process in which Numba is warm. A column `growth` is the exponent with which the time has grown
since the size before: 1 is linear. The parts of a first gradient are Numba's front end (the typed IR of the function),
the derivation, and Numba's compile of both sweeps.
"""

import os

os.environ["PLAINGRAD_CACHE_DIR"] = ""  # a first call is one that derives and compiles

import argparse
import dataclasses
import math
import random
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numba
from numba import types

from plaingrad.native.compile import build
from plaingrad.native.frontend.current import dispatcher_of

SIGNATURE = (types.float64, types.float64)
SIZES = (10, 30, 100, 300, 1000)
OF_PRIMAL, EXTRA = (
    2.0,
    1.0,
)  # a first gradient: at most so many times the function's compile, and so many seconds
LINEAR = 1.5  # the exponent of the derivation, from 100 statements on, is at most this
SHORTEST = 0.05  # seconds, below which no growth is told


# --- programs ------------------------------------------------------------------------------------------------------


def straight(k: int, a: str, b: str) -> list[str]:
    """Every statement gives a variable of its own a value."""
    return [f"v{k} = {a} * 0.3 + math.sin({b})"]


def calls(k: int, a: str, b: str) -> list[str]:
    """Every other statement calls one of four functions."""
    return straight(k, a, b) if k % 2 else [f"v{k} = helper{k % 4}({a}, {b})"]


def branches(k: int, a: str, b: str) -> list[str]:
    """Every tenth statement is a branch."""
    if k % 10:
        return straight(k, a, b)
    return [f"if {a} > {b}:", f"    v{k} = {a} * {b}", "else:", f"    v{k} = {b} - {a}"]


def loops(k: int, a: str, b: str) -> list[str]:
    """Every twentieth statement is a loop."""
    if k % 20:
        return straight(k, a, b)
    return [f"v{k} = {a}", f"for i{k} in range(3):", f"    v{k} = v{k} * 0.5 + {b}"]


def reassigned(k: int, a: str, b: str) -> list[str]:
    """Four variables are assigned over and over."""
    name = "wxyz"[k % 4] if k % 5 else f"v{k}"
    return [f"{name} = {a} * 0.3 + math.sin({b})", f"v{k} = {name}"]


PROGRAMS: dict[str, Callable[[int, str, str], list[str]]] = {
    make.__name__: make for make in (straight, calls, branches, loops, reassigned)
}
HELPERS = "".join(f"def helper{k}(a, b):\n    return a * b + math.cos(a) * {k}.5\n\n" for k in (0, 2))


def program(kind: str, size: int) -> Any:
    """A function of two numbers with so many statements."""
    choose = random.Random(size)
    names = ["x", "y", "w", "z"]
    lines = ["w, z = x + y, x * y"]
    for k in range(size):
        recent = names[-8:]
        lines += PROGRAMS[kind](k, choose.choice(recent), choose.choice(recent))
        names.append(f"v{k}")
    lines.append(f"return {' + '.join(names[-8:])}")
    text = HELPERS + "def program(x, y):\n" + "".join(f"    {line}\n" for line in lines)
    space: dict[str, Any] = {"math": math}
    exec(compile(text, f"<{kind} {size}>", "exec"), space)
    return space["program"]


# --- measuring -----------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Row:
    """Seconds for one program.

    Attributes:
        primal: Numba's compile of the function.
        front: Numba's front end, for its typed IR.
        derivation: what plaingrad does.
        sweeps: Numba's compile of the forward and the reverse sweep.
        passes: pass of Numba -> seconds, in the compile of both sweeps.
    """

    primal: float
    front: float
    derivation: float
    sweeps: float
    passes: dict[str, float]

    @property
    def first(self) -> float:
        """The whole first gradient."""
        return self.front + self.derivation + self.sweeps


def passes_of(*dispatchers: Any) -> dict[str, float]:
    """Seconds by pass of Numba's pipeline."""
    found: dict[str, float] = {}
    for dispatcher in dispatchers:
        for overload in dispatcher.overloads.values():
            for name, times in overload.metadata["pipeline_times"]["nopython"].items():
                plain = name.partition("_")[2]
                found[plain] = found.get(plain, 0.0) + times.init + times.run + times.finalize
    return found


def measured(kind: str, size: int) -> Row:
    """The times of one program."""
    f = program(kind, size)
    clock = time.process_time
    front = 0.0
    front_end = build.program

    def timed(*args: Any) -> Any:
        nonlocal front
        begun = clock()
        try:
            return front_end(*args)
        finally:
            front += clock() - begun

    begun = clock()
    dispatcher_of(f).compile(SIGNATURE)  # what it calls compiled by Numba, too
    primal = clock() - begun
    build.program = timed
    try:
        begun = clock()
        derived = build.derived("pullback", f, SIGNATURE, (0, 1))
        derivation = clock() - begun - front
    finally:
        build.program = front_end
    begun = clock()
    derived.run(1.1, 0.9, 1.0)
    sweeps = clock() - begun
    return Row(primal, front, derivation, sweeps, passes_of(derived.run.forward, derived.run.backward))


def growth(before: float | None, now: float, ratio: float) -> float:
    """The exponent p of now = before * ratio**p; nan where times are too short to tell."""
    if before is None or min(before, now) < SHORTEST:
        return math.nan
    return math.log(now / before) / math.log(ratio)


def table(kind: str, sizes: list[int], by_pass: bool) -> Iterator[str]:
    """Print the times of a kind of program; yields what is missed."""
    print(f"\n{kind}: {(PROGRAMS[kind].__doc__ or '').rstrip('.').lower()}")
    titles = ("size", "value", "front", "derive", "growth", "sweeps", "growth", "first", "at most")
    print("".join(f"{title:>9}" for title in titles))
    before: tuple[int, Row] | None = None
    for size in sizes:
        try:
            row = measured(kind, size)
        except RecursionError:
            print(f"{size:>9}  Numba itself cannot compile the function: its SSA pass recurses too deeply")
            continue
        ratio = size / before[0] if before else math.nan
        old = before[1] if before else None
        derive = growth(old and old.derivation, row.derivation, ratio)
        sweeps = growth(old and old.sweeps, row.sweeps, ratio)
        most = OF_PRIMAL * row.primal + EXTRA
        numbers = (row.primal, row.front, row.derivation, derive, row.sweeps, sweeps, row.first, most)
        print(f"{size:>9}" + "".join(f"{x:>9.2f}" for x in numbers), flush=True)
        if row.first > most:
            yield f"{kind}, {size} statements: {row.first:.2f} s, target <= {most:.2f} s"
        if size > 100 and derive > LINEAR:
            yield f"{kind}, {size} statements: the derivation grows with exponent {derive:.2f}, target <= {LINEAR}"
        if by_pass:
            longest = sorted(row.passes, key=row.passes.__getitem__, reverse=True)[:5]
            for name in longest:
                exponent = growth(old and old.passes.get(name), row.passes[name], ratio)
                print(f"{'':>9}  {name:<28}{row.passes[name]:>7.2f} s, growth {exponent:.2f}")
        before = size, row


def main(arguments: list[str] | None = None) -> int:
    """Measure the kinds of programs that were asked for; returns the exit status."""
    parser = argparse.ArgumentParser(description="Compile times of native gradients.")
    parser.add_argument("kinds", nargs="*", help=f"which ones: {', '.join(PROGRAMS)}; default: all")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers of statements")
    parser.add_argument(
        "--passes", action="store_true", help="tell Numba's five longest passes for each size"
    )
    parser.add_argument("--check", action="store_true", help="exit with status 1 when a target is missed")
    options = parser.parse_args(arguments)
    unknown = [kind for kind in options.kinds if kind not in PROGRAMS]
    if unknown:
        parser.error(f"no kind named {', '.join(unknown)}; there are {', '.join(PROGRAMS)}")
    sizes = [int(size) for size in options.sizes.split(",")]
    print(f"seconds; Numba {numba.__version__}, Python {sys.version.partition(' ')[0]}")
    for kind in PROGRAMS:
        measured(kind, 5)  # Numba and the helpers are warm
    missed = [line for kind in options.kinds or PROGRAMS for line in table(kind, sizes, options.passes)]
    print(f"\n{len(missed)} targets missed" + "".join(f"\n  {line}" for line in missed))
    return 1 if missed and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
