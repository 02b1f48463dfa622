"""Loop nests over array elements as data: iteration domain, array accesses, and a body in SSA form.

This is the one picture that the special forms have of a loop, wherever it comes from: `loop_of` and `nest_of` find it
in a loop that the program writes out, `lowered` makes it of statements on whole arrays or rows, which mean one. A form
reads from it what it needs: a stencil the constant distances of reads, a sum what one iteration hands to the next,
fission which values depend on no other iteration, the forms of arrays how operands are broadcast.

What an access does to an index is affine: along each axis of an array one counter, times a step, plus a distance; or a
place that is the same in all iterations.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from numba.core import types

from plaingrad.native.loops.if_conversion import Arms, Declined, straightened
from plaingrad.native.lowering.fused_reductions import of_numbers
from plaingrad.native.program.ir import (
    Break,
    Const,
    Do,
    For,
    If,
    InPlace,
    Let,
    Loop,
    Operand,
    Raise,
    Stmt,
    Store,
    Var,
    breaks,
    operands,
    statements,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from plaingrad.native.reverse.reverse import Reverse

Offset = tuple[int, ...]
ZERO, ONE = Const(0), Const(1)
UNKNOWN = ZERO  # the stop of an axis whose length is found in front of the loop, when the program runs


@dataclass(frozen=True, slots=True)
class Axis:
    """One counter of the domain, from `start` to `stop` in steps of 1.

    Attributes:
        start, stop: its range.
        counter: its variable; "" where each loop that is made gives it a name.
    """

    start: Operand
    stop: Operand
    counter: str = ""


@dataclass(frozen=True, slots=True)
class Along:
    """A place along one axis of an array: step * counter + shift.

    Attributes:
        axis: the counter's number in the domain; None where the place is `fixed` in all iterations.
        shift: the distance.
        step: 1; 0 where an axis of length 1 is broadcast; a variable where that is seen when the program runs.
        fixed: the place that does not move.
        length: of this axis, where it is compared with that of the domain; None where it is surely the same.
    """

    axis: int | None
    shift: int = 0
    step: Operand = ONE
    fixed: Operand = ZERO
    length: Operand | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """Which element of an array an iteration reads or writes.

    Attributes:
        array: the array.
        places: the place along each axis; None for any other index.
        value: the number that is read there, or stored.
        index: the index as it stands in the program; None where there is none.
    """

    array: Var
    places: tuple[Along, ...] | None
    value: Operand | None = None
    index: Operand | None = None

    @property
    def offset(self) -> Offset | None:
        """The distances, if the place is that of the counters in their order plus distances; else None."""
        if self.places is None or any(p.axis != k or p.step != ONE for k, p in enumerate(self.places)):
            return None
        return tuple(p.shift for p in self.places)

    @property
    def in_front(self) -> tuple[Operand, ...]:
        """The places along the axes in front of the last one, none of which moves."""
        return tuple(p.fixed for p in (self.places or ())[:-1])


@dataclass(slots=True)
class ElementLoop:
    """A loop, or a nest of them, over elements.

    Attributes:
        axes: the domain, from the outermost counter inwards.
        body: the statements of an iteration. In single assignments where `nest_of` or `lowered` found the loop;
            as they are, with branches and loops inside, where `loop_of` did.
        prelude: what stands in front of the inner loops of a nest: shapes and bounds.
        reads: the elements and rows that are read, in order.
        writes: the elements and rows that are stored to, in order.
        written: the arrays that an iteration may write, element by element or otherwise.
        inside: the variables that are assigned.
        exposed: those that an iteration may read before it gives them a value: from outside, or the one before.
        own: variable -> the one statement that assigns it, if an iteration reads it behind that only.
        in_place: the arrays of which an iteration reads the element that it then stores to.
        arms: what is known of the branches that were in the body.
        elements: array -> the number that stands for its element, in a loop that is made of statements on arrays.
        line: the user's line.
    """

    axes: list[Axis]
    body: list[Stmt]
    prelude: list[Let] = field(default_factory=list)
    reads: list[Access] = field(default_factory=list)
    writes: list[Access] = field(default_factory=list)
    written: set[str] = field(default_factory=set)
    inside: set[str] = field(default_factory=set)
    exposed: set[str] = field(default_factory=set)
    own: dict[str, Stmt] = field(default_factory=dict)
    in_place: set[str] = field(default_factory=set)
    arms: Arms = field(default_factory=Arms)
    elements: dict[Operand, Operand] = field(default_factory=dict)
    line: int = 0

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.axes)

    @property
    def counters(self) -> list[str]:
        """The variables of the axes."""
        return [axis.counter for axis in self.axes]

    def access(self, array: Var, index: Operand, value: Operand) -> Access:
        """What an index of an array means in this loop."""
        return Access(array, self.places(index), value, index)

    def offset(self, index: Operand) -> Offset | None:
        """The constants c of an index (i + c, j + c', ...) of all counters in order; None for any other index."""
        found = Access(Var(""), self.places(index)).offset
        return found if found is not None and len(found) == self.rank else None

    def places(self, index: Operand) -> tuple[Along, ...] | None:
        """The place along each axis that an index names; None where one is no counter plus a constant."""
        made = self.own.get(index.name) if isinstance(index, Var) else None
        parts = made.args if isinstance(made, Let) and made.op == "tuple" else (index,)
        found = [self.along(part) for part in parts]
        return None if None in found else tuple(found)  # type: ignore[arg-type]

    def along(self, place: Operand) -> Along | None:
        """A counter plus a constant; None for anything else."""
        shift = 0
        while not (isinstance(place, Var) and place.name in self.counters):
            s = self.own.get(place.name) if isinstance(place, Var) else None
            if not isinstance(s, Let):
                return None
            if s.op == "copy":
                place = s.args[0]
                continue
            if s.op != "binary" or s.detail not in ("+", "-"):
                return None
            a, b = s.args
            if isinstance(b, Const) and type(b.value) is int:
                shift += b.value if s.detail == "+" else -b.value
                place = a
            elif isinstance(a, Const) and type(a.value) is int and s.detail == "+":
                shift += a.value
                place = b
            else:
                return None
        return Along(self.counters.index(place.name), shift)

    def following(self) -> set[str]:
        """The counters, and what is computed from them in whatever way."""
        found = set(self.counters)
        grew = True
        while grew:
            grew = False
            for x in statements(self.body):
                if isinstance(x, (Let, For)) and x.target not in found:
                    if any(isinstance(a, Var) and a.name in found for a in operands(x)):
                        found.add(x.target)
                        grew = True
        return found


# -- loops that the program writes out ---------------------------------------------------------------------------------


def loop_of(rt: Reverse, s: For) -> ElementLoop:
    """The picture of any counted loop: one axis, the body as it stands, and what is read and written anywhere in it."""
    return pictured(rt, [Axis(s.start, s.stop, s.target)], [], s.body, s.line)


def nest_of(rt: Reverse, s: For) -> ElementLoop:
    """The picture of a perfect nest, its body in single assignments, its branches choices.

    Raises:
        Declined: `s` is none, it carries a value from one iteration to the next, or a value of it is used behind it.
    """
    loops: list[For] = []
    prelude: list[Stmt] = []
    inner: Stmt = s
    while isinstance(inner, For):
        if inner.step != ONE or not inner.body or breaks(inner.body):
            raise Declined
        loops.append(inner)
        *before, inner = inner.body
        if isinstance(inner, For):
            prelude += before
    if not all(isinstance(x, Let) and x.target not in rt.active for x in prelude):
        raise Declined
    axes = [Axis(loop.start, loop.stop, loop.target) for loop in loops]

    body, arms = straightened(
        rt, s, loops[-1].body, lambda index, made: ElementLoop(axes, [], own=dict(made)).offset(index)
    )
    if not all(isinstance(x, (Let, Store)) for x in body):
        raise Declined
    found = pictured(rt, axes, prelude, body, s.line)  # type: ignore[arg-type]
    found.arms = arms
    if found.exposed & found.inside or any(rt.assigned[name] != 1 for name in found.inside):
        raise Declined
    if rt.values.is_used_outside(found.inside, s):
        raise Declined
    return found


def pictured(rt: Reverse, axes: list[Axis], prelude: list[Let], body: list[Stmt], line: int) -> ElementLoop:
    """What is read, written and assigned in a loop over `axes`."""
    found = ElementLoop(axes, body, prelude, line=line)
    found.inside = set(found.counters)
    seen: set[str] = set()
    again: set[str] = set()
    every = list(statements([*prelude, *body]))
    for x in every:
        seen.update(a.name for a in operands(x) if isinstance(a, Var))
        if isinstance(x, (Let, For)):
            if x.target in seen:
                again.add(x.target)
            else:
                found.own[x.target] = x
            seen.add(x.target)
            found.inside.add(x.target)
        found.written |= _written_by(rt, x)
    for name in again:
        found.own.pop(name, None)
    found.exposed = exposed_reads([*prelude, *body], found.counters)
    for x in every:
        if isinstance(x, Let) and x.op == "item" and isinstance(x.args[0], Var):
            if isinstance(rt.types.get(x.args[0].name), types.Array):
                found.reads.append(found.access(x.args[0], x.args[1], Var(x.target)))
        elif isinstance(x, Store) and isinstance(x.array, Var):
            found.writes.append(found.access(x.array, x.index, x.value))
    return found


def _written_by(rt: Reverse, x: Stmt) -> set[str]:
    """The arrays that a statement, not those inside it, may write."""
    found: set[str] = set()
    if isinstance(x, (Store, InPlace)) and isinstance(x.array, Var):
        found.add(x.array.name)
    call = x.call if isinstance(x, Do) else x
    if isinstance(call, Let):
        names = [a.name for a in call.args if isinstance(a, Var)]
        if call.op != "call" or all(name in rt.types for name in names):
            names = rt.memory.outputs(call)
        found.update(names)  # of a call with shadows: everything that it is given
    return found


def exposed_reads(body: list[Stmt], bound: Iterable[str] = ()) -> set[str]:
    """The variables that `body` may read before it gives them a value; those in `bound` have one."""
    found: set[str] = set()
    _expose(body, set(bound), found, [])
    return found


def _expose(body: list[Stmt], bound: set[str], found: set[str], ways_out: list[set[str]]) -> set[str] | None:
    """Put into `found` what `body` may read first where the variables in `bound` have values.

    Returns: the variables that have a value behind `body`, None if that is never reached; those that have one at
    its jumps out of the loop around it are appended to `ways_out`.
    """
    bound = set(bound)
    for s in body:
        found |= {a.name for a in operands(s) if isinstance(a, Var) and a.name not in bound}
        if isinstance(s, Let):
            bound.add(s.target)
        elif isinstance(s, If):
            arms = [_expose(arm, bound, found, ways_out) for arm in (s.then, s.orelse)]
            reached = [arm for arm in arms if arm is not None]
            if not reached:
                return None
            bound = set.intersection(*reached)
        elif isinstance(s, For):
            _expose(s.body, {*bound, s.target}, found, [])
        elif isinstance(s, Loop):
            exits: list[set[str]] = []
            _expose(s.body, bound, found, exits)
            if not exits:
                return None
            bound = set.intersection(*exits)
        elif isinstance(s, Break):
            ways_out.append(bound)
            return None
        elif isinstance(s, Raise):
            return None
    return bound


# -- loops that statements on arrays mean ------------------------------------------------------------------------------


def lowered(
    element: Callable[[Var], Var], axes: list[Axis], leaves: dict[Var, Access], nodes: list[Let], line: int
) -> ElementLoop:
    """The picture of the loop that elementwise statements on arrays mean: one number for every array.

    Args:
        element: makes the variable for an element of an array.
        axes: the domain.
        leaves: the arrays that these statements do not make: where their elements are.
        nodes: the statements, in order.
        line: the user's line.
    """
    found = ElementLoop(axes, [], line=line)
    for x, access in leaves.items():
        found.elements[x] = number = element(x)
        found.reads.append(replace(access, value=number))
    for s in nodes:
        number = element(Var(s.target))
        found.body.append(of_numbers(s, number.name, found.elements))
        found.elements[Var(s.target)] = number
    return found


def row(array: Var, in_front: tuple[Operand, ...] = (), step: Operand = ONE) -> Access:
    """The elements of a row of an array: the indices `in_front` stay, the last one goes along the only axis."""
    return Access(array, (*[Along(None, fixed=place) for place in in_front], Along(0, step=step)))
