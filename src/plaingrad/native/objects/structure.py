"""Arguments with structure: the numbers and arrays in them, what is known of them, and gradients like them."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import FunctionType, MemberDescriptorType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from plaingrad.class_keys import is_own_key
from plaingrad.errors import NativeError
from plaingrad.native.objects.attributes import in_class
from plaingrad.native.objects.engine import Frame
from plaingrad.native.objects.merging import pattern_of
from plaingrad.native.objects.results import entry_of
from plaingrad.native.objects.values import GIVEN, Instance, Items, Keys, Rows, Static, Tup
from plaingrad.tangents import Tangent, ZeroTangent

SHORT = 8  # lists of more entries are arrays, one for each field of their entries
LONGEST = 64
HEAP_TYPE = 1 << 9  # the flag of classes that a class statement made
BASES = (type, tuple, list, dict, set, frozenset, float, int, complex, str, bytes, BaseException, np.ndarray)
NUMBERS = (float, int, complex, np.floating, np.complexfloating, np.integer)


def flattened(x: Any, leaves: list[Any], seen: set[int], rows: bool = True) -> Any:
    """What is known of `x` once for all; its numbers and arrays are added to `leaves`.

    With `rows`, those of long lists whose entries are alike as an array for each of their fields.

    Raises:
        NativeError: it is nothing that can be taken apart.
    """
    cls = type(x)
    if is_leaf(x):
        leaves.append(x)
        return cls
    if is_known(x):
        return cls, id(x) if isinstance(x, (type, FunctionType)) else x
    if cls in (list, dict) or is_object(x):
        if id(x) in seen:
            raise refused(f"a {cls.__name__} is there twice, so that its gradient would be one object")
        seen.add(id(x))
    if rows and cls is list and len(x) > SHORT:
        columns = columns_of(x, seen)
        if columns is not None:
            leaves += columns[1]
            return list, "rows", columns[0]
    if (cls is list or cls is dict or isinstance(x, tuple)) and len(x) > LONGEST:
        raise refused(f"a {cls.__name__} of {len(x)} entries that are not alike")
    if cls is dict:
        if not all(isinstance(key, (str, int)) for key in x):
            raise refused("a dictionary has keys that are neither text nor whole numbers")
        return dict, tuple([(key, flattened(value, leaves, seen, rows)) for key, value in x.items()])
    if cls is list or cls is tuple or (isinstance(x, tuple) and hasattr(x, "_fields")):
        return cls, tuple([flattened(value, leaves, seen, rows) for value in x])
    if is_object(x):
        return cls, tuple(
            [(name, flattened(value, leaves, seen, rows)) for name, value in fields_of(x).items()]
        )
    raise refused(f"a {cls.__name__} is nothing that can be taken apart")


def refused(why: str) -> NativeError:
    """The error for an argument that cannot be taken apart."""
    return NativeError(f"in an argument, {why}.\n  To go on: use tier='plain'.\n  See docs: errors#native")


def is_leaf(x: Any) -> bool:
    """Whether a value is a number or an array."""
    cls = type(x)
    return cls is float or cls is int or cls is np.ndarray or (isinstance(x, NUMBERS) and cls is not bool)


def is_known(x: Any) -> bool:
    """Whether a value in an argument is part of the structure, not of the numbers."""
    return x is None or isinstance(x, (str, bool, type, FunctionType, enum.Enum))


@dataclass(frozen=True, slots=True)
class About:
    """What a user's class says of the fields of its instances.

    Attributes:
        slots: those that are slots.
        declared: those of a dataclass.
    """

    slots: tuple[str, ...]
    declared: tuple[str, ...]


_about: WeakKeyDictionary[type, About | None] = WeakKeyDictionary()


def about(cls: type) -> About | None:
    """What is known of a user's class; None of any other, and of one whose instances are more than their fields."""
    if cls.__getattribute__ is not object.__getattribute__:  # which it may have got meanwhile
        return None
    try:
        return _about[cls]
    except KeyError:
        found = _about[cls] = _looked_up(cls)
        return found
    except TypeError:  # a class without a hash
        return None


def _looked_up(cls: type) -> About | None:
    library = cls.__module__.split(".")[0] in ("builtins", "numpy", "numba", "plaingrad")
    made_by_statement = all(base is object or base.__flags__ & HEAP_TYPE for base in cls.__mro__)
    if library or not made_by_statement or not is_own_key(cls) or issubclass(cls, BASES):
        return None
    found = [(name, v) for base in reversed(cls.__mro__) for name, v in vars(base).items()]
    slots = tuple([name for name, v in found if isinstance(v, MemberDescriptorType)])
    declared = tuple([f.name for f in dataclasses.fields(cls)]) if dataclasses.is_dataclass(cls) else ()
    return About(slots, declared) if slots or declared or cls.__dictoffset__ else None


def is_object(x: Any) -> bool:
    """Whether `x` is an instance of a class of the user's, with fields."""
    return about(type(x)) is not None


def fields_of(x: Any) -> dict[str, Any]:
    """The fields of an object by name: the declared ones of a dataclass first."""
    known = about(type(x))
    own = getattr(x, "__dict__", None)
    if known is None or (not known.slots and not known.declared):
        return dict(own or {})
    if not known.slots and own is not None and tuple(own) == known.declared:
        return own
    first = {name: getattr(x, name) for name in (*known.declared, *known.slots) if hasattr(x, name)}
    return {**first, **(own or {})}


def columns_of(x: list[Any], seen: set[int]) -> tuple[Any, list[np.ndarray]] | None:
    """(what is known of every entry, an array for each of their numbers); None where they differ."""
    arrays: list[np.ndarray] = []
    held: set[int] = set()
    key = _column(x, arrays, held)
    if key is None or not arrays or held & seen:
        return None
    seen |= held
    return key, arrays


def _column(x: Sequence[Any], arrays: list[np.ndarray], held: set[int]) -> Any:
    """What is known of every value in `x`, their numbers added to `arrays`; None where they differ."""
    kinds = set(map(type, x))
    cls = kinds.pop()
    if kinds:
        return None
    if cls is float or cls is int:
        made = np.array(x)
        arrays.append(made)
        return cls if made.dtype.kind in "if" else None
    if is_known(x[0]):
        return (cls, x[0]) if all(v is x[0] or v == x[0] for v in x) else None
    if issubclass(cls, tuple) and (cls is tuple or hasattr(cls, "_fields")):
        if len(set(map(len, x))) > 1:
            return None
        parts = [_column(column, arrays, held) for column in zip(*x, strict=True)]
        return None if None in parts else (cls, tuple(parts))
    if not is_object(x[0]):
        return None
    first = fields_of(x[0])
    places = set(map(id, x))
    if len(places) < len(x) or places & held or not all(has_fields(v, first) for v in x):
        return None
    held |= places
    parts = []
    own = [getattr(v, "__dict__", None) for v in x]
    for name in first:
        column = [getattr(v, name) for v in x] if own[0] is None else [d[name] for d in own]  # type: ignore[index]
        parts.append(_column(column, arrays, held))
    return None if None in parts else (cls, tuple(zip(first, parts, strict=True)))


def has_fields(x: Any, names: dict[str, Any]) -> bool:
    """Whether an object has fields of these names, and no others."""
    mine = getattr(x, "__dict__", None)
    return (fields_of(x) if mine is None else mine).keys() == names.keys()


def abstract(f: Frame, x: Any, leaves: Iterator[Any], rows: bool = True) -> Any:
    """What is known of `x`, its numbers and arrays by the variables `leaves`. Its objects are noted."""
    cls = type(x)
    if is_leaf(x):
        return next(leaves)
    if is_known(x):
        return Static(x)
    if rows and cls is list and len(x) > SHORT and (found := columns_of(x, set())) is not None:
        scratch = Frame(f.whole, f.home, f.state)
        dummy = iter(some_number, None)
        noted = len(f.whole.given)
        pattern, _ = pattern_of(abstract(scratch, x[0], dummy), f.state)
        del f.whole.given[noted:]
        return f.object(Rows(pattern, [next(leaves) for _ in found[1]], True, True))
    if cls is dict:
        return given(f, Keys({key: abstract(f, v, leaves, rows) for key, v in x.items()}, GIVEN))
    if cls is list:
        return given(f, Items([abstract(f, v, leaves, rows) for v in x], GIVEN))
    if isinstance(x, tuple):
        return Tup(tuple([abstract(f, v, leaves, rows) for v in x]), cls)
    f.whole.check(in_class, cls, "__getattribute__")
    return given(
        f, Instance(cls, {name: abstract(f, v, leaves, rows) for name, v in fields_of(x).items()}, GIVEN)
    )


def given(f: Frame, thing: Any) -> Any:
    """An object of an argument, noted as such."""
    found = f.object(thing)
    f.whole.given.append(found.at)
    return found


def kept(x: Any) -> Any:
    """A copy of the structure of an argument, with its numbers and arrays."""
    cls = type(x)
    if is_leaf(x) or is_known(x):
        return x
    if cls is dict:
        return {key: kept(v) for key, v in x.items()}
    if cls is list:
        return list(map(kept, x))
    if isinstance(x, tuple):
        return cls(*map(kept, x)) if hasattr(x, "_fields") else tuple(map(kept, x))
    made = object.__new__(cls)
    for name, v in fields_of(x).items():
        object.__setattr__(made, name, kept(v))
    return made


def objects_in(x: Any, rows: bool = True) -> Iterator[Any]:
    """The objects of an argument, in the order in which `abstract` notes them."""
    if is_leaf(x) or is_known(x) or (rows and type(x) is list and len(x) > SHORT and columns_of(x, set())):
        return
    inside = x.values() if type(x) is dict else x if isinstance(x, (list, tuple)) else fields_of(x).values()
    for v in inside:
        yield from objects_in(v, rows)
    if not isinstance(x, tuple):
        yield x


def some_number() -> Any:
    """A number that stands for any."""
    return Static(0.0)


def has_tangent(leaf: Any) -> bool:
    """Whether a number or array can be differentiated by."""
    if isinstance(leaf, np.ndarray):
        return leaf.dtype.kind in "fc"
    return isinstance(leaf, (float, complex, np.inexact))


def mirrored(x: Any, bars: Iterator[Any], rows: bool = True) -> Any:
    """The gradient of an argument, from those of its numbers and arrays (None for what has none)."""
    cls = type(x)
    if is_leaf(x):
        bar = next(bars)
        return bar if bar is None or cls is np.ndarray else cls(bar)
    if is_known(x):
        return None
    if rows and cls is list and len(x) > SHORT and (found := columns_of(x, set())) is not None:
        columns = [bar if bar is None else bar.tolist() for bar in [next(bars) for _ in found[1]]]
        entries = zip(*[[None] * len(x) if c is None else c for c in columns], strict=True)
        return [mirrored(v, iter(row)) for v, row in zip(x, entries, strict=True)]
    if cls is dict:
        return {key: mirrored(v, bars, rows) for key, v in x.items()}
    if cls is list:
        return [mirrored(v, bars, rows) for v in x]
    if isinstance(x, tuple):
        parts = [mirrored(v, bars, rows) for v in x]
        return cls(*parts) if hasattr(x, "_fields") else tuple(parts)
    return Tangent(cls, {name: mirrored(v, bars, rows) for name, v in fields_of(x).items()})


def parts(x: Any, d: Any) -> list[Any]:
    """The parts of a tangent of an argument that belong to its numbers and arrays, zeros where there are none."""
    cls = type(x)
    if is_leaf(x):
        return [ZeroTangent if d is None else d]
    if is_known(x):
        return []
    if isinstance(x, (list, tuple)):
        named = enumerate(x)
    else:
        named = iter(x.items()) if cls is dict else iter(fields_of(x).items())
    return [leaf for name, v in named for leaf in parts(v, entry_of(d, name))]
