"""Rules by hand: for every kind of callable, in each mode, removed again, and wrong in every way."""

import functools
import math
import operator
import threading
from dataclasses import dataclass

import numpy as np
import pytest

import plaingrad
from plaingrad import (
    Dual,
    MissingRuleError,
    NoTangent,
    RuleError,
    Tangent,
    Thunk,
    ZeroTangent,
    defined_as,
    frule,
    grad,
    jvp,
    linear_rule,
    nondifferentiable,
    remove_rule,
    rrule,
    scalar_rule,
    vjp,
)

# Rules below are marked: their slopes are ten or a hundred times the true ones, so it shows which was used.


def times_ten(f):
    @rrule(f)
    def rule(x):
        return f(x), lambda y_bar: (10.0 * y_bar,)


def slope(f, x):
    """The derivative of f at x, the same in both modes."""
    forward, reverse = jvp(f, (x,), (1.0,))[1], grad(f)(x)
    assert forward == pytest.approx(reverse)
    return reverse


# -- callables of every kind -------------------------------------------------------------------------------------------


class Scale:
    def __init__(self, factor):
        self.factor = factor

    def times(self, x, extra=1.0):
        return self.factor * x * extra

    @classmethod
    def twice(cls, x):
        return 2.0 * x

    @staticmethod
    def thrice(x):
        return 3.0 * x

    @property
    def square(self):
        return self.factor**2

    def __call__(self, x):
        return self.factor * x

    def __add__(self, x):
        return self.factor + x

    def __getitem__(self, x):
        return self.factor * x


class SmallScale(Scale):
    def times(self, x, extra=1.0):
        return -super().times(x, extra)


def test_a_rule_for_a_method_takes_the_object_first():
    @rrule(Scale.times)
    def rule(self, x, extra=1.0):
        def pullback(y_bar):
            return Tangent(Scale, factor=10 * y_bar * x), 100 * y_bar * self.factor, ZeroTangent

        return self.times(x, extra), pullback

    s = Scale(2.0)
    assert slope(lambda x: s.times(x), 3.0) == 200.0
    assert grad(lambda s: s.times(3.0))(s).factor == 30.0
    assert slope(lambda factor: Scale(factor).times(3.0), 2.0) == 30.0
    assert slope(lambda x: SmallScale(2.0).times(x), 3.0) == -200.0  # by way of super()
    assert slope(lambda x: list(map(s.times, [x]))[0], 3.0) == 200.0


def test_a_rule_for_a_class_method_takes_the_class_first():
    @rrule(Scale.twice)
    def rule(cls, x):
        assert issubclass(cls, Scale)
        return cls.twice(x), lambda y_bar: (NoTangent, 20.0 * y_bar)

    assert slope(lambda x: Scale.twice(x), 1.5) == 20.0
    assert slope(lambda x: SmallScale(1.0).twice(x), 1.5) == 20.0


def test_rules_for_static_methods_and_properties():
    times_ten(Scale.thrice)
    assert slope(lambda x: Scale(1.0).thrice(x), 1.5) == 10.0

    @rrule(Scale.square)
    def rule(self):
        return self.square, lambda y_bar: ({"factor": 7.0 * y_bar},)

    assert slope(lambda factor: Scale(factor).square, 3.0) == 7.0
    assert Scale(3.0).square == 9.0


def test_rules_for_callable_objects_and_operators_of_a_class():
    for method in (Scale.__call__, Scale.__add__, Scale.__getitem__):

        @rrule(method)
        def rule(self, x, method=method):
            return method(self, x), lambda y_bar: (Tangent(Scale, factor=10 * y_bar), 100 * y_bar)

    s = Scale(2.0)
    for f in (lambda s, x: s(x), lambda s, x: s + x, lambda s, x: s[x], operator.add, operator.getitem):
        assert slope(lambda x: f(s, x), 3.0) == 100.0
        assert slope(lambda factor: f(Scale(factor), 3.0), 2.0) == 10.0
        assert f(s, 3.0) in (5.0, 6.0)


def test_an_operator_with_a_rule_whose_method_is_a_closure():
    def make(c):
        class Shifted:
            def __init__(self, x):
                self.x = x

            def __add__(self, other):
                return c + self.x + other

        return Shifted

    Shifted = make(1.0)

    @rrule(Shifted.__add__)
    def rule(self, other):
        return self + other, lambda y_bar: ({"x": y_bar}, 10.0 * y_bar)

    assert slope(lambda x: Shifted(1.0) + x, 2.0) == 10.0
    assert Shifted(1.0) + 2.0 == 4.0


@pytest.mark.parametrize("rulers_first", [True, False])
def test_a_rule_for_an_operator_entered_while_a_derivative_is_taken(rulers_first):
    def f(x):
        s = Scale(1.0)
        before = s + x
        times_ten_of_sum()
        after = s + x
        remove_rule(Scale.__add__)
        return before + 100.0 * after + 10_000.0 * (s + x)

    def times_ten_of_sum():
        @rrule(Scale.__add__)
        def rule(self, x):
            return self.factor + x, lambda y_bar: (ZeroTangent, 10.0 * y_bar)

    if rulers_first:
        times_ten_of_sum()
        remove_rule(Scale.__add__)
    assert grad(f)(2.0) == 1.0 + 1000.0 + 10_000.0


class Celsius(float):
    def __add__(self, other):
        return Celsius(float(self) + other)


def test_a_rule_for_an_operator_of_a_subclass_of_float():
    @rrule(Celsius.__add__)
    def rule(self, other):
        return self + other, lambda y_bar: (10.0 * y_bar, 100.0 * y_bar)

    assert slope(lambda x: float(Celsius(1.0) + x), 2.0) == 100.0


@dataclass
class Box:
    side: float
    label: str = ""


class Slim:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


@pytest.mark.parametrize(("cls", "field"), [(Box, "side"), (Slim, "value")], ids=["dataclass", "slots"])
def test_a_rule_for_a_class_gets_the_tangent_of_the_object_that_is_made(cls, field):
    @rrule(cls)
    def rule(x):
        def pullback(o_bar):
            assert type(o_bar) is Tangent and o_bar.primal_type is cls
            return (10.0 * o_bar[field],)

        return cls(x), pullback

    assert slope(lambda x: 3.0 * getattr(cls(x), field), 2.0) == 30.0
    assert type(cls(2.0)) is cls


@pytest.mark.parametrize("cls", [Box, Slim], ids=["dataclass", "slots"])
def test_a_rule_gets_and_gives_tangents_of_objects(cls):
    def read(o):
        return getattr(o, "side", None) or o.value

    @rrule(read)
    def rule(o):
        return read(o), lambda y_bar: ({"side" if cls is Box else "value": 10.0 * y_bar},)

    assert slope(lambda x: read(cls(x)), 2.0) == 10.0


def test_rules_for_cached_functions_partials_and_ufuncs_of_the_program():
    @functools.lru_cache
    def cached(x):
        return x * x

    inner = functools.lru_cache(lambda x: x * x)

    def scaled(factor, x, *, power=1):
        return factor * x**power

    @rrule(scaled)
    def rule(factor, x, *, power=1):
        return scaled(factor, x, power=power), lambda y_bar: (10 * y_bar, 100 * y_bar)

    element = np.frompyfunc(lambda x: x + 1.0, 1, 1)
    for f in (cached, inner.__wrapped__, element):
        times_ten(f)
    assert slope(cached, 3.0) == 10.0
    assert slope(inner, 3.0) == 10.0
    assert slope(functools.partial(scaled, 2.0), 3.0) == 100.0
    assert slope(functools.partial(scaled, x=2.0, power=3), 3.0) == 10.0
    assert slope(element, 3.0) == 10.0


def test_arguments_by_name_reach_the_rule_by_position():
    def volume(a, b, c=1.0):
        return a * b * c

    @rrule(volume)
    def rule(a, b, c=1.0):
        return volume(a, b, c), lambda y_bar: (1 * y_bar, 10 * y_bar, 100 * y_bar)

    assert slope(lambda x: volume(2.0, c=x, b=3.0), 1.0) == 100.0
    assert slope(lambda x: volume(b=x, a=2.0), 1.0) == 10.0


def test_a_rule_with_a_tuple_a_list_or_a_dictionary_for_its_result():
    def parts(x):
        return {"a": x, "b": [x * x, (1.0, 3)], "n": 2}

    @rrule(parts)
    def rule(x):
        def pullback(y_bar):
            assert set(y_bar) == {"a", "b", "n"} and y_bar["n"] is NoTangent and y_bar["b"][1][1] is NoTangent
            return (10 * y_bar["a"] + 100 * y_bar["b"][0] + 1000 * y_bar["b"][1][0],)

        return parts(x), pullback

    assert slope(lambda x: parts(x)["a"], 3.0) == 10.0
    assert slope(lambda x: parts(x)["b"][0] + parts(x)["b"][1][0], 3.0) == 1100.0


# -- what a callable that is an argument holds -------------------------------------------------------------------------


def test_a_rule_that_takes_a_function_gives_the_cotangents_of_what_it_has_captured():
    def solve(f, guess):
        for _ in range(60):
            guess = guess - f(guess) / grad(f)(guess)
        return guess

    @rrule(solve)
    def rule(f, guess):
        root = solve(f, guess)
        _, pullback = rrule(f, root)
        f_bar, x_bar = pullback(1.0)

        def solve_pullback(root_bar):
            return f_bar * (-root_bar / x_bar), ZeroTangent

        return root, solve_pullback

    def square_root(a):
        return solve(lambda x: x * x - a, 1.0)

    assert grad(square_root)(4.0) == pytest.approx(0.25)
    assert jvp(square_root, (4.0,), (1.0,))[1] == pytest.approx(0.25)


def test_what_a_function_argument_has_captured_is_never_lost_without_a_word():
    def apply(f, x):
        return f(x)

    @rrule(apply)
    def rule(f, x):
        return f(x), lambda y_bar: (NoTangent, y_bar)

    for make in (
        lambda a: lambda x: a * x,
        lambda a: Scale(a),
        lambda a: Scale(a).times,
        lambda a: functools.partial(pow, a),
    ):
        assert apply(make(2.0), 3.0) > 0
        with pytest.raises(MissingRuleError, match="its argument 0"):
            grad(lambda a: apply(make(a), 3.0))(2.0)
        assert grad(lambda x: apply(make(2.0), x))(3.0) == 1.0


def test_a_closure_with_a_rule_must_not_have_captured_what_is_differentiated():
    def with_factor(a):
        def scaled(x):
            return a * x

        times_ten(scaled)
        return scaled

    assert grad(with_factor(2.0))(3.0) == 10.0
    with pytest.raises(MissingRuleError, match="captured 'a'"):
        grad(lambda a: with_factor(a)(3.0))(2.0)


@pytest.mark.parametrize(
    "hide",
    [
        lambda x: (v for v in [x]),
        lambda x: iter([x]),
        lambda x: map(float, [x]),
        lambda x: {x},
        lambda x: {"a": x}.values(),
    ],
    ids=["generator", "iterator", "map", "set", "view"],
)
def test_arguments_and_results_in_which_numbers_are_unseen_are_refused(hide):
    def total(xs):
        return math.fsum(xs)

    rrule(total)(lambda xs: (total(xs), lambda y_bar: (NoTangent,)))
    rrule(hide)(lambda x: (hide(x), lambda y_bar: (y_bar,)))
    for f in (lambda x: total(hide(x)), lambda x: [v for v in hide(x)][0]):
        for take in (grad, lambda f: lambda x: jvp(f, (x,), (1.0,))):
            with pytest.raises(MissingRuleError, match="unseen|would be lost"):
                take(f)(2.0)
        remove_rule(hide)
        rrule(hide)(lambda x: (hide(x), lambda y_bar: (y_bar,)))
    remove_rule(hide)
    remove_rule(total)
    assert grad(lambda x: total([x, x]))(2.0) == 2.0
    table = {"a": 1.0}
    rrule(total)(lambda xs: (total(xs), lambda y_bar: (NoTangent,)))
    assert grad(lambda x: x * total(table.values()) + total({1.0}))(2.0) == 1.0


# -- forward rules -----------------------------------------------------------------------------------------------------


def test_a_forward_rule_serves_both_modes_and_higher_orders():
    def cube(x):
        return x**3

    @frule(cube)
    def rule(f, x):
        assert f == Dual(cube, NoTangent)
        return Dual(x.primal**3, 3 * x.primal**2 * x.tangent)

    assert slope(cube, 2.0) == 12.0
    assert grad(grad(cube))(2.0) == 12.0 and jvp(grad(cube), (2.0,), (1.0,))[1] == 12.0
    assert grad(lambda x: jvp(cube, (x,), (1.0,))[1])(2.0) == 12.0
    assert np.allclose(
        plaingrad.jacobian(lambda v: np.array([cube(v[0]), cube(v[1])]))(np.array([1.0, 2.0])),
        np.diag([3, 12]),
    )


def test_a_forward_rule_is_evaluated_once_in_forward_mode():
    calls = []

    def square(x):
        return x * x

    @frule(square)
    def rule(f, x):
        calls.append(x.primal)
        return Dual(x.primal**2, 2 * x.primal * x.tangent)

    assert jvp(square, (3.0,), (1.0,)) == (9.0, 6.0)
    assert calls == [3.0]


def test_tangents_in_a_forward_rule_are_written_out():
    def mixed(a, b, n, name, items, *, option=1.0):
        return a * b.sum() * items[0]

    seen = []

    @frule(mixed)
    def rule(f, a, b, n, name, items, *, option=1.0):
        seen.append((a.tangent, b.tangent.tolist(), n.tangent, name.tangent, items.tangent, option))
        y = mixed(a.primal, b.primal, n.primal, name.primal, items.primal)
        return Dual(y, a.tangent * b.primal.sum() * items.primal[0])

    f = lambda a: mixed(a, np.ones(2), 3, name="text", items=[2.0, "x"], option=5.0)
    assert jvp(f, (2.0,), (1.0,)) == (8.0, 4.0)
    assert seen == [(1.0, [0.0, 0.0], NoTangent, NoTangent, [0.0, NoTangent], 5.0)]


def test_a_forward_rule_for_an_object_gets_its_tangent():
    def area(box, k):
        return k * box.side**2

    @frule(area)
    def rule(f, box, k):
        assert type(box.tangent) is Tangent and box.tangent.label is NoTangent
        y_dot = k.tangent * box.primal.side**2 + 2 * k.primal * box.primal.side * box.tangent.side
        return Dual(area(box.primal, k.primal), y_dot)

    assert jvp(lambda x: area(Box(x, "b"), x), (3.0,), (1.0,)) == (27.0, 27.0)  # x^3
    assert grad(lambda x: area(Box(x, "b"), x))(3.0) == pytest.approx(27.0)


def test_tangents_of_objects_that_hold_themselves():
    class Node:
        def __init__(self, x):
            self.x, self.me, self.seen = x, self, [self]

    def read(node):
        return node.me.x

    @frule(read)
    def rule(f, node):
        assert type(node.tangent) is Tangent
        return Dual(read(node.primal), 10 * node.tangent.x)

    assert slope(lambda x: read(Node(x)), 2.0) == 10.0
    remove_rule(read)
    rrule(read)(lambda node: (read(node), lambda y_bar: (Tangent(Node, x=100 * y_bar),)))
    assert slope(lambda x: read(Node(x)), 2.0) == 100.0


def test_each_mode_by_a_rule_of_its_own():
    def f(x):
        return x

    times_ten(f)

    @frule(f)
    def rule(f, x):
        return Dual(x.primal * 1.0, 100 * x.tangent)

    assert grad(f)(1.0) == 10.0 and jvp(f, (1.0,), (1.0,))[1] == 100.0

    @rrule(f)
    def again(x):
        return x, lambda y_bar: (20.0 * y_bar,)

    assert grad(f)(1.0) == 20.0 and jvp(f, (1.0,), (1.0,))[1] == 100.0


def test_a_forward_rule_over_one_of_plaingrads_own_leaves_the_reverse_half():
    @frule(math.sin)
    def rule(f, x):
        return Dual(math.sin(x.primal), 100 * x.tangent)

    assert jvp(math.sin, (0.0,), (1.0,))[1] == 100.0 and grad(math.sin)(0.0) == 1.0
    remove_rule(math.sin)
    assert jvp(math.sin, (0.0,), (1.0,))[1] == 1.0


# -- chosen by types ---------------------------------------------------------------------------------------------------


def power(x, n=2):
    return x**n


def test_the_most_specific_rule_for_the_arguments_is_used():
    @rrule(power)
    def for_anything(x, n=2):
        return power(x, n), lambda y_bar: (1.0 * y_bar, ZeroTangent)

    @rrule(power)
    def for_floats(x: float, n: int = 2):
        return power(x, n), lambda y_bar: (10.0 * y_bar, NoTangent)

    @rrule(power)
    def for_arrays(x: np.ndarray, n: int = 2):
        return power(x, n), lambda y_bar: (100.0 * y_bar, NoTangent)

    assert (
        slope(power, 3.0)
        == slope(lambda x: power(x, 2), 3.0)
        == slope(lambda x: power(n=3, x=x), 3.0)
        == 10.0
    )
    assert grad(lambda x: power(x).sum())(np.ones(2)).tolist() == [100.0, 100.0]
    assert slope(lambda x: power(x, 2.5), 3.0) == 1.0
    assert grad(power)(np.float64(2.0)) == 10.0  # a float too
    assert [info.types for info in plaingrad.rules(power)] == [
        "",
        "(x: float, n: int)",
        "(x: numpy.ndarray, n: int)",
    ]


def test_without_a_rule_that_fits_the_bytecode_is_differentiated_or_c_code_refused():
    @rrule(power)
    def for_arrays(x: np.ndarray, n: int = 2):
        return power(x, n), lambda y_bar: (100.0 * y_bar, NoTangent)

    assert slope(power, 3.0) == 6.0
    hidden = functools.partial(int.from_bytes, byteorder="big").func  # C code without a rule

    @rrule(hidden)
    def of_float(x: float, order: str):
        return x, lambda y_bar: (10.0 * y_bar, NoTangent)

    assert grad(lambda x: hidden(x, "big"))(2.0) == 10.0
    with pytest.raises(MissingRuleError, match="from_bytes"):
        grad(lambda x: hidden([x], "big"))(2.0)


def test_two_rules_of_which_none_is_more_specific_are_both_named():
    @rrule(power)
    def first(x: float, n):
        return power(x, n), lambda y_bar: (y_bar, ZeroTangent)

    @rrule(power)
    def second(x, n: float):
        return power(x, n), lambda y_bar: (y_bar, ZeroTangent)

    with pytest.raises(RuleError, match=r"power fit .*\(x: float, n\) at .*\(x, n: float\) at "):
        grad(power)(2.0, 3.0)

    @rrule(power)
    def both(x: float, n: float):
        return power(x, n), lambda y_bar: (7.0 * y_bar, ZeroTangent)

    assert grad(power)(2.0, 3.0) == 7.0


def test_rules_by_type_for_operators():
    class Money:
        def __init__(self, amount):
            self.amount = amount

        def __add__(self, other):
            return Money(self.amount + getattr(other, "amount", other))

    @rrule(Money.__add__)
    def with_number(self, other: float):
        return self + other, lambda y_bar: ({"amount": y_bar["amount"]}, 10.0 * y_bar["amount"])

    assert slope(lambda x: (Money(1.0) + x).amount, 2.0) == 10.0
    assert slope(lambda x: (Money(1.0) + Money(x)).amount, 2.0) == 1.0

    @rrule(operator.mul)
    def float_times_array(x: float, y: np.ndarray):
        return x * y, lambda y_bar: (1000.0 * y_bar.sum(), x * y_bar)

    assert slope(lambda x: (x * np.ones(2)).sum(), 3.0) == 2000.0
    assert slope(lambda x: (np.ones(2) * x).sum(), 3.0) == 2.0 and slope(lambda x: x * x, 3.0) == 6.0
    remove_rule(operator.mul)
    assert slope(lambda x: (x * np.ones(2)).sum(), 3.0) == 2.0


def test_a_ufunc_by_a_definition():
    """It had the derivative 0."""
    cube = np.frompyfunc(lambda x: float(x) ** 3, 1, 1)

    @defined_as(cube)
    def cube_definition(x):
        return np.asarray(x) * x * x

    assert slope(cube, 0.7) == pytest.approx(3 * 0.49)
    assert grad(lambda x: (cube(x) * np.array([1.0, 2.0])).sum())(np.array([0.5, 1.5])).tolist() == [0.75, 13.5]
    assert grad(lambda x: cube([x, 2 * x]).sum())(0.5) == pytest.approx(27 * 0.25)
    assert grad(grad(cube))(0.7) == pytest.approx(6 * 0.7)
    remove_rule(cube)


def test_the_types_of_forward_rules_are_those_of_the_values_in_the_pairs():
    @frule(power)
    def for_floats(f, x: Dual[float], n: Dual = Dual(2)):
        return Dual(x.primal**n.primal, 10.0 * x.tangent)

    @rrule(power)
    def for_arrays(x: np.ndarray, n=2):
        return power(x, n), lambda y_bar: (100.0 * y_bar, NoTangent)

    assert slope(power, 3.0) == 10.0
    assert jvp(lambda x: power(x).sum(), (np.ones(2),), (np.ones(2),))[1] == 200.0


# -- functions that write into their arguments -------------------------------------------------------------------------


def product_into(x, y, z):
    np.matmul(x, y, out=z)


def energy(x):
    z = np.ones((2, 2))
    before = z * x  # what the pullback of this reads is written below
    product_into(x, x, z)
    w = z * z
    product_into(x, z, z=w)
    return (before * 3.0).sum() + (w * z).sum()


def energy_plain(x):
    z = x @ x
    return (3.0 * x).sum() + ((x @ z) * z).sum()


def in_reverse():
    @rrule(product_into, mutates="z")
    def rule(x, y, z):
        product_into(x, y, z)
        return None, lambda y_bar, z_bar: (z_bar @ y.T, x.T @ z_bar, ZeroTangent)


def in_forward():
    @frule(product_into, mutates=2)
    def rule(f, x, y, z):
        product_into(x.primal, y.primal, z.primal)
        np.matmul(x.primal, y.tangent, out=z.tangent)
        z.tangent[...] += x.tangent @ y.primal
        return Dual(None)


def by_definition():
    @defined_as(product_into)
    def definition(x, y, z):
        z[...] = x @ y


@pytest.mark.parametrize("enter", [in_reverse, in_forward, by_definition])
def test_a_function_that_writes_into_an_argument(enter):
    enter()
    x = np.array([[1.0, 2.0], [-0.5, 0.3]])
    x_dot = np.array([[0.3, -1.0], [0.7, 0.2]])
    expected = grad(energy_plain)(x)
    assert np.allclose(grad(energy)(x), expected, rtol=1e-12)
    assert energy(x) == pytest.approx(energy_plain(x))
    assert jvp(energy, (x,), (x_dot,))[1] == pytest.approx(float((expected * x_dot).sum()))
    second = lambda f: grad(lambda x: (grad(f)(x) * x_dot).sum())(x)
    assert np.allclose(second(energy), second(energy_plain), rtol=1e-12)
    assert np.allclose(jvp(grad(energy), (x,), (x_dot,))[1], second(energy_plain), rtol=1e-12)


def test_an_argument_that_is_written_and_returned_is_returned_itself():
    def double(z):
        z *= 2.0
        return z

    @rrule(double, mutates=0)
    def rule(z):
        double(z)
        return z, lambda z_bar, new_bar: (20.0 * new_bar,)

    def f(x):
        z = x * 1.0
        w = double(z)
        assert w is z
        w += x
        return w.sum()

    assert grad(f)(np.ones(2)).tolist() == [21.0, 21.0]
    x = np.ones(2)
    assert grad(lambda x: double(x).sum())(x).tolist() == [20.0, 20.0] and x.tolist() == [2.0, 2.0]


def test_sorting_in_place_to_second_order_on_views_and_arguments():
    def sort(z):
        z.sort()

    @rrule(sort, mutates=0)
    def rule(z):
        order = np.argsort(z, kind="stable")
        sort(z)

        def pullback(y_bar, z_bar):
            old_bar = np.empty_like(z_bar)
            old_bar[order] = z_bar
            return (old_bar,)

        return None, pullback

    k = np.arange(3.0)

    def f(x):
        z = x * x
        w = z * z
        sort(z)
        return (z * k).sum() + w.sum()

    x = np.array([3.0, -1.0, 2.0])
    rank = np.array([2.0, 0.0, 1.0])
    assert np.allclose(grad(f)(x), 2 * x * rank + 4 * x**3)
    assert jvp(f, (x,), (x,))[1] == pytest.approx(float(x @ (2 * x * rank + 4 * x**3)))
    assert np.allclose(grad(lambda x: (grad(f)(x) * x).sum())(x), 4 * x * rank + 16 * x**3)

    def in_a_view(x):
        z = x * 1.0
        sort(z[:2])
        return (z * k).sum()

    assert grad(in_a_view)(x).tolist() == [1.0, 0.0, 2.0]
    argument = x.copy()
    assert grad(lambda x: (sort(x), (x * k).sum())[1])(argument).tolist() == [2.0, 0.0, 1.0]
    assert argument.tolist() == [-1.0, 2.0, 3.0]

    def of_a_constant_that_is_read_before(x):
        c = np.array([3.0, 1.0, 2.0])
        before = (x * c).sum()
        sort(c)
        return before + (x * c).sum()

    assert grad(of_a_constant_that_is_read_before)(x).tolist() == [4.0, 3.0, 5.0]


def test_definitions_of_methods_that_write_into_their_object():
    class Buffer:
        def __init__(self, n):
            self.data, self.end = np.zeros(n), 0

        def push(self, x):
            self.data[self.end] = x
            self.end += 1

        def __iadd__(self, other):
            self.data += other
            return self

    @defined_as(Buffer.push)
    def push(self, x):
        self.data[self.end] = 10 * x
        self.end += 1

    @defined_as(Buffer.__iadd__)
    def add(self, other):
        self.data += 100 * other
        return self

    def f(x):
        b = Buffer(2)
        b.push(x)
        b.push(x * x)
        b += x
        return b.data.sum() * b.end

    assert slope(f, 3.0) == 2 * (10.0 + 60.0 + 200.0)


def test_lists_and_dictionaries_that_are_written():
    def record(log, table, x):
        log.append(x * x)
        table["last"] = x
        return len(log)

    @rrule(record, mutates=("log", "table"))
    def rule(log, table, x):
        n = record(log, table, x)
        return n, lambda n_bar, log_bar, table_bar: (
            log_bar[:-1],
            {},
            2 * x * log_bar[-1] + 10 * table_bar["last"],
        )

    def f(x):
        log, table = [x], {}
        assert record(log, table, x) == 2 and record(log, table, 2 * x) == 3
        return sum(log) + table["last"]

    assert grad(f)(3.0) == 1 + 6.0 + 2 * 12.0 + 20.0


def test_a_rule_that_returns_nothing_must_say_what_is_written():
    def fill(z, x):
        z[:] = x

    rrule(fill)(lambda z, x: (fill(z, x), lambda y_bar: (ZeroTangent, y_bar)))
    rrule(Slim.__init__)(lambda self, x: (None, lambda y_bar: (ZeroTangent, y_bar)))
    for f in (lambda x: (fill(np.zeros(2), x), x)[1], lambda x: Slim(x).value):
        for take in (grad, lambda f: lambda x: jvp(f, (x,), (1.0,))):
            with pytest.raises(RuleError, match="returned None.*(?s:.*)mutates"):
                take(f)(2.0)


def test_what_cannot_be_copied_cannot_be_said_to_be_written():
    def touch(box):
        box.side = 1.0

    @rrule(touch, mutates="box")
    def rule(box):
        return None, lambda y_bar, box_bar: (box_bar,)

    with pytest.raises(RuleError, match="a Box; that can be said of arrays"):
        grad(lambda x: touch(Box(x)) or x)(1.0)
    with pytest.raises(RuleError, match="mutates names 'crate'"):
        rrule(touch, mutates="crate")(lambda box: None)


# -- exceptions, wrong rules -------------------------------------------------------------------------------------------


def test_an_exception_in_a_rule_is_the_programs_own():
    def risky(x):
        if x > 1.0:
            raise LookupError("too large")
        return x

    @rrule(risky)
    def rule(x):
        def pullback(y_bar):
            raise KeyError("in the pullback")

        return risky(x), pullback

    def guarded(x):
        try:
            return risky(x)
        except LookupError:
            return x * x

    assert grad(guarded)(3.0) == 6.0
    with pytest.raises(KeyError, match="in the pullback"):
        grad(guarded)(0.5)
    assert grad(lambda x: x * x)(3.0) == 6.0


@pytest.mark.parametrize("outcome", [3.0, None, (3.0,), (3.0, 4.0), [3.0, len], (1, 2, 3)], ids=repr)
def test_a_reverse_rule_that_returns_no_pair_is_named(outcome):
    def wrong(x):
        return x

    rrule(wrong)(lambda x: outcome)
    for ask in (lambda: grad(wrong)(1.0), lambda: jvp(wrong, (1.0,), (1.0,)), lambda: rrule(wrong, 1.0)):
        with pytest.raises(RuleError, match=r"wrong returned .*must return \(y, pullback\)"):
            ask()


@pytest.mark.parametrize("outcome", [3.0, (3.0, 1.0), None], ids=repr)
def test_a_forward_rule_that_returns_no_pair_is_named(outcome):
    def wrong(x):
        return x

    frule(wrong)(lambda f, x: outcome)
    for ask in (lambda: grad(wrong)(1.0), lambda: jvp(wrong, (1.0,), (1.0,))):
        with pytest.raises(RuleError, match=r"wrong returned .*must return Dual\(y, y_dot\)"):
            ask()


def test_a_pullback_that_returns_no_tuple_is_named():
    def wrong(x):
        return x * x

    rrule(wrong)(lambda x: (x, lambda y_bar: 3.0))
    for ask in (
        lambda: grad(wrong)(1.0),
        lambda: jvp(wrong, (1.0,), (1.0,)),
        lambda: rrule(wrong, 1.0)[1](1.0),
        lambda: grad(grad(wrong))(1.0),
    ):
        with pytest.raises(RuleError, match="returned .*float; it must return a tuple"):
            ask()


X3 = np.ones(3)


@pytest.mark.parametrize(
    ("bar", "x"),
    [
        ("a", 1.0),
        ([1.0], 1.0),
        (len, 1.0),
        (Tangent(Box, side=1.0), 1.0),
        ("a", X3),
        ([1.0, 1.0, 1.0], X3),
        (np.ones(2), X3),
        (np.array(["a"] * 3), X3),
        (1.0, [1.0, 2.0]),
        ([1.0], [1.0, 2.0]),
        ({"a": 1.0}, [1.0, 2.0]),
        (["a", 1.0], [1.0, 2.0]),
        ([1.0], {"a": 1.0}),
        ({"b": 1.0}, {"a": 1.0}),
        ({"a": [1.0]}, {"a": 1.0}),
        (1.0, Box(1.0)),
        (Tangent(Box, width=1.0), Box(1.0)),
        (Tangent(Scale, side=1.0), Box(1.0)),
        ([1.0], Box(1.0)),
    ],
    ids=range(19),
)
def test_what_is_no_cotangent_of_the_argument_is_said_so(bar, x):
    def wrong(x):
        return 1.0

    def total(y):
        return y

    rrule(wrong)(lambda x: (1.0, lambda y_bar: (bar,)))
    x_dot = plaingrad.zero_tangent(x) if not isinstance(x, Box) else {"side": 1.0}
    if isinstance(x, float):
        x_dot = 1.0
    for ask in (
        lambda: grad(lambda x: total(wrong(x)))(x),
        lambda: jvp(lambda x: total(wrong(x)), (x,), (x_dot,)),
        lambda: rrule(wrong, x)[1](1.0),
    ):
        with pytest.raises(RuleError, match="rule for .*wrong gives"):
            ask()


@pytest.mark.parametrize(
    ("y", "y_dot"),
    [
        (1.0, "a"),
        (1.0, X3),
        (X3, np.ones(2)),
        (X3, np.ones((2, 3))),
        ([1.0], [1.0, 2.0]),
        ({"a": 1.0}, {"b": 1.0}),
    ],
    ids=range(6),
)
def test_what_is_no_tangent_of_the_result_is_said_so(y, y_dot):
    def wrong(x):
        return y

    frule(wrong)(lambda f, x: Dual(y, y_dot))
    first = lambda y: y if isinstance(y, float) else y["a"] if isinstance(y, dict) else y[0]
    for ask in (lambda: jvp(wrong, (1.0,), (1.0,)), lambda: grad(lambda x: first(wrong(x)))(1.0)):
        with pytest.raises(RuleError, match="wrong gives as tangent of its result"):
            ask()


def test_no_tangent_for_what_has_one_is_refused_also_inside_objects():
    def area(box):
        return box.side**2

    for x_bar in (NoTangent, Tangent(Box, side=NoTangent)):
        rrule(area)(lambda box, x_bar=x_bar: (box.side**2, lambda y_bar: (x_bar,)))
        with pytest.raises(MissingRuleError, match="ZeroTangent"):
            grad(lambda x: area(Box(x)))(2.0)
    rrule(area)(lambda box: (box.side**2, lambda y_bar: (Tangent(Box),)))
    assert grad(lambda x: area(Box(x)))(2.0) == 0.0


@pytest.mark.parametrize("x", [3.0, np.array([3.0])], ids=["number", "array"])
def test_the_rule_counts_where_the_function_returns_its_argument(x):
    def reversed_gradient(x):
        return x

    total = lambda f: lambda x: np.sum(f(x) * 1.0)
    rrule(reversed_gradient)(lambda x: (x, lambda y_bar: (-y_bar,)))
    assert grad(total(reversed_gradient))(x) == -1.0
    assert jvp(total(reversed_gradient), (x,), (x,))[1] == -3.0
    remove_rule(reversed_gradient)
    frule(reversed_gradient)(lambda f, x: Dual(x.primal, -x.tangent))
    assert jvp(total(reversed_gradient), (x,), (x,))[1] == -3.0
    assert grad(total(reversed_gradient))(x) == -1.0
    remove_rule(reversed_gradient)
    linear_rule(reversed_gradient, lambda y_bar, x: -y_bar)
    assert grad(total(reversed_gradient))(x) == -1.0


def test_a_postponed_cotangent_is_computed_only_where_it_is_needed():
    calls = []

    def product(x, y):
        return x * y

    @rrule(product)
    def rule(x, y):
        def pullback(z_bar):
            return Thunk(lambda: calls.append("x") or z_bar * y), Thunk(
                lambda: calls.append("y") or z_bar * x
            )

        return x * y, pullback

    assert grad(product)(2.0, 3.0) == 3.0 and calls == ["x"]
    _, pullback = rrule(product, 2.0, 3.0)
    _, x_bar, y_bar = pullback(1.0)
    assert (x_bar, y_bar) == (3.0, 2.0) and calls == ["x", "x", "y"]  # by hand all of them are computed, once


@pytest.mark.parametrize(
    "door", [rrule, frule, defined_as, nondifferentiable, remove_rule], ids=lambda d: d.__name__
)
def test_rules_are_about_callables(door):
    with pytest.raises(RuleError):
        door(3.0)


def test_a_method_bound_to_one_object_cannot_have_a_rule():
    with pytest.raises(RuleError, match=r"bound to one object; give the rule for Scale\.times"):
        rrule(Scale(1.0).times)(lambda x: None)


def test_an_argument_that_the_rule_takes_by_name_only_is_a_constant():
    def scaled(x, *, by):
        return x * by

    rrule(scaled)(lambda x, *, by: (x * by, lambda y_bar: (y_bar * by,)))
    assert grad(lambda x: scaled(x, by=2.0))(3.0) == 2.0
    with pytest.raises(
        MissingRuleError, match=r"(?s)has a rule that does not serve here.*'by' depends on the inputs"
    ):
        grad(lambda x: scaled(3.0, by=x))(2.0)


def test_keyword_arguments_alone_do_not_apply_a_rule():
    with pytest.raises(RuleError, match="by position"):
        rrule(power, x=2.0)


# -- entering late, removing, other doors ------------------------------------------------------------------------------


def test_rules_take_effect_at_once_also_inside_a_derivative():
    def f(x):
        first = power(x)
        times_ten(power)
        second = power(x)
        remove_rule(power)
        return first + 100.0 * second + 10_000.0 * power(x)

    assert grad(f)(3.0) == 6.0 + 1000.0 + 60_000.0


def test_removing_a_rule_brings_plaingrads_own_back():
    scalar_rule(math.cos, lambda x, z: 5.0)
    scalar_rule(math.cos, lambda x, z: 7.0)
    assert slope(math.cos, 1.0) == 7.0
    remove_rule(math.cos)
    assert slope(math.cos, 1.0) == pytest.approx(-math.sin(1.0))
    with pytest.raises(RuleError, match="no rule of this program is for cos"):
        remove_rule(math.cos)


def test_rows_for_methods():
    scalar_rule(Scale.thrice, lambda x, z: 30.0)
    assert slope(Scale.thrice, 1.0) == 30.0
    linear_rule(Scale.twice, lambda y_bar, cls, x: NoTangent)
    nondifferentiable(Scale.times)
    assert grad(lambda x: x * Scale(2.0).times(x))(3.0) == 6.0


def test_a_definition_that_is_pure_leaves_calls_that_do_not_matter_alone():
    calls = []

    def f(x):
        calls.append("f")
        return x * x

    @defined_as(f, pure=True)
    def definition(x):
        calls.append("definition")
        return x * x

    assert grad(lambda x: x * f(2.0))(3.0) == 4.0 and calls == ["f"]
    assert slope(f, 3.0) == 6.0 and calls == ["f", "definition", "definition"]


def test_rules_in_threads_that_enter_and_take_them_out_meanwhile():
    def mine(x):
        return x * x

    wrong = []
    stop = threading.Event()

    def churn():
        while not stop.is_set():
            times_ten(mine)
            remove_rule(mine)

    def ask():
        for _ in range(100):
            found = grad(lambda x: mine(x) + power(x))(3.0)
            if found not in (12.0, 16.0):
                wrong.append(found)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    churning = threading.Thread(target=churn)
    for thread in (churning, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    churning.join()
    assert wrong == []


def test_a_rule_that_takes_derivatives_itself():
    def inner(x):
        return x**3

    @rrule(inner)
    def rule(x):
        slope = grad(lambda t: t**3)(x)
        return x**3, lambda y_bar: (y_bar * slope,)

    assert (
        slope(inner, 2.0) == 12.0 and grad(grad(inner))(2.0) == 12.0 and grad(grad(grad(inner)))(2.0) == 6.0
    )


def test_vjp_through_a_rule_with_several_uses():
    times_ten(power)
    y, pullback = vjp(lambda x: power(x) + power(2 * x), 3.0)
    assert pullback(1.0) == pullback(1.0) == (30.0,)


def test_an_argument_without_partial_derivative_is_refused_in_every_mode():
    for given in ((), (None,)):

        def weighted(x, y):
            return x * x * y

        scalar_rule(weighted, lambda x, y, z: 2 * x * y, *given)
        assert grad(weighted)(2.0, 3.0) == 12.0
        assert jvp(weighted, (2.0, 3.0), (1.0, None)) == (12.0, 12.0)
        for refused in (
            lambda f=weighted: grad(f, argnums=1)(2.0, 3.0),
            lambda f=weighted: grad(lambda x, y: f(x, y).sum(), argnums=1)(np.ones(2), np.ones(2)),
            lambda f=weighted: jvp(f, (2.0, 3.0), (None, 1.0)),
            lambda f=weighted: plaingrad.jacobian(lambda v: f(v[0], v[1]), mode="forward")([2.0, 3.0]),
            lambda f=weighted: plaingrad.taylor(lambda y: f(2.0, y), 3.0, 2),
            lambda f=weighted: grad(grad(lambda y: f(2.0, y)))(3.0),
        ):
            with pytest.raises(MissingRuleError, match="weighted gives no derivative for its argument 1"):
                refused()


def test_a_scalar_rule_needs_partial_derivatives_that_are_numbers_or_functions():
    def cube(x):
        return x**3

    with pytest.raises(RuleError, match=r"scalar_rule\(cube, \.\.\.\) needs one partial derivative"):
        scalar_rule(cube)
    with pytest.raises(RuleError, match="partial derivative 0 .* is a str"):
        scalar_rule(cube, "3 * x**2")
    with pytest.raises(RuleError, match=r"the adjoint given to linear_rule\(cube, adjoint\) is a NoneType"):
        linear_rule(cube, None)
    assert grad(cube)(2.0) == 12.0


def test_an_optional_argument_may_have_no_partial_derivative():
    def scaled(x, factor=2.0):
        return factor * x

    scalar_rule(scaled, lambda x, *factor_and_z: factor_and_z[0] if len(factor_and_z) > 1 else 2.0)
    assert grad(scaled)(3.0) == 2.0
    assert grad(scaled)(3.0, 5.0) == 5.0
    assert rrule(scaled, 3.0, 5.0)[0] == 15.0
    with pytest.raises(MissingRuleError, match="scaled gives no derivative for its argument 1"):
        grad(scaled, argnums=1)(3.0, 5.0)


def test_a_cotangent_for_the_function_itself_is_refused_and_not_taken_for_that_of_an_argument():
    def product(x, y):
        return x * y

    @rrule(product)
    def rule(x, y):
        return x * y, lambda y_bar: (NoTangent, y_bar * y, y_bar * x)

    for refused in (
        lambda: grad(product, argnums=1)(2.0, 3.0),
        lambda: jvp(product, (2.0, 3.0), (None, 1.0)),
        lambda: plaingrad.jacobian(product, argnums=1, mode="forward")(2.0, 3.0),
        lambda: plaingrad.taylor(lambda y: product(2.0, y), 3.0, 2),
        lambda: grad(grad(lambda y: product(2.0, y)))(3.0),
        lambda: rrule(product, 2.0, 3.0)[1](1.0),
    ):
        with pytest.raises(RuleError, match="returned 3 cotangents, but the rule has 2 positional parameters"):
            refused()
