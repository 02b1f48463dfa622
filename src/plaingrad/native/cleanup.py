"""Exception handlers that only clean up, taken out of Numba's IR.

From CPython 3.12 on, a comprehension is part of its function: a `try` puts back what its variable was before, and
raises the exception again. Compiled code has nothing to put back. A user's own `try` stays, and is refused.
"""

from __future__ import annotations

from typing import Any

from numba.core import ir

MARKS = ("mark_try_block", "end_try_block")


def without_cleanup(blocks: dict[Any, Any]) -> dict[Any, Any]:
    """`blocks` without handlers that raise again at once; as they are if any other handler is among them."""
    checks = {
        s.target.name
        for block in blocks.values()
        for s in block.body
        if isinstance(s, ir.Assign) and _called(s.value, block) == "exception_check"
    }
    guarded = {
        label: block.terminator
        for label, block in blocks.items()
        if isinstance(block.terminator, ir.Branch) and block.terminator.cond.name in checks
    }
    if not guarded:
        return blocks
    handlers: set[Any] = set()
    while True:
        found = {label for label, block in blocks.items() if _raises_again(block, handlers)}
        if found == handlers:
            break
        handlers = found
    if any(end.truebr not in handlers for end in guarded.values()):
        return blocks
    kept: dict[Any, Any] = {}
    for label, block in blocks.items():
        if label in handlers:
            continue
        new = kept[label] = ir.Block(block.scope, block.loc)
        for s in block.body:
            if isinstance(s, ir.Assign) and _called(s.value, block) in (*MARKS, "exception_check"):
                continue
            if label in guarded and s is guarded[label]:
                s = ir.Jump(s.falsebr, s.loc)
            new.append(s)
    return kept


def _raises_again(block: Any, handlers: set[Any]) -> bool:
    end = block.terminator
    if isinstance(end, ir.StaticRaise):
        return end.exc_class is AssertionError and "RERAISE" in str(end.exc_args)
    after = end.get_targets() if isinstance(end, (ir.Jump, ir.Branch)) else ()
    return bool(after) and all(label in handlers for label in after)


def _called(value: Any, block: Any) -> str:
    """The name of the global function that an expression calls; "" if it is none."""
    if not (isinstance(value, ir.Expr) and value.op == "call"):
        return ""
    for s in block.body:
        if isinstance(s, ir.Assign) and s.target.name == value.func.name:
            return s.value.name if isinstance(s.value, ir.Global) else ""
    return ""
