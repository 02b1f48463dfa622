"""Builtin containers and `collections`, `heapq`, `bisect`, `copy`: everything that only moves references."""

from __future__ import annotations

import bisect
import collections
import heapq
import types
from typing import Any

from plaingrad.define import composed, higher_order, inspector, mover

# Methods that iterate over an argument or call one.
_ITERATING = frozenset(
    "__init__ extend extendleft update sort union intersection difference symmetric_difference "
    "intersection_update difference_update symmetric_difference_update issubset issuperset isdisjoint "
    "__iadd__ __ior__ __or__ __ror__".split()
)
# Methods that touch neither what they are given nor what is inside.
_MOVING = frozenset(
    "__class_getitem__ __copy__ __getattribute__ __getnewargs__ __init_subclass__ __iter__ __len__ __length_hint__ "
    "__new__ __next__ __reduce__ __reduce_ex__ __reversed__ __setattr__ __setstate__ __sizeof__ __subclasshook__ "
    "__missing__ __delattr__ append appendleft clear close copy items keys pop_item popitem popleft reverse send throw "
    "values".split()
)
# Methods that make text of what is inside; the engine watches text.
_TEXT = frozenset(("__repr__", "__str__", "__format__"))


def enter_methods(*classes: type) -> None:
    """Enter every C method of `classes` as one that moves references."""
    for cls in classes:
        for name, descriptor in vars(cls).items():
            if name in _TEXT or not callable(descriptor) or isinstance(descriptor, (type, types.FunctionType)):
                continue
            if name == "__new__" and hasattr(cls, "__next__"):
                continue  # it calls, or iterates over, what it is given: known only as the class itself
            enter = higher_order if name in _ITERATING else mover if name in _MOVING else inspector
            enter(descriptor)
            if isinstance(descriptor, types.ClassMethodDescriptorType):
                enter(getattr(cls, name))


def iterator_types() -> list[type]:
    """The types of the iterators and views of builtin containers, which have no public names."""
    d: Any = {}
    ordered: Any = collections.OrderedDict()
    plain: list[Any] = [
        iter([]), reversed([]), iter(()), iter(set()), iter(""), iter(range(0)), iter(range(1 << 70)), reversed(range(0)),
        iter(b""), iter(bytearray()), iter(d), reversed(d), iter(ordered), iter(collections.deque()),
        reversed(collections.deque()), iter(lambda: 0, 0), (None for _ in ()), enumerate([]), zip(), map(len, []),
        filter(None, []), reversed(""),
    ]
    for mapping in (d, ordered):
        for view in (mapping.keys(), mapping.values(), mapping.items()):
            plain += [view, iter(view), reversed(view)]
    return list(dict.fromkeys(map(type, plain)))


CONTAINERS = (list, tuple, dict, set, frozenset, collections.deque, collections.OrderedDict, collections.defaultdict)

higher_order(*CONTAINERS)
mover(slice)
inspector(range)
enter_methods(*CONTAINERS, *iterator_types(), types.MappingProxyType, types.SimpleNamespace, range, slice)
mover(types.MappingProxyType, types.SimpleNamespace)


def _made_of(new: Any, cls: type, elements: list[Any]) -> Any:
    return new(cls, elements)


mover(_made_of)


@composed(tuple.__new__)
def tuple_new(cls: type, iterable: Any = (), /) -> Any:
    """An instance of tuple or of a subclass."""
    return _made_of(tuple.__new__, cls, list(iterable))


@composed(frozenset.__new__)
def frozenset_new(cls: type, iterable: Any = (), /) -> Any:
    """An instance of frozenset or of a subclass."""
    return _made_of(frozenset.__new__, cls, list(iterable))


higher_order(collections._count_elements)

for _name in dir(heapq):  # what is C depends on the version
    if isinstance(getattr(heapq, _name), types.BuiltinFunctionType):
        higher_order(getattr(heapq, _name))


def _place_of_float(a: Any, x: Any, lo: int, hi: int | None, after: bool) -> int | None:
    """As `_place`, of a float in a list or tuple; None where an element that it is compared with is no number."""
    if type(x) is not float or type(lo) is not int or (type(a) is not list and type(a) is not tuple):
        return None
    if hi is None:
        hi = len(a)
    if type(hi) is not int or not 0 <= lo <= hi <= len(a):
        return None
    while lo < hi:
        middle = (lo + hi) // 2
        y = a[middle]
        if type(y) is not float and type(y) is not int:
            return None
        if (not x < y) if after else y < x:
            lo = middle + 1
        else:
            hi = middle
    return lo


mover(_place_of_float)


def _place(a: Any, x: Any, lo: int, hi: int | None, key: Any, after: bool) -> int:
    """Where x belongs in a, which is sorted by `key`: after its equals, or before them."""
    if key is None and (found := _place_of_float(a, x, lo, hi, after)) is not None:
        return found
    if lo < 0:
        raise ValueError("lo must be non-negative")
    if hi is None:
        hi = len(a)
    while lo < hi:
        middle = (lo + hi) // 2
        y = a[middle] if key is None else key(a[middle])
        if (not x < y) if after else y < x:
            lo = middle + 1
        else:
            hi = middle
    return lo


composed(_place, mutates=True)(_place)


@composed(bisect.bisect_left, mutates=True)  # run always: to look through the whole list would take longer
def bisect_left(a: Any, x: Any, lo: int = 0, hi: int | None = None, *, key: Any = None) -> int:
    """Where x belongs in the sorted a, before its equals."""
    return _place(a, x, lo, hi, key, False)


@composed(bisect.bisect_right, mutates=True)  # run always: to look through the whole list would take longer
def bisect_right(a: Any, x: Any, lo: int = 0, hi: int | None = None, *, key: Any = None) -> int:
    """Where x belongs in the sorted a, after its equals."""
    return _place(a, x, lo, hi, key, True)


@composed(bisect.insort_left)
def insort_left(a: Any, x: Any, lo: int = 0, hi: int | None = None, *, key: Any = None) -> None:
    """Insert x where it belongs, before its equals."""
    a.insert(_place(a, x if key is None else key(x), lo, hi, key, False), x)


@composed(bisect.insort_right)
def insort_right(a: Any, x: Any, lo: int = 0, hi: int | None = None, *, key: Any = None) -> None:
    """Insert x where it belongs, after its equals."""
    a.insert(_place(a, x if key is None else key(x), lo, hi, key, True), x)
