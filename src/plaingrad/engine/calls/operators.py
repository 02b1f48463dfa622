"""Operators between values of any kind: what the hot hooks pass on.

As in Python, the classes of the operands have their say first; then it is arithmetic of numbers and arrays, by a rule.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from plaingrad import number_classes, rulebook
from plaingrad.class_keys import entry_for, is_among, is_subclass
from plaingrad.engine.calls import other_systems
from plaingrad.engine.calls.identities import Identities
from plaingrad.engine.calls.operands import in_place_with_object, with_object
from plaingrad.engine.compiled import core
from plaingrad.engine.memory.kinds import ARRAY, MAPPING, NOTHING, NUMBER, OBJECT, SEQUENCE, is_heap, kind_of
from plaingrad.engine.memory.tape import ARRAY_ARITHMETIC
from plaingrad.engine.refusals.refuse import missing_rule
from plaingrad.engine.users_code import adopt, compilers
from plaingrad.engine.users_code.class_attributes import has_python_operator, is_own_method, lookup
from plaingrad.engine.values import array_classes, subclasses, texts, truncated
from plaingrad.engine.values.users_numbers import constant
from plaingrad.rewrite import PLAIN
from plaingrad.rewrite.hooks import BINARY, IN_PLACE
from plaingrad.rules import numbers
from plaingrad.rules.numpy import objects


class Operators(Identities):
    """What a level does with an operator."""

    __slots__ = ()

    def binary(self, name: str, a: Any, b: Any) -> Any:
        """a op b for anything that the hot hooks pass on."""
        f = getattr(operator, name)
        ta, tb = type(a), type(b)
        if self.own_arrays and name in ARRAY_ARITHMETIC and is_array_arithmetic(ta, tb):
            z = self.whole_arithmetic(name, f, a, b)
            if z is not None:
                return z
        ka, kb = kind_of(ta), kind_of(tb)
        own = (
            number_classes.known
            and (is_among_known(ta) or is_among_known(tb))
            and ka != OBJECT
            and kb != OBJECT
        )
        if not own and ((ka != OBJECT and is_heap(ta)) or (kb != OBJECT and is_heap(tb))):
            z = self._own_operator(name, a, b)
            if z is not NotImplemented:
                return z
        if ta is str or ta is bytes:
            if name == "mod":
                texts.remember(self, b)
                return f(a, b)
        if ka in (NUMBER, ARRAY) or kb in (NUMBER, ARRAY):
            return self._arithmetic(name, f, a, b, ka, kb)
        if self.texts.truncated and ta is not tb and name in truncated.SUMS:
            truncated.check_times(self, a, (b,))
            truncated.check_times(self, b, (a,))
        if ka >= OBJECT or kb >= OBJECT:
            self.calls.meet(a)
            self.calls.meet(b)
        if ka == OBJECT or kb == OBJECT or self.parent is PLAIN:
            return f(a, b)
        return getattr(self.parent, name)(a, b)

    def _own_operator(self, name: str, a: Any, b: Any) -> Any:
        """a op b by Python code of a subclass of a number, array or container; NotImplemented if C code decides."""
        ta, tb = type(a), type(b)
        plain_name = name.rstrip("_")
        method, reflected = lookup(ta, f"__{plain_name}__"), lookup(tb, f"__r{plain_name}__")
        z = NotImplemented
        may_reflect = ta is not tb and is_own_method(reflected)
        if may_reflect and is_subclass(tb, ta) and reflected is not lookup(ta, f"__r{plain_name}__"):
            may_reflect = False
            z = self._call_own(reflected, b, a)
        if z is NotImplemented and is_own_method(method):
            z = self._call_own(method, a, b)
        elif may_reflect and method is not None and not isinstance(a, (list, tuple, str, bytes, deque)):
            if subclasses.takes(method, a, b):
                return NotImplemented  # C code of the first operand takes it
        if z is NotImplemented and may_reflect:
            z = self._call_own(reflected, b, a)
        return z

    def _call_own(self, method: Any, a: Any, *others: Any) -> Any:
        if type(method) is FunctionType:
            return self.prep(method)(a, *others)
        return self.prep(method.__get__(a, type(a)) if hasattr(method, "__get__") else method)(*others)

    def _arithmetic(self, name: str, f: Any, a: Any, b: Any, ka: int, kb: int) -> Any:
        if ka == OBJECT or kb == OBJECT:
            return with_object(self, name, a, b)
        if ka == NUMBER and type(a) is not float and type(a) is not int:
            a = constant(self, a)
        if kb == NUMBER and type(b) is not float and type(b) is not int:
            b = constant(self, b)
        if number_classes.known and (number_classes.is_own(a) or number_classes.is_own(b)):
            if (system := other_systems.system_among(a, b)) is not None:
                return other_systems.call(self, system, f, (a, b), {})
            if ARRAY not in (ka, kb):
                return self._own_arithmetic(f, a, b)
            if self.is_active(a) or self.is_active(b):
                return self._elementwise(f, a, b)
        if ka == SEQUENCE and kb == ARRAY:
            a = self.prep(np.array)(a)
        elif kb == SEQUENCE and ka == ARRAY:
            b = self.prep(np.array)(b)
        if (ka == ARRAY and a.dtype.kind == "O") or (kb == ARRAY and b.dtype.kind == "O"):
            self.calls.meet_all(a)
            self.calls.meet_all(b)
            if self.is_active(a) or self.is_active(b):
                if name == "matmul":
                    return self.calls.inside(objects.dot_of_objects)(a, b)
                return self._elementwise(f, a, b)
        rule = rulebook.find_for(f, (a, b))
        if rule is None or not rule.gives_derivative:
            if rule is None and (self.is_active(a) or self.is_active(b)):
                missing_rule(f, "One of its operands depends on the differentiated inputs.")
            return self.native(f, (a, b), {})
        return self.apply(rule, f, (a, b), {})

    def _own_arithmetic(self, f: Any, *operands: Any) -> Any:
        """An operator on numbers that have arithmetic of their own."""
        if (system := other_systems.system_among(*operands)) is not None:
            return other_systems.call(self, system, f, operands, {})
        rule = numbers.OPERATORS.get(f)
        if rule is not None:
            return self.apply(rule, f, operands, {})
        if f is not operator.floordiv and any(map(self.is_active, operands)):
            missing_rule(f, "One of its operands depends on the differentiated inputs.")
        return self.native(f, operands, {})

    def in_place(self, name: str, a: Any, b: Any) -> Any:
        """a op= b."""
        ta = type(a)
        ka = kind_of(ta)
        if ka == NUMBER and number_classes.known and (system := number_classes.system_of(a)) is not None:
            if system.mutable:
                return other_systems.call(self, system, getattr(operator, name), (a, b), {})
            return getattr(self, without_assignment(name))(a, b)
        if ka != OBJECT and is_heap(ta):
            method = lookup(ta, f"__{name.rstrip('_')}__")
            if is_own_method(method):
                z = self._call_own(method, a, b)
                if z is not NotImplemented:
                    return z
        if ka == ARRAY:
            if a.dtype.kind == "O" and (self.is_active(a) or self.is_active(b)):
                a[...] = self._elementwise(getattr(operator, name[1:]), a, b)
                return a
            if kind_of(type(b)) == SEQUENCE:
                b = self.prep(np.array)(b)
            if type(a) is not np.ndarray or array_classes.is_subclassed(b):
                return subclasses.in_place(self, name, a, b)
            if self.texts.truncated and name in truncated.SUMS:
                truncated.check_times(self, a, (b,))
            return self.in_place_array(name, a, b)
        kb = kind_of(type(b))
        if ka == NUMBER or (kb in (NUMBER, ARRAY) and ka == NOTHING):
            return getattr(self, without_assignment(name))(a, b)
        if ka == OBJECT and kb in (NUMBER, ARRAY):
            return in_place_with_object(self, name, a, b)
        f = getattr(operator, name)
        if ka == SEQUENCE and kb == ARRAY:  # arrays have the say: a list has no arithmetic of its own
            return getattr(self, without_assignment(name))(a, b)
        if self.texts.truncated and ta is not type(b) and name in truncated.SUMS:
            truncated.check_times(self, a, (b,))
        self.calls.meet(a)
        self.calls.meet(b)
        if ka == OBJECT or kb == OBJECT or self.parent is PLAIN:
            return f(a, b)
        return getattr(self.parent, name)(a, b)

    def _native_in_place(self, name: str, a: np.ndarray, b: Any) -> Any:
        if self.parent is PLAIN:
            return getattr(operator, name)(a, b)
        return getattr(self.parent, name)(a, b)

    def whole_arithmetic(self, name: str, f: Any, a: Any, b: Any) -> Any:
        """a op b of float64 arrays and real numbers, in a few steps of its own; None if it is something else."""
        raise NotImplementedError

    def in_place_array(self, name: str, a: np.ndarray, b: Any) -> Any:
        """a op= b in the memory of `a`; `b` is a number or an array."""
        raise NotImplementedError


def is_among_known(cls: type) -> bool:
    """Whether numbers of a class have arithmetic of their own."""
    return entry_for(number_classes.known, cls) is not None


def runs_natively(name: str, ta: type, tb: type) -> int | None:
    """Whether Python may do `a op b` of these classes by itself: 1 at any level, 2 where no level is around, else 0.

    None before both classes are known. `Operators.binary` and `in_place` would do no more than that.
    """
    if not is_among(ta, adopt.known) or not is_among(tb, adopt.known):
        return None
    ka, kb = kind_of(ta), kind_of(tb)
    if name == "getitem" or name == "setitem":
        return int(ka not in (ARRAY, NUMBER) and not is_subclass(tb, type) and items_natively(name, ta, ka))
    if (ka != OBJECT and is_heap(ta)) or (kb != OBJECT and is_heap(tb)) or ARRAY in (ka, kb):
        return 0
    if name == "mod" and (ta is str or ta is bytes):
        return 0
    if is_subclass(ta, type) or is_subclass(tb, type):  # operands are classes, which have to be met
        return 0
    if NUMBER in (ka, kb):
        number, other = (ta, tb) if ka == NUMBER else (tb, ta)
        is_plain = number is float or number is complex
        is_object = kind_of(other) == OBJECT and not compilers.owns(
            other
        )  # whose methods are never rewritten
        return int(is_plain and is_object and has_python_operator(other, name))
    return 1 if OBJECT in (ka, kb) else 2


def items_natively(name: str, t: type, kind: int) -> bool:
    """Whether Python may read or write items of instances of `t` by itself."""
    method = lookup(t, f"__{name}__")
    if type(method) is FunctionType:
        return not compilers.owns(t)
    return kind in (MAPPING, SEQUENCE) and type(method) is not adopt.LruCached


if core is not None:
    core.set_natively(runs_natively)


def unary_general(level: Operators, name: str) -> Callable[[Any], Any]:
    """The hook of the unary operator `name` for operands of any kind."""
    f = getattr(operator, name)

    def unary(a: Any) -> Any:
        kind = kind_of(type(a))
        if kind == NUMBER and number_classes.is_own(a):
            return level._own_arithmetic(f, a)
        if kind != OBJECT and is_heap(type(a)):
            method = lookup(type(a), f"__{name}__")
            if is_own_method(method):
                return level._call_own(method, a)
        if kind == NUMBER or kind == ARRAY:
            rule = rulebook.find_for(f, (a,))
            if rule is not None and rule.gives_derivative:
                return level.apply(rule, f, (a,), {})
        elif kind == OBJECT:
            level.calls.meet(a)
            return f(a)
        return level.native(f, (a,), {})

    return unary


def _binary_general(name: str) -> Callable[[Operators, Any, Any], Any]:
    def general(self: Operators, a: Any, b: Any) -> Any:
        return self.binary(name, a, b)

    return general


def _in_place_general(name: str) -> Callable[[Operators, Any, Any], Any]:
    def general(self: Operators, a: Any, b: Any) -> Any:
        return self.in_place(name, a, b)

    return general


def without_assignment(name: str) -> str:
    """The operator behind an in-place one."""
    return name[1:] + "_" if name in ("iand", "ior") else name[1:]


def is_array_arithmetic(ta: type, tb: type) -> bool:
    """Whether operands of these types are two arrays, or an array and a real number."""
    other = tb if ta is np.ndarray else ta if tb is np.ndarray else None
    return other is np.ndarray or other is float or other is int or other is np.float64


for _name in BINARY:
    setattr(Operators, "general_" + _name, _binary_general(_name))
for _name in IN_PLACE:
    setattr(Operators, "general_" + _name, _in_place_general(_name))
Operators.general_neg = lambda self, a: unary_general(self, "neg")(a)
