"""Classes of arrays: which arguments of a call have one that NumPy asks, and what such a class defines."""

from __future__ import annotations

import builtins
import operator
import types
from collections.abc import Iterable
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from plaingrad import origin, rulebook
from plaingrad.class_keys import all_among, is_among
from plaingrad.engine.memory.kinds import is_heap
from plaingrad.engine.users_code.class_attributes import DESCRIPTORS, lookup
from plaingrad.rulebook import Rule

if TYPE_CHECKING:
    pass

ArrayFunction = type(np.sum)
CODES_OF_PYTHON = frozenset((types.BuiltinFunctionType, FunctionType))
BINARY_OPERATORS = {
    getattr(operator, name): name.rstrip("_")
    for name in (
        *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"),
        *("and_", "or_", "xor", "lshift", "rshift"),
    )
}
UNARY_OPERATORS = {operator.neg: "neg", operator.pos: "pos", operator.invert: "invert"}
UNARY_OPERATORS |= {operator.abs: "abs", builtins.abs: "abs"}
# What a class may define without any influence on what NumPy's functions do with its arrays, but for the class and the
# attributes of their results.
NEUTRAL = frozenset(
    "__class__ __class_getitem__ __dict__ __dir__ __doc__ __format__ __getnewargs__ __getstate__ __hash__ __init__ "
    "__init_subclass__ __module__ __new__ __qualname__ __reduce__ __reduce_ex__ __repr__ __setstate__ __sizeof__ "
    "__slots__ __str__ __subclasshook__ __weakref__ __array_finalize__ __array_priority__ __annotations__ "
    "__static_attributes__ __firstlineno__ __orig_bases__ __parameters__ __abstractmethods__ __del__ dump dumps tofile "
    "tostring tobytes".split()
)
RELEVANT = frozenset(dir(np.ndarray)) - NEUTRAL
WRAP = vars(np.ndarray)["__array_wrap__"]


def is_subclassed(x: Any) -> bool:
    """Whether `x` is an array of a subclass of ndarray."""
    t = type(x)
    return t is not np.ndarray and issubclass(t, np.ndarray)


def among(values: Iterable[Any], depth: int = 2) -> bool:
    """Whether NumPy asks a class before it works on `values`, or what is in lists and tuples there.

    That is an array of a subclass of ndarray, or an object with `__array_function__` or `__array_ufunc__`.
    """
    for x in values:
        t = type(x)
        if t is np.ndarray or t is float or t is int:
            continue
        if t is list or t is tuple:
            if depth and x and (len(x) < 8 or not all_among(x, ORDINARY)) and among(x, depth - 1):
                return True
        elif issubclass(t, np.ndarray) or (is_heap(t) and has_protocol(t)):
            return True
    return False


ORDINARY = frozenset((float, int, complex, bool, str, type(None), slice, np.ndarray, np.float64))


def among_entries(x: Any) -> bool:
    """As `among`, of one list or tuple, which may be long."""
    return among((x,), 2)


def has_protocol(cls: type) -> bool:
    """Whether NumPy's functions or ufuncs leave the word to `cls`, which is no array."""
    if issubclass(cls, (type, np.generic)):
        return False
    return lookup(cls, "__array_function__") is not None or lookup(cls, "__array_ufunc__") is not None


def speaks(f: Any, cls: type) -> bool:
    """Whether the function `f` of NumPy leaves the word to `cls`, which is no array."""
    if type(f) is ArrayFunction:
        return lookup(cls, "__array_function__") is not None
    if f in UNARY_OPERATORS:
        return lookup(cls, f"__{UNARY_OPERATORS[f]}__") is not None
    if f in BINARY_OPERATORS:
        return True
    return is_ufunc(f) and lookup(cls, "__array_ufunc__") is not None


def is_ufunc(f: Any) -> bool:
    """Whether `f` is a ufunc, or a method of ufuncs."""
    return type(f) is np.ufunc or (is_among(type(f), DESCRIPTORS) and f.__objclass__ is np.ufunc)


def flat(values: Iterable[Any], depth: int = 2) -> list[Any]:
    """`values`, and what is in lists and tuples there."""
    found: list[Any] = []
    for x in values:
        if depth and (type(x) is list or type(x) is tuple):
            found += flat(x, depth - 1)
        else:
            found.append(x)
    return found


def arrays_in(values: Iterable[Any], depth: int = 2) -> list[np.ndarray]:
    """The arrays of subclasses of ndarray in `values`, each once."""
    found: list[np.ndarray] = []
    for x in values:
        if is_subclassed(x):
            found.append(x)
        elif depth and (type(x) is list or type(x) is tuple):
            found += arrays_in(x, depth - 1)
        elif depth and type(x) is dict:
            found += arrays_in(x.values(), depth - 1)
    return list({id(x): x for x in found}.values())


def is_numpys(f: Any) -> bool:
    """Whether `f` is code of NumPy's that works on arrays."""
    t = type(f)
    if t is np.ufunc or t is ArrayFunction:
        return True
    if is_among(t, DESCRIPTORS):
        return f.__objclass__ is np.ndarray or f.__objclass__ is np.ufunc
    if is_among(t, CODES_OF_PYTHON):
        module = getattr(f, "__module__", None)
        if f in BINARY_OPERATORS or f in UNARY_OPERATORS:
            return True
        return origin.package_of(module) == "numpy" and not origin.is_of(module, ("numpy.ma",))
    return False


def of_mathematics(f: Any) -> bool:
    """Whether `f` is a function of `math`, which makes a float of its argument first."""
    return type(f) is types.BuiltinFunctionType and f.__module__ == "math"


def overrides(cls: type, name: str) -> bool:
    """Whether a class between `cls` and ndarray defines `name`."""
    found = lookup(cls, name)
    return found is not None and found is not vars(np.ndarray).get(name)


def has_methods(cls: type) -> bool:
    """Whether NumPy's functions that are written in Python may find methods of the program in instances of `cls`."""
    for base in cls.__mro__:
        if base is np.ndarray:
            return False
        if not RELEVANT.isdisjoint(base.__dict__):
            return True
    return False


ARRAY_FUNCTION = vars(np.ndarray)["__array_function__"]


def implementers(args: Any, kwargs: dict[str, Any]) -> list[Any]:
    """The arguments with an `__array_function__`, plain arrays too, one of each class, in the order NumPy asks them.

    That is their own order, but an instance of a subclass comes before one of its base class.
    """
    found: list[Any] = []
    values = [*args, *kwargs.values()]
    for x in values:
        if type(x) is list or type(x) is tuple:
            values += x if len(x) < 1000 else ()
    for x in values:
        t = type(x)
        if lookup(t, "__array_function__") is None or any(type(other) is t for other in found):
            continue
        place = next((k for k, other in enumerate(found) if issubclass(t, type(other))), len(found))
        found.insert(place, x)
    return found


def has_overrider(args: Any, kwargs: dict[str, Any]) -> bool:
    """Whether the class of an argument has an `__array_function__` of its own."""
    return any(
        lookup(type(x), "__array_function__") is not ARRAY_FUNCTION for x in implementers(args, kwargs)
    )


def arrays_of(args: Any, kwargs: dict[str, Any]) -> list[np.ndarray]:
    """All arrays among the arguments."""
    values = [*args, *kwargs.values()]
    for x in values:
        if type(x) is list or type(x) is tuple:
            values += x if len(x) < 1000 else ()
    return [x for x in values if isinstance(x, np.ndarray)]


def rule_of_implementation(f: FunctionType) -> Rule | None:
    """The rule of the public function of NumPy behind which `f` is the Python code; classes call that directly."""
    module = f.__module__
    if origin.package_of(module) != "numpy" or hasattr(f, "_implementation"):
        return None
    public = f.__globals__.get(f.__name__)
    if type(public) is ArrayFunction and public._implementation is f:
        return rulebook.find(public)
    return None


def bare(a: np.ndarray) -> np.ndarray:
    """`a` as a plain array over the same memory."""
    return np.ndarray.view(a, np.ndarray)


def as_numba_has_them(args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The arguments of a function that Numba has compiled: to it an array of any class is plain memory."""
    if not among((*args, *kwargs.values())):
        return args, kwargs
    plain = {id(a): bare(a) for a in arrays_in((*args, *kwargs.values()))}
    return replaced(args, plain), replaced(kwargs, plain)


def replaced(x: Any, table: dict[int, Any], depth: int = 2) -> Any:
    """`x` with the arrays that `table` knows by identity replaced."""
    found = table.get(id(x))
    if found is not None:
        return found
    t = type(x)
    if depth and (t is list or t is tuple):
        return t([replaced(part, table, depth - 1) for part in x])
    if depth and t is dict:
        return {key: replaced(part, table, depth - 1) for key, part in x.items()}
    return x
