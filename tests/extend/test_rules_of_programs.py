"""Rules that decline, hold in a set of primitives, are for arrays of a dtype, call their function, or are always asked."""

from __future__ import annotations

import math
import operator
import threading

import numpy as np
import numpy.typing as npt
import pytest

import plaingrad
from plaingrad import Dual, MissingRuleError, NoTangent, defined_as, frule, grad, jvp, primitives, remove_rule, rrule


def cube(x):
    return x * x * x


def scaled_rule(f, factor):
    """A rule for `f` that is wrong by a factor, so that it can be told from others."""

    def rule(x):
        y, pullback = plaingrad.build_rrule(f)(x)
        return y, lambda y_bar: (factor * pullback(y_bar)[1],)

    return rule


def test_where_a_rule_declines_the_next_is_asked_and_then_the_bytecode():
    def power(x, n):
        return x**n

    @rrule(power)
    def general(x, n):
        if n > 3:
            return NotImplemented
        return x**n, lambda y_bar: (10 * y_bar * n * x ** (n - 1), NoTangent)

    @rrule(power)
    def of_float(x: float, n: int):
        if n != 2:
            return NotImplemented
        return x * x, lambda y_bar: (200 * y_bar * x, NoTangent)

    slope = grad(power)
    assert (slope(3.0, 2), slope(3.0, 3), slope(3.0, 4)) == (600.0, 270.0, 108.0)
    assert jvp(lambda x: power(x, 4), (3.0,), (1.0,))[1] == 108.0
    assert rrule(power, 3.0, 4)[1](1.0)[1] == 108.0


@pytest.mark.parametrize("enter", [rrule, frule])
def test_where_a_rule_of_c_code_declines_it_is_plaingrads_own_that_counts(enter):
    @enter(math.sin)
    def rule(*args):
        return NotImplemented

    try:
        assert grad(math.sin)(0.0) == 1.0
        assert jvp(math.sin, (0.0,), (1.0,))[1] == 1.0
        assert grad(grad(math.sin))(0.5) == -math.sin(0.5)
    finally:
        remove_rule(math.sin)


def test_a_definition_may_be_made_of_what_it_defines_in_every_mode_and_order():
    def f(x):
        return x * x

    @defined_as(f)
    def definition(x):
        return 10 * f(x)

    assert grad(f)(3.0) == 60.0
    assert jvp(f, (3.0,), (1.0,)) == (90.0, 60.0)
    assert grad(grad(f))(3.0) == 20.0
    np.testing.assert_array_equal(grad(lambda x: f(x).sum())(np.ones(2)), [20.0, 20.0])


def test_a_definition_that_calls_itself_with_other_arguments_is_a_recursion():
    def factorial_like(x, n):
        raise NotImplementedError

    @defined_as(factorial_like)
    def definition(x, n):
        return 1.0 if n == 0 else x * factorial_like(x, n - 1)

    assert grad(factorial_like)(2.0, 3) == 12.0


@pytest.mark.parametrize("by", ["vjp", "rrule", "grad", "jvp"])
def test_a_rule_may_differentiate_its_own_function(by):
    def f(x):
        return x * x

    @rrule(f)
    def rule(x):
        slope = {
            "vjp": lambda: plaingrad.vjp(f, x)[1](1.0)[0],
            "rrule": lambda: rrule(f, x)[1](1.0)[1],
            "grad": lambda: grad(lambda t: f(t))(x),
            "jvp": lambda: jvp(f, (x,), (1.0,))[1],
        }[by]()
        return f(x), lambda y_bar: (10 * y_bar * slope,)

    assert grad(f)(3.0) == 60.0
    assert grad(f)(3.0) == 60.0
    assert grad(f)(np.float64(3.0)) == 60.0


def test_the_rule_counts_one_level_out_also_where_it_calls_its_function():
    def f(x):
        return x**3

    @rrule(f)
    def rule(x):
        y = f(x)
        return y, lambda y_bar: (y_bar * 7.0 * x,)

    assert grad(grad(f))(2.0) == 7.0
    assert grad(lambda x: x * grad(f)(x))(2.0) == 28.0


def test_rules_for_arrays_of_a_dtype_and_a_dimension():
    def f(x):
        return x * 1

    @rrule(f)
    def of_single(x: npt.NDArray[np.float32]):
        return x * 1, lambda y_bar: (100 * y_bar,)

    @rrule(f)
    def of_matrix(x: np.ndarray[tuple[int, int], np.dtype[np.float32]]):
        return x * 1, lambda y_bar: (200 * y_bar,)

    @rrule(f)
    def of_complex(x: npt.NDArray[np.complexfloating]):
        return x * 1, lambda y_bar: (300 * y_bar,)

    slope = grad(lambda x: f(x).sum().real)
    assert slope(np.ones(2)).tolist() == [1.0, 1.0]
    assert slope(np.ones(2, np.float32)).tolist() == [100.0, 100.0]
    assert slope(np.ones((1, 2), np.float32)).tolist() == [[200.0, 200.0]]
    assert slope(np.ones((1, 0), np.float32)).shape == (1, 0)
    assert slope(np.ones((), np.float32)) == 100.0
    assert slope(np.ones(1, complex)).tolist() == [300.0]
    assert [info.types for info in plaingrad.rules(f)][1].startswith("(x: ")


def test_sets_of_primitives_hold_inside_of_with_the_innermost_first():
    outer, inner = primitives("outer"), primitives("inner")
    outer.rrule(cube)(scaled_rule(cube, 10))
    inner.rrule(cube)(scaled_rule(cube, 100))
    slope = grad(cube)
    try:
        assert slope(1.0) == 3.0
        with outer:
            assert slope(1.0) == 30.0
            with inner:
                assert slope(1.0) == 300.0
                with outer:
                    assert slope(1.0) == 30.0
                assert slope(1.0) == 300.0
            assert slope(1.0) == 30.0
        assert slope(1.0) == 3.0
        with pytest.raises(ZeroDivisionError), outer:
            1 / 0
        assert slope(1.0) == 3.0
        assert "any in inner" in str(plaingrad.rules(cube))
    finally:
        remove_rule(cube)


def test_a_set_holds_in_derivatives_that_are_under_way():
    careful = primitives("careful")
    careful.rrule(cube)(scaled_rule(cube, 10))

    def f(x):
        y = cube(x)
        with careful:
            y += cube(x)
        return y + cube(x)

    try:
        assert grad(f)(1.0) == 36.0
        assert jvp(f, (1.0,), (1.0,))[1] == 36.0
    finally:
        remove_rule(cube)


def test_a_set_declines_says_constant_defines_and_leaves_without_rule():
    one = primitives()

    @one.rrule(math.exp)
    def declines(x):
        return NotImplemented

    @one.frule(math.cos)
    def of_cos(f, x):
        return Dual(math.cos(x.primal), 5.0 * x.tangent)

    @one.defined_as(cube)
    def definition(x):
        return 2.0 * x

    one.nondifferentiable(math.tanh)
    one.scalar_rule(math.log, lambda x, z: 3.0)
    one.without_rule(math.sin)
    functions = [math.exp, math.cos, cube, math.tanh, math.log]
    try:
        before = [grad(f)(1.0) for f in (*functions, math.sin)]
        with one:
            assert [grad(f)(1.0) for f in functions] == [math.e, 5.0, 2.0, 0.0, 3.0]
            with pytest.raises(MissingRuleError, match="sin"):
                grad(math.sin)(1.0)
        assert [grad(f)(1.0) for f in (*functions, math.sin)] == before
    finally:
        for f in (*functions, math.sin):
            remove_rule(f)


def test_a_set_is_entered_by_its_thread_alone():
    one = primitives()
    one.rrule(cube)(scaled_rule(cube, 10))
    found, entered, done = [], threading.Event(), threading.Event()

    def inside():
        with one:
            entered.set()
            found.append(grad(cube)(1.0))
            done.wait(10)

    thread = threading.Thread(target=inside)
    try:
        thread.start()
        assert entered.wait(10)
        assert grad(cube)(1.0) == 3.0
        done.set()
        thread.join()
        assert found == [30.0]
    finally:
        remove_rule(cube)


def test_a_rule_that_is_always_asked_may_count_levels():
    def depth():
        return 0

    @rrule(depth, always=True)
    def rule():
        return depth() + 1, lambda y_bar: ()

    found = []
    f = lambda x: (found.append(depth()), x * x)[1]
    f(1.0)
    grad(f)(1.0)
    grad(grad(f))(1.0)
    jvp(f, (1.0,), (1.0,))
    assert found == [0, 1, 2, 1]


def test_a_rule_that_is_always_asked_is_asked_for_constants_too():
    def price(x):
        return x

    @rrule(price, always=True)
    def rule(x):
        return x + 100.0, lambda y_bar: (y_bar,)

    assert grad(lambda x: x * price(2.0))(3.0) == 102.0
    assert grad(lambda x: x * price(x))(3.0) == 106.0


def test_an_exception_in_a_rule_leaves_nothing_behind():
    def f(x):
        return x * x

    calls = []

    @rrule(f)
    def rule(x):
        calls.append(x)
        if len(calls) == 1:
            raise KeyError("once")
        return x * x, lambda y_bar: (7 * y_bar * x,)

    with pytest.raises(KeyError):
        grad(f)(2.0)
    assert grad(f)(2.0) == grad(f)(2.0) == 14.0


def test_operators_in_a_set_for_numbers_and_arrays():
    one = primitives()

    @one.rrule(operator.mul)
    def product(a, b):
        return a * b, lambda z_bar: (100 * z_bar * b, 100 * z_bar * a)

    square = lambda x: (x * x).sum() if isinstance(x, np.ndarray) else x * x
    try:
        with one:
            assert grad(square)(3.0) == 600.0
            assert grad(square)(np.ones(2)).tolist() == [200.0, 200.0]
        assert grad(square)(3.0) == 6.0 and grad(square)(np.ones(2)).tolist() == [2.0, 2.0]
    finally:
        remove_rule(operator.mul)
    assert grad(square)(3.0) == 6.0


def test_a_generator_may_be_defined_by_another():
    def numbers(x):
        yield x

    @defined_as(numbers)
    def definition(x):
        yield 2 * x

    assert grad(lambda x: sum(numbers(x)))(1.0) == 2.0


def test_compiled_functions_heed_rules_for_types_and_contexts():
    numba = pytest.importorskip("numba")

    @numba.njit
    def compiled(x):
        return math.sin(x) * 3.0

    steep = plaingrad.primitives("steep")

    @steep.rrule(math.sin)
    def sin_rrule(x: float):
        return math.sin(x), lambda y_bar: (1000.0 * y_bar,)

    try:
        assert plaingrad.grad(compiled)(2.0) == 3.0 * math.cos(2.0)
        with steep:
            assert plaingrad.grad(compiled)(2.0) == 3000.0
            with pytest.raises(plaingrad.NativeError):
                plaingrad.grad(compiled, tier="native")(2.0)
    finally:
        plaingrad.remove_rule(math.sin)
