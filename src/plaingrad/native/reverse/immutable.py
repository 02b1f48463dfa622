"""Immutable arrays: values that are written, if at all, right after they are made, and then never again.

Most programs that step a field through time make a new array a step, fill it, and give it the name of the old one.
Such an array need not be copied or taped: a reference keeps what was read (*settled* memory). And its cotangent can be
treated as a number's: a buffer of the reverse sweep that belongs to the name, not to the memory (*owned*). `x = y`
then means `y_bar += x_bar; x_bar = 0`, which is an exchange of buffers where `y_bar` was zero, so that a loop over
time needs two buffers in all. That holds for names of arrays whose shape is known throughout (`shapes.roots`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numba.core import types

from plaingrad.native.analysis import array_lists
from plaingrad.native.analysis.memory import Memory
from plaingrad.native.analysis.shapes import roots
from plaingrad.native.program.ir import (
    Const,
    Do,
    For,
    If,
    InPlace,
    Let,
    Loop,
    Operand,
    Parts,
    Program,
    Ref,
    Stmt,
    Store,
    Var,
    assigns,
    operands,
    reads_of,
    statements,
)
from plaingrad.native.reverse import cotangent_arrays
from plaingrad.native.reverse.no_alias import Distinct, makes_new
from plaingrad.native.rules import arrays_reverse
from plaingrad.native.runtime import helpers, workspace

if TYPE_CHECKING:
    from plaingrad.native.reverse.reverse import Reverse

Path = tuple[
    tuple[int, int], ...
]  # (identity of a list of statements, place in it), from the outermost inwards


@dataclass(slots=True)
class Birth:
    """An array being made.

    Attributes:
        made: the statement that makes it.
        path: where that stands.
        filled: the place, in the list of statements it is made in, of the last statement that writes into it.
    """

    made: Let
    path: Path
    filled: int

    def is_over(self, path: Path) -> bool:
        """Whether the array is complete where the statement at `path` stands."""
        depth = len(self.path) - 1
        return not self.is_within(path) or path[depth][1] > self.filled

    def is_within(self, path: Path) -> bool:
        """Whether `path` leads into the list of statements that the array is made in."""
        depth = len(self.path) - 1
        return (
            len(path) > depth and path[:depth] == self.path[:depth] and path[depth][0] == self.path[depth][0]
        )


class Values:
    """Which arrays of a program are settled, and which are owned.

    Attributes:
        root: array -> the array whose shape it surely has.
        births: array -> how it is made, for those that are made in one place.
        distinct: which arrays are different memory at a loop.
        owned: names whose cotangents are buffers of the reverse sweep.
        leads: array, or buffer -> the place along the last axis from which on a stencil stores to it.
    """

    def __init__(self, program: Program, memory: Memory, leaves: set[str]) -> None:
        self.program = program
        self.memory = memory
        self.leaves = leaves
        self.root = roots(program)
        self.births: dict[str, Birth] = {}
        self.distinct = Distinct(program, memory, leaves)
        self._early: set[str] = set()  # arrays that are read while they are still being filled
        self._unsettled: set[str] = set()  # classes of memory that are written at other times too
        self._viewed: set[str] = set()  # classes that have names for a part or another form of an array
        self._look()
        self.leads: dict[str, int] = {}
        self.owned = {name for name in self.root if name not in leaves and self._is_ownable(name)}

    def is_settled(self, name: str) -> bool:
        """Whether what is read from this array is never overwritten."""
        return self.memory.of(name) not in self._unsettled and name not in self._early

    def is_used_outside(self, names: set[str], loop: Stmt) -> bool:
        """Whether a statement outside of `loop` reads one of `names`."""
        inside: dict[str, int] = {}
        for x in statements([loop]):
            for a in operands(x):
                if isinstance(a, Var):
                    inside[a.name] = inside.get(a.name, 0) + 1
        return any(self.reads.get(name, 0) != inside.get(name, 0) for name in names)

    def is_whole(self, name: str) -> bool:
        """Whether the elements of an array lie one behind the other."""
        return getattr(self.program.types.get(name), "layout", "") == "C"

    def is_steady(self, name: str) -> bool:
        """Whether a variable never changes once it has a value."""
        if name in self.leaves or name in self.program.params:
            return True
        made = self.made.get(name)
        if made is None or made.op not in ("copy", "attribute", "item", "tuple", "binary", "unary", "call"):
            return False
        if made.op == "call" and getattr(made.args[0], "value", None) not in (len, int, min, max):
            return False
        named = [a.name for a in made.args if isinstance(a, Var)]
        if made.op == "item" and isinstance(self.program.types.get(named[0] if named else ""), types.Array):
            return False
        return all(map(self.is_steady, named))

    def follows(self, name: str, source: str | None, loop: Stmt) -> bool:
        """Whether `loop` stands behind the birth of `name`, and nothing between them touches it or assigns `source`."""
        birth, path = self.births[name], self.places[id(loop)]
        depth = len(birth.path) - 1
        if len(path) != len(birth.path) or not birth.is_within(path):
            return False
        between = self.lists[path[depth][0]][birth.path[depth][1] + 1 : path[depth][1]]
        return not any(name in reads_of([s]) or (source and assigns(s, source)) for s in between)

    def _look(self) -> None:
        places = list(_paths(self.program.body, ()))
        kinds = self.program.types
        count: dict[str, int] = {}
        for _, s in places:
            if isinstance(s, (Let, For)):
                count[s.target] = count.get(s.target, 0) + 1
        self.made = {s.target: s for _, s in places if isinstance(s, Let) and count[s.target] == 1}
        self.places: dict[int, Path] = {id(s): path for path, s in places}
        self.lists = {id(body): body for body in _lists(self.program.body)}
        self.reads: dict[str, int] = {}
        for _, s in places:
            for a in operands(s):
                if isinstance(a, Var):
                    self.reads[a.name] = self.reads.get(a.name, 0) + 1
        for path, s in places:
            if (
                not isinstance(s, Let)
                or not isinstance(kinds.get(s.target), types.Array)
                or s.target in self.leaves
            ):
                continue
            if self.memory.sources(s) or not makes_new(s):
                if s.op != "copy" or not isinstance(s.args[0], Var):
                    self._viewed.add(self.memory.of(s.target))
                if not self.memory.sources(s):  # it may be anybody's memory
                    self._unsettled.add(self.memory.of(s.target))
            elif count[s.target] == 1:
                self.births[s.target] = Birth(s, path, path[-1][1])
        for path, s in places:
            self._viewed.update(map(self.memory.of, array_lists.shared(s, kinds)))
            for name in _written(s, self.memory):
                birth = self.births.get(name)
                if (
                    birth is None
                    or not birth.is_within(path)
                    or path[len(birth.path) - 1][1] <= birth.path[-1][1]
                ):
                    self._unsettled.add(self.memory.of(name))
                else:
                    birth.filled = max(birth.filled, path[len(birth.path) - 1][1])
        for path, s in places:
            aliases = isinstance(s, Let) and isinstance(kinds.get(s.target), types.Array)
            for name in {a.name for a in operands(s) if isinstance(a, Var)} & self.births.keys():
                if self.births[name].is_over(path) or path == self.births[name].path:
                    continue
                held = array_lists.is_step(s, kinds)
                if held or (aliases and name in self.memory.sources(s)):  # type: ignore[arg-type]
                    self._unsettled.add(self.memory.of(name))
                elif not (isinstance(s, Store) and s.array == Var(name)):
                    self._early.add(name)

    def _is_ownable(self, name: str) -> bool:
        t = self.program.types[name]
        place = self.memory.of(name)
        root = self.root[name]
        family = [other for other in self.root if self.memory.of(other) == place]
        return (
            isinstance(t, types.Array)
            and isinstance(t.dtype, types.Float)
            and t.ndim > 0
            and place not in self._unsettled
            and place not in self._viewed
            and self._lasts(root)
            and all(self.root[other] == root for other in family)
            and all(_like(self.program.types[other], t) for other in family)
        )

    def _lasts(self, root: str) -> bool:
        """Whether the array named `root` is there throughout the way back, always the same."""
        return root in self.leaves or (root in self.births and len(self.births[root].path) == 1)


def _like(a: Any, b: Any) -> bool:
    return a.dtype == b.dtype and a.ndim == b.ndim and a.layout == b.layout == "C"


def _paths(body: list[Stmt], above: Path) -> Iterator[tuple[Path, Stmt]]:
    """(path, statement) of every statement in `body`."""
    for k, s in enumerate(body):
        path = (*above, (id(body), k))
        yield path, s
        if isinstance(s, If):
            yield from _paths(s.then, path)
            yield from _paths(s.orelse, path)
        elif isinstance(s, (For, Loop)):
            yield from _paths(s.body, path)


def _lists(body: list[Stmt]) -> Iterator[list[Stmt]]:
    """`body` and every list of statements inside it."""
    yield body
    for s in body:
        if isinstance(s, If):
            yield from _lists(s.then)
            yield from _lists(s.orelse)
        elif isinstance(s, (For, Loop)):
            yield from _lists(s.body)


def _written(s: Stmt, memory: Memory) -> list[str]:
    """The arrays that a statement itself writes into."""
    if isinstance(s, (Store, InPlace)):
        return [s.array.name] if isinstance(s.array, Var) else []
    call = s.call if isinstance(s, Do) else s
    return memory.outputs(call) if isinstance(call, Let) else []


# -- their reverse -----------------------------------------------------------------------------------------------------


def reverse(rt: Reverse, s: Let) -> Parts:
    """An assignment of an owned array."""
    bar = Var(f"{s.target}_b")
    if s.op == "copy" or s.detail == ("copy", ()):
        source = s.args[0]
        if not rt.is_active(source):
            return Parts([s], [cotangent_arrays.clear(bar)])
        return Parts([s], [cotangent_arrays.move(Var(f"{source.name}_b"), bar, s.line)])  # type: ignore[union-attr]
    parts = arrays_reverse.reverse(rt, s)
    forward = [x for x in parts.forward if not (isinstance(x, Let) and x.target == bar.name)]
    return Parts(forward, [*parts.backward, cotangent_arrays.clear(bar)])


def with_buffers(rt: Reverse, main: Parts) -> list[Stmt]:
    """Resolve `main`, in place; the statements that make the buffers its reverse sweep needs."""
    if isinstance(rt.arena, Var):
        main.forward = kept_in_arena(rt, main.forward)
    owned = {f"{name}_b": name for name in rt.values.owned & rt.active}
    live = {f"{name}_b" for name in rt.outputs} & owned.keys()
    first = next(
        (k for k, s in enumerate(main.forward) if cotangent_arrays.touched([s]) & owned.keys()), None
    )
    if first is not None:  # a loop that is differentiated on the way forward
        main.forward = cotangent_arrays.resolved(main.forward, set(owned), set())
        needed = cotangent_arrays.touched(main.forward) & owned.keys()
        main.forward[first:first] = _buffers(rt, {bar: owned[bar] for bar in needed}, set())
    main.backward = cotangent_arrays.resolved(main.backward, set(owned), live)
    needed = (cotangent_arrays.touched(main.backward) | live) & owned.keys()
    made = _buffers(rt, {bar: owned[bar] for bar in needed}, live)
    if not made or not isinstance(rt.arena, Var):
        return made
    marked = rt.fresh("marked")  # the next run of the reverse sweep shall find the same memory
    release = (Ref(workspace.release, "release"), rt.arena, Var(marked))
    main.backward.append(Do(Let("_", "call", release, ())))
    return [Let(marked, "call", (Ref(workspace.mark, "mark"), rt.arena), ()), *made]


def _buffers(rt: Reverse, needed: dict[str, str], live: set[str]) -> list[Stmt]:
    """Statements that make the buffers `needed`, those that are `live` of zeros."""
    from plaingrad.native.program.value_types import dtype_of

    out: list[Stmt] = []
    for bar, name in sorted(needed.items()):
        t = rt.types[name]
        shape = rt.emit(out, "attribute", (Var(rt.values.root[name]),), "shape", 0)
        if isinstance(rt.arena, Var):
            out.append(_room(rt, bar, t, shape, rt.values.leads.get(bar, 0), 0))
            if bar in live:
                out.append(Do(Let("_", "method", (Var(bar), Const(0.0)), ("fill", ()))))
        else:
            make, dtype = np.zeros if bar in live else np.empty, dtype_of(t.dtype)
            out.append(Let(bar, "call", (Ref(make, make.__name__), shape, Ref(dtype, dtype.__name__)), ()))
    return out


def _room(rt: Reverse, name: str, t: Any, shape: Operand, lead: int, line: int) -> Let:
    """What makes the array `name` of type `t` in the arena."""
    from plaingrad.native.program.value_types import dtype_of

    dtype = dtype_of(t.dtype)
    of = (rt.arena, shape, Ref(dtype, dtype.__name__))
    if lead:
        return Let(name, "call", (Ref(workspace.room_from, "room_from"), *of, Const(lead)), (), line)
    return Let(name, "call", (Ref(workspace.room, "room"), *of), (), line)


# -- where they live ---------------------------------------------------------------------------------------------------


def kept_in_arena(rt: Reverse, body: list[Stmt]) -> list[Stmt]:
    """A forward sweep whose loops make the arrays that are kept for the way back in the arena.

    They would all live until then in any case; memory of the arena is used again by the next gradient, while fresh
    memory costs a page fault every 4 KiB. What may be part of the result stays where it is.
    """
    kept = {
        s.args[4].name
        for s in statements(body)
        if isinstance(s, Let) and s.op == "call" and getattr(s.args[0], "value", None) is workspace.keep
        if isinstance(s.args[4], Var) and s.args[4].name in rt.types
    }
    out_of = {rt.memory.of(name) for name in rt.results}
    places = {rt.memory.of(name) for name in kept} - out_of
    filled = {
        s.call.args[1].name
        for s in statements(body)
        if isinstance(s, Do) and getattr(s.call.args[0], "value", None) in helpers.COPY_AROUND.values()
        if isinstance(s.call.args[1], Var)
    }
    return _moved_in(rt, body, places, filled, False)


def _moved_in(rt: Reverse, body: list[Stmt], places: set[str], filled: set[str], inside: bool) -> list[Stmt]:
    """`body` with the arrays of the classes `places` that are made in loops made in the arena; those in `filled`, which
    get all their elements later, without any."""
    out: list[Stmt] = []
    for s in body:
        if isinstance(s, If):
            then, orelse = (_moved_in(rt, arm, places, filled, inside) for arm in (s.then, s.orelse))
            out.append(replace(s, then=then, orelse=orelse))
        elif isinstance(s, (For, Loop)):
            out.append(replace(s, body=_moved_in(rt, s.body, places, filled, True)))
        elif isinstance(s, Let) and isinstance(rt.types.get(s.target), types.Array):
            if s.target in filled and s.op == "method":
                s = Let(s.target, "call", (Ref(np.empty_like, "empty_like"), s.args[0]), (), s.line)
            out += _in_arena(rt, s) if inside and rt.memory.of(s.target) in places else [s]
        else:
            out.append(s)
    return out


def _in_arena(rt: Reverse, s: Let) -> list[Stmt]:
    """The same array, in the arena, where `s` makes one by copying or with nothing or zeros in it."""
    t = rt.types.get(s.target)
    f = getattr(s.args[0], "value", None) if s.op == "call" else None
    if not isinstance(t, types.Array) or t.layout != "C" or not isinstance(t.dtype, types.Float):
        return [s]
    if s.op == "method" and s.detail == ("copy", ()) and getattr(rt.type_of(s.args[0]), "layout", "") == "C":
        return [Let(s.target, "call", (Ref(workspace.copied, "copied"), rt.arena, s.args[0]), (), s.line)]
    if f not in (np.empty, np.zeros, np.empty_like, np.zeros_like) or len(s.args) < 2 or t.ndim == 0:
        return [s]
    out: list[Stmt] = []
    shape = s.args[1]
    if f in (np.empty_like, np.zeros_like):
        shape = rt.emit(out, "attribute", (shape,), "shape", s.line)
    out.append(_room(rt, s.target, t, shape, rt.values.leads.get(s.target, 0), s.line))
    if f in (np.zeros, np.zeros_like):
        out.append(Do(Let("_", "method", (Var(s.target), Const(0.0)), ("fill", ()), s.line), s.line))
    return out
