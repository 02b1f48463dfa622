"""What the native tier takes, feature by feature: each program natively, against the plain tier and differences.

Numba compiles the asserts below as they stand: PYTEST_DONT_REWRITE.
"""

import math

import numpy as np
import pytest

import plaingrad
from tests.native.programs.entries import entering

numba = pytest.importorskip("numba")

V = np.array([0.3, -0.8, 1.7, 0.6])
M = np.array([[0.2, -0.5, 0.9], [1.1, 0.4, -0.3], [0.7, 0.8, -1.2]])
SCALE = 1.7
TABLE = np.array([0.5, -1.5, 2.5])


def helper(x, power=2, scale=1.5):
    return x**power * scale


def first_and_last(v, x):
    return v[0] * x, v[-1] + x


def set_first(v, x):
    v[0] = x * v[1]


def total(v):
    s = 0.0
    for x in v:
        s += x * x
    return s


PROGRAMS = {}
program = entering(PROGRAMS)


@program(1.3)
def a_constant_of_the_module(x):
    return SCALE * x * x


@program(1.3, 1)
def an_array_of_the_module(x, k):
    return TABLE[k] * x + TABLE[2] * math.sin(x)


@program(1.3)
def keywords_and_defaults(x):
    return helper(x) + helper(x, scale=x) + helper(x, 3)


@program(V, 1.3)
def a_helper_that_returns_a_tuple(v, x):
    p, q = first_and_last(v, x)
    return p * q


@program(V, 1.3)
def a_part_of_a_helpers_tuple(v, x):
    return first_and_last(v, x)[1] * x


@program(V, 1.3)
def a_helper_that_writes(v, x):
    s = v[0]
    set_first(v, x)
    return s * v[0] * total(v)


@program(V, 1.3, 3)
def a_helper_that_writes_in_a_loop(v, x, n):
    for _ in range(n):
        set_first(v, x)
        v[1] = v[0] * 0.5
    return total(v)


@program(V)
def negative_strides(v):
    w = v[::-1]
    u = w[::-2]
    u[0] *= 3.0
    return total(w * v) + u[1]


@program(M)
def views_of_views(m):
    c = m.T[1][::-1]
    c[0] = c[1] * m[0, 0]
    return np.sum(m * m) + c[2]


@program(M, 0.7)
def rows_are_changed_in_place(m, x):
    for i in range(1, 3):
        m[i] += m[i - 1] * x
        m[i] *= x
    return np.sum(m * m)


@program(M)
def a_row_is_added_to_another(m):
    m[1] += m[0]
    m[2] -= m[1]
    return np.sum(m * m)


@program(V)
def an_array_times_itself_in_place(v):
    v *= v
    return v.sum()


@program(V)
def an_array_added_to_itself_in_place(v):
    v += v
    v -= v * 0.5
    return total(v)


@program(V)
def overlapping_slices_are_assigned(v):
    v[1:3] = v[2:]
    return total(v)


@program(V, 0.4)
def division_in_place(v, x):
    v /= x
    return total(v)


@program(V, 0.4)
def a_slice_is_filled_with_a_number(v, x):
    v[1:3] = x * v[0]
    return total(v)


@program(V, 3)
def buffers_are_swapped(v, n):
    a, b = v.copy(), np.zeros(4)
    for _ in range(n):
        for i in range(4):
            b[i] = a[i] * a[i - 1] + 0.5 * a[i]
        a, b = b, a
    return total(a) + b[1]


@program(V, 3)
def buffers_are_swapped_in_a_branch(v, n):
    a, b = v.copy(), v * 2.0
    for k in range(n):
        if k % 2 == 0:
            a, b = b, a
        a[k] = a[k] * b[k] + 1.0
    return total(a) * b[0]


@program(V, 1.2, 3)
def an_array_is_made_in_a_branch_of_a_loop(v, x, n):
    s = 0.0
    for k in range(n):
        if k != 1:
            w = v * x
            w[k] = w[k] * w[k - 1]
            s += total(w)
    return s


@program(1.2, 0)
def a_loop_that_runs_zero_times(x, n):
    s = x * x
    for i in range(n):
        s = s * x + i
    return s


@program(1.2)
def a_range_with_a_negative_step(x):
    s = 0.0
    for i in range(5, -2, -2):
        s = s * x + i * x
    return s


@program(1.2)
def a_while_with_else(x):
    k = 0
    while k < 4:
        x = x * 1.1
        if x > 50:
            break
        k += 1
    else:
        x = x * x
    return x


@program(1.2, 5)
def continue_and_break(x, n):
    s = 0.0
    for i in range(n):
        if i == 1:
            continue
        s += x**i
        if s > 6:
            break
    return s


@program(1.2, 5)
def a_return_in_nested_loops(x, n):
    for i in range(n):
        for j in range(n):
            x = x + math.sin(x) * j
            if x > 3 + i:
                return x * i + j * x
    return x


@program(1.2, 4)
def the_loop_variable_behind_its_loop(x, n):
    for i in range(n):  # noqa: B007
        x = x * 1.5
    return x * i


@program(1.2, 6)
def a_trip_count_that_depends_on_data(x, n):
    k = int(x * 3)
    s = 1.0
    for _ in range(k % n):
        s *= x
    return s


@program(0.3, 4)
def parallel_moves(x, n):
    y = x * 2
    z = 1.0
    for _ in range(n):
        x, y, z = y, z * x, x + y
    return x + y * z


@program(0.3, 0.7)
def conditional_expressions(x, y):
    a = x if x > y else y * x
    return (a if a < 1 else 1 / a) * y


@program(0.3, 0.7)
def chained_comparisons_and_logic(x, y):
    if 0 < x < y and not (x > 3 or y > 2):
        return x * y
    return x


@program(1.4, 3)
def integer_powers(x, n):
    return x**2 + x**n + x**-1 + x**0 + (-x) ** 3


@program(1.4, 0.6)
def powers_with_a_variable_exponent(x, y):
    return x**y + 2.0**y + math.pow(x, y)


@program(-5.3, 2.0)
def remainders_follow_python(x, y):
    return (x % y) * x + (x // y) * x + y * (7 % 4)


@program(1.4)
def integers_and_floats_mix(x):
    k = 7
    return x * (k // 2) + (k % 4) / x + (-k // 2) * x + (k << 1) * x


@program(-1.4)
def absolute_value_minimum_and_maximum(x):
    return abs(x) * x + max(x, -2.0, 0.5 * x) + min(x, 3.0)


@program(1.4)
def steps_have_no_slope(x):
    return x * math.floor(x) + np.floor(x) * x + math.ceil(x) * x + x * round(x)


@program(0.4)
def functions_of_math(x):
    return math.exp(x) + math.log(x) + math.tan(x) + math.atan(x) + math.asin(x) + math.sqrt(x) + math.cosh(x)


@program(0.4)
def more_functions_of_math(x):
    return math.erf(x) + math.log1p(x) + math.expm1(x) + math.atan2(x, 3.0)


@program(0.4)
def functions_of_numpy_on_numbers(x):
    return np.sin(x) + np.exp(x) + np.arctan(x) + np.log(x) + np.sqrt(x) + np.tanh(x)


@program((1.0, 2.0), 0.5)
def a_tuple_of_numbers(p, x):
    a, b = p
    return a * b * x + p[0]


@program(((1.0, V), 2.0), 0.5)
def nested_tuples_with_arrays(p, x):
    (a, v), b = p
    return a * total(v) * b + x


@program(1.2, 3)
def tuples_carried_by_a_loop(x, n):
    t = (x, x * x)
    for _ in range(n):
        t = (t[1], t[0] * x)
    return t[0] + t[1]


@program(V)
def zip_and_enumerate(v):
    s = 0.0
    for k, x in enumerate(v, 1):
        s += k * x
    for x, y in zip(v, v[::-1]):
        s += x * x * y
    return s


@program(np.array([[1.0, 2.0], [3.0, 4.0]]))
def iteration_over_rows(m):
    s = 0.0
    for row in m:
        s += row[0] * row[1]
    return s


@program(V, np.array([2, 0, 2]))
def integer_arrays_as_indices(v, at):
    s = 0.0
    for k in at:
        s += v[k] * v[k - 1]
    return s


@program(V, np.array([True, False, True, True]))
def boolean_arrays_as_conditions(v, which):
    s = 0.0
    for k in range(4):
        if which[k]:
            s += v[k] ** 2
    return s


@program(np.zeros(0), 1.5)
def an_empty_array(v, x):
    return total(v) + np.sum(v * x) + x


@program(np.float32(1.5), 2.0)
def single_precision(x, y):
    return x * y * x


@program(1.3, 1)
def a_variable_that_only_one_arm_defines(x, n):
    if n > 0:
        y = x * x
    if n > 0:
        return y * x
    return x


@program(1.3)
def a_nested_function_that_captures(x):
    def inner(t):
        return t * x

    return inner(2.0) + inner(x)


@program(1.3, 4)
def random_draws_are_replayed(x, n):
    np.random.seed(5)
    s = 0.0
    for _ in range(n):
        s += math.sin(x * np.random.random()) * np.random.random()
    return s


@program(1.3)
def asserts_that_hold(x):
    assert x > 0
    assert x < 5, "too large"
    return x * x


@program(V, 3)
def prange_is_serial_here(v, n):
    s = 0.0
    for i in numba.prange(n):
        s += v[i] ** 2
    return s


@program(V, 1.3)
def an_argument_that_is_written_and_read_again(v, x):
    s = 0.0
    for i in range(1, 4):
        s += v[i] * v[i - 1]
        v[i] = v[i - 1] * x + math.cos(v[i])
    return s + total(v)


@program(M, V[:3])
def matrix_products(m, v):
    return v @ (m @ v) + np.sum(np.dot(m, m))


@program(V, 0.3)
def array_expressions(v, x):
    return np.sum(np.sin(v) * v + x * v - v / (2.0 + x)) + np.mean(v**2)


@program(V, 3)
def a_matrix_filled_by_loops(v, n):
    m = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            m[i, j] = v[i] * v[j] + (m[i, j - 1] if j > 0 else 0.0)
    return np.sum(m * m)


@program(V)
def a_while_on_a_computed_condition(v):
    x = v[2]
    step = 1.0
    while abs(step) > 1e-6:
        step = (x * x - v[3]) / (2 * x)
        x = x - step
    return x


@program(1.1, 3)
def loops_that_follow_each_other(x, n):
    s = 0.0
    for i in range(n):
        s += x * i
    for i in range(n):
        s = s * x - i
    k = 0
    while k < n:
        s += math.sin(s)
        k += 1
    return s


@program(0.9, 3)
def the_same_name_in_nested_loops(x, n):
    t = x
    for i in range(n):
        t = t * x
        for j in range(i):
            t = t + x * j
            if t > 20:
                break
        else:
            t = t - 0.1
    return t


@program(1.3)
def dead_code_and_unused_values(x):
    y = x * 3
    z = y * y  # noqa: F841
    return x * 2


@program(1.3)
def a_constant_result(x):
    return 4.0


def copied(args):
    if isinstance(args, tuple):
        return tuple(copied(x) for x in args)
    return args.copy() if isinstance(args, np.ndarray) else args


def positions(args):
    def has_reals(x):
        if isinstance(x, tuple):
            return any(map(has_reals, x))
        return isinstance(x, (float, np.float32)) or (isinstance(x, np.ndarray) and x.dtype.kind == "f")

    return tuple(k for k, x in enumerate(args) if has_reals(x))


def leaves(x):
    if isinstance(x, tuple):
        return [leaf for part in x for leaf in leaves(part)]
    return [np.asarray(x, float)]


def assert_alike(a, b, tolerance):
    for left, right in zip(leaves(a), leaves(b), strict=True):
        np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance * 0.1)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_has_the_same_value_gradient_and_effects_natively(name):
    f, args = PROGRAMS[name]
    at = positions(args)
    plain_args, native_args = copied(args), copied(args)
    y, expected = plaingrad.value_and_grad(f, at, tier="plain")(*plain_args)
    value, found = plaingrad.value_and_grad(f, at, tier="native")(*native_args)
    tolerance = 1e-6 if name == "single_precision" else 1e-12
    assert_alike(value, y, tolerance)
    assert_alike(found, expected, tolerance)
    assert_alike(native_args, plain_args, tolerance)


def uncompiled_tangent(f, args, dots):
    from plaingrad.native.compile.build import derived
    from plaingrad.native.border.call import signature_of

    at = tuple(
        k
        for k, x in enumerate(args)
        if isinstance(x, (float, np.ndarray)) and np.asarray(x).dtype.kind == "f"
    )
    run = derived("pushforward", f, signature_of(args), at).python
    return run(*copied(args), *[copied(dots[k]) for k in at])[1]


@pytest.mark.parametrize(
    "name", [n for n in PROGRAMS if not any(isinstance(x, tuple) for x in PROGRAMS[n][1])]
)
def test_the_forward_program_agrees_with_differences(name):
    f, args = PROGRAMS[name]
    random = np.random.default_rng(1)
    at = positions(args)
    dots = {k: random.normal(size=np.shape(args[k])) for k in at}
    dots = {k: float(d) if np.ndim(d) == 0 else d for k, d in dots.items()}

    def value(h):
        moved = list(copied(args))
        for k in at:
            moved[k] = moved[k] + h * dots[k]
        return f(*moved)

    if name == "single_precision":
        return
    tangent = uncompiled_tangent(f, args, dots)
    errors = [
        abs((8 * (value(h) - value(-h)) - (value(2 * h) - value(-2 * h))) / (12 * h) - tangent)
        for h in (1e-2, 1e-3, 1e-4, 1e-5)
    ]
    assert min(errors) <= 1e-7 * max(1.0, abs(tangent))


def recursive(n, x):
    if n < 2:
        return x * x
    return recursive(n - 1, x) * 0.5 + recursive(n - 2, x) * math.sin(x)


def test_a_function_that_calls_itself():
    native = plaingrad.grad(recursive, 1, tier="native")(5, 1.2)
    assert math.isclose(native, plaingrad.grad(recursive, 1)(5, 1.2), rel_tol=1e-13)


def maybe_none(x, n):
    y = None
    if n > 1:
        y = x * 2
    if y is None:
        return x
    return y * x


def in_a_dict(x):
    d = dict()
    d[1] = x
    return d[1] * x


def noise(x):
    return x * np.random.random()


@pytest.mark.parametrize("n, slope", [(3, 4.8), (1, 1.0)])
def test_a_variable_that_may_be_none_is_followed(n, slope):
    assert plaingrad.grad(maybe_none, tier="native")(1.2, n) == slope


def test_a_dictionary_that_grows_by_known_keys_is_followed():
    assert plaingrad.grad(in_a_dict, tier="native")(1.2) == 2.4


def test_an_array_changed_in_place_by_an_overlapping_view_is_refused():
    def f(v):
        v += v[::-1]
        return v.sum()

    with pytest.raises(plaingrad.NativeError, match="overlapping"):
        plaingrad.grad(f, tier="native")(V.copy())


def test_derivatives_do_not_raise_at_a_pole():
    assert plaingrad.grad(lambda x: math.sqrt(x), tier="native")(0.0) == math.inf


def two_results(v, x):
    return v * x, np.sum(v) * x


def test_vjp_and_jvp_of_several_results():
    compiled = numba.njit(two_results)
    v, seeds = np.array([1.0, 2.0]), (np.array([0.5, -1.0]), 3.0)
    for f, tier in ((compiled, "auto"), (two_results, "native"), (compiled, "plain")):
        v_bar, x_bar = plaingrad.vjp(f, v, 2.0, tier=tier)[1](seeds)
        np.testing.assert_allclose(v_bar, [7.0, 4.0])
        assert x_bar == 7.5
        _, (left, right) = plaingrad.jvp(f, (v, 2.0), (np.array([1.0, 0.0]), 1.0), tier=tier)
        np.testing.assert_allclose(left, [3.0, 2.0])
        assert right == 5.0


def test_random_numbers_are_drawn_once_for_a_pullback():
    y, pullback = plaingrad.vjp(numba.njit(noise), 2.0, tier="native")
    assert pullback(1.0) == pullback(1.0) == (y / 2.0,)
