"""Jacobians, Hessians, products with them and Wirtinger pairs, against closed forms and one another."""

import math
import threading
from collections import namedtuple
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plaingrad import (
    ArgumentError,
    NonScalarOutputError,
    NotHolomorphicError,
    Tangent,
    TangentError,
    grad,
    hessian,
    hvp,
    jacobian,
    linearize,
    vhp,
    vjp,
    wirtinger,
)

MODES = ("forward", "reverse", "auto")
every_mode = pytest.mark.parametrize("mode", MODES)


@dataclass
class Spring:
    stiffness: float
    name: str
    mass: float


Pair = namedtuple("Pair", "a b")


# -- shapes and structures ---------------------------------------------------------------------------------------------


@every_mode
def test_the_jacobian_of_a_number_by_a_number_is_a_number(mode):
    found = jacobian(lambda x: x**3, mode=mode)(2.0)
    assert found == 12.0 and type(found) is float
    assert jacobian(lambda x: x**3, mode=mode)(2) == 12.0


@every_mode
def test_the_jacobian_of_an_array_by_an_array_has_the_shape_of_both(mode):
    random = np.random.default_rng(0)
    w, x = random.normal(size=(4, 3)), random.normal(size=(3, 2))
    found = jacobian(lambda x: w @ x, mode=mode)(x)
    assert found.shape == (4, 2, 3, 2)
    np.testing.assert_allclose(found, np.einsum("ij,kl->ikjl", w, np.eye(2)), rtol=1e-15, atol=1e-15)


@every_mode
def test_a_number_by_an_array_is_the_gradient_and_an_array_by_a_number_its_derivative(mode):
    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(jacobian(lambda x: (x**2).sum(), mode=mode)(x), 2 * x, rtol=1e-15)
    np.testing.assert_allclose(jacobian(lambda t: t**2 * x, mode=mode)(3.0), 6.0 * x, rtol=1e-15)


@every_mode
def test_a_square_jacobian_in_closed_form(mode):
    # y_i = sin(x_i) x_(i-1)
    x = np.linspace(0.2, 1.7, 7)
    found = jacobian(lambda x: np.sin(x) * np.roll(x, 1), mode=mode)(x)
    expected = np.diag(np.cos(x) * np.roll(x, 1)) + np.roll(np.diag(np.sin(np.roll(x, -1))), 1, axis=0)
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-15)


@every_mode
def test_the_structure_of_the_result_holds_that_of_the_argument(mode):
    def f(p):
        a, (b, c) = p["a"], p["bc"]
        return {"s": a * b, "l": [c * a, "text", 3], "t": Pair(b, c.sum())}

    found = jacobian(f, mode=mode)({"a": 2.0, "bc": (3.0, np.array([4.0, 5.0])), "n": "text", "i": 7})
    by = lambda d: (d["a"], d["bc"][0], d["bc"][1].tolist(), d["n"], d["i"])
    assert by(found["s"]) == (3.0, 2.0, [0.0, 0.0], None, None)
    assert found["l"][1:] == [None, None]
    d = found["l"][0]
    assert d["a"].tolist() == [4.0, 5.0] and d["bc"][0].tolist() == [0.0, 0.0]
    assert d["bc"][1].tolist() == [[2.0, 0.0], [0.0, 2.0]]
    assert type(found["t"]) is Pair and by(found["t"].a) == (0.0, 1.0, [0.0, 0.0], None, None)
    assert by(found["t"].b) == (0.0, 0.0, [1.0, 1.0], None, None)


@every_mode
def test_objects_on_both_sides(mode):
    found = jacobian(lambda s: Spring(s.stiffness * s.mass, "t", s.mass**2), mode=mode)(Spring(2.0, "s", 3.0))
    assert type(found) is Tangent and found.name is None
    assert (found.stiffness.stiffness, found.stiffness.mass, found.stiffness.name) == (3.0, 2.0, None)
    assert (found.mass.stiffness, found.mass.mass) == (0.0, 6.0)


@every_mode
def test_several_arguments_give_a_tuple_in_each_leaf(mode):
    f = lambda a, b, n: [a * b, a**n]
    assert jacobian(f, argnums=(0, 1), mode=mode)(2.0, 3.0, 3.0) == [(3.0, 2.0), (12.0, 0.0)]
    assert jacobian(f, argnums=(1,), mode=mode)(2.0, 3.0, 3.0) == [(2.0,), (0.0,)]
    assert jacobian(f, argnums=-1, mode=mode)(2.0, 3.0, 3.0) == [0.0, pytest.approx(8.0 * math.log(2.0))]


@every_mode
def test_a_list_that_stands_in_two_places_is_one_variable(mode):
    shared = [2.0, 3.0]
    found = jacobian(lambda p: p[0][0] * p[1][1], mode=mode)([shared, shared])
    assert found[0] is found[1] and found[0] == [3.0, 2.0]


@every_mode
def test_has_aux_returns_the_second_result(mode):
    found, aux = jacobian(lambda x: (x**2, {"x": x}), mode=mode, has_aux=True)(np.array([1.0, 2.0]))
    np.testing.assert_allclose(found, np.diag([2.0, 4.0]))
    assert aux["x"].tolist() == [1.0, 2.0]
    with pytest.raises(NonScalarOutputError, match="must return"):
        jacobian(lambda x: x, mode=mode, has_aux=True)(1.0)


@every_mode
def test_constants_and_entries_without_influence_give_zeros(mode):
    found = jacobian(lambda x: [5.0, np.ones(2), x[0]], mode=mode)(np.array([1.0, 2.0]))
    assert (
        found[0].tolist() == [0.0, 0.0]
        and found[1].tolist() == [[0.0, 0.0]] * 2
        and found[2].tolist() == [1, 0]
    )
    assert jacobian(lambda x: 5, mode=mode)(2.0) == 0.0


@every_mode
def test_empty_arrays_have_empty_jacobians(mode):
    assert jacobian(lambda x: x * 2.0, mode=mode)(np.zeros(0)).shape == (0, 0)
    assert jacobian(lambda x: x[:0], mode=mode)(np.zeros(3)).shape == (0, 3)


@every_mode
def test_single_precision_stays_single(mode):
    x = np.arange(3, dtype=np.float32)
    assert jacobian(lambda x: x * x, mode=mode)(x).dtype == np.float32
    assert jacobian(lambda x: np.float32(3.0) * x.astype(np.float64), mode=mode)(x).dtype == np.float64
    assert type(jacobian(lambda x: x * x, mode=mode)(np.float32(3.0))) is np.float32


@every_mode
def test_fractions_and_decimals_stay_exact(mode):
    found = jacobian(lambda x: [x[0] * x[1] ** 2, x[0]], mode=mode)([Fraction(1, 3), Fraction(1, 2)])
    assert found == [[Fraction(1, 4), Fraction(1, 3)], [Fraction(1), Fraction(0)]]
    assert all(type(entry) is Fraction for row in found for entry in row)
    assert jacobian(lambda x: x * x, mode=mode)(Decimal("1.1")) == Decimal("2.2")


def test_the_hessian_of_fractions_is_exact():
    found = hessian(lambda x: x[0] * x[1] ** 2)([Fraction(1, 3), Fraction(1, 2)])
    assert found == [[0, 1], [1, Fraction(2, 3)]]


@every_mode
def test_numbers_of_numpy_give_numbers_of_numpy(mode):
    assert type(jacobian(lambda x: x * x, mode=mode)(np.float64(2.0))) is np.float64
    assert type(jacobian(lambda x: x * x, mode=mode)(np.complex128(2.0j))) is np.complex128
    assert type(jacobian(lambda x: float(x) * 2.0, mode=mode)(np.float64(2.0))) is float


@every_mode
def test_keyword_arguments_are_passed_on(mode):
    assert jacobian(lambda x, *, k: k * x, mode=mode)(2.0, k=3.0) == 3.0


@every_mode
def test_the_function_keeps_its_name(mode):
    def energy(x):
        return x

    assert jacobian(energy, mode=mode).__name__ == "energy"


# -- modes and chunks --------------------------------------------------------------------------------------------------


def chain(x):
    y = np.sin(x) * x.sum()
    for _ in range(3):
        y = np.tanh(y) * np.roll(x, 1) + 0.1 * y[::-1]
    return y


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 5, 7, 100])
def test_every_chunk_size_gives_the_same_jacobian(chunk_size):
    x = np.linspace(-1.0, 1.0, 7)
    expected = jacobian(chain, mode="reverse")(x)
    np.testing.assert_allclose(
        jacobian(chain, mode="forward", chunk_size=chunk_size)(x), expected, rtol=1e-12, atol=1e-14
    )


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 100])
def test_chunks_that_cut_through_the_leaves_of_a_structure(chunk_size):
    f = lambda p: [p["a"] * p["b"], {"c": p["c"][0] ** 2 * p["b"].sum()}]
    p = {"a": 2.0, "b": np.array([3.0, 4.0]), "c": [5.0]}
    found = jacobian(f, mode="forward", chunk_size=chunk_size)(p)
    assert found[0]["a"].tolist() == [3.0, 4.0] and found[0]["b"].tolist() == [[2.0, 0.0], [0.0, 2.0]]
    assert found[0]["c"][0].tolist() == [0.0, 0.0]
    assert (
        found[1]["c"]["a"] == 0.0
        and found[1]["c"]["b"].tolist() == [25.0, 25.0]
        and found[1]["c"]["c"] == [70.0]
    )


@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_forward_and_reverse_agree_on_random_linear_maps_and_their_squares(m, n, chunk_size, seed):
    random = np.random.default_rng(seed)
    a, x = random.normal(size=(m, n)), random.normal(size=n)
    f = lambda x: (a @ x) ** 2
    expected = 2.0 * (a @ x)[:, None] * a
    np.testing.assert_allclose(
        jacobian(f, mode="forward", chunk_size=chunk_size)(x), expected, rtol=1e-12, atol=1e-14
    )
    np.testing.assert_allclose(jacobian(f, mode="reverse")(x), expected, rtol=1e-12, atol=1e-14)


def test_a_function_is_called_once_for_each_chunk_and_once_in_reverse():
    calls = []

    def f(x):
        calls.append(1)
        return x * x

    x = np.arange(6.0)
    for mode, chunk_size, expected in (
        ("forward", None, 1),
        ("forward", 4, 2),
        ("forward", 1, 6),
        ("reverse", None, 1),
    ):
        calls.clear()
        jacobian(f, mode=mode, chunk_size=chunk_size)(x)
        assert len(calls) == expected


@pytest.mark.parametrize("chunk_size", [None, 1, 2])
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_a_function_that_changes_its_arguments_leaves_them_as_one_call_does(mode, chunk_size):
    def f(p):
        p["x"] *= 2.0
        p["list"].append(p["x"].sum())
        p["n"] = p["n"] + 1
        return p["x"] ** 2

    p = {"x": np.array([1.0, 2.0, 3.0]), "list": [0.5], "n": 7}
    found = jacobian(f, mode=mode, chunk_size=chunk_size)(p)
    np.testing.assert_allclose(found["x"], np.diag([8.0, 16.0, 24.0]))
    assert p["x"].tolist() == [2.0, 4.0, 6.0] and p["list"] == [0.5, 12.0] and p["n"] == 8


def test_an_object_that_a_function_changes_is_put_back_between_chunks():
    class Model:
        def __init__(self):
            self.w = np.array([1.0, 2.0, 3.0])
            self.k = 2.0

    def f(model):
        if hasattr(model, "cached"):
            return model.cached * 0.0
        model.cached = 1.0
        model.k = model.k * 2.0
        return model.w**2 * model.k

    model = Model()
    found = jacobian(f, mode="forward", chunk_size=1)(model)
    np.testing.assert_allclose(found.w, np.diag([8.0, 16.0, 24.0]))
    np.testing.assert_allclose(found.k, [2.0, 8.0, 18.0])
    assert model.k == 4.0 and model.cached == 1.0


def test_chunks_by_one_list_in_several_threads():
    x = [1.0, 2.0, 3.0, 4.0]
    f = lambda x: [v * v * x[0] for v in x]
    expected = jacobian(f, mode="reverse")(x)
    wrong = []

    def work():
        for _ in range(10):
            found = jacobian(f, mode="forward", chunk_size=1)(x)
            if found != expected:
                wrong.append(found)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [] and x == [1.0, 2.0, 3.0, 4.0]


def test_a_function_that_changes_its_arguments_is_called_twice_as_if_once():
    calls = []

    def f(x, log):
        calls.append(1)
        x *= 2.0
        log.append(1.0)
        return np.outer(x, x)

    x, log = np.arange(1.0, 7.0), [0.0]
    found = jacobian(f)(x, log)
    assert len(calls) == 2 and x.tolist() == (2.0 * np.arange(1.0, 7.0)).tolist()
    expected = 2.0 * (np.einsum("ik,j->ijk", np.eye(6), x) + np.einsum("jk,i->ijk", np.eye(6), x))
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_auto_takes_reverse_mode_for_one_result_and_forward_mode_for_many():
    from plaingrad.rewrite import CURRENT

    def levels_of(f, x):
        seen = []
        jacobian(lambda x: (seen.append(type(CURRENT.get()).__name__), f(x))[1])(x)
        return seen

    x = np.arange(1.0, 101.0)
    assert levels_of(lambda x: (x * x).sum(), x) == ["ReverseLevel"]
    assert levels_of(lambda t: [t, t * t], 3.0) == ["ForwardLevel"]
    assert levels_of(lambda x: np.outer(x, x), x)[-1] == "ForwardLevel"


# -- refusals ----------------------------------------------------------------------------------------------------------


@every_mode
@pytest.mark.parametrize(
    ("f", "args", "message"),
    [
        (lambda x: x, ("text",), "argument 0 is a str"),
        (lambda x: x, (), "there is no positional argument 0"),
        (lambda x: None, (1.0,), "is a `return` missing"),
        (lambda x: "text", (1.0,), "returned a str"),
        (lambda x: np.array([x, None]), (1.0,), "array of Python objects"),
    ],
    ids=["a string", "no argument", "no return", "a string returned", "objects returned"],
)
def test_what_has_no_jacobian_is_refused(mode, f, args, message):
    with pytest.raises(ArgumentError, match=message):
        jacobian(f, mode=mode)(*args)


def test_wrong_options_are_refused():
    with pytest.raises(ArgumentError, match='mode is "auto"'):
        jacobian(math.sin, mode="sideways")
    for chunk_size in (0, -1, 2.0, True):
        with pytest.raises(ArgumentError, match="chunk_size is a positive int"):
            jacobian(math.sin, chunk_size=chunk_size)


@every_mode
def test_exceptions_of_the_function_come_through(mode):
    def fails(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        jacobian(fails, mode=mode)(np.ones(9))


# -- nested ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inner", ["forward", "reverse"])
@pytest.mark.parametrize("outer", ["forward", "reverse"])
def test_the_jacobian_of_a_jacobian(outer, inner):
    # y_i = x_i^2 x_0
    x = np.array([2.0, 3.0, 5.0])
    found = jacobian(jacobian(lambda x: x * x * x[0], mode=inner), mode=outer)(x)
    expected = np.zeros((3, 3, 3))
    for i in range(3):
        expected[i, i, i] += 2 * x[0]
        expected[i, i, 0] += 2 * x[i]
        expected[i, 0, i] += 2 * x[i]
    np.testing.assert_allclose(found, expected, rtol=1e-14)


@pytest.mark.parametrize("inner", ["forward", "reverse"])
@pytest.mark.parametrize("chunk_size", [None, 1, 2])
def test_a_jacobian_inside_a_differentiated_function(inner, chunk_size):
    # sum over i, j of (d (x_i^2 c) / d x_j)^2 = 4 c^2 sum x^2
    f = lambda x, c: (jacobian(lambda y: y * y * c, mode=inner, chunk_size=chunk_size)(x) ** 2).sum()
    x = np.array([1.0, 2.0, 3.0])
    x_bar, c_bar = grad(f, argnums=(0, 1))(x, 2.0)
    np.testing.assert_allclose(x_bar, 32.0 * x, rtol=1e-14)
    assert c_bar == pytest.approx(16.0 * 14.0, rel=1e-14)


@pytest.mark.parametrize("inner", ["forward", "reverse"])
def test_a_jacobian_of_lists_of_numbers_inside_a_differentiated_function(inner):
    def f(x):
        rows = jacobian(lambda y: [y[0] * y[1], y[0] ** 3], mode=inner)(x)
        return rows[0][0] * rows[1][0]  # y1 * 3 y0^2

    assert grad(f)([2.0, 5.0]) == [60.0, 12.0]


# -- Hessians ----------------------------------------------------------------------------------------------------------


def rosenbrock(x):
    return sum(100.0 * (x[i + 1] - x[i] * x[i]) ** 2 + (1.0 - x[i]) ** 2 for i in range(len(x) - 1))


def rosenbrock_of_arrays(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def rosenbrock_hessian(x):
    n = len(x)
    h = np.zeros((n, n))
    for i in range(n - 1):
        h[i, i] += 1200.0 * x[i] ** 2 - 400.0 * x[i + 1] + 2.0
        h[i + 1, i + 1] += 200.0
        h[i, i + 1] -= 400.0 * x[i]
        h[i + 1, i] -= 400.0 * x[i]
    return h


@pytest.mark.parametrize("f", [rosenbrock, rosenbrock_of_arrays], ids=["a loop", "arrays"])
def test_the_hessian_of_the_rosenbrock_function_of_100_variables(f):
    x = np.linspace(-1.5, 1.7, 100)
    np.testing.assert_allclose(hessian(f)(x), rosenbrock_hessian(x), rtol=1e-12, atol=1e-11)


def test_the_hessian_of_a_list_of_100_numbers_is_a_list_of_lists():
    x = np.linspace(-1.5, 1.7, 100).tolist()
    found = hessian(rosenbrock)(x)
    assert type(found) is list and type(found[0]) is list and type(found[0][0]) is float
    np.testing.assert_allclose(np.array(found), rosenbrock_hessian(x), rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("chunk_size", [1, 3, 10])
def test_a_hessian_in_chunks(chunk_size):
    x = np.linspace(-1.0, 1.0, 7)
    found = hessian(rosenbrock_of_arrays, chunk_size=chunk_size)(x)
    np.testing.assert_allclose(found, rosenbrock_hessian(x), rtol=1e-12, atol=1e-12)


def test_a_hessian_of_several_arguments_and_structures():
    f = lambda p, c: p["a"] ** 2 * (p["b"] ** 3).sum() * c
    a, b, c = 2.0, np.array([1.0, 3.0]), 5.0
    by_p, by_c = hessian(f, argnums=(0, 1))({"a": a, "b": b}, c)
    of_a, of_b = by_p["a"], by_p["b"]  # each holds one entry for p and one for c
    assert of_a[0]["a"] == pytest.approx(2 * 28.0 * c) and of_a[1] == pytest.approx(2 * a * 28.0)
    np.testing.assert_allclose(of_a[0]["b"], 2 * a * 3 * b**2 * c)
    np.testing.assert_allclose(of_b[0]["a"], 2 * a * 3 * b**2 * c)
    np.testing.assert_allclose(of_b[0]["b"], a**2 * np.diag(6 * b) * c)
    np.testing.assert_allclose(of_b[1], a**2 * 3 * b**2)
    assert by_c[0]["a"] == pytest.approx(2 * a * 28.0) and by_c[1] == 0.0
    np.testing.assert_allclose(by_c[0]["b"], a**2 * 3 * b**2)


def test_a_hessian_of_an_object():
    found = hessian(lambda s: s.stiffness**2 * s.mass)(Spring(2.0, "s", 3.0))
    assert (found.stiffness.stiffness, found.stiffness.mass, found.mass.stiffness, found.mass.mass) == (
        6,
        4,
        4,
        0,
    )
    assert found.name is None


def test_a_hessian_of_a_number():
    assert hessian(lambda x: x**4)(2.0) == 48.0


def test_a_hessian_needs_one_real_result():
    with pytest.raises(NonScalarOutputError):
        hessian(lambda x: x * x)(np.ones(2))
    with pytest.raises(NotHolomorphicError):
        hessian(lambda z: abs(z) ** 4)(1.0 + 2.0j)


# -- products ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("product", [hvp, vhp])
@pytest.mark.parametrize("f", [rosenbrock, rosenbrock_of_arrays], ids=["a loop", "arrays"])
def test_a_product_with_the_hessian(product, f):
    x, v = np.linspace(-1.5, 1.7, 20), np.cos(np.arange(20.0))
    (found,) = product(f, (x,), (v,))
    np.testing.assert_allclose(found, rosenbrock_hessian(x) @ v, rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("product", [hvp, vhp])
def test_a_product_with_the_hessian_for_structures_and_several_arguments(product):
    f = lambda p, name, c: p["a"] ** 2 * (p["b"] ** 3).sum() * c
    a, b, c = 2.0, np.array([1.0, 3.0]), 5.0
    a_dot, b_dot, c_dot = 0.3, np.array([-1.0, 0.5]), 0.7
    found = product(f, ({"a": a, "b": b}, "text", c), ({"a": a_dot, "b": b_dot}, None, c_dot))
    s, s_dot = (b**3).sum(), (3 * b**2 * b_dot).sum()
    assert found[1] is None
    assert found[0]["a"] == pytest.approx(2 * a_dot * s * c + 2 * a * s_dot * c + 2 * a * s * c_dot)
    expected = 2 * a * a_dot * 3 * b**2 * c + a**2 * 6 * b * b_dot * c + a**2 * 3 * b**2 * c_dot
    np.testing.assert_allclose(found[0]["b"], expected)
    assert found[2] == pytest.approx(2 * a * a_dot * s + a**2 * s_dot)


@pytest.mark.parametrize("product", [hvp, vhp])
def test_a_product_along_a_part_of_the_arguments(product):
    f = lambda x, y: x**2 * y**3
    assert product(f, (2.0, 3.0), (1.0, None)) == (54.0, None)  # None: held fixed, not differentiated
    assert product(f, (2.0, 3.0), (1.0, 0.0)) == (54.0, 108.0)  # a direction like any other
    assert product(lambda x: 3.0 * x, (2.0,), (1.0,)) == (0.0,)
    assert product(lambda x: 3.0, (2.0,), (1.0,)) == (0.0,)


@pytest.mark.parametrize("product", [hvp, vhp])
def test_a_product_with_the_hessian_of_a_complex_argument_is_that_of_its_two_parts(product):
    f = lambda z: (np.abs(z) ** 4).sum()
    of_parts = lambda u: ((u[0] ** 2 + u[1] ** 2) ** 2).sum()
    z, v = np.array([1.0 + 2.0j, -0.5j]), np.array([0.3 - 1.0j, 2.0])
    expected = np.tensordot(hessian(of_parts)(np.array([z.real, z.imag])), np.array([v.real, v.imag]), 2)
    np.testing.assert_allclose(product(f, (z,), (v,))[0], expected[0] + 1j * expected[1], rtol=1e-12)


@pytest.mark.parametrize("product", [hvp, vhp])
def test_a_product_names_what_does_not_fit(product):
    with pytest.raises(TangentError, match=r"\[0\] must be an array of shape \(2,\)"):
        product(rosenbrock_of_arrays, (np.ones(2),), (np.ones(3),))
    with pytest.raises(TangentError, match="for one argument write"):
        product(rosenbrock_of_arrays, np.ones(2), np.ones(2))
    with pytest.raises(NonScalarOutputError):
        product(lambda x: x * x, (np.ones(2),), (np.ones(2),))
    with pytest.raises(ArgumentError, match="none of the arguments"):
        product(lambda x: 1.0, ("text",), (None,))


@pytest.mark.parametrize("product", [hvp, vhp])
def test_a_product_is_differentiated_in_turn(product):
    # f = x^4: f'' v = 12 x^2 v, by x: 24 x v, by v: 12 x^2
    f = lambda x, v: product(lambda x: x**4, (x,), (v,))[0]
    assert grad(f, argnums=(0, 1))(2.0, 3.0) == (144.0, 48.0)


def test_a_gradient_linearized_once_gives_many_products():
    x = np.linspace(-1.0, 1.0, 5)
    _, times_hessian = linearize(grad(rosenbrock_of_arrays), x)
    for v in np.eye(5):
        np.testing.assert_allclose(times_hessian(v), rosenbrock_hessian(x) @ v, rtol=1e-12, atol=1e-12)


# -- Wirtinger pairs ---------------------------------------------------------------------------------------------------


@every_mode
def test_the_wirtinger_pair_in_closed_form(mode):
    # z^2 z*: (2 z z*, z^2)
    z = 0.6 - 1.1j
    by_z, by_conjugate = wirtinger(lambda z: z * z * z.conjugate(), mode=mode)(z)
    assert by_z == pytest.approx(2 * z * z.conjugate(), rel=1e-14)
    assert by_conjugate == pytest.approx(z * z, rel=1e-14)


@every_mode
def test_a_holomorphic_function_has_no_derivative_by_the_conjugate(mode):
    z = np.array([0.6 - 1.1j, 2.0 + 0.5j])
    by_z, by_conjugate = wirtinger(np.exp, mode=mode)(z)
    np.testing.assert_allclose(by_z, np.diag(np.exp(z)), rtol=1e-14)
    np.testing.assert_allclose(by_conjugate, 0.0, atol=1e-14)


@every_mode
def test_for_a_real_function_the_gradient_is_twice_the_derivative_by_the_conjugate(mode):
    f = lambda z: abs(z) ** 2 + z.real * 3.0
    z = 0.6 - 1.1j
    by_z, by_conjugate = wirtinger(f, mode=mode)(z)
    assert by_conjugate == pytest.approx(grad(f)(z) / 2, rel=1e-14)
    assert by_z == pytest.approx(by_conjugate.conjugate(), rel=1e-14)


def test_wirtinger_needs_a_complex_argument():
    for wrong in (2.0, np.ones(2), [1j, 2.0]):
        with pytest.raises(ArgumentError, match="needs a complex argument"):
            wirtinger(lambda z: z)(wrong)


# -- complex Jacobians -------------------------------------------------------------------------------------------------


@every_mode
def test_the_jacobian_of_a_holomorphic_function_is_complex(mode):
    w = np.array([[1 + 2j, 0.5], [3j, -1.0]])
    z = np.array([0.3 - 1j, 2.0 + 0.1j])
    np.testing.assert_allclose(jacobian(lambda z: w @ (z * z), mode=mode)(z), w * (2 * z), rtol=1e-14)


@every_mode
def test_a_complex_result_of_a_real_argument(mode):
    t = np.array([0.3, 1.2])
    found = jacobian(lambda t: np.exp(1j * t), mode=mode)(t)
    np.testing.assert_allclose(found, np.diag(1j * np.exp(1j * t)), rtol=1e-14)
    assert jacobian(lambda t: (1 + 2j) * t, mode=mode)(3.0) == 1 + 2j


@every_mode
def test_a_real_result_of_a_complex_argument_follows_the_convention_of_grad(mode):
    z = np.array([0.3 - 1j, 2.0 + 0.1j])
    found = jacobian(lambda z: [np.abs(z) ** 2, (z.real * z.imag).sum()], mode=mode)(z)
    np.testing.assert_allclose(found[0], np.diag(2 * z), rtol=1e-14)
    np.testing.assert_allclose(found[1], z.imag + 1j * z.real, rtol=1e-14)
    np.testing.assert_allclose(found[1], grad(lambda z: (z.real * z.imag).sum())(z), rtol=1e-14)


@every_mode
def test_a_jacobian_that_is_not_holomorphic_is_refused(mode):
    with pytest.raises(NotHolomorphicError, match="Cauchy-Riemann"):
        jacobian(np.conj, mode=mode)(np.array([1j, 2.0]))


@every_mode
def test_complex_and_real_leaves_side_by_side(mode):
    f = lambda p: [p["z"] * p["t"], p["t"] ** 2]
    found = jacobian(f, mode=mode)({"z": 1 + 2j, "t": 3.0})
    assert found[0] == {"z": 3.0, "t": 1 + 2j} and found[1] == {"z": 0.0, "t": 6.0}


def test_rows_of_a_jacobian_are_pullbacks():
    x = np.linspace(-1.0, 1.0, 5)
    _, pullback = vjp(chain, x)
    whole = jacobian(chain)(x)
    for k in range(5):
        np.testing.assert_allclose(whole[k], pullback(np.eye(5)[k])[0], rtol=1e-12, atol=1e-14)
