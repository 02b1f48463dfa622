"""Bytes of differentiated arrays (`x.tobytes()`): they may be hashed, compared and kept, but not read as numbers again.

A program uses them as the key of a table, or makes a checksum of them; what follows from a comparison is control flow.
The bytes of every element are remembered; whoever makes numbers of bytes asks whether some of them are among these.
"""

from __future__ import annotations

import array
import mmap
from typing import Any

import numpy as np

from plaingrad.engine.values import array_classes

MOST = 100_000  # so many bytes are compared, and so many elements remembered
BYTES = (bytes, bytearray, memoryview, mmap.mmap, array.array)
NOTE = "bytes"  # a key that says in a table of texts that bytes are remembered, too


class RawBytes:
    """What left as bytes: the bytes of single real numbers, in either order, by how many they are."""

    __slots__ = ("overflowed", "patterns")

    def __init__(self) -> None:
        self.patterns: dict[int, set[bytes]] = {}
        self.overflowed = False  # not all are here

    def __bool__(self) -> bool:
        return bool(self.patterns)

    def clear(self) -> None:
        """Forget everything."""
        self.patterns.clear()
        self.overflowed = False

    def remember(self, a: np.ndarray | np.generic) -> None:
        """The numbers in `a` leave as bytes."""
        flat = np.array(array_classes.bare(a) if isinstance(a, np.ndarray) else a).reshape(-1)
        size = flat.itemsize // (2 if flat.dtype.kind == "c" else 1)
        patterns = self.patterns.setdefault(size, set())
        self.overflowed |= flat.size > MOST
        data = flat[:MOST].tobytes()
        for k in range(0, len(data), size):
            one = data[k : k + size]
            patterns.add(one)
            patterns.add(one[::-1])

    def are_in(self, data: bytes) -> bool:
        """Whether one of the numbers may stand in `data`."""
        if len(data) > MOST or self.overflowed:
            return len(data) >= min(self.patterns, default=0)
        return any(
            data[k : k + size] in patterns
            for size, patterns in self.patterns.items()
            for k in range(len(data) - size + 1)
        )

    def find(self, x: Any, depth: int = 4) -> bool:
        """Whether one of the numbers may stand in the bytes that `x` is or holds."""
        if isinstance(x, str):
            return self.are_in(x.encode("latin-1", "ignore"))
        if isinstance(x, BYTES):
            return self.are_in(bytes_of(x))
        if isinstance(x, (np.ndarray, np.generic)):
            if x.dtype.kind == "O":
                return depth > 0 and any(self.find(part, depth - 1) for part in np.ravel(x).tolist())
            return x.dtype.kind in "SUV" and self.are_in(x.tobytes())
        if isinstance(x, (list, tuple, set, frozenset)):
            return depth > 0 and any(self.find(part, depth - 1) for part in x)
        if isinstance(x, dict):
            return depth > 0 and any(self.find(part, depth - 1) for pair in x.items() for part in pair)
        if hasattr(x, "getvalue") and not getattr(x, "closed", False):  # a stream in memory
            return self.find(x.getvalue(), 0)
        return False


def bytes_of(x: Any) -> bytes:
    """The beginning of a block of memory."""
    if type(x) is bytes:
        return x
    try:
        with memoryview(x) as view:
            return view.tobytes()[: MOST + 1]
    except (TypeError, ValueError, BufferError):
        return b""
