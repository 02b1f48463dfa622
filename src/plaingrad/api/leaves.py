"""The structure of arguments, tangents and cotangents: what fits what, and in whose words to say so."""

from __future__ import annotations

import dataclasses
import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np

from plaingrad import number_classes
from plaingrad.api import recorded
from plaingrad.api.information import TO_SAY, say_form
from plaingrad.class_keys import all_among, is_instance
from plaingrad.copying import shallow_copy
from plaingrad.engine.memory.entries import entries_of, has_fields, is_of_floats
from plaingrad.engine.memory.kinds import ARRAY, FLAT, MAPPING, NOTHING, NUMBER, OBJECT, SEQUENCE, kind_of
from plaingrad.engine.memory.tape import Tree
from plaingrad.engine.users_code.coroutines import check_awaited
from plaingrad.engine.values.borrowed import of_their_own
from plaingrad.engine.values.fresh import copied_object, put_field, rebuilt
from plaingrad.errors import ArgumentError, CotangentError, TangentError
from plaingrad.rewrite import CURRENT, PLAIN
from plaingrad.tangents import NoTangent, Tangent, Thunk, ZeroTangent, is_zero, unthunk
from plaingrad.tangents.fields import fields_of
from plaingrad.tangents.project import is_complex
from plaingrad.tangents.types import entries as fields_in
from plaingrad.tangents.types import primal_type_of

Argnums = int | tuple[int, ...]


def described(x: Any) -> str:
    """ "a list", "a ndarray of shape (3,) and dtype float64"."""
    shape = f" of shape {x.shape} and dtype {x.dtype}" if isinstance(x, np.ndarray) else ""
    return f"a {type(x).__qualname__}{shape}"


def check_callable(f: Any, name: str) -> None:
    """Refuse what is no function as the first argument of the operator `name`, before anything else is done with it.

    Every operator comes by here first, so this is where the form of the core is said, once.
    """
    if not callable(f):
        raise ArgumentError(
            f"the first argument of {name} must be a function, not {described(f)}.\n"
            f"  To go on: {name}(f, ...) with the function itself, not with what it returns.\n"
            "  See docs: errors#argument"
        )
    check_awaited(f, name)
    if TO_SAY:
        say_form()


def positions_of(argnums: Any) -> tuple[int, ...]:
    """`argnums` as a tuple."""
    positions = argnums if isinstance(argnums, tuple) else (argnums,)
    if not positions or not all(isinstance(n, int) and not isinstance(n, bool) for n in positions):
        raise ArgumentError(
            f"argnums must be an int or a tuple of ints, not {argnums!r}.\n  See docs: errors#argument"
        )
    return positions


def positions_in(positions: tuple[int, ...], args: tuple[Any, ...]) -> tuple[int, ...]:
    """`positions`, counted from the front of `args`; each exists and is named once."""
    if positions == (0,) and args:
        return positions
    found = []
    for n in positions:
        if not -len(args) <= n < len(args):
            raise ArgumentError(
                f"there is no positional argument {n} to differentiate: the call has {len(args)}.\n"
                "  Differentiated arguments are passed by position.\n  See docs: errors#argument"
            )
        found.append(n % len(args))
    if len(set(found)) != len(found):
        raise ArgumentError(f"argnums names one argument twice: {positions!r}.\n  See docs: errors#argument")
    return tuple(found)


def may_have_tangent(x: Any, depth: int = 0) -> bool:
    """Whether a real or complex number is in `x`, as far as can be seen before it is entered."""
    kind = kind_of(type(x))
    if kind == NOTHING:
        return isinstance(x, (int, np.integer)) and not isinstance(x, bool)
    if kind == NUMBER:
        return True
    if kind == ARRAY:
        return x.dtype.kind in "fciuO"
    if depth > 20:
        return False
    if kind in (SEQUENCE, MAPPING):
        return any(may_have_tangent(v, depth + 1) for v in (x.values() if kind == MAPPING else x))
    if not has_fields(x):
        return False
    return any(
        may_have_tangent(v, depth + 1) for v in fields_of(x).values() if not isinstance(v, (int, np.integer))
    )


def is_int(x: Any) -> bool:
    """Whether `x` is an int, which as an argument is taken as a real number."""
    return isinstance(x, (int, np.integer)) and not isinstance(x, bool)


def is_whole_numbers(x: Any) -> bool:
    """Whether `x` is an int, or an array of ints."""
    return is_int(x) or (isinstance(x, np.ndarray) and x.dtype.kind in "iub")


# -- what fits what ----------------------------------------------------------------------------------------------------


def here(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """f(*args) for a function of `plaingrad.api.recorded`: rewritten where a derivative is being taken around it."""
    level = CURRENT.get()
    return f(*args, **kwargs) if level is PLAIN else level.calls.inside(f)(*args, **kwargs)


class Fit:
    """How one kind of derivative is checked against the value it belongs to."""

    __slots__ = ("belongs", "error", "noun")

    def __init__(self, noun: str, belongs: str, error: type[Exception]) -> None:
        self.noun = noun
        self.belongs = belongs
        self.error = error

    def misfit(self, path: str, wanted: str, got: Any) -> Exception:
        """The error for a derivative of the wrong kind or shape."""
        return self.error(
            f"{path} must be {wanted}, like the {self.belongs} it belongs to; got {described(got)}.\n"
            f"  See docs: errors#{self.noun}"
        )

    def of(self, d: Any, x: Any, path: str, as_real: bool = False, seen: dict[Any, Any] | None = None) -> Any:
        """`d`, checked to be a derivative of `x`; `ZeroTangent` for None.

        Args:
            as_real: `x` is an argument itself, where an int counts as a real number.
            seen: what was made already of objects, which may hold themselves.
        """
        if isinstance(d, Thunk):
            d = here(unthunk, d)
        if d is None or d is ZeroTangent or d is NoTangent:
            return ZeroTangent
        kind = kind_of(type(x))
        if kind == NUMBER or (as_real and is_int(x)):
            return self._number(d, x, path)
        if kind == ARRAY:
            return self._array(d, x, path)
        seen = {} if seen is None else seen
        if kind == SEQUENCE:
            if not isinstance(d, (list, tuple, deque)) or len(d) != len(x):
                raise self.misfit(path, f"a sequence of {len(x)} entries", d)
            if is_of_floats(d) and is_of_floats(x):
                return list(d)
            pairs = enumerate(zip(d, x, strict=True))
            return [self.of(part, of, f"{path}[{k}]", False, seen) for k, (part, of) in pairs]
        if kind == MAPPING:
            if not is_instance(d, Mapping) or set(d) - set(x):
                raise self.misfit(path, f"a mapping with keys among {list(x)}", d)
            return self._entries(d, x, x, path, seen)
        if type(x) is Tangent:  # of an object: the engine knows it as an object with a dictionary
            d = d["_fields"] if is_instance(d, Mapping) and set(d) == {"_fields"} else d
            return {"_fields": self.of(d, fields_in(x), path, False, seen)}
        if kind != NOTHING and has_fields(x):
            fields = fields_of(x)
            if not is_instance(d, Mapping) or set(d) - set(fields):
                raise self.misfit(path, f"a Tangent or a dict with fields among {list(fields)}", d)
            return self._entries(d, x, fields, path, seen)
        if isinstance(x, (int, np.integer)) and self.noun == "cotangent":
            return ZeroTangent
        raise self.error(
            f"{path} is given for {described(x)}, which has no tangent; pass None there.\n"
            f"  See docs: errors#{self.noun}"
        )

    def _entries(
        self, d: Any, x: Any, parts: Mapping[Any, Any], path: str, seen: dict[Any, Any]
    ) -> dict[Any, Any]:
        """Of each of `parts`, which are the entries or fields of `x`."""
        found = seen.get((id(d), id(x)))
        if found is not None:
            return found[0]  # type: ignore[no-any-return]
        whole: dict[Any, Any] = {}
        if parts is not x:
            seen[id(d), id(x)] = whole, d, x
        for key, part in parts.items():
            at = f"{path}[{key!r}]" if parts is x else f"{path}.{key}"
            whole[key] = self.of(d[key], part, at, False, seen) if key in d else ZeroTangent
        return whole

    def _number(self, d: Any, x: Any, path: str) -> Any:
        if isinstance(d, np.ndarray) and d.shape == ():
            d = here(recorded.element, d)
        if not isinstance(d, (int, float, complex, np.number)) and kind_of(type(d)) != NUMBER:
            raise self.misfit(path, "a number", d)
        self._refuse_complex(path, d, x)
        if isinstance(d, int):
            exact = is_instance(x, (Decimal, Fraction)) or number_classes.is_own(x)
            return (
                (number_classes.made(x, d) if number_classes.is_own(x) else type(x)(d)) if exact else float(d)
            )
        return d

    def _array(self, d: Any, x: np.ndarray, path: str) -> Any:
        if not isinstance(d, np.ndarray):
            if np.shape(d) != x.shape or isinstance(d, (list, tuple)):
                raise self.misfit(path, f"an array of shape {x.shape}", d)
            d = here(recorded.as_array, d)
        if d.shape != x.shape:
            raise self.misfit(path, f"an array of shape {x.shape}", d)
        if x.dtype.kind == "O":
            return d
        if d.dtype.kind not in "fciub":
            raise self.misfit(path, "an array of numbers", d)
        if x.dtype.kind != "c":
            self._refuse_complex(path, d, x)
        return d

    def _refuse_complex(self, path: str, d: Any, x: Any) -> None:
        if is_complex(d) and not is_complex(x):
            raise self.error(
                f"{path} is complex, but the {self.belongs} it belongs to is real.\n  See docs: errors#{self.noun}"
            )


def kept(x: Any, seen: dict[int, Any] | None = None) -> Any:
    """The structure of `x` as it is now, for a `Fit` that comes later: leaves are the same, containers are copies."""
    t = type(x)
    kind = kind_of(t)
    if kind == ARRAY:
        return of_their_own(x)  # not in memory that is to be given back
    if kind in (NUMBER, NOTHING):
        return x
    seen = {} if seen is None else seen
    if id(x) in seen:
        return seen[id(x)]
    if kind == SEQUENCE:
        if isinstance(x, tuple):
            return x if all_among(x, FLAT) else tuple([kept(part, seen) for part in x])
        seen[id(x)] = copy = []
        copy += x if all_among(x, FLAT) else [kept(part, seen) for part in x]
    elif type(x) is Tangent:
        return Tangent(primal_type_of(x), kept(fields_in(x), seen))
    elif kind == MAPPING:
        seen[id(x)] = copy = {}
        for key, value in x.items():
            copy[key] = kept(value, seen)
    elif has_fields(x):
        seen[id(x)] = copy = SimpleNamespace()
        for name, value in fields_of(x).items():
            vars(copy)[name] = kept(value, seen)
    else:
        return x
    return copy


COTANGENT = Fit("cotangent", "output", CotangentError)
TANGENT = Fit("tangent", "argument", TangentError)


def fitting_tangents(primals: Any, tangents: Any, name: str = "tangents") -> tuple[Any, ...]:
    """`tangents`, checked to be one for each of `primals`."""
    if type(primals) is tuple and type(tangents) is tuple and len(primals) == len(tangents):
        for x, x_dot in zip(primals, tangents, strict=True):
            if type(x) is not float or type(x_dot) is not float:
                break
        else:
            return tangents
    for what, given in (("primals", primals), (name, tangents)):
        if not isinstance(given, (tuple, list)):
            raise TangentError(
                f"{what} must be a tuple with one entry for each argument, not {described(given)}; for one argument "
                "write (x,).\n  See docs: errors#tangent"
            )
    if len(primals) != len(tangents):
        raise TangentError(
            f"there are {len(primals)} primals and {len(tangents)} {name}; give one for each argument, None for one "
            "that is held fixed.\n  See docs: errors#tangent"
        )
    pairs = enumerate(zip(tangents, primals, strict=True))
    return tuple([TANGENT.of(x_dot, x, f"{name}[{n}]", as_real=True) for n, (x_dot, x) in pairs])


def active_positions(args: Sequence[Any]) -> tuple[int, ...]:
    """Which arguments hold real or complex numbers; an error if none does."""
    active = tuple([n for n, x in enumerate(args) if may_have_tangent(x)])
    if not active:
        raise ArgumentError(
            "none of the arguments holds a real or complex number.\n  See docs: errors#argument"
        )
    return active


# -- the structure of a value ------------------------------------------------------------------------------------------


class Leaf:
    """A number or an array in a structure.

    Attributes:
        x: the number or array itself.
        position: its place in the list of all leaves.
        size: how many real or complex numbers it is.
        directions: how many real directions it can move in: two for a complex number.
    """

    __slots__ = ("directions", "is_array", "is_complex", "position", "shape", "size", "x")

    def __init__(self, x: Any, position: int) -> None:
        self.x = x
        self.position = position
        self.is_array = isinstance(x, np.ndarray)
        self.is_complex = is_complex(x)
        self.shape: tuple[int, ...] = x.shape if self.is_array else ()
        self.size = math.prod(self.shape)
        self.directions = self.size * (2 if self.is_complex else 1)


class Branch:
    """A list, tuple, dictionary or object: its entries (a `Leaf`, a `Branch`, or None) by key."""

    __slots__ = ("entries", "x")

    def __init__(self, x: Any, entries: dict[Any, Any]) -> None:
        self.x = x
        self.entries = entries


def structure_of(x: Any, as_real: bool = False) -> tuple[Any, list[Leaf]]:
    """The structure of `x`, and its leaves in order.

    Args:
        as_real: ints (and arrays of them) count as real numbers where `x` itself is one.
    """
    leaves: list[Leaf] = []
    return _structure(x, as_real, leaves, {}), leaves


def structures_of(args: Sequence[Any]) -> tuple[list[Any], list[Leaf]]:
    """The structure of each differentiated argument, and the leaves of all of them in order."""
    leaves: list[Leaf] = []
    seen: dict[int, Any] = {}
    return [_structure(x, True, leaves, seen) for x in args], leaves


def _structure(x: Any, as_real: bool, leaves: list[Leaf], seen: dict[int, Any]) -> Any:
    kind = kind_of(type(x))
    if as_real and is_int(x):
        x, kind = float(x), NUMBER
    if kind == ARRAY:
        if x.dtype.kind == "O":
            raise ArgumentError(
                "there is an array of Python objects; use a list, or an array of floats.\n"
                "  See docs: errors#argument"
            )
        if as_real and x.dtype.kind in "iu":
            x = x.astype(float)
        if x.dtype.kind not in "fc":
            return None
    if kind in (NUMBER, ARRAY):
        leaves.append(Leaf(x, len(leaves)))
        return leaves[-1]
    if kind == NOTHING or (kind not in (SEQUENCE, MAPPING) and not has_fields(x)):
        return None
    if id(x) in seen:
        return seen[id(x)]
    found = len(leaves)
    branch = Branch(x, {})
    if not isinstance(x, tuple):
        seen[id(x)] = branch
    for key, value in entries_of(x):
        branch.entries[key] = _structure(value, False, leaves, seen)
    if kind not in (SEQUENCE, MAPPING) and len(leaves) == found:
        seen[id(x)] = None
        return None
    return branch


def filled(structure: Any, value_of: Callable[[Leaf], Any], made: dict[int, Any] | None = None) -> Any:
    """`structure` with `value_of(leaf)` for its leaves: list for list, dict for dict, `Tangent` for an object."""
    made = {} if made is None else made
    if structure is None:
        return None
    if type(structure) is Leaf:
        return value_of(structure)
    if id(structure) in made:
        return made[id(structure)]
    x, entries = structure.x, structure.entries
    if isinstance(x, tuple):
        parts = [filled(entry, value_of, made) for entry in entries.values()]
        return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
    if isinstance(x, (list, deque)):
        made[id(structure)] = whole = []
        whole.extend([filled(entry, value_of, made) for entry in entries.values()])
        return whole
    if type(x) is Tangent:
        fields = filled(entries["_fields"], value_of, made)
        made[id(structure)] = whole = Tangent(primal_type_of(x), fields)
        return whole
    fields: dict[Any, Any] = {}
    made[id(structure)] = whole = fields if isinstance(x, dict) else Tangent(type(x), fields)
    for key, entry in entries.items():
        fields[key] = filled(entry, value_of, made)
    return whole


def with_leaves(x: Any, structure: Any, values: Any, who: str, records: bool = False) -> Any:
    """`x`, rebuilt with `values` for its leaves; `who` "takes" it, for the message; with `records` dataclasses too."""
    if structure is None:
        return x
    if type(structure) is Leaf:
        return values[structure.position]
    parts = {
        key: with_leaves(part, structure.entries[key], values, who, records) for key, part in entries_of(x)
    }
    if isinstance(x, dict):
        whole = shallow_copy(x)
        whole.update(parts)
        return whole
    if isinstance(x, (list, tuple, deque)):
        return rebuilt(x, list(parts.values()))
    if records and dataclasses.is_dataclass(x):
        whole = copied_object(x)
        for key, part in parts.items():
            put_field(whole, key, part, OBJECT)
        return whole
    raise ArgumentError(
        f"{who} numbers, arrays, and lists, tuples and dicts of them, not {described(x)}; take its attributes one by "
        "one.\n  See docs: errors#argument"
    )


def is_plain(x: Any) -> bool:
    """Whether `x` is a number, an array, or lists, tuples and dicts of these: what `with_leaves` can rebuild."""
    waiting = [structure_of(x)[0]]
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        if type(node) is Branch and id(node) not in seen:
            seen.add(id(node))
            if not isinstance(node.x, (list, tuple, deque, dict)):
                return False
            waiting += node.entries.values()
    return True


def leaf_values(structure: Any, derivative: Any) -> dict[int, Any]:
    """The entries of `derivative`, which has this structure, by the position of their leaf; zeros are left out."""
    found: dict[int, Any] = {}
    seen: set[int] = set()
    waiting = [(structure, derivative)]
    while waiting:
        node, d = waiting.pop()
        if node is None or d is None or is_zero(d):
            continue
        if type(node) is Leaf:
            found[node.position] = d
        elif id(node) not in seen:
            seen.add(id(node))
            if type(d) is Tree:  # places of cotangents
                waiting += [(entry, d.slots.get(key)) for key, entry in node.entries.items()]
            else:
                waiting += [(entry, d[key]) for key, entry in node.entries.items()]
    return found


def check_has_numbers(y: Any, f: Any) -> None:
    """Refuse a result without numbers."""
    if not structure_of(y, as_real=True)[1]:
        raise ArgumentError(
            f"{getattr(f, '__name__', 'the function')} returned {described(y)}, which holds no real or complex "
            "number.\n  See docs: errors#argument"
        )


def checked_order(order: Any) -> int:
    """The order of a derivative, if it is a natural number."""
    if not isinstance(order, (int, np.integer)) or isinstance(order, bool) or order < 0:
        raise ArgumentError(f"order must be 0, 1, 2, ..., not {order!r}.\n  See docs: errors#argument")
    return int(order)
