"""Arithmetic, reading and writing of arrays in reverse mode, each a step on the tape."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from plaingrad import rulebook
from plaingrad.engine.memory.indices import frozen_key, may_repeat, winners
from plaingrad.engine.memory.kinds import FLOAT64, NOTHING, NUMBER, kind_of
from plaingrad.engine.memory.memory import owner_of, whole_multiple_back, whole_sum_back
from plaingrad.engine.memory.tape import (
    ARRAY_ARITHMETIC,
    CALLED,
    STEP,
    ArraySlot,
    InPlaceRule,
    InPlaceSum,
    ReadArray,
    ReadNumber,
    WriteCotangent,
    read_number_back,
    write_number_back,
)
from plaingrad.engine.refusals.refuse import missing_rule
from plaingrad.engine.reverse.recording import Recording
from plaingrad.engine.values import truncated
from plaingrad.engine.values.records import refuse_bits
from plaingrad.rewrite import PLAIN


class ReverseArrays(Recording):
    """What a reverse level does with arrays."""

    __slots__ = ()

    def whole_arithmetic(self, name: str, f: Any, a: Any, b: Any) -> Any:
        """a op b of float64 arrays and real numbers, in a few steps of its own; None if it is something else."""
        z = self._sum_or_multiple(name, f, a, b)
        return self._array_arithmetic(name, f, a, b) if z is None else z

    def _sum_or_multiple(self, name: str, f: Any, a: Any, b: Any) -> Any:
        """a op b of float64 arrays where the reverse pass needs indices only, so that the arrays may go; else None."""
        is_a, is_b = type(a) is np.ndarray, type(b) is np.ndarray
        index = self.index
        i, j = index.get(id(a)), index.get(id(b))
        if is_a and is_b:
            if name not in ("add", "sub") or a.shape != b.shape:
                return None
        else:
            number, at = (b, j) if is_a else (a, i)
            t = type(number)
            if (t is not float and t is not int) or at is not None or (name == "truediv" and not is_a):
                return None
        for at, x, is_array in ((i, a, is_a), (j, b, is_b)):
            if is_array and (x.base is not None or x.dtype is not FLOAT64 or (at is not None and at < 0)):
                return None
        if i is None and j is None:
            return None
        z = f(a, b) if self.parent is PLAIN else getattr(self.parent, name)(a, b)
        if type(z) is not np.ndarray or z.dtype is not FLOAT64 or z.base is not None:
            return None
        n = self.add_region(z)
        if name == "add" or name == "sub":
            self.tape.extend(((n, i, j, name == "sub"), CALLED, whole_sum_back))
        elif is_a:
            self.tape.extend(((n, i, b, name == "truediv"), CALLED, whole_multiple_back))
        else:
            self.tape.extend(((n, j, a, False), CALLED, whole_multiple_back))
        return z

    def _array_arithmetic(self, name: str, f: Any, a: Any, b: Any) -> Any:
        """a op b of float64 arrays and real numbers; None if it is something else."""
        operands = []
        active = False
        for x in (a, b):
            t = type(x)
            if t is np.ndarray:
                if x.dtype.kind not in "fiub":
                    return None
                i = self.region(x)
                if i is not None and x.dtype is not FLOAT64:
                    return None
            elif t is float or t is np.float64:
                i = self.index.get(id(x))
            elif t is int:
                i = None
            else:
                return None
            active = active or i is not None
            operands.append(i)
        if not active:
            return self.native(f, (a, b), {})
        z = f(a, b) if self.parent is PLAIN else getattr(self.parent, name)(a, b)
        if type(z) is not np.ndarray or z.dtype is not FLOAT64 or z.base is not None:
            return None
        i, j = operands
        if name == "mul":
            if i is not None and type(b) is np.ndarray:
                b = self._held(b, j)
            if j is not None and type(a) is np.ndarray:
                a = self._held(a, i)
        elif name == "truediv":
            if type(b) is np.ndarray:
                b = self._held(b, j)
            if j is not None:
                self._held(z, j)
            a = None if i is None else a  # the way back needs z instead
        elif i is None:  # a sum: the way back needs nothing of it
            a = None
        elif j is None:
            b = None
        n = self.add_region(z)
        self.tape.extend(((n, z, a, i, b, j), CALLED, ARRAY_ARITHMETIC[name]))
        return z

    def in_place_array(self, name: str, a: np.ndarray, b: Any) -> Any:
        """a op= b in the memory of `a`, with what the reverse pass needs put by."""
        i = self.region(a)
        b_slot = self.slot_of(b)
        plain_name = name[1:]
        if i is None and b_slot is None:
            save = self._save(a, Ellipsis)
            self._native_in_place(name, a, b)
            self._saved(save)
            return a
        if a.dtype.kind not in "fc":
            return self._native_in_place(name, a, b)  # integers: the derivative ends here (or NumPy refuses)
        if i is None:
            self.may_activate(a)
            i = self._activate(a)
        self._written(i)
        b = self.borrowed.kept(b) if b_slot is None else b
        slot = ArraySlot(i, a)
        save = self._save(a, Ellipsis)
        if plain_name in ("add", "sub") and not (type(b) is np.ndarray and np.may_share_memory(a, b)):
            step: Any = InPlaceSum(slot, b_slot, 1 if plain_name == "add" else -1)
        else:
            f = getattr(operator, plain_name)
            rule = rulebook.find_for(f, (a, b))
            if rule is not None and rule.kind == "no_tangent":
                self.write_array(self.native(f, (a, b), {}), a, Ellipsis)
                return a
            if rule is None or not rule.gives_derivative:
                missing_rule(
                    getattr(operator, name), "It writes an array that depends on the differentiated inputs."
                )
            old = self.outside(np.array, a)
            if type(b) is np.ndarray and np.may_share_memory(a, b):
                # b's cotangent belongs to what b held before the write: read it from a copy, recorded as such
                b = self.prep(np.array)(b)
                b_slot = self.slot_of(b)
            with np.errstate(all="ignore"):  # the operation itself is still to come
                _, pullback = self.outside(rule.rrule, old, b)
            self._capture((b,))
            step = InPlaceRule(slot, b_slot, pullback)
        try:
            self._native_in_place(name, a, b)
        except FloatingPointError:  # of `np.errstate`: the memory has been written
            self.tape.extend((i, STEP, step))
            self._saved(save)
            raise
        self.tape.extend((i, STEP, step))
        self._saved(save)
        return a

    def read_array(self, a: np.ndarray, k: Any) -> Any:
        """a[k]: a view needs no record, a number or a copy does."""
        i = self.region(a)
        if i is None:
            if self.parent is PLAIN:
                return a[k]
            return self.parent.getitem(a, k)
        if type(k) is int and a.ndim == 1 and a.dtype is FLOAT64 and type(a) is np.ndarray:
            z = a[k] if self.parent is PLAIN else self.parent.getitem(a, k)
            n = self.add_number(z)
            self.tape.extend(((n, i, a, k), CALLED, read_number_back))
            return z
        k = frozen_key(k)
        z = a[k] if self.parent is PLAIN else self.parent.getitem(a, k)
        if isinstance(z, np.ndarray):
            owner = z if z.base is None else owner_of(z)
            if id(owner) in self.index:
                return z
            n = self.add_region(owner)
            self.tape.extend((n, STEP, ReadArray(ArraySlot(n, z), ArraySlot(i, a), k, may_repeat(a, k))))
            return z
        if kind_of(type(z)) != NUMBER:
            refuse_bits(a)
        if id(z) in self.index:
            z = self.fresh_number(z)
        n = self.add_number(z)
        self.tape.extend((n, STEP, ReadNumber(n, ArraySlot(i, a), k)))
        return z

    def write_number(self, i: int | None, v: Any, a: np.ndarray, k: Any) -> bool:
        """Whether a[k] = v has been done in a short way, of a number and a vector of float64, of index `i`."""
        if type(k) is not int or a.ndim != 1 or a.dtype is not FLOAT64:
            return False
        if type(v) is not float and type(v) is not np.float64:
            return False
        j = self.index.get(id(v))
        if i is None and j is None:
            return False
        self._write_number(i, j, v, a, k)
        return True

    def write_value(self, i: int | None, kind: int, v: Any, a: np.ndarray, k: Any) -> None:
        """a[k] = v of a value of a kind; `i` is the index of `a`."""
        v_slot = self.slot_of(v) if kind != NOTHING and a.dtype.kind != "O" else None
        if a.dtype.kind not in "fcV":
            v_slot = None
        if i is None and v_slot is None:
            if self.texts.truncated:
                truncated.check_times(self, a, (v,))
            save = self._save(a, k)
            self._native_write(v, a, k)
            self._saved(save)
            return
        by_element = type(k) is int and a.ndim == 1 and a.dtype is FLOAT64
        if by_element and kind in (NUMBER, NOTHING) and v_slot is None:
            self._write_number(i, None, v, a, k)
            return
        if i is None:
            self.may_activate(a)
        k = frozen_key(k)
        if type(v) is np.ndarray and np.may_share_memory(a, v):
            self.check_overlap(v, a, k)
            v = self.prep(np.array)(v)
            v_slot = self.slot_of(v)
        save = self._save(a, k)
        self._native_write(v, a, k)
        if i is None:
            i = self._activate(a)
        self._written(i)
        self.tape.extend((i, STEP, WriteCotangent(ArraySlot(i, a), k, v_slot, winners(a, k))))
        self._saved(save)

    def _write_number(self, i: int | None, j: int | None, v: Any, a: np.ndarray, k: int) -> None:
        """a[k] = v of a number, of index `j`, and an element of a float64 vector, of index `i`."""
        if i is None:
            self.may_activate(a)
        save = self._save(a, k)
        self._native_write(v, a, k)
        if i is None:
            i = self._activate(a)
        self._written(i)
        self.tape.extend(((i, a, k, j), CALLED, write_number_back))
        self._saved(save)

    def write_through(self, v: Any, m: memoryview, k: Any) -> None:
        """m[k] = v, where `m` looks at an array that a pullback reads."""
        save = self._save(np.asarray(m), k)
        self._native_write(v, m, k)
        self._saved(save)
