"""First contributions to cotangents of arrays: taken as they are, instead of being added to zeros.

That is done where the contribution is an array of its own, or one that ends there. `cotangent_arrays.resolved` asks
here about the buffers that are pending.

Whether the shapes agree (operands may have been broadcast) is known only when the program runs, so the functions
below decide; where they do not agree, zeros are filled in and summed into as ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import types

from plaingrad.native.program.ir import Do, For, If, Let, Loop, Operand, Ref, Stmt, Var, operands
from plaingrad.native.runtime import products
from plaingrad.native.runtime.declare import overload
from plaingrad.native.runtime.helpers import add_to

PUTTING = {products.add_dot_a: products.put_dot_a, products.add_dot_b: products.put_dot_b}


def adopted(buffer, term):  # type: ignore[no-untyped-def]
    """`term`, summed over the axes along which `buffer` was broadcast: itself, or in the memory of `buffer`."""
    if (
        buffer.shape == getattr(term, "shape", None)
        and buffer.dtype == term.dtype
        and term.flags.c_contiguous
    ):
        return term
    buffer.fill(0.0)
    add_to(buffer, term)
    return buffer


def spare(buffer, term):  # type: ignore[no-untyped-def]
    """The one of the two that `adopted` did not return, of the shape of `term`; `term` if it was not adopted."""
    return buffer if buffer.shape == term.shape else term


@overload(adopted)
def _adopted(buffer, term):  # type: ignore[no-untyped-def]
    if isinstance(term, types.Array) and term == buffer:

        def take_or_add(buffer, term):  # type: ignore[no-untyped-def]
            if buffer.shape == term.shape:
                return term
            buffer.fill(0.0)
            add_to(buffer, term)
            return buffer

        return take_or_add

    def add(buffer, term):  # type: ignore[no-untyped-def]
        buffer.fill(0.0)
        add_to(buffer, term)
        return buffer

    return add


@overload(spare)
def _spare(buffer, term):  # type: ignore[no-untyped-def]
    return spare


class Contribution:
    """A statement that adds to an array.

    Attributes:
        f: the function that adds.
        to: the name of the array.
        of: the other operands.
    """

    def __init__(self, f: Any, to: str, of: tuple[Operand, ...]) -> None:
        self.f, self.to, self.of = f, to, of


def contribution(s: Stmt) -> Contribution | None:
    """What a statement adds to an array; None if it is another statement."""
    if not isinstance(s, Do) or s.call.op != "call" or len(s.call.args) < 3:
        return None
    f, to, *of = s.call.args
    if (
        isinstance(f, Ref)
        and isinstance(to, Var)
        and (f.value is add_to or f.value in PUTTING)
        and to not in of
    ):
        return Contribution(f.value, to.name, tuple(of))
    return None


def put(given: Contribution, line: int) -> Stmt | None:
    """The product of two matrices put where it would be added; None for other contributions."""
    f = PUTTING.get(given.f)
    if f is None:
        return None
    return Do(Let("_", "call", (Ref(f, f.__name__), Var(given.to), *given.of), (), line), line)


def take(to: str, buffer: str, term: Var, line: int) -> Stmt:
    """to = adopted(buffer, term)."""
    return Let(to, "call", (Ref(adopted, "adopted"), Var(buffer), term), (), line)


def give_back(of: str, buffer: str) -> Stmt:
    """of = spare(buffer, of)."""
    return Let(of, "call", (Ref(spare, "spare"), Var(buffer), Var(of)), ())


def is_fresh(name: str, before: list[Stmt], reads: int) -> bool:
    """Whether `name` holds new memory, made in `before`, that is read `reads` = 1 times."""
    made = [s for s in before if isinstance(s, Let) and s.target == name]
    return reads == 1 and len(made) == 1 and made[0].op in ("binary", "unary")


def ends_soon(of: str, to: str, behind: list[Stmt], is_end: Callable[[Stmt], bool]) -> bool:
    """Whether the cotangent `of` is only read in `behind` until the statement that ends it, and `to` not at all."""
    for s in behind:
        names = {a.name for a in operands(s) if isinstance(a, Var)}
        if is_end(s):
            return to not in names
        if isinstance(s, (If, For, Loop)) or to in names:
            return False
        given = contribution(s)
        if of in names and not (
            (given is not None and given.to != of) or (isinstance(s, Let) and s.op in ("binary", "unary"))
        ):
            return False
    return False
