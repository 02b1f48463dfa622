"""What a class defines, past every `__getattribute__`: its special methods, operators and constructors.

Whether these are the program's Python code, C code, or something that plaingrad has a rule for, decides what a call, an
operator or an assignment does.
"""

from __future__ import annotations

import types
from types import BuiltinFunctionType, FunctionType
from typing import Any

from plaingrad import rulebook
from plaingrad.class_keys import is_among
from plaingrad.engine.memory.kinds import is_heap
from plaingrad.engine.users_code.adopt import is_python_special

DESCRIPTORS = frozenset((types.MethodDescriptorType, types.WrapperDescriptorType))
# Attributes of functions, exceptions, cells and objects that C code keeps as they are given.
KEEPING = (
    *("__dict__", "__class__", "args", "__cause__", "__context__"),
    *("__defaults__", "__kwdefaults__", "cell_contents"),
)
PYTHON_ATTRIBUTES = frozenset((type(None), FunctionType, types.MemberDescriptorType))


def is_python_attribute(descriptor: Any) -> bool:
    """Whether writing through this class attribute keeps the value itself."""
    if type(descriptor) is property:
        return descriptor.fset is None or isinstance(descriptor.fset, FunctionType)
    if type(descriptor) is types.GetSetDescriptorType:
        return descriptor.__name__ in KEEPING
    return (
        not hasattr(type(descriptor), "__set__") or type(lookup(type(descriptor), "__set__")) is FunctionType
    )


def lookup(cls: type, name: str) -> Any:
    """The attribute `name` as it stands in the dictionary of `cls` or a base, unbound; None if absent."""
    for base in cls.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return None


def is_own_method(method: Any) -> bool:
    """Whether a special method found on a class is the user's code, not C code nor something with a rule."""
    if method is None or is_among(type(method), DESCRIPTORS):
        return False
    rule = rulebook.find(method) if type(method) is FunctionType else None
    return rule is None or rule.users


def has_own_method(cls: type, name: str) -> bool:
    """Whether `cls` defines `name` in the user's code."""
    return is_heap(cls) and is_own_method(lookup(cls, name))


def c_descriptor(cls: type, name: str) -> Any:
    """The C method `name` of `cls`, past Python overrides: what a bound C method got through `super()` is."""
    for base in cls.__mro__:
        found = base.__dict__.get(name)
        if found is not None and type(found) is not FunctionType:
            return found
    return None


def makers(cls: type) -> list[type]:
    """The C classes whose `__new__` or `__init__` a call of `cls` reaches first; none if both are Python code."""
    found = []
    new = lookup(cls, "__new__")
    if isinstance(new, BuiltinFunctionType):
        found.append(new.__self__)
    elif type(getattr(new, "__func__", new)) is not FunctionType:
        found.append(cls)  # compiled Python, as Cython makes it
    init = lookup(cls, "__init__")
    if type(init) is types.WrapperDescriptorType:
        found.append(init.__objclass__)
    elif type(init) is not FunctionType:
        found.append(cls)  # compiled Python, as Cython makes it
    metaclass_call = lookup(type(cls), "__call__")
    if type(metaclass_call) is not types.WrapperDescriptorType and type(metaclass_call) is not FunctionType:
        found.append(cls)
    return found


def has_python_operator(cls: type, name: str) -> bool:
    """Whether `cls` defines the binary operator `name` in Python code."""
    name = name.rstrip("_")
    return any(is_python_special(lookup(cls, f"__{prefix}{name}__")) for prefix in ("", "r", "i"))
