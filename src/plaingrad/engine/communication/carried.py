"""What is pickled with an object beyond what lists and plain objects show: what functions and partial calls keep."""

from __future__ import annotations

import functools
import sys
from collections import defaultdict, deque
from collections.abc import Iterator
from numbers import Number
from types import BuiltinFunctionType, FunctionType, MethodType, MethodWrapperType, ModuleType
from typing import Any

import numpy as np

from plaingrad import origin
from plaingrad.class_keys import is_among
from plaingrad.engine.memory.kinds import holds_nothing

ATOMS = frozenset([float, int, complex, bool, str, bytes, type(None), np.float64])
SEQUENCES = (list, tuple, deque)
ENGINES = frozenset(("cloudpickle", "dask", "distributed", "joblib", "ray"))


def carried(x: Any) -> Iterator[Any]:
    """`x`, and what functions, partial calls and bound methods in it keep, however deep."""
    for part, is_kept in reached(x):
        if is_kept and kept_by(part) is None:
            yield part


def is_of_engine(module: Any) -> bool:
    """Whether a module is of the standard library or of what runs tasks: its functions go by name, and its globals,
    such as running threads and executors, have no part in what a task computes.
    """
    return origin.package_of(module) in ENGINES or origin.is_standard(module)


def reached(x: Any) -> Iterator[tuple[Any, bool]]:
    """All that is pickled with `x`, and whether what holds it hides it, as functions do; `x` itself counts, too."""
    todo = [(x, True)]
    seen: dict[int, Any] = {}
    while todo:
        x, is_kept = todo.pop()
        if is_among(type(x), ATOMS):
            if is_kept:
                yield x, True
            continue
        if id(x) in seen:
            continue
        seen[id(x)] = x
        yield x, is_kept
        kept = kept_by(x)
        if kept is not None:
            todo += [(part, True) for part in kept]
        else:
            todo += [(part, False) for part in shown_by(x)]
            if isinstance(x, (set, frozenset, dict)):
                todo += [(part, True) for part in x]


def is_future(x: Any) -> bool:
    """Whether x stands for a result on a cluster. Only its name is pickled; what it holds beside is the cluster's."""
    t = type(x)
    if t.__name__ in ("Future", "ObjectRef") and t.__module__.partition(".")[0] in ("distributed", "ray"):
        holds_nothing(t)
        return True
    return False


def is_machinery(cls: type) -> bool:
    """Whether objects of a class are locks, threads, pools and the like, which go by name or not at all."""
    package = origin.package_of(cls.__module__)
    if package in MACHINERY:
        return package not in sys.stdlib_module_names or origin.is_standard(package)
    return cls.__name__ == "SerializableLock"


#: Packages of such classes.
MACHINERY = frozenset(
    "threading _thread multiprocessing multiprocess concurrent asyncio queue _queue logging "
    "distributed loky ray".split()
)


def kept_by(x: Any) -> list[Any] | None:
    """What an object keeps that those who look into containers do not see; None: it is a container or plain object."""
    if isinstance(x, functools.partial):
        return [x.func, *x.args, *x.keywords.values()]
    if type(x) is FunctionType:
        return [*(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values(), *in_cells(x), *vars(x).values()]
    if type(x) is MethodType:
        return [x.__self__, x.__func__]
    if type(x) in (BuiltinFunctionType, MethodWrapperType):
        return [] if isinstance(x.__self__, (ModuleType, type)) else [x.__self__]
    if type(x) is slice:
        return [x.start, x.stop, x.step]
    if isinstance(x, property):
        return [x.fget, x.fset, x.fdel]
    if isinstance(x, (classmethod, staticmethod)):
        return [x.__func__]
    if isinstance(x, type):
        return of_class(x)
    if isinstance(x, BaseException) or pickles_by_c(type(x)):
        return in_state(x)
    return None


def of_class(cls: type) -> list[Any]:
    """What a class holds that goes by value: one of a function, or of the script that is run."""
    if "<locals>" not in cls.__qualname__ and cls.__module__ != "__main__":
        return []
    return [*cls.__bases__, *(x for name, x in vars(cls).items() if name not in NOT_HELD)]


#: Attributes of a class that are not its program's.
NOT_HELD = frozenset(("__dict__", "__weakref__", "__doc__", "__module__", "__qualname__"))


@functools.lru_cache(1000)
def pickles_by_c(t: type) -> bool:
    """Whether a type of the standard library, which is no container, is pickled by C code of its own."""
    if issubclass(t, (*SEQUENCES, dict, set, frozenset, np.ndarray, np.generic, Number)) or t.__dictoffset__:
        return False
    own = t.__reduce__ is not object.__reduce__ or t.__reduce_ex__ is not object.__reduce_ex__
    return own and not isinstance(t.__reduce__, FunctionType) and origin.is_standard(t.__module__)


def in_state(x: Any) -> list[Any]:
    """What an exception, an iterator or another object in C is pickled with."""
    try:
        found = x.__reduce__()
    except Exception:  # it cannot be pickled
        return []
    return [] if isinstance(found, str) else list(found)


def in_cells(f: FunctionType) -> list[Any]:
    """What the cells of a function hold."""
    found = []
    for cell in f.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # not bound yet
            continue
    return found


def shown_by(x: Any) -> list[Any]:
    """What a container or object holds."""
    if is_future(x) or is_machinery(type(x)):
        return []
    if isinstance(x, SEQUENCES):
        found = list(x)
    elif isinstance(x, dict):
        found = list(x.values())
    elif isinstance(x, np.ndarray):
        found = list(x.flat) if x.dtype == object else []
    elif isinstance(x, ModuleType):
        return []
    else:
        found = []
    if isinstance(x, defaultdict):
        found.append(x.default_factory)
    cls = type(x)
    if "<locals>" in cls.__qualname__ or cls.__module__ == "__main__":  # such a class goes by value
        found.append(cls)
    held = getattr(x, "__dict__", None)
    found += held.values() if type(held) is dict else ()
    found += [getattr(x, name) for name in slots_of(cls) if hasattr(x, name)]
    return found


@functools.lru_cache(1000)
def slots_of(cls: type) -> tuple[str, ...]:
    """The names of the slots of a class."""
    found: list[str] = []
    for base in cls.__mro__:
        slots = vars(base).get("__slots__", ())
        found += [slots] if isinstance(slots, str) else slots
    return tuple(name for name in found if not name.startswith("__"))
