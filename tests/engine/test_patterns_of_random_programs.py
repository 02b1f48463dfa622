"""Random programs over arrays that share and overwrite memory: what moves is in the pattern, and the entries are right."""

import random

import numpy as np
import pytest

from plaingrad import jacobian
from plaingrad.engine.sparsity.patterns import find_pattern

N = 6
PLACES = np.arange(N)


def shifted(u, v, i):
    return u + np.roll(v, i)


def written_element(u, v, i):
    u[i] = v[i - 1] * 2.0
    return u


def written_slice(u, v, i):
    u[i:] = v[: N - i]
    return u


def added_in_place(u, v, i):
    u += v * 0.5
    return u


def multiplied_in_place(u, v, i):
    u *= v
    return u


def written_by_indices(u, v, i):
    u[[i, 0]] = v[[1, i]]
    return u[::-1]


def written_row_of_a_view(u, v, i):
    u.reshape(3, 2)[1] = v[:2]
    return u


def written_flat(u, v, i):
    w = u.copy()
    w.flat[i] = v[0]
    return w


def copied_where(u, v, i):
    np.copyto(u, v, where=PLACES % 2 == i % 2)
    return u


def complex_parts(u, v, i):
    z = u[:3] + 1j * v[:3]
    return np.concatenate([z.real, z.imag])


def added_at(u, v, i):
    w = np.zeros(N)
    np.add.at(w, [0, i, i, 1, 2, 2], u)
    return w


OPERATIONS = [
    shifted,
    written_element,
    written_slice,
    added_in_place,
    multiplied_in_place,
    written_by_indices,
    written_row_of_a_view,
    written_flat,
    copied_where,
    complex_parts,
    added_at,
    lambda u, v, i: u * v,
    lambda u, v, i: np.sin(u)[np.array([i, 0, i, 2, 3, 5])],
    lambda u, v, i: u.reshape(2, 3).T.reshape(N),
    lambda u, v, i: np.where(PLACES < i, u, v),
    lambda u, v, i: np.concatenate([u[:i], v[i:]]),
    lambda u, v, i: u.reshape(2, 3).sum(0).repeat(2),
    lambda u, v, i: np.cumsum(u) * v[i],
    lambda u, v, i: np.outer(u[:2], v[:3]).ravel(),
    lambda u, v, i: np.array([float(t) * v[i] for t in u]),
    lambda u, v, i: np.diag(u[:3])[:2].ravel() + v,
    lambda u, v, i: np.lib.stride_tricks.sliding_window_view(u, 3)[:2].ravel().copy(),
    lambda u, v, i: np.multiply(u, v, out=np.empty(N)),
    lambda u, v, i: np.append(np.tensordot(u.reshape(2, 3), v.reshape(3, 2), 1).ravel(), u[:2]),
    lambda u, v, i: np.pad(u[1:5], 1) - v,
]


def program(seed):
    """A function of six numbers made of some operations; what they give joins the arrays that the next ones draw from."""
    draw = random.Random(seed)
    steps = [(draw.choice(OPERATIONS), draw.random(), draw.random(), draw.randrange(N)) for _ in range(draw.randint(2, 9))]

    def f(x):
        pool = [x * 1.0, x[::-1], np.zeros(N)]
        for operation, first, second, i in steps:
            pool.append(operation(pool[int(first * len(pool))], pool[int(second * len(pool))], i))
        return np.concatenate(pool[-3:])

    return f


@pytest.mark.parametrize("first", range(0, 400, 40))
def test_what_moves_is_in_the_pattern(first):
    for seed in range(first, first + 40):
        f = program(seed)
        x = np.random.default_rng(seed).uniform(0.3, 1.5, N)
        before = f(x.copy())
        starts, columns = find_pattern(f, (x.copy(),), (0,), {}, lambda y: [y])
        found = np.zeros((before.size, N), bool)
        found[np.repeat(np.arange(before.size), np.diff(starts)), columns] = True
        for j in range(N):
            for step in (1e-3, -2e-3):
                there = x.copy()
                there[j] += step
                moved = f(there) != before
                assert not np.any(moved & ~found[:, j]), f"seed {seed}, column {j}"


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_entries_are_those_of_the_dense_jacobian(first):
    pytest.importorskip("scipy.sparse")
    from plaingrad import sparse_jacobian

    for seed in range(first, first + 20):
        f = program(seed)
        x = np.random.default_rng(seed).uniform(0.3, 1.5, N)
        expected = jacobian(f)(x.copy())
        for mode in ("forward", "reverse"):
            found = sparse_jacobian(f, x.copy(), mode=mode).toarray()
            assert np.allclose(found, expected, rtol=1e-10, atol=1e-10), f"seed {seed}, {mode}"
