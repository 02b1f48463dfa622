"""Borrowed memory: arrays over a buffer, a memory map, another library's tensor, or memory that C code lends.

NumPy neither owns such memory nor hears of it when it is read, written, resized or unmapped by its lender. So:

- What a pullback keeps of it is a copy, and no table or tape refers to the array: the program may give the memory back
  whenever a plain call may.
- A value that depends on the inputs is written into it only where nobody else can read it: the array is all that refers
  to the lender, as with arrays that were unpickled or that compiled code returned.
- `bytes` never change and cannot be given back: arrays over them are kept as they are.
"""

from __future__ import annotations

import gc
import mmap
import sys
import weakref
from array import array
from sys import getrefcount
from types import FrameType
from typing import Any, NoReturn

import numpy as np

from plaingrad.engine.memory.memory import address, array_behind, extent, is_borrowed, lender_of, owner_of
from plaingrad.engine.refusals.blame import name_of
from plaingrad.engine.refusals.refuse import name_of_object, refuse
from plaingrad.engine.values.fresh import rebuilt
from plaingrad.engine.values.nesting import outwards
from plaingrad.errors import AliasError, CheckpointError

#: Lenders of memory that no array owns: what lies in it is found by the lender alone, not by address.
STORES = (bytes, bytearray, array, mmap.mmap)
HOOKS = (__name__, "plaingrad.engine.calls.")  # modules of the hooks, or what their names begin with


class Borrowed:
    """What one level knows of borrowed memory.

    Attributes:
        level: the level.
        copies: place, shape and type of an array -> the last copy of it, as long as somebody keeps that.
    """

    __slots__ = ("copies", "extents", "level")

    def __init__(self, level: Any) -> None:
        self.level = level
        self.clear()

    def clear(self) -> None:
        """Forget everything, at the beginning or when the level is used again."""
        self.copies: Any = None
        self.extents: Any = None

    def kept(self, x: Any) -> Any:
        """`x`, no active value, for a pullback to keep; of arrays in it whose memory is lent, also in lists, copies."""
        if isinstance(x, np.ndarray):
            return self.kept_array(x)
        t = type(x)
        if t is list or isinstance(x, tuple):
            index = self.level.index
            parts = None
            for k, part in enumerate(x):
                if type(part) is np.ndarray and id(part if part.base is None else part.base) in index:
                    continue
                if isinstance(part, (np.ndarray, list, tuple)):
                    copy = self.kept(part)
                    if copy is not part:
                        parts = list(x) if parts is None else parts
                        parts[k] = copy
            return x if parts is None else rebuilt(x, parts)
        if t is dict:
            values = {key: self.kept(part) for key, part in x.items()}
            return x if all(map(_is, values.values(), x.values())) else values
        return x

    def kept_array(self, x: np.ndarray) -> np.ndarray:
        """As `kept`, of an array."""
        index = self.level.index
        if x.base is None:
            if id(x) in index or x.flags.owndata:
                return x
        else:
            owner = owner_of(x)
            if id(owner) in index or not is_lent(owner):
                return x
        return x if x.dtype.hasobject else self._copy(x)

    def _copy(self, x: np.ndarray) -> np.ndarray:
        level = self.level
        if any(outer.owns_region(owner_of(x)) for outer in outwards(level.parent)):
            return level.outside(copied, x)
        if self.copies is None:
            self.copies = weakref.WeakValueDictionary()
        place = (address(x), x.shape, x.strides, x.dtype, type(x))
        copy = self.copies.get(place)
        if copy is None or not same_bytes(copy, x):
            self.copies[place] = copy = copied(x)
        return copy

    def check_write(self, a: np.ndarray, owner: np.ndarray) -> None:
        """Refuse active values in `a`, whose memory `owner` has borrowed, if others may read it."""
        if not a.flags.writeable or not a.size or is_private(owner):
            return
        if any(outer.owns_region(owner) for outer in outwards(self.level.parent)):
            return  # looked at there
        refuse_write(
            f"an array in memory of {describe(owner)} is given values that depend on the differentiated inputs"
        )

    def check_base(self, a: np.ndarray, base: Any) -> None:
        """Refuse to give the program `base`, the base of active `a`, if it could read the memory through it."""
        if base is None or isinstance(base, np.ndarray) or not self.level.owns_region(owner_of(a)):
            return
        if array_behind(a) is None and not str(caller().f_globals.get("__name__", "")).startswith(
            "plaingrad."
        ):
            refuse_write(f"the memory of an array of differentiated numbers is handed out, {describe(a)}")

    def finds_active(self, a: np.ndarray, owner: np.ndarray) -> bool:
        """Whether borrowed memory, which `a` reaches by its address, is that of an active array."""
        if isinstance(lender_of(owner), STORES) or is_compiled(owner.base):
            return False
        return self.active_owner(a) is not None

    def active_owner(self, a: np.ndarray) -> Any:
        """What has the memory, among active arrays, in which `a` lies by its address; None if none has."""
        with self.level.activating:  # threads may look at once
            if self.extents is None:
                self.extents = Extents()
            return self.extents.meet(a, self.level.arrays)


class Extents:
    """Where in memory arrays of a list lie, which grows at its end."""

    __slots__ = ("highs", "last", "lows")

    def __init__(self) -> None:
        self.lows: list[int] = []
        self.highs: list[int] = []
        self.last: Any = None  # a reference to the last array that was looked at

    def meet(self, a: np.ndarray, arrays: list[Any]) -> Any:
        """That of `arrays` where `a` lies, at least in part; None if there is none."""
        count = len(self.lows)
        if count and (len(arrays) < count or self.last() is not arrays[count - 1]):
            self.__init__()  # some were dropped
            count = 0
        for owner in arrays[count:]:
            low, size = extent(owner) if isinstance(owner, np.ndarray) else (0, 0)
            self.lows.append(low)
            self.highs.append(low + size)
            self.last = weakref.ref(owner) if isinstance(owner, np.ndarray) else lambda owner=owner: owner
        low, size = extent(a)
        (found,) = np.nonzero((np.array(self.lows) < low + size) & (np.array(self.highs) > low))
        return arrays[found[0]] if found.size else None


def of_their_own(x: Any) -> Any:
    """`x` with copies of the arrays in it, in tuples and lists too, whose memory is lent."""
    if isinstance(x, np.ndarray):
        return copied(x) if is_lent(owner_of(x)) and not x.dtype.hasobject else x
    if type(x) is list or (isinstance(x, tuple) and x):
        parts = [of_their_own(part) for part in x]
        if not all(map(_is, parts, x)):
            return rebuilt(x, parts)
    return x


def _is(a: Any, b: Any) -> bool:
    return a is b


def caller() -> FrameType:
    """The innermost frame that is not of the hooks."""
    frame = sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith(HOOKS):
        frame = frame.f_back
    return frame


def copied(x: np.ndarray) -> np.ndarray:
    """A copy of `x`, of its class and in its memory layout."""
    return np.ndarray.copy(x, order="K")


def same_bytes(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays of one shape and type hold the same bits."""
    a, b = np.asarray(a), np.asarray(b)
    if a.flags.c_contiguous and b.flags.c_contiguous and a.nbytes % 8 == 0 and a.size:
        a, b = a.reshape(-1).view(np.int64), b.reshape(-1).view(np.int64)
        return bool((a == b).all())
    return a.tobytes() == b.tobytes()


# -- who else can read it ----------------------------------------------------------------------------------------------


def is_compiled(lender: Any) -> bool:
    """Whether memory was allocated by code that Numba compiled."""
    return type(lender).__name__ == "_MemInfo" and type(lender).__module__ == "_nrt_python"


def is_lent(owner: np.ndarray) -> bool:
    """Whether the memory of `owner`, the last array of a chain, may be given back or changed past NumPy."""
    if not is_borrowed(owner):
        return False
    lender = lender_of(owner)
    return type(lender) is not bytes and not (is_compiled(lender) and lender.refcount == 1)


def references(owner: np.ndarray) -> list[int]:
    """How many references there are to each object between `owner` and its memory."""
    lender = owner.base
    counts = [getrefcount(lender)]
    if type(lender) is memoryview:
        counts += map(getrefcount, gc.get_referents(lender))  # the buffer that views of one memory share
        try:
            lender = lender.obj
        except ValueError:  # it was released
            return counts
        counts.append(getrefcount(lender))
    return counts


_ALONE = {1: references(np.ndarray(1, float, bytearray(8))), 3: references(np.frombuffer(bytearray(8)))}


def is_private(owner: np.ndarray) -> bool:
    """Whether the memory that `owner` has borrowed is read by no other way than `owner` and its views."""
    counts = references(owner)  # before we refer to the lender, too
    if counts != _ALONE.get(len(counts)):
        return False
    lender = lender_of(owner)
    return (
        type(lender) is bytearray or type(lender) is array or (is_compiled(lender) and lender.refcount == 1)
    )


def is_there(a: np.ndarray) -> bool:
    """Whether the memory of `a` is still what its lender has: not unmapped, nor moved."""
    lender = lender_of(a)
    if lender is None:
        return True
    try:
        memory = np.asarray(memoryview(lender))
    except (ValueError, BufferError):
        return False
    except Exception:  # it lends memory by other means, for as long as it is referred to
        return True
    start, size = extent(memory)
    low, needed = extent(a)
    return start <= low and low + needed <= start + size


# -- refusals ----------------------------------------------------------------------------------------------------------


def describe(a: np.ndarray) -> str:
    """Whose memory `a` lies in, for messages."""
    lender = lender_of(a)
    if lender is None:
        return "C code"
    name = name_of_object(lender)
    return f"a {name_of(type(lender))}" + (f" ({name})" if "`" in name else "")


def refuse_write(what: str) -> NoReturn:
    """Refuse to write into memory that can be read past us."""
    refuse(
        AliasError,
        what,
        why="NumPy does not own that memory: it can be read otherwise than as this array, and what is read so would "
        "have lost its derivative.",
        fix="compute in an array of NumPy's own (`np.empty_like(a)`, `a.copy()`); what the memory is to hold in the "
        "end may be written with plaingrad.stop_gradient",
        anchor="alias",
    )


def refuse_lent(what: str) -> NoReturn:
    """Refuse an argument in borrowed memory that was changed by another way than as that array."""
    refuse(
        AliasError,
        what,
        why="Differentiated arrays are copied on entry, so that what was written there was not seen.",
        fix="pass a copy (`x.copy()`), or change the memory before or after the call",
        anchor="alias",
    )


def refuse_gone(arrays: list[np.ndarray]) -> None:
    """Refuse to run a function again that reads `arrays`, if the memory of one of them was given back."""
    for a in arrays:
        if not is_there(a):
            refuse(
                CheckpointError,
                f"a step of checkpoint_sequence reads an array in memory of {describe(a)}, which was given back",
                why="The steps are run again in the reverse pass.",
                fix="keep the memory until the gradient is there, or copy the array first",
                anchor="checkpoint",
            )
