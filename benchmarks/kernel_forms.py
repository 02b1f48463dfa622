"""Kernels written in several forms: what a native gradient costs, in calls of the objective, however it is written.

    python -m benchmarks.kernel_forms [--repeat N] [KERNEL ...]

Each kernel is one formula. Its forms are: elements read directly; a scratch row that is used again; a counter that
runs through arrays in one dimension; loops in the other order; `while`; rows as views given to a function. All forms
of a kernel give the same number and the same gradient, which is checked. Times are of the processor, gradient and
objective in turn; the least of several counts. Pin it to one core.
"""

import argparse
import math
import sys
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

import plaingrad
from benchmarks import in_turn
from plaingrad.native.border import call

RANDOM = np.random.default_rng(0)
KERNELS: dict[str, tuple[Callable[[], tuple[Any, ...]], int, list[Callable[..., Any]]]] = {}
# name -> (what makes the arguments, how many of the first are differentiated, the forms)


def kernel(
    name: str, at: int, args: Callable[[], tuple[Any, ...]], fastmath: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that makes a function the next form of a kernel."""

    def add(f: Callable[..., Any]) -> Callable[..., Any]:
        compiled = numba.njit(fastmath=fastmath)(f)
        KERNELS.setdefault(name, (args, at, []))[2].append(compiled)
        return compiled

    return add


def normal(*shape: int) -> np.ndarray:
    """Normal numbers."""
    return RANDOM.normal(size=shape)


# -- a quadratic form in rows of a triangle -----------------------------------------------------------------------

quadratic = kernel("quadratic", 3, lambda: (normal(2000, 12), normal(12), normal(12, 12)))


@quadratic
def quadratic_direct(x, m, a):
    total = 0.0
    for n in range(x.shape[0]):
        for i in range(x.shape[1]):
            s = 0.0
            for j in range(i + 1):
                s += a[i, j] * (x[n, j] - m[j])
            total += s * s
    return total


@quadratic
def quadratic_scratch(x, m, a):
    total = 0.0
    d = np.empty(x.shape[1])
    for n in range(x.shape[0]):
        for j in range(x.shape[1]):
            d[j] = x[n, j] - m[j]
        for i in range(x.shape[1]):
            s = 0.0
            for j in range(i + 1):
                s += a[i, j] * d[j]
            total += s * s
    return total


@quadratic
def quadratic_counter(x, m, a):
    total = 0.0
    flat = a.ravel()
    for n in range(x.shape[0]):
        o = 0
        for i in range(x.shape[1]):
            s = 0.0
            for j in range(x.shape[1]):
                if j <= i:
                    s += flat[o] * (x[n, j] - m[j])
                o += 1
            total += s * s
    return total


@quadratic
def quadratic_columns(x, m, a):
    total = 0.0
    q = np.empty(x.shape[1])
    for n in range(x.shape[0]):
        for i in range(x.shape[1]):
            q[i] = 0.0
        for j in range(x.shape[1]):
            d = x[n, j] - m[j]
            for i in range(j, x.shape[1]):
                q[i] += a[i, j] * d
        for i in range(x.shape[1]):
            total += q[i] * q[i]
    return total


@quadratic
def quadratic_while(x, m, a):
    total = 0.0
    n = 0
    while n < x.shape[0]:
        i = 0
        while i < x.shape[1]:
            s = 0.0
            j = 0
            while j <= i:
                s += a[i, j] * (x[n, j] - m[j])
                j += 1
            total += s * s
            i += 1
        n += 1
    return total


@numba.njit
def triangle_times(a, d):
    s = 0.0
    for j in range(d.size):
        s += a[j] * d[j]
    return s


@quadratic
def quadratic_views(x, m, a):
    total = 0.0
    for n in range(x.shape[0]):
        d = x[n] - m
        for i in range(x.shape[1]):
            s = triangle_times(a[i, : i + 1], d[: i + 1])
            total += s * s
    return total


# -- the distance of each point to the nearest centre -------------------------------------------------------------

nearest = kernel("nearest", 2, lambda: (normal(2000, 4), normal(10, 4)))


@nearest
def nearest_direct(x, c):
    total = 0.0
    for n in range(x.shape[0]):
        best = np.inf
        for k in range(c.shape[0]):
            d = 0.0
            for j in range(x.shape[1]):
                d += (x[n, j] - c[k, j]) ** 2
            best = min(best, d)
        total += math.sqrt(best)
    return total


@nearest
def nearest_if(x, c):
    total = 0.0
    for n in range(x.shape[0]):
        best = np.inf
        winner = -1
        for k in range(c.shape[0]):
            d = 0.0
            for j in range(x.shape[1]):
                d += (x[n, j] - c[k, j]) ** 2
            if d < best:
                best = d
                winner = k
        if winner >= 0:
            total += math.sqrt(best)
    return total


@nearest
def nearest_scratch(x, c):
    total = 0.0
    d = np.empty(c.shape[0])
    for n in range(x.shape[0]):
        for k in range(c.shape[0]):
            s = 0.0
            for j in range(x.shape[1]):
                s += (x[n, j] - c[k, j]) ** 2
            d[k] = s
        best = d[0]
        for k in range(1, c.shape[0]):
            if d[k] < best:
                best = d[k]
        total += math.sqrt(best)
    return total


@nearest
def nearest_counter(x, c):
    total = 0.0
    flat = c.ravel()
    for n in range(x.shape[0]):
        best = np.inf
        o = 0
        for _ in range(c.shape[0]):
            d = 0.0
            for j in range(x.shape[1]):
                d += (x[n, j] - flat[o]) ** 2
                o += 1
            if d < best:
                best = d
        total += math.sqrt(best)
    return total


@nearest
def nearest_columns(x, c):
    total = 0.0
    d = np.empty(c.shape[0])
    for n in range(x.shape[0]):
        d[:] = 0.0
        for j in range(x.shape[1]):
            for k in range(c.shape[0]):
                d[k] += (x[n, j] - c[k, j]) ** 2
        total += math.sqrt(np.min(d))
    return total


@nearest
def nearest_while(x, c):
    total = 0.0
    n = 0
    while n < x.shape[0]:
        best = np.inf
        k = 0
        while k < c.shape[0]:
            d = 0.0
            j = 0
            while j < x.shape[1]:
                d += (x[n, j] - c[k, j]) ** 2
                j += 1
            if d < best:
                best = d
            k += 1
        total += math.sqrt(best)
        n += 1
    return total


# -- logistic regression --------------------------------------------------------------------------------------------

logistic = kernel("logistic", 1, lambda: (normal(20), normal(2000, 20), np.sign(normal(2000))))


@logistic
def logistic_direct(w, x, y):
    total = 0.0
    for i in range(x.shape[0]):
        z = 0.0
        for j in range(x.shape[1]):
            z += w[j] * x[i, j]
        total += math.log(1.0 + math.exp(-y[i] * z))
    return total


@logistic
def logistic_scratch(w, x, y):
    total = 0.0
    t = np.empty(x.shape[1])
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            t[j] = w[j] * x[i, j]
        z = 0.0
        for j in range(x.shape[1]):
            z += t[j]
        total += math.log(1.0 + math.exp(-y[i] * z))
    return total


@logistic
def logistic_counter(w, x, y):
    total = 0.0
    flat = x.ravel()
    o = 0
    for i in range(x.shape[0]):
        z = 0.0
        for j in range(x.shape[1]):
            z += w[j] * flat[o]
            o += 1
        total += math.log(1.0 + math.exp(-y[i] * z))
    return total


@logistic
def logistic_columns(w, x, y):
    z = np.zeros(x.shape[0])
    for j in range(x.shape[1]):
        for i in range(x.shape[0]):
            z[i] += w[j] * x[i, j]
    total = 0.0
    for i in range(x.shape[0]):
        total += math.log(1.0 + math.exp(-y[i] * z[i]))
    return total


@logistic
def logistic_while(w, x, y):
    total = 0.0
    i = 0
    while i < x.shape[0]:
        z = 0.0
        j = 0
        while j < x.shape[1]:
            z += w[j] * x[i, j]
            j += 1
        total += math.log(1.0 + math.exp(-y[i] * z))
        i += 1
    return total


@logistic
def logistic_views(w, x, y):
    total = 0.0
    for i in range(x.shape[0]):
        total += math.log(1.0 + math.exp(-y[i] * triangle_times(w, x[i])))
    return total


# -- a layer: tanh of a matrix times vectors ------------------------------------------------------------------------

layer = kernel("layer", 2, lambda: (normal(16, 16), normal(1000, 16)))


@layer
def layer_direct(w, x):
    total = 0.0
    for n in range(x.shape[0]):
        for i in range(w.shape[0]):
            z = 0.0
            for j in range(w.shape[1]):
                z += w[i, j] * x[n, j]
            total += math.tanh(z) ** 2
    return total


@layer
def layer_scratch(w, x):
    total = 0.0
    h = np.empty(w.shape[0])
    for n in range(x.shape[0]):
        for i in range(w.shape[0]):
            z = 0.0
            for j in range(w.shape[1]):
                z += w[i, j] * x[n, j]
            h[i] = math.tanh(z)
        for i in range(w.shape[0]):
            total += h[i] * h[i]
    return total


@layer
def layer_counter(w, x):
    total = 0.0
    flat = w.ravel()
    for n in range(x.shape[0]):
        o = 0
        for _ in range(w.shape[0]):
            z = 0.0
            for j in range(w.shape[1]):
                z += flat[o] * x[n, j]
                o += 1
            total += math.tanh(z) ** 2
    return total


@layer
def layer_columns(w, x):
    total = 0.0
    h = np.zeros(w.shape[0])
    for n in range(x.shape[0]):
        h[:] = 0.0
        for j in range(w.shape[1]):
            for i in range(w.shape[0]):
                h[i] += w[i, j] * x[n, j]
        for i in range(w.shape[0]):
            total += math.tanh(h[i]) ** 2
    return total


@layer
def layer_while(w, x):
    total = 0.0
    n = 0
    while n < x.shape[0]:
        i = 0
        while i < w.shape[0]:
            z = 0.0
            j = 0
            while j < w.shape[1]:
                z += w[i, j] * x[n, j]
                j += 1
            total += math.tanh(z) ** 2
            i += 1
        n += 1
    return total


@layer
def layer_views(w, x):
    total = 0.0
    for n in range(x.shape[0]):
        for i in range(w.shape[0]):
            total += math.tanh(triangle_times(w[i], x[n])) ** 2
    return total


# -- running it -------------------------------------------------------------------------------------------------------


def main(argv: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("kernels", nargs="*")
    options = parser.parse_args(argv)
    call.FEW_COLUMNS = 0  # reverse mode, however few the inputs
    print(in_turn.title("form", "objective", "gradient"), f"{'compile':>8}")
    for name in options.kernels or KERNELS:
        make, at, forms = KERNELS[name]
        args = make()
        expected: Any = None
        for f in forms:
            gradient = plaingrad.value_and_grad(f, tuple(range(at)), tier="native")
            seconds, found = in_turn.seconds_of(gradient, args)
            f(*args)
            expected = expected or found
            np.testing.assert_allclose(found[0], expected[0], rtol=1e-9)
            for a, b in zip(found[1], expected[1], strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-8)
            times = in_turn.least((f, gradient), args, options.repeat)
            print(in_turn.row(f.__name__, times), f"{seconds:7.1f}s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
