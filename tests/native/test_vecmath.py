"""Functions of many numbers at once: equal to the C library's, wherever the numbers are."""

import math
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

numba = pytest.importorskip("numba")
mpmath = pytest.importorskip("mpmath")

from plaingrad.native.machine import c_library  # noqa: E402
from plaingrad.native.runtime.vector import vecmath  # noqa: E402
from plaingrad.native.runtime.vector.map import EACH  # noqa: E402

pytestmark = pytest.mark.optimised

HERE = str(Path(vecmath.__file__).parents[4])
RANDOM = np.random.default_rng(1)
NAMES = tuple(vecmath.FORMS)
EXACT = [
    pytest.param(
        name, marks=pytest.mark.skipif(not vecmath.is_exact(name), reason="another C library, or no FMA")
    )
    for name in NAMES
]
EDGES = (0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 5e-324, -5e-324, 1e-320, 2.0**-1022, 1e300, -1e300,
         2.0**-54, -(2.0**-54), 2.0**-29, -(2.0**-29), 2.0**-55, 0.5, -0.5, 2.0, 22.0, -22.0, 512.0, -512.0,
         709.78, 709.79, -745.1, -745.2, -708.4, -708.3, 700.0, 511.99, 2.0**52, 2.0**53, 2.0**1023,
         0.41421, 0.41422, -0.2929, -0.29289, 0.3465735, 1.0397207, -0.3465735, -1.0397207, 38.816, -38.816, -0.25,
         0.9375, 1.0 + 265.0 * 2.0**-12, 1.0 - 2.0**-53, 1.0 + 2.0**-52, -1.0 + 2.0**-53, 1.5, 0.75,
         0.126, -0.126, 0.85546875, -0.85546875, 2.426265, -2.42626, 105414336.0, -105414350.0, math.pi, 0.5 * math.pi,
         0.25 * math.pi, -1.5 * math.pi, 1e15, 109.0 / 128.0)  # fmt: skip


def made(name):
    """(the function of the first n numbers, that of the C library in a loop), compiled: they change a vector."""
    each, library = EACH[name], getattr(math, name)

    @numba.njit
    def of_each(x, n):
        each(x, n)

    @numba.njit
    def by_the_library(x):
        for k in range(x.size):
            x[k] = library(x[k])

    return of_each, by_the_library


COMPILED = {name: made(name) for name in NAMES}


def compare(name, x):
    mine, theirs = x.copy(), x.copy()
    COMPILED[name][0](mine, mine.size)
    COMPILED[name][1](theirs)
    there = ~(np.isnan(mine) & np.isnan(theirs))
    np.testing.assert_array_equal(mine[there].view(np.int64), theirs[there].view(np.int64))


SAMPLES = {
    "near zero": lambda: RANDOM.uniform(-1.0, 1.0, 300_000),
    "near one": lambda: 1.0 + RANDOM.uniform(-0.1, 0.1, 300_000),
    "everywhere": lambda: RANDOM.uniform(-511.0, 511.0, 300_000),
    "of moderate size": lambda: RANDOM.normal(size=300_000) * 5.0,
    "of all sizes": lambda: RANDOM.choice([-1.0, 1.0], 300_000) * 2.0 ** RANDOM.uniform(-1074.0, 1023.9, 300_000),
    "smaller than one": lambda: RANDOM.choice([-1.0, 1.0], 300_000) * 2.0 ** RANDOM.uniform(-60.0, 0.0, 300_000),
    "where exp has another k": lambda: math.log(2.0) / 256.0 * np.arange(-180_000, 180_000),
    "just behind": lambda: np.nextafter(math.log(2.0) / 256.0 * np.arange(-180_000, 180_000), 1e3),
    "where log has another c": lambda: np.arange(1.0, 3.0, 2.0**-17) - RANDOM.integers(0, 3) * 2.0**-52,
    "around multiples of pi / 4": lambda: RANDOM.integers(-1000, 1000, 100_000) * (math.pi / 4.0)
    + RANDOM.choice([0.0, 1e-9, -1e-3, 0.1], 100_000),
    "up to where the C library reduces otherwise": lambda: RANDOM.uniform(-1.06e8, 1.06e8, 300_000),
    "multiples of 1/256": lambda: np.arange(-4000, 4000) / 256.0,
    "powers of two and a little": lambda: np.ldexp(1.0 + RANDOM.integers(-4, 5, 2000) * 2.0**-24, np.arange(-1000, 1000)),
    "less than powers of two by one": lambda: np.ldexp(1.0, np.arange(-500, 500) // 8) - 1.0 + RANDOM.normal(size=1000) * 1e-9,
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("kind", SAMPLES)
def test_many_values_have_the_bits_of_the_c_library(name, kind):
    compare(name, SAMPLES[kind]())
    compare(name, np.abs(SAMPLES[kind]()))  # without numbers for which all eight are left to the C library


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("edge", EDGES, ids=repr)
def test_edges_are_those_of_the_c_library_alone_and_among_others(name, edge):
    for x in (edge, np.nextafter(edge, math.inf), np.nextafter(edge, -math.inf)):
        for others in ([], [1.0] * 7, [0.3, 0.7, 2.0] * 5):
            compare(name, np.array([x, *others]))


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 16, 23])
def test_every_number_of_numbers_is_done_to_its_end_and_no_further(name, n):
    x = np.linspace(0.3, 2.0, 24)
    mine = x.copy()
    COMPILED[name][0](mine, n)
    assert mine[:n].tolist() == [getattr(math, name)(a) for a in x[:n]]
    assert mine[n:].tolist() == x[n:].tolist()


@pytest.mark.parametrize("name", NAMES)
def test_values_are_within_two_units_in_the_last_place(name):
    x = vecmath.FORMS[name].samples(RANDOM, 1000)
    mine = x.copy()
    COMPILED[name][0](mine, mine.size)
    with mpmath.workprec(160):
        for a, y in zip(x, mine, strict=True):
            truth = getattr(mpmath, name)(mpmath.mpf(float(a)))
            assert abs(mpmath.mpf(float(y)) - truth) <= 2.0 * float(np.spacing(abs(y)))


@pytest.mark.parametrize("name", EXACT)
def test_fastmath_of_the_function_around_does_not_take_the_steps_apart(name):
    each = EACH[name]

    @numba.njit(fastmath=True)
    def of_each(x):
        each(x, x.size)

    x = vecmath.FORMS[name].samples(RANDOM, 1000)
    mine, theirs = x.copy(), x.copy()
    of_each(mine)
    COMPILED[name][1](theirs)
    whole = x.size // 8 * 8
    np.testing.assert_array_equal(mine[:whole], theirs[:whole])


@pytest.mark.parametrize("name", NAMES)
def test_python_runs_it_uncompiled(name):
    x = np.array([0.5, 0.25, 3.0])
    EACH[name](x, 2)
    np.testing.assert_allclose(x, [getattr(math, name)(0.5), getattr(math, name)(0.25), 3.0], rtol=1e-15)


@pytest.mark.parametrize("name", [name for name in NAMES if name in vecmath.FORMS])
def test_numpys_function_compiled_is_the_same_as_maths(name):
    of_math, of_numpy = getattr(math, name), getattr(np, name)

    @numba.njit
    def differences(x):
        found = 0
        for k in range(x.size):
            found += of_math(x[k]) != of_numpy(x[k])
        return found

    assert differences(vecmath.FORMS[name].samples(RANDOM, 3000)) == 0


def test_the_c_library_is_told_by_its_values():
    assert c_library.fingerprint() == c_library.fingerprint() and len(c_library.fingerprint()) == 16


@pytest.mark.skipif(
    platform.libc_ver() != ("glibc", "2.36"), reason="the numbers that tell are of one version"
)
@pytest.mark.skipif(not vecmath.is_exact("exp"), reason="no fused multiply-add")
def test_the_c_library_without_fused_multiply_add_is_another_one():
    done = subprocess.run(
        [sys.executable, "-c", "from plaingrad.native.machine import c_library; print(c_library.fingerprint())"],
        env={**os.environ, "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA,-AVX2,-FMA4", "PYTHONPATH": HERE},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() != c_library.fingerprint()
