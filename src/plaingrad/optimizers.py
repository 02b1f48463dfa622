"""First-order optimizers for parameters in structures: SGD with momentum, Adam, AdamW, and schedules. Small on purpose.

They are for noisy gradients, of minibatches. For a smooth function of moderately many unknowns use
`plaingrad.optimize`, which is SciPy's `minimize`, `least_squares` and `curve_fit` with gradients filled in.

An optimizer is a few numbers. What it remembers is a state, which `init` makes and `step` replaces; parameters are
replaced, not changed. Both are ordinary Python, so a step, or a thousand, can be differentiated by a learning rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from plaingrad.api import ravel, tree_map
from plaingrad.api.parameters import gradient_vector
from plaingrad.errors import ArgumentError

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "State", "clipped", "cosine", "exponential", "warmup"]

P = TypeVar("P")
Schedule = Callable[[int], float]


class State(NamedTuple):
    """What an optimizer remembers: how many steps were taken, and averages, as vectors."""

    count: int
    averages: tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class Optimizer:
    """What all have in common.

    Attributes:
        learning_rate: the length of a step, in units of the direction; a number, or a function of the number of steps
            taken before, see `exponential`, `cosine`, `warmup`.
    """

    learning_rate: float | Schedule

    def init(self, parameters: Any) -> State:
        """The state before the first step."""
        x = ravel(parameters)[0]
        return State(0, tuple([np.zeros_like(x) for _ in range(self.remembers())]))

    def step(self, parameters: P, gradient: Any, state: State) -> tuple[P, State]:
        """(the parameters after a step downhill, the state after it).

        Args:
            parameters: numbers and arrays in any structure that `grad` takes.
            gradient: of what is to become small, as `grad` returns it; `NoTangent` and None count as zero.
            state: as `init` or the step before returned it.
        """
        x, back = ravel(parameters)
        g = gradient_vector(parameters, gradient)
        if any(a.shape != x.shape for a in state.averages):
            raise ArgumentError(
                "the state belongs to other parameters; make one with init(parameters).\n  See docs: errors#argument"
            )
        rate = self.learning_rate(state.count) if callable(self.learning_rate) else self.learning_rate
        direction, averages = self.direction(x, g, state.count + 1, state.averages)
        return back(x - rate * direction), State(state.count + 1, averages)

    def remembers(self) -> int:
        """How many averages there are."""
        raise NotImplementedError

    def direction(self, x: Any, g: Any, t: int, averages: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        """(where step `t` goes, uphill; the averages after it), all as vectors."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class SGD(Optimizer):
    """Gradient descent: u' = momentum u + g, x' = x - learning_rate u'.

    Attributes:
        momentum: between 0 and 1.
        nesterov: go along g + momentum u' instead of u'.

    Examples:
        >>> from plaingrad import grad
        >>> optimizer, x = SGD(learning_rate=0.1, momentum=0.5), {"a": 1.0}
        >>> state = optimizer.init(x)
        >>> for _ in range(2):
        ...     x, state = optimizer.step(x, grad(lambda x: x["a"] ** 2)(x), state)
        >>> round(x["a"], 12)
        0.54
    """

    momentum: float = 0.0
    nesterov: bool = False

    def remembers(self) -> int:
        """One average, of gradients."""
        return 1

    def direction(self, x: Any, g: Any, t: int, averages: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        """The average, or what Nesterov's method makes of it."""
        u = self.momentum * averages[0] + g
        return (g + self.momentum * u if self.nesterov else u), (u,)


@dataclass(frozen=True, kw_only=True)
class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015): averages of the gradient and of its square, both corrected for their start at zero.

    Attributes:
        learning_rate: about the length of a step in each parameter.
        b1, b2: what is left of the averages after a step.
        eps: added to the root of the average square.
        eps_root: added under the root; with more than 0, a step can be differentiated where a gradient is zero.

    Examples:
        >>> import numpy as np
        >>> from plaingrad import grad
        >>> def distance(x): return np.sum((x - np.array([1.0, 2.0])) ** 2)
        >>> optimizer, x = Adam(learning_rate=0.1), np.zeros(2)
        >>> state = optimizer.init(x)
        >>> for _ in range(400):
        ...     x, state = optimizer.step(x, grad(distance)(x), state)
        >>> np.round(x, 3)
        array([1., 2.])
    """

    learning_rate: float | Schedule = 1e-3
    b1: float = 0.9
    b2: float = 0.999
    eps: float = 1e-8
    eps_root: float = 0.0

    def remembers(self) -> int:
        """Two averages, of gradients and of their squares."""
        return 2

    def direction(self, x: Any, g: Any, t: int, averages: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        """The average gradient over the root of the average square."""
        m = self.b1 * averages[0] + (1.0 - self.b1) * g
        v = self.b2 * averages[1] + (1.0 - self.b2) * np.real(g * np.conj(g))
        root = np.sqrt(v / (1.0 - self.b2**t) + self.eps_root)
        return m / (1.0 - self.b1**t) / (root + self.eps), (m, v)


@dataclass(frozen=True, kw_only=True)
class AdamW(Adam):
    """Adam with weight decay beside the gradient (Loshchilov and Hutter, 2019): x' = x - learning_rate (d + decay x).

    Attributes:
        decay: of all parameters.
    """

    decay: float = 1e-2

    def direction(self, x: Any, g: Any, t: int, averages: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        """That of Adam, and the parameters themselves."""
        d, averages = super().direction(x, g, t, averages)
        return d + self.decay * x, averages


def clipped(gradient: P, norm: float) -> P:
    """`gradient`, scaled to have at most this length, over all of its numbers together.

    Examples:
        >>> clipped({"a": 3.0, "b": 4.0}, 1.0)
        {'a': 0.6000000000000001, 'b': 0.8}
        >>> clipped([3.0, 4.0], 10.0)
        [3.0, 4.0]
    """
    length = float(np.linalg.norm(ravel(gradient)[0]))
    return gradient if length <= norm else tree_map(lambda g: g * (norm / length), gradient)


def exponential(start: float, factor: float, steps: int = 1) -> Schedule:
    """The schedule start * factor ** (n / steps).

    Examples:
        >>> exponential(1.0, 0.5, steps=10)(20)
        0.25
    """
    return lambda n: start * factor ** (n / steps)


def cosine(start: float, steps: int, end: float = 0.0) -> Schedule:
    """The schedule that goes from `start` to `end` in `steps` steps along half a wave, and stays there.

    Examples:
        >>> cosine(1.0, 10)(5), cosine(1.0, 10, end=0.1)(99)
        (0.5, 0.1)
    """
    return lambda n: end + (start - end) * (1.0 + math.cos(math.pi * min(n / steps, 1.0))) / 2.0


def warmup(schedule: float | Schedule, steps: int) -> Schedule:
    """A schedule whose first `steps` steps grow linearly to where `schedule`, which begins then, begins.

    Examples:
        >>> [warmup(1.0, 4)(n) for n in range(5)]
        [0.25, 0.5, 0.75, 1.0, 1.0]
    """

    def rate(n: int) -> float:
        later = schedule(max(n - steps, 0)) if callable(schedule) else schedule
        return later * min((n + 1) / steps, 1.0) if n < steps else later

    return rate
