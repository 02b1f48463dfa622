"""What is called instead of a function that has a rule: row, ufunc, definition, rules by types, compiled code."""

from __future__ import annotations

import functools
import gc
import math
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from plaingrad import number_classes, rulebook
from plaingrad.class_keys import any_among, classes_of, is_among
from plaingrad.critical import imported
from plaingrad.engine.calls import other_systems, specials
from plaingrad.engine.calls.c_code import guarded, inspecting, integer_part, iterating
from plaingrad.engine.calls.stop import stopped_if_active
from plaingrad.engine.calls.users_rules import by_choice
from plaingrad.engine.compiled import core
from plaingrad.engine.memory.kinds import (
    ARRAY,
    EXACT,
    MAPPING,
    NOTHING,
    NUMBER,
    OBJECT,
    SEQUENCE,
    is_heap,
    is_listed,
    kind_of,
)
from plaingrad.engine.memory.memory import owner_of
from plaingrad.engine.refusals.refuse import missing_rule
from plaingrad.engine.users_code import compilers
from plaingrad.engine.values import array_classes, subclasses, texts, truncated
from plaingrad.engine.values.shared_tensors import is_in_array
from plaingrad.errors import NativeError
from plaingrad.rewrite import PLAIN
from plaingrad.rulebook import Rule
from plaingrad.rules.numpy import objects
from plaingrad.rules.numpy.names import PLACES_OF_OUT, into
from plaingrad.tangents.fields import parts_of

if TYPE_CHECKING:
    from plaingrad.engine.calls.calls import Calls
    from plaingrad.engine.calls.level import Level


ARRAY_FUNCTIONS = frozenset((np.ufunc, type(np.sum)))
WITHOUT_ARITHMETIC = frozenset(("mover", "inspector", "no_tangent", "higher_order", "outside", "asks"))


def applier(calls: Calls, rule: Rule, f: Any) -> Any:
    """What to call instead of `f`, which has `rule`."""
    recorder = calls.level.recorder
    if recorder is None:
        return applier_in_python(calls, rule, f)
    if is_of_one_number(rule, f) and calls.level.unary:  # the rest is made where it is called
        rest = core.Later(recorder, rule, f, in_general)
        return calls.level.unary(f, rule.partials[0], math, rest.call)
    if is_of_numpy_or_pairs(rule, f):
        return recorder.compiled(f, rule, core.Later(recorder, rule, f, wholly_in_general).call)
    return recorder.compiled(f, rule, applier_in_python(calls, rule, f))


def is_of_numpy_or_pairs(rule: Rule, f: Any) -> bool:
    """Whether `f` is a function of NumPy, of two numbers, or `sum`, with a derivative by a rule of plaingrad's own."""
    if rule.users or rule.variants or rule.mutates or rule.kind in WITHOUT_ARITHMETIC:
        return False
    if rule.kind != "composed" and not (rule.own and rule.gives_derivative):
        return False
    if type(f) is BuiltinFunctionType:
        return f is sum or f.__module__ == "numpy" or (f.__module__ == "math" and len(rule.partials) != 1)
    return is_among(type(f), ARRAY_FUNCTIONS) or getattr(f, "__objclass__", None) is np.ndarray


def is_of_one_number(rule: Rule, f: Any) -> bool:
    """Whether `f` is a function of `math` with one slope, by a rule of plaingrad's own."""
    return (
        rule.kind == "scalar"
        and rule.own
        and not rule.variants
        and (len(rule.partials) == 1 or f is math.log)
        and callable(rule.partials[0])
        and type(f) is BuiltinFunctionType
        and f.__module__ == "math"
    )


def in_general(level: Level, rule: Rule, f: Any) -> Any:
    """What to call instead of `f`, which has `rule`, with anything but floats."""
    return applier_in_python(level.calls, rule, f, numbers=False)


def applier_in_python(calls: Calls, rule: Rule, f: Any, numbers: bool = True, chosen: bool = False) -> Any:
    """The same for arguments of any kind; without `numbers` no floats; `chosen` says that the rule is for this call."""
    applied = _applier(calls, rule, f, numbers, chosen)
    place = PLACES_OF_OUT.get(f) if rule.own else None
    return applied if place is None else with_out_by_name(applied, place)


def with_out_by_name(applied: Callable[..., Any], place: int) -> Callable[..., Any]:
    """The same for a function of NumPy that may get its output array by position: it is handed on by name."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) > place and args[place] is not None:
            kwargs = {**kwargs, "out": args[place]}
            args = (*args[:place], None, *args[place + 1 :])
        return applied(*args, **kwargs)

    return call


def _applier(calls: Calls, rule: Rule, f: Any, numbers: bool, chosen: bool) -> Any:
    kind = rule.kind
    level = calls.level
    if rule.may_pass and not chosen:
        return by_choice(calls, rule, f, applier_in_python)
    if type(f) is np.ufunc:
        return ufunc(calls, rule, f)
    if kind == "mover":
        return f
    if kind == "inspector":
        return inspecting(calls, f)
    if kind == "no_tangent":
        if f in specials.INTEGER_PARTS:
            return integer_part(calls, f)
        is_met = type(f) is FunctionType or isinstance(f, type) and f is not bool
        without = f if is_met else inspecting(calls, f)
        return without_derivative(without) if rule.users else without
    if kind == "higher_order":
        return iterating(calls, f)
    if kind == "composed":
        return composed(calls, rule, f)
    if kind == "outside":
        return functools.partial(level.outside, rule.definition, level.order)
    if kind == "asks":
        return level.is_active

    in_floats = rule.own and getattr(f, "__module__", None) == "math"

    def apply_rule(*args: Any, **kwargs: Any) -> Any:
        if kwargs and kwargs.get("out") is not None:
            written = calls.inside(into)
            if array_classes.among((*args, *kwargs.values())) and array_classes.is_numpys(f):

                def write(*args: Any, **kwargs: Any) -> Any:
                    return written(f, args, kwargs)

                return subclasses.call(level, f, args, kwargs, write, True)
            return written(f, args, kwargs)
        if in_floats and (
            any_among(args, EXACT) or any(map(number_classes.is_own, args))
        ):  # which mix with no float
            exact = EXACT.union(number_classes.known)
            args = tuple([calls.prep(float)(x) if is_among(type(x), exact) else x for x in args])
        return level.apply(rule, f, args, kwargs)

    if type(f) is FunctionType and f.__closure__ and not rule.own:
        return of_closure(calls, rule, f, apply_rule)
    if (
        kind == "scalar"
        and numbers
        and level.unary
        and (f is abs or getattr(f, "__module__", None) == "math")
    ):
        partial = rule.partials[0]
        if callable(partial) and (len(rule.partials) == 1 or f is math.log):
            return level.unary(f, partial, math, apply_rule)
    return apply_rule


def wholly_in_general(level: Level, rule: Rule, f: Any) -> Any:
    """The same with anything."""
    return applier_in_python(level.calls, rule, f)


def of_closure(calls: Calls, rule: Rule, f: FunctionType, apply_rule: Any) -> Any:
    """A closure with a rule: what it has captured is no argument, so it must not depend on the inputs."""

    def apply_to_closure(*args: Any, **kwargs: Any) -> Any:
        for name, held in parts_of(f).items():
            if calls.level.is_active(held):
                missing_rule(
                    f,
                    f"It has captured {name!r}, which depends on the differentiated inputs, and its rule knows no "
                    "derivative for that.",
                )
        return apply_rule(*args, **kwargs)

    return apply_to_closure


def without_derivative(f: Callable[..., Any]) -> Callable[..., Any]:
    """What to call instead of a function that the program calls nondifferentiable: it may return its argument."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return stopped_if_active(f(*args, **kwargs))

    return call


def ufunc(calls: Calls, rule: Rule | None, f: np.ufunc) -> Any:
    """A ufunc: by its rule, or with keywords or `out` by the definition that all ufuncs share."""
    level = calls.level
    plain = guarded(calls, f) if rule is not None else python_ufunc(calls, f)
    with_options = rulebook.find(np.ufunc.__call__)
    operands = f.nin
    by_definition = composed(calls, rule, f) if rule is not None and rule.kind == "composed" else None

    def apply_ufunc(*args: Any, **kwargs: Any) -> Any:
        if kwargs or len(args) > operands:
            if rule is None or with_options is None:
                return plain(*args, **kwargs)
            return calls.applier(with_options, np.ufunc.__call__)(f, *args, **kwargs)
        if rule is None:
            return plain(*args)
        if by_definition is not None:
            return by_definition(*args)
        if not rule.gives_derivative or rule.kind == "no_tangent":
            for x in args:
                calls.meet_all(x)
            z = level.native_with_code(f, args, {})
            return stopped_if_active(z) if rule.users else z
        if operands == 1 and rule.kind == "scalar" and type(args[0]) is np.ndarray:
            z = level.elementwise(rule, f, args[0])
            if z is not None:
                return z
        for x in args:
            if kind_of(type(x)) == SEQUENCE:
                make = calls.prep(np.array)
                args = tuple([make(x) if kind_of(type(x)) == SEQUENCE else x for x in args])
                break
        return level.apply(rule, f, args, kwargs)

    return apply_ufunc


def python_ufunc(calls: Calls, f: np.ufunc) -> Any:
    """A ufunc without a rule; one that np.frompyfunc made calls its Python function element by element."""
    plain = guarded(calls, f)
    inner = [x for x in gc.get_referents(f) if callable(x)]
    if not inner:
        return plain

    def element_by_element(*args: Any, **kwargs: Any) -> Any:
        if kwargs or f.nout != 1:
            return plain(*args, **kwargs)
        return calls.inside(objects.elementwise)(inner[0], *args)

    return element_by_element


def composed(calls: Calls, rule: Rule, f: Any) -> Any:
    """A function with a definition in Python, which is run where something depends on the inputs."""
    level = calls.level
    definition = rule.definition
    is_concerned = functools.partial(concerns, level)
    is_numpys = array_classes.is_numpys(f)

    def composed(*args: Any, **kwargs: Any) -> Any:
        if is_numpys and number_classes.known and other_systems.is_given(level, args):
            return other_systems.given_to_others(level, f, args, kwargs)
        if is_numpys and (array_classes.among(args) or (kwargs and array_classes.among(kwargs.values()))):
            return subclasses.call(level, f, args, kwargs, calls.inside(definition), rule.mutates)
        if rule.mutates or any(map(is_concerned, args)) or any(map(is_concerned, kwargs.values())):
            return calls.inside(definition)(*args, **kwargs)
        y = level.native(f, args, kwargs)
        if level.texts and any(map(texts.holds_text, args)):
            texts.check_conversion(level, args, y)
        if level.texts.truncated:
            truncated.check_times(level, y, (*args, *kwargs.values()))
        return y

    return composed


def concerns(level: Level, x: Any) -> bool:
    """Whether a definition must be run for argument `x`: active, or nobody knows what is in it."""
    kind = kind_of(type(x))
    if kind == NOTHING:
        level.calls.meet_all(x)
        return is_heap(type(x)) and not is_listed(type(x))  # a class may iterate, a kind of int compute
    if kind == OBJECT:
        level.calls.meet(x)
        return True
    if kind == MAPPING and any(concerns(level, key) for key in list(x)):
        return True
    if kind == NUMBER and number_classes.known and is_in_array(level, x):
        return True
    return level.slot_of(x) is not None or (kind in (SEQUENCE, MAPPING) and holds_objects(x))


def holds_objects(x: Any) -> bool:
    """Whether an entry of a container is an object."""
    return any(kind_of(t) == OBJECT for t in classes_of(list(x.values() if isinstance(x, dict) else x)))


def compiled_by_numba(calls: Calls, f: Any) -> Any:
    """A function that Numba compiles: one step by its derived native rule, else the Python function it was."""
    level = calls.level

    def compiled(*args: Any, **kwargs: Any) -> Any:
        if (reached := compilers.method_of_jitclass(level, f, args)) is not None:
            method, args = reached
            return method(*args, **kwargs)
        args, kwargs = array_classes.as_numba_has_them(args, kwargs)
        values = (*args, *kwargs.values())
        if not any(map(calls.finds_active, values)):
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
        return calls.prep(level.outside(native.source_of, f, args, kwargs))(*args, **kwargs)

    return compiled
