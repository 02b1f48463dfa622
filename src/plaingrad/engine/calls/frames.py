"""Builtins that look at the frame that calls them, and those that make text of numbers or numbers of text.

Rewritten frames have one hidden local; what these builtins show is what a plain frame would show.
"""

from __future__ import annotations

import builtins
import csv
import io
import json.encoder
import json.scanner
import math
import operator
import sys
import warnings
from collections.abc import Callable, Iterator, MutableMapping
from decimal import Decimal
from fractions import Fraction
from types import CodeType, FrameType, GetSetDescriptorType
from typing import TYPE_CHECKING, Any

import numpy as np

from plaingrad import rulebook
from plaingrad.class_keys import is_subclass
from plaingrad.engine.calls import caution
from plaingrad.engine.memory.kinds import ARRAY, NUMBER, OBJECT, kind_of
from plaingrad.engine.users_code import adopt, earlier_frames
from plaingrad.engine.users_code.adopt import LruCached
from plaingrad.engine.users_code.class_attributes import has_own_method
from plaingrad.engine.values import texts, truncated
from plaingrad.rewrite import rewrite_function, rewritten
from plaingrad.rewrite.hooks import BINARY, COMPARE, IN_PLACE, UNARY

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level

HOOKED = (*BINARY, *IN_PLACE, *UNARY, *COMPARE, "getitem")  # hooks that are functions of `operator` too
HIDDEN = ".level"
CO_OPTIMIZED = 1

INTEGER_PARTS = frozenset(
    (
        int,
        round,
        math.floor,
        math.ceil,
        math.trunc,
        float.__int__,
        float.__trunc__,
        float.__floor__,
        float.__ceil__,
        float.__round__,
    )
)
FORMATTERS = frozenset((str, repr, ascii, format))
FORMATTING_METHODS = frozenset(
    (
        "__str__",
        "__repr__",
        "__format__",
        "hex",
        "as_integer_ratio",
        "tobytes",
        "tostring",
        "dumps",
        "dump",
        "tofile",
    )
)
EXACT_PARTS = frozenset(("numerator", "denominator", "_numerator", "_denominator"))
DIGITS = frozenset(("hex", "as_integer_ratio", "tobytes", "tostring", "dumps", "dump", "tofile"))


class VisibleLocals(MutableMapping[str, Any]):
    """`frame.f_locals` since 3.13, which writes through to the frame, without the hidden locals."""

    def __init__(self, mapping: Any) -> None:
        self._mapping = mapping

    def __getitem__(self, name: str) -> Any:
        if name.startswith(HIDDEN):
            raise KeyError(name)
        return self._mapping[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._mapping[name] = value

    def __delitem__(self, name: str) -> None:
        del self._mapping[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._mapping if not name.startswith(HIDDEN))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return repr(dict(self))

    def copy(self) -> dict[str, Any]:
        """The locals now."""
        return dict(self)

    def __getattribute__(self, name: str) -> Any:
        # Which of these the mapping of a frame has depends on the CPython (`pop` came in 3.14), and code asks.
        if name in ("clear", "pop", "popitem") and not hasattr(self._mapping, name):
            raise AttributeError(name)
        return super().__getattribute__(name)


def visible_locals(frame: FrameType) -> Any:
    """`frame.f_locals`, as a plain frame would show it."""
    mapping = frame.f_locals
    if not frame.f_code.co_flags & CO_OPTIMIZED:
        return mapping
    if type(mapping) is dict:  # before 3.13: one dictionary for the frame, refreshed by each look
        for name in [name for name in mapping if name.startswith(HIDDEN)]:
            del mapping[name]
        return mapping
    return VisibleLocals(mapping)


def snapshot_of_locals(frame: FrameType) -> Any:
    """What `locals()` is in `frame`: the namespace itself, or a dictionary of the locals."""
    mapping = visible_locals(frame)
    return dict(mapping) if type(mapping) is VisibleLocals else mapping


def locals_() -> Any:
    """`locals()` of the calling frame."""
    return snapshot_of_locals(sys._getframe(1))


def _vars(level: Level) -> Callable[..., Any]:
    def vars_(*args: Any) -> Any:
        if not args:
            return snapshot_of_locals(sys._getframe(1))
        level.meet(args[0])
        return vars(*args)

    return vars_


def _dir(level: Level) -> Callable[..., Any]:
    def dir_(*args: Any) -> Any:
        if not args:
            return sorted(snapshot_of_locals(sys._getframe(1)))
        level.meet(args[0])
        return dir(*args)

    return dir_


def _namespaces(frame: FrameType, spaces: tuple[Any, ...]) -> tuple[Any, Any]:
    globals_ = spaces[0] if spaces else None
    locals_ = spaces[1] if len(spaces) > 1 else None
    if globals_ is None:
        globals_ = frame.f_globals
        locals_ = snapshot_of_locals(frame) if locals_ is None else locals_
    elif locals_ is None:
        locals_ = globals_
    if isinstance(globals_, dict) and "__builtins__" not in globals_:
        globals_["__builtins__"] = builtins
    return globals_, locals_


def _compiled(source: Any, mode: str, frame: FrameType, level: Level) -> CodeType:
    if isinstance(source, CodeType):
        return rewritten(source)
    if level.texts and isinstance(source, (str, bytes)):
        texts.check(level, source)
    if mode == "eval" and isinstance(source, str):
        source = source.lstrip(" \t")
    flags = frame.f_code.co_flags & _FUTURE
    return rewritten(compile(source, "<string>", mode, flags, dont_inherit=True))


_FUTURE = 0
for _name in __import__("__future__").all_feature_names:
    _FUTURE |= getattr(__import__("__future__"), _name).compiler_flag


def _eval(level: Level) -> Callable[..., Any]:
    def eval_(source: Any, globals: Any = None, locals: Any = None, /, **named: Any) -> Any:
        frame = sys._getframe(1)
        globals = named.get("globals", globals)
        locals = named.get("locals", locals)
        spaces = _namespaces(frame, (globals, locals))
        return eval(_compiled(source, "eval", frame, level), *spaces)

    return eval_


def _exec(level: Level) -> Callable[..., Any]:
    def exec_(source: Any, globals: Any = None, locals: Any = None, /, **named: Any) -> Any:
        frame = sys._getframe(1)
        globals = named.pop("globals", globals)
        locals = named.pop("locals", locals)
        spaces = _namespaces(frame, (globals, locals))
        return exec(_compiled(source, "exec", frame, level), *spaces, **named)

    return exec_


def _build_class(level: Level) -> Callable[..., Any]:
    def build_class(body: Any, *args: Any, **kwargs: Any) -> Any:
        for base in args[1:]:
            level.meet(base)
        if "metaclass" in kwargs:
            level.meet(kwargs["metaclass"])
        return builtins.__build_class__(rewrite_function(body), *args, **kwargs)

    return build_class


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


def formatter(f: Any) -> Callable[[Level], Callable[..., Any]]:
    """A function that makes text of numbers: they are remembered."""

    def make(level: Level) -> Callable[..., Any]:
        def formatted(*args: Any, **kwargs: Any) -> Any:
            for x in (*args, *kwargs.values()):
                texts.remember(level, x)
            return f(*args, **kwargs) if kwargs else f(*args)

        return formatted

    return make


def _print(level: Level) -> Callable[..., Any]:
    """print(...): what is printed is remembered, and the file, where it is one."""

    def print_(*values: Any, **options: Any) -> None:
        for x in values:
            texts.remember(level, x)
        if level.texts and "file" in options:
            texts.wrote(level, options["file"])
        print(*values, **options)

    return print_


def _parser(f: Any) -> Callable[[Level], Callable[..., Any]]:
    """float(x), complex(x): the rule for numbers; a string is compared with what left as text."""

    def make(level: Level) -> Callable[..., Any]:
        rule = rulebook.find(f)
        of_numbers = level.calls.applier(rule, f) if rule is not None else level.calls.guarded(f)

        def parsed(*args: Any, **kwargs: Any) -> Any:
            if len(args) == 1 and not kwargs:
                x = args[0]
                if type(x) is float and f is float:
                    return x
                if isinstance(x, (str, bytes, bytearray)):
                    result = f(x)
                    if level.texts:
                        texts.check(level, x)
                        if "_" in texts.decoded(x):  # between digits
                            texts.check_number(
                                level, result.item() if isinstance(result, np.generic) else result
                            )
                    return result
                if f is float and (
                    has_own_method(type(x), "__float__")
                    or (kind_of(type(x)) == OBJECT and not isinstance(x, np.generic))
                ):
                    level.meet(x)
                    return f(x)  # through the object's own __float__
            return of_numbers(*args, **kwargs)

        return parsed

    return make


def _reader(f: Any) -> Callable[[Level], Callable[..., Any]]:
    """A function that takes text apart itself: the text is looked at first."""

    def make(level: Level) -> Callable[..., Any]:
        rule = rulebook.find(f)
        if rule is not None:
            guarded = level.calls.applier(rule, f)
        elif f is Fraction:
            adopt.adopt(f)
            guarded = f
        else:
            guarded = level.calls.guarded(f)

        def read(*args: Any, **kwargs: Any) -> Any:
            for x in args if level.texts else ():
                if isinstance(x, texts.TEXT):
                    texts.check(level, x)
                elif f is Decimal and isinstance(x, tuple) and len(x) == 3:  # sign, digits, exponent
                    texts.check(level, "".join(map(str, x[1])), texts.SHORT_DIGITS)
            return guarded(*args, **kwargs)

        return read

    return make


def _from_file(level: Level) -> Callable[..., Any]:
    """np.fromfile(...): the numbers in a file, which are compared with what left as text."""

    def from_file(*args: Any, **kwargs: Any) -> Any:
        a = np.fromfile(*args, **kwargs)
        if level.texts:
            texts.check_number(level, a)
        return a

    return from_file


def _astype(level: Level, astype: Any) -> Callable[..., Any]:
    """a.astype(dtype): to text, the numbers are remembered; to integers that keep every digit, refused."""
    rule = rulebook.find(astype)
    of_numbers = level.calls.applier(rule, astype) if rule is not None else level.calls.guarded(astype)

    def converted(a: Any, *args: Any, **kwargs: Any) -> Any:
        dtype = args[0] if args else kwargs.get("dtype", float)
        if dtype is not float and a.dtype.kind in "fc" and level.region(a) is not None:
            kind = np.dtype(dtype).kind
            if kind in texts.TEXT_DTYPES:
                texts.remember_elements(level, a)
            elif kind in "iu" and np.any((abs(a) >= truncated.INTEGER_LIMIT) & np.isfinite(a)):
                truncated.refuse_digits("astype")
            elif kind in "iu" and a.size <= 1000:
                whole = of_numbers(a, *args, **kwargs)
                level.texts.truncated.update(np.ravel(whole).tolist())
                return whole
        return of_numbers(a, *args, **kwargs)

    return converted


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


def _operator(name: str) -> Callable[[Level], Any]:
    return lambda level: getattr(level, name)


def _as_it_is(f: Any) -> Callable[[Level], Any]:
    """A function that looks at its caller's frame in C, or that has nothing to do with numbers."""
    return lambda level: f


JsonEncoder = (
    type(json.encoder.c_make_encoder(None, str, str, None, ":", ",", False, False, False))
    if (json.encoder.c_make_encoder is not None)
    else None
)

JsonScanner = json.scanner.c_make_scanner  # None without the C code
CsvReader = type(csv.reader(()))
CsvWriter = type(csv.writer(io.StringIO()))
_umath = sys.modules.get("numpy._core._multiarray_umath") or sys.modules["numpy.core._multiarray_umath"]

_SPECIAL: dict[Any, Callable[[Any], Any]] = {
    locals: lambda level: locals_,
    vars: _vars,
    dir: _dir,
    eval: _eval,
    exec: _exec,
    builtins.__build_class__: _build_class,
    getattr: _getattr,
    setattr: _setattr,
    hasattr: _hasattr,
    delattr: _delattr,
    float: _parser(float),
    complex: _parser(complex),
    **{
        f: _parser(f)
        for f in (np.float16, np.float32, np.float64, np.longdouble, np.complex64, np.complex128)
    },
    **{f: formatter(f) for f in FORMATTERS},
    **{f: _operator(name) for name in HOOKED for f in (getattr(operator, name),)},
    **{f: _changes_class(f) for f in (type.__setattr__, type.__delattr__)},
    operator.contains: lambda level: lambda container, x: level.contains(x, container),
    operator.setitem: lambda level: lambda o, k, v: level.setitem(v, o, k),
    next: _next,
    pow: _power,
    print: _print,
    **{f: formatter(f) for f in (_umath.dragon4_positional, _umath.dragon4_scientific)},
    isinstance: _checks_class(isinstance),
    issubclass: _checks_class(issubclass),
    np.fromfile: _from_file,
    **{f: _reader(f) for f in (compile, Fraction, Decimal)},
    warnings.warn: caution.warns,
    **{
        f: _as_it_is(f) for f in (globals, sys._getframe, sys.exc_info, warnings.warn_explicit, np.frompyfunc)
    },
}


def special(f: Any, level: Level) -> Any:
    """What to call instead of one of these builtins, or None."""
    make = _SPECIAL.get(f)
    return None if make is None else make(level)


def special_method(t: type, name: str, descriptor: Any, level: Level) -> Any:
    """What to call, with the object first, instead of a method that makes text; None for others."""
    if issubclass(t, type) and name in ("__setattr__", "__delattr__"):
        return special(descriptor, level)
    if t is LruCached and name in ("cache_info", "cache_clear"):
        return level.calls.memos.info if name == "cache_info" else level.calls.memos.forget
    if t is str and name in ("format", "format_map", "__mod__"):
        return formatter(descriptor)(level)
    if name == "astype" and kind_of(t) == ARRAY:
        return _astype(level, descriptor)
    if name == "_set_shape" and kind_of(t) == ARRAY:  # what `a.shape = ...` is in NumPy 2.5 and later

        def set_shape(a: Any, *shape: Any) -> Any:
            level.calls.check_layout(a, "shape")
            return descriptor(a, *shape)

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
        if name in DIGITS:
            return level.calls.guarded(descriptor)
        return formatter(descriptor)(level)
    return None
