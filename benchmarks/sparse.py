"""Sparse Jacobians and Hessians: sweeps and times as sizes grow, and the parts that they are made of.

    python -m benchmarks.sparse                 # all sizes
    python -m benchmarks.sparse --size 100000   # one
    python -m benchmarks.sparse --check         # exit status 1 when a target is missed

SciPy is needed: the extra `scipy`. Process time of one thread, the least of several turns. The table's columns are:
calls of the plain function that the time is worth, and seconds, for finding the pattern, colouring it, the entries
with the pattern known, and all together.
"""

import argparse
import os
import sys
import time

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"  # before NumPy loads its BLAS

import numpy as np
import scipy.sparse

import plaingrad
from plaingrad.api import kept_colourings as door

SECONDS_AT_100_000 = 5.0  # target for a tridiagonal Jacobian of that size, all together


def reaction(u):
    """Tridiagonal."""
    r = np.empty_like(u)
    r[1:-1] = u[2:] - 2.0 * u[1:-1] + u[:-2] + u[1:-1] ** 2
    r[0] = u[0] - u[1]
    r[-1] = u[-1] ** 3 - u[-2]
    return r


def grid(u):
    """A five-point stencil."""
    n = int(np.sqrt(u.size))
    v = np.pad(u[: n * n].reshape(n, n), 1)
    inner = v[1:-1, 1:-1]
    return (v[2:, 1:-1] + v[:-2, 1:-1] + v[1:-1, 2:] + v[1:-1, :-2] - 4.0 * inner + np.exp(inner)).ravel()


def gathered(u):
    """Three elements a row, anywhere."""
    places = np.random.default_rng(0).integers(0, u.size, (3, u.size))
    return u[places[0]] * u[places[1]] + np.sin(u[places[2]])


def rosenbrock(x):
    """Tridiagonal Hessian."""
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def arrow(x):
    """Arrow-shaped Hessian."""
    return np.sum(x[0] * x[1:] ** 2) + x[0] ** 3


JACOBIANS = (reaction, grid, gathered)
HESSIANS = (rosenbrock, arrow)


def least(f, turns=5):
    """The least process time of several calls."""
    times = []
    for _ in range(turns):
        start = time.process_time()
        f()
        times.append(time.process_time() - start)
    return min(times)


def measured(f, n):
    """Sweeps, and seconds for: the plain call, the pattern, the colouring, the entries, all together."""
    x = np.linspace(0.1, 1.0, n)
    of = "hessian" if f in HESSIANS else "jacobian"
    find = plaingrad.sparse_hessian if f in HESSIANS else plaingrad.sparse_jacobian
    kind = "symmetric" if f in HESSIANS else "cheapest"
    pattern = scipy.sparse.csr_array(plaingrad.sparsity(f, x, of=of))
    starts, columns = pattern.indptr.astype(np.int64), pattern.indices.astype(np.int64)

    def coloured():
        door._colourings.clear()
        return door.coloured(kind, starts, columns, n)

    def whole():
        door._colourings.clear()
        find(f, x)

    sweeps = sum(part.count for part in coloured())
    return sweeps, (
        least(lambda: f(x), 20),
        least(lambda: plaingrad.sparsity(f, x, of=of), 3),
        least(coloured, 3),
        least(lambda: find(f, x, pattern, check=False)),
        least(whole, 3),
    )


def main(arguments=None):
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, action="append", help="numbers of inputs (may be repeated)")
    parser.add_argument("--check", action="store_true", help="exit status 1 when a target is missed")
    options = parser.parse_args(arguments)
    missed = False
    print(
        f"{'function':12}{'inputs':>9}{'sweeps':>8}{'pattern':>18}{'colouring':>18}{'entries':>18}{'all':>18}"
    )
    for f in JACOBIANS + HESSIANS:
        for n in options.size or (1_000, 10_000, 100_000):
            sweeps, (plain, *parts) = measured(f, n)
            cells = "".join(f"{part / plain:9.0f}{part:8.3f} s"[-18:].rjust(18) for part in parts)
            print(f"{f.__name__:12}{n:9,}{sweeps:8}{cells}", flush=True)
            if f is reaction and n == 100_000:
                missed = missed or sweeps != 3 or parts[-1] > SECONDS_AT_100_000
    return 1 if options.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
