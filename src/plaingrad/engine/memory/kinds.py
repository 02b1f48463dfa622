"""What kind of thing a type is to the engine: a number, an array, a container, an object, or nothing with a tangent."""

from __future__ import annotations

import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from plaingrad import number_classes
from plaingrad.class_keys import entry_for, is_among, is_heap
from plaingrad.engine.compiled import core

NUMBER, ARRAY, SEQUENCE, MAPPING, OBJECT, NOTHING = range(1, 7)
FLOAT64 = np.dtype(float)
EXACT = frozenset((Decimal, Fraction))
FLAT = frozenset((float, complex, int, bool, str, type(None)))  # types of entries that hold nothing


_BASES: dict[type, int] = {
    **dict.fromkeys((np.integer, np.bool_, np.dtype, int, str, bytes, type), NOTHING),
    **dict.fromkeys((float, complex, np.inexact, Fraction, Decimal), NUMBER),
    np.ndarray: ARRAY,
    **dict.fromkeys((list, tuple, deque), SEQUENCE),
    dict: MAPPING,
}

_kinds: dict[type, int] = {
    **dict.fromkeys((float, complex, Fraction, Decimal), NUMBER),
    np.ndarray: ARRAY,
    **dict.fromkeys((list, tuple, deque), SEQUENCE),
    **dict.fromkeys((set, frozenset), OBJECT),
    **dict.fromkeys((dict, OrderedDict, defaultdict, types.MappingProxyType), MAPPING),
    **dict.fromkeys(
        (int, bool, str, bytes, bytearray, type(None), type(Ellipsis), type(NotImplemented), slice, range)
        + (types.ModuleType, types.BuiltinFunctionType, types.CodeType, types.FrameType, types.TracebackType)
        + (
            Context,
            np.dtype,
            np.ufunc,
            types.GetSetDescriptorType,
            types.MemberDescriptorType,
            types.WrapperDescriptorType,
        ),
        NOTHING,
    ),
}


def is_listed(cls: type) -> bool:
    """Whether instances of `cls` itself are known to hold and run nothing that its kind does not say."""
    return is_among(cls, _kinds)


def holds_nothing(cls: type) -> None:
    """Let instances of a class of plaingrad's own, whatever they refer to, count as without tangent."""
    _kinds[cls] = NOTHING


def forget(cls: type) -> None:
    """What is known of `cls` may have changed."""
    _kinds.pop(cls, None)
    if is_heap(cls):
        type.__setattr__(
            cls, "__module__", cls.__module__
        )  # it gets another version, by which the core knows it


def _kind_in_python(cls: type) -> int:
    """The kind of `cls`'s instances."""
    try:
        kind = _kinds.get(cls)
    except TypeError:  # its metaclass gives it no hash
        kind = None
    return kind if kind is not None else _classify(cls)


def _classify(cls: type) -> int:
    bases = cls.__mro__ or ()  # not issubclass: abstract classes answer that by running Python code
    for base in bases:
        kind = entry_for(_BASES, base)
        if kind is not None:
            break
    else:
        kind = OBJECT if number_classes.find(cls) is None else NUMBER
    if not is_heap(cls):
        _kinds[cls] = kind
    return kind


#: kind_of(cls): the kind of `cls`'s instances.
kind_of: Callable[[type], int] = _kind_in_python
if core is not None:
    core.set_classify(_kind_in_python)
    kind_of = core.kind_of


def has_tangent(x: Any) -> bool:
    """Whether `x` is a number or an array of real or complex numbers."""
    kind = kind_of(type(x))
    return kind == NUMBER or (kind == ARRAY and x.dtype.kind in "fc")
