"""Functions that make text of numbers, which are remembered, and numbers of text, which are compared with these."""

from __future__ import annotations

import csv
import io
import json.encoder
import json.scanner
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from plaingrad import number_classes, rulebook
from plaingrad.engine.calls.c_code import guarded
from plaingrad.engine.compiled import core
from plaingrad.engine.memory.kinds import OBJECT, kind_of
from plaingrad.engine.users_code import adopt
from plaingrad.engine.users_code.class_attributes import has_own_method
from plaingrad.engine.values import text_into_c, texts, truncated
from plaingrad.rulebook import Rule

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level
    from plaingrad.rulebook import Rule


def formatter(f: Any) -> Callable[[Level], Callable[..., Any]]:
    """A function that makes text of numbers: they are remembered."""

    def make(level: Level) -> Callable[..., Any]:
        def formatted(*args: Any, **kwargs: Any) -> Any:
            for x in (*args, *kwargs.values()):
                texts.remember(level, x)
            return f(*args, **kwargs) if kwargs else f(*args)

        return formatted

    return make


def printing(level: Level) -> Callable[..., Any]:
    """print(...): what is printed is remembered, and the file, where it is one."""

    def print_(*values: Any, **options: Any) -> None:
        for x in values:
            texts.remember(level, x)
        if level.texts and "file" in options:
            text_into_c.wrote(level, options["file"])
        print(*values, **options)

    return print_


def parser(f: Any) -> Callable[[Level], Callable[..., Any]]:
    """float(x), complex(x): the rule for numbers; a string is compared with what left as text."""

    def make(level: Level) -> Callable[..., Any]:
        recorder = level.recorder
        if f is float and recorder is not None and is_own(rulebook.find(float)):
            return core.FloatMaker(recorder, core.Later(recorder, None, float, of_anything).call).call
        return of_anything(level, None, f)

    return make


def is_own(rule: Rule | None) -> bool:
    """Whether a rule is plaingrad's alone."""
    return rule is not None and rule.own and not rule.users and not rule.variants


def of_anything(level: Level, rule: None, f: Any) -> Callable[..., Any]:
    """`float` or `complex` of any argument."""
    found = rulebook.find(f)
    of_numbers = level.calls.applier(found, f) if found is not None else guarded(level.calls, f)

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
                        texts.check_number(level, result.item() if isinstance(result, np.generic) else result)
                return result
            if (
                f is float
                and not number_classes.is_own(x)
                and (
                    has_own_method(type(x), "__float__")
                    or (kind_of(type(x)) == OBJECT and not isinstance(x, np.generic))
                )
            ):
                level.meet(x)
                return f(x)  # through the object's own __float__
        return of_numbers(*args, **kwargs)

    return parsed


def reader(f: Any) -> Callable[[Level], Callable[..., Any]]:
    """A function that takes text apart itself: the text is looked at first."""

    def make(level: Level) -> Callable[..., Any]:
        rule = rulebook.find(f)
        if rule is not None:
            of_others = level.calls.applier(rule, f)
        elif f is Fraction:
            adopt.adopt(f)
            of_others = f
        else:
            of_others = guarded(level.calls, f)

        def read(*args: Any, **kwargs: Any) -> Any:
            for x in args if level.texts else ():
                if isinstance(x, texts.TEXT):
                    texts.check(level, x)
                elif f is Decimal and isinstance(x, tuple) and len(x) == 3:  # sign, digits, exponent
                    texts.check(level, "".join(map(str, x[1])), texts.SHORT_DIGITS)
            return of_others(*args, **kwargs)

        return read

    return make


def bytes_of(level: Level, tobytes: Any) -> Callable[..., Any]:
    """a.tobytes(): the bytes are those of the plain call, and remembered."""
    of_others = guarded(level.calls, tobytes)

    def to_bytes(a: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(a, (np.ndarray, np.generic)) and a.dtype.kind in "fc" and level.calls.finds_active(a):
            level.texts.remember_bytes(a)
            return tobytes(a, *args, **kwargs)
        return of_others(a, *args, **kwargs)

    return to_bytes


def bytes_reader(f: Any) -> Callable[[Level], Callable[..., Any] | None]:
    """A function that reads memory as numbers: it is not given bytes of differentiated arrays."""

    def make(level: Level) -> Callable[..., Any] | None:
        rule = rulebook.find(f)
        if rule is not None and not rule.own and (rule.users or rule.variants):
            return None  # the program's own rule is for all of its calls
        plain = guarded(level.calls, f) if rule is None else level.calls.applier(rule, f)

        def read(*args: Any, **kwargs: Any) -> Any:
            if level.texts:
                texts.check_bytes(level, *args, *kwargs.values())
            return plain(*args, **kwargs)

        return read

    return make


def from_file(level: Level) -> Callable[..., Any]:
    """np.fromfile(...): the numbers in a file, which are compared with what left as text."""

    def from_file(*args: Any, **kwargs: Any) -> Any:
        a = np.fromfile(*args, **kwargs)
        if level.texts:
            texts.check_number(level, a)
            if level.texts.raw and args and text_into_c.path_of(args[0]) in level.texts.files:
                texts.check_bytes(level, a.tobytes())
        return a

    return from_file


def astype_of(level: Level, astype: Any) -> Callable[..., Any]:
    """a.astype(dtype): to text, the numbers are remembered; to integers that keep every digit, refused."""
    rule = rulebook.find(astype)
    of_numbers = level.calls.applier(rule, astype) if rule is not None else guarded(level.calls, astype)

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


JsonEncoder = (
    type(json.encoder.c_make_encoder(None, str, str, None, ":", ",", False, False, False))
    if (json.encoder.c_make_encoder is not None)
    else None
)
JsonScanner = json.scanner.c_make_scanner  # None without the C code
CsvReader = type(csv.reader(()))
CsvWriter = type(csv.writer(io.StringIO()))
