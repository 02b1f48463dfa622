"""One differentiated call: run the function at a new level, then pull cotangents back through its tape."""

from __future__ import annotations

import contextvars
import zlib
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

import numpy as np

from plaingrad import critical, number_classes
from plaingrad.critical import closing, exclusively, shared_lock
from plaingrad.engine.calls import opening
from plaingrad.engine.calls.reuse import give_back, make_ready, new_level
from plaingrad.engine.compiled import core
from plaingrad.engine.fusion.fused import may_pair
from plaingrad.engine.memory.memory import Shadow
from plaingrad.engine.memory.structure import (
    ArrayNode,
    FloatsNode,
    MappingNode,
    NumberNode,
    SequenceNode,
    all_moved,
    gradients,
    moved,
    seed,
    seeded,
)
from plaingrad.engine.memory.tape import CALLED, STEP, redo, reverse
from plaingrad.engine.refusals import watch
from plaingrad.engine.refusals.refuse import refuse
from plaingrad.engine.reverse.inputs import Inputs, inputs_of, with_fresh
from plaingrad.engine.reverse.nested_reverse import add_array, called_back, reversed_from, step_back
from plaingrad.engine.reverse.reverse import ReverseLevel
from plaingrad.engine.reverse.reverse_in_forward import file_tangent, reverse_pairs
from plaingrad.engine.reverse.side_by_side import reverse_side_by_side
from plaingrad.errors import ChangedSinceError
from plaingrad.rewrite import CURRENT, PLAIN

_lock = shared_lock()


class Run:
    """f(*args), recorded: its value, and the pullback from the value to the differentiated arguments.

    Attributes:
        value: what `f` returned.
        slots: where the cotangent of the value goes (None: nothing in it depends on the inputs).
    """

    inputs_kind: ClassVar[type[Inputs]] = Inputs
    derivation: Any = None  # of the compiled core, that gives the level back

    def __init__(
        self,
        f: Callable[..., Any],
        args: tuple[Any, ...],
        argnums: tuple[int, ...],
        kwargs: dict[str, Any],
        result: Callable[[Any], Any] = lambda value: value,
    ) -> None:
        observer = None if watch.observer is None else watch.looking_on()
        if observer is None:
            self.record(f, args, argnums, kwargs, result)
        else:
            observer.recorded(self, f, args, argnums, kwargs, result)

    def record(
        self, f: Callable[..., Any], args: Any, argnums: tuple[int, ...], kwargs: dict[str, Any], result: Any
    ) -> None:
        """Run the function at a level of its own."""
        self.lock: critical.Lock | None = None  # made when somebody may pull back twice
        level = new_level(ReverseLevel, CURRENT.get())
        self.level = level
        kind = self.inputs_kind
        inputs, value = with_fresh(level, args, argnums, self._record, f, kwargs, result, kind=kind)
        self.nodes = inputs.nodes
        self.value = inputs.own(value)
        self.watched: list[tuple[np.ndarray, tuple[Any, ...]]] = []

    def _record(self, inputs: Inputs, f: Any, kwargs: dict[str, Any], result: Any) -> tuple[Inputs, Any]:
        level = self.level
        if level.recorder is None:
            level.inputs = len(level.numbers()) + len(level.arrays)
        value = level.run(f, inputs.args, kwargs)
        self.slots = level.slot_of(result(value))  # before the caller's containers get their own entries back
        return inputs, value

    def pull(self, y_bar: Any) -> tuple[Any, ...]:
        """The gradients of the differentiated arguments for cotangent `y_bar` of the value."""
        if self.lock is None:
            self.lock = exclusively(_lock, self._own_lock)
        return self.lock.hold(self._pull_unchanged, y_bar)

    def _pull_unchanged(self, y_bar: Any) -> tuple[Any, ...]:
        self._check_unchanged()  # not while another thread pulls back, which undoes writes on its way
        return self._pull(y_bar)

    def pull_once(self, y_bar: Any) -> tuple[Any, ...]:
        """The same where nobody else knows of this run, and nobody will pull back again."""
        found = self._pull(y_bar)
        self.let_go()
        return found

    def let_go(self) -> None:
        """Nobody will pull back again."""
        held, derivation = [self.level], self.derivation
        self.level = self.derivation = None
        if derivation is None:
            give_back(held)
        else:
            held.clear()
            derivation.give_back()

    def _own_lock(self) -> critical.Lock:
        return critical.Lock() if self.lock is None else self.lock

    def _pull(self, y_bar: Any) -> tuple[Any, ...]:
        level = self.level
        if (
            level.recorder is not None
            and type(y_bar) is float
            and not level.arrays
            and level.tape.is_of_numbers()
            and CURRENT.get() is PLAIN
        ):  # nothing that NumPy could warn of, or that is to be undone
            level.tape.trim()
            end = len(level.tape) // 3
            size = level.new_index()
            return _pulled(level.tape, end, Shadow(size, core.Bars(size)), [], self.slots, y_bar, self.nodes)
        # In a copy of the context, so that NumPy's error handling is as before however this ends.
        return contextvars.copy_context().run(self._pull_quietly, y_bar)

    def _pull_quietly(self, y_bar: Any) -> tuple[Any, ...]:
        working = self.level.working
        if working is None:
            return self._pull_with_cotangent(y_bar)
        with number_classes.in_precision(working):
            found = self._pull_with_cotangent(y_bar)
        return number_classes.rounded(found) if CURRENT.get() is PLAIN else found

    def _pull_with_cotangent(self, y_bar: Any) -> tuple[Any, ...]:
        outer = CURRENT.get()
        with np.errstate(all="ignore"):
            if outer is PLAIN:
                return pull_back(self.level, self.slots, y_bar, self.nodes)
            if watch.observer is not None:
                watch.observer.went_inside()
            return pull_back_inside(outer, self.level, self.slots, y_bar, self.nodes)

    def watch(self) -> None:
        """Remember what the arrays that the pullback will read again contain, so that a change is noticed."""
        for owner in self.level.captured.values():
            if isinstance(owner, np.ndarray):
                self.watched.append((owner, fingerprint(owner)))

    def captured(self) -> list[Any]:
        """The arrays that the pullback reads."""
        return list(self.level.captured.values())

    def _check_unchanged(self) -> None:
        for array, before in self.watched:
            if fingerprint(array) != before:
                refuse_changed(array)


ReverseLevel.record = Run


def pull_through(level: Any) -> None:
    """The way back over what `level` has recorded, which nobody's cotangent begins: other processes send theirs."""
    outer = CURRENT.get()
    with np.errstate(all="ignore"):
        if outer is PLAIN:
            pull_back(level, None, None, [])
        else:
            pull_back_inside(outer, level, None, None, [])


ReverseLevel.pull_through = pull_through


def in_core(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    argnums: tuple[int, ...],
    kwargs: dict[str, Any],
    later: bool = False,
) -> tuple[Any, Any] | Run | None:
    """(f(*args), its gradients), by the compiled core: for floats, lists, tuples and dictionaries of them, and arrays.

    With `later`, a tape for the pullback in their place. Where the value is no float, or something on the way was no
    number: the call as a `Run`. None if nothing was done.
    """
    if core is None:
        return None
    containers = core.containers_in(args, argnums)
    derivation = None if containers is None else core.begin(ReverseLevel)
    if derivation is None and later and containers is not None and make_ready(ReverseLevel):
        derivation = core.begin(
            ReverseLevel
        )  # else a program that only asks for pullbacks makes a level for each
    if derivation is None:
        return None
    done = opening.run(derivation, derivation.gradient, f, args, argnums, kwargs, containers, later)
    return _continued(derivation, done[0], later) if done is not None and done[1] is None else done


def _continued(derivation: Any, value: Any, later: bool) -> Run:
    """The call that `derivation` has recorded, as a `Run`."""
    run = Run.__new__(Run)
    run.lock, run.watched = None, []
    given = derivation.given
    run.slots = derivation.found
    run.level = level = derivation.level
    if later:  # the pullback keeps nothing of the caller's
        derivation.released()
    else:
        run.derivation = derivation
    run.nodes = [node_of(shape, given.fresh, level.index) for shape in given.shapes]
    t = type(value)
    if t is not np.float64:  # which is no argument
        value = given.own(value) if t is float else inputs_of(level, given).own(value)
    run.value = value
    return run


def node_of(shape: Any, fresh: list[Any], index: Any) -> Any:
    """The node of what the core says of an argument."""
    if shape is None:
        return None
    if type(shape.x) is np.ndarray:
        return ArrayNode(shape.first, shape.x)
    if type(shape.x) is float:
        x = fresh[shape.first]
        return NumberNode(index[id(x)], x)
    if shape.count and not shape.entries:
        values = fresh[shape.first : shape.first + shape.count]
        return FloatsNode(shape.x, values, index[id(values[0])])
    nodes = [node_of(entry, fresh, index) for entry in shape.entries]
    return (
        SequenceNode(shape.x, nodes)
        if shape.keys is None
        else MappingNode(dict(zip(shape.keys, nodes, strict=True)))
    )


def refuse_changed(array: np.ndarray) -> NoReturn:
    """Say that an array that a pullback reads was changed."""
    refuse(
        ChangedSinceError,
        f"an array of shape {array.shape} that this pullback reads was changed since the call",
        why="The pullback would use the new contents, and its result would be the derivative of nothing.",
        fix="pull back before changing the array, or change a copy",
        anchor="changed-since",
    )


def pull_back(level: Any, slots: Any, y_bar: Any, nodes: list[Any]) -> tuple[Any, ...]:
    """Seed, reverse, read off the gradients; memory is left as it was found."""
    tape = level.tape
    if type(tape) is not list:
        tape.trim()
    # A thread that outlives the function may end an operation now, and record it: under an index without cotangent.
    end = len(tape) // 3
    size = level.new_index()
    shadow = Shadow(size, None if type(tape) is list else core.Bars(size))
    undone: list[Any] = []
    return closing(_pulled, lambda: redo(undone), tape, end, shadow, undone, slots, y_bar, nodes)


def _pulled(
    tape: Any, end: int, shadow: Shadow, undone: Any, slots: Any, y_bar: Any, nodes: Any
) -> tuple[Any, ...]:
    seed(shadow, slots, y_bar)
    if type(tape) is list:
        reverse(tape if len(tape) == 3 * end else tape[: 3 * end], shadow, undone)
    elif not tape.has_stretches() or len(tape) != 3 * end or not reverse_side_by_side(tape, shadow, undone):
        tape.reverse(shadow, undone, 0, end)
    return gradients(nodes, shadow)


def pull_back_inside(outer: Any, level: Any, slots: Any, y_bar: Any, nodes: list[Any]) -> tuple[Any, ...]:
    """`pull_back` of what `level` recorded under another derivative: its steps run rewritten at level `outer`.

    The loop itself moves numbers only.
    """
    inside = outer.calls.inside
    end = len(level.tape)  # before an index is made, as in `pull_back`
    size = level.new_index()
    undone: list[Any] = []
    bars = None
    reverse_numbers = reverse_inside
    if outer is level.parent:
        if level.recorder is not None:
            bars, reverse_numbers = core.PairBars(size, outer.recorder), reverse_compiled_pairs
        elif may_pair(level):
            reverse_numbers = reverse_pairs
    shadow = Shadow(size, bars)

    def pulled() -> tuple[Any, ...]:
        if not seeded(shadow, slots, y_bar):
            inside(seed)(shadow, slots, y_bar)
        reverse_numbers(outer, level, end, shadow, undone)
        arrays: dict[int, Any] = {}
        if all_moved(nodes, shadow, arrays, set()):
            return moved(nodes, shadow, arrays)
        return inside(gradients)(nodes, shadow)

    return closing(pulled, lambda: inside(redo)(undone))


def reverse_compiled_pairs(outer: Any, level: Any, end: int, shadow: Shadow, undone: list[Any]) -> None:
    """The reverse pass at level `outer`, a compiled forward level around `level`, which is compiled, too."""
    core.reverse_pairs(level.tape, end // 3, outer, shadow, undone, called_back, step_back, add_array)


def reverse_inside(outer: Any, level: Any, end: int, shadow: Shadow, undone: list[Any]) -> None:
    """The reverse pass at level `outer`, whose hooks do the arithmetic of a triple."""
    inside = outer.calls.inside
    bars = shadow.bars
    back = reversed_from(level.tape, end)
    for partial, i, o in zip(back, back, back, strict=True):
        if i >= 0:
            z_bar = bars[o]
            if z_bar is not None:
                term = outer.mul(z_bar, partial)
                x_bar = bars[i]
                bars[i] = term if x_bar is None else outer.add(x_bar, term)
        elif i == CALLED:
            called_back(outer, partial, shadow, o)
        elif i == STEP:
            step_back(outer, partial, shadow, undone)
        else:  # recorded together with tangents at `level.parent`, in another setting than this one
            paired = partial.paired
            if level.parent.calls.open:
                for at, dot_at in paired.dotted:
                    file_tangent(level.parent, o[at], o[dot_at])
            inside(paired.plain)(shadow, *o[: paired.count])


def fingerprint(a: np.ndarray) -> tuple[Any, ...]:
    """What changes when `a` becomes another array, by its contents or by its layout."""
    return a.dtype, a.shape, a.strides, checksum(a)


def checksum(a: np.ndarray) -> int:
    """A number that changes when the contents of `a` do."""
    if a.dtype.kind == "O":
        return hash(tuple(map(id, a.flat)))
    if type(a) is np.ndarray and a.dtype.kind in "fciu" and a.flags.c_contiguous:
        return zlib.crc32(a)  # type: ignore[arg-type] # its bytes
    return zlib.crc32(np.ascontiguousarray(a).view(np.uint8).reshape(-1).data) if a.size else 0
