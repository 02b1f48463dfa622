"""Times of the native tier beside Numba's primal and C adjoints written by hand, taken side by side in one run.

    python -m benchmarks.native                             # everything, without C
    python -m benchmarks.native --c micro.c --repeat 9      # C adjoints, compiled by gcc
    python -m benchmarks.native lotka_volterra newton --check

One thread, one process. The candidates of a workload take turns and the minimum of the turns counts; only ratios
within one run mean something. Without gcc and a file of C adjoints, the targets that are multiples of C are not judged.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"  # before NumPy loads its BLAS

os.environ["PLAINGRAD_CACHE_DIR"] = ""  # a first call is one that derives and compiles

import argparse
import ctypes
import dataclasses
import json
import math
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

import plaingrad
from benchmarks.plain import Figure, best_times, report

PRIMAL, OURS, THEIRS = "Numba, value only", "plaingrad", "C adjoint"
C_FLAGS = ("-O3", "-march=native", "-shared", "-fPIC")


@dataclasses.dataclass
class Case:
    """A workload: what is differentiated, where, and the best C gradient of it.

    Attributes:
        f: the primal, Python that Numba compiles.
        args: its arguments.
        argnums: the positions to differentiate.
        in_c: given the C library, the functions that each return (value, gradient as one vector).
        of_c: at most so many times the best C gradient.
        of_primal: at most so many times Numba's primal; None where no target is set.
    """

    f: Callable[..., Any]
    args: tuple[Any, ...]
    argnums: tuple[int, ...]
    in_c: Callable[[Any], dict[str, Callable[[], Any]]]
    of_c: float
    of_primal: float | None = None


def address(x: np.ndarray) -> Any:
    """A pointer for C."""
    return ctypes.c_void_p(x.ctypes.data)


# --- the workloads ---------------------------------------------------------------------------------------------


def lotka_volterra_primal(p, y0, h, n):
    """x + y after n Runge-Kutta steps of fourth order."""
    x, y = y0[0], y0[1]
    for _ in range(n):
        a1 = p[0] * x - p[1] * x * y
        b1 = p[3] * x * y - p[2] * y
        u, v = x + h / 2 * a1, y + h / 2 * b1
        a2 = p[0] * u - p[1] * u * v
        b2 = p[3] * u * v - p[2] * v
        u, v = x + h / 2 * a2, y + h / 2 * b2
        a3 = p[0] * u - p[1] * u * v
        b3 = p[3] * u * v - p[2] * v
        u, v = x + h * a3, y + h * b3
        a4 = p[0] * u - p[1] * u * v
        b4 = p[3] * u * v - p[2] * v
        x, y = x + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4), y + h / 6 * (b1 + 2 * b2 + 2 * b3 + b4)
    return x + y


def lotka_volterra() -> Case:
    """Lotka-Volterra by Runge-Kutta, 1e5 steps: derivatives in four parameters and two initial values."""
    p, y0, n, h = np.array([1.5, 1.0, 3.0, 1.0]), np.array([1.0, 1.0]), 100_000, 1e-4

    def in_c(library: Any) -> dict[str, Callable[[], Any]]:
        out, tape = np.empty(6), np.empty(2 * n)
        library.lv_grad.restype = ctypes.c_double

        def run() -> Any:
            arrays = map(address, (p, y0, out, tape))
            return library.lv_grad(n, ctypes.c_double(h), *arrays), out

        return {THEIRS: run}

    return Case(lotka_volterra_primal, (p, y0, h, n), (0, 1), in_c, 0.95, 3.0)


def newton_primal(p, n):
    """The mean square of roots, each found by Newton's method, that depend on one another."""
    s, total = p[3], 0.0
    for k in range(n):
        y = 1.0
        while True:
            f = y * y * y + p[0] * y - s
            if not abs(f) > 1e-10:
                break
            y -= f / (3.0 * y * y + p[0])
        total += y * y
        s = p[1] * y + p[2] * math.sin(0.01 * k) + 1.0
    return total / n


def newton() -> Case:
    """A Newton `while` inside a loop of 1e5."""
    p, n = np.array([1.3, 0.8, 2.0, 5.0]), 100_000

    def in_c(library: Any) -> dict[str, Callable[[], Any]]:
        out, counts, states = np.empty(4), np.empty(n, np.int32), np.empty(n)
        tape, room = ctypes.c_void_p(), ctypes.c_long()
        library.nw_grad.restype = ctypes.c_double

        def run() -> Any:
            memory = (ctypes.byref(tape), ctypes.byref(room), address(counts), address(states))
            return library.nw_grad(n, address(p), address(out), *memory), out

        return {THEIRS: run}

    return Case(newton_primal, (p, n), (0,), in_c, 1.05, 3.0)


def heat_primal(u0, c, steps):
    """Half the sum of squares after so many steps of the heat equation."""
    u = u0.copy()
    for _ in range(steps):
        v = u.copy()
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                v[i, j] = u[i, j] + c * (
                    u[i, j - 1] + u[i, j + 1] + u[i - 1, j] + u[i + 1, j] - 4.0 * u[i, j]
                )
        u = v
    total = 0.0
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            total += u[i, j] * u[i, j]
    return 0.5 * total


def reaction_primal(u0, c, k, steps):
    """The same with a logistic reaction."""
    u = u0.copy()
    for _ in range(steps):
        v = u.copy()
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                spread = c * (u[i, j - 1] + u[i, j + 1] + u[i - 1, j] + u[i + 1, j] - 4.0 * u[i, j])
                v[i, j] = u[i, j] + spread + k * u[i, j] * (1.0 - u[i, j])
        u = v
    total = 0.0
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            total += u[i, j] * u[i, j]
    return 0.5 * total


def heat_in_c(
    u0: np.ndarray, c: float, k: float, steps: int
) -> Callable[[Any], dict[str, Callable[[], Any]]]:
    """The C adjoint of both heat equations."""

    def in_c(library: Any) -> dict[str, Callable[[], Any]]:
        n = u0.shape[0]
        out, memory = np.empty_like(u0), np.empty(((steps + 1 if k else 2) + 2) * u0.size)
        library.heat_grad.restype = ctypes.c_double

        def run() -> Any:
            numbers = (n, steps, ctypes.c_double(c), ctypes.c_double(k))
            return library.heat_grad(*numbers, address(u0), address(out), address(memory)), out

        return {THEIRS: run}

    return in_c


def heat() -> Case:
    """A heat stencil, 256x256, 200 steps."""
    u0 = np.random.default_rng(0).random((256, 256))
    return Case(heat_primal, (u0, 0.2, 200), (0,), heat_in_c(u0, 0.2, 0.0, 200), 1.2, 3.0)


def reaction() -> Case:
    """Heat and reaction, 256x256, 200 steps."""
    u0 = np.random.default_rng(0).random((256, 256))
    return Case(reaction_primal, (u0, 0.2, 0.05, 200), (0,), heat_in_c(u0, 0.2, 0.05, 200), 1.2, 3.0)


def logistic_primal(w, data, labels):
    """The mean of softplus(x.w) - y x.w."""
    total = 0.0
    for i in range(data.shape[0]):
        s = 0.0
        for j in range(data.shape[1]):
            s += data[i, j] * w[j]
        total += (s if s > 0.0 else 0.0) + math.log1p(math.exp(-abs(s))) - labels[i] * s
    return total / data.shape[0]


def logistic() -> Case:
    """Logistic regression, 1e5 points of 100 features."""
    random = np.random.default_rng(0)
    data, w = random.normal(size=(100_000, 100)), 0.1 * random.normal(size=100)
    labels = (random.random(100_000) < 1.0 / (1.0 + np.exp(-data @ w))).astype(float)

    def in_c(library: Any) -> dict[str, Callable[[], Any]]:
        out = np.empty(100)
        library.lr_grad.restype = ctypes.c_double

        def run() -> Any:
            return library.lr_grad(*data.shape, *map(address, (data, labels, w, out))), out

        return {THEIRS: run}

    return Case(logistic_primal, (w, data, labels), (0,), in_c, 0.5)


def asian_primal(theta, z):
    """The price of an Asian call by Monte Carlo; theta: spot, strike, rate, volatility, maturity."""
    n, m = z.shape
    dt = theta[4] / m
    drift = (theta[2] - 0.5 * theta[3] * theta[3]) * dt
    spread = theta[3] * math.sqrt(dt)
    total = 0.0
    for i in range(n):
        price, mean = theta[0], 0.0
        for t in range(m):
            price *= math.exp(drift + spread * z[i, t])
            mean += price
        mean = mean / m - theta[1]
        if mean > 0.0:
            total += mean
    return math.exp(-theta[2] * theta[4]) * total / n


def asian() -> Case:
    """An Asian option by Monte Carlo, 100,032 paths of 50 steps."""
    theta = np.array([100.0, 100.0, 0.03, 0.2, 1.0])
    z = np.random.default_rng(0).normal(size=(100_032, 50))

    def in_c(library: Any) -> dict[str, Callable[[], Any]]:
        out, tape = np.empty(5), np.empty(2 * 50 * 64)
        turned = np.ascontiguousarray(z.T)
        library.mc_grad.restype = library.mcb_grad.restype = ctypes.c_double

        def run(function: Any, normals: np.ndarray) -> Any:
            arrays = map(address, (theta, normals, out, tape))
            return function(*z.shape, *arrays), out

        # the target of BASELINES is a multiple of the first
        return {
            THEIRS: lambda: run(library.mc_grad, z),
            f"{THEIRS}, in blocks": lambda: run(library.mcb_grad, turned),
        }

    return Case(asian_primal, (theta, z), (0,), in_c, 0.5, 3.0)


WORKLOADS = {make.__name__: make for make in (lotka_volterra, newton, heat, reaction, logistic, asian)}


# --- measuring -------------------------------------------------------------------------------------------------


def flat(gradient: Any) -> np.ndarray:
    """A gradient as one vector."""
    return np.concatenate([np.ravel(part) for part in gradient])


def measured(name: str, library: Any, repeat: int) -> Iterator[Figure]:
    """The figures of one workload."""
    case = WORKLOADS[name]()
    title = (WORKLOADS[name].__doc__ or name).rstrip(".")
    primal = numba.njit(case.f)
    begun = time.perf_counter()
    primal(*case.args)
    compiled = time.perf_counter()
    ours = plaingrad.value_and_grad(case.f, case.argnums, tier="native")
    value, gradient = ours(*case.args)
    first = time.perf_counter() - compiled
    candidates: dict[str, Callable[[], Any]] = {
        PRIMAL: lambda: primal(*case.args),
        OURS: lambda: ours(*case.args),
    }
    if library is not None:
        for label, run in case.in_c(library).items():
            their_value, their_gradient = run()
            np.testing.assert_allclose(value, their_value, rtol=1e-9, err_msg=name)
            scale = np.max(np.abs(their_gradient))
            theirs = np.ravel(their_gradient)
            np.testing.assert_allclose(flat(gradient), theirs, rtol=1e-9, atol=1e-9 * scale, err_msg=name)
            candidates[label] = run
    times = best_times(candidates, repeat)
    for label, seconds in times.items():
        yield Figure(title, label, 1e3 * seconds, "ms")
    yield Figure(title, f"{OURS} / value", times[OURS] / times[PRIMAL], "x", at_most=case.of_primal)
    if THEIRS in times:
        yield Figure(title, f"{OURS} / C", times[OURS] / times[THEIRS], "x", at_most=case.of_c)
    for label in candidates:
        if label.startswith(f"{THEIRS},"):
            yield Figure(title, f"{OURS} / C{label[len(THEIRS) :]}", times[OURS] / times[label], "x")
    seconds = compiled - begun
    yield Figure(title, "first call, value only", seconds, "s")
    yield Figure(title, "first call, gradient", first, "s", at_most=round(2.0 * seconds + 1.0, 2))


SECOND = """
import time
from benchmarks import native
case = native.lotka_volterra()
import plaingrad.native.call
begun, worked = time.perf_counter(), time.process_time()
native.plaingrad.value_and_grad(case.f, case.argnums, tier="native")(*case.args)
print(time.perf_counter() - begun, time.process_time() - worked)
"""


def second_process(folder: str, repeat: int) -> Iterator[Figure]:
    """The first call in a process where another one has compiled before, without imports."""
    program = SECOND.replace("case = ", f"native.os.environ['PLAINGRAD_CACHE_DIR'] = {folder!r}\ncase = ")
    times = []
    for _ in range(1 + repeat):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        times.append(tuple(map(float, done.stdout.split())))
    title = "From the cache on disk: Lotka-Volterra"
    yield Figure(title, "first call, first process", times[0][0], "s")
    yield Figure(title, "first call, later ones", min(times[1:])[0], "s", at_most=0.3)
    yield Figure(title, "the same, processor time", min(cpu for _, cpu in times[1:]), "s")


def c_library(path: str | None, folder: str, flags: tuple[str, ...]) -> Any:
    """The C adjoints, compiled; None without a file of them, or without gcc."""
    compiler = shutil.which("gcc")
    if path is None or compiler is None:
        return None
    built = Path(folder) / "adjoints.so"
    subprocess.run([compiler, *C_FLAGS, *flags, path, "-o", str(built), "-lm"], check=True)
    return ctypes.CDLL(str(built))


def main(arguments: list[str] | None = None) -> int:
    """Run the workloads that were asked for; returns the exit status."""
    parser = argparse.ArgumentParser(description="Time the native tier beside Numba and C.")
    parser.add_argument("workloads", nargs="*", help=f"which ones: {', '.join(WORKLOADS)}; default: all")
    parser.add_argument(
        "--c", metavar="FILE", help="the C adjoints (lv_grad, nw_grad, heat_grad, lr_grad, mc_grad)"
    )
    parser.add_argument("--fast-math", action="store_true", help="compile the C with -ffast-math")
    parser.add_argument("--repeat", type=int, default=5, help="turns of each candidate (default 5)")
    parser.add_argument("--check", action="store_true", help="exit with status 1 when a target is missed")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE as well")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.workloads if name not in WORKLOADS]
    if unknown:
        parser.error(f"no workload named {', '.join(unknown)}; there are {', '.join(WORKLOADS)}")
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        library = c_library(options.c, folder, ("-ffast-math",) if options.fast_math else ())
        peers = [f"Numba {numba.__version__}", f"NumPy {np.__version__}"]
        peers.append("no C" if library is None else f"C by gcc {' '.join(C_FLAGS[:2])}")
        print(
            f"CPython {platform.python_version()}, {', '.join(peers)}; one thread, best of {options.repeat}"
        )

        def every() -> Iterator[Figure]:
            for name in options.workloads or WORKLOADS:
                for figure in measured(name, library, options.repeat):
                    figures.append(figure)
                    yield figure
            if not options.workloads:
                for figure in second_process(folder, options.repeat):
                    figures.append(figure)
                    yield figure

        report(every())
    if options.json:
        with open(options.json, "w") as file:
            json.dump([dataclasses.asdict(figure) for figure in figures], file, indent=1)
    judged = [figure for figure in figures if figure.target]
    missed = [figure for figure in judged if figure.is_missed]
    print(
        f"\n{len(judged) - len(missed)} of {len(judged)} targets met; missed:"
        if missed
        else "\nEvery target met."
    )
    for figure in missed:
        print(
            f"  {figure.workload}: {figure.name} is {figure.value:.2f} {figure.unit}, target {figure.target}"
        )
    return 1 if options.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
