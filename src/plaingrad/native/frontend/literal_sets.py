"""Sets that are written where a program asks whether something is in them: `x in {1, 2}`."""

from __future__ import annotations

import operator
from typing import Any

from numba.core import ir


def only_asked(blocks: dict[Any, Any]) -> frozenset[str]:
    """The variables of `blocks` that hold a set of given entries, of which nothing but `in` is asked."""
    made: set[str] = set()
    used: set[str] = set()
    for block in blocks.values():
        for s in block.body:
            if isinstance(s, ir.Del):
                continue
            value = getattr(s, "value", None)
            if isinstance(s, ir.Assign) and isinstance(value, ir.Expr):
                if value.op == "build_set":
                    made.add(s.target.name)
                elif value.op == "binop" and value.fn is operator.contains:
                    used.add(value.rhs.name)
                    continue
            written = s.target.name if isinstance(s, ir.Assign) else ""
            used |= {v.name for v in s.list_vars() if v.name != written}
    return frozenset(made - used)


__all__ = ["only_asked"]
