"""The tape of a reverse level, and what the way back reads: captured arrays, and the values that writes replace."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any, ClassVar

import numpy as np

from plaingrad import rulebook
from plaingrad.engine.calls.level import Level
from plaingrad.engine.compiled import core
from plaingrad.engine.fusion.fused import Blocks, PairedBlocks, cells_of, may_pair
from plaingrad.engine.fusion.hot_hooks import reverse_hooks
from plaingrad.engine.fusion.own_operators import (
    arithmetic_setter,
    has_own_numbers,
    own_compiled,
    own_operators,
)
from plaingrad.engine.memory import compiled_steps
from plaingrad.engine.memory.indices import snapshot
from plaingrad.engine.memory.memory import owner_of
from plaingrad.engine.memory.tape import STEP, Write
from plaingrad.engine.reverse.reverse_in_forward import paired_hooks
from plaingrad.engine.values.borrowed import is_lent
from plaingrad.rewrite import PLAIN
from plaingrad.rewrite.hooks import EXPRESSIONS, FUSED, HOOKED

if core is not None:
    core.set_steps(compiled_steps)


def pairs_compiled(outer: Any) -> bool:
    """Whether level `outer` is a compiled forward level, whose tangents a reverse level inside carries along."""
    return type(outer.recorder) is core.ArrayPusher


class Recording(Level):
    """A level whose table gives numbers and memory an index, under which the reverse pass keeps their cotangents."""

    __slots__ = ("inputs", "new_index", "tape", "working")

    has_own_table: ClassVar[bool]

    def __init__(self, parent: Any) -> None:
        self.tape: Any = []
        self.working: Any = None  # precisions of numbers with arithmetic of their own
        self.inputs = 0  # no argument has an index of this or above; of levels that are not compiled
        super().__init__(parent)

    def hot_hooks(self) -> dict[str, Any]:
        """The hooks that run most; see `fusion.hot_hooks`."""
        if core is not None and self.has_own_table and (self.parent is PLAIN or pairs_compiled(self.parent)):
            if self.parent is PLAIN:
                self.recorder = recorder = core.ArrayRecorder(self)
            else:
                self.recorder = recorder = core.PairRecorder(self, self.parent.recorder)
            self.index, self.tape = recorder.index, recorder.entries
            hot = recorder.hooks()
            self.new_index = recorder.new_index
            return hot
        make = reverse_hooks(self.parent is not PLAIN)
        hot = make(self, self.index, self.alive, self.tape, self._sweep_numbers)
        self.new_index: Callable[[], int] = hot["new_index"]
        self.blocks = PairedBlocks(self, cells_of(hot)) if may_pair(self) else Blocks(cells_of(hot))
        if may_pair(self):
            hot = paired_hooks(self.blocks, hot)
        return hot

    def choose_arithmetic(self) -> None:
        """Let the hot hooks do what is plaingrad's own; an operator with a user's rule goes the general way."""
        own, self.own_arrays, fuses = own_operators(rulebook.changes())
        compiled = frozenset() if self.recorder is None else own_compiled(rulebook.changes())
        arithmetic_setter(own, compiled)(self, self.hot)
        if self.recorder is not None:
            self.recorder.own_arrays = self.own_arrays
            self.recorder.own_numbers = has_own_numbers(own)
        self.fuses = fuses and self.recorder is None and (self.parent is PLAIN or may_pair(self))
        self.form = FUSED if self.fuses else EXPRESSIONS if self.recorder is not None else HOOKED

    def add_number(self, x: Any) -> int:
        """File the fresh number `x` as active; its index."""
        t = type(x)
        if self.recorder is not None and (t is float or t is np.float64 or t is complex):
            return self.recorder.file(x)
        n = self.new_index()
        self.alive.append(x)  # first, so that no other object gets its identity
        self.index[id(x)] = n
        return n

    def add_region(self, owner: Any) -> int:
        """File the memory that `owner` holds as active; its index."""
        if self.recorder is not None:
            return self.recorder.add_region(owner)
        n = self.new_index()
        self.arrays.append(owner)
        self.index[id(owner)] = n
        self._array_bytes += getattr(owner, "nbytes", 64) + 100
        if self._array_bytes > self._array_limit:
            self._sweep_arrays()
        return n

    def _capture(self, values: Any) -> None:
        captured = self.captured
        for x in values:
            if type(x) is np.ndarray or isinstance(x, np.ndarray):
                owner = x if x.base is None else owner_of(x)
                if owner.base is None or id(owner) in self.index or not is_lent(owner):
                    captured[id(owner)] = owner
            elif type(x) is list or type(x) is tuple or type(x) is dict:
                self._capture(x.values() if type(x) is dict else x)

    def _held(self, x: np.ndarray, i: Any) -> np.ndarray:
        """`x`, of region `i` or not active, for the way back; a copy if its memory is lent."""
        if x.base is None:
            key = id(x)
            if key in self.captured:
                return x
            if i is not None or x.flags.owndata:
                self.captured[key] = x
                return x
        if i is None:
            x = self.borrowed.kept_array(x)
        self._capture((x,))
        return x

    def _capture_held(self, pullback: Any, depth: int) -> None:
        """Capture the arrays that a pullback holds in its cells, directly or through functions and containers."""
        if depth > 6:
            return
        if type(pullback) is FunctionType:
            for cell in pullback.__closure__ or ():
                try:
                    held = cell.cell_contents
                except ValueError:
                    continue
                if isinstance(held, (np.ndarray, list, tuple, dict)):
                    self._capture((held,))
                elif callable(held):
                    self._capture_held(held, depth + 1)
        elif type(pullback) is MethodType:
            self._capture(vars(pullback.__self__).values() if hasattr(pullback.__self__, "__dict__") else ())
        elif type(pullback) is functools.partial:
            self._capture(pullback.args)
            self._capture(pullback.keywords.values())
            self._capture_held(pullback.func, depth + 1)

    def _save(self, a: np.ndarray, k: Any) -> Write | None:
        """What a write to a[k] will overwrite, if some pullback may read it."""
        owner = a if a.base is None else owner_of(a)
        self._meet_write(owner, a)
        if id(owner) not in self.captured:
            return None
        if a.dtype.kind == "O":
            return None
        saved = np.array(a[k]) if self.parent is PLAIN else self.outside(snapshot, a, k)
        return Write(a, k, saved)

    def _saved(self, save: Write | None) -> None:
        if save is not None:
            self.tape.extend((-1, STEP, save))
