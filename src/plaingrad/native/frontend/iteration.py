"""Iteration made counted loops: over ranges, arrays, tuples, lists, several of them at once, and over indices.

In the tree that Numba's IR becomes first, a `for` loop is a general loop around `iternext`, `pair_first` (the item) and
`pair_second` (whether there is one), of what `getiter` has made.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba.core import types

from plaingrad.native.frontend.loop_heads import OVER_INDICES, STEPS, LoopHeads
from plaingrad.native.frontend.operands import is_range
from plaingrad.native.program.builder import Draft
from plaingrad.native.program.ir import (
    Break,
    Const,
    For,
    If,
    Let,
    Loop,
    Operand,
    Ref,
    Stmt,
    Var,
    breaks,
    operands,
    value_of,
    with_inner,
)
from plaingrad.native.runtime.helpers import trips


def counted(draft: Draft, body: list[Stmt]) -> list[Stmt]:
    """`body`, with calls of methods recognised, whose iterations are counted loops.

    Raises:
        NativeError: something is iterated over that is not taken natively.
    """
    iteration = _Iteration(draft, body)
    return iteration.with_elements(iteration.body(body))


class _Iteration(LoopHeads):
    """The iterations of one program.

    Attributes:
        draft: the program.
        definitions: variable -> what assigns it.
        lists: what the names of lists may stand for.
        reads: variable -> how often it is read.
        elements: item of np.nditer, an array without axes -> (the array, the index of the element).
    """

    def __init__(self, draft: Draft, body: list[Stmt]) -> None:
        super().__init__(draft, body)
        self.elements: dict[Operand, tuple[Operand, Operand]] = {}

    def body(self, body: list[Stmt]) -> list[Stmt]:
        """`body` with iteration made counted loops, and what only served it left out."""
        out: list[Stmt] = []
        if any(isinstance(s, Let) and s.op == "iternext" for s in body):
            body = self._begun_once(body)
        for s in body:
            if isinstance(s, If):
                s = If(s.test, self.body(s.then), self.body(s.orelse), s.line)
            elif isinstance(s, Loop):
                out += self._loop(s)
                continue
            elif isinstance(s, Let) and self._only_iterates(s):
                continue
            elif (
                isinstance(s, Let)
                and s.op == "call"
                and getattr(value_of(s.args[0]), "__name__", "") == "length_of_iterator"
            ):
                _, setup, bounds, _ = self._iterated(s.args[1], None)
                out += [*setup, Let(s.target, "call", (Ref(trips, "trips"), *bounds), (), s.line)]
                continue
            out.append(s)
        return out

    def _loop(self, loop: Loop) -> list[Stmt]:
        """A general loop: a counted one if it iterates."""
        parts = {s.op: s for s in loop.body if isinstance(s, Let) and s.op in STEPS}
        if "iternext" not in parts or self._begins_inside(parts["iternext"].args[0], loop.body):
            return [Loop(self.body(loop.body), loop.line)]
        self.draft.line = loop.line
        rest = [s for s in loop.body if s not in parts.values()]
        last = rest[-1] if rest else None
        if not (
            isinstance(last, If)
            and last.test == Var(parts["pair_second"].target)
            and _ends_in_break(last.orelse)
        ):
            raise self.draft.refuse("this loop")
        sunk = rest[:-1]
        if sunk and not self._may_sink(sunk, last.then):
            return self._general(loop, parts)
        item = parts["pair_first"].target if "pair_first" in parts else None
        if self._changes_its_list(parts["iternext"].args[0], last.then, loop):
            return self._general(loop, parts, grows=True)
        inner = self.body([*sunk, *last.then])
        target, setup, (start, stop, step), bind = self._iterated(parts["iternext"].args[0], item)
        after = last.orelse[:-1]
        inner = [*bind, *inner]
        if after and breaks(inner):
            flag, other = (
                self.draft.fresh("broke", types.boolean),
                self.draft.fresh("finished", types.boolean),
            )
            inner = _flagged(inner, flag)
            return [
                *setup,
                Let(flag, "copy", (Const(False),), None, loop.line),
                For(target, start, stop, step, inner, loop.line),
                Let(other, "unary", (Var(flag),), "not", loop.line),
                If(Var(other), self.body(after), [], loop.line),
            ]
        parallel = self._is_parallel(parts["iternext"].args[0])
        return [*setup, For(target, start, stop, step, inner, loop.line, parallel), *self.body(after)]

    def _is_parallel(self, iterator: Operand) -> bool:
        """Whether an iterator is one over `numba.prange`."""
        found = self.definitions.get(iterator.name) if isinstance(iterator, Var) else None
        while found is not None and found.op in ("copy", "getiter"):
            source = found.args[0]
            found = self.definitions.get(source.name) if isinstance(source, Var) else None
        return found is not None and found.op == "call" and value_of(found.args[0]) is numba.prange

    def _general(self, loop: Loop, parts: dict[str, Let], grows: bool = False) -> list[Stmt]:
        """A `for` loop with statements before its test, which run once more than its body: it counts for itself.

        Where it `grows`, the length of the list is asked for before every iteration.
        """
        item = parts["pair_first"].target if "pair_first" in parts else None
        k, setup, (start, stop, step), bind = self._iterated(parts["iternext"].args[0], item)
        n, count, up = (self.draft.fresh(name, types.int64) for name in ("n", "count", "up"))
        shift = self.draft.fresh("shift", types.int64)
        line = loop.line
        test = Let(parts["pair_second"].target, "compare", (Var(count), Var(n)), "<", line)
        length = Let(n, "call", (Ref(trips, "trips"), start, stop, step), (), line)
        if grows and (len(setup) != 1 or step != Const(1)):
            raise self.draft.refuse("a change of a list inside a loop over it and others")
        body: list[Stmt] = [*setup, length, test] if grows else [test]
        for s in loop.body:
            if isinstance(s, If) and s.test == Var(test.target):
                top = [
                    Let(shift, "binary", (Var(count), step), "*", line),
                    Let(k, "binary", (start, Var(shift)), "+", line),
                    *bind,
                    Let(up, "binary", (Var(count), Const(1)), "+", line),
                    Let(count, "copy", (Var(up),), None, line),
                ]
                s = If(s.test, [*top, *s.then], s.orelse, s.line)
            elif s in parts.values():
                continue
            body.append(s)
        before: list[Stmt] = [] if grows else [*setup, length]
        return [*before, Let(count, "copy", (Const(0),), None, line), Loop(self.body(body), line)]

    def _iterated(self, iterator: Operand, item: str | None) -> Any:
        """(loop variable, statements before, (start, stop, step), statements at the top of the body)."""
        found = self.definitions[iterator.name] if isinstance(iterator, Var) else None
        while found is not None and found.op in ("copy", "getiter"):
            source = found.args[0]
            if found.op == "getiter":
                made = self.definitions.get(source.name) if isinstance(source, Var) else None
                if made is not None and made.op == "call" and is_range(made.args[0]):
                    return item or self.draft.fresh("k", types.int64), [], _bounds(made), []
                if made is not None and made.op == "call" and isinstance(made.args[0], Const):
                    return self._over_pairs(made, item)
                if made is not None and made.op == "call" and value_of(made.args[0]) in OVER_INDICES:
                    return self._over_indices(made, item)
                return self._over_items(source, item)
            found = self.definitions.get(source.name) if isinstance(source, Var) else None
        raise self.draft.refuse("this iteration")

    def _over_items(self, source: Operand, item: str | None) -> Any:
        """The items of an array, a tuple of like items, or a list."""
        t = self._items_type(source)
        alike = isinstance(t, types.BaseTuple) and len({types.unliteral(part) for part in t.types}) == 1
        if not alike and not isinstance(t, (types.Array, types.UniTuple, types.List)):
            raise self.draft.refuse(f"iteration over {t}")
        k, n = self.draft.fresh("k", types.int64), self.draft.fresh("n", types.int64)
        setup = [Let(n, "call", (Const(len), source), (), self.draft.line)]
        bind = [Let(item, "item", (source, Var(k)), None, self.draft.line)] if item else []
        return k, setup, (Const(0), Var(n), Const(1)), bind

    def _items_type(self, source: Operand) -> Any:
        """The type of what is gone through: of a variable, a captured array, or a captured tuple of numbers."""
        value = value_of(source)
        return numba.typeof(value) if type(value) is tuple else self.draft.type_of(source)

    def _over_indices(self, made: Let, item: str | None) -> Any:
        """np.ndindex(shape) or np.ndindex(n, ...), and np.ndenumerate(array): the last index runs fastest."""
        line = self.draft.line
        setup: list[Stmt] = []
        by_elements = value_of(made.args[0]) is np.nditer
        array = made.args[1] if by_elements or value_of(made.args[0]) is np.ndenumerate else None
        if by_elements:
            self._check_elements(made)
        given = made.args[1]
        if array is not None:
            shape = self.draft.fresh("shape", types.UniTuple(types.int64, self.draft.type_of(array).ndim))
            setup.append(Let(shape, "attribute", (array,), "shape", line))
            given = Var(shape)
        t: Any = self.draft.type_of(given)
        dims: list[Operand] = list(made.args[1:])
        if isinstance(t, types.BaseTuple):
            dims = [Var(self.draft.fresh("n", types.int64)) for _ in range(t.count)]
            setup += [Let(d.name, "item", (given, Const(k)), None, line) for k, d in enumerate(dims)]
        n: Operand = Const(1)
        for d in dims:
            size = self.draft.fresh("size", types.int64)
            setup.append(Let(size, "binary", (n, d), "*", line))
            n = Var(size)
        k = self.draft.fresh("k", types.int64)
        bind: list[Stmt] = []
        rest: Operand = Var(k)
        places: list[Operand] = []
        for d in reversed(dims):
            place, left = self.draft.fresh("at", types.int64), self.draft.fresh("left", types.int64)
            bind.append(Let(place, "binary", (rest, d), "%", line))
            bind.append(Let(left, "binary", (rest, d), "//", line))
            places.insert(0, Var(place))
            rest = Var(left)
        if item and array is None:
            bind.append(Let(item, "tuple", tuple(places), None, line))
        elif item:
            where, value = (
                self.draft.fresh("where", types.UniTuple(types.int64, len(dims))),
                self.draft.fresh("part"),
            )
            self.draft.types[value] = self.draft.type_of(array).dtype
            bind.append(Let(where, "tuple", tuple(places), None, line))
            if by_elements:
                self.elements[Var(item)] = array, Var(where)
                return k, setup, (Const(0), n, Const(1)), bind
            bind.append(Let(value, "item", (array, Var(where)), None, line))
            bind.append(Let(item, "tuple", (Var(where), Var(value)), None, line))
        return k, setup, (Const(0), n, Const(1)), bind

    def _check_elements(self, made: Let) -> None:
        """Refuse np.nditer but for one array whose elements come in the order of their indices."""
        t = self.draft.type_of(made.args[1])
        if len(made.args) > 2 or not isinstance(t, types.Array) or t.layout != "C":
            raise self.draft.refuse("`np.nditer` of more than one array, or of one that is not contiguous,")

    def with_elements(self, body: list[Stmt]) -> list[Stmt]:
        """`body` in which elements that np.nditer goes through are read where their number is asked for."""
        return (
            [with_inner(self._element_read(s), self.with_elements) for s in body] if self.elements else body
        )

    def _element_read(self, s: Stmt) -> Stmt:
        """A statement that may read an element."""
        if not any(a in self.elements for a in operands(s)):
            return s
        if isinstance(s, Let) and s.args[0] in self.elements:
            item, *index = s.args
            asked = s.op == "method" and s.detail == ("item", ()) and not index
            if asked or (s.op == "item" and value_of(index[0]) == ()):
                return Let(s.target, "item", self.elements[item], None, s.line)
        self.draft.line = s.line
        raise self.draft.refuse("an item of `np.nditer` other than by `.item()`")

    def _over_pairs(self, made: Let, item: str | None) -> Any:
        """enumerate(items[, start]) and zip(items, ...), of arrays, tuples, lists, ranges, or of one another."""
        k = self.draft.fresh("k", types.int64)
        setup, n, bind, found = self._numbered(made, Var(k))
        if item:
            bind.append(Let(item, "copy", (found,), None, self.draft.line))
        return k, setup, (Const(0), n, Const(1)), bind

    def _numbered(self, made: Let, k: Var) -> tuple[list[Stmt], Operand, list[Stmt], Operand]:
        """(statements before, the number of items, statements that make item `k`, that item) of a call."""
        line, function = self.draft.line, made.args[0]
        if is_range(function):
            bounds = _bounds(made)
            n, shift = (self.draft.fresh(name, types.int64) for name in ("n", "shift"))
            found = self.draft.fresh("at", types.int64)
            setup: list[Stmt] = [Let(n, "call", (Ref(trips, "trips"), *bounds), (), line)]
            bind: list[Stmt] = [Let(shift, "binary", (k, bounds[2]), "*", line)]
            bind.append(Let(found, "binary", (bounds[0], Var(shift)), "+", line))
            return setup, Var(n), bind, Var(found)
        sources = list(made.args[1:])
        if function not in (Const(enumerate), Const(zip)) or not sources:
            raise self.draft.refuse("this iteration")
        parts: list[Operand] = []
        if function == Const(enumerate):
            place = self.draft.fresh("at", types.int64)
            begin = sources.pop() if len(sources) == 2 else Const(0)
            bind = [Let(place, "binary", (k, begin), "+", line)]
            parts.append(Var(place))
        else:
            bind = []
        setup, stop = [], None
        for source in sources:
            more, end, steps, part = self._numbered_source(source, k)
            setup += more
            bind += steps
            parts.append(part)
            if stop is None:
                stop = end
            else:
                shorter = self.draft.fresh("n", types.int64)
                setup.append(Let(shorter, "call", (Const(min), stop, end), (), line))
                stop = Var(shorter)
        assert stop is not None
        kinds = [self.draft.type_of(part) for part in parts]
        found = self.draft.fresh("items", types.BaseTuple.from_types(kinds))
        bind.append(Let(found, "tuple", tuple(parts), None, line))
        return setup, stop, bind, Var(found)

    def _numbered_source(self, source: Operand, k: Var) -> tuple[list[Stmt], Operand, list[Stmt], Operand]:
        """`_numbered` of one of the things that enumerate and zip go through."""
        made = self._only_definition(source)
        while made is not None and made.op == "copy":
            made = self._only_definition(made.args[0])
        if made is not None and made.op == "getiter":
            return self._numbered_source(made.args[0], k)
        if (
            made is not None
            and made.op == "call"
            and (is_range(made.args[0]) or made.args[0] in (Const(enumerate), Const(zip)))
        ):
            return self._numbered(made, k)
        part = self.draft.fresh("part")
        _, setup, (_, n, _), _ = self._over_items(source, None)
        self.draft.types[part] = item_type(self._items_type(source))
        return setup, n, [Let(part, "item", (source, k), None, self.draft.line)], Var(part)


def _bounds(made: Let) -> tuple[Operand, Operand, Operand]:
    """(start, stop, step) of a call of `range`."""
    given = made.args[1:]
    start, stop = (Const(0), given[0]) if len(given) == 1 else given[:2]
    return start, stop, given[2] if len(given) == 3 else Const(1)


def item_type(t: Any) -> Any:
    """The type of an item of an array or tuple."""
    if isinstance(t, types.Array):
        return t.dtype if t.ndim == 1 else t.copy(ndim=t.ndim - 1, layout="C" if t.layout == "C" else "A")
    return t.dtype


def _ends_in_break(body: list[Stmt]) -> bool:
    return bool(body) and isinstance(body[-1], Break)


def _flagged(body: list[Stmt], flag: str) -> list[Stmt]:
    """`body` that sets `flag` before it leaves its loop."""
    if not body:
        return body
    last = body[-1]
    if isinstance(last, Break):
        return [*body[:-1], Let(flag, "copy", (Const(True),), None, last.line), last]
    if isinstance(last, If):
        return [*body[:-1], If(last.test, _flagged(last.then, flag), _flagged(last.orelse, flag), last.line)]
    return body
