"""Random numeric programs, a sample of `python -m tests.native.campaign`, and small ones that were wrong once."""

import math

import numpy as np
import pytest

pytest.importorskip("numba")

from tests.native import campaign, random_programs, rich_programs
from tests.sampling import some

SEEDS = some([100007, 100016, 100069, 100071], [100002, 100033])
RICH_SEEDS = some([3123, 3477, 4357], [3175, 4094])
COMPILED_SEEDS = some([200003], [200000])


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_program_has_the_value_effects_and_derivatives_of_the_plain_tier(seed):
    with np.errstate(all="ignore"):
        assert campaign.check(*random_programs.function_of(seed)) == "right"


@pytest.mark.parametrize("seed", RICH_SEEDS)
def test_a_random_program_of_the_richer_language_has_them(seed):
    with np.errstate(all="ignore"):
        assert campaign.check(*rich_programs.function_of(seed)) == "right"


@pytest.mark.parametrize("seed", COMPILED_SEEDS)
def test_a_random_program_has_them_compiled(seed):
    with np.errstate(all="ignore"):
        assert campaign.check(*random_programs.function_of(seed, 3), compiled=True) == "right"


def the_real_part_of_a_complex_number_that_is_made_of_a_complex_part(x, y, a, b, M, U, n):
    return (complex((complex(x, y) ** 2).imag, 0.3) * complex(x, y)).real


def a_copy_of_a_constant_array_becomes_active_by_a_later_write(x, y, a, b, M, U, n):
    s = np.ones(4)
    s += x
    t = M.copy()
    t[0] *= y
    return np.sum(s * s[::-1]) * t[0, 1]


def max_of_numpy_beside_max_of_python(x, y, a, b, M, U, n):
    return max(x, 0.5) + np.max(a) * max(x, 2.0) + np.sum(a) * min(y, x) - np.min(a)


def names_of_functions_as_variables(x, y, a, b, M, U, n):
    max, sin, sum = x * 2.0, y * x, 0.0
    for range in a:
        sum += range * sin
    return max * np.max(a) + math.sin(sum) * sin


def a_flag_of_continue_has_a_default_beside_an_index_that_may_raise(x, y, a, b, M, U, n):
    s2 = b * x
    c1 = n
    while c1 < 5:
        c1 += 1
        if x <= 1.5:
            x += x
            s2[0] = b[-4]
            if not y > 0.3:
                continue
    return math.tanh(x) + s2[0]


def a_strided_array_is_kept_in_a_loop(x, y, a, b, M, U, n):
    s = 0.0
    w = M[:, 1]
    for k in range(3):
        w = M[:, k]
        w = w * x if k == 1 else w[::-1]
        s += np.sum(w * w) + np.prod(w)
        w[0] = s * 0.1
    return s


def what_only_a_branch_may_compute_is_not_computed_outside_of_it(x, y, a, b, M, U, n):
    s = 0.0
    for k in range(5):
        if k + 1 < 4:
            s += a[k + 1] * x * s
        if k != 0:
            s += x * a[3 // k] * y * s
        if k > 2:
            i = 7 // (k - 2) % 4
            s += x * y * s * b[i]
        if a[k % 4] > 0.5:
            continue
        for j in range(4):
            if b[j] > x:
                s += x * a[j] * y
                break
    return s + x


def two_sums_over_views_have_factors_of_their_own(x, y, a, b, M, U, n):
    s, t = x, y
    for _ in range(4):
        s -= x
        t += (complex(np.sum(b[::-1] + a), y) ** 2).imag
    return math.tanh(s) * math.tanh(t)


def numbers_and_arrays_written_through_an_ellipsis(x, y, a, b, M, U, n):
    s, z = np.zeros(4), np.zeros(())
    s[...] = x * y
    a[...] = s * b
    z[...] = a[1] * x
    M[1, ...] = y
    return np.sum(s * b) + a[2] * z[()] + M[1, 2] * M[0, 1]


def arrays_change_names_inside_a_loop_over_both(x, y, a, b, M, U, n):
    s1, s2 = a * x, b + y
    for k in range(3):
        for e, f in zip(s1, s2):
            x += math.sin(e * f)
            s1, s2 = s2, s1
    return x * s1[0]


def loops_that_are_always_left_inside_of_others(x, y, a, b, M, U, n):
    for _ in range(3):
        for k in range(n % 4):
            x = x * a[k] + 0.3
            break
        for e in b:
            y += math.sin(e * x)
            break
        while x < 2.0:
            x += 0.7 + abs(y)
            for e in a:
                y += e * x
                break
    for k in range(1, n):
        x += k * y
        break
    for e in a:
        x += e
        break
    return x * y


WRONG_ONCE = [
    f
    for f in list(globals().values())
    if getattr(f, "__code__", None) and f.__code__.co_varnames[:3] == ("x", "y", "a")
]


@pytest.mark.parametrize("f", WRONG_ONCE, ids=lambda f: f.__name__)
def test_what_was_wrong_once_is_right(f):
    for seed in (1, 2):
        args, _ = random_programs.arguments(seed)
        assert campaign.check(f, args, (0, 1, 2, 3, 4, 5)) == "right"
