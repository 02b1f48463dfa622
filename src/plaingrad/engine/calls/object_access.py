"""Attributes, methods and items of objects.

C code behind one may make a new number of a differentiated one, or keep it where its identity is lost: that has a rule,
or is refused.
"""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable
from fractions import Fraction
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from plaingrad import number_classes, rulebook
from plaingrad.class_keys import is_among, is_own_key, key_of
from plaingrad.engine.calls import elsewhere, frames, other_systems, specials
from plaingrad.engine.calls.c_code import guarded
from plaingrad.engine.calls.meeting import Meeting
from plaingrad.engine.memory.kinds import ARRAY, FLAT, MAPPING, NUMBER, SEQUENCE, is_heap, kind_of
from plaingrad.engine.memory.linear_maps import attribute
from plaingrad.engine.memory.memory import owner_of
from plaingrad.engine.refusals.refuse import missing_rule
from plaingrad.engine.users_code import adopt, compilers, earlier_frames
from plaingrad.engine.users_code.adopt import LruCached
from plaingrad.engine.users_code.class_attributes import (
    DESCRIPTORS,
    PYTHON_ATTRIBUTES,
    is_python_attribute,
    lookup,
)
from plaingrad.engine.values import array_classes, layouts, lookups, own_numbers, texts
from plaingrad.rulebook import Rule
from plaingrad.tangents import fields

# Methods of memoryview that read nothing.
VIEWING = ("cast", "release", "toreadonly", "__enter__", "__exit__")


class ObjectAccess(Meeting):
    """What a level does with o.name, o.name(...), o.name = v, o[k] and o[k] = v of objects."""

    methods: dict[type, dict[str, Any]]
    attributes: dict[Any, dict[str, Rule | None]]
    stores: dict[type, set[str]]  # attributes that keep the value itself
    prep: Callable[[Any], Any]
    attr: Callable[[Any, str], Any]

    def getitem(self, o: Any, k: Any) -> Any:
        """o[k] where `o` is no list, tuple or array; k is met."""
        t = type(o)
        self.meet(o)
        if number_classes.known and (system := other_systems.system_among(o, k)) is not None:
            return other_systems.call(self.level, system, operator.getitem, (o, k), {})
        if isinstance(o, type):
            return o[k]
        method = lookup(t, "__getitem__")
        if type(method) is LruCached:
            return self.prep(method)(o, k)
        if type(method) is not FunctionType and kind_of(t) not in (MAPPING, SEQUENCE):
            rule = rulebook.find(method) if method is not None else None
            if t is memoryview and self.finds_active(o):
                missing_rule(method, "It reads differentiated numbers out of raw memory.")
            if t is memoryview and self.level.texts.raw:
                texts.check_bytes(self.level, o)
            if rule is not None and rule.kind not in ("mover", "inspector", "no_tangent"):
                return self.applier(rule, method)(o, k)
        if type(method) is FunctionType and compilers.owns(t) and self.finds_active(k):
            return self.prep(method)(o, k)
        if method is dict.__getitem__:
            return lookups.check_found(self.level, o, k, o[k])
        return o[k]

    def setitem(self, v: Any, o: Any, k: Any) -> None:
        """o[k] = v where `o` is no list or array; k is met."""
        t = type(o)
        self.meet(o)
        if number_classes.known and (system := number_classes.system_of(o)) is not None:
            other_systems.call(self.level, system, operator.setitem, (o, k, v), {})
            return
        method = lookup(t, "__setitem__")
        if method is not None and type(method) is not FunctionType and kind_of(t) not in (MAPPING, SEQUENCE):
            rule = rulebook.find(method)
            if t is memoryview and (self.finds_active(o) or self.finds_active(v)):
                missing_rule(method, "It writes raw memory that holds, or is given, differentiated numbers.")
            if rule is not None and rule.kind not in ("mover", "inspector", "no_tangent"):
                self.applier(rule, method)(o, k, v)
                return
            if rule is None and self.finds_active(v):
                missing_rule(method, "A differentiated value is stored where its identity is lost.")
            if t is memoryview and id(owner_of(o)) in self.level.captured:
                self.level.write_through(v, o, k)
                return
        elif type(method) is FunctionType and compilers.owns(t):
            return self.prep(method)(o, k, v)
        if self.level.texts and method is dict.__setitem__:
            lookups.keep(self.level, o, k)
        o[k] = v

    def _make_attr(self) -> Callable[[Any, str], Any]:
        settled = adopt.settled
        prep = self.prep
        slow = self._attr
        may_change = adopt.other_threads()
        watched = adopt.watched.get

        def attr(o: Any, name: str) -> Any:
            t = type(o)
            try:
                if t in settled:
                    return getattr(o, name)
                if may_change:
                    tag = watched(t)
                    if tag is not None and tag[2] and tag[0].value == tag[1]:
                        return getattr(o, name)
            except TypeError:
                if is_own_key(t):
                    raise
            if t is ModuleType:
                fields = getattr(o, "__dict__", ())
                if name in fields or "__getattr__" not in fields or hasattr(ModuleType, name):
                    return getattr(o, name)
                return prep(fields["__getattr__"])(name)
            return slow(o, name)

        return attr

    def _attr(self, o: Any, name: str) -> Any:
        t = type(o)
        kind = kind_of(t)
        if kind == NUMBER and number_classes.known and (system := number_classes.system_of(o)) is not None:
            return other_systems.attribute(self.level, system, o, name)
        if kind == NUMBER or kind == ARRAY:
            return self._number_attr(o, name, t, kind)
        adopt.adopt(t)
        if t is types.FrameType and name == "f_locals":
            return frames.visible_locals(o)
        descriptor = lookup(t, name)
        if type(descriptor) is property and type(adopt.behind(descriptor.fget)) is LruCached:
            return self.prep(descriptor.fget)(o)
        return getattr(o, name)

    def _number_attr(self, o: Any, name: str, t: type, kind: int) -> Any:
        known = self.attributes.setdefault(key_of(t), {})
        if name not in known:
            known[name] = rulebook.find(lookup(t, name))
            if is_heap(t):
                adopt.adopt(t)
        rule = known[name]
        if rule is not None and not callable(lookup(t, name)):
            if rule.kind == "composed":
                return self.inside(rule.definition)(o)
            if rule.kind == "no_tangent":
                return getattr(o, name)
            if rule.gives_derivative:
                return self.level.apply(rule, functools.partial(attribute, name), (o,), {})
        if name == "ctypes" and kind == ARRAY and self.level.region(o) is not None:
            missing_rule(lookup(t, name), "It hands out the address of differentiated numbers.")
        if name in specials.EXACT_PARTS and t is Fraction and id(o) in self.level.index:
            missing_rule(lookup(t, name), "It takes a differentiated number apart into whole numbers.")
        own = number_classes.of(o) if number_classes.known else None
        if own is not None and id(o) in self.level.index:
            if name in own.inside or name in number_classes.REDUCED:
                missing_rule(lookup(t, name), "It takes a differentiated number apart.")
            if name in own_numbers.PARTS:
                return own_numbers.part(self.level, own, o, name)
        result = getattr(o, name)
        if name == "base" and kind == ARRAY:
            self.level.borrowed.check_base(o, result)
        if (
            kind == NUMBER
            and kind_of(type(result)) == NUMBER
            and result is not o
            and id(o) in self.level.index
            and (own is not None or not is_heap(t))
        ):
            missing_rule(lookup(t, name), "It makes a new number from a differentiated one.")
        return result

    def _make_method(self) -> Callable[[Any, str], Any]:
        methods = self.methods
        prep = self.prep
        attr = self.attr
        decide = self._decide_method

        def method(o: Any, name: str) -> Any:
            t = type(o)
            if t is ModuleType:
                return prep(attr(o, name))
            try:
                known = methods.get(t)
            except TypeError:  # a class without hash
                known = None
            if known is not None:
                if name in known:
                    decision = known[name]
                    return getattr(o, name) if decision is None else MethodType(decision, o)
            return decide(o, name, t)

        return method

    def _decide_method(self, o: Any, name: str, t: type) -> Any:
        if earlier_frames.is_generator(t) or (name == "__next__" and earlier_frames.is_iterator(t)):
            return self._generator_method(o, name)
        if number_classes.known and (system := number_classes.system_of(o)) is not None:
            if number_classes.find(type(found := getattr(o, name))) is not None or not callable(found):
                return self.prep(self.attr(o, name))
            f = other_systems.caller(self.level, system, other_systems.method_of(o, name), name)
            return functools.partial(f, o)
        if is_heap(t) or t is type or issubclass(t, type) or t is super:
            adopt.adopt(t)
            if isinstance(o, type):
                adopt.adopt(o)
            return self.prep(getattr(o, name))
        descriptor = lookup(t, name)
        if is_among(type(descriptor), DESCRIPTORS):
            adopt.adopt(t)
            if t is memoryview and self.finds_active(o) and name not in VIEWING:
                missing_rule(descriptor, "It reads differentiated numbers out of raw memory.")
            decision = self._method_decision(t, name, descriptor)
            if t is memoryview:
                return getattr(o, name)
            self.methods.setdefault(t, {})[name] = decision
            return getattr(o, name) if decision is None else MethodType(decision, o)
        return self.prep(self.attr(o, name))

    def _method_decision(self, t: type, name: str, descriptor: Any) -> Any:
        """What to call, with the object first, for a C method; None for the method itself."""
        special = specials.special_method(t, name, descriptor, self.level) or elsewhere.special(
            descriptor, self.level
        )
        if special is not None:
            return special
        rule = rulebook.find(descriptor)
        if rule is not None:
            instead = self.applier(rule, descriptor)
            return None if instead is descriptor else instead
        return guarded(self, descriptor)

    def _generator_method(self, g: Any, name: str) -> Any:
        bound = getattr(g, name)
        if not earlier_frames.is_foreign(g):
            return bound
        earlier_frames.check(self.level, g)
        return guarded(self, bound)

    def set_attr(self, v: Any, o: Any, name: str) -> None:
        """o.name = v."""
        t = type(o)
        try:
            known = self.stores.get(t)
        except TypeError:  # a class without hash
            known = None
        if known is not None and name in known:
            setattr(o, name, v)
            return
        if isinstance(o, type):
            is_data = is_among(type(v), FLAT) and is_among(type(lookup(o, name)), FLAT) and t is type
            setattr(o, name, v)
            if not is_data or name.startswith("__"):
                self.class_changed(o)
            return
        if kind_of(t) == ARRAY:
            self._set_array_attr(v, o, name)
            return
        adopt.adopt(t)
        descriptor = lookup(t, name)
        if (
            not is_among(type(descriptor), PYTHON_ATTRIBUTES)
            and not is_python_attribute(descriptor)
            and not fields.keeps(descriptor)
            and self.finds_active(v)
        ):
            missing_rule(
                descriptor, f"A differentiated value is stored in `.{name}`, where its identity is lost."
            )
        elif is_among(type(v), adopt.PYTHON_CALLABLES) and (
            type(descriptor) is types.GetSetDescriptorType or (descriptor is None and not is_heap(t))
        ):
            elsewhere.adopt_callback(v)  # C code will call it
        elif (
            (
                is_among(type(descriptor), PYTHON_ATTRIBUTES)
                or (type(descriptor) is property and is_python_attribute(descriptor))
            )
            and not adopt.may_change(t)
            and is_own_key(t)
        ):
            self.stores.setdefault(t, set()).add(name)
        elif name == "__class__" and isinstance(v, type):
            adopt.adopt(v)  # `o` may be a descriptor, which C code enters
        setattr(o, name, v)

    def class_changed(self, cls: type) -> None:
        """An attribute of `cls` was replaced: look at it again, and at how it is called."""
        adopt.forget(cls)

    def _set_array_attr(self, v: Any, a: Any, name: str) -> None:
        level = self.level
        if name in ("real", "imag"):
            if name == "real" or a.dtype.kind == "c":
                level.setitem(v, getattr(array_classes.bare(a), name), Ellipsis)
                return
        elif name == "flat":
            level.setitem(self.prep(np.resize)(v, a.shape), array_classes.bare(a), Ellipsis)
            return
        else:
            if name == "shape":
                self.set_shape(a, v, functools.partial(setattr, a, name, v))
                return
            if name in layouts.ATTRIBUTES:
                layouts.refuse_change(level, a, name)
        setattr(a, name, v)

    def set_shape(self, a: Any, shape: Any, put: Callable[[], None]) -> None:
        """a.shape = shape, which `put` does; of a new view of a subclass it is free."""
        if type(a) is not np.ndarray and a.base is not None:
            self.meet(a)  # the tape holds other views, as plain arrays
            put()
        else:
            layouts.set_shape(self.level, a, shape, put)
