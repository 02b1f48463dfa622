"""The tangent space of a value: its type, its zero, projection onto it, and sums in it.

Every type of primal has one type of tangent:

==============================================  ======================================================================
primal                                          tangent
==============================================  ======================================================================
`float`, `complex`, `Fraction`, `Decimal`       the same type; that of the base for a subclass
a NumPy number of real or complex type          the same type
an array of real or complex numbers             an array of its shape and dtype; plain, for a subclass too
a list, a deque                                 a list
a tuple, a named tuple                          a tuple, the same named tuple
a dictionary                                    a dictionary with its keys
an object of a class                            `Tangent`, one field for each attribute and slot
a closure                                       `Tangent`, one field for each captured variable
a bound method, a `functools.partial`           `Tangent` with `__self__`, or with `func`, `args` and `keywords`
everything else, and what holds none of these   `NoTangent`: `int`, `bool`, `str`, `None`, classes, plain functions
==============================================  ======================================================================
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from types import BuiltinFunctionType, ModuleType
from typing import Any

import numpy as np

from plaingrad import number_classes
from plaingrad.class_keys import is_instance, is_subclass
from plaingrad.errors import CotangentError
from plaingrad.tangents.fields import parts_of
from plaingrad.tangents.project import project
from plaingrad.tangents.types import (
    NoTangent,
    NoTangentType,
    Tangent,
    Thunk,
    ZeroTangent,
    added,
    entries,
    is_zero,
    primal_type_of,
    unthunk,
)

NUMBERS = (float, complex, Fraction, Decimal)
WITHOUT = (
    *(int, str, bytes, bytearray, type(None), slice, range, type, ModuleType, BuiltinFunctionType),
    *(np.integer, np.bool_, np.character, np.datetime64, np.timedelta64, np.dtype, np.ufunc),
    *(set, frozenset, memoryview),
)


def space_of(primal: Any) -> type:
    """The type of the tangents of a value, or of the values of a type, without what they are like inside."""
    if isinstance(primal, type):
        return _type_for(primal)
    return _type_for(type(primal)) if has_tangent_space(primal) else NoTangentType


def _type_for(cls: type) -> type:
    if issubclass(cls, np.inexact):
        return cls if cls.__module__ == "numpy" else next(c for c in cls.__mro__ if c.__module__ == "numpy")
    for base in NUMBERS:
        if is_subclass(cls, base):
            return base
    if number_classes.find(cls) is not None:
        return cls
    if issubclass(cls, WITHOUT):
        return NoTangentType
    if issubclass(cls, np.ndarray):
        return np.ndarray
    if issubclass(cls, tuple):
        return cls if hasattr(cls, "_fields") else tuple
    if issubclass(cls, (list, deque)):
        return list
    if _is_mapping(cls) and not is_subclass(cls, Tangent):
        return dict
    return Tangent if cls is not Tangent else cls


def _is_mapping(cls: type) -> bool:
    try:
        return issubclass(cls, Mapping)
    except TypeError:  # abstract classes hash it
        return is_subclass(cls, Mapping)


def has_tangent_space(x: Any, as_real: bool = False) -> bool:
    """Whether something in `x` is a real or complex number; with `as_real` an int by itself counts."""
    if as_real and isinstance(x, (int, np.integer)) and not isinstance(x, bool):
        return True
    return holds_number(x, set())


def holds_number(x: Any, seen: set[int]) -> bool:
    """Whether a real or complex number is in `x`, leaving aside the objects whose ids are in `seen`."""
    if is_instance(x, (*NUMBERS, np.inexact)) or number_classes.find(type(x)) is not None:
        return True
    if isinstance(x, WITHOUT):
        return False
    if isinstance(x, np.ndarray):
        if x.dtype.kind != "O":
            return x.dtype.kind in "fc"
        return any(holds_number(part, seen) for part in x.ravel().tolist())
    if id(x) in seen:
        return False
    seen.add(id(x))
    return any(holds_number(part, seen) for part in _parts(x).values())


def _parts(x: Any) -> Mapping[Any, Any]:
    """The entries of a container, or the fields of an object."""
    if isinstance(x, (list, tuple, deque)):
        return dict(enumerate(x))
    if is_instance(x, Mapping) and type(x) is not Tangent:
        return x
    return parts_of(x)


def zero_tangent(x: Any) -> Any:
    """A zero tangent of `x`, with all its entries written out: numbers, arrays and structures of them.

    What `x` holds twice, its tangent holds twice. It is made of new memory.

    Examples:
        >>> from plaingrad import zero_tangent
        >>> zero_tangent([1.5, (2, 3.0), "text"])
        [0.0, (NoTangent, 0.0), NoTangent]
    """
    return _zero(x, {})


def _zero(x: Any, made: dict[int, Any]) -> Any:
    if id(x) in made:
        return made[id(x)][1]
    cls = space_of(x)
    if cls is NoTangentType:
        return NoTangent
    if cls is np.ndarray:
        if x.dtype.kind == "O":
            z = np.empty(x.shape, object)
            for place in np.ndindex(x.shape):
                z[place] = _zero(x[place], made)
        else:
            z = np.zeros(x.shape, x.dtype)
    elif cls is list:
        made[id(x)] = x, (z := [])
        z += [_zero(part, made) for part in x]
    elif cls is dict:
        made[id(x)] = x, (z := {})
        for key, part in x.items():
            z[key] = _zero(part, made)
    elif cls is Tangent:
        fields: dict[str, Any] = {}
        made[id(x)] = x, (z := Tangent(type(x), fields))
        for name, part in parts_of(x).items():
            fields[name] = _zero(part, made)
    elif issubclass(cls, tuple):
        parts = [_zero(part, made) for part in x]
        return cls(*parts) if hasattr(cls, "_fields") else tuple(parts)
    else:
        return number_classes.made(x, 0) if number_classes.is_own(x) else cls(0)
    made[id(x)] = x, z
    return z


def explicit_tangent(x: Any, x_dot: Any) -> Any:
    """`x_dot` with zeros written out as numbers and arrays, and `NoTangent` where `x` has no tangent."""
    return _explicit(x, x_dot, {})


def _explicit(x: Any, x_dot: Any, made: dict[int, Any]) -> Any:
    x_dot = unthunk(x_dot)
    if x_dot is None or is_zero(x_dot):
        return zero_tangent(x)
    if isinstance(x_dot, tuple) and isinstance(x, tuple):
        parts = [_explicit(part, dot, made) for part, dot in zip(x, x_dot, strict=True)]
        return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
    if id(x_dot) in made:
        return made[id(x_dot)]
    if isinstance(x_dot, (list, tuple)) and isinstance(x, (list, tuple, deque)):
        made[id(x_dot)] = whole = []
        whole += [_explicit(part, dot, made) for part, dot in zip(x, x_dot, strict=True)]
        return whole
    if isinstance(x_dot, dict) and is_instance(x, Mapping):
        made[id(x_dot)] = whole = {}
        for key, part in x.items():
            whole[key] = _explicit(part, x_dot.get(key), made)
        return whole
    if is_instance(x_dot, Mapping) and not is_instance(x, (*NUMBERS, int, np.ndarray)):
        given = entries(x_dot)
        fields: dict[str, Any] = {}
        made[id(x_dot)] = whole = Tangent(type(x), fields)
        for name, part in parts_of(x).items():
            fields[name] = _explicit(part, given.get(name), made)
        return whole
    if x_dot is x and not is_instance(x, (*NUMBERS, np.inexact, np.ndarray)):
        return zero_tangent(x)  # an object for its own tangent: the engine found nothing in it
    return x_dot if has_tangent_space(x) else NoTangent


def project_to(x: Any) -> Callable[[Any], Any]:
    """The function that takes a cotangent, or tangent, into the tangent space of `x`.

    It gives the shape, dtype, realness and structure of `x`'s tangents: an array is summed over the axes along which
    `x` was broadcast, the imaginary part is left out where `x` is real. Zeros stay zeros; what is postponed stays
    postponed. It keeps what it must know about `x`, not the numbers in it.

    Raises:
        CotangentError: by the function, where no projection makes sense (a list of another length, say).

    Examples:
        >>> import numpy as np
        >>> from plaingrad import project_to
        >>> project_to(1.5)(2.0 + 1.0j)
        2.0
        >>> project_to(np.ones((1, 2), np.float32))(np.ones((3, 2)))
        array([[3., 3.]], dtype=float32)
        >>> project_to("text")(1.0)
        NoTangent
    """
    return _projection(x, {})


def _projection(x: Any, made: dict[int, Any]) -> Callable[[Any], Any]:
    if id(x) in made:
        found = made[id(x)]
        return lambda tangent: found[1](tangent)
    cls = space_of(x)
    if cls is NoTangentType:
        return _to_nothing
    if cls is np.ndarray:
        if x.dtype.kind == "O":
            return _postponable(
                _to_objects([_projection(part, made) for part in x.ravel().tolist()], x.shape)
            )
        model = np.broadcast_to(np.zeros((), x.dtype), x.shape)  # shape and dtype in no memory
        return _postponable(functools.partial(_to_array, model))
    if cls is Tangent or cls is dict:
        made[id(x)] = found = [x, None]
        parts = {key: _projection(part, made) for key, part in _parts(x).items()}
        found[:] = (
            None,
            _postponable(functools.partial(_to_fields, type(x) if cls is Tangent else None, parts)),
        )
        return found[1]
    if cls is list or issubclass(cls, tuple):
        made[id(x)] = found = [x, None]
        entry_projections = [_projection(part, made) for part in x]
        found[:] = None, _postponable(functools.partial(_to_sequence, cls, entry_projections))
        return found[1]
    if number_classes.is_own(x):
        return _postponable(functools.partial(_to_own, x))
    return _postponable(functools.partial(_to_number, cls))


def _to_nothing(tangent: Any) -> Any:
    return NoTangent


def _postponable(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`f` on what is no zero, later on what is postponed."""

    def projected(tangent: Any) -> Any:
        if type(tangent) is Thunk:
            return Thunk(lambda: projected(unthunk(tangent)))
        if tangent is None:
            return ZeroTangent
        return tangent if is_zero(tangent) else f(tangent)

    return projected


def _to_own(x: Any, tangent: Any) -> Any:
    if not is_instance(tangent, (*NUMBERS, int, np.number, np.ndarray)) and not number_classes.is_own(
        tangent
    ):
        raise _misfit(f"a number of type {type(x).__name__}", tangent)
    return project(tangent, x)


def _to_number(cls: type, tangent: Any) -> Any:
    if not is_instance(tangent, (*NUMBERS, int, np.number, np.ndarray)) and not number_classes.is_own(
        tangent
    ):
        raise _misfit(f"a number of type {cls.__name__}", tangent)
    number = project(tangent, cls(0))
    if type(number) is cls:
        return number
    if cls is Fraction and number - number != 0:  # infinite, or not a number: no fraction is
        return number
    return cls(number)


def _to_array(model: np.ndarray, tangent: Any) -> Any:
    if not is_instance(tangent, (*NUMBERS, int, np.number, np.ndarray)):
        raise _misfit(f"an array of shape {model.shape}", tangent)
    try:
        return project(tangent, model)
    except ValueError:
        raise _misfit(f"an array of shape {model.shape}", tangent) from None


def _to_objects(parts: list[Callable[[Any], Any]], shape: tuple[int, ...]) -> Callable[[Any], Any]:
    def to_objects(tangent: Any) -> Any:
        if np.shape(tangent) != shape:
            raise _misfit(f"an array of objects of shape {shape}", tangent)
        projected = np.empty(len(parts), object)
        for k, (f, part) in enumerate(zip(parts, np.ravel(tangent).tolist(), strict=True)):
            projected[k] = f(part)
        return projected.reshape(shape)

    return to_objects


def _to_sequence(cls: type, parts: list[Callable[[Any], Any]], tangent: Any) -> Any:
    if not isinstance(tangent, (list, tuple, np.ndarray)) or len(tangent) != len(parts):
        raise _misfit(f"a {cls.__name__} of {len(parts)} entries", tangent)
    projected = [f(part) for f, part in zip(parts, tangent, strict=True)]
    if cls is list:
        return projected
    return cls(*projected) if hasattr(cls, "_fields") else tuple(projected)


def _to_fields(cls: type | None, parts: dict[Any, Callable[[Any], Any]], tangent: Any) -> Any:
    what = "a dictionary" if cls is None else f"a Tangent of {cls.__qualname__}"
    if not is_instance(tangent, Mapping) or (cls is None) == (type(tangent) is Tangent):
        if cls is None or not is_instance(tangent, Mapping):
            raise _misfit(what, tangent)
    if cls is not None and type(tangent) is Tangent and primal_type_of(tangent) is not cls:
        raise _misfit(what, tangent)
    given = entries(tangent)
    unknown = [key for key in given if key not in parts]
    if unknown:
        raise CotangentError(f"{what} has no entry {unknown[0]!r}.\n  See docs: errors#cotangent")
    projected = {key: f(given.get(key)) for key, f in parts.items()}
    return projected if cls is None else Tangent(cls, projected)


def _misfit(wanted: str, got: Any) -> CotangentError:
    shape = f" of shape {got.shape}" if isinstance(got, np.ndarray) else ""
    return CotangentError(
        f"a tangent must be {wanted}, like the value it belongs to; got a {type(got).__qualname__}{shape}.\n"
        "  See docs: errors#cotangent"
    )


def accumulate(a: Any, b: Any) -> Any:
    """a + b of two tangents of one value, in the memory of `a` where that is safe.

    Safe is: an array that owns its memory, may be written, shares none with `b`, and can hold the sum. The caller gives
    up `a`: only the result may be used. `b` stays as it is.

    Examples:
        >>> import numpy as np
        >>> from plaingrad import ZeroTangent, accumulate
        >>> total = accumulate(ZeroTangent, np.ones(2)).copy()
        >>> accumulate(total, np.ones(2)) is total, total
        (True, array([2., 2.]))
        >>> accumulate({"a": 1.0}, {"a": 2.0, "b": ZeroTangent})
        {'a': 3.0, 'b': ZeroTangent}
    """
    a, b = unthunk(a), unthunk(b)
    if type(a) is np.ndarray:
        if (
            isinstance(b, (np.ndarray, np.number, int, float, complex))
            and a.base is None
            and a.flags.writeable
            and a.dtype.kind in "fc"
            and np.can_cast(np.asarray(b).dtype, a.dtype, "same_kind")
            and np.result_type(a, b) == a.dtype
            and np.broadcast_shapes(a.shape, np.shape(b)) == a.shape
            and not np.may_share_memory(a, b)
        ):
            a += b
            return a
    elif isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)) and len(a) == len(b):
        parts = [accumulate(x, y) for x, y in zip(a, b, strict=True)]
        if isinstance(a, list):
            return parts
        return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
    elif type(a) is Tangent and type(b) is Tangent and primal_type_of(a) is primal_type_of(b):
        return Tangent(primal_type_of(a), accumulate(entries(a), entries(b)))
    elif isinstance(a, dict) and is_instance(b, Mapping):
        return {key: accumulate(a.get(key), b.get(key)) for key in {**a, **b}}
    return added(a, b)
