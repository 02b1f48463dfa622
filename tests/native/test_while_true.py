"""Loops that are left in one place only, in an arm that assigns variables.

Numba 0.68 itself makes wrong machine code of these: what the loop assigns behind that arm is lost to the next iteration.
"""

import math

import numpy as np
import pytest

pytest.importorskip("numba")

from numpy.testing import assert_allclose

import plaingrad
from tests.native import comparison


def numbers(x, n):
    s, t, i = x, 0.0, 0
    while True:
        i += 1
        r = s * x + 1.0
        if i < n:
            t = r
        else:
            s = r
            break
        s = r * t
    return s


def one_loop_inside_another(x, n):
    total = x
    count = 0
    while True:
        count += 1
        inner = 0
        while True:
            total = math.sin(total) + x
            inner += 1
            if inner > count:
                total = total * x
                break
            total = total + 0.5
        if count >= n:
            total = total * total
            break
        total = total - x * count
    return total


def one_loop_in_the_arm_that_leaves_another(x, n):
    s = x
    i = 0
    while True:
        i += 1
        t = s * x
        if i >= n:
            s = t + 0.1
            k = 0
            while True:
                k += 1
                u = math.cos(s) * x
                if k > n:
                    s = u - 1.0
                    break
                s = u + 0.3
            break
        s = math.sin(t)
    return s + t


def arrays(x, a, n):
    b = a * x
    i = 0
    while True:
        i += 1
        c = b * b * 0.5 + a
        if c[0] > 3.0 or i > n:
            b = c * x
            break
        b = c[::-1] * 0.7
        b[i % 3] += x
    return b.sum() * x


PROGRAMS = [
    (f, (0.7, 4)) for f in (numbers, one_loop_inside_another, one_loop_in_the_arm_that_leaves_another)
]
PROGRAMS.append((arrays, (0.9, np.array([0.3, -0.4, 0.8]), 3)))


@pytest.mark.parametrize("compiled", [False, True], ids=["uncompiled", "compiled"])
@pytest.mark.parametrize(("f", "args"), PROGRAMS, ids=[f.__name__ for f, _ in PROGRAMS])
def test_what_is_assigned_behind_the_only_way_out_of_a_loop_reaches_its_next_iteration(f, args, compiled):
    at = comparison.differentiable(args)
    expected = plaingrad.value_and_grad(f, at, tier="plain")(*args)
    (value,), bars = comparison.pulled_back(f, args, at, [1.0], compiled)
    assert value == f(*args)
    comparison.assert_close(bars, expected[1], 1e-13, "gradient")
    dots = [np.ones_like(x) for x in args]
    value, slope = comparison.pushed_forward(f, args, at, dots, compiled)
    assert value == f(*args)
    assert_allclose(slope, sum(np.sum(bar) for bar in expected[1]), rtol=1e-12)


@pytest.mark.parametrize("f", [numbers, one_loop_inside_another], ids=lambda f: f.__name__)
def test_so_it_does_in_second_derivatives(f):
    steep = plaingrad.derivative(f, order=2, tier="native")(0.7, 4)
    assert_allclose(steep, plaingrad.derivative(f, order=2, tier="plain")(0.7, 4), rtol=1e-11)
