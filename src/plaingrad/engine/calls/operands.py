"""Arithmetic between a differentiated number or array and an object of a class of the program: who is asked.

Python asks the class of the left operand first, and then that of the right. A class answers by Python code, which runs
at the level. NumPy's numbers and arrays answer by C code: they step back for classes that say so; for any other they
make objects of their elements, new numbers, and apply the operator to each. What they would do in C is done here by the
level's hooks, or refused.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from plaingrad.engine.memory.kinds import ARRAY, NUMBER, OBJECT, is_heap, kind_of
from plaingrad.engine.refusals.refuse import missing_rule
from plaingrad.engine.users_code import compilers
from plaingrad.engine.users_code.class_attributes import has_python_operator, is_own_method, lookup

LIKE_ARRAYS = ("__array__", "__array_interface__", "__array_struct__", "__getitem__", "__buffer__")
PYTHONS = {"f": float, "c": complex}  # what NumPy makes of its numbers where it meets objects


def with_object(level: Any, name: str, a: Any, b: Any) -> Any:
    """a op b, one of which is an object, the other a number or an array."""
    f = getattr(operator, name)
    level.calls.meet(a)
    level.calls.meet(b)
    is_left = kind_of(type(a)) == OBJECT
    other, x = (a, b) if is_left else (b, a)
    kind = kind_of(type(x))
    if kind == ARRAY and level.region(x) is None:  # one of objects holds them as they are
        return f(a, b)
    if kind == NUMBER and compilers.owns(type(other)) and level.calls.finds_active(x):
        method = lookup(type(other), f"__{'' if is_left else 'r'}{name.rstrip('_')}__")
        if is_own_method(method):  # C code would run it as it is: what a compiler makes is not rewritten
            return level._call_own(method, other, x)
    if kind == NUMBER and not (isinstance(x, np.generic) and id(x) in level.index):
        z = f(a, b)
        if id(x) in level.index and not has_python_operator(type(other), name):
            missing_rule(f, f"It combines a differentiated number with a `{type(other).__qualname__}`.")
        return z
    if is_left:
        return _asked_first(level, name, a, b)
    return f(a, b) if steps_back(x, other) else _by_elements(level, name, a, b)


def in_place_with_object(level: Any, name: str, a: Any, b: Any) -> Any:
    """a op= b of an object and a number or array: by the method of its class for that, else a op b."""
    level.calls.meet(a)
    method = lookup(type(a), f"__{name.rstrip('_')}__")
    if method is not None:
        if not is_own_method(method):
            return getattr(operator, name)(a, b)
        z = level._call_own(method, a, b)
        if z is not NotImplemented:
            return z
    return with_object(level, name[1:] + "_" if name in ("iand", "ior") else name[1:], a, b)


def _asked_first(level: Any, name: str, a: Any, b: Any) -> Any:
    """a op b where the class of `a` has the first say."""
    method = lookup(type(a), f"__{name.rstrip('_')}__")
    if is_heap(type(b)) or not is_own_method(
        method
    ):  # a subclass was asked already; C code answers for itself
        z = NotImplemented
    else:
        z = level._call_own(method, a, b)
    if z is not NotImplemented:
        return z
    return getattr(operator, name)(a, b) if steps_back(b, a) else _by_elements(level, name, a, b)


def steps_back(x: Any, other: Any) -> bool:
    """Whether NumPy leaves `x op other` to the class of `other`, which gets `x` as it is."""
    cls = type(other)
    if hasattr(cls, "__array_ufunc__"):
        return True  # None: Python asks the class; else NumPy calls it
    own = 0.0 if isinstance(x, np.ndarray) else -1e6
    priority = getattr(other, "__array_priority__", -1e6)
    return isinstance(priority, (int, float)) and priority > own


def _by_elements(level: Any, name: str, a: Any, b: Any) -> Any:
    """a op b as NumPy does it with an object: number by number, each a Python number."""
    f = getattr(operator, name)
    is_left = kind_of(type(a)) == OBJECT
    other, x = (a, b) if is_left else (b, a)
    cls = type(other)
    what = "array" if isinstance(x, np.ndarray) else "number"
    if any(hasattr(cls, attribute) for attribute in LIKE_ARRAYS) or not has_python_operator(cls, name):
        missing_rule(f, f"It combines a differentiated {what} with an object of type `{cls.__qualname__}`.")
    if isinstance(x, np.ndarray):
        x = level.to_objects(x)
    elif x.dtype.itemsize <= np.dtype(PYTHONS[x.dtype.kind]).itemsize:  # the others have no Python number
        x = level.prep(PYTHONS[x.dtype.kind])(x)
    else:
        missing_rule(
            f, f"It combines a differentiated {x.dtype} with an object of type `{cls.__qualname__}`."
        )
    a, b = (other, x) if is_left else (x, other)
    return level._elementwise(f, a, b) if isinstance(x, np.ndarray) else f(a, b)
