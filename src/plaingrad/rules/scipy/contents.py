"""What containers, objects, cells and scopes hold, by key, and how to let them hold it again."""

from __future__ import annotations

from array import array
from collections import OrderedDict, deque
from types import CellType, MemberDescriptorType
from typing import Any

import numpy as np

from plaingrad import origin

LIBRARIES = ("numpy", "scipy", "numba", "plaingrad", "builtins")
CONTAINERS = (dict, list, set, deque, array, bytearray)
EMPTY = object()  # what a cell without contents has
LACKING = object()


class Scope:
    """The globals that a function names, or attributes of a module that functions name, as a holder."""

    def __init__(self, scope: dict[str, Any], names: Any) -> None:
        self.scope, self.names = scope, names


def is_of_library(cls: type) -> bool:
    """Whether a class is not the program's."""
    return origin.is_of(cls.__module__, LIBRARIES)


def slots_of(cls: type) -> list[MemberDescriptorType]:
    """The slots of instances of a class of the program; members of classes that are written in C are none."""
    bases = [base for base in cls.__mro__ if "__slots__" in vars(base) and not is_of_library(base)]
    found = [x for base in bases for x in vars(base).values()]
    return [x for x in found if type(x) is MemberDescriptorType]


def contents_of(holder: Any) -> dict[Any, Any]:
    """What a holder holds, by key."""
    if isinstance(holder, dict):
        return {key: dict.__getitem__(holder, key) for key in list(holder)}
    if isinstance(holder, (list, deque, array, bytearray)):
        return dict(enumerate(holder))
    if isinstance(holder, set):
        return {id(x): x for x in holder}
    if isinstance(holder, Scope):
        return {name: holder.scope[name] for name in holder.names if name in holder.scope}
    if isinstance(holder, CellType):
        try:
            return {"contents": holder.cell_contents}
        except ValueError:
            return {"contents": EMPTY}
    if isinstance(holder, np.ndarray):
        return dict(enumerate(holder.ravel().tolist()))
    return {**getattr(holder, "__dict__", {}), **slots_filled(holder)}


def slots_filled(o: Any) -> dict[Any, Any]:
    """What the slots of an object hold, by slot."""
    found = {}
    for slot in slots_of(type(o)) if not isinstance(o, type) else ():
        try:
            found[slot] = slot.__get__(o)
        except AttributeError:
            pass
    return found


def put_back(holder: Any, old: dict[Any, Any]) -> None:
    """Let a holder hold what it has held."""
    if isinstance(holder, OrderedDict):
        OrderedDict.clear(holder)
        OrderedDict.update(holder, old)
    elif isinstance(holder, dict):
        dict.clear(holder)
        dict.update(holder, old)
    elif isinstance(holder, list):
        list.__setitem__(holder, slice(None), list(old.values()))
    elif isinstance(holder, (array, bytearray)):
        holder[:] = array(holder.typecode, old.values()) if isinstance(holder, array) else bytes(old.values())
    elif isinstance(holder, (set, deque)):
        holder.clear()
        (holder.update if isinstance(holder, set) else holder.extend)(old.values())
    elif isinstance(holder, Scope):
        for name in contents_of(holder).keys() - old.keys():
            del holder.scope[name]
        holder.scope.update(old)
    elif isinstance(holder, np.ndarray):
        holder.flat = np.fromiter(old.values(), object, len(old))
    elif isinstance(holder, CellType):
        put_into_cell(holder, old["contents"])
    else:
        put_attributes(holder, old)


def put_into_cell(cell: Any, value: Any) -> None:
    """The contents of a cell, or none."""
    if value is not EMPTY:
        cell.cell_contents = value
    elif contents_of(cell)["contents"] is not EMPTY:
        del cell.cell_contents


def put_attributes(o: Any, old: dict[str, Any]) -> None:
    """Attributes of an object or a class, without what the program does when they are set."""
    now = contents_of(o)
    if isinstance(o, type):
        for name in now.keys() - old.keys():
            type.__delattr__(o, name)
        for name in [name for name, x in old.items() if now.get(name, LACKING) is not x]:
            type.__setattr__(o, name, old[name])
    else:
        for name in now.keys() - old.keys():
            if isinstance(name, str):
                del vars(o)[name]
            else:
                name.__delete__(o)
        for name, x in old.items():
            if isinstance(name, str):
                vars(o)[name] = x
            else:
                name.__set__(o, x)


def is_same_contents(a: dict[Any, Any], b: dict[Any, Any]) -> bool:
    """Whether two contents are the same objects."""
    return len(a) == len(b) and all(b.get(key, LACKING) is x for key, x in a.items())
