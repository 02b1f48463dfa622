"""Candidates take turns, their gradients are compared, and the figures are judged. Times are of the processor."""

import argparse
import ctypes
import dataclasses
import functools
import importlib
import json
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np

from benchmarks.native import micro, problems
from benchmarks.native.case import Case, Peer
from benchmarks.plain import Figure, best_times, report
from plaingrad.native.border import call

WORKLOADS: dict[str, Callable[[], Case]] = {
    make.__name__: make
    for make in (
        micro.lotka_volterra,
        micro.newton,
        micro.heat,
        micro.reaction,
        micro.heat_with_k,
        micro.asian,
        micro.logistic,
        problems.mlp,
        problems.gmm,
        problems.ba,
        problems.lstm,
    )
}
SYSTEMS = ("jax", "torch", "autograd", "enzyme")  # modules of this folder, NAME_peers

PRIMAL, OURS = "Numba, value only", "plaingrad"
FLAGS = {  # of the user's own, for the value; by default it keeps the order of sums and contracts nothing
    "plaingrad, user's contract": {"contract"},
    "plaingrad, user's reassoc": {"contract", "reassoc", "nsz"},
}
REVERSE = "plaingrad, reverse mode"  # where gradients in few arguments are taken forward
OBJECTIVE = "C, value only"
C_FLAGS = ("-O3", "-march=native", "-shared", "-fPIC")


class Libraries:
    """The C adjoints, compiled by gcc.

    Attributes:
        exact, fast: the micro-workloads, with and without -ffast-math; None without their file.
        adbench: the problems of ADBench.
    """

    exact: Any = None
    fast: Any = None
    adbench: Any = None

    def __init__(self, micro_file: str | None, folder: str) -> None:
        compiler = shutil.which("gcc")
        if compiler is None:
            return

        def built(name: str, source: str | Path, *flags: str) -> Any:
            made = Path(folder) / f"{name}.so"
            subprocess.run([compiler, *C_FLAGS, *flags, str(source), "-o", str(made), "-lm"], check=True)
            return ctypes.CDLL(str(made))

        self.adbench = built("adbench", Path(__file__).with_name("adbench.c"))
        if micro_file is not None:
            self.exact, self.fast = built("exact", micro_file), built("fast", micro_file, "-ffast-math")

    def candidates(self, name: str, case: Case) -> Iterator[tuple[str, Callable[[], Any]]]:
        """The C objective and the C adjoints of a workload; the best adjoint is called `case.best`."""
        if case.in_c is None:
            return
        library = self.exact if hasattr(micro, name) else self.adbench
        if name == "mlp":
            library = self  # NumPy by hand needs no library
        if library is None:
            return
        if case.objective_in_c is not None:
            yield OBJECTIVE, case.objective_in_c(library)
        for label, run in case.in_c(library).items():
            yield (f"{label}, -O3 only" if name == "logistic" else label), run
        if name == "logistic":  # the best needs sums in another order
            yield case.best, case.in_c(self.fast)[case.best]


def compare(name: str, label: str, ours: tuple[Any, np.ndarray], theirs: tuple[Any, np.ndarray]) -> None:
    """Whether two candidates found the same.

    Raises:
        AssertionError: they did not.
    """
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-9, atol=1e-9, err_msg=f"{name}: value, {label}")
    wanted = np.ravel(theirs[1])
    scale = np.max(np.abs(wanted))
    np.testing.assert_allclose(
        np.ravel(ours[1]), wanted, rtol=1e-8, atol=1e-9 * scale, err_msg=f"{name}: {label}"
    )


def peers_of(name: str, case: Case, systems: tuple[str, ...]) -> Iterator[tuple[str, Peer]]:
    """The candidates of other systems; those that are missing or fail are named on standard error."""
    for system in systems:
        try:
            module = importlib.import_module(f"benchmarks.native.{system}_peers")
        except ImportError as error:
            print(f"note: no {system}: {error}", file=sys.stderr)
            continue
        make = module.PEERS.get(name)
        if make is None:
            continue
        try:
            yield from make(case)
        except Exception as error:  # a system that fails on this workload is left out, with a note
            print(f"note: {name}, {system}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)


def measured(
    name: str, libraries: Libraries, systems: tuple[str, ...], repeat: int, with_flags: bool
) -> Iterator[Figure]:
    """The figures of one workload."""
    case = WORKLOADS[name]()
    primal = numba.njit(case.f)
    ours = case.gradient(case.f)
    primal(*case.args)
    found = ours(*case.args)
    candidates: dict[str, Callable[[], Any]] = {
        PRIMAL: lambda: primal(*case.args),
        OURS: lambda: ours(*case.args),
    }
    if case.ours is None and sum(np.size(case.args[k]) for k in case.argnums) <= call.FEW_COLUMNS:
        in_reverse = in_reverse_mode(ours)
        compare(name, REVERSE, found, in_reverse(*case.args))
        candidates[REVERSE] = lambda: in_reverse(*case.args)
    if with_flags and hasattr(micro, name):  # functions that call others would need the flags on these too
        for label, flags in FLAGS.items():
            flagged = case.gradient(numba.njit(fastmath=flags)(case.f))
            compare(name, label, found, flagged(*case.args))
            candidates[label] = functools.partial(flagged, *case.args)
    for label, run in libraries.candidates(name, case):
        if label != OBJECTIVE:
            compare(name, label, found, run())
        candidates[label] = run
    times = best_times(candidates, repeat)
    for label, seconds in times.items():
        yield Figure(case.title, label, 1e3 * seconds, "ms")
    yield from ratios(case, times)
    for label, peer in peers_of(name, case, systems):
        try:
            begun = time.process_time()
            theirs = peer.run()
            first = time.process_time() - begun
            compare(name, label, found if peer.args is None else ours(*peer.args), theirs)
            turns = best_times({OURS: candidates[OURS], label: peer.run}, min(repeat, peer.turns))
        except Exception as error:  # as above
            print(f"note: {name}, {label}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr)
            continue
        seconds = turns[label] * peer.times
        note = f" ({peer.note})" if peer.note else ""
        yield Figure(case.title, f"{label}{note}", 1e3 * seconds, "ms")
        yield Figure(case.title, f"{label} / {OURS}", seconds / turns[OURS], "x")
        if case.best in times:
            yield Figure(case.title, f"{label} / {case.best}", seconds / times[case.best], "x")
        yield Figure(case.title, f"{label}, first call", first, "s")
    yield from first_calls(name, case.title, repeat)


def in_reverse_mode(gradient: Callable[..., Any]) -> Callable[..., Any]:
    """`gradient` by a reverse sweep, however few the arguments are."""

    def run(*args: Any) -> Any:
        usual, call.FEW_COLUMNS = call.FEW_COLUMNS, 0
        try:
            return gradient(*args)
        finally:
            call.FEW_COLUMNS = usual

    return run


def ratios(case: Case, times: dict[str, float]) -> Iterator[Figure]:
    """Our gradient as a multiple of Numba's primal and of the C adjoints."""
    ours = times[OURS]
    yield Figure(case.title, f"{OURS} / value", ours / times[PRIMAL], "x", at_most=case.of_primal)
    if REVERSE in times:
        yield Figure(
            case.title, f"{REVERSE} / value", times[REVERSE] / times[PRIMAL], "x", at_most=case.of_primal
        )
    if case.best in times:
        limit = case.of_c if case.objective_of_c is None else None
        yield Figure(case.title, f"{OURS} / {case.best}", ours / times[case.best], "x", at_most=limit)
        for other in (REVERSE, *FLAGS):
            if other in times:
                yield Figure(case.title, f"{other} / {case.best}", times[other] / times[case.best], "x")
        for label in times:
            if label.startswith(f"{case.best},"):
                yield Figure(case.title, f"{OURS} / {label}", ours / times[label], "x")
    if OBJECTIVE in times:
        limit = None if case.objective_of_c is None else round(case.of_c * case.objective_of_c, 3)
        yield Figure(case.title, f"{OURS} / {OBJECTIVE}", ours / times[OBJECTIVE], "x", at_most=limit)


FIRST = """
import os, time
from benchmarks.native.measure import WORKLOADS, numba
os.environ["PLAINGRAD_CACHE_DIR"] = {folder!r}
from plaingrad.native.compile import cache
cache.key_of = lambda *args: None  # programs are derived anew; the helpers that they call are kept
numba.njit(lambda x: x + 1.0)(1.0)  # Numba's own start is nobody's first call
case = WORKLOADS[{name!r}]()
primal, ours = numba.njit(case.f), case.gradient(case.f)
begun = time.process_time()  # of the processor: a neighbour on the machine does not count
primal(*case.args)
told = time.process_time() - begun
begun = time.process_time()
ours(*case.args)
print(told, time.process_time() - begun)
"""


def first_calls(name: str, title: str, repeat: int) -> Iterator[Figure]:
    """The first gradient in a process, on a machine that has compiled the helpers of programs before and a new one."""

    def taken(folder: str) -> tuple[float, float]:
        command = [sys.executable, "-c", FIRST.format(folder=folder, name=name)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        value, gradient = map(float, done.stdout.split()[-2:])
        return value, gradient

    new, usual = [], []
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as folder:
            new.append(taken(folder))
            usual.append(taken(folder))
    value = min(told for told, _ in new + usual)
    yield Figure(title, "first call, value only", value, "s")
    limit = round(2.0 * value + 1.0, 2)
    for label, times in (("", usual), (", no helper on disk", new)):
        yield Figure(title, f"first call, gradient{label}", min(t for _, t in times), "s", at_most=limit)


SECOND = """
import os, time
from benchmarks.native import micro
os.environ["PLAINGRAD_CACHE_DIR"] = {folder!r}
import plaingrad.native.border.call
case = micro.lotka_volterra()
begun, worked = time.perf_counter(), time.process_time()
plaingrad.value_and_grad(case.f, case.argnums, tier="native")(*case.args)
print(time.perf_counter() - begun, time.process_time() - worked)
"""


def second_process(folder: str, repeat: int) -> Iterator[Figure]:
    """The first call in a process where another one has compiled before, without imports."""
    times = []
    for _ in range(1 + repeat):
        command = [sys.executable, "-c", SECOND.format(folder=folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        times.append(tuple(map(float, done.stdout.split())))
    title = "from the cache on disk: Lotka-Volterra"
    yield Figure(title, "first call, first process", times[0][0], "s")
    yield Figure(title, "first call, later ones", min(times[1:])[0], "s", at_most=0.3)
    yield Figure(title, "the same, processor time", min(cpu for _, cpu in times[1:]), "s")


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.native",
        description="Time the native tier beside Numba, C and other systems.",
    )
    parser.add_argument("workloads", nargs="*", help=f"which ones: {', '.join(WORKLOADS)}; default: all")
    parser.add_argument(
        "--c", metavar="FILE", help="the C adjoints of the micro-workloads (shared/bench/micro.c)"
    )
    parser.add_argument(
        "--peers", nargs="*", metavar="SYSTEM", choices=SYSTEMS, help=f"other systems, default all: {SYSTEMS}"
    )
    parser.add_argument("--flags", action="store_true", help="also with fastmath options of the user's")
    parser.add_argument("--repeat", type=int, default=5, help="turns of each candidate (default 5)")
    parser.add_argument("--check", action="store_true", help="exit with status 1 when a target is missed")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE as well")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.workloads if name not in WORKLOADS]
    if unknown:
        parser.error(f"no workload named {', '.join(unknown)}; there are {', '.join(WORKLOADS)}")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Run the workloads that were asked for; returns the exit status."""
    options = parsed(arguments)
    systems = () if options.peers is None else tuple(options.peers) or SYSTEMS
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        libraries = Libraries(options.c, folder)
        peers = [f"Numba {numba.__version__}", f"NumPy {np.__version__}"]
        peers.append("no gcc" if libraries.adbench is None else f"C by gcc {' '.join(C_FLAGS[:2])}")
        print(
            f"CPython {platform.python_version()}, {', '.join(peers)}; one thread, best of {options.repeat}"
        )

        def every() -> Iterator[Figure]:
            for name in options.workloads or WORKLOADS:
                yield from measured(name, libraries, systems, options.repeat, options.flags)
            if not options.workloads:
                yield from second_process(folder, options.repeat)

        def kept() -> Iterator[Figure]:
            for figure in every():
                figures.append(figure)
                yield figure

        report(kept())
    if options.json:
        with open(options.json, "w") as file:
            json.dump([dataclasses.asdict(figure) for figure in figures], file, indent=1)
    judged = [figure for figure in figures if figure.target]
    missed = [figure for figure in judged if figure.is_missed]
    print(f"\n{len(judged) - len(missed)} of {len(judged)} targets met" + ("; missed:" if missed else "."))
    for figure in missed:
        print(
            f"  {figure.workload}: {figure.name} is {figure.value:.2f} {figure.unit}, target {figure.target}"
        )
    return 1 if options.check and missed else 0
