"""Arithmetic, reading and writing of arrays in forward mode: what happens to an array happens to its tangent."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from plaingrad import rulebook
from plaingrad.engine.forward import pushing
from plaingrad.engine.forward.tangents import QUIET, Tangents
from plaingrad.engine.memory import regions
from plaingrad.engine.memory.kinds import FLOAT64, NOTHING, NUMBER, kind_of
from plaingrad.engine.memory.memory import owner_of
from plaingrad.engine.refusals.refuse import missing_rule
from plaingrad.engine.values import truncated
from plaingrad.engine.values.records import refuse_bits
from plaingrad.rewrite import PLAIN
from plaingrad.rulebook import Rule
from plaingrad.tangents import ZeroTangent


class ForwardArrays(Tangents):
    """What a forward level does with arrays that have tangents."""

    __slots__ = ()

    def whole_arithmetic(self, name: str, f: Any, a: Any, b: Any) -> Any:
        """a op b of float64 arrays and real numbers, in a few steps of its own; None if it is something else."""
        if self.parent is not PLAIN or not self.has_hot_hooks:
            return None
        found = []
        for x in (a, b):
            t = type(x)
            if t is np.ndarray:
                if x.dtype.kind not in "fiub":
                    return None
                region = self.region(x)
                if region is not None and x.dtype is not FLOAT64:
                    return None
                found.append(None if region is None else region.read(x))
            elif t is float or t is np.float64:
                found.append(self.index.get(id(x)))
            elif t is int:
                found.append(None)
            else:
                return None
        a_dot, b_dot = found
        z = f(a, b)
        if a_dot is None and b_dot is None:
            return z
        if type(z) is not np.ndarray or z.dtype is not FLOAT64 or z.base is not None:
            return None
        lead = self.lead
        with np.errstate(**QUIET):
            if lead:
                a_dot = None if a_dot is None else pushing.aligned(a_dot, a, z.ndim, lead)
                b_dot = None if b_dot is None else pushing.aligned(b_dot, b, z.ndim, lead)
            z_dot = np.asarray(ARRAY_TANGENTS[name](a, b, z, a_dot, b_dot))
            if z_dot.shape != lead + z.shape:
                z_dot = np.array(np.broadcast_to(z_dot, lead + z.shape))
            elif z_dot is a_dot or z_dot is b_dot or z_dot.base is not None:
                z_dot = np.array(z_dot)
        self.add_region(z).dot = z_dot
        return z

    def elementwise(self, rule: Rule, f: np.ufunc, x: np.ndarray) -> Any:
        """f(x) of a float64 array by a scalar row; None if it is something else."""
        if x.dtype is not FLOAT64 or self.parent is not PLAIN or not self.has_hot_hooks:
            return None
        region = self.region(x)
        x_dot = None if region is None else region.read(x)
        if x_dot is None:
            return f(x)
        partial = rule.partials[0]
        if not callable(partial) or rule.frule is not None:
            return None
        z = f(x)
        if type(z) is not np.ndarray or z.dtype is not FLOAT64 or z.base is not None:
            return None
        with np.errstate(**QUIET):
            z_dot = np.asarray(partial(np, x, z) * x_dot)
        self.add_region(z).dot = z_dot
        return z

    def read_array(self, a: np.ndarray, k: Any) -> Any:
        """a[k]: a view needs nothing, a number or a copy gets its tangent."""
        region = self.region(a)
        z = a[k] if self.parent is PLAIN else self.parent.getitem(a, k)
        if region is None:
            return z
        if type(k) is int and self._is_plain_row(a):
            dot = region.read(a)
            if dot is not None:
                self.add_number(z)
                self.index[id(z)] = np.array(dot[:, k]) if self.lead else dot.item(k)
            return z
        if isinstance(z, np.ndarray):
            if self.owns_region(owner_of(z)):
                return z
        elif kind_of(type(z)) != NUMBER:
            refuse_bits(a)
        z_dot = self.computed(regions.read_item, region, a, k)
        if z_dot is None:
            return z
        if isinstance(z, np.ndarray):
            return self.file_array(z, z_dot, True)
        return self.file_number(z, z_dot)

    def _is_plain_row(self, a: np.ndarray) -> bool:
        """Whether an element of `a`, and its tangent, can be read and written in one step."""
        is_row = a.ndim == 1 and a.dtype is FLOAT64 and type(a) is np.ndarray
        return is_row and self.parent is PLAIN and self.has_hot_hooks

    def write_number(self, region: Any, v: Any, a: np.ndarray, k: Any) -> bool:
        """Whether a[k] = v has been done in a short way, of a number and a vector of float64 with tangents."""
        if region is None or type(k) is not int or type(v) is not float or not self._is_plain_row(a):
            return False
        self._meet_write(a if a.base is None else owner_of(a), a)
        a[k] = v
        self._written(region)
        v_dot = self.index.get(id(v), 0.0)
        region.writable(a)[(slice(None), k) if self.lead else k] = v_dot
        return True

    def write_value(self, region: Any, kind: int, v: Any, a: np.ndarray, k: Any) -> None:
        """a[k] = v of a value of a kind."""
        slot = self.slot_of(v) if kind != NOTHING and a.dtype.kind in "fcV" else None
        self._meet_write(a if a.base is None else owner_of(a), a)
        if region is None and slot is None:
            if self.texts.truncated:
                truncated.check_times(self, a, (v,))
            self._native_write(v, a, k)
            return
        v_dot = None if slot is None else self.dot_at(slot, v)
        if type(v) is np.ndarray and v_dot is not None and np.may_share_memory(a, v):
            self.check_overlap(v, a, k)
            v_dot = self.outside(np.array, v_dot)
        if region is None:
            self.may_activate(a)
        self._native_write(v, a, k)
        if region is None:
            region = self._activate(a)
        self._written(region)
        self.computed(regions.write_item, region, a, k, None if v_dot is ZeroTangent else v_dot)

    def in_place_array(self, name: str, a: np.ndarray, b: Any) -> Any:
        """a op= b in the memory of `a`, and of its tangent."""
        region = self.region(a)
        slot = self.slot_of(b)
        self._meet_write(a if a.base is None else owner_of(a), a)
        if (region is None and slot is None) or a.dtype.kind not in "fc":
            return self._native_in_place(name, a, b)  # integers: the derivative ends here (or NumPy refuses)
        plain_name = name[1:]
        f = getattr(operator, plain_name)
        rule = rulebook.find_for(f, (a, b))
        if rule is None or not (rule.gives_derivative or rule.kind == "no_tangent"):
            missing_rule(
                getattr(operator, name), "It writes an array that depends on the differentiated inputs."
            )
        if region is None:
            self.may_activate(a)
            region = self._activate(a)
        self._written(region)
        if plain_name in ("add", "sub") and rule.own and self._is_shared_sum(a, b):
            b_dot = None if slot is None else self.dot_at(slot, b)
            change: Any = None
            if b_dot is not None and b_dot is not ZeroTangent:
                b_dot = self.computed(pushing.aligned, b_dot, b, a.ndim, self.lead)
                change = regions.add_to_whole, region, a, b_dot, 1 if plain_name == "add" else -1
            return self._changed_in_place(name, a, b, change)
        z_dot = None
        if rule.kind != "no_tangent":
            with np.errstate(**QUIET):  # the operation itself is still to come
                z = self.apply(rule, f, (a, b), {})  # a new array, with its tangent
            z_slot = self.slot_of(z)
            z_dot = None if z_slot is None else self.dot_at(z_slot, z)
            if z_dot is ZeroTangent:
                z_dot = None
        if z_dot is not None:
            z_dot = self.computed(pushing.array_tangent, z_dot, a, self.lead)
        return self._changed_in_place(name, a, b, (regions.update_whole, region, a, z_dot))

    def _changed_in_place(self, name: str, a: np.ndarray, b: Any, change: Any) -> np.ndarray:
        """a op= b, and `change`, a function of tangents and its arguments, if there is one."""
        try:
            self._native_in_place(name, a, b)
        except FloatingPointError:  # of `np.errstate`: the memory has been written
            if change is not None:
                self.computed(*change)
            raise
        if change is not None:
            self.computed(*change)
        return a

    def _is_shared_sum(self, a: np.ndarray, b: Any) -> bool:
        """Whether the tangents of a += b may be added in place: they are of one kind and lie apart."""
        if isinstance(b, np.ndarray):
            return b.dtype == a.dtype and not np.may_share_memory(a, b)
        return a.dtype.kind == "f" and isinstance(b, (float, int))


def sum_tangent(a: Any, b: Any, z: Any, a_dot: Any, b_dot: Any) -> Any:
    """z = a + b; a tangent that is None is zero."""
    if a_dot is None:
        return b_dot
    return a_dot if b_dot is None else a_dot + b_dot


def difference_tangent(a: Any, b: Any, z: Any, a_dot: Any, b_dot: Any) -> Any:
    """z = a - b."""
    if a_dot is None:
        return -b_dot
    return a_dot if b_dot is None else a_dot - b_dot


def product_tangent(a: Any, b: Any, z: Any, a_dot: Any, b_dot: Any) -> Any:
    """z = a * b."""
    if a_dot is None:
        return a * b_dot
    return a_dot * b if b_dot is None else a_dot * b + a * b_dot


def quotient_tangent(a: Any, b: Any, z: Any, a_dot: Any, b_dot: Any) -> Any:
    """z = a / b."""
    if b_dot is None:
        return a_dot / b
    return -z * b_dot / b if a_dot is None else (a_dot - z * b_dot) / b


ARRAY_TANGENTS = {
    "add": sum_tangent,
    "sub": difference_tangent,
    "mul": product_tangent,
    "truediv": quotient_tangent,
}
