"""Items and elements: reading, writing, iterating, containment. Arrays are memory, so writes to them are noticed."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from types import FunctionType, GeneratorType
from typing import Any

import numpy as np

from plaingrad import number_classes
from plaingrad.critical import exclusively
from plaingrad.engine.calls import other_systems
from plaingrad.engine.calls.identities import Identities
from plaingrad.engine.calls.meeting import is_holder
from plaingrad.engine.calls.text_functions import CsvReader
from plaingrad.engine.memory.kinds import ARRAY, NOTHING, OBJECT, SEQUENCE, is_heap, kind_of
from plaingrad.engine.memory.memory import is_borrowed, lender_of, overwrites_unread, owner_of
from plaingrad.engine.refusals.refuse import missing_rule, where
from plaingrad.engine.users_code import adopt, earlier_frames
from plaingrad.engine.users_code.class_attributes import lookup
from plaingrad.engine.values import array_classes, array_items, lookups, records, texts
from plaingrad.engine.values.borrowed import describe, refuse_write
from plaingrad.errors import AliasError
from plaingrad.rewrite import PLAIN
from plaingrad.rewrite.cache import is_rewritten


class Sized:
    """The iterator of an object, for C code that asks the object for its length too, once it has its iterator."""

    __slots__ = ("it", "o")

    def __init__(self, it: Iterator[Any], o: Any) -> None:
        self.it, self.o = it, o

    def __iter__(self) -> Iterator[Any]:
        return self.it

    def __length_hint__(self) -> int:
        return operator.length_hint(self.o, 8)


class Access(Identities):
    """What a level does with a[k], a[k] = v, `for`, `in`, and f-strings."""

    __slots__ = ()

    def _getitem(self, o: Any, k: Any) -> Any:
        t = type(o)
        self.calls.meet_all(k)
        if t is list or t is tuple:
            return o[k]
        if t is dict:
            return lookups.check_found(self, o, k, o[k])
        if t is np.ndarray:
            return self.read_array(o, k)
        if kind_of(t) == ARRAY:
            method = lookup(t, "__getitem__")
            if method is array_items.GETITEM:
                return array_items.read(self, o, k)
            if array_items.is_in_c(method):
                return array_items.read_in_c(self, o, k)
        return self.calls.getitem(o, k)

    def _setitem(self, v: Any, o: Any, k: Any) -> None:
        t = type(o)
        self.calls.meet_all(k)
        if t is np.ndarray and (
            type(v) is float or type(v) is np.ndarray or not array_classes.is_subclassed(v)
        ):
            self.write_array(v, o, k)
            return
        if t is list or t is dict:
            if t is dict and self.texts:
                lookups.keep(self, o, k)
            o[k] = v
        elif kind_of(t) == ARRAY and lookup(t, "__setitem__") is array_items.SETITEM:
            array_items.write(self, v, o, k)
        else:
            self.calls.setitem(v, o, k)

    def read_array(self, a: np.ndarray, k: Any) -> Any:
        """a[k]: a view needs nothing, a number or a copy does."""
        raise NotImplementedError

    def write_array(self, v: Any, a: np.ndarray, k: Any) -> None:
        """a[k] = v."""
        if self.texts and texts.holds_text(v):
            texts.check_conversion(self, v, a)
        region = self.region(a)
        if self.write_number(region, v, a, k):
            return
        kind = kind_of(type(v))
        if a.dtype.kind == "O":
            v = v if is_of_one_element(a, k) else self.of_objects(v)
        elif kind == SEQUENCE:
            v, kind = records.elements(self, v, a), ARRAY
        self.write_value(region, kind, v, a, k)

    def write_number(self, region: Any, v: Any, a: np.ndarray, k: Any) -> bool:
        """Whether a[k] = v has been done in a short way, of numbers and vectors of float64; `region` is that of `a`."""
        raise NotImplementedError

    def write_value(self, region: Any, kind: int, v: Any, a: np.ndarray, k: Any) -> None:
        """a[k] = v of a value of a kind, no sequence unless `a` holds objects; `region` is that of `a`."""
        raise NotImplementedError

    def check_overlap(self, v: np.ndarray, a: np.ndarray, k: Any) -> None:
        """Refuse a[k] = v where NumPy overwrites elements of `v`, in the memory of `a`, before it reads them."""
        if overwrites_unread(a[k], v):
            raise AliasError(
                f"the assignment {where()} puts a vector into one that shares elements with it, a row into a column, "
                "say:\n  NumPy overwrites some of them before it reads them, and the result depends on how the "
                "array lies in memory.\n"
                "  Assign a copy: `a[k] = v.copy()`.\n  See docs: errors#alias"
            )

    def write_through(self, v: Any, m: memoryview, k: Any) -> None:
        """m[k] = v, where `m` looks at an array that a pullback reads."""
        self._native_write(v, m, k)

    def _native_write(self, v: Any, a: Any, k: Any) -> None:
        if self.parent is PLAIN:
            a[k] = v
        else:
            self.parent.setitem(v, a, k)

    def _meet_write(self, owner: Any, a: np.ndarray) -> None:
        """Memory of `owner` is about to be written through `a`: is it one of two names of an argument?"""
        i = self.index.get(id(owner))
        if i is None and owner.base is not None:
            i = self.index.get(id(lender_of(owner)))
        if type(i) is int and i < 0:
            for twin in self.twins:
                if np.may_share_memory(a, twin.original):
                    twin.touched = twin.written = True
                    twin.check()

    def may_activate(self, a: np.ndarray) -> None:
        """Active values are about to be written into `a`, which holds none: refused where we could not follow them."""
        owner = owner_of(a)
        if is_borrowed(owner):
            self.borrowed.check_write(a, owner)

    def _activate(self, a: np.ndarray) -> Any:
        owner = owner_of(a)
        # Two threads may fill one array, and it has one place in the table.
        return exclusively(self.activating, self._index_of_memory, owner)

    def _index_of_memory(self, owner: Any) -> Any:
        return self.index[id(owner)] if self.owns_region(owner) else self.add_region(owner)

    def _written(self, i: Any) -> None:
        twin = self.fresh.get(i)
        if twin is not None and not twin.written:
            if twin.lent:
                twin.torn = True
                whose = describe(twin.original)
                refuse_write(f"the array passed as {twin.name}, which lies in memory of {whose}, is written")
            twin.written = True
            twin.check()

    def _contains(self, x: Any, container: Any) -> bool:
        calls = self.calls
        calls.meet_all(x)
        t = type(container)
        if t is dict or t is set or t is frozenset:
            return x in container
        calls.meet_all(container)
        if lookup(t, "__contains__") is None and kind_of(t) == OBJECT and hasattr(t, "__iter__"):
            return x in calls.met_items(self._iterable(container))  # C code compares with each item
        return x in container

    def _iterable(self, o: Any) -> Any:
        t = type(o)
        if t is list or t is tuple or t is range or t is dict or t is str:
            return o
        if (t is bytes or t is bytearray or t is memoryview) and self.texts.raw:
            texts.check_bytes(self, o)
        if t is np.ndarray:
            if o.ndim == 1 and o.dtype.kind in "fc":
                return self._elements(o)
            self.region(o)
            if o.dtype.names is not None and self.calls.finds_active(o):
                records.refuse_record(o)
            return o
        if number_classes.known and number_classes.system_of(o) is not None:
            return other_systems.elements(self, o)
        if kind_of(t) == ARRAY and lookup(t, "__iter__") is array_items.ITER:
            return array_items.elements(self, o)
        if o is self.calls.made:
            self.calls.made = None  # nothing of ours is to hold on to what it goes through
            return o
        if t is GeneratorType and is_rewritten(o.gi_code):
            return o
        if t is GeneratorType or earlier_frames.is_generator(t) or earlier_frames.is_iterator(t):
            return self._foreign(o)
        if t is np.flatiter:
            return self.inside_rule(np.flatiter.__iter__, o)
        if t is CsvReader and self.texts:
            return self._parsed_rows(o)
        if t is memoryview and self.calls.finds_active(o):
            missing_rule(memoryview, "It reads differentiated numbers out of raw memory.")
        if t is np.broadcast and any(self.is_active(part.base) for part in o.iters):
            missing_rule(np.broadcast, "It makes new numbers from differentiated arrays.")
        adopt.adopt(t)
        if is_heap(t) and not hasattr(t, "__next__") and type(lookup(t, "__iter__")) is FunctionType:
            it = iter(o)
            adopt.adopt(type(it))
            it = self._foreign(it)
            return Sized(it, o) if hasattr(t, "__len__") or hasattr(t, "__length_hint__") else it
        return o

    def _met_items(self, o: Any) -> Any:
        """What to iterate over instead of `o` in C code that compares or hashes the items."""
        t = type(o)
        if not is_heap(t) and (is_holder(t) or kind_of(t) == NOTHING) and kind_of(t) != ARRAY:
            return self.calls.meet_all(o)
        return self.calls.met_items(self._iterable(o))

    def _parsed_rows(self, rows: Any) -> Iterator[Any]:
        for row in rows:
            texts.check_number(self, row)
            yield row

    def _foreign(self, it: Any) -> Any:
        """`it`, or where it was made outside the level its items, looked at step by step."""
        if not earlier_frames.is_foreign(it):
            return it
        earlier_frames.check(self, it)
        return (
            earlier_frames.checked(self, it)
            if type(it) is GeneratorType or earlier_frames.is_iterator(type(it))
            else it
        )

    def _elements(self, a: np.ndarray) -> Iterator[Any]:
        read = self.read_array if self.recorder is None or type(a) is not np.ndarray else self.getitem
        return (read(a, k) for k in range(len(a)))

    def _text(self, o: Any) -> Any:
        texts.remember(self, o)
        return o


def is_of_one_element(a: np.ndarray, k: Any) -> bool:
    """Whether a[k] is one element, which in an array of objects may be an array itself."""
    parts = k if type(k) is tuple else (k,)
    return len(parts) == a.ndim and all(isinstance(part, (int, np.integer)) for part in parts)
