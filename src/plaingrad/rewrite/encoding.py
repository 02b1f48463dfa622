"""How CPython packs instructions and exception tables into bytes: opcodes, widths, variable-length integers.

What the modules `dis` and `opcode` say of the running version is turned into tables once.
"""

import dis
import opcode
import sys
from functools import lru_cache
from itertools import compress

EXTENDED_ARG = dis.opmap["EXTENDED_ARG"]
HAS_ARGUMENT = frozenset(
    dis.hasarg if hasattr(dis, "hasarg") else range(dis.HAVE_ARGUMENT, 256)  # type: ignore[attr-defined]
)


def cache_words(name: str) -> int:
    """The number of inline cache words after the instruction."""
    entries = opcode._inline_cache_entries  # type: ignore[attr-defined]
    return entries.get(name, 0) if isinstance(entries, dict) else entries[dis.opmap[name]]


#: Instructions that jump, and in which direction their argument counts.
JUMPS = {
    name: -1 if "BACKWARD" in name or name == "END_ASYNC_FOR" else 1
    for name, op in dis.opmap.items()
    if op in dis.hasjrel
}


def table(of) -> bytes:
    """The number, up to 255, that `of` gives for the name of each opcode, as a table for `bytes.translate`."""
    return bytes([of.get(name, 0) for name in dis.opname[:256]])


def places(opcodes: bytes, marked: bytes) -> list[int]:
    """Where in a row of opcodes those are that a table marks."""
    return list(compress(range(len(opcodes)), opcodes.translate(marked)))


class Decoded(dict):
    """(name, argument) by the number that the two bytes of an instruction are to this machine."""

    def __missing__(self, word):
        op, arg = word.to_bytes(2, sys.byteorder)
        found = self[word] = dis.opname[op], arg if op in HAS_ARGUMENT else 0
        return found


DECODED = Decoded()


@lru_cache(maxsize=4096)
def encoded(name: str, arg: int = 0, extended: int = 0) -> bytes:
    """The bytes of an instruction: at least so many EXTENDED_ARGs, itself, and its empty caches."""
    op = dis.opmap[name]
    found = bytes((op, arg & 0xFF)) + bytes(2 * cache_words(name))
    while arg > 0xFF or extended > 0:
        arg >>= 8
        extended -= 1
        found = bytes((EXTENDED_ARG, arg & 0xFF)) + found
    return found


class Encoded(dict):
    """The bytes of an instruction (name, argument), found again without a call."""

    def __missing__(self, instruction):
        found = self[instruction] = encoded(*instruction)
        return found


@lru_cache(maxsize=4096)
def effect(name: str, arg: int, jump: bool = False) -> int:
    """How much deeper the stack is after the instruction."""
    if name == "RETURN_GENERATOR":
        return 1  # the first value sent, which a POP_TOP takes off; not every `dis` counts it
    op = dis.opmap[name]
    return dis.stack_effect(op, arg if op in HAS_ARGUMENT else None, jump=jump)


# The exception table: for each region its start, length, handler (in code units) and depth << 1 | lasti, each in groups
# of six bits, the highest first. 0x40 says that another group follows, 0x80 that a region begins.


def read_exceptions(table: bytes) -> list[list[int]]:
    """[start, length, handler, depth << 1 | lasti] of each region."""
    found: list[int] = []
    n = 0
    for byte in table:
        n = n << 6 | byte & 0x3F
        if not byte & 0x40:
            found.append(n)
            n = 0
    return [found[k : k + 4] for k in range(0, len(found), 4)]


def write_exceptions(regions: list[tuple[int, int, int, int]]) -> bytes:
    """The table of such regions."""
    table = bytearray()
    for region in regions:
        begun = len(table)
        for n in region:
            shift = max(n.bit_length() - 1, 0) // 6 * 6
            while shift:
                table.append(0x40 | n >> shift & 0x3F)
                shift -= 6
            table.append(n & 0x3F)
        table[begun] |= 0x80
    return bytes(table)
