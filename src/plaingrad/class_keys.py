"""Classes as keys of tables, and questions about classes that their metaclass is not asked.

A metaclass may define `__eq__` without `__hash__`: then its classes have no hash and can be no keys. Or it defines
both: then two classes may be equal, and a table would take one for the other. Such a class is filed under
`ByIdentity(cls)`; every other is its own key. Hot code looks a class up as it is, in a `try` that costs nothing, and
takes a TypeError for "not found"; what then happens decides by `key_of`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeGuard, TypeVar

V = TypeVar("V")
_HEAP_TYPE = 1 << 9


class ByIdentity:
    """The key of a class whose metaclass compares or hashes classes in its own way."""

    __slots__ = ("cls",)

    def __init__(self, cls: type) -> None:
        self.cls = cls

    def __eq__(self, other: object) -> bool:
        return type(other) is ByIdentity and other.cls is self.cls

    def __hash__(self) -> int:
        return id(self.cls) ^ 0x5BD1E995  # some other number than the hash of a class


def is_own_key(cls: type) -> bool:
    """Whether `cls` is hashed and compared by identity, as classes are unless their metaclass says otherwise."""
    meta = type(cls)
    return meta is type or (meta.__hash__ is type.__hash__ and meta.__eq__ is type.__eq__)


def key_of(cls: type) -> Any:
    """What `cls` is filed under."""
    return cls if is_own_key(cls) else ByIdentity(cls)


def entry_for(table: Mapping[type, V], cls: type) -> V | None:
    """What `table`, whose keys are classes, has for `cls`; None if it has nothing, or `cls` has no hash."""
    try:
        return table.get(cls)
    except TypeError:
        return None


def is_among(cls: type, classes: frozenset[Any] | set[Any]) -> bool:
    """Whether `cls` is in a set of classes; one without hash is in none."""
    try:
        return cls in classes
    except TypeError:
        return False


def all_among(values: Collection[Any], classes: frozenset[type]) -> bool:
    """Whether the class of every one of `values` is in a set of classes."""
    try:
        return classes.issuperset(map(type, values))
    except TypeError:
        return False


def any_among(values: Collection[Any], classes: frozenset[type]) -> bool:
    """Whether the class of one of `values` is in a set of classes."""
    try:
        return not classes.isdisjoint(map(type, values))
    except TypeError:
        return any(is_among(type(x), classes) for x in values)


def classes_of(values: Collection[Any]) -> list[type]:
    """The classes of `values`, each once, in order."""
    try:
        return list(dict.fromkeys(map(type, values)))
    except TypeError:
        return list({id(cls): cls for cls in map(type, values)}.values())


def is_heap(cls: type) -> bool:
    """Whether `cls` was made by a `class` statement (or is a C heap type): it may have Python methods."""
    return bool(cls.__flags__ & _HEAP_TYPE)


def is_subclass(cls: type, base: type) -> bool:
    """Whether `base` is among the bases of `cls`, or is `cls`; no metaclass is asked."""
    return type.__subclasscheck__(base, cls)


def is_instance(x: Any, classes: Any) -> TypeGuard[Any]:
    """isinstance(x, classes), also where `classes` has abstract ones, which must hash the class of `x`."""
    try:
        return isinstance(x, classes)
    except TypeError:
        if is_own_key(type(x)):
            raise
        return any(
            type.__instancecheck__(cls, x) for cls in (classes if type(classes) is tuple else (classes,))
        )
