"""Arrays are memory: who owns it, where a view lies in it, and the shadow memory that holds its cotangent.

The derivative of an array is a second buffer of the same layout, filed under the array that has the memory.
A view's derivative is the same view of that buffer, found from its address and strides.

The functions of this module that touch cotangents are ordinary Python: under a nested derivative they run
rewritten, at the next level out.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def owner_of(a: Any) -> Any:
    """The array that has the memory of array `a`: the last of its chain of bases, buffers on the way looked through.

    That array owns its memory, or has borrowed it from something that is no array (`lender_of`). Of a memoryview of no
    array, the exporter.
    """
    if not isinstance(a, np.ndarray):
        holder = holder_behind(a)
        return a if holder is None else owner_of(holder)
    while True:
        base = a.base
        if base is None:
            return a
        if type(base) is np.ndarray and base.base is None:
            return base
        if not isinstance(base, np.ndarray):
            base = array_behind(a)
            if base is None:
                return a
        a = base


def holder_behind(x: Any, a: Any = None) -> Any:
    """What `x`, which is no array but something between array `a` and its memory, has the memory from; or None."""
    if type(x) is memoryview:
        try:
            return x.obj
        except ValueError:  # it was released
            return None
    base = getattr(
        x, "base", None
    )  # NumPy's own go-betweens: as_strided's, flat iterators; Cython's memoryviews
    if isinstance(base, np.ndarray) and (a is None or a.size == 0 or np.may_share_memory(a, base)):
        return base
    return None


def array_behind(a: np.ndarray) -> Any:
    """The array whose memory `a` has through the buffers that are its base; None if there is no array behind them."""
    x = a.base
    while x is not None and not isinstance(x, np.ndarray):
        x = holder_behind(x, a)
    return x


def is_borrowed(owner: np.ndarray) -> bool:
    """Whether `owner`, the last array of a chain, has its memory from something that is no array."""
    return owner.base is not None or not owner.flags.owndata


def lender_of(a: np.ndarray) -> Any:
    """The object that lends array `a` its memory; None if that is an array, or unknown C code."""
    lender = owner_of(a).base
    while type(lender) is memoryview:
        behind = holder_behind(lender)
        if behind is None:
            break
        lender = behind
    return lender


def address(a: np.ndarray) -> int:
    """The address of the first element of `a`."""
    return a.__array_interface__["data"][0]


def extent(a: np.ndarray) -> tuple[int, int]:
    """Lowest address and number of bytes of the memory that `a` spans."""
    low = high = address(a)
    for n, stride in zip(a.shape, a.strides, strict=True):
        if n == 0:
            return low, 0
        if stride < 0:
            low += (n - 1) * stride
        else:
            high += (n - 1) * stride
    return low, high + a.itemsize - low


def overlaps_itself(a: np.ndarray) -> bool:
    """Whether two elements of `a` may lie at the same bytes (broadcast axes, sliding windows).

    Sorted by stride, each axis must step beyond the whole extent of the smaller ones. May say True for
    exotic layouts that do not overlap; that costs time, never correctness.
    """
    if a.flags.forc or a.size == 0:  # contiguous, in one order or the other
        return False
    reach = a.itemsize
    for stride, n in sorted((abs(stride), n) for stride, n in zip(a.strides, a.shape, strict=True) if n > 1):
        if stride < reach:
            return True
        reach = stride * (n - 1) + reach
    return False


def overwrites_unread(target: Any, v: np.ndarray) -> bool:
    """Whether `target[...] = v` overwrites elements of `v` before they are read.

    NumPy copies `v` first where the two share memory, except a vector that is assigned to a vector whose elements lie
    in the same direction: with another distance between them (a row assigned to a column) what is read may be new.
    """
    if type(target) is not np.ndarray or target.ndim != 1 or v.ndim == 0 or v.size != target.size:
        return False
    step, step_v = target.strides[0], v.strides[-1]
    if step * step_v <= 0 or step == step_v or not np.may_share_memory(target, v):
        return False
    n, apart = v.size, address(v) - address(target)
    unit = math.gcd(step, step_v, apart)
    step, step_v, apart = (8 * (x // unit) for x in (step, step_v, apart))  # the same places, for float64
    ends = (0, (n - 1) * step, apart, apart + (n - 1) * step_v)
    memory = np.empty((max(ends) - min(ends)) // 8 + 1)
    to = np.ndarray(n, float, memory, -min(ends), (step,))
    of = np.ndarray(n, float, memory, apart - min(ends), (step_v,))
    of[...] = np.arange(n)
    to[...] = of
    return not np.array_equal(to, np.arange(n))


def byte_offsets(a: np.ndarray, start: int) -> np.ndarray:
    """The distance in bytes of every element of `a` from address `start`."""
    offsets = np.full(a.shape, address(a) - start, np.intp)
    for axis, (n, stride) in enumerate(zip(a.shape, a.strides, strict=True)):
        steps = np.arange(n, dtype=np.intp) * stride
        offsets += steps.reshape((n,) + (1,) * (a.ndim - axis - 1))
    return offsets


class Shadow:
    """Cotangents by index: numbers, and for arrays a buffer shaped like the owner of the memory.

    The first cotangent of an array is kept as it came, without a copy; it is copied when something is to be
    added to it (`owned` holds the indices that may be written), or addressed like the owner's bytes (`laid`).
    """

    __slots__ = ("bars", "laid", "owned")

    def __init__(self, size: int, bars: Any = None) -> None:
        self.bars: Any = [None] * size if bars is None else bars
        self.owned: set[int] = set()
        self.laid: dict[int, Any] = {}  # index -> the bytes in order

    def add_number(self, index: int, x_bar: Any) -> None:
        """Add `x_bar` to the cotangent of a number."""
        bars = self.bars
        bars[index] = x_bar if bars[index] is None else bars[index] + x_bar

    def add_array(self, index: int, x: np.ndarray, x_bar: Any) -> None:
        """Add `x_bar`, of the shape of `x`, to the cotangent of array or view `x` in region `index`."""
        if x.base is None and x.dtype.names is None:
            bar = self.bars[index]
            if bar is None:
                self.bars[index] = x_bar
            elif index in self.owned:
                bar += x_bar
            else:
                self.bars[index] = np.asarray(np.add(bar, x_bar))
                self.owned.add(index)
        elif x.size:
            add_into(self.view(index, x), x_bar)

    def let_go(self, index: int) -> None:
        """Forget the cotangent of an array: the way back is at what made it, and nothing before that knows it."""
        self.bars[index] = None
        self.owned.discard(index)
        self.laid.pop(index, None)

    def read(self, index: int, x: np.ndarray) -> Any:
        """The cotangent of array or view `x` in region `index`, or None where nothing arrived. Not to be written."""
        bar = self.bars[index]
        if bar is None or x.base is None:
            return bar
        return self.view(index, x)

    def writable(self, index: int, x: np.ndarray) -> np.ndarray:
        """The cotangent of `x` as memory that may be written: zeros where nothing arrived."""
        if x.base is not None:
            return self.view(index, x)
        if index not in self.owned:
            bar = self.bars[index]
            self.bars[index] = np.zeros_like(x) if bar is None else np.array(bar, x.dtype)
            self.owned.add(index)
        return self.bars[index]

    def view(self, index: int, x: np.ndarray) -> np.ndarray:
        """The part of region `index`'s shadow that corresponds to view `x`: same offset, same strides."""
        owner = owner_of(x)  # of the region, or of its form
        if index not in self.laid:
            self._lay(index, owner)
        if x.size == 0:
            return np.zeros(x.shape, x.dtype)
        return np.ndarray(x.shape, x.dtype, self.laid[index], address(x) - extent(owner)[0], x.strides)

    def _lay(self, index: int, owner: np.ndarray) -> None:
        """Give region `index` a shadow with the byte layout of `owner`."""
        start, size = extent(owner)
        if owner.dtype.kind in "fc":
            flat = np.zeros(size // owner.itemsize, owner.dtype)  # a level further out can carry floats
        else:
            flat = np.zeros(size, np.uint8)
        whole = np.ndarray(owner.shape, owner.dtype, flat, address(owner) - start, owner.strides)
        bar = self.bars[index]
        if bar is not None and whole.size:
            whole[...] = bar
        self.bars[index] = whole
        self.owned.add(index)
        self.laid[index] = flat


MOST_TURNS = 32
WHOLE = np.empty(0)  # stands for any array that owns its memory, where only that matters


def whole_sum_back(shadow: Shadow, n: int, i: int | None, j: int | None, negative: bool) -> None:
    """z = a + b or a - b of whole arrays of one shape, or of one and a number: none of them is needed again."""
    z_bar = shadow.bars[n]
    if z_bar is not None:
        if i is not None:
            shadow.add_array(i, WHOLE, z_bar)
        if j is not None:
            shadow.add_array(j, WHOLE, -z_bar if negative else z_bar)


def whole_multiple_back(shadow: Shadow, n: int, i: int, factor: float, divided: bool) -> None:
    """z = a * factor or a / factor of a whole array."""
    z_bar = shadow.bars[n]
    if z_bar is not None:
        shadow.add_array(i, WHOLE, z_bar / factor if divided else z_bar * factor)


def add_into(target: np.ndarray, x_bar: Any) -> None:
    """target += x_bar, also where elements of `target` share bytes: then every term counts."""
    for name in target.dtype.names or ():
        add_into(target[name], x_bar[name])
    if target.dtype.names is not None:
        return
    if not overlaps_itself(target):
        target += x_bar
        return
    if added_in_turns(target, x_bar):
        return
    low, size = extent(target)
    item = target.itemsize
    offsets = byte_offsets(target, low)
    buffer = owner_of(target)
    flat = np.ndarray((size // item,), target.dtype, buffer, low - address(buffer))
    np.add.at(flat, offsets // item, np.broadcast_to(x_bar, target.shape))


def added_in_turns(target: np.ndarray, x_bar: Any) -> bool:
    """The same for windows: rows that lie so far apart that they share nothing are added at once; False for others."""
    best, turns = -1, MOST_TURNS + 1
    for axis in range(target.ndim):
        row = target[(slice(None),) * axis + (0,)]
        stride = abs(target.strides[axis])
        if stride and not overlaps_itself(row) and -(-extent(row)[1] // stride) < turns:
            best, turns = axis, -(-extent(row)[1] // stride)
    if best < 0:
        return False
    x_bar = np.broadcast_to(x_bar, target.shape)
    for first in range(min(turns, target.shape[best])):
        some = (slice(None),) * best + (slice(first, None, turns),)
        target[some] += x_bar[some]
    return True
