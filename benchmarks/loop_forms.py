"""What each special form of loops earns: native gradients with all forms, and without that one.

    python -m benchmarks.loop_forms [--repeat N]

For every form, and for what is done inside of forms, there are one or two programs that were written for no other
benchmark. Gradients with and without are measured in turn, in one process; the least of several counts.
"""

import argparse
import functools
import math
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any
from unittest import mock

import numba
import numpy as np
from numba import prange

import plaingrad
from benchmarks import in_turn
from plaingrad.native.border import call
from plaingrad.native.compile import build
from plaingrad.native.finish import ssa
from plaingrad.native.loops import sums
from plaingrad.native.loops.forms import FORMS
from plaingrad.native.reverse.reverse import pullback_sweeps

RANDOM = np.random.default_rng(0)


def logistic(w, x, y):
    """The loss of a logistic regression, number by number."""
    total = 0.0
    for i in range(x.shape[0]):
        z = 0.0
        for j in range(x.shape[1]):
            z += w[j] * x[i, j]
        total += math.log(1.0 + math.exp(-y[i] * z))
    return total


def density(x, y, h):
    """The logarithm of a density made of bells around the numbers y."""
    total = 0.0
    for i in range(x.size):
        s = 0.0
        for j in range(y.size):
            d = (x[i] - y[j]) / h
            s += math.exp(-0.5 * d * d)
        total += math.log(s)
    return total


def waves(u, v, c, n):
    """The wave equation on a line, n steps."""
    for _ in range(n):
        w = u.copy()
        for i in range(1, u.size - 1):
            w[i] = 2.0 * u[i] - v[i] + c[i] * (u[i - 1] - 2.0 * u[i] + u[i + 1])
        v, u = u, w
    return np.sum(u * u)


def blur(u, c):
    """A picture mixed with its neighbours."""
    v = np.zeros_like(u)
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            v[i, j] = c * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]) + u[i, j] * u[i, j]
    return np.sum(v * v)


def distances(a, b):
    """The sum of the distances between two clouds of points."""
    total = 0.0
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            s = 0.0
            for k in range(a.shape[1]):
                d = a[i, k] - b[j, k]
                s += d * d
            total += math.sqrt(s + 1e-3)
    return total


def nearest(x, c):
    """The sum of the distances of points to the nearest of some others."""
    total = 0.0
    for i in range(x.shape[0]):
        best = math.inf
        for j in range(c.shape[0]):
            s = 0.0
            for k in range(x.shape[1]):
                s += (x[i, k] - c[j, k]) ** 2
            if s < best:
                best = s
        total += math.sqrt(best)
    return total


def steepest(x, h):
    """The steepest step up and the steepest one down in a row of numbers."""
    up = down = 0.0
    for i in range(1, x.size):
        slope = (x[i] - x[i - 1]) / (h[i] + h[i - 1])
        up = max(up, slope)
        down = min(down, slope)
    return up - down


def softplus(x, w):
    """Elementary functions of numbers of their own in each iteration."""
    total = 0.0
    for i in range(x.size):
        u = math.exp(x[i] * w[i])
        v = math.log(1.0 + u)
        total += v * v * math.exp(-v) * math.sin(u)
    return total


def options(s, k, r, v, t):
    """European options: Black and Scholes, with the error function of the C library."""
    total = 0.0
    for i in range(s.size):
        root = v[i] * math.sqrt(t[i])
        d = (math.log(s[i] / k[i]) + r * t[i]) / root + 0.5 * root
        e = math.exp(-r * t[i])
        total += s[i] / (1.0 + math.exp(-1.702 * d)) - k[i] * e / (1.0 + math.exp(-1.702 * (d - root)))
    return total


def normalised(x, g, b):
    """Rows brought to mean 0 and variance 1, scaled and shifted, through a smooth step."""
    total = 0.0
    for i in range(x.shape[0]):
        d = x[i] - np.mean(x[i])
        y = d / np.sqrt(np.mean(d * d) + 1e-5) * g + b
        total += np.sum(np.tanh(y) * y)
    return total


def classes(x, k):
    """The cross entropy of short rows."""
    total = 0.0
    for i in range(x.shape[0]):
        z = x[i] * 2.0 - np.max(x[i])
        total += np.log(np.sum(np.exp(z))) - z[k[i]]
    return total


def mixture(x, w, b):
    """Arrays elementwise."""
    y = np.tanh(x * w + b)
    z = np.exp(-y * y) * x + np.sqrt(1.0 + y * y)
    return np.sum(z * y)


def cooling(t, k, e, h, n):
    """A body that cools by convection and radiation: Runge-Kutta steps of order 4."""
    for _ in range(n):
        a = -k * (t - 0.3) - e * t * t * t * t
        u = t + 0.5 * h * a
        b = -k * (u - 0.3) - e * u * u * u * u
        u = t + 0.5 * h * b
        c = -k * (u - 0.3) - e * u * u * u * u
        u = t + h * c
        d = -k * (u - 0.3) - e * u * u * u * u
        t = t + h / 6.0 * (a + 2.0 * b + 2.0 * c + d)
    return t


def population(x, r, n):
    """A population that grows the slower the larger it is: Ricker's map."""
    for _ in range(n):
        x = x * math.exp(r * (1.0 - x))
    return x


def activations(x, w):
    """The squares of sums of bent products, row by row in threads."""
    total = 0.0
    for i in prange(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s += math.sin(x[i, j] * w[j]) * math.exp(-x[i, j])
        total += s * s
    return total


def attracted(u, c, n):
    """Points on a line that attract each other, n steps, point by point in threads."""
    u, v = u.copy(), u.copy()
    for _ in range(n):
        for i in prange(u.size):
            s = 0.0
            for j in range(u.size):
                d = u[j] - u[i]
                s += d / (1.0 + d * d)
            v[i] = u[i] + c * s
        u, v = v, u
    return np.sum(u * u)


def positive(*shape: int) -> np.ndarray:
    """Numbers between 0.5 and 1.5."""
    return RANDOM.uniform(0.5, 1.5, shape)


n = 20000
# form -> programs with their arguments and the positions that are differentiated
PROGRAMS: dict[str, list[tuple[Callable[..., Any], tuple[Any, ...], tuple[int, ...]]]] = {
    "parallel": [
        (activations, (positive(100_000, 4), positive(4)), (0, 1)),
        (attracted, (positive(800), 0.01, 4), (0, 1)),
    ],
    "sum": [
        (logistic, (positive(20), positive(3000, 20), positive(3000)), (0,)),
        (density, (positive(150), positive(150), 0.3), (0, 1, 2)),
    ],
    "stencil": [
        (waves, (positive(n), positive(n), 0.1 * positive(n), 20), (0, 1, 2)),
        (blur, (positive(300, 300), 0.2), (0, 1)),
    ],
    "sum, run again": [
        (distances, (positive(120, 8), positive(120, 8)), (0, 1)),
        (logistic, (positive(20), positive(3000, 20), positive(3000)), (0,)),
    ],
    "winner": [
        (nearest, (RANDOM.normal(size=(2000, 4)), RANDOM.normal(size=(10, 4))), (0, 1)),
        (steepest, (positive(n), positive(n)), (0, 1)),
    ],
    "fission": [
        (softplus, (positive(n), positive(n)), (0, 1)),
        (options, (positive(n), positive(n), 0.03, positive(n), positive(n)), (0, 1, 2, 3, 4)),
    ],
    "rows": [
        (normalised, (RANDOM.normal(size=(500, 200)), positive(200), positive(200)), (0, 1, 2)),
        (classes, (RANDOM.normal(size=(5000, 10)), RANDOM.integers(0, 10, 5000)), (0,)),
    ],
    "elementwise": [(mixture, (RANDOM.normal(size=(300, 300)), positive(300), positive(300)), (0, 1, 2))],
}


# what is done inside of forms -> (where it is decided, programs as above)
WITHIN: dict[
    str, tuple[tuple[Any, str], list[tuple[Callable[..., Any], tuple[Any, ...], tuple[int, ...]]]]
] = {
    "eight at once": ((sums, "in_packs"), PROGRAMS["sum"]),
    "one number": (
        (ssa, "preaccumulated"),
        [(cooling, (1.0, 0.8, 0.2, 1e-5, 100_000), (0, 1, 2)), (population, (0.5, 1.8, 100_000), (0, 1))],
    ),
}


def without(name: str) -> AbstractContextManager[Any]:
    """While programs are derived without a form, or without what is done inside of forms."""
    if name in WITHIN:
        return mock.patch.object(*WITHIN[name][0], lambda *_: None)
    others = replace(
        FORMS,
        loops=tuple(form for form in FORMS.loops if form.name != name),
        runs=tuple(form for form in FORMS.runs if form.name != name),
    )
    return mock.patch.dict(build.TRANSFORMS, pullback=functools.partial(pullback_sweeps, forms=others))


def gradient_of(f: Callable[..., Any], at: tuple[int, ...]) -> Callable[..., Any]:
    """The native gradient of a copy of `f`, which is derived when it is first called."""
    copy: Any = type(f)(f.__code__, f.__globals__, f"{f.__name__}", f.__defaults__)
    if "prange" in f.__code__.co_names:
        copy = numba.njit(parallel=True)(copy)
    return plaingrad.value_and_grad(copy, at, tier="native")


def main(argv: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=15)
    repeat = parser.parse_args(argv).repeat
    build.cache.key_of = lambda *_: None  # what is kept on disk was derived with all forms
    call.FEW_COLUMNS = 0  # reverse mode, however few the inputs
    print(in_turn.title("form, program", "without", "with"))
    names = [form.name for form in (*FORMS.loops, *FORMS.runs)]
    for name, programs in [(name, PROGRAMS[name]) for name in names] + [(x, WITHIN[x][1]) for x in WITHIN]:
        for f, args, at in programs:
            both = gradient_of(f, at), gradient_of(f, at)
            values = [both[0](*args)]
            with without(name):
                values.append(both[1](*args))
            for a, b in zip(values[0][1], values[1][1], strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
            clock = time.perf_counter if name == "parallel" else time.process_time  # threads share the time
            times = in_turn.least((both[1], both[0]), args, repeat, clock)
            print(in_turn.row(f"{name}, {f.__name__}", times), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
