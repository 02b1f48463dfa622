"""Integrals of functions: the derivative under the integral sign, and the integrand at ends that move.

SciPy's value is kept. Its derivative is that of a sum over the nodes of a composite Gauss-Kronrod rule, on panels that
are halved until the sum, and its derivative in everything that the integrand holds, are as good as SciPy's integral.
"""

from __future__ import annotations

from inspect import getclosurevars
from itertools import count
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
from scipy import integrate

from plaingrad.errors import PlaingradError
from plaingrad.rules import derivatives
from plaingrad.rules.scipy.implicit import (
    Rules,
    as_tuple,
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
from plaingrad.tangents import Tangent, unthunk

RULES = Rules()
GOAL = 1e-10  # relative error of the sum
MOST_PANELS = 400
POINTS = 10  # Gauss points whose Kronrod rule is used
SAME = 1e-10  # relative difference of what is computed at once and one by one
#: What a function that remembers its calls has among its names: it never sees an array of nodes.
MUTATORS = frozenset(("append", "add", "extend", "insert", "update", "setdefault", "print", "write", "put"))
MOST_NODES = 2 * MOST_PANELS * (2 * POINTS + 1)  # for derivatives


class Way(NamedTuple):
    """How t in the unit interval becomes x.

    Attributes:
        kind: "finite", "up" (from a to infinity), "down" (from -infinity to b), "all", or "ends" (denser at both).
        a: the lower end, or a point of an infinite interval.
        b: the upper end.
    """

    kind: str
    a: float
    b: float

    def points(self, t: Any) -> tuple[Any, Any]:
        """(x, dx/dt)."""
        if self.kind == "finite":
            return self.a + (self.b - self.a) * t, (self.b - self.a) * np.ones_like(t)
        if self.kind == "ends":  # singular ends are smoothed
            s, s_dot = t**3 * (10 - 15 * t + 6 * t * t), 30 * t * t * (1 - t) ** 2
            return self.a + (self.b - self.a) * s, (self.b - self.a) * s_dot
        if self.kind == "up":
            return self.a + (1 - t) / t, 1 / t**2
        if self.kind == "down":
            return self.b - (1 - t) / t, 1 / t**2
        s = 2 * t - 1
        return s / (1 - s * s), 2 * (1 + s * s) / (1 - s * s) ** 2


def way_of(a: float, b: float, singular: bool = False) -> Way:
    """The way from a < b, either of which may be infinite."""
    if np.isinf(a) and np.isinf(b):
        return Way("all", a, b)
    if np.isinf(b):
        return Way("up", a, b)
    if np.isinf(a):
        return Way("down", a, b)
    return Way("ends" if singular else "finite", a, b)


def kronrod() -> tuple[Any, Any, Any]:
    """(nodes in (0, 1), Kronrod weights, Gauss weights, 0 at the nodes that Kronrod added)."""
    gauss, weights = np.polynomial.legendre.leggauss(POINTS)
    nodes = np.sort(np.concatenate([gauss, stieltjes_roots(gauss, weights)]))
    low = np.polynomial.legendre.legvander(nodes, nodes.size - 1).T
    right = np.zeros(nodes.size)
    right[0] = 2.0  # the integral of P_0; of the others 0
    full = np.linalg.solve(low, right)
    coarse = np.zeros(nodes.size)
    coarse[1::2] = weights
    return (nodes + 1) / 2, full / 2, coarse / 2


def stieltjes_roots(gauss: Any, weights: Any) -> Any:
    """The nodes that Kronrod adds: roots of the E of degree n + 1 with integral of P_n E x^k zero for k <= n."""
    n = gauss.size
    fine, w = np.polynomial.legendre.leggauss(2 * n + 2)
    legendre = np.polynomial.legendre.legvander(fine, n + 1)
    moments = (legendre[:, n] * w) @ np.einsum("ij,ik->ijk", legendre[:, : n + 1], legendre).reshape(
        fine.size, -1
    )
    matrix = moments.reshape(n + 1, n + 2)
    coefficients = np.append(np.linalg.lstsq(matrix[:, :-1], -matrix[:, -1], rcond=None)[0], 1.0)
    return np.polynomial.legendre.legroots(coefficients).real


NODES, FULL, COARSE = kronrod()


#: Nodes and two weights of each, by a key. As arguments they would be taken for what might vary, one by one.
TABLES: dict[int, tuple[Any, list[float], list[float]]] = {}
KEYS = count()


def sums(f: Any, args: tuple[Any, ...], key: int) -> tuple[Any, Any]:
    """The sums of f(x) with both weights of a table."""
    xs, full, coarse = TABLES[key]
    fine, rough = 0.0, 0.0
    for k in range(len(xs)):
        z = f(xs[k], *args)
        fine = fine + full[k] * z
        rough = rough + coarse[k] * z
    return flat_number(fine), flat_number(rough)


def sum_of(f: Any, args: tuple[Any, ...], xs: Any, full: Any, at_once: bool) -> Any:
    """The sum of f(x) with weights."""
    if at_once:
        return np.dot(full, f(xs, *args))
    fine = 0.0
    for k in range(len(xs)):
        fine = fine + full[k] * f(xs[k], *args)
    return flat_number(fine)


def flat_number(z: Any) -> Any:
    """What a user's function of numbers returned, as one number."""
    return z if isinstance(z, float) else number(np.asarray(z))


def placed(panels: Any, way: Way, weight: Any) -> tuple[Any, Any, Any, Any]:
    """The nodes x on all panels, both weights, and which of all nodes these are."""
    t, full, coarse = unit(panels)
    x, x_dot = way.points(t)
    factor = x_dot * (1.0 if weight is None else weight(x))
    keep = np.isfinite(x) & np.isfinite(factor)
    return x[keep], (full * factor)[keep], (coarse * factor)[keep], keep


def unit(panels: Any) -> tuple[Any, Any, Any]:
    """The nodes t on all panels, and both weights."""
    t = (panels[:, :1] + (panels[:, 1:] - panels[:, :1]) * NODES).ravel()
    size = np.repeat(panels[:, 1] - panels[:, 0], NODES.size)
    return t, np.tile(FULL, panels.shape[0]) * size, np.tile(COARSE, panels.shape[0]) * size


@plainly
def plan(
    function: Any, f: Any, args: Any, ends: Any, kind: Any, variable: Any, points: Any, value: float
) -> Any:
    """(nodes t, weights, whether f takes all nodes at once) of a sum that is as good as SciPy's value.

    Its derivative has converged, too.
    """
    way = way_between(*ends, kind)
    weight = weight_of(kind, variable, *ends)
    marks = np.unique(np.concatenate([[0.0, 1.0], breaks_of(points, way)]))
    panels = np.stack([marks[:-1], marks[1:]], 1)
    panels, total, error, heights = refined(f, args, panels, way, weight)
    value = value if ends[0] < ends[1] else -value
    if not np.abs(total - value) <= 1e-6 * np.abs(value) + 10 * error + 1e-7:
        refuse(
            function, f"the integrand is too singular: a sum over nodes gives {total:.6g}, not {value:.6g}"
        )
    for _ in range(8):
        x, full, coarse, keep = placed(panels, way, weight)
        if x.size > MOST_NODES:  # halving all panels does not help at a singular place
            break
        at_once, converged = has_converged(f, args, x, full, coarse, heights)
        if converged:
            t, full, _ = unit(panels)
            return t[keep], full[keep], at_once
        middle = panels.mean(1)
        panels = np.concatenate([np.stack([panels[:, 0], middle], 1), np.stack([middle, panels[:, 1]], 1)])
        heights = None
    refuse(function, "the integral of the derivative does not converge as that of the function does")


def way_between(low: Any, high: Any, kind: Any) -> Way:
    """The way between ends in either order; weights may be singular there."""
    singular = kind is not None and kind.startswith("alg")
    return way_of(low, high, singular) if low < high else way_of(high, low, singular)


def nodes(t: Any, full: Any, low: Any, high: Any, kind: Any, variable: Any) -> tuple[Any, Any]:
    """(nodes x, weights), which move with the ends."""
    xs, x_dot = way_between(low, high, kind).points(t)
    full = full * x_dot if low < high else full * -x_dot
    weight = weight_of(kind, variable, low, high)
    return xs, full if weight is None else full * weight(xs)


@outside
def nodes_outside(order: int, at_once: bool, *given: Any) -> tuple[Any, Any]:
    """The same as constants of this level, in lists if they are taken one by one."""
    xs, full = nodes(*given)
    return (xs, full) if at_once else (xs.tolist(), full.tolist())


def refined(
    f: Any, args: tuple[Any, ...], panels: Any, way: Way, weight: Any
) -> tuple[Any, float, float, Any]:
    """Panels halved where the sum is worst, the sum, its error, and f at the nodes."""

    def of(panel: Any) -> tuple[Any, float, float, Any]:
        x, full, coarse, _ = placed(panel[None], way, weight)
        z = heights_of(f, args, x)
        return panel, float(full @ z), abs(float((full - coarse) @ z)), z

    parts = [of(panel) for panel in panels]
    while len(parts) < MOST_PANELS:
        total, error = sum([p[1] for p in parts]), sum([p[2] for p in parts])
        if not error > GOAL * abs(total) + 1e-13:
            break
        worst = max(range(len(parts)), key=lambda k: parts[k][2])
        low, high = parts.pop(worst)[0]
        middle = (low + high) / 2
        if not low < middle < high:
            break
        parts += [of(np.array([low, middle])), of(np.array([middle, high]))]
    heights = np.concatenate([p[3] for p in parts])
    return np.array([p[0] for p in parts]), sum([p[1] for p in parts]), sum([p[2] for p in parts]), heights


def heights_of(f: Any, args: tuple[Any, ...], x: Any) -> Any:
    """f at places, one by one."""
    found = [f(place, *args) for place in x.tolist()]
    if {*map(type, found)} - {float, np.float64}:
        found = [number(np.asarray(z)) for z in found]
    return np.array(found, dtype=None if found else float)


def has_converged(
    f: Any, args: tuple[Any, ...], x: Any, full: Any, coarse: Any, heights: Any
) -> tuple[bool, bool]:
    """(whether f takes all nodes at once, whether both weights give the same derivatives in all that f and args hold)."""
    found = bars_at_once(f, args, x, full, coarse, heights)
    at_once = found is not None
    try:
        total, fine, off = bars_one_by_one(f, args, x, full, coarse) if found is None else found
    except PlaingradError:
        return (
            False,
            x.size >= 2 * NODES.size,
        )  # what it holds cannot be told: a mesh that is finer than need be
    size = np.max(np.abs(fine), initial=0.0)
    if fine.size and size == 0.0:
        return at_once, x.size >= (16 if total == 0.0 else 2) * NODES.size  # nothing says where to look
    return at_once, fine.shape == off.shape and bool(np.all(np.abs(off) <= 1e-8 * size))


def bars_one_by_one(f: Any, args: tuple[Any, ...], x: Any, full: Any, coarse: Any) -> tuple[Any, Any, Any]:
    """The sum over nodes, the cotangents that it gives f and args, and how far those of the other weights are off."""
    key = next(KEYS)
    TABLES[key] = x.tolist(), full.tolist(), coarse.tolist()
    try:
        (total, _), pullback = derivatives.pulled(sums, f, args, key)
        return total, flat(pullback((1.0, 0.0))[1:3]), flat(pullback((1.0, -1.0))[1:3])
    finally:
        del TABLES[key]


def bars_at_once(
    f: Any, args: tuple[Any, ...], x: Any, full: Any, coarse: Any, heights: Any
) -> tuple[Any, Any, Any] | None:
    """The same from one call with an array of all nodes, or None; heights: f one by one, where that is known.

    f counts as a function of arrays if it gives the value at every node that it gives one by one, and at two of them the
    same derivative in everything: what shrinks, compares or counts the array is told from what goes through it.
    """
    if type(f) is not FunctionType or x.size < 3:
        return None
    some = [x.size // 3, x.size - 2]
    key = next(KEYS)
    TABLES[key] = x.copy(), x[some].tolist(), []
    try:
        if remembers(f, set()):
            return None
        with np.errstate(all="ignore"):
            (z, *_), pullback = derivatives.pulled(all_at_once, f, args, key)
            if type(z) is not np.ndarray or z.dtype != float or z.shape != x.shape:
                return None
            single = heights_of(f, args, x) if heights is None else heights
            if single.shape != z.shape or not np.all(np.abs(z - single) <= SAME * np.max(np.abs(single))):
                return None
            fine = flat(pullback((full, 0.0, 0.0))[1:3])
            apart, alone = np.zeros(x.size), (-full[some]).tolist()
            apart[some] = full[some]
            off = flat(pullback((full - coarse + apart, *alone))[1:3])  # both differences in one pass
            size = np.max(np.abs(fine), initial=0.0)
            if not np.all(np.abs(off) <= 1e-8 * size):
                difference = flat(pullback((apart, *alone))[1:3])
                if difference.shape != fine.shape or not np.all(np.abs(difference) <= SAME * size):
                    return None
            return single @ full, fine, off
    except Exception:  # whatever it raises, it does not take arrays
        return None
    finally:
        del TABLES[key]


def remembers(f: Any, seen: set[Any]) -> bool:
    """Whether a function, or one of Python that it reads from outside, has the name of a mutator among its names."""
    if type(f) is not FunctionType or f in seen:
        return False
    seen.add(f)
    names = f.__code__.co_names
    read = [*getclosurevars(f).nonlocals.values(), *[f.__globals__.get(name) for name in names]]
    return not MUTATORS.isdisjoint(names) or any(remembers(g, seen) for g in read)


def all_at_once(f: Any, args: tuple[Any, ...], key: int) -> Any:
    """f at all nodes of a table, and at some of them by itself."""
    x, some, _ = TABLES[key]
    return f(x, *args), *[f(place, *args) for place in some]


def flat(x_bar: Any) -> Any:
    """The numbers in cotangents of any structure."""
    x_bar = unthunk(x_bar)
    if isinstance(x_bar, (float, int, np.floating)):
        return np.array([float(x_bar)])
    if isinstance(x_bar, np.ndarray):
        return np.real(x_bar).ravel()
    if isinstance(x_bar, (tuple, list)):
        parts = [flat(part) for part in x_bar]
    elif isinstance(x_bar, (dict, Tangent)):
        parts = [flat(x_bar[name]) for name in x_bar]
    else:
        parts = []
    return np.concatenate(parts) if parts else np.zeros(0)


def weight_of(kind: Any, variable: Any, a: Any, b: Any) -> Any:
    """The weight as a function, or None."""
    if kind is None:
        return None
    if kind in ("cos", "sin"):
        wave = np.cos if kind == "cos" else np.sin
        return lambda x: wave(variable * x)
    power = lambda x: (x - a) ** variable[0] * (b - x) ** variable[1]
    if kind == "alg":
        return power
    if kind == "alg-loga":
        return lambda x: power(x) * np.log(x - a)
    if kind == "alg-logb":
        return lambda x: power(x) * np.log(b - x)
    return lambda x: power(x) * np.log(x - a) * np.log(b - x)


def breaks_of(points: Any, way: Way) -> Any:
    """Break points as t."""
    inside = [p for p in (points if points is not None else ()) if way.a < p < way.b]
    return (np.array(inside, dtype=float) - way.a) / (way.b - way.a) if way.kind == "finite" else np.zeros(0)


followed = without_rule(integrate.quad_vec)
in_parts = without_rule(integrate.quad)


@RULES.defined(integrate.quad_vec)
def quad_vec(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """SciPy's Python code; its nodes are where the function, not its derivative, is rough."""
    args, kwargs = call
    outcome = followed(*args, **kwargs)
    if is_active(outcome[0]) and not np.any(fresh(outcome[0])):
        refuse(function, "the integral is zero, so its nodes say nothing about the derivative")
    return outcome


@RULES.defined(integrate.quad)
def quad(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """Value and error; the error has no derivative. SciPy's Python takes complex functions apart."""
    if given.get("complex_func"):
        return in_parts(*call[0], **call[1])
    outcome = called(function, call)
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
        z = integral(function, f, args, a, b, kind, variable, given["points"], value)
    return outcome if z is None else (carrying(value, z), *outcome[1:])


def between_breaks(function: Any, f: Any, args: Any, a: Any, b: Any, points: list[Any]) -> Any:
    """The sum of the integrals between break points that move, where f may jump."""
    if b < a:
        return -between_breaks(function, f, args, b, a, points)
    marks = [a, *sorted([p for p in points if a < p < b]), b]
    total = 0.0
    for low, high in zip(marks[:-1], marks[1:], strict=True):
        inside = one_sided(f, low, high)
        value = fresh(called(function, ((inside, low, high), {"args": args}))[0])
        z = integral(function, inside, args, low, high, None, None, None, value)
        total = total + (value if z is None else z)
    return total


def one_sided(f: Any, low: Any, high: Any) -> Any:
    """f with its limits from inside at the ends of an interval."""
    return lambda x, *args: f(x + nudge(x, low, high), *args)


@plainly
def nudge(x: Any, low: Any, high: Any) -> float:
    """What moves an end of an interval inside by a rounding error."""
    gap = 4.0 * float(np.spacing(max(abs(low), abs(high))))
    return gap if x <= low else -gap if x >= high else 0.0


def integral(
    function: Any, f: Any, args: Any, a: Any, b: Any, kind: Any, variable: Any, points: Any, value: Any
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
    moving = ordered() > 1  # Taylor coefficients: the nodes move with the ends
    if moving:
        low, high = float(a), float(b)
    if kind == "cauchy":
        rest = np.log(abs((high - variable) / (low - variable)))
        middle = height(f, args, variable)

        def smooth(x: Any, *args: Any) -> Any:
            return (height(f, args, x) - height(f, args, variable)) / (x - variable)

        z = summed(function, smooth, args, (low, high), value - fresh(middle * rest))
        z, weight = z + middle * rest, lambda x: 1 / (x - variable)
    else:
        weight = weight_of(kind, variable, low, high)
        z = summed(function, f, args, (low, high), value, kind, variable, points)
    return z if moving else ends(f, args, a, b, low, high, weight, z)


def summed(
    function: Any,
    f: Any,
    args: Any,
    ends: Any,
    value: Any,
    kind: Any = None,
    variable: Any = None,
    points: Any = None,
) -> Any:
    """The sum over nodes that are planned outside of every level; kind: of the weight, and what it varies with."""
    t, full, at_once = plan(function, f, args, ends, kind, variable, points, value)
    if is_active(ends):
        xs, full = nodes(t, full, *ends, kind, variable)
    else:
        xs, full = nodes_outside(at_once, t, full, *ends, kind, variable)
    return sum_of(f, args, xs, full, at_once)


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
    """Whether f(x) depends on the inputs at this level, though they are not seen in it: at some x."""
    x, _ = way_of(min(low, high), max(low, high)).points(np.array([0.03, 0.26, 0.437, 0.71, 0.96]))
    return is_active([f(float(x[k]), *args) for k in range(len(x))])
