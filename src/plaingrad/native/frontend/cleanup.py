"""Exception handlers that only clean up, taken out of Numba's IR.

From CPython 3.12 on, a comprehension is part of its function: a `try` puts back what its variable was before, and
raises the exception again. Compiled code has nothing to put back. A user's own `try` stays, and is refused.
"""

from __future__ import annotations

from typing import Any

from numba.core import ir

CHECK = "exception_check"
MARKS = ("mark_try_block", "end_try_block", CHECK)


def without_cleanup(blocks: dict[Any, Any]) -> dict[Any, Any]:
    """`blocks` without handlers that raise again at once; as they are if any other handler is among them."""
    marks: dict[str, str] = {}  # result of a call of one of MARKS -> which
    for block in blocks.values():
        named = {
            s.target.name: s.value.name
            for s in block.body
            if isinstance(s, ir.Assign) and isinstance(s.value, ir.Global) and s.value.name in MARKS
        }
        for s in block.body if named else ():
            if isinstance(s, ir.Assign) and isinstance(s.value, ir.Expr) and s.value.op == "call":
                if s.value.func.name in named:
                    marks[s.target.name] = named[s.value.func.name]
    guarded = {
        label: block.terminator
        for label, block in blocks.items()
        if isinstance(block.terminator, ir.Branch) and marks.get(block.terminator.cond.name) == CHECK
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
            if isinstance(s, ir.Assign) and s.target.name in marks:
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
