"""A code object as a list of instructions with indices for jump targets, and back again.

This module turns offsets into indices, so that instructions can be inserted, and lays the result out again. Names,
constants and locals keep their places; new ones are appended.
"""

from bisect import bisect_left
from functools import partial
from itertools import accumulate, compress
from types import CodeType
from typing import NamedTuple

from plaingrad.rewrite.encoding import (
    DECODED,
    EXTENDED_ARG,
    JUMPS,
    encoded,
    places,
    read_exceptions,
    table,
    write_exceptions,
)
from plaingrad.rewrite.locations import location_table


class Region(NamedTuple):
    """Instructions `start..stop` (inclusive) are guarded by the handler at `target`."""

    start: int
    stop: int
    target: int
    depth: int
    lasti: bool


IS_JUMP = table(dict.fromkeys(JUMPS, 1))


class Listing:
    """The instructions of a code object, and the regions of its exception table.

    Attributes:
        instructions: (name, argument) of each, 0 for one without argument; EXTENDED_ARG and CACHE are no instructions.
        opcodes: a byte for each.
        locations: (line, end line, column, end column) of each, each possibly None.
        targets: index of a jump -> index of the instruction that it goes to.
    """

    def __init__(self, code: CodeType) -> None:
        packed = code.co_code
        words = memoryview(packed).cast("H")  # an empty cache is zero, and nothing else
        self.instructions = list(compress(map(DECODED.__getitem__, words), words))
        self.starts = list(compress(range(len(words)), words))
        self.locations = list(compress(code.co_positions(), words))
        self.locations += [(None,) * 4] * (len(self.starts) - len(self.locations))  # a table may be cut short
        self.opcodes = bytes(compress(packed[::2], words))
        if EXTENDED_ARG in self.opcodes:
            self._join()
            self.opcodes = self.opcodes.replace(bytes((EXTENDED_ARG,)), b"")
        instructions, starts = self.instructions, self.starts
        ends = [*starts[1:], len(words)]
        self.targets = {}
        for i in places(self.opcodes, IS_JUMP):
            name, arg = instructions[i]
            self.targets[i] = bisect_left(starts, ends[i] + JUMPS[name] * arg)
        at = partial(bisect_left, starts)
        self.regions = [
            Region(at(start), at(start + length) - 1, at(handler), depth >> 1, bool(depth & 1))
            for start, length, handler, depth in read_exceptions(code.co_exceptiontable)
        ]

    def _join(self) -> None:
        """Make one instruction of EXTENDED_ARGs and what follows."""
        rows = list(zip(self.instructions, self.starts, self.locations, strict=True))
        self.instructions, self.starts, self.locations = [], [], []
        begun, extended = None, 0
        for (name, arg), start, place in rows:
            begun = start if begun is None else begun
            if name == "EXTENDED_ARG":
                extended = (extended | arg) << 8
                continue
            self.instructions.append((name, extended | arg))
            self.starts.append(begun)
            self.locations.append(place)
            begun, extended = None, 0


class Layout:
    """Instructions on their way to a code object.

    Attributes:
        pieces: bytes, each of instructions at one place.
        places: the location of each piece.
        jumps: (index of a piece, name, i): it is a jump to where `first[i]` says.
        first: for each index i that jumps and regions speak of, the piece that it begins with.
    """

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.places: list[tuple] = []
        self.jumps: list[tuple[int, str, int]] = []
        self.first: list[int] = []
        self.offsets: list[int] = []

    def settle(self) -> None:
        """Find where the pieces begin, in bytes, and how far jumps go."""
        pieces, first = self.pieces, self.first
        while True:
            self.offsets = offsets = [0, *accumulate(map(len, pieces))]
            grown = False
            for i, name, goal in self.jumps:
                before = pieces[i]
                # never shrinks, or the layout might not settle
                pieces[i] = jump = encoded(
                    name, abs(offsets[first[goal]] - offsets[i + 1]) // 2, prefixes(before)
                )
                grown |= len(jump) != len(before)
            if not grown:
                return

    def code(self, model: CodeType, regions: list[Region], **fields) -> CodeType:
        """The code object: in all but `fields` like `model`."""
        self.settle()
        first, offsets = self.first, self.offsets
        table = []
        for region in regions:
            start = offsets[first[region.start]] // 2
            length = offsets[first[region.stop + 1]] // 2 - start
            handler = offsets[first[region.target]] // 2
            table.append((start, length, handler, region.depth << 1 | region.lasti))
        words = [len(piece) // 2 for piece in self.pieces]
        return model.replace(
            co_code=b"".join(self.pieces),
            co_linetable=location_table(model.co_firstlineno, self.places, words),
            co_exceptiontable=write_exceptions(table),
            **fields,
        )


def prefixes(piece: bytes) -> int:
    """The number of EXTENDED_ARGs that an instruction begins with."""
    count = 0
    while piece[2 * count] == EXTENDED_ARG:
        count += 1
    return count
