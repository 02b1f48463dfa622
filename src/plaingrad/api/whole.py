"""Whole derivatives: a table of dy/dx for every leaf of the result and of the arguments, filled in either mode."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from plaingrad import number_classes
from plaingrad.api import choice, recorded
from plaingrad.api.jacobian_entries import jacobian_entry
from plaingrad.api.leaves import (
    Leaf,
    described,
    filled,
    here,
    is_whole_numbers,
    leaf_values,
    structure_of,
    structures_of,
)
from plaingrad.api.seeds import direction_type, seeds, unit_cotangent, unit_directions
from plaingrad.api.snapshots import Snapshot
from plaingrad.api.tiers import Tier
from plaingrad.class_keys import is_instance
from plaingrad.critical import imported
from plaingrad.engine.calls.memo import several_runs
from plaingrad.engine.calls.reuse import give_back, new_level
from plaingrad.engine.compiled import core
from plaingrad.engine.forward.forward import ForwardLevel
from plaingrad.engine.forward.push import push
from plaingrad.engine.reverse.run import Run
from plaingrad.errors import ArgumentError, NativeError, NonScalarOutputError
from plaingrad.progress import told
from plaingrad.rewrite import CURRENT, PLAIN
from plaingrad.tangents import ZeroTangent

Mode = Literal["auto", "forward", "reverse"]

FEW_DIRECTIONS = 256  # with more inputs, a call in reverse mode is not turned into one in forward mode
CHUNK_BYTES = 1 << 20  # of the largest tangent of a chunk: more does not stay in the cache
CHUNK_LEAST, CHUNK_MOST = 64, 1024
# Microseconds of a Hessian's product with one direction in the compiled core, and with a chunk, besides the operations.
ONE_PRODUCT, ONE_CHUNK = 190.0, 500.0


class Task:
    """A whole derivative to be found: dy/d(each direction of x), for every leaf of y and of x.

    Attributes:
        x_leaves: the leaves of all differentiated arguments.
        directions: in how many real directions they can move.
        y_leaves: the leaves of the result, once `f` was called.
        tries_one: one direction is pushed first, to see what it costs.
        level: at which that direction was pushed.
        known: what is known of the function from a derivative before.
        table: (position of a leaf of y, of x) -> (derivative along 1, along i or None), each of shape y + x.
    """

    def __init__(
        self,
        f: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        positions: tuple[int, ...],
        has_aux: bool,
        known: choice.Known | None = None,
    ) -> None:
        self.f = f
        self.args = args
        self.kwargs = kwargs
        self.positions = positions
        self.has_aux = has_aux
        self.x_structures, self.x_leaves = structures_of([args[n] for n in positions])
        for structure, n in zip(self.x_structures, positions, strict=True):
            if structure is None:
                raise ArgumentError(
                    f"argument {n} is {described(args[n])}, which holds no real or complex number, so it has no "
                    "tangent.\n  See docs: errors#argument"
                )
        self.directions = sum(leaf.directions for leaf in self.x_leaves)
        self.tries_one = False
        self.level: ForwardLevel | None = None
        self.known = choice.Known() if known is None else known
        self.y: Any = None
        self.aux: Any = None
        self.y_structure: Any = None
        self.y_leaves: list[Leaf] = []
        self.table: dict[tuple[int, int], tuple[Any, Any]] = {}

    def solve(self, mode: Mode, chunk_size: int | None) -> None:
        """Fill the table in the mode asked for."""
        if mode == "auto":
            mode = getattr(self.f, "__plaingrad_mode__", "auto")
        if mode == "auto" and self._is_forward():
            mode = "forward"
        if mode == "forward":
            self.push_all(chunk_size)
            self._note_outputs()
            return
        before = self._snapshot() if mode == "auto" else None
        run = Run(self.f, self.args, self.positions, self.kwargs, self._result)
        self._note(run.value)
        if before is not None:
            sizes = [leaf.size for leaf in (*self.x_leaves, *self.y_leaves)]
            program = choice.Program.of(
                run.level.tape, run.level.arrays, sizes, self.directions, outputs_of(self)
            )
            self.known.program = program
            if not choice.is_reverse(program, recorded=True):
                del run
                before.restore()
                self.push_all(chunk_size)
                return
        self.pull_all(run)
        run.let_go()

    def program(self) -> choice.Program | None:
        """What is known of the program, if it was called with as much to differentiate by."""
        program = self.known.program
        return program if program is not None and program.directions == self.directions else None

    def _is_forward(self) -> bool:
        """Whether forward mode is the cheaper one, as far as that is known without recording a run."""
        program = self.program()
        return self.directions == 1 if program is None else not choice.is_reverse(program, recorded=False)

    def _note_outputs(self) -> None:
        """The same program may have other results the next time."""
        program = self.program()
        if program is not None and program.outputs != outputs_of(self):
            self.known.program = replace(program, outputs=outputs_of(self))

    def solve_natively(
        self, whole: Callable[..., Any], tier: Tier, *options: Any, second: bool = False
    ) -> bool:
        """Fill the table by a function of `plaingrad.native.border.operators`; whether that was possible.

        Args:
            whole: the function.
            tier: which was asked for.
            options: its last arguments.
            second: the leaves of the result are those of the arguments.

        Raises:
            NativeError: with `tier="native"`: it was not, and what the function is of cannot be one step either.
        """
        try:
            if any(
                isinstance(self.args[n], np.ndarray) and self.args[n].dtype.kind in "iu"
                for n in self.positions
            ):
                border = imported("plaingrad.native.border.conversion")
                border.taken(self.f, self.args, self.positions, self.kwargs)
            found = whole(self.f, self.real_args(), self.positions, self.kwargs, *options)
        except NativeError:
            if tier == "native":
                raise
            return False
        if not all(a.x is b for a, b in zip(self.x_leaves, found.x, strict=True)):
            raise NativeError(
                "the native tier takes these arguments apart differently.\n  See docs: errors#native"
            )
        if second:
            self.y_leaves = self.x_leaves
        else:
            self._note(found.y)
        blocks = iter(found.blocks)
        for y in self.y_leaves:
            if is_whole_numbers(y.x) and not second or not found.blocks:
                self._no_influence(y)
                continue
            for x, (along_1, along_i) in zip(self.x_leaves, next(blocks), strict=True):
                if not (y.is_array or x.is_array):
                    along_1 = recorded.python_number(along_1[()])
                    along_i = None if along_i is None else recorded.python_number(along_i[()])
                self.table[y.position, x.position] = along_1, along_i
        return True

    def real_args(self) -> tuple[Any, ...]:
        """The arguments, the differentiated ones that are ints, or arrays of them, as real numbers."""
        args = list(self.args)
        for structure, n in zip(self.x_structures, self.positions, strict=True):
            if type(structure) is Leaf:
                args[n] = structure.x
        return tuple(args)

    def _snapshot(self) -> Snapshot:
        """What the differentiated arguments hold, for a function that is called more than once."""
        return Snapshot([self.args[n] for n in self.positions])

    def _result(self, value: Any) -> Any:
        if not self.has_aux:
            return value
        if not (type(value) is tuple and len(value) == 2):
            raise NonScalarOutputError(
                f"with has_aux=True the function must return (y, aux), not {described(value)}"
            )
        return value[0]

    def _note(self, value: Any) -> None:
        """Look at what `f` returned."""
        self.y = y = self._result(value)
        if self.has_aux:
            self.aux = value[1]
        self.y_structure, self.y_leaves = structure_of(y, as_real=True)
        if not self.y_leaves:
            hint = "is a `return` missing?" if y is None else "it has no derivative"
            raise ArgumentError(
                f"{getattr(self.f, '__name__', 'the function')} returned {described(y)}, which holds no real or "
                f"complex number; {hint}.\n  See docs: errors#argument"
            )

    # -- reverse ---------------------------------------------------------------------------------------------------

    def pull_all(self, run: Run) -> None:
        """One pullback for every output."""
        slots = leaf_values(self.y_structure, run.slots)
        for y in self.y_leaves:
            if (slot := slots.get(y.position)) is None:
                self._no_influence(y)
                continue
            at_leaf = copy.copy(run)
            at_leaf.slots = slot
            rows: list[list[Any]] = [[] for _ in self.x_leaves]
            for done, seed in enumerate(seeds(y), 1):
                found: dict[int, Any] = {}
                for structure, x_bar in zip(self.x_structures, at_leaf.pull(seed), strict=True):
                    found.update(leaf_values(structure, x_bar))
                for x in self.x_leaves:
                    rows[x.position].append(found[x.position])
                told("jacobian, reverse", done, y.directions)
            for x in self.x_leaves:
                if y.is_array or y.is_complex or x.is_complex:
                    pair = here(recorded.pair_of_rows, rows[x.position], y, x)
                else:
                    pair = rows[x.position][0], None
                self.table[y.position, x.position] = pair

    def _no_influence(self, y: Leaf) -> None:
        for x in self.x_leaves:
            zero: Any = 0j if y.is_complex else 0.0
            if y.is_array or x.is_array:
                zero = np.zeros(y.shape + x.shape, np.result_type(y.x, x.x.real if not y.is_complex else x.x))
            self.table[y.position, x.position] = zero, zero if x.is_complex else None

    # -- forward ---------------------------------------------------------------------------------------------------

    def push_all(self, chunk_size: int | None) -> None:
        """All directions, chunk by chunk."""
        with several_runs():
            self._push_chunks(chunk_size)

    def _push_chunks(self, chunk_size: int | None) -> None:
        if not self.directions:  # there is nothing to push, but the shape of the result is wanted
            run = Run(self.f, self.args, self.positions, self.kwargs, self._result)
            self._note(run.value)
            self.pull_all(run)
            return
        tries = chunk_size is None and self.tries_one and CURRENT.get() is PLAIN and core is not None
        size = 1 if self._is_exact() or tries else min(chunk_size or good_chunk(self), self.directions)
        before = self._snapshot() if size < self.directions else None
        columns: list[list[Any]] = []
        start = count = 0
        while start < self.directions:
            if start and before is not None:
                before.restore()
            count = min(size, self.directions - start)
            y, y_dot = self._pushed(start, count)
            if not start:
                self._note(y)
                columns = [[] for _ in self.y_leaves]
                if tries and not self._is_exact() and not is_quicker_one_by_one(self):
                    size = good_chunk(self)
                let_go_of_level(self)
            start += count
            if self.has_aux:
                y_dot = y_dot[0] if type(y_dot) is tuple else None
            found = leaf_values(self.y_structure, y_dot)
            for leaf in self.y_leaves:
                columns[leaf.position].append(column(found.get(leaf.position), leaf, count))
            told("jacobian, forward", start, self.directions)
        for y in self.y_leaves:
            whole = here(recorded.joined, columns[y.position])
            start = 0
            for x in self.x_leaves:
                if x.is_array or x.is_complex or y.is_array:
                    pair = here(recorded.pair_of_columns, whole, start, y, x)
                else:
                    pair = whole[start], None
                self.table[y.position, x.position] = pair
                start += x.directions

    def _is_exact(self) -> bool:
        """Whether a number is of a type that no array of floats can hold: its tangents are of that type too."""
        return any(
            is_instance(leaf.x, (Fraction, Decimal)) or number_classes.is_own(leaf.x)
            for leaf in self.x_leaves
        )

    def _pushed(self, start: int, count: int) -> tuple[Any, Any]:
        """The value, and the tangents along `count` unit directions; of a single one, without a leading axis."""
        chunk = None if count == 1 else count
        dots = unit_directions(self.x_leaves, start, count)
        if chunk is None:
            leaves = self.x_leaves
            dots = {n: dot[0] if leaves[n].is_array else type(leaves[n].x)(dot[0]) for n, dot in dots.items()}
            if self._is_exact():
                dots = {x.position: dots.get(x.position, type(x.x)(0)) for x in leaves if not x.is_array}
        found: list[Any] = [None] * len(self.args)
        for structure, n in zip(self.x_structures, self.positions, strict=True):
            found[n] = filled(structure, lambda leaf: dots.get(leaf.position, ZeroTangent))
        level_class: Any = self._level if self.tries_one and not start and count == 1 else ForwardLevel
        return push(self.f, self.args, tuple(found), self.kwargs, chunk, level_class)

    def _level(self, parent: Any, chunk: int | None) -> ForwardLevel:
        self.level = level = new_level(ForwardLevel, parent, chunk)
        if level.recorder is not None:
            level.recorder.one_by_one = level.recorder.together = 0.0
        return level

    # -- the result ------------------------------------------------------------------------------------------------

    def assembled(self, entry: Callable[..., Any], several: bool, second: bool = False) -> Any:
        """The structure of y, its leaves the structure of x, its leaves `entry(...)` of the pair in the table."""

        def of_y(y: Leaf) -> Any:
            def of_x(x: Leaf) -> Any:
                along_1, along_i = self.table[y.position, x.position]
                return entry(along_1, along_i, y, x, self.f)

            made: dict[int, Any] = {}
            parts = tuple([filled(structure, of_x, made) for structure in self.x_structures])
            return parts if several else parts[0]

        if second:
            made: dict[int, Any] = {}
            parts = tuple([filled(structure, of_y, made) for structure in self.x_structures])
            return parts if several else parts[0]
        return filled(self.y_structure, of_y)


def column(y_dot: Any, y: Leaf, count: int) -> Any:
    """Tangents of one leaf of y: a list of numbers for a number, shape (count, *y.shape) for an array."""
    if y_dot is None:
        return np.zeros((count, *y.shape), direction_type(y.x)) if y.is_array else [type(y.x)(0)] * count
    if count == 1:
        return y_dot[None] if y.is_array else [y_dot]
    return y_dot if y.is_array else here(recorded.numbers_in, y_dot)


def outputs_of(task: Task) -> int:
    """In how many real directions the result can move."""
    return sum(leaf.directions for leaf in task.y_leaves)


def good_chunk(task: Task) -> int:
    """How many directions to push together."""
    if not task.tries_one and choice.are_singly(task.program(), task.directions):
        return 1
    largest = max(1, *[leaf.size for leaf in (*task.x_leaves, *task.y_leaves)])
    return min(max(CHUNK_BYTES // (8 * largest), CHUNK_LEAST), CHUNK_MOST)


def pushed_gradient(
    f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], positions: tuple[int, ...], has_aux: bool
) -> tuple[Any, tuple[Any, ...]] | None:
    """(value, gradients) in forward mode, for a function that prefers it; None if it has too many inputs for that."""
    task = Task(f, args, kwargs, positions, has_aux)
    if not 0 < task.directions <= FEW_DIRECTIONS:
        return None
    task.push_all(task.directions)
    unit_cotangent(task.y, f)
    gradients = task.assembled(jacobian_entry, True)
    return (task.y, task.aux) if has_aux else task.y, gradients


def is_quicker_one_by_one(task: Task) -> bool:
    """Whether the directions that are left cost less singly, by what the first one has met."""
    met = None if task.level is None else task.level.recorder
    if met is None or not met.together:
        return False
    return (task.directions - 1) * (ONE_PRODUCT + met.one_by_one) < ONE_CHUNK + met.together


def let_go_of_level(task: Task) -> None:
    """Nobody asks any more what the run along the first direction has met."""
    held, task.level = [task.level], None
    if held[0] is not None:
        give_back(held)
