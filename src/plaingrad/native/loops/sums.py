"""Loops that only add up: forward and reverse in one pass.

total = sum over i of f(i, x) carries nothing from one iteration to the next but the sum, whose cotangent is the same
number in all of them. So the cotangent of x is (d total / d x) times that number, and the factor in front can be summed
on the way forward, iteration by iteration, with 1 for the cotangent of the sum: no tape of one entry an iteration,
nothing computed twice, and data is read once. On the way back the factor is multiplied by the cotangent
that has arrived; nothing is added where that is 0, so that an infinite slope does no harm there.

Only loops where this pays are taken: those that use active arrays at places that do not follow the loop's counter, and
active numbers. A loop over the elements of an active array is better run again on the way back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba.core import config, types

from plaingrad.native.loops.blocks import in_packs
from plaingrad.native.loops.element_code import CHEAP
from plaingrad.native.loops.fission import split
from plaingrad.native.loops.scratch import scratch_arrays
from plaingrad.native.modes.transform import has_kinks
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
    found = sums_of(rt, s)
    if not found or len(found) > MOST or not _pays(rt, s):
        return None
    if len(found) > 1 and _views_of_outer(rt, s):
        return None  # the shadow of a view is a view of one factor only, and every sum has factors of its own
    setup = len(rt.setup)
    inner = rt.body(s.body)
    if not inner.backward:
        return Parts([For(s.target, s.start, s.stop, s.step, inner.forward, s.line)])
    tapes = {x.target for x in rt.setup[setup:] if isinstance(x, Let) and x.op == "call"}
    return _in_packs(rt, s, inner, found, tapes) or _one_pass(rt, s, inner, sorted(found))


def _in_packs(rt: Reverse, s: For, inner: Parts, totals: set[str], tapes: set[str]) -> Parts | None:
    """The loop for several iterations at once, if it has loops inside, carries one sum and nothing else."""
    family = _family(s.body, totals)
    carried = {name for name in _carried(rt, s) if name not in family}
    if len(totals) != 1 or carried or not any(isinstance(x, For) for x in statements(s.body)):
        return None
    [total] = totals
    options = getattr(rt.source.function, "targetoptions", {})
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
    if not isinstance(s, For) or _leaves(s.body) or not _is_pure(rt, s) or not sums_of(rt, s):
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
    zeros = [Let(f"{x}_b", "copy", (rt.zero(rt.types[x]),), None, s.line) for x in _own_numbers(rt, s)]
    back = For(s.target, s.start, s.stop, s.step, [*again, *zeros, *inner.backward], s.line)
    return Parts([forward], [back])


def _is_pure(rt: Reverse, s: For) -> bool:
    """Whether the body of `s` does nothing but compute numbers."""
    for x in statements(s.body):
        if isinstance(x, (Store, InPlace, Do, Raise, Loop)):
            return False
        if isinstance(x, Let) and (is_array(rt.types.get(x.target)) or rt.memory.outputs(x)):
            return False
    return True


def _own_numbers(rt: Reverse, s: For) -> list[str]:
    """The active numbers that live in one iteration of `s` only."""
    assigned = {x.target for x in statements(s.body) if isinstance(x, Let)}
    carried = exposed_reads(s.body) | _reads_outside(rt, s)
    return sorted(x for x in assigned if x in rt.active and x not in carried and is_real(rt.types.get(x)))


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


def sums_of(rt: Reverse, s: For) -> set[str]:
    """The numbers that `s` carries from iteration to iteration, if it only adds to them; else nothing.

    Nothing as well where it writes memory with a derivative that is there before it.
    """
    assigned = {x.target for x in statements(s.body) if isinstance(x, (Let, For))}
    if _writes_active(rt, s, assigned):
        return set()
    outside = _reads_outside(rt, s)
    exposed = exposed_reads(s.body)
    carried = {name for name in assigned if name in rt.active and (name in exposed or name in outside)}
    if any(not isinstance(rt.types.get(name), types.Float) for name in carried):
        return set()
    return (
        {name for name in carried if name in exposed}
        if _only_added(s.body, carried & exposed, carried)
        else set()
    )


def _only_added(body: list[Stmt], totals: set[str], carried: set[str]) -> bool:
    """Whether all that is done with `totals` in `body` is to add to them and to subtract from them.

    The end of every way through the body then gives a total as it was at its start, plus terms.
    """
    owner = _family(body, totals)
    if not carried <= owner.keys():
        return False
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


def exposed_reads(body: list[Stmt]) -> set[str]:
    """The variables that `body` may read before it gives them a value."""
    found: set[str] = set()
    _expose(body, set(), found, [])
    return found


def _expose(body: list[Stmt], bound: set[str], found: set[str], ways_out: list[set[str]]) -> set[str] | None:
    """Put into `found` what `body` may read first where the variables in `bound` have values.

    Returns: the variables that have a value behind `body`, None if that is never reached; those that have one at
    its jumps out of the loop around it are appended to `ways_out`.
    """
    bound = set(bound)
    for s in body:
        found |= {a.name for a in operands(s) if isinstance(a, Var) and a.name not in bound}
        if isinstance(s, Let):
            bound.add(s.target)
        elif isinstance(s, If):
            arms = [_expose(arm, bound, found, ways_out) for arm in (s.then, s.orelse)]
            reached = [arm for arm in arms if arm is not None]
            if not reached:
                return None
            bound = set.intersection(*reached)
        elif isinstance(s, For):
            _expose(s.body, {*bound, s.target}, found, [])
        elif isinstance(s, Loop):
            exits: list[set[str]] = []
            _expose(s.body, bound, found, exits)
            if not exits:
                return None
            bound = set.intersection(*exits)
        elif isinstance(s, Break):
            ways_out.append(bound)
            return None
        elif isinstance(s, Raise):
            return None
    return bound


def _reads_outside(rt: Reverse, s: For) -> set[str]:
    """The variables that the program reads anywhere but in the body of `s`."""
    found: set[str] = set(rt.results)

    def walk(body: list[Stmt]) -> None:
        for x in body:
            found.update(a.name for a in operands(x) if isinstance(a, Var))
            if x is s:
                continue
            if isinstance(x, If):
                walk(x.then)
                walk(x.orelse)
            elif isinstance(x, (For, Loop)):
                walk(x.body)

    walk(rt.exploded.body)
    return found


def _writes_active(rt: Reverse, s: For, assigned: set[str]) -> bool:
    """Whether `s` writes memory with a derivative that is there before it."""
    fresh = {rt.memory.of(name) for name in scratch_arrays(rt, s)}
    local = dict.fromkeys(fresh, True)
    for name, t in rt.types.items():
        if isinstance(t, types.Array) and rt.memory.of(name) not in fresh:
            owner = rt.memory.of(name)
            local[owner] = local.get(owner, True) and name in assigned
    for x in statements(s.body):
        names: list[str] = []
        if isinstance(x, (Store, InPlace)) and isinstance(x.array, Var):
            names = [x.array.name]
        call = x.call if isinstance(x, Do) else x
        if isinstance(call, Let):
            names += rt.memory.outputs(call)
        for name in names:
            if rt.is_active(Var(name)) and not local.get(rt.memory.of(name), False):
                return True
    return False


def _views_of_outer(rt: Reverse, s: For) -> bool:
    """Whether the loop makes views of active arrays from before it."""
    assigned = {x.target for x in statements(s.body) if isinstance(x, (Let, For))}
    arrays = {name for name in rt.active if is_array(rt.types.get(name))}
    outer = {rt.memory.of(name) for name in arrays - assigned}
    return any(rt.memory.of(name) in outer for name in arrays & assigned)


def _leaves(body: list[Stmt]) -> bool:
    """Whether a jump out of the loop whose body this is may happen."""
    for s in body:
        if isinstance(s, Break):
            return True
        if isinstance(s, If) and (_leaves(s.then) or _leaves(s.orelse)):
            return True
    return False


def _pays(rt: Reverse, s: For) -> bool:
    """Whether every active array from before the loop is used at places that do not follow the loop's counter."""
    follows = {s.target}
    assigned = {x.target for x in statements(s.body) if isinstance(x, (Let, For))}
    grew = True
    while grew:
        grew = False
        for x in statements(s.body):
            if isinstance(x, (Let, For)) and x.target not in follows:
                if any(isinstance(a, Var) and a.name in follows for a in operands(x)):
                    follows.add(x.target)
                    grew = True
    for x in statements(s.body):
        if isinstance(x, Let) and x.op == "item" and rt.is_active(x.args[0]):
            array, index = x.args
            if is_array(rt.type_of(array)) and array.name not in assigned:  # type: ignore[union-attr]
                if isinstance(index, Var) and index.name in follows:
                    return False
    return True


# The program ----------------------------------------------------------------------------------------------------------


def _one_pass(rt: Reverse, s: For, inner: Parts, totals: list[str]) -> Parts:
    """The loop with the reverse of every iteration behind it, and what remains for the way back."""
    line = s.line
    assigned = {x.target for x in statements(inner.forward) if isinstance(x, (Let, For))}
    local = sorted(name for name in rt.active if name in assigned and is_real(rt.types.get(name)))
    outer = _outer(rt, inner, {*assigned, *scratch_arrays(rt, s)}, totals)
    top, values = _values_at_the_top(rt, s, inner)
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


def _carried(rt: Reverse, s: For) -> set[str]:
    """The variables that have a value before `s` and another one in every iteration."""
    inside: dict[str, int] = {}
    for x in statements(s.body):
        if isinstance(x, (Let, For)):
            inside[x.target] = inside.get(x.target, 0) + 1
    return {name for name, count in inside.items() if rt.assigned.get(name, 0) > count} & exposed_reads(
        s.body
    )


def _values_at_the_top(rt: Reverse, s: For, inner: Parts) -> tuple[list[Stmt], dict[str, str]]:
    """(copies of the carried values that the reverse of an iteration reads, what they are called there)."""
    top: list[Stmt] = []
    names: dict[str, str] = {}
    for name in sorted(_carried(rt, s) & free_reads(inner.backward, set())):
        names[name] = rt.fresh(f"{name}_now")
        rt.types[names[name]] = rt.types[name]
        top.append(Let(names[name], "copy", (Var(name),), None, s.line))
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
