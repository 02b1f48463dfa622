"""Patterns against the dependence itself: an output that moves when an input is moved far is in the pattern."""

import functools
import itertools
import math

import numpy as np
import pytest

from plaingrad.engine.sparsity.patterns import find_pattern

X = np.array([0.7, 1.3, -0.4, 2.2, 0.9, -1.6])


def moved(f, x):
    """Which outputs change when an input does: tried at several places, some of them far off."""
    random = np.random.default_rng(5)
    flat = functools.partial(outputs, f)
    before = flat(x)
    found = np.zeros((before.size, x.size), bool)
    for _ in range(12):
        base = x + random.uniform(-0.05, 0.05, x.shape)
        at_base = flat(base)
        for j in range(x.size):
            for step in (1e-3, 0.11, -0.2):
                there = base.copy()
                there.flat[j] += step
                with np.errstate(all="ignore"):
                    found[:, j] |= flat(there) != at_base
    return found


def outputs(f, x):
    y = f(x.copy())
    parts = y if isinstance(y, (list, tuple)) else [y]
    return np.concatenate([np.ravel(part).astype(float) for part in parts] or [np.zeros(0)])


def pattern(f, x=X):
    starts, columns = find_pattern(f, (x,), (0,), {}, lambda y: list(y) if isinstance(y, (list, tuple)) else [y])
    found = np.zeros((starts.size - 1, x.size), bool)
    found[np.repeat(np.arange(starts.size - 1), np.diff(starts)), columns] = True
    return found


SQUARE = np.array([[2.0, 0.0, 1.0], [0.0, 3.0, 0.0], [0.5, 0.0, 4.0]])
DENSE = np.arange(1.0, 10.0).reshape(3, 3)
PICKS = np.array([3, 0, 3, 5])
STACK = np.linalg.cholesky(np.eye(2) + 0.1) + np.zeros((3, 2, 2))


def in_rows(x):
    return x.reshape(2, 3)


def written(x):
    y = np.zeros(8)
    y[1:5] = x[:4]
    y[0] = x[5] * x[4]
    y[2] += math.sin(x[0])
    y[5:] -= x[3:]
    y[6] = 1.0
    y *= 2.0
    return y


def stored_in_single(x):
    y = np.zeros(3, np.float32)
    y[:] = x[1:4]
    return y.astype(np.float64) * 2.0


def by_flat_iterator(x):
    y = np.zeros((2, 3))
    y.flat[:] = x
    return y.T.ravel()


def through_lists(x):
    values = x.tolist()
    values.append(values[0] * values[1])
    return np.array(values[::-1])


def in_complex(x):
    z = x[:3] + 1j * x[3:]
    w = z.conj()
    return np.concatenate([w.real, (w * 1j).real, np.abs(z)])


def a_part_overwritten(x):
    z = x[:3] + 1j * x[3:]
    z.real = 0.0
    return np.concatenate([z.imag, z.real])


def added_where_indices_repeat(x):
    y = np.zeros(4)
    np.add.at(y, [0, 1, 1, 3, 3, 3], x)
    return y


def a_window(x):
    return np.lib.stride_tricks.sliding_window_view(x, 3).sum(axis=1)


def overlapping(x):
    a = np.zeros(4)
    w = np.lib.stride_tricks.as_strided(a, (3, 2), (8, 8))
    w[...] = x.reshape(3, 2)
    w += x.reshape(2, 3).T
    return a


def records(x):
    a = np.zeros(3, dtype=[("p", "f8"), ("q", "f8")])
    a["p"] = x[:3]
    a["q"] = x[3:]
    a["p"][1] = 0.0
    return np.concatenate([a["q"], a["p"]])


# Those whose pattern is exactly what moves, at this point or near it.
EXACT = {
    "slices": lambda x: x[1:] * x[:-1],
    "written": written,
    "reshape": lambda x: in_rows(x).T.ravel(),
    "take": lambda x: np.take(x, PICKS),
    "index": lambda x: x[PICKS] + x[[0, 1, 2, 3]],
    "mask": lambda x: x[np.arange(6) % 2 == 0],
    "two indices": lambda x: in_rows(x)[[0, 1], [2, 0]],
    "roll": lambda x: np.roll(x, 2),
    "flip": lambda x: np.flip(x),
    "concatenate": lambda x: np.concatenate([x[3:], [1.0], x[:2]]),
    "stack": lambda x: np.stack([x[:2], x[2:4]], 1),
    "hstack": lambda x: np.hstack([x[:2], 3.0, x[5]]),
    "append": lambda x: np.append(x[:2], x[4:]),
    "tile": lambda x: np.tile(x[:2], 3),
    "repeat": lambda x: np.repeat(x[:3], 2),
    "pad": lambda x: np.pad(x[:3], 2),
    "pad by edge": lambda x: np.pad(x[:3], 1, mode="edge"),
    "diag": lambda x: np.diag(x[:3]),
    "diagonal": lambda x: np.diagonal(np.outer(x[:3], x[3:])),
    "tril": lambda x: np.tril(x[:4].reshape(2, 2)),
    "triu and trace": lambda x: np.trace(np.triu(x[:4].reshape(2, 2))),
    "broadcast": lambda x: np.broadcast_to(x[:2], (3, 2)) * x[3:, None],
    "moveaxis": lambda x: np.moveaxis(x.reshape(1, 2, 3), 2, 0),
    "sum": lambda x: in_rows(x).sum(axis=0),
    "sum keepdims": lambda x: np.sum(in_rows(x), axis=1, keepdims=True) * in_rows(x),
    "mean": lambda x: np.mean(in_rows(x), axis=-1),
    "prod": lambda x: np.prod(in_rows(x), axis=0),
    "var": lambda x: np.var(in_rows(x), axis=1),
    "std": lambda x: in_rows(x).std(0),
    "cumsum": lambda x: np.cumsum(x),
    "cumsum of rows": lambda x: np.cumsum(in_rows(x), axis=1),
    "cumprod": lambda x: np.cumprod(in_rows(x), axis=0),
    "add.reduce": lambda x: np.add.reduce(in_rows(x), 1),
    "add.accumulate": lambda x: np.add.accumulate(x[:3]),
    "add.reduceat": lambda x: np.add.reduceat(x, [0, 2, 3]),
    "multiply.outer": lambda x: np.multiply.outer(x[:2], x[2:4]),
    "diff": lambda x: np.diff(x, 2),
    "diff of rows": lambda x: np.diff(in_rows(x), axis=0),
    "diff with ends": lambda x: np.diff(x[:3], prepend=x[3], append=[1.0, x[4] * 2.0]),
    "gradient": lambda x: np.gradient(x),
    "ediff1d": lambda x: np.ediff1d(x),
    "trapezoid": lambda x: getattr(np, "trapezoid", None)(in_rows(x)) if hasattr(np, "trapezoid") else in_rows(x).sum(1),
    "convolve": lambda x: np.convolve(x, [1.0, 0.0, 2.0]),
    "convolve same": lambda x: np.convolve(x, [1.0, 2.0], "same"),
    "convolve valid": lambda x: np.convolve([1.0, 2.0, 0.0, 1.0], x[:2], "valid"),
    "convolve both": lambda x: np.convolve(x[:3], x[3:]),
    "correlate": lambda x: np.correlate(x, [1.0, 0.0, 2.0]),
    "correlate same": lambda x: np.correlate(x, [1.0, 2.0], "same"),
    "correlate with": lambda x: np.correlate([1.0, 0.0, 3.0, 2.0], x[:2], "full"),
    "correlate short": lambda x: np.correlate(x[:2], [1.0, 2.0, 0.0, 3.0], "same"),
    "constant @ x": lambda x: SQUARE @ x[:3],
    "x @ constant": lambda x: x[:3] @ SQUARE,
    "constant @ matrix": lambda x: SQUARE @ x.reshape(3, 2),
    "matrix @ constant": lambda x: in_rows(x) @ SQUARE,
    "matrix @ matrix": lambda x: x[:2].reshape(2, 1) @ x[2:5].reshape(1, 3),
    "stacks": lambda x: np.matmul(np.ones((2, 1, 3)), x.reshape(2, 3, 1)),
    "dot": lambda x: np.dot(DENSE, x[:3]),
    "dot of matrices": lambda x: in_rows(x).dot(SQUARE),
    "inner": lambda x: np.inner(in_rows(x), SQUARE),
    "vdot": lambda x: np.vdot(x[:3], x[3:]),
    "outer": lambda x: np.outer(x[:3], x[3:]),
    "tensordot": lambda x: np.tensordot(in_rows(x), SQUARE, axes=([1], [0])),
    "convolve with zeros that vary": lambda x: np.convolve(x[:3], x[3:] - X[3:]),
    "product with zeros that vary": lambda x: (x[:4] - X[:4]).reshape(2, 2) @ x[4:],
    "einsum with zeros that vary": lambda x: np.einsum("ij,jk->ik", (x[:4] - X[:4]).reshape(2, 2), x[4:].reshape(2, 1)),
    "products of nothing": lambda x: [x[:0] @ x[:0] + x[1], np.ones((2, 0)) @ x[:0].reshape(0, 3), x[:0].sum() + x[0]],
    "nothing": lambda x: [x[:0], np.cumsum(x[:0]), np.outer(x[:0], x), np.sort(x[:0]), np.zeros((0, 2)) @ x[:2]],
    "linalg.tensordot": lambda x: np.tensordot(x[:4].reshape(2, 2), x[4:], 1),
    "broadcast_to of a list": lambda x: np.broadcast_to([x[0], x[1]], (3, 2)) * 1.0,
    "full_like": lambda x: np.full_like(x, x[2]),
    "kron": lambda x: np.kron(x[:2], x[2:4]),
    "einsum product": lambda x: np.einsum("ij,jk->ik", SQUARE, x.reshape(3, 2)),
    "einsum of two": lambda x: np.einsum("ij,kj->ki", in_rows(x), in_rows(x)[:1] * 2.0),
    "einsum elementwise": lambda x: np.einsum("i,i->i", x[:3], x[3:]),
    "einsum sum": lambda x: np.einsum("ij->j", in_rows(x)),
    "einsum diagonal": lambda x: np.einsum("ii->i", x[:4].reshape(2, 2)),
    "einsum trace": lambda x: np.einsum("ii", x[:4].reshape(2, 2)),
    "einsum of three": lambda x: np.einsum("i,j,k->ik", x[:2], x[2:4], x[4:]),
    "bincount": lambda x: np.bincount([0, 2, 2, 1, 0, 3], x),
    "add.at": added_where_indices_repeat,
    "take_along_axis": lambda x: np.take_along_axis(in_rows(x), np.array([[2, 0], [1, 1]]), 1),
    "compress": lambda x: np.compress([True, False, True], in_rows(x), axis=1),
    "extract": lambda x: np.extract(np.arange(6) > 3, x),
    "elementwise": lambda x: np.exp(x) + np.arctan2(x, 2.0) ** 2,
    "clip": lambda x: np.clip(x, x[::-1] - 5.0, 5.0) * 2.0,
    "nan_to_num": lambda x: np.nan_to_num(x),
    "modf": lambda x: np.modf(x)[0],
    "floats": lambda x: [x[0] * x[1] + math.exp(x[2]), float(x[3]), x[4] * 0.5],
    "lists": through_lists,
    "astype": lambda x: x.astype(np.float32).astype(float),
    "single": stored_in_single,
    "flat": by_flat_iterator,
    "complex": in_complex,
    "complex part": a_part_overwritten,
    "window": a_window,
    "records": records,
    "full": lambda x: np.full((2, 2), x[3]),
    "linspace step": lambda x: np.array([x[0], x[1]]).sum() * np.ones(2),
    "meshgrid": lambda x: np.meshgrid(x[:2], x[2:4])[0] * np.meshgrid(x[:2], x[2:4])[1],
    "norm of rows": lambda x: np.linalg.norm(in_rows(x), axis=1),
    "batched solve": lambda x: np.linalg.solve(STACK, x.reshape(3, 2, 1)),
    "batched inv": lambda x: np.linalg.inv(x[:2, None, None] * np.ones((2, 1, 1))),
    "batched det": lambda x: np.linalg.det(np.eye(1) * x[:, None, None]),
    "interp": lambda x: np.interp(x, [-5.0, 0.0, 5.0], [1.0, 3.0, 2.0]),
    "vectorize": lambda x: np.vectorize(lambda v: v * v + 1.0)(x),
    "sum of generator": lambda x: sum(v * v for v in x[:3]),
    "accumulate": lambda x: list(itertools.accumulate(x[:3])),
    "logaddexp.reduce": lambda x: np.logaddexp.reduce(in_rows(x), 1),
    "cross": lambda x: np.cross(x.reshape(2, 3)[:1], [[1.0, 2.0, 3.0]])[:, 2:] * 1.0,
}

if hasattr(np, "matvec"):
    EXACT["matvec"] = lambda x: np.matvec(x[:4].reshape(2, 2), x[4:])
    EXACT["matvec of stacks"] = lambda x: np.matvec(np.ones((3, 1, 2)), x.reshape(3, 2))
    EXACT["vecmat"] = lambda x: np.vecmat(x[:2], x[2:].reshape(2, 2))
    EXACT["vecdot"] = lambda x: np.vecdot(x.reshape(3, 2), x[:2])

# Those that depend on more than what moves here: on all that they might have read.
WIDER = {
    **{name: EXACT.pop(name) for name in ("cross", "clip", "complex", "complex part", "batched solve")},
    "det": lambda x: np.linalg.det(np.diag(x[:3])),
    "maximum": lambda x: np.maximum(x[:3], x[3:] + 100.0),
    "where": lambda x: np.where(np.arange(3) > 1, x[:3], x[3:]),
    "max": lambda x: in_rows(x).max(axis=1),
    "sort": lambda x: np.sort(x),
    "median": lambda x: np.median(in_rows(x), axis=0),
    "quantile": lambda x: np.quantile(in_rows(x), [0.3, 0.5], axis=1),
    "fft": lambda x: np.fft.fft(in_rows(x), axis=0).real,
    "rfft": lambda x: np.abs(np.fft.rfft(x)),
    "fft2": lambda x: np.fft.fft2(in_rows(x)).imag,
    "svd": lambda x: np.linalg.svd(in_rows(x), compute_uv=False),
    "qr": lambda x: np.linalg.qr(in_rows(x))[1],
    "eigh": lambda x: np.linalg.eigvalsh(in_rows(x).T @ in_rows(x)),
    "added through overlapping windows": overlapping,
    "times zero": lambda x: x * 0.0,
    "sign": lambda x: np.sign(x),
    "interp table": lambda x: np.interp([0.5, 1.5], [0.0, 1.0, 2.0], x[:3]),
    "lstsq": lambda x: np.linalg.lstsq(DENSE[:, :2], x[:3], rcond=None)[0],
    "linspace": lambda x: np.linspace(x[0], x[1], 4),
}


@pytest.mark.parametrize("name", EXACT)
def test_the_pattern_is_what_moves(name):
    assert np.array_equal(pattern(EXACT[name]), moved(EXACT[name], X))


@pytest.mark.parametrize("name", WIDER)
def test_the_pattern_holds_what_moves(name):
    found = pattern(WIDER[name])
    assert not np.any(moved(WIDER[name], X) & ~found)
