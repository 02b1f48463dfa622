"""What a program reads and calls from outside: globals, captured variables, functions that Numba knows."""

from __future__ import annotations

import ast
import builtins
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
from numba.np.ufunc.dufunc import DUFunc

from plaingrad import origin
from plaingrad.native.objects import axes
from plaingrad.native.objects.engine import MISSING, Frame
from plaingrad.native.objects.values import Items, Keys, Leaf, Static, Tup
from plaingrad.native.program.dispatchers import is_dispatcher


def content_of(cell: Any) -> Any:
    """What a captured variable holds."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def global_of(space: dict[str, Any], name: str) -> Any:
    """What a global name stands for."""
    found = space.get(name, MISSING)
    return getattr(builtins, name, MISSING) if found is MISSING else found


def known(f: Frame, x: Any, name: str) -> Any:
    """A value from outside."""
    if isinstance(x, tuple):
        return Tup(tuple([known(f, part, name) for part in x]), type(x))
    if type(x) in (list, dict) and is_table(x):
        f.whole.tables.append(x)
        f.whole.check(words_of, x)  # compared with every call
        return table(f, x)
    if x is MISSING or isinstance(x, (list, dict, set, bytearray)):
        raise f.refuse(f"`{name}`, from outside the function, is a {type(x).__name__}, which may change")
    if not is_simple(x):
        raise f.refuse(f"`{name}`, from outside the function, is an object of type {type(x).__name__}")
    return Static(x)


LONGEST = 64  # entries of a list or dictionary from outside


def is_table(x: Any) -> bool:
    """Whether a list or dictionary from outside holds numbers, text, and such lists and dictionaries only."""
    if type(x) is dict:
        return len(x) <= LONGEST and all(type(k) in (str, int) for k in x) and all(map(is_table, x.values()))
    if type(x) is list:
        return len(x) <= LONGEST and all(map(is_table, x))
    return x is None or type(x) in (int, float, complex, str, bool)


def words_of(x: Any) -> str:
    """The contents of a list or dictionary of numbers and text."""
    return repr(x)


def table(f: Frame, x: Any) -> Any:
    """A list or dictionary from outside, which must not be changed."""
    if type(x) is dict:
        return f.object(Keys({key: table(f, v) for key, v in x.items()}, True))
    if type(x) is list:
        return f.object(Items([table(f, v) for v in x], True))
    return Static(x)


def is_simple(x: Any) -> bool:
    """Whether an object from outside is one that is known once for all, or that Numba takes."""
    if x is None or x is NotImplemented or x is Ellipsis or callable(x):
        return True
    return isinstance(x, (int, float, complex, str, bytes, ModuleType, FunctionType, type)) or origin.is_of(
        type(x).__module__, ("numpy", "numba")
    )


def outside_call(f: Frame, function: Any, args: list[Any], named: dict[str, Any]) -> Any:
    """A call of a function that Numba knows, or is to refuse."""
    of = function.value
    if not is_compiled_by_numba(of):
        raise f.refuse(f"`{getattr(of, '__name__', of)}` is called")
    name = axes.name_of(of)
    if name and args and isinstance(args[0], Leaf) and axes.is_wanted(name, args[1:], named):
        return axes.reduced(f, args[0], name, args[1:], named)
    if of in OF_TUPLES and args and isinstance(f.thing(args[0]), Items):
        args = [Tup(tuple(f.thing(args[0]).items)), *args[1:]]
    keywords = [ast.keyword(name, f.expression(x)) for name, x in named.items()]
    return f.leaf(ast.Call(f.expression(function), [f.expression(x) for x in args], keywords))


def is_compiled_by_numba(of: Any) -> bool:
    """Whether a function from outside is one that Numba may know, which draws nothing at random and prints nothing."""
    if is_dispatcher(of) or isinstance(of, DUFunc) or type(of) is np.ufunc:
        return True
    module = str(getattr(of, "__module__", None))
    if module == "builtins":
        return of in BUILTINS
    return module in ("math", "cmath") or (module.split(".")[0] == "numpy" and ".random" not in module)


OF_TUPLES = (
    np.concatenate,
    np.stack,
    np.hstack,
    np.vstack,
    np.dstack,
    np.column_stack,
)  # not of lists, for Numba
BUILTINS = (abs, round, pow, divmod, int, float, complex, bool, min, max, len, isinstance)
