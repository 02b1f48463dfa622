"""Taylor coefficients in one sweep: jet arithmetic instead of derivatives of derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from plaingrad.api.forward import jvp
from plaingrad.api.leaves import TANGENT, check_callable, described, filled, here, leaf_values, structure_of
from plaingrad.api.looked_at import debugged
from plaingrad.api.operator_objects import wraps
from plaingrad.critical import imported
from plaingrad.engine.forward.push import push
from plaingrad.engine.memory.kinds import ARRAY, NUMBER, kind_of
from plaingrad.errors import ArgumentError, NotFiniteError
from plaingrad.rewrite import CURRENT, PLAIN

MOST_NESTED = 6  # derivatives of derivatives, each of which takes twice as long as the one before


def taylor(f: Callable[[Any], Any], x: Any, order: int, direction: Any = None, debug: bool = False) -> Any:
    """The Taylor coefficients c_0, ..., c_order of t -> f(x + t direction) at t = 0.

    They are normalised, c_k = f^(k) / k!, so that f(x + t) = c_0 + c_1 t + c_2 t**2 + ..., and c_50 is no larger than
    the function makes it. `f` runs once, with truncated power series in place of derivatives: the cost of an operation
    grows like order**2, not like 2**order.

    Args:
        f: any Python callable of one argument.
        x: where: a number, an array, or a structure of these, as for `grad`.
        order: the last coefficient.
        direction: which way to go from `x`, with its structure and shapes; None for what stays put. For a number it is
            1 unless given, for an array an array of ones: an elementwise function is expanded at every element.
            Structures need one. The parameter t is real: for complex `x` and holomorphic `f` the coefficients are
            those of the complex derivatives.
        debug: stop at the line where a coefficient becomes nan or infinite; `f` runs again, with nested derivatives.

    Returns:
        The structure of the result of `f`, with an array of order + 1 coefficients for each number, and for each array
        one with a leading axis of that length; None for what has no tangent.

    Raises:
        ArgumentError: `order` is no natural number, or `x` is a structure and there is no direction.
        TangentError: `direction` does not fit `x`.
        MissingRuleError: the value depends on `x` through C code that has no rule.

    Examples:
        >>> import math
        >>> import numpy as np
        >>> taylor(math.exp, 0.0, 4)
        array([1.        , 1.        , 0.5       , 0.16666667, 0.04166667])
        >>> taylor(lambda p: p["a"] * p["b"], {"a": 3.0, "b": 4.0}, 2, {"a": 1.0, "b": 2.0})
        array([12., 10.,  2.])
        >>> taylor(lambda t: np.array([t, t**3]), 2.0, 2)
        array([[ 2.,  8.],
               [ 1., 12.],
               [ 0.,  6.]])

    References:
        Griewank and Walther, Evaluating Derivatives, 2nd edition (2008), chapter 13.
    """
    check_callable(f, "taylor")
    if not isinstance(order, (int, np.integer)) or isinstance(order, bool) or order < 0:
        raise ArgumentError(f"order must be 0, 1, 2, ..., not {order!r}.\n  See docs: errors#argument")
    if isinstance(x, (int, np.integer)) and not isinstance(x, bool):
        x = float(x)
    if isinstance(x, np.ndarray) and x.dtype.kind in "iu":
        x = x.astype(float)
    if direction is None:
        direction = _default_direction(x)
    if debug:
        return looked_through(f, x, int(order), direction)
    count = max(int(order), 1)
    seed = _seeds(TANGENT.of(direction, x, "direction", as_real=True), x, count)
    y, y_dot = push(f, (x,), (seed,), {}, count, imported("plaingrad.engine.taylor.jets").JetLevel)
    structure, _ = structure_of(y, as_real=True)
    found = leaf_values(structure, y_dot)
    return filled(
        structure, lambda leaf: here(_jet_rows().expansion, leaf.x, found.get(leaf.position), int(order) + 1)
    )


def looked_through(f: Callable[[Any], Any], x: Any, order: int, direction: Any) -> Any:
    """`taylor`, which stops where the first coefficient that is not finite becomes so: seen in derivatives, nested."""
    found = taylor(f, x, order, direction)
    leaves = [np.reshape(leaf.x, (order + 1, -1)) for leaf in structure_of(found)[1]]
    firsts = [int(np.argmin(np.isfinite(c).all(1))) for c in leaves if not np.isfinite(c).all()]
    if CURRENT.get() is not PLAIN or not firsts:
        return found
    first = min(firsts)

    nested = f
    for _ in range(min(first, MOST_NESTED) - 1):
        nested = tangent_of(f, nested, direction)
    debugged(jvp, nested, (x,), (direction,), False, "plain")
    raise NotFiniteError(
        f"coefficient {first} of taylor is not finite.\n  Derivatives up to order {min(first, MOST_NESTED)}, which "
        "were looked at, are.\n  See docs: errors#not-finite"
    )


def tangent_of(f: Callable[[Any], Any], g: Callable[[Any], Any], direction: Any) -> Callable[[Any], Any]:
    """The function that returns g's derivative along `direction`; it belongs to the module of `f`, so is looked at."""

    @wraps(f)
    def tangent(x: Any) -> Any:
        return jvp(g, (x,), (direction,))[1]

    return tangent


def _default_direction(x: Any) -> Any:
    kind = kind_of(type(x))
    if kind == NUMBER:
        return type(x)(1)
    if kind == ARRAY and x.dtype.kind in "fc":
        return np.ones_like(x)
    raise ArgumentError(
        f"taylor at {described(x)} needs a direction: coefficients are those of t -> f(x + t * direction).\n"
        "  To go on: taylor(f, x, order, direction), with a direction of the structure of x.\n"
        "  See docs: errors#argument"
    )


def _seeds(direction: Any, x: Any, count: int) -> Any:
    """Coefficients 1, 2, ... of x + t direction."""
    if isinstance(direction, list):
        return [_seeds(part, of, count) for part, of in zip(direction, x, strict=True)]
    if isinstance(direction, dict):
        entries = x if isinstance(x, dict) else None
        return {
            key: _seeds(part, getattr(x, key) if entries is None else entries[key], count)
            for key, part in direction.items()
        }
    if kind_of(type(direction)) not in (NUMBER, ARRAY):
        return direction
    return here(_jet_rows().seed, direction, x, count)


def _jet_rows() -> Any:
    """The arithmetic of coefficients; who takes no series does not import it."""
    return imported("plaingrad.engine.taylor.jet_rows")
