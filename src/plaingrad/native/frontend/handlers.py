"""`try` in the graph of blocks: what may raise becomes a branch to the handler.

A statement that may raise gets a test before it (`raising.py`). A function of the user's that is called in a `try` is
put in the place of its call, block by block, and what it raises goes to the handler: so every write that it made
before stays. What a handler takes over from where it is entered moves along the new edges as along Numba's.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from numba.core import types

from plaingrad import origin, rulebook
from plaingrad.native.frontend.guards import Guarded
from plaingrad.native.frontend.operands import constant
from plaingrad.native.frontend.raising import Tests
from plaingrad.native.frontend.structure import Graph
from plaingrad.native.program.builder import Draft
from plaingrad.native.program.dispatchers import is_dispatcher, options_of, python_function
from plaingrad.native.program.ir import (
    RESULT,
    Do,
    For,
    Let,
    Operand,
    Place,
    Raise,
    Stmt,
    Var,
    moved,
    renamed,
    statements,
    value_of,
)
from plaingrad.native.program.value_types import settled, type_of_value

OUTSIDE = "raised"  # the handler around a function, for what it does not catch itself


@dataclass(slots=True)
class Callee:
    """A function that is put in the place of a call: its graph, with edges to OUTSIDE where it raises."""

    draft: Draft
    graph: Graph
    params: list[str]

    @property
    def raises(self) -> bool:
        """Whether there is anything that it raises."""
        return any(OUTSIDE in after for after in self.graph.successors.values())


class Handlers:
    """The branches to handlers in the graph of one function.

    Attributes:
        draft: the function; its `entered(f, kinds)` makes a `Callee`.
        graph: its graph, which is changed.
        options: what it is compiled with.
    """

    def __init__(self, draft: Any, graph: Graph, options: dict[str, Any]) -> None:
        self.draft = draft
        self.graph = graph
        self.options = options
        self.tests = Tests(draft, options, graph.body)
        self.count = 0

    def enter(self, guards: Guarded, around: Any = None) -> None:
        """Make the branches; what no handler of the function takes goes to the block `around`, if that is given."""
        for label in list(self.graph.body):
            handler = guards.handlers.get(label)
            if label in guards.inside:
                self.check(label)
            elif handler is not None or around is not None:
                self.guard(label, around if handler is None else handler)

    def check(self, label: Any) -> None:
        """Refuse what may raise in a block that belongs to a `try` and goes on where something was raised."""
        for s in self.graph.body[label]:
            if self.users(s) is not None or self.tests.of(s) is not None:
                self.draft.line = s.line
                raise self.draft.refuse("what may raise here, inside of a `try`,")

    def guard(self, label: Any, handler: Any) -> None:
        """Let what a block may raise go on with `handler`."""
        graph = self.graph
        body, after, test = graph.body[label], graph.successors[label], graph.test.pop(label, None)
        out = [graph.moves.pop((label, to), []) for to in after]
        way = graph.moves.get((label, handler), [])
        here = label
        graph.body[here] = []
        for s in body:
            if isinstance(s, Raise):
                self.goes(here, (handler,), None, [way])
                return
            callee = self.users(s)
            if callee is not None and callee.raises:
                here = self.entered(callee, s, here, handler, way)
                continue
            found = None if callee is not None else self.tests.of(s)
            if found is not None:
                graph.body[here] += found.setup
                rest = self.block(here)
                self.goes(here, (rest, handler), found.passed, [[], way])
                here = rest
            graph.body[here].append(s)
        self.goes(here, after, test, out)

    def goes(self, label: Any, after: tuple[Any, ...], test: Any, moves: list[list[Stmt]]) -> None:
        """Let a block go on with others."""
        self.graph.successors[label] = after
        if test is not None:
            self.graph.test[label] = test
        for to, way in zip(after, moves, strict=True):
            if way:
                self.graph.moves[label, to] = way

    def block(self, like: Any) -> Any:
        """A new block."""
        self.count += 1
        label = ("part", self.count, like)
        self.graph.body[label] = []
        self.graph.lines[label] = self.graph.lines[like]
        return label

    def users(self, s: Stmt) -> Callee | None:
        """What a statement calls, if that is a function of the user's whose derivative is derived."""
        call = s.call if isinstance(s, Do) else s
        f = value_of(call.args[0]) if isinstance(call, Let) and call.op == "call" else None
        if not is_dispatcher(f) or any(rulebook.find(g) is not None for g in (f, python_function(f))):
            return None
        if origin.is_of(str(python_function(f).__module__), ("plaingrad.native",)):
            return None  # a derivative, or a function of ours
        self.draft.line = s.line
        if options_of(f) != self.options:
            raise self.draft.refuse(
                f"a call of `{f.__name__}`, compiled with other options, inside of a `try`"
            )
        args = bound(f, call)
        kinds = tuple([self.kind(a) for a in args or ()])
        if args is None or (not f._can_compile and kinds not in f.overloads):
            raise self.draft.refuse(f"this call of `{f.__name__}`, inside of a `try`,")
        return self.draft.entered(f, kinds)  # type: ignore[no-any-return]

    def kind(self, a: Operand) -> Any:
        """The type of an argument."""
        return settled(self.draft.types[a.name] if isinstance(a, Var) else type_of_value(a.value))

    def entered(self, callee: Callee, s: Stmt, here: Any, handler: Any, way: list[Stmt]) -> Any:
        """Put `callee` in the place of the call `s` in the block `here`; the block behind it."""
        call = s.call if isinstance(s, Do) else s
        assert isinstance(call, Let)
        names = self.names(callee)
        args = bound(value_of(call.args[0]), call) or ()
        for param, a in zip(callee.params, args, strict=True):
            self.graph.body[here].append(moved(names[param], a, call.line))
        label = self.block(here)
        places = {old: ("in", self.count, old) for old in callee.graph.body}
        code = callee.draft.function.__code__

        def own(body: list[Stmt]) -> list[Stmt]:
            new = renamed(body, names)
            for x in statements(new):
                if not isinstance(x.line, Place):
                    x.line = Place(x.line, code.co_filename, callee.draft.function.__name__)
                if isinstance(x, Do):
                    x.call.line = x.line
            return new

        its = callee.graph
        for old, new in places.items():
            self.graph.body[new] = own(its.body[old])
            self.graph.lines[new] = Place(its.lines[old], code.co_filename, callee.draft.function.__name__)
            after = its.successors[old] or (() if ends(its.body[old]) else (label,))
            to = tuple([handler if x == OUTSIDE else places.get(x, label) for x in after])
            test = its.test.get(old)
            if isinstance(test, Var):
                test = Var(names.get(test.name, test.name))
            moves = [way if x == OUTSIDE else own(its.moves.get((old, x), [])) for x in after]
            self.goes(new, to, test, moves)
        self.goes(here, (places[its.entry],), None, [[]])
        if isinstance(s, Let) and not isinstance(self.draft.types.get(s.target), types.NoneType):
            self.graph.body[label].append(Let(s.target, "copy", (Var(names[RESULT]),), None, s.line))
        return label

    def names(self, callee: Callee) -> dict[str, str]:
        """The variables of a callee -> what they are called here."""
        found = dict.fromkeys(callee.draft.types)
        found |= dict.fromkeys(assigned(callee.graph))
        base = callee.draft.function.__name__
        base = base if base.isidentifier() else "function"
        return {
            name: name if name == "_" else self.draft.fresh(f"{base}_{name}", callee.draft.types.get(name))
            for name in found
        }


def assigned(graph: Graph) -> Iterator[str]:
    """The variables that a graph gives values to."""
    for body in (*graph.body.values(), *graph.moves.values()):
        yield from (s.target for s in statements(body) if isinstance(s, (Let, For)))


def ends(body: list[Stmt]) -> bool:
    """Whether a block raises at its end."""
    return bool(body) and isinstance(body[-1], Raise)


def bound(f: Any, call: Let) -> tuple[Operand, ...] | None:
    """The operands of a call by position, defaults filled in; None where they are not one for each parameter."""
    keywords = tuple(call.detail or ())
    given = call.args[1:]
    positional = given[: len(given) - len(keywords)]
    parameters = inspect.signature(python_function(f)).parameters.values()
    if any(p.kind is not p.POSITIONAL_OR_KEYWORD for p in parameters):
        return None
    named = dict(zip(keywords, given[len(positional) :], strict=True))
    arguments = inspect.signature(python_function(f)).bind(*positional, **named)
    own = set(arguments.arguments)
    arguments.apply_defaults()
    return tuple([x if name in own else constant(x, name) for name, x in arguments.arguments.items()])


__all__ = ["OUTSIDE", "Callee", "Handlers"]
