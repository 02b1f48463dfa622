"""`check_rule` and `check_grads`: what is right passes, and each kind of mistake is caught and named."""

import functools
import math
import random
from collections import namedtuple
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import plaingrad
from plaingrad import NoTangent, Thunk, ZeroTangent, rulebook
from plaingrad.errors import VerificationError
from plaingrad.testing import check_grads, check_rule

X = np.array([0.5, -1.5, 2.0])
Point = namedtuple("Point", "x y")


class Model:
    def __init__(self, rate, name="m"):
        self.rate = rate
        self.name = name


@pytest.fixture
def entered():
    """Enters rules that are removed after the test."""
    functions = []

    def enter(f, rrule=None, frule=None, chunked_frule=None, kind="full"):
        rulebook.add(rulebook.Rule(f, kind, rrule, frule, chunked_frule))
        functions.append(f)
        return f

    yield enter
    for f in functions:
        rulebook.remove(f)


def complaint(f, *args, **options):
    with pytest.raises(AssertionError) as caught:
        check_rule(f, *args, **options)
    lines = str(caught.value).split("\n")
    assert lines[0].startswith(("the rule for ", "the derivative of ")) and f.__qualname__ in lines[0]
    return [line.strip() for line in lines[1:]]


def named(lines, check, *words):
    """Whether a line of the report is of that check and has the words."""
    return any(line.startswith(check + ":") and all(word in line for word in words) for line in lines)


# -- what is right passes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("f, args", [
    (math.sin, (0.7,)),
    (math.hypot, (3.0, 4.0)),
    (np.multiply, (X, X + 1)),
    (np.linalg.inv, (np.diag(X) + 0.1,)),
    (lambda x: x * x if x > 0 else -x, (0.3,)),
    (lambda p: p["a"] * math.sin(p["b"][0]), ({"a": 2.0, "b": [1.0, 3.0]},)),
    (lambda p: Point(p.x * p.y, p.y), (Point(2.0, 3.0),)),
    (lambda m, x: m.rate * x, (Model(1.5), X)),
    (lambda m: Model(m.rate * 2.0), (Model(1.5),)),
    (lambda z: z * z.conjugate(), (1.0 + 2.0j,)),
    (lambda x: {"y": [x, x * 2], "n": 3, "s": "text"}, (1.5,)),
    (lambda x, n, s: x * n, (1.5, 3, "text")),
    (np.sqrt, (np.float32(2.0),)),
    (np.linalg.det, (np.array([[1.0, 2.0], [3.0, 5.0]], np.float32),)),
    (lambda a: a.sum(), (X.astype(np.float16),)),
    (lambda x: x * x, (Fraction(2, 3),)),
    (lambda x: x * x, (Decimal("1.5"),)),
    (lambda x: 3.0, (2.0,)),
    (lambda x: None, (2.0,)),
    (lambda n: n + 1, (2,)),
    (lambda x: int(x), (2.5,)),
    (np.sum, (np.zeros((0, 3)),)),
])  # fmt: skip
def test_a_right_derivative_passes(f, args):
    check_rule(f, *args)


class Pendulum:
    def __init__(self, length):
        self.length = length

    def period(self, g):
        return 2 * math.pi * math.sqrt(self.length / g)

    @property
    def double(self):
        return 2 * self.length

    def __call__(self, x):
        return self.length * x


def counted(x):
    yield x
    yield x * x


@pytest.mark.parametrize("f, args", [
    (Pendulum(2.0).period, (9.81,)),
    (Pendulum.period, (Pendulum(2.0), 9.81)),
    (Pendulum, (2.0,)),
    (Pendulum(3.0), (2.0,)),
    (lambda p: p.double, (Pendulum(2.0),)),
    (functools.partial(math.hypot, 3.0), (4.0,)),
    (functools.lru_cache(lambda x: x * x), (2.0,)),
    (lambda x: list(counted(x)), (2.0,)),
    (counted, (2.0,)),
    (lambda t: t[0].sum() * t[1].sum(), ((X, X),)),
    (lambda v: v * 2, (np.broadcast_to(X, (2, 3)),)),
    (lambda a: a[::-1].T * 2, (np.ones((2, 3))[:, ::-1],)),
], ids=lambda x: getattr(x, "__name__", type(x).__name__) if callable(x) else "")  # fmt: skip
def test_callables_and_arguments_of_every_kind(f, args):
    check_rule(f, *args)


def test_keyword_arguments_go_to_the_function_and_those_with_the_name_of_an_option_too():
    check_rule(np.sum, np.ones((2, 3)), axis=0, keepdims=True)
    check_rule(lambda x, seed, rtol=1.0: x * seed * rtol, 2.0, kwargs={"seed": 3.0, "rtol": 2.0})


def test_an_int_is_a_real_number_where_it_is_to_be_differentiated():
    check_rule(lambda x, y: x**y, 2, 3, argnums=(0, 1))


def test_a_computed_attribute_is_checked_by_its_descriptor():
    check_rule(complex.real, 1.0 + 2.0j)
    check_rule(complex.imag, 1.0 + 2.0j)


def test_a_function_that_raises_passes_when_it_raises_the_same_under_every_mode():
    check_rule(math.sqrt, -1.0)
    check_rule(lambda x: [1.0][int(x)], 7.0)


def test_a_function_that_changes_its_arguments_is_checked_with_what_it_writes():
    def scale(a, s):
        a *= s

    check_rule(scale, X, 2.0)
    check_rule(np.multiply, X, X + 1, out=np.zeros(3))
    check_rule(list.append, [1.0], 2.0)


LOG = []
COUNTER = 0


def logged(x):
    global COUNTER
    COUNTER += 1
    LOG.append(x)
    return x * len(LOG)


def test_a_function_that_changes_globals_is_called_every_time_in_the_same_world():
    LOG.clear()
    check_rule(logged, 1.5)
    assert LOG == [] and COUNTER == 0


def test_a_function_that_draws_random_numbers_draws_the_same_in_every_call():
    check_rule(lambda x: x * random.gauss(0, 1) + np.random.standard_normal(), 1.5)
    generator = np.random.default_rng(3)
    check_rule(lambda x, g: x * g.standard_normal(), 1.5, generator)
    check_rule(lambda x: x * generator.standard_normal(), 1.5)


# -- differences where rounding blinds them ---------------------------------------------------------------------------


def test_large_and_small_scales_are_as_visible_as_others(entered):
    for scale in (1e-150, 1e-12, 1e12, 1e150):
        check_rule(lambda x: x * x * (1 / scale), scale)
        check_rule(lambda x: scale * np.sin(x), X)
    check_rule(lambda a: np.sum(a * np.array([1e-12, 1.0, 1e12])), np.array([1e12, 1.0, 1e-12]))

    def tiny(x):
        return 1e-30 * x

    entered(tiny, lambda x: (1e-30 * x, lambda z_bar: (1.001e-30 * z_bar,)))
    assert named(complaint(tiny, 2.0, second_order=False), "differences", "argument 0")


def cancelling(x):
    return (x + 1e10) - 1e10


def test_where_differences_cancel_the_complex_step_or_mpmath_decides(entered):
    check_rule(cancelling, 1e-4)
    check_rule(lambda a: np.sum(1e10 + a) - 1e10 * 3, X * 1e-3)
    entered(cancelling, lambda x: (cancelling(x), lambda z_bar: (2.0 * z_bar,)))
    assert named(complaint(cancelling, 1e-4, second_order=False), "differences", "known to", "otherwise 1")


# -- seeded faults: each is caught, and named ---------------------------------------------------------------------------


def square(x):
    return x * x


def weighted(x, w):
    return x * w


def test_a_wrong_factor_is_named_with_its_argument(entered):
    entered(weighted, lambda x, w: (x * w, lambda z_bar: (z_bar * w, 1.01 * z_bar * x)))
    lines = complaint(weighted, 2.0, 3.0)
    assert named(lines, "differences", "argument 1", "gives 2.02", "differences 2")
    assert not named(lines, "differences", "argument 0")


def test_a_wrong_entry_of_a_large_array_is_named(entered):
    def doubled(x):
        return 2.0 * x

    def doubled_rrule(x):
        slope = np.full(x.shape, 2.0)
        slope[3, 1] = 2.5
        return 2.0 * x, lambda z_bar: (slope * z_bar,)

    entered(doubled, doubled_rrule)
    lines = complaint(doubled, np.ones((5, 4)))
    assert [line for line in lines if line.startswith("differences")] and named(lines, "differences", "argument 0[3, 1]")


def test_a_missing_conjugate_is_named(entered):
    entered(weighted, lambda x, w: (x * w, lambda z_bar: (z_bar * w, z_bar * x)))
    assert named(complaint(weighted, 2.0 + 1.0j, 3.0 - 2.0j), "differences", "argument 0")


def test_a_wrong_shape_is_named(entered):
    entered(square, lambda x: (x * x, lambda z_bar: ((2 * x * z_bar)[:2],)))
    assert named(complaint(square, X), "cotangent", "argument 0 has shape (3,), but its cotangent (2,)")


@pytest.mark.parametrize("cotangent", [[1.0, 2.0, 3.0], {"x": 1.0}, "3.0", None])
def test_a_wrong_type_of_cotangent_is_named(entered, cotangent):
    entered(square, lambda x: (x * x, lambda z_bar: (cotangent,)))
    assert named(complaint(square, X), "cotangent", "argument 0", "the pullback returns")


def test_a_number_for_a_list_is_named(entered):
    def total(xs):
        return sum(xs)

    entered(total, lambda xs: (sum(xs), lambda z_bar: (z_bar,)))
    assert named(complaint(total, [1.0, 2.0]), "cotangent", "argument 0 is a list", "one cotangent for each entry")


def test_an_entry_without_a_cotangent_is_named(entered):
    def total(xs):
        return sum(xs)

    entered(total, lambda xs: (sum(xs), lambda z_bar: ([z_bar] * (len(xs) - 1),)))
    assert named(complaint(total, [1.0, 2.0]), "cotangent", "argument 0[1] has no cotangent")


def test_a_list_of_cotangents_instead_of_a_tuple_is_named(entered):
    entered(square, lambda x: (x * x, lambda z_bar: [2 * x * z_bar]))
    assert named(complaint(square, 2.0), "rule", "must return a tuple")


def test_a_rule_that_returns_no_pullback_is_named(entered):
    entered(square, lambda x: x * x)
    assert named(complaint(square, 2.0), "rule", "must return (y, a function)")


def test_a_changed_argument_is_named(entered):
    def square_rrule(x):
        z = x * x
        x *= 2
        return z, lambda z_bar: (x * z_bar,)

    entered(square, square_rrule)
    assert named(complaint(square, X), "state", "after the rrule", "argument 0")


def test_a_captured_array_that_the_pullback_changes_is_named(entered):
    def square_rrule(x):
        def square_pullback(z_bar):
            x[...] *= 2
            return (x * z_bar,)

        return x * x, square_pullback

    entered(square, square_rrule)
    assert named(complaint(square, X), "pullback", "after it argument 0")


def test_a_cotangent_that_is_changed_is_named(entered):
    def square_rrule(x):
        def square_pullback(z_bar):
            z_bar *= 2 * x
            return (z_bar,)

        return x * x, square_pullback

    entered(square, square_rrule)
    assert named(complaint(square, X), "pullback", "y_bar is changed")


def test_a_buffer_that_is_used_again_is_named(entered):
    def square_rrule(x):
        buffer = np.empty_like(x)

        def square_pullback(z_bar):
            np.multiply(2 * x, z_bar, out=buffer)
            return (buffer,)

        return x * x, square_pullback

    entered(square, square_rrule)
    assert named(complaint(square, X), "repetition", "returned earlier, is changed by a later call")


def test_a_pullback_that_works_only_once_is_named(entered):
    def square_rrule(x):
        kept = [2 * x]
        return x * x, lambda z_bar: (kept.pop() * z_bar,)

    entered(square, square_rrule)
    assert named(complaint(square, 2.0), "rule", "IndexError")

    def forgetful_rrule(x):
        kept = [2 * x, 0.0, 0.0, 0.0, 0.0]
        return x * x, lambda z_bar: (kept.pop(0) * z_bar,)

    entered(square, forgetful_rrule)
    assert named(complaint(square, 2.0), "repetition", "argument 0 is another when the pullback is called again")


def test_terms_that_overwrite_each_other_are_named(entered):
    def gathered(x, places):
        return x[places]

    def gathered_rrule(x, places):
        def gathered_pullback(z_bar):
            x_bar = np.zeros_like(x)
            x_bar[places] = z_bar  # where a place repeats, its terms must be added
            return x_bar, NoTangent

        return x[places], gathered_pullback

    entered(gathered, gathered_rrule)
    assert named(complaint(gathered, X, np.array([0, 1, 1])), "differences", "argument 0[1]")


def test_a_rule_that_forgets_one_of_two_places_of_a_value_is_named(entered):
    def product(x, y):
        return x * y

    def product_rrule(x, y):
        if x is y:
            return x * y, lambda z_bar: (x * z_bar, ZeroTangent)  # should be x z_bar in both places
        return x * y, lambda z_bar: (y * z_bar, x * z_bar)

    entered(product, product_rrule)
    assert named(complaint(product, 2.0, 2.5), "accumulation", "argument 0", "passed as argument 1 too")


def test_no_tangent_for_a_number_is_named(entered):
    entered(weighted, lambda x, w: (x * w, lambda z_bar: (z_bar * w, NoTangent)))
    assert named(complaint(weighted, 2.0, 3.0), "zero", "argument 1, a float,", "NoTangent", "ZeroTangent")
    entered(weighted, lambda x, w: (x * w, lambda z_bar: (z_bar * w,)))
    assert named(complaint(weighted, 2.0, 3.0), "zero", "argument 1", "gives none")


def test_zero_tangent_for_text_is_named(entered):
    def tagged(x, tag):
        return 2.0 * x

    entered(tagged, lambda x, tag: (2.0 * x, lambda z_bar: (2.0 * z_bar, ZeroTangent)))
    assert named(complaint(tagged, 2.0, "tag"), "zero", "argument 1, a str, has no tangent", "NoTangent")
    entered(tagged, lambda x, tag: (2.0 * x, lambda z_bar: (2.0 * z_bar, NoTangent)))
    check_rule(tagged, 2.0, "tag")


def test_zero_tangent_where_the_derivative_is_not_zero_is_named(entered):
    entered(weighted, lambda x, w: (x * w, lambda z_bar: (z_bar * w, ZeroTangent)))
    assert named(complaint(weighted, 2.0, 3.0), "differences", "argument 1: the gradient gives 0")


def test_a_wrong_forward_half_is_named(entered):
    entered(weighted, lambda x, w: (x * w, lambda z_bar: (z_bar * w, z_bar * x)),
            lambda x, w: (x * w, lambda dots: dots[0] * w + 2.0 * (dots[1] * x)))
    lines = complaint(weighted, 2.0, 3.0)
    assert named(lines, "modes", "forward and reverse mode disagree", "argument 1") and not named(lines, "modes", "argument 0 (")
    assert not named(lines, "differences")


def test_a_wrong_chunked_half_is_named(entered):
    entered(square, lambda x: (x * x, lambda z_bar: (2 * x * z_bar,)),
            lambda x: (x * x, lambda dots: 2 * x * dots[0]), lambda x: (x * x, lambda dots: 2 * x * dots[0][::-1]))
    assert named(complaint(square, X), "chunk", "the result")


def test_a_pushforward_that_is_not_linear_is_named(entered):
    entered(weighted, None, lambda x, w: (x * w, lambda dots: 1.0 + dots[0] * w + dots[1] * x))
    assert named(complaint(weighted, 2.0, 3.0), "linearity", "pushforward of the frule")


def test_a_wrong_primal_of_the_forward_half_is_named(entered):
    entered(square, lambda x: (x * x, lambda z_bar: (2 * x * z_bar,)), lambda x: (x * x + 1e-9, lambda dots: 2 * x * dots[0]))
    lines = complaint(square, 2.0)
    assert named(lines, "primal", "by the frule") and named(lines, "primal", "under forward mode")


def test_a_pushforward_that_changes_what_it_is_given_is_named(entered):
    def square_frule(x):
        def square_pushforward(dots):
            dots[0][...] *= 2 * x
            return dots[0]

        return x * x, square_pushforward

    entered(square, lambda x: (x * x, lambda z_bar: (2 * x * z_bar,)), square_frule)
    assert named(complaint(square, X), "pushforward", "the tangents[0]")


def test_a_tangent_of_the_wrong_shape_is_named(entered):
    entered(square, lambda x: (x * x, lambda z_bar: (2 * x * z_bar,)), lambda x: (x * x, lambda dots: (2 * x * dots[0])[:2]))
    assert complaint(square, X)


def test_a_linear_row_of_a_function_that_is_not_linear_is_named():
    def shifted(x):
        return 2.0 * x + 1.0

    plaingrad.linear_rule(shifted, lambda z_bar, x: 2.0 * z_bar)
    try:
        assert named(complaint(shifted, 3.0), "modes", "argument 0") or named(complaint(shifted, 3.0), "linearity")
    finally:
        rulebook.remove(shifted)


def test_a_rule_of_duals_that_is_wrong_is_named():
    @plaingrad.frule(weighted)
    def weighted_frule(f, x, w):
        return plaingrad.Dual(x.primal * w.primal, x.tangent * w.primal - w.tangent * x.primal)

    try:
        lines = complaint(weighted, 2.0, 3.0)
        assert named(lines, "differences", "argument 1") and not named(lines, "differences", "argument 0")
    finally:
        rulebook.remove(weighted)


def test_a_partial_derivative_of_a_row_that_is_wrong_is_named():
    plaingrad.scalar_rule(weighted, lambda x, w, z: w, lambda x, w, z: -x)
    try:
        assert named(complaint(weighted, 2.0, 3.0), "differences", "argument 1: the gradient gives -2, differences 2")
    finally:
        rulebook.remove(weighted)


def test_a_pullback_that_is_not_linear_is_named(entered):
    entered(square, lambda x: (x * x, lambda z_bar: (2 * x * z_bar + 1e-3,)))
    assert named(complaint(square, 2.0), "linearity", "argument 0", "not linear in y_bar")
    entered(square, lambda x: (x * x, lambda z_bar: (2 * x * abs(z_bar),)))
    assert named(complaint(square, 2.0), "linearity", "argument 0")


class ForgetfulThunk(Thunk):
    """Computes its value anew each time."""

    def __init__(self, compute):
        super().__init__(compute)
        object.__setattr__(self, "again", compute)

    def evaluate(self):
        return self.again()


def test_a_thunk_that_is_computed_twice_is_named(entered):
    entered(square, lambda x: (x * x, lambda z_bar: (ForgetfulThunk(lambda: 2 * x * z_bar),)))
    assert named(complaint(square, X), "thunk", "argument 0", "computed again")


def test_thunks_that_depend_on_the_order_in_which_they_are_computed_are_named(entered):
    def weighted_rrule(x, w):
        def weighted_pullback(z_bar):
            shared = []

            def x_bar():
                shared.append(z_bar)
                return z_bar * w

            return Thunk(x_bar), Thunk(lambda: shared[0] * x)

        return x * w, weighted_pullback

    entered(weighted, weighted_rrule)
    assert named(complaint(weighted, 2.0, 3.0), "rule", "IndexError")


def test_a_wrong_primal_is_named(entered):
    entered(square, lambda x: (x * x + 1e-12, lambda z_bar: (2 * x * z_bar,)))
    assert named(complaint(square, 2.0), "primal", "the result is 4.000000000001", "a plain call gives 4.0")


def test_a_primal_of_another_type_is_named(entered):
    entered(square, lambda x: (np.float64(x * x), lambda z_bar: (2 * x * z_bar,)))
    assert named(complaint(square, 2.0), "primal", "float64", "by the rrule")
    entered(square, lambda x: ((x * x).astype(np.float64), lambda z_bar: (2 * x * z_bar,)))
    assert named(complaint(square, X.astype(np.float32)), "primal", "float64", "float32")


def root(x):
    if x < 0:
        raise ValueError("no root")
    return math.sqrt(x)


def test_an_exception_that_is_swallowed_is_named(entered):
    entered(root, lambda x: (abs(x) ** 0.5, lambda z_bar: (z_bar / (2 * abs(x) ** 0.5),)))
    lines = complaint(root, -2.0)
    assert named(lines, "exception", "a plain call raises ValueError", "the rrule does not")
    assert named(lines, "exception", "under reverse mode nothing is raised")
    check_rule(root, 2.0)


def test_another_exception_is_named(entered):
    entered(root, lambda x: (math.sqrt(x), lambda z_bar: (z_bar / (2 * math.sqrt(x)),)))
    with pytest.raises(ValueError) as plain:
        math.sqrt(-2.0)
    assert named(complaint(root, -2.0), "exception", "'no root'", str(plain.value))


def test_an_exception_of_the_rules_own_is_named(entered):
    entered(square, lambda x: 1 / 0)
    assert named(complaint(square, 2.0), "exception", "a plain call returns", "ZeroDivisionError")


def test_a_global_that_the_rule_changes_otherwise_is_named(entered):
    def logged_rrule(x):
        LOG.append(x)
        LOG.append(x)
        return x * 1, lambda z_bar: (z_bar,)

    entered(logged, logged_rrule)
    LOG.clear()
    lines = complaint(logged, 2.0)
    assert named(lines, "state", "after the rrule", "global `LOG`") and named(lines, "state", "global `COUNTER`")
    assert LOG == []


def test_a_wrong_second_derivative_is_named(entered):
    def sine_rrule(x):
        slope = math.cos(plaingrad.stop_gradient(x))  # right, and constant
        return math.sin(x), lambda z_bar: (z_bar * slope,)

    def sine(x):
        return math.sin(x)

    entered(sine, sine_rrule)
    assert named(complaint(sine, 0.7), "second order", "reverse over reverse gives 0", "differences")
    check_rule(sine, 0.7, second_order=False, forward=False)


def test_a_rule_for_something_that_writes_but_does_not_is_named(entered):
    def fill(a, x):
        a[...] = x

    entered(fill, lambda a, x: (None, lambda z_bar: (ZeroTangent, ZeroTangent)))
    assert named(complaint(fill, X, 2.0), "state", "argument 0")


def test_a_wrong_zero_of_what_is_overwritten_is_named():
    def matmul_into(x, y, z):
        np.matmul(x, y, out=z)

    def rule(old_bar):
        @plaingrad.rrule(matmul_into, mutates="z")
        def matmul_into_rrule(x, y, z):
            matmul_into(x, y, z)
            return None, lambda result_bar, z_bar: (z_bar @ y.T, x.T @ z_bar, old_bar(z_bar))

    args = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[0.5, 2.0], [-1.0, 1.0]]), np.ones((2, 2))
    try:
        rule(lambda z_bar: z_bar)
        assert named(complaint(matmul_into, *args), "differences", "argument 2[0, 1]", "differences 0")
        rule(lambda z_bar: ZeroTangent)
        check_rule(matmul_into, *args)
    finally:
        plaingrad.remove_rule(matmul_into)


def test_a_function_that_is_declared_constant_is_checked_to_be_one():
    @plaingrad.nondifferentiable
    def bucket(x):
        return float(int(x)) + x

    try:
        check_rule(bucket, 2.5)
    finally:
        rulebook.remove(bucket)


def test_a_missing_rule_is_named():
    import struct

    def through_bytes(x):
        return struct.unpack("d", struct.pack("d", x))[0]

    assert named(complaint(through_bytes, 2.0), "exception", "a plain call returns", "under reverse mode it raises")


def test_every_failure_is_in_one_report(entered):
    def weighted_rrule(x, w):
        x *= 1.5
        return x * w, lambda z_bar: (z_bar * w, NoTangent, ZeroTangent)

    entered(weighted, weighted_rrule)
    lines = complaint(weighted, X.copy(), 3.0)
    assert named(lines, "state", "argument 0") and named(lines, "zero", "argument 1") and named(lines, "primal")


def test_parts_can_be_switched_off(entered):
    entered(weighted, lambda x, w: (x * w, lambda z_bar: (z_bar * w, 1.5 * z_bar * x)))
    check_rule(weighted, 2.0, 3.0, differences=False, second_order=False)
    check_rule(weighted, 2.0, 3.0, argnums=0, second_order=False)


# -- what the engine promises of thunks -----------------------------------------------------------------------------------


def test_a_postponed_cotangent_is_computed_when_it_is_needed_and_once(entered):
    computed = []

    def weighted_rrule(x, w):
        def weighted_pullback(z_bar):
            return Thunk(lambda: computed.append("x") or z_bar * w), Thunk(lambda: computed.append("w") or z_bar * x)

        return x * w, weighted_pullback

    entered(weighted, weighted_rrule)
    _, pullback = plaingrad.vjp(lambda x: weighted(x, 3.0), 2.0)
    assert pullback(1.0) == (3.0,) and computed == ["x"]
    assert plaingrad.vjp(lambda x: weighted(x, x), 2.0)[1](1.0) == (4.0,) and sorted(computed[1:]) == ["w", "x"]


# -- check_grads --------------------------------------------------------------------------------------------------------


def test_check_grads_passes_what_is_right_and_names_the_entry_that_is_not(entered):
    check_grads(lambda x, y: math.sin(x) * y, (0.5, 2.0))
    check_grads(lambda p: p["a"] * p["b"][1], ({"a": 2.0, "b": [1.0, 3.0]},))
    entered(weighted, lambda x, w: (x * w, lambda z_bar: (z_bar * w, 1.5 * z_bar * x)))
    with pytest.raises(AssertionError, match="argument 1: the pullback gives"):
        check_grads(lambda x, w: weighted(x, w), (2.0, 3.0))


# -- what a wrong gradient comes from -----------------------------------------------------------------------------------


@plaingrad.nondifferentiable
def squared_without_derivative(x):
    return x * x


def cut_by_a_function(w, v):
    z = w["a"] * 3.0
    if z > 1.0:
        z = z * 1.0
    return squared_without_derivative(z) + w["b"] * v


def test_check_grads_names_the_line_that_cuts():
    args = ({"a": 0.5, "b": 2.0}, 3.0)
    with pytest.raises(AssertionError) as caught:
        check_grads(cut_by_a_function, args)
    lines = str(caught.value).splitlines()
    assert lines[1].startswith("  argument 0['a']: the pullback gives 0, differences")
    assert "squared_without_derivative(z)" in lines[2] and "comparison" in lines[3]
    assert len(lines) == 4
    with pytest.raises(VerificationError, match=r"squared_without_derivative\(z\)"):
        plaingrad.grad(cut_by_a_function, verify=True)(*args)
    with pytest.raises(AssertionError, match="stop_gradient ends it"):
        check_grads(lambda x: plaingrad.stop_gradient(x) * x, (0.5,))


def test_check_grads_says_that_a_function_does_not_repeat_itself():
    drawn = iter(range(1000))
    with pytest.raises(AssertionError, match="the same when it is called twice"):
        check_grads(lambda x: x * next(drawn), (0.5,))


def test_check_grads_says_that_a_result_is_of_single_precision():
    with pytest.raises(AssertionError, match="single precision"):
        check_grads(lambda x: np.float32(x) ** 3, (0.3,))
    check_grads(lambda x: np.float32(x) ** 3, (0.3,), rtol=1e-2)
