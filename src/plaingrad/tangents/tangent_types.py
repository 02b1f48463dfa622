"""Types of tangents as classes: arrays by dtype and dimensions, tangents of objects by the class of the object."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from plaingrad.class_keys import key_of
from plaingrad.tangents.spaces import space_of
from plaingrad.tangents.types import Tangent, primal_type_of


class ArrayType(type):
    """The class of classes such as `ndarray[float32, 2-d]`, whose instances are the arrays that are so."""

    scalar: type
    ndim: int | None

    def __instancecheck__(cls, x: Any) -> bool:
        return (
            isinstance(x, np.ndarray)
            and issubclass(x.dtype.type, cls.scalar)
            and (cls.ndim is None or x.ndim == cls.ndim)
        )

    def __subclasscheck__(cls, other: type) -> bool:
        if not isinstance(other, ArrayType):
            return False
        return issubclass(other.scalar, cls.scalar) and cls.ndim in (None, other.ndim)


def array_type(scalar: type = np.generic, ndim: int | None = None) -> type:
    """The class of the arrays whose elements are of a NumPy class, abstract or not, with so many dimensions.

    It is a subclass of `np.ndarray`; where nothing is said about the arrays, it is `np.ndarray` itself.
    """
    return np.ndarray if scalar is np.generic and ndim is None else _array_type(scalar, ndim)


@functools.lru_cache(None)
def _array_type(scalar: type, ndim: int | None) -> type:
    said = [scalar.__name__] * (scalar is not np.generic) + ([] if ndim is None else [f"{ndim}-d"])
    return ArrayType(f"ndarray[{', '.join(said)}]", (np.ndarray,), {"scalar": scalar, "ndim": ndim})


class TangentType(type(Tangent)):
    """The class of classes such as `Tangent[Point]`, of which the tangents of points are instances."""

    primal: type

    def __instancecheck__(cls, x: Any) -> bool:
        return type(x) is Tangent and primal_type_of(x) is cls.primal

    def __subclasscheck__(cls, other: type) -> bool:
        return isinstance(other, TangentType) and other.primal is cls.primal


_of_objects: dict[Any, type] = {}
KEPT = 1024


def _tangent_of(cls: type) -> type:
    found = _of_objects.get(key_of(cls))
    if found is None:
        if len(_of_objects) >= KEPT:  # classes made on the way are not kept for ever
            _of_objects.clear()
        found = TangentType(f"Tangent[{cls.__qualname__}]", (Tangent,), {"primal": cls, "__slots__": ()})
        _of_objects[key_of(cls)] = found
    return found


def tangent_type(primal: Any) -> type:
    """The type of the tangents of a value, or of the values of a type.

    Tangents are instances of it: of arrays of the same dtype, of objects of the same class. A container or object in
    which nothing has a tangent has none itself.

    Examples:
        >>> import numpy as np
        >>> from plaingrad import Tangent, tangent_type
        >>> tangent_type(1.5), tangent_type("text")
        (<class 'float'>, <class 'plaingrad.tangents.types.NoTangentType'>)
        >>> tangent_type(complex)
        <class 'complex'>
        >>> single = tangent_type(np.ones(3, np.float32))
        >>> single.__name__, isinstance(np.zeros(3, np.float32), single), isinstance(np.zeros(3), single)
        ('ndarray[float32]', True, False)
        >>> class Point:
        ...     def __init__(self, x): self.x = x
        >>> isinstance(Tangent(Point, x=1.0), tangent_type(Point(2.0))), tangent_type(Point).__name__
        (True, 'Tangent[Point]')
    """
    space = space_of(primal)
    if space is np.ndarray and not isinstance(primal, type):
        return array_type(primal.dtype.type)
    if space is Tangent:
        cls = primal if isinstance(primal, type) else type(primal)
        return cls if cls is Tangent else _tangent_of(cls)
    return space
