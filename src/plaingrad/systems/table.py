"""Which system a class or function belongs to."""

from __future__ import annotations

import functools
import sys
from types import FunctionType
from typing import Any

from plaingrad.systems.jax_arrays import Jax
from plaingrad.systems.steps import System
from plaingrad.systems.tensors import Torch

_SYSTEMS: dict[str, System] = {"torch": Torch(), "jax": Jax()}
#: The first names of modules that are a system's.
ROOTS = {"torch": "torch", "jax": "jax", "jaxlib": "jax"}
#: Modules of it in Python that hold tensors in objects: they are followed like a program's.
LIKE_PROGRAMS = ("torch.distributions", "torch.utils.data")
_ARRAYS = {("torch", "Tensor"): "torch", ("jaxlib._jax", "ArrayImpl"): "jax"}
_ARRAYS[("jaxlib.xla_extension", "ArrayImpl")] = "jax"


#: An attribute of a function of the program that says: it is one step, of this system.
WHOLE = "_plaingrad_is_one_step_of"


def find(cls: type) -> System | None:
    """The system whose arrays are instances of `cls`."""
    for base in cls.__mro__:
        name = _ARRAYS.get((base.__module__, base.__qualname__))
        if name is not None:
            return _SYSTEMS[name]
    return None


def imported() -> bool:
    """Whether the program has imported one."""
    return "torch" in sys.modules or "jax" in sys.modules


def owner(f: Any) -> System | None:
    """The system that a function, a class or a callable object belongs to."""
    if not imported():
        return None
    t = type(f)
    if t is FunctionType:
        name = f.__dict__.get(WHOLE) if f.__dict__ else None
        return _of_module(name or f.__globals__.get("__name__"))
    found = _of_module(t.__module__) or _of_module(getattr(f, "__module__", None))
    if found is None:
        found = _of_module(getattr(getattr(f, "__objclass__", None), "__module__", None))
    return found


@functools.lru_cache(4096)
def _of_module(module: Any) -> System | None:
    if type(module) is not str:
        return None
    if module.startswith(LIKE_PROGRAMS):
        return None
    name = ROOTS.get(module.partition(".")[0])
    return None if name is None else _SYSTEMS[name]
