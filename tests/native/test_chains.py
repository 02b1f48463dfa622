"""Sums of elementwise expressions as loops: the same bits as Numba's arrays give, the gradients of the plain tier."""

import numpy as np
import pytest

import plaingrad

numba = pytest.importorskip("numba")

from plaingrad.native.compile import build  # noqa: E402
from tests.sampling import some  # noqa: E402
from plaingrad.native.program.emit import source  # noqa: E402
from plaingrad.native.frontend.translation import program  # noqa: E402
from plaingrad.native.lowering.prepare import prepared  # noqa: E402

RANDOM = np.random.default_rng(11)


def product_and_sine(a, b):
    return np.sum(a * b + np.sin(b))


def every_operator(a, b):
    return np.sum((a - b) ** 2 / (1.5 + a**2.0) - (-a) * 2 + b / 3)


def every_function(a, b):
    x = np.abs(a) + 0.5
    return np.sum(
        np.exp(a) + np.log(x) * np.cos(b) + np.tan(a * 0.1) + np.tanh(b) + np.sinh(a) - np.cosh(b) + np.sqrt(x)
        + np.log1p(x) + np.expm1(b) + np.fabs(a) + np.maximum(a, b) + np.minimum(a, 0.3) + np.square(b)
        + np.arctan(a) + np.power(x, 1.5) + np.logaddexp(a, b) + np.hypot(a, b) + np.reciprocal(x)
        + np.add(a, b) * np.subtract(a, 1.0) + np.divide(b, x) + np.negative(np.multiply(a, b))
    )  # fmt: skip


def mean_as_a_method(a, b):
    return (a * b - 0.5 * a).mean() + (a + b).sum()


def numbers_among_them(a, b):
    c, n = np.sum(b * b + 1.0), b.size
    return np.mean(np.exp(-a * c / n) + n) * c


def an_array_used_twice_within(a, b):
    e = np.exp(-np.abs(a))
    return np.sum(e / (1.0 + e) * b)


def in_a_loop(a, b):
    total = 0.0
    for k in range(3):
        a = a * 0.5 + b
        total += np.sum(a * a - b * k)
    return total


def with_a_product_inside(a, b):
    z = np.outer(a, b) @ b
    return np.mean(np.log1p(np.exp(-np.abs(z))) + np.maximum(z, 0.0) - a * z)


def read_elsewhere(a, b):
    t = a * b
    return np.sum(t + a) + t[0]


def written_between(a, b):
    c = a.copy()
    t = c * b
    c[0] = 5.0
    return np.sum(t * t + c)


def other_layout(a, b):
    return np.sum(a[::-1] * b + 1.0)


def plain_sum(a, b):
    return np.sum(a) + np.sum(b)


VECTORS = (RANDOM.normal(size=7), RANDOM.normal(size=7))
IN_LOOPS = (
    product_and_sine, every_operator, every_function, mean_as_a_method, numbers_among_them,
    an_array_used_twice_within, in_a_loop, with_a_product_inside, read_elsewhere, written_between,
)  # fmt: skip
AS_THEY_ARE = (other_layout, plain_sum)


def text_of(f, args):
    return source(prepared(program(f, tuple(numba.typeof(x) for x in args))))[0]


def gradient(f, args):
    derived = build.derived("pullback", f, tuple(numba.typeof(x) for x in args), (0, 1))
    shadows = [np.zeros_like(x) for x in args]
    return derived.python(*args, 1.0, *shadows)[0], shadows


@pytest.mark.parametrize("f", [*IN_LOOPS, *AS_THEY_ARE], ids=lambda f: f.__name__)
def test_the_gradient_is_that_of_the_plain_tier(f):
    _, found = gradient(f, VECTORS)
    expected = plaingrad.grad(f, (0, 1), tier="plain")(*VECTORS)
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("f", [*IN_LOOPS, *AS_THEY_ARE], ids=lambda f: f.__name__)
def test_expressions_on_whole_arrays_that_only_a_sum_needs_become_loops(f):
    assert ("total" in text_of(f, VECTORS).replace("total_", "")) == (f in IN_LOOPS)


def test_an_array_that_is_written_in_between_is_multiplied_before():
    text = text_of(written_between, VECTORS)
    assert text.index("c * b") < text.index("] = 5.0")


@pytest.mark.optimised
@pytest.mark.parametrize(
    ("f", "shapes"),
    some(
        [
            (every_function, [(1000,), (0,)]),
            (every_operator, [(3, 5, 7)]),
            (mean_as_a_method, [(30, 41), (4, 0)]),
        ],
        [
            (every_operator, [(1000,), (0,)]),
            (every_operator, [(30, 41), (4, 0)]),
            (mean_as_a_method, [(1000,), (0,)]),
            (mean_as_a_method, [(3, 5, 7)]),
        ],
    ),
)
def test_the_compiled_value_has_the_bits_of_the_compiled_primal(f, shapes):
    compiled = numba.njit(f)
    for shape in shapes:
        args = (RANDOM.normal(size=shape), RANDOM.normal(size=shape))
        run = build.derived("pullback", f, tuple(numba.typeof(x) for x in args), (0, 1)).run
        value = run(*args, 1.0, *map(np.zeros_like, args))[0]
        np.testing.assert_array_equal(value, compiled(*args))


@pytest.mark.parametrize(
    "shapes", [((4, 3), (3,)), ((4, 3), (1, 3)), ((4, 1), (3,)), ((3,), (1,)), ((2, 4, 3), (4, 1))], ids=str
)
def test_operands_of_other_shapes_are_broadcast(shapes):
    args = tuple(RANDOM.normal(size=shape) for shape in shapes)
    value, found = gradient(every_operator, args)
    expected_value, expected = plaingrad.value_and_grad(every_operator, (0, 1), tier="plain")(*args)
    np.testing.assert_allclose(value, expected_value, rtol=1e-12)
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)


def test_shapes_that_do_not_fit_raise_as_in_numpy():
    args = (np.ones(3), np.ones(4))
    with pytest.raises(ValueError, match="broadcast"):
        gradient(product_and_sine, args)


@pytest.mark.parametrize("kind", [np.float32, np.complex128])
def test_arrays_of_other_numbers_are_left_as_they_are(kind):
    assert "total" not in text_of(product_and_sine, tuple(x.astype(kind) for x in VECTORS))


def test_tangents_run_through_the_loops_too():
    kinds = tuple(numba.typeof(x) for x in VECTORS)
    run = build.derived("pushforward", product_and_sine, kinds, (0, 1)).python
    a, b = VECTORS
    tangent = run(a, b, np.ones(7), b)[-1]
    np.testing.assert_allclose(tangent, np.sum(b + a * b + np.cos(b) * b), rtol=1e-13)
