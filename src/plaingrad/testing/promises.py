"""A gradient: everything that is promised of it but its numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from plaingrad.api import vjp
from plaingrad.engine.memory.kinds import NUMBER, kind_of
from plaingrad.tangents import Thunk, ZeroTangent
from plaingrad.testing.case import Case, identities
from plaingrad.testing.fitting import alike, exactly
from plaingrad.testing.states import changes, contents
from plaingrad.testing.structures import (
    as_number,
    combined,
    copied,
    flat,
    leaves_of,
    random_like,
    tangent_like,
)


def look_at_gradient(case: Case) -> tuple[Any, tuple[Any, ...]] | None:
    """(y_bar, the gradient), with everything but its numbers looked at."""
    one_number = kind_of(type(case.y)) == NUMBER and not isinstance(case.y, (complex, np.complexfloating))
    y_bar = as_number(1, case.y) if one_number else tangent_like(case.y, random_like(case.random))
    x = case.active
    with case.part("gradient"), np.errstate(all="ignore"):
        call, active, seen = case.bound(case.positions)
        y, pullback = vjp(call, *active)
        left = case.after(seen)
        given = contents(y_bar, "y_bar")
        bars = pullback(y_bar)
        names = [f"argument {n}" for n in case.positions]
        misfits = [
            words for bar, of, name in zip(bars, x, names, strict=True) for words in exactly(bar, of, name)
        ]
        case.report_all("cotangent type", misfits)
        case.report_all("pullback", [f"it changes {w}" for w in changes(given, contents(y_bar, "y_bar"))])
        if case.state:
            case.report_all("pullback", [f"after it {w}" for w in changes(left, case.after(seen))])
        if misfits:
            return None
        look_at_memory(case, bars, y_bar, y, seen)
        again = pullback(copied(y_bar))
        case.compare_all(
            "repetition", again, bars, "the gradient is another when the pullback is called again"
        )
        first = copied(bars)
        for leaf in leaves_of(bars, ""):
            if isinstance(leaf.x, np.ndarray) and leaf.x.flags.writeable:
                leaf.x[...] = 1e6
        third = pullback(copied(y_bar))
        case.compare_all(
            "repetition", third, first, "writing into a gradient changes what the pullback returns next"
        )
        bars = again
        if not flat(y_bar, case.y):
            case.all_zero("zero", bars, "the result has no tangent")
            return y_bar, bars
        if not case.smooth:
            case.all_zero("zero", bars, "the result counts as a constant")
            return y_bar, bars
        other = tangent_like(case.y, random_like(case.random))
        sums = pullback(combined(2.0, y_bar, -3.0, other, case.y))
        others = pullback(other)
        expected = combined(2.0, bars, -3.0, others, x)
        case.compare_all("linearity", sums, expected, "not linear in y_bar", (bars, others))
        case.all_zero("zero", pullback(ZeroTangent), "y_bar is ZeroTangent")
        look_at_thunks(case, y_bar, pullback, bars)
        look_at_outputs(case, y_bar, pullback, bars)
        return y_bar, bars
    return None


def look_at_memory(case: Case, bars: tuple[Any, ...], y_bar: Any, y: Any, seen: Any) -> None:
    """A gradient has memory of its own: not that of y_bar, of the arguments, of the result or of another entry."""
    others = [leaf for leaf in leaves_of(y_bar, "y_bar") if isinstance(leaf.x, np.ndarray)]
    others += [leaf for leaf in leaves_of(y, "the result") if isinstance(leaf.x, np.ndarray)]
    for n, x in enumerate(seen[0]):
        others += [leaf for leaf in leaves_of(x, f"argument {n}") if isinstance(leaf.x, np.ndarray)]
    lines = []
    for n, bar in zip(case.positions, bars, strict=True):
        for leaf in leaves_of(bar, f"the gradient of argument {n}"):
            if not isinstance(leaf.x, np.ndarray):
                continue
            lines += [
                f"{leaf.path} shares memory with {other.path}"
                for other in others
                if np.may_share_memory(leaf.x, other.x) and np.shares_memory(leaf.x, other.x)
            ]
            others.append(leaf)
    case.report_all("aliasing", lines)


def look_at_thunks(case: Case, y_bar: Any, pullback: Callable[..., Any], bars: tuple[Any, ...]) -> None:
    """A postponed cotangent is computed once and gives the same."""
    count = [0]

    def compute() -> Any:
        count[0] += 1
        return copied(y_bar)

    found = pullback(Thunk(compute))
    case.compare_all("thunk", found, bars, "a postponed y_bar (a Thunk) gives another gradient")
    if count[0] > 1:
        case.report("thunk", f"a postponed y_bar is computed {count[0]} times")


def look_at_outputs(case: Case, y_bar: Any, pullback: Callable[..., Any], bars: tuple[Any, ...]) -> None:
    """With several outputs: the cotangents of one at a time add up."""
    parts = flat(y_bar, case.y)
    if not 1 < len(parts) <= 8:
        return
    total: Any = None
    terms = []
    for k in range(len(parts)):
        remaining = iter(range(len(parts)))
        only = tangent_like(case.y, lambda _, k=k, r=remaining: parts[k] if next(r) == k else None)
        found = pullback(only)
        terms.append(found)
        total = found if total is None else combined(1.0, total, 1.0, found, case.active)
    words = "cotangents of one output at a time do not add up to those of all"
    case.compare_all("outputs", total, bars, words, tuple(terms))


def look_at_accumulation(case: Case, y_bar: Any, bars: tuple[Any, ...]) -> None:
    """One argument at a time; f called twice; one value passed as two arguments."""
    if len(case.positions) > 1:
        for k, n in enumerate(case.positions[:6]):
            with case.part("accumulation"), np.errstate(all="ignore"):
                (alone,) = case.pulled(y_bar, (n,))
                words = "differentiated alone it has another gradient"
                case.compare("accumulation", f"argument {n}", alone, bars[k], case.active[k], words)
    if case.changed or case.mutates or not flat(y_bar, case.y):
        return
    with case.part("accumulation"), np.errstate(all="ignore"):
        call, active, _ = case.bound(case.positions)

        def twice(*given: Any) -> Any:
            return call(*given), call(*given)

        _, pullback = vjp(twice, *active)
        found = pullback((copied(y_bar), copied(y_bar)))
        expected = combined(1.0, bars, 1.0, bars, case.active)
        case.compare_all("accumulation", found, expected, "f called twice has not twice the gradient")
    pairs = [
        (i, j) for i in case.positions for j in case.positions if i < j and alike(case.args[i], case.args[j])
    ]
    for i, j in pairs[:2]:
        look_at_one_value_as_two(case, i, j)


def look_at_one_value_as_two(case: Case, i: int, j: int) -> None:
    """The gradient of f(x, x) is the sum of the gradients in both places."""
    call, _, _ = case.bound((i, j))
    x = case.args[i]
    with np.errstate(all="ignore"):
        try:
            y = call(copied(x), copied(x))
            if identities(call(shared := copied(x), shared), ([shared], {})):
                return  # the argument itself is handed back
        except Exception:
            return  # f is not made for it
    with case.part("accumulation"), np.errstate(all="ignore"):
        y_bar = tangent_like(y, random_like(case.random))
        if not flat(y_bar, y):
            return

        def both(given: Any) -> Any:
            return call(given, given)

        _, pullback = vjp(call, copied(x), copied(x))
        apart = pullback(copied(y_bar))
        _, pullback = vjp(both, copied(x))
        (together,) = pullback(copied(y_bar))
        expected = combined(1.0, apart[0], 1.0, apart[1], x)
        words = f"passed as argument {j} too, its gradient is not the sum of both"
        case.compare("accumulation", f"argument {i}", together, expected, x, words, apart)
