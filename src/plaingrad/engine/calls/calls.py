"""The one call decision: rule, rewrite, or refuse.

`prep(f)` says what to call instead of `f`, and the interpreter then calls it natively, so no frame of ours stands
between user frames. In this order: a rule for `f` -> an applier of the rule; Python code behind `f` -> its rewritten
form; a C function known only to move references -> `f` itself; any other C function -> a guard that calls it when
nothing among its arguments is active, and refuses otherwise.
"""

from __future__ import annotations

import functools
import gc
import operator
import re
import types
import weakref
from abc import ABCMeta
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from plaingrad import number_classes, rulebook, systems
from plaingrad.class_keys import is_among, is_own_key
from plaingrad.engine.calls import elsewhere, rewritten_forms, specials, system_decision, text_functions
from plaingrad.engine.calls.appliers import applier, compiled_by_numba, ufunc
from plaingrad.engine.calls.c_code import guarded, iterating, meeting_class
from plaingrad.engine.calls.memo import Memos
from plaingrad.engine.calls.object_access import ObjectAccess
from plaingrad.engine.calls.own_code import is_immortal, is_own
from plaingrad.engine.compiled import core, is_ours
from plaingrad.engine.memory.kinds import ARRAY, MAPPING, NOTHING, NUMBER, SEQUENCE, is_heap, kind_of
from plaingrad.engine.users_code import adopt, codes, compilers, kernels
from plaingrad.engine.users_code.class_attributes import c_descriptor, lookup, makers
from plaingrad.engine.values import array_classes, own_numbers, subclasses
from plaingrad.engine.values.search import is_in_reach
from plaingrad.rewrite import PLAIN, rewrite_function
from plaingrad.rulebook import Rule

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level

ArrayFunction = type(np.sum)  # NumPy's dispatcher around a Python implementation
LruCached = adopt.LruCached
MethodWrapper = type((0).__add__)
BuiltinMethodType = type(re.compile("").match)  # a C function that knows the class that defines it
BUILTIN = frozenset((BuiltinFunctionType, BuiltinMethodType))
CACHEABLE = frozenset(
    (*BUILTIN, type, np.ufunc, ArrayFunction, types.MethodDescriptorType, types.WrapperDescriptorType)
)
GETTERS = frozenset((operator.itemgetter, operator.attrgetter, operator.methodcaller, functools.partial))
HARMLESS_CLASSES = frozenset(
    (type, object, super, property, staticmethod, classmethod, functools.partial, slice, range)
)


_ours: dict[FunctionType, FunctionType] = {}  # functions of plaingrad's modules -> their rewritten forms
_settled: dict[FunctionType, FunctionType] = {}  # such functions -> what every level calls instead of them


def is_decided_once(f: Any, t: type) -> bool:
    """Whether what to call instead of `f`, of a cacheable type `t`, stays true: no method bound to some object."""
    if t in BUILTIN:
        owner = getattr(f, "__self__", None)
        if isinstance(owner, type):  # as of `tuple.__new__`
            return not is_heap(owner) and not adopt.may_change(f)
        if owner is not None and type(owner) is not ModuleType:
            return False
    return not adopt.may_change(f)


def is_called_alike(t: type) -> bool:
    """Whether every instance of a user's class is called in the same way, by Python code in it."""
    return (
        is_own_key(t)
        and type(lookup(t, "__call__")) is FunctionType
        and not issubclass(t, type)
        and not adopt.may_change(t)
        and t not in rulebook.classes_with_rules(rulebook.changes())
    )


def is_c_code(call: Any) -> bool:
    """Whether `__call__` of a class is C code, or compiled by Cython."""
    return type(call) is types.WrapperDescriptorType or type(call).__name__ == "cython_function_or_method"


def _clear(seen: tuple[Any, ...]) -> None:
    """Let go of what a level has seen; nothing lasts where it is not used again."""
    for held in seen:
        if held:
            held.clear()


_forget = _clear if core is None else core.forget


class Calls(ObjectAccess):
    """The call decision of one level, with its caches. They are dropped when the rulebook changes."""

    def __init__(self, level: Level) -> None:
        self.level = level
        # id of f -> (code, defaults, kwdefaults, instead, a weak reference to f, whether that lasts)
        self.functions: Any = {} if core is None else core.DecidedFunctions()
        self.forced: dict[Any, Any] = {}
        self.prepared: Any = {} if core is None else core.DecidedCallables()  # others -> what to call instead
        self.methods = {}
        self.attributes = {}
        # class -> name of a C method bound to an object -> what to call with the object first, None: the method
        self.bound: dict[type, dict[str, Any]] = {}
        self.callables: set[type] = set()  # classes whose instances are called natively
        self.getters: dict[type, Any] = {}  # of `GETTERS` -> what to call with the getter first
        self.memos = Memos(level)  # what `lru_cache`d functions returned
        self.stores = {}
        self.met, self.open = {}, True
        self.seen = (self.functions, self.prepared, self.forced, self.methods, self.attributes, self.bound)
        self.seen += (self.callables, self.memos.of, self.stores, self.met, self.getters)
        self.made: Any = None  # the last iterator made of safe parts, until it is used
        self.prep = self._make_prep()
        self.attr = self._make_attr()
        self.method = self._make_method()
        rulebook.watch(self)

    def rulebook_changed(self) -> None:
        """Forget every decision: a rule was added or removed."""
        if self.open:
            self.level.choose_arithmetic()
        self.functions.clear()
        self.memos.rulebook_changed()
        self.classes_changed()

    def code_changed(self, function: Any) -> None:
        """Forget the decision for `function`: it was given other code."""
        self.functions.pop(id(function), None)

    def classes_changed(self) -> None:
        """Forget how classes are called, and their instances' attributes: one of them was changed."""
        for held in (self.prepared, self.callables, self.bound, self.attributes, self.methods, self.stores):
            held.clear()
        self.getters.clear()

    def closed(self) -> None:
        """The level is closed: let go of the functions it has seen, but for what lasts until it is used again."""
        self.open, self.made = False, None
        _forget(self.seen)

    def renew(self) -> None:
        """The level is opened again."""
        self.open = True
        self.memos.renew()

    def _make_prep(self) -> Callable[[Any], Any]:
        functions = self.functions
        prepared = self.prepared
        decide_function = self._decide_function
        code_is_watched = codes.is_watched  # by `code_changed`; f.__code__ is slow then

        def prep(f: Any) -> Any:
            t = type(f)
            if t is FunctionType:
                entry = functions.get(id(f))
                if (
                    entry is not None
                    and (code_is_watched or entry[0] is f.__code__)
                    and entry[1] is f.__defaults__
                    and entry[2] is f.__kwdefaults__
                ):
                    return entry[3]
                return decide_function(f)
            if t is MethodType:
                return MethodType(prep(f.__func__), f.__self__)
            try:
                if t in CACHEABLE:
                    instead = prepared.get(f)
                    if instead is not None:
                        return instead
            except TypeError:  # a class without hash
                pass
            return self._decide(f)

        return prep

    def _decide_function(self, f: FunctionType) -> Any:
        code, form = f.__code__, self.level.form
        key, functions = id(f), self.functions
        rule, of_system, instead = None, None, rewritten_forms.find(f, code, form)
        lasts = instead is not None  # no closure, and of a module: what is decided of it lasts
        if not lasts:
            instead = rewritten_forms.anew(f, code, form)
            if instead is None:
                rule = rulebook.find(f) or array_classes.rule_of_implementation(f)
                of_system = system_decision.whole(self.level, f) if rule is None else None
                plain = self.without_rule if rule is None else functools.partial(self.applier, rule)
                instead = of_system or plain(f if rule is None else adopt.plain_form(f))
            if rule is None and of_system is None:
                rewritten_forms.keep(f, code, form, instead)
                lasts = f in _settled
        # The table must not keep a closure, and what its cells hold, beyond its time: finalisers would come late.
        reference = weakref.ref(f, functools.partial(functions.pop, key))
        functions[key] = code, f.__defaults__, f.__kwdefaults__, instead, reference, lasts
        if f.__code__ is not code:  # by another thread
            functions.pop(key, None)
        return instead

    def inside(self, f: Any) -> Any:
        """What to call for a piece of engine or rule code that is to run rewritten at this level."""
        if type(f) is not FunctionType:
            return self.prep(f)
        instead = _ours.get(f)
        if instead is None:
            instead = self.forced.get(f)
            if instead is None:
                if is_immortal(f):
                    instead = _ours[f] = rewrite_function(f)
                    return instead
                instead = f if codes.runs_rewritten(f) else rewrite_function(f)
                if len(self.forced) > 4096:
                    self.forced.clear()
                self.forced[f] = instead
        return instead

    def _decide(self, f: Any) -> Any:
        t = type(f)
        if t is LruCached and (decided := self.memos.decided(f)):
            return decided
        if is_among(t, GETTERS) and is_without_rules(t):
            return decided_getter(self, f, t)
        instead = self._decision(f, t)
        if instead is f and t is BuiltinFunctionType and f.__name__ == "__new__":
            instead = meeting_class(self, f)
        if instead is f and is_heap(t) and is_called_alike(t):
            self.callables.add(t)
        if is_among(t, CACHEABLE) and is_decided_once(f, t):
            self.prepared[f] = instead
        return instead

    def _decision(self, f: Any, t: type, ruled: bool = True) -> Any:
        cacheable = is_among(t, CACHEABLE)
        special = specials.special(f, self.level) if cacheable or t is ABCMeta else None
        if special is None and (t is types.MethodDescriptorType or t is types.WrapperDescriptorType):
            special = specials.special_method(f.__objclass__, f.__name__, f, self.level)
        if special is None and (cacheable or t.__name__.startswith("cython_")):  # of mpi4py
            special = elsewhere.special(f, self.level)
        if special is not None:
            return special
        if ruled and (cacheable or isinstance(f, type) or not adopt.is_python_special(lookup(t, "__hash__"))):
            rule = rulebook.find(f)
            if rule is not None:
                return self.applier(rule, f)
        if t is np.ufunc:
            return ufunc(self, None, f)
        if systems.imported() and (of_system := system_decision.decision(self.level, f)) is not None:
            return of_system
        if isinstance(f, type):
            return self._decide_class(f)
        if cacheable and t in BUILTIN:
            return self._decide_builtin(f)
        if t is ArrayFunction:
            implementation = getattr(f, "_implementation", None)
            is_python = type(implementation) is FunctionType
            instead = self.prep(implementation) if is_python else guarded(self, f)
            return subclasses.dispatching(self.level, f, instead)
        if t is MethodWrapper:
            owner = type(f.__self__)
            if f.__name__ == "__call__" and (owner is ArrayFunction or owner is np.ufunc):
                return self.prep(f.__self__)
            return self._bound(f.__objclass__.__dict__[f.__name__], f.__self__, f)
        if t is functools.partial:
            return decided_partial(self, f)
        if t is LruCached:
            return self.memos.caller(f)
        if t is staticmethod or t is classmethod:
            return self.prep(f.__func__)
        if t is text_functions.JsonScanner:  # it keeps the hooks of its decoder
            elsewhere.adopt_callbacks(gc.get_referents(f))
        if is_c_code(lookup(t, "__call__")):
            rule = rulebook.find(t.__call__)
            if rule is not None:
                return MethodType(self.applier(rule, t.__call__), f)
        if t is text_functions.JsonEncoder:
            return text_functions.formatter(f)(self.level)
        if is_heap(t) and not compilers.owns(t):
            adopt.adopt(t)
            call = lookup(t, "__call__")
            if adopt.is_python_special(call):
                return f
            if type(call) is LruCached:
                return MethodType(self.prep(call), f)
            if type(call) is BuiltinFunctionType:  # typing.NewType: a C function that is no descriptor
                return self.prep(call)
        if not callable(f):
            return f  # the interpreter says so better
        if t.__module__.startswith("numba.") and type(getattr(f, "py_func", None)) is FunctionType:
            return compiled_by_numba(self, f)
        return kernels.over_elements(self.level, f) if compilers.owns(t) else guarded(self, f)

    def _decide_class(self, cls: type) -> Any:
        """A class is called natively if its constructors are Python code or only move references."""
        if compilers.owns(cls):
            return compilers.called_natively(self.level, cls)
        if is_heap(cls):
            adopt.adopt(cls)
        if is_among(cls, HARMLESS_CLASSES) or cls.__module__ == "types":
            return cls
        if (kind := kind_of(cls)) == NUMBER and number_classes.find(cls) is not None:
            return own_numbers.constructor(self.level, cls)
        if kind == NUMBER:
            base = next((c for c in cls.__mro__ if not is_heap(c)), object)
            rule = rulebook.find(lookup(base, "__new__"))
            new = lookup(cls, "__new__")
            if rule is not None and cls is not base and isinstance(new, BuiltinFunctionType):
                make = self.applier(rule, new)
                if type(lookup(cls, "__init__")) is not FunctionType:
                    return MethodType(make, cls)

                def make_and_initialise(*args: Any, **kwargs: Any) -> Any:
                    x = make(cls, *args, **kwargs)
                    self.prep(lookup(cls, "__init__"))(x, *args, **kwargs)
                    return x

                return make_and_initialise
        over_elements = False
        for maker in makers(cls):
            if (
                maker is object
                or maker is type
                or issubclass(maker, (BaseException, property, functools.partial))
            ):
                continue
            if kind in (SEQUENCE, MAPPING) or maker is set or maker is frozenset:
                over_elements = True
                continue
            rule = rulebook.find(maker)
            if rule is None or rule.kind not in ("mover", "inspector", "higher_order"):
                return guarded(self, cls)
            over_elements = over_elements or rule.kind == "higher_order"
        return iterating(self, cls) if over_elements else cls

    def _decide_builtin(self, f: Any) -> Any:
        owner = f.__self__
        if is_ours(f):
            return f
        if owner is None or type(owner) is ModuleType:
            return guarded(self, f)
        if isinstance(owner, type):
            descriptor = c_descriptor(owner, f.__name__)
            rule = rulebook.find(descriptor)
            if rule is not None:
                return self.applier(rule, f)
            if f.__name__ in ("__new__", "__init_subclass__", "__subclasshook__"):
                return guarded(self, f) if kind_of(owner) in (NUMBER, ARRAY) else f
            return guarded(self, f)
        return self._bound(c_descriptor(type(owner), f.__name__), owner, f)

    def _bound(self, descriptor: Any, owner: Any, f: Any) -> Any:
        """What to call for a C method bound to `owner`."""
        if descriptor is None:  # C code made it: no attribute of the type
            return guarded(self, f)
        t = type(owner)
        decision = self._method_decision(t, f.__name__, descriptor)
        if is_own_key(t) and is_among(type(descriptor), CACHEABLE) and not adopt.may_change(t):
            self.bound.setdefault(t, {})[f.__name__] = decision
        return f if decision is None else MethodType(decision, owner)

    def applier(self, rule: Rule, f: Any) -> Any:
        """What to call instead of `f`, which has `rule`."""
        return applier(self, rule, f)

    def without_rule(self, f: Any) -> Any:
        """What to call instead of `f`, whatever rules it has."""
        if type(f) is not FunctionType:
            return self._decision(f, type(f), ruled=False)
        settled = _settled.get(f)
        if settled is not None:
            return settled
        handed_over = elsewhere.special(f, self.level)
        if handed_over is not None:
            return handed_over
        if is_immortal(f):
            _settled[f] = f if is_own(f) else self.inside(f)
            return _settled[f]
        if is_own(f) or codes.runs_rewritten(f):
            return f
        if compilers.owns(f):
            return compilers.called_natively(self.level, f)
        return rewrite_function(f, self.level.form)

    def finds_active(self, x: Any) -> bool:
        """Whether something reachable from `x` as data is active, at this level or further out."""
        if kind_of(type(x)) == NOTHING:
            return False
        if is_in_reach(self.level, x):
            return True
        outer = self.level.parent
        return outer is not PLAIN and outer.calls.finds_active(x)


def is_without_rules(t: type) -> bool:
    """Whether no object of a class has a rule, nor can be a function of another system."""
    return not systems.imported() and t not in rulebook.classes_with_rules(rulebook.changes())


def decided_getter(calls: Calls, f: Any, t: type) -> Any:
    """What to call instead of one of the objects that programs make again and again, of a class in `GETTERS`."""
    if t is functools.partial:
        return decided_partial(calls, f)
    call = calls.getters.get(t)
    if call is None:
        rule = rulebook.find(t.__call__)
        if rule is None:
            return calls._decision(f, t)
        call = calls.getters[t] = calls.applier(rule, t.__call__)
    return MethodType(call, f)


def decided_partial(calls: Calls, f: functools.partial) -> Any:
    """What to call instead of a `functools.partial`."""
    inner = calls.prep(f.func)
    return f if inner is f.func else functools.partial(inner, *f.args, **f.keywords)
