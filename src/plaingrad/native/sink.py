"""Recomputed values where they are used: below the same branches as in the program, where their operands are valid.

On the way back of `if i < n: s += a[i] * x`, `a[i]` may be read only where the branch was taken: elsewhere the index may
lie outside, a divisor may be zero, and an operand that only that branch computes was never kept.
"""

from __future__ import annotations

from plaingrad.native.tree import If, Let, Stmt, Var, reads_of


def sunk(definitions: list[Let], body: list[Stmt]) -> list[Stmt]:
    """`body` with `definitions`, each at the top of the innermost arms of branches that hold all of its uses."""
    for definition in reversed(definitions):
        body = _placed(definition, body)
    return body


def _placed(definition: Let, body: list[Stmt]) -> list[Stmt]:
    uses = [k for k, s in enumerate(body) if definition.target in reads_of([s])]
    if not uses:
        return body
    k = uses[0]
    s = body[k]
    if len(uses) == 1 and isinstance(s, If) and s.test != Var(definition.target):
        arms = _placed(definition, s.then), _placed(definition, s.orelse)
        return [*body[:k], If(s.test, *arms, s.line), *body[k + 1 :]]
    return [definition, *body]
