"""What an object is made of: its attributes and slots, what a closure has captured, what a method is bound to."""

from __future__ import annotations

import functools
import weakref
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

_slots: dict[int, tuple[tuple[str, ...], weakref.ref[type]]] = {}  # by the identity of a class that is alive


_members: dict[str, tuple[str, ...]] = {}  # by the name of a compiled class: the attributes that hold values
_module_of = vars(type)["__module__"].__get__  # of a class, whatever attributes it has
_name_of = vars(type)["__qualname__"].__get__


def holds(cls: str, names: tuple[str, ...]) -> None:
    """Instances of a compiled class, "module.Name", and of its subclasses hold values under these attributes.

    It is said before one is met: what has fields now has had them before.
    """
    _members[cls] = names


def keeps(descriptor: Any) -> bool:
    """Whether the value itself is kept that is stored under this attribute of a compiled class."""
    cls = getattr(descriptor, "__objclass__", None)
    return isinstance(cls, type) and getattr(descriptor, "__name__", None) in _held_in(cls)


def _held_in(cls: type) -> tuple[str, ...]:
    return _members.get(f"{_module_of(cls)}.{_name_of(cls)}", ())


def slot_names(cls: type) -> tuple[str, ...]:
    """The `__slots__` of `cls` and its bases, and what is known of compiled ones."""
    key = id(cls)
    found = _slots.get(key)
    if found is None:
        found = _slots[key] = _slot_names(cls), weakref.ref(cls, functools.partial(_slots.pop, key))
    return found[0]


def _slot_names(cls: type) -> tuple[str, ...]:
    names: list[str] = []
    for base in cls.__mro__:
        names += _held_in(base)
        slots = base.__dict__.get("__slots__", ())
        for name in [slots] if isinstance(slots, str) else list(slots):
            if name.startswith("__") and not name.endswith("__"):  # private: the class name goes before it
                name = f"_{base.__name__.lstrip('_')}{name}"
            names.append(name)
    return tuple(name for name in names if not name.startswith("__"))


def fields_of(x: Any) -> dict[str, Any]:
    """The instance attributes and slots of `x`, by name; what a cell holds as `cell_contents`."""
    if type(x) is CellType:
        return captured(x)
    held = getattr(x, "__dict__", None)
    fields = dict(held) if isinstance(held, dict) else {}  # a class may answer with anything
    for name in slot_names(type(x)):
        try:
            fields[name] = object.__getattribute__(x, name)
        except AttributeError:
            continue
    return fields


def held_by(x: Any) -> list[Any]:
    """What is in the attributes and slots of `x`, and in the arguments of an exception; nothing of what is gone."""
    held: list[Any] = []
    try:
        if isinstance(x, BaseException):
            held.append(x.args)
        fields = getattr(x, "__dict__", None)
        held += list(fields.values()) if type(fields) is dict else ()
        held += [getattr(x, name, None) for name in slot_names(type(x))]
    except ReferenceError:  # a weak proxy of an object that is gone
        pass
    return held


def captured(cell: CellType) -> dict[str, Any]:
    """What a cell holds, as a field; none if it is empty."""
    try:
        return {"cell_contents": cell.cell_contents}
    except ValueError:
        return {}


def cells_of(f: FunctionType) -> dict[str, CellType]:
    """The cells of a closure, by the names of its free variables."""
    return dict(zip(f.__code__.co_freevars, f.__closure__ or (), strict=False))


def parts_of(x: Any) -> dict[str, Any]:
    """The parts of `x` that may have tangents, by name: attributes, captured variables, the object of a method."""
    try:
        if isinstance(x, FunctionType):
            return {name: cell.cell_contents for name, cell in cells_of(x).items() if captured(cell)}
        if isinstance(x, MethodType):
            return {"__func__": x.__func__, "__self__": x.__self__}
        if isinstance(x, functools.partial):
            return {"func": x.func, "args": x.args, "keywords": x.keywords}
        if isinstance(x, (type, ModuleType)):
            return {}
        return fields_of(x)
    except ReferenceError:  # a weak proxy of an object that is gone
        return {}
