"""What the front end takes of Python: every program against the plain tier and differences.

Numba compiles the asserts below as they stand: PYTEST_DONT_REWRITE.
"""

import numpy as np
import pytest

from tests.native.uncompiled import check

numba = pytest.importorskip("numba")

V = np.array([0.3, -0.8, 1.7, 0.6])
M = np.array([[0.2, -0.5, 0.9], [1.1, 0.4, -0.3], [0.7, 0.8, -1.2]])

PROGRAMS = {}


def program(*args, plain=True):
    """Enter a program with its arguments; its name is the sentence."""

    def enter(f):
        PROGRAMS[f.__name__] = (f, args, plain)
        return f

    return enter


@program(1.2, 0.5)
def variables_named_as_made_ones(d, x_b):
    d = d * x_b
    d = d * d
    d_1 = d + x_b
    d_1_d = d_1 * d
    x = d_1_d * x_b
    x_seed = x * d_1
    sp_1, at_1, n_1, r_1, k_1 = x, x_b, 3, x_seed, d
    for left_1 in range(n_1):
        r_1 = r_1 * 0.3 * at_1 + left_1
        sp_1 = sp_1 * 0.2 * r_1
    return d * d_1 + sp_1 + k_1


@program(V)
def variables_named_as_functions(zeros_like):
    range = zeros_like[0]
    sum = 0.0
    for len in zeros_like:
        sum = sum * range + len
    trips = sum * sum
    grown = trips * sum
    return grown + trips


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_has_the_same_derivatives_natively(name):
    f, args, plain = PROGRAMS[name]
    check(f, *args, plain=plain)
