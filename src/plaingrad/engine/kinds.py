"""What kind of thing a type is to the engine: a number, an array, a container, an object, or nothing with a tangent."""

from __future__ import annotations

import types
from collections import OrderedDict, defaultdict, deque
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from plaingrad.errors import UnsupportedPythonError

NUMBER, ARRAY, SEQUENCE, MAPPING, OBJECT, NOTHING = range(1, 7)

_HEAP_TYPE = 1 << 9

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
    return cls in _kinds


def kind_of(cls: type) -> int:
    """The kind of `cls`'s instances."""
    try:
        kind = _kinds.get(cls)
    except TypeError:
        refuse_class_without_hash(cls)
        raise
    return kind if kind is not None else _classify(cls)


def refuse_class_without_hash(cls: type) -> None:
    """Raise if the metaclass of `cls` has no hash, so that `cls` can be no key of a table."""
    meta = type(cls)
    if meta.__hash__ is None:
        raise UnsupportedPythonError(
            f"the class {cls.__qualname__} of {cls.__module__} can be no key of a table: its metaclass "
            f"{meta.__qualname__} defines __eq__ without __hash__.\n"
            f"  To go on: write `__hash__ = type.__hash__` in {meta.__qualname__}, or keep such objects out of the "
            "differentiated function.\n  See docs: errors#unsupported-python"
        ) from None


def _classify(cls: type) -> int:
    bases = cls.__mro__ or ()  # not issubclass: abstract classes answer that by running Python code
    for base in bases:
        if base in _BASES:
            kind = _BASES[base]
            break
    else:
        kind = OBJECT
    if not is_heap(cls):
        _kinds[cls] = kind
    return kind


def is_heap(cls: type) -> bool:
    """Whether `cls` was made by a `class` statement (or is a C heap type): it may have Python methods."""
    return bool(cls.__flags__ & _HEAP_TYPE)


def has_tangent(x: Any) -> bool:
    """Whether `x` is a number or an array of real or complex numbers."""
    kind = kind_of(type(x))
    return kind == NUMBER or (kind == ARRAY and x.dtype.kind in "fc")
