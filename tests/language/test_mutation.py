"""Assignment in every form: state is left as by a plain call, and the derivative follows each write."""

import gc
import math
from types import SimpleNamespace

import numpy as np
import pytest

import plaingrad
from cases import Fields, check, check_or_refused

world = SimpleNamespace(total=0.0, log=[], table=None, history={})
TOTAL = 0.0
WEIGHTS = np.array([1.0, 2.0, 3.0])


def reset_world():
    global TOTAL
    TOTAL = 0.0
    world.total, world.log, world.table, world.history = 0.0, [], np.zeros(3), {}


def see_world():
    return TOTAL, world


# Python state


def test_a_global_is_accumulated_and_left_as_by_a_plain_call():
    def f(x):
        global TOTAL
        for k in range(1, 4):
            TOTAL += x**k
        TOTAL = TOTAL * 2.0
        return TOTAL

    x = 1.5
    check(f, x, gradient=2 * (1 + 2 * x + 3 * x * x), setup=reset_world, state=see_world)


def test_attributes_of_an_outside_object_are_written_and_read_back():
    def f(x):
        world.total += x * x
        world.log.append(world.total)
        world.history["first"] = world.log[0] * x
        world.history.setdefault("second", []).append(world.total + x)
        world.total /= 2.0
        return world.history["first"] + world.history["second"][0] + world.total

    # x^3 + (x^2 + x) + x^2/2
    x = 1.5
    check(f, x, gradient=3 * x * x + 3 * x + 1, setup=reset_world, state=see_world)


def test_a_value_left_in_a_global_by_an_earlier_gradient_is_a_constant_in_the_next():
    def f(x):
        before = world.total
        world.total = x * x
        return before * x + world.total

    reset_world()
    assert plaingrad.grad(f)(3.0) == 6.0
    assert plaingrad.grad(f)(2.0) == 9.0 + 4.0
    assert world.total == 4.0 and type(world.total) is float


def test_values_left_behind_do_not_become_active_when_their_addresses_are_reused():
    keep = []

    def f(x):
        for k in range(100):
            keep.append(x * k)
        return keep[-1] + sum(keep[:-100])

    for _ in range(3):
        assert plaingrad.grad(f)(2.0) == 99.0
        gc.collect()


def test_a_nested_list_is_mutated_through_an_alias():
    def f(x, y):
        grid = [[0.0] * 2 for _ in range(2)]
        row = grid[0]
        row[1] = x * y
        grid.append(row)
        row[0] += row[1] * x
        grid[2][0] *= 2.0
        return grid[0][0] + row[1]

    x, y = 2.0, 3.0
    check(f, x, y, gradient=(4 * x * y + y, 2 * x * x + x))


def test_the_famous_repeated_row_is_one_row():
    def f(x):
        grid = [[1.0, 1.0]] * 3
        grid[0][0] = x * x
        grid[1][1] += x
        return sum(sum(row) for row in grid)

    check(f, 1.5, gradient=3 * (2 * 1.5 + 1))


def test_a_list_argument_is_sorted_extended_and_left_so():
    def f(v):
        v.sort(reverse=True)
        v.append(v[0] * v[-1])
        v[0] = v[0] * 2.0
        del v[1]
        return v[0] + v[-1] + len(v)

    # sorted: 5, 3, 2 -> append 10; v0 = 10; delete 3
    check(f, [3.0, 5.0, 2.0], gradient=[0.0, 2.0 + 2.0, 5.0])


def test_a_dict_argument_gains_changes_and_loses_keys():
    def f(d):
        d["c"] = d["a"] * d["b"]
        d["a"] = d["c"] * 2.0
        old = d.pop("b")
        return d["a"] + old

    check(f, {"a": 2.0, "b": 3.0}, gradient={"a": 6.0, "b": 5.0})


def test_an_object_argument_is_changed_in_place_and_left_so():
    def f(o):
        o.x *= o.y
        o.z = o.x + o.y
        del o.y
        o.stock[1] -= o.x
        return o.z * o.stock[1]

    # z = xy + y ; stock1 = i - xy
    x, y, i = 2.0, 3.0, 20.0
    check(
        f,
        SimpleNamespace(x=x, y=y, stock=[7.0, i]),
        gradient=Fields(
            x=y * (i - x * y) + (x * y + y) * -y,
            y=(x + 1) * (i - x * y) + (x * y + y) * -x,
            stock=[0.0, x * y + y],
        ),
    )


def test_fields_of_an_argument_may_be_named_like_methods_of_a_mapping():
    def f(o):
        return o.items[0] * o.values + o.keys * o.get

    o = SimpleNamespace(items=[2.0], values=3.0, keys=5.0, get=7.0)
    check(f, o, gradient=Fields(items=[3.0], values=2.0, keys=7.0, get=5.0))


def test_in_place_operators_on_numbers_make_new_numbers_and_do_not_touch_aliases():
    def f(x, y):
        a = b = x
        a += y
        a *= b
        a -= y / x
        a **= 2
        a /= y
        return a + b

    x, y = 2.0, 3.0
    a = (x + y) * x - y / x
    da_x, da_y = 2 * x + y + y / x**2, x - 1 / x
    check(f, x, y, gradient=(2 * a * da_x / y + 1, 2 * a * da_y / y - a * a / y**2))


def test_floor_division_and_modulo_in_place_follow_their_definitions():
    def f(x, y):
        a = x
        a %= y
        b = x
        b //= y
        return a * 10.0 + b

    check(f, 7.5, 2.0, gradient=(10.0, -30.0))


def test_nonlocal_counters_are_written_by_inner_functions():
    def f(x):
        total = 0.0
        calls = 0

        def add(v):
            nonlocal total, calls
            calls += 1
            total += v * calls

        for v in (x, x * x, x**3):
            add(v)
        return total

    x = 1.3
    check(f, x, gradient=1 + 4 * x + 9 * x * x)


def test_swapped_buffers_step_a_linear_recurrence():
    def f(x):
        old, new = [x, x * x, 1.0], [0.0, 0.0, 0.0]
        for _ in range(3):
            for i in range(3):
                new[i] = old[i] + old[(i + 1) % 3]
            old, new = new, old
        return old[0] * 2.0

    # (1 + S)^3: weights 1 3 3 1 at shifts 0..3 (3 is 0): 2 x + 3 x^2 + 3
    x = 1.5
    check(f, x, gradient=2 * (2 + 6 * x))


def test_function_attributes_and_mutable_defaults_keep_active_values():
    def f(x):
        def step(v, seen=[]):  # noqa: B006
            seen.append(v)
            step.last = v * v
            return sum(seen)

        return step(x) + step(x * 2) + step.last

    # x + (x + 2x) + 4x^2
    check(f, 1.5, gradient=4 + 8 * 1.5)


def test_an_augmented_assignment_to_a_subscript_evaluates_its_index_once():
    calls = []

    def index():
        calls.append(1)
        return len(calls) % 2

    def f(v):
        v[index()] += v[0] * v[1]
        v[index()] *= 3.0
        return v[0] + v[1] * 10

    # v1 += v0 v1 ; v0 *= 3
    check(f, [2.0, 5.0], gradient=[3.0 + 50.0, 30.0], setup=calls.clear, state=lambda: calls)


def test_globals_written_through_the_globals_dict_are_seen():
    scope = {"G": 1.0}
    exec(
        "def f(x):\n    globals()['G'] = x * x\n    y = G * 3.0\n    globals()['G'] = 1.0\n    return y * G",
        scope,
    )
    check(scope["f"], 1.5, gradient=6 * 1.5)


def test_setattr_delattr_and_vars_write_attributes():
    def f(x, y):
        o = SimpleNamespace()
        setattr(o, "a", x * y)
        vars(o)["b"] = y * y
        o.__dict__.update(c=x)
        d = getattr(o, "a") * getattr(o, "nothing", 2.0)
        delattr(o, "a")
        return d + o.b * o.c + hasattr(o, "a")

    x, y = 2.0, 3.0
    check(f, x, y, gradient=(2 * y + y * y, 2 * x + 2 * y * x))


# Arrays


def test_filling_an_array_element_by_element():
    def f(x, n=6):
        a = np.zeros(n)
        a[0] = x
        for i in range(1, n):
            a[i] = a[i - 1] * x + 1.0
        return a.sum()

    x = 1.2
    a, d, total = x, 1.0, 1.0
    for _ in range(5):
        a, d = a * x + 1.0, d * x + a
        total += d
    check(f, x, gradient=total)


def test_an_element_overwritten_while_its_old_value_is_needed_is_undone_on_the_way_back():
    def logistic(r):
        state = np.array([0.3])
        for _ in range(10):
            state[0] = r * state[0] * (1.0 - state[0])
        return state[0]

    r = 3.4
    x, d = 0.3, 0.0
    for _ in range(10):
        x, d = r * x * (1 - x), x * (1 - x) + r * (1 - 2 * x) * d
    check(logistic, r, gradient=d, rtol=1e-11)


def test_whole_array_in_place_operators_chain():
    def f(a, b):
        c = a * b
        c += a
        c *= c
        c -= b / a
        c /= 2.0
        c **= 2
        return c.sum()

    a, b = np.array([1.0, 2.0, -0.5]), np.array([0.3, -1.0, 2.0])
    u = a * b + a
    v = (u * u - b / a) / 2
    check(
        f,
        a,
        b,
        gradient=(2 * v * (2 * u * (b + 1) + b / a**2) / 2, 2 * v * (2 * u * a - 1 / a) / 2),
    )


def test_an_array_squared_in_place_captures_its_old_value():
    def f(a):
        b = np.sin(a)
        a *= a
        c = b * a
        a *= a
        return float((c + a).sum())

    a = np.array([0.5, 1.5])
    check(f, a, gradient=np.cos(a) * a**2 + 2 * a * np.sin(a) + 4 * a**3)


def test_a_mutated_array_argument_is_copied_back():
    def f(a, b):
        a[1] = a[0] * b[1]
        b[:] = 0.0
        a += 1.0
        return a[1] * a[2] + b.sum()

    a, b = np.array([2.0, 3.0, 5.0]), np.array([7.0, 11.0])
    check(f, a, b, gradient=(np.array([66.0, 0.0, 23.0]), np.array([0.0, 12.0])))


def test_views_write_through_to_their_base():
    def f(a):
        m = a.reshape(2, 3)
        row, column = m[1], m[:, 0]
        row *= 2.0
        column += a[5]
        m.T[2] = row[:2] * a[1]
        m.ravel()[1] = 7.0
        return (a * np.arange(6.0)).sum()

    # a0..a5 -> row: 2a3 2a4 2a5 ; column += (2 a5): a0 + 2a5, 2a3 + 2a5
    # m.T[2] = [a2, a5] := [2a3 + 2a5, 2a4] * a1 ; a1 := 7
    a = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    # sum = 7 + 2 (2a3 + 2a5) a1 + 3 (2a3 + 2a5) + 4 * 2a4 + 5 * 2 a4 a1
    g = [
        0.0,
        2 * (2 * a[3] + 2 * a[5]) + 10 * a[4],
        0.0,
        4 * a[1] + 6,
        8 + 10 * a[1],
        4 * a[1] + 6,
    ]
    check(f, a, gradient=np.array(g))


def test_negative_strides_and_overlapping_slices_assign_as_numpy_does():
    def f(a):
        a[1:] = a[:-1]
        a[::-1] = a * 2.0
        a[1:] += a[:-1]
        return (a * np.array([1.0, 10.0, 100.0, 1000.0])).sum()

    # [a0 a0 a1 a2] -> reversed doubled [2a2 2a1 2a0 2a0] -> [2a2, 2a1+2a2, 2a0+2a1, 4a0]
    check(f, np.array([1.0, 2.0, 3.0, 4.0]), gradient=np.array([4200.0, 220.0, 22.0, 0.0]))


def test_adding_an_array_to_its_own_transpose_in_place():
    def f(m):
        m += m.T
        m *= m[::-1]
        return m.sum()

    m = np.array([[1.0, 2.0], [3.0, 5.0]])
    # s = m + m.T ; sum of s * s[::-1] = 2 (s00 s10 + s01 s11), s01 = s10
    s00, s01, s11 = 2.0, 5.0, 10.0
    d01 = 2 * (s00 + s11)
    check(f, m, gradient=np.array([[2 * 2 * s01, d01], [d01, 2 * 2 * s01]]))


def test_masked_writes_replace_only_where_true():
    def f(a, x):
        b = a.copy()
        b[b < 0] = x
        b[a > 2] *= x
        b[np.array([True, False, False, False])] += a[1:2] * 3
        return (b * np.array([1.0, 2.0, 3.0, 4.0])).sum()

    a, x = np.array([1.0, -1.0, 3.0, 1.5]), 0.5
    # b = [a0 + 3 a1, x, a2 x, a3]
    check(f, a, x, gradient=(np.array([1.0, 3.0, 3 * x, 4.0]), 2.0 + 3 * 3.0))


def test_fancy_writes_with_repeated_indices_keep_the_last_value():
    def f(v):
        a = np.zeros(3)
        a[[0, 1, 0, 2, 0]] = v
        a[[1, 1]] += 10.0 * v[:2]
        return (a * np.array([1.0, 2.0, 3.0])).sum()

    # a = [v4, v1 + 10 v1, v3]: a[[1, 1]] += reads a[1] twice, the last write wins
    check(f, np.array([1.0, 2.0, 3.0, 4.0, 5.0]), gradient=np.array([0.0, 2 * 11.0, 0.0, 3.0, 1.0]))


def test_add_at_accumulates_repeated_indices():
    def f(v):
        a = np.zeros(3)
        np.add.at(a, [0, 1, 0], v)
        return (a**2).sum()

    v = np.array([1.0, 2.0, 3.0])
    check(f, v, gradient=np.array([8.0, 4.0, 8.0]))


def test_out_arguments_receive_the_derivative():
    def f(a, b):
        out = np.empty(2)
        np.multiply(a, b, out=out)
        np.sin(out, out=out)
        result = np.add(out, a, out)
        assert result is out
        np.exp(a, out=a)
        return float((out * a).sum())

    a, b = np.array([0.5, 1.0]), np.array([2.0, -1.0])
    s = np.sin(a * b) + a
    e = np.exp(a)
    check(f, a, b, gradient=((np.cos(a * b) * b + 1) * e + s * e, np.cos(a * b) * a * e))


def test_a_ufunc_with_where_and_out_leaves_the_other_elements():
    def f(a):
        out = a * 10.0
        np.sqrt(a, out=out, where=a > 0)
        return out.sum()

    check(f, np.array([4.0, -1.0, 9.0]), gradient=np.array([0.25, 10.0, 1 / 6]))


def test_double_buffered_heat_equation_swaps_arrays_with_out():
    def f(u, k):
        a, b = u.copy(), np.zeros_like(u)
        for _ in range(3):
            b[1:-1] = a[1:-1] + k * (a[2:] - 2 * a[1:-1] + a[:-2])
            b[0], b[-1] = a[0], a[-1]
            a, b = b, a
        return float(a @ a)

    u, k, n = np.array([0.0, 1.0, 4.0, 2.0, 1.0]), 0.2, 5
    laplacian = np.zeros((n, n))
    for i in range(1, n - 1):
        laplacian[i, i - 1 : i + 2] = 1.0, -2.0, 1.0
    m = np.eye(n) + k * laplacian
    m3 = np.linalg.matrix_power(m, 3)
    y = m3 @ u
    dk = 2 * y @ (laplacian @ m @ m + m @ laplacian @ m + m @ m @ laplacian) @ u
    check(f, u, k, gradient=(2 * m3.T @ y, float(dk)))


def test_an_outside_array_is_written_and_ends_as_after_a_plain_call():
    def f(x):
        world.table[0] = x
        world.table[1:] = world.table[0] * x
        world.table *= 2.0
        y = world.table.sum()
        world.table[:] = world.table[::-1]
        return y * world.table[0]

    # table = 2 [x, x^2, x^2] ; y = 2x + 4 x^2 ; table[0] = 2 x^2
    x = 1.5
    check(f, x, gradient=12 * x * x + 32 * x**3, setup=reset_world, state=see_world)


def test_an_array_left_active_in_a_global_is_constant_at_the_next_gradient():
    def f(x):
        before = world.table.sum()
        world.table[:] = x * x
        return before * x + world.table[0]

    reset_world()
    assert plaingrad.grad(f)(3.0) == 6.0
    assert plaingrad.grad(f)(2.0) == 27.0 + 4.0


def test_reading_the_very_global_array_that_is_the_argument_differentiates_the_argument_only():
    def f(w):
        return float(w @ (WEIGHTS * 2.0))

    np.testing.assert_array_equal(plaingrad.grad(f)(WEIGHTS), [2.0, 4.0, 6.0])


def test_writing_the_argument_while_reading_the_global_that_is_it_is_an_alias_error():
    original = WEIGHTS.copy()

    def f(w):
        w *= 2.0
        return float(w @ WEIGHTS)

    with pytest.raises(plaingrad.AliasError):
        plaingrad.grad(f)(WEIGHTS)
    WEIGHTS[:] = original


def test_writing_the_global_while_reading_the_argument_that_is_it_is_an_alias_error():
    original = WEIGHTS.copy()

    def f(w):
        before = w.sum()
        WEIGHTS[0] = 5.0
        return float(before * w[0])

    with pytest.raises(plaingrad.AliasError):
        plaingrad.grad(f)(WEIGHTS)
    WEIGHTS[:] = original


def test_a_view_of_the_argument_held_outside_is_the_same_memory():
    whole = np.array([1.0, 2.0, 3.0])
    part = whole[1:]

    def f(w):
        w[1] = w[0] * 10.0
        return float(part.sum() * w[0])

    with pytest.raises(plaingrad.AliasError):
        plaingrad.grad(f)(whole)


def test_the_same_array_given_twice_may_be_read_twice():
    w = np.array([1.0, 2.0])
    g = plaingrad.grad(lambda a, b: float((a * a * b).sum()), (0, 1))(w, w)
    np.testing.assert_array_equal(g[0], 2 * w * w)
    np.testing.assert_array_equal(g[1], w * w)


def test_the_same_array_given_twice_and_written_once_is_an_alias_error():
    w = np.array([1.0, 2.0])

    def f(a, b):
        a *= 3.0
        return float((a * b).sum())

    with pytest.raises(plaingrad.AliasError):
        plaingrad.grad(f, (0, 1))(w, w)


def test_two_views_of_one_array_given_and_one_written_is_an_alias_error():
    w = np.array([1.0, 2.0, 3.0])

    def f(a, b):
        a[1] = a[0] * 2.0
        return float(a.sum() * b.sum())

    with pytest.raises(plaingrad.AliasError):
        plaingrad.grad(f, (0, 1))(w[:2], w[1:])


def test_an_argument_that_is_a_view_is_written_back_into_its_base():
    def run(call):
        base = np.arange(6.0)
        out = call(lambda v: float(_square_in_place(v).sum()), base[::2])
        return base, out

    def _square_in_place(v):
        v *= v
        return v

    plain, y = run(lambda f, v: f(v))
    ours, (y2, g) = run(lambda f, v: plaingrad.value_and_grad(f)(v))
    np.testing.assert_array_equal(plain, ours)
    assert y == y2
    np.testing.assert_array_equal(g, [0.0, 4.0, 8.0])


def test_an_array_result_that_is_the_argument_is_the_callers_own_object():
    a = np.array([1.0, 2.0])
    seen = {}

    def f(v):
        seen["v"] = v
        v += 1.0
        return v

    y, pullback = plaingrad.vjp(f, a)
    assert y is a and seen["v"].tolist() == [2.0, 3.0]
    np.testing.assert_array_equal(a, [2.0, 3.0])
    np.testing.assert_array_equal(pullback(np.array([5.0, 7.0]))[0], [5.0, 7.0])


def test_a_float_result_that_is_the_argument_is_the_callers_own_object():
    x = 12.5
    value, g = plaingrad.value_and_grad(lambda v: v)(x)
    assert value is x and g == 1.0


def test_changing_a_captured_array_before_the_pullback_is_noticed():
    w = np.array([1.0, 2.0, 3.0])

    def f(x):
        return float((x * w).sum())

    _, pullback = plaingrad.vjp(f, np.array([1.0, 1.0, 1.0]))
    np.testing.assert_array_equal(pullback(1.0)[0], w)
    w[0] = 100.0
    with pytest.raises(plaingrad.ChangedSinceError):
        pullback(1.0)


def test_an_argument_whose_elements_overlap_may_be_read_but_not_written():
    def windows():
        return np.lib.stride_tricks.as_strided(np.arange(3.0), (2, 2), (8, 8))

    def write(m):
        m[0, 1] = 5.0
        return float((m * m).sum())

    g = plaingrad.grad(lambda m: float((m * np.arange(4.0).reshape(2, 2)).sum()))(windows())
    np.testing.assert_array_equal(g, [[0.0, 1.0], [2.0, 3.0]])
    with pytest.raises(plaingrad.PlaingradError):
        plaingrad.grad(write)(windows())


def test_a_masked_array_argument_counts_where_it_is_not_masked():
    m = np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])
    try:
        g = plaingrad.grad(lambda a: float((a * a).sum()))(m)
    except plaingrad.PlaingradError:
        return
    np.testing.assert_array_equal(np.ma.filled(np.ma.array(g, mask=m.mask), 0.0), [2.0, 0.0, 6.0])


def test_stride_zero_views_accumulate_every_term():
    def f(x):
        a = np.zeros(1)
        a[0] = x
        wide = np.broadcast_to(a, (4,))
        b = wide * np.arange(4.0)
        s = np.lib.stride_tricks.as_strided(a, (3,), (0,))
        return float(b.sum() + (s**2).sum())

    check(f, 1.5, gradient=6.0 + 6 * 1.5)


def test_sliding_windows_overlap_and_add_up():
    def f(a):
        windows = np.lib.stride_tricks.sliding_window_view(a, 3)
        return float((windows.sum(axis=1) ** 2).sum())

    a = np.array([1.0, -2.0, 3.0, 0.5])
    s0, s1 = a[:3].sum(), a[1:].sum()
    check(f, a, gradient=2 * np.array([s0, s0 + s1, s0 + s1, s1]))


def test_writing_through_an_overlapping_strided_view_keeps_the_last_write():
    def f(a):
        windows = np.lib.stride_tricks.as_strided(a, (2, 2), (8, 8))  # [[a0 a1] [a1 a2]]
        windows[0] = windows[0] * 2.0
        windows[1] = windows[1] * 3.0
        return float((a * np.array([1.0, 10.0, 100.0])).sum())

    # a0 = 2 a0 ; a1 = 6 a1 ; a2 = 3 a2
    check(f, np.array([1.0, 2.0, 3.0]), gradient=np.array([2.0, 60.0, 300.0]))


def test_flat_iteration_and_flat_writes_reach_the_memory():
    def f(m):
        m.flat[1] = m.flat[0] * 3.0
        out = 0.0
        for v in m.flat:
            out += v * v
        for (i, j), v in np.ndenumerate(m):
            out += (i + 2 * j) * v
        return out

    # m = [[a, 3a], [c, d]]: squares a^2 + 9 a^2 + c^2 + d^2 ; plus 2*3a + c + 3d
    m = np.array([[1.0, 2.0], [3.0, 4.0]])
    check_or_refused(f, m, gradient=np.array([[20.0 + 6, 0.0], [7.0, 11.0]]))


def test_two_frombuffer_arrays_of_one_bytearray_are_one_memory():
    def f(x):
        raw = bytearray(16)
        a, b = np.frombuffer(raw), np.frombuffer(raw)
        a[0] = x * x
        b[1] = a[0] * x
        return b[0] + a[1]

    with pytest.raises(plaingrad.AliasError, match="the local `raw`"):
        plaingrad.grad(f)(1.5)

    def of_its_own(x):
        a = np.frombuffer(bytearray(16))
        b = a[:]
        a[0] = x * x
        b[1] = a[0] * x
        return b[0] + a[1]

    check(of_its_own, 1.5, gradient=2 * 1.5 + 3 * 1.5**2)


def test_copyto_put_fill_diagonal_and_friends_write_active_values():
    def copyto(x):
        a = np.zeros(3)
        np.copyto(a, np.ones(3) * x * x)
        np.copyto(a, x, where=np.array([True, False, False]))
        return a.sum()

    def masked(x):
        a = np.zeros(3)
        np.copyto(a, x, where=np.array([True, False, False]))
        np.putmask(a, [False, True, False], x * x)
        np.place(a, np.array([False, False, True]), [x**3])
        return (a * np.array([1.0, 10.0, 100.0])).sum()

    def fill(x):
        a = np.zeros((2, 2))
        a.fill(x * x)
        np.fill_diagonal(a, x)
        return a.sum()

    def put(x):
        a = np.zeros(3)
        np.put(a, [0, 2], [x * x, x])
        a.put(1, x)
        return a.sum()

    x = 1.5
    check_or_refused(copyto, x, gradient=1 + 4 * x)
    check_or_refused(masked, x, gradient=1 + 20 * x + 300 * x * x)
    check_or_refused(fill, x, gradient=2 + 4 * x)
    check_or_refused(put, x, gradient=2 + 2 * x)


def test_sorting_an_array_in_place_moves_the_derivative_with_the_elements():
    def f(a):
        a.sort()
        return float((a * np.array([1.0, 10.0, 100.0])).sum())

    check_or_refused(f, np.array([3.0, 1.0, 2.0]), gradient=np.array([100.0, 1.0, 10.0]))


def test_an_int_array_keeps_integers_and_the_derivative_stops_there():
    def f(x):
        n = np.zeros(2, dtype=int)
        n[0] = x * 2.0
        return n[0] * x

    check(f, 3.5, gradient=7.0)


def test_float32_arrays_are_written_with_rounding_and_keep_their_dtype():
    def f(a, x):
        a[0] = x * x
        a *= np.float32(2.0)
        return float(a.sum())

    a = np.array([1.0, 2.0], dtype=np.float32)
    check(f, a, 1.5, gradient=(np.array([0.0, 2.0], dtype=np.float32), 6.0), rtol=1e-6)


def test_complex_arrays_are_written_through_real_and_imag_views():
    def f(x, y):
        z = np.zeros(2, dtype=complex)
        z.real[0] = x
        z.imag[:] = y
        z[1] += x * 1j
        z *= z
        return float((z.real + z.imag * 2.0).sum())

    # z0 = x + iy, z1 = i (x + y): z0^2 = x^2 - y^2 + 2ixy ; z1^2 = -(x+y)^2
    x, y = 2.0, 3.0
    check(f, x, y, gradient=(2 * x + 4 * y - 2 * (x + y), -2 * y + 4 * x - 2 * (x + y)))


def test_scalars_read_from_complex_arrays_have_real_and_imaginary_parts():
    def f(x, y):
        z = np.array([x + 1j * y, y * 1j])
        w = np.exp(1j * np.float64(x))
        a, b = z
        return float(a.real * b.imag + (a * b).imag + w.imag + a.conjugate().imag)

    # xy + xy + sin x - y
    x, y = 2.0, 3.0
    check(f, x, y, gradient=(2 * y + math.cos(x), 2 * x - 1))


def test_a_zero_dimensional_array_is_a_box_that_is_written():
    def f(x):
        box = np.array(0.0)
        alias = box[...]
        box += x
        alias *= x
        box[()] = box * box
        return float(alias)

    check(f, 1.5, gradient=4 * 1.5**3)


def test_a_zero_dimensional_argument_is_written_in_place_and_copied_back():
    def f(a):
        a *= a
        a += 1.0
        return float(a) * 2.0

    check(f, np.array(3.0), gradient=np.array(12.0))


def test_tuple_assignment_swaps_rows_through_a_copy_but_not_through_views():
    def f(m):
        m[[0, 1]] = m[[1, 0]]
        m[0], m[1] = m[1].copy(), m[0].copy()
        m[0], m[1] = m[1], m[0]  # views: row 0 is overwritten before it is read
        return float((m * np.array([[1.0, 2.0], [3.0, 4.0]])).sum())

    # first two swaps cancel; the last leaves both rows equal to row 1
    check(f, np.array([[1.0, 2.0], [3.0, 4.0]]), gradient=np.array([[0.0, 0.0], [4.0, 6.0]]))


def test_gaussian_elimination_in_place_solves_a_system():
    def solve_sum(a, b):
        n = len(b)
        for k in range(n):
            for i in range(k + 1, n):
                factor = a[i, k] / a[k, k]
                a[i, k:] -= factor * a[k, k:]
                b[i] -= factor * b[k]
        for k in reversed(range(n)):
            b[k] = (b[k] - a[k, k + 1 :] @ b[k + 1 :]) / a[k, k]
        return float(b.sum())

    a = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.5, 2.0, 5.0]])
    b = np.array([1.0, 2.0, 3.0])
    inverse = np.linalg.inv(a)
    lam, x = inverse.T @ np.ones(3), inverse @ b
    check(solve_sum, a, b, gradient=(-np.outer(lam, x), lam), rtol=1e-11)


def test_a_prefix_sum_by_an_explicit_loop_over_a_view():
    def f(a):
        tail = a[1:]
        for i in range(len(tail)):
            tail[i] += a[i]
        return float((a**2).sum())

    a = np.array([1.0, 2.0, 3.0, 4.0])
    prefix = np.cumsum(a)
    check(f, a, gradient=np.array([2 * prefix[i:].sum() for i in range(4)]))


def test_deleting_the_last_name_of_an_array_does_not_confuse_the_next_one():
    def f(x):
        total = 0.0
        for k in range(50):
            a = np.full(3, 1.0)
            if k % 2:
                a[0] = x
            total += a.sum()
            del a
        return total

    check(f, 2.0, gradient=25.0)


def test_an_exception_halfway_leaves_what_was_written_until_then():
    def f(v, a):
        v[0] = v[0] * 2.0
        a[0] = v[0]
        world.total = v[0]
        raise OverflowError("halfway")

    def run(call):
        reset_world()
        v, a = [1.5, 2.5], np.array([1.0, 2.0])
        with pytest.raises(OverflowError, match="halfway"):
            call(v, a)
        return v, a.tolist(), world.total

    assert run(f) == run(plaingrad.grad(f, (0, 1)))


def test_an_array_appended_to_an_outside_list_stays_alive_and_whole():
    kept = []

    def f(x):
        a = np.full(3, 2.0) * x
        kept.append(a)
        kept.append(a[1:])
        a[2] = x * x
        return float(kept[-1].sum())

    check(f, 1.5, gradient=2.0 + 3.0, setup=kept.clear, state=lambda: kept)
    assert kept[1].base is kept[0]


def test_the_gradient_does_not_share_memory_with_anything():
    a = np.array([1.0, 2.0])
    f = plaingrad.value_and_grad(lambda v, w: float((v + w).sum()), (0, 1))
    _, (g, h) = f(a, a.copy())
    g[0] = 99.0
    assert h[0] == 1.0 and a[0] == 1.0
    _, (g2, _) = f(a, a.copy())
    assert g2[0] == 1.0


def test_matrix_multiply_in_place():
    def f(a, b):
        alias = a
        a @= b
        return float((alias * a).sum())

    a, b = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[0.5, -1.0], [2.0, 1.5]])
    c = a @ b
    check_or_refused(f, a, b, gradient=(2 * c @ b.T, 2 * a.T @ c))


def test_structured_arrays_are_written_by_field():
    def f(x, y):
        bodies = np.zeros(2, dtype=[("mass", float), ("speed", float)])
        bodies["mass"] = [1.0, 2.0]
        bodies["speed"][0] = x
        bodies["speed"][1] = x * y
        bodies["mass"] *= y
        return float((bodies["mass"] * bodies["speed"] ** 2).sum())

    # y x^2 + 2 y x^2 y^2
    x, y = 2.0, 3.0
    check_or_refused(f, x, y, gradient=(2 * x * y + 4 * x * y**3, x * x + 6 * x * x * y * y))


def test_an_isclose_guard_and_a_cache_keyed_by_bytes_do_not_matter_to_the_derivative():
    cache = {}

    def f(x):
        key = math.floor(x)
        if key not in cache:
            cache[key] = 2.0
        return cache[key] * x * x if not math.isclose(x, 0.0) else x

    check(f, 1.5, gradient=6.0, setup=cache.clear, state=lambda: cache)


def test_a_masked_array_as_argument():
    m = np.ma.array([1.0, 2.0], mask=[False, True])
    g = plaingrad.grad(lambda m: float((m * m).sum()))(m)
    assert g[0] == 2.0


def test_an_argument_whose_elements_overlap_is_read_but_not_written():
    def windows():
        return np.lib.stride_tricks.as_strided(np.arange(3.0), (2, 2), (8, 8))

    def written(m):
        m[0, 1] = 5.0
        return float((m * m).sum())

    np.testing.assert_array_equal(plaingrad.grad(lambda m: (m * m).sum())(windows()), 2 * windows())
    with pytest.raises(plaingrad.AliasError):
        plaingrad.grad(written)(windows())


def test_flat_iterators_become_arrays():
    weights = np.arange(6.0)

    def f(x):
        return float((np.asarray(x.T.flat) * weights).sum() + np.sum(x.T.flat))

    x = np.arange(6.0).reshape(2, 3) + 1.0
    check(f, x, gradient=weights.reshape(3, 2).T + 1.0)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: float(np.array([x]).astype(str)[0]),
        lambda x: float(np.array([x]).astype("S32")[0]),
        lambda x: float(np.array([x * 2.0**60]).astype(np.int64)[0]) / 2.0**60,
        lambda x: float(np.array([x]).view("V8").copy().view(float)[0]),
        lambda x: float(np.timedelta64(10**6, "s") * x / np.timedelta64(1, "s")),
        lambda x: float((np.array([x]) * np.timedelta64(10**6, "s") / np.timedelta64(1, "s"))[0]),
        lambda x: float(np.array([x]).conj(np.zeros(1))[0]),
    ],
)
def test_numbers_that_leave_arrays_in_another_form_are_refused(f):
    f(1.2345)
    with pytest.raises((plaingrad.MissingRuleError, plaingrad.RoundTripError)):
        plaingrad.vjp(f, 1.2345)


def test_lists_and_options_of_functions_that_numpy_writes_in_python():
    def f(x):
        kept = np.clip(np.array([x, 2.0, 3.0]), 0.4, 2.5, out=np.zeros(3), where=np.array([True, False, True]))
        flag = False
        flag |= kept > 100.0
        return (
            np.ediff1d([x, x * x])[0]
            + np.ix_((x, x * x, 3.0))[0].sum()
            + np.apply_along_axis(np.sum, 0, [[x, 1.0], [x * x, 2.0]])[0]
            + kept.sum()
            + flag.sum()
        )

    check(f, 1.5, gradient=np.float64(2 * 1.5 - 1 + 1 + 2 * 1.5 + 1 + 2 * 1.5 + 1).item())


def test_lists_as_operands_of_named_methods_of_arrays():
    def f(x):
        a = np.array([x, 2.0])
        order = np.random.default_rng(0).permutation(2)
        return float((a.__pow__([2.0, 3.0]) + pow(a, [2.0, 3.0]) + divmod(a, [1.0, x])[1])[order].sum())

    # 2x^2 + (x mod 1) + (2 mod x)
    check(f, 1.5, gradient=4 * 1.5 + 1 - 1)
