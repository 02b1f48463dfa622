"""A chain of equal steps, reversed with few states in memory: binomial checkpointing.

A. Griewank and A. Walther, "Algorithm 799: revolve", ACM Transactions on Mathematical Software 26 (2000) 19-45.
With s states in memory and each step run at most r times without recording, the longest chain that can be reversed
has beta(s, r) = C(s + r, s) steps.
"""

from __future__ import annotations

import contextvars
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from plaingrad.engine.checkpoints.checkpoint import (
    differs,
    drawn_again,
    errors_raised,
    has_escaped,
    mark_of,
    patched,
    patches_at,
    set_state,
    state_of,
    surroundings,
)
from plaingrad.engine.checkpoints.segment import Segment, file, here, lend, seed, take_back
from plaingrad.engine.checkpoints.states import (
    activated,
    contents,
    copied,
    in_place_of,
    leaves,
    refuse_shared_memory,
    refuse_uncopyable,
    written_back,
)
from plaingrad.engine.memory.holders import fingerprint, looked_into
from plaingrad.engine.memory.memory import Shadow
from plaingrad.engine.memory.tape import STEP, add_to, redo, reverse
from plaingrad.engine.refusals.refuse import name_of, refuse
from plaingrad.engine.reverse.reverse import ReverseLevel
from plaingrad.engine.values.borrowed import refuse_gone
from plaingrad.errors import CheckpointError, PlaingradError
from plaingrad.progress import told
from plaingrad.rewrite import CURRENT, in_force


def least_advances(n: int, states: int) -> int:
    """How many steps must be run without recording to reverse `n` of them with `states` states in memory.

    r n - beta(s + 1, r - 1), where r is the smallest with beta(s, r) >= n, by Griewank and Walther (2000).
    """
    if n <= 1:
        return 0
    r = repetitions(n, states)
    return r * n - math.comb(states + r, states + 1)


def repetitions(n: int, states: int) -> int:
    """The smallest r for which C(states + r, states) >= n."""
    if states == 1:
        return n - 1
    return next(r for r in itertools.count() if math.comb(states + r, states) >= n)


def first_part(n: int, states: int) -> int:
    """How far to go before the next state is stored, of `n` >= 2 steps; `states` >= 2 with the one at their start."""
    r = repetitions(n, states)
    return min(math.comb(states + r - 1, states), n - math.comb(states + r - 2, states - 1))


def repeated(step: Callable[[Any], Any], state: Any, n: int, budget: int) -> Any:
    """step applied `n` times to `state`; in reverse mode with at most `budget` states in memory."""
    level = CURRENT.get()
    if n == 0:
        return state
    if not isinstance(level, ReverseLevel):
        for _ in range(n):
            state = level.prep(step)(state)
        return state
    return Chain(level, step, n, budget).followed(state)


@looked_into
class Stored:
    """A state in memory: how many steps lead to it, itself, and what the generators of random numbers were then."""

    __slots__ = ("at", "draws", "state")

    def __init__(self, at: int, state: Any, draws: Any) -> None:
        self.at = at
        self.state = state
        self.draws = draws


@looked_into
class Recorded:
    """One recorded step: its tape, and where the cotangents of its argument and its result go."""

    __slots__ = ("inputs", "pairs", "size", "slots", "tape")

    def __init__(self, segment: Segment, inputs: list[Any], y: Any) -> None:
        self.inputs = inputs  # indices of the leaves of the argument; None for one without tangent
        self.slots = [segment.slot_of(leaf) for leaf in leaves(y)]
        self.pairs = list(segment.imports.items())
        self.tape = segment.tape
        self.size = segment.new_index()

    def borrow(self, shadow: Shadow) -> Shadow:
        """The cotangents that the step goes on with."""
        inner = Shadow(self.size)
        lend(shadow, inner, self.pairs)
        return inner

    def pull(self, inner: Shadow, shadow: Shadow, undone: list[Any]) -> list[Any]:
        """The cotangents of the argument's leaves, for those in `inner`; others go to `shadow`."""
        here(reverse, self.tape, inner, undone)
        take_back(shadow, inner, self.pairs)
        return [None if i is None else inner.bars[i] for i in self.inputs]


@looked_into
class Chain:
    """The step of a whole chain on the tape of its level.

    Attributes:
        base: the level.
        step: the function that is repeated.
        n: how often.
        budget: how many states may be in memory.
        stored: those that are, in order.
        inputs: where the cotangents of the first state's leaves go.
        outputs: the index at the level of each leaf of the last state; None for one that is no output.
        last: the last step, recorded.
        last_mark: of the state that it began with.
        segment: the one that it was recorded in.
        in_place: the steps change their argument and return it.
        seen_through: every step has been run again once, and nothing was found to escape.
        patches: entries of differentiated arguments as they were at the call.
        context: the context variables then.
        errors: NumPy's floating point error handling then.
        generators: those of random numbers that the steps use.
    """

    __slots__ = (
        "base",
        "budget",
        "context",
        "errors",
        "generators",
        "in_place",
        "inputs",
        "last",
        "last_mark",
        "n",
        "outputs",
        "patches",
        "seen_through",
        "segment",
        "step",
        "stored",
    )

    def __init__(self, level: ReverseLevel, step: Any, n: int, budget: int) -> None:
        self.base = level
        self.step = step
        self.n = n
        self.budget = budget
        self.stored: list[Stored] = []
        self.in_place = False
        self.seen_through = False
        self.patches = patches_at(level)
        self.context = contextvars.copy_context()
        self.errors = errors_raised()
        self.generators: list[Any] = []

    # -- forward -----------------------------------------------------------------------------------------------------

    def followed(self, state: Any) -> Any:
        """The last state; where a step raises, all are run again, recorded: numbers may leave with the exception."""
        try:
            return self.forward(state)
        except (PlaingradError, KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:
            first = f"{type(error).__name__}: {error}"
        for generator, before in self.stored[0].draws if self.stored and self.stored[0].draws else ():
            set_state(generator, before)
        for _ in range(self.n):
            state = self.base.prep(self.step)(state)
        differs(self.step, f"it raised {first} in the first run only")

    def forward(self, state: Any) -> Any:
        """The last state: all steps but the last are run without recording."""
        level = self.base
        refuse_uncopyable(state)
        _, self.generators = surroundings(self.step, (state,), {})
        before = self.draws()
        self.inputs = [level.slot_of(leaf) for leaf in leaves(state)]
        last, drawn, changed, stays = in_force(level.parent, self._unrecorded, state, before)
        segment = Segment(level, level.parent)
        y = segment.during(self._recorded, segment, level, last, changed, stays)
        self.segment = segment  # its identities stay known to segments inside it
        if drawn == self.stored[0].draws == self.draws():
            self.generators = []
            for stored in self.stored:
                stored.draws = None
        level.tape.extend((-1, STEP, self))
        if self.in_place:
            refuse_shared_memory(state)
            return written_back(level, state, y)
        return y

    def _unrecorded(self, state: Any, before: Any) -> tuple[list[Any], Any, bool, bool]:
        """All steps but the last.

        Returns:
            The state then, in a list; what was drawn; whether a step changes its argument; whether it returns that.
        """
        stored = copied(state)
        work = copied(stored) if self.n > 1 else stored
        self.stored.append(Stored(0, stored, before))
        at, changed, stays = 0, False, True
        if self.n > 1:
            before_step = mark_of(work)
            following, stays = self.advance(work, 1, stays)
            changed = mark_of(work) != before_step
            at, work = 1, following
        while True:
            top = self.stored[-1].at
            states = self.budget - len(self.stored) + 1
            if self.n - top <= 1 or states == 1:
                break
            goal = top + first_part(self.n - top, states)
            work, stays = self.advance(work, goal - at, stays)
            at = goal
            self.stored.append(Stored(at, copied(work), self.draws()))
        work, stays = self.advance(work, self.n - 1 - at, stays)
        return [work], self.draws(), changed, stays

    def _recorded(
        self, segment: Segment, level: ReverseLevel, last: list[Any], changed: bool, stays: bool
    ) -> Any:
        """The last step, from the state in `last`, which is taken out."""
        work = last.pop()
        self.last_mark = mark_of(work)
        x, inputs = activated(segment, work)
        within = contents(x)
        y = segment.run(self.step, (x,), {})
        self.in_place = self.changes(segment, x, within, inputs, self.last_mark)
        if changed or self.in_place:
            if not (self.in_place and stays and in_place_of(y, x)):
                self.refuse_in_place()
        within.clear()
        del x, work
        self.last = Recorded(segment, inputs, y)
        self.check(segment, [slot for slot in self.last.slots if slot is not None])
        known = set(segment.index.imported)
        self.outputs = []
        for slot in self.last.slots:
            if slot is None or slot.index in known:
                self.outputs.append(None)
            else:
                known.add(slot.index)
                self.outputs.append(file(level, slot))
        level.captured.update(segment.captured)
        return y

    def changes(self, segment: Segment, x: Any, within: list[Any], inputs: list[Any], mark: Any) -> bool:
        """Whether the recorded step has changed its argument `x`, be it to the same values."""
        if not segment.written.isdisjoint(inputs):
            return True
        now = contents(x)
        same = len(now) == len(within) and all(a is b for a, b in zip(now, within, strict=True))
        return not same or mark_of(x) != mark

    def refuse_in_place(self) -> None:
        """Refuse a step that changes its argument and returns something else."""
        refuse(
            CheckpointError,
            f"`{name_of(self.step)}` is repeated in a checkpoint_sequence, and changes its argument in place, "
            "but returns another object",
            why="The state before the step is needed again, so it must be known what belongs to it.",
            fix="return the changed argument itself, or work on a copy of it",
            anchor="checkpoint",
        )

    def advance(self, state: Any, steps: int, stays: bool = False) -> tuple[Any, bool]:
        """(the state so many steps on, whether it `stays` the same object all the time)."""
        prep = CURRENT.get().prep
        step = self.step
        for _ in range(steps):
            following = prep(step)(state)
            if stays:
                stays = in_place_of(following, state)
            state = following
        return state, stays

    def draws(self) -> list[Any]:
        """The states of the generators of random numbers; the same object as long as none has drawn."""
        now = [(generator, state_of(generator)) for generator in self.generators]
        return self.stored[-1].draws if self.stored and self.stored[-1].draws == now else now

    def check(self, segment: Segment, outputs: list[Any]) -> None:
        """Refuse steps whose values are used otherwise than through the slots `outputs`."""
        if has_escaped(segment, outputs):
            refuse(
                CheckpointError,
                f"a value of `{name_of(self.step)}`, which is repeated in a checkpoint_sequence, is kept elsewhere "
                "than in the state",
                why="It may be used in a way that the derivative does not see.",
                fix="put it into the state, or keep plaingrad.stop_gradient(x)",
                anchor="checkpoint",
            )
        if segment.wrote_outside:
            refuse(
                CheckpointError,
                f"`{name_of(self.step)}`, which is repeated in a checkpoint_sequence, writes to an array that is "
                "older than the step and not in the state",
                why="Steps are run again, each from its own state.",
                fix="put the array into the state, or make a new one in each step",
                anchor="checkpoint",
            )

    def account(self) -> int:
        """What it shares with its like."""
        return fingerprint(self.last.tape, self.segment.index)

    # -- backward ----------------------------------------------------------------------------------------------------

    def back(self, shadow: Shadow, undone: list[Any]) -> None:
        """Reverse the chain, the last step first."""
        self.pull(shadow, undone)  # `back` may run rewritten; what it calls does not

    def pull(self, shadow: Shadow, undone: list[Any]) -> None:
        """Reverse the last step, then one after the other of those before, each recorded again."""
        outputs = [(i, slot) for i, slot in zip(self.outputs, self.last.slots, strict=True) if i is not None]
        if all(shadow.bars[i] is None for i, _ in outputs) and self.seen_through:
            return

        outer = CURRENT.get()
        inner = self.last.borrow(shadow)
        for i, slot in outputs:
            if shadow.bars[i] is not None:
                seed(shadow, i, inner, slot)
        bars = self.last.pull(inner, shadow, undone)
        if self.n > 1:
            segment = Segment(self.base, outer)
            go_back = (self.context.copy().run, self._reverse, segment, outer, shadow, bars)
            bars = segment.during(patched, segment, self.patches, drawn_again, self.draws(), *go_back)
            segment.drop()
        self.seen_through = True
        for bar, slot in zip(bars, self.inputs, strict=True):
            if bar is not None and slot is not None:
                here(add_to, shadow, slot, bar)

    def _reverse(self, segment: Segment, outer: Any, shadow: Shadow, bars: list[Any]) -> list[Any]:
        """The cotangents of the first state for those of the last but one."""
        refuse_gone(surroundings(self.step, (), {})[0])
        CURRENT.set(outer)
        mark = self.last_mark
        with np.errstate(**self.errors):
            for k in reversed(range(self.n - 1)):
                bars, mark = self._step_back(segment, self._state_before(k), mark, shadow, bars)
                told("checkpoint_sequence, back", self.n - k, self.n)
        return bars

    def _state_before(self, k: int) -> Any:
        """The state that step `k` begins with, a copy; states are stored on the way to it."""
        stored = self.stored
        while stored[-1].at > k:
            stored.pop()
        while True:
            top = stored[-1]
            for generator, state in top.draws if self.generators else ():
                set_state(generator, state)
            work = copied(top.state)
            steps = k + 1 - top.at
            states = self.budget - len(stored) + 1
            if steps == 1 or states == 1:
                return self.advance(work, steps - 1)[0]
            part = first_part(steps, states)
            work, _ = self.advance(work, part)
            stored.append(Stored(top.at + part, work, self.draws()))

    def _step_back(
        self, segment: Segment, state: Any, mark: Any, shadow: Shadow, bars: list[Any]
    ) -> tuple[list[Any], Any]:
        """Record one step and reverse it: (cotangents of the state before it, mark of that state)."""
        before = mark_of(state)
        x, inputs = activated(segment, state)
        within = contents(x)
        try:
            y = segment.run(self.step, (x,), {})
        except PlaingradError:
            raise
        except Exception as error:
            differs(self.step, f"it raised {type(error).__name__}: {error}", error)
        if mark_of(y) != mark:
            differs(self.step, "its result is another one")
        if self.changes(segment, x, within, inputs, before) and not (self.in_place and in_place_of(y, x)):
            self.refuse_in_place()
        within.clear()
        del x
        recorded = Recorded(segment, inputs, y)
        inner = recorded.borrow(shadow)
        for bar, slot in zip(bars, recorded.slots, strict=True):
            if bar is not None and slot is not None:
                here(add_to, inner, slot, bar)
        recorded.slots.clear()
        slot = None
        del y
        self.check(segment, [])
        undone: list[Any] = []
        with np.errstate(all="ignore"):
            bars_before = recorded.pull(inner, shadow, undone)
            here(redo, undone)
        segment.reset()
        return bars_before, before
