"""The tangents of what a function writes into: after an applied forward rule they are those of the new contents."""

from __future__ import annotations

import functools
from collections import deque
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from plaingrad.api.leaves import here
from plaingrad.engine.memory.entries import has_fields
from plaingrad.engine.memory.kinds import ARRAY, MAPPING, OBJECT, SEQUENCE, kind_of
from plaingrad.errors import TangentError
from plaingrad.tangents import Tangent, explicit_tangent, is_zero, unthunk
from plaingrad.tangents.fields import captured, cells_of, fields_of
from plaingrad.tangents.types import entries

DEPTH = 50


class Updates:
    """The containers, objects and closures that a call may change, each with the object that holds its tangents.

    Attributes:
        holders: id -> (the container, the list or dict of its tangents or None, a description of where it is).
        before: id -> the parts of the container when the call begins, by key.
    """

    def __init__(self) -> None:
        self.holders: dict[int, tuple[Any, Any, str]] = {}
        self.before: dict[int, dict[Any, Any]] = {}
        self.found: list[tuple[Any, dict[Any, Any]]] = []

    # -- before the call ----------------------------------------------------------------------------------------------

    def add(self, x: Any, x_dot: Any, where: str, depth: int = 0) -> None:
        """Note `x`, and what is in it, with the tangent that the caller gave."""
        x_dot = here(unthunk, x_dot)
        if depth > DEPTH or id(x) in self.holders:
            return
        kind = kind_of(type(x))
        if isinstance(x, (FunctionType, MethodType, functools.partial)):
            self._add_callable(x, x_dot, where, depth)
        elif isinstance(x, tuple):
            for k, part in enumerate(x):
                self.add(part, part_of(x_dot, k), f"{where}[{k}]", depth + 1)
        elif kind in (SEQUENCE, MAPPING) or (kind == OBJECT and has_fields(x)):
            self.holders[id(x)] = x, own_entries(x_dot), where
            for key, part in parts_of(x).items():
                inner = f"{where}.{key}" if kind == OBJECT else f"{where}[{key!r}]"
                self.add(part, part_of(x_dot, key), inner, depth + 1)
        elif kind == ARRAY and is_nothing(x_dot):
            self.holders[id(x)] = x, None, where

    def _add_callable(self, f: Any, f_dot: Any, where: str, depth: int) -> None:
        if type(f) is MethodType:
            self.add(f.__self__, part_of(f_dot, "__self__"), f"{where}.__self__", depth + 1)
        elif isinstance(f, functools.partial):
            self.add(f.func, part_of(f_dot, "func"), f"{where}.func", depth + 1)
            self.add(f.args, part_of(f_dot, "args"), f"{where}.args", depth + 1)
            for name, x in f.keywords.items():
                self.add(
                    x, part_of(part_of(f_dot, "keywords"), name), f"{where}.keywords[{name!r}]", depth + 1
                )
        elif not str(f.__module__).startswith("plaingrad.") and cells_of(f):
            self.holders[id(f)] = f, own_entries(f_dot), where
            for name, part in parts_of(f).items():
                self.add(part, part_of(f_dot, name), f"variable {name!r} of {where}", depth + 1)

    # -- in the call --------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Note what the containers hold when the call begins."""
        self.before = {key: parts_of(x) for key, (x, _, _) in self.holders.items()}

    def end(self, level: Any) -> None:
        """Take the tangents of what is new in the containers."""
        for key, (x, dots, where) in self.holders.items():
            if isinstance(x, np.ndarray):
                self._refuse_lost(level, x, x, where)
                continue
            old = self.before[key]
            now = parts_of(x)
            if old.keys() == now.keys() and all(now[k] is part for k, part in old.items()):
                continue
            known = {id(part): k for k, part in old.items()}
            new: dict[Any, Any] = {}
            for k, part in now.items():
                place = k if k in old and old[k] is part else known.get(id(part))
                if dots is None:
                    self._refuse_lost(level, x, part, where)
                elif place is not None:
                    new[k] = part_of(dots, place)
                elif id(part) in self.holders and self.holders[id(part)][1] is not None:
                    new[k] = self.holders[id(part)][1]
                else:
                    new[k] = here(explicit_tangent, part, level.tangent_of(part))
            if dots is not None:
                self.found.append((dots, new))

    def _refuse_lost(self, level: Any, x: Any, part: Any, where: str) -> None:
        if is_zero_in_numbers(level.tangent_of(part)):
            return
        raise TangentError(
            f"a number that depends on the differentiated arguments was written into {where}, a {type(x).__qualname__} "
            "whose tangent was given as none or zero: there is no place for its derivative.\n"
            "  To go on: give its tangent with an entry for each, [0.0, 0.0] for a list of two numbers.\n"
            "  See docs: errors#tangent"
        )

    # -- after it -----------------------------------------------------------------------------------------------------

    def write(self) -> None:
        """Put the new tangents where the old ones were."""
        for dots, new in self.found:
            if isinstance(dots, dict):
                dots.clear()
                dots.update(new)
            else:
                dots[:] = list(new.values())


def parts_of(x: Any) -> dict[Any, Any]:
    """What a container, object or closure holds now, by key."""
    if isinstance(x, FunctionType):
        found = {name: captured(cell) for name, cell in cells_of(x).items()}
        return {name: held["cell_contents"] for name, held in found.items() if "cell_contents" in held}
    if isinstance(x, (list, deque)):
        return dict(enumerate(x))
    if isinstance(x, np.ndarray):
        return {}
    return dict(x) if kind_of(type(x)) == MAPPING else dict(fields_of(x))


def own_entries(x_dot: Any) -> Any:
    """The list or dict in which the caller keeps the tangents of a container; None if there is none to write into."""
    if type(x_dot) is Tangent:
        return entries(x_dot)
    return x_dot if isinstance(x_dot, (list, dict)) else None


def part_of(x_dot: Any, key: Any) -> Any:
    """The entry of a tangent at `key`, None where it has none."""
    if x_dot is None or is_zero(x_dot):
        return None
    x_dot = entries(x_dot) if type(x_dot) is Tangent else x_dot
    try:
        return x_dot.get(key) if isinstance(x_dot, dict) else x_dot[key]
    except (IndexError, KeyError, TypeError):
        return None


def is_nothing(x_dot: Any) -> bool:
    """Whether a tangent is one of the words for none and zero."""
    return x_dot is None or is_zero(x_dot)


def is_zero_in_numbers(x_dot: Any) -> bool:
    """Whether every number in a tangent is 0."""
    if is_nothing(x_dot):
        return True
    if isinstance(x_dot, (list, tuple)):
        return all(map(is_zero_in_numbers, x_dot))
    if isinstance(x_dot, dict) or type(x_dot) is Tangent:
        return all(map(is_zero_in_numbers, entries(x_dot).values()))
    return not np.any(x_dot)
