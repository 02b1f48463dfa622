"""What a program of these benchmarks is: a function of one argument, and the argument."""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any


@dataclass(frozen=True)
class Program:
    """A function of one argument (a float, a list of floats, or an array) with a number as its value.

    Attributes:
        f: the function; it and what it calls take their functions from `math` and `numpy`.
        x: the argument.
        goal: how many plain calls a gradient may cost.
    """

    name: str
    f: Callable[[Any], Any]
    x: Any
    goal: float | None

    @property
    def source(self) -> ModuleType:
        """The module that it is written in."""
        return sys.modules[self.f.__module__]


def program(name: str, x: Any, goal: float | None) -> Callable[..., Any]:
    """Make the function below a program."""

    def enter(f: Callable[..., Any]) -> Callable[..., Any]:
        f.program = Program(name, f, x, goal)  # type: ignore[attr-defined]
        return f

    return enter


def programs_of(module: ModuleType) -> list[Program]:
    """Those that a module's functions were made, in order."""
    return [value.program for value in vars(module).values() if hasattr(value, "program")]


def ported(p: Program, modules: dict[ModuleType, Any], array: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function of a program in a copy of its module that has other functions in the place of `math` and `numpy`.

    That is what a user of another package does who imports `autograd.numpy as np`. Arrays that the module keeps
    are handed to `array`.
    """
    code = compile(Path(p.source.__file__).read_text(encoding="utf-8"), p.source.__file__, "exec")
    copy: dict[str, Any] = {"__name__": f"{p.source.__name__}.ported"}
    exec(code, copy)
    numpy = sys.modules["numpy"]

    def other(value: Any) -> Any:
        if isinstance(value, ModuleType):
            return modules.get(value, value)
        if getattr(value, "__module__", None) == "math" and callable(value):
            return getattr(modules[math], value.__name__)
        if type(value) is numpy.ndarray:
            return array(value)
        if type(value) in (list, tuple):
            return type(value)(map(other, value))
        if type(value) is dict:
            return {key: other(part) for key, part in value.items()}
        return value

    for name, value in list(copy.items()):
        if not name.startswith("__"):
            copy[name] = other(value)
    return copy[p.f.__name__]
