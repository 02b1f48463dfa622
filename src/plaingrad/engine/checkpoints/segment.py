"""A stretch of a reverse-mode run with a tape of its own, which can be dropped and made again.

A segment stands in for a level while a function runs: the same derivative, the same identities, another tape. What
is active at the level is *imported* when the segment first meets it, under an index of its own. Afterwards the level
gets one step for the whole segment: the tape as it is, or the means to make it again (`engine.checkpoint`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NoReturn

import numpy as np

from plaingrad.critical import closing, exclusively, shared_lock
from plaingrad.engine.memory.holders import PARTS, TABLES, Inside, fingerprint, looked_into
from plaingrad.engine.memory.memory import Shadow, owner_of
from plaingrad.engine.memory.tape import STEP, ArraySlot, NumberSlot, Tree, Write, reverse
from plaingrad.engine.refusals.answered import settled
from plaingrad.engine.refusals.refuse import refuse
from plaingrad.engine.reverse.reverse import ReverseLevel
from plaingrad.engine.users_code import adopt
from plaingrad.engine.values import texts
from plaingrad.errors import CheckpointError
from plaingrad.rewrite import CURRENT, PLAIN, in_force

_lock = shared_lock()  # a finaliser may come in between
_held: dict[int, set[int]] = {}  # id of a level -> ids of the segments that keep it from sweeping


class Imports(dict[int, Any]):
    """The table of a segment: its own identities, and those of the level that it stands in for as they are met."""

    def __init__(self, base: ReverseLevel) -> None:
        super().__init__()
        self.base = base
        self.local: dict[int, int] = {}  # index at the level -> index here
        self.imported: set[int] = set()  # the indices here
        self.segment_fresh: dict[Any, Any] = {}
        self.new_index: Callable[[], int] = int

    def __missing__(self, key: int) -> Any:
        found = self.base.index
        i = found[key] if type(found) is Imports else found.get(key)
        if i is None or i < 0:  # not active, or a twin
            return i
        local = self.local.get(i)
        if local is None:
            local = exclusively(_lock, self._import, i)
        self[key] = local  # stays true: the level does not sweep while the segment is open
        return local

    def _import(self, i: int) -> int:
        local = self.local.get(i)
        if local is None:
            local = self.new_index()
            twin = self.base.fresh.get(i)
            if twin is not None:
                self.segment_fresh[local] = twin
            self.imported.add(local)
            self.local[i] = local
        return local

    def get(self, key: int, default: Any = None) -> Any:
        """The index of the object with this identity."""
        i = self[key]
        return default if i is None else i

    def __contains__(self, key: object) -> bool:
        return self[key] is not None  # type: ignore[index]

    def keys(self) -> Any:
        """Its only use is to be asked whether other identities are disjoint from it."""
        return self

    def isdisjoint(self, keys: Iterable[int]) -> bool:
        """Whether none of `keys` is active."""
        return not any(key in self for key in keys)


class Captured(dict[int, Any]):
    """The owners that pullbacks of a segment read; those of the level around it count too."""

    def __init__(self, base: ReverseLevel) -> None:
        super().__init__()
        self.around = base.captured

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or key in self.around


class Segment(ReverseLevel):
    """A reverse level that stands in for another one, `base`, and records on a tape of its own.

    Attributes:
        base: the level.
        watched: identities of owners of memory that is older than the segment.
        written: indices of the active memory that was written.
        wrote_outside: memory was written that is older than the segment.
        wrote_unknown: identities of owners that were written, and of which nobody knows how old they are.
        imports: index at the level -> index in the segment.
    """

    __slots__ = ("around", "base", "watched", "written", "wrote_outside", "wrote_unknown")

    has_own_table = False
    keeps_tasks = False
    follows_shapes = False  # it runs again on the arrays as they are then

    def __init__(self, base: ReverseLevel, parent: Any) -> None:
        self.base = base
        self.watched: set[int] = set()
        self.written: set[int] = set()
        self.wrote_outside = False
        self.wrote_unknown: set[int] = set()
        self.around: list[tuple[Any, int]] = []  # the levels further out, and how long their tapes are
        while parent is not PLAIN:
            self.around.append((parent, len(getattr(parent, "tape", ()))))
            parent = parent.parent
        super().__init__(parent if not self.around else self.around[0][0])
        self.captured = Captured(base)
        self.twins = base.twins

    def first_texts(self) -> texts.Texts:
        """Those of the level that it is a part of."""
        return self.base.texts

    index: Imports

    @property
    def imports(self) -> dict[int, int]:
        """Index at the level -> index in the segment."""
        return self.index.local

    def hot_hooks(self) -> dict[str, Any]:
        """The hooks that run most, on a table that knows the level's."""
        self.index = index = Imports(self.base)
        hot = super().hot_hooks()
        index.new_index = self.new_index
        index.segment_fresh = self.fresh
        self.blocks.cells[
            "get"
        ].cell_contents = index.__getitem__  # in C, where the identity is the segment's own
        return hot

    def during(self, work: Callable[..., Any], *args: Any) -> Any:
        """work(*args) while the segment is open."""
        return closing(self._opened, self._end, work, *args)

    def _opened(self, work: Callable[..., Any], *args: Any) -> Any:
        adopt.level_opened(self)  # first, so that a forked child knows whose segment it is
        hold(self)
        return work(*args)

    def _end(self) -> None:
        self.parent = self.base  # what outlives the segment goes on at the level
        self.close()
        self.blocks.cells["extend"].cell_contents = refuse_late_use
        self.tape = Ended()
        release(self)

    def run(self, f: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        """f(*args, **kwargs) with this segment in force."""
        try:
            value = in_force(self, self.prep(f), *args, **kwargs)
        except Exception as error:
            if self.refusal is not None and error is not self.refusal:
                raise settled(self.refusal, error)  # noqa: B904 - what it led to is its context
            raise
        if self.refusal is not None:
            raise settled(self.refusal)
        return value

    def reset(self) -> None:
        """Begin again with nothing: for a segment that is used for one step after another."""
        self.tape.clear()
        self.drop()
        self.wrote_outside = False
        self.wrote_unknown.clear()
        self.written.clear()
        cells = self.blocks.cells
        cells["n"].cell_contents = -1
        cells["limit"].cell_contents = 4000

    def drop(self) -> None:
        """Let go of everything."""
        self.index.clear()
        self.imports.clear()
        self.index.imported.clear()
        for values in (self.alive, self.arrays, self.captured, self.fresh):
            values.clear()

    def parts(self) -> list[Any]:
        """What its tables refer to; one that has ended is looked into from its step on the tape."""
        return [*self.alive, *self.arrays, *self.captured.values()]

    # -- what is written ---------------------------------------------------------------------------------------------

    def _written(self, i: int) -> None:
        self.written.add(i)
        if i in self.index.imported:
            self.wrote_outside = True
        super()._written(i)

    def _save(self, a: np.ndarray, k: Any) -> Write | None:
        key = id(a if a.base is None else owner_of(a))
        if self.index[key] is None:
            if key in self.watched or key in self.base.captured:
                self.wrote_outside = True
            elif key in self.captured:
                self.wrote_unknown.add(key)
        return super()._save(a, k)

    def _refuse_hidden_memory(self, a: np.ndarray, owner: np.ndarray) -> None:
        super()._refuse_hidden_memory(a, owner)
        self.base._refuse_hidden_memory(a, owner)

    # -- afterwards --------------------------------------------------------------------------------------------------

    def sweep(self) -> None:
        """Forget what nobody refers to any more, not even the tape."""
        self._sweep_numbers()
        self._sweep_arrays()

    def escaped(self, outputs: list[Any]) -> list[Any]:
        """What the segment has filed, besides `outputs` (slots), that something else than the segment refers to.

        Arrays that its pullbacks read and that are older than it are captured at the level, too.
        """
        calls = self.calls
        calls.made = None
        calls.met.clear()
        calls.memos.drop_results()
        self.sweep()
        expected = {id(owner_of(slot.x) if type(slot) is ArraySlot else slot.x) for slot in outputs}
        own = {id(x) for x in self.alive} | {id(x) for x in self.arrays}
        if own <= expected and not dict.__len__(self.captured):
            return []
        inside = Inside(own | dict.keys(self.captured))
        inside.refer_to(self.texts.values())
        for level, start in [(self, 0), *self.around]:  # those further out know the same objects
            inside.see_level(level, start)
        inside.follow()
        seen = {id(x): x for x in inside.held_elsewhere()}
        for key, owner in seen.items():
            if dict.__contains__(self.captured, key) and key not in own:
                self.base.captured[key] = owner
        if not self.wrote_unknown.isdisjoint(seen):
            self.wrote_outside = True
        return [x for key, x in seen.items() if key in own and key not in expected]


def hold(segment: Segment) -> None:
    """Keep the level of `segment` from sweeping: segments remember its identities."""
    exclusively(_lock, _hold, segment)
    exclusively(segment.base.sweeping, int)  # waits for a sweep; what that drops, nobody can meet any more


def _hold(segment: Segment) -> None:
    _held.setdefault(id(segment.base), set()).add(id(segment))
    segment.base.may_sweep = False


def forget_others(kept: Collection[Any]) -> None:
    """Only the levels `kept`, segments among them, go on: no other segment keeps one of them from sweeping."""
    ids = set(map(id, kept))
    for holders in _held.values():
        holders &= ids
    for key in [key for key, holders in _held.items() if not holders]:
        _held.pop(key)
    for level in kept:
        if id(level) not in _held:
            level.may_sweep = True


def release(segment: Segment) -> None:
    """Let the level sweep again when its last segment has ended; it may be done twice."""
    exclusively(_lock, _release, segment)


def _release(segment: Segment) -> None:
    level = segment.base
    holders = _held.get(id(level), set())
    holders.discard(id(segment))
    if not holders and _held.pop(id(level), None) is not None:
        level.may_sweep = True


def refuse_late_use(*_: object) -> NoReturn:
    """A lazy iterator that holds on to the segment has been asked for an item after its end."""
    refuse(
        CheckpointError,
        "an iterator that was made inside a checkpointed function is used after its end",
        why="It records where nothing is recorded any more, so derivatives would be lost.",
        fix="return a list of its items",
        anchor="checkpoint",
    )


class Ended(list[Any]):
    """The tape of a segment that has ended."""

    def extend(self, *_: object) -> NoReturn:
        """Nothing is recorded any more."""
        refuse_late_use()


# -- the step of a segment on the tape of its level ----------------------------------------------------------------


def leaves_of(slot: Any) -> Iterator[Any]:
    """The slots of the leaves, in order."""
    if type(slot) is Tree:
        for inner in slot.slots.values():
            yield from leaves_of(inner)
    elif slot is not None:
        yield slot


def file(level: ReverseLevel, slot: Any) -> int:
    """Make the leaf of a segment's `slot` active at `level`; its index there."""
    return level.add_number(slot.x) if type(slot) is NumberSlot else level.add_region(owner_of(slot.x))


def lend(shadow: Shadow, inner: Shadow, pairs: Iterable[tuple[int, int]]) -> None:
    """Let `inner` go on with the cotangents of `shadow`: (index in `shadow`, index in `inner`) pairs."""
    for i, j in pairs:
        inner.bars[j] = shadow.bars[i]
        if i in shadow.owned:
            inner.owned.add(j)
        if i in shadow.laid:
            inner.laid[j] = shadow.laid[i]


def take_back(shadow: Shadow, inner: Shadow, pairs: Iterable[tuple[int, int]]) -> None:
    """Go on with what `inner` has made of the cotangents that were lent to it."""
    lend(inner, shadow, [(j, i) for i, j in pairs])


def seed(shadow: Shadow, i: int, inner: Shadow, slot: Any) -> None:
    """Hand the cotangent at index `i` over to the same output, made again, in `inner`."""
    lend(shadow, inner, [(i, slot.index)])
    if slot.index in inner.laid:
        del shadow.laid[i]
    shadow.owned.discard(i)
    shadow.bars[i] = None  # nothing before the call knows it


def here(f: Callable[..., Any], *args: Any) -> Any:
    """f(*args) for a piece of the reverse pass: rewritten where a derivative is being taken of it."""
    outer = CURRENT.get()
    return (f if outer is PLAIN else outer.calls.inside(f))(*args)


PARTS[Segment] = Segment.parts
TABLES.add(Segment)


@looked_into
class Kept:
    """A segment whose tape was kept: what it computed is known to others, or it wrote to memory of others."""

    __slots__ = ("pairs", "segment", "size", "tape")

    def __init__(self, tape: list[Any], pairs: list[tuple[int, int]], size: int, segment: Segment) -> None:
        self.tape = tape
        self.pairs = pairs  # (index at the level, index in the segment) of what came in and what went out
        self.size = size
        self.segment = segment  # its identities stay known to segments inside it

    def account(self) -> int:
        """What it shares with its like."""
        return fingerprint(self.tape, self.segment.index)

    def back(self, shadow: Shadow, undone: list[Any]) -> None:
        """The reverse pass of the segment, as if its tape stood in the level's."""
        self.pull(shadow, undone)  # `back` may run rewritten; what it calls does not

    def pull(self, shadow: Shadow, undone: list[Any]) -> None:
        """Lend the cotangents, reverse, take them back."""
        inner = Shadow(self.size)
        lend(shadow, inner, self.pairs)
        here(reverse, self.tape, inner, undone)
        take_back(shadow, inner, self.pairs)


def keep(segment: Segment) -> None:
    """File everything that `segment` knows at its level, with its tape as one step."""
    base = segment.base
    tape = segment.tape
    pairs = list(segment.imports.items())
    segment.sweep()
    index = segment.index
    pairs += [(base.add_number(x), index[id(x)]) for x in segment.alive]
    pairs += [(base.add_region(owner), index[id(owner)]) for owner in segment.arrays]
    base.captured.update(segment.captured)
    if tape:
        base.tape.extend((-1, STEP, Kept(tape, pairs, segment.new_index(), segment)))
