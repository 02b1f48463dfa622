"""Arguments on their way in, gradients on their way out: what Numba takes in place of what users pass.

Numbers, arrays and tuples go in as they are. Of a dataclass instance, and of a differentiated instance of a `jitclass`,
goes in a named tuple of its fields, of a list a tuple, of a dictionary with string keys a tuple of its values; the
front end knows such a tuple as Numba's own type of dictionaries with known keys, and `keyed` replaces what a program
reads from it by key. Gradients come out with the structure of the arguments, as the plain tier gives them.
"""

from __future__ import annotations

import functools
import inspect
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError
from numba.np.ufunc.dufunc import DUFunc
from numba.stencils.stencil import StencilFunc

from plaingrad.class_keys import is_own_key
from plaingrad.errors import ArgumentError, NativeError
from plaingrad.native.analysis.effects import effects_of
from plaingrad.native.analysis.users_functions import has_own_rule
from plaingrad.native.border.aliases import name_of, refuse_captured
from plaingrad.native.border.directions import cotangents
from plaingrad.native.border.records import (
    class_of,
    differentiated,
    fields_of,
    fields_type,
    is_record,
    is_whole,
)
from plaingrad.native.frontend.current import as_now, dispatcher_of
from plaingrad.native.frontend.meaning import as_declared
from plaingrad.native.program.dispatchers import is_dispatcher, is_plain, python_function
from plaingrad.native.program.value_types import has_tangent

LONGEST = 64  # entries of a list or dictionary: the compiled program has a variable for every one


@dataclass(frozen=True, slots=True)
class Taken:
    """A call as the native tier takes it.

    Attributes:
        f: the function or dispatcher.
        args: the arguments by parameter, as Numba takes them.
        signature: their types, as the front end takes them.
        positions: the parameters to differentiate.
        given: the arguments by parameter, as the user passed them.
        wanted: of every differentiated argument the parameter, and the place in the tuple of `*args` or None.
    """

    f: Any
    args: tuple[Any, ...]
    signature: tuple[Any, ...]
    positions: tuple[int, ...]
    given: tuple[Any, ...]
    wanted: tuple[tuple[int, int | None], ...]

    def gradients(self, bars: list[Any], shadows: list[Any]) -> tuple[Any, ...]:
        """The gradients, from cotangents of numbers and shadows of arrays."""
        found = cotangents(self.given, self.signature, self.positions, bars, shadows)
        named = dict(zip(self.positions, found, strict=True))
        return tuple([named[k] if place is None else named[k][place] for k, place in self.wanted])

    def gradients_of(self, bars: list[Any]) -> tuple[Any, ...]:
        """The gradients, from cotangents of numbers and of arrays in the order of the arguments."""
        numbers = [bar for bar in bars if not isinstance(bar, np.ndarray)]
        return self.gradients(numbers, [bar for bar in bars if isinstance(bar, np.ndarray)])


def taken(f: Any, args: tuple[Any, ...], positions: tuple[int, ...], kwargs: dict[str, Any]) -> Taken:
    """A call f(*args, **kwargs), of which the arguments at `positions` are differentiated.

    Raises:
        NativeError: an argument is nothing that Numba takes; or an array of whole numbers, to be floats, is written.
        ArgumentError: a differentiated argument has no tangent.
    """
    floats = any(isinstance(args[k], np.ndarray) and is_whole(args[k]) for k in positions if k < len(args))
    args = tuple([differentiated(x) if k in positions else x for k, x in enumerate(args)])
    function, first, more = opened(f)
    function = written_out(function, len(args))
    given = bound(function, (*first, *args), {**more, **kwargs})
    rest = rest_of(function)
    wanted = tuple(
        [(k, None) if rest is None or k < rest else (rest, k - rest) for k in _shifted(positions, first)]
    )
    native = packed(given)
    signature = signature_of(given)
    if rest is not None:
        signature = with_rest(signature, rest)
    if has_own_rule(function):
        raise NativeError(
            f"`{name_of(function)}` has a rule of its own, which is Python code, or was declared constant.\n"
            "  To go on: tier='plain' goes by the rule.\n  See docs: errors#native"
        )
    native, signature = as_declared(function, native, signature, tuple([k for k, _ in wanted]))
    function = as_now(function, signature)
    refuse_captured(function, native, signature)
    for (k, place), n in zip(wanted, positions, strict=True):
        t = signature[k] if place is None else list(signature[k])[place]
        if not has_tangent(t):
            hint = ""
            if isinstance(t, (types.ListType, types.DictType)):
                hint = "\n  To go on: pass a list, a tuple, or a dictionary with string keys, of Python's."
            raise ArgumentError(
                f"argument {n} is of Numba type {t}, which has no tangent.{hint}\n  See docs: errors#argument"
            )
    if floats and effects_of(function, signature).writes:
        raise NativeError(
            f"`{getattr(function, '__name__', function)}` writes into its arguments, and is differentiated by an array "
            "of whole numbers, of which it is given a copy in floats.\n"
            "  To go on: pass floats, or use tier='plain'.\n  See docs: errors#native"
        )
    at = tuple(sorted({k for k, _ in wanted}))
    return Taken(function, native, signature, at, given, wanted)


def _shifted(positions: tuple[int, ...], first: tuple[Any, ...]) -> list[int]:
    return [k + len(first) for k in positions]


# In -------------------------------------------------------------------------------------------------------------------


def opened(f: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """(function, arguments that come first, keywords): of methods, partial functions and callable objects too."""
    if isinstance(f, MethodType):
        return f.__func__, (f.__self__,), {}
    if isinstance(f, functools.partial):
        function, first, more = opened(f.func)
        return function, (*first, *f.args), {**more, **f.keywords}
    own = vars(type(f)).get("__call__")
    of_numba = type(f).__module__.startswith("numba.")
    if of_numba or not isinstance(own, FunctionType):
        return f, (), {}
    return own, (f,), {}


def written_out(f: Any, count: int) -> Any:
    """A Python function for a function in C that the rulebook knows; others as they are.

    Raises:
        NativeError: it is nothing that Numba could compile.
    """
    if isinstance(f, FunctionType) or is_dispatcher(f):
        return f
    if isinstance(f, (BuiltinFunctionType, np.ufunc, DUFunc, StencilFunc)) or isinstance(
        getattr(f, "_dispatcher", None), Dispatcher
    ):
        return _call_of(f, count)
    raise NativeError(
        f"`{name_of(f)}` is no Python function that Numba could compile.\n"
        "  To go on: tier='plain' takes whatever can be called.\n  See docs: errors#native"
    )


@functools.lru_cache(256)
def _call_of(f: Any, count: int) -> Any:
    """The function that calls `f` with that many arguments."""
    name = name_of(f) if name_of(f).isidentifier() else "function"
    names = ", ".join(f"x{k}" for k in range(count))
    space: dict[str, Any] = {"f": f, "__name__": getattr(f, "__module__", None) or "builtins"}
    exec(compile(f"def {name}({names}):\n    return f({names})\n", f"<{name}>", "exec"), space)
    return space[name]


def rest_of(f: Any) -> int | None:
    """Which parameter takes any number of arguments; None if there is none."""
    code = getattr(python_function(f), "__code__", None)
    return code.co_argcount if code is not None and code.co_flags & inspect.CO_VARARGS else None


def bound(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """All arguments in the order of the parameters, defaults filled in; a tuple of those that `*args` takes.

    Raises:
        NativeError: the function takes `**kwargs`.
        TypeError: the arguments do not fit the parameters.
    """
    function = python_function(f)
    code = getattr(function, "__code__", None)
    usual = code is not None and not code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    if usual and not kwargs and len(args) == code.co_argcount and not code.co_kwonlyargcount:
        return args
    arguments = inspect.signature(function).bind(*args, **kwargs)
    arguments.apply_defaults()
    if code is not None and code.co_flags & inspect.CO_VARKEYWORDS:
        raise NativeError(
            f"`{function.__name__}` takes **keywords, which Numba does not know.\n"
            "  To go on: tier='plain' differentiates it as it is.\n  See docs: errors#native"
        )
    return tuple(arguments.arguments.values())


class Unusual(Exception):
    """Something that Numba has no type for, at this place in an argument."""


def packed(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """`args` as compiled functions take them.

    Raises:
        NativeError: something in them is nothing that Numba takes, or is there twice.
    """
    found = []
    for k, x in enumerate(args):
        cls = type(x)
        if cls is float or cls is int or cls is np.ndarray:
            found.append(x)
            continue
        try:
            found.append(_packed(x, set()))
        except Unusual as error:
            where = f"argument {k}{error.args[0]}"
            raise NativeError(
                f"{where}, {error.args[1]}.\n  To go on: pass numbers, arrays, and tuples, short lists, dataclasses "
                "and dictionaries with string keys of these, or use tier='plain'.\n  See docs: errors#native"
            ) from None
    return tuple(found)


def _packed(x: Any, seen: set[int]) -> Any:
    """`x` in the form that goes in.

    Raises:
        Unusual: (place, why not).
    """
    if isinstance(x, (list, dict)) or is_record(x):
        if id(x) in seen:
            raise Unusual(
                "", f"a {type(x).__name__}, is there twice, so that its gradient would be one object"
            )
        seen.add(id(x))
    if isinstance(x, (list, dict)) and len(x) > LONGEST:
        raise Unusual(
            "", f"a {type(x).__name__} of {len(x)} entries, is too long to be compiled entry by entry"
        )
    if type(x) is dict:
        if not all(type(key) is str for key in x):
            raise Unusual("", "a dictionary, has keys that are no strings")
        return tuple([_inside(value, f"[{key!r}]", seen) for key, value in x.items()])
    if type(x) is list or type(x) is tuple:
        return tuple([_inside(value, f"[{k}]", seen) for k, value in enumerate(x)])
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*[_inside(value, f".{name}", seen) for name, value in zip(x._fields, x, strict=True)])
    if is_record(x):
        fields = fields_of(x)
        made = fields_type(class_of(x).__name__, tuple(fields))
        return made(*[_inside(value, f".{name}", seen) for name, value in fields.items()])
    if type(x) is FunctionType and is_plain(x):
        return dispatcher_of(x)
    return x


def _inside(x: Any, place: str, seen: set[int]) -> Any:
    try:
        return _packed(x, seen)
    except Unusual as error:
        raise Unusual(place + error.args[0], error.args[1]) from None


def signature_of(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The types that the front end takes arguments for.

    Raises:
        NativeError: Numba has no type for one of them.
    """
    found = [type_of(x, f"argument {k}") for k, x in enumerate(args)]
    key = tuple(map(id, found))
    known = _signatures.get(key)
    if known is None:
        known = Signature(found)
        if all(t is types.float64 or isinstance(t, types.Array) for t in found):
            _signatures[key] = known  # it keeps the types alive whose ids are the key
    return known


class Signature(tuple[Any, ...]):
    """Types of arguments, hashed once: Numba hashes types in Python, and a call is looked up by them in many tables."""

    def __hash__(self) -> int:
        known = self.__dict__.get("known")
        if known is None:
            self.__dict__["known"] = known = tuple.__hash__(self)
        return known  # type: ignore[no-any-return]


_signatures: dict[tuple[int, ...], Signature] = {}
_array_types: dict[Any, Any] = {}  # (dtype, rank, flags) -> type: Numba takes ten times as long to find it


def type_of(x: Any, place: str) -> Any:
    """The Numba type of an argument, with dictionaries as dictionaries of known keys."""
    if type(x) is float:
        return types.float64
    if type(x) is np.ndarray:
        key = x.dtype, x.ndim, x.flags.num
        t = _array_types.get(key)
        if t is None:
            t = _array_types[key] = _numba_type(x, place)
        return t
    if type(x) is dict:
        kinds = {types.literal(key): type_of(value, f"{place}[{key!r}]") for key, value in x.items()}
        return types.LiteralStrKeyDict(kinds, {key: k for k, key in enumerate(x)})
    if type(x) is list or type(x) is tuple:
        return types.BaseTuple.from_types([type_of(value, f"{place}[{k}]") for k, value in enumerate(x)])
    if is_record(x):
        fields = fields_of(x)
        made = fields_type(class_of(x).__name__, tuple(fields))
        return _named(made, [type_of(value, f"{place}.{name}") for name, value in fields.items()])
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return _named(type(x), [type_of(v, f"{place}.{name}") for name, v in zip(x._fields, x, strict=True)])
    if type(x) is FunctionType and is_plain(x):
        x = dispatcher_of(x)
    return _numba_type(x, place)


def _numba_type(x: Any, place: str) -> Any:
    """The type that Numba finds.

    Raises:
        NativeError: it has none, or one that derivatives are not followed in.
    """
    try:
        t = numba.typeof(x)
    except (ValueError, NumbaError):
        t = None
    except TypeError:  # it looks for a class without hash in a table
        if is_own_key(type(x)):
            raise
        t = None
    if isinstance(x, np.ndarray) and type(x) is not np.ndarray and type(x) is not np.memmap:
        t = None  # arithmetic of its own, of which Numba knows nothing: matrices multiply
    if t is None or isinstance(t, (types.List, types.Set, types.PyObject)):
        raise NativeError(
            f"{place}, of type {type(x).__name__}, is nothing that Numba takes.\n  To go on: pass numbers, arrays, and "
            "tuples, lists, dataclasses and dictionaries with string keys of these, or use tier='plain'.\n"
            "  See docs: errors#native"
        )
    return t


def _named(cls: Any, parts: list[Any]) -> Any:
    if any(isinstance(t, types.LiteralStrKeyDict) for t in parts):  # whose keys `from_types` would lose
        return types.NamedTuple(tuple(parts), cls)
    return types.BaseTuple.from_types(parts, cls)


def with_rest(signature: tuple[Any, ...], k: int) -> tuple[Any, ...]:
    """`signature`, the tuple of parameter `k` marked as that of `*args`."""
    return (*signature[:k], types.StarArgTuple.from_types(list(signature[k])), *signature[k + 1 :])


# Memory ---------------------------------------------------------------------------------------------------------------


# Out ------------------------------------------------------------------------------------------------------------------
