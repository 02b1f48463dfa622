"""Loop fission at exp, log, ...: the arguments of many iterations first, then the function of all, then the rest.

    for t in range(n):                          for first in range(0, n, 256):
        e = exp(a + b * z[t])                       last = min(first + 256, n)
        s = s * e                    becomes        for t in range(first, last): each[t - first] = a + b * z[t]
                                                    exp_each(each, last - first)
                                                    for t in range(first, last): s = s * each[t - first]

This is done where the arguments do not depend on what the loop carries from iteration to iteration and are read from
memory that the loop does not write; they may be made of what has been split off before. The values are the same to the
last bit (see `vecmath`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numba.core import types

from plaingrad.native.loops.elements import ElementLoop, loop_of
from plaingrad.native.program.ir import (
    Const,
    Do,
    For,
    Let,
    Loop,
    Parts,
    Raise,
    Ref,
    Stmt,
    Store,
    Var,
    breaks,
    renamed,
    statements,
)
from plaingrad.native.reverse import tapes
from plaingrad.native.runtime.vector import vecmath
from plaingrad.native.runtime.vector.map import EACH

if TYPE_CHECKING:
    from plaingrad.native.reverse.reverse import Reverse

BLOCK = 256  # arguments at a time: they stay in the nearest cache
FUNCTIONS = {getattr(module, name): name for module in (math, np) for name in EACH}
PURE = frozenset(("copy", "binary", "unary", "item", "attribute", "tuple"))
PURE_CALLS = (abs, float, np.uint64)


def split_form(rt: Reverse, s: For | Loop) -> Parts | None:
    """The general parts of a loop, its way forward split; None where there is nothing to split off."""
    if not isinstance(s, For) or not any(_name(rt, x) for x in s.body):
        return None
    parts = tapes.general(rt, s)
    return Parts(
        [x for y in parts.forward for x in (split(rt, y) if isinstance(y, For) else [y])], parts.backward
    )


def split(rt: Reverse, loop: For) -> list[Stmt]:
    """`loop`, of a derived program, with what can be split off in front."""
    if loop.step != Const(1) or breaks(loop.body) or any(isinstance(x, Raise) for x in statements(loop.body)):
        return [loop]
    independent = _independent(rt, loop_of(rt, loop))
    calls = [
        (x, name)
        for x in loop.body
        if isinstance(x, Let) and (name := _name(rt, x)) and _is_known(x, loop.target, independent)
        if vecmath.is_exact(name)
    ]
    if not calls:
        return [loop]
    line = loop.line
    first, last, size = rt.fresh("first"), rt.fresh("last"), rt.fresh("size")
    before: list[Stmt] = [
        Let(size, "binary", (Var(first), Const(BLOCK)), "+", line),
        Let(last, "call", (Ref(min, "min"), Var(size), loop.stop), (), line),
    ]
    rest = list(loop.body)
    done: dict[str, Var] = {}  # what has been split off: where its values are
    for call, name in calls:
        each = rt.fresh("each")
        make = (Ref(np.empty, "empty"), Const(BLOCK), Ref(np.float64, "float64"))
        rt.setup.append(Let(each, "call", make, (), line))
        rt.types[each] = types.Array(types.float64, 1, "C")
        place, at = rt.fresh("place"), rt.fresh("at")
        index: list[Stmt] = [
            Let(place, "binary", (Var(loop.target), Var(first)), "-", line),
            Let(at, "call", (Ref(np.uint64, "uint64"), Var(place)), (), line),
        ]
        names = {x: rt.fresh(x) for x in _needed(call, independent, done)}
        rt.types.update({new: rt.types[x] for x, new in names.items() if x in rt.types})
        fill = [
            Let(x.target, "item", (done[x.target], Var(at)), None, x.line) if x.target in done else x
            for x in loop.body
            if isinstance(x, Let) and x.target in names
        ]
        fill = renamed([*index, *fill, Store(Var(each), Var(at), call.args[1], line)], names)
        before.append(For(loop.target, Var(first), Var(last), Const(1), fill, line))
        count = rt.fresh("count")
        before.append(Let(count, "binary", (Var(last), Var(first)), "-", line))
        all_of_them = (Ref(EACH[name], f"{name}_each"), Var(each), Var(count))
        before.append(Do(Let("_", "call", all_of_them, (), line), line))
        done[call.target] = Var(each)
        now = Let(call.target, "item", (Var(each), Var(at)), None, call.line)
        rest = [x for y in rest for x in ([*index, now] if y is call else [y])]
    before.append(For(loop.target, Var(first), Var(last), Const(1), rest, line))
    return [For(first, loop.start, loop.stop, Const(BLOCK), before, line)]


def _name(rt: Reverse, x: Stmt) -> str | None:
    """The name of the function of a float64 that `x` calls, if many of its values may be computed at once."""
    if not isinstance(x, Let) or x.op != "call" or x.detail or len(x.args) != 2:
        return None
    if rt.type_of(x.args[1]) != types.float64:
        return None
    try:
        return FUNCTIONS.get(getattr(x.args[0], "value", None))
    except TypeError:
        return None


def _independent(rt: Reverse, loop: ElementLoop) -> dict[str, Let | None]:
    """The values that an iteration assigns: how they are computed, if that is cheap and from no other iteration."""
    found: dict[str, Let | None] = dict.fromkeys(loop.inside - set(loop.counters))
    written = {rt.memory.of(name) for name in loop.written}
    for x in loop.body:
        if isinstance(x, Let) and loop.own.get(x.target) is x and _is_known(x, loop.counters[0], found):
            name = _name(rt, x)
            if _is_cheap(rt, x, written) or (name is not None and vecmath.is_exact(name)):
                found[x.target] = x
    return found


def _is_known(x: Let, counter: str, independent: dict[str, Let | None]) -> bool:
    """Whether all operands are independent of other iterations."""
    names = [a.name for a in x.args if isinstance(a, Var) and a.name != counter]
    return all(name not in independent or independent[name] is not None for name in names)


def _is_cheap(rt: Reverse, x: Let, written: set[str]) -> bool:
    if x.op == "call":
        return getattr(x.args[0], "value", None) in PURE_CALLS
    if x.op not in PURE or x.detail in ("**", "@", "//", "%") or (x.detail == "/" and written):
        return False  # a division may raise: not before something is written
    if x.op in ("item", "attribute") and rt.type_of(x.args[0]) is None:
        return False  # of a tape or shadow
    arrays = [a.name for a in x.args if isinstance(a, Var) and isinstance(rt.types.get(a.name), types.Array)]
    if not arrays:
        return not isinstance(rt.types.get(x.target), types.Array)
    return x.op == "item" and rt.memory.of(arrays[0]) not in written and len(arrays) == 1


def _needed(call: Let, independent: dict[str, Let | None], done: dict[str, Var]) -> set[str]:
    """The values that the argument of `call` takes, to those in `done`."""
    found: set[str] = set()
    left = [call]
    while left:
        for a in left.pop().args:
            d = independent.get(a.name) if isinstance(a, Var) else None
            if d is not None and d.target not in found:
                found.add(d.target)
                left += [] if d.target in done else [d]
    return found
