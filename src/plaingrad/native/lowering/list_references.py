"""References that lists of arrays hold, counted: methods that Numba gets wrong are replaced."""

from __future__ import annotations

from dataclasses import replace

from plaingrad.native.program.ir import Do, Let, Program, Ref, Stmt, with_inner
from plaingrad.native.program.value_types import is_array_list
from plaingrad.native.runtime.list_helpers import emptied, popped


def with_references_counted(program: Program) -> Program:
    """`program` with functions for those methods of lists of arrays that Numba gets wrong."""
    if not any(map(is_array_list, program.types.values())):
        return program

    def let(s: Let) -> Let:
        if s.op == "method" and is_array_list(program.types.get(getattr(s.args[0], "name", ""))):
            f = {("pop", 2): popped, ("clear", 1): emptied}.get((s.detail[0], len(s.args)))
            if f is not None:
                return replace(s, op="call", args=(Ref(f, f.__name__), *s.args), detail=())
        return s

    def body(old: list[Stmt]) -> list[Stmt]:
        out: list[Stmt] = []
        for s in old:
            if isinstance(s, Let):
                s = let(s)
            elif isinstance(s, Do):
                s = Do(let(s.call), s.line)
            out.append(with_inner(s, body))
        return out

    return replace(program, body=body(program.body))
