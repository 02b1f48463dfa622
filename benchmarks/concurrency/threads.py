"""A map-reduce in one thread and in several: the program alone, its forward pass, and its reverse pass.

    python -m benchmarks.concurrency                # all kinds of work
    python -m benchmarks.concurrency --work arrays  # one
    python -m benchmarks.concurrency --check        # exit status 1 when a target is missed: for a quiet machine
    python -m benchmarks.concurrency --racy 10000   # derivatives of programs that race: see `racy`

The reverse pass is that of `grad`: a pullback of `vjp` first looks whether the arrays that it reads have been changed.
In alternation, the least of several turns. A speedup is the time in one thread by that in threads. That of the program
alone is the control: the reverse pass cannot be expected to gain more. Processor time says what threads cost.

`native` needs Numba. `waiting` is a rule whose pullback sleeps, as one would that asks another machine.
"""

import argparse
import os
import sys
import time

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"  # before NumPy loads its BLAS

from concurrent.futures import ThreadPoolExecutor

import numpy as np

import plaingrad
from benchmarks.concurrency import racy
from plaingrad.engine.reverse.run import Run

TASKS, WORKERS = 4, 2
TARGETS = {"arrays": 1.7, "native": 1.8, "waiting": 1.8}  # of the reverse pass


def rested(x):
    """Its rule waits, forwards and back."""
    time.sleep(0.05)
    return x @ x


def rested_rule(x):
    """The rule of `rested`."""

    def pullback(y_bar):
        time.sleep(0.05)
        return (2.0 * y_bar * x,)

    return rested(x), pullback


def on_arrays(a):
    """NumPy on an array."""
    for _ in range(4):
        a = np.sin(a) * a
    return a.sum()


def natively():
    """A loop that Numba compiles, as a function of an array."""
    import numba

    def loop(a):
        total = 0.0
        for v in a:
            y = v
            for _ in range(20):
                y = np.sin(y) * v
            total += y
        return total

    return numba.njit(nogil=True)(loop)


def work_of(name):
    """A function of an array, and how large one is for a task."""
    if name == "waiting":
        plaingrad.rrule(rested)(rested_rule)
        return rested, 10
    if name == "native":
        return natively(), 50_000
    return on_arrays, 400_000


def programs(work, size):
    """The map-reduce in one thread, and in threads."""

    def serial(a):
        return sum([work(a[k * size : (k + 1) * size]) for k in range(TASKS)])

    def threaded(a):
        with ThreadPoolExecutor(WORKERS) as pool:
            return sum(pool.map(work, [a[k * size : (k + 1) * size] for k in range(TASKS)]))

    return serial, threaded


def measured(name, turns):
    """(What is measured, seconds in one thread and in threads, seconds of processor time of both)."""
    work, size = work_of(name)
    serial, threaded = programs(work, size)
    a = np.linspace(0.1, 0.9, TASKS * size)
    pullbacks = [Run(f, (a,), (0,), {}).pull for f in (serial, threaded)]
    np.testing.assert_allclose(pullbacks[0](1.0)[0], pullbacks[1](1.0)[0], rtol=1e-12)
    kinds = {
        "program": [lambda: serial(a), lambda: threaded(a)],
        "forward pass": [lambda: Run(serial, (a,), (0,), {}), lambda: Run(threaded, (a,), (0,), {})],
        "reverse pass": [lambda: pullbacks[0](1.0), lambda: pullbacks[1](1.0)],
    }
    least = {kind: [[float("inf")] * 2, [float("inf")] * 2] for kind in kinds}
    for _ in range(turns):
        for kind, both in kinds.items():
            for n, f in enumerate(both):
                wall, cpu = time.perf_counter(), time.process_time()
                f()
                least[kind][0][n] = min(least[kind][0][n], time.perf_counter() - wall)
                least[kind][1][n] = min(least[kind][1][n], time.process_time() - cpu)
    return [(kind, *least[kind]) for kind in kinds]


def main():
    """Print the table; the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", choices=sorted(TARGETS))
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--racy", type=int, metavar="TURNS")
    options = parser.parse_args()
    if options.racy:
        return racy.main(options.racy)
    missed = 0
    print(f"{'work':9}{'':14}{'one thread':>11}{'threads':>9}{'speedup':>9}{'processor time':>16}")
    for name in [options.work] if options.work else sorted(TARGETS):
        for kind, wall, cpu in measured(name, options.turns):
            speedup = wall[0] / wall[1]
            print(
                f"{name:9}{kind:14}{wall[0]:11.4f}{wall[1]:9.4f}{speedup:9.2f}{cpu[1] / max(cpu[0], 1e-9):16.2f}"
            )
            missed += kind == "reverse pass" and speedup < TARGETS[name]
    return 1 if options.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
