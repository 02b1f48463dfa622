"""The way back over a tape that several threads have recorded: what does not depend on each other goes side by side.

Each stretch, what one task has recorded, has cotangents of its own. What it adds to an index of another stretch stays
there until everybody who has read that index has been gone back over, and is added when the entry comes that made it,
in an order that follows from that in which the program meets the results of its tasks. So a sum has one order,
whatever the threads do.
"""

from __future__ import annotations

import _thread
import contextvars
import itertools
import os
from queue import SimpleQueue
from typing import Any

import numpy as np

from plaingrad.engine.compiled import core
from plaingrad.engine.memory.memory import WHOLE, Shadow, add_into

MOST_STRETCHES = (
    4096  # on one tape; each has room for a cotangent of every index, which is touched only where it is met
)
MOST_ROOM = 2**33  # bytes of such room, together
MOST_THREADS = 64


class Piece:
    """A run of entries of one stretch: which pieces wait for it, and for how many it waits."""

    __slots__ = ("end", "first", "frees", "merges", "stretch", "waits")

    def __init__(self, first: int, end: int, stretch: int) -> None:
        self.first, self.end, self.stretch = first, end, stretch
        self.waits = 0
        self.frees: list[Piece] = []
        self.merges: list[tuple[int, int]] = []  # (entry, index) where what others have added is taken in


class WayBack:
    """One reverse pass over such a tape."""

    def __init__(self, tape: Any, shadow: Shadow, undone: list[Any], found: Any) -> None:
        self.tape = tape
        self.undone = undone
        self.shadows = [shadow, *[bars and Shadow(0, bars) for bars in found.bars[1:]]]
        self.shared = shared_ends(found, self.shadows)
        self.rank = {stretch: n for n, stretch in enumerate(order_of(found.sources, len(self.shadows)))}
        self.readers = found.readers
        self.ends = found.ends
        self.pieces = pieces_of(found)
        self.left = len(self.pieces)
        self.ready: SimpleQueue[Piece | None] = SimpleQueue()
        self.over: SimpleQueue[None] = SimpleQueue()
        self.lock = _thread.allocate_lock()
        self.errors: list[tuple[int, BaseException]] = []
        self.working = 0
        self.is_given_up = False

    def go(self, threads: int) -> None:
        """Go back over all pieces; an error is the one that is latest on the tape of those that came up."""
        for piece in self.pieces:
            if not piece.waits:
                self.ready.put(piece)
        started = 0
        try:
            for _ in range(threads):
                _thread.start_new_thread(contextvars.copy_context().run, (self._work_quietly,))
                started += 1
        except RuntimeError:  # no more threads are to be had
            pass
        except BaseException as interrupt:
            self._give_up(interrupt)
            raise
        if started:
            self._wait(started)
        else:
            self._work()
        if self.errors:
            raise max(self.errors, key=lambda found: found[0])[1]
        self._take_in_ends()

    def _wait(self, started: int) -> None:
        """Wait for the workers; an interrupt makes them stop after the piece that they are at."""
        error: BaseException | None = None
        while started:
            try:
                self.over.get()
                started -= 1
            except BaseException as interrupt:
                error = interrupt
                self.errors.append((-1, interrupt))
                self.ready.put(None)
        if error is not None:
            raise error

    def _give_up(self, error: BaseException) -> None:
        """Stop the workers that have begun; who has not does nothing."""
        self.errors.append((-1, error))
        self.ready.put(None)
        with self.lock:
            self.is_given_up = True
        self._wait(self.working)

    def _work_quietly(self) -> None:
        with self.lock:
            if self.is_given_up:
                return
            self.working += 1
        try:
            with np.errstate(all="ignore"):
                self._work()
        finally:
            self.over.put(None)

    def _work(self) -> None:
        """Take pieces that are ready until there are none; `None` says so, and is left for the next one."""
        piece = self.ready.get()
        while piece is not None and not self.errors:
            try:
                self._go_back_over(piece)
            except BaseException as error:
                self.errors.append((piece.first, error))
                break
            piece = self._next(piece) or self.ready.get()
        self.ready.put(None)

    def _next(self, done: Piece) -> Piece | None:
        """A piece that has waited for `done`, if there is one; others are for other workers."""
        mine = None
        with self.lock:
            self.left -= 1
            is_last = not self.left
            for piece in done.frees:
                piece.waits -= 1
                if piece.waits:
                    continue
                if mine is None:
                    mine = piece
                else:
                    self.ready.put(piece)
        if is_last:
            self.ready.put(None)
        return mine

    def _go_back_over(self, piece: Piece) -> None:
        shadow = self.shadows[piece.stretch]
        end = piece.end
        for entry, index in piece.merges:
            if entry + 1 < end:
                self.tape.reverse(shadow, self.undone, entry + 1, end)
                end = entry + 1
            self._take_in(piece.stretch, index, self.readers[index])
        self.tape.reverse(shadow, self.undone, piece.first, end)

    def _take_in(self, stretch: int, index: int, readers: dict[int, Any]) -> None:
        """Add what other stretches have found for an index of `stretch`."""
        shadow = self.shadows[stretch]
        for reader in sorted(readers, key=self.rank.__getitem__):
            if reader != stretch:
                take_over(shadow, self.shadows[reader], index, readers[reader])

    def _take_in_ends(self) -> None:
        for index, readers in self.ends.items():
            if index not in self.shared:
                self._take_in(0, index, readers)


def order_of(sources: dict[int, Any], count: int) -> list[int]:
    """Stretch 0, then the others in the order in which the way back meets their results: what was met last comes first.

    That is the order of one thread where each task adds one term. Those whose results nobody reads come last.
    """
    order: dict[int, None] = {0: None}
    todo = [0]
    for stretch in todo:
        for source in sources.get(stretch, ()):
            if source not in order:
                order[source] = None
                todo.append(source)
    met = [*order][1:]
    return [0, *reversed(met), *[n for n in range(count) if n not in order]]


def shared_ends(found: Any, shadows: list[Any]) -> set[int]:
    """Give tasks that read parts of an argument which do not overlap one array for its cotangent; these arguments.

    So there is one array instead of one for each task, and nobody adds them up when the tasks are over.
    """
    shared = set()
    for index, owner in found.owners.items():
        readers = found.ends[index]
        if len(readers) < 2 or found.meets_first(index) or not are_apart([*readers.values()]):
            continue
        if type(owner) is not np.ndarray or owner.dtype != float or owner.base is not None:
            continue
        first = shadows[0]
        first.view(index, owner)
        for stretch in readers:
            shadow = shadows[stretch]
            shadow.bars[index] = first.bars[index]
            shadow.laid[index] = first.laid[index]
            shadow.owned.add(index)
        shared.add(index)
    return shared


def are_apart(spans: list[Any]) -> bool:
    """Whether these (first, end) do not overlap; None is everything."""
    if None in spans:
        return False
    spans.sort()
    return all(before[1] <= after[0] for before, after in itertools.pairwise(spans))


def pieces_of(found: Any) -> list[Piece]:
    """The pieces that core.Stretches has found, linked."""
    pieces = [Piece(*place) for place in found.pieces]
    for piece, needs in zip(pieces, found.needs, strict=True):
        piece.waits = len(needs)
        for n in needs:
            pieces[n].frees.append(piece)
    for index, (n, entry) in found.made.items():
        if n >= 0:
            pieces[n].merges.append((entry, index))
    for piece in pieces:
        piece.merges.sort(reverse=True)
        piece.frees.sort(key=lambda other: other.stretch != piece.stretch)
    return pieces


def take_over(shadow: Shadow, other: Shadow, index: int, span: tuple[int, int] | None) -> None:
    """Add the cotangent of `index` in `other`, which is done with it, to that in `shadow`; elements of `span` only."""
    bar = other.bars[index]
    if bar is None:
        return
    mine = shadow.bars[index]
    if mine is None:
        shadow.bars[index] = bar
        if index in other.owned:
            shadow.owned.add(index)
        if index in other.laid:
            shadow.laid[index] = other.laid[index]
    elif not isinstance(bar, np.ndarray):
        shadow.add_number(index, bar)
    elif bar.dtype.names is not None:
        add_into(shadow.writable(index, mine), bar)
    else:
        part = None if span is None or index not in shadow.owned else parts(mine, bar, span)
        if part is None:
            shadow.add_array(index, WHOLE, bar)
        else:
            np.add(part[0], part[1], out=part[0])
    other.let_go(index)


def parts(a: Any, b: np.ndarray, span: tuple[int, int]) -> tuple[np.ndarray, np.ndarray] | None:
    """The elements of `span` in two arrays of one layout; None where they have not."""
    if type(a) is not np.ndarray or a.dtype != b.dtype or a.shape != b.shape:
        return None
    if a.flags.c_contiguous and b.flags.c_contiguous:
        flat = a.reshape(-1), b.reshape(-1)
    elif a.flags.f_contiguous and b.flags.f_contiguous:
        flat = a.T.reshape(-1), b.T.reshape(-1)
    else:
        return None
    return flat[0][slice(*span)], flat[1][slice(*span)]


def reverse_side_by_side(tape: Any, shadow: Shadow, undone: list[Any]) -> bool:
    """Carry the cotangents in `shadow` back over a compiled tape; False where that is for one thread, and not done."""
    size = len(shadow.bars)
    try:
        found = core.Stretches(tape, size)
        if not found.scan(shadow.bars, min(MOST_STRETCHES, MOST_ROOM // (8 * size + 1))):
            return False
    except MemoryError:  # one thread needs less
        return False
    if len(found.is_heavy) < 2:  # numbers only: threads would wait for each other
        return False
    threads = min(max(found.threads, os.cpu_count() or 1), len(found.is_heavy), MOST_THREADS)
    WayBack(tape, shadow, undone, found).go(threads)
    return True
