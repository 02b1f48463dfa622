"""Partial evaluation of one function: what is known at a place of it, and the statements that are made of it."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import numpy as np

from plaingrad.native.objects.merging import Merged, atom, zeros
from plaingrad.native.objects.values import (
    GIVEN,
    ONCE,
    UNKNOWN,
    UNSET,
    Items,
    Leaf,
    Maybe,
    NotKnown,
    Ref,
    Refused,
    Rows,
    Several,
    State,
    Static,
    Tup,
    assign,
    is_number,
    load,
)

MISSING = object()
NO_DEEPER = 40  # calls inside calls


@dataclass(frozen=True, slots=True)
class Steps:
    """The files of this room call each other in a circle, as what they follow does; upwards they do it by these.

    Attributes:
        evaluate: (frame, expression) -> value.
        call: (frame, function, arguments, keywords) -> value.
        body: (frame, node of a function): follow it.
        follow: (frame, statements): follow them.
    """

    evaluate: Callable[..., Any]
    call: Callable[..., Any]
    body: Callable[..., None]
    follow: Callable[..., None]


@dataclass(slots=True)
class Whole:
    """All functions that are made for one call of the user's.

    Attributes:
        space: the globals of the functions that are made.
        made: the functions made: what is called and the shape of its arguments -> how to call it.
        checks: (a function, its arguments, what it must return for all this to be true still).
        numbers: of variables, objects and functions.
        kept: what is known by its identity, and must not go.
        texts: the functions that were made, as syntax trees.
        looked: what `checks` has, to look once.
        mine: the names of the functions that were made.
        depth: how many functions are being made, each for the one before.
        attempts: how many loops are being followed in a way that another one is known for.
        obstacles: all that was refused so far, if all of it is wanted: (the error, the node it is about); else None.
        unknowns: how many values were not known because of that.
        tables: the lists and dictionaries from outside that are read.
        given: the objects in the arguments.
        enters: whether functions that the user compiled are followed too.
        compiled: whether one is called.
        bare: whether variables that are None hold nothing, for they may be arrays where they are not, else zeros.
        some_none: whether there are any.
        vague: where something is raised of which only the plain call says all, the last such place; or "".
        steps: see `Steps`.
    """

    space: dict[str, Any] = field(default_factory=dict)
    made: dict[Any, Any] = field(default_factory=dict)
    checks: list[tuple[Callable[..., Any], tuple[Any, ...], Any]] = field(default_factory=list)
    numbers: Any = field(default_factory=lambda: itertools.count(1))
    kept: list[Any] = field(default_factory=list)
    texts: list[ast.Module] = field(default_factory=list)
    looked: set[Any] = field(default_factory=set)
    mine: set[str] = field(default_factory=set)
    depth: int = 0
    attempts: int = 0
    obstacles: list[tuple[Refused, ast.AST]] | None = None
    unknowns: int = 0
    tables: list[Any] = field(default_factory=list)
    given: list[int] = field(default_factory=list)
    enters: bool = False
    compiled: bool = False
    bare: bool = False
    some_none: bool = False
    vague: str = ""
    steps: Any = None

    def fresh(self, base: str) -> str:
        """A name that no other variable has."""
        base = base.strip("_$<>") if base.isidentifier() or base[:1] in "$<" else "t"
        base = (
            base if base.isidentifier() else "t"
        )  # names that begin with two underscores are not looked at as ours
        return f"{base}_{next(self.numbers)}"

    def new(self) -> int:
        """A place in the heap."""
        return next(self.numbers)

    def stand_in(self, x: Any) -> Any:
        """What a variable that is None holds; `x` is what it is when it is not."""
        self.some_none = True
        return UNSET if self.bare else zeros(x)

    def check(self, look: Callable[..., Any], *args: Any) -> Any:
        """What `look` finds now; it must find the same whenever what is made is used."""
        found = look(*args)
        key = (look, *[x if isinstance(x, str) else id(x) for x in args])
        if key not in self.looked:
            self.looked.add(key)
            self.checks.append((look, args, found))
        return found

    def is_current(self) -> bool:
        """Whether all is as it was."""
        for look, args, found in self.checks:
            now = look(*args)
            if now is not found and not (
                type(now) is type(found)
                and isinstance(now, (int, float, complex, str, tuple))
                and repr(now) == repr(found)
            ):
                return False
        return True

    def users_name(self, name: str) -> str:
        """What the user calls a function that was made."""
        return name.rsplit("_", 1)[0] if name in self.mine else name

    def outside(self, value: Any, base: str) -> ast.expr:
        """An expression for an object that is known: a constant, or a global variable."""
        if value is None or type(value) in (int, float, bool, str, complex):
            return ast.Constant(value)
        for name, held in self.space.items():
            if held is value:
                return load(name)
        name = self.fresh(base)
        self.space[name] = value
        return load(name)


@dataclass(slots=True)
class LoopOf:
    """A loop that is being followed: the states at its jumps, and where the statements before each go."""

    backs: list[tuple[State, list[Any]]] = field(default_factory=list)
    breaks: list[tuple[State, list[Any]]] = field(default_factory=list)
    unrolled: bool = False


@dataclass(slots=True)
class Home:
    """Where a function's text stands.

    Attributes:
        file: its file.
        name: the function.
        space: its globals.
        builtins: Python's.
        captured: its captured variables, by name: what `content_of` takes.
        owner: the class that `super()` is about, or None.
    """

    file: str
    name: str
    space: dict[str, Any]
    captured: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Frame:
    """A function that is being followed; `state` is None where no way leads to."""

    whole: Whole
    home: Home
    state: Any
    block: list[Any] = field(default_factory=list)
    loops: list[LoopOf] = field(default_factory=list)
    returns: list[tuple[Any, State, list[Any]]] = field(default_factory=list)
    cells: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()
    first: Any = None
    line: int = 0
    entry: dict[int, Any] = field(default_factory=dict)
    pins: list[Any] = field(default_factory=list)
    node: Any = None
    yields: list[Any] = field(default_factory=list)
    generates: bool = False

    def evaluate(self, node: ast.expr) -> Any:
        """The value of an expression."""
        return self.whole.steps.evaluate(self, node)

    def after(self, found: list[Any], node: ast.expr) -> Any:
        """The value of an expression, with others found already, whose objects are to stay."""
        count = len(self.pins)
        self.pins += found
        value = self.whole.steps.evaluate(self, node)
        del self.pins[count:]
        return value

    def attempt(self, node: ast.AST, step: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        """step(), which follows a node; where that is refused, and all that is refused is wanted, it is noted.

        What comes of values that were refused already is not noted again. Then `otherwise` is done instead.
        """
        whole = self.whole
        if whole.obstacles is None:
            return step()
        unknowns = whole.unknowns
        block, state, size = self.block, self.state, len(self.block)
        loops, pins, returns = len(self.loops), len(self.pins), len(self.returns)
        try:
            return step()
        except Refused as error:
            if whole.attempts and isinstance(error, NotKnown):
                raise
            if whole.unknowns == unknowns:
                whole.obstacles.append((error, node))
            self.block, self.state = block, state
            del block[size:], self.loops[loops:], self.pins[pins:], self.returns[returns:]
            return otherwise()

    def call(self, function: Any, args: list[Any], named: dict[str, Any] | None = None) -> Any:
        """The value of a call."""
        return self.whole.steps.call(self, function, args, named or {})

    def refuse(self, why: str) -> Refused:
        """What to raise where a construct is not followed."""
        return Refused(why, self.home.file, self.line, self.home.name)

    def raising(self, error: type[Exception], *says: Any, vague: bool = True) -> ast.Raise:
        """The statement that raises this; `vague`: the plain call would raise another error, or say more."""
        if vague:
            self.whole.vague = f"{self.home.file}:{self.line}"
        name = self.whole.outside(error, error.__name__)
        return ast.Raise(ast.Call(name, [ast.Constant(x) for x in says], []), None)

    def emit(self, statement: ast.stmt) -> None:
        """Add a statement of the user's line."""
        statement.lineno = max(self.line, 1)
        self.block.append(statement)

    def storable(self, x: Any) -> Any:
        """A value that is given a name, or put somewhere.

        Raises:
            Refused: it can be gone through once only, and who does it would have to be known.
        """
        if isinstance(x, Several) and x.kind in ONCE:
            raise self.refuse(f"an iterator (`{x.kind}`) is kept")
        return x

    def leaf(self, value: ast.expr, base: str = "t") -> Leaf:
        """A new variable for the value of an expression."""
        if self.whole.obstacles is not None and is_read(UNKNOWN.name, value):
            return UNKNOWN
        name = self.whole.fresh(base)
        self.emit(assign(name, value))
        return Leaf(name)

    def object(self, thing: Any) -> Ref:
        """A new object."""
        at = self.whole.new()
        self.state.heap[at] = thing
        return Ref(at)

    def thing(self, x: Any) -> Any:
        """The object that a value refers to, or the value itself."""
        return self.state.heap[x.at] if isinstance(x, Ref) else x

    def change(self, x: Ref) -> Any:
        """An object that is about to be changed.

        Raises:
            Refused: it may have another name that is not followed.
        """
        thing = self.state.heap[x.at]
        if thing.frozen == GIVEN and not isinstance(thing, Rows):
            thing.frozen = False
        if thing.frozen:
            raise self.refuse(
                "an object is changed that may have a second name, or is a list that is gone through"
            )
        return thing

    def merge(self, states: list[State]) -> Merged:
        """One state for several, with what expressions that are not finished have found so far."""
        for s in states:
            s.names.update({f"#{k}": x for k, x in enumerate(self.pins)})
        try:
            merged = Merged(states, self.whole.fresh, self.whole.new, self.whole.stand_in)
        except Refused as error:
            raise self.refuse(error.args[0]) from None
        for k in range(len(self.pins)):
            del merged.target.names[f"#{k}"]
        return merged

    def sure(self, x: Any) -> Any:
        """A value that is used as what it is when it is not None; a program that uses None so raises."""
        while isinstance(x, Maybe):
            if isinstance(x.is_none, Static):
                if x.is_none.value:
                    raise self.refuse("None is used")
            else:
                self.emit(ast.If(self.expression(x.is_none), [self.raising(TypeError)], []))
            x = x.value
        return x

    def expression(self, x: Any) -> ast.expr:
        """A value as an expression of the program that is made.

        Raises:
            Refused: there is none.
        """
        x = self.sure(x)
        if isinstance(x, Leaf) or is_number(x):
            return atom(x)
        if isinstance(x, Static):
            return self.whole.outside(x.value, getattr(x.value, "__name__", "held"))
        if isinstance(x, Tup) and x.cls is tuple:
            return ast.Tuple([self.expression(part) for part in x.items], ast.Load())
        thing = self.thing(x)
        if isinstance(thing, Items):
            return ast.List([self.expression(part) for part in thing.items], ast.Load())
        if isinstance(thing, Rows) and isinstance(thing.pattern, Leaf):
            column = self.expression(thing.columns[0])
            return ast.Call(self.whole.outside(np.copy, "copy"), [column], []) if thing.given else column
        raise self.refuse("an object is used where numbers and arrays are wanted")


def is_read(name: str, node: ast.AST) -> bool:
    """Whether a variable is read in an expression."""
    return any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(node))


def function_home(f: FunctionType) -> Home:
    """Where a function stands."""
    cells = dict(zip(f.__code__.co_freevars, f.__closure__ or (), strict=True))
    return Home(f.__code__.co_filename, f.__name__, f.__globals__, cells)


def placed(node: ast.AST, line: int) -> None:
    """Give a node, and all inside it, lines: its own, or that of what it is in."""
    line = getattr(node, "lineno", None) or line
    if isinstance(node, (ast.stmt, ast.expr, ast.arg, ast.keyword)):
        node.lineno = node.end_lineno = line
        node.col_offset = node.end_col_offset = 0
    for part in ast.iter_child_nodes(node):
        placed(part, line)
