"""Loops in reverse: which values an iteration keeps for the way back, on which tapes, and which are computed again.

An iteration that is not left early is a full one; only full iterations are counted and kept, one entry of every tape
each, so the loop of the reverse sweep has no exits. What an iteration that is left early has done, up to where it is
left, is reversed once, before that loop, with the values that its variables still have. How many iterations there will
be is known when a counted loop is entered: then its tapes are long enough before it begins, and where the counts of a
nest are known, before the nest begins. The tapes of other loops grow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numba.core import types

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
    Parts,
    Raise,
    Ref,
    Stmt,
    Store,
    Var,
    assigns,
    breaks,
    free_reads,
    reads_of,
    renamed,
    statements,
)
from plaingrad.native.program.value_types import dtype_of
from plaingrad.native.reverse.recomputation import (
    base_of,
    definitions_in,
    is_invariant,
    moved,
    reads_a_list,
    redone_in_arm,
    split,
)
from plaingrad.native.reverse.replay import Replay
from plaingrad.native.runtime import workspace
from plaingrad.native.runtime.helpers import trips

if TYPE_CHECKING:
    from plaingrad.native.reverse.reverse import Reverse

STEP = 64  # entries by which a tape grows at least


@dataclass(slots=True)
class Exit:
    """A place where a loop may be left: what comes before it in an iteration, its test, the arm that leaves.

    Attributes:
        before: the statements since the exit before this one.
        branch: the branch, of which one arm always leaves and the other never does so at once.
        leaves_if: the value of the test that leaves.
    """

    before: list[Stmt]
    branch: If
    leaves_if: bool

    @property
    def leaving(self) -> list[Stmt]:
        """The arm that leaves."""
        return self.branch.then if self.leaves_if else self.branch.orelse


def exits_of(body: list[Stmt]) -> tuple[list[Exit], list[Stmt]] | None:
    """(the exits of a loop's body in order, what follows the last one); None where they do not stand in a row."""
    found: list[Exit] = []
    while breaks(body):
        last = body[-1]
        if not isinstance(last, If) or _always_leaves(last.then) == _always_leaves(last.orelse):
            return None
        leaves_if = _always_leaves(last.then)
        found.append(Exit(body[:-1], last, leaves_if))
        body = last.orelse if leaves_if else last.then
    return found, body


def _always_leaves(body: list[Stmt]) -> bool:
    last = body[-1] if body else None
    if isinstance(last, If):
        return _always_leaves(last.then) and _always_leaves(last.orelse)
    return isinstance(last, (Break, Raise))


# -- one loop ----------------------------------------------------------------------------------------------------------


def loop(rt: Reverse, s: For | Loop) -> Parts:
    """A loop: in a special form, or forward with tapes, backward iteration by iteration."""
    for form in rt.forms.loops if isinstance(rt.arena, Var) and not reads_a_list(rt, s) else ():
        parts = form.parts(rt, s)
        if parts is not None:
            return parts
    return general(rt, s)


def general(rt: Reverse, s: For | Loop) -> Parts:
    """A loop forward with tapes, backward iteration by iteration."""
    return _Loop(rt, s).parts()


class _Loop:
    """One loop in its general form.

    Attributes:
        before: what becomes of the statements in front of each exit.
        leaving: what becomes of the arms that leave.
        rest: what becomes of the statements behind the last exit.
        is_nested: whether it may be entered more than once; then entries of its tapes begin at a stack pointer.
        is_counted: whether the number of its iterations is known when it is entered.
        k: the number of an iteration; n: how many there were; sp: the stack pointer; place: the entry on the tapes.
    """

    def __init__(self, rt: Reverse, s: For | Loop) -> None:
        self.rt, self.s, self.line = rt, s, s.line
        exits, rest = exits_of(s.body) or ([], s.body)
        if self.is_carried_through(exits, rest):
            exits, rest = [], s.body
        self.exits = exits
        self.is_nested = any(isinstance(x, (For, Loop)) for x in rt.enclosing)
        self.is_counted = isinstance(s, For) and not breaks(s.body)
        rt.enclosing.append(s)
        self.replay = Replay(rt, s)
        with self.replay:
            self.before = [rt.body(e.before) for e in exits]
            self.leaving = [rt.body(e.leaving) for e in exits]
            self.rest = rt.body(rest)
        rt.enclosing.pop()
        self.tapes: list[str] = []  # of numbers
        self.has_tapes = False
        self.left = ""  # the flag that a `for` was left
        rt.count += 1
        self.mark = rt.count
        self.plain_range = isinstance(s, For) and (s.start, s.step) == (Const(0), Const(1))
        self.k = s.target if isinstance(s, For) and self.plain_range else f"k_{self.mark}"
        self.n, self.sp, self.place, self.at, self.first = (
            f"{name}_{self.mark}" for name in ("n", "sp", "place", "at", "first")
        )
        for name in (self.k, self.n, self.sp, self.place, self.first):
            rt.types[name] = types.int64

    def is_carried_through(self, exits: list[Exit], rest: list[Stmt]) -> bool:
        """Whether a variable with a value from the iteration before gets another one in front of the last exit."""
        before = [x for e in exits for x in e.before]
        written = {x.target for x in statements(before) if isinstance(x, (Let, For))}
        outside = assigned_outside(self.rt, self.s, written, [*before, *rest])
        return any(is_read_before(self.rt, name, [*before, *rest]) for name in outside)

    def parts(self) -> Parts:
        """The loop, and the loop of its reverse."""
        partial = self.partial()
        full = [*self.rest.backward, *[x for p in reversed(self.before) for x in p.backward]]
        if not full:
            return Parts([*self.flag(), replace(self.s, body=self.forward([], self.rest.forward))], partial)
        fills = self.replay.needed(full)
        keep, rest, restored, redone = self.choices([*fills, *full])
        begin, top, push = self.entry()
        body = [*top, *self.forward([*push, *keep], rest)]
        forward = [*self.rt.preheaders.pop(id(self.s), []), *begin, *self.flag(), self.with_index(body)]
        if not self.is_counted:
            forward.append(Let(self.n, "binary", (Var(self.sp), Var(self.first)), "-", self.line))
        return Parts(forward, [*partial, *self.backward([*restored, *redone, *fills, *full])])

    def forward(self, push: list[Stmt], rest: list[Stmt]) -> list[Stmt]:
        """The body of the loop on the way forward; `push` is done once the iteration is known to be a full one."""
        inner = [*push, *rest]
        for e, before, leaving in reversed(list(zip(self.exits, self.before, self.leaving, strict=True))):
            arms = (leaving.forward, inner) if e.leaves_if else (inner, leaving.forward)
            inner = [*before.forward, If(e.branch.test, *arms, e.branch.line)]
        return inner

    # -- the iteration that is left ----

    def partial(self) -> list[Stmt]:
        """The reverse of an iteration that is left early: of what it did that is seen behind the loop."""
        live = self.rt.read_outside(self.s)
        out: list[Stmt] = []
        for e, before, leaving in reversed(list(zip(self.exits, self.before, self.leaving, strict=True))):
            arm = self.seen(leaving, live)
            if arm or out:
                both = (arm, out) if e.leaves_if else (out, arm)
                out = [If(e.branch.test, *both, e.branch.line)]
            out += self.seen(before, live)
        if out and isinstance(self.s, For):  # it may also have run to its end
            self.left = self.rt.fresh("left")
            self.rt.types[self.left] = types.boolean
            for p in self.leaving:
                p.forward = _before_breaks(p.forward, Let(self.left, "copy", (Const(True),), None, self.line))
            out = [If(Var(self.left), out, [], self.line)]
        return out

    def flag(self) -> list[Stmt]:
        """What says, before the loop, that it has not been left early."""
        return [Let(self.left, "copy", (Const(False),), None, self.line)] if self.left else []

    def seen(self, p: Parts, live: set[str]) -> list[Stmt]:
        """The reverse of `p` if what it assigns or writes is seen behind; `live` then grows by what it reads."""
        for x in statements(p.forward):
            array = isinstance(x, Let) and isinstance(self.rt.types.get(x.target), types.Array)
            if array or isinstance(x, (Store, InPlace, Do)) or (isinstance(x, Let) and x.target in live):
                live |= reads_of(p.forward)
                return renamed(redone_in_arm(self.rt, p).backward, {})
        return []

    # -- what is kept ----

    def choices(self, full: list[Stmt]) -> tuple[list[Stmt], list[Stmt], list[Stmt], list[Stmt]]:
        """What keeps values once an iteration is known to be a full one, the statements behind the last exit with
        what keeps their values, the statements that restore what is kept, and those that compute the others again."""
        rt, rest = self.rt, self.rest.forward
        before = [x for p in self.before for x in p.forward]
        every = [*before, *rest]
        assigned = {x.target for x in statements(every) if isinstance(x, (Let, For))} - rt.machinery
        early = {x.target for x in statements(before) if isinstance(x, (Let, For))}
        outside = assigned_outside(rt, self.s, assigned, every)
        if isinstance(self.s, For):
            assigned.discard(self.s.target)
        definitions = {name: x for name, x in definitions_in(every).items() if name not in outside}
        saved, redone = split(rt, free_reads(full, rt.machinery), definitions, assigned)
        keep_first: list[Stmt] = []
        restored: list[Stmt] = []
        for name in sorted(saved):
            keep, back = self.on_tape(name, name)
            if name in early or (name in outside and is_read_before(rt, name, every)):
                keep_first += keep
            else:
                rest = kept_behind(rest, name, keep)
            restored += back
        return keep_first, rest, restored, redone

    def on_tape(self, name: str, word: str) -> tuple[list[Stmt], list[Stmt]]:
        """(statements that keep a variable's value, statements that bring it back); `word` is for names."""
        rt = self.rt
        self.has_tapes = True
        t = rt.types.get(base_of(rt, name))
        tape = f"{word}_tape{self.mark}"
        if isinstance(t, types.BaseTuple):
            keep, back, parts = [], [], []
            for k, part_type in enumerate(t):
                part = rt.fresh(f"{name}_at")
                rt.types[part] = part_type
                kept, restored = self.on_tape(part, part)
                keep += [Let(part, "item", (Var(name), Const(k))), *kept]
                back += restored
                parts.append(Var(part))
            return keep, [*back, Let(name, "tuple", tuple(parts))]
        rt.machinery.add(tape)
        rt.types[tape] = types.Array(types.int64, 1, "C")
        rt.give_initial(name)
        if isinstance(t, types.Array):
            like = rt.empty_like(name)
            rt.setup.append(
                Let(tape, "call", (Ref(workspace.references, "references"), rt.arena, like), (), self.line)
            )
            args = (Ref(workspace.keep, "keep"), rt.arena, Var(tape), Var(self.place), Var(name))
            back_args = (Ref(workspace.kept, "kept"), Var(tape), Var(self.place), like)
            return [Let(tape, "call", args, ())], [Let(name, "call", back_args, ())]
        assert t is not None, name
        rt.types[tape] = types.Array(types.unliteral(t), 1, "C")
        dtype = dtype_of(t)
        room = (Ref(workspace.room, "room"), rt.arena, Const(0), Ref(dtype, dtype.__name__))
        rt.setup.append(Let(tape, "call", room, ()))
        self.tapes.append(tape)
        return [Store(Var(tape), Var(self.at), Var(name))], [Let(name, "item", (Var(tape), Var(self.at)))]

    # -- where it is kept ----

    def entry(self) -> tuple[list[Stmt], list[Stmt], list[Stmt]]:
        """Statements before the loop, at the top of an iteration, at the top of a full iteration."""
        line, sp, room = self.line, self.sp, f"room_{self.mark}"
        if not self.is_counted:
            self.stack_pointer()
            begin: list[Stmt] = [
                Let(self.first, "copy", (Var(sp) if self.is_nested else Const(0),), None, line)
            ]
            if not self.is_nested:
                begin.append(Let(sp, "copy", (Const(0),), None, line))
            push: list[Stmt] = []
            if self.tapes:
                wanted = self.rt.fresh("wanted")
                longer = [Let(wanted, "binary", (Var(sp), Const(STEP)), "+", line), *self.longer(Var(wanted))]
                push = self.if_short(Var(sp), ">=", longer, room)
            push += [Let(self.place, "copy", (Var(sp),), None, line), *self.unsigned(Var(self.place))]
            return begin, [], [*push, Let(sp, "binary", (Var(self.place), Const(1)), "+", line)]
        s = self.s
        assert isinstance(s, For)
        begin = [Let(self.n, "call", (Ref(trips, "trips"), s.start, s.stop, s.step), (), line)]
        top = self.loop_variable() if not self.plain_range else []
        if not self.has_tapes:
            return begin, top, []
        if not self.is_nested:
            index = [Let(self.place, "copy", (Var(self.k),), None, line), *self.unsigned(Var(self.place))]
            return [*begin, *self.longer(Var(self.n))], [*top, *index], []
        self.stack_pointer()
        begin += [
            Let(self.first, "copy", (Var(sp),), None, line),
            Let(sp, "binary", (Var(self.first), Var(self.n)), "+", line),
        ]
        if self.tapes and not self.reserved_outside():
            begin += self.if_short(Var(sp), ">", self.longer(Var(sp)), room)
        return begin, [*top, *self.index(Var(self.first))], []

    def stack_pointer(self) -> None:
        """Make the stack pointer of a loop that may be entered more than once."""
        self.rt.setup.append(Let(self.sp, "copy", (Const(0),)))
        self.rt.machinery.add(self.sp)

    def index(self, base: Operand) -> list[Stmt]:
        """The entry of an iteration on the tapes."""
        place = Let(self.place, "binary", (base, Var(self.k)), "+", self.line)
        return [place, *self.unsigned(Var(self.place))]

    def unsigned(self, place: Operand) -> list[Stmt]:
        """It as an index that Numba need not look at for being negative."""
        if not self.tapes:
            return []
        return [Let(self.at, "call", (Ref(np.uint64, "uint64"), place), (), self.line)]

    def longer(self, size: Operand) -> list[Stmt]:
        """Tapes of `size` entries at least."""
        more = Ref(workspace.more, "more")
        return [Let(t, "call", (more, self.rt.arena, Var(t), size), (), self.line) for t in self.tapes]

    def if_short(self, size: Operand, op: str, longer: list[Stmt], room: str) -> list[Stmt]:
        """`longer` if the tapes, of `room` entries each, are too short."""
        self.rt.setup.append(Let(room, "copy", (Const(0),)))
        self.rt.types[room] = types.int64
        self.rt.machinery.add(room)
        short = self.rt.fresh("short")
        now = Let(room, "attribute", (Var(self.tapes[0]),), "size", self.line)
        return [
            Let(short, "compare", (size, Var(room)), op, self.line),
            If(Var(short), [*longer, now], [], self.line),
        ]

    def reserved_outside(self) -> bool:
        """Make the tapes long enough before a nest of counted loops begins, if its counts are known there."""
        rt = self.rt
        assert isinstance(self.s, For)
        nest: list[For] = [self.s]
        for outer in reversed(
            rt.enclosing
        ):  # branches stand there too: what is done rarely is not reserved for
            if not isinstance(outer, For) or breaks(outer.body):
                break
            ranges = [x for inner in nest for x in (inner.start, inner.stop, inner.step)]
            if not all(is_invariant(rt, x, outer) for x in ranges):
                break
            nest.append(outer)
        if len(nest) == 1:
            return False
        out: list[Stmt] = []
        total: Operand = Const(1)
        for x in nest:
            count, product = rt.fresh("count"), rt.fresh("total")
            bounds = [moved(rt, bound, nest[-1], out) for bound in (x.start, x.stop, x.step)]
            out.append(Let(count, "call", (Ref(trips, "trips"), *bounds), (), self.line))
            out.append(Let(product, "binary", (total, Var(count)), "*", self.line))
            total = Var(product)
        size = rt.fresh("size")
        out.append(Let(size, "binary", (Var(self.sp), total), "+", self.line))
        rt.preheaders.setdefault(id(nest[-1]), []).extend([*out, *self.longer(Var(size))])
        return True

    def with_index(self, body: list[Stmt]) -> Stmt:
        """The loop on the way forward."""
        if self.is_counted and not self.plain_range:
            return For(self.k, Const(0), Var(self.n), Const(1), body, self.line)
        return replace(self.s, body=body)

    def loop_variable(self) -> list[Stmt]:
        """The variable of a `for` from the number of the iteration."""
        s, line = self.s, self.line
        assert isinstance(s, For)
        offset: Operand = Var(self.k)
        out: list[Stmt] = []
        if s.step != Const(1):
            far = self.rt.fresh("far")
            out.append(Let(far, "binary", (offset, s.step), "*", line))
            offset = Var(far)
        return [*out, Let(s.target, "binary", (s.start, offset), "+", line)]

    def backward(self, body: list[Stmt]) -> list[Stmt]:
        """The loop of the reverse sweep."""
        line, last, r = self.line, f"last_{self.mark}", f"r_{self.mark}"
        out: list[Stmt] = []
        if self.is_nested and (self.has_tapes or not self.is_counted):
            out.append(Let(self.sp, "binary", (Var(self.sp), Var(self.n)), "-", line))
        head: list[Stmt] = []
        if isinstance(self.s, For) and not self.plain_range:
            head += self.loop_variable()
        if self.has_tapes:
            head += self.index(Var(self.sp) if self.is_nested else Const(0))
        if self.k in free_reads([*head, *body], set()):
            out.append(Let(last, "binary", (Var(self.n), Const(1)), "-", line))
            head.insert(0, Let(self.k, "binary", (Var(last), Var(r)), "-", line))
        return [*out, For(r, Const(0), Var(self.n), Const(1), [*head, *body], line)]


# -- recomputing or keeping --------------------------------------------------------------------------------------------


def assigned_outside(rt: Reverse, s: For | Loop, assigned: set[str], body: list[Stmt]) -> set[str]:
    """Of the variables that a loop assigns, those with a value from before it, or from one iteration to the next."""
    inside: dict[str, int] = {}
    for x in statements(s.body):
        if isinstance(x, (Let, For)):
            inside[x.target] = inside.get(x.target, 0) + 1
    found = {name for name in inside if rt.assigned.get(name, 0) > inside[name]} | read_first(body)
    found |= {f"{name}_b" for name in found if isinstance(rt.types.get(name), types.Array)}
    return found & assigned


def read_first(body: list[Stmt]) -> set[str]:
    """The variables that an iteration reads before it assigns them.

    They have the value of the iteration before, although they may have none before the loop.
    """
    found: set[str] = set()
    known: set[str] = set()
    for child in body:
        known |= {x.target for x in statements([child]) if isinstance(x, (Let, For))}
        found |= reads_of([child]) - known
    return found


def is_read_before(rt: Reverse, name: str, body: list[Stmt]) -> bool:
    """Whether an iteration starts from the value that a variable had at the end of the one before."""
    base = base_of(rt, name)
    t = rt.types.get(base)
    for child in body:
        if name in reads_of([child]) or (t is not None and base in reads_of([child])):
            return True
        if isinstance(child, Let) and child.target == name:
            return False
    return True


# -- statements --------------------------------------------------------------------------------------------------------


def _before_breaks(body: list[Stmt], flag: Let) -> list[Stmt]:
    """`body` with an assignment in front of every jump out of its loop."""
    last = body[-1] if body else None
    if isinstance(last, Break):
        return [*body[:-1], flag, last]
    if isinstance(last, If):
        then, orelse = (_before_breaks(arm, flag) for arm in (last.then, last.orelse))
        return [*body[:-1], If(last.test, then, orelse, last.line)]
    return body


def kept_behind(body: list[Stmt], name: str, keep: list[Stmt]) -> list[Stmt]:
    """`body` with `keep` done as soon as `name` has its value for the iteration: in the smallest list of statements
    that holds all of its assignments, behind the last; in front of a jump out of the loop."""
    places = [k for k, s in enumerate(body) if assigns(s, name)]
    last = places[-1]
    s = body[last]
    if isinstance(s, If):
        inside = [arm for arm in (s.then, s.orelse) if any(assigns(x, name) for x in arm)]
        if len(places) == 1 and len(inside) == 1:
            then = kept_behind(s.then, name, keep) if inside[0] is s.then else s.then
            orelse = kept_behind(s.orelse, name, keep) if inside[0] is s.orelse else s.orelse
            return [*body[:last], If(s.test, then, orelse, s.line), *body[last + 1 :]]
        if breaks([s]) or _raises([s]):  # it is assigned on several ways, of which some leave
            before = kept_behind(body[:last], name, keep) if len(places) > 1 else body[:last]
            then = kept_behind(s.then, name, keep) if any(assigns(x, name) for x in s.then) else s.then
            orelse = (
                kept_behind(s.orelse, name, keep) if any(assigns(x, name) for x in s.orelse) else s.orelse
            )
            return [*before, If(s.test, then, orelse, s.line), *body[last + 1 :]]
    return [*body[: last + 1], *keep, *body[last + 1 :]]


def _raises(body: list[Stmt]) -> bool:
    return any(isinstance(s, Raise) for s in statements(body))
