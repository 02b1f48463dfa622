"""Gradients that a program takes itself: what a derived function that returns one is the gradient of.

`plaingrad.grad(g)` in a function that is differentiated natively is a call of a derived program, which returns the
results of `g` and cotangents. Its own derivative is not found by reversing its statements: a gradient is the transpose
of a derivative, so the way back through it is the same program pushed forward along the cotangents that arrive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from plaingrad.critical import imported
from plaingrad.native.frontend.current import original
from plaingrad.native.program.dispatchers import python_function

MARK = "__plaingrad_gradient__"  # attribute of the Python functions of derived programs


@dataclass(frozen=True, slots=True)
class InnerGradient:
    """What a derived program computes: (results of `f`, cotangents), of the arguments of `f` and of its results' seeds.

    Attributes:
        f: the function that it is the gradient of.
        signature: the types of the arguments of `f`.
        positions: of the arguments whose cotangents it returns, ascending.
        results: how many numbers `f` returns.
    """

    f: Any
    signature: tuple[Any, ...]
    positions: tuple[int, ...]
    results: int

    def pushed(self, positions: tuple[int, ...]) -> Any:
        """The program that returns cotangents by the arguments at `positions`, too, pushed forward.

        Its parameters are those of the gradient, then tangents of the arguments at `self.positions` and of the seeds;
        it returns results and cotangents, then their tangents.
        """
        return imported("plaingrad.native.compile.inner_derivatives").pushed(self, positions)


def gradient_of(f: Any) -> InnerGradient | None:
    """What a function is the gradient of; None for one that was not derived for a call inside of a program."""
    if not hasattr(f, "py_func"):
        return None
    found = vars(python_function(f)).get(MARK)
    if found is None:
        of = original(f)
        found = None if of is None else getattr(python_function(of), "__dict__", {}).get(MARK)
    return found


__all__ = ["InnerGradient", "gradient_of"]
