"""jvp, linearize, derivative, forwarddiff and prefer_mode, against closed forms."""

import cmath
import math
import threading
from collections import namedtuple
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import plaingrad
from plaingrad import (
    ArgumentError,
    MissingRuleError,
    NonScalarOutputError,
    NotHolomorphicError,
    Tangent,
    TangentError,
    ZeroTangent,
    derivative,
    forwarddiff,
    grad,
    jacobian,
    jvp,
    linearize,
    prefer_mode,
    vjp,
)


@dataclass
class Spring:
    stiffness: float
    name: str
    mass: float


Pair = namedtuple("Pair", "a b")


# -- jvp ---------------------------------------------------------------------------------------------------------------


def test_jvp_gives_the_value_and_the_directional_derivative():
    y, y_dot = jvp(lambda x, y: math.sin(x) * y, (0.5, 3.0), (2.0, -1.0))
    assert y == math.sin(0.5) * 3.0
    assert y_dot == pytest.approx(2.0 * 3.0 * math.cos(0.5) - math.sin(0.5), rel=1e-15)


def test_jvp_of_arrays_has_their_shape_and_dtype():
    x = np.linspace(0.0, 1.0, 6, dtype=np.float32).reshape(2, 3)
    y, y_dot = jvp(np.sin, (x,), (np.ones_like(x),))
    assert y_dot.shape == (2, 3) and y_dot.dtype == np.float32
    np.testing.assert_allclose(y_dot, np.cos(x), rtol=1e-6)


@pytest.mark.parametrize("nothing", [None, ZeroTangent])
def test_an_argument_with_no_tangent_is_held_fixed(nothing):
    assert jvp(lambda x, y: x * y, (3.0, 4.0), (nothing, 1.0)) == (12.0, 3.0)
    assert jvp(lambda x, name: x * x, (3.0, "text"), (1.0, nothing)) == (9.0, 6.0)


def test_without_any_tangent_the_derivative_is_zero():
    assert jvp(lambda x: x * x, (3.0,), (None,)) == (9.0, 0.0)
    y, y_dot = jvp(lambda x: {"a": x, "b": "text"}, (np.ones(2),), (None,))
    assert (y_dot["a"] == 0).all() and y_dot["b"] is None


def test_the_tangent_of_a_result_mirrors_its_structure():
    def f(x):
        return {
            "list": [x, x * x],
            "tuple": (2.0 * x, "text", 3),
            "pair": Pair(x, 1.0),
            "array": np.array([x, 0.0]),
        }

    y, y_dot = jvp(f, (3.0,), (1.0,))
    assert y["list"] == [3.0, 9.0] and y_dot["list"] == [1.0, 6.0]
    assert y_dot["tuple"] == (2.0, None, None)
    assert y_dot["pair"] == Pair(1.0, 0.0) and type(y_dot["pair"]) is Pair
    assert (y_dot["array"] == [1.0, 0.0]).all()


def test_the_tangent_of_an_object_is_a_tangent_with_its_fields():
    y, y_dot = jvp(lambda k: Spring(k * k, "s", 1.0), (3.0,), (1.0,))
    assert y == Spring(9.0, "s", 1.0)
    assert type(y_dot) is Tangent and y_dot.stiffness == 6.0 and y_dot.mass == 0.0 and y_dot.name is None


@pytest.mark.parametrize(
    "dot",
    [{"stiffness": 2.0}, {"stiffness": 2.0, "mass": None, "name": None}, Tangent(Spring, {"stiffness": 2.0})],
    ids=["a field", "all fields", "a Tangent"],
)
def test_the_tangent_of_an_object_is_given_by_field(dot):
    assert jvp(lambda s: s.stiffness / s.mass, (Spring(6.0, "s", 3.0),), (dot,)) == (
        2.0,
        pytest.approx(2.0 / 3.0),
    )


def test_tangents_of_nested_structures_may_leave_parts_out():
    p = {"w": [np.ones(2), 2.0], "b": 5.0, "n": 3}
    f = lambda p: p["w"][0].sum() * p["w"][1] * p["b"] * p["n"]
    assert jvp(f, (p,), ({"w": [None, 1.0]},)) == (60.0, 30.0)
    assert jvp(f, (p,), ({"w": [np.array([1.0, 0.0]), None], "b": 1.0, "n": None},)) == (60.0, 30.0 + 12.0)


def test_what_holds_itself_has_tangents_that_do():
    class Node:
        def __init__(self, x):
            self.x, self.me, self.listed = x, self, [self]

    def cube(node):
        return node.x**2 * node.me.listed[0].x

    node = Node(2.0)
    slope = grad(cube)(node)
    assert slope.x == 12.0
    assert jvp(cube, (node,), (slope,)) == (8.0, 144.0)
    both = {"node": node}
    node.both = both
    assert jvp(lambda d: cube(d["node"]), (both,), (grad(lambda d: cube(d["node"]))(both),)) == (8.0, 144.0)


def test_ints_among_the_arguments_are_real_numbers():
    assert jvp(lambda x: x * x, (3,), (1,)) == (9.0, 6.0)
    y, y_dot = jvp(lambda x: x * x, (np.array([1, 2]),), (np.array([1, 1]),))
    assert (y_dot == [2.0, 4.0]).all()


def test_fractions_and_decimals_are_pushed_exactly():
    assert jvp(lambda x: x**3, (Fraction(1, 3),), (Fraction(1),)) == (Fraction(1, 27), Fraction(1, 3))
    assert jvp(lambda x: x * x, (Decimal("1.1"),), (1,)) == (Decimal("1.21"), Decimal("2.2"))


def test_has_aux_leaves_the_second_result_alone():
    assert jvp(lambda x: (x * x, {"x": x}), (3.0,), (1.0,), has_aux=True) == (9.0, 6.0, {"x": 3.0})
    with pytest.raises(NonScalarOutputError, match="must return"):
        jvp(lambda x: x, (3.0,), (1.0,), has_aux=True)


def test_arguments_changed_in_place_are_as_after_a_plain_call():
    def f(x, log):
        x *= 2.0
        log.append(x.sum())
        return (x * x).sum()

    x, log = np.array([1.0, 2.0]), []
    assert jvp(f, (x, log), (np.ones(2), None)) == (20.0, 24.0)
    assert (x == [2.0, 4.0]).all() and log == [6.0]


def test_exceptions_are_those_of_a_plain_call():
    def fails(x):
        raise KeyError(x)

    with pytest.raises(KeyError, match="2.0"):
        jvp(fails, (2.0,), (1.0,))
    assert plaingrad.nestlevel() == 0


@pytest.mark.parametrize(
    ("primals", "tangents", "message"),
    [
        ((1.0,), (1.0, 2.0), "1 primals and 2 tangents"),
        (1.0, (1.0,), "primals must be a tuple"),
        ((1.0,), 1.0, "tangents must be a tuple"),
        ((1.0,), (np.ones(2),), r"tangents\[0\] must be a number"),
        ((np.ones(2),), (np.ones(3),), r"tangents\[0\] must be an array of shape \(2,\)"),
        ((np.ones(2),), (1.0,), r"tangents\[0\] must be an array of shape \(2,\)"),
        ((np.ones(2),), ([1.0, 1.0],), r"tangents\[0\] must be an array"),
        ((np.ones(2),), (np.array(["a", "b"]),), "an array of numbers"),
        ((1.0,), (1j,), r"tangents\[0\] is complex, but the argument it belongs to is real"),
        ((np.ones(2),), (np.ones(2) * 1j,), r"tangents\[0\] is complex"),
        (([1.0, 2.0],), ([1.0],), r"tangents\[0\] must be a sequence of 2 entries"),
        (
            ({"a": [1.0, np.ones(2)]},),
            ({"a": [1.0, np.ones(1)]},),
            r"tangents\[0\]\['a'\]\[1\] must be an array",
        ),
        (({"a": 1.0},), ({"b": 1.0},), r"tangents\[0\] must be a mapping with keys among \['a'\]"),
        ((Spring(1.0, "s", 1.0),), ({"colour": 1.0},), "fields among"),
        ((Spring(1.0, "s", 1.0),), ({"name": 1.0},), r"tangents\[0\].name is given for a str"),
        (("text",), (1.0,), r"tangents\[0\] is given for a str, which has no tangent"),
        ((True,), (1.0,), r"tangents\[0\] is given for a bool"),
        (([1, 2.0],), ([1.0, 1.0],), r"tangents\[0\]\[0\] is given for a int"),
    ],
    ids=lambda case: None if isinstance(case, (tuple, float)) else str(case)[:30],
)
def test_a_tangent_that_does_not_fit_is_named_by_its_path(primals, tangents, message):
    with pytest.raises(TangentError, match=message):
        jvp(lambda *args: 1.0, primals, tangents)


def test_jvp_refuses_c_code_without_a_rule():
    import struct

    with pytest.raises(MissingRuleError, match="pack"):
        jvp(lambda x: float(len(struct.pack("d", x))), (1.0,), (1.0,))


def test_jvp_and_vjp_agree_by_the_inner_product():
    def f(x, w):
        y = np.tanh(w @ x)
        y[0] = y[0] * x[1]
        return {"y": y, "s": (y * y).sum()}

    random = np.random.default_rng(1)
    x, w = random.normal(size=3), random.normal(size=(2, 3))
    x_dot, w_dot = random.normal(size=3), random.normal(size=(2, 3))
    y_bar = {"y": random.normal(size=2), "s": 0.7}
    _, y_dot = jvp(f, (x, w), (x_dot, w_dot))
    x_bar, w_bar = vjp(f, x, w)[1](y_bar)
    left = y_bar["y"] @ y_dot["y"] + y_bar["s"] * y_dot["s"]
    assert left == pytest.approx(x_bar @ x_dot + (w_bar * w_dot).sum(), rel=1e-13)


# -- linearize ---------------------------------------------------------------------------------------------------------


def test_linearize_gives_the_value_and_the_linear_map():
    y, f_jvp = linearize(lambda x, y: math.sin(x) * y, 0.5, 3.0)
    assert y == math.sin(0.5) * 3.0
    assert f_jvp(1.0, 0.0) == pytest.approx(3.0 * math.cos(0.5), rel=1e-15)
    assert f_jvp(0.0, 1.0) == pytest.approx(math.sin(0.5), rel=1e-15)
    assert f_jvp(2.0, None) == pytest.approx(6.0 * math.cos(0.5), rel=1e-15)


def test_linearize_calls_the_function_once():
    calls = []

    def f(x):
        calls.append(x.sum())
        return np.sin(x) * x

    x = np.array([0.3, 0.7])
    _, f_jvp = linearize(f, x)
    for x_dot in (np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.array([2.0, -1.0])):
        np.testing.assert_allclose(f_jvp(x_dot), (np.cos(x) * x + np.sin(x)) * x_dot, rtol=1e-15)
    assert calls == [1.0]


def test_linearize_takes_any_structure_of_arguments_and_result():
    f = lambda p, n: ([p["a"] ** n, p["b"] * p["a"]], "text")
    y, f_jvp = linearize(f, {"a": 2.0, "b": np.array([1.0, 3.0])}, 3.0)
    y_dot = f_jvp({"a": 1.0, "b": None}, None)
    assert (
        y_dot[0][0] == pytest.approx(12.0, rel=1e-15)
        and (y_dot[0][1] == [1.0, 3.0]).all()
        and y_dot[1] is None
    )


def test_linearize_agrees_with_jvp_on_a_program_that_writes_arrays():
    def f(x):
        a = np.zeros(4)
        a[0] = x[0]
        for i in range(1, 4):
            a[i] = a[i - 1] * x[i % 2] + math.exp(-a[i - 1])
        return a

    x = np.array([0.4, 1.2])
    _, f_jvp = linearize(f, x)
    for x_dot in np.eye(2):
        np.testing.assert_allclose(f_jvp(x_dot), jvp(f, (x,), (x_dot,))[1], rtol=1e-14)


def test_a_linear_map_names_the_tangent_that_does_not_fit():
    _, f_jvp = linearize(np.sin, np.ones(3))
    with pytest.raises(TangentError, match=r"tangents\[0\] must be an array of shape \(3,\)"):
        f_jvp(np.ones(2))
    with pytest.raises(TangentError, match="1 primals and 2 tangents"):
        f_jvp(np.ones(3), np.ones(3))


def test_a_linear_map_of_a_constant_is_zero():
    y, f_jvp = linearize(lambda x: 7.0, 2.0)
    assert (y, f_jvp(1.0)) == (7.0, 0.0)


def test_the_linear_map_is_differentiated_with_what_it_depends_on():
    # f_jvp(t) = 2 x t
    assert grad(lambda x: linearize(lambda y: y * y, x)[1](3.0))(5.0) == 6.0
    assert grad(lambda t: linearize(lambda y: y * y, 5.0)[1](t))(3.0) == 10.0


# -- derivative --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", range(1, 9))
def test_derivatives_of_the_sine_to_order_8(order):
    for x in (-1.3, 0.0, 0.4, 2.0):
        assert derivative(math.sin, order=order)(x) == pytest.approx(
            math.sin(x + order * math.pi / 2), abs=1e-13
        )


@pytest.mark.parametrize("order", range(1, 9))
def test_derivatives_of_a_rational_function_to_order_8(order):
    # d^n/dx^n 1 / (1 + x) = (-1)^n n! / (1 + x)^(n + 1)
    expected = (-1) ** order * math.factorial(order) / 1.5 ** (order + 1)
    assert derivative(lambda x: 1.0 / (1.0 + x), order=order)(0.5) == pytest.approx(expected, rel=1e-12)


def test_a_derivative_may_have_any_structure():
    f = lambda t: {"x": [math.cos(t), math.sin(t)], "a": np.array([t, t**2, t**3])}
    d = derivative(f)(0.5)
    assert d["x"] == pytest.approx([-math.sin(0.5), math.cos(0.5)], rel=1e-15)
    np.testing.assert_allclose(d["a"], [1.0, 1.0, 0.75], rtol=1e-15)
    second = derivative(f, order=2)(0.5)
    assert second["x"] == pytest.approx([-math.cos(0.5), -math.sin(0.5)], rel=1e-15)
    np.testing.assert_allclose(second["a"], [0.0, 2.0, 3.0], rtol=1e-15)


def test_a_derivative_with_its_value():
    assert derivative(lambda t: t**3, value=True)(2.0) == (8.0, 12.0)
    assert derivative(lambda t: t**3, order=2, value=True)(2.0) == (8.0, 12.0)
    assert derivative(lambda t: t**3, order=0, value=True)(2.0) == (8.0, 8.0)


def test_further_arguments_are_passed_on():
    f = lambda t, a, *, b: a * t**b
    assert derivative(f)(2.0, 3.0, b=3.0) == pytest.approx(36.0, rel=1e-15)
    assert derivative(f, order=3)(2.0, 3.0, b=3.0) == pytest.approx(18.0, rel=1e-15)


def test_an_int_argument_is_a_real_number():
    assert derivative(lambda t: t**3)(2) == 12.0


def test_a_constant_has_derivative_zero():
    assert derivative(lambda t: 3.0)(1.0) == 0.0
    assert derivative(lambda t: 3.0, order=4)(1.0) == 0.0
    assert derivative(lambda t: t, order=2)(1.0) == 0.0


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_the_complex_derivative_of_a_holomorphic_function(order):
    z = 0.3 - 0.8j
    found = derivative(lambda z: cmath.exp(2.0j * z) / z, order=order)(z)
    # Leibniz: sum of C(n, k) (2i)^(n - k) e^(2iz) (-1)^k k! / z^(k + 1)
    expected = sum(
        math.comb(order, k)
        * (2j) ** (order - k)
        * cmath.exp(2j * z)
        * (-1) ** k
        * math.factorial(k)
        / z ** (k + 1)
        for k in range(order + 1)
    )
    assert found == pytest.approx(expected, rel=1e-12)


def test_the_complex_derivative_of_a_numpy_program():
    z = 0.3 - 0.8j
    found = derivative(lambda z: np.sum(np.array([1.0, 2.0, 3.0]) * np.exp(z) ** np.arange(3)))(z)
    assert found == pytest.approx(2.0 * cmath.exp(z) + 6.0 * cmath.exp(2 * z), rel=1e-13)


def test_a_complex_function_of_a_real_number_has_a_derivative():
    assert derivative(lambda t: cmath.exp(1j * t))(0.5) == pytest.approx(1j * cmath.exp(0.5j), rel=1e-15)


@pytest.mark.parametrize(
    "f",
    [
        lambda z: z.conjugate(),
        abs,
        lambda z: z.real * z,
        lambda z: z * abs(z),
        lambda z: np.conj(z) * z,
        lambda z: z.imag,
    ],
    ids=["conjugate", "abs", "real part", "z |z|", "numpy", "imag"],
)
def test_a_function_that_is_not_holomorphic_is_refused(f):
    with pytest.raises(NotHolomorphicError, match="wirtinger"):
        derivative(f)(1.0 + 2.0j)


def test_where_a_complex_derivative_exists_by_chance_it_is_given():
    assert derivative(lambda z: z * z.conjugate())(0j) == 0  # |z|^2 at 0
    assert derivative(lambda z: z.real - z.real + 3.0 * z)(1 + 1j) == 3.0


@pytest.mark.parametrize("order", [12, 20, 30])
def test_derivatives_of_high_order(order):
    assert derivative(lambda x: math.exp(0.5 * x), order=order)(0.7) == pytest.approx(
        0.5**order * math.exp(0.35), rel=1e-12
    )
    expected = math.factorial(order) / 0.8 ** (order + 1)
    assert derivative(lambda x: 1.0 / (1.0 - x), order=order)(0.2) == pytest.approx(expected, rel=1e-12)


def test_a_derivative_runs_its_function_once_whatever_the_order():
    calls = []
    f = lambda x: (calls.append(x), x**9)[1]
    assert derivative(f, order=6)(1.1) == pytest.approx(math.perm(9, 6) * 1.1**3, rel=1e-13)
    assert calls == [1.1]


def test_an_order_whose_factorial_is_no_float_is_refused():
    assert derivative(lambda x: math.exp(0.01 * x), order=170)(0.0) == pytest.approx(0.01**170, rel=1e-10)
    with pytest.raises(ArgumentError, match="taylor"):
        derivative(math.exp, order=171)(0.0)


def test_derivatives_of_higher_order_are_exact_for_fractions():
    assert derivative(lambda x: x**4, order=2)(Fraction(1, 3)) == Fraction(12, 9)


@pytest.mark.parametrize("order", [2, 3, 4])
def test_a_function_that_is_not_holomorphic_is_refused_at_higher_order(order):
    # at 0 the conjugate to the power n looks like z^n along 1, and for n = 4 along i too
    with pytest.raises(NotHolomorphicError):
        derivative(lambda z: z.conjugate() ** order, order=order)(0j)


def test_derivatives_of_0_d_arrays_inside_other_derivatives():
    f = lambda t: np.array(t**4)
    for order in (1, 2, 3):
        found = derivative(f, order=order)(2.0)
        assert found.shape == () and found == math.perm(4, order) * 2.0 ** (4 - order)
        assert grad(derivative(f, order=order))(2.0) == math.perm(4, order + 1) * 2.0 ** (3 - order)
    assert grad(jacobian(f))(2.0) == 48.0
    holomorphic = derivative(lambda z: np.array(z**4))
    assert jacobian(lambda z: holomorphic(z) * 1.0)(2.0 + 1j) == pytest.approx(12 * (2 + 1j) ** 2)


@pytest.mark.parametrize(
    "nothing", [None, "text", math.sin, lambda x: x], ids=["None", "text", "C", "a function"]
)
def test_a_result_without_numbers_has_no_derivative(nothing):
    for order in (1, 2):
        with pytest.raises(ArgumentError, match="holds no real or complex number"):
            derivative(lambda t: nothing, order=order)(1.0)


@pytest.mark.parametrize("wrong", ["text", np.ones(2), [1.0], None, True])
def test_derivative_is_by_one_number(wrong):
    with pytest.raises(ArgumentError, match="derivative is by one number"):
        derivative(lambda t: 1.0)(wrong)


@pytest.mark.parametrize("order", [-1, 1.5, "2", True])
def test_an_order_is_a_natural_number(order):
    with pytest.raises(ArgumentError, match="order must be"):
        derivative(math.sin, order=order)


def test_derivative_inside_and_outside_other_derivatives():
    # d/dx [x * d/dt (t^2 x)(x)] = d/dx 2 x^3 = 6 x^2
    f = lambda x: x * derivative(lambda t: t * t * x)(x)
    assert grad(f)(2.0) == derivative(f)(2.0) == 24.0
    assert derivative(grad(lambda x: x**4))(2.0) == 48.0
    assert grad(derivative(lambda x: x**5, order=3))(2.0) == 240.0
    assert derivative(derivative(lambda x: x**5, order=2), order=2)(2.0) == 240.0


# -- forwarddiff -------------------------------------------------------------------------------------------------------


def test_forwarddiff_is_the_function_in_a_plain_call_and_in_forward_mode():
    f = lambda x: math.sin(x) * x
    assert forwarddiff(f, 0.5) == f(0.5)
    assert derivative(lambda x: forwarddiff(f, x))(0.5) == derivative(f)(0.5)


def test_forwarddiff_gives_the_gradient_inside_reverse_mode():
    f = lambda x: forwarddiff(lambda x: math.sin(x) * x, x) * 2.0
    assert grad(f)(0.5) == pytest.approx(2.0 * (math.cos(0.5) * 0.5 + math.sin(0.5)), rel=1e-15)


def test_forwarddiff_runs_forward():
    levels = []

    def inner(x):
        levels.append(type(plaingrad.rewrite.CURRENT.get()).__name__)
        return x * x

    assert grad(lambda x: forwarddiff(inner, x))(3.0) == 6.0
    assert levels == ["ForwardLevel"]


def test_forwarddiff_differentiates_what_its_function_captures():
    # c * (c x^2): d/dx = 2 c^2 x, d/dc = 2 c x^2
    f = lambda x, c: c * forwarddiff(lambda x: c * x * x, x)
    assert grad(f, argnums=(0, 1))(3.0, 2.0) == (24.0, 36.0)
    w = np.array([1.0, 2.0])
    g = lambda w: forwarddiff(lambda s: (w * s).sum() * s, w[0])  # (w0 + w1) w0^2
    np.testing.assert_allclose(grad(g)(w), [2 * 3.0 + 1.0, 1.0], rtol=1e-15)


def test_forwarddiff_differentiates_globals_and_attributes_that_its_function_reads():
    class Model:
        def __init__(self, k):
            self.k = k

        def energy(self, x):
            return self.k * x * x

    def f(k, x):
        return forwarddiff(Model(k).energy, x)

    assert grad(f, argnums=(0, 1))(3.0, 2.0) == (4.0, 12.0)


def test_forwarddiff_of_arrays_and_structures():
    def inner(t):
        a, b = t["a"], t["b"]
        return [a * b.sum(), (b * b,)]

    def f(a, b):
        y = forwarddiff(inner, {"a": a, "b": b, "n": "text"})
        return y[0] * 2.0 + (y[1][0] * np.array([1.0, 10.0])).sum()

    a_bar, b_bar = grad(f, argnums=(0, 1))(3.0, np.array([4.0, 5.0]))
    assert a_bar == 18.0
    np.testing.assert_allclose(b_bar, [6.0 + 8.0, 6.0 + 100.0], rtol=1e-15)


def test_forwarddiff_of_complex_numbers():
    f = lambda z: abs(z * z + z.conjugate()) ** 2
    z = 0.5 - 0.3j
    # with w = z^2 + z*: f = |w|^2, grad = 2 (conj(w_z) w + w_z* conj(w)), w_z = 2 z, w_z* = 1
    w = z * z + z.conjugate()
    expected = 2 * ((2 * z).conjugate() * w + w.conjugate())
    assert grad(lambda z: forwarddiff(f, z))(z) == pytest.approx(expected, rel=1e-13)
    zs = np.array([z, 2 * z])
    found = grad(lambda zs: forwarddiff(lambda zs: np.sum(np.abs(zs * zs + np.conj(zs)) ** 2), zs))(zs)
    w = zs * zs + zs.conj()
    np.testing.assert_allclose(found, 2 * ((2 * zs).conj() * w + w.conj()), rtol=1e-13)


def test_forwarddiff_at_higher_order():
    f = lambda x: forwarddiff(lambda x: x**4, x)
    assert grad(f)(2.0) == 32.0
    assert grad(grad(f))(2.0) == 48.0
    assert grad(grad(grad(f)))(2.0) == 48.0
    assert derivative(grad(f))(2.0) == grad(derivative(f))(2.0) == 48.0
    # captured: d2/dc2 of c^3 * c
    assert grad(grad(lambda c: forwarddiff(lambda x: c**3 * x, c)))(2.0) == 48.0


def test_forwarddiff_of_a_value_that_is_not_differentiated():
    assert grad(lambda x: x * forwarddiff(math.exp, 0.0))(3.0) == 1.0


def test_forwarddiff_whose_result_has_no_derivative():
    assert grad(lambda x: x * forwarddiff(lambda x: 7, x))(3.0) == 7.0
    assert grad(lambda x: x * forwarddiff(lambda x: 7.0, x))(3.0) == 7.0


def test_forwarddiff_refuses_a_function_that_changes_its_argument():
    def doubles(x):
        x *= 2.0
        return x.sum()

    with pytest.raises(ArgumentError, match="changed its argument in place"):
        grad(lambda x: forwarddiff(doubles, 1.0 * x))(np.ones(2))


def test_forwarddiff_takes_no_objects():
    with pytest.raises(ArgumentError, match="forwarddiff takes"):
        grad(lambda k: forwarddiff(lambda s: s.stiffness, Spring(k, "s", 1.0)))(3.0)


def test_forwarddiff_may_return_anything():
    assert grad(lambda k: forwarddiff(lambda k: Spring(k * k, "s", 1.0), k).stiffness)(3.0) == 6.0
    assert grad(lambda k: forwarddiff(lambda k: lambda: k * k, k)() * k)(3.0) == 27.0
    assert grad(lambda k: sum(forwarddiff(lambda k: {k * k, 7.0}, k)))(3.0) == 6.0
    assert grad(lambda k: sum(forwarddiff(lambda k: list(k * i for i in range(4)), k)))(3.0) == 6.0
    assert grad(lambda k: forwarddiff(lambda k: k, k) * 2.0)(3.0) == 2.0


def test_what_forwarddiff_leaves_elsewhere_is_differentiated():
    def f(x, c):
        box = []
        y = forwarddiff(lambda t: (box.append(t * t), box.append(t), box.append(c * t), t**3)[3], x)
        return box[0] * y + box[1] + box[2] * 10.0  # x^5 + x + 10 c x

    assert grad(f, argnums=(0, 1))(2.0, 3.0) == (80.0 + 1.0 + 30.0, 20.0)
    assert derivative(grad(f), order=1)(2.0, 3.0) == grad(grad(f))(2.0, 3.0) == 160.0


def test_arrays_that_forwarddiff_writes_into_are_differentiated():
    def f(x, c):
        buffer = np.zeros(3)
        buffer[1] = c

        def body(t):
            buffer[0] = t * c
            buffer[2] = buffer[1] * t * t
            return t

        y = forwarddiff(body, x)
        buffer[1] = buffer[1] * y
        return (buffer * np.array([1.0, 10.0, 100.0])).sum()  # c x + 10 c x + 100 c x^2

    assert grad(f, argnums=(0, 1))(2.0, 3.0) == (33.0 + 1200.0, 22.0 + 400.0)
    assert grad(grad(f))(2.0, 3.0) == 600.0


def test_what_forwarddiff_leaves_before_an_exception_is_differentiated():
    def f(x):
        box = []

        def body(t):
            box.append(t * t)
            raise KeyError

        try:
            forwarddiff(body, x)
        except KeyError:
            return box[0]

    assert grad(f)(3.0) == 6.0


def test_forwarddiff_keeps_memory_down():
    import gc

    from plaingrad.rewrite import CURRENT

    lengths = []

    def settled(x):
        for _ in range(10_000):
            x = 0.5 * (x + 2.0 / x)
        return x

    def f(x):
        y = forwarddiff(settled, x)
        gc.collect()
        lengths.append((len(CURRENT.get().tape), len(CURRENT.get().alive)))
        return y * x

    assert grad(f)(3.0) == pytest.approx(math.sqrt(2.0), rel=1e-12)
    assert lengths[0][0] < 100 and lengths[0][1] < 100


# -- a mode for a function ---------------------------------------------------------------------------------------------


def test_a_function_that_prefers_forward_mode_is_pushed_inside_reverse_mode():
    levels = []

    @prefer_mode("forward")
    def f(x, y, *, k=2.0):
        levels.append(type(plaingrad.rewrite.CURRENT.get()).__name__)
        return k * x * y**2

    assert f(3.0, 4.0) == 96.0
    assert grad(f, argnums=(0, 1))(3.0, 4.0) == (32.0, 48.0)
    assert grad(lambda k: f(2.0, 3.0, k=k))(1.0) == 18.0
    assert levels[1] == "ForwardLevel" and plaingrad.value_and_grad(f)(3.0, 4.0) == (96.0, 32.0)
    assert grad(lambda x: f(x, 4.0) * x)(3.0) == 192.0
    assert levels == levels[:1] + ["ForwardLevel", "ReverseLevel", "ForwardLevel", "ForwardLevel"]
    assert f.__name__ == "f"


def test_the_gradient_of_a_function_that_prefers_forward_mode():
    @prefer_mode("forward")
    def f(p, n=2):
        return (p["a"] * p["b"] ** n).sum()

    found = grad(f)({"a": 3.0, "b": np.array([1.0, 2.0]), "c": "text"})
    assert found["a"] == 5.0 and found["b"].tolist() == [6.0, 12.0] and found["c"] is None
    value, (gradient,) = plaingrad.value_and_grad(f, argnums=(0,))({"a": 3.0, "b": np.array([1.0, 2.0])}, n=1)
    assert value == 9.0 and gradient["a"] == 3.0
    g = prefer_mode("forward")(lambda z: (abs(z) ** 2, "aux"))
    assert grad(g, has_aux=True)(1 + 2j) == (2 + 4j, "aux")
    assert plaingrad.value_and_grad(g, has_aux=True)(1 + 2j) == ((pytest.approx(5.0), "aux"), 2 + 4j)
    assert plaingrad.hessian(prefer_mode("forward")(lambda x: x**4))(2.0) == 48.0
    with pytest.raises(NonScalarOutputError):
        grad(prefer_mode("forward")(lambda x: [x]))(1.0)


def test_a_method_may_prefer_forward_mode():
    levels = []

    class Model:
        def __init__(self, k):
            self.k = k

        @prefer_mode("forward")
        def energy(self, x, *, scale):
            levels.append(type(plaingrad.rewrite.CURRENT.get()).__name__)
            return scale * self.k * x**2

    f = lambda k, x, scale: Model(k).energy(x, scale=scale)
    assert f(2.0, 3.0, 5.0) == 90.0
    assert grad(f, argnums=(0, 1, 2))(2.0, 3.0, 5.0) == (45.0, 60.0, 18.0)
    assert grad(grad(f, argnums=1), argnums=1)(2.0, 3.0, 5.0) == 20.0
    assert levels[1] == "ForwardLevel"


def test_a_function_of_many_numbers_is_not_pushed_whatever_it_prefers():
    levels = []

    @prefer_mode("forward")
    def f(x):
        levels.append(type(plaingrad.rewrite.CURRENT.get()).__name__)
        return (x * x).sum()

    x = np.ones(1000)
    np.testing.assert_allclose(grad(f)(x), 2.0 * x)
    assert levels == ["ReverseLevel"]


def test_a_preferred_mode_is_followed_by_jacobian():
    levels = []

    def f(x):
        levels.append(type(plaingrad.rewrite.CURRENT.get()).__name__)
        return x * x

    for mode in ("forward", "reverse"):
        np.testing.assert_allclose(jacobian(prefer_mode(mode)(f))(np.arange(3.0)), np.diag([0.0, 2.0, 4.0]))
    assert levels == ["ForwardLevel", "ReverseLevel"]


def test_a_mode_that_does_not_exist_is_refused():
    with pytest.raises(ArgumentError, match='"forward", "reverse" or "checkpoint"'):
        prefer_mode("sideways")


# -- threads -----------------------------------------------------------------------------------------------------------


def test_forward_mode_in_eight_threads_at_once():
    wrong = []

    def work(k):
        for i in range(50):
            x = k + i / 50.0
            d = derivative(lambda t: t * math.sin(t) + derivative(lambda s: s * t * k)(t))(x)
            if not math.isclose(d, math.sin(x) + x * math.cos(x) + k, rel_tol=1e-12):
                wrong.append((k, i, d))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_function_that_is_not_holomorphic_has_no_derivative_of_any_order(order):
    for f in (lambda z: z.conjugate(), lambda z: z.real, lambda z: z * z + z.conjugate()):
        with pytest.raises(plaingrad.NotHolomorphicError):
            plaingrad.derivative(f, order=order)(1 + 2j)


def test_the_order_of_a_derivative_may_be_an_integer_of_numpy():
    assert plaingrad.derivative(lambda x: x**3, order=np.int64(2))(2.0) == 12.0


def test_rounding_of_a_lower_derivative_that_is_zero_is_not_taken_for_a_function_that_is_not_holomorphic():
    for at in (0.3 + 0.1j, 1.7 - 0.4j, -2.3 + 5.1j):

        def stationary(z, at=at):
            return z * z * z - 3.0 * (at * at) * z

        assert abs(plaingrad.derivative(stationary, order=2)(at) - 6 * at) < 1e-12 * abs(6 * at)
        assert abs(plaingrad.derivative(stationary, order=3)(at) - 6) < 1e-12
