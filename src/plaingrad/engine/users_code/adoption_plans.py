"""How a class was adopted, to be done again at the next derivative without looking at each of its attributes.

Only of classes whose attributes ask for nothing but functions to be exchanged; as long as neither
the class, nor a base, nor the rulebook has changed. A plan keeps nothing alive.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Iterator
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType, MethodType
from typing import Any

from plaingrad import rulebook
from plaingrad.class_keys import is_among, is_own_key
from plaingrad.engine.memory.kinds import FLAT
from plaingrad.engine.users_code.class_versions import UNKNOWN

#: Classes of attributes that need nothing: data, slots, `__dict__` and `__weakref__`.
INERT = FLAT | {MemberDescriptorType, GetSetDescriptorType, dict, tuple, list}
#: And of those that lead to functions.
ACTING = frozenset((functools.partial, functools._lru_cache_wrapper, MethodType, property))


class Plan:
    """What was done for one class and its bases."""

    __slots__ = ("_bases", "_changes", "_cls", "_functions", "_place", "_tag")

    def __init__(
        self, cls: type, tag: tuple[Any, int], bases: list[tuple[type, bool]], functions: list[FunctionType]
    ) -> None:
        self._cls = weakref.ref(cls, functools.partial(_plans.pop, id(cls)))
        self._place, self._tag = tag
        self._changes = rulebook.changes()
        self._bases = [(weakref.ref(base), is_settled) for base, is_settled in bases]
        self._functions = [weakref.ref(f) for f in functions]

    def holds(self, cls: type) -> bool:
        """Whether it is about `cls` as it is now: the tag changes with every attribute of the class or a base."""
        return self._cls() is cls and self._place.value == self._tag and self._changes == rulebook.changes()

    def exchanged(self) -> Iterator[FunctionType]:
        """The functions whose code was exchanged."""
        for reference in self._functions:
            f = reference()
            if f is not None:
                yield f

    def adopted(self) -> Iterator[tuple[type, bool]]:
        """The classes that were adopted with it, bases first, and whether each was settled."""
        for reference, is_settled in self._bases:
            base = reference()
            if base is not None:
                yield base, is_settled


_plans: dict[int, Plan] = {}  # id of a class -> its plan


def find(cls: type) -> Plan | None:
    """The plan for `cls`, if it holds."""
    plan = _plans.get(id(cls))
    return plan if plan is not None and plan.holds(cls) else None


def keep(cls: type, tag: tuple[Any, int], bases: list[tuple[type, bool]]) -> None:
    """Note that `cls`, with version tag `tag`, was adopted, and with it `bases`; not if that took more than usual."""
    if tag[1] == UNKNOWN or not bases or bases[-1][0] is not cls:
        return
    if not all(map(is_own_key, cls.__mro__)):
        return
    functions: list[FunctionType] = []
    for base, _ in bases:
        for name, value in list(vars(base).items()):
            found = _functions_in(name, value)
            if found is None:
                return
            functions += found
    _plans[id(cls)] = Plan(cls, tag, bases, functions)


def _functions_in(name: str, value: Any) -> list[FunctionType] | None:
    """Those that are exchanged for an attribute; None if it asks for more."""
    if type(value) is FunctionType:
        return [value] if name.startswith("__") and name.endswith("__") else []
    if type(value) is property:
        accessors = [f for f in (value.fget, value.fset, value.fdel) if f is not None]
        return accessors if all(type(f) is FunctionType for f in accessors) else None
    if type(value) in (staticmethod, classmethod):
        inner = value.__func__
        if not name.startswith("__") or isinstance(inner, type):
            return []
        return [inner] if type(inner) is FunctionType else None
    if is_among(type(value), INERT):
        return []
    acts = is_among(type(value), ACTING) or hasattr(type(value), "__get__")
    return None if acts or (name.startswith("__") and callable(value)) else []
