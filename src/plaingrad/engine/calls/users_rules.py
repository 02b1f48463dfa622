"""Rules of the program, chosen call by call: by the types of arguments and by context; they may decline.

While a rule runs, a call of its function with the same arguments, at the level that the rule is for, passes it by: such
a call would run the rule again, and so on for ever. A definition may thus be made of the function that it defines.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from plaingrad import rulebook
from plaingrad.engine.values.nesting import depth_of
from plaingrad.errors import DeclinedError
from plaingrad.rulebook import Rule

if TYPE_CHECKING:
    from plaingrad.engine.calls.calls import Calls

# f, the depth of the level, the arguments, and what runs around it
Running = tuple[Any, int, tuple[Any, ...], dict[str, Any], Any]
_running: ContextVar[Running | None] = ContextVar("running", default=None)
LOOKED_BACK = 8  # rules around this one, among which the same call is looked for
LARGEST = 1 << 20  # bytes of an array that is compared


def by_choice(calls: Calls, rule: Rule, f: Any, applier: Callable[..., Any]) -> Any:
    """What to call instead of `f`, whose rules are the program's; where none is for the call, as if it had none.

    Args:
        calls: the decisions of the level.
        rule: the entry of `f`.
        f: the function.
        applier: `applier(calls, rule, f, chosen=True)` is what to call for a rule once it is chosen.
    """
    level, function = calls.level, rule.function
    appliers: dict[int, Any] = {}
    without: list[Any] = []

    def applied(chosen: Rule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if chosen.always and not any(map(level.is_active, (*args, *kwargs.values()))):
            return level.outside(half_of, chosen, args, kwargs)
        found = appliers.get(id(chosen))
        if found is None:
            made = applier(calls, chosen, f, chosen=True) if chosen.may_pass else calls.applier(chosen, f)
            found = appliers[id(chosen)] = chosen, made
        return found[1](*args, **kwargs)

    def apply_by_choice(*args: Any, **kwargs: Any) -> Any:
        depth = depth_of(level)
        if knows(level, function, args, kwargs) or not is_inside(function, depth, args, kwargs):
            token = _running.set((function, depth, args, kwargs, _running.get()))
            try:
                declined: list[Any] = []
                while (chosen := rulebook.choose(rule, args, kwargs, declined)) is not None:
                    try:
                        return applied(chosen, args, kwargs)
                    except DeclinedError as error:
                        if error.half is not chosen.rrule and error.half is not chosen.dual:
                            raise
                        declined.append(error.half)
            finally:
                _running.reset(token)
        if not without:
            without.append(calls.without_rule(f))
        return without[0](*args, **kwargs)

    return apply_by_choice


def half_of(rule: Rule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The value that a rule gives where nothing is differentiated.

    Raises:
        DeclinedError: it gives none.
    """
    if rule.definition is not None:
        return rule.definition(*args, **kwargs)
    half = rule.rrule if rule.rrule is not None else rule.frule
    assert half is not None
    outcome = half(*args, **kwargs)
    if outcome is NotImplemented:
        raise DeclinedError(rule.name, half)
    return outcome[0]


def is_inside(f: Any, depth: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a rule of `f` runs, for a level of this depth and with these arguments."""
    around = _running.get()
    for _ in range(LOOKED_BACK):
        if around is None:
            return False
        if around[0] is f and around[1] == depth and is_same(around[2], args) and is_same(around[3], kwargs):
            return True
        around = around[4]
    return False


def knows(level: Any, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a level of Taylor coefficients, in which a rule of `f` runs, has those of this call already."""
    known = getattr(level, "known", None)
    return known is not None and known[0].function is f and level.is_known(known[0], args, kwargs)


def is_same(a: Any, b: Any) -> bool:
    """Whether two arguments are one object, or equal numbers, arrays, or containers of such."""
    if a is b:
        return True
    t = type(a)
    if t is not type(b):
        return False
    if t is float or t is complex or t is int or t is str or isinstance(a, np.generic):
        return bool(a == b) or bool(a != a and b != b)
    if t is np.ndarray:
        return (
            a.shape == b.shape
            and a.dtype == b.dtype
            and a.dtype.kind in "fciub"
            and a.nbytes <= LARGEST
            and a.tobytes() == b.tobytes()
        )
    if t is tuple or t is list:
        return len(a) == len(b) and all(map(is_same, a, b))
    if t is dict:
        return a.keys() == b.keys() and all(is_same(x, b[key]) for key, x in a.items())
    return False


class Inside:
    """A rule of `f` that is applied by hand: calls of `f` with the same arguments, in it, pass it by."""

    def __init__(self, f: Any, level: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        depth = depth_of(level) + 1
        self.is_again = is_inside(f, depth, args, kwargs)
        self.call = f, depth, args, kwargs, _running.get()

    def __enter__(self) -> Inside:
        self.token = _running.set(self.call)
        return self

    def __exit__(self, *_: object) -> None:
        _running.reset(self.token)
