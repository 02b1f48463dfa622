"""Statements that the way back of an iteration does once more, before it reads what they write into memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plaingrad.native.program.ir import For, Let, Stmt, Var, renamed, statements

if TYPE_CHECKING:
    from plaingrad.native.reverse.reverse import Reverse


class Replay:
    """The loops of one iteration of a loop that fill memory again.

    Attributes:
        fills: array -> the loop that fills it.
    """

    def __init__(self, rt: Reverse, s: Stmt) -> None:
        self.rt = rt
        known = isinstance(s, For) and isinstance(rt.arena, Var) and rt.forms.refilled is not None
        self.fills = rt.forms.refilled(rt, s) if known else {}  # type: ignore[misc, arg-type]

    def __enter__(self) -> Replay:
        self.rt.refilled |= self.fills.keys()
        return self

    def __exit__(self, *_: object) -> None:
        self.rt.refilled -= self.fills.keys()

    def needed(self, body: list[Stmt]) -> list[Stmt]:
        """The loops that fill what `body` reads elements of, with variables of their own."""
        out: list[Stmt] = []
        read = {x.args[0] for x in statements(body) if isinstance(x, Let) and x.op == "item"}
        for name, fill in self.fills.items():
            if Var(name) in read:
                names = {x.target for x in statements([fill]) if isinstance(x, (Let, For))}
                new = {old: self.rt.fresh(old) for old in sorted(names)}
                self.rt.types.update({new[old]: self.rt.types[old] for old in new if old in self.rt.types})
                out += renamed([fill], new)
        return out
