"""Parameters in structures: leaves, maps, vectors and back, and steps along gradients."""

import dataclasses
from collections import deque, namedtuple
from decimal import Decimal

import numpy as np
import plaingrad
import pytest
from plaingrad import ArgumentError, TangentError, derivative, grad, jvp, ravel, tree_leaves, tree_map, updated

Pair = namedtuple("Pair", "a b")


@dataclasses.dataclass(frozen=True)
class Layer:
    W: np.ndarray
    b: float
    width: int = 3
    name: str = "layer"


class Slotted:
    __slots__ = ("u", "v")

    def __init__(self, u, v):
        self.u, self.v = u, v


def some_structure():
    layer = Layer(np.arange(4.0).reshape(2, 2), 0.5)
    return {"layer": layer, "pair": Pair(1.0, [2.0, 3]), "slots": Slotted(np.float32(1.5), deque([1.0])), "s": "text"}


def loss(x):
    return (
        np.sum(x["layer"].W ** 2) * x["layer"].b + x["pair"].a * x["pair"].b[0] + float(x["slots"].u) * x["slots"].v[0]
    )


def same(a, b):
    """Whether two structures are equal, types and dtypes included."""
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, Slotted):
        return same((a.u, a.v), (b.u, b.v))
    if isinstance(a, Layer):
        return same(vars(a), vars(b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple, deque)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


def test_a_structure_becomes_a_vector_and_comes_back():
    x = some_structure()
    vector, back = ravel(x)
    np.testing.assert_array_equal(vector, [0, 1, 2, 3, 0.5, 1, 2, 1.5, 1])
    assert same(back(vector), x)
    assert back(vector)["layer"] is not x["layer"]
    assert len(tree_leaves(x)) == 6


def test_the_gradient_by_the_vector_is_the_gradient_as_a_vector():
    x = some_structure()
    vector, back = ravel(x)
    of_structure = ravel(grad(loss)(x))[0]
    np.testing.assert_array_equal(of_structure, [0, 1, 2, 3, 14, 2, 1, 1, 1.5])
    np.testing.assert_array_equal(grad(lambda v: loss(back(v)))(vector), of_structure)
    weights = np.arange(1.0, 10.0)
    np.testing.assert_array_equal(ravel(grad(lambda x: ravel(x)[0] @ weights)(x))[0], weights)


def test_second_derivatives_pass_through_vectors_and_back():
    x = {"a": 2.0, "b": np.array([3.0])}
    vector, back = ravel(x)
    H = plaingrad.hessian(lambda v: back(v)["a"] ** 2 * back(v)["b"][0] ** 2)(vector)
    np.testing.assert_allclose(H, [[18.0, 24.0], [24.0, 8.0]])


def test_dtypes_and_complex_numbers_are_kept():
    x = [np.ones(2, np.float32), 1.0, 2 + 3j]
    vector, back = ravel(x)
    assert vector.dtype == complex
    assert same(back(vector), x)
    assert ravel(np.ones(2, np.float32))[0].dtype == np.float32
    assert ravel(3)[0].tolist() == [3.0]
    assert ravel({"none": None})[0].shape == (0,)


def test_what_a_structure_holds_twice_it_holds_twice_afterwards():
    shared = [1.0]
    vector, back = ravel([shared, shared])
    assert vector.tolist() == [1.0]
    a, b = back(np.array([2.0]))
    assert a is b and a == [2.0] and shared == [1.0]
    cycle = [1.0]
    cycle.append(cycle)
    again = ravel(cycle)[1](np.array([5.0]))
    assert again[0] == 5.0 and again[1] is again


def test_a_matrix_gives_leaves_with_one_more_axis():
    back = ravel({"a": 1.0, "b": np.zeros(2)})[1]
    found = back(np.arange(12.0).reshape(3, 4))
    np.testing.assert_array_equal(found["a"], [0, 1, 2, 3])
    assert found["b"].shape == (2, 4)


def test_leaves_are_mapped_beside_gradients():
    layer = some_structure()["layer"]
    slopes = grad(lambda layer: np.sum(layer.W) * layer.b)(layer)
    assert same(tree_map(lambda x, s: x - 2.0 * s, layer, slopes), Layer(layer.W - 1.0, 0.5 - 12.0))
    assert type(tree_map(lambda s: -s, slopes)) is plaingrad.Tangent
    assert grad(lambda t: tree_leaves(tree_map(lambda x: x * t, [2.0, {"a": 3.0}]))[1])(1.0) == 3.0


def test_an_object_is_stepped_along_its_gradient():
    layer = Layer(np.array([1.0, 2.0]), 0.5)
    f = lambda layer: np.sum(layer.W**2) * layer.b
    slopes = grad(f)(layer)
    for stepped in (layer - 0.1 * slopes, updated(layer, slopes, -0.1), layer + -0.1 * slopes, -0.1 * slopes + layer):
        assert type(stepped) is Layer and stepped.width == 3 and stepped.name == "layer"
        np.testing.assert_allclose(stepped.W, [0.9, 1.8])
        assert stepped.b == pytest.approx(0.0)
    assert layer.b == 0.5
    with pytest.raises(TypeError):
        slopes - layer


def test_a_step_is_differentiated_in_every_mode():
    layer = Layer(np.array([1.0, 2.0]), 0.5)
    f = lambda layer: np.sum(layer.W**2) * layer.b
    after = lambda rate: f(layer - rate * grad(f)(layer))
    # W = w(1 - 2 r b), b - 5 r: f = 5 (1 - r)^2 (0.5 - 5 r)
    slope = lambda r: -10 * (1 - r) * (0.5 - 5 * r) - 25 * (1 - r) ** 2
    assert grad(after)(0.1) == pytest.approx(slope(0.1))
    assert derivative(after)(0.1) == pytest.approx(slope(0.1))
    second = 10 * (0.5 - 0.5) + 50 * 0.9 + 50 * 0.9
    assert grad(grad(after))(0.1) == pytest.approx(second)
    assert derivative(after, order=2)(0.1) == pytest.approx(second)
    in_list = lambda p: (lambda q: q[0] * q[1])(updated(p, grad(lambda p: p[0] ** 2 * p[1])(p), -0.1))
    p = [1.0, 2.0]  # q = (p0 - 0.2 p0 p1, p1 - 0.1 p0^2)
    expected = [0.6 * 1.9 - 0.6 * 0.2, -0.2 * 1.9 + 0.6]
    assert grad(in_list)(p) == pytest.approx(expected)
    assert jvp(in_list, (p,), ([1.0, 0.0],))[1] == pytest.approx(expected[0])


def test_types_are_kept_by_steps():
    x = [np.ones(2, np.float32), np.float32(1.0), 1.0, 2, "s", np.arange(2)]
    stepped = updated(x, [np.ones(2), 1.0, np.float64(1.0), None, None, None], 0.5)
    assert same(stepped, [np.full(2, 1.5, np.float32), np.float32(1.5), 1.5, 2, "s", np.arange(2)])
    assert updated({"a": 1.0, "b": 2.0}, {"a": 1.0}) == {"a": 2.0, "b": 2.0}
    assert updated(3, 0.5) == 3.5


def test_a_class_with_operators_of_its_own_keeps_them():
    class Own(Slotted):
        def __sub__(self, other):
            return "mine"

    x = Own(1.0, 2.0)
    slopes = grad(lambda x: x.u * x.v)(x)
    assert x - slopes == "mine"
    assert updated(x, slopes, -1.0).u == -1.0


def test_what_does_not_fit_is_refused():
    with pytest.raises(TangentError, match=r"step\[0\]"):
        updated([1.0], ["text"])
    with pytest.raises(TangentError, match="fields among"):
        updated(Slotted(1.0, 2.0), {"w": 1.0})
    with pytest.raises(ArgumentError, match="Decimal"):
        ravel([Decimal(1)])
    with pytest.raises(ArgumentError, match="array of 1 numbers"):
        ravel([1.0])[1](np.ones(2))
    with pytest.raises(ArgumentError, match="argument 2 of tree_map"):
        tree_map(lambda a, b: a, [1.0, 2.0], [1.0])
    with pytest.raises(ArgumentError, match="no entry"):
        tree_map(lambda a, b: a, {"a": 1.0}, {"a": None})


def test_a_tangent_completes_its_fields_and_is_a_table_in_notebooks():
    slopes = grad(lambda layer: np.sum(layer.W) * layer.b)(Layer(np.ones(2), 0.5, name="<b>"))
    assert {"W", "b", "width", "primal_type"} <= set(dir(slopes))
    assert slopes._ipython_key_completions_() == ["W", "b", "width", "name"]
    table = slopes._repr_html_()
    assert "<caption>Tangent of Layer</caption>" in table and repr(slopes.W) in table
    nested = grad(lambda x: x.u.b)(Slotted(Layer(np.ones(1), 2.0), 1.0))
    assert nested._repr_html_().count("<table>") == 2
    assert "&lt;" in plaingrad.Tangent(Layer, {"<b>": 1.0})._repr_html_()
