"""Reduction loops, which only add up: forward and reverse in one pass.

total = sum over i of f(i, x) carries nothing from one iteration to the next but the sum, whose cotangent is the same
number in all of them. So the cotangent of x is (d total / d x) times that number, and the factor in front can be summed
on the way forward, iteration by iteration, with 1 for the cotangent of the sum: no tape of one entry an iteration,
nothing computed twice, and data is read once. On the way back the factor is multiplied by the cotangent
that has arrived; nothing is added where that is 0, so that an infinite slope does no harm there.

Only loops where this pays are taken: those that use active arrays at places that do not follow the loop's counter, and
active numbers. A loop over the elements of an active array is better run again on the way back.

What an iteration reads, writes and hands to the next one is seen in `elements.loop_of`. Its body stays as it is, with
loops and branches inside: reverse mode derives it as it does any statements, so single assignments are not needed.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from numba.core import config, types

from plaingrad.native.loops.blocks import in_packs
from plaingrad.native.loops.element_code import CHEAP
from plaingrad.native.loops.elements import ElementLoop, loop_of
from plaingrad.native.loops.fission import split
from plaingrad.native.loops.scratch import scratch_arrays
from plaingrad.native.loops.winners import has_choices
from plaingrad.native.modes.transform import has_kinks
from plaingrad.native.program.dispatchers import options_of
from plaingrad.native.program.ir import (
    Break,
    Const,
    Do,
    For,
    If,
    InPlace,
    Let,
    Loop,
    Parts,
    Raise,
    Ref,
    Stmt,
    Store,
    Var,
    free_reads,
    operands,
    reads_of,
    renamed,
    statements,
)
from plaingrad.native.program.value_types import is_array, is_real
from plaingrad.native.reverse.recomputation import is_recomputable
from plaingrad.native.runtime.declare import overload, register_jitable

if TYPE_CHECKING:
    from plaingrad.native.reverse.reverse import Reverse

MOST = 2  # sums in one loop; each costs a reverse pass of its own


def fused(rt: Reverse, s: For | Loop) -> Parts | None:
    """The parts of a loop that only adds up, or None for any other."""
    if not isinstance(s, For) or not any(x is s for x in rt.exploded.body) or _leaves(s.body):
        return None
    loop = loop_of(rt, s)
    found = sums_of(rt, s, loop)
    if not found or len(found) > MOST or not _pays(rt, loop):
        return None
    if len(found) > 1 and _views_of_outer(rt, loop):
        return None  # the shadow of a view is a view of one factor only, and every sum has factors of its own
    state, setup = rt.trial(), len(rt.setup)
    rt.may_replay, before = (
        False,
        rt.may_replay,
    )  # of several iterations at once each would have another winner
    inner = rt.body(s.body)
    rt.may_replay = before
    if not inner.backward:
        return Parts([For(s.target, s.start, s.stop, s.step, inner.forward, s.line)])
    tapes = {x.target for x in rt.setup[setup:] if isinstance(x, Let) and x.op == "call"}
    packs = _in_packs(rt, s, loop, inner, found, tapes)
    if packs is None and before and any(map(has_choices, statements(s.body))):
        rt.undo(state)
        inner = rt.body(s.body)
    return packs or _one_pass(rt, s, loop, inner, sorted(found))


def _in_packs(
    rt: Reverse, s: For, loop: ElementLoop, inner: Parts, totals: set[str], tapes: set[str]
) -> Parts | None:
    """The loop for several iterations at once, if it has loops inside, carries one sum and nothing else."""
    family = _family(s.body, totals)
    carried = {name for name in _carried(rt, loop) if name not in family}
    if len(totals) != 1 or carried or not any(isinstance(x, For) for x in statements(s.body)):
        return None
    [total] = totals
    options = options_of(rt.source.function)
    if rt.types[total] != types.float64 or options.get("boundscheck") or config.BOUNDSCHECK:
        return None  # what gathers rows does not look at bounds
    made = in_packs(rt, s, inner, total, set(family), scratch_arrays(rt, s), tapes)
    if made is None:
        return None
    loops, factors = made
    after: list[Stmt] = []
    for x, factor in sorted(factors.items()):
        _scale(rt, x, factor, total, [], after, s.line)
    return Parts(loops, after)


def rerun(rt: Reverse, s: For | Loop) -> Parts | None:
    """The parts of a loop that only adds up numbers that are cheap to compute, or None for any other.

    Nothing is kept: the way back computes every iteration again, in the order of the way forward, which vectorises.
    """
    if not isinstance(s, For) or _leaves(s.body):
        return None
    loop = loop_of(rt, s)
    if not _is_pure(rt, loop) or not sums_of(rt, s, loop):
        return None
    state, setup = rt.trial(), len(rt.setup)
    inner = rt.body(s.body)
    again = _computed_again(rt, s, inner)
    if again is None or len(rt.setup) > setup:  # something has to be kept
        rt.undo(state)
        return None
    forward = For(s.target, s.start, s.stop, s.step, inner.forward, s.line)
    if not inner.backward:
        return Parts([forward])
    zeros = [Let(f"{x}_b", "copy", (rt.zero(rt.types[x]),), None, s.line) for x in _own_numbers(rt, s, loop)]
    back = For(s.target, s.start, s.stop, s.step, [*again, *zeros, *inner.backward], s.line)
    return Parts([forward], [back])


def _is_pure(rt: Reverse, loop: ElementLoop) -> bool:
    """Whether an iteration does nothing but compute numbers."""
    effects = any(isinstance(x, (Store, InPlace, Do, Raise, Loop)) for x in statements(loop.body))
    return not loop.written and not effects and not any(is_array(rt.types.get(x)) for x in loop.inside)


def _own_numbers(rt: Reverse, s: For, loop: ElementLoop) -> list[str]:
    """The active numbers that live in one iteration of `s` only."""
    carried = loop.exposed | rt.read_outside(s)
    return sorted(x for x in loop.inside if x in rt.active and x not in carried and is_real(rt.types.get(x)))


def _computed_again(rt: Reverse, s: For, inner: Parts) -> list[Stmt] | None:
    """The statements of an iteration whose results its reverse reads; None if they are not cheap or not alone."""
    definitions: dict[str, Let | None] = {}
    for x in statements(inner.forward):
        if isinstance(x, (Let, For)):  # below a branch it may be valid only there
            alone = x.target not in definitions and any(x is y for y in inner.forward)
            definitions[x.target] = x if isinstance(x, Let) and alone else None
    needed = [name for name in free_reads(inner.backward, {s.target}) if name in definitions]
    found: set[str] = set()
    while needed:
        name = needed.pop()
        if name in found or name == s.target:
            continue
        d = definitions[name]
        if d is None or rt.assigned.get(name, 0) > 1 or not (is_recomputable(rt, d) or _is_cheap(d)):
            return None
        found.add(name)
        needed += [a.name for a in operands(d) if isinstance(a, Var) and a.name in definitions]
    return [x for x in statements(inner.forward) if isinstance(x, Let) and x.target in found]


def _is_cheap(d: Let) -> bool:
    """Whether `d` is a division, a root or the like of one number: a loop without a tape is faster with it."""
    return d.op == "call" and getattr(d.args[0], "value", None) in CHEAP and not has_kinks(d) and not d.detail


def sums_of(rt: Reverse, s: For, loop: ElementLoop) -> set[str]:
    """The numbers that `s` carries from iteration to iteration, if it only adds to them; else nothing.

    Nothing as well where it writes memory with a derivative that is there before it, and where another number of it
    is read behind it: a cotangent of its own arrives there, even if it is one of these sums as it was at some time.
    """
    if _writes_active(rt, s, loop):
        return set()
    outside = rt.read_outside(s)
    carried = {x for x in loop.inside if x in rt.active and (x in loop.exposed or x in outside)}
    if any(not isinstance(rt.types.get(name), types.Float) for name in carried):
        return set()
    return carried if carried <= loop.exposed and only_added(s.body, carried) else set()


def only_added(body: list[Stmt], totals: set[str]) -> bool:
    """Whether all that is done with `totals` in `body` is to add to them and to subtract from them.

    The end of every way through the body then gives a total as it was at its start, plus terms.
    """
    owner = _family(body, totals)
    for x in statements(body):
        kin = {owner[a.name] for a in operands(x) if isinstance(a, Var) and a.name in owner}
        if isinstance(x, (Let, For)) and x.target in owner:
            if not isinstance(x, Let) or _owner(x, owner) != owner[x.target]:
                return False
        elif kin:
            return False
    return True


def _family(body: list[Stmt], totals: set[str]) -> dict[str, str]:
    """The variables that are one of `totals` plus terms, each with that one."""
    owner = {name: name for name in totals}
    grew = True
    while grew:
        grew = False
        for x in statements(body):
            if isinstance(x, Let) and x.target not in owner:
                mine = _owner(x, owner)
                if mine is not None:
                    owner[x.target] = mine
                    grew = True
    return owner


def _owner(x: Let, owner: dict[str, str]) -> str | None:
    """The total of which a value is the sum with terms, if it is one."""
    places = [k for k, a in enumerate(x.args) if isinstance(a, Var) and a.name in owner]
    if len(places) != 1:
        return None
    if x.op == "copy" or (x.op == "binary" and (x.detail == "+" or (x.detail == "-" and places == [0]))):
        return owner[x.args[places[0]].name]  # type: ignore[union-attr]
    return None


def _writes_active(rt: Reverse, s: For, loop: ElementLoop) -> bool:
    """Whether `s` writes memory with a derivative that is there before it."""
    fresh = {rt.memory.of(name) for name in scratch_arrays(rt, s)}
    local = dict.fromkeys(fresh, True)
    for name, t in rt.types.items():
        if isinstance(t, types.Array) and rt.memory.of(name) not in fresh:
            owner = rt.memory.of(name)
            local[owner] = local.get(owner, True) and name in loop.inside
    return any(rt.is_active(Var(x)) and not local.get(rt.memory.of(x), False) for x in loop.written)


def _views_of_outer(rt: Reverse, loop: ElementLoop) -> bool:
    """Whether the loop makes views of active arrays from before it."""
    arrays = {name for name in rt.active if is_array(rt.types.get(name))}
    outer = {rt.memory.of(name) for name in arrays - loop.inside}
    return any(rt.memory.of(name) in outer for name in arrays & loop.inside)


def _leaves(body: list[Stmt]) -> bool:
    """Whether a jump out of the loop whose body this is may happen."""
    for s in body:
        if isinstance(s, Break):
            return True
        if isinstance(s, If) and (_leaves(s.then) or _leaves(s.orelse)):
            return True
    return False


def _pays(rt: Reverse, loop: ElementLoop) -> bool:
    """Whether every active array from before the loop is used at places that do not follow the loop's counter."""
    follows = loop.following()
    outer = [x for x in loop.reads if rt.is_active(x.array) and x.array.name not in loop.inside]
    return not any(isinstance(x.index, Var) and x.index.name in follows for x in outer)


# The program ----------------------------------------------------------------------------------------------------------


def _one_pass(rt: Reverse, s: For, loop: ElementLoop, inner: Parts, totals: list[str]) -> Parts:
    """The loop with the reverse of every iteration behind it, and what remains for the way back."""
    line = s.line
    assigned = {x.target for x in statements(inner.forward) if isinstance(x, (Let, For))}
    local = sorted(name for name in rt.active if name in assigned and is_real(rt.types.get(name)))
    outer = _outer(rt, inner, {*assigned, *scratch_arrays(rt, s)}, totals)
    top, values = _values_at_the_top(rt, loop, inner)
    body = [*top, *inner.forward]
    before: list[Stmt] = []
    after: list[Stmt] = []
    for total in totals:
        factors = {f"{x}_b": rt.fresh(f"{x}_factor") for x in outer}
        if total is totals[0]:  # views of active arrays are made on the way forward, with their shadows
            body = renamed(body, factors)
        zeros = [*local, *(other for other in totals if other is not total)]
        body += [Let(f"{x}_b", "copy", (rt.zero(rt.types[x]),), None, line) for x in zeros if x != total]
        body.append(Let(f"{total}_b", "copy", (Const(1.0),), None, line))
        body += renamed(inner.backward, {**values, **factors})
        for x in outer:
            _scale(rt, x, factors[f"{x}_b"], total, before, after, line)
    whole = split(rt, For(s.target, s.start, s.stop, s.step, body, line))
    return Parts([*before, *whole], after)


def _scale(
    rt: Reverse, x: str, factor: str, total: str, before: list[Stmt], after: list[Stmt], line: int
) -> None:
    """A zero for d total / dx before the loop, and its product with the cotangent of the total behind."""
    t = rt.types[x]
    seed = Var(f"{total}_b")
    if is_array(t):
        rt.types[factor] = t.copy(layout="C")
        before.append(Let(factor, "call", (Ref(np.zeros_like, "zeros_like"), Var(x)), (), line))
        call = (Ref(add_scaled, "add_scaled"), Var(f"{x}_b"), Var(factor), seed)
        after.append(Do(Let("_", "call", call, (), line), line))
    else:
        rt.types[factor] = t
        before.append(Let(factor, "copy", (rt.zero(t),), None, line))
        term = rt.emit(after, "call", (Ref(scaled, "scaled"), Var(factor), seed), (), line)
        after.append(Let(f"{x}_b", "binary", (Var(f"{x}_b"), term), "+", line))


def _outer(rt: Reverse, inner: Parts, assigned: set[str], totals: list[str]) -> list[str]:
    """The active variables from before the loop to whose cotangents an iteration adds."""
    every = [*inner.forward, *inner.backward]
    names = reads_of(every) | {x.target for x in statements(every) if isinstance(x, Let)}
    bases = {name[:-2] for name in names if name.endswith("_b")}
    return sorted(x for x in bases if x in rt.active and x not in assigned and x not in totals)


def _carried(rt: Reverse, loop: ElementLoop) -> set[str]:
    """The variables that have a value before the loop and another one in every iteration."""
    inside = Counter(x.target for x in statements(loop.body) if isinstance(x, (Let, For)))
    return {name for name, count in inside.items() if rt.assigned.get(name, 0) > count} & loop.exposed


def _values_at_the_top(rt: Reverse, loop: ElementLoop, inner: Parts) -> tuple[list[Stmt], dict[str, str]]:
    """(copies of the carried values that the reverse of an iteration reads, what they are called there)."""
    top: list[Stmt] = []
    names: dict[str, str] = {}
    for name in sorted(_carried(rt, loop) & free_reads(inner.backward, set())):
        names[name] = rt.fresh(f"{name}_now")
        rt.types[names[name]] = rt.types[name]
        top.append(Let(names[name], "copy", (Var(name),), None, loop.line))
    return top, names


# What the program calls -----------------------------------------------------------------------------------------------


@register_jitable
def scaled(factor, seed):  # type: ignore[no-untyped-def]
    """factor * seed; 0 where one of them is, even if the other is infinite."""
    if seed == 0 or factor == 0:
        return 0.0
    return factor * seed


def add_scaled(target, factor, seed):  # type: ignore[no-untyped-def]
    """target += factor * seed, element by element, with `scaled` for the product; arrays of one shape."""
    for place in np.ndindex(target.shape):
        target[place] += scaled(factor[place], seed)


@overload(add_scaled)
def _add_scaled(target, factor, seed):  # type: ignore[no-untyped-def]
    if target.ndim > 1:

        def add_each(target, factor, seed):  # type: ignore[no-untyped-def]
            for k in range(target.shape[0]):
                add_scaled(target[k], factor[k], seed)

        return add_each

    def add_alike(target, factor, seed):  # type: ignore[no-untyped-def]
        if seed == 0:
            return
        if np.isfinite(seed):
            for k in range(target.size):
                target[k] += factor[k] * seed
        else:
            for k in range(target.size):
                target[k] += scaled(factor[k], seed)

    if target.ndim == 0:
        return lambda target, factor, seed: _add_number(target, factor, seed)
    return add_alike


@register_jitable
def _add_number(target, factor, seed):  # type: ignore[no-untyped-def]
    target[()] += scaled(factor[()], seed)
