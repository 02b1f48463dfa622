"""Rules that nobody wrote: derived from a function's bytecode, with the conventions of written ones."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Sequence
from types import CellType, FunctionType, MethodType
from typing import Any

import numpy as np

from plaingrad import define, rulebook
from plaingrad.api.leaves import COTANGENT, TANGENT, here, kept
from plaingrad.engine.calls.reuse import give_back, new_level
from plaingrad.engine.calls.users_rules import Inside
from plaingrad.engine.forward.forward import ForwardLevel
from plaingrad.engine.memory.kinds import SEQUENCE, kind_of
from plaingrad.engine.reverse.inputs import Inputs, with_fresh
from plaingrad.engine.reverse.taken import recorded
from plaingrad.errors import ArgumentError, DeclinedError, RuleError
from plaingrad.extend.opened import Call, Opened, call_method, is_some
from plaingrad.extend.updates import Updates
from plaingrad.rewrite import CURRENT
from plaingrad.rule_data import Rule, name_of
from plaingrad.tangents import (
    Dual,
    NoTangent,
    Tangent,
    explicit_tangent,
    has_tangent_space,
    is_zero,
    project_to,
    unthunk,
)
from plaingrad.tangents.types import mapped, primal_type_of
from plaingrad.updating import rewrite_contents

WRITTEN = ("scalar", "linear", "bilinear", "full")  # kinds of rules whose `rrule` can be called as it is


# -- reverse ---------------------------------------------------------------------------------------------------------


def apply_rrule(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], derive: bool = False) -> Any:
    """(y, pullback): by the rule of `f` if it has one, else, or with `derive`, from its bytecode."""
    declined: list[Any] = []
    while not derive:
        rule, leading, of_function = written(f, args, kwargs, declined)
        if rule is None:
            break
        inside = Inside(rule.function, CURRENT.get(), (*leading, *args), kwargs)
        derive = rule.users and inside.is_again
        try:
            with inside:
                if not derive:
                    return _by_rule(rule, (*leading, *args), kwargs, len(leading), of_function)
        except DeclinedError as error:
            if error.half is not rule.rrule:
                raise
            declined.append(error.half)
    call = Call(f, args)
    active = [n + 1 for n, x in enumerate(args) if n not in call.opened and has_tangent_space(x)]
    if call.has_state:
        active.insert(0, 0)

    def derived_call(parts: list[Any], *args: Any, **kwargs: Any) -> Any:
        return call.run(derive, parts, args, kwargs)

    run = recorded(derived_call, (call.parts, *args), tuple(active), kwargs)
    run.watch()
    held = run.captured()  # for the levels further out: the pullback reads these arrays
    y = kept(run.value)
    count = len(args)

    def derived_pullback(y_bar: Any) -> tuple[Any, ...]:
        """The cotangent of the function, then those of its arguments."""
        assert held is not None
        found = run.pull(COTANGENT.of(here(unthunk, y_bar), y, "y_bar"))
        bars = {n: _spoken(bar, {}) for n, bar in zip(active, found, strict=True)}
        opened = call.tangents(bars.get(0))
        return opened[-1], *[opened[n] if n in opened else bars.get(n + 1, NoTangent) for n in range(count)]

    return run.value, derived_pullback


def written(
    f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], declined: Sequence[Any] = ()
) -> tuple[Rule | None, tuple[Any, ...], Any]:
    """The rule to call as it is, the arguments that come before the others, and f_bar from the cotangents of these."""
    leading: tuple[Any, ...] = ()
    of_function: Callable[[Any], Any] = lambda bars: NoTangent
    rule = rulebook.find(f)
    call = call_method(f)
    if rule is None and type(f) is MethodType:
        rule, leading = rulebook.find(f.__func__), (f.__self__,)
        of_function = lambda bars: (
            Tangent(MethodType, {"__self__": bars[0]}) if is_some(bars[0]) else NoTangent
        )
    elif rule is None and type(call) is FunctionType and not isinstance(f, type):
        rule, leading = rulebook.find(call), (f,)
        of_function = lambda bars: bars[0]
    if rule is not None:
        rule = rulebook.choose(rule, (*leading, *args), kwargs, declined)
    if rule is None or rule.rrule is None or rule.kind not in WRITTEN or kwargs.get("out") is not None:
        return None, (), of_function
    if isinstance(f, np.ufunc) and any(
        kind_of(type(x)) == SEQUENCE or getattr(x, "dtype", None) == "O" for x in args
    ):
        return None, (), of_function
    if type(f) is FunctionType and Opened(f).has_state:
        return None, (), of_function  # the engine refuses, if that matters
    return rule, leading, of_function


def _by_rule(rule: Rule, args: tuple[Any, ...], kwargs: dict[str, Any], before: int, of_function: Any) -> Any:
    y, pullback = define.pair_of(rule, here(rule.rrule, *args, **kwargs))
    projections = [project_to(x) for x in args]

    def rule_pullback(y_bar: Any) -> tuple[Any, ...]:
        """The cotangent of the function, then those of its arguments."""
        bars = here(define.projected_cotangents, rule, pullback, y_bar, projections)
        bars = here(evaluated, bars)
        return of_function(bars[:before]), *bars[before:]

    return y, rule_pullback


def evaluated(bars: tuple[Any, ...]) -> tuple[Any, ...]:
    """Cotangents with those computed that were postponed, also inside containers."""
    return tuple([mapped(bar, lambda part: part) for bar in bars])


def _spoken(tangent: Any, made: dict[int, Any]) -> Any:
    """`tangent` in the words of rules: `NoTangent` where the engine says None."""
    if tangent is None:
        return NoTangent
    t = type(tangent)
    if t is not list and t is not dict and t is not Tangent and not isinstance(tangent, tuple):
        return tangent
    if id(tangent) in made:
        return made[id(tangent)]
    if isinstance(tangent, tuple):
        parts = [_spoken(part, made) for part in tangent]
        return type(tangent)(*parts) if hasattr(tangent, "_fields") else tuple(parts)
    if type(tangent) is list:
        whole = made[id(tangent)] = []
        whole.extend([_spoken(part, made) for part in tangent])
        return whole
    fields: dict[Any, Any] = {}
    made[id(tangent)] = whole = (
        Tangent(primal_type_of(tangent), fields) if type(tangent) is Tangent else fields
    )
    for key in tangent:
        fields[key] = _spoken(tangent[key], made)
    return whole


# -- forward ---------------------------------------------------------------------------------------------------------


def apply_frule(duals: tuple[Any, ...], kwargs: dict[str, Any], derive: bool = False) -> Dual:
    """Dual(y, y_dot): by the rule of the function if it has one, else, or with `derive`, from its bytecode."""
    for k, pair in enumerate(duals):
        if type(pair) is not Dual:
            what = "its first argument Dual(f, df)" if k == 0 else f"Dual(x, x_dot) for its argument {k}"
            raise ArgumentError(
                f"frule takes {what}, not a {type(pair).__name__}; NoTangent is the tangent of what has none.\n"
                "  See docs: errors#argument"
            )
    (f, f_dot), *pairs = duals
    args = tuple(pair.primal for pair in pairs)
    call = Call(f, args)
    given = [here(unthunk, pair.tangent) for pair in pairs]
    for n, x_dot in enumerate(given):
        if n not in call.opened:
            TANGENT.of(x_dot, args[n], f"the tangent of argument {n}")
    dots: list[Any] = [
        NoTangent if x_dot is None or is_zero(x_dot) or n in call.opened else x_dot
        for n, x_dot in enumerate(given)
    ]
    of_opened = [here(unthunk, f_dot) if n < 0 else given[n] for n in call.opened]
    moving = [not (dot is None or is_zero(dot)) for dot in of_opened]
    if moving[0] and not call.opened[-1].has_state:
        raise ArgumentError(
            f"{name_of(f)} holds nothing that has a tangent; pass Dual({name_of(f)}, NoTangent).\n"
            "  See docs: errors#argument"
        )

    def derived_call(parts: list[Any], *args: Any, **kwargs: Any) -> Any:
        return call.run(derive, parts, args, kwargs)

    parts_dots: Any = NoTangent
    if any(moving):
        parts_dots = [one.dots(dot) for one, dot in zip(call.opened.values(), of_opened, strict=True)]
    updates = Updates()
    updates.add(f, f_dot, name_of(f))
    for n, (x, x_dot) in enumerate(zip(args, given, strict=True)):
        updates.add(x, x_dot, f"argument {n}")
    y, y_dot = _pushed(derived_call, (call.parts, *args), (parts_dots, *dots), kwargs, updates)
    return Dual(y, here(explicit_tangent, y, _spoken(y_dot, {})))


def _pushed(
    f: Any, args: tuple[Any, ...], dots: tuple[Any, ...], kwargs: dict[str, Any], updates: Updates
) -> tuple[Any, Any]:
    """As `engine.forward.push.push`; tangents of what `f` writes into are written too."""
    active = tuple([n for n, x_dot in enumerate(dots) if not is_zero(x_dot)])
    full = {n: here(explicit_tangent, args[n], dots[n]) for n in active}
    pairs: list[tuple[np.ndarray, np.ndarray]] = []
    for n in active:
        _pair(args[n], dots[n], pairs)
    held = [new_level(ForwardLevel, CURRENT.get())]
    inputs, value, y_dot, written = with_fresh(
        held[0], args, active, _pushed_at, held[0], f, active, full, kwargs, updates
    )
    for x, x_dot in pairs:
        if id(x) in written:
            here(rewrite_contents, x_dot, written[id(x)])
    updates.write()
    y = inputs.own(value)
    inputs = None  # it knows the level, which nobody asks any more
    give_back(held)
    return y, y_dot


def _pushed_at(
    inputs: Inputs, level: Any, f: Any, active: tuple[int, ...], full: Any, kwargs: Any, updates: Updates
) -> tuple[Inputs, Any, Any, dict[int, Any]]:
    """`f` run at `level`: its value and tangent, and those of arrays that it has written, by the caller's arrays."""
    for n, node in zip(active, inputs.nodes, strict=True):
        level.seed(node, inputs.args[n], full[n])
    updates.begin()
    value = level.run(f, inputs.args, kwargs)
    updates.end(level)
    written = {
        id(original): level.tangent_of(copy)
        for original, copy, _ in inputs.arrays
        if _was_written(level, copy)
    }
    return inputs, value, level.tangent_of(value), written


def _was_written(level: Any, copy: np.ndarray) -> bool:
    return any(twin.copy is copy and twin.written for twin in level.twins)


def _pair(x: Any, x_dot: Any, pairs: list[tuple[np.ndarray, np.ndarray]]) -> None:
    """Append the arrays in `x` with the arrays of their tangents, which are written where they are."""
    if isinstance(x, np.ndarray):
        if isinstance(x_dot, np.ndarray):
            pairs.append((x, x_dot))
    elif isinstance(x, (list, tuple)) and isinstance(x_dot, (list, tuple)):
        for part, dot in zip(x, x_dot, strict=True):
            _pair(part, dot, pairs)
    elif isinstance(x, dict) and isinstance(x_dot, dict):
        for key, dot in x_dot.items():
            _pair(x.get(key), dot, pairs)
    elif type(x_dot) is Tangent and type(x) is not CellType:
        for name in x_dot:
            _pair(getattr(x, name, None), x_dot[name], pairs)


# -- rules as objects ------------------------------------------------------------------------------------------------


class DerivedRule:
    """A rule derived from a function's bytecode; it looks like a written one and can be entered as one."""

    def __init__(self, f: Any, mode: str) -> None:
        self.f = f
        self.mode = mode
        name = getattr(f, "__name__", type(f).__name__)
        code = getattr(Opened(f).target, "__code__", None)
        where = f", derived at {code.co_filename}:{code.co_firstlineno}" if code is not None else ""
        self.source = f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""
        self.__name__ = f"{name}_{mode}"
        self.__qualname__ = f"{getattr(f, '__qualname__', name)}_{mode}"
        self.__module__ = getattr(f, "__module__", None) or type(f).__module__
        self.__wrapped__ = f
        if mode == "rrule":
            self.__doc__ = (
                f"({name}(*args), pullback); pullback(y_bar) has the cotangents of {name} and its arguments."
            )
        else:
            self.__doc__ = f"Dual(y, y_dot) of {name} for Dual({name}, f_dot) and a Dual for each argument."
        self._text = f"<{mode} of {getattr(f, '__qualname__', repr(f))}{where}>"
        try:
            self.__signature__ = inspect.signature(f)
        except (TypeError, ValueError):
            self.__signature__ = inspect.Signature(
                [inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL)]
            )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The rule, applied."""
        if self.mode == "rrule":
            return apply_rrule(self.f, args, kwargs, derive=True)
        if args and type(args[0]) is Dual and not _is_same(args[0].primal, self.f):
            raise RuleError(
                f"{self._text} is given Dual({name_of(args[0].primal)}, ...); it is a rule for {name_of(self.f)}.\n"
                "  See docs: errors#rule"
            )
        return apply_frule(args, kwargs, derive=True)

    def __repr__(self) -> str:
        return self._text


def _is_same(f: Any, g: Any) -> bool:
    """Whether two callables run the same code, on the same or on other captured values."""
    if f is g or f == g:
        return True
    code = getattr(Opened(f).target, "__code__", f)
    return code is getattr(Opened(g).target, "__code__", g)


_built: OrderedDict[tuple[int, str], tuple[Any, Any, int, DerivedRule]] = OrderedDict()
KEPT = 1024


def _build(f: Callable[..., Any], mode: str) -> DerivedRule:
    if not callable(f):
        raise RuleError(f"a rule is about a callable, not {f!r}")
    key = id(f), mode
    code = getattr(f, "__code__", None)
    found = _built.get(key)
    if found is not None and found[0] is f and found[1] is code and found[2] == rulebook.changes():
        return found[3]
    rule = DerivedRule(f, mode)
    _built[key] = f, code, rulebook.changes(), rule
    if len(_built) > KEPT:
        _built.popitem(last=False)
    return rule


def build_rrule(f: Callable[..., Any]) -> DerivedRule:
    """The reverse rule of `f`, derived from its bytecode: `rule(*args, **kwargs) -> (y, pullback)`.

    `pullback(y_bar)` returns the cotangent of `f` itself, then one for each argument, as that of `rrule(f, *args)`
    does. A rule that `f` has is passed by; the functions that it calls are differentiated by theirs. The same function
    gives the same rule as long as its code and the rulebook are the same.

    It may be entered as a rule, also for `f` itself: `rrule(g)(build_rrule(f))`.

    Examples:
        >>> from plaingrad import build_rrule
        >>> def area(a, b): return a * b
        >>> area_rrule = build_rrule(area)
        >>> y, pullback = area_rrule(3.0, 4.0)
        >>> y, pullback(1.0)
        (12.0, (NoTangent, 4.0, 3.0))
        >>> build_rrule(area) is area_rrule
        True
    """
    return _build(f, "rrule")


def build_frule(f: Callable[..., Any]) -> DerivedRule:
    """The forward rule of `f`, derived from its bytecode: `rule(Dual(f, df), Dual(x, dx), ...) -> Dual(y, dy)`.

    See `build_rrule`. Arrays that `f` writes into get their new tangents in the arrays of tangents that are passed.

    Examples:
        >>> from plaingrad import Dual, NoTangent, build_frule
        >>> def area(a, b): return a * b
        >>> build_frule(area)(Dual(area, NoTangent), Dual(3.0, 1.0), Dual(4.0, 0.0))
        Dual(primal=12.0, tangent=4.0)
    """
    return _build(f, "frule")
