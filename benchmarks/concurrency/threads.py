"""A map-reduce in one thread, and in several threads or processes: the program alone, its forward and reverse pass.

    python -m benchmarks.concurrency                # all kinds of work
    python -m benchmarks.concurrency --work arrays  # one
    python -m benchmarks.concurrency --check        # exit status 1 when a target is missed: for a quiet machine
    python -m benchmarks.concurrency --racy 10000   # derivatives of programs that race: see `racy`

The reverse pass is that of `grad`: a pullback of `vjp` first looks whether the arrays that it reads have been changed.
In alternation, the least of several turns. A speedup is the time in one thread by that in several, or in processes.
That of the program alone is the control: the gradient cannot be expected to gain more. Processor time says what it
costs here; workers have their own.

`native` needs Numba, `dask` its `distributed`. `waiting` is a rule whose pullback sleeps, as one would that asks
another machine. `processes` and `dask` do their work in Python. Dask's forward pass records nothing, for the tasks run
again on the way back, recorded: only the whole gradient is to be compared.
"""

import argparse
import contextlib
import gc
import importlib.util
import math
import os
import sys
import time

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"  # before NumPy loads its BLAS

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np

import plaingrad
from benchmarks.concurrency import racy
from plaingrad.engine.reverse.run import Run

TASKS, WORKERS = 4, 2
TARGETS = {  # what is to be so many times as fast
    "arrays": ("reverse pass", 1.7),
    "dask": ("gradient", 1.7),
    "native": ("reverse pass", 1.8),
    "processes": ("gradient", 1.7),
    "waiting": ("reverse pass", 1.8),
}


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


def in_python(a):
    """Scalar arithmetic, one number after another."""
    total = 0.0
    for _ in range(20_000):
        for v in a:
            total = math.sin(total) * v + v * v
    return total


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
    return (on_arrays, 400_000) if name == "arrays" else (in_python, 10)


def in_threads(work, parts):
    """A pool of threads, made and closed."""
    with ThreadPoolExecutor(WORKERS) as pool:
        return sum(pool.map(work, parts))


@contextlib.contextmanager
def ways(name):
    """What calls a function of several parts at once, and sums; pools of processes are there all the time."""
    if name == "processes":
        with ProcessPoolExecutor(WORKERS) as pool:
            yield lambda work, parts: sum(pool.map(work, parts))
    elif name == "dask":
        from distributed import Client, LocalCluster

        with (
            LocalCluster(WORKERS, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            yield lambda work, parts: sum(client.gather(client.map(work, parts, pure=False)))
    else:
        yield in_threads


def programs(work, size, together):
    """The map-reduce in one thread, and in several."""

    def serial(a):
        return sum([work(a[k * size : (k + 1) * size]) for k in range(TASKS)])

    def parallel(a):
        return together(work, [a[k * size : (k + 1) * size] for k in range(TASKS)])

    return serial, parallel


def measured(name, turns, together):
    """(What is measured, seconds in one thread and in several, seconds of processor time of both)."""
    work, size = work_of(name)
    serial, parallel = programs(work, size, together)
    a = np.linspace(0.1, 0.9, TASKS * size)
    pullbacks = [Run(f, (a,), (0,), {}).pull for f in (serial, parallel)]
    np.testing.assert_allclose(pullbacks[0](1.0)[0], pullbacks[1](1.0)[0], rtol=1e-12)
    kinds = {
        "program": [lambda: serial(a), lambda: parallel(a)],
        "forward pass": [lambda: Run(serial, (a,), (0,), {}), lambda: Run(parallel, (a,), (0,), {})],
        "reverse pass": [lambda: pullbacks[0](1.0), lambda: pullbacks[1](1.0)],
        "gradient": [lambda: plaingrad.grad(serial)(a), lambda: plaingrad.grad(parallel)(a)],
    }
    least = {kind: [[float("inf")] * 2, [float("inf")] * 2] for kind in kinds}
    for _ in range(turns):
        for kind, both in kinds.items():
            for n, f in enumerate(both):
                gc.collect()  # tapes that workers keep until their pullback is collected
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
    print(f"{'work':10}{'':14}{'one thread':>11}{'several':>9}{'speedup':>9}{'processor time':>16}")
    for name in [options.work] if options.work else sorted(TARGETS):
        needed = {"native": "numba", "dask": "distributed"}.get(name)
        if needed is not None and importlib.util.find_spec(needed) is None:
            print(f"{name:10}{needed} is not installed")
            continue
        compared, target = TARGETS[name]
        with ways(name) as together:
            for kind, wall, cpu in measured(name, options.turns, together):
                speedup = wall[0] / wall[1]
                spent = cpu[1] / max(cpu[0], 1e-9)
                print(
                    f"{name:10}{kind:14}{wall[0]:11.4f}{wall[1]:9.4f}{speedup:9.2f}{spent:16.2f}", flush=True
                )
                missed += kind == compared and speedup < target
    return 1 if options.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
