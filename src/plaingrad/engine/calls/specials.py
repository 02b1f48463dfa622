"""Builtins that are called otherwise at a level, whatever the rulebook says: the table, and the smaller of them.

Those that look at the frame of their caller are in `frames`, those that make and read text in `text_functions`.
"""

from __future__ import annotations

import builtins
import functools
import math
import operator
import sys
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from types import GetSetDescriptorType
from typing import TYPE_CHECKING, Any

import numpy as np

from plaingrad import rulebook
from plaingrad.class_keys import is_subclass
from plaingrad.engine.calls import caution, validation
from plaingrad.engine.calls.c_code import guarded
from plaingrad.engine.calls.frames import build_class_at, dir_at, eval_at, exec_at, locals_, vars_at
from plaingrad.engine.calls.text_functions import (
    CsvWriter,
    astype_of,
    bytes_of,
    bytes_reader,
    formatter,
    from_file,
    parser,
    printing,
    reader,
)
from plaingrad.engine.compiled import core
from plaingrad.engine.memory.kinds import ARRAY, NUMBER, kind_of
from plaingrad.engine.users_code import adopt, earlier_frames
from plaingrad.engine.users_code.adopt import LruCached
from plaingrad.engine.values import lookups, texts
from plaingrad.rewrite.hooks import BINARY, COMPARE, IN_PLACE, UNARY
from plaingrad.rules.python.text import DIGIT_METHODS, FORMATTING_METHODS, READ_OR_CONVERT, TEXT_OF_ANYTHING

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level

HOOKED = (*BINARY, *IN_PLACE, *UNARY, *COMPARE, "getitem")  # hooks that are functions of `operator` too
INTEGER_PARTS = frozenset((int, round, math.floor, math.ceil, math.trunc))
INTEGER_PARTS |= {float.__int__, float.__trunc__, float.__floor__, float.__ceil__, float.__round__}
EXACT_PARTS = frozenset(("numerator", "denominator", "_numerator", "_denominator"))


def _getattr(level: Level) -> Callable[..., Any]:
    def getattr_(o: Any, name: str, *default: Any) -> Any:
        if not default:
            return level.attr(o, name)
        try:
            return level.attr(o, name)
        except AttributeError:
            return default[0]

    return getattr_


def _setattr(level: Level) -> Callable[..., Any]:
    def setattr_(o: Any, name: str, v: Any, /) -> None:
        level.set_attr(v, o, name)

    return setattr_


def _hasattr(level: Level) -> Callable[..., Any]:
    def hasattr_(o: Any, name: str, /) -> bool:
        level.meet(o)
        return hasattr(o, name)

    return hasattr_


def _delattr(level: Level) -> Callable[..., Any]:
    def delattr_(o: Any, name: str, /) -> None:
        level.meet(o)
        delattr(o, name)

    return delattr_


def _changes_class(f: Any) -> Callable[[Level], Callable[..., Any]]:
    """type.__setattr__ and type.__delattr__, also reached from the Python code of a metaclass."""

    def make(level: Level) -> Callable[..., Any]:
        def change_class(cls: type, *args: Any) -> None:
            f(cls, *args)
            level.calls.class_changed(cls)

        return change_class

    return make


def _next(level: Level) -> Callable[..., Any]:
    def next_(it: Any, *default: Any) -> Any:
        if earlier_frames.is_generator(type(it)) or earlier_frames.is_iterator(type(it)):
            earlier_frames.check(level, it)
        elif type(it) is np.flatiter:
            return level.inside_rule(np.flatiter.__next__, it)
        else:
            level.meet(it)
        result = next(it, *default)
        if level.texts:
            texts.check_number(level, result)
        return result

    return next_


def _checks_class(f: Any) -> Callable[[Level], Any]:
    """isinstance and issubclass, which may run Python code of the class."""

    def make(level: Level) -> Any:
        def check(x: Any, classes: Any, /) -> bool:
            if type(classes) is not type:
                level.meet(x)
                for cls in classes if type(classes) is tuple else (classes,):
                    level.meet(cls)
            return f(x, classes)

        return check

    return make


def _power(level: Level) -> Callable[..., Any] | None:
    rule = rulebook.find(pow)
    if rule is None or not rule.own:
        return None  # the program's own rule is for all of its calls
    by_rule = level.calls.applier(rule, pow)

    def power(*args: Any, **kwargs: Any) -> Any:
        given = dict(zip(("base", "exp", "mod"), args, strict=False)) | kwargs
        if given.keys() == {"base", "exp"} and len(args) + len(kwargs) == 2:
            return level.pow(given["base"], given["exp"])
        return by_rule(*args, **kwargs)  # a modulus has no operator

    return power


def _tuple_made(level: Level) -> Callable[..., Any] | None:
    """tuple.__new__, which named tuples are made by: it moves references, and only its iterable needs a look."""
    rule = rulebook.find(tuple.__new__)
    if rule is None or rule.users:
        return None
    make = tuple.__new__

    def new(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 2 and isinstance(args[0], type):
            cls, entries = args
            adopt.adopt(cls)
            if type(entries) is not tuple and type(entries) is not list:
                args = cls, level.prep(list)(entries)
        return make(*args, **kwargs)

    return new


def _operator(name: str) -> Callable[[Level], Any]:
    return lambda level: getattr(level, name)


def _as_it_is(f: Any) -> Callable[[Level], Any]:
    """A function that looks at its caller's frame in C, or that has nothing to do with numbers."""
    return lambda level: f


_umath = sys.modules.get("numpy._core._multiarray_umath") or sys.modules["numpy.core._multiarray_umath"]
_SPECIAL: dict[Any, Callable[[Any], Any]] = {
    locals: lambda level: locals_,
    vars: vars_at,
    dir: dir_at,
    eval: eval_at,
    exec: exec_at,
    builtins.__build_class__: build_class_at,
    getattr: _getattr,
    setattr: _setattr,
    hasattr: _hasattr,
    delattr: _delattr,
    **{f: parser(f) for f in READ_OR_CONVERT},
    **{f: formatter(f) for f in TEXT_OF_ANYTHING},
    **{f: _operator(name) for name in HOOKED for f in (getattr(operator, name),)},
    **{f: _changes_class(f) for f in (type.__setattr__, type.__delattr__)},
    operator.contains: lambda level: lambda container, x: level.contains(x, container),
    operator.setitem: lambda level: lambda o, k, v: level.setitem(v, o, k),
    next: _next,
    hash: lookups.hashing,
    pow: _power,
    tuple.__new__: _tuple_made,
    print: printing,
    **{f: formatter(f) for f in (_umath.dragon4_positional, _umath.dragon4_scientific)},
    isinstance: _checks_class(isinstance),
    issubclass: _checks_class(issubclass),
    np.fromfile: from_file,
    **{f: bytes_reader(f) for f in (memoryview, np.frombuffer, int.from_bytes)},
    **{f: reader(f) for f in (compile, Fraction, Decimal)},
    warnings.warn: caution.warns,
    **{
        f: _as_it_is(f) for f in (globals, sys._getframe, sys.exc_info, warnings.warn_explicit, np.frompyfunc)
    },
}


def special(f: Any, level: Level) -> Any:
    """What to call instead of one of these builtins, or None."""
    make = _SPECIAL.get(f)
    return None if make is None else make(level)


def is_special(f: Any) -> bool:
    """Whether something else is called instead of `f`, whatever rule it has."""
    try:
        return f in _SPECIAL
    except TypeError:  # it has no hash
        return False


def special_method(t: type, name: str, descriptor: Any, level: Level) -> Any:
    """What to call, with the object first, instead of a method that makes text; None for others."""
    if issubclass(t, type) and name in ("__setattr__", "__delattr__"):
        return special(descriptor, level)
    if t is LruCached and name in ("cache_info", "cache_clear"):
        return level.calls.memos.info if name == "cache_info" else level.calls.memos.forget
    if t is str and name in ("format", "format_map", "__mod__"):
        return formatter(descriptor)(level)
    if name in lookups.METHODS and issubclass(t, dict):
        asked = lookups.method_of(level, name, descriptor)
        if core is None:
            return asked
        made = core.EntryMethod(descriptor, asked, level.texts)
        return made.get if descriptor is dict.get else made.call
    if name == "astype" and kind_of(t) == ARRAY:
        return astype_of(level, descriptor)
    if t.__module__ == validation.MODULE:
        return validation.method(t, name, descriptor, level)
    if name == "tobytes" and (kind_of(t) == ARRAY or issubclass(t, np.generic)):
        return bytes_of(level, descriptor)
    if name == "_set_shape" and kind_of(t) == ARRAY:  # what `a.shape = ...` is in NumPy 2.5 and later

        def set_shape(a: Any, *shape: Any) -> Any:
            level.calls.set_shape(a, *shape, functools.partial(descriptor, a, *shape))

        return set_shape
    if t is GetSetDescriptorType and name == "__set__" and descriptor is not None:

        def set_by_descriptor(attribute: Any, o: Any, v: Any) -> Any:
            if kind_of(type(o)) == ARRAY and is_subclass(attribute.__objclass__, np.ndarray):
                return level.calls.set_attr(v, o, attribute.__name__)
            return descriptor(attribute, o, v)

        return set_by_descriptor
    if t is CsvWriter and name in ("writerow", "writerows"):
        rows = texts.remembered_row if name == "writerow" else texts.remembered_rows
        return lambda writer, x: descriptor(writer, rows(level, x))
    if name in FORMATTING_METHODS and kind_of(t) == NUMBER:
        if name in DIGIT_METHODS:
            return guarded(level.calls, descriptor)
        return formatter(descriptor)(level)
    return None
