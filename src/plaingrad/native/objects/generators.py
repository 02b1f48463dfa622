"""Generators that a loop goes through: their text is followed in the place of the loop, its body at every `yield`."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from plaingrad.native.objects.engine import Frame
from plaingrad.native.objects.sources import names_set
from plaingrad.native.objects.values import Several, Static

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
LOOPS = (ast.For, ast.While)


@dataclass(frozen=True, slots=True, eq=False)
class Code:
    """The text of a generator, where it stands, and the names of its parameters."""

    node: Any
    home: Any
    names: tuple[str, ...]


def is_one(node: Any) -> bool:
    """Whether the text of a function is that of a generator."""
    return isinstance(node, ast.FunctionDef) and any(isinstance(n, YIELDS) for n in inside(node.body))


YIELDS = (ast.Yield, ast.YieldFrom)


def inside(body: list[Any], but: tuple[type, ...] = FUNCTIONS) -> Iterator[ast.AST]:
    """All nodes of statements, but for what is in nodes of certain kinds."""
    todo = list(body)
    while todo:
        n = todo.pop()
        yield n
        if not isinstance(n, but):
            todo += ast.iter_child_nodes(n)


def made(node: Any, home: Any, values: dict[str, Any]) -> Several:
    """What a call of a generator returns."""
    return Several("generator", (Static(Code(node, home, tuple(values))), *values.values()))


def is_generator(x: Any) -> bool:
    """Whether a value is what a call of a generator has returned."""
    return isinstance(x, Several) and x.kind == "generator"


def refuse_jumps(f: Frame, x: Any, body: list[ast.stmt]) -> None:
    """Refuse a `break` or `continue` that would leave out what the generator does behind its `yield`.

    Raises:
        Refused: there is one in this body of a loop over it.
    """
    own = [n for s in body for n in inside([s], (*FUNCTIONS, *LOOPS))]
    jumps = {type(n) for n in own} & {ast.Break, ast.Continue}
    last = x.parts[0].value.node.body[-1]
    if not jumps:
        return
    found = [n for n in inside(x.parts[0].value.node.body) if isinstance(n, YIELDS)]
    here = (
        [n for n in inside(last.body, (*FUNCTIONS, *LOOPS)) if n in found] if isinstance(last, LOOPS) else []
    )
    if len(here) < len(found) or any(isinstance(n, ast.YieldFrom) for n in found):
        raise f.refuse("a loop over a generator is left, or goes on, where that has not one loop at its end")
    if ast.Continue in jumps and ends(last.body) < len(found):
        raise f.refuse("`continue` in a loop over a generator that does something behind `yield`")


def ends(body: list[ast.stmt]) -> int:
    """How many `yield` are the last thing that these statements do."""
    last = body[-1] if body else None
    if isinstance(last, ast.If):
        return ends(last.body) + ends(last.orelse)
    return int(isinstance(last, ast.Expr) and isinstance(last.value, ast.Yield))


class Renamed(ast.NodeTransformer):
    """The text of a generator with names of its own for its variables."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        """A variable."""
        return ast.copy_location(ast.Name(self.names.get(node.id, node.id), node.ctx), node)


def gone_through(f: Frame, x: Several, body: Callable[[Any], None]) -> None:
    """Follow a generator, and `body`, which is given a value, at every `yield`."""
    code = x.parts[0].value
    if any(isinstance(n, (*FUNCTIONS, ast.Global, ast.Nonlocal)) for n in inside(code.node.body)):
        raise f.refuse(f"`{code.node.name}` is a generator with a function inside")
    names = {name: f"{name}_of_{f.whole.new()}" for name in sorted(names_set(code.node))}
    text = Renamed(names).visit(copy.deepcopy(code.node))
    consumer = f.home, f.own, f.cells, f.first, f.node, f.generates
    own = code.home, frozenset(names.values()), frozenset(), None, text, True

    def given(value: Any) -> None:
        f.home, f.own, f.cells, f.first, f.node, f.generates = consumer
        f.yields.pop()
        try:
            body(value)
        finally:
            f.yields.append(given)
            f.home, f.own, f.cells, f.first, f.node, f.generates = own

    for name, value in zip(code.names, x.parts[1:], strict=True):
        f.state.names[names[name]] = value
    f.yields.append(given)
    f.home, f.own, f.cells, f.first, f.node, f.generates = own
    try:
        f.whole.steps.follow(f, text.body)
    finally:
        f.yields.pop()
        f.home, f.own, f.cells, f.first, f.node, f.generates = consumer
    for name in names.values() if f.state is not None else ():
        f.state.names.pop(name, None)


__all__ = ["gone_through", "is_generator", "is_one", "made", "refuse_jumps"]
