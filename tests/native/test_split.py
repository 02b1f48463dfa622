"""Loops whose exps are computed all at once: where that is done, and that nothing else changes."""

import math

import numpy as np
import pytest

import plaingrad

numba = pytest.importorskip("numba")

from plaingrad.native.compile import build  # noqa: E402
from plaingrad.native.runtime.vector import vecmath  # noqa: E402

pytestmark = pytest.mark.skipif(not vecmath.is_exact("exp"), reason="no exp of our own on this machine")

DATA = np.random.default_rng(3).normal(size=600)


def recurrence(x, z):
    s, total = x, 0.0
    for t in range(z.size):
        s = s * math.exp(0.01 * z[t] - 0.001 * x)
        total += s * s
    return total


def sum_of_exps(x, z):
    total = 0.0
    for t in range(z.size):
        total += math.exp(x * z[t]) + np.exp(-x / 3.0)
    return total


def exp_of_exp(x, z):
    s = 1.0
    for t in range(z.size):
        s = 0.9 * s + math.exp(-math.exp(x * z[t]))
    return s


def softplus(x, z):
    s, total = x, 0.0
    for t in range(z.size):
        s = 0.5 * s + math.log1p(math.exp(-abs(x * z[t]))) + np.tanh(z[t] * x) * math.cos(x)
        total += s * math.log(1.0 + math.expm1(x * x)) * math.sin(z[t])
    return total


def from_the_iteration_before(x, z):
    s = x
    for t in range(z.size):
        s = math.exp(-s * z[t] * z[t])
    return s


def written_in_the_loop(x, z):
    a = z.copy()
    s = x
    for t in range(1, z.size):
        s = s * 0.5 + math.exp(-a[t] * a[t] * x)
        a[t - 1] = s
        a[min(t + 1, z.size - 1)] += 0.1
    return s + np.sum(a)


def in_a_branch(x, z):
    s = 0.0
    for t in range(z.size):
        if z[t] > 0.0:
            s = s * 0.5 + math.exp(x * z[t])
    return s


def large(x, z):
    s, total = x, 0.0
    for t in range(z.size):
        s = 0.5 * s + math.exp(700.0 + 5.0 * z[t])
        total += math.log(s) * x
    return total


def mean_of_what_was_written(x, z):
    a = z.copy()
    a[::-2] = x
    total = x
    for _ in range(3):
        total += np.mean(a)
    return total


PROGRAMS = {
    mean_of_what_was_written: False,
    softplus: True, recurrence: True, sum_of_exps: True, exp_of_exp: True, from_the_iteration_before: False,
    written_in_the_loop: False, in_a_branch: False, large: True,
}  # fmt: skip


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_only_exps_that_depend_on_no_other_iteration_are_split_off(f):
    kinds = (numba.typeof(0.3), numba.typeof(DATA))
    assert ("exp_each" in build.derived("pullback", f, kinds, (0,)).text) == PROGRAMS[f]


def test_a_function_of_what_was_split_off_is_split_off_too():
    kinds = (numba.typeof(0.3), numba.typeof(DATA))
    text = build.derived("pullback", exp_of_exp, kinds, (0,)).text
    assert text.count("exp_each(") == 2
    text = build.derived("pullback", softplus, kinds, (0,)).text
    for name in ("exp", "log1p", "tanh", "cos", "sin", "expm1", "log"):
        assert f" {name}_each(" in text


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_the_uncompiled_gradient_is_that_of_the_plain_tier(f):
    kinds = (numba.typeof(0.3), numba.typeof(DATA))
    z = np.clip(DATA, -1.5, 1.5)
    value, gradient = build.derived("pullback", f, kinds, (0,)).python(0.3, z.copy(), 1.0)
    expected = plaingrad.value_and_grad(f, tier="plain")(0.3, z.copy())
    np.testing.assert_allclose([value, gradient], expected, rtol=1e-12)


@pytest.mark.optimised
@pytest.mark.parametrize("f", [recurrence, softplus, exp_of_exp], ids=lambda f: f.__name__)
def test_the_compiled_value_has_the_bits_of_the_compiled_primal_for_every_number_of_blocks(f):
    kinds = (numba.typeof(0.3), numba.typeof(DATA))
    run, primal = build.derived("pullback", f, kinds, (0,)).run, numba.njit(f)
    for n in (0, 1, 255, 256, 257, 600):
        value, gradient = run(0.3, DATA[:n].copy(), 1.0)
        assert value == primal(0.3, DATA[:n].copy())
        assert math.isclose(gradient, plaingrad.grad(f, tier="plain")(0.3, DATA[:n]), rel_tol=1e-12)


def test_exps_that_overflow_and_vanish_are_the_primals():
    kinds = (numba.typeof(0.3), numba.typeof(DATA))
    run = build.derived("pullback", large, kinds, (0,)).run
    primal = numba.njit(large)
    for z in (DATA, DATA * 100.0, np.full(5, math.nan), np.full(3, -math.inf)):
        np.testing.assert_array_equal(run(0.3, z, 1.0)[0], primal(0.3, z))


def assigned_behind_its_use(x, a):
    s = a.copy()
    for _ in range(3):
        s[-1] -= math.tanh(x) ** 1
        x = 1.0
    return np.sum(s)


def test_a_variable_that_is_assigned_behind_its_use_has_its_value_from_the_iteration_before():
    a = np.arange(4.0)
    value, (to_x, to_a) = plaingrad.value_and_grad(assigned_behind_its_use, argnums=(0, 1), tier="native")(
        0.3, a
    )
    assert value == assigned_behind_its_use(0.3, a)
    np.testing.assert_allclose(to_x, math.tanh(0.3) ** 2 - 1.0, rtol=1e-14)
    np.testing.assert_array_equal(to_a, np.ones(4))
