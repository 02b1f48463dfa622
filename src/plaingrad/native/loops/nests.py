"""The reverse of one iteration of a nest of loops (`elements.nest_of`), in single assignments.

A nest fits if every iteration stores to elements of its own, at constant offsets from the loop variables, carries
nothing to the next one, and does arithmetic on real numbers whose reverse can be computed again exactly enough.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from numba.core import types

from plaingrad.native.analysis.users_functions import is_users
from plaingrad.native.loops.elements import ElementLoop, Offset, pictured
from plaingrad.native.loops.if_conversion import Declined
from plaingrad.native.program.ir import Const, Let, Operand, Ref, Stmt, Store, Var, assigns, operands
from plaingrad.native.program.value_types import is_array, is_real
from plaingrad.native.rules import scalars
from plaingrad.native.runtime.helpers import choice, where_taken

if TYPE_CHECKING:
    from plaingrad.native.reverse.reverse import Reverse


# functions whose derivative has no jump, so that a last bit in their argument does not matter
SMOOTH = frozenset(
    "exp expm1 exp2 log log1p log2 log10 sin cos tan sinh cosh tanh arcsin asin arccos acos arctan atan arcsinh asinh "
    "arccosh acosh arctanh atanh sqrt cbrt square hypot erf erfc float float64 float32 pow power".split()
)


def forwarded(rt: Reverse, nest: ElementLoop) -> ElementLoop:
    """`nest` with reads of the element that the iteration has stored to made reads of what was stored.

    Raises:
        Declined: an iteration reads an element of an array that another iteration stores to.
    """
    stores = {access.array.name for access in nest.writes}
    stored: dict[str, tuple[Offset | None, Operand]] = {}
    early: dict[str, set[Offset | None]] = {}
    body: list[Stmt] = []
    for x in [*nest.prelude, *nest.body]:
        named = {a.name for a in operands(x) if isinstance(a, Var)} & stores
        if isinstance(x, Store):
            assert isinstance(x.array, Var)
            if named != {x.array.name} or x.array.name in stored:
                raise Declined
            stored[x.array.name] = nest.offset(x.index), x.value
        elif named and (x.op == "attribute" or x.args[0] == Const(len)):  # type: ignore[union-attr]
            pass  # its shape
        elif named:
            name = named.pop()
            if (
                not isinstance(x, Let)
                or x.op != "item"
                or x.args[0] != Var(name)
                or rt.types[name].ndim != nest.rank
            ):
                raise Declined
            offset = nest.offset(x.args[1])
            if name in stored:
                value = stored[name][1]
                same = rt.type_of(value) == rt.types[x.target] or isinstance(
                    getattr(value, "value", None), float
                )
                if offset is None or offset != stored[name][0] or not same:
                    raise Declined
                x = Let(x.target, "copy", (value,), None, x.line)
            else:
                early.setdefault(name, set()).add(offset)
        body.append(x)
    for name, offsets in early.items():
        if None in offsets or offsets != {stored[name][0]}:
            raise Declined
        if not all(
            isinstance(axis.start, Const) for axis in nest.axes
        ):  # counting from the end, it may come twice
            raise Declined
    found = pictured(rt, nest.axes, nest.prelude, body[len(nest.prelude) :], nest.line)
    found.in_place, found.arms = set(early), nest.arms
    return found


@dataclass(slots=True)
class Iteration:
    """The reverse of one iteration, in single assignments.

    Attributes:
        pool: the statements of the iteration and of its reverse, in order; a slice of them computes a contribution.
        seeds: array stored to -> offset of the element, for active ones.
        gathers: array -> offset -> the contribution to the element there.
        own: array stored to -> the contribution to the same element, as it was before.
        numbers: variable from outside -> the contribution to it.
        loose: (a read with another index than the loop variables plus offsets, the contribution to that element).
        places: read or seed -> (array, offset), for those whose index is the loop variables plus offsets.
    """

    pool: list[Let]
    seeds: dict[str, Offset] = field(default_factory=dict)
    gathers: dict[str, dict[Offset, Operand]] = field(default_factory=dict)
    own: dict[str, Operand] = field(default_factory=dict)
    numbers: dict[str, Operand] = field(default_factory=dict)
    loose: list[tuple[Let, Operand]] = field(default_factory=list)
    places: dict[str, tuple[str, Offset]] = field(default_factory=dict)


def iteration_of(rt: Reverse, nest: ElementLoop) -> Iteration:
    """The reverse of one iteration of `nest`.

    Raises:
        Declined: an array that is stored to has another index than the loop variables plus offsets; or something that
            the reverse reads cannot be computed again exactly enough.
    """
    made = Iteration([*nest.prelude, *[x for x in nest.body if isinstance(x, Let)]])
    terms: dict[str, list[Operand]] = {}
    groups: dict[tuple[str, Offset], list[Operand]] = {}
    _check_all(rt, nest, made.pool)
    for read in nest.reads:
        offset = nest.offset(read.index)  # type: ignore[arg-type]
        if offset is not None and rt.types[read.array.name].ndim == nest.rank:
            made.places[read.value.name] = read.array.name, offset  # type: ignore[union-attr]
    back: list[Stmt] = []
    for x in reversed(nest.body):
        if isinstance(x, Store):
            _seed(rt, nest, x, made, terms, back)
            continue
        assert isinstance(x, Let)
        if x.target not in terms:
            continue
        z = total(rt, back, terms.pop(x.target), x.line)
        arm = nest.arms.of.get(x.target)
        if x.op == "item":
            z = _leaving(rt, back, arm, z, x.line)
            if x.target in made.places:
                groups.setdefault(made.places[x.target], []).append(z)
            else:
                made.loose.append((x, z))
            continue
        if x.op == "call" and getattr(x.args[0], "value", None) is choice:
            _choose(rt, nest, x, z, terms, back)
            continue
        for k, slope in rt.slopes(x, back):
            a = x.args[k]
            if rt.is_active(a):
                bar = rt.times(back, z, slope, x.line)
                if nest.arms.of.get(a.name) != arm:  # type: ignore[union-attr]
                    bar = _leaving(rt, back, arm, bar, x.line)
                terms.setdefault(a.name, []).append(bar)  # type: ignore[union-attr]
    for (name, offset), found in groups.items():
        bar = total(rt, back, found, nest.line)
        if name in made.seeds:
            made.own[name] = bar
        else:
            made.gathers.setdefault(name, {})[offset] = bar
    for name, found in terms.items():
        made.numbers[name] = total(rt, back, found, nest.line)
    if not all(isinstance(x, Let) for x in back):
        raise Declined
    made.pool += back  # type: ignore[arg-type]
    return made


def _leaving(rt: Reverse, out: list[Stmt], arm: Operand | None, bar: Operand, line: int) -> Operand:
    """A cotangent that goes out of an arm: 0 where that is not taken."""
    if arm is None:
        return bar
    return rt.emit(out, "call", (Ref(where_taken, "where_taken"), arm, bar), (), line)


def _choose(
    rt: Reverse, nest: ElementLoop, x: Let, z: Operand, terms: dict[str, list[Operand]], back: list[Stmt]
) -> None:
    """The cotangent of a choice goes to the one that was chosen."""
    _, test, *ways = x.args
    outer = nest.arms.of.get(x.target)
    for a, taken in zip(ways, (True, False), strict=True):
        if not rt.is_active(a):
            continue
        mine = test if taken else rt.emit(back, "unary", (test,), "not", x.line)
        if not taken:
            rt.types[mine.name] = types.boolean  # type: ignore[union-attr]
        bar = _leaving(rt, back, mine, z, x.line)
        bar = _leaving(rt, back, outer, bar, x.line)
        terms.setdefault(a.name, []).append(bar)  # type: ignore[union-attr]


def _seed(
    rt: Reverse,
    nest: ElementLoop,
    x: Store,
    made: Iteration,
    terms: dict[str, list[Operand]],
    back: list[Stmt],
) -> None:
    """The cotangent that a store takes over."""
    if not rt.is_active(x.array):
        return
    name = x.array.name  # type: ignore[union-attr]
    offset = nest.offset(x.index)
    if offset is None or name in made.seeds:
        raise Declined
    if rt.types[name].ndim != nest.rank:
        raise Declined
    made.seeds[name] = offset
    if rt.is_active(x.value):
        seed = rt.emit(back, "item", (Var(f"{name}_b"), x.index), None, x.line)
        made.places[seed.name] = f"{name}_b", offset
        terms.setdefault(x.value.name, []).append(seed)  # type: ignore[union-attr]


def total(rt: Reverse, out: list[Stmt], terms: list[Operand], line: int) -> Operand:
    """The sum of `terms`."""
    found = terms[0]
    for term in terms[1:]:
        found = rt.emit(out, "binary", (found, term), "+", line)
    return found


def _is_kept(rt: Reverse, name: str) -> bool:
    """Whether a variable from outside of a nest surely has the same bits on the way back: a sum or product that is
    assigned in a loop or branch around the nest may be computed again, and contracted then."""
    d = rt.definitions.get(name)
    if d is None or not is_real(rt.types.get(name)) or not any(assigns(s, name) for s in rt.enclosing):
        return True
    if d.op == "binary":
        return False
    return all(_is_kept(rt, a.name) for a in d.args if isinstance(a, Var))


def _check_all(rt: Reverse, nest: ElementLoop, pool: list[Let]) -> None:
    """Decline what is not arithmetic on real numbers, or where a decision would be taken again on rounded numbers.

    `exact` are variables with the same bits in both sweeps, however these are compiled: a sum of a product may be
    contracted, or not; anything else is rounded operation by operation, unless the user's own flags say otherwise.
    """
    exact = set(nest.counters)
    products: set[str] = set()
    for x in pool:
        t = rt.types.get(x.target)
        if isinstance(t, (types.Array, types.Complex)) or is_array(t):
            raise Declined
        named = {a.name for a in x.args if isinstance(a, Var)}
        known = named & nest.inside <= exact and all(_is_kept(rt, name) for name in named - nest.inside)
        f = getattr(x.args[0], "value", None) if x.op == "call" else None
        whole = not any(is_real(rt.type_of(a)) for a in x.args) and not is_real(t)
        moves = x.op in ("copy", "attribute", "tuple", "item") or (x.op == "unary" and x.detail in "+-")
        if moves or (whole and x.op in ("binary", "compare", "unary")):
            is_exact = known
        elif x.op == "binary" and x.detail in ("+", "-", "*", "/"):
            is_exact = known and not rt.is_loose and (x.detail in "*/" or not named & products)
        elif x.op in ("binary", "compare") and x.detail != "**":
            if not known:
                raise Declined
            is_exact = x.op == "compare"
        elif x.op == "binary":
            if isinstance(x.args[1], Var) and x.args[1].name in nest.inside and x.args[1].name not in exact:
                raise Declined
            is_exact = False
        elif f is choice:
            if isinstance(x.args[1], Var) and x.args[1].name in nest.inside - exact:
                raise Declined
            is_exact = known
        elif x.op == "call":
            if is_users(f) or x.detail:
                raise Declined
            smooth = getattr(f, "__name__", "") in SMOOTH
            if f not in (len, float, int, abs, min, max) and scalars.row_of(f) is None:
                raise Declined
            if not smooth and not known:
                raise Declined
            is_exact = known and f in (float, abs, min, max)
        else:
            raise Declined
        if is_exact:
            exact.add(x.target)
        is_product = x.op == "binary" and x.detail == "*"
        if is_product or (named & products and x.op != "binary" and x.op != "compare"):
            products.add(x.target)


__all__ = ["Iteration", "forwarded", "iteration_of", "total"]
