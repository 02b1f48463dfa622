"""The one call decision: rule, rewrite, or refuse.

`prep(f)` says what to call instead of `f`, and the interpreter then calls it natively, so no frame of ours stands
between user frames. In this order: a rule for `f` -> an applier of the rule; Python code behind `f` -> its rewritten
form; a C function known only to move references -> `f` itself; any other C function -> a guard that calls it when
nothing among its arguments is active, and refuses otherwise.
"""

from __future__ import annotations

import functools
import gc
import heapq
import itertools
import math
import re
import types
import weakref
from abc import ABCMeta
from collections import defaultdict
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from types import BuiltinFunctionType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from plaingrad import rulebook
from plaingrad.class_keys import all_among, any_among, classes_of, is_among, is_own_key, key_of
from plaingrad.critical import imported
from plaingrad.engine.calls import elsewhere, frames
from plaingrad.engine.calls.memo import Memos
from plaingrad.engine.memory.kinds import (
    ARRAY,
    MAPPING,
    NOTHING,
    NUMBER,
    OBJECT,
    SEQUENCE,
    is_heap,
    is_listed,
    kind_of,
)
from plaingrad.engine.memory.linear_maps import attribute
from plaingrad.engine.memory.memory import owner_of
from plaingrad.engine.refusals.refuse import missing_rule
from plaingrad.engine.users_code import adopt, codes, compilers, earlier_frames
from plaingrad.engine.users_code.class_attributes import (
    DESCRIPTORS,
    PYTHON_ATTRIBUTES,
    c_descriptor,
    is_python_attribute,
    lookup,
    makers,
)
from plaingrad.engine.values import layouts, subclasses, texts, truncated
from plaingrad.errors import NativeError
from plaingrad.rewrite import PLAIN, is_rewritten, rewrite_function
from plaingrad.rulebook import Rule
from plaingrad.rules.numpy import objects
from plaingrad.rules.numpy.names import into
from plaingrad.tangents.fields import fields_of as fields_of
from plaingrad.tangents.fields import held_by, parts_of
from plaingrad.tangents.fields import slot_names as slot_names

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level

# Our own Python that must never be rewritten: it *is* the engine. Rules and the reverse pass may be.
OWN = ("plaingrad.api", "plaingrad.engine", "plaingrad.extend", "plaingrad.native")
OWN += ("plaingrad.rewrite", "plaingrad.rulebook", "plaingrad.critical")
OWN += ("plaingrad.class_keys", "plaingrad.copying", "plaingrad.misfits")
REWRITABLE = (
    "plaingrad.api.recorded",
    "plaingrad.engine.memory.tape",
    "plaingrad.engine.memory.memory",
    "plaingrad.engine.memory.structure",
    "plaingrad.engine.fusion.fused",
    "plaingrad.engine.fusion.reverse_in_forward_steps",
    "plaingrad.engine.memory.linear_maps",
    "plaingrad.engine.memory.regions",
    "plaingrad.engine.forward.pushing",
    "plaingrad.engine.taylor.series",
    "plaingrad.engine.taylor.jet_rows",
)

ArrayFunction = type(np.sum)  # NumPy's dispatcher around a Python implementation
LruCached = adopt.LruCached
MethodWrapper = type((0).__add__)
BuiltinMethodType = type(re.compile("").match)  # a C function that knows the class that defines it
BUILTIN = frozenset((BuiltinFunctionType, BuiltinMethodType))
CACHEABLE = frozenset(
    (*BUILTIN, type, np.ufunc, ArrayFunction, types.MethodDescriptorType, types.WrapperDescriptorType)
)
HARMLESS_CLASSES = frozenset(
    (type, object, super, property, staticmethod, classmethod, functools.partial, slice, range)
)
EXACT = frozenset((Decimal, Fraction))
FLAT = frozenset((float, complex, int, bool, str, type(None)))  # types of entries that hold nothing
VIEWING = (
    "cast",
    "release",
    "toreadonly",
    "__enter__",
    "__exit__",
)  # methods of memoryview that read nothing
DICT_VIEWS = frozenset(map(type, ({}.keys(), {}.values(), {}.items())))
HEAP_FUNCTIONS = frozenset((heapq.heappush, heapq.heappop, heapq.heapreplace, heapq.heappushpop))
# Of these, the elements are neither compared, hashed nor called.
MOVING_ONLY = frozenset((zip, enumerate, reversed, list, tuple, itertools.chain, itertools.islice))
ITERATED = ("iterable", "data", "selectors")  # keyword arguments that C functions iterate over
CALLED_BY_NAME = (
    "key",
    "func",
    "function",
    "mycmp",
    "repl",
    "predicate",
    "callback",
)  # and those that they call


def is_own(f: Any) -> bool:
    """Whether `f` is engine code, which runs as it is."""
    module = getattr(f, "__module__", None)
    return type(module) is str and module.startswith(OWN) and not module.startswith(REWRITABLE)


_ours: dict[FunctionType, FunctionType] = {}  # functions of plaingrad's modules -> their rewritten forms
_settled: dict[FunctionType, FunctionType] = {}  # such functions -> what every level calls instead of them


def is_immortal(f: FunctionType) -> bool:
    """Whether `f` is a function of one of plaingrad's own modules, which every level calls in the same form."""
    module = f.__module__
    return (
        f.__closure__ is None
        and type(module) is str
        and module.startswith("plaingrad.")
        and "<locals>" not in f.__qualname__
        and not is_rewritten(f.__code__)
    )


class Calls:
    """The call decision of one level, with its caches. They are dropped when the rulebook changes."""

    def __init__(self, level: Level) -> None:
        self.level = level
        self.functions: dict[
            int, tuple[Any, ...]
        ] = {}  # id of f -> (code, defaults, kwdefaults, instead, ...)
        self.forced: dict[Any, Any] = {}
        self.prepared: dict[Any, Any] = {}  # other callables -> what to call instead
        self.methods: dict[type, dict[str, Any]] = {}
        self.attributes: dict[Any, dict[str, Rule | None]] = {}
        self.memos = Memos(level)  # what `lru_cache`d functions returned
        self.stores: dict[type, set[str]] = {}  # attributes that keep the value itself
        self.met: dict[int, list[Any]] = {}  # long heaps that were looked through
        self.open = True
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
        self.prepared.clear()
        self.memos.rulebook_changed()
        self.methods.clear()
        self.attributes.clear()

    def code_changed(self, function: Any) -> None:
        """Forget the decision for `function`: it was given other code."""
        self.functions.pop(id(function), None)

    def classes_changed(self) -> None:
        """Forget how classes are called, and their instances' attributes: one of them was changed."""
        self.prepared.clear()
        self.attributes.clear()
        self.methods.clear()
        self.stores.clear()

    def closed(self) -> None:
        """The level is closed: let go of the functions it has seen."""
        self.open = False
        self.made = None
        self.met.clear()
        self.rulebook_changed()
        self.forced.clear()
        self.memos.clear()

    # -- the decision ----------------------------------------------------------------------------------------------

    def _make_prep(self) -> Callable[[Any], Any]:
        functions = self.functions
        prepared = self.prepared
        decide_function = self._decide_function
        decide = self._decide
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
            return decide(f)

        return prep

    def _decide_function(self, f: FunctionType) -> Any:
        code = f.__code__
        rule = rulebook.find(f) or subclasses.rule_of_implementation(f)
        instead = self._without_rule(f) if rule is None else self.applier(rule, adopt.plain_form(f))
        # The table must not keep a closure, and what its cells hold, beyond its time: finalisers would come late.
        key = id(f)
        functions = self.functions
        reference = weakref.ref(f, functools.partial(functions.pop, key))
        functions[key] = (code, f.__defaults__, f.__kwdefaults__, instead, reference)
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
        instead = self._decision(f, t)
        if instead is f and t is BuiltinFunctionType and f.__name__ == "__new__":
            instead = self._meeting_class(f)
        if is_among(t, CACHEABLE):
            owner = getattr(f, "__self__", None)
            if (t not in BUILTIN or owner is None or type(owner) is ModuleType) and not adopt.may_change(f):
                self.prepared[f] = instead
        return instead

    def _decision(self, f: Any, t: type, ruled: bool = True) -> Any:
        cacheable = is_among(t, CACHEABLE)
        special = frames.special(f, self.level) if cacheable or t is ABCMeta else None
        if special is None and (t is types.MethodDescriptorType or t is types.WrapperDescriptorType):
            special = frames.special_method(f.__objclass__, f.__name__, f, self.level)
        if special is None and cacheable:
            special = elsewhere.special(f, self.level)
        if special is not None:
            return special
        if ruled and (cacheable or isinstance(f, type) or not adopt.is_python_special(lookup(t, "__hash__"))):
            rule = rulebook.find(f)
            if rule is not None:
                return self.applier(rule, f)
        if t is np.ufunc:
            return self._ufunc(None, f)
        if isinstance(f, type):
            return self._decide_class(f)
        if cacheable and t in BUILTIN:
            return self._decide_builtin(f)
        if t is ArrayFunction:
            implementation = getattr(f, "_implementation", None)
            is_python = type(implementation) is FunctionType
            instead = self.prep(implementation) if is_python else self.guarded(f)
            return subclasses.dispatching(self.level, f, instead)
        if t is MethodWrapper:
            owner = type(f.__self__)
            if f.__name__ == "__call__" and (owner is ArrayFunction or owner is np.ufunc):
                return self.prep(f.__self__)
            return self._bound(f.__objclass__.__dict__[f.__name__], f.__self__, f)
        if t is functools.partial:
            return self._decide_partial(f)
        if t is LruCached:
            return self.memos.caller(f)
        if t is staticmethod or t is classmethod:
            return self.prep(f.__func__)
        if t is frames.JsonScanner:  # it keeps the hooks of its decoder
            elsewhere.adopt_callbacks(gc.get_referents(f))
        if type(lookup(t, "__call__")) is types.WrapperDescriptorType:
            rule = rulebook.find(t.__call__)
            if rule is not None:
                return MethodType(self.applier(rule, t.__call__), f)
        if t is frames.JsonEncoder:
            return frames.formatter(f)(self.level)
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
            return self._compiled(f)
        if compilers.owns(t):
            return compilers.elementwise(self.level, f)
        return self.guarded(f)

    def _compiled(self, f: Any) -> Any:
        """A function that Numba compiles: one step by its derived native rule, else the Python function it was."""
        level = self.level

        def compiled(*args: Any, **kwargs: Any) -> Any:
            args, kwargs = subclasses.as_numba_has_them(args, kwargs)
            values = (*args, *kwargs.values())
            if not any(map(self.finds_active, values)):
                if level.parent is PLAIN and not any(
                    kind_of(type(x)) == ARRAY and id(owner_of(x)) in level.captured for x in values
                ):
                    return f(*args, **kwargs) if kwargs else f(*args)
            elif level.parent is PLAIN and level.takes_native_rules and not kwargs:
                native = level.outside(imported, "plaingrad.native.border.rule")
                if level.outside(native.takes, f, args):
                    try:
                        return level.apply(native.rule_of(f), f, args, {})
                    except NativeError:
                        pass
            native = level.outside(imported, "plaingrad.native.border.rule")
            return self.prep(level.outside(native.source_of, f, args, kwargs))(*args, **kwargs)

        return compiled

    def _decide_class(self, cls: type) -> Any:
        """A class is called natively if its constructors are Python code or only move references."""
        if compilers.owns(cls):
            return compilers.called_natively(self.level, cls)
        if is_heap(cls):
            adopt.adopt(cls)
        if is_among(cls, HARMLESS_CLASSES) or cls.__module__ == "types":
            return cls
        kind = kind_of(cls)
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
            if rule is None or rule.kind not in ("mover", "higher_order"):
                return self.guarded(cls)
            over_elements = over_elements or rule.kind == "higher_order"
        return self._over_elements(cls) if over_elements else cls

    def _decide_builtin(self, f: Any) -> Any:
        owner = f.__self__
        if owner is None or type(owner) is ModuleType:
            return self.guarded(f)
        if isinstance(owner, type):
            descriptor = c_descriptor(owner, f.__name__)
            rule = rulebook.find(descriptor)
            if rule is not None:
                return self.applier(rule, f)
            if f.__name__ in ("__new__", "__init_subclass__", "__subclasshook__"):
                return self.guarded(f) if kind_of(owner) in (NUMBER, ARRAY) else f
            return self.guarded(f)
        return self._bound(c_descriptor(type(owner), f.__name__), owner, f)

    def _meeting_class(self, f: Any) -> Any:
        """`object.__new__` and its like: the class that is made, or initialised next, is met first."""

        def make(*args: Any, **kwargs: Any) -> Any:
            if args:
                self.meet(args[0])
            return f(*args, **kwargs) if kwargs else f(*args)

        return make

    def _bound(self, descriptor: Any, owner: Any, f: Any) -> Any:
        """What to call for a C method bound to `owner`."""
        if descriptor is None:  # C code made it: no attribute of the type
            return self.guarded(f)
        decision = self._method_decision(type(owner), f.__name__, descriptor)
        if decision is None:
            return f
        return MethodType(decision, owner)

    def _decide_partial(self, f: functools.partial) -> Any:
        inner = self.prep(f.func)
        if inner is f.func:
            return f
        return functools.partial(inner, *f.args, **f.keywords)

    # -- appliers --------------------------------------------------------------------------------------------------

    def applier(self, rule: Rule, f: Any) -> Any:
        """What to call instead of `f`, which has `rule`."""
        kind = rule.kind
        level = self.level
        if rule.variants:
            return self._by_types(rule, f)
        if type(f) is np.ufunc:
            return self._ufunc(rule, f)
        if kind == "mover":
            return f
        if kind == "no_tangent":
            return self.integer_part(f) if f in frames.INTEGER_PARTS else f
        if kind == "higher_order":
            return self._over_elements(f)
        if kind == "composed":
            return self._composed(rule, f)

        written = self.inside(into)
        in_floats = rule.own and getattr(f, "__module__", None) == "math"

        def apply_rule(*args: Any, **kwargs: Any) -> Any:
            if kwargs and kwargs.get("out") is not None:
                if subclasses.among((*args, *kwargs.values())) and subclasses.is_numpys(f):

                    def write(*args: Any, **kwargs: Any) -> Any:
                        return written(f, args, kwargs)

                    return subclasses.call(level, f, args, kwargs, write, True)
                return written(f, args, kwargs)
            if in_floats and any_among(args, EXACT):  # which mix with no float
                args = tuple([self.prep(float)(x) if is_among(type(x), EXACT) else x for x in args])
            return level.apply(rule, f, args, kwargs)

        if type(f) is FunctionType and f.__closure__ and not rule.own:
            return self._of_closure(rule, f, apply_rule)
        if kind == "scalar" and level.unary and (f is abs or getattr(f, "__module__", None) == "math"):
            partial = rule.partials[0]
            if callable(partial) and (len(rule.partials) == 1 or f is math.log):
                return level.unary(f, partial, math, apply_rule)
        return apply_rule

    def _by_types(self, rule: Rule, f: Any) -> Any:
        """A callable with several rules, chosen by the types of the arguments; if none fits, as if it had none."""
        appliers: dict[int, Any] = {}
        without: list[Any] = []

        def apply_by_types(*args: Any, **kwargs: Any) -> Any:
            chosen = rulebook.choose(rule, args, kwargs)
            if chosen is None:
                if not without:
                    without.append(self._without_rule(f))
                return without[0](*args, **kwargs)
            found = appliers.get(id(chosen))
            if found is None:
                found = appliers[id(chosen)] = chosen, self.applier(chosen, f)
            return found[1](*args, **kwargs)

        return apply_by_types

    def _without_rule(self, f: Any) -> Any:
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
        return rewrite_function(f)

    def _of_closure(self, rule: Rule, f: FunctionType, apply_rule: Any) -> Any:
        """A closure with a rule: what it has captured is no argument, so it must not depend on the inputs."""

        def apply_to_closure(*args: Any, **kwargs: Any) -> Any:
            for name, held in parts_of(f).items():
                if self.level.is_active(held):
                    missing_rule(
                        f,
                        f"It has captured {name!r}, which depends on the differentiated inputs, and its rule knows no "
                        "derivative for that.",
                    )
            return apply_rule(*args, **kwargs)

        return apply_to_closure

    def _ufunc(self, rule: Rule | None, f: np.ufunc) -> Any:
        """A ufunc: by its rule, or with keywords or `out` by the definition that all ufuncs share."""
        level = self.level
        guarded = self.guarded(f) if rule is not None else self._python_ufunc(f)
        with_options = rulebook.find(np.ufunc.__call__)
        operands = f.nin

        def apply_ufunc(*args: Any, **kwargs: Any) -> Any:
            if kwargs or len(args) > operands:
                if rule is None or with_options is None:
                    return guarded(*args, **kwargs)
                return self.applier(with_options, np.ufunc.__call__)(f, *args, **kwargs)
            if rule is None:
                return guarded(*args)
            if not rule.gives_derivative:
                return level.native(f, args, {})
            if operands == 1 and rule.kind == "scalar" and type(args[0]) is np.ndarray:
                z = level.elementwise(rule, f, args[0])
                if z is not None:
                    return z
            for x in args:
                if kind_of(type(x)) == SEQUENCE:
                    make = self.prep(np.array)
                    args = tuple([make(x) if kind_of(type(x)) == SEQUENCE else x for x in args])
                    break
            return level.apply(rule, f, args, kwargs)

        return apply_ufunc

    def _python_ufunc(self, f: np.ufunc) -> Any:
        """A ufunc without a rule; one that np.frompyfunc made calls its Python function element by element."""
        guarded = self.guarded(f)
        inner = [x for x in gc.get_referents(f) if callable(x)]
        if not inner:
            return guarded

        def element_by_element(*args: Any, **kwargs: Any) -> Any:
            if kwargs or f.nout != 1:
                return guarded(*args, **kwargs)
            return self.inside(objects.elementwise)(inner[0], *args)

        return element_by_element

    def _composed(self, rule: Rule, f: Any) -> Any:
        level = self.level
        definition = rule.definition

        is_numpys = subclasses.is_numpys(f)

        def composed(*args: Any, **kwargs: Any) -> Any:
            if is_numpys and (subclasses.among(args) or (kwargs and subclasses.among(kwargs.values()))):
                return subclasses.call(level, f, args, kwargs, self.inside(definition), rule.mutates)
            if rule.mutates or any(map(self._concerns, args)) or any(map(self._concerns, kwargs.values())):
                return self.inside(definition)(*args, **kwargs)
            y = level.native(f, args, kwargs)
            if level.texts and any(map(texts.holds_text, args)):
                texts.check_conversion(level, args, y)
            if level.texts.truncated:
                truncated.check_times(level, y, (*args, *kwargs.values()))
            return y

        return composed

    def _concerns(self, x: Any) -> bool:
        """Whether a definition must be run for argument `x`: active, or nobody knows what is in it."""
        kind = kind_of(type(x))
        if kind == NOTHING:
            return is_heap(type(x)) and not is_listed(type(x))  # a class may iterate, a kind of int compute
        if kind == OBJECT:
            return True
        if kind == MAPPING and any(map(self._concerns, x)):
            return True
        return self.level.slot_of(x) is not None or (kind in (SEQUENCE, MAPPING) and self._holds_objects(x))

    def _holds_objects(self, x: Any) -> bool:
        return any(kind_of(t) == OBJECT for t in classes_of(x.values() if isinstance(x, dict) else x))

    def _over_elements(self, f: Any) -> Any:
        """A C function that iterates over its arguments or calls them, on what it may safely touch."""
        only_functions = f is defaultdict or f is functools.cmp_to_key
        maker = f if isinstance(f, type) else getattr(f, "__objclass__", object)
        fills = kind_of(maker) == MAPPING  # keyword arguments are entries
        used = (*ITERATED, *CALLED_BY_NAME)
        on_heap = is_among(f, HEAP_FUNCTIONS)
        moves = is_among(f, MOVING_ONLY)

        def over_elements(*args: Any, **kwargs: Any) -> Any:
            if on_heap and args and type(args[0]) is list:
                self.meet_heap(args[0])
                return f(args[0], *[self._safe(x, only_functions) for x in args[1:]], **kwargs)
            args = tuple(
                [
                    x if moves and (type(x) is list or type(x) is tuple) else self._safe(x, only_functions)
                    for x in args
                ]
            )
            if moves and not kwargs:
                made = f(*args)
                if type(made) is not list and type(made) is not tuple:
                    self.made = made
                return made
            if kwargs:
                kwargs = {
                    name: self._safe(x, only_functions) if name in used and not fills else self.meet(x)
                    for name, x in kwargs.items()
                }
            return f(*args, **kwargs) if kwargs else f(*args)

        return over_elements

    def _safe(self, x: Any, only_functions: bool) -> Any:
        t = type(x)
        kind = kind_of(t)
        if kind == NUMBER or (kind == NOTHING and not callable(x)):
            return x
        if t is FunctionType or t is MethodType:
            if only_functions and rulebook.find(x) is None:
                elsewhere.adopt_callback(x)  # it stays the object that it is
                return x
            return self.prep(x)
        if kind in (SEQUENCE, MAPPING):
            self.meet_elements(x)
            return x
        if kind == ARRAY or t is np.flatiter or t is memoryview:
            return self.level._iterable(x)
        if callable(x) and not (only_functions and isinstance(x, (type, np.ufunc))):
            return self.prep(x)
        if t is GeneratorType or earlier_frames.is_iterator(t):
            return self.level._iterable(x)
        self.meet(x)
        return x

    def guarded(self, f: Any) -> Any:
        """A C function without a rule: called when nothing among its arguments is active, else refused."""
        level = self.level
        pickles = getattr(getattr(f, "__objclass__", f), "__module__", None) == "_pickle"
        given = (
            self.meet if pickles else functools.partial(self._callback, f)
        )  # functions are pickled by name, not called
        reads = texts.reader_kind(f)

        def opaque(*args: Any, **kwargs: Any) -> Any:
            if level.texts:
                texts.check_arguments(level, f, reads, args, kwargs)
            watched = None
            for position, x in enumerate(itertools.chain(args, kwargs.values())):
                kind = kind_of(type(x))
                if kind == NOTHING:
                    continue
                if self.finds_active(x):
                    missing_rule(
                        f,
                        f"Its argument {position} depends on the differentiated inputs, so its derivative is needed.",
                    )
                if (kind == ARRAY or type(x) is memoryview) and id(owner_of(x)) in level.captured:
                    watched = [*(watched or ()), x]
            if watched and f is not memoryview:  # writes through one are seen
                self._refuse_writes(f, args, kwargs)
            if reads == "reading" and any(map(texts.is_stepped, args)):
                args = tuple([texts.checked_items(level, f, x) if texts.is_stepped(x) else x for x in args])
            safe = [given(x) for x in args]
            if kwargs:
                kwargs = {name: given(x) for name, x in kwargs.items()}
            result = f(*safe, **kwargs) if kwargs else f(*safe)
            if level.texts:
                texts.check_result(level, f, reads, args, result)
            return result

        return truncated.spans(level, f, opaque) if truncated.is_span(f) else opaque

    def _refuse_writes(self, f: Any, args: Any, kwargs: Any) -> None:
        """An unknown C function may write an array that a pullback reads: let it have a read-only look only."""
        missing_rule(
            f, "One of its arguments is an array that the reverse pass reads again, and it may write it."
        )

    def _callback(self, f: Any, x: Any) -> Any:
        """A callable handed to the C function `f`: its rewritten form, which may not return active values to it."""
        t = type(x)
        if t is FunctionType or t is MethodType or (t is functools.partial):
            return elsewhere.callback(self.level, f, x)
        if t is LruCached:
            self.memos.of_function(x)  # its function runs rewritten
        if kind_of(t) == OBJECT:
            self.meet(x)
        return x

    def finds_active(self, x: Any) -> bool:
        """Whether something reachable from `x` as data is active, at this level or further out."""
        if kind_of(type(x)) == NOTHING:
            return False
        if self._search(x):
            return True
        outer = self.level.parent
        return outer is not PLAIN and outer.calls.finds_active(x)

    def _search(self, x: Any) -> bool:
        level = self.level
        index = level.index
        seen: dict[int, Any] = {}
        todo = [x]
        while todo:
            x = todo.pop()
            t = type(x)
            kind = kind_of(t)
            if kind == NOTHING or t is FunctionType or id(x) in seen:
                continue
            if kind == NUMBER:
                if id(x) in index:
                    return True
                continue
            if kind == ARRAY and x.dtype.kind != "O":
                if level.region(x) is not None:
                    return True
                if t is not np.ndarray:  # a subclass: it may hold numbers as attributes
                    seen[id(x)] = x
                    todo += (getattr(x, "__dict__", None) or {}).values()
                continue
            seen[id(x)] = x
            if (t is list or t is tuple) and all_among(x, FLAT):
                if not index.keys().isdisjoint(map(id, x)):
                    return True
            elif kind == MAPPING:
                todo += [*x.values(), *x.keys()]
            elif kind in (SEQUENCE, ARRAY) or t is set or t is frozenset or is_among(t, DICT_VIEWS):
                todo.extend(x.flat if kind == ARRAY else x)  # not +=, which a subclass of list may define
            elif t is MethodType:
                todo.append(x.__self__)
            elif t is memoryview:
                if level.owns_region(owner_of(x)):
                    return True
            else:
                todo += held_by(x)
        return False

    def integer_part(self, f: Any) -> Any:
        """int(x), floor(x), ...: no derivative; refused where the integer keeps every digit of x."""
        level = self.level

        def integer(*args: Any, **kwargs: Any) -> Any:
            if args:
                x = args[0]
                if isinstance(x, texts.TEXT):
                    result = f(*args, **kwargs) if kwargs else f(*args)
                    if level.texts:
                        texts.check(level, x, texts.SHORT_DIGITS)
                    return result
                kind = kind_of(type(x))
                if kind == NUMBER and self.finds_active(x):
                    if (
                        not isinstance(x, complex)
                        and abs(x) >= truncated.INTEGER_LIMIT
                        and abs(x) != float("inf")
                    ):
                        truncated.refuse_digits(f.__name__)
                    result = f(*args, **kwargs) if kwargs else f(*args)
                    if type(result) is int and len(level.texts.truncated) < truncated.MOST:
                        level.texts.truncated.add(result)
                    return result
                elif kind == OBJECT:
                    self.meet(x)
            return f(*args, **kwargs) if kwargs else f(*args)

        return integer

    # -- attributes ------------------------------------------------------------------------------------------------

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
        if name in frames.EXACT_PARTS and t is Fraction and id(o) in self.level.index:
            missing_rule(lookup(t, name), "It takes a differentiated number apart into whole numbers.")
        result = getattr(o, name)
        if name == "base" and kind == ARRAY:
            self.level.borrowed.check_base(o, result)
        if (
            kind == NUMBER
            and kind_of(type(result)) == NUMBER
            and result is not o
            and id(o) in self.level.index
            and not is_heap(t)
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
        special = frames.special_method(t, name, descriptor, self.level) or elsewhere.special(
            descriptor, self.level
        )
        if special is not None:
            return special
        rule = rulebook.find(descriptor)
        if rule is not None:
            instead = self.applier(rule, descriptor)
            return None if instead is descriptor else instead
        return self.guarded(descriptor)

    def _generator_method(self, g: Any, name: str) -> Any:
        bound = getattr(g, name)
        if not earlier_frames.is_foreign(g):
            return bound
        earlier_frames.check(self.level, g)
        return self.guarded(bound)

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
            setattr(o, name, v)
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
            and self.finds_active(v)
        ):
            missing_rule(
                descriptor, f"A differentiated value is stored in `.{name}`, where its identity is lost."
            )
        elif is_among(type(v), adopt.PYTHON_CALLABLES) and (
            type(descriptor) is types.GetSetDescriptorType or (descriptor is None and not is_heap(t))
        ):
            elsewhere.adopt_callback(v)  # C code will call it
        elif is_among(type(descriptor), PYTHON_ATTRIBUTES) and not adopt.may_change(t) and is_own_key(t):
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
                level.setitem(v, getattr(subclasses.bare(a), name), Ellipsis)
                return
        elif name == "flat":
            level.setitem(self.prep(np.resize)(v, a.shape), subclasses.bare(a), Ellipsis)
            return
        else:
            self.check_layout(a, name)
        setattr(a, name, v)

    def check_layout(self, a: Any, name: str) -> None:
        """Refuse to set `.shape`, say, of a differentiated array in place; of a new view of a subclass it is free."""
        if name == "shape" and type(a) is not np.ndarray and a.base is not None:
            self.meet(a)  # the tape holds other views, as plain arrays
        elif name in layouts.ATTRIBUTES:
            layouts.refuse_change(self.level, a, name)

    # -- items of other objects ------------------------------------------------------------------------------------

    def getitem(self, o: Any, k: Any) -> Any:
        """o[k] where `o` is no list, tuple or array."""
        t = type(o)
        self.meet(o)
        self.meet(k)
        if isinstance(o, type):
            return o[k]
        method = lookup(t, "__getitem__")
        if type(method) is LruCached:
            return self.prep(method)(o, k)
        if type(method) is not FunctionType and kind_of(t) not in (MAPPING, SEQUENCE):
            rule = rulebook.find(method) if method is not None else None
            if t is memoryview and self.finds_active(o):
                missing_rule(method, "It reads differentiated numbers out of raw memory.")
            if rule is not None and rule.kind not in ("mover", "no_tangent"):
                return self.applier(rule, method)(o, k)
        return o[k]

    def setitem(self, v: Any, o: Any, k: Any) -> None:
        """o[k] = v where `o` is no list or array."""
        t = type(o)
        self.meet(o)
        self.meet(k)
        method = lookup(t, "__setitem__")
        if method is not None and type(method) is not FunctionType and kind_of(t) not in (MAPPING, SEQUENCE):
            rule = rulebook.find(method)
            if t is memoryview and (self.finds_active(o) or self.finds_active(v)):
                missing_rule(method, "It writes raw memory that holds, or is given, differentiated numbers.")
            if rule is not None and rule.kind not in ("mover", "no_tangent"):
                self.applier(rule, method)(o, k, v)
                return
            if rule is None and self.finds_active(v):
                missing_rule(method, "A differentiated value is stored where its identity is lost.")
            if t is memoryview and id(owner_of(o)) in self.level.captured:
                self.level.write_through(v, o, k)
                return
        elif type(method) is FunctionType and compilers.owns(t):
            return self.prep(method)(o, k, v)
        o[k] = v

    # -- meeting objects -------------------------------------------------------------------------------------------

    def meet(self, o: Any) -> Any:
        """`o` itself, its class adopted; a class is adopted too."""
        t = type(o)
        try:
            known = t in adopt.known
        except TypeError:  # a class without hash
            known = False
        if not known:
            if earlier_frames.is_generator(t):
                earlier_frames.check(self.level, o)
                return o
            adopt.adopt(t)
        if isinstance(o, type):
            adopt.adopt(o)
        return o

    def meet_heap(self, heap: list[Any]) -> None:
        """Adopt the classes of a heap's entries; a long one is looked through at its first push or pop only."""
        if len(heap) > 64:
            if self.met.get(id(heap)) is heap:
                self.meet(heap[0])
                self.meet(heap[-1])
                return
            if len(self.met) > 256:
                self.met.clear()
            self.met[id(heap)] = heap
        self.meet_elements(heap)

    def meet_elements(self, container: Any) -> None:
        """Adopt the classes of a container's entries, before C code compares or hashes them."""
        if isinstance(container, (list, tuple, dict, set, frozenset)):
            if all_among(container, adopt.STATIC_SCALARS):
                return
            for t in classes_of(container):
                adopt.adopt(t)
                if t is GeneratorType:
                    continue
            if isinstance(container, (list, tuple)):
                for entry in container:
                    if type(entry) is tuple or type(entry) is list:
                        for t in classes_of(entry):
                            adopt.adopt(t)
                    elif type(entry) is np.ndarray:
                        break
