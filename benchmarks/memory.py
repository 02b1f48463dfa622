"""The memory that a gradient takes at its peak, beside autograd's on the same program, in one process.

    python -m benchmarks.memory               # every program
    python -m benchmarks.memory convolution   # those with this word in their names
    python -m benchmarks.memory --flat 1e6    # the memory of the process through so many gradients, instead

What Python and NumPy allocate is counted (`tracemalloc`); a plain call's own memory is in both. Where there is no
figure of autograd's, it refuses the program, because that writes into arrays.
"""

import argparse
import gc
import math
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import plaingrad
from benchmarks.plain import Figure, report

try:
    import autograd
    import autograd.numpy as autograd_numpy
except ImportError:
    autograd = autograd_numpy = None

RANDOM = np.random.default_rng(0)
IMAGE = RANDOM.normal(size=(260, 260))
FEATURES = RANDOM.normal(size=(256, 512))
POINTS = RANDOM.normal(size=(300, 3))
START = np.sin(np.linspace(0.0, 6.0, 20_000))


def convolution(w, np=np):
    """By offsets, a sum of products of slices."""
    rows, columns = IMAGE.shape[0] - w.shape[0] + 1, IMAGE.shape[1] - w.shape[1] + 1
    total = 0.0
    for i in range(w.shape[0]):
        for j in range(w.shape[1]):
            total = total + w[i, j] * IMAGE[i : i + rows, j : j + columns]
    return np.sum(np.tanh(total) ** 2)


def convolution_in_place(w, np=np):
    """The same, added into an array."""
    rows, columns = IMAGE.shape[0] - w.shape[0] + 1, IMAGE.shape[1] - w.shape[1] + 1
    total = np.zeros((rows, columns))
    for i in range(w.shape[0]):
        for j in range(w.shape[1]):
            total += w[i, j] * IMAGE[i : i + rows, j : j + columns]
    return np.sum(np.tanh(total) ** 2)


def convolution_of_active(x, np=np):
    """Of an image that is differentiated itself."""
    rows, columns = x.shape[0] - 4, x.shape[1] - 4
    total = 0.0
    for i in range(5):
        for j in range(5):
            total = total + (0.1 + 0.01 * i * j) * x[i : i + rows, j : j + columns]
    return np.sum(total**2)


def heat(u, np=np):
    """A partial differential equation, each state a new array."""
    for _ in range(100):
        inner = u[1:-1] + 0.2 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        u = np.concatenate((u[:1], inner, u[-1:]))
    return np.sum(u**2)


def heat_in_place(u, np=np):
    """The same, written into one array."""
    u = u.copy()
    for _ in range(100):
        u[1:-1] += 0.2 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
    return np.sum(u**2)


def burgers(u, np=np):
    """An equation with products of what is differentiated."""
    for _ in range(100):
        flux = 0.5 * u**2
        inner = u[1:-1] - 0.05 * (flux[2:] - flux[:-2]) + 0.1 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        u = np.concatenate((u[:1], inner, u[-1:]))
    return np.sum(u**2)


def perceptron(ws, np=np):
    """Three layers, 512 wide, for a batch of 256."""
    h = FEATURES
    for w in ws:
        h = np.tanh(np.dot(h, w))
    return np.mean((h - FEATURES) ** 2)


def process(theta, np=np):
    """The likelihood of a Gaussian process, n = 300."""
    squares = np.sum((POINTS[:, None, :] - POINTS[None, :, :]) ** 2, axis=2)
    k = theta[0] ** 2 * np.exp(-0.5 * squares / theta[1] ** 2) + 0.1 * np.eye(len(POINTS))
    y = POINTS[:, 0]
    return 0.5 * np.dot(y, np.linalg.solve(k, y)) + 0.5 * np.linalg.slogdet(k)[1]


def chain(x, np=np):
    """Elementwise operations on a large array."""
    y = x
    for _ in range(20):
        y = np.sin(y) * 1.01 + 0.1 * x
    return np.sum(y)


def normalised(x, np=np):
    """Rows normalised, a softmax, and broadcast products."""
    y = x - np.mean(x, axis=1, keepdims=True)
    y = y / np.sqrt(np.mean(y**2, axis=1, keepdims=True) + 1e-5)
    e = np.exp(y - np.max(y, axis=1, keepdims=True))
    return np.sum((e / np.sum(e, axis=1, keepdims=True)) ** 2 * x)


PROGRAMS: list[tuple[Callable[..., Any], Any]] = [
    (convolution, RANDOM.normal(size=(5, 5))),
    (convolution_in_place, RANDOM.normal(size=(5, 5))),
    (convolution_of_active, IMAGE),
    (heat, START),
    (heat_in_place, START),
    (burgers, START),
    (perceptron, [RANDOM.normal(size=(512, 512)) / 23.0 for _ in range(3)]),
    (process, np.array([1.0, 0.7])),
    (chain, np.linspace(0.0, 1.0, 200_000)),
    (normalised, RANDOM.normal(size=(1000, 300))),
]


def peak(call: Callable[[], Any]) -> float:
    """The bytes allocated at once at the peak of a call, beyond those before."""
    call()
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def peaks(words: list[str]) -> Iterator[Figure]:
    """Of each program: a plain call, our gradient, and autograd's."""
    for f, x in PROGRAMS:
        if words and not any(word in f.__name__ for word in words):
            continue
        gradient = plaingrad.grad(f)
        ours = peak(lambda gradient=gradient, x=x: gradient(x))
        yield Figure(f.__name__, "plain call", peak(lambda f=f, x=x: f(x)) / 1e6, "MB")
        yield Figure(f.__name__, "plaingrad", ours / 1e6, "MB")
        if autograd is None:
            continue
        other = autograd.grad(lambda x, f=f: f(x, autograd_numpy))
        try:
            theirs = peak(lambda other=other, x=x: other(x))
        except Exception:  # whatever it raises
            continue
        expected, found = other(x), gradient(x)
        np.testing.assert_allclose(np.ravel(found), np.ravel(expected), rtol=1e-6, atol=1e-9)
        yield Figure(f.__name__, "autograd", theirs / 1e6, "MB")
        yield Figure(f.__name__, "plaingrad / autograd", ours / theirs, "x", at_most=1.5)


class Wave:
    """For `flat`: an object with attributes and a method."""

    def __init__(self, height, rate):
        self.height, self.rate = height, rate

    def at(self, t):
        return self.height * math.sin(self.rate * t)


def small(x):
    """A few operations on numbers, in objects, lists and dicts."""
    wave = Wave(x[0], x[1])
    values = [wave.at(t) for t in (0.1, 0.2)]
    kept = {"product": values[0] * values[1]}
    return kept["product"] + values[0] ** 2 + x[2] / x[0]


def flat(count: int) -> None:
    """Print the memory of this process as it takes so many gradients."""
    gradient, page = plaingrad.grad(small), 4
    for k in range(11):
        begun = time.perf_counter()
        for _ in range(count // 10 if k else 1000):
            gradient([1.0, 2.0, 3.0])
        taken = time.perf_counter() - begun
        resident = int(Path("/proc/self/statm").read_text().split()[1]) * page
        print(
            f"after {k * (count // 10):>10,} gradients: {resident:>9,} KiB resident, {taken:6.1f} s",
            flush=True,
        )


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="programs with one of these in their names")
    parser.add_argument("--flat", type=float, metavar="COUNT", help="gradients of a small function, instead")
    given = parser.parse_args()
    print(f"core: {plaingrad.info()['core']}")
    if given.flat:
        flat(int(given.flat))
    else:
        report(peaks(given.words))


if __name__ == "__main__":
    main()
