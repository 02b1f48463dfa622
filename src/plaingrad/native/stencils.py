"""Loops that compute each element of a new array from neighbours in others: reversed by gathering, not scattering.

For `for i, j: v[i, j] = f(u[i + a, j + b], ...)` the general reverse adds into `u_b[i + a, j + b]` for every
neighbour, which no compiler vectorises. Here every element of `u_b` is assigned once: the sum, over the distinct
offsets, of what the iterations around it contribute. Elements near the edge of the loop's range (the rim) receive
fewer contributions, and are done column by column. Where the range is narrower than the stencil, or where an index
would be negative (which counts from the end in Python), the loop runs backward and scatters, element after element.

Nothing is taped: values are computed again from arrays that are never overwritten (`values.Values.is_settled`).
The form declines, and leaves the loop to the general reverse, where anything is not as described in `nest_of` and
`iteration_of`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numba.core import types

from plaingrad.native import helpers, scalars, shadows
from plaingrad.native.activity import is_array, is_real, is_users
from plaingrad.native.tree import (
    Const,
    Do,
    For,
    If,
    InPlace,
    Let,
    Operand,
    Parts,
    Ref,
    Stmt,
    Store,
    Var,
    breaks,
    operands,
)

if TYPE_CHECKING:
    from plaingrad.native.reverse import Reverse

Offset = tuple[int, ...]

# functions whose derivative has no jump, so that a last bit in their argument does not matter
SMOOTH = frozenset(
    "exp expm1 exp2 log log1p log2 log10 sin cos tan sinh cosh tanh arcsin asin arccos acos arctan atan arcsinh asinh "
    "arccosh acosh arctanh atanh sqrt cbrt square hypot erf erfc float float64 float32 pow power".split()
)


class Declined(Exception):
    """The loop is left to the general reverse."""


@dataclass(slots=True)
class Nest:
    """Counted loops, one directly inside the other.

    Attributes:
        loops: from the outermost inwards, all with step 1.
        prelude: what stands in front of the inner loops: shapes and bounds.
        body: assignments and stores of the innermost.
        inside: everything that is assigned.
        in_place: the arrays of which an iteration reads the element that it then stores to.
    """

    loops: list[For]
    prelude: list[Let]
    body: list[Stmt]
    inside: set[str]
    in_place: set[str] = field(default_factory=set)


def gathered(rt: Reverse, s: Any) -> Parts | None:
    """The parts of a loop that is a stencil; None where it is not."""
    if rt.values is None or not isinstance(s, For):
        return None
    try:
        nest = forwarded(rt, nest_of(rt, s))
        work = _Backward(rt, s, nest)
        backward = work.statements()
        return Parts([*work.forward, s], backward)
    except Declined:
        return None


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
    body = loops[-1].body
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
    return Nest(loops, prelude, body, inside)


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
    for x in made.pool:
        if (
            x.op == "item"
            and isinstance(x.args[0], Var)
            and isinstance(rt.types.get(x.args[0].name), types.Array)
        ):
            offset = offset_of(nest, x.args[1], definitions)
            if offset is not None and rt.types[x.args[0].name].ndim == len(nest.loops):
                made.places[x.target] = x.args[0].name, offset
    back: list[Stmt] = []
    for x in reversed(nest.body):
        if isinstance(x, Store):
            _seed(rt, nest, x, made, terms, back, definitions)
            continue
        assert isinstance(x, Let)
        if x.target not in terms:
            continue
        z = total(rt, back, terms.pop(x.target), x.line)
        if x.op == "item":
            if x.target in made.places:
                groups.setdefault(made.places[x.target], []).append(z)
            else:
                made.loose.append((x, z))
            continue
        for k, slope in rt.slopes(x, back):
            a = x.args[k]
            if rt.is_active(a):
                terms.setdefault(a.name, []).append(rt.times(back, z, slope, x.line))  # type: ignore[union-attr]
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


def _check_all(rt: Reverse, nest: Nest, pool: list[Let]) -> None:
    """Decline what is not arithmetic on real numbers, or where a decision would be taken again on rounded numbers."""
    exact = {loop.target for loop in nest.loops}
    for x in pool:
        t = rt.types.get(x.target)
        if isinstance(t, (types.Array, types.Complex)) or is_array(t):
            raise Declined
        known = all(not isinstance(a, Var) or a.name in exact or a.name not in nest.inside for a in x.args)
        if x.op in ("copy", "attribute", "tuple", "item") or (x.op == "unary" and x.detail in "+-"):
            if known:
                exact.add(x.target)
            continue
        whole = not any(is_real(rt.type_of(a)) for a in x.args) and not is_real(t)
        if x.op in ("binary", "compare", "unary") and whole:
            if known:
                exact.add(x.target)
        elif x.op == "binary" and x.detail in ("+", "-", "*", "/"):
            pass
        elif x.op in ("binary", "compare") and x.detail != "**":
            if not known:
                raise Declined
            exact.add(x.target) if x.op == "compare" else None
        elif x.op == "binary":
            if isinstance(x.args[1], Var) and x.args[1].name in nest.inside and x.args[1].name not in exact:
                raise Declined
        elif x.op == "call":
            f = getattr(x.args[0], "value", None)
            if is_users(f) or x.detail or f in (min, max):
                raise Declined
            smooth = getattr(f, "__name__", "") in SMOOTH
            if f not in (len, float, int, abs) and scalars.row_of(f) is None:
                raise Declined
            if not smooth and not known:
                raise Declined
        else:
            raise Declined


# -- the statements ----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Region:
    """Where contributions are being written: inside loops over targets.

    Attributes:
        levels: the statements of each loop, from the outermost inwards.
        at: the loop variables, or constants, that name the target.
        known: (axis, shift) -> an index that is there already.
    """

    levels: list[list[Stmt]]
    at: list[Operand]
    known: dict[tuple[int, int], Operand] = field(default_factory=dict)

    @property
    def out(self) -> list[Stmt]:
        """The innermost statements."""
        return self.levels[-1]

    def deeper(self, at: Operand, out: list[Stmt]) -> Region:
        """One loop further in."""
        return Region([*self.levels, out], [*self.at, at], dict(self.known))


class _Backward:
    """The reverse of one nest."""

    def __init__(self, rt: Reverse, s: For, nest: Nest) -> None:
        self.rt = rt
        self.nest = nest
        self.line = s.line
        self.loop = s
        self.each = iteration_of(rt, nest)
        if not self.each.seeds:
            raise Declined
        self.made = {x.target: x for x in self.each.pool}
        self.rank = {x.target: k for k, x in enumerate(self.each.pool)}
        self.forward: list[Stmt] = []
        self.held = self._held()  # array -> a copy of it, where it may be overwritten later
        self.head: list[Stmt] = []
        self.bounds = [(self._bound(loop.start), self._bound(loop.stop)) for loop in nest.loops]
        self.head_of_bounds = list(self.head)

    # -- what is read --------------------------------------------------------------------------------------------------

    def slice_of(self, wanted: list[Operand]) -> list[Let]:
        """The statements of the pool that `wanted` needs."""
        found: set[str] = set()
        todo = [a.name for a in wanted if isinstance(a, Var)]
        while todo:
            name = todo.pop()
            if name in found or name not in self.made:
                continue
            found.add(name)
            args = self.made[name].args
            todo += [a.name for a in (args[:1] if name in self.each.places else args) if isinstance(a, Var)]
        return [self.made[name] for name in sorted(found, key=self.rank.__getitem__)]

    def _held(self) -> dict[str, Operand]:
        """Copies, made in front of the nest, of the arrays that its reverse reads and that may be overwritten by then.

        Raises:
            Declined: an array that is read may be one that the nest stores to; or copying would cost more than the
                nest, which may run over another part of the array every time.
        """
        rt, each = self.rt, self.each
        wanted = [*each.own.values(), *[bar for group in each.gathers.values() for bar in group.values()]]
        wanted += [
            *each.numbers.values(),
            *[bar for _, bar in each.loose],
            *[read.args[1] for read, _ in each.loose],
        ]
        sources = {
            x.args[0].name for x in self.slice_of(wanted) if x.op == "item" and isinstance(x.args[0], Var)
        }
        values = {name for name in sources if isinstance(rt.types.get(name), types.Array)}
        stored = sorted(
            {x.array.name for x in self.nest.body if isinstance(x, Store) and isinstance(x.array, Var)}
        )
        read = values | each.gathers.keys() | {x.args[0].name for x, _ in each.loose}  # type: ignore[union-attr]
        for k, name in enumerate(stored):
            for other in sorted(read | set(stored[:k])):
                same = name == other and name in self.nest.in_place
                if (
                    name not in rt.values.owned
                    and not same
                    and not rt.values.distinct.are(name, other, self.loop)
                ):
                    raise Declined
        held: dict[str, Operand] = {}
        for name in sorted(values):
            copy = rt.kept(Var(name), self.forward, self.line)
            if copy != Var(name):
                held[name] = copy
        if held and not (
            self._is_steady() and all(rt.types[name].ndim == len(self.nest.loops) for name in held)
        ):
            raise Declined
        return held

    def _is_steady(self) -> bool:
        """Whether the nest has the same bounds whenever it runs."""
        bounds = [a for loop in self.nest.loops for a in (loop.start, loop.stop)]
        named = {a.name for a in bounds if isinstance(a, Var)}
        for s in self.slice_of(bounds):
            named |= {a.name for a in s.args if isinstance(a, Var)}
        return all(name in self.nest.inside or self.rt.values.is_steady(name) for name in named)

    def _bound(self, x: Operand) -> Operand:
        """A bound of a loop, computed again in front of the loops."""
        if not isinstance(x, Var) or x.name not in self.nest.inside:
            return x
        from plaingrad.native.tapes import is_recomputable

        names: dict[str, Operand] = {}
        loops = {loop.target for loop in self.nest.loops}
        for s in self.slice_of([x]):
            if any(isinstance(a, Var) and a.name in loops for a in s.args) or not is_recomputable(self.rt, s):
                raise Declined
            names[s.target] = self._copied(s, names, self.head)
        if x.name not in names:
            raise Declined
        return names[x.name]

    def _copied(self, s: Let, names: dict[str, Operand], out: list[Stmt]) -> Var:
        """The statement `s` again, under a new name."""
        args = tuple(names.get(a.name, a) if isinstance(a, Var) else a for a in s.args)
        new = self.rt.emit(out, s.op, args, s.detail, s.line)
        if s.target in self.rt.types:
            self.rt.types[new.name] = self.rt.types[s.target]
        return new

    # -- small pieces --------------------------------------------------------------------------------------------------

    def plus(self, out: list[Stmt], x: Operand, shift: int) -> Operand:
        """x + shift, an int."""
        if shift == 0:
            return x
        if isinstance(x, Const):
            return Const(x.value + shift)
        op = "+" if shift > 0 else "-"
        return self.rt.emit(out, "binary", (x, Const(abs(shift))), op, self.line)

    def index(self, region: Region, axis: int, shift: int) -> Operand:
        """The target's place along `axis`, plus `shift`, as an index that is known not to be negative."""
        key = axis, shift
        if key not in region.known:
            out = region.levels[axis]
            x = self.plus(out, region.at[axis], shift)
            if not isinstance(x, Const):
                x = self.rt.emit(out, "call", (Ref(np.uint64, "uint64"), x), (), self.line)
            region.known[key] = x
        return region.known[key]

    def place(self, region: Region, shifts: Offset) -> Operand:
        """The index of the element `shifts` away from the target."""
        parts = tuple(self.index(region, k, shift) for k, shift in enumerate(shifts))
        return parts[0] if len(parts) == 1 else self.rt.emit(region.out, "tuple", parts, None, self.line)

    def contribution(self, region: Region, bar: Operand, offset: Offset) -> Operand:
        """What the iteration that has the target at `offset` contributes to it."""
        return self.copy(region, [bar], offset)[0]

    def copy(self, region: Region, wanted: list[Operand], offset: Offset) -> list[Operand]:
        """`wanted`, of the iteration that has the target at `offset`."""
        names = dict(self.held)
        chosen = self.slice_of(wanted)
        read = {a.name for s in chosen for a in self._inputs(s) if isinstance(a, Var)}
        read |= {a.name for a in wanted if isinstance(a, Var)}
        for k, loop in enumerate(self.nest.loops):
            if loop.target in read:
                names[loop.target] = self.plus(region.out, region.at[k], -offset[k])
        for s in chosen:
            place = self.each.places.get(s.target)
            if place is not None:
                shifts = tuple(c - o for c, o in zip(place[1], offset, strict=True))
                s = Let(s.target, "item", (s.args[0], self.place(region, shifts)), None, s.line)
            names[s.target] = self._copied(s, names, region.out)
        return [names.get(a.name, a) if isinstance(a, Var) else a for a in wanted]

    def _inputs(self, s: Let) -> tuple[Operand, ...]:
        return s.args[:1] if s.target in self.each.places else s.args

    def both(self, out: list[Stmt], tests: list[Operand]) -> Operand:
        """Whether all of `tests` hold."""
        found = tests[0]
        for test in tests[1:]:
            found = self.rt.emit(out, "binary", (found, test), "&", self.line)
        return found

    def between(self, out: list[Stmt], x: Operand, low: Operand, high: Operand) -> list[Operand]:
        """low <= x, x < high."""
        first = self.rt.emit(out, "compare", (low, x), "<=", self.line)
        return [first, self.rt.emit(out, "compare", (x, high), "<", self.line)]

    def over(self, name: str, start: Operand, stop: Operand, body: list[Stmt]) -> For:
        """A counted loop."""
        self.rt.types[name] = types.int64
        return For(name, start, stop, Const(1), body, self.line)

    # -- the whole -----------------------------------------------------------------------------------------------------

    def statements(self) -> list[Stmt]:
        """The reverse: gathering where the range is wide enough, else scattering."""
        each = self.each
        fits = self._fits()
        born = [name for name in each.seeds if name in self.rt.values.owned]
        fused = {name: source for name in born if (source := self._copied_from(name)) is not None}
        ending = [name for name in born if self._begins_empty(name)]
        self.forward += [x for name in born for x in self._copied_around(name)]
        targets = frozenset(f"{name}_b" for name in each.gathers)
        adding = self._way(fits, {}, False, ending)
        owned = all(name in self.rt.values.owned for name in each.gathers)
        if not targets or not owned:
            out = [*self.head, *adding]
        else:
            assigning = self._way(fits, fused, True, [*ending, *fused])
            spent = frozenset(f"{name}_b" for name in (*fused, *ending))
            out = [*self.head, shadows.choose(shadows.Choice(targets, spent), assigning, adding, self.line)]
        return [*out, *[shadows.clear(Var(f"{name}_b")) for name in ending]]

    def _fits(self) -> Operand | None:
        """Whether every range is wide enough for its rims, and no index negative; None if that is certain."""
        each, tests = self.each, []
        offsets = [offset for _, offset in each.places.values()] + list(each.seeds.values())
        for k, (start, stop) in enumerate(self.bounds):
            rim = max([_reach(group, k)[1] - _reach(group, k)[0] for group in each.gathers.values()] or [0])
            need = max(2 * rim, 1)
            width = self.rt.emit(self.head, "binary", (stop, start), "-", self.line)
            tests.append(self.rt.emit(self.head, "compare", (width, Const(need)), ">=", self.line))
            low = min(offset[k] for offset in offsets)
            if isinstance(start, Const):
                if start.value + low < 0:
                    raise Declined
            else:
                first = self.plus(self.head, start, low)
                tests.append(self.rt.emit(self.head, "compare", (first, Const(0)), ">=", self.line))
        return self.both(self.head, tests)

    def _copied_from(self, name: str) -> str | None:
        """The array that `name` begins as a copy of, if this nest gathers into it and follows at once."""
        birth = self.rt.values.births[name]
        if name in self.nest.in_place or birth.made.op != "method" or birth.made.detail != ("copy", ()):
            return None
        source = birth.made.args[0]
        if (
            not isinstance(source, Var)
            or source.name not in self.each.gathers
            or not self._follows(name, source.name)
        ):
            return None
        group, a = self.each.gathers[source.name], self.each.seeds[name]
        inside = all(low <= a[k] <= high for k in range(len(a)) for low, high in [_reach(group, k)])
        return source.name if inside else None

    def _copied_around(self, name: str) -> list[Stmt]:
        """On the way forward: a copy, of which this nest overwrites a box at once, is made around that box only."""
        made = self.rt.values.births[name].made
        source, rank = made.args[0], len(self.nest.loops)
        if made.op != "method" or made.detail != ("copy", ()) or rank not in helpers.COPY_AROUND:
            return []
        if name in self.nest.in_place:
            return []
        if not isinstance(source, Var) or not self.rt.values.is_whole(source.name):
            return []
        if not self._follows(name, source.name):
            return []
        out = list(self.head_of_bounds)
        corners: list[Operand] = []
        for side in (0, 1):
            parts = [
                self.plus(out, b[side], a) for b, a in zip(self.bounds, self.each.seeds[name], strict=True)
            ]
            corners.append(self.rt.emit(out, "tuple", tuple(parts), None, self.line))
        f = helpers.COPY_AROUND[rank]
        call = (Ref(f, f.__name__), Var(name), source, *corners)
        return [*out, Do(Let("_", "call", call, (), self.line), self.line)]

    def _begins_empty(self, name: str) -> bool:
        """Whether `name` begins as zeros, or as anything, and this nest follows at once."""
        s = self.rt.values.births[name].made
        f = getattr(s.args[0], "value", None) if s.op == "call" else None
        return f in (np.empty, np.zeros, np.empty_like, np.zeros_like) and self._follows(name, None)

    def _follows(self, name: str, source: str | None) -> bool:
        """Whether nothing touches `name`, or gives `source` another meaning, between its birth and the nest."""
        return self.rt.values.follows(name, source, self.loop)

    def _way(self, fits: Operand, fused: dict[str, str], assign: bool, spent: list[str]) -> list[Stmt]:
        """The branch between gathering and scattering; `assign` what is gathered, or add to it."""
        gather: list[Stmt] = []
        origins = {source: name for name, source in fused.items()}
        for name, group in self.each.gathers.items():
            gather += self._gather(name, group, assign, origins.get(name))
        gather += self._remaining()
        gather += self._ended([name for name in self.each.seeds if name not in spent])
        scatter: list[Stmt] = []
        if assign:
            scatter += [
                Do(Let("_", "method", (Var(f"{name}_b"), Const(0.0)), ("fill", ())))
                for name in self.each.gathers
            ]
        scatter += self._scatter()
        scatter += [
            InPlace(Var(f"{source}_b"), "+", Var(f"{name}_b"), self.line) for name, source in fused.items()
        ]
        return [If(fits, gather, scatter, self.line)]

    def _gather(
        self, name: str, group: dict[Offset, Operand], assign: bool, origin: str | None
    ) -> list[Stmt]:
        """Every element of the cotangent of `name`, once."""
        return _Gather(self, name, group, assign, origin).statements()

    def _remaining(self) -> list[Stmt]:
        """What goes to numbers, or to elements that have another index than the loop variables plus offsets."""
        numbers, loose = self.each.numbers, self.each.loose
        if not numbers and not loose:
            return []
        names = [self.rt.fresh("at") for _ in self.nest.loops]
        levels: list[list[Stmt]] = [[] for _ in names]
        region = Region(levels, [Var(name) for name in names])
        wanted = [*numbers.values(), *[bar for _, bar in loose], *[read.args[1] for read, _ in loose]]
        found = self.copy(region, wanted, tuple(0 for _ in names))
        self._add_remaining(region.out, found)
        return self._nested(names, levels)

    def _add_remaining(self, out: list[Stmt], found: list[Operand]) -> None:
        numbers, loose = self.each.numbers, self.each.loose
        for name, bar in zip(numbers, found, strict=False):
            self.rt.add(out, Var(name), bar, self.line)
        for k, (read, _) in enumerate(loose):
            bar, place = found[len(numbers) + k], found[len(numbers) + len(loose) + k]
            self._add_at(out, read.args[0].name, place, bar)  # type: ignore[union-attr]

    def _add_at(self, out: list[Stmt], name: str, place: Operand, bar: Operand) -> None:
        """name_b[place] += bar."""
        shadow = Var(f"{name}_b")
        now = self.rt.emit(out, "item", (shadow, place), None, self.line)
        out.append(Store(shadow, place, self.rt.emit(out, "binary", (now, bar), "+", self.line), self.line))

    def _nested(self, names: list[str], levels: list[list[Stmt]]) -> list[Stmt]:
        """The loops `names` over the ranges of the nest, around statements."""
        for k in range(len(names) - 1, 0, -1):
            levels[k - 1].append(self.over(names[k], *self.bounds[k], levels[k]))
        return [self.over(names[0], *self.bounds[0], levels[0])]

    def _ended(self, stored: list[str]) -> list[Stmt]:
        """The cotangents of the elements that the nest has stored to: zeros, or what they had before contributed."""
        if not stored:
            return []
        names = [self.rt.fresh("at") for _ in self.nest.loops]
        levels: list[list[Stmt]] = [[] for _ in names]
        region = Region(levels, [Var(n) for n in names])
        bars = [self.each.own.get(name, Const(0.0)) for name in stored]
        for name, bar in zip(stored, self.copy(region, bars, (0,) * len(names)), strict=True):
            place = self.place(region, self.each.seeds[name])
            region.out.append(Store(Var(f"{name}_b"), place, bar, self.line))
        return self._nested(names, levels)

    def _scatter(self) -> list[Stmt]:
        """The iterations in reverse order, each adding what it contributes."""
        each, rt = self.each, self.rt
        out: list[Stmt] = []
        levels = [out]
        names = dict(self.held)
        loops: list[For] = []
        for loop, (start, stop) in zip(self.nest.loops, self.bounds, strict=True):
            n = rt.emit(levels[-1], "binary", (stop, start), "-", self.line)
            last = rt.emit(levels[-1], "binary", (stop, Const(1)), "-", self.line)
            body: list[Stmt] = []
            made = self.over(rt.fresh("r"), Const(0), n, body)
            levels[-1].append(made)
            loops.append(made)
            names[loop.target] = rt.emit(body, "binary", (last, Var(made.target)), "-", self.line)
            levels.append(body)
        body = levels[-1]
        groups = [
            (name, offset, bar) for name, group in each.gathers.items() for offset, bar in group.items()
        ]
        groups += [(name, each.seeds[name], bar) for name, bar in each.own.items()]
        first = {place: read for read, place in reversed(each.places.items())}
        indices = [self.made[first[name, offset]].args[1] for name, offset, _ in groups]
        wanted = [bar for _, _, bar in groups] + [*each.numbers.values(), *[bar for _, bar in each.loose]]
        wanted += [*indices, *[read.args[1] for read, _ in each.loose]]
        stores = [x for x in self.nest.body if isinstance(x, Store) and rt.is_active(x.array)]
        wanted += [x.index for x in stores]
        found: set[str] = set()
        todo = [a.name for a in wanted if isinstance(a, Var)]
        while todo:
            name = todo.pop()
            if name not in found and name in self.made:
                found.add(name)
                todo += [a.name for a in self.made[name].args if isinstance(a, Var)]
        for name in sorted(found, key=self.rank.__getitem__):
            names[name] = self._copied(self.made[name], names, body)
        got = [names.get(a.name, a) if isinstance(a, Var) else a for a in wanted]
        for x, place in zip(stores, got[len(wanted) - len(stores) :], strict=True):
            body.append(Store(Var(f"{x.array.name}_b"), place, Const(0.0), self.line))  # type: ignore[union-attr]
        rest = len(groups) + len(each.numbers) + len(each.loose)
        for (name, _, _), bar, place in zip(groups, got, got[rest:], strict=False):
            self._add_at(body, name, place, bar)
        more = got[len(groups) : rest] + got[rest + len(groups) : len(got) - len(stores)]
        self._add_remaining(body, more)
        return out


def _reach(group: dict[Offset, Operand], axis: int) -> tuple[int, int]:
    """The least and the greatest offset along an axis."""
    found = [offset[axis] for offset in group]
    return min(found), max(found)


class _Gather:
    """The loops over the elements of one cotangent.

    Along every axis the elements that all iterations around them contribute to lie between `low` and `high`, those
    that any does between `first` and `last`.
    """

    def __init__(
        self, work: _Backward, name: str, group: dict[Offset, Operand], assign: bool, origin: str | None
    ) -> None:
        self.work = work
        self.group = group
        self.shadow = Var(f"{name}_b")
        self.assign = assign
        self.origin = origin
        self.stored = work.each.seeds[origin] if origin else ()
        self.rank = len(work.nest.loops)
        self.out: list[Stmt] = []
        self.reach = [_reach(group, k) for k in range(self.rank)]
        plus = work.plus
        self.low = [
            plus(self.out, s, high) for (s, _), (_, high) in zip(work.bounds, self.reach, strict=True)
        ]
        self.high = [plus(self.out, e, low) for (_, e), (low, _) in zip(work.bounds, self.reach, strict=True)]
        self.first = [
            plus(self.out, s, low) for (s, _), (low, _) in zip(work.bounds, self.reach, strict=True)
        ]
        self.last = [
            plus(self.out, e, high) for (_, e), (_, high) in zip(work.bounds, self.reach, strict=True)
        ]
        self.size: list[Operand] = []
        if assign:
            shape = work.rt.emit(self.out, "attribute", (self.shadow,), "shape", work.line)
            emit = work.rt.emit
            self.size = [emit(self.out, "item", (shape, Const(k)), None, work.line) for k in range(self.rank)]

    def statements(self) -> list[Stmt]:
        """The loops: over the rows whose middle is whole, and over the others.

        With a branch between the two inside one loop, the compiler makes code of half the speed.
        """
        self._whole_rows(Region([], []), self.out)
        if self.rank > 1:
            self._rim_rows(Region([], []), self.out, [])
        return self.out

    def _whole_rows(self, region: Region, out: list[Stmt]) -> None:
        k = len(region.at)
        if k == self.rank - 1:
            self._whole_row(region, out)
            return
        name = self.work.rt.fresh("row")
        body: list[Stmt] = []
        self._whole_rows(region.deeper(Var(name), body), body)
        out.append(self.work.over(name, self.low[k], self.high[k], body))

    def _rim_rows(self, region: Region, out: list[Stmt], tests: list[Operand]) -> None:
        k = len(region.at)
        if k == self.rank - 1:
            rim: list[Stmt] = []
            test = self.work.both(out, tests)
            self._rim_row(self._inside(region, rim), rim)
            out.append(If(test, [], rim, self.work.line))
            return
        name = self.work.rt.fresh("row")
        body: list[Stmt] = []
        here = self.work.between(body, Var(name), self.low[k], self.high[k])
        start = Const(0) if self.assign else self.first[k]
        stop = self.size[k] if self.assign else self.last[k]
        self._rim_rows(region.deeper(Var(name), body), body, [*tests, *here])
        out.append(self.work.over(name, start, stop, body))

    def _inside(self, region: Region, out: list[Stmt]) -> Region:
        """The region in an arm, where its indices are made."""
        return Region([*region.levels[:-1], out], region.at, dict(region.known))

    def _put(self, region: Region, terms: list[Operand], add: bool) -> None:
        """target = sum of terms, or target += that."""
        rt, line = self.work.rt, self.work.line
        place = self.work.place(region, (0,) * self.rank)
        if add:
            terms = [rt.emit(region.out, "item", (self.shadow, place), None, line), *terms]
        value = total(rt, region.out, terms, line) if terms else Const(0.0)
        region.out.append(Store(self.shadow, place, value, line))

    def _origin_at(self, region: Region) -> Operand:
        """What the copy that the array began as contributes to the target."""
        place = self.work.place(region, (0,) * self.rank)
        return self.work.rt.emit(region.out, "item", (Var(f"{self.origin}_b"), place), None, self.work.line)

    def _base(self, region: Region, start: Operand, stop: Operand, copied: bool) -> Stmt:
        """A part of a row that no iteration contributes to, or not yet: zeros, or the cotangent of the copy."""
        name = self.work.rt.fresh("at")
        body: list[Stmt] = []
        inner = region.deeper(Var(name), body)
        self._put(inner, [self._origin_at(inner)] if copied and self.origin else [], False)
        return self.work.over(name, start, stop, body)

    def _whole_row(self, region: Region, out: list[Stmt]) -> None:
        """A row to whose middle all offsets contribute: its ends one by one, its middle in a loop."""
        work, k = self.work, self.rank - 1
        low, high = self.reach[k]
        start, stop = work.bounds[k]
        if self.assign and self.first[k] != Const(0):
            out.append(self._base(region, Const(0), self.first[k], True))
        for m in range(low, high):
            self._end(region, out, start, m, [o for o in self.group if o[k] <= m], lambda a, m=m: m < a)
        name = work.rt.fresh("at")
        body: list[Stmt] = []
        inner = region.deeper(Var(name), body)
        terms = [work.contribution(inner, bar, offset) for offset, bar in self.group.items()]
        self._put(inner, terms, not self.assign)
        out.append(work.over(name, self.low[k], self.high[k], body))
        for m in range(low, high):
            self._end(region, out, stop, m, [o for o in self.group if o[k] > m], lambda a, m=m: m >= a)
        if self.assign:
            out.append(self._base(region, self.last[k], self.size[k], True))

    def _end(
        self,
        region: Region,
        out: list[Stmt],
        bound: Operand,
        shift: int,
        offsets: list[Offset],
        is_copied: Any,
    ) -> None:
        """The element `shift` behind a bound of the range, to which only `offsets` contribute."""
        at = self.work.plus(out, bound, shift)
        body: list[Stmt] = []
        inner = region.deeper(at, body)
        terms = [self.work.contribution(inner, self.group[offset], offset) for offset in offsets]
        if self.origin and is_copied(self.stored[-1]):
            terms.append(self._origin_at(inner))
        if terms or self.assign:
            self._put(inner, terms, not self.assign)
        out += body

    def _rim_row(self, region: Region, out: list[Stmt]) -> None:
        """A row near the edge: loops over the columns, one for each offset that contributes."""
        work, k = self.work, self.rank - 1
        start, stop = work.bounds[k]
        if self.assign:
            self._rim_base(region, out)
        for offset, bar in self.group.items():
            tests: list[Operand] = []
            for axis in range(k):
                at = work.plus(out, region.at[axis], -offset[axis])
                tests += work.between(out, at, *work.bounds[axis])
            name = work.rt.fresh("at")
            arm: list[Stmt] = []
            body: list[Stmt] = []
            inner = self._inside(region, arm).deeper(Var(name), body)
            self._put(inner, [work.contribution(inner, bar, offset)], True)
            first, last = work.plus(arm, start, offset[k]), work.plus(arm, stop, offset[k])
            arm.append(work.over(name, first, last, body))
            out.append(If(work.both(out, tests), arm, [], work.line))

    def _rim_base(self, region: Region, out: list[Stmt]) -> None:
        """What a row near the edge holds before any iteration contributes."""
        work, k = self.work, self.rank - 1
        if self.origin is None:
            out.append(self._base(region, Const(0), self.size[k], False))
            return
        tests: list[Operand] = []
        for axis in range(k):
            at = work.plus(out, region.at[axis], -self.stored[axis])
            tests += work.between(out, at, *work.bounds[axis])
        crossed: list[Stmt] = []
        inner = self._inside(region, crossed)
        first, last = (work.plus(crossed, bound, self.stored[k]) for bound in work.bounds[k])
        crossed += [
            self._base(inner, Const(0), first, True),
            self._base(inner, first, last, False),
            self._base(inner, last, self.size[k], True),
        ]
        whole: list[Stmt] = []
        inner = self._inside(region, whole)
        whole.append(self._base(inner, Const(0), self.size[k], True))
        out.append(If(work.both(out, tests), crossed, whole, work.line))


__all__ = ["gathered"]
