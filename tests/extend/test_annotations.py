"""What annotations of a rule's parameters mean, and which are refused where the rule is defined."""

from __future__ import annotations

import collections.abc
import numbers
import typing
from typing import Annotated, Any, Optional, TypeVar

import numpy as np
import numpy.typing
import pytest

from plaingrad import Dual, RuleError, grad, rrule
from plaingrad.extend.annotations import types_of
from plaingrad.rulebook import narrower
from plaingrad.tangents.tangent_types import array_type

Number = TypeVar("Number", float, np.ndarray)
Bounded = TypeVar("Bounded", bound=numbers.Real)
Metres = typing.NewType("Metres", float)


def classes(hint):
    def rule(x):
        pass

    rule.__annotations__ = {"x": hint}
    types = types_of(rule)
    return None if types is None else types.classes[0]


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        (float, (float, int)),
        (complex, (complex, float, int)),
        (int, (int,)),
        (np.ndarray, (np.ndarray,)),
        ("np.ndarray", (np.ndarray,)),
        (np.typing.NDArray[np.float64], (array_type(np.float64),)),
        (np.ndarray[tuple[int, int], np.dtype[np.float32]], (array_type(np.float32, 2),)),
        (np.ndarray[tuple[int], np.dtype[typing.Any]], (array_type(ndim=1),)),
        (np.typing.NDArray[np.float32 | np.float64], (array_type(np.float32), array_type(np.float64))),
        (float | np.ndarray, (float, int, np.ndarray)),
        (typing.Union[int, str], (int, str)),
        (Optional[int], (int, type(None))),
        (None, (type(None),)),
        (list[float], (list,)),
        (typing.List[float], (list,)),
        (collections.abc.Sequence[float], (collections.abc.Sequence,)),
        (typing.Callable[[float], float], (collections.abc.Callable,)),
        (Annotated[int, "a note"], (int,)),
        (Number, (float, int, np.ndarray)),
        (Bounded, (numbers.Real,)),
        (Metres, (float, int)),
        (Any, None),
        (object, None),
        (float | Any, None),
        (np.typing.ArrayLike, None),
        (type[int], (type,)),
    ],
    ids=range(26),
)
def test_an_annotation_stands_for_classes(hint, expected):
    assert classes(hint) == expected


def test_pairs_are_annotated_with_the_types_of_their_values():
    def rule(f, x: Dual[float], y: Dual, z: Annotated[Dual, np.ndarray], n: int): ...

    types = types_of(rule, duals=True)
    assert types.classes == ((float, int), None, (np.ndarray,), (int,)) and types.names == ("x", "y", "z", "n")


def test_rules_without_annotations_are_for_anything():
    def rule(x, *rest, option=1, **more) -> Undefined: ...  # noqa: F821 - that of the result does not matter

    assert types_of(rule) is None
    assert types_of(lambda x: x) is None
    assert types_of(len) is None


def test_classes_known_where_the_rule_is_defined_are_found():
    class Local:
        pass

    def rule(x: Local, y):
        return Local

    assert types_of(rule).classes == ((Local,), None)


@typing.no_type_check
def refused():
    class Quiet(typing.Protocol):
        x: int

    def unknown(x: Undefined): ...  # noqa: F821
    def literal(x: typing.Literal[3]): ...
    def protocol(x: Quiet):
        return Quiet

    def number(x): ...
    number.__annotations__ = {"x": 3}
    return [unknown, literal, protocol, number]


@pytest.mark.parametrize("k", range(4))
def test_what_no_class_says_is_refused_where_the_rule_is_defined(k):
    rule = refused()[k]
    rule.__no_type_check__ = False

    def f(x):
        return x

    with pytest.raises(RuleError, match="annotat"):
        rrule(f)(rule)
    assert grad(f)(1.0) == 1.0


def test_rules_that_only_parameters_of_generic_types_tell_apart_are_refused():
    def f(x):
        return x[0]

    def first(x: list[float]): ...
    def second(x: list[int]): ...

    rrule(f)(first)
    rrule(f)(first)  # the same again replaces it
    with pytest.raises(RuleError, match="chosen by the classes"):
        rrule(f)(second)


def fit(rule, *args, **kwargs):
    return types_of(rule).fit(args, kwargs)


def test_which_calls_fit():
    def rule(a: int, b: str = "", /, c: float = 1.0, *rest: bytes, d: list, e: tuple = (), **more): ...

    assert fit(rule, 1, d=[]) and fit(rule, 1, "x", 2.0, b"", b"", d=[], e=(), other=3)
    assert fit(rule, 1, c=3, d=[]) and fit(rule, True, d=[])
    for args, kwargs in [
        ((1,), {}),  # d is missing
        ((), {"d": []}),  # a is missing
        ((1.0,), {"d": []}),
        ((1, 2), {"d": []}),
        ((1, "", 2.0, "no bytes"), {"d": []}),
        ((1,), {"d": ()}),
        ((1,), {"d": [], "e": []}),
        ((1, "", 1.0), {"d": [], "c": 1.0}),  # c twice
        ((1, ""), {"d": 1}),
    ]:
        assert not fit(rule, *args, **kwargs), (args, kwargs)

    def plain(a: int, b=1): ...

    assert not fit(plain, 1, 2, 3) and not fit(plain, 1, c=1) and fit(plain, b=2, a=1)


def test_subclasses_are_narrower():
    assert narrower((int,), (float, int)) and narrower((bool,), (int,)) and narrower((bool,), None)
    assert not narrower(None, (int,)) and not narrower((float, int), (int,)) and narrower(None, None)
    assert narrower((list,), (collections.abc.Sequence,))


def test_the_number_of_arguments_chooses_too():
    def f(*args):
        return sum(args)

    @rrule(f)
    def one(x: float):
        return f(x), lambda y_bar: (10 * y_bar,)

    @rrule(f)
    def two(x: float, y: float):
        return f(x, y), lambda y_bar: (20 * y_bar, 200 * y_bar)

    @rrule(f)
    def many(*xs: float):
        return f(*xs), lambda y_bar: tuple(30 * y_bar for _ in xs)

    assert grad(f)(1.0) == 10.0 and grad(f)(1.0, 2.0) == 20.0 and grad(f)(1.0, 2.0, 3.0) == 30.0


def test_subclasses_take_the_rule_of_the_nearest_class():
    class Base: ...

    class Middle(Base): ...

    class Leaf(Middle): ...

    def f(o, x):
        return x

    for cls, factor in ((Base, 10.0), (Middle, 100.0)):

        def rule(o, x, factor=factor):
            return x, lambda y_bar: (y_bar * 0, factor * y_bar)

        rule.__annotations__ = {"o": cls}
        rule.__defaults__ = (factor,)
        rrule(f)(rule)
    assert grad(f, argnums=1)(Base(), 1.0) == 10.0
    assert grad(f, argnums=1)(Middle(), 1.0) == grad(f, argnums=1)(Leaf(), 1.0) == 100.0
    assert grad(f, argnums=1)(3, 1.0) == 1.0
