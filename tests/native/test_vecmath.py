"""exp of many numbers at once: equal to the C library's, wherever it is."""

import math

import numpy as np
import pytest

numba = pytest.importorskip("numba")
mpmath = pytest.importorskip("mpmath")

from plaingrad.native import vecmath  # noqa: E402

RANDOM = np.random.default_rng(1)
EDGES = (0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 5e-324, -5e-324, 2.0**-54, 1e-320, 709.78, 709.79, -745.1,
         -745.2, -708.4, -708.3, 1e300, -1e300, vecmath.LIMIT, -vecmath.LIMIT, 511.99, 512.0, -512.0)  # fmt: skip


@numba.njit
def of_each(x):
    vecmath.exp_each(x, x.size)


@numba.njit
def by_the_library(x):
    for k in range(x.size):
        x[k] = math.exp(x[k])


@pytest.mark.skipif(not vecmath.exp_is_exact(), reason="another C library, or no fused multiply-add")
@pytest.mark.parametrize(
    "x",
    [
        RANDOM.uniform(-1.0, 1.0, 1_000_000),
        RANDOM.uniform(-511.0, 511.0, 1_000_000),
        RANDOM.normal(size=1_000_000) * 2.0 ** RANDOM.uniform(-1070, -1, 1_000_000),
        math.log(2.0) / 256.0 * np.arange(-180_000, 180_000),
        np.nextafter(math.log(2.0) / 256.0 * np.arange(-180_000, 180_000), 1e3),
    ],
    ids=["near zero", "everywhere", "small", "where k changes", "just behind"],
)
def test_millions_of_values_have_the_bits_of_the_c_library(x):
    mine, theirs = x.copy(), x.copy()
    of_each(mine)
    by_the_library(theirs)
    np.testing.assert_array_equal(mine.view(np.int64), theirs.view(np.int64))


@pytest.mark.parametrize("edge", EDGES, ids=repr)
def test_edges_are_those_of_the_c_library_alone_and_among_others(edge):
    expected = np.array([edge])
    by_the_library(expected)
    for others in ([], [1.0] * 7):
        x = np.array([edge, *others])
        of_each(x)
        np.testing.assert_array_equal(x[:1], expected)


def test_values_are_within_one_unit_in_the_last_place():
    x = np.concatenate([RANDOM.uniform(-500.0, 500.0, 2000), RANDOM.normal(size=2000)])
    mine = x.copy()
    of_each(mine)
    with mpmath.workprec(120):
        for a, y in zip(x, mine, strict=True):
            assert abs(mpmath.mpf(float(y)) - mpmath.exp(mpmath.mpf(float(a)))) <= 0.52 * float(np.spacing(y))


def test_python_runs_it_uncompiled():
    x = np.array([0.5, -1.0, 3.0])
    vecmath.exp_each(x, 2)
    assert x.tolist() == [math.exp(0.5), math.exp(-1.0), 3.0]


def test_only_the_first_numbers_are_taken():
    x = np.zeros(5)

    @numba.njit
    def first(x):
        vecmath.exp_each(x, 3)

    first(x)
    assert x.tolist() == [1.0, 1.0, 1.0, 0.0, 0.0]
