"""Each type of primal has one type of tangent; zeros, projections and sums in its space."""

import functools
from collections import OrderedDict, deque, namedtuple
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from plaingrad import (
    CotangentError,
    NoTangent,
    Tangent,
    Thunk,
    ZeroTangent,
    accumulate,
    grad,
    project_to,
    tangent_type,
    unthunk,
    zero_tangent,
)

NO_TANGENT = type(NoTangent)
Point = namedtuple("Point", "x y")


class Length(float):
    pass


class Slotted:
    __slots__ = ("__hidden", "a", "unset")

    def __init__(self, a):
        self.a = a
        self.__hidden = 2.0


@dataclass
class Model:
    rate: float
    weights: np.ndarray
    name: str = "m"


class Labels:
    def __init__(self):
        self.text = "a"
        self.count = 3


def closure(a, n=3):
    return lambda x: a * x**n


def plain(x):
    return x


SPACES = [
    (1.5, float),
    (np.float64(1.5), np.float64),
    (np.float32(1.5), np.float32),
    (1j, complex),
    (np.complex64(1j), np.complex64),
    (Fraction(1, 2), Fraction),
    (Decimal("0.5"), Decimal),
    (Length(1.0), float),
    (3, NO_TANGENT),
    (True, NO_TANGENT),
    ("text", NO_TANGENT),
    (None, NO_TANGENT),
    (np.int64(3), NO_TANGENT),
    (np.array([1.0]), np.ndarray),
    (np.array(1j), np.ndarray),
    (np.array([1, 2]), NO_TANGENT),
    (np.array(["a"]), NO_TANGENT),
    (np.array([1.0, "a"], object), np.ndarray),
    ([1.0, 2], list),
    (deque([1.0]), list),
    ((1.0,), tuple),
    (Point(1.0, 2), Point),
    ([1, "a"], NO_TANGENT),
    ({"a": 1.0}, dict),
    (OrderedDict(a=1.0), dict),
    ({"a": 1}, NO_TANGENT),
    (Model(1.0, np.ones(2)), Tangent),
    (Slotted(1.0), Tangent),
    (Labels(), NO_TANGENT),
    (closure(2.0), Tangent),
    (closure(2), NO_TANGENT),
    (plain, NO_TANGENT),
    (Model(1.0, np.ones(2)).__eq__, Tangent),
    (functools.partial(plain, 1.0), Tangent),
    (functools.partial(plain, 1), NO_TANGENT),
    (len, NO_TANGENT),
    (np, NO_TANGENT),
    (np.add, NO_TANGENT),
]


@pytest.mark.parametrize(("primal", "expected"), SPACES, ids=[f"{k}-{type(x).__name__}" for k, (x, _) in enumerate(SPACES)])
def test_the_tangent_type_of_a_value_is_the_type_of_its_zero_and_of_projections(primal, expected):
    found = tangent_type(primal)
    assert found is expected or expected in (Tangent, np.ndarray) and issubclass(found, expected)
    zero = zero_tangent(primal)
    assert isinstance(zero, found)
    assert type(zero) is expected
    assert type(project_to(primal)(zero)) is expected


@pytest.mark.parametrize(
    ("primal", "expected"),
    [(float, float), (int, NO_TANGENT), (np.ndarray, np.ndarray), (Model, Tangent), (Point, Point), (dict, dict)],
    ids=str,
)
def test_the_tangent_type_of_a_type(primal, expected):
    found = tangent_type(primal)
    assert found is expected or expected is Tangent and issubclass(found, Tangent)


def test_tangent_types_tell_dtypes_and_classes_of_objects_apart():
    single, double = tangent_type(np.ones(2, np.float32)), tangent_type(np.ones(2))
    assert single is tangent_type(np.zeros((3, 0), np.float32)) and single is not double
    assert isinstance(np.ones(5, np.float32), single) and not isinstance(np.ones(5), single)
    other = type("Model", (Model,), {})
    assert tangent_type(Model) is tangent_type(Model(1.0, np.ones(1))) is not tangent_type(other)
    assert isinstance(zero_tangent(Model(1.0, np.ones(1))), tangent_type(Model))
    assert not isinstance(zero_tangent(Model(1.0, np.ones(1))), tangent_type(other))


def test_zero_tangents_have_every_entry_written_out():
    model = Model(1.0, np.ones((2, 3), np.float32))
    zero = zero_tangent([model, Point(1.0, "a"), {"k": (2, 1j)}])
    assert zero[0].rate == 0.0 and zero[0].name is NoTangent
    assert zero[0].weights.shape == (2, 3) and zero[0].weights.dtype == np.float32 and not zero[0].weights.any()
    assert zero[1] == Point(0.0, NoTangent) and zero[2] == {"k": (NoTangent, 0j)}


def test_zero_tangents_share_what_the_primal_shares():
    a = np.ones(2)
    zero = zero_tangent([a, a, [a]])
    assert zero[0] is zero[1] is zero[2][0] is not a


def test_zero_tangents_of_cyclic_objects_and_recursive_closures():
    model = Model(1.0, np.ones(1))
    model.me = model
    zero = zero_tangent(model)
    assert zero.me is zero

    def recursive(x, n):
        return a * x if n == 0 else recursive(x, n - 1)

    a = 2.0
    assert zero_tangent(recursive).a == 0.0
    assert project_to(model)(Tangent(Model, rate=1j + 2)).rate == 2.0


def test_projection_of_numbers():
    assert project_to(1.5)(2.0 + 3.0j) == 2.0
    assert type(project_to(1.5)(np.float64(2.0))) is float
    assert type(project_to(np.float32(1))(2.0)) is np.float32
    assert project_to(1j)(2.0) == 2.0 and type(project_to(1j)(2.0)) is complex
    assert project_to(1.5)(np.ones((2, 2))) == 4.0
    assert project_to(Fraction(1, 3))(0.5) == Fraction(1, 2)
    assert project_to(Decimal(1))(Fraction(1, 4)) == Decimal("0.25")


def test_projection_of_arrays():
    to = project_to(np.ones((1, 3)))
    assert to(np.ones((2, 3))).tolist() == [[2.0, 2.0, 2.0]]
    assert to(5.0).tolist() == [[5.0, 5.0, 5.0]]
    assert project_to(np.ones(2))(np.array([1j + 1, 2])).tolist() == [1.0, 2.0]
    assert project_to(np.ones(2, np.float32))(np.ones(2)).dtype == np.float32


def test_zeros_pass_and_what_is_postponed_stays_postponed():
    to = project_to(np.ones(2))
    assert to(ZeroTangent) is ZeroTangent and to(NoTangent) is NoTangent and to(None) is ZeroTangent
    calls = []
    postponed = to(Thunk(lambda: calls.append(1) or np.ones((3, 2))))
    assert type(postponed) is Thunk and not calls
    assert unthunk(postponed).tolist() == [3.0, 3.0] and len(calls) == 1
    assert project_to("text")(3.0) is NoTangent


def test_projection_keeps_no_numbers_of_the_primal():
    x = np.ones(3)
    to = project_to([x])
    x[:] = np.nan
    assert to([np.ones(3)])[0].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("primal", "tangent"),
    [
        (1.5, "a"),
        (1.5, [1.0]),
        (np.ones(2), np.ones(3)),
        ([1.0, 2.0], [1.0]),
        ([1.0], {"a": 1.0}),
        ({"a": 1.0}, {"b": 1.0}),
        ({"a": 1.0}, 1.0),
        (Model(1.0, np.ones(2)), Tangent(Slotted, rate=1.0)),
        (Model(1.0, np.ones(2)), Tangent(Model, wrong=1.0)),
        (Model(1.0, np.ones(2)), 1.0),
    ],
    ids=range(10),
)
def test_what_does_not_fit_is_refused(primal, tangent):
    with pytest.raises(CotangentError):
        project_to(primal)(tangent)


def test_accumulation_in_place_where_that_is_safe():
    a = np.array([1.0, 2.0])
    assert accumulate(a, np.ones(2)) is a and a.tolist() == [2.0, 3.0]
    assert accumulate(a, 1.0) is a and a.tolist() == [3.0, 4.0]
    total = accumulate({"w": a, "b": 1.0}, {"w": np.ones(2), "b": 2.0})
    assert total["w"] is a and a.tolist() == [4.0, 5.0] and total["b"] == 3.0


def test_accumulation_makes_a_new_array_where_writing_would_be_wrong():
    base = np.zeros(4)
    read_only = np.ones(2)
    read_only.flags.writeable = False
    for a, b, expected in [
        (base[:2], np.ones(2), [1.0, 1.0]),  # a view
        (read_only, np.ones(2), [2.0, 2.0]),
        (np.ones(2), np.ones(2) * 1j, [1 + 1j, 1 + 1j]),  # would lose the imaginary part
        (np.ones(2, np.float32), np.full(2, 1e-9), [1 + 1e-9] * 2),  # would lose digits
        (np.ones(2), np.ones((2, 2)), [[2.0, 2.0], [2.0, 2.0]]),
        (np.ones(2, int), np.full(2, 0.5), [1.5, 1.5]),
    ]:
        before = a.copy()
        assert accumulate(a, b).tolist() == expected
        assert a.tolist() == before.tolist()
    x = np.ones(2)
    assert accumulate(x, x).tolist() == [2.0, 2.0] and x.tolist() == [1.0, 1.0]


def test_accumulation_of_zeros_thunks_and_structures():
    x = np.ones(2)
    assert accumulate(ZeroTangent, x) is x and accumulate(x, ZeroTangent) is x
    assert accumulate(NoTangent, ZeroTangent) is NoTangent and accumulate(None, None) is None
    assert accumulate(Thunk(lambda: 1.0), Thunk(lambda: 2.0)) == 3.0
    assert accumulate([1.0, (2.0, ZeroTangent)], [1.0, (2.0, 3.0)]) == [2.0, (4.0, 3.0)]
    assert accumulate(Tangent(Model, rate=1.0), Tangent(Model, rate=2.0, name=None)).rate == 3.0
    assert accumulate(Point(1.0, 2.0), Point(1.0, 1.0)) == Point(2.0, 3.0)
    with pytest.raises(TypeError):
        accumulate(Tangent(Model, rate=1.0), Tangent(Slotted, a=1.0))


def test_spaces_inside_a_differentiated_function():
    def f(x):
        total = accumulate(zero_tangent(np.array([x])), np.array([x, x])[:1] * x)
        return project_to(np.ones(()))(total.sum() * np.ones(2))[()] + project_to(1.0)(x * 1j + x)

    assert grad(f)(3.0) == pytest.approx(2 * 2 * 3.0 + 1.0)
