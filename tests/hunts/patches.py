"""Random programs whose code changes while they are differentiated: value, slope and what is left, against the plain call.

    python -m tests.hunts.patches --count 2000 --seed 0

A program works on a package of its own (`patched.py`, executed afresh): it uses classes, functions, closures, tables and
globals, and exchanges them, for good or for a while, itself, by helpers, `mock`, other threads, in inner derivatives, and
between two derivatives. Slopes are compared with differences of plain calls in packages of the same past, and the package
afterwards with the one that plain calls leave.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import dataclasses
import functools
import heapq
import math
import operator
import queue
import random
import threading
import time
import traceback
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import plaingrad
from plaingrad.engine.users_code import adopt, codes
from plaingrad.rewrite import is_rewritten

SOURCE = Path(__file__).with_name("patched.py")
COMPILED = compile(SOURCE.read_text(), str(SOURCE), "exec")


def package(fresh: bool = False) -> Any:
    """The package as it was written; with code of its own if it is `fresh`."""
    w = types.ModuleType("patched")
    exec(compile(SOURCE.read_text(), str(SOURCE), "exec") if fresh else COMPILED, w.__dict__)
    return w


# -- uses: what a program computes with the package -------------------------------------------------------------------------


def logged(w: Any, work: Callable[[], Any]) -> Any:
    """The sum of what `work` writes down."""
    n = len(w.seen)
    work()
    return sum(w.seen[n:])


def with_fields(e: Any, x: Any, name: str) -> Any:
    other = type(e)(x)
    setattr(other, name, x * 1.5)
    return getattr(other, name) + other.v


def in_context(w: Any, manager: Any, x: Any) -> Any:
    n = len(w.seen)
    with manager as v:
        y = v * x
    return y + sum(w.seen[n:])


def pushed(w: Any, e: Any) -> Any:
    heap = [w.Sub(50.0)]
    heapq.heappush(heap, e)


USES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "mul": lambda w, e, x: e * 2.0 + 3.0 * e,
    "mul by x": lambda w, e, x: x * e + e * x,
    "reduce": lambda w, e, x: functools.reduce(w.multiply, [e, x]),
    "map mul": lambda w, e, x: sum(map(operator.mul, [e, e], [x, 2.0])),
    "dunder": lambda w, e, x: e.__mul__(x) + type(e).__mul__(e, 2.0),
    "add": lambda w, e, x: e + 1.0 + (2.0 + e),
    "sum": lambda w, e, x: sum([e, e, x]),
    "neg": lambda w, e, x: -e * x,
    "pow": lambda w, e, x: e**2,
    "call": lambda w, e, x: e(x) + sum(map(e, [1.0, 2.0])),
    "sorted": lambda w, e, x: logged(w, lambda: sorted([e, w.Sub(50.0)])),
    "max": lambda w, e, x: logged(w, lambda: max(w.Sub(50.0), e)) + logged(w, lambda: max(e, w.Sub(50.0))),
    "heap": lambda w, e, x: logged(w, lambda: pushed(w, e)),
    "eq": lambda w, e, x: logged(w, lambda: [e].count(w.Sub(2.0))),
    "key": lambda w, e, x: logged(w, lambda: {e: 1}.get(w.Sub(2.0))),
    "item": lambda w, e, x: e[0] + e[1] * x,
    "iterate": lambda w, e, x: sum(e) + sum([v * x for v in e]),
    "unpack": lambda w, e, x: [*e][0] * x,
    "zip": lambda w, e, x: sum(a * b for a, b in zip(e, (2.0, 3.0))),
    "len": lambda w, e, x: x * len(e),
    "in": lambda w, e, x: logged(w, lambda: x in e) + logged(w, lambda: operator.contains(e, x)),
    "with": lambda w, e, x: in_context(w, e, x),
    "missing": lambda w, e, x: e.missing + getattr(e, "more", 0.0),
    "hasattr": lambda w, e, x: x * hasattr(e, "absent"),
    "format": lambda w, e, x: logged(w, lambda: f"{e}") + logged(w, lambda: "{}".format(e)),
    "half": lambda w, e, x: e.half,
    "attrgetter": lambda w, e, x: operator.attrgetter("half")(e) + getattr(e, "whole"),
    "set half": lambda w, e, x: with_fields(e, x, "half"),
    "whole": lambda w, e, x: type(e)(x).whole,
    "field": lambda w, e, x: e.field * x,
    "set field": lambda w, e, x: with_fields(e, x, "field"),
    "set new": lambda w, e, x: with_fields(e, x, "fresh"),
    "init": lambda w, e, x: w.Leaf(x).v + w.Sub(x * 2.0).v,
    "map init": lambda w, e, x: sum([made.v for made in map(w.Sub, [x, x * x])]),
    "method": lambda w, e, x: e.method(x) + sum(map(e.method, [x, 2.0])),
    "methodcaller": lambda w, e, x: operator.methodcaller("method", x)(e),
    "twice": lambda w, e, x: e.twice(x),
    "static": lambda w, e, x: w.Sub.static(x) + e.static(x),
    "of class": lambda w, e, x: w.Leaf.of_class(x) + e.of_class(x),
    "outside": lambda w, e, x: w.outside * x + w.outside.method(x) + w.outside.half * x,
    "bound outside": lambda w, e, x: w.bound(x),
    "kind": lambda w, e, x: e.kind * x,
    "class add": lambda w, e, x: w.Sub + x,
    "helper": lambda w, e, x: w.helper(x),
    "map helper": lambda w, e, x: sum(map(w.helper, [x, x * x])),
    "scale": lambda w, e, x: w.scale(x),
    "shifted": lambda w, e, x: w.shifted(x) + w.shifted(x, 3.0) + w.shifted(x, q=x),
    "part": lambda w, e, x: w.part(x) + sum(map(w.part, [x])),
    "magnitude": lambda w, e, x: w.magnitude(x),
    "closure": lambda w, e, x: w.use(x),
    "table": lambda w, e, x: w.table["one"](x) + w.table["two"](x),
    "chain": lambda w, e, x: sum([g(x) for g in w.chain]),
    "dispatched": lambda w, e, x: w.dispatched(x) + w.dispatched([x]),
    "decorated": lambda w, e, x: w.decorated(x),
    "entered": lambda w, e, x: in_context(w, w.entered(x), x),
    "produced": lambda w, e, x: sum(w.produced(x)),
    "rate": lambda w, e, x: w.rate * x + w.numbers[0] * x,
    "library": lambda w, e, x: math.sin(x) + math.exp(x * 0.5),
    "arrays": lambda w, e, x: np.exp(np.array([x, 0.5])).sum() + np.multiply(x, 2.0),
    "getattr of a class": lambda w, e, x: getattr(w.Sub, "method")(e, x),
    "fget": lambda w, e, x: w.Base.half.fget(e) if isinstance(vars(w.Base)["half"], property) else x,
    "vars": lambda w, e, x: vars(w)["helper"](x) + vars(w.Base)["method"](e, x),
    "array of objects": lambda w, e, x: (np.frompyfunc(lambda _: e, 1, 1)(np.zeros(2)) * 2.0)[0],
}

#: What is taken before a change, and used after it: name -> (take, use).
TAKEN: dict[str, tuple[Callable[[Any, Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "bound method": (lambda w, e, x: e.method, lambda g, x: g(x)),
    "special method": (lambda w, e, x: e.__mul__, lambda g, x: g(x)),
    "partial of an operator": (lambda w, e, x: functools.partial(operator.mul, e), lambda g, x: g(x)),
    "function": (lambda w, e, x: w.helper, lambda g, x: g(x)),
    "generator": (lambda w, e, x: begun(w.produced(x)), lambda g, x: sum(g)),
    "iterator": (lambda w, e, x: iter(e), lambda g, x: sum(g)),
    "map": (lambda w, e, x: map(w.scale, [x, x * 2.0]), lambda g, x: sum(g)),
    "map of an object": (lambda w, e, x: map(e, [x, 2.0]), lambda g, x: sum(g)),
    "getter": (lambda w, e, x: (w.Base.half.fget, e), lambda g, x: g[0](g[1])),
    "lambda": (lambda w, e, x: lambda t: w.scale(t) + e * t, lambda g, x: g(x)),
    "cached": (lambda w, e, x: functools.lru_cache(w.helper), lambda g, x: g(x) + g(x)),
    "closure": (lambda w, e, x: w.use, lambda g, x: g(x)),
    "key": (lambda w, e, x: functools.cmp_to_key(lambda a, b: -1 if a < b else 1), lambda g, x: x),
}


def begun(generator: Any) -> Any:
    next(generator)
    return generator


# -- changes ----------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Target:
    """What is exchanged: an attribute of a class or a module."""

    owner: Callable[[Any, Any], Any]
    name: str
    news: tuple[str, ...]
    uses: tuple[str, ...]
    hows: tuple[str, ...] = ("set", "set", "code", "wrap", "wrap x", "setattr of the type", "lambda")


def on(*names: str) -> dict[str, Callable[[Any, Any], Any]]:
    return {name: (lambda w, e: type(e)) if name == "type" else (lambda w, e, name=name: getattr(w, name)) for name in names}


def targets() -> dict[str, Target]:
    """Everything that can be exchanged by `setattr` or `__code__`."""
    items, alone, numbers = ("item_a", "item_b"), ("alone_a", "alone_b"), ("number_a", "number_b")
    methods: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
        "__init__": (("init",), ("init", "map init")),
        "__mul__": (items, ("mul", "mul by x", "reduce", "map mul", "dunder", "outside", "array of objects")),
        "__rmul__": (items, ("mul", "mul by x", "map mul")),
        "__add__": (items, ("add",)),
        "__radd__": (items, ("sum", "add")),
        "__neg__": (alone, ("neg",)),
        "__pow__": (items, ("pow",)),
        "__call__": (items, ("call",)),
        "__lt__": (("compare",), ("sorted", "max", "heap")),
        "__gt__": (("compare",), ("max",)),
        "__eq__": (("compare",), ("eq", "key")),
        "__getitem__": (("get_item",), ("item",)),
        "__iter__": (("iterate", "generate"), ("iterate", "unpack", "zip")),
        "__len__": (("length",), ("len",)),
        "__contains__": (items, ("in",)),
        "__enter__": (alone, ("with",)),
        "__exit__": (("exit",), ("with",)),
        "__getattr__": (("missing",), ("missing", "hasattr")),
        "__setattr__": (("set_attribute",), ("set new", "init")),
        "__format__": (("text",), ("format",)),
        "method": (items, ("method", "methodcaller", "twice", "outside", "bound outside", "getattr of a class", "vars")),
        "twice": (items, ("twice",)),
    }
    found: dict[str, Target] = {}
    for name, (news, uses) in methods.items():
        hows = tuple(how for how in Target.__dataclass_fields__["hows"].default if how != "code" or name != "twice")
        for cls, owner in on("Base", "Sub", "Leaf", "Other", "type").items():
            found[f"{cls}.{name}"] = Target(owner, name, news, uses, hows)
    for cls, owner in on("Base", "Sub", "type").items():
        found[f"{cls}.half"] = Target(
            owner, "half", alone, ("half", "attrgetter", "set half", "fget", "outside"), ("property", "getter code", "getter set")
        )
        found[f"{cls}.static"] = Target(owner, "static", ("static",), ("static",), ("static", "code"))
        found[f"{cls}.of_class"] = Target(owner, "of_class", ("of_class",), ("of class",), ("class", "code"))
        found[f"{cls}.whole"] = Target(owner, "whole", alone, ("whole", "attrgetter"), ("property", "cached"))
        found[f"{cls}.field"] = Target(owner, "field", alone, ("field", "set field"), ("property", "cached"))
    found["Field.__get__"] = Target(lambda w, e: w.Field, "__get__", ("get",), ("field", "set field"), ("set", "code"))
    found["Field.__set__"] = Target(lambda w, e: w.Field, "__set__", ("put",), ("set field",), ("set", "code"))
    found["Meta.__add__"] = Target(lambda w, e: w.Meta, "__add__", ("add_to_class",), ("class add",))
    functions = {
        "helper": ("helper", "map helper", "scale", "decorated", "produced", "table", "chain", "vars"),
        "scale": ("scale", "chain"),
        "magnitude": ("magnitude",),
        "dispatched": ("dispatched",),
        "decorated": ("decorated",),
    }
    for name, uses in functions.items():
        hows = ("set", "wrap", "wrap x", "lambda", "vars") + (("code",) if name in ("helper", "scale", "magnitude") else ())
        found[name] = Target(lambda w, e: w, name, numbers, uses, hows)
    found["shifted"] = Target(lambda w, e: w, "shifted", ("shifted",), ("shifted", "part"), ("set", "code"))
    found["produced"] = Target(lambda w, e: w, "produced", ("produce",), ("produced",), ("set", "code"))
    found["abs"] = Target(lambda w, e: w, "abs", numbers, ("magnitude",), ("set", "lambda"))
    return found


TARGETS = targets()
Undo = Callable[[], Any]


def assigned(owner: Any, name: str, new: Any, through: Callable[..., Any] = setattr) -> Undo:
    """Assign an attribute; what is returned puts back what was there."""
    own = vars(owner)
    before = own.get(name, mock.DEFAULT)
    through(owner, name, new)
    if before is mock.DEFAULT:
        return lambda: delattr(owner, name)
    return lambda: through(owner, name, before)


def recoded(f: Any, code: Any) -> Undo:
    """Give a function other code."""
    f = getattr(f, "__func__", f)
    f = getattr(f, "func", f) if isinstance(f, functools.cached_property) else f
    before = f.__code__
    f.__code__ = code

    def undo() -> None:
        f.__code__ = before

    return undo


def inherited(owner: Any, name: str) -> Any:
    for base in getattr(owner, "__mro__", (owner,)):
        if name in vars(base):
            return vars(base)[name]
    return None


def through_vars(owner: Any, name: str, new: Any) -> None:
    vars(owner)[name] = new


def wrapped(old: Any, x: Any) -> Any:
    @functools.wraps(old)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        y = old(*args, **kwargs)
        return y * x if isinstance(y, (float, np.floating)) else y

    return wrapper


def replacement(w: Any, target: Target, how: str, new: str, x: Any, owner: Any) -> Any:
    """What is put in the place of an attribute."""
    f = vars(w.New)[new]
    old = inherited(owner, target.name)
    if how in ("wrap", "wrap x") and isinstance(old, types.FunctionType):
        return wrapped(old, x if how == "wrap x" else 1.5)
    if how == "lambda" and new in ("item_a", "item_b"):
        return lambda self, other: self.v * getattr(other, "v", other) * x + x
    if how == "lambda" and new in ("alone_a", "alone_b"):
        return lambda self: self.v * x * x
    if how == "lambda" and new in ("number_a", "number_b"):
        return lambda v: v * x + w.rate
    made = types.FunctionType(f.__code__, w.__dict__, new, f.__defaults__)  # each time another one
    made.__kwdefaults__ = f.__kwdefaults__
    return {
        "property": lambda: property(made, w.New.setter),
        "getter set": lambda: property(made, getattr(old, "fset", None)),
        "cached": lambda: bound_cache(made, target.name),
        "static": lambda: staticmethod(made),
        "class": lambda: classmethod(made),
    }.get(how, lambda: made)()


def bound_cache(f: Any, name: str) -> Any:
    made = functools.cached_property(f)
    made.__set_name__(None, name)
    return made


def change_of_target(w: Any, e: Any, x: Any, recipe: tuple[str, str, str]) -> Undo:
    name, how, new = recipe
    target = TARGETS[name]
    owner = target.owner(w, e)
    old = inherited(owner, target.name)
    if how == "code" and old is not None and type(old) in (types.FunctionType, staticmethod, classmethod):
        return recoded(old, vars(w.New)[new].__code__)
    if how == "getter code" and isinstance(old, property):
        return recoded(old.fget, vars(w.New)[new].__code__)
    through = {"setattr of the type": type.__setattr__, "vars": through_vars}.get(how, setattr)
    return assigned(owner, target.name, replacement(w, target, how, new, x, owner), through)


def replaced(container: Any, key: Any, new: Any) -> Undo:
    before = container[key]
    container[key] = new
    return lambda: operator.setitem(container, key, before)


def by_exec(w: Any, text: str, name: str) -> Undo:
    before = vars(w)[name]
    exec(text, vars(w))
    return lambda: operator.setitem(vars(w), name, before)


def by_put(put: Any, new: Any) -> Undo:
    before = put(new)
    return lambda: put(before)


def in_cell(f: Any, name: str, new: Any) -> Undo:
    cell = f.__closure__[f.__code__.co_freevars.index(name)]
    before, cell.cell_contents = cell.cell_contents, new
    return lambda: setattr(cell, "cell_contents", before)


def plain_attribute(owner: Any, name: str, new: Any) -> Undo:
    before = getattr(owner, name)
    setattr(owner, name, new)
    return lambda: setattr(owner, name, before)


def state_of_part(part: Any, keywords: dict[str, Any]) -> Undo:
    before = part.__reduce__()[2]
    part.__setstate__((before[0], before[1], keywords, before[3]))
    return lambda: part.__setstate__(before)


def registered(f: Any, cls: type, new: Any) -> Undo:
    before = f.dispatch(cls)
    f.register(cls, new)
    return lambda: f.register(cls, before)


def own_method(e: Any, name: str, new: Any) -> Undo:
    own = vars(e)
    before = own.get(name, mock.DEFAULT)
    setattr(e, name, new)
    return lambda: own.pop(name, None) if before is mock.DEFAULT else operator.setitem(own, name, before)


def new_dict(e: Any, x: Any) -> Undo:
    before = e.__dict__
    e.__dict__ = {"v": x * 1.5}
    return lambda: setattr(e, "__dict__", before)


def kwdefault(f: Any, x: Any) -> Undo:
    return replaced(f.__kwdefaults__, "q", x)


#: name -> (apply, the uses that show it). Each gives what undoes it.
CHANGES: dict[str, tuple[Callable[[Any, Any, Any], Undo], tuple[str, ...]]] = {
    "rate": (lambda w, e, x: assigned(w, "rate", 2.5), ("rate", "helper", "scale", "produced", "entered")),
    "rate of x": (lambda w, e, x: assigned(w, "rate", x * 1.5), ("rate", "helper", "scale", "map helper", "produced")),
    "rate in vars": (lambda w, e, x: assigned(w, "rate", x + 1.0, through_vars), ("rate", "helper", "entered")),
    "rate by exec": (lambda w, e, x: by_exec(w, "rate = rate * 2.0 + 1.0", "rate"), ("rate", "scale")),
    "def by exec": (lambda w, e, x: by_exec(w, "def helper(x):\n return x * x * rate", "helper"), ("helper", "scale")),
    "number": (lambda w, e, x: replaced(w.numbers, 0, x * x), ("rate",)),
    "table": (lambda w, e, x: replaced(w.table, "one", w.New.number_a), ("table",)),
    "table of x": (lambda w, e, x: replaced(w.table, "two", lambda v: v * x * x), ("table",)),
    "chain": (lambda w, e, x: replaced(w.chain, 1, lambda v: v * x), ("chain",)),
    "whole table": (
        lambda w, e, x: assigned(w, "table", {"one": lambda v: v * v * x, "two": w.New.number_b}),
        ("table",),
    ),
    "factor": (lambda w, e, x: by_put(w.put_factor, 3.5), ("closure",)),
    "factor of x": (lambda w, e, x: by_put(w.put_factor, x * x), ("closure",)),
    "rule": (lambda w, e, x: by_put(w.put_rule, lambda v: v * v * v * x), ("closure",)),
    "cell": (lambda w, e, x: in_cell(w.use, "factor", x * 0.5), ("closure",)),
    "cell of a function": (lambda w, e, x: in_cell(w.use, "rule", w.New.number_b), ("closure",)),
    "code in a cell": (
        lambda w, e, x: recoded(w.use.__closure__[1].cell_contents, w.New.number_a.__code__),
        ("closure",),
    ),
    "defaults": (lambda w, e, x: plain_attribute(w.shifted, "__defaults__", (4.0,)), ("shifted", "part")),
    "defaults of x": (lambda w, e, x: plain_attribute(w.shifted, "__defaults__", (x,)), ("shifted", "part")),
    "no defaults": (
        lambda w, e, x: plain_attribute(w.shifted, "__kwdefaults__", {"q": 4.5}),
        ("shifted", "part"),
    ),
    "kwdefaults of x": (lambda w, e, x: plain_attribute(w.shifted, "__kwdefaults__", {"q": x * x}), ("shifted", "part")),
    "in kwdefaults": (lambda w, e, x: kwdefault(w.shifted, x), ("shifted", "part")),
    "part": (lambda w, e, x: state_of_part(w.part, {"k": 5.0}), ("part",)),
    "part of x": (lambda w, e, x: state_of_part(w.part, {"k": x, "q": x}), ("part",)),
    "register": (lambda w, e, x: registered(w.dispatched, float, lambda v: v * v * x), ("dispatched",)),
    "register list": (lambda w, e, x: registered(w.dispatched, list, lambda v: v[0] * x), ("dispatched",)),
    "wrapped": (lambda w, e, x: plain_attribute(w.decorated, "__wrapped__", w.scale), ("decorated",)),
    "kind": (lambda w, e, x: assigned(w.Base, "kind", x * x), ("kind", "method", "of class", "class add", "twice")),
    "kind of Sub": (lambda w, e, x: assigned(w.Sub, "kind", 3.0), ("kind", "method", "of class", "twice")),
    "own kind": (lambda w, e, x: own_method(e, "kind", x), ("kind", "method")),
    "own method": (lambda w, e, x: own_method(e, "method", lambda t: t * t * x), ("method", "methodcaller", "twice")),
    "own bound method": (
        lambda w, e, x: own_method(e, "method", types.MethodType(w.New.item_b, e)),
        ("method", "twice"),
    ),
    "method of outside": (lambda w, e, x: own_method(w.outside, "method", lambda t: t * x), ("outside", "bound outside")),
    "value": (lambda w, e, x: own_method(e, "v", x * x), ("mul", "call", "half", "sorted", "iterate")),
    "dict": (lambda w, e, x: new_dict(e, x), ("mul", "call", "half", "sum")),
    "class": (lambda w, e, x: plain_attribute(e, "__class__", w.Other), ("mul", "call", "sum", "missing", "twice", "init")),
    "class of outside": (lambda w, e, x: plain_attribute(w.outside, "__class__", w.Other), ("outside",)),
    "class of leaf": (lambda w, e, x: plain_attribute(e, "__class__", w.Leaf), ("mul", "twice")),
    "bases of Sub": (lambda w, e, x: plain_attribute(w.Sub, "__bases__", (w.Other,)), ("mul", "sum", "half", "init")),
    "bases mixed": (
        lambda w, e, x: plain_attribute(w.Sub, "__bases__", (w.Other, w.Base)),
        ("mul", "sorted", "iterate", "with", "field"),
    ),
    "bases of Leaf": (lambda w, e, x: plain_attribute(w.Leaf, "__bases__", (w.Base,)), ("twice", "mul")),
    "sub in the package": (lambda w, e, x: assigned(w, "Sub", w.Other), ("init", "map init", "of class", "class add")),
    "multiply": (lambda w, e, x: assigned(w, "multiply", lambda a, b: b * b * x), ("reduce",)),
    "sin": (lambda w, e, x: assigned(math, "sin", lambda v: v * v * x), ("library",)),
    "exp": (lambda w, e, x: assigned(math, "exp", lambda v: v * 3.0), ("library",)),
    "abs": (lambda w, e, x: assigned(w, "sum", lambda values: values[0] * x), ("magnitude",)),
}
GLOBAL = ("sin", "exp")  # they change what everybody has, so they do not stay
SHARED = ("sin", "exp")

Recipe = tuple[str, Any]


def apply(w: Any, e: Any, x: Any, change: Recipe) -> Undo:
    """Do a change; what is returned undoes it."""
    kind, recipe = change
    return change_of_target(w, e, x, recipe) if kind == "target" else CHANGES[recipe][0](w, e, x)


def shown_by(change: Recipe) -> tuple[str, ...]:
    kind, recipe = change
    return TARGETS[recipe[0]].uses if kind == "target" else CHANGES[recipe][1]


# -- manners: who changes it, and for how long ------------------------------------------------------------------------------


class Outsider:
    """A thread that was there before, and knows no level."""

    def __init__(self) -> None:
        self.asked: queue.Queue[Any] = queue.Queue()
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self) -> None:
        while (ask := self.asked.get()) is not None:
            w, e, change, answer = ask
            try:
                answer.append(apply(w, e, 0.5, change))
            except Exception as error:
                answer.append(error)
            answer[0].set()

    def apply(self, w: Any, e: Any, change: Recipe) -> Undo:
        answer: list[Any] = [threading.Event()]
        self.asked.put((w, e, change, answer))
        if not answer[0].wait(60):
            raise RuntimeError("the other thread does not answer")
        if isinstance(answer[1], Exception):
            raise answer[1]
        return answer[1]


OUTSIDER = Outsider()


@contextlib.contextmanager
def for_a_while(w: Any, e: Any, x: Any, change: Recipe) -> Any:
    undo = apply(w, e, x, change)
    try:
        yield
    finally:
        undo()


def by_finally(w: Any, e: Any, x: Any, change: Recipe, work: Callable[[], Any]) -> Any:
    undo = apply(w, e, x, change)
    try:
        return work()
    finally:
        undo()


def by_with(w: Any, e: Any, x: Any, change: Recipe, work: Callable[[], Any]) -> Any:
    with for_a_while(w, e, x, change):
        return work()


def by_decorator(w: Any, e: Any, x: Any, change: Recipe, work: Callable[[], Any]) -> Any:
    @for_a_while(w, e, x, change)
    def decorated() -> Any:
        return work()

    return decorated()


def by_stack(w: Any, e: Any, x: Any, change: Recipe, work: Callable[[], Any]) -> Any:
    with contextlib.ExitStack() as stack:
        stack.callback(apply(w, e, x, change))
        return work()


def mocked(w: Any, e: Any, x: Any, change: Recipe) -> Any:
    kind, recipe = change
    if kind == "target" and recipe[1] not in ("code", "getter code"):
        target = TARGETS[recipe[0]]
        owner = target.owner(w, e)
        new = replacement(w, target, recipe[1], recipe[2], x, owner)
        return mock.patch.object(owner, target.name, new, create=True)
    if recipe == "table of x":
        return mock.patch.dict(w.table, {"two": lambda v: v * x * x})
    if recipe == "rate of x":
        return mock.patch.multiple(w, rate=x * 1.5)
    return for_a_while(w, e, x, change)


def by_mock(w: Any, e: Any, x: Any, change: Recipe, work: Callable[[], Any]) -> Any:
    with mocked(w, e, x, change):
        return work()


def by_mock_decorator(w: Any, e: Any, x: Any, change: Recipe, work: Callable[[], Any]) -> Any:
    return mocked(w, e, x, change)(lambda: work())()


def by_raising(w: Any, e: Any, x: Any, change: Recipe, work: Callable[[], Any]) -> Any:
    try:
        with for_a_while(w, e, x, change):
            raise KeyError(work())
    except KeyError as error:
        return error.args[0]


def by_thread(w: Any, e: Any, x: Any, change: Recipe, work: Callable[[], Any]) -> Any:
    undos: list[Any] = []

    def change_it() -> None:
        try:
            undos.append(apply(w, e, x, change))
        except Exception as error:
            undos.append(error)

    thread = threading.Thread(target=change_it)
    thread.start()
    thread.join()
    if isinstance(undos[0], Exception):
        raise undos[0]
    try:
        return work()
    finally:
        undos[0]()


def by_outsider(w: Any, e: Any, x: Any, change: Recipe, work: Callable[[], Any]) -> Any:
    undo = OUTSIDER.apply(w, e, change)
    e.v  # noqa: B018  (see `step_of`)
    try:
        return work()
    finally:
        undo()


def by_generator(w: Any, e: Any, x: Any, change: Recipe, work: Callable[[], Any]) -> Any:
    def steps() -> Any:
        undo = apply(w, e, x, change)
        try:
            yield work()
        finally:
            undo()

    return sum(list(steps()))


MANNERS: dict[str, Callable[..., Any]] = {
    name.removeprefix("by_"): f
    for name, f in list(globals().items())
    if name.startswith("by_") and f not in (by_exec, by_put)
}


# -- programs ---------------------------------------------------------------------------------------------------------------


def inner_difference(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The derivative by differences, exact for polynomials of the fourth degree."""
    h = 1e-2
    return lambda y: (8.0 * (f(y + h) - f(y - h)) - (f(y + 2 * h) - f(y - 2 * h))) / (12 * h)


def used(w: Any, e: Any, x: Any, uses: list[str]) -> Any:
    return sum([USES[name](w, e, x) for name in uses])


def step_of(w: Any, e: Any, x: Any, do: tuple[Any, ...], inner: Callable[..., Any]) -> Any:
    kind, *rest = do
    if kind == "use":
        return used(w, e, x, rest[0])
    if kind == "stay":
        change, uses, by_other = rest
        before = used(w, e, x, uses)
        OUTSIDER.apply(w, e, change) if by_other else apply(w, e, x, change)
        e.v  # noqa: B018  (changes of other threads are noticed where Python code touches an object)
        return before * x + used(w, e, x, uses)
    if kind == "around":
        change, manner, before, uses = rest
        return (
            used(w, e, x, before) * 0.5
            + MANNERS[manner](w, e, x, change, lambda: used(w, e, x, uses)) * x
            + used(w, e, x, uses)
        )
    if kind == "taken":
        change, manner, name = rest
        take, use = TAKEN[name]
        thing = take(w, e, x)
        return MANNERS[manner](w, e, x, change, lambda: use(thing, x))
    if kind == "inside":
        change, manner, uses = rest

        def inside(y: Any) -> Any:
            d = type(e)(x * y)
            before = used(w, d, y, uses)
            return before + MANNERS[manner](w, d, y, change, lambda: used(w, d, y * x, uses))

        return inner(inside)(x) + used(w, e, x, uses)
    if kind == "around inside":
        change, manner, uses = rest
        return MANNERS[manner](w, e, x, change, lambda: inner(lambda y: used(w, type(e)(y), y * x, uses))(x))
    raise ValueError(kind)


def program_in(w: Any, steps: list[Any], cls: str, inner: Callable[..., Any]) -> Callable[[Any], Any]:
    """The program in a package."""

    def program(x: Any) -> Any:
        e = getattr(w, cls)(x)
        v = x * 1.0
        for do in steps:
            v = v + step_of(w, e, x, do, inner)
        return v

    return program


def a_change(chance: random.Random, stays: bool = False) -> Recipe:
    if chance.random() < 0.6:
        name = chance.choice(list(TARGETS))
        target = TARGETS[name]
        return "target", (name, chance.choice(target.hows), chance.choice(target.news))
    return "change", chance.choice([name for name in CHANGES if not (stays and name in GLOBAL)])


def some_uses(chance: random.Random, change: Recipe | None = None) -> list[str]:
    names = [chance.choice(list(USES)) for _ in range(chance.choice((0, 1) if change else (1, 2)))]
    if change:
        shown = shown_by(change)
        names += chance.sample(shown, min(len(shown), chance.choice((1, 1, 2))))
    chance.shuffle(names)
    return names


def a_step(chance: random.Random, returns: bool) -> tuple[Any, ...]:
    kind = chance.choice(("use", "around", "around", "around", "stay", "taken", "inside", "around inside"))
    if kind == "use":
        return kind, some_uses(chance)
    if kind == "stay":
        if not returns:
            change = a_change(chance, stays=True)
            return kind, change, some_uses(chance, change), chance.random() < 0.3
        kind = "around"
    change = a_change(chance)
    manner = chance.choice([name for name in MANNERS if name != "outsider" or change[1] not in SHARED])
    if kind == "around":
        return kind, change, manner, some_uses(chance), some_uses(chance, change)
    if kind == "taken":
        return kind, change, manner, chance.choice(list(TAKEN))
    return kind, change, manner, some_uses(chance, change)


# -- modes ------------------------------------------------------------------------------------------------------------------


def by_vjp(f: Any, x: float, between: Callable[[], Any]) -> Any:
    y, pullback = plaingrad.vjp(f, x)
    between()
    return y, pullback(1.0)[0]


def by_linearize(f: Any, x: float, between: Callable[[], Any]) -> Any:
    y, push = plaingrad.linearize(f, x)
    between()
    return y, push(1.0)


def by_array(f: Any, x: float, between: Callable[[], Any]) -> Any:
    y, g = plaingrad.value_and_grad(lambda a: f(float(a[1])))(np.array([0.5, x]))
    return y, g[1]


def by_structure(f: Any, x: float, between: Callable[[], Any]) -> Any:
    y, g = plaingrad.value_and_grad(lambda p: f(p["x"][0]))({"x": [x, 1.0]})
    return y, g["x"][0]


FIRST: dict[str, Callable[..., Any]] = {
    "grad": lambda f, x, between: (None, plaingrad.grad(f)(x)),
    "value_and_grad": lambda f, x, between: plaingrad.value_and_grad(f)(x),
    "derivative": lambda f, x, between: (None, plaingrad.derivative(f)(x)),
    "jvp": lambda f, x, between: plaingrad.jvp(f, (x,), (1.0,)),
    "vjp": by_vjp,
    "linearize": by_linearize,
    "array": by_array,
    "jacobian": lambda f, x, between: (None, plaingrad.jacobian(lambda a: f(float(a[1])), mode="reverse")(np.array([0.5, x]))[1]),
    "structure": by_structure,
}
SECOND: dict[str, Callable[..., Any]] = {
    "grad of grad": lambda f, x: plaingrad.grad(plaingrad.grad(f))(x),
    "derivative of grad": lambda f, x: plaingrad.derivative(plaingrad.grad(f))(x),
    "grad of derivative": lambda f, x: plaingrad.grad(plaingrad.derivative(f))(x),
    "derivative of derivative": lambda f, x: plaingrad.derivative(plaingrad.derivative(f))(x),
    "hvp": lambda f, x: plaingrad.hvp(f, (x,), (1.0,))[0],
}
#: They run a program more than once, so it must leave everything as it was.
AGAIN: dict[str, Callable[..., Any]] = {
    "checkpoint": lambda f, x, between: (None, plaingrad.grad(lambda v: plaingrad.checkpoint(f, v))(x)),
    "chunks": lambda f, x, between: (
        None,
        plaingrad.jacobian(lambda a: f(float(a[1])), mode="forward", chunk_size=1)(np.array([0.5, x]))[1],
    ),
}
INNER = {"grad": plaingrad.grad, "derivative": plaingrad.derivative}


# -- what is left -----------------------------------------------------------------------------------------------------------


def described(x: Any, seen: dict[int, int]) -> Any:
    """Something that is equal for equal things of two packages."""
    if isinstance(x, float):
        return type(x).__name__, float(f"{x:.9g}")
    if isinstance(x, (int, str, bool, type(None), np.ndarray)):
        return repr(x)
    if id(x) in seen:
        return "again", seen[id(x)]
    seen[id(x)] = len(seen)
    if isinstance(x, types.FunctionType):
        cells = [described(contents(cell), seen) for cell in x.__closure__ or ()]
        return (
            "function",
            x.__name__,
            (x.__code__.co_qualname, x.__code__.co_code, x.__code__.co_firstlineno),
            described(x.__defaults__, seen),
            described(x.__kwdefaults__, seen),
            cells,
            described(vars(x), seen),
        )
    if isinstance(x, (staticmethod, classmethod)):
        return type(x).__name__, described(x.__func__, seen)
    if isinstance(x, property):
        return "property", [described(f, seen) for f in (x.fget, x.fset, x.fdel)]
    if isinstance(x, functools.cached_property):
        return "cached", described(x.func, seen)
    if isinstance(x, functools.partial):
        return "partial", [described(part, seen) for part in (x.func, x.args, x.keywords)]
    if isinstance(x, types.MethodType):
        return "method", described(x.__func__, seen), described(x.__self__, seen)
    if isinstance(x, (list, tuple)):
        return type(x).__name__, [described(item, seen) for item in x]
    if isinstance(x, (dict, types.MappingProxyType)):
        return "dict", [(key, described(value, seen)) for key, value in x.items()]
    if isinstance(x, types.ModuleType):
        return "module", x.__name__
    if isinstance(x, type):
        if x.__module__ != "patched":
            return "class", x.__qualname__
        names = [(name, described(value, seen)) for name, value in vars(x).items() if name not in ("__dict__", "__weakref__")]
        return "class", x.__qualname__, described(x.__bases__, seen), names
    if type(x).__module__ == "patched":
        return "instance", described(type(x), seen), described(vars(x), seen)
    return type(x).__name__


def contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return "empty"


def left_in(w: Any) -> Any:
    """The package as it is now."""
    return [(name, described(value, {})) for name, value in vars(w).items() if not name.startswith("__")]


def functions_in(w: Any) -> list[Any]:
    found = [f for f in vars(w).values() if isinstance(f, types.FunctionType)]
    for cls in (w.Base, w.Sub, w.Leaf, w.Other, w.Meta, w.Field, w.New):
        for value in vars(cls).values():
            parts = (value.fget, value.fset) if isinstance(value, property) else (getattr(value, "__func__", value),)
            found += [f for f in parts if isinstance(f, types.FunctionType)]
    return found


def unclean(w: Any) -> str:
    """What of ours is left."""
    if codes.any_exchanged() or adopt.open_levels():
        return "a level is open"
    if any(is_rewritten(codes.running(f)) for f in functions_in(w)):
        return "rewritten code"
    if (math.sin, math.exp) != LIBRARY:
        return "the library"
    return ""


LIBRARY = math.sin, math.exp


# -- a program against its plain call ---------------------------------------------------------------------------------------


@dataclasses.dataclass
class Case:
    """A program, how it is differentiated, and how often."""

    steps: list[Any]
    cls: str
    mode: str
    inner: str
    inputs: list[float]
    between: list[Recipe]
    fresh: bool

    def plain_package(self, n: int) -> tuple[Any, Callable[[Any], Any]]:
        """A package before its call number n, when all calls are plain, and the program in it."""
        w = package(self.fresh)
        f = program_in(w, self.steps, self.cls, inner_difference)
        for k in range(n):
            f(self.inputs[k])
            self.change(w, k)
        return w, f

    def change(self, w: Any, k: int) -> None:
        if k < len(self.between):
            apply(w, w.outside, 0.5, self.between[k])


def chosen(chance: random.Random) -> Case:
    """A random case."""
    mode = chance.choice([*FIRST, *FIRST, *SECOND, *AGAIN])
    returns = mode in AGAIN
    steps = [a_step(chance, returns) for _ in range(chance.randint(1, 4))]
    inputs = [chance.uniform(0.4, 1.3) for _ in range(1 if returns else chance.choice((1, 1, 2, 3)))]
    between = [a_change(chance, stays=True) for _ in range(chance.choice((0, 1, 1, 2)))]
    cls, inner = chance.choice(("Sub", "Leaf", "Base")), chance.choice(list(INNER))
    return Case(steps, cls, mode, inner, inputs, between, chance.random() < 0.1)


def close(found: Any, right: Any, scale: float) -> bool:
    return abs(found - right) <= 2e-6 * (1.0 + scale)


def outcome_of(case: Case) -> str:
    """right, raised (as the plain call), or what is wrong."""
    ours = package(case.fresh)
    g = program_in(ours, case.steps, case.cls, INNER[case.inner])
    differentiate = {**FIRST, **AGAIN}.get(case.mode)
    for n, x in enumerate(case.inputs):
        try:
            plain, f = case.plain_package(n)
        except Exception:
            return "left out"  # changes that do not go together
        try:
            value = f(x)
            at = {k: case.plain_package(n)[1](x + k * STEP) for k in (-2, -1, 1, 2)}
        except Exception as error:
            return raised_alike(case, g, x, error)
        scale = max(abs(float(v)) for v in (*at.values(), value))
        if not math.isfinite(scale):
            return "left out"
        try:
            case.change(plain, n)
        except Exception:
            return "left out"
        if differentiate:
            truth = (8.0 * (at[1] - at[-1]) - (at[2] - at[-2])) / (12 * STEP)
            y, slope = differentiate(g, x, lambda n=n: case.change(ours, n))
            if y is not None and not close(y, value, scale * 1e-3):
                return f"wrong value {y} for {value} (call {n})"
        else:
            truth = (16.0 * (at[1] + at[-1]) - (at[2] + at[-2]) - 30.0 * value) / (12 * STEP**2)
            slope = SECOND[case.mode](g, x)
        if case.mode not in ("vjp", "linearize"):
            case.change(ours, n)
        if not close(slope, truth, max(scale, abs(truth)) * (1.0 if differentiate else 100.0)):
            return f"wrong slope {slope} for {truth} (call {n})"
        if found := unclean(ours):
            return f"wrong state: {found} (call {n})"
        if case.mode not in AGAIN:
            for (name, a), (other, b) in zip(left_in(ours), left_in(plain)):
                if (name, a) != (other, b) and not inner_logs(case, name):
                    return f"wrong state of {name}: {a}\n    for {other}: {b} (call {n})"
    return "right"


def inner_logs(case: Case, name: str) -> bool:
    """Inner derivatives run their function once, differences four times."""
    return name == "seen" and any(do[0] in ("inside", "around inside") for do in case.steps)


def raised_alike(case: Case, g: Any, x: float, error: Exception) -> str:
    try:
        ({**FIRST, **AGAIN}.get(case.mode) or (lambda f, x, between: SECOND[case.mode](f, x)))(g, x, lambda: None)
    except type(error):
        return "raised as plain"
    except plaingrad.PlaingradError:
        raise
    except Exception as other:
        return f"wrong exception {other!r} for {error!r}"
    return f"wrong: nothing raised for {error!r}"


STEP = 1e-3


def main() -> int:
    """The number of faults."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="the seed of one program, which is printed, and whose errors are raised")
    options = parser.parse_args()
    if options.only is not None:
        case = chosen(random.Random(options.only))
        print(case)
        print(outcome_of(case))
        return 0
    outcomes: collections.Counter[str] = collections.Counter()
    begun = time.monotonic()
    for n in range(options.count):
        seed = options.seed * 1_000_003 + n
        case = chosen(random.Random(seed))
        try:
            outcome = outcome_of(case)
        except plaingrad.PlaingradError as refusal:
            outcome = f"refused {type(refusal).__name__}: {refusal}"
        except Exception:
            outcome = f"crashed\n{traceback.format_exc()}"
        outcomes[outcome.split()[0]] += 1
        if outcome.split()[0] in ("wrong", "refused", "crashed"):
            print(seed, case, outcome, sep="\n  ")
    print(f"{options.count} programs in {time.monotonic() - begun:.0f} s: {dict(outcomes)}")
    return outcomes["wrong"] + outcomes["crashed"]


if __name__ == "__main__":
    main()
