"""Callables and calls taken apart: what a closure, method or partial holds that may have tangents."""

from __future__ import annotations

import functools
from types import CellType, FunctionType, MethodType
from typing import Any

import numpy as np

from plaingrad import rulebook
from plaingrad.api.leaves import here
from plaingrad.engine.memory.kinds import is_heap
from plaingrad.errors import ArgumentError, RuleError
from plaingrad.rewrite import CURRENT
from plaingrad.rule_data import name_of
from plaingrad.tangents import NoTangent, Tangent, explicit_tangent, has_tangent_space, is_zero, unthunk
from plaingrad.tangents.fields import captured, cells_of, parts_of
from plaingrad.tangents.spaces import holds_number
from plaingrad.tangents.types import entries, primal_type_of


class Opened:
    """A callable taken apart: what it holds that may have tangents, and how to call it with these parts made fresh.

    Attributes:
        parts: the object of a method, the cells of a closure, the arguments of a partial: one list for the engine.
        target: the function behind it.
        before: how many of the parts are arguments of `target`.
    """

    def __init__(self, f: Any) -> None:
        self.f = f
        self.parts: list[Any] = []
        self.before = 0
        self.names: dict[str, Any] = {}
        self.cls: type | None = None
        target = f
        call = call_method(f)
        if isinstance(f, functools.partial):
            inner = Opened(f.func)
            self.parts = [*inner.parts, list(f.args), dict(f.keywords)]
            self.inner = inner
        elif type(f) is MethodType:
            target, self.parts, self.before = f.__func__, [f.__self__], 1
        elif type(f) is FunctionType:
            self.names = self._cells(f, {})
        elif is_heap(type(f)) and not isinstance(f, type) and type(call) is FunctionType:
            target, self.parts, self.before = call, [f], 1
        self.target = target

    def _cells(self, f: FunctionType, seen: dict[int, Any]) -> dict[str, Any]:
        """The places of the variables that `f` has captured in `parts`, and those of the closures among them."""
        if id(f) in seen or str(f.__module__).startswith(
            "plaingrad."
        ):  # a pullback holds a tape, no numbers of its own
            return {}
        names = seen[id(f)] = {}
        for name, cell in cells_of(f).items():
            held = captured(cell).get("cell_contents")
            if type(held) is FunctionType:
                names[name] = self._cells(held, seen)
            elif type(held) is MethodType:
                names[name] = {"__self__": self._place_of(held.__self__)}
            else:
                if hides_function(held, set()):
                    raise ArgumentError(
                        f"{name_of(f)} has captured {name!r}, a {type(held).__qualname__} with functions in it that "
                        "hold numbers, whose tangents cannot be told apart; pass it as an argument, or the numbers.\n"
                        "  See docs: errors#argument"
                    )
                names[name] = self._place_of(cell)
        return names

    def _place_of(self, part: Any) -> int:
        place = next((k for k, known in enumerate(self.parts) if known is part), None)
        if place is None:
            place = len(self.parts)
            self.parts.append(part)
        return place

    @property
    def has_state(self) -> bool:
        """Whether something that the callable holds has a tangent."""
        return any(map(has_tangent_space, self.parts))

    def call(
        self, level: Any, derive: bool, parts: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """The callable with `parts` for its own; with `derive` past a rule that it has itself."""
        if isinstance(self.f, functools.partial):
            *inner, given, keywords = parts
            return self.inner.call(level, derive, inner, (*given, *args), {**keywords, **kwargs})
        target = self.target
        if derive and type(target) is FunctionType and rulebook.find(target) is not None:
            prepared = level.calls.inside(target)
        else:
            prepared = level.prep(target)
        return prepared(*parts[: self.before], *args, **kwargs)

    def rebuilt(self, parts: list[Any]) -> Any:
        """The callable with `parts` for its own, to be called or handed on."""
        if isinstance(self.f, functools.partial):
            *inner, args, keywords = parts
            return functools.partial(self.inner.rebuilt(inner), *args, **keywords)
        if type(self.f) is MethodType:
            return MethodType(self.target, parts[0])
        return parts[0] if self.before else self.f

    def tangent(self, bars: list[Any]) -> Any:
        """The tangent of the callable, made of those of its parts."""
        f = self.f
        if isinstance(f, functools.partial):
            *inner, args, keywords = bars
            fields = {"func": self.inner.tangent(inner), "args": args, "keywords": keywords}
            if type(args) is list:
                fields["args"] = tuple(args)
        elif type(f) is MethodType:
            fields = {"__self__": bars[0]}
        elif self.before:
            return bars[0]
        else:
            fields = _named(self.names, bars)
        return Tangent(type(f), fields) if any(is_some(part) for part in fields.values()) else NoTangent

    def dots(self, f_dot: Any) -> list[Any]:
        """Tangents of the parts from that of the callable."""
        f, f_dot = self.f, here(unthunk, f_dot)
        if f_dot is None or is_zero(f_dot):
            return [explicit_tangent(part, None) for part in self.parts]
        if self.before and type(f) is not MethodType:
            return [explicit_tangent(f, f_dot)]
        if type(f_dot) is not Tangent and not isinstance(f_dot, dict):
            raise RuleError(
                f"the tangent of {name_of(f)} must be a Tangent with the fields {list(self._fields())}, or NoTangent.\n"
                "  See docs: errors#rule"
            )
        f_dot = entries(f_dot)
        unknown = [name for name in f_dot if name not in self._fields()]
        if unknown:
            raise RuleError(f"{name_of(f)} has no field {unknown[0]!r}.\n  See docs: errors#rule")
        if isinstance(f, functools.partial):
            given = [*self.inner.dots(f_dot.get("func")), f_dot.get("args"), f_dot.get("keywords")]
        elif type(f) is MethodType:
            given = [f_dot.get("__self__")]
        else:
            given = [None] * len(self.parts)
            _place(self.names, f_dot, given)
        return [
            explicit_tangent(part, {"cell_contents": dot} if type(part) is CellType else dot)
            for part, dot in zip(self.parts, given, strict=True)
        ]

    def _fields(self) -> tuple[str, ...]:
        if isinstance(self.f, functools.partial):
            return ("func", "args", "keywords")
        return ("__self__",) if self.before else tuple(self.names)


def call_method(f: Any) -> Any:
    """What a call of `f` runs, as its class has it."""
    return next((vars(cls)["__call__"] for cls in type(f).__mro__ if "__call__" in vars(cls)), None)


def _named(names: dict[str, Any], bars: list[Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, place in names.items():
        if type(place) is dict:
            inner = _named(place, bars) if place is not names else {}
            cls = MethodType if "__self__" in place else FunctionType
            fields[name] = Tangent(cls, inner) if any(map(is_some, inner.values())) else NoTangent
        else:
            bar = bars[place]
            of_cell = type(bar) is Tangent and primal_type_of(bar) is CellType
            fields[name] = (
                NoTangent if bar is None or is_zero(bar) else bar["cell_contents"] if of_cell else bar
            )
    return fields


def _place(names: dict[str, Any], f_dot: Any, given: list[Any]) -> None:
    for name, place in names.items():
        dot = here(unthunk, entries(f_dot).get(name)) if f_dot is not None and not is_zero(f_dot) else None
        if type(place) is dict:
            _place(place, dot, given)
        elif dot is not None:
            given[place] = dot


def is_some(tangent: Any) -> bool:
    """Whether a tangent is one of something."""
    return tangent is not None and tangent is not NoTangent


def hides_function(x: Any, seen: set[int]) -> bool:
    """Whether functions in a container or object hold numbers that are not in it elsewhere too."""
    if id(x) in seen or isinstance(x, np.ndarray) or not has_tangent_space(x):
        return False
    if isinstance(x, (FunctionType, MethodType, functools.partial)):
        return holds_number(x, set(seen))
    seen.add(id(x))
    if isinstance(x, (list, tuple)):
        parts: Any = x
    else:
        parts = (x if isinstance(x, dict) else parts_of(x)).values()
    return any(hides_function(part, seen) for part in parts)


class Call:
    """A call taken apart: the function, and those among its arguments that hold what has tangents."""

    def __init__(self, f: Any, args: tuple[Any, ...]) -> None:
        self.opened = {-1: Opened(f)}
        for n, x in enumerate(args):
            if isinstance(x, (FunctionType, MethodType, functools.partial)) and has_tangent_space(x):
                self.opened[n] = Opened(x)
            elif hides_function(x, set()):
                raise ArgumentError(
                    f"argument {n} is a {type(x).__qualname__} with functions in it that hold numbers, whose tangents "
                    "cannot be told apart; pass the functions, or the numbers, as arguments.\n"
                    "  See docs: errors#argument"
                )
        self.parts = [one.parts for one in self.opened.values()]

    @property
    def has_state(self) -> bool:
        """Whether something that one of the functions holds has a tangent."""
        return any(one.has_state for one in self.opened.values())

    def run(self, derive: bool, parts: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call, with `parts` for what the functions hold."""
        given = list(args)
        for (n, one), own in zip(self.opened.items(), parts, strict=True):
            if n >= 0:
                given[n] = one.rebuilt(own)
        return self.opened[-1].call(CURRENT.get(), derive, parts[0], tuple(given), kwargs)

    def tangents(self, bars: Any) -> dict[int, Any]:
        """The tangents of the function (-1) and of arguments that are functions, from those of their parts."""
        if bars is None:
            return dict.fromkeys(self.opened, NoTangent)
        return {n: one.tangent(own) for (n, one), own in zip(self.opened.items(), bars, strict=True)}
