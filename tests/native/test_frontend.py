"""What the front end takes of Python: every program against the plain tier and differences.

Numba compiles the asserts below as they stand: PYTEST_DONT_REWRITE.
"""

import math
import re

import numba
import numpy as np
import pytest

import plaingrad
from tests.native.programs.entries import entering
from tests.native.uncompiled import check

numba = pytest.importorskip("numba")

from plaingrad.native.frontend import translation  # noqa: E402

V = np.array([0.3, -0.8, 1.7, 0.6])
TABLE = np.array([0.5, -1.5, 2.5])
SCALE = 1.7
M = np.array([[0.2, -0.5, 0.9], [1.1, 0.4, -0.3], [0.7, 0.8, -1.2]])

PROGRAMS = {}
program = entering(PROGRAMS, plain=True)


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


@program(V, 1.2)
def a_loop_whose_body_always_returns(v, x):
    for e in v:
        return e * x
    return x


@program(V, 1.2)
def a_loop_whose_body_always_breaks(v, x):
    s = x
    for e in v:
        s = e * x
        break
    return s * x


@program(1.2)
def a_while_that_is_left_at_once(x):
    while True:
        x = x * 2
        break
    return x * x


@program(V, 1.2)
def a_loop_that_is_left_on_both_ways(v, x):
    for i in range(v.size):
        if v[i] > 0:
            x = x * v[i]
            break
        else:
            return x * v[0]
    return x * x


@program(np.zeros(0), 1.2)
def a_loop_whose_body_always_returns_over_nothing(v, x):
    for e in v:
        return e * x
    return x


@program(V, 1.2)
def for_else_when_it_breaks(v, x):
    s = 0.0
    for e in v:
        if e > 1.0:
            s += e * x
            break
        s += e
    else:
        s = s * x * x
    return s


@program(V, 100.0)
def for_else_when_it_ends(v, x):
    s = 0.0
    for e in v:
        if e > x:
            break
        s += e * e
    else:
        s = s * x
    return s


@program(1.2, 5)
def while_else(x, n):
    s = x
    while n > 0:
        s = s * x
        n -= 1
        if s > 100:
            break
    else:
        s = s + x * 3
    return s


@program(M, 0.3)
def early_returns_in_nested_loops(m, x):
    for i in range(3):
        for j in range(3):
            if m[i, j] > 1.0:
                return m[i, j] * x
            for k in range(2):
                if m[i, k] * m[j, k] < -0.45:
                    return m[i, k] * m[k, j]
                x = x * 1.1
    return x


@program(M, 0.3)
def breaks_and_continues_with_else_in_nested_loops(m, x):
    s = 0.0
    for i in range(3):
        for j in range(3):
            if m[i, j] > 0.85:
                s += m[i, j] * x
                break
            elif m[i, j] < -1:
                continue
            s = s * x + m[i, j]
        else:
            s += x
            continue
        s *= 2
    return s


@program(1.2)
def asserts_and_raises_with_messages(x):
    assert x > 0, "no"
    if x > 100:
        raise ValueError("too large", 3)
    return x * x


@program(V)
def an_array_of_a_comprehension(v):
    return np.array([e * e for e in v]).sum()


@program(1.2, 0.3)
def nested_unpacking_and_exchange(a, b):
    a, b = b * a, a + b
    (a, b), c = (b, a), a * b
    return a * b - c


@program(V, 1.2)
def arrays_of_every_creation(v, x):
    a = np.zeros(4)
    b = np.ones((2, 2))
    c = np.empty(3)
    d = np.full(3, x)
    e = np.arange(4.0)
    f = np.linspace(0.0, x, 4)
    g = np.eye(2)
    h = np.identity(2)
    i = np.zeros_like(v)
    j = np.full_like(v, x)
    k = np.arange(3)
    c[:] = x
    c[1] = v[0]
    a += v * e
    return (
        a.sum()
        + (b * x).sum()
        + c.sum() * d[0]
        + f[2] * f[1]
        + (g * x).sum()
        + h[0, 0]
        + i[0]
        + j.sum() * k[2]
    )


@program(1.2)
def an_array_of_the_module_as_a_whole(x):
    t = TABLE[1] * SCALE
    return x * t + np.sum(TABLE * x)


@program(1.2, 0.3)
def and_and_or_of_numbers(x, y):
    z = x or y
    w = x and y
    u = x if x > y else y
    return z * w * u


@program(V)
def ndenumerate_and_ndindex(v):
    s = 0.0
    for i, e in np.ndenumerate(v):
        s += e * i[0]
    for i in np.ndindex(2, 2):
        s += v[i[0]] * v[i[1]]
    return s


@program(M)
def flat_iteration(m):
    s = 0.0
    for e in m.flat:
        s += e * e
    for k in range(m.size):
        s += m.flat[k] * k
    return s


@program(V)
def iteration_backwards(v):
    s = 1.0
    for e in v[::-1]:
        s = s * e + 1
    return s


@program(M)
def new_axes_and_ellipsis(m):
    a = m[:, None, :] * m[None, :, :]
    return a[..., 0].sum() + m[1, ...].sum() * m[:, 1:2][0, 0]


@program(V)
def strings_that_decide(v):
    name = "a" + "b"
    if name == "ab":
        return v[0] * 2
    return v[1]


@program(V)
def another_name_for_an_array(v):
    a = v
    a[0] = a[1] * 2
    b = a[1:3]
    b += a[0]
    return v.sum() * a[0]


@program(M)
def a_tuple_as_an_index(m):
    i = (1, 2)
    return m[i] * m[i[0]][i[1]] * m[1][2]


@program(V)
def a_mask_as_an_index(v):
    return v[v > 0].sum() * v[0]


@program(V)
def enumerate_from_one_and_zip_of_slices(v):
    s = 0.0
    for i, e in enumerate(v, 1):
        s += e * i
    for a, b, c in zip(v, v[1:], v[2:]):
        s += a * b * c
    return s


@program(1.2, 4)
def integers_that_count_down_by_bits(x, n):
    k = n // 2
    while k:
        x = x * k
        k >>= 1
    return x**n


@program(1.3)
def functions_inside_functions(x):
    def g(y):
        def h(z):
            return z * x

        return h(y) * y

    return g(x * x)


@program(V)
def lambdas(v):
    f = lambda a, b=2.0: a * b
    return f(v[0]) * f(v[1], v[2])


@program(1.3)
def printing(x):
    print("x")
    return x * x


@program(V)
def slices_made_before(v):
    s = slice(1, 3)
    w = v[s]
    n = len(v)
    return w.sum() * v[n - 1] * v[-n:].sum()


@program(V)
def a_while_on_two_conditions(v):
    i = 0
    s = 0.0
    while i < v.size and v[i] < 1.5:
        s += v[i] * v[i]
        i += 1
        if s > 10 or i == 100:
            continue
        s *= 1.1
    return s


@program(V)
def a_return_or_a_raise_ends_the_loop(v):
    i = 0
    while True:
        if v[i] > 1:
            return v[i] * i
        i += 1
        if i >= 4:
            raise IndexError("none")


@program(V)
def the_last_value_of_a_loop_variable(v):
    for i in range(3):
        x = v[i]
    return x * i


@program(V)
def builtin_functions_of_numbers(v):
    return (
        max(v[0], v[1], v[2]) * min(v[0], v[3])
        + abs(v[1])
        + round(v[0])
        + pow(v[2], 2)
        + divmod(v[2], 0.5)[1]
    )


@program(V)
def rows_and_columns_assigned(v):
    a = np.empty((2, 2))
    a[0] = v[:2]
    a[1, :] = v[2:]
    a[:, 0] *= 2
    return (a @ a).sum()


def captured():
    scales, factor = np.array([2.0, 3.0]), 3.0

    def captured_arrays_and_numbers(x):
        return scales[0] * x * factor + (scales * x).sum()

    return captured_arrays_and_numbers


program(1.3)(captured())


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_has_the_same_derivatives_natively(name):
    f, args, plain = PROGRAMS[name]
    check(f, *args, plain=plain)


class Unusual(Exception):
    """An exception of the user's."""


def raises_with_a_value(x):
    if x < 0:
        raise ValueError("negative", x)
    return x * x


def raises_its_own(x):
    if x < 0:
        raise Unusual("negative", 1)
    if x > 10:
        raise Unusual
    return math.sqrt(x)


def raises_in_a_loop(x):
    s = 0.0
    for i in range(3):
        for j in range(3):
            if x * i * j > 5:
                raise RuntimeError("too large")
            s += x
    return s


def takes_a_remainder(x, n):
    return x * (5 % n)


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (raises_with_a_value, (-1.0,)),
        (raises_its_own, (-1.0,)),
        (raises_its_own, (11.0,)),
        (raises_in_a_loop, (4.0,)),
        (takes_a_remainder, (1.0, 0)),
        (lambda x, n: x / n, (1.0, 0)),
    ],
)
def test_exceptions_are_those_of_the_program(f, args):
    with pytest.raises(Exception) as expected:
        f(*args)
    with pytest.raises(type(expected.value)) as found:
        plaingrad.grad(f, tier="native")(*args)
    if not isinstance(expected.value, ZeroDivisionError):  # Numba's message is another one than Python's
        assert found.value.args == expected.value.args


def test_bounds_and_divisions_are_checked_as_the_options_of_the_function_say(machine_code):
    def item(v, k):
        return v[k] * 2

    with pytest.raises(IndexError):
        plaingrad.grad(numba.njit(boundscheck=True)(item))(np.ones(3), 7)
    y, slope = plaingrad.value_and_grad(numba.njit(error_model="numpy")(lambda x, n: x / n))(1.0, 0)
    assert y == slope == math.inf


def test_parallel_functions_and_those_without_the_lock():
    def sums(v, x):
        s = 0.0
        w = np.empty(v.size)
        for i in numba.prange(v.size):
            w[i] = v[i] * x
            s += w[i] * v[i]
        return s + w.sum()

    for options in ({"parallel": True}, {"nogil": True}):
        y, (v_bar, x_bar) = plaingrad.value_and_grad(numba.njit(**options)(sums), (0, 1))(np.arange(3.0), 2.0)
        assert (y, x_bar) == (16.0, 8.0)
        np.testing.assert_allclose(v_bar, [2.0, 6.0, 10.0])


def numbers_twice(v):
    for e in v:
        yield e * 2


def of_a_generator(v):
    s = 0.0
    for e in numbers_twice(v):
        s += e
    return s


def of_a_generator_expression(v):
    s = 0.0
    for e in (a * a for a in v):
        s += e
    return s


def of_a_dictionary(v):
    d = {}
    d[0] = v[1]
    return d[0]


def of_a_set(v):
    return v[0] * len({v[1], v[2]})


def of_a_try(v):
    try:
        x = v[0] * 2
    except Exception:
        x = v[1]
    return x


def of_an_iterator(v):
    s = 0.0
    for a, b in np.nditer((v, v)):
        s += a.item() * b.item()
    return s


def of_starred_names(v):
    a, *b = (v[0], v[1], v[2])
    return a * b[0]


def in_python(v):
    with numba.objmode(y="float64"):
        y = float(v[0])
    return y * v[0]


REFUSED = (
    of_a_set,
    of_a_try,
    of_an_iterator,
    in_python,
)


@pytest.mark.parametrize("f", REFUSED, ids=lambda f: f.__name__)
def test_what_the_front_end_does_not_take_is_refused_with_the_line(f):
    first = f.__code__.co_firstlineno
    with pytest.raises(plaingrad.NativeError, match=r"test_frontend.py") as refused:
        plaingrad.grad(f, tier="native")(V.copy())
    lines = {int(n) for n in re.findall(r"test_frontend.py\D{1,10}(\d+)", str(refused.value))}
    assert lines & set(range(first, first + 9)), str(refused.value)


@pytest.mark.parametrize("f", [of_a_generator, of_a_generator_expression, of_a_dictionary, of_starred_names])
def test_what_numba_does_not_take_is_taken_apart_before(f):
    native, plain = (plaingrad.grad(f, tier=tier)(V.copy()) for tier in ("native", "plain"))
    np.testing.assert_allclose(native, plain, rtol=1e-13)


def of_arrays_without_dimensions(x):
    a = np.array(2.0) * x
    b = np.zeros(())
    b[()] = x * x
    return a * b[()]


def test_arrays_without_dimensions():
    check(of_arrays_without_dimensions, 3.0)
    assert plaingrad.value_and_grad(of_arrays_without_dimensions, tier="native")(3.0) == (54.0, 54.0)


def of_one_variable_for_arrays_of_two_layouts(x, U):
    V = U * x
    for _ in range(2):
        V = U * x
        U = V.copy()
    return np.sum(V)


def test_what_numba_can_type_but_not_compile_is_refused():
    with pytest.raises(plaingrad.NativeError, match="layout 'A'"):
        plaingrad.grad(of_one_variable_for_arrays_of_two_layouts, tier="native")(0.5, np.asfortranarray(M))


def of_a_closure_beside_a_write_through_an_iterated_view(x):
    def same(t):
        return t

    m = x[0] * M
    for row in m:
        row[:2] = same(x[1])
    return np.sum(m)


def of_a_closure_beside_other_writes(x):
    def scaled(t):
        return t * x[0]

    m = x[2] * M
    for k in range(3):
        m[k, 0] = scaled(x[1])
        m[k][1:] *= scaled(0.3)
    row = m[0]
    row[1:] = x[3]
    return np.sum(m)


def test_a_write_that_numba_loses_when_it_inlines_closures_is_refused():
    f = of_a_closure_beside_a_write_through_an_iterated_view
    with pytest.raises(plaingrad.NativeError, match="Numba loses the write `row"):
        plaingrad.jvp(numba.njit(f), (V,), (V,), tier="native")
    # Without the closure, which is taken apart first, Numba loses nothing.
    found, plain = (plaingrad.jvp(f, (V,), (V,), tier=tier) for tier in ("native", "plain"))
    assert found == pytest.approx(plain, rel=1e-14)
    check(of_a_closure_beside_other_writes, V.copy())


FACTOR = 3.0


def test_a_function_is_typed_once_for_all_modes_and_anew_when_it_has_changed(monkeypatch):
    typed = []
    usual = translation.typed_ir_of
    monkeypatch.setattr(translation, "typed_ir_of", lambda *what: typed.append(what) or usual(*what))

    def callee(x):
        return x * x * FACTOR

    def f(x):
        return callee(x) * x

    def slopes():
        return (
            plaingrad.grad(f, tier="native")(2.0),
            plaingrad.jvp(f, (2.0,), (1.0,), tier="native")[1],
            plaingrad.vjp(f, 2.0, tier="native")[1](1.0)[0],
        )

    assert slopes() == (36.0,) * 3
    assert len(typed) == 2  # and the callee
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    assert slopes() == (60.0,) * 3
    assert len(typed) == 4
