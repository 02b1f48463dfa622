"""Parallel loops: the iterations of a `numba.prange` side by side, on the way forward and on the way back.

The body becomes a function of a part of the iterations, which is differentiated like any other; each thread runs its
sweeps for a part of its own, with an arena of its own (`runtime/threads.py`). What the parts hand on is sums. The
shadow of an array is shared where iteration i touches only what has i for one index, the same one everywhere;
else each thread has a shadow of its own, and these are added up.

Taken are loops of functions with `parallel=True` that carry sums only, write only at places that have their counter
for an index, and do nothing that several threads must not do at once. Others run in one thread, stencils among them.
"""

from __future__ import annotations

import itertools
import linecache
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from numba.core import types

from plaingrad.errors import NativeError
from plaingrad.native.analysis.effects import once_only
from plaingrad.native.loops.elements import ElementLoop, loop_of
from plaingrad.native.loops.sums import only_added
from plaingrad.native.program.dispatchers import options_of, python_function
from plaingrad.native.program.emit import source
from plaingrad.native.program.ir import (
    RESULT,
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
    breaks,
    operands,
    statements,
    value_of,
)
from plaingrad.native.program.value_types import is_array, is_real, part_types
from plaingrad.native.runtime import threads

if TYPE_CHECKING:
    from plaingrad.native.reverse.reverse import Reverse

PASSED = (types.Number, types.Boolean, types.Array)
SUMS = (types.float64, types.int64)
MAKERS = (np.empty, np.zeros, np.ones, np.full, np.empty_like, np.zeros_like, len)
OURS = ("plaingrad.native.runtime.", "plaingrad.native.rules.")
SHAPES = frozenset(("shape", "size", "ndim", "dtype"))

_numbers = itertools.count(1)


def side_by_side(rt: Reverse, s: For | Loop) -> Parts | None:
    """The parts of a parallel loop, or None for any other."""
    if not isinstance(s, For) or not s.parallel or not threads.HAS_THREADS or breaks(s.body):
        return None
    if not _goes_up(s) or not _is_reached(rt, rt.exploded.body, s):
        return None
    loop = loop_of(rt, s)
    sums = _sums(rt, s, loop)
    uses = None if sums is None else _Uses(rt, s, loop)
    if sums is None or uses is None or not uses.are_separate() or uses.is_stencil():
        return None
    params = _parameters(rt, s, loop, sums, uses)
    if params is None:
        return None
    part, signature = _part(rt, s, sums, params)
    active = tuple([k + 3 for k, name in enumerate(params) if name in rt.active])
    try:
        sweeps = rt.callee(part, signature, active)
    except NativeError:
        return None
    if not hasattr(sweeps, "backward") or not _adds_in_place(rt, sweeps, params):
        return None
    private = sum(name in uses.mixed for name in params if name in rt.active)
    return _calls(rt, s, sums, params, loop.written, sweeps, private)


# -- which loops -------------------------------------------------------------------------------------------------------


def _sums(rt: Reverse, s: For, loop: ElementLoop) -> list[str] | None:
    """The variables that the loop only adds to, those with a derivative first; None if it hands on anything else."""
    seen = loop.inside & (loop.exposed | rt.read_outside(s))
    kept = {x for x in seen if rt.assigned.get(x, 0) > _assigned_in(s, x) or x in rt.read_outside(s)}
    if seen != kept or s.target in seen or not kept <= loop.exposed or not only_added(s.body, kept):
        return None
    if any(rt.types.get(name) not in SUMS for name in kept):
        return None
    return sorted(kept, key=lambda name: (rt.types[name] != types.float64, name))


def _goes_up(s: For) -> bool:
    """Whether the counter takes no negative value: then no two of its values mean the same place."""
    start, step = value_of(s.start), value_of(s.step)
    return type(start) is int and start >= 0 and type(step) is int and step > 0


def _is_reached(rt: Reverse, body: list[Stmt], s: For) -> bool:
    """Whether `s` is transformed for itself, and not as a part of a loop around it that has a form."""
    if any(x is s for x in body):
        return True
    for x in body:
        if any(y is s for y in statements([x])):
            return any(x is y for y in rt.enclosing) and any(_is_reached(rt, arm, s) for arm in _arms(x))
    return False


def _arms(x: Stmt) -> list[list[Stmt]]:
    return [x.then, x.orelse] if isinstance(x, If) else [x.body] if isinstance(x, (For, Loop)) else []


def _adds_in_place(rt: Reverse, sweeps: Any, params: list[str]) -> bool:
    """Whether the reverse sweep of a part adds into the shadows that it is given, not into copies of all of them."""
    code = python_function(sweeps.backward).__code__
    given = code.co_varnames[: code.co_argcount]
    shadows = [f"{name}_b" for name in params if name in rt.active and is_array(rt.types[name])]
    return not shadows or list(given[-len(shadows) :]) == shadows


def _assigned_in(s: For, name: str) -> int:
    return sum(isinstance(x, (Let, For)) and x.target == name for x in statements(s.body))


@dataclass
class _Uses:
    """How a loop uses the arrays from before it.

    Attributes:
        apart: array -> the axes along which each of its uses has the loop's counter for an index.
        mixed: the arrays of which different iterations may use the same elements.
        neighbours: array -> the axes along which each of its uses has the counter, or a place at a fixed distance.
    """

    rt: Reverse
    s: For
    loop: ElementLoop
    apart: dict[str, set[int]] = field(default_factory=dict)
    mixed: set[str] = field(default_factory=set)
    neighbours: dict[str, set[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for x in statements(self.s.body):
            self.note(x)
        self.mixed |= {name for name, axes in self.apart.items() if not axes}
        used = {*self.apart, *self.mixed}
        self.mixed |= {
            x for x in self.apart if any(self.may_share(x, y) for y in used - {x})
        }  # x[i, j], x.T[i, j]

    def may_share(self, a: str, b: str) -> bool:
        """Whether two arrays from before the loop may share memory."""
        return not self.rt.values.distinct.are(a, b, self.s)

    def is_outer(self, a: Operand) -> bool:
        """Whether an operand is an array from before the loop."""
        return (
            isinstance(a, Var)
            and isinstance(self.rt.types.get(a.name), types.Array)
            and a.name not in self.loop.inside
        )

    def note(self, x: Stmt) -> None:
        """What a statement itself does with such arrays."""
        if isinstance(x, Store) and isinstance(x.array, Var) and self.is_outer(x.array):
            self.touch(x.array.name, x.index)
        elif isinstance(x, Let) and x.op == "item" and self.is_outer(x.args[0]):
            self.touch(x.args[0].name, x.args[1])  # type: ignore[union-attr]
        elif not (isinstance(x, Let) and x.op == "attribute" and x.detail in SHAPES):
            self.mixed |= {a.name for a in operands(x) if isinstance(a, Var) and self.is_outer(a)}

    def touch(self, name: str, index: Operand) -> None:
        """An index of an array."""
        made = self.loop.own.get(index.name) if isinstance(index, Var) else None
        places = made.args if isinstance(made, Let) and made.op == "tuple" else (index,)
        known = all(self.is_place(p) for p in places)
        axes = {k for k, p in enumerate(places) if known and self.is_counter(p)}
        self.apart[name] = self.apart.get(name, axes) & axes
        near = {k for k, p in enumerate(places) if known and self.loop.along(p) is not None}
        self.neighbours[name] = self.neighbours.get(name, near) & near

    def is_place(self, p: Operand) -> bool:
        """Whether a part of an index stands for one axis: a number or a slice."""
        t = types.int64 if isinstance(p, Const) and type(p.value) is int else self.rt.type_of(p)
        return isinstance(t, (types.Integer, types.SliceType))

    def is_counter(self, p: Operand) -> bool:
        """Whether a part of an index is the loop's counter."""
        found = self.loop.along(p)
        return found is not None and found.shift == 0

    def is_stencil(self) -> bool:
        """Whether an active array is read at neighbours of the counter.

        Shadows of such arrays for each thread, and their sum, take as long as the loop.
        """
        return any(self.neighbours.get(name) and name in self.rt.active for name in self.mixed)

    def are_separate(self) -> bool:
        """Whether the iterations may run side by side, as far as what they write and call is concerned."""
        written = {name for name in self.loop.written if name not in self.loop.inside}
        if written & self.mixed:
            return False
        outer = {self.rt.memory.of(name) for name in (*self.apart, *self.mixed)}
        if any(self.rt.memory.of(name) in outer for name in self.loop.written & self.loop.inside):
            return False  # by way of a view
        return all(map(self.is_harmless, statements(self.s.body)))

    def is_harmless(self, x: Stmt) -> bool:
        """Whether a statement only computes: it enters no code that asks for Python."""
        if isinstance(x, (Do, InPlace)):
            return False
        if not isinstance(x, Let) or x.op not in ("list", "method", "binary", "call"):
            return True
        if x.op != "call":
            return x.op == "binary" and x.detail != "@"
        f = value_of(x.args[0])
        module = str(getattr(f, "__module__", ""))
        if once_only(x) or any(f is maker for maker in MAKERS):
            return not once_only(x)
        arrays = any(isinstance(self.rt.type_of(a), types.Array) for a in x.args[1:])
        known = module.partition(".")[0] in ("math", "cmath", "builtins", "numpy")
        return isinstance(f, np.ufunc) or not arrays and (known or module.startswith(OURS))


def _parameters(rt: Reverse, s: For, loop: ElementLoop, sums: list[str], uses: _Uses) -> list[str] | None:
    """The variables from before the loop that an iteration reads, the arrays with shadows for each thread last."""
    names = loop.exposed - {*sums, s.target}
    for name in names:
        t = rt.types.get(name)
        is_shape = isinstance(t, types.BaseTuple) and all(isinstance(x, types.Integer) for x in part_types(t))
        if name in loop.inside or not (is_shape or isinstance(t, PASSED)):
            return None
        if name in rt.active and getattr(t, "dtype", t) != types.float64:
            return None
        if name in rt.active and name in uses.mixed and t.layout != "C":
            return None
    if not all(isinstance(x, Const) or rt.type_of(x) == types.int64 for x in (s.start, s.stop, s.step)):
        return None
    last = {name for name in names if name in uses.mixed and is_array(rt.types[name]) and name in rt.active}
    return [*sorted(names - last), *sorted(last)]


# -- what becomes of them ----------------------------------------------------------------------------------------------


def _part(rt: Reverse, s: For, sums: list[str], params: list[str]) -> tuple[Any, tuple[Any, ...]]:
    """(the function of a part of the iterations, the types of its arguments); it returns the sums."""
    start, stop, step = (rt.fresh(name) for name in ("start", "stop", "step"))
    body: list[Stmt] = [
        Let(name, "copy", (Const(0.0 if rt.types[name] == types.float64 else 0),), None, s.line)
        for name in sums
    ]
    body.append(For(s.target, Var(start), Var(stop), Var(step), s.body, s.line))
    body.append(Let(RESULT, "tuple", tuple(map(Var, sums or [start]))))
    name = f"{rt.source.name}_part"
    text, space = source(Program(name, rt.source.file, [start, stop, step, *params], body, rt.types))
    filename = f"<plaingrad parallel loop of {rt.source.name}, line {int(s.line)}, {next(_numbers)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    space["__name__"] = getattr(rt.source.function, "__module__", __name__)
    exec(compile(text, filename, "exec"), space)
    kinds = [types.unliteral(rt.types[x]) for x in params]
    part = numba.njit(**options_of(rt.source.function))(space.pop(name))
    weakref.finalize(part, linecache.cache.pop, filename, None)
    return part, (*[types.int64] * 3, *kinds)


def _calls(
    rt: Reverse, s: For, sums: list[str], params: list[str], written: set[str], sweeps: Any, private: int
) -> Parts:
    """The calls of both sweeps in the place of the loop; what it does not write is kept as it is now."""
    line = s.line
    forward: list[Stmt] = []
    run = Ref(threads.forward_in_parts, "forward_in_parts")
    call = (run, rt.arena, Ref(sweeps.forward, f"{sweeps.__name__}_forward"), s.start, s.stop, s.step)
    held = [rt.kept(Var(name), forward, line) if name not in written else Var(name) for name in params]
    out = rt.emit(forward, "call", (*call, *held), (), line)
    frame = rt.fresh("frame")
    rt.types[frame] = types.Array(types.int64, 1, "C")
    kinds = [rt.types[name] for name in sums] or [types.int64]
    rt.types[out.name] = types.Tuple((*kinds, rt.types[frame]))
    for k, name in enumerate(sums):
        part = rt.emit(forward, "item", (out, Const(k)), None, line)
        rt.types[part.name] = rt.types[name]
        forward.append(Let(name, "binary", (Var(name), part), "+", line))
    forward.append(Let(frame, "item", (out, Const(len(kinds))), None, line))
    back: list[Stmt] = []
    seeds: list[Operand] = [
        Var(f"{name}_b") if name in rt.active else Const(0.0) for name in sums if is_real(rt.types[name])
    ]
    active = [name for name in params if name in rt.active]
    shadows = [Var(f"{name}_b") for name in active if is_array(rt.types[name])]
    run = Ref(threads.backward_in_parts, "backward_in_parts")
    back_call = (
        run,
        rt.arena,
        Ref(sweeps.backward, f"{sweeps.__name__}_backward"),
        Const(private),
        Var(frame),
    )
    bars = rt.emit(back, "call", (*back_call, *seeds, *shadows), (), line)
    for k, name in enumerate(name for name in active if is_real(rt.types[name])):
        part = rt.emit(back, "item", (bars, Const(k)), None, line)
        rt.types[part.name] = rt.types[name]
        rt.add(back, Var(name), part, line)
    return Parts(forward, back)
