"""The tangents of memory: a second buffer for each object that owns active memory, addressed like the first.

A tangent has the shape of its array behind `lead`, the axes of a chunk: () for one tangent, (n,) for n at once.

Ordinary Python over arrays: under a nested derivative it runs rewritten, at the next level out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from plaingrad.critical import shared_lock
from plaingrad.engine.memory.memory import address, extent, owner_of

MAKING = shared_lock()  # held while a buffer is made: threads may fill one array


def while_making(make: Callable[[np.ndarray], None], x: np.ndarray) -> None:
    """make(x) while this thread holds `MAKING`.

    As `critical.exclusively`, but of this module, which runs rewritten where a level is further out.
    """
    if MAKING._is_owned():
        make(x)
        return
    try:
        try:
            try:
                try:
                    try:
                        MAKING.acquire()
                        make(x)
                    finally:
                        if MAKING._is_owned():
                            MAKING.release()
                except BaseException:
                    if MAKING._is_owned():
                        MAKING.release()
                    raise
            except BaseException:
                if MAKING._is_owned():
                    MAKING.release()
                raise
        except BaseException:
            if MAKING._is_owned():
                MAKING.release()
            raise
    except BaseException:
        if MAKING._is_owned():
            MAKING.release()
        raise


class Region:
    """The tangents of the memory that one object owns; `None` stands for zero until something is written.

    The buffer is nobody else's: what is adopted was made for it, and what is read must be copied to be kept.
    """

    __slots__ = ("dot", "flat", "lead", "start")

    def __init__(self, lead: tuple[int, ...], dot: Any = None) -> None:
        self.lead = lead
        self.dot: Any = dot
        self.flat: Any = None  # the same buffer as one run of memory, once a view was asked for
        self.start = 0  # the address that it stands for

    def read(self, x: np.ndarray) -> Any:
        """The tangent of array or view `x`, or None where all of it is zero; not to be written nor kept."""
        if x.base is None or self.dot is None:
            return self.dot
        return self.view(x)

    def writable(self, x: np.ndarray) -> np.ndarray:
        """The tangent of `x` as memory to write into."""
        if x.base is not None:
            return self.view(x)
        if self.dot is None:
            while_making(self._make, x)
            assert self.dot is not None
        return self.dot

    def _make(self, x: np.ndarray) -> None:
        if self.dot is None:
            self.dot = np.zeros(self.lead + x.shape, x.dtype)

    def view(self, x: np.ndarray) -> np.ndarray:
        """The part of the buffer that corresponds to view `x`: same offset, same strides."""
        if self.flat is None:
            while_making(self._lay_once, x)
        if x.size == 0:
            return np.zeros(self.lead + x.shape, x.dtype)
        strides = self.flat.strides[: len(self.lead)] + x.strides
        return np.ndarray(self.lead + x.shape, x.dtype, self.flat, address(x) - self.start, strides)

    def _lay_once(self, x: np.ndarray) -> None:
        if self.flat is None:
            self.lay(owner_of(x))

    def lay(self, owner: np.ndarray) -> None:
        """Give the buffer the byte layout of `owner`."""
        start, size = extent(owner)
        lead = self.lead
        dot = self.dot
        if (
            dot is not None
            and owner.dtype == dot.dtype
            and owner.flags.c_contiguous
            and dot.flags.c_contiguous
        ):  # it has the layout: another thread may be writing into it
            self.start = start
            self.flat = dot.reshape((*lead, -1) if dot.size else (*lead, 0))
            return
        if owner.dtype.kind in "fc":
            flat = np.zeros(
                (*lead, size // owner.itemsize), owner.dtype
            )  # a level further out can carry floats
        else:
            flat = np.zeros((*lead, size), np.uint8)
        strides = flat.strides[: len(lead)] + owner.strides
        if owner.size:
            whole = np.ndarray(lead + owner.shape, owner.dtype, flat, address(owner) - start, strides)
        else:
            whole = np.zeros(lead + owner.shape, owner.dtype)
        if self.dot is not None and whole.size:
            whole[...] = self.dot
        self.dot = whole
        self.start = start
        self.flat = flat  # last: other threads look for it without the lock


def may_lead(key: Any) -> bool:
    """Whether a[key] for every tangent of a chunk is one indexing with a slice in front.

    NumPy moves the axes of arrays in a key to the front when a slice stands between them.
    """
    parts = key if type(key) is tuple else (key,)
    return sum(isinstance(part, (np.ndarray, list)) for part in parts) == 0 or len(parts) == 1


def behind_lead(key: Any) -> tuple[Any, ...]:
    """The key that takes a[key] of every tangent of a chunk."""
    return (slice(None), *key) if type(key) is tuple else (slice(None), key)


def read_item(region: Region, a: np.ndarray, key: Any) -> Any:
    """The tangent of a[key], in memory of its own; None for zero."""
    dot = region.read(a)
    if dot is None:
        return None
    if not region.lead:
        found = dot[key]
    elif may_lead(key):
        found = dot[behind_lead(key)]
    else:
        return np.stack([dot[k, ...][key] for k in range(len(dot))])
    return np.array(found) if isinstance(found, np.ndarray) else found


def write_item(region: Region, a: np.ndarray, key: Any, v_dot: Any) -> None:
    """The tangent of a[key] becomes `v_dot`; None for zero."""
    dot = region.writable(a)
    lead = region.lead
    if v_dot is None:
        if not lead or may_lead(key):
            dot[behind_lead(key) if lead else key] = 0
        else:
            for k in range(len(dot)):
                dot[k, ...][key] = 0
    elif not lead:
        dot[key] = np.real(v_dot) if dot.dtype.kind != "c" and np.iscomplexobj(v_dot) else v_dot
    else:
        for k in range(len(dot)):
            each = v_dot[k]
            dot[k, ...][key] = np.real(each) if dot.dtype.kind != "c" and np.iscomplexobj(each) else each


def update_whole(region: Region, a: np.ndarray, z_dot: Any) -> None:
    """The tangent of all of `a` becomes `z_dot`."""
    region.writable(a)[...] = 0 if z_dot is None else z_dot


def add_to_whole(region: Region, a: np.ndarray, b_dot: Any, sign: int) -> None:
    """a_dot += sign * b_dot, which is aligned with it."""
    dot = region.writable(a)
    if sign > 0:
        dot += b_dot
    else:
        dot -= b_dot
