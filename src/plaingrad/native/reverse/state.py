"""The state of a reverse transform: what is set up for both sweeps, and values that some way leaves unset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types

from plaingrad.native.modes.transform import Transform
from plaingrad.native.modes.unused_values import Arrivals
from plaingrad.native.program import value_types
from plaingrad.native.program.ir import (
    Const,
    Let,
    Operand,
    Program,
    Ref,
    Stmt,
    Var,
    carried_reads,
    operands,
    reads_of,
    statements,
)
from plaingrad.native.reverse import recomputation, saved_state
from plaingrad.native.reverse.forms import NO_FORMS, Forms
from plaingrad.native.reverse.immutable import Values


class State(Transform):
    """What a reverse transform knows and sets up.

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
        self.has_complex = any(map(value_types.has_complex, kinds))
        self.arena: Operand = Var(self.fresh("arena")) if in_arena else Const(None)
        self.unused = Arrivals(self.exploded.body, self.outputs, self.types, self.is_active).unused
        # of these, in what is differentiated again: the names of bools, whether something has arrived
        self.arrived = {} if in_arena else {name: self.fresh("arrived") for name in sorted(self.unused)}
        self.types.update(dict.fromkeys(self.arrived.values(), types.boolean))
        self.forms = forms
        self.finders = [form.finder(self) for form in forms.runs]
        self.may_replay = True  # whether one iteration of a loop may be done again on the way back
        self.refilled: set[str] = set()  # arrays that hold again, on the way back, what they held
        self.setup: list[Stmt] = []
        self.initial: dict[str, list[Stmt]] = {}  # values of variables that some way leaves without one
        self.machinery: set[str] = set()
        self.enclosing: list[Stmt] = []
        self.preheaders: dict[int, list[Stmt]] = {}
        self.reads = Counter(
            a.name for s in statements(self.exploded.body) for a in operands(s) if isinstance(a, Var)
        )
        self.prototypes: dict[Any, tuple[Var, list[Stmt]]] = {}  # empty arrays, and what makes them
        for name in sorted(carried_reads(self.exploded.body) & self.exploded.types.keys()):
            self.give_initial(
                name
            )  # a loop assigns it under a branch first, and reads it in the next iteration

    def give_initial(self, name: str) -> None:
        """Let a number that is kept have some value on every way through the program."""
        if name not in self.source.params and name not in self.initial:
            self.initial[name] = self.initial_value(name)

    def initial_value(self, name: str) -> list[Stmt]:
        """A value of the type of a variable; none where the type is not known or has no simple one."""
        t = types.unliteral(self.types.get(recomputation.base_of(self, name)))
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
        t = self.types[recomputation.base_of(self, name)]
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
