"""A rule by itself, called by hand: what its two halves return, and what they leave alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import repeat
from typing import Any

import numpy as np

from plaingrad.errors import ArgumentError
from plaingrad.extend import frule, rrule
from plaingrad.rulebook import Rule
from plaingrad.tangents import Dual, NoTangent, Thunk, ZeroTangent, is_zero, unthunk
from plaingrad.tangents.types import mapped
from plaingrad.testing.case import Case
from plaingrad.testing.cotangents import look_at_cotangents
from plaingrad.testing.fitting import (
    added,
    as_rules_get_it,
    filled,
    has_no_tangent,
    leading,
    loosely,
    near,
    projected,
)
from plaingrad.testing.states import changes, contents
from plaingrad.testing.structures import (
    combined,
    copied,
    flat,
    inner_path,
    is_container,
    is_leaf,
    leaves_of,
    parts_of,
    random_like,
    tangent_like,
)
from plaingrad.testing.words import a, in_short, short


def look_at_rrule(case: Case, rule: Rule) -> None:
    """The reverse half, called by itcase."""
    if rule.rrule is None:
        return
    applied = apply_rule(case, rule.rrule, "rrule")
    if applied is None:
        return
    y, pullback, seen = applied
    y_bar = tangent_like(y, random_like(case.random))
    if not flat(y_bar, y) or not case.positions:
        return
    with case.part("rule"), np.errstate(all="ignore"):
        look_at_pullback(case, y, pullback, seen, y_bar)


def look_at_pullback(case: Case, y: Any, pullback: Callable[..., Any], seen: Any, y_bar: Any) -> None:
    """What a pullback returns, and what it leaves alone."""
    left = case.after(seen)
    primal = contents(y, "the result")
    given = contents(y_bar, "y_bar")
    first = pullback(as_rules_get_it(y_bar, y))
    if type(first) is not tuple:
        case.report(
            "rule", f"the pullback must return a tuple, one cotangent an argument; not {in_short(first)}"
        )
        return
    count = min(len(first), len(case.args))  # a parameter that was not given has no cotangent to look at
    evaluated: list[Any] = list(first[:count])
    for n in reversed(range(count)):
        evaluated[n] = evaluated_twice(case, first[n], n)
    kept = [contents(bar, f"the cotangent of argument {n}") for n, bar in enumerate(evaluated)]
    case.report_all("pullback", [f"y_bar is changed: {w}" for w in changes(given, contents(y_bar, "y_bar"))])
    case.report_all("pullback", [f"after it {w}" for w in changes(left, case.after(seen))])
    case.report_all("pullback", [f"after it {w}" for w in changes(primal, contents(y, "the result"))])
    fitting = fit_cotangents(case, evaluated, seen[0])
    other_bar = tangent_like(y, random_like(case.random))
    other = [unthunk(bar) for bar in pullback(as_rules_get_it(copied(other_bar), y))[:count]]
    lines = [
        f"the cotangent of argument {n}, returned earlier, is changed by a later call of the pullback"
        for n, bar in enumerate(evaluated)
        if changes(kept[n], contents(bar, f"the cotangent of argument {n}"))
    ]
    again = [unthunk(bar) for bar in pullback(as_rules_get_it(copied(y_bar), y))[:count]]
    for n in range(len(evaluated)):
        name = f"the cotangent of argument {n}"
        x = case.args[n]
        if n >= len(again) or not all(
            map(near, flat(evaluated[n], x), flat(again[n], x), repeat(case.exact))
        ):
            lines.append(f"{name} is another when the pullback is called again")
    case.report_all("repetition", lines)
    if not fitting or lines:
        return
    known = len(case.problems)
    sums = combined(2.0, y_bar, -3.0, other_bar, y)
    both = [unthunk(bar) for bar in pullback(as_rules_get_it(sums, y))[:count]]
    for n in case.positions:
        if n >= len(evaluated) or evaluated[n] is NoTangent:
            continue
        x = case.args[n]
        parts = [projected(bars[n], x) for bars in (evaluated, other, both)]
        expected = combined(2.0, parts[0], -3.0, parts[1], x)
        words = "the pullback is not linear in y_bar"
        case.compare("linearity", f"argument {n}", parts[2], expected, x, words, (parts[0], parts[1]))
    if len(case.problems) == known:
        look_at_cotangents(case, y, pullback, y_bar, evaluated)


def evaluated_twice(case: Case, bar: Any, n: int) -> Any:
    """A cotangent, computed; a postponed one is asked twice and must be computed once."""
    if not isinstance(bar, Thunk):
        return evaluated_inside(bar)
    value = bar.evaluate()
    if bar.evaluate() is not value:
        case.report(
            "thunk", f"the postponed cotangent of argument {n} is computed again each time it is asked for"
        )
    while isinstance(value, Thunk):
        value = value.evaluate()
    return evaluated_inside(value)


def evaluated_inside(bar: Any) -> Any:
    """A cotangent with the postponed ones in it computed."""
    return mapped(bar, lambda part: part) if isinstance(bar, (list, tuple, Mapping)) else bar


def fit_cotangents(case: Case, bars: list[Any], args: list[Any]) -> bool:
    """Whether the cotangents that a rule returns fit their arguments."""
    before = len(case.problems)
    for n, x in enumerate(args):
        bar = bars[n] if n < len(bars) else NoTangent
        where = f"argument {n}, {a(x)},"
        if n in case.positions:
            if bar is NoTangent:
                case.report(
                    "zero",
                    f"{where} has a tangent, but the pullback "
                    + ("gives none for it" if n >= len(bars) else "returns NoTangent for it")
                    + "; a derivative that is known to be zero is ZeroTangent",
                )
            elif bar is not ZeroTangent:
                case.report_all("cotangent", loosely(bar, x, f"argument {n}"))
        elif bar is ZeroTangent and has_no_tangent(x):
            case.report(
                "zero", f"{where} has no tangent: the pullback should return NoTangent, not ZeroTangent"
            )
        elif not is_zero(bar) and isinstance(x, (str, bytes, type(None))):
            case.report("cotangent", f"{where} has no tangent; the pullback returns {in_short(bar)} for it")
    return len(case.problems) == before


def look_at_frule(case: Case, rule: Rule) -> None:
    """The forward half, called by itcase."""
    for chunked, half in ((False, rule.frule), (True, rule.chunked_frule)):
        if half is None:
            continue
        name = "chunked frule" if chunked else "frule"
        applied = apply_rule(case, half, name)
        if applied is None or not case.positions:
            continue
        y, pushforward, seen = applied
        with case.part("rule"), np.errstate(all="ignore"):
            look_at_pushforward(case, name, y, pushforward, seen, 2 if chunked else None)


def look_at_pushforward(
    case: Case, name: str, y: Any, pushforward: Callable[..., Any], seen: Any, chunk: int | None
) -> None:
    """What a pushforward returns, and what it leaves alone."""
    args = seen[0]
    left = case.after(seen)

    def dots_of(tangents: dict[int, Any]) -> tuple[Any, ...]:
        return tuple(
            filled(tangents[n], x, chunk) if n in tangents else ZeroTangent for n, x in enumerate(args)
        )

    def random() -> dict[int, Any]:
        return {n: random_dots(case, args[n], chunk) for n in case.positions}

    one, two = random(), random()
    dots = dots_of(one)
    given = contents(dots, "the tangents")
    y_dot = pushforward(dots)
    kept = contents(y_dot, "y_dot")
    misfits = tangent_misfits(y_dot, y, "the result", chunk)
    case.report_all("tangent", [f"{words}, by the {name}" for words in misfits])
    if misfits:
        return
    case.report_all("pushforward", [f"after it {w}" for w in changes(given, contents(dots, "the tangents"))])
    case.report_all("pushforward", [f"after it {w}" for w in changes(left, case.after(seen))])
    pushforward(dots_of(two))
    if changes(kept, contents(y_dot, "y_dot")):
        case.report(
            "repetition", f"what the pushforward of the {name} returned is changed by a later call of it"
        )
    if changes(kept, contents(pushforward(dots_of(one)), "y_dot")):
        case.report("repetition", f"the pushforward of the {name} gives something else when called again")
    parts = [leading(pushforward(dots_of({n: one[n]})), y, chunk) for n in case.positions]
    whole = leading(y_dot, y, chunk)
    total = parts[0]
    for part in parts[1:]:
        total = [None if p is None and q is None else added(p, q) for p, q in zip(total, part, strict=True)]
    for k, (p, q, leaf) in enumerate(zip(whole, total, leaves_of(y, "the result"), strict=True)):
        if not near(p, q, case.exact * 10):
            case.report(
                "linearity",
                f"{leaf.path}: the pushforward of the {name} of all tangents is {short(p)}, the sum of those of "
                f"one at a time {short(q)}",
            )
        del k


def tangent_misfits(y_dot: Any, y: Any, path: str, chunk: int | None) -> list[str]:
    """Why what a pushforward returns is no tangent of the result; broadcasting and realness are mended outside."""
    y_dot = unthunk(y_dot)
    if is_zero(y_dot):
        return []
    if is_leaf(y):
        if y_dot is None:
            return [f"{path} has a tangent, but the pushforward returns None; zero is ZeroTangent"]
        if not isinstance(y, np.ndarray):
            return []
        shape = np.shape(y) if chunk is None else (chunk, *np.shape(y))
        if isinstance(y_dot, (list, tuple, Mapping, str)) or not is_broadcast(np.shape(y_dot), shape):
            return [f"{path} has shape {np.shape(y)}, but its tangent {np.shape(y_dot)}"]
        return []
    if not is_container(y) or not any(True for _ in leaves_of(y, "")):
        return []
    if y_dot is None:
        return [f"{path} holds numbers, but the pushforward returns None for it; zero is ZeroTangent"]
    found = []
    for key, value in parts_of(y):
        with suppress(KeyError, IndexError, TypeError):
            found += tangent_misfits(y_dot[key], value, inner_path(y, key, path), chunk)
    return found


def is_broadcast(shape: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    """Whether an array of `shape` broadcasts to the shape `whole`."""
    try:
        return np.broadcast_shapes(shape, whole) == whole
    except ValueError:
        return False


def random_dots(case: Case, x: Any, chunk: int | None) -> Any:
    """A random tangent of an argument, or a chunk of them."""
    make = random_like(case.random)
    if chunk is None:
        return tangent_like(x, make)
    return tangent_like(x, lambda leaf: np.stack([np.asarray(make(leaf)) for _ in range(chunk)]))


def apply_rule(case: Case, half: Callable[..., Any], name: str) -> tuple[Any, Any, Any] | None:
    """(y, the map of tangents, the arguments) of one half of the rule, with the primal looked at."""
    _, _, seen = case.bound(())
    full, kwargs = seen
    try:
        result = half(*full, **kwargs)
    except Exception as found:
        case.put_back()
        if case.error is None:
            case.report("exception", f"a plain call returns; the {name} raises {in_short(found)}")
        elif type(found) is not type(case.error) or str(found) != str(case.error):
            case.report(
                "exception",
                f"a plain call raises {in_short(case.error)}; the {name} raises {in_short(found)}",
            )
        return None
    left = case.after(seen)
    case.put_back()
    if case.error is not None:
        case.report("exception", f"a plain call raises {in_short(case.error)}; the {name} does not")
        return None
    if type(result) is not tuple or len(result) != 2 or not callable(result[1]):
        case.report("rule", f"the {name} must return (y, a function); it returned {in_short(result)}")
        return None
    case.report_all("primal", [f"{words}, by the {name}" for words in case.unlike(result[0])])
    if case.state:
        case.report_all("state", [f"after the {name} {words}" for words in changes(case.left, left)])
    return result[0], result[1], seen


def look_at_applied_rules(case: Case, y_bar: Any, bars: tuple[Any, ...], forward: bool) -> None:
    """`rrule(f, *args)` and `frule(Dual(f, NoTangent), ...)`: the same numbers, that of `f` first."""
    if case.mutates:
        if forward:
            look_at_updates(case)
        return
    # Derived for a closure, a rule may be refused: what the closure holds is asked for too.
    refusals = (ArgumentError,) if case.rule is None else ()
    with case.part("applied"), suppress(*refusals), np.errstate(all="ignore"):
        _, _, (args, kwargs) = case.bound(())
        y, pullback = rrule(case.f, *args, **kwargs)
        case.report_all("primal", [f"{words}, by rrule(f, ...)" for words in case.unlike(y)])
        found = pullback(copied(y_bar))
        if len(found) != 1 + len(args):
            case.report(
                "applied", f"rrule(f, ...) gives {len(found)} cotangents for f and {len(args)} arguments"
            )
            return
        parts = tuple([without_zeros(found[1 + n], case.args[n]) for n in case.positions])
        case.compare_all("applied", parts, bars, "rrule(f, ...) gives another cotangent")
    if not forward:
        return
    with case.part("applied"), suppress(*refusals), np.errstate(all="ignore"):
        dots = tangent_like(case.active, random_like(case.random))
        expected = case.pushed(dots)
        _, _, (args, kwargs) = case.bound(())
        given = dict(zip(case.positions, copied(dots), strict=True))
        duals = [Dual(x, given.get(n, NoTangent)) for n, x in enumerate(args)]
        pair = frule(Dual(case.f, NoTangent), *duals, **kwargs)
        case.report_all(
            "primal", [f"{words}, by frule(Dual(f, ...), ...)" for words in case.unlike(pair.primal)]
        )
        y_dot = without_zeros(pair.tangent, case.y)
        case.compare(
            "applied", "the result", y_dot, expected, case.y, "frule(Dual(f, ...), ...) gives another tangent"
        )


def look_at_updates(case: Case) -> None:
    """After `frule(Dual(f, NoTangent), ...)` the tangents of the arguments that `f` changes are the new ones."""
    refusals = (ArgumentError,) if case.rule is None else ()
    with case.part("applied"), suppress(*refusals), np.errstate(all="ignore"):
        dots = tangent_like(case.active, random_like(case.random))
        expected = case.pushed(dots)
        _, _, (args, kwargs) = case.bound(())
        given = dict(zip(case.positions, copied(dots), strict=True))
        frule(
            Dual(case.f, NoTangent), *[Dual(x, given.get(n, NoTangent)) for n, x in enumerate(args)], **kwargs
        )
        for k, x in enumerate(case.written(args, kwargs)):
            n = next((n for n in case.positions if args[n] is x), None)
            if n is not None:
                words = "frule(Dual(f, ...), ...) leaves another tangent of what f has written"
                case.compare("applied", f"argument {n}", given[n], expected[1 + k], x, words)


def without_zeros(t: Any, x: Any) -> Any:
    """A tangent of `x` with None for zeros of any kind."""
    parts = iter(flat(t, x))
    return tangent_like(x, lambda _: next(parts))
