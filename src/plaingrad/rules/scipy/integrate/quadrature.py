"""Integrals of functions: the derivative under the integral sign, and the integrand at ends that move.

SciPy's value is kept. Its derivative is that of a sum over the nodes of a composite Gauss-Kronrod rule, on panels that
are halved until the sum, and its derivative in everything that the integrand holds, are as good as SciPy's integral.
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
    carrying,
    fresh,
    is_active,
    number,
    ordered,
    outside,
    plainly,
    refuse,
    without_rule,
)
from plaingrad.rules.scipy.integrate.jumps import branches, is_nested, moving, moving_jumps
from plaingrad.rules.scipy.integrate.leaves import active_leaves, bars_of, linear_in, reads_of
from plaingrad.rules.scipy.integrate.nodes import nodes, way_between, way_of, weight_of
from plaingrad.rules.scipy.integrate.planning import constants_of, meshed, plan, sum_of
from plaingrad.rules.scipy.integrate.reused import evaluated
from plaingrad.rules.scipy.remembered import numbers_in

RULES = Rules()
MOST_BRANCHES = 100  # of one integral
DEEPEST = 3  # splits of parts of it


@outside
def nodes_outside(order: int, at_once: bool, *given: Any) -> tuple[Any, Any]:
    """The same as constants of this level, in lists if they are taken one by one."""
    xs, full = nodes(*given)
    return (xs, full) if at_once else (xs.tolist(), full.tolist())


followed = without_rule(integrate.quad_vec)
in_parts = without_rule(integrate.quad)


@RULES.defined(integrate.quad_vec)
def quad_vec(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """SciPy's Python code; its nodes are where the function, not its derivative, is rough."""
    f, args, points = given["f"], as_tuple(given.get("args", ())), given["points"]
    low, high = fresh(float(given["a"])), fresh(float(given["b"]))
    marks = moving_jumps(function, f, args, low, high, points) if low != high else []
    if marks:
        return vector_between(function, given, marks)
    args, kwargs = call
    outcome = followed(*args, **kwargs)
    if is_active(outcome[0]) and not np.any(fresh(outcome[0])):
        refuse(function, "the integral is zero, so its nodes say nothing about the derivative")
    return outcome


def vector_between(function: Any, given: dict[str, Any], marks: list[Any]) -> Any:
    """The sum of the integrals between places where the function jumps."""
    if (
        given["full_output"]
        or given["b"] < given["a"]
        or given["points"] is not None
        or len(marks) > MOST_BRANCHES
    ):
        refuse(function, f"its integrand jumps at {float(marks[0]):.6g}, which moves with the inputs")
    ends, total, error = [given["a"], *sorted(marks), given["b"]], 0.0, 0.0
    for low, high in zip(ends[:-1], ends[1:], strict=True):
        value, off = followed(**{**given, "f": one_sided(given["f"], low, high), "a": low, "b": high})
        total, error = total + value, error + off
    return carrying(fresh(total), total), fresh(error)


@RULES.defined(integrate.quad)
def quad(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """Value and error; the error has no derivative. SciPy's Python takes complex functions apart."""
    if given.get("complex_func"):
        return in_parts(*call[0], **call[1])
    outcome, known = evaluated(function, call, given)
    f, args, a, b = given["func"], as_tuple(given["args"]), given["a"], given["b"]
    value = fresh(outcome[0])
    kind, variable = given["weight"], given["wvar"]
    if not callable(f):
        if is_active((a, b, args)):
            refuse(function, "its function is compiled code")
        return outcome
    if kind is None and is_active(given["points"]):
        z = between_breaks(function, f, args, a, b, list(given["points"]))
    else:
        z = integral(function, f, args, a, b, kind, variable, given["points"], value, known=known)
    return outcome if z is None else (carrying(value, z), *outcome[1:])


def between_breaks(
    function: Any, f: Any, args: Any, a: Any, b: Any, points: list[Any], depth: int = 0
) -> Any:
    """The sum of the integrals between break points that move, where f may jump."""
    if b < a:
        return -between_breaks(function, f, args, b, a, points, depth)
    marks = [a, *sorted([p for p in points if a < p < b]), b]
    if len(marks) > MOST_BRANCHES or depth > DEEPEST:
        refuse(function, "its integrand branches at too many places that move with the inputs")
    total = 0.0
    for low, high in zip(marks[:-1], marks[1:], strict=True):
        inside = one_sided(f, low, high)
        value = fresh(called(function, ((inside, low, high), {"args": args}))[0])
        z = integral(function, inside, args, low, high, None, None, None, value, depth + 1)
        total = total + (value if z is None else z)
    return total


def one_sided(f: Any, low: Any, high: Any) -> Any:
    """f between breaks that move: at the ends, and so near to them that rounding decides, its limits from inside."""
    return as_users(lambda x, *args: f(x + inwards(x, low, high), *args))


@plainly
def inwards(x: Any, low: Any, high: Any) -> Any:
    """What moves x away from the ends of an interval by some rounding errors."""
    gap = 32.0 * float(np.spacing(max([abs(end) for end in (low, high) if np.isfinite(end)], default=1.0)))
    return np.clip(x, low + gap, high - gap) - x if high - low > 2 * gap else 0.0


def integral(
    function: Any,
    f: Any,
    args: Any,
    a: Any,
    b: Any,
    kind: Any,
    variable: Any,
    points: Any,
    value: Any,
    depth: int = 0,
    known: Any = None,
) -> Any:
    """The integral with its derivative, or None where nothing of it depends on the inputs."""
    low, high = fresh(float(a)), fresh(float(b))
    if low == high:
        return ends(f, args, a, b, low, high, None, 0.0)
    if not (is_active((f, args, a, b, variable)) or depends(f, args, low, high)):
        return None
    if is_active(variable):
        refuse(function, "its weight depends on the inputs (wvar)")
    if isinstance(value, complex):
        refuse(function, "its values are complex")
    if kind is not None and not (np.isfinite(low) and np.isfinite(high)):
        refuse(function, "its weight oscillates without end")
    moving_nodes = ordered() > 1  # Taylor coefficients: the nodes move with the ends
    if moving_nodes:
        low, high = float(a), float(b)
    if kind == "cauchy":
        rest = np.log(abs((high - variable) / (low - variable)))
        middle = height(f, args, variable)

        def smooth(x: Any, *args: Any) -> Any:
            return (height(f, args, x) - height(f, args, variable)) / (x - variable)

        z = summed(function, as_users(smooth), args, (low, high), value - fresh(middle * rest))
        z, weight = z + middle * rest, lambda x: 1 / (x - variable)
    else:
        weight = weight_of(kind, variable, low, high)
        z, marks = over_nodes(function, f, args, (low, high), value, kind, variable, points, known)
        if marks:
            return between_breaks(function, f, args, a, b, marks, depth)
    return z if moving_nodes else ends(f, args, a, b, low, high, weight, z)


def summed(function: Any, f: Any, args: Any, ends: Any, value: Any) -> Any:
    """The integral of a function that branches nowhere at a place that moves, without its ends' derivatives."""
    z, marks = over_nodes(function, f, args, ends, value)
    if marks:
        refuse(function, f"its integrand branches at {float(marks[0]):.6g}, which moves with the inputs")
    return z


def over_nodes(
    function: Any,
    f: Any,
    args: Any,
    ends: Any,
    value: Any,
    kind: Any = None,
    variable: Any = None,
    points: Any = None,
    known: Any = None,
) -> tuple[Any, Any]:
    """(the sum over nodes that are planned outside of every level, None), or (None, places that move where f branches).

    kind: of the weight, and variable, what it varies with. known: values that SciPy has computed.
    """
    low, high = fresh(ends[0]), fresh(ends[1])
    way, closely = way_between(low, high, kind), is_nested()
    parts = meshed(f, args, (low, high), kind, variable, points, closely, known)
    marks = moving(function, f, args, branches(f, args, parts, way, closely), points)
    constants, reads = (frozenset(), None) if closely else (constants_of(f, args), reads_of(f, args))
    found = None
    if not marks:
        found = plan(function, f, args, (low, high), kind, variable, parts, value, closely, constants)
    if found is None and not marks and not closely:  # its derivative may jump where it bends
        marks = moving(function, f, args, branches(f, args, parts, way, True), points)
    if marks and kind is not None:
        refuse(function, f"its integrand branches at {float(marks[0]):.6g}, which moves with the inputs")
    if marks:
        return None, marks
    if found is None:
        refuse(function, "the integral of the derivative does not converge as that of the function does")
    t, full, at_once, bars = found
    pairs = None if closely or bars is None or is_active(ends) else paired(reads, bars)
    if pairs is not None:
        z = linear_in(pairs)
        return (z if low < high else -z), None
    if is_active(ends):
        xs, full = nodes(t, full, *ends, kind, variable)
    else:
        xs, full = nodes_outside(at_once, t, full, *ends, kind, variable)
    return sum_of(f, args, xs, full, at_once), None


def paired(reads: Any, bars: Any) -> Any:
    """(cotangent, leaf) of all leaves that depend on the inputs; None if not all that f reads is known, and theirs."""
    leaves = active_leaves(reads)
    return bars_of(leaves, *bars[1:3]) if leaves else None


def ends(f: Any, args: Any, a: Any, b: Any, low: Any, high: Any, weight: Any, z: Any) -> Any:
    """z with f at the ends that move."""
    for end, at, sign in ((b, high, 1.0), (a, low, -1.0)):
        if is_active(end) and np.isfinite(at):
            slope = height(f, args, at) if weight is None else height(f, args, at) * weight(at)
            z = z + sign * slope * (end - at)
    return z


def height(f: Any, args: Any, x: Any) -> Any:
    """f(x), a number."""
    return number(np.asarray(f(x, *args)))


def depends(f: Any, args: Any, low: Any, high: Any) -> bool:
    """Whether f(x) depends on the inputs at this level, though they are not seen in it: at some x, or perhaps."""
    if is_active(numbers_in(f, args)):
        return True
    x, _ = way_of(min(low, high), max(low, high)).points(np.array([0.03, 0.26, 0.437, 0.71, 0.96]))
    return is_active([f(float(x[k]), *args) for k in range(len(x))])
