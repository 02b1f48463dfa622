"""Elementwise expressions that end in arrays, as loops: gradients of the plain tier, the bits of the compiled primal."""

import numpy as np
import pytest

import plaingrad

numba = pytest.importorskip("numba")

from plaingrad.native.compile import build  # noqa: E402
from tests.sampling import some  # noqa: E402

RANDOM = np.random.default_rng(23)


def rectified_layer(x, w, b):
    h = np.maximum(x @ w + b, 0.0)
    return np.sum(h * h) + h[0, 0]


def sigmoid_then_mean(a, b):
    s = 1.0 / (1.0 + np.exp(-a * b))
    d = s - np.mean(s)
    return np.sqrt(np.sum(d * d))


def many_arrays(a, b):
    c = a * a + 0.1
    e = 0.5 * b * b - a / c
    f = np.abs(e - b) ** 1.5 + np.tanh(e)
    return np.sum(e * f) + f[1] * e[2]


def steps_through_time(a, b):
    for _ in range(4):
        a = a + 0.1 * (b * a * (1.0 - a))
    return np.sum(a**2)


def a_number_among_them(a, b):
    scale = np.sum(b * b)
    e = a * scale + b / scale
    return np.dot(e, e * e)


def in_an_arm(a, b):
    if a[0] > -9.0:
        c = np.exp(a) * b
    else:
        c = a - b
    return np.dot(c, c)


def written_behind(a, b):
    c = a * b + a
    d = c * c
    c[0] = 5.0
    b = b.copy()
    e = b * d
    b[1] = a[0]
    return np.dot(e, c) + np.dot(e, b)


def overlapping_views(a, b):
    d = (a[1:] - a[:-1]) * b[1:]
    return np.dot(d, d)


def kinks_on_products(a, b):
    h = np.maximum(a * b + a, np.minimum(a, b * 0.5))
    return np.dot(h, np.abs(h - b))


def one_operand_often(a, b):
    c = a * a / (1.0 + a) - a
    return np.dot(c, c * b)


def chain_of_names(a, b):
    c = a + b
    d = c
    c = d * b
    e = d * c
    return np.dot(e, c)


def functions_of_two(a, b):
    h = np.hypot(a, b) + np.logaddexp(a, b) + np.power(np.abs(a) + 1.0, b)
    return np.dot(h, h)


def left_early(a, b):
    total = 0.0
    for k in range(5):
        a = np.sin(a) * b
        if np.sum(a) > 100.0:
            break
        total += np.dot(a, b) * k
    return total


VECTORS = (RANDOM.normal(size=6), RANDOM.normal(size=6) + 0.5)
LAYER = (RANDOM.normal(size=(5, 4)), RANDOM.normal(size=(4, 3)), RANDOM.normal(size=3))
OF_VECTORS = (
    sigmoid_then_mean, many_arrays, steps_through_time, a_number_among_them, in_an_arm, written_behind,
    overlapping_views, kinks_on_products, one_operand_often, chain_of_names, functions_of_two, left_early,
)  # fmt: skip


def derived(f, args):
    return build.derived("pullback", f, tuple(numba.typeof(x) for x in args), tuple(range(len(args))))


def check(f, args, run=None, rtol=1e-11):
    """The gradient of `f` is that of the plain tier."""
    found = derived(f, args)
    shadows = [np.zeros_like(x) for x in args]
    value = (run or found.python)(*args, 1.0, *shadows)[0]
    expected_value, expected = plaingrad.value_and_grad(f, tuple(range(len(args))), tier="plain")(*args)
    np.testing.assert_allclose(value, expected_value, rtol=1e-12)
    for mine, theirs in zip(shadows, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=1e-13)
    return found


def loops_back(found):
    """The part of the text that goes backward."""
    return found.text[found.text.index("_backward(") :]


@pytest.mark.parametrize("f", OF_VECTORS, ids=lambda f: f.__name__)
def test_the_gradient_is_that_of_the_plain_tier(f):
    assert "_each" in loops_back(check(f, VECTORS))


@pytest.mark.optimised
@pytest.mark.parametrize("f", some([left_early], [steps_through_time, many_arrays]), ids=lambda f: f.__name__)
def test_compiled_it_is_too_and_the_value_has_the_bits_of_the_compiled_primal(f):
    found = check(f, VECTORS, derived(f, VECTORS).run)
    value = found.run(*VECTORS, 1.0, *map(np.zeros_like, VECTORS))[0]
    assert value == numba.njit(f)(*VECTORS)


def whole_powers(x):
    return x**3 * 1.3 + x**5 - x**-2 + np.power(x, 3) * x**3.0 + x**7


def sum_of_whole_powers(x):
    return np.sum(x**5 * 0.7 + x**-3) + np.sum(x**3)


@pytest.mark.optimised
@pytest.mark.parametrize("f", [whole_powers, sum_of_whole_powers])
def test_whole_powers_have_the_bits_of_the_compiled_primal(f):
    x = np.random.default_rng(5).normal(size=500)
    compiled = numba.njit(f)
    value, pull = plaingrad.vjp(compiled, x, tier="native")
    np.testing.assert_array_equal(value, compiled(x))
    seed = np.ones_like(value)
    np.testing.assert_allclose(pull(seed)[0], plaingrad.vjp(f, x, tier="plain")[1](seed)[0], rtol=1e-12)


@pytest.mark.parametrize("f", [whole_powers, sum_of_whole_powers])
def test_a_negative_whole_power_of_zero_raises_what_the_compiled_primal_raises(f):
    compiled = numba.njit(f)
    x = np.array([1.0, 0.0, 2.0])
    for g in (compiled, lambda x: plaingrad.vjp(compiled, x, tier="native")):
        with pytest.raises(ZeroDivisionError):
            g(x)


def test_a_layer_of_a_network_makes_no_arrays_in_between():
    found = check(rectified_layer, LAYER, derived(rectified_layer, LAYER).run)
    assert "t_1 =" not in found.text and "t_1_b" not in found.text
    assert found.run(*LAYER, 1.0, *map(np.zeros_like, LAYER))[0] == numba.njit(rectified_layer)(*LAYER)


def test_a_pullback_called_twice_gives_the_same_twice():
    shadows = [np.zeros_like(x) for x in LAYER], [np.zeros_like(x) for x in LAYER]
    recorded = derived(rectified_layer, LAYER).run.recorded(*LAYER)
    for each in shadows:
        recorded.pulled(1.0, *each)
    for one, other in zip(*shadows, strict=True):
        np.testing.assert_array_equal(one, other)


def broadcast_both_ways(a, b):
    h = np.exp(-np.abs(a)) * b + a / (2.0 + b * b)
    return np.sum(h * h) + np.sum(h)


SHAPES = [
    ((4, 3), (3,)), ((4, 3), (1, 3)), ((4, 1), (3,)), ((4, 1), (1, 3)), ((3,), (1,)), ((1,), (3,)), ((1, 1), (4, 3)),
    ((2, 4, 3), (4, 1)), ((2, 1, 3), (2, 4, 1)), ((0,), (1,)), ((4, 0), (1,)), ((0, 3), (3,)),
]  # fmt: skip


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_operands_of_other_shapes_are_broadcast(shapes):
    check(broadcast_both_ways, tuple(RANDOM.normal(size=shape) for shape in shapes))


def test_compiled_they_are_broadcast_likewise():
    for shapes in [((4, 3), (3,)), ((4, 1), (3,)), ((1, 3), (1,)), ((4, 3), (1,))]:
        args = tuple(RANDOM.normal(size=shape) for shape in shapes)
        check(broadcast_both_ways, args, derived(broadcast_both_ways, args).run)


def columns(a, b):
    s = np.sum(a, axis=1)
    d = a - s.reshape(-1, 1) * b
    e = d / np.sum(d * d, axis=1).reshape((d.shape[0], 1))
    return np.sum(e * e * e)


def test_columns_are_read_as_they_are():
    args = (RANDOM.normal(size=(5, 4)), RANDOM.normal(size=4))
    found = check(columns, args, derived(columns, args).run, rtol=1e-10)
    assert "column" in loops_back(found)


@pytest.mark.parametrize("shapes", [((3,), (4,)), ((2, 3), (4,)), ((2, 3), (3, 3))], ids=str)
def test_shapes_that_do_not_fit_raise_what_the_primal_raises(shapes):
    args = tuple(np.ones(shape) for shape in shapes)
    with pytest.raises(ValueError, match="broadcast"):
        numba.njit(broadcast_both_ways)(*args)
    with pytest.raises(ValueError, match="broadcast"):
        derived(broadcast_both_ways, args).python(*args, 1.0, *map(np.zeros_like, args))


def rectified(a, b):
    h = np.maximum(a, 0.0) - np.minimum(b, a)
    return np.dot(h, b)


def test_ties_and_nan_in_a_maximum_are_those_of_the_plain_tier():
    a = np.array([0.0, -0.0, 1.0, -1.0, np.nan, 2.0, 3.0])
    b = np.array([0.0, 1.0, 1.0, -1.0, 2.0, np.nan, 3.0])
    check(rectified, (a, b))


def jumping(a, b):
    h = np.maximum(a * b - 1.0, 0.0)
    return np.dot(h, h + a)


def test_what_a_jump_depends_on_is_not_computed_again_where_rounding_may_move_it():
    a = np.linspace(0.1, 3.0, 2000)
    args = (a, 1.0 / a)  # a * b - 1.0 is 0.0 or a rounding error, and another one where it is contracted
    found = derived(jumping, args)
    assert "t_1[" in loops_back(found)
    shadows = [np.zeros_like(x) for x in args]
    found.run(*args, 1.0, *shadows)
    expected = plaingrad.grad(jumping, (0, 1), tier="plain")(*args)
    for mine, theirs in zip(shadows, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("kind", [np.float32, np.complex128])
def test_arrays_of_other_numbers_are_done_one_operation_after_the_other(kind):
    args = tuple(x.astype(kind) for x in VECTORS)

    def f(a, b):
        h = a * b + a
        return np.sum(h * h).real

    found = derived(f, args)
    shadows = [np.zeros_like(x) for x in args]
    found.python(*args, 1.0, *shadows)
    expected = plaingrad.grad(f, (0, 1), tier="plain")(*args)
    for mine, theirs in zip(shadows, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5 if kind is np.float32 else 1e-12)


def other_layouts(a, b):
    h = a[::-1] * b + a
    return np.dot(h, h)


def test_other_layouts_are_too():
    check(other_layouts, VECTORS)
    check(rectified_layer, (LAYER[0], np.asfortranarray(LAYER[1]), LAYER[2]))


def result_is_an_array(a, b):
    c = a * b + 1.0
    return c, c * c


def test_an_array_that_is_a_result_has_memory_of_its_own():
    f = plaingrad.vjp
    (c, d), pull = f(result_is_an_array, *VECTORS, tier="native")
    again = f(result_is_an_array, *[x + 1.0 for x in VECTORS], tier="native")
    a, b = VECTORS
    np.testing.assert_array_equal(c, a * b + 1.0)
    np.testing.assert_array_equal(d, c * c)
    found = pull((np.ones(6), np.zeros(6)))
    np.testing.assert_allclose(found[0], b)
    np.testing.assert_allclose(found[1], a)
    del again


def arrays_of_every_iteration(a, b):
    total = 0.0
    for k in range(a.size):
        e = b * 2.0 - a[k]
        total += np.sum(e) + e[0]
    return total


def test_arrays_made_in_loops_do_not_stay_in_the_arena():
    found = check(arrays_of_every_iteration, VECTORS)
    forward = found.text[: found.text.index("_backward(")]
    assert "room(" not in forward[forward.index("for ") :]


@pytest.mark.parametrize("f", [many_arrays, steps_through_time, kinks_on_products], ids=lambda f: f.__name__)
def test_differences_agree(f):
    direction = tuple(RANDOM.normal(size=x.shape) for x in VECTORS)
    shadows = [np.zeros_like(x) for x in VECTORS]
    derived(f, VECTORS).python(*VECTORS, 1.0, *shadows)
    found = sum(np.sum(s * d) for s, d in zip(shadows, direction, strict=True))
    for step in (1e-5, 1e-6):
        ahead, behind = (
            f(*[x + sign * step * d for x, d in zip(VECTORS, direction, strict=True)]) for sign in (1, -1)
        )
        np.testing.assert_allclose((ahead - behind) / (2 * step), found, rtol=1e-5)
