"""A code object as a list of instructions with indices for jump targets, and back again.

Bytes and exception tables are decoded and encoded by the `bytecode` package; this module turns offsets into indices,
so that instructions can be inserted, and lays the result out again. Names, constants and locals keep their places; new
ones are appended.
"""

from dataclasses import dataclass
from functools import cache
from types import CodeType
from typing import Any, NamedTuple

from bytecode import UNSET, ConcreteBytecode, ConcreteInstr
from bytecode.concrete import ExceptionTableEntry

from plaingrad.rewrite.locations import location_table


class Line(NamedTuple):
    """One instruction: `arg` as in the bytes (UNSET without), `target` the index a jump goes to, or None.

    `location` is (line, end line, column, end column), each possibly None.
    """

    name: str
    arg: Any
    location: tuple
    target: int | None


class Region(NamedTuple):
    """Instructions `start..stop` (inclusive) are guarded by the handler at `target`."""

    start: int
    stop: int
    target: int
    depth: int
    lasti: bool


@cache
def caches(name: str) -> int:
    """The number of inline cache words after the instruction."""
    return ConcreteInstr(name, UNSET if name in without_argument() else 0).use_cache_opcodes()


@cache
def without_argument() -> frozenset:
    """The names of the instructions that have no argument."""
    import dis

    if hasattr(dis, "hasarg"):
        return frozenset(name for name, op in dis.opmap.items() if op not in dis.hasarg)
    return frozenset(name for name, op in dis.opmap.items() if op < dis.HAVE_ARGUMENT)


@dataclass
class Listing:
    """The instructions of a code object and the regions of its exception table."""

    shell: ConcreteBytecode
    lines: list
    regions: list

    @classmethod
    def of(cls, code: CodeType) -> "Listing":
        """The listing of `code`."""
        shell = ConcreteBytecode.from_code(code)
        found, owner, offset = [], [], 0
        for instr in shell:
            words = instr.size // 2
            if instr.name != "CACHE":
                found.append((instr, offset))
            owner.extend([len(found) - 1] * words)
            offset += words
        lines, locations = [], list(code.co_positions())
        locations += [(None,) * 4] * (len(owner) - len(locations))  # a table may be cut short
        for instr, offset in found:
            target = instr.get_jump_target(offset)
            goal = None if target is None else owner[target]
            lines.append(Line(instr.name, instr.arg, locations[offset], goal))
        regions = [
            Region(owner[e.start_offset], owner[e.stop_offset], owner[e.target], e.stack_depth, e.push_lasti)
            for e in shell.exception_table
        ]
        return cls(shell, lines, regions)


def assemble(shell: ConcreteBytecode, lines: list, first: list, regions: list, stacksize: int) -> CodeType:
    """The code object of `lines`, whose targets and `regions` speak of indices i that begin at `first[i]`."""
    jumps = [i for i, line in enumerate(lines) if line.target is not None]
    instrs = [ConcreteInstr(line.name, line.arg) for line in lines]
    tail = [caches(line.name) for line in lines]
    while True:
        offsets = [0]
        for instr, extra in zip(instrs, tail):
            offsets.append(offsets[-1] + instr.size // 2 + extra)
        grown = False
        for i in jumps:
            instr, goal = instrs[i], offsets[first[lines[i].target]]
            distance = abs(goal - offsets[i + 1])
            if instr.arg != distance:
                size = instr.size
                # never shrinks, or the layout might not settle
                extended = max(size // 2 - 1, _extended(distance))
                instrs[i] = ConcreteInstr(instr.name, distance, extended_args=extended)
                grown |= instrs[i].size != size
        if not grown:
            break
    shell[:] = _with_caches(instrs, tail)
    shell.exception_table = [
        ExceptionTableEntry(
            offsets[first[region.start]],
            offsets[first[region.stop + 1]] - 1,
            offsets[first[region.target]],
            region.depth,
            region.lasti,
        )
        for region in regions
    ]
    code = shell.to_code(stacksize, compute_exception_stack_depths=False)
    words = [after - before for before, after in zip(offsets, offsets[1:])]
    places = [line.location for line in lines]
    return code.replace(co_linetable=location_table(shell.first_lineno, places, words))


def _extended(arg):
    return (arg > 0xFF) + (arg > 0xFFFF) + (arg > 0xFFFFFF)


def _with_caches(instrs, tail):
    empty, everything = ConcreteInstr("CACHE", 0), []
    for instr, extra in zip(instrs, tail):
        everything.append(instr)
        if extra:
            everything += [empty] * extra
    return everything
