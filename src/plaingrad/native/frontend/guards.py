"""`try` in Numba's IR: which blocks are guarded by which handler; the marks that say so are taken out.

Numba marks where a `try` begins and ends, and asks behind every instruction in it whether something was raised. What
asks is a guarded block, and its handler is where it goes then. A handler that only raises again guards nothing: from
CPython 3.12 on, a comprehension is part of its function, and a `try` puts back what its variable was before; compiled
code has nothing to put back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from numba.core import ir
from numba.core.unsafe import eh

MARKS = {eh.mark_try_block: 1, eh.end_try_block: -1, eh.exception_check: 0}  # -> how many `try` deeper
RAISED = {  # what raises in a `try` -> what does elsewhere
    ir.TryRaise: lambda s: ir.Raise(s.exception, s.loc),
    ir.StaticTryRaise: lambda s: ir.StaticRaise(s.exc_class, s.exc_args, s.loc),
    ir.DynamicTryRaise: lambda s: ir.DynamicRaise(s.exc_class, s.exc_args, s.loc),
}


@dataclass(slots=True)
class Guarded:
    """Blocks without marks.

    Attributes:
        blocks: the blocks; a guarded one goes on with what follows where nothing is raised.
        handlers: guarded block -> the first block of its handler.
        inside: blocks inside of a `try` that ask for no exception.
    """

    blocks: dict[Any, Any]
    handlers: dict[Any, Any] = field(default_factory=dict)
    inside: set[Any] = field(default_factory=set)


def guarded(blocks: dict[Any, Any]) -> Guarded:
    """`blocks` with the handlers that guard them told apart."""
    marks = _marks(blocks)
    if not marks:
        return Guarded(blocks)
    ends = {
        label: block.terminator
        for label, block in blocks.items()
        if isinstance(block.terminator, ir.Branch)
        and marks.get(block.terminator.cond.name) is eh.exception_check
    }
    again = _raising_again(blocks, marks)
    out = Guarded({})
    out.handlers = {label: end.truebr for label, end in ends.items() if end.truebr not in again}
    depths = _depths(blocks, marks)
    out.inside = {label for label, depth in depths.items() if depth > 0 and label not in ends}
    wanted = [label for label in blocks if label not in again]
    for label in wanted:  # grows by what a `finally` raises again, at its end
        if label not in out.blocks:
            block = blocks[label]
            new = out.blocks[label] = ir.Block(block.scope, block.loc)
            for s in _unmarked(block, marks, again, label in ends):
                new.append(s)
            wanted += _after(new)
    out.blocks = {label: out.blocks[label] for label in blocks if label in out.blocks}
    return out


def _after(block: Any) -> list[Any]:
    """Where a block goes on."""
    end = block.terminator
    return list(end.get_targets()) if isinstance(end, (ir.Jump, ir.Branch)) else []


def _marks(blocks: dict[Any, Any]) -> dict[str, Any]:
    """Variable that is, or is the result of, one of MARKS -> which."""
    found: dict[str, Any] = {}
    for block in blocks.values():
        for s in block.find_insts(ir.Assign):
            if isinstance(s.value, ir.Global) and any(s.value.value is mark for mark in MARKS):
                found[s.target.name] = s.value.value
            elif isinstance(s.value, ir.Expr) and s.value.op == "call" and s.value.func.name in found:
                found[s.target.name] = found[s.value.func.name]
    return found


def _raising_again(blocks: dict[Any, Any], marks: dict[str, Any]) -> set[Any]:
    """The blocks that do nothing but raise what was caught."""
    found: set[Any] = set()
    while True:
        more = {label for label, block in blocks.items() if _raises_again(block, marks, found)}
        if more == found:
            return found
        found = more


def _raises_again(block: Any, marks: dict[str, Any], others: set[Any]) -> bool:
    end = block.terminator
    for s in block.body[:-1]:
        called = isinstance(s, ir.Assign) and isinstance(s.value, ir.Expr) and s.value.op == "call"
        raises = type(s) in RAISED and not is_given(s)
        if not (raises or isinstance(s, (ir.Assign, ir.Del))) or (called and s.target.name not in marks):
            return False
    if isinstance(end, ir.StaticRaise):
        return end.exc_class is AssertionError and "RERAISE" in str(end.exc_args)
    after = _after(block)
    return bool(after) and all(label in others for label in after)


def _depths(blocks: dict[Any, Any], marks: dict[str, Any]) -> dict[Any, int]:
    """Block -> how many `try` are open at its end."""
    found: dict[Any, int] = {}
    open_ = [(min(blocks), 0)]
    while open_:
        label, depth = open_.pop()
        if label in found:
            continue
        for s in blocks[label].find_insts(ir.Assign):
            if isinstance(s.value, ir.Expr) and s.target.name in marks:
                depth += MARKS[marks[s.target.name]]
        found[label] = depth
        open_ += [(after, depth) for after in _after(blocks[label])]
    return found


def _unmarked(block: Any, marks: dict[str, Any], again: set[Any], is_guarded: bool) -> list[Any]:
    """The statements of a block without marks, and without ways that only raise again."""
    out: list[Any] = []
    end = block.terminator
    for s in block.body:
        make: Callable[[Any], Any] | None = RAISED.get(type(s))
        if isinstance(s, ir.Assign) and s.target.name in marks:
            continue
        if make is not None:
            if end.get_targets()[0] not in again or not is_given(s):
                continue  # the block goes to the handler, or to what raises again
            return [*out, make(s)]
        if s is end and isinstance(s, ir.Branch):
            if is_guarded:
                s = ir.Jump(s.falsebr, s.loc)
            elif s.falsebr in again and s.truebr not in again:  # every exception is an Exception
                s = ir.Jump(s.truebr, s.loc)
        out.append(s)
    return out


def is_given(s: Any) -> bool:
    """Whether what raises says what, other than `raise` alone, which raises what was caught."""
    return (s.exception if isinstance(s, ir.TryRaise) else s.exc_class) is not None


__all__ = ["Guarded", "guarded"]
