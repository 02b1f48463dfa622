"""`scipy.special` for compiled code: its functions of real numbers, called by their addresses in `cython_special`.

`psi`, `jv` and the others are attributes of this module, made when they are first asked for: each is a function that
CPython runs by SciPy's, and Numba by a symbol that stands for the address, so that machine code that is kept on disk
finds it in every process. Python code of slopes has this module in the place of `scipy.special`.
"""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import binding
from numba.core import types
from numba.core.registry import cpu_target

from plaingrad.native.runtime.declare import overload

SYMBOL = "plaingrad_scipy_special_"
CAPSULE = re.compile(r"double \(((?:double, )+)int __pyx_skip_dispatch\)")
MANGLED = re.compile(
    r"(?:__pyx_fuse(?:_\d+)*)?(\w+)"
)  # functions for several types have a number before their name
MOST = 4  # arguments


@functools.cache
def pointers() -> dict[str, tuple[int, int]]:
    """For each function that takes and returns doubles: how many it takes, and its address."""
    from scipy.special import cython_special

    name_of, address_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    address_of.restype, address_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    found = {}
    for mangled, capsule in cython_special.__pyx_capi__.items():
        signature = CAPSULE.fullmatch(name_of(capsule).decode())
        name = MANGLED.fullmatch(mangled)
        count = signature[1].count("double") if signature else 0
        if name is not None and 0 < count <= MOST:
            found[name[1].removeprefix("_")] = count, address_of(capsule, name_of(capsule))
    return found


@functools.cache
def names() -> dict[int, str]:
    """The names of these functions by their addresses."""
    return {address: name for name, (_, address) in pointers().items()}


def has(name: str) -> bool:
    """Whether there is a function of this name."""
    return name in pointers()


def __getattr__(name: str) -> Any:
    if name.startswith("_") or not has(name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, made(name))


def are_overloaded() -> bool:
    """Whether a library, or the user, has told Numba what some functions of `scipy.special` are."""
    from scipy import special

    cpu_target.typing_context.refresh()
    return any(
        cpu_target.typing_context._lookup_global(getattr(special, name)) is not None for name in pointers()
    )


def of_scipy(function: Any) -> Any:
    """The function here that stands for a ufunc of `scipy.special`; None if there is none."""
    name = getattr(function, "__name__", "")
    if type(function) is not np.ufunc or getattr(np, name, None) is function or not has(name):
        return None
    found = __getattr__(name)
    return found if found.stands_for is function else None


def of_address(function: Any) -> Any:
    """The function here that a function of ctypes points to; None if it points elsewhere, or takes other types."""
    name = names().get(ctypes.cast(function, ctypes.c_void_p).value or 0)
    if name is None:
        return None
    kinds = list(function.argtypes or ())
    fits = kinds in (
        [ctypes.c_double] * pointers()[name][0],
        [*[ctypes.c_double] * pointers()[name][0], ctypes.c_int],
    )
    return __getattr__(name) if fits and function.restype is ctypes.c_double else None


def made(name: str) -> Any:
    """The function of this name."""
    from scipy import special

    count, address = pointers()[name]
    ufunc = getattr(special, name)

    function: Any = CALLS[count](ufunc)
    function.__name__ = function.__qualname__ = name
    function.stands_for = ufunc
    binding.add_symbol(SYMBOL + name, address)
    code = types.ExternalFunction(SYMBOL + name, types.float64(*[types.float64] * count, types.int32))
    overload(function, strict=False)(_chosen(code, count, function))
    return function


def _chosen(code: Any, count: int, function: Any) -> Callable[..., Any]:
    """What compiled code runs for arguments of some types."""

    def chosen(*args: Any) -> Any:
        if len(args) != count:
            return None
        if any(isinstance(t, types.Array) for t in args):
            if not all(is_number(getattr(t, "dtype", t)) for t in args):
                return None
            return CALLS[count](elementwise(function))
        if not all(map(is_number, args)):
            return None
        return (OF_SINGLES if all(t == types.float32 for t in args) else OF_NUMBERS)[count](code)

    return chosen


def is_number(t: Any) -> bool:
    """Whether it is a type of real numbers."""
    return isinstance(t, (types.Integer, types.Float, types.Boolean))


@functools.cache
def elementwise(function: Any) -> Any:
    """A function of numbers as one of arrays, which are broadcast."""
    return numba.vectorize(CALLS[pointers()[function.__name__][0]](function))


CALLS: dict[int, Callable[[Any], Any]] = {
    1: lambda f: lambda a: f(a),
    2: lambda f: lambda a, b: f(a, b),
    3: lambda f: lambda a, b, c: f(a, b, c),
    4: lambda f: lambda a, b, c, d: f(a, b, c, d),
}
# The last argument says whether to look for a method of Python's that overrides, which functions do not have.
OF_NUMBERS: dict[int, Callable[[Any], Any]] = {
    1: lambda f: lambda a: f(float(a), np.int32(0)),
    2: lambda f: lambda a, b: f(float(a), float(b), np.int32(0)),
    3: lambda f: lambda a, b, c: f(float(a), float(b), float(c), np.int32(0)),
    4: lambda f: lambda a, b, c, d: f(float(a), float(b), float(c), float(d), np.int32(0)),
}
OF_SINGLES: dict[int, Callable[[Any], Any]] = {
    1: lambda f: lambda a: np.float32(f(float(a), np.int32(0))),
    2: lambda f: lambda a, b: np.float32(f(float(a), float(b), np.int32(0))),
    3: lambda f: lambda a, b, c: np.float32(f(float(a), float(b), float(c), np.int32(0))),
    4: lambda f: lambda a, b, c, d: np.float32(f(float(a), float(b), float(c), float(d), np.int32(0))),
}
