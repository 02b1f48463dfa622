"""Which names of lists may stand for the same list where a loop begins."""

from __future__ import annotations

from numba.core import types

from plaingrad.native.program.builder import Draft
from plaingrad.native.program.ir import Let, Loop, Operand, Stmt, Var, statements

Span = tuple[int, int]  # the numbers of the first and the last statement of a loop


class ListNames:
    """The copies of lists in a program that has general loops only.

    Attributes:
        copies: variable -> (number, what it becomes another name for) of every statement that copies to it.
        made: variable -> the number of the statement that makes its list.
        spans: of every loop, by its identity.
    """

    def __init__(self, draft: Draft, body: list[Stmt]) -> None:
        self.copies: dict[str, list[tuple[int, Operand]]] = {}
        self.made: dict[str, int] = {}
        self.spans: dict[int, Span] = {}
        for number, s in enumerate(statements(body)):
            if isinstance(s, Loop):
                self.spans[id(s)] = number, number + sum(1 for _ in statements(s.body))
            elif isinstance(s, Let) and isinstance(draft.types.get(s.target), types.List):
                if s.op == "copy":
                    self.copies.setdefault(s.target, []).append((number, s.args[0]))
                else:
                    self.made[s.target] = number

    def may_be_one(self, a: Operand, b: Operand, loop: Loop) -> bool:
        """Whether a and b may be the same list in `loop`.

        A list that is made in every iteration of a loop around is not the one that is carried over from the iteration
        before, although both are made by the same statement.
        """
        here = self.spans[id(loop)]
        for x, before in self._origins(a, here):
            for y, also in self._origins(b, here):
                carried = before or also
                apart = carried is not None and (before is None or also is None)
                if x == y and not (apart and self._is_in(x, carried)):
                    return True
        return False

    def _is_in(self, x: Operand, span: Span | None) -> bool:
        number = self.made.get(x.name) if isinstance(x, Var) else None
        return number is not None and span is not None and span[0] < number <= span[1]

    def _origins(self, a: Operand, here: Span) -> set[tuple[Operand, Span | None]]:
        """(variable whose list is made or given, the innermost loop that has carried it over from an iteration before)
        for every list that `a` may be in the loop `here`."""
        found: set[tuple[Operand, Span | None]] = set()
        todo: list[tuple[Operand, Span | None]] = [(a, None)]
        seen: set[tuple[Operand, Span | None]] = set()
        while todo:
            x, carried = todo.pop()
            if (x, carried) in seen:
                continue
            seen.add((x, carried))
            copies = self.copies.get(x.name, ()) if isinstance(x, Var) else ()
            for number, source in copies:
                over = self._around(here[0], number) if number > here[1] else None
                todo.append((source, carried or over))
            if not copies:
                found.add((x, carried))
        return found

    def _around(self, a: int, b: int) -> Span | None:
        """The innermost loop that two statements are in."""
        spans = [span for span in self.spans.values() if span[0] < a and b <= span[1]]
        return max(spans, default=None)


__all__ = ["ListNames"]
