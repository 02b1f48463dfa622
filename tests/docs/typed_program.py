"""A user's program as type checkers see it: tests/docs/test_types.py runs pyright and mypy on it, and CPython.

Lines with `error` in a comment must be refused by the checker, all others accepted.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, assert_type

import numpy as np

import plaingrad
from plaingrad import checkpoint, derivative, grad, jacobian, jvp, ravel, tree_map, updated, value_and_grad, vjp, vmap
from plaingrad.optimizers import Adam


@dataclass
class Line:
    """Two parameters."""

    slope: float
    offset: float


def misfit(line: Line, x: float, scale: float = 1.0) -> float:
    """Of one point."""
    return scale * (line.slope * x + line.offset) ** 2


def with_aux(line: Line, x: float) -> tuple[float, str]:
    """A value and something else."""
    return misfit(line, x), "aux"


line = Line(1.0, 2.0)
both = value_and_grad(misfit)(line, 3.0, scale=2.0)
assert_type(both, tuple[float, Any])
gradient, aux = grad(with_aux, has_aux=True)(line, 3.0)
assert_type(aux, str)
assert_type(grad(with_aux, 0, True)(line, 3.0)[1], str)
assert_type(jacobian(with_aux, has_aux=True)(line, 3.0)[1], str)
y, pullback = vjp(misfit, line, 3.0)
assert_type(y, float)
assert_type(jvp(misfit, (line, 3.0), (None, 1.0))[0], float)
assert_type(jvp(with_aux, (line, 3.0), (None, 1.0), True)[2], str)
assert_type(derivative(lambda x: x * x, value=True)(3.0)[1], Any)
assert_type(checkpoint(misfit, line, 3.0), float)
assert_type(updated(line, grad(misfit)(line, 3.0), -0.1), Line)
vector, back = ravel(line)
assert_type(back(2.0 * vector), Line)
assert_type(tree_map(lambda x: 2.0 * x, line), Line)
optimizer = Adam(learning_rate=0.1)
stepped, state = optimizer.step(line, grad(misfit)(line, 3.0), optimizer.init(line))
assert_type(stepped, Line)
slopes: Callable[[Line, float], Any] = grad(misfit)
second = grad(lambda x: grad(lambda y: y * y * x)(x))(3.0)
rows = vmap(grad(lambda w, x: np.sum(w * x)), in_axes=(None, 0))(np.ones(2), np.ones((3, 2)))


def refused() -> None:
    """Never called: what must be refused."""
    grad(misfit)(line)  # error: an argument is missing
    grad(misfit)(line, "three")  # error: a string
    grad(misfit)(line, 3.0, size=2.0)  # error: no such argument
    value_and_grad(misfit)(1.0, 3.0)  # error: no Line
    checkpoint(misfit, line)  # error: an argument is missing
    grad(misfit, argnums="line")  # error: no number
    plaingrad.grad(misfit, tier="fast")  # error: no tier
