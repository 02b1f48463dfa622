"""Reverse mode: from a program to one that runs forward, keeping what the way back needs, and then backward.

The program made has the parameters of the given one, then the cotangents of the results, then a shadow array for every
array parameter. It returns the results and the cotangents of the scalar parameters; those of arrays are added into
the shadows. What is kept is decided for each loop body: a value that the reverse of that body reads is recomputed if
that is cheap, else stored on a tape of its own, one entry an iteration. No memory is undone: what is read from memory
that is written is kept when it is read. Arrays are kept by reference, with their shadows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numba.core import types

from plaingrad.native.analysis import array_lists
from plaingrad.native.analysis.effects import effects_of
from plaingrad.native.analysis.users_functions import is_users
from plaingrad.native.lowering.fused_reductions import every_one_in_loops
from plaingrad.native.modes.transform import Transform, has_kinks
from plaingrad.native.modes.unused_values import Arrivals, has_wild_slope
from plaingrad.native.program import value_types
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
    operands,
    reads_of,
    statements,
)
from plaingrad.native.program.value_types import has_tangent, is_array, is_real
from plaingrad.native.reverse import immutable, saved_state, tapes
from plaingrad.native.reverse.forms import NO_FORMS, Forms, HasReverse
from plaingrad.native.reverse.immutable import Values
from plaingrad.native.rules import arrays
from plaingrad.native.runtime import helpers
from plaingrad.native.runtime.helpers import add_to

ALWAYS = Const(True)


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


class Reverse(Transform):
    """The reverse transform of one program.

    Attributes:
        arena: where tapes are taken from; None for memory of their own.
        setup: statements that make tapes and stack pointers, before anything else.
        machinery: the names of these, which live throughout.
        enclosing: the loops and branches around the statement being transformed, outermost first.
        preheaders: statements to be done before a loop, by its identity.
    """

    def __init__(
        self,
        program: Program,
        wanted: list[str],
        callee: Callable[..., Any],
        in_arena: bool,
        forms: Forms = NO_FORMS,
    ) -> None:
        super().__init__(program, wanted, callee)
        leaves = {leaf for leaves in self.leaves.values() for leaf in leaves}
        self.values = Values(self.exploded, self.memory, leaves)
        kinds = self.exploded.types.values()
        self.has_complex = any(isinstance(getattr(t, "dtype", t), types.Complex) for t in kinds)
        self.arena: Operand = Var(self.fresh("arena")) if in_arena else Const(None)
        self.unused = Arrivals(self.exploded.body, self.outputs, self.types, self.is_active).unused
        # of these, in what is differentiated again: the names of bools, whether something has arrived
        self.arrived = {} if in_arena else {name: self.fresh("arrived") for name in sorted(self.unused)}
        self.types.update(dict.fromkeys(self.arrived.values(), types.boolean))
        self.forms = forms
        self.finders = [form.finder(self) for form in forms.runs]
        self.setup: list[Stmt] = []
        self.initial: dict[str, list[Stmt]] = {}  # values of variables that some way leaves without one
        self.machinery: set[str] = set()
        self.enclosing: list[Stmt] = []
        self.preheaders: dict[int, list[Stmt]] = {}
        self.reads = Counter(
            a.name for s in statements(self.exploded.body) for a in operands(s) if isinstance(a, Var)
        )
        self.prototypes: dict[Any, tuple[Var, list[Stmt]]] = {}  # empty arrays, and what makes them

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

    def give_initial(self, name: str) -> None:
        """Let a number that is kept have some value on every way through the program."""
        if name not in self.source.params and name not in self.initial:
            self.initial[name] = self.initial_value(name)

    def initial_value(self, name: str) -> list[Stmt]:
        """A value of the type of a variable; none where the type is not known or has no simple one."""
        t = types.unliteral(self.types.get(tapes.base_of(self, name)))
        if t in saved_state.ZEROS:
            return [Let(name, "copy", (Const(saved_state.ZEROS[t]),))]
        if isinstance(t, types.Number):
            dtype = value_types.dtype_of(t)
            return [Let(name, "call", (Ref(dtype, dtype.__name__), Const(0)), ())]
        if isinstance(t, types.Array):
            return [Let(name, "copy", (self.empty_like(name),))]
        if isinstance(t, (types.Tuple, types.UniTuple)) and all(isinstance(part, types.Array) for part in t):
            return [Let(name, "tuple", tuple(map(self.empty_array, t)))]
        return []

    def empty_like(self, name: str) -> Var:
        """An array of the type of an array or a shadow: of any order for the shadow of one that is not in C order."""
        t = self.types[tapes.base_of(self, name)]
        return self.empty_array(t if name in self.types or t.layout == "C" else t.copy(layout="A"))

    def empty_array(self, t: Any) -> Var:
        """An array of a type, with nothing in it, that both sweeps make for themselves."""
        key = t.dtype, t.ndim, t.layout
        if key not in self.prototypes:
            shape, empty = self.fresh("shape"), self.fresh("none")
            dtype = value_types.dtype_of(t.dtype)
            made: list[Stmt] = [
                Let(shape, "tuple", tuple([Const(0)] * t.ndim)),
                Let(empty, "call", (Ref(np.empty, "empty"), Var(shape), Ref(dtype, dtype.__name__)), ()),
            ]
            if t.layout == "A":
                view, step = self.fresh("view"), self.fresh("step")
                made.append(Let(step, "slice", (Const(None), Const(None), Const(2))))
                made.append(Let(view, "item", (Var(empty), Var(step)), None))
                empty = view
            elif t.layout == "F" and t.ndim > 1:
                turned = self.fresh("turned")
                made.append(Let(turned, "attribute", (Var(empty),), "T"))
                empty = turned
            self.prototypes[key] = Var(empty), made
        return self.prototypes[key][0]

    def prototypes_read(self, body: list[Stmt]) -> list[Stmt]:
        """What makes the empty arrays that `body` reads."""
        read = reads_of(body)
        return [s for empty, made in self.prototypes.values() if empty.name in read for s in made]

    def trial(self) -> tuple[Any, ...]:
        """The state of the transform, to return to by `undo` if what is tried does not fit."""
        return (
            len(self.setup),
            dict(self.initial),
            set(self.machinery),
            {k: list(v) for k, v in self.preheaders.items()},
        )

    def undo(self, state: tuple[Any, ...]) -> None:
        """Forget what has been set up since `trial`."""
        length, self.initial, self.machinery, self.preheaders = state
        del self.setup[length:]

    def read_outside(self, s: Stmt) -> set[str]:
        """The variables that the program reads outside of a statement."""
        inside = Counter(a.name for x in statements([s]) for a in operands(x) if isinstance(a, Var))
        return {name for name, count in self.reads.items() if count > inside[name]} | set(self.results)

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
            then, orelse = tapes.redone_in_arm(self, then), tapes.redone_in_arm(self, orelse)
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

    def add(self, out: list[Stmt], x: Operand, term: Operand, line: int, arrived: Operand = ALWAYS) -> None:
        """x_bar += term; `arrived`: whether something arrived at what x was used for."""
        assert isinstance(x, Var)
        flag = self.arrived.get(x.name)
        if flag is not None and arrived == ALWAYS:
            out.append(Let(flag, "copy", (arrived,), None, line))
        elif flag is not None:
            out.append(Let(flag, "binary", (Var(flag), arrived), "|", line))
        t = self.types[x.name]
        bar = Var(f"{x.name}_b")
        if is_array(t):
            out.append(Do(Let("_", "call", (Ref(add_to, "add_to"), bar, term), (), line), line))
            return
        if not isinstance(t, types.Complex):
            term = self.real(out, term, line)
        out.append(Let(bar.name, "binary", (bar, term), "+", line))

    def real(self, out: list[Stmt], term: Operand, line: int) -> Operand:
        """The real part of a cotangent that may be complex: of a number whose type is not known, too."""
        t = self.known_type(term)
        if isinstance(t, types.Complex) or t is None and self.has_complex:
            return self.emit(out, "attribute", (term,), "real", line)
        return term

    def let(self, s: Let) -> Parts:
        """An assignment."""
        t = self.types.get(s.target)
        users = s.op == "call" and is_users(getattr(s.args[0], "value", None))
        if s.target not in self.active:
            if any(self.is_active(Var(name)) for name in self.memory.outputs(s)):
                return self.call(s) if users else arrays.writes(self, s)
            return Parts([s])
        if s.op == "item" and isinstance(self.type_of(s.args[0]), types.BaseTuple):
            return Parts([s])  # a leaf of a tuple parameter
        if isinstance(t, types.BaseTuple):
            if s.op in ("copy", "tuple"):
                return Parts([s])  # its parts are active, not the tuple
            return self.call(s) if users else arrays.reverse(self, s)
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
            return arrays.reverse(self, s)
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

    def complex_part(self, s: Let, z: Var, back: list[Stmt]) -> None:
        """z = x.real or x.imag of a number."""
        x = s.args[0]
        if s.detail == "real" or not isinstance(self.type_of(x), types.Complex):
            if s.detail == "real":
                self.add(back, x, z, s.line)
            return
        self.add(back, x, self.emit(back, "binary", (Const(1j), z), "*", s.line), s.line)

    def conjugated(self, z: Var, back: list[Stmt], line: int) -> Operand:
        """The conjugate of a cotangent; itself where it is real."""
        if not self.is_complex(z):
            return z
        found = self.emit(back, "method", (z,), ("conjugate", ()), line)
        self.types[found.name] = types.complex128
        return found

    def indicator(self, out: list[Stmt], taken: Var, line: int) -> Operand:
        """The slope of an operand that was or was not taken: the bool itself, which takes less room on a tape."""
        return taken

    def scalar(self, s: Let, z: Var, back: list[Stmt], forward: list[Stmt]) -> None:
        """x_bar += z_bar * conj(dz/dx) for every active operand.

        Where a slope jumps it is computed on the way forward: on the way back the operands may differ in the last bit.
        """
        jumps = has_kinks(s)
        for position, slope in self.slopes(s, forward if jumps else back):
            if jumps and isinstance(slope, Var):
                self.types.setdefault(slope.name, types.float64)
            x = s.args[position]
            if not self.is_active(x):
                continue
            flag = self.arrived.get(s.target)
            arrived: Operand = ALWAYS if flag is None else Var(flag)
            term = self.times(back, z, slope, s.line)
            if isinstance(self.type_of(slope), types.Boolean):
                arrived = slope if flag is None else self.emit(back, "binary", (slope, arrived), "&", s.line)
            elif s.target in self.unused and not isinstance(slope, int):
                term = self.if_used(back, s, z, term)
            self.add(back, x, term, s.line, arrived)

    def if_used(self, back: list[Stmt], s: Let, z: Var, term: Operand) -> Operand:
        """A product of a cotangent and a slope, 0 where nothing has arrived: the slope may be infinite.

        In what is not differentiated again, a zero stands for nothing: its derivatives do not matter.
        """
        if s.target in self.arrived:
            used: Operand = Var(self.arrived[s.target])
        elif has_wild_slope(s):
            used = self.emit(back, "compare", (z, Const(0.0)), "!=", s.line)
            self.types[used.name] = types.boolean  # type: ignore[union-attr]
        else:
            return term
        kept = self.emit(back, "call", (Ref(helpers.where_taken, "where_taken"), used, term), (), s.line)
        if isinstance(term, Var) and term.name in self.types:
            self.types[kept.name] = self.types[term.name]
        return kept

    def times(self, back: list[Stmt], z: Operand, slope: Any, line: int) -> Operand:
        """z * conj(slope); `slope` is an operand, or 1 or -1."""
        if slope == 1:
            return z
        if isinstance(self.type_of(slope), types.Boolean):
            return self.emit(back, "call", (Ref(helpers.where_taken, "where_taken"), slope, z), (), line)
        if slope == -1:
            minus = self.emit(back, "unary", (z,), "-", line)
            if self.is_complex(z):
                self.types[minus.name] = types.complex128
            return minus
        if self.is_complex(slope):
            slope = self.emit(back, "method", (slope,), ("conjugate", ()), line)
        product = self.emit(back, "binary", (z, slope), "*", line)
        if self.is_complex(z) or self.is_complex(slope):
            self.types[product.name] = types.complex128
        return product

    # -- arrays ----------------------------------------------------------------------------------------------------

    def array(self, s: Let) -> Parts:
        """An assignment of an array: a view, another name, or new memory."""
        sources = [a for a in s.args if isinstance(a, Var) and a.name in self.memory.sources(s)]
        if s.op == "call" and is_users(getattr(s.args[0], "value", None)):
            return self.call(s)
        if s.op == "copy":
            return Parts([s, Let(f"{s.target}_b", "copy", (Var(f"{s.args[0].name}_b"),), None, s.line)])  # type: ignore[union-attr]
        if sources and not arrays.is_copy(self, s):
            args = tuple(Var(f"{a.name}_b") if a is sources[0] else a for a in s.args)
            return Parts([s, Let(f"{s.target}_b", s.op, args, s.detail, s.line)])
        return arrays.reverse(self, s)

    @property
    def is_loose(self) -> bool:
        """Whether the user's own flags leave it to the compiler how numbers are rounded."""
        return "fastmath" in options_of(self.source.function)

    def may_be_in_arena(self, s: Let) -> bool:
        """Whether the new array that `s` makes may be made in the arena: it is no result, and made only once."""
        out_of = {self.memory.of(result) for result in self.results}
        return any(x is s for x in self.exploded.body) and self.memory.of(s.target) not in out_of

    def kept(self, x: Operand, forward: list[Stmt], line: int) -> Operand:
        """An array as it is now, for the way back: itself if it is never written, else a copy made before the use."""
        if not isinstance(x, Var) or not isinstance(self.types.get(x.name), types.Array):
            return x
        if not self.memory.is_written(x.name) or self.values.is_settled(x.name):
            return x
        name = self.fresh(f"{x.name}_kept")
        self.types[name] = self.types[x.name].copy(layout="C")
        forward.append(Let(name, "method", (x,), ("copy", ()), line))
        return Var(name)

    def store(self, s: Store) -> Parts:
        """array[index] = value: the cotangent of what was overwritten ends, that of the value begins."""
        if not self.is_active(s.array):
            return Parts([s])
        assert isinstance(s.array, Var)
        bar = Var(f"{s.array.name}_b")
        back: list[Stmt] = []
        if arrays.is_fancy(self, s.index):
            return arrays.store(self, s)
        value_type = self.type_of(s.value)
        if not self.is_active(s.value):
            back.append(Store(bar, s.index, Const(0.0), s.line))
            return Parts([s], back)
        assert isinstance(s.value, Var)
        index = s.index
        if index == Const(Ellipsis):  # Numba writes, but does not read, array[...]
            scalar = self.types[s.array.name].ndim == 0
            every = ("tuple", ()) if scalar else ("slice", (Const(None), Const(None)))
            index = self.emit(back, *every, None, s.line)
        arriving = self.emit(back, "item", (bar, index), None, s.line)
        if is_array(value_type):
            if self.memory.of(s.value.name) == self.memory.of(s.array.name):  # perhaps the very same elements
                arriving = self.emit(back, "method", (arriving,), ("copy", ()), s.line)
                back.append(Store(bar, s.index, Const(0.0), s.line))
                self.add(back, s.value, arriving, s.line)
                forward: list[Stmt] = []
                self.checked_reading(s, forward)
                return Parts([*forward, s], back)
        elif self.fills(s):
            arriving = self.emit(back, "call", (Ref(np.sum, "sum_of"), arriving), (), s.line)
        if isinstance(self.types[s.array.name].dtype, types.Complex):
            self.types[arriving.name] = types.complex128
        self.add(back, s.value, arriving, s.line)
        back.append(Store(bar, s.index, Const(0.0), s.line))
        return Parts([s], back)

    def in_place(self, s: InPlace) -> Parts:
        """array op= value."""
        if not self.is_active(s.array):
            return Parts([s])
        assert isinstance(s.array, Var)
        bar = Var(f"{s.array.name}_b")
        back: list[Stmt] = []
        forward: list[Stmt] = []
        line = s.line
        varies = self.is_active(s.value)

        def arrive(term: Operand) -> None:
            if not is_array(self.type_of(s.value)):
                term = self.emit(back, "call", (Ref(np.sum, "sum_of"), term), (), line)
            self.add(back, s.value, term, line)

        self.checked_overlap(s, forward)
        is_complex = isinstance(self.types[s.array.name].dtype, types.Complex)

        def conjugate(x: Operand) -> Operand:
            return self.emit(back, "call", (Ref(np.conj, "conj"), x), (), line) if is_complex else x

        if s.op in "+-":
            if varies:
                arrive(bar if s.op == "+" else self.emit(back, "unary", (bar,), "-", line))
            return Parts([*forward, s], back)
        if s.op not in "*/":
            raise self.refuse(f"`{s.op}=`", line)
        value = self.kept(s.value, forward, line)
        term = None
        if varies:
            old = self.kept(s.array, forward, line)
            slope = old
            if s.op == "/":
                square = self.emit(back, "binary", (value, value), "*", line)
                minus = self.emit(back, "unary", (old,), "-", line)
                slope = self.emit(back, "binary", (minus, square), "/", line)
            term = self.emit(back, "binary", (bar, conjugate(slope)), "*", line)
        back.append(InPlace(bar, s.op, conjugate(value), line))
        if term is not None:  # behind the line above: `value` may be `array` itself
            arrive(term)
        return Parts([*forward, s], back)

    # -- calls -----------------------------------------------------------------------------------------------------

    def call(self, s: Let) -> Parts:
        """A call of a function whose pullback is derived: it is run again on the way back, with its cotangents."""
        f, args, active = self.callee_of(s)
        signature = tuple(self.argument_type(a) for a in args)
        pullback = self.callee(f, signature, tuple(active))
        if hasattr(pullback, "backward"):
            return self.call_in_sweeps(s, f, pullback, args, active)
        once = effects_of(f, signature).once
        if any(isinstance(t, types.List) for t in signature):
            once = "is given a list that may have changed on the way back"
        if once:  # it is run again on the way back
            raise self.refuse(f"a call of `{f.__name__}`, which {once},", s.line)
        forward: list[Stmt] = []
        back: list[Stmt] = []
        held = [self.kept(a, forward, s.line) for a in args]
        again: list[Operand] = []
        for a, h in zip(
            args, held, strict=True
        ):  # a callee that writes its arguments must not write what is kept
            again.append(self.emit(back, "method", (h,), ("copy", ()), s.line) if h is not a else h)
        given = self.seeds_and_shadows(s, args, active)
        call = (Ref(pullback, f"{f.__name__}_pullback"), *again, *given)
        out = self.emit(back, "call", call, (), s.line)
        self.arrive(back, s, out, len(self.result_leaves(s.target)), args, active)
        return Parts([*forward, s], back)

    def call_in_sweeps(
        self, s: Let, f: Any, sweeps: Any, args: tuple[Operand, ...], active: list[int]
    ) -> Parts:
        """A call of a function that calls itself: its forward sweep, and on the way back its reverse sweep."""
        forward: list[Stmt] = []
        back: list[Stmt] = []
        call = (Ref(sweeps.forward, f"{f.__name__}_forward"), self.arena, *args)
        out = self.emit(forward, "call", call, (), s.line)
        count = self.rebuild(forward, s.target, out, 0, s.line)
        frame = self.fresh("frame")
        self.types[frame] = types.Array(types.int64, 1, "C")
        parts = [self.types[leaf] for leaf in self.result_leaves(s.target)]
        self.types[out.name] = types.Tuple((*parts, self.types[frame]))
        forward.append(Let(frame, "item", (out, Const(count)), None, s.line))
        given = self.seeds_and_shadows(s, args, active)
        call = (Ref(sweeps.backward, f"{f.__name__}_backward"), self.arena, Var(frame), *given)
        self.arrive(back, s, self.emit(back, "call", call, (), s.line), 0, args, active)
        return Parts(forward, back)

    def rebuild(self, out: list[Stmt], target: str, values_of: Var, place: int, line: int) -> int:
        """Let `target` be what the leaves from `place` on make; return the place behind them."""
        t = self.types.get(target)
        if not (isinstance(t, types.BaseTuple) and has_tangent(t)):
            out.append(Let(target, "item", (values_of, Const(place)), None, line))
            return place + 1
        parts = [f"{target}_p{k}" for k in range(len(t))]
        for part in parts:
            place = self.rebuild(out, part, values_of, place, line)
        out.append(Let(target, "tuple", tuple(map(Var, parts)), None, line))
        return place

    def seeds_and_shadows(self, s: Let, args: tuple[Operand, ...], active: list[int]) -> list[Operand]:
        """The cotangents of the parts of a call's result, and the shadows of its active arrays."""
        seeds: list[Operand] = [
            Var(f"{leaf}_b") if leaf in self.active else self.zero(self.types[leaf])
            for leaf in self.result_leaves(s.target)
            if is_real(self.types.get(leaf))
        ]
        shadows = [Var(f"{args[k].name}_b") for k in active if is_array(self.type_of(args[k]))]  # type: ignore[union-attr]
        return [*seeds, *shadows]

    def arrive(
        self, back: list[Stmt], s: Let, out: Var, place: int, args: tuple[Operand, ...], active: list[int]
    ) -> None:
        """Add the cotangents of a call's numbers, from `place` on in `out`; those of its result end."""
        for k in active:
            if is_real(self.type_of(args[k])):
                part = self.emit(back, "item", (out, Const(place)), None, s.line)
                self.types[part.name] = self.type_of(args[k])
                self.add(back, args[k], part, s.line)
                place += 1
        for leaf in self.result_leaves(s.target):
            if leaf in self.active and is_real(self.types.get(leaf)):
                back.append(Let(f"{leaf}_b", "copy", (self.zero(self.types[leaf]),), None, s.line))

    def call_for_effect(self, s: Do) -> Parts:
        """A call whose result is not used: it may still write arrays."""
        if any(self.is_active(Var(name)) for name in self.memory.outputs(s.call)):
            self.types.setdefault(s.call.target, types.none)
            return self.call(s.call)
        return Parts([s])
