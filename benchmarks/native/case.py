"""What a workload of the native benchmark is, and a candidate that differentiates it."""

import ctypes
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

import plaingrad

Run = Callable[[], tuple[Any, np.ndarray]]  # -> (value, gradient as one vector)


@dataclasses.dataclass
class Case:
    """A workload: what is differentiated, where, and what it is measured against.

    Attributes:
        title: what it is called in the table.
        f: the primal, Python that Numba compiles.
        args: its arguments.
        argnums: the positions to differentiate.
        of_c: at most so many times the best C gradient.
        objective_of_c: the best C gradient of `../shared/BASELINES.md` as a multiple of the C objective, where the C
            adjoint in this folder is another one: then the target is `of_c` times that.
        of_primal: at most so many times Numba's primal; None where no target is set.
        in_c: the functions of the C library that give (value, gradient), by label.
        objective_in_c: the C objective.
        ours: (value, gradient) of `f` by plaingrad; None: by `value_and_grad`.
        best: what the candidates of `in_c` are called.
    """

    title: str
    f: Callable[..., Any]
    args: tuple[Any, ...]
    argnums: tuple[int, ...]
    of_c: float
    objective_of_c: float | None = None
    of_primal: float | None = None
    in_c: Callable[[Any], dict[str, Run]] | None = None
    objective_in_c: Callable[[Any], Callable[[], Any]] | None = None
    ours: Callable[..., tuple[Any, np.ndarray]] | None = None
    best: str = "C adjoint"

    def gradient(self, f: Callable[..., Any]) -> Callable[..., tuple[Any, np.ndarray]]:
        """(value, gradient as one vector) of `f`, which is the primal or its dispatcher, by plaingrad."""
        if self.ours is not None:
            return self.ours
        both = plaingrad.value_and_grad(f, self.argnums, tier="native")

        def run(*args: Any) -> tuple[Any, np.ndarray]:
            value, gradient = both(*args)
            return value, flat(gradient)

        return run


@dataclasses.dataclass
class Peer:
    """A candidate from another system.

    Attributes:
        run: gives (value, gradient as one vector).
        args: the arguments that it differentiates at, where they are a fraction of the case's.
        times: what its time is multiplied with to be that of the whole case.
        turns: the number of turns that it takes at most.
        note: what has to be said about it.
    """

    run: Run
    args: tuple[Any, ...] | None = None
    times: float = 1.0
    turns: int = 1_000
    note: str = ""


def flat(gradient: Any) -> np.ndarray:
    """A gradient as one vector."""
    return np.concatenate([np.ravel(part) for part in gradient])


def address(x: np.ndarray) -> Any:
    """A pointer for C."""
    return ctypes.c_void_p(x.ctypes.data)
