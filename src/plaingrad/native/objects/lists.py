"""Lists, tuples and dictionaries: their entries, their methods, and what goes through them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np

from plaingrad.native.objects import attributes, axes
from plaingrad.native.objects.engine import Frame
from plaingrad.native.objects.merging import agreed, atom, instance_of, leaves_in, pattern_of
from plaingrad.native.objects.values import (
    Instance,
    Items,
    Keys,
    Leaf,
    Method,
    NotKnown,
    Ref,
    Refused,
    Rows,
    Several,
    Static,
    Tup,
    is_number,
    load,
)

LAST, NOTHING_THERE = Static(-1), Static(None)
LONGEST = 64  # entries that are gone through one by one


def key_of(f: Frame, x: Any) -> Any:
    """A key of a dictionary."""
    if isinstance(x, Static):
        return x.value
    if isinstance(x, Tup) and all(isinstance(part, Static) for part in x.items):
        return tuple([part.value for part in x.items])
    raise NotKnown("a dictionary has a key that is not known", f.home.file, f.line, f.home.name)


def keys_of(named: dict[str, Any]) -> Keys:
    """A dictionary of keywords."""
    return Keys(dict(named))


def length(f: Frame, x: Any) -> ast.expr:
    """len(x) as an expression."""
    thing = f.thing(x)
    if isinstance(thing, (Items, Keys, Tup)):
        return ast.Constant(len(thing.items))
    of = thing.columns[0] if isinstance(thing, Rows) else x
    if isinstance(of, Several):
        raise f.refuse(f"`len` of `{of.kind}`")
    return ast.Call(f.whole.outside(len, "len"), [f.expression(of)], [])


def all_of(f: Frame, x: Any) -> list[Any]:
    """All entries of what is of known length.

    Raises:
        Refused: it is not.
    """
    found = entries(f, x)
    if found is None:
        raise NotKnown("something is taken apart whose length is not known", f.home.file, f.line, f.home.name)
    return found


def entries(f: Frame, x: Any) -> list[Any] | None:
    """All entries, in order; None if their number is not known."""
    thing = f.thing(x)
    if isinstance(thing, (Items, Tup)):
        return list(thing.items)
    if isinstance(thing, Keys):
        return [Static(key) for key in thing.items]
    if isinstance(thing, Several):
        return _entries_of_several(f, thing)
    if isinstance(thing, Static) and isinstance(thing.value, str):
        return [Static(c) for c in thing.value]
    return None


def _entries_of_several(f: Frame, x: Several) -> list[Any] | None:
    if x.kind == "range":
        if all(isinstance(p, Static) for p in x.parts):
            found = range(*[p.value for p in x.parts])
            return [Static(k) for k in found] if len(found) <= LONGEST else None
        return None
    if x.kind == "enumerate":
        inner = entries(f, x.parts[0])
        if inner is None or not isinstance(x.parts[1], Static):
            return None
        return [Tup((Static(k), v)) for k, v in enumerate(inner, x.parts[1].value)]
    if x.kind == "zip":
        rows = [entries(f, p) for p in x.parts]
        known = [row for row in rows if row is not None]
        return [Tup(row) for row in zip(*known, strict=False)] if len(known) == len(rows) else None
    inner = entries(f, x.parts[0]) if x.kind in ("reversed", "once") else None
    return inner if inner is None or x.kind == "once" else inner[::-1]


def index_of(f: Frame, node: ast.expr) -> Any:
    """An index, a slice as a `Several`."""
    if isinstance(node, ast.Slice):
        parts = [Static(None) if p is None else f.evaluate(p) for p in (node.lower, node.upper, node.step)]
        return Several("slice", tuple(parts))
    if isinstance(node, ast.Tuple):
        return Tup(tuple([index_of(f, part) for part in node.elts]))
    return f.evaluate(node)


def index_wanted(f: Frame) -> NotKnown:
    """What is raised where an index has to be known."""
    return NotKnown(
        "a list of objects, or of entries of several kinds, is indexed by what is not known",
        f.home.file,
        f.line,
        f.home.name,
    )


def item(f: Frame, x: Any, index: Any, known_to_be_inside: bool = False) -> Any:
    """x[index]."""
    thing = f.thing(x)
    if isinstance(thing, Keys):
        key = key_of(f, index)
        if key not in thing.items:
            raise f.refuse(f"a dictionary has no {key!r}")
        return thing.items[key]
    if isinstance(thing, (Items, Tup)):
        if isinstance(index, Static):
            try:
                return thing.items[index.value]
            except (IndexError, TypeError):
                raise f.refuse("an index is out of range") from None
        if isinstance(index, Several):
            return _part(f, thing, index)
        return _one_of(f, x, thing, index)
    if isinstance(thing, Rows):
        if isinstance(index, Several):
            place = slice_of(f, index)
            frozen = thing.given or (bool(thing.frozen) and not isinstance(thing.pattern, Leaf))
            columns = [f.leaf(ast.Subscript(f.expression(c), place, ast.Load())) for c in thing.columns]
            return f.object(Rows(thing.pattern, columns, frozen, thing.given))
        place = f.expression(index)
        if thing.given and not known_to_be_inside:
            inside_only(f, x, place)
        leaves = [f.leaf(ast.Subscript(f.expression(c), place, ast.Load())) for c in thing.columns]
        return instance_of(thing.pattern, iter(leaves), f.state, f.whole.new)
    if isinstance(thing, Instance):
        found = attributes.special(f, x, "__getitem__")
        if found is not None:
            return f.call(found, [index], {})
    return f.leaf(ast.Subscript(f.expression(x), slice_of(f, index), ast.Load()))


def inside_only(f: Frame, x: Any, place: ast.expr) -> None:
    """Refuse an index that is out of range when the program that is made runs: of an array, Numba does not."""
    count = f.leaf(length(f, x), "n")
    test = ast.BoolOp(
        ast.Or(),
        [
            ast.Compare(place, [ast.GtE()], [load(count.name)]),
            ast.Compare(place, [ast.Lt()], [ast.UnaryOp(ast.USub(), load(count.name))]),
        ],
    )
    error = ast.Call(f.whole.outside(IndexError, "IndexError"), [], [])
    f.emit(ast.If(test, [ast.Raise(error, None)], []))


def slice_of(f: Frame, index: Any) -> ast.expr:
    """An index as an expression."""
    if isinstance(index, Several):
        parts = [None if isinstance(p, Static) and p.value is None else f.expression(p) for p in index.parts]
        return ast.Slice(*parts)
    if isinstance(index, Tup):
        return ast.Tuple([slice_of(f, part) for part in index.items], ast.Load())
    return f.expression(index)


def _part(f: Frame, thing: Any, index: Several) -> Any:
    if not all(isinstance(p, Static) for p in index.parts):
        raise NotKnown("a slice is not known", f.home.file, f.line, f.home.name)
    found = list(thing.items)[slice(*[p.value for p in index.parts])]
    return Tup(tuple(found)) if isinstance(thing, Tup) else f.object(Items(found))


def _one_of(f: Frame, x: Any, thing: Any, index: Any) -> Any:
    """An entry of a list or tuple of numbers, by an index that is not known."""
    if not thing.items or not all(isinstance(v, Leaf) or is_number(v) for v in thing.items):
        raise index_wanted(f)
    if isinstance(thing, Items):
        rows = as_rows(f, x)
        return f.leaf(ast.Subscript(f.expression(rows.columns[0]), f.expression(index), ast.Load()))
    return f.leaf(ast.Subscript(f.expression(x), f.expression(index), ast.Load()))


def as_rows(f: Frame, x: Ref) -> Rows:
    """A list, from now on as one of unknown length."""
    thing = f.thing(x)
    if isinstance(thing, Rows):
        return thing
    pattern: Any = None
    rows = []
    for v in thing.items:
        try:
            each, leaves = pattern_of(v, f.state)
            pattern = agreed(pattern, each, "it")
        except Refused:
            raise index_wanted(f) from None
        rows.append(leaves)
    count = len(list(leaves_in(pattern))) if pattern is not None else 0
    if not count:
        raise index_wanted(f)
    columns = [f.leaf(ast.List([atom(row[k]) for row in rows], ast.Load()), "list") for k in range(count)]
    made = Rows(pattern, columns, thing.frozen)
    f.state.heap[x.at] = made
    return made


def set_item(f: Frame, x: Any, index: Any, value: Any) -> None:
    """x[index] = value."""
    thing = f.thing(x)
    f.storable(value)
    if isinstance(thing, Keys):
        f.change(x).items[key_of(f, index)] = value
        return
    if isinstance(thing, Items):
        thing = f.change(x)
        if isinstance(index, Static) and isinstance(index.value, int):
            if not -len(thing.items) <= index.value < len(thing.items):
                raise f.refuse("an index is out of range")
            thing.items[index.value] = value
            return
        if isinstance(index, Several):
            _set_part(f, thing, index, value)
            return
        thing = as_rows(f, x)
    if isinstance(thing, Rows):
        f.change(x)
        if isinstance(index, Several):
            raise f.refuse("a slice of a list is assigned")
        pattern, leaves = pattern_of(value, f.state)
        if repr(pattern) != repr(thing.pattern):
            raise f.refuse("an entry of another kind is assigned to a list")
        for column, leaf in zip(thing.columns, leaves, strict=True):
            place = ast.Subscript(f.expression(column), f.expression(index), ast.Store())
            f.emit(ast.Assign([place], f.expression(leaf)))
        return
    if isinstance(thing, Instance):
        found = attributes.special(f, x, "__setitem__")
        if found is not None:
            f.call(found, [index, value], {})
            return
    f.emit(ast.Assign([ast.Subscript(f.expression(x), slice_of(f, index), ast.Store())], f.expression(value)))


def _set_part(f: Frame, thing: Items, index: Several, value: Any) -> None:
    """xs[a:b] = value, of which all is known but the entries."""
    if not all(isinstance(p, Static) for p in index.parts):
        raise NotKnown("a slice is not known", f.home.file, f.line, f.home.name)
    try:
        thing.items[slice(*[p.value for p in index.parts])] = all_of(f, value)
    except ValueError:
        raise f.refuse("as many entries as there are places are wanted") from None


def contains(f: Frame, x: Any, key: Any) -> Any:
    """key in x, as a known value or a leaf."""
    thing = f.thing(x)
    if isinstance(thing, Keys):
        return Static(key_of(f, key) in thing.items)
    if isinstance(thing, (Items, Tup)) and isinstance(key, Static):
        if all(isinstance(v, Static) for v in thing.items):
            return Static(key.value in [v.value for v in thing.items])
    if isinstance(x, Static) and isinstance(key, Static):
        return Static(key.value in x.value)
    if isinstance(thing, (Items, Tup)) and all(isinstance(v, Leaf) or is_number(v) for v in thing.items):
        if not thing.items:
            return Static(False)
        if isinstance(key, Leaf) or is_number(key):
            tests = [ast.Compare(f.expression(key), [ast.Eq()], [f.expression(v)]) for v in thing.items]
            return f.leaf(tests[0] if len(tests) == 1 else ast.BoolOp(ast.Or(), tests))
    raise f.refuse("`in` of what is not known")


def joined(f: Frame, op: type, x: Any, y: Any) -> Any:
    """x + y of lists and tuples, or one of them times a number; None if it is neither."""
    a, b = f.thing(x), f.thing(y)
    if op is ast.Add and isinstance(a, Items) and isinstance(b, Items):
        return f.object(Items([*a.items, *b.items]))
    if op is ast.Add and isinstance(a, Tup) and isinstance(b, Tup):
        return Tup((*a.items, *b.items))
    if any(isinstance(v, Rows) and v.given for v in (a, b)):
        raise f.refuse("a list that is an argument is added to another, or repeated")
    if op is ast.Add and isinstance(a, (Items, Rows)) and isinstance(b, (Items, Rows)):
        left, right = (
            as_rows(f, f.object(Items(list(v.items)))) if isinstance(v, Items) else v for v in (a, b)
        )
        if repr(left.pattern) != repr(right.pattern):
            raise f.refuse("lists of different kinds are added")
        pairs = zip(left.columns, right.columns, strict=True)
        made = [f.leaf(ast.BinOp(f.expression(p), ast.Add(), f.expression(q))) for p, q in pairs]
        return f.object(Rows(left.pattern, made))
    if op is ast.Mult and isinstance(a, Static) and isinstance(b, (Items, Tup)):
        a, b = b, a
    if op is ast.Mult and isinstance(a, (Items, Tup)):
        if isinstance(b, Static) and isinstance(b.value, int) and len(a.items) * b.value <= LONGEST:
            items = list(a.items) * b.value
            return f.object(Items(items)) if isinstance(a, Items) else Tup(tuple(items))
        if isinstance(a, Items):
            rows = as_rows(f, f.object(Items(list(a.items))))
            count = f.expression(y if a is f.thing(x) else x)
            made = [f.leaf(ast.BinOp(f.expression(c), ast.Mult(), count)) for c in rows.columns]
            return f.object(Rows(rows.pattern, made))
    if isinstance(a, (Items, Rows, Keys)) or isinstance(b, (Items, Rows, Keys)):
        raise f.refuse("a list or dictionary is an operand")
    return None


# -- methods --------------------------------------------------------------------------------------------------------


def method(f: Frame, m: Method, args: list[Any], named: dict[str, Any]) -> Any:
    """A call of a method that no user wrote."""
    thing = f.thing(m.of)
    if isinstance(thing, Several) and thing.kind == "super":
        if m.name == "__init__":
            return Static(None)
        raise f.refuse(f"`super().{m.name}`")
    if isinstance(thing, Tup) and m.name == "_replace":
        given = dict(zip(thing.cls._fields, thing.items, strict=True)) | named
        return Tup(tuple(given.values()), thing.cls)
    rule = METHODS.get((type(thing), m.name))
    if rule is not None:
        return rule(f, m.of, *args, **named)
    if (
        isinstance(thing, Rows)
        and isinstance(thing.pattern, Leaf)
        and m.name in ("pop", "reverse", "clear", "insert")
    ):
        f.change(m.of)
        thing = thing.columns[0]
    if not isinstance(thing, (Leaf, Static)):
        raise f.refuse(f"`.{m.name}()` of a {type(thing).__name__.lower()}")
    if isinstance(thing, Leaf) and m.name in axes.REDUCTIONS and axes.is_wanted(m.name, args, named):
        return axes.reduced(f, thing, m.name, args, named)
    if m.name == "accumulate" and isinstance(thing, Static) and isinstance(thing.value, np.ufunc):
        return axes.accumulated(f, thing.value, args, named)
    if m.name == "astype" and len(args) == 1 and isinstance(args[0], Static):
        args = [Static(axes.DTYPES.get(args[0].value, args[0].value))]
    callee = ast.Attribute(f.expression(thing), m.name, ast.Load())
    keywords = [ast.keyword(name, f.expression(x)) for name, x in named.items()]
    made = ast.Call(callee, [f.expression(x) for x in args], keywords)
    if m.name in NOTHING:
        f.emit(ast.Expr(made))
        return Static(None)
    return f.leaf(made)


NOTHING = frozenset(("append", "extend", "insert", "clear", "reverse", "fill"))


def append(f: Frame, x: Ref, value: Any) -> Any:
    """xs.append(value)."""
    thing = f.change(x)
    f.storable(value)
    if isinstance(thing, Items) and len(thing.items) < LONGEST:
        thing.items.append(value)
        return Static(None)
    rows = as_rows(f, x)
    pattern, leaves = pattern_of(value, f.state)
    if repr(pattern) != repr(rows.pattern):
        raise f.refuse("an entry of another kind is appended to a list")
    for column, leaf in zip(rows.columns, leaves, strict=True):
        append_to = ast.Attribute(f.expression(column), "append", ast.Load())
        f.emit(ast.Expr(ast.Call(append_to, [f.expression(leaf)], [])))
    return Static(None)


def extend(f: Frame, x: Ref, other: Any) -> Any:
    """xs.extend(other)."""
    for v in all_of(f, other):
        append(f, x, v)
    return Static(None)


def pop(f: Frame, x: Ref, index: Any = LAST) -> Any:
    """xs.pop(index)."""
    thing = f.change(x)
    if not isinstance(index, Static) or not thing.items:
        raise f.refuse("`.pop()`")
    return thing.items.pop(index.value)


def insert(f: Frame, x: Ref, index: Any, value: Any) -> Any:
    """xs.insert(index, value)."""
    if not isinstance(index, Static):
        raise f.refuse("`.insert()` at a place that is not known")
    f.change(x).items.insert(index.value, value)
    return Static(None)


def reverse(f: Frame, x: Ref) -> Any:
    """xs.reverse()."""
    f.change(x).items.reverse()
    return Static(None)


def copy(f: Frame, x: Ref) -> Any:
    """x.copy() of a list or dictionary."""
    thing = f.thing(x)
    return f.object(Items(list(thing.items)) if isinstance(thing, Items) else Keys(dict(thing.items)))


def get(f: Frame, x: Ref, key: Any, default: Any = NOTHING_THERE) -> Any:
    """d.get(key, default)."""
    return f.thing(x).items.get(key_of(f, key), default)


def update(f: Frame, x: Ref, *others: Any, **named: Any) -> Any:
    """d.update(...)."""
    thing = f.change(x)
    for other in others:
        if not isinstance(f.thing(other), Keys):
            raise f.refuse("`.update()` by what is no dictionary with known keys")
        thing.items.update(f.thing(other).items)
    thing.items.update(named)
    return Static(None)


def pop_key(f: Frame, x: Ref, key: Any, *default: Any) -> Any:
    """d.pop(key, default)."""
    found = key_of(f, key)
    if found not in f.thing(x).items and not default:
        raise f.refuse(f"a dictionary has no {found!r}")
    return f.change(x).items.pop(found, *default)


METHODS: dict[tuple[type, str], Callable[..., Any]] = {
    (Items, "append"): append,
    (Rows, "append"): append,
    (Items, "extend"): extend,
    (Rows, "extend"): extend,
    (Items, "pop"): pop,
    (Items, "insert"): insert,
    (Items, "reverse"): reverse,
    (Items, "copy"): copy,
    (Keys, "copy"): copy,
    (Keys, "get"): get,
    (Keys, "update"): update,
    (Keys, "pop"): pop_key,
    (Keys, "keys"): lambda f, x: Tup(tuple([Static(k) for k in f.thing(x).items])),
    (Keys, "values"): lambda f, x: Tup(tuple(f.thing(x).items.values())),
    (Keys, "items"): lambda f, x: Tup(tuple([Tup((Static(k), v)) for k, v in f.thing(x).items.items()])),
}
