"""Arenas: where arrays begin in them, and what is free again."""

import numpy as np
import pytest

import plaingrad

numba = pytest.importorskip("numba")

from plaingrad.native.compile import build  # noqa: E402
from plaingrad.native.runtime import workspace  # noqa: E402


@numba.njit
def single(arena, rows, columns):
    return workspace.room_from(arena, (rows, columns), np.float32, 3)


@numba.njit
def double(arena, rows, columns):
    return workspace.room_from(arena, (rows, columns), np.float64, 11)


def test_rows_begin_where_storing_begins_at_a_line_of_memory():
    arena = workspace.Arena()
    found = [make(arena.header, 5, columns) for columns in (32, 7, 0) for make in (single, double)]
    for k, x in enumerate(found):
        assert (x.ctypes.data + (11, 3)[k % 2 == 0] * x.itemsize) % workspace.LINE == 0
        x[:] = k
    for k, x in enumerate(found):  # they do not overlap
        assert (x == k).all()


def diffusion(u0, c, steps):
    u = u0.copy()
    for _ in range(steps):
        v = u.copy()
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                v[i, j] = u[i, j] + c * (u[i, j - 1] + u[i, j + 1] - 2 * u[i, j]) * u[i - 1, j]
        u = v
    return u


def test_a_pullback_that_is_called_again_finds_the_memory_of_the_first_call():
    u0 = np.random.default_rng(0).random((20, 30))
    signature = (numba.typeof(u0), numba.float64, numba.int64)
    recorded = build.derived("pullback", diffusion, signature, (0,)).run.recorded(u0, 0.1, 3)
    seeds, found, header = np.random.default_rng(1).random((4, 20, 30)), [], recorded.arena.header
    for seed in (*seeds, *seeds):
        found.append(np.zeros_like(u0))
        recorded.pulled(seed, found[-1])
        if len(found) == 2:
            taken = header[workspace.BLOCKS], header[workspace.USED]
    assert taken == (header[workspace.BLOCKS], header[workspace.USED])
    for first, second in zip(found[:4], found[4:], strict=True):
        np.testing.assert_array_equal(first, second)
    for seed, bar in zip(seeds, found, strict=False):
        expected = plaingrad.vjp(lambda u: diffusion(u, 0.1, 3), u0)[1](seed)[0]
        np.testing.assert_allclose(bar, expected, rtol=1e-11, atol=1e-13)
