"""`tanhsinh`: SciPy's Python code is followed, but for what has a weight of nothing.

Nodes close to infinite ends are so far out that squares of them overflow. What the integrand says there counts for
nothing, as the weights vanish; but slopes there are nan, nothing times infinity.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import integrate

from plaingrad.rules.scipy.implicit import (
    Rules,
    as_tuple,
    as_users,
    called,
    fresh,
    is_active,
    refuse,
    without_rule,
)
from plaingrad.rules.scipy.integrate.jumps import moving_jumps

RULES = Rules()
MOST = 64  # integrals of one call that are looked at
FARTHEST = 1e75  # nodes beyond it have no weight


def tamed(f: Any) -> Any:
    """f, whose values at nodes that are too far out are constants."""

    def tamed_integrand(x: Any, *args: Any) -> Any:
        at = fresh(x)
        near = np.abs(at) < FARTHEST
        if np.all(near):
            return f(x, *args)
        size = np.where(near, np.abs(at), np.inf)
        mild = np.take_along_axis(at, np.argmin(size, -1)[..., None], -1)
        plain = called(f, ((at, *[fresh(part) for part in args]), {}))
        return np.where(near, f(np.where(near, x, mild), *args), plain)

    return tamed_integrand


def shifted(f: Any) -> Any:
    """f with an argument more, by which its nodes move."""
    return lambda x, *args: f(x + args[-1], *args[:-1])


def refuse_jumps(function: Any, f: Any, a: Any, b: Any, args: tuple[Any, ...]) -> None:
    """Refuse jumps that move with the inputs, of each of several integrals."""
    low, high, *others = np.broadcast_arrays(fresh(np.asarray(a) * 1.0), fresh(np.asarray(b) * 1.0), *args)
    one = as_users(lambda x, *args: f(np.reshape(x, (1,)), *args))
    for k in range(min(low.size, MOST)):
        at = [np.reshape(part, (-1,))[k : k + 1] for part in others]
        marks = moving_jumps(function, one, tuple(at), float(low.flat[k]), float(high.flat[k]))
        if marks:
            refuse(function, f"its integrand jumps at {float(marks[0]):.6g}, which moves with the inputs")


@RULES.defined(getattr(integrate, "tanhsinh", None))
def tanhsinh(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """An end that moves moves all nodes with it where the other end is infinite."""
    followed = without_rule(function)
    f, a, b, args = given["f"], given["a"], given["b"], as_tuple(given["args"])
    if not callable(f):
        return followed(*call[0], **call[1])
    refuse_jumps(function, f, a, b, args)
    if is_active((a, b)) and not given["preserve_shape"]:
        low, high = fresh(np.asarray(a) * 1.0), fresh(np.asarray(b) * 1.0)
        down, up = np.isinf(low), np.isinf(high)
        if np.any(down) or np.any(up):
            move = np.where(up & ~down, a - np.where(down, 0.0, low), np.where(down & ~up, b - np.where(up, 0.0, high), 0.0))
            still = up | down
            a, b = (low, high) if np.all(still) else (np.where(still, low, a), np.where(still, high, b))
            f, args = shifted(f), (*args, move)
    return followed(**{**given, "f": tamed(f), "a": a, "b": b, "args": args})
