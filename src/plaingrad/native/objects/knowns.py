"""Python's own functions, where their arguments have structure; Numba has the rest."""

from __future__ import annotations

import ast
import builtins
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from plaingrad.native.objects import attributes, lists, loops, operators, outside
from plaingrad.native.objects.engine import MISSING, Frame
from plaingrad.native.objects.values import (
    Instance,
    Items,
    Keys,
    Leaf,
    Ref,
    Rows,
    Several,
    Static,
    Tup,
    is_number,
)


def usual(f: Frame, function: Any, args: list[Any], named: dict[str, Any]) -> Any:
    """The call as Numba does it."""
    return outside.outside_call(f, Static(function), args, named)


def len_(f: Frame, args: list[Any], named: Any) -> Any:
    found = attributes.special(f, args[0], "__len__")
    if found is not None:
        return f.call(found, [], {})
    made = lists.length(f, args[0])
    return Static(made.value) if isinstance(made, ast.Constant) else f.leaf(made)


def range_(f: Frame, args: list[Any], named: Any) -> Any:
    start, stop, step = (Static(0), args[0], Static(1)) if len(args) == 1 else (*args, Static(1))[:3]
    return Several("range", (start, stop, step))


def several(kind: str) -> Callable[..., Any]:
    def made(f: Frame, args: list[Any], named: dict[str, Any]) -> Any:
        if kind == "enumerate":
            return Several(kind, (args[0], args[1] if len(args) > 1 else named.get("start", Static(0))))
        if named and not (kind == "zip" and set(named) == {"strict"}):
            raise f.refuse(f"`{kind}` with keywords")
        return Several(kind, tuple(args))

    return made


def list_(f: Frame, args: list[Any], named: Any) -> Any:
    if not args:
        return f.object(Items([]))
    found = lists.entries(f, args[0])
    return f.object(Items(found)) if found is not None else loops.listed(f, args[0])


def tuple_(f: Frame, args: list[Any], named: Any) -> Any:
    return Tup(tuple(lists.all_of(f, args[0])) if args else ())


def dict_(f: Frame, args: list[Any], named: dict[str, Any]) -> Any:
    items: dict[Any, Any] = {}
    for x in args:
        thing = f.thing(x)
        if isinstance(thing, Keys):
            items.update(thing.items)
        else:
            for pair in lists.all_of(f, x):
                key, value = lists.all_of(f, pair)
                items[lists.key_of(f, key)] = value
    return f.object(Keys({**items, **named}))


def sum_(f: Frame, args: list[Any], named: dict[str, Any]) -> Any:
    total = args[1] if len(args) > 1 else named.get("start", Static(0))
    return loops.folded(f, args[0], total, lambda a, b: operators.operation(f, ast.Add(), a, b, ast.Pass()))


def extreme(which: Callable[..., Any]) -> Callable[..., Any]:
    def of(f: Frame, args: list[Any], named: dict[str, Any]) -> Any:
        if set(named) - {"key"}:
            raise f.refuse(f"`{which.__name__}` with a default")
        values = lists.entries(f, args[0]) if len(args) == 1 else args
        key = named.get("key")
        if values is None and key is None:
            return loops.extreme_of(f, args[0], which)
        if not values:
            raise f.refuse(f"`{which.__name__}` of what is not known")
        simple = key is None and all(isinstance(v, Leaf) or is_number(v) for v in values)
        if simple and all(is_number(v) for v in values):
            return Static(which([v.value for v in values]))
        if simple:
            return values[0] if len(values) == 1 else usual(f, which, values, {})
        return by_comparison(f, values, key, ast.Lt() if which is min else ast.Gt())

    return of


def by_comparison(f: Frame, values: list[Any], key: Any, op: ast.cmpop) -> Any:
    """min or max of objects, by a key or by their own comparisons."""
    pins = len(f.pins)
    f.pins += values
    best = values[0]
    score = best if key is None else f.call(key, [best], {})
    for v in values[1:]:
        f.pins[pins:] = [*values, best, score]
        each = v if key is None else f.call(key, [v], {})
        f.pins.append(each)
        test = operators.truth(f, operators.compared(f, op, each, score))
        best, score = either(f, test, (v, each), (best, score))
    del f.pins[pins:]
    return best


def either(f: Frame, test: Any, then: tuple[Any, ...], orelse: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values of one of two rows, by a test that may be known."""
    if isinstance(test, Static):
        return then if test.value else orelse
    return tuple(operators.chosen(f, test, lambda: Tup(then), lambda: Tup(orelse)).items)


def sorted_(f: Frame, args: list[Any], named: dict[str, Any]) -> Any:
    """Entries in order: a few of them by comparing each pair, which keeps equal ones in place."""
    values = lists.entries(f, args[0])
    if values is None or len(values) > 8 or not set(named) <= {"key", "reverse"}:
        raise f.refuse("`sorted` of more than 8 entries, or of what is not known")
    key, reverse = named.get("key"), named.get("reverse", Static(False))
    if not isinstance(reverse, Static):
        raise f.refuse("`sorted` in an order that is not known")
    pins = len(f.pins)
    f.pins += values
    pairs = []
    for v in values:
        pairs.append(Tup((v, v if key is None else f.call(key, [v], {}))))
        f.pins.append(pairs[-1])
    op: ast.cmpop = ast.Gt() if reverse.value else ast.Lt()
    for last in range(1, len(pairs)):
        for k in range(last, 0, -1):
            f.pins[pins:] = pairs
            a, b = pairs[k - 1], pairs[k]
            test = operators.truth(f, operators.compared(f, op, b.items[1], a.items[1]))
            pairs[k - 1], pairs[k] = either(f, test, (b, a), (a, b))
    del f.pins[pins:]
    return f.object(Items([p.items[0] for p in pairs]))


def quantified(wanted: bool) -> Callable[..., Any]:
    def of(f: Frame, args: list[Any], named: Any) -> Any:
        values = lists.entries(f, args[0])
        if values is None:
            raise f.refuse("`any` or `all` of what is not known")
        found: Any = Static(not wanted)
        for v in values:
            test = operators.truth(f, v)
            if isinstance(test, Static):
                if test.value is wanted:
                    return test
                continue
            if isinstance(found, Static):
                found = test
            else:
                op = ast.Or() if wanted else ast.And()
                found = f.leaf(ast.BoolOp(op, [f.expression(found), f.expression(test)]))
        return found

    return of


def isinstance_(f: Frame, args: list[Any], named: Any) -> Any:
    x, kinds = args
    wanted = [k.value for k in kinds.items] if isinstance(kinds, Tup) else [getattr(kinds, "value", None)]
    thing = f.thing(x)
    cls = {Items: list, Rows: list, Keys: dict}.get(type(thing))
    if isinstance(thing, (Instance, Tup)):
        cls = thing.cls
    elif isinstance(thing, Static):
        cls = type(thing.value)
    if cls is not None and all(isinstance(k, type) for k in wanted):
        return Static(issubclass(cls, tuple(wanted)))
    if isinstance(x, Leaf) and all(
        isinstance(k, type) and k in (list, dict, tuple, str, type(None)) or is_users(k) for k in wanted
    ):
        return Static(False)
    return usual(f, builtins.isinstance, args, named)


def is_users(k: Any) -> bool:
    return isinstance(k, type) and k.__module__.split(".")[0] not in (
        "builtins",
        "numpy",
        "numbers",
        "abc",
        "collections",
    )


def type_(f: Frame, args: list[Any], named: Any) -> Any:
    thing = f.thing(args[0])
    if isinstance(thing, Instance) or (isinstance(thing, Tup) and thing.cls is not tuple):
        return Static(thing.cls)
    raise f.refuse("`type` of what is no user's object")


def getattr_(f: Frame, args: list[Any], named: Any) -> Any:
    if not isinstance(args[1], Static):
        raise f.refuse("`getattr` of a name that is not known")
    if len(args) > 2 and not has(f, args[0], args[1].value):
        return args[2]
    return attributes.attribute(f, args[0], args[1].value)


def has(f: Frame, x: Any, name: str) -> bool:
    thing = f.thing(x)
    if not isinstance(thing, Instance):
        raise f.refuse("`hasattr` of what is no user's object")
    return name in thing.fields or f.whole.check(attributes.in_class, thing.cls, name) is not MISSING


def setattr_(f: Frame, args: list[Any], named: Any) -> Any:
    if not isinstance(args[1], Static):
        raise f.refuse("`setattr` of a name that is not known")
    attributes.set_attribute(f, args[0], args[1].value, args[2])
    return Static(None)


def map_(f: Frame, args: list[Any], named: Any) -> Any:
    rows = [lists.entries(f, x) for x in args[1:]]
    known = [row for row in rows if row is not None]
    if len(known) < len(rows):
        raise f.refuse("`map` over what is not known")
    made = [f.call(args[0], list(row), {}) for row in zip(*known, strict=False)]
    return Several("once", (f.object(Items(made)),))


def abs_(f: Frame, args: list[Any], named: Any) -> Any:
    found = attributes.special(f, args[0], "__abs__")
    if found is not None:
        return f.call(found, [], {})
    return Static(abs(args[0].value)) if is_number(args[0]) else usual(f, abs, args, named)


def converted(to: Any) -> Callable[..., Any]:
    def of(f: Frame, args: list[Any], named: Any) -> Any:
        if len(args) == 1 and is_number(args[0]):
            return Static(to(args[0].value))
        if to is bool:
            return operators.truth(f, args[0])
        if args and isinstance(args[0], Static) and isinstance(args[0].value, str):
            try:
                return Static(to(args[0].value))
            except ValueError:
                raise f.refuse("a text that is no number") from None
        return usual(f, to, args, named)

    return of


def reduce_(f: Frame, args: list[Any], named: Any) -> Any:
    """functools.reduce."""
    function, of, *start = args
    if not start:
        first, *rest = lists.all_of(f, of)
        of, start = f.object(Items(rest)), [first]
    return loops.folded(f, of, start[0], lambda a, b: f.call(function, [a, b], {}))


def prod_(f: Frame, args: list[Any], named: dict[str, Any]) -> Any:
    start = named.get("start", Static(1))
    return loops.folded(f, args[0], start, lambda a, b: operators.operation(f, ast.Mult(), a, b, ast.Pass()))


def select_(f: Frame, args: list[Any], named: dict[str, Any]) -> Any:
    """np.select: a choice for each condition, the first one last."""
    tests, choices = lists.all_of(f, args[0]), lists.all_of(f, args[1])
    if len(tests) != len(choices) or not set(named) <= {"default"}:
        raise f.refuse("`select` of as many conditions as choices is wanted")
    found = args[2] if len(args) > 2 else named.get("default", Static(0))
    for test, choice in zip(reversed(tests), reversed(choices), strict=True):
        found = usual(f, np.where, [test, choice, found], {})
    return found


def by_operator(op: ast.operator) -> Callable[..., Any]:
    return lambda f, args, named: operators.operation(f, op, args[0], args[1], ast.Pass())


KNOWN: dict[Any, Callable[..., Any]] = {
    len: len_,
    range: range_,
    zip: several("zip"),
    enumerate: several("enumerate"),
    reversed: several("reversed"),
    list: list_,
    tuple: tuple_,
    dict: dict_,
    sum: sum_,
    min: extreme(min),
    max: extreme(max),
    sorted: sorted_,
    any: quantified(True),
    all: quantified(False),
    isinstance: isinstance_,
    type: type_,
    getattr: getattr_,
    setattr: setattr_,
    hasattr: lambda f, args, named: Static(has(f, args[0], args[1].value)),
    map: map_,
    abs: abs_,
    float: converted(float),
    int: converted(int),
    bool: converted(bool),
    functools.reduce: reduce_,
    math.prod: prod_,
    np.select: select_,
    **{function: by_operator(op()) for op, (_, function) in operators.BINARY.items()},
}
__all__ = ["KNOWN", "Ref"]
