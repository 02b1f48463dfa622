"""Arguments with structure: they go in, and their gradients come out, as the plain tier has it."""

import functools
import math
from collections import namedtuple
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import plaingrad

numba = pytest.importorskip("numba")

Point = namedtuple("Point", "x y")


@dataclass
class Layer:
    """Some numbers, and things without a tangent."""

    weights: np.ndarray
    scale: float = 2.0
    count: int = 3
    name: str = "layer"
    note: None = None


@dataclass(frozen=True)
class Model:
    """Every container in another."""

    layer: Layer
    pair: tuple
    table: dict
    rates: list = field(default_factory=list)


def layer():
    return Layer(np.array([0.5, -1.5, 2.0]))


def model():
    table = {"z": {"v": np.array([1.0, 2.0])}, "n": 3, "flag": True}
    return Model(layer(), (1.5, Point(2.0, 4), None), table, [0.5, 1.25])


def same(a, b):
    """Whether two gradients have the same structure and numbers."""
    assert type(a) is type(b) or {type(a), type(b)} <= {float, np.float64}, (a, b)
    if a is None or isinstance(a, str):
        assert a == b
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-12)
    elif isinstance(a, (tuple, list)):
        assert len(a) == len(b)
        for part, other in zip(a, b, strict=True):
            same(part, other)
    elif isinstance(a, (dict, plaingrad.Tangent)):
        assert list(a) == list(b)
        for key in a:
            same(a[key], b[key])
    else:
        assert math.isclose(a, b, rel_tol=1e-12)


def of_a_dataclass(p):
    return p.weights.sum() * p.scale * p.count


def inner(p, d):
    return p.scale * d["z"]["v"].sum()


def of_everything(m, x):
    s = 0.0
    for rate in m.rates:
        s += rate * x
    return inner(m.layer, m.table) * m.layer.weights[1] * m.pair[0] * m.pair[1].x * s * m.table["n"] + max(m.rates)


def of_a_dictionary(d):
    return d["a"] * d["b"] + len(d) * (d["v"] * d["v"]).sum()


def of_a_list(parts):
    return parts[0] * parts[2] + sum(parts) + parts[-1] * len(parts) + min(parts)


def of_a_list_of_layers(layers, x):
    for weights, bias in layers:
        x = np.tanh(weights @ x + bias)
    return x.sum()


def of_a_list_by_index(parts, n):
    s = 1.0
    for i in range(n):
        s = s * parts[i] + parts[i - 1]
    return s


LAYERS = [(np.array([[0.5, -0.2], [0.1, 0.3]]), np.array([0.1, k])) for k in (0.2, 0.4)]

CALLS = {
    "a dataclass": (of_a_dataclass, lambda: (layer(),), (0,)),
    "everything in each other": (of_everything, lambda: (model(), 1.5), (0, 1)),
    "a dictionary": (of_a_dictionary, lambda: ({"a": 1.5, "b": 2.5, "v": np.ones(2), "s": "x"},), (0,)),
    "a list": (of_a_list, lambda: ([1.5, 2.5, 0.5],), (0,)),
    "a list of tuples of arrays": (of_a_list_of_layers, lambda: (LAYERS, np.ones(2)), (0, 1)),
    "a list read by an index": (of_a_list_by_index, lambda: ([1.5, 2.5, 0.5], 3), (0,)),
    "a structure that is not differentiated": (of_everything, lambda: (model(), 1.5), (1,)),
}


@pytest.mark.parametrize("name", CALLS)
def test_gradients_have_the_structure_of_the_plain_tier(name):
    f, args, at = CALLS[name]
    y, expected = plaingrad.value_and_grad(f, at, tier="plain")(*args())
    value, found = plaingrad.value_and_grad(f, at, tier="native")(*args())
    assert math.isclose(value, y, rel_tol=1e-13)
    same(found, expected)


def test_a_dataclass_goes_to_a_compiled_function_too():
    compiled = numba.njit(of_a_dataclass)
    same(plaingrad.grad(compiled, tier="native")(layer()), plaingrad.grad(of_a_dataclass)(layer()))
    same(plaingrad.grad(compiled)(layer()), plaingrad.grad(of_a_dataclass)(layer()))


def scaled(x, *rest, power=2, scale):
    return x * rest[0] * rest[1] ** power * scale


def test_arguments_by_keyword_defaults_and_any_number():
    for at in (0, 2, (0, 2), (1, 0, 2)):
        native = plaingrad.grad(scaled, at, tier="native")
        plain = plaingrad.grad(scaled, at)
        same(native(2.0, 3.0, 1.5, scale=0.5), plain(2.0, 3.0, 1.5, scale=0.5))
        same(native(2.0, 3, 2, scale=0.5, power=3), plain(2.0, 3, 2, scale=0.5, power=3))


def test_arguments_by_position_with_keywords_for_the_rest():
    def f(x, y, power=2):
        return x**power * y

    assert plaingrad.grad(f, tier="native")(2.0, y=3.0) == 12.0
    assert plaingrad.grad(f, tier="native")(2.0, power=3, y=3.0) == 36.0
    with pytest.raises(TypeError):
        plaingrad.grad(f, tier="native")(2.0)


@dataclass
class Machine:
    """A model with methods."""

    rate: float

    def loss(self, x):
        return self.rate * x * x

    def __call__(self, x):
        return self.rate * x * x * x


def test_methods_callable_objects_and_partial_functions():
    machine = Machine(1.5)
    assert plaingrad.grad(machine.loss, tier="native")(2.0) == 6.0
    assert plaingrad.grad(machine, tier="native")(2.0) == 18.0
    assert plaingrad.grad(functools.partial(scaled, scale=0.5, power=1), tier="native")(2.0, 3.0, 4.0) == 6.0
    assert plaingrad.grad(functools.partial(machine.loss), tier="native")(2.0) == 6.0


def with_aux(v, x):
    total = (v * x).sum()
    return total, (v * 2, 3, Point(x, total), True)


def test_what_comes_beside_the_value_is_returned():
    args = np.array([1.0, 2.0]), 1.5
    found = plaingrad.value_and_grad(with_aux, (0, 1), has_aux=True, tier="native")(*args)
    expected = plaingrad.value_and_grad(with_aux, (0, 1), has_aux=True, tier="plain")(*args)
    same(found, expected)
    gradient, aux = plaingrad.grad(numba.njit(with_aux), has_aux=True)(*args)
    same(gradient, expected[1][0])
    assert type(aux[2]) is Point
    with pytest.raises(plaingrad.NonScalarOutputError, match="aux"):
        plaingrad.grad(lambda x: x * x, has_aux=True, tier="native")(1.0)


def test_what_is_written_into_an_array_of_a_dataclass_is_seen():
    def f(p):
        p.weights[0] = p.weights[1] * p.scale
        return p.weights.sum()

    mine, other = layer(), layer()
    same(plaingrad.grad(f, tier="native")(mine), plaingrad.grad(f, tier="plain")(other))
    np.testing.assert_array_equal(mine.weights, other.weights)
    assert mine.weights[0] == -3.0


def test_structures_of_the_same_type_are_compiled_once():
    from plaingrad.native.border import conversion

    signatures = {conversion.taken(of_everything, (model(), x), (0,), {}).signature for x in (1.0, 2.0)}
    assert len(signatures) == 1


REFUSED: dict[str, Any] = {
    "an object": (lambda o: o.real, object()),
    "an object inside": (lambda d: d["a"], {"a": 1.0, "b": [object()]}),
    "keys that are neither strings nor whole numbers": (lambda d: d[1.5], {1.5: 2.0}),
    "a list that is there twice": (lambda p: p[0][0] * p[1][0], [[1.0]] * 2),
    "a long list of several kinds": (lambda p: p[0], [1.0, None] * 500),
    "a set": (lambda s: 1.0, {1.0, 2.0}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_go_in_is_refused_with_its_place(name):
    f, x = REFUSED[name]
    with pytest.raises(plaingrad.NativeError, match="argument 0"):
        plaingrad.grad(f, tier="native")(x)


def changes(d):
    d["a"] = 2.0
    return d["a"]


def appends(parts):
    parts.append(1.0)
    return parts[0]


def asks(d):
    return d["a"] if "b" in d else 0.0


def sets(p):
    p.scale = 3.0
    return p.scale


def test_keys_that_are_known_may_be_asked_for():
    assert plaingrad.grad(asks, tier="native")({"a": 1.0, "b": 1}) == {"a": 1.0, "b": None}
    assert plaingrad.grad(asks, tier="native")({"a": 1.0, "b": 1.0, "c": None}) == {"a": 1.0, "b": 0.0, "c": None}
    assert plaingrad.grad(lambda d: d[1], tier="native")({1: 2.0}) == {1: 1.0}


@pytest.mark.parametrize(
    ("f", "x"),
    [(changes, {"a": 1.0, "b": 1}), (sets, layer())],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_numba_does_not_do_with_them_is_refused(f, x):
    with pytest.raises(plaingrad.NativeError, match=r"test_border.py"):
        plaingrad.grad(f, tier="native")(x)


def test_a_list_that_is_appended_to_is_longer_afterwards():
    parts = [2.0]
    assert plaingrad.grad(appends, tier="native")(parts) == [1.0]
    assert parts == [2.0, 1.0]


@pytest.mark.parametrize("x", ["text", True, None, (1, 2), {"a": 1}, [1, 2]])
def test_an_argument_without_a_tangent_is_told(x):
    for tier in ("native", "plain"):
        with pytest.raises(plaingrad.ArgumentError):
            plaingrad.grad(lambda x: 1.0, tier=tier)(x)


def writes(v, x):
    s = v[0] * x
    v[0] = v[1] * s
    v[1] = 3.0
    return v, s


@pytest.fixture(scope="module")
def pulled_and_pushed():
    """What `writes` gives in each tier: value, array after the call, cotangents twice, tangents."""
    found = {}
    for tier in ("native", "plain"):
        v = np.array([1.0, 2.0, 3.0])
        y, pullback = plaingrad.vjp(writes, v, 2.0, tier=tier)
        seed = (np.array([1.0, 10.0, 100.0]), 0.5)
        pushed = plaingrad.jvp(writes, (v.copy(), 2.0), (np.array([1.0, 0.0, 1.0]), 0.5), tier=tier)
        found[tier] = y, v.copy(), pullback(seed), pullback((seed[0], None)), pushed, y[0] is v
    return found


def test_a_function_that_writes_and_hands_back_is_pulled_back_and_pushed_forward(pulled_and_pushed):
    same(pulled_and_pushed["native"][:5], pulled_and_pushed["plain"][:5])
    assert pulled_and_pushed["native"][5]


def parts_of_a_model(p, d):
    return p.weights * p.scale * d["x"], Point(p.scale, d["n"])


def test_structures_go_through_pullbacks_and_pushforwards():
    args = layer(), {"x": 3.0, "n": 1}
    dots = {"scale": 1.0}, {"x": 2.0}
    found = {}
    for tier in ("native", "plain"):
        y, pullback = plaingrad.vjp(parts_of_a_model, *args, tier=tier)
        found[tier] = y, pullback((np.ones(3), Point(0.5, None))), plaingrad.jvp(parts_of_a_model, args, dots, tier=tier)
    same(found["native"], found["plain"])


def test_a_change_of_an_array_that_a_native_pullback_reads_is_noticed():
    v = np.array([1.0, 2.0])
    _, pullback = plaingrad.vjp(lambda v: v * v, v, tier="native")
    np.testing.assert_allclose(pullback(np.ones(2))[0], [2.0, 4.0])
    v[0] = 5.0
    with pytest.raises(plaingrad.ChangedSinceError):
        pullback(np.ones(2))
    with pytest.raises(plaingrad.CotangentError):
        plaingrad.vjp(lambda v: v * v, v, tier="native")[1](np.ones(3))


def test_a_native_pullback_is_linear_in_its_cotangent_for_other_derivatives_too():
    _, pullback = plaingrad.vjp(lambda v: v * v, np.array([1.0, 2.0]), tier="native")
    (bar,) = plaingrad.vjp(lambda seed: pullback(seed)[0], np.ones(2))[1](np.array([1.0, 3.0]))
    np.testing.assert_allclose(bar, [2.0, 12.0])
