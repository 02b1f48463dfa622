"""Loops: entry by entry where these are known, else followed until what is known at their top stays the same."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from plaingrad.native.objects import attributes, generators, lists, operators
from plaingrad.native.objects.engine import Frame, LoopOf
from plaingrad.native.objects.lists import LONGEST
from plaingrad.native.objects.merging import shape
from plaingrad.native.objects.values import (
    FROZEN,
    UNKNOWN,
    UNSET,
    Cell,
    Items,
    Keys,
    Leaf,
    NotKnown,
    Ref,
    Refused,
    Rows,
    Several,
    State,
    Static,
    Tup,
    is_number,
    load,
)

FEW = 16  # entries that are gone through one by one without a need to
MOST_ROUNDS = 12


def bind(f: Frame, target: ast.expr, value: Any) -> None:
    """target = value."""
    f.storable(value)
    f.line = getattr(target, "lineno", f.line)
    if isinstance(target, ast.Name):
        held = f.home.captured.get(target.id)
        if target.id not in f.own and isinstance(held, Ref):
            f.state.heap[held.at] = Cell(value)
        elif target.id not in f.own and not target.id.startswith("$"):
            raise f.refuse(f"`{target.id}`, from outside the function, is assigned")
        elif target.id in f.cells:
            cell = f.state.names.get(target.id)
            if isinstance(cell, Ref):
                f.state.heap[cell.at] = Cell(value)
            else:
                f.state.names[target.id] = f.object(Cell(value))
        else:
            f.state.names[target.id] = value
    elif isinstance(target, (ast.Tuple, ast.List)):
        value = f.sure(value)
        for part, each in zip(target.elts, taken_apart(f, target, value), strict=True):
            bind(f, part.value if isinstance(part, ast.Starred) else part, each)
    elif isinstance(target, ast.Attribute):
        of = f.sure(f.after([value], target.value))
        attributes.set_attribute(f, of, target.attr, value)
    elif isinstance(target, ast.Subscript):
        of = f.sure(f.after([value], target.value))
        count = len(f.pins)
        f.pins += [value, of]
        index = lists.index_of(f, target.slice)
        del f.pins[count:]
        lists.set_item(f, of, index, value)
    else:
        raise f.refuse(f"`{ast.unparse(target)} = ...`")


def taken_apart(f: Frame, target: Any, value: Any) -> list[Any]:
    """The parts of a value that several names are assigned."""
    count = len(target.elts)
    stars = [k for k, part in enumerate(target.elts) if isinstance(part, ast.Starred)]
    found = lists.entries(f, value)
    if found is None and not stars and isinstance(f.thing(value), (Leaf, Rows)):
        of = f.thing(value)
        return [lists.item(f, of if isinstance(of, Leaf) else value, Static(k)) for k in range(count)]
    if found is None:
        found = lists.all_of(f, value)
    if stars and len(found) >= count - 1:
        k = stars[0]
        rest = len(found) - (count - 1 - k)
        return [*found[:k], f.object(Items(found[k:rest])), *found[rest:]]
    if len(found) != count:
        raise f.refuse("as many names as values are wanted")
    return found


# -- going through --------------------------------------------------------------------------------------------------


def over(f: Frame, iterable: Any, body: Callable[[Any], None], node: Any = None) -> None:
    """Follow `body`, which is given an entry, for all entries."""
    thing = f.thing(iterable)
    if isinstance(thing, Static) and not isinstance(thing.value, str):
        raise f.refuse("a loop over what is no list")
    if generators.is_generator(thing):
        generators.gone_through(f, thing, body)
        return
    if isinstance(thing, Several) and thing.kind == "enumerate" and generators.is_generator(thing.parts[0]):
        numbered(f, thing, body)
        return
    entries = lists.entries(f, iterable)
    if entries is not None and len(entries) <= LONGEST and not is_range(thing) and len(entries) <= FEW:
        attempt = [lambda: unrolled(f, iterable, entries, body), lambda: counted(f, iterable, body, node)]
    elif entries is not None and len(entries) <= LONGEST:
        attempt = [lambda: counted(f, iterable, body, node), lambda: unrolled(f, iterable, entries, body)]
    else:
        attempt = [lambda: counted(f, iterable, body, node)]
    before, block, size = f.state.copy(), f.block, len(f.block)
    loops, returns, pins = len(f.loops), len(f.returns), len(f.pins)
    for k, go in enumerate(attempt):
        is_last = k == len(attempt) - 1
        try:
            f.whole.attempts += not is_last
            go()
            return
        except NotKnown:
            if is_last:
                raise
            f.state, f.block = before.copy(), block
            del f.block[size:], f.loops[loops:], f.returns[returns:], f.pins[pins:]
        finally:
            f.whole.attempts -= not is_last


def numbered(f: Frame, x: Several, body: Callable[[Any], None]) -> None:
    """Follow `body` for what a generator gives, with numbers."""
    count = f"$count{f.whole.new()}"
    f.state.names[count] = x.parts[1]

    def both(value: Any) -> None:
        k = f.state.names[count]
        f.state.names[count] = operators.operation(f, ast.Add(), k, Static(1), ast.Pass())
        body(Tup((k, value)))

    generators.gone_through(f, x.parts[0], both)
    if f.state is not None:
        del f.state.names[count]


def is_range(x: Any) -> bool:
    return (
        isinstance(x, Several)
        and x.kind in ("range", "enumerate", "reversed")
        and all(p.kind == "range" if isinstance(p, Several) else isinstance(p, Static) for p in x.parts)
    )


def unrolled(f: Frame, iterable: Any, entries: list[Any], body: Callable[[Any], None]) -> None:
    """The loop entry by entry."""
    f.pins.append(Tup(tuple(entries)))
    held = watched(f, iterable)
    for x in entries:
        loop = LoopOf(unrolled=True)
        f.loops.append(loop)
        body(x)
        f.loops.pop()
        jumps = [*loop.backs, *loop.breaks]
        if jumps and (f.state is not None or len(jumps) > 1):
            raise NotKnown(
                "a loop over a list of objects is left, or goes on, by a test that is not known",
                f.home.file,
                f.line,
                f.home.name,
            )
        if jumps:
            f.state = jumps[0][0]
        if loop.breaks or f.state is None:
            break
    f.pins.pop()
    let_go(f, held)


def counted(f: Frame, iterable: Any, body: Callable[[Any], None], node: Any) -> None:
    """The loop as one of the program that is made."""
    thing = f.thing(iterable)
    index = f.whole.fresh("i")
    if isinstance(thing, Leaf):
        through = f.expression(thing)
        element: Callable[[], Any] = lambda: UNKNOWN if thing == UNKNOWN else Leaf(index)
    elif isinstance(thing, Several) and thing.kind == "range":
        through = ast.Call(f.whole.outside(range, "range"), [f.expression(p) for p in thing.parts], [])
        element = lambda: Leaf(index)
    else:
        count = size(f, iterable)
        through = ast.Call(f.whole.outside(range, "range"), [f.expression(count)], [])
        element = lambda: at(f, iterable, Leaf(index))
    held = watched(f, iterable)
    f.pins.append(iterable)
    loop = ast.For(ast.Name(index, ast.Store()), through, [], [])

    def go() -> None:
        body(element())

    followed(f, loop, go, node)
    f.pins.pop()
    let_go(f, held)


def let_go(f: Frame, held: list[tuple[int, int]]) -> None:
    """The lists that a loop went through may be changed again."""
    for x, before in held:
        if f.state is not None and x in f.state.heap:
            f.state.heap[x].frozen = before


def watched(f: Frame, x: Any) -> list[tuple[int, int]]:
    """The lists that a loop goes through, which must not change meanwhile: they are frozen; what they were."""
    thing = f.thing(x)
    if isinstance(thing, Several):
        return [k for part in thing.parts for k in watched(f, part)]
    if isinstance(x, Ref) and not thing.frozen & FROZEN:
        before = thing.frozen
        thing.frozen |= FROZEN
        return [(x.at, before)]
    return []


def size(f: Frame, x: Any) -> Any:
    """The number of entries."""
    thing = f.thing(x)
    if isinstance(thing, Several) and thing.kind in ("enumerate", "reversed", "once"):
        return size(f, thing.parts[0])
    if isinstance(thing, Several) and thing.kind == "zip":
        sizes = [size(f, p) for p in thing.parts]
        if all(isinstance(s, Static) for s in sizes):
            return Static(min(s.value for s in sizes))
        names = [f.expression(s) for s in sizes]
        return sizes[0] if len(names) == 1 else f.leaf(ast.Call(f.whole.outside(min, "min"), names, []), "n")
    if isinstance(thing, Several) and thing.kind == "range":
        whole = ast.Call(f.whole.outside(range, "range"), [f.expression(p) for p in thing.parts], [])
        return f.leaf(ast.Call(f.whole.outside(len, "len"), [whole], []), "n")
    if isinstance(thing, Items):
        lists.as_rows(f, x)
    made = lists.length(f, x)
    return Static(made.value) if isinstance(made, ast.Constant) else f.leaf(made, "n")


def at(f: Frame, x: Any, k: Leaf) -> Any:
    """Entry number k."""
    thing = f.thing(x)
    if not isinstance(thing, Several):
        return lists.item(f, thing if isinstance(thing, (Leaf, Tup)) else x, k, True)
    if thing.kind == "once":
        return at(f, thing.parts[0], k)
    if thing.kind == "zip":
        return Tup(tuple([at(f, p, k) for p in thing.parts]))
    if thing.kind == "enumerate":
        start = thing.parts[1]
        is_zero = isinstance(start, Static) and start.value == 0
        number = k if is_zero else f.leaf(ast.BinOp(f.expression(start), ast.Add(), load(k.name)))
        return Tup((number, at(f, thing.parts[0], k)))
    if thing.kind == "reversed":
        last = ast.BinOp(f.expression(size(f, thing.parts[0])), ast.Sub(), ast.Constant(1))
        return at(f, thing.parts[0], f.leaf(ast.BinOp(last, ast.Sub(), load(k.name))))
    start, _, step = thing.parts
    moved = ast.BinOp(load(k.name), ast.Mult(), f.expression(step))
    return f.leaf(ast.BinOp(f.expression(start), ast.Add(), moved))


def followed(f: Frame, loop: Any, body: Callable[[], None], node: Any) -> None:
    """Follow a loop until what is known at its top stays; the state after it is that at its top."""
    entry, outer = f.state, f.block
    local = only_inside(f, node) - {n for n, v in entry.names.items() if v is not UNSET}
    head, made = entry.copy(), set[str]()
    count = len(f.returns)
    for _ in range(MOST_ROUNDS):
        del f.returns[count:]
        f.state, f.block, here = head.copy(), [], LoopOf()
        f.loops.append(here)
        body()
        f.loops.pop()
        inner: list[Any] = f.block
        f.block = outer
        if f.state is not None:
            slot: list[Any] = []
            inner.append(slot)
            here.backs.append((f.state, slot))
        ends = [*here.backs, *here.breaks]
        states = [State({n: v for n, v in s.names.items() if n not in local}, s.heap) for s, _ in ends]
        merged = f.merge([entry.copy(), *states])
        names = [n for n in merged.target.names if not n.startswith("#")]
        new, mine, _ = shape(merged.target, [merged.target.names[n] for n in names], merged.made.__contains__)
        old, its, _ = shape(head, [head.names.get(n, UNSET) for n in names], made.__contains__)
        if new == old:
            break
        head, made = merged.target, merged.made
    else:
        raise f.refuse("a loop in which objects change their structure again and again")
    named = dict(zip(mine, its, strict=True))
    f.block.append(merged.assignments(0, named))
    for k, (_, slot) in enumerate(ends):
        slot += merged.assignments(k + 1, named)
    loop.lineno = max(f.line, 1)
    loop.body = inner
    f.block.append(loop)
    f.state = head
    if isinstance(loop, ast.While) and not here.breaks:
        f.state = None


def only_inside(f: Frame, node: Any) -> set[str]:
    """The variables that are read in a loop only, if at all."""
    if isinstance(node, set):
        return node
    if node is None or f.node is None:
        return set()
    return {n for n in f.own if reads(f.node, n) == reads(node, n)} - f.cells


def reads(node: ast.AST, name: str) -> int:
    """How often a name is read."""
    if isinstance(node, ast.Name):
        return int(node.id == name and isinstance(node.ctx, ast.Load))
    count = int(isinstance(node, ast.AugAssign) and getattr(node.target, "id", None) == name)
    return count + sum(reads(part, name) for part in ast.iter_child_nodes(node))


# -- made of loops --------------------------------------------------------------------------------------------------


def comprehension(f: Frame, node: Any, fold: tuple[Any, Callable[[Any, Any], Any]] | None = None) -> Any:
    """A list or dictionary of what loops give; of a generator expression a list.

    With `fold`, (start, combine), what comes of combining all entries, which are put into no list.
    """
    targets = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
    own, cells = f.own, f.cells
    kept = {n: f.state.names.pop(n) for n in targets if n in f.state.names}
    f.pins += kept.values()
    f.own, f.cells = own | targets, cells - targets
    result = f"$made{f.whole.new()}"
    if fold is not None:
        f.state.names[result] = fold[0]
    else:
        f.state.names[result] = f.object(Keys({}) if isinstance(node, ast.DictComp) else Items([]))
    _level(f, node, 0, result, fold)
    f.own, f.cells = own, cells
    found = f.state.names.pop(result)
    for n in targets:
        f.state.names.pop(n, None)
    del f.pins[len(f.pins) - len(kept) :]
    f.state.names.update(kept)
    return found


def _level(f: Frame, node: Any, k: int, result: str, fold: Any) -> None:
    if k == len(node.generators):
        if fold is not None:
            value = f.evaluate(node.elt)
            f.state.names[result] = fold[1](f.state.names[result], value)
        elif isinstance(node, ast.DictComp):
            key = lists.key_of(f, f.evaluate(node.key))
            value = f.evaluate(node.value)
            f.change(f.state.names[result]).items[key] = value
        else:
            value = f.evaluate(node.elt)
            lists.append(f, f.state.names[result], value)
        return
    generator = node.generators[k]

    def body(x: Any) -> None:
        bind(f, generator.target, x)
        tested(0)

    def tested(n: int) -> None:
        if n == len(generator.ifs):
            _level(f, node, k + 1, result, fold)
            return
        test = operators.truth(f, f.evaluate(generator.ifs[n]))
        if isinstance(test, Static):
            if test.value:
                tested(n + 1)
            return

        def then() -> Any:
            tested(n + 1)
            return Static(None)

        operators.chosen(f, test, then, lambda: Static(None))

    targets = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
    over(f, f.evaluate(generator.iter), body, targets)


def folded(f: Frame, iterable: Any, start: Any, combine: Callable[[Any, Any], Any]) -> Any:
    """combine(... combine(combine(start, x0), x1) ...)."""
    total = f"$total{f.whole.new()}"
    f.state.names[total] = start

    def body(x: Any) -> None:
        f.state.names[total] = combine(f.state.names[total], x)

    over(f, iterable, body)
    return f.state.names.pop(total)


def listed(f: Frame, iterable: Any) -> Any:
    """list(iterable), of unknown length."""
    made = f"$made{f.whole.new()}"
    f.state.names[made] = f.object(Items([]))

    def body(x: Any) -> None:
        lists.append(f, f.state.names[made], x)

    over(f, iterable, body)
    return f.state.names.pop(made)


def extreme_of(f: Frame, iterable: Any, which: Any) -> Any:
    """min or max of numbers whose count is not known."""
    first = at(f, iterable, lists_zero(f))
    if not isinstance(first, Leaf) and not is_number(first):
        raise f.refuse(f"`{which.__name__}` of objects whose number is not known")

    def combine(a: Any, b: Any) -> Any:
        return f.leaf(
            ast.Call(f.whole.outside(which, which.__name__), [f.expression(a), f.expression(b)], [])
        )

    return folded(f, iterable, first, combine)


def lists_zero(f: Frame) -> Leaf:
    return f.leaf(ast.Constant(0))


__all__ = ["Refused", "bind", "comprehension", "extreme_of", "folded", "followed", "listed", "over"]
