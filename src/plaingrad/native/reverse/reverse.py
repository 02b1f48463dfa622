"""Reverse mode: from a program to one that runs forward, keeping what the way back needs, and then backward.

The program made has the parameters of the given one, then the cotangents of the results, then a shadow array for every
array parameter. It returns the results and the cotangents of the scalar parameters; those of arrays are added into
the shadows. What is kept is decided for each loop body: a value that the reverse of that body reads is recomputed if
that is cheap, else stored on a tape of its own, one entry an iteration. No memory is undone: what is read from memory
that is written is kept when it is read. Arrays are kept by reference, with their shadows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from numba.core import types

from plaingrad.native.analysis import array_lists
from plaingrad.native.analysis.users_functions import is_users
from plaingrad.native.lowering.fused_reductions import every_one_in_loops
from plaingrad.native.program.dispatchers import options_of
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
    free_reads,
)
from plaingrad.native.program.value_types import is_array, is_real
from plaingrad.native.reverse import immutable, recomputation, saved_state, tapes
from plaingrad.native.reverse.forms import NO_FORMS, Forms, HasReverse
from plaingrad.native.reverse.stores import Stores
from plaingrad.native.rules import array_indexing, arrays_reverse
from plaingrad.native.runtime.helpers import add_to


def pullback_sweeps(
    program: Program, wanted: list[str], callee: Callable[..., Any], forms: Forms = NO_FORMS
) -> tuple[Program, Program]:
    """The programs of the two sweeps.

    The forward one takes an arena and the parameters of `program`; it returns the results, then all that the reverse
    sweep reads of what it has computed: the frame. The reverse one takes the arena, the frame, cotangents of the
    results and shadows of the arrays; it returns the cotangents of the scalar parameters. It may run again: it leaves
    the frame, and what the frame refers to, as it was.

    Args:
        program: what is differentiated.
        wanted: the parameters to differentiate.
        callee: `callee(f, argument types, positions)` is the compiled pullback of another function, in one piece.
        forms: the special forms of loops that are tried.
    """
    return Reverse(program, wanted, callee, in_arena=True, forms=forms).sweeps(False)


def enclosed_sweeps(
    program: Program, wanted: list[str], callee: Callable[..., Any], forms: Forms = NO_FORMS
) -> tuple[Program, Program]:
    """The programs of the two sweeps of a function that may call itself: its frame is one array, for `pullback_sweeps`.

    Raises:
        NativeError: besides what has no derivative, what is kept in the frame has no place in an array.
    """
    return Reverse(program, wanted, callee, in_arena=True, forms=forms).sweeps(True)


def pullback_program(program: Program, wanted: list[str], callee: Callable[..., Any]) -> Program:
    """The program, in one piece, that returns the results of `program` and its cotangents; with the same arguments."""
    return Reverse(every_one_in_loops(program), wanted, callee, in_arena=False).whole()


class Reverse(Stores):
    """The reverse transform of one program: its sweeps, and what becomes of each statement."""

    # -- the whole -------------------------------------------------------------------------------------------------

    def whole(self) -> Program:
        """Both sweeps as one function."""
        found = self.both()
        returned = (*[Var(name) for name in self.results], *found.bars)
        body = [*found.forward, *found.backward, Let(RESULT, "tuple", returned)]
        body = [*self.prototypes_read(body), *body]
        return self.program_of("fused", [*self.source.params, *found.seeds, *found.shadows], body)

    def sweeps(self, enclosed: bool) -> tuple[Program, Program]:
        """Both sweeps as two functions; the frame as one array if `enclosed`."""
        found = self.both()
        end: list[Stmt] = [Let(RESULT, "tuple", tuple(found.bars))]
        arena = self.arena.name  # type: ignore[union-attr]
        prototypes = {empty.name for empty, _ in self.prototypes.values()}
        given = {arena, *found.seeds, *found.shadows, *prototypes}
        begin, forward, end_of = saved_state.shadows_of_views(self, found, given)
        found.forward, found.backward = forward, [*begin, *found.backward, *end_of]
        found.backward = [*saved_state.indices_read(self, found, given), *found.backward]
        frame = sorted(free_reads([*found.backward, *end], given))
        surely = set(self.source.params) | saved_state.surely_assigned(found.forward)
        initial = [x for name in frame if name not in surely for x in self.initial_value(name)]
        names, pack, unpack = (
            saved_state.enclosed(self, frame) if enclosed else saved_state.packed(self, frame)
        )
        returned = tuple(Var(name) for name in (*self.results, *names))
        forward = [*initial, *found.forward, *pack, Let(RESULT, "tuple", returned)]
        backward = [*unpack, *found.backward, *end]
        forward, backward = ([*self.prototypes_read(body), *body] for body in (forward, backward))
        params = [arena, *names, *found.seeds, *found.shadows]
        return (
            self.program_of("forward", [arena, *self.source.params], forward),
            replace(self.program_of("backward", params, backward), backward=True),
        )

    def program_of(self, kind: str, params: list[str], body: list[Stmt]) -> Program:
        """A derived program."""
        bars = {f"{name}_b": self.types[name] for name in self.active}
        own = frozenset((*self.made, *[bar for bar, t in bars.items() if is_real(t)]))
        name = f"{self.source.name}_{kind}"
        return Program(name, self.source.file, params, body, {**self.types, **bars}, own=own)

    def both(self) -> saved_state.Sweeps:
        """The statements of both sweeps."""
        main = self.body(self.exploded.body)
        buffers = immutable.with_buffers(self, main)
        scalars_in = [name for name in self.inputs if is_real(self.types[name])]
        arrays_in = [name for name in self.inputs if is_array(self.types[name])]
        bars = sorted(name for name in self.active if is_real(self.types[name]))
        shadows = {leaf: f"{leaf}_b" for leaf in arrays_in}
        for leaves in self.leaves.values():
            for leaf in leaves:
                if leaf in self.active and leaf not in shadows and is_array(self.types[leaf]):
                    main.forward = self.with_zeros(leaf, main.forward)
                    main.backward += self.cleared(leaf)
        zero: list[Stmt] = [Let(f"{name}_b", "copy", (self.zero(self.types[name]),)) for name in bars]
        zero += [Let(flag, "copy", (Const(False),)) for flag in self.arrived.values()]
        seeds: list[Stmt] = []
        seed_names = []
        for name in self.outputs:
            seed = f"{name}_seed"
            seed_names.append(seed)
            if name not in self.active:
                continue
            if name in self.arrived:
                seeds.append(Let(self.arrived[name], "copy", (Const(True),)))
            if is_real(self.types[name]):
                seeds.append(Let(f"{name}_b", "copy", (Var(seed),)))
            else:
                seeds.append(Do(Let("_", "call", (Ref(add_to, "add_to"), Var(f"{name}_b"), Var(seed)), ())))
        zeros = [Var(f"{name}_b") if name in self.active else Const(0.0) for name in scalars_in]
        forward = [*self.setup, *[x for made in self.initial.values() for x in made], *main.forward]
        return saved_state.Sweeps(
            forward, [*buffers, *zero, *seeds, *main.backward], seed_names, list(shadows.values()), zeros
        )

    def with_zeros(self, leaf: str, forward: list[Stmt]) -> list[Stmt]:
        """The forward sweep with a shadow for an array that is a parameter, or is taken out of one."""
        places = [k + 1 for k, s in enumerate(forward) if isinstance(s, Let) and s.target == leaf]
        place = places[0] if places else 0
        return [*forward[:place], self.zeros(leaf), *forward[place:]]

    def cleared(self, name: str) -> list[Stmt]:
        """What leaves the shadow of an array, made on the way forward, as it was: for the next reverse sweep."""
        if not isinstance(self.arena, Var) or name in self.values.owned:
            return []  # an owned shadow is made on the way back
        bar = Var(f"{name}_b")
        if self.types[name].ndim == 0:  # Numba does not fill these
            return [Store(bar, Const(Ellipsis), Const(0.0))]
        return [Do(Let("_", "method", (bar, Const(0.0)), ("fill", ())))]

    # -- statements ------------------------------------------------------------------------------------------------

    def body(self, body: list[Stmt]) -> Parts:
        """A run of statements."""
        out = Parts()
        loops: dict[int, HasReverse] = {}
        within: set[int] = set()
        if isinstance(self.arena, Var):
            for finder in self.finders:
                found, inner = finder.find(body, within | loops.keys())
                loops, within = {**loops, **found}, within | inner
        pieces = [
            loops[k].reverse() if k in loops else self.statement(s)
            for k, s in enumerate(body)
            if k not in within
        ]
        for piece in pieces:
            out.forward += piece.forward
        for piece in reversed(pieces):
            out.backward += piece.backward
        return out

    def statement(self, s: Stmt) -> Parts:
        """One statement."""
        if array_lists.is_step(s, self.types) and self.is_active_list(s):
            return Parts(array_lists.beside(s, self.types, lambda name: f"{name}_b"))
        if isinstance(s, Let):
            return self.let(s)
        if isinstance(s, Store):
            return self.store(s)
        if isinstance(s, InPlace):
            return self.in_place(s)
        if isinstance(s, If):
            return self.branch(s)
        if isinstance(s, (For, Loop)):
            return tapes.loop(self, s)
        if isinstance(s, Do):
            return self.call_for_effect(s)
        return Parts([s])

    def branch(self, s: If) -> Parts:
        """A branch; which arm was taken is known from the test, which is kept unless it can be computed exactly."""
        before, test = self.decision(s)
        self.enclosing.append(s)
        then, orelse = self.body(s.then), self.body(s.orelse)
        self.enclosing.pop()
        if isinstance(self.arena, Var):
            then, orelse = recomputation.redone_in_arm(self, then), recomputation.redone_in_arm(self, orelse)
        if not then.backward and not orelse.backward:
            return Parts([If(s.test, then.forward, orelse.forward, s.line)])
        forward = [*before, If(test, then.forward, orelse.forward, s.line)]
        return Parts(forward, [If(test, then.backward, orelse.backward, s.line)])

    def decision(self, s: If) -> tuple[list[Stmt], Operand]:
        """(statements that make a bool of the test of a branch, that bool)."""
        t = self.type_of(s.test)
        if not is_real(t):
            return [], s.test
        name = self.fresh("taken")
        self.types[name] = types.boolean
        return [Let(name, "compare", (s.test, Const(0)), "!=", s.line)], Var(name)

    def let(self, s: Let) -> Parts:
        """An assignment."""
        t = self.types.get(s.target)
        users = s.op == "call" and is_users(getattr(s.args[0], "value", None))
        if s.target not in self.active:
            if any(self.is_active(Var(name)) for name in self.memory.outputs(s)):
                return self.call(s) if users else arrays_reverse.writes(self, s)
            return Parts([s])
        if s.op == "item" and isinstance(self.type_of(s.args[0]), types.BaseTuple):
            return Parts([s])  # a leaf of a tuple parameter
        if isinstance(t, types.BaseTuple):
            if s.op in ("copy", "tuple"):
                return Parts([s])  # its parts are active, not the tuple
            return self.call(s) if users else arrays_reverse.reverse(self, s)
        if is_array(t):
            return immutable.reverse(self, s) if s.target in self.values.owned else self.array(s)
        z = Var(f"{s.target}_b")
        back: list[Stmt] = []
        forward: list[Stmt] = [s]
        if s.op == "item" and self.is_array_item(s):
            if self.is_active(s.args[0]):
                assert isinstance(s.args[0], Var)
                place = Var(f"{s.args[0].name}_b")
                now = self.emit(back, "item", (place, s.args[1]), None, s.line)
                total = self.emit(back, "binary", (now, z), "+", s.line)
                back.append(Store(place, s.args[1], total, s.line))
        elif users:
            return self.call(s)
        elif self.is_of_arrays(s):
            return arrays_reverse.reverse(self, s)
        elif s.op == "attribute":
            self.complex_part(s, z, back)
        elif self.is_conjugate(s):
            self.add(back, s.args[-1], self.conjugated(z, back, s.line), s.line)
        else:
            self.scalar(s, z, back, forward)
        back.append(Let(z.name, "copy", (self.zero(t),), None, s.line))
        if s.target in self.arrived:
            back.append(Let(self.arrived[s.target], "copy", (Const(False),), None, s.line))
        return Parts(forward, back)

    def is_of_arrays(self, s: Let) -> bool:
        """Whether `s` makes a number out of whole arrays."""
        return (s.op == "binary" and s.detail == "@") or (
            s.op in ("call", "method", "attribute") and any(is_array(self.type_of(a)) for a in s.args)
        )

    def is_array_item(self, s: Let) -> bool:
        """Whether `s` reads one number out of an array."""
        return isinstance(self.type_of(s.args[0]), types.Array)

    # -- arrays ----------------------------------------------------------------------------------------------------

    def array(self, s: Let) -> Parts:
        """An assignment of an array: a view, another name, or new memory."""
        sources = [a for a in s.args if isinstance(a, Var) and a.name in self.memory.sources(s)]
        if s.op == "call" and is_users(getattr(s.args[0], "value", None)):
            return self.call(s)
        if s.op == "copy":
            return Parts([s, Let(f"{s.target}_b", "copy", (Var(f"{s.args[0].name}_b"),), None, s.line)])  # type: ignore[union-attr]
        if sources and not array_indexing.is_copy(self, s):
            args = tuple(Var(f"{a.name}_b") if a is sources[0] else a for a in s.args)
            return Parts([s, Let(f"{s.target}_b", s.op, args, s.detail, s.line)])
        return arrays_reverse.reverse(self, s)

    @property
    def is_loose(self) -> bool:
        """Whether the user's own flags leave it to the compiler how numbers are rounded."""
        return "fastmath" in options_of(self.source.function)

    def may_be_in_arena(self, s: Let) -> bool:
        """Whether the new array that `s` makes may be made in the arena: it is no result, and made only once."""
        out_of = {self.memory.of(result) for result in self.results}
        return any(x is s for x in self.exploded.body) and self.memory.of(s.target) not in out_of
