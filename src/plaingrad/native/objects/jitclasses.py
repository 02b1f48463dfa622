"""Classes made by `numba.experimental.jitclass`, as plain ones whose fields hold what was declared."""

from __future__ import annotations

import ast
from typing import Any
from weakref import WeakKeyDictionary

from numba.core import types

from plaingrad.native.objects.engine import Frame
from plaingrad.native.objects.values import Leaf, Static, is_number, load

FIELDS = "__plaingrad_fields__"  # of a class in the place of a `jitclass`: the types of its fields
_classes: WeakKeyDictionary[type, type] = WeakKeyDictionary()


def class_like(cls: Any) -> Any:
    """A plain class with the methods of a `jitclass`; None for other classes."""
    of = getattr(cls, "class_type", None)
    if not isinstance(of, types.ClassType):
        return None
    if cls not in _classes:
        space: dict[str, Any] = {name: m.py_func for name, m in of.jit_methods.items()}
        for name, m in of.jit_props.items():
            space[name] = property(*[getattr(m.get(part), "py_func", None) for part in ("get", "set")])
        space.update({name: staticmethod(m.py_func) for name, m in of.jit_static_methods.items()})
        space[FIELDS] = dict(of.struct)
        _classes[cls] = type(cls.__name__, (), {**space, "__module__": cls.__module__})
    return _classes[cls]


def field_value(f: Frame, fields: dict[str, Any], name: str, value: Any) -> Any:
    """A value as a field of a `jitclass` holds it.

    Raises:
        Refused: there is no such field, or it holds another kind of number.
    """
    t = fields.get(name)
    if t is None:
        raise f.refuse(f"a jitclass has no field `{name}`")
    if t is types.float64:
        if is_number(value):
            return Static(float(value.value))
        if isinstance(value, Leaf):
            return f.leaf(ast.Call(f.whole.outside(float, "float"), [load(value.name)], []))
    if isinstance(t, types.Number) and t not in (types.float64, types.int64, types.boolean, types.complex128):
        raise f.refuse(f"a field of a jitclass that holds {t}")
    if isinstance(t, types.Integer):
        if isinstance(value, Static) and type(value.value) is int:
            return value
        return f.leaf(ast.Call(f.whole.outside(int, "int"), [f.expression(value)], []))
    return value


__all__ = ["FIELDS", "class_like", "field_value"]
