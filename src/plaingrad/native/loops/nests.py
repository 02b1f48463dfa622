"""What a loop over arrays does in one iteration, and its reverse in single assignments; and which loops that fits.

A nest fits if every iteration stores to elements of its own, at constant offsets from the loop variables, carries
nothing to the next one, and does arithmetic on real numbers whose reverse can be computed again exactly enough.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from numba.core import types

from plaingrad.native.analysis.users_functions import is_users
from plaingrad.native.loops.if_conversion import Arms, Declined, straightened
from plaingrad.native.program.ir import (
    Const,
    For,
    Let,
    Operand,
    Ref,
    Stmt,
    Store,
    Var,
    assigns,
    breaks,
    operands,
)
from plaingrad.native.program.value_types import is_array, is_real
from plaingrad.native.rules import scalars
from plaingrad.native.runtime.helpers import choice, where_taken

if TYPE_CHECKING:
    from plaingrad.native.reverse.reverse import Reverse


Offset = tuple[int, ...]

# functions whose derivative has no jump, so that a last bit in their argument does not matter
SMOOTH = frozenset(
    "exp expm1 exp2 log log1p log2 log10 sin cos tan sinh cosh tanh arcsin asin arccos acos arctan atan arcsinh asinh "
    "arccosh acosh arctanh atanh sqrt cbrt square hypot erf erfc float float64 float32 pow power".split()
)


@dataclass(slots=True)
class Nest:
    """Counted loops, one directly inside the other.

    Attributes:
        loops: from the outermost inwards, all with step 1.
        prelude: what stands in front of the inner loops: shapes and bounds.
        body: assignments and stores of the innermost.
        inside: everything that is assigned.
        in_place: the arrays of which an iteration reads the element that it then stores to.
        arms: what is known of the branches that were in the body.
    """

    loops: list[For]
    prelude: list[Let]
    body: list[Stmt]
    inside: set[str]
    in_place: set[str] = field(default_factory=set)
    arms: Arms = field(default_factory=Arms)


def nest_of(rt: Reverse, s: For) -> Nest:
    """The perfect nest that `s` is.

    Raises:
        Declined: it is none, it carries a value from one iteration to the next, or a value of it is used behind it.
    """
    loops: list[For] = []
    prelude: list[Let] = []
    inner: Stmt = s
    while isinstance(inner, For):
        if inner.step != Const(1) or not inner.body or breaks(inner.body):
            raise Declined
        loops.append(inner)
        *before, inner = inner.body
        if isinstance(inner, For):
            prelude += [x for x in before if isinstance(x, Let)]
            if len(prelude) and any(not isinstance(x, Let) or x.target in rt.active for x in before):
                raise Declined
    begun = Nest(loops, prelude, [], set())
    body, arms = straightened(
        rt, s, loops[-1].body, lambda index, definitions: offset_of(begun, index, definitions)
    )
    if not all(isinstance(x, (Let, Store)) for x in body) or any(not isinstance(x, Let) for x in prelude):
        raise Declined
    inside = {x.target for x in [*prelude, *body, *loops] if isinstance(x, (Let, For))}
    known = {loop.target for loop in loops}
    for x in [*prelude, *body]:
        if any(isinstance(a, Var) and a.name in inside and a.name not in known for a in operands(x)):
            raise Declined
        if isinstance(x, Let):
            known.add(x.target)
    if any(rt.assigned[name] != 1 for name in inside) or rt.values.is_used_outside(inside, s):
        raise Declined
    return Nest(loops, prelude, body, inside, arms=arms)


def forwarded(rt: Reverse, nest: Nest) -> Nest:
    """`nest` with reads of the element that the iteration has stored to made reads of what was stored.

    Raises:
        Declined: an iteration reads an element of an array that another iteration stores to.
    """
    definitions = {x.target: x for x in [*nest.prelude, *nest.body] if isinstance(x, Let)}
    stores = {x.array.name for x in nest.body if isinstance(x, Store) and isinstance(x.array, Var)}
    stored: dict[str, tuple[Offset | None, Operand]] = {}
    early: dict[str, set[Offset | None]] = {}
    body: list[Stmt] = []
    for x in [*nest.prelude, *nest.body]:
        named = {a.name for a in operands(x) if isinstance(a, Var)} & stores
        if isinstance(x, Store):
            assert isinstance(x.array, Var)
            if named != {x.array.name} or x.array.name in stored:
                raise Declined
            stored[x.array.name] = offset_of(nest, x.index, definitions), x.value
        elif named and (x.op == "attribute" or x.args[0] == Const(len)):  # type: ignore[union-attr]
            pass  # its shape
        elif named:
            name = named.pop()
            if (
                not isinstance(x, Let)
                or x.op != "item"
                or x.args[0] != Var(name)
                or rt.types[name].ndim != len(nest.loops)
            ):
                raise Declined
            offset = offset_of(nest, x.args[1], definitions)
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
            isinstance(loop.start, Const) for loop in nest.loops
        ):  # counting from the end, it may come twice
            raise Declined
    return replace(nest, body=body[len(nest.prelude) :], in_place=set(early))


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


def offset_of(nest: Nest, index: Operand, definitions: dict[str, Let]) -> Offset | None:
    """The constants c of an index (i + c, j + c', ...) of the loop variables in order; None for any other index."""
    s = definitions.get(index.name) if isinstance(index, Var) else None
    parts = list(s.args) if s is not None and s.op == "tuple" else [index]
    if len(parts) != len(nest.loops):
        return None
    found = []
    for part, loop in zip(parts, nest.loops, strict=True):
        shift = 0
        while part != Var(loop.target):
            s = definitions.get(part.name) if isinstance(part, Var) else None
            if s is None:
                return None
            if s.op == "copy":
                part = s.args[0]
                continue
            if s.op != "binary" or s.detail not in ("+", "-"):
                return None
            a, b = s.args
            if isinstance(b, Const) and type(b.value) is int:
                shift += b.value if s.detail == "+" else -b.value
                part = a
            elif isinstance(a, Const) and type(a.value) is int and s.detail == "+":
                shift += a.value
                part = b
            else:
                return None
        found.append(shift)
    return tuple(found)


def _find_places(rt: Reverse, nest: Nest, made: Iteration, definitions: dict[str, Let]) -> None:
    """Note which numbers of an iteration are read at fixed distances from its place."""
    for x in made.pool:
        array = x.args[0] if x.op == "item" else None
        if isinstance(array, Var) and isinstance(rt.types.get(array.name), types.Array):
            offset = offset_of(nest, x.args[1], definitions)
            if offset is not None and rt.types[array.name].ndim == len(nest.loops):
                made.places[x.target] = array.name, offset


def iteration_of(rt: Reverse, nest: Nest) -> Iteration:
    """The reverse of one iteration of `nest`.

    Raises:
        Declined: an array that is stored to has another index than the loop variables plus offsets; or something that
            the reverse reads cannot be computed again exactly enough.
    """
    definitions = {x.target: x for x in [*nest.prelude, *nest.body] if isinstance(x, Let)}
    made = Iteration([*nest.prelude, *[x for x in nest.body if isinstance(x, Let)]])
    terms: dict[str, list[Operand]] = {}
    groups: dict[tuple[str, Offset], list[Operand]] = {}
    _check_all(rt, nest, made.pool)
    _find_places(rt, nest, made, definitions)
    back: list[Stmt] = []
    for x in reversed(nest.body):
        if isinstance(x, Store):
            _seed(rt, nest, x, made, terms, back, definitions)
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
    line = nest.loops[0].line
    for (name, offset), found in groups.items():
        bar = total(rt, back, found, line)
        if name in made.seeds:
            made.own[name] = bar
        else:
            made.gathers.setdefault(name, {})[offset] = bar
    for name, found in terms.items():
        made.numbers[name] = total(rt, back, found, line)
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
    rt: Reverse, nest: Nest, x: Let, z: Operand, terms: dict[str, list[Operand]], back: list[Stmt]
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
    nest: Nest,
    x: Store,
    made: Iteration,
    terms: dict[str, list[Operand]],
    back: list[Stmt],
    definitions: dict[str, Let],
) -> None:
    """The cotangent that a store takes over."""
    if not rt.is_active(x.array):
        return
    name = x.array.name  # type: ignore[union-attr]
    offset = offset_of(nest, x.index, definitions)
    if offset is None or name in made.seeds:
        raise Declined
    if rt.types[name].ndim != len(nest.loops):
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


def _check_all(rt: Reverse, nest: Nest, pool: list[Let]) -> None:
    """Decline what is not arithmetic on real numbers, or where a decision would be taken again on rounded numbers.

    `exact` are variables with the same bits in both sweeps, however these are compiled: a sum of a product may be
    contracted, or not; anything else is rounded operation by operation, unless the user's own flags say otherwise.
    """
    exact = {loop.target for loop in nest.loops}
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


__all__ = [
    "Declined",
    "Iteration",
    "Nest",
    "Offset",
    "forwarded",
    "iteration_of",
    "nest_of",
    "offset_of",
    "total",
]
