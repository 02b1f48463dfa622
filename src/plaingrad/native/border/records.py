"""Instances at the border: dataclasses and others with fields, which go in as named tuples."""

from __future__ import annotations

import dataclasses
import functools
from collections import namedtuple
from typing import Any

import numpy as np
from numba.core import types

from plaingrad.errors import NativeError


class Instance:
    """An instance of a class compiled by Numba (`jitclass`), among what is differentiated.

    Attributes:
        of: the instance.
    """

    __slots__ = ("of",)

    def __init__(self, of: Any) -> None:
        self.of = of


def differentiated(x: Any) -> Any:
    """A differentiated argument: whole numbers as real ones, instances of Numba's classes with their fields."""
    return as_real(with_fields(x))


def with_fields(x: Any) -> Any:
    """`x`; if it is an instance of one of Numba's classes as a record."""
    is_instance = isinstance(getattr(type(x), "_numba_type_", None), types.ClassInstanceType)
    return Instance(x) if is_instance else x


@functools.lru_cache(256)
def fields_type(name: str, names: tuple[str, ...]) -> Any:
    """The class of named tuples that stand for records.

    Raises:
        NativeError: there is a name that fields of named tuples cannot have.
    """
    try:
        return namedtuple(name, names)
    except ValueError as error:
        raise NativeError(
            f"an instance of {name} stands for its fields natively, as a named tuple, but: {error}.\n"
            "  To go on: rename it, or use tier='plain'.\n  See docs: errors#native"
        ) from None


def is_record(x: Any) -> bool:
    """Whether `x` is an instance of a dataclass, or of a class of Numba's."""
    return type(x) is Instance or (dataclasses.is_dataclass(x) and not isinstance(x, type))


def class_of(x: Any) -> type:
    """The class of a record."""
    return type(x.of) if type(x) is Instance else type(x)


def fields_of(x: Any) -> dict[str, Any]:
    """The fields of a record by name."""
    if type(x) is Instance:
        return {name: with_fields(getattr(x.of, name)) for name in type(x.of)._numba_type_.struct}
    return {field.name: getattr(x, field.name) for field in dataclasses.fields(x)}


def is_int(x: Any) -> bool:
    """Whether `x` is an int, which as an argument is taken as a real number."""
    return isinstance(x, (int, np.integer)) and not isinstance(x, bool)


def is_whole(x: Any) -> bool:
    """Whether `x` is an int or an array of ints."""
    return is_int(x) or (isinstance(x, np.ndarray) and x.dtype.kind in "iu")


def as_real(x: Any) -> Any:
    """`x`, a differentiated argument: an int, or an array of them, as real numbers."""
    if is_int(x):
        return float(x)
    return x.astype(np.float64) if is_whole(x) else x
