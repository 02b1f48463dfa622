"""What a program of these benchmarks is, and all of them by name."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

PROGRAMS: dict[str, "Program"] = {}


@dataclass(frozen=True)
class Program:
    """A function of one argument (a float, a list of floats, or an array) with a number as its value.

    Attributes:
        f: takes the argument, and if it wants functions of mathematics, the module that has them.
        x: the argument.
        goal: how many plain calls a gradient may cost.
        peers: the other packages that can differentiate it as it stands, given their functions.
    """

    name: str
    f: Callable[..., Any]
    x: Any
    goal: float | None
    peers: tuple[str, ...]


def program(
    name: str, x: Any, goal: float | None, peers: tuple[str, ...] = ("autograd", "torch")
) -> Callable[..., Any]:
    """Enter the function below under `name`."""

    def enter(f: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[name] = Program(name, f, x, goal, peers)
        return f

    return enter
