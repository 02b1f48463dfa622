"""Calls: users' functions become functions of numbers, one for each structure of their arguments; classes objects."""

from __future__ import annotations

import ast
import dataclasses
import functools
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numba
import numpy as np
from numba.core import types

from plaingrad import origin
from plaingrad.native.analysis.users_functions import has_own_rule
from plaingrad.native.objects import (
    attributes,
    classes,
    compiled,
    generators,
    knowns,
    lists,
    of_numba,
    outside,
)
from plaingrad.native.objects.engine import NO_DEEPER, Frame, Home, Whole, function_home, placed
from plaingrad.native.objects.merging import Merged, shape
from plaingrad.native.objects.sources import names_read, names_set, tree_of
from plaingrad.native.objects.values import (
    UNKNOWN,
    UNSET,
    Bound,
    Cell,
    Closure,
    Instance,
    Leaf,
    Method,
    Ref,
    Refused,
    State,
    Static,
    Tup,
    contents,
    is_number,
    load,
    with_contents,
)
from plaingrad.native.program.dispatchers import LIBRARIES, is_dispatcher

BEGUN = object()  # stands for a function that is being made


@dataclass(slots=True)
class Made:
    """A function that was made: its name, parameters by their order, and what it leaves behind.

    Attributes:
        name: the function.
        state: what is known at its end, its result as `return`; None if it never returns.
        params: the variables that are its parameters.
        things: the objects that its arguments hold, in the order of `shape`.
        outs: the variables that it returns.
        held: the objects that its arguments hold, in `state`.
        entry: what these objects are where it begins.
    """

    name: str
    state: Any
    params: list[str]
    things: list[int]
    outs: list[str]
    held: list[int]
    entry: dict[int, Any]


def call(f: Frame, function: Any, args: list[Any], named: dict[str, Any]) -> Any:
    """The value of a call."""
    if isinstance(function, Bound):
        return call(f, function.function, [function.first, *args], named)
    if function == UNKNOWN:
        return UNKNOWN
    if isinstance(function, Method):
        return lists.method(f, function, args, named)
    if isinstance(function, Closure):
        return made_call(f, function, args, named)
    thing = f.thing(function)
    if isinstance(thing, Instance):
        found = attributes.special(f, function, "__call__")
        if found is None:
            raise f.refuse(f"a call of a {thing.cls.__name__}")
        return call(f, found, args, named)
    if not isinstance(function, Static):
        raise f.refuse("a call of what is no function")
    of = function.value
    rule = knowns.KNOWN.get(of) if is_hashable(of) else None
    if rule is not None:
        return rule(f, [f.sure(x) for x in args], {name: f.sure(x) for name, x in named.items()})
    if isinstance(of, types.Number):
        return of_numba.as_type(f, of, args)
    if isinstance(of, type):
        return classes.made_object(f, of, args, named)
    if isinstance(of, functools.partial):
        return call(f, Static(of.func), [*map(Static, of.args), *args], {**of.keywords, **named})
    if origin.is_of(getattr(of, "__module__", ""), ("plaingrad", "scipy")):
        raise f.refuse(f"`{getattr(of, '__name__', of)}` is called")
    if isinstance(of, FunctionType) and not origin.is_of(of.__module__, LIBRARIES):
        if has_own_rule(of):
            raise f.refuse(f"`{of.__name__}` has a rule of its own")
        compiled.refuse_replaced(f, of)
        return made_call(f, function, args, named)
    if is_dispatcher(of):
        return compiled_call(f, function, args, named)
    if isinstance(of, (BuiltinFunctionType, np.ufunc, FunctionType)) or callable(of):
        return outside.outside_call(f, function, args, named)
    raise f.refuse("a call of what is no function")


def compiled_call(f: Frame, function: Any, args: list[Any], named: dict[str, Any]) -> Any:
    """A call of a function that the user compiled: followed, where that is wanted and possible, else left to Numba."""
    of = function.value
    f.whole.compiled = True
    if not f.whole.enters:
        return outside.outside_call(f, function, args, named)
    before, block, size, pins = f.state.copy(), f.block, len(f.block), len(f.pins)
    try:
        if has_own_rule(of) or has_own_rule(of.py_func):
            raise f.refuse(f"`{of.__name__}` has a rule of its own")
        compiled.refuse_other(f, of)
        return made_call(f, Static(of.py_func), args, named, compiled.options_of(of))
    except Refused as refusal:
        f.state, f.block = before, block
        del f.block[size:], f.pins[pins:]
        try:
            return outside.outside_call(f, function, args, named)
        except Refused:
            raise refusal from None


def is_hashable(x: Any) -> bool:
    try:
        hash(x)
    except TypeError:
        return False
    return True


# -- users' functions -----------------------------------------------------------------------------------------------


def made_call(
    f: Frame, function: Any, args: list[Any], named: dict[str, Any], options: dict[str, Any] | None = None
) -> Any:
    """A call of a function that is made for the structure of its arguments, and compiled with these options."""
    if isinstance(function, Closure):
        node, home = function.node, inner_home(function)
        defaults: Any = function.defaults
        keywords = dict(function.named)
    else:
        of = function.value
        node = node_of(f.whole, of)
        home = function_home(of)
        if node is None:
            raise f.refuse(f"the source of `{of.__name__}` is not found, or is not what runs")
        defaults = [outside.known(f, x, "default") for x in of.__defaults__ or ()]
        keywords = {k: outside.known(f, x, k) for k, x in (of.__kwdefaults__ or {}).items()}
    for x in (*args, *named.values()):
        f.storable(x)
    values = arguments(f, node.args, args, named, list(defaults), keywords)
    if generators.is_one(node):
        return generators.made(node, home, values)
    cells = dict(function.cells) if isinstance(function, Closure) else {}
    names = {**values, **{f"<{name}>": cell for name, cell in cells.items()}}
    names = {name: as_variable(f, x) for name, x in names.items()}
    kind, _, things = shape(f.state, list(names.values()), lambda _: True)
    leaves = every_leaf(f.state, list(names.values()))
    key = (id(node), kind, tuple(names), id(home.space), cells_key(home), repr(options))
    made = f.whole.made.get(key)
    if made is BEGUN:
        raise f.refuse(f"`{home.name}` calls itself")
    if made is None:
        f.whole.made[key] = BEGUN
        f.whole.kept.append((node, home, function))
        try:
            made = make(f, node, home, names)
        finally:
            del f.whole.made[key]
        if options:
            f.whole.space[made.name] = numba.njit(**options)(f.whole.space[made.name])
        f.whole.made[key] = made
    return taken_over(f, made, leaves, things)


def node_of(whole: Whole, function: FunctionType) -> Any:
    """The text of a function, which must stay as it is, with its defaults."""
    for name in ("__code__", "__defaults__", "__kwdefaults__"):
        whole.check(getattr, function, name)
    return tree_of(function)


def cells_key(home: Home) -> Any:
    return tuple([(name, id(cell)) for name, cell in home.captured.items() if not isinstance(cell, Ref)])


def inner_home(function: Closure) -> Home:
    """Where a function defined inside stands."""
    outer = function.home
    captured = {**outer.captured, **dict(function.cells)}
    name = getattr(function.node, "name", "lambda")
    return Home(outer.file, name, outer.space, captured)


def as_variable(f: Frame, x: Any) -> Any:
    """A number that is known as a variable, but for whole ones: a function is not made for every float."""
    if is_number(x) and isinstance(x.value, (float, complex)):
        return f.leaf(f.expression(x))
    return with_contents(x, [as_variable(f, part) for part in contents(x)]) if isinstance(x, Tup) else x


def every_leaf(s: State, roots: list[Any]) -> list[str]:
    return shape(s, roots, lambda _: True)[1]


def arguments(
    f: Frame,
    spec: ast.arguments,
    args: list[Any],
    named: dict[str, Any],
    defaults: list[Any],
    keywords: dict[str, Any],
) -> dict[str, Any]:
    """The values of parameters."""
    names = [p.arg for p in (*spec.posonlyargs, *spec.args)]
    values: dict[str, Any] = dict(zip(names, args, strict=False))
    named = dict(named)
    for name in names[len(args) :]:
        if name in named:
            values[name] = named.pop(name)
    for name, value in zip(names[len(names) - len(defaults) :], defaults, strict=True):
        values.setdefault(name, value)
    for p in spec.kwonlyargs:
        if p.arg in named or p.arg in keywords:
            values[p.arg] = named.pop(p.arg) if p.arg in named else keywords[p.arg]
    if spec.vararg is not None:
        values[spec.vararg.arg] = Tup(tuple(args[len(names) :]))
    elif len(args) > len(names):
        raise f.refuse("a call with too many arguments")
    if spec.kwarg is not None:
        values[spec.kwarg.arg] = f.object(lists.keys_of(named))
    elif named:
        raise f.refuse("a call with an argument that is given twice, or that there is none of")
    missing = [n for n in (*names, *[p.arg for p in spec.kwonlyargs]) if n not in values]
    if missing:
        raise f.refuse(f"a call without `{missing[0]}`")
    return values


def shared_names(node: Any, own: set[str]) -> frozenset[str]:
    """The local variables that functions defined inside read."""
    inner = [n for n in ast.walk(node) if isinstance(n, (ast.FunctionDef, ast.Lambda)) and n is not node]
    return frozenset(own & set().union(*map(names_read, inner), set()))


def make(f: Frame, node: Any, home: Home, given: dict[str, Any]) -> Made:
    """A function for arguments of this structure."""
    whole: Whole = f.whole
    if whole.depth > NO_DEEPER:
        raise f.refuse("functions call each other too deeply")
    state, names, params = entry(f, given)
    inside = Home(home.file, home.name, home.space, dict(home.captured))
    own = names_set(node)
    frame = Frame(whole, inside, state, cells=shared_names(node, own), own=frozenset(own), line=node.lineno)
    frame.entry = state.copy().heap
    for name, x in names.items():
        if name.startswith("<"):
            inside.captured[name[1:-1]] = x
            state.names[name] = x
        else:
            state.names[f"<{name}>"] = x
            state.names[name] = frame.object(Cell(x)) if name in frame.cells else x
    first = next(iter(names), None)
    frame.first = names[first] if first is not None else None
    whole.depth += 1
    try:
        whole.steps.body(frame, node)
    finally:
        whole.depth -= 1
    return finished(frame, node, names, params)


def entry(f: Frame, given: dict[str, Any]) -> tuple[State, dict[str, Any], list[str]]:
    """(the state in which a function begins, its arguments there, its parameters)."""
    state = State()
    params: list[str] = []
    seen: dict[int, int] = {}

    def of(x: Any, base: str) -> Any:
        if x == UNKNOWN:
            return x
        if isinstance(x, Leaf):
            params.append(f.whole.fresh(base))
            return Leaf(params[-1])
        if isinstance(x, Ref):
            if x.at not in seen:
                seen[x.at] = at = f.whole.new()
                thing = f.state.heap[x.at]
                state.heap[at] = thing
                state.heap[at] = with_contents(thing, [of(part, base) for part in contents(thing)])
            return Ref(seen[x.at])
        return with_contents(x, [of(part, base) for part in contents(x)])

    names = {name: of(x, name.strip("<>")) for name, x in given.items()}
    return state, names, params


def finished(frame: Frame, node: Any, names: dict[str, Any], params: list[str]) -> Made:
    """The function that was followed, as one that is made."""
    whole = frame.whole
    name = whole.fresh(frame.home.name)
    roots = [key if key.startswith("<") else f"<{key}>" for key in names]
    things = things_in(frame.entry, names)
    whole_things = {f"<{at}>": Ref(at) for at in things}  # also those that the arguments hold no longer
    ends = []
    for value, state, _ in frame.returns:
        held_by = {key: state.names[key] for key in roots}
        ends.append(State({"return": value, **held_by, **whole_things}, state.heap))
    merged: Merged | None = None
    outs: list[str] = []
    held: list[int] = []
    if ends:
        merged = frame.merge(ends)
        wanted = [merged.target.names[k] for k in ("return", *roots, *whole_things)]
        _, outs, _ = shape(merged.target, wanted, lambda n: n not in params)
        outs = list(dict.fromkeys(outs))
        held = things_in(merged.target.heap, {k: merged.target.names[k] for k in (*roots, *whole_things)})
    moves = dict(merged.moves) if merged is not None else {}
    for k, (_, _, slot) in enumerate(frame.returns):
        slot += returned(frame, moves, outs, k)
    statement = ast.FunctionDef(
        name=name,
        args=ast.arguments([], [ast.arg(p) for p in params], None, [], [], None, []),
        body=flat(frame.block) or [ast.Pass()],
        decorator_list=[],
        returns=None,
        lineno=node.lineno,
    )
    if hasattr(ast, "TypeAlias"):
        statement.type_params = []
    module = ast.Module([statement], [])
    placed(module, node.lineno)
    place: dict[str, Any] = {}
    exec(compile(module, frame.home.file, "exec", dont_inherit=True), whole.space, place)
    whole.space[name] = place[name]
    whole.mine.add(name)
    whole.texts.append(module)
    return Made(name, merged.target if merged is not None else None, params, things, outs, held, frame.entry)


def things_in(heap: dict[int, Any], names: dict[str, Any]) -> list[int]:
    """The objects that arguments hold, in the order in which `shape` meets them, where a function begins."""
    found: list[int] = []

    def of(x: Any) -> None:
        if isinstance(x, Ref):
            if x.at in found:
                return
            found.append(x.at)
            for part in contents(heap[x.at]):
                of(part)
        else:
            for part in contents(x):
                of(part)

    for x in names.values():
        of(x)
    return found


def returned(frame: Frame, moves: dict[str, Any], outs: list[str], k: int) -> list[ast.stmt]:
    """What one return statement becomes."""
    made: list[ast.stmt] = []
    parts: list[ast.expr] = []
    for out in outs:
        value = moves[out][k] if out in moves else Leaf(out)
        if isinstance(value, list):
            parts.append(ast.List([atom_of(x) for x in value], ast.Load()))
        elif value is None:
            parts.append(ast.Constant(0.0))
        else:
            parts.append(atom_of(value))
    whole = parts[0] if len(parts) == 1 else ast.Tuple(parts, ast.Load())
    made.append(ast.Return(whole))
    return made


def atom_of(x: Any) -> ast.expr:
    return load(x.name) if isinstance(x, Leaf) else ast.Constant(x.value)


def flat(block: list[Any]) -> list[ast.stmt]:
    """Statements, with those of the places that were left open."""
    out: list[ast.stmt] = []
    for s in block:
        if isinstance(s, list):
            out += flat(s)
            continue
        if isinstance(s, ast.If):
            s.body, s.orelse = flat(s.body) or [ast.Pass()], flat(s.orelse)
        elif isinstance(s, (ast.For, ast.While)):
            s.body = flat(s.body) or [ast.Pass()]
        out.append(s)
    return out


def taken_over(f: Frame, made: Made, leaves: list[str], things: list[int]) -> Any:
    """The statement that calls a function that was made, and what is known after it."""
    expression = ast.Call(load(made.name), [load(x) for x in leaves], [])
    if made.state is None:
        f.emit(ast.Expr(expression))
        f.emit(ast.Raise(ast.Call(load("RuntimeError"), [], []), None))
        f.state = None
        return UNSET
    names = dict(zip(made.params, leaves, strict=True))
    outs = {name: f.whole.fresh(name.rsplit("_", 1)[0]) for name in made.outs}
    if len(outs) == 1:
        f.emit(ast.Assign([ast.Name(next(iter(outs.values())), ast.Store())], expression))
    elif outs:
        target = ast.Tuple([ast.Name(x, ast.Store()) for x in outs.values()], ast.Store())
        f.emit(ast.Assign([target], expression))
    else:
        f.emit(ast.Expr(expression))
    names.update(outs)
    places = dict(zip(made.things, things, strict=True))

    def of(x: Any) -> Any:
        if isinstance(x, Leaf):
            return x if x == UNKNOWN else Leaf(names[x.name])
        if isinstance(x, Ref):
            if x.at not in places:
                places[x.at] = f.whole.new()
            return Ref(places[x.at])
        return with_contents(x, [of(part) for part in contents(x)])

    result = of(made.state.names["return"])
    done: set[int] = set()
    while todo := [k for k in places if k not in done and k in made.state.heap]:
        for k in todo:
            done.add(k)
            thing = made.state.heap[k]
            f.state.heap[places[k]] = with_contents(thing, [of(part) for part in contents(thing)])
    return result


def parameters_of(f: Frame, function: Any) -> int | None:
    """How many arguments a call has to give by their places; None if that is not one number."""
    of = function.value if isinstance(function, Static) else None
    if isinstance(of, type):
        names = getattr(of, "_fields", None) if issubclass(of, tuple) else None
        if names is not None:
            return None if of._field_defaults else len(names)
        fields = attributes.fields_of_dataclass(of)
        if fields is None:
            return None
        is_wanted = [
            x.default is dataclasses.MISSING is x.default_factory and x.init and not x.kw_only for x in fields
        ]
        return len(fields) if all(is_wanted) else None
    if not isinstance(of, FunctionType) or of.__defaults__ or of.__code__.co_flags & 0x0C:
        return None
    return None if of.__code__.co_kwonlyargcount else of.__code__.co_argcount


__all__ = ["Refused", "call", "made_call"]
