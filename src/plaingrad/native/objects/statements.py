"""Statements, followed one after the other; those whose test is not known in both ways."""

from __future__ import annotations

import ast
import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from plaingrad.native.objects import attributes, expressions, generators, lists, loops, operators, outside
from plaingrad.native.objects.engine import Frame
from plaingrad.native.objects.values import UNKNOWN, UNSET, Instance, Items, Keys, Leaf, Rows, Static, assign


def body(f: Frame, node: Any) -> None:
    """The body of a function."""
    f.node = node
    if isinstance(node, ast.Lambda):
        finish(f, f.evaluate(node.body))
        return
    if any(
        isinstance(n, (ast.Yield, ast.YieldFrom, ast.Await)) for part in node.body for n in ast.walk(part)
    ):
        raise f.refuse(f"`{node.name}` is a generator")
    follow(f, node.body)
    if f.state is not None:
        finish(f, Static(None))


def finish(f: Frame, value: Any) -> None:
    """Return a value."""
    if f.state is None:
        return
    f.storable(value)
    slot: list[Any] = []
    f.block.append(slot)
    f.returns.append((value, f.state, slot))
    f.state = None


def follow(f: Frame, body: list[ast.stmt]) -> None:
    """Statements in order, as far as a way leads."""
    for s in body:
        if f.state is None:
            return
        f.line = s.lineno
        f.attempt(s, functools.partial(step, f, s), functools.partial(without, f, s))


def step(f: Frame, s: ast.stmt) -> None:
    """One statement."""
    rule = RULES.get(type(s))
    if rule is None:
        raise f.refuse(WORDS.get(type(s), f"`{type(s).__name__.lower()}`"))
    rule(f, s)


def without(f: Frame, s: ast.stmt) -> None:
    """What is done for a statement that is refused, where all that is refused is wanted: what is inside."""
    stored = [n.id for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    stored += [n.name for n in ast.walk(s) if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
    for name in stored:
        if name in f.own:
            loops.bind(f, ast.Name(name, ast.Store()), UNKNOWN)
    if isinstance(s, (ast.Try, ast.With)):
        follow(f, s.body)
    elif isinstance(s, (ast.For, ast.While)) and s.orelse:
        follow(f, [type(s)(**{**dict(ast.iter_fields(s)), "orelse": [], "lineno": s.lineno})])


WORDS = {
    ast.Try: "`try`",
    ast.With: "`with`",
    ast.Global: "`global`",
    ast.ClassDef: "a class defined inside",
    ast.AsyncFor: "`async for`",
}


def assigned(f: Frame, s: ast.Assign) -> None:
    value = f.evaluate(s.value)
    for target in s.targets:
        if f.state is not None:
            loops.bind(f, target, value)


def annotated(f: Frame, s: ast.AnnAssign) -> None:
    if s.value is not None:
        loops.bind(f, s.target, f.evaluate(s.value))


def changed(f: Frame, s: ast.AugAssign) -> None:
    """target op= value."""
    if isinstance(s.target, ast.Name):
        of = expressions.name(f, s.target)
        value = f.after([of], s.value)
        result = in_place(f, of, s.op, value, s)
        if f.state is not None:
            loops.bind(f, s.target, result)
        return
    of = f.sure(f.evaluate(s.target.value))
    count = len(f.pins)
    f.pins.append(of)
    if isinstance(s.target, ast.Attribute):
        old = attributes.attribute(f, of, s.target.attr)
        value = f.after([old], s.value)
        attributes.set_attribute(f, of, s.target.attr, in_place(f, old, s.op, value, s))
    else:
        index = lists.index_of(f, s.target.slice)
        if isinstance(f.thing(of), Leaf):
            value = f.expression(f.evaluate(s.value))
            place = ast.Subscript(f.expression(f.thing(of)), lists.slice_of(f, index), ast.Store())
            f.emit(ast.AugAssign(place, s.op, value))
        else:
            old = lists.item(f, of, index)
            value = f.after([old, index], s.value)
            lists.set_item(f, of, index, in_place(f, old, s.op, value, s))
    del f.pins[count:]


def in_place(f: Frame, x: Any, op: ast.operator, y: Any, node: ast.AST) -> Any:
    """x op= y: what x is afterwards. An array is written into, a number is not."""
    x, y = f.sure(x), f.sure(y)
    thing = f.thing(x)
    if isinstance(thing, Instance):
        word = operators.BINARY[type(op)][0]
        found = attributes.special(f, x, f"__i{word}__")
        if found is not None:
            return f.call(found, [y], {})
    if isinstance(thing, (Items, Rows)) and isinstance(op, ast.Add):
        lists.extend(f, x, y)
        return x
    if not isinstance(x, Leaf) or isinstance(f.thing(y), (Instance, Items, Rows)):
        return operators.operation(f, op, x, y, node)
    value = f.expression(y)
    name = f.whole.fresh("t")
    f.emit(assign(name, f.expression(x)))
    f.emit(ast.AugAssign(ast.Name(name, ast.Store()), op, value))
    return Leaf(name)


def expression(f: Frame, s: ast.Expr) -> None:
    if not isinstance(s.value, ast.Constant):
        f.evaluate(s.value)


def in_context(f: Frame, s: ast.With) -> None:
    """`with np.errstate(...)` that raises nothing: which warnings there are has no meaning here."""
    for item in s.items:
        call = item.context_expr
        function = f.evaluate(call.func) if isinstance(call, ast.Call) else None
        words = [k.value for k in call.keywords] if isinstance(call, ast.Call) and not call.args else [None]
        is_quiet = all(isinstance(w, ast.Constant) and w.value in ("ignore", "warn") for w in words)
        known = isinstance(function, Static) and function.value is np.errstate
        if not known or not is_quiet or item.optional_vars is not None:
            raise f.refuse(WORDS[ast.With])
    follow(f, s.body)


def deleted(f: Frame, s: ast.Delete) -> None:
    for target in s.targets:
        if isinstance(target, ast.Name) and target.id in f.own and target.id not in f.cells:
            expressions.name(f, target)  # it must have a value
            f.state.names[target.id] = UNSET
            continue
        of = f.evaluate(target.value) if isinstance(target, ast.Subscript) else None
        index = lists.index_of(f, target.slice) if isinstance(target, ast.Subscript) else None
        thing = f.thing(of)
        if isinstance(thing, Keys) and lists.key_of(f, index) in thing.items:
            del f.change(of).items[lists.key_of(f, index)]
        elif isinstance(thing, Items) and isinstance(index, Static) and isinstance(index.value, int):
            lists.pop(f, of, index)
        else:
            raise f.refuse("`del`")


def branch(f: Frame, s: ast.If) -> None:
    test = operators.truth(f, f.evaluate(s.test))
    if f.state is None:
        return
    if isinstance(test, Static):
        follow(f, s.body if test.value else s.orelse)
        return
    line = f.line
    outer, before = f.block, f.state
    ends = []
    for arm in (s.body, s.orelse):
        f.block, f.state = [], before.copy()
        follow(f, arm)
        ends.append((f.state, f.block))
    live = [(state, block) for state, block in ends if state is not None]
    merged = f.merge([state for state, _ in live]) if live else None
    if merged is not None:
        for k, (_, block) in enumerate(live):
            block.append(merged.assignments(k))
    f.block, f.state, f.line = outer, merged.target if merged is not None else None, line
    f.emit(ast.If(f.expression(test), [], []))
    f.block[-1].body, f.block[-1].orelse = ends[0][1], ends[1][1]


def for_loop(f: Frame, s: ast.For) -> None:
    if s.orelse:
        raise f.refuse("`else` of a loop")
    iterable = f.sure(f.evaluate(s.iter))

    if generators.is_generator(iterable):
        generators.refuse_jumps(f, iterable, s.body)

    def go(x: Any) -> None:
        loops.bind(f, s.target, x)
        follow(f, s.body)

    loops.over(f, iterable, go, s)


def while_loop(f: Frame, s: ast.While) -> None:
    if s.orelse:
        raise f.refuse("`else` of a loop")

    def go() -> None:
        test = operators.truth(f, f.evaluate(s.test))
        if isinstance(test, Static):
            if not test.value:
                jump(f, "breaks", ast.Break())
                return
        else:
            outer = f.block
            out: list[Any] = []
            f.block.append(ast.If(ast.UnaryOp(ast.Not(), f.expression(test)), out, []))
            f.loops[-1].breaks.append((f.state.copy(), slot := []))
            out += [slot, ast.Break()]
            f.block = outer
        follow(f, s.body)

    loops.followed(f, ast.While(ast.Constant(True), [], []), go, s)


def jump(f: Frame, kind: str, statement: ast.stmt) -> None:
    """`break` or `continue`."""
    loop = f.loops[-1]
    slot: list[Any] = []
    getattr(loop, kind).append((f.state, slot))
    if not loop.unrolled:
        f.block.append(slot)
        f.emit(statement)
    f.state = None


def returned(f: Frame, s: ast.Return) -> None:
    if f.generates:
        raise f.refuse("`return` in a generator")
    finish(f, Static(None) if s.value is None else f.evaluate(s.value))


def raised(f: Frame, s: ast.Raise) -> None:
    """An exception: of its class, if that is one of Python's. What it says is asked of the plain call, if need be."""
    of = s.exc.func if isinstance(s.exc, ast.Call) else s.exc
    found = f.evaluate(of) if isinstance(of, (ast.Name, ast.Attribute)) else None
    cls = found.value if isinstance(found, Static) else None
    if not (isinstance(cls, type) and issubclass(cls, Exception) and cls.__module__ == "builtins"):
        f.emit(f.raising(RuntimeError))
    elif isinstance(s.exc, ast.Call) and (s.exc.args or s.exc.keywords or s.cause):
        says = [x.value for x in s.exc.args if isinstance(x, ast.Constant)]
        whole = len(says) == len(s.exc.args) and not s.exc.keywords and not s.cause
        f.emit(f.raising(cls, *says if whole else (), vague=not whole))
    else:
        f.emit(f.raising(cls, vague=s.cause is not None))
    f.state = None


def asserted(f: Frame, s: ast.Assert) -> None:
    test = operators.truth(f, f.evaluate(s.test))
    if isinstance(test, Static) and test.value:
        return
    says = [s.msg.value] if isinstance(s.msg, ast.Constant) else []
    wrong = f.raising(AssertionError, *says, vague=s.msg is not None and not says)
    if isinstance(test, Static):
        f.emit(wrong)
        f.state = None
    else:
        f.emit(ast.If(ast.UnaryOp(ast.Not(), f.expression(test)), [wrong], []))


def defined(f: Frame, s: ast.FunctionDef) -> None:
    if s.decorator_list:
        raise f.refuse("a decorated function defined inside")
    if s.name in f.cells and s.name not in f.state.names:
        loops.bind(f, ast.Name(s.name, ast.Store()), UNSET)
    loops.bind(f, ast.Name(s.name, ast.Store()), expressions.function(f, s))


def imported(f: Frame, s: ast.Import | ast.ImportFrom) -> None:
    for alias in s.names:
        if isinstance(s, ast.ImportFrom):
            if s.level or s.module is None:
                raise f.refuse("a relative import inside")
            value = getattr(importlib.import_module(s.module), alias.name)
        elif alias.asname is None and "." in alias.name:
            value = importlib.import_module(alias.name.split(".")[0])
        else:
            value = importlib.import_module(alias.name)
        name = alias.asname or alias.name.split(".")[0]
        f.state.names[name] = outside.known(f, value, name)


RULES: dict[type, Callable[..., None]] = {
    ast.Assign: assigned,
    ast.AnnAssign: annotated,
    ast.AugAssign: changed,
    ast.Expr: expression,
    ast.If: branch,
    ast.For: for_loop,
    ast.While: while_loop,
    ast.Break: lambda f, s: jump(f, "breaks", ast.Break()),
    ast.Continue: lambda f, s: jump(f, "backs", ast.Continue()),
    ast.Return: returned,
    ast.Raise: raised,
    ast.Assert: asserted,
    ast.FunctionDef: defined,
    ast.Import: imported,
    ast.ImportFrom: imported,
    ast.Delete: deleted,
    ast.With: in_context,
    ast.Pass: lambda f, s: None,
    ast.Nonlocal: lambda f, s: None,
}
__all__ = ["body"]
