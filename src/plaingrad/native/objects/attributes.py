"""Attributes: fields, methods, properties and class variables of users' classes; what Numba knows of the rest."""

from __future__ import annotations

import ast
import dataclasses
from types import FunctionType, MemberDescriptorType, ModuleType
from typing import Any

from plaingrad import origin
from plaingrad.native.objects import outside
from plaingrad.native.objects.engine import MISSING, Frame
from plaingrad.native.objects.jitclasses import FIELDS, field_value
from plaingrad.native.objects.values import (
    Bound,
    Instance,
    Items,
    Keys,
    Leaf,
    Method,
    Ref,
    Rows,
    Several,
    Static,
    Tup,
)


def in_class(cls: type, name: str) -> Any:
    """What a class, or a base of it, has under a name."""
    for base in cls.__mro__:
        if name in vars(base):
            return vars(base)[name]
    return MISSING


def of_super(cls: type, of: type, name: str) -> Any:
    """What the classes after `cls` in the order of `of` have under a name."""
    order = of.__mro__[of.__mro__.index(cls) + 1 :]
    return next((vars(base)[name] for base in order if name in vars(base)), MISSING)


def of_module(module: ModuleType, name: str) -> Any:
    """An attribute of a module."""
    return getattr(module, name, MISSING)


def special(f: Frame, x: Any, name: str) -> Any:
    """The method of that name that the class of `x` has, bound to it; None for what is no user's object."""
    thing = f.thing(x)
    if not isinstance(thing, Instance):
        if not (isinstance(thing, Tup) and thing.cls is not tuple):
            return None
    found = f.whole.check(in_class, thing.cls, name)
    return Bound(Static(found), x) if isinstance(found, FunctionType) else None


def attribute(f: Frame, x: Any, name: str) -> Any:
    """x.name."""
    thing = f.thing(x)
    if isinstance(thing, Leaf):
        return (
            Method(x, name)
            if name in METHODS_OF_ARRAYS
            else f.leaf(ast.Attribute(f.expression(x), name, ast.Load()))
        )
    if isinstance(thing, Instance):
        return _of_instance(f, x, thing, name)
    if isinstance(thing, Tup) and thing.cls is not tuple:
        if name in thing.cls._fields:
            return thing.items[thing.cls._fields.index(name)]
        if name in ("_replace", "_asdict"):
            return Method(x, name)
        return _of_class(f, x, thing.cls, f.whole.check(in_class, thing.cls, name), name)
    if isinstance(thing, (Items, Rows, Keys, Tup)):
        return Method(x, name)
    if isinstance(thing, Several) and thing.kind == "super":
        cls, first = thing.parts
        found = f.whole.check(of_super, cls.value, f.thing(first).cls, name)
        if found is MISSING or found is object.__init__:
            return Method(x, name)
        return _of_class(f, first, f.thing(first).cls, found, name)
    if isinstance(x, Static):
        return _of_static(f, x, name)
    raise f.refuse(f"`.{name}`")


def _of_instance(f: Frame, x: Any, thing: Instance, name: str) -> Any:
    found = f.whole.check(in_class, thing.cls, name)
    if isinstance(found, property) or name not in thing.fields:
        if found is MISSING or isinstance(found, MemberDescriptorType):
            if name == "__class__":
                return Static(thing.cls)
            raise f.refuse(f"an object of class {thing.cls.__name__} has no `.{name}` here")
        return _of_class(f, x, thing.cls, found, name)
    if hasattr(type(found), "__set__") and not isinstance(found, MemberDescriptorType):
        raise f.refuse(f"`.{name}` of a {thing.cls.__name__}, which a descriptor looks up")
    return thing.fields[name]


def _of_class(f: Frame, x: Any, cls: type, found: Any, name: str) -> Any:
    """What is found in a class, as an attribute of an instance."""
    if isinstance(found, property) and isinstance(found.fget, FunctionType):
        return f.call(Static(found.fget), [x], {})
    if isinstance(found, FunctionType):
        return Bound(Static(found), x)
    if isinstance(found, staticmethod):
        return Static(found.__func__)
    if isinstance(found, classmethod):
        return Bound(Static(found.__func__), Static(cls))
    if found is MISSING or hasattr(type(found), "__get__"):
        raise f.refuse(f"`.{name}` of a {cls.__name__}")
    return outside.known(f, found, name)


def _of_static(f: Frame, x: Static, name: str) -> Any:
    of = x.value
    if isinstance(of, ModuleType):
        found = f.whole.check(of_module, of, name)
        if found is MISSING:
            raise f.refuse(f"`{of.__name__}` has no `{name}`")
        return outside.known(f, found, name)
    if isinstance(of, type) and not origin.is_of(of.__module__, ("numpy", "builtins")):
        found = f.whole.check(in_class, of, name)
        if name == "__name__":
            return Static(of.__name__)
        if isinstance(found, staticmethod):
            return Static(found.__func__)
        if isinstance(found, classmethod):
            return Bound(Static(found.__func__), x)
        if isinstance(found, FunctionType) or not hasattr(type(found), "__get__"):
            return outside.known(f, found, name)
    if isinstance(of, (int, float, complex)):
        return Method(x, name) if callable(getattr(of, name, None)) else Static(getattr(of, name))
    if origin.package_of(type(of).__module__) == "numpy" or isinstance(of, type):
        return (
            f.leaf(ast.Attribute(f.expression(x), name, ast.Load()))
            if not callable(getattr(of, name, None))
            else Method(x, name)
        )
    raise f.refuse(f"`.{name}` of {type(of).__name__}")


def set_attribute(f: Frame, x: Any, name: str, value: Any) -> None:
    """x.name = value."""
    thing = f.thing(x)
    if not isinstance(thing, Instance):
        raise f.refuse(f"`.{name} = ...` of what is no object of a user's class")
    found = f.whole.check(in_class, thing.cls, name)
    setter = f.whole.check(in_class, thing.cls, "__setattr__")
    if isinstance(found, property) and isinstance(found.fset, FunctionType):
        f.call(Static(found.fset), [x, value], {})
        return
    plain = found is MISSING or isinstance(found, MemberDescriptorType) or not hasattr(type(found), "__set__")
    if setter is not object.__setattr__ or not plain:
        raise f.refuse(f"`.{name} = ...`, which a {thing.cls.__name__} does in a way of its own")
    assert isinstance(x, Ref)
    fields = vars(thing.cls).get(FIELDS)
    if fields is not None:
        value = field_value(f, fields, name, value)
    f.change(x).fields[name] = value


def fields_of_dataclass(cls: type) -> list[Any] | None:
    """The fields of a dataclass whose `__init__` was made for it; None for other classes."""
    made = in_class(cls, "__init__")
    if dataclasses.is_dataclass(cls) and isinstance(made, FunctionType):
        if made.__code__.co_filename == "<string>":
            return list(dataclasses.fields(cls))
    return None


METHODS_OF_ARRAYS = frozenset(
    """all any argmax argmin argsort astype copy cumprod cumsum diagonal dot fill flatten item max mean min nonzero
    prod ravel repeat reshape round sort std sum swapaxes take transpose trace var view conj conjugate append extend
    pop insert clear reverse is_integer index count""".split()
)
