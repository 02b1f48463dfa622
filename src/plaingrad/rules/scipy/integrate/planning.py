"""Which nodes a sum needs, so that it and its derivative are as good as the integral: looked for outside of every level."""

from __future__ import annotations

from functools import partial
from itertools import count
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from plaingrad import origin
from plaingrad.class_keys import is_among
from plaingrad.errors import PlaingradError
from plaingrad.rules import derivatives
from plaingrad.rules.scipy.contents import contents_of
from plaingrad.rules.scipy.implicit import is_active, mover, number, plainly, refuse
from plaingrad.rules.scipy.integrate.nodes import NODES, Way, breaks_of, placed, unit, way_between, weight_of
from plaingrad.tangents import Tangent, unthunk

GOAL = 1e-10  # relative error of the sum, by an estimate that is large
NESTED_GOAL = 1e-12  # where derivatives of its derivatives are taken, which nothing else measures
CONVERGED = 2e-8  # relative difference of the derivatives by both rules: Kronrod's is exact to 1e-8, by QUADPACK's power
NESTED_CONVERGED = 1e-8
MOST_PANELS = 400
SAME = 1e-10  # relative difference of what is computed at once and one by one
LIBRARIES = ("numpy", "scipy", "numba", "plaingrad.engine", "plaingrad.api", "plaingrad.rules.scipy.implicit")
PLAIN = frozenset(
    (type(None), float, np.float64, int, bool, str, np.ndarray, np.ufunc, BuiltinFunctionType, type(np.sum))
) - {FunctionType}  # hold no functions of the program
MOST_NODES = 2 * MOST_PANELS * NODES.size  # for derivatives

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


class Panel(NamedTuple):
    """A part of the unit interval.

    Attributes:
        low: where it begins.
        high: where it ends.
        total: the sum over its nodes.
        error: what that may be off.
        x: the nodes.
        heights: the integrand there.
    """

    low: float
    high: float
    total: float
    error: float
    x: Any
    heights: Any


@plainly
def meshed(
    f: Any, args: Any, ends: Any, kind: Any, variable: Any, points: Any, nested: bool = False, known: Any = None
) -> list[Panel]:
    """Panels on which the sum is good, in order; known: nodes and values of some."""
    way = way_between(*ends, kind)
    marks = np.unique(np.concatenate([[0.0, 1.0], breaks_of(points, way)])).tolist()
    goal = NESTED_GOAL if nested else GOAL
    weight = weight_of(kind, variable, *ends)
    return sorted(refined(f, args, marks, way, weight, goal, known or {}), key=lambda p: p.low)


@plainly
def plan(
    function: Any,
    f: Any,
    args: Any,
    ends: Any,
    kind: Any,
    variable: Any,
    parts: Any,
    value: float,
    nested: bool = False,
    constants: Any = frozenset(),
) -> Any:
    """(nodes t, weights, whether f takes all nodes at once, the cotangents of the sum) as good as SciPy's value.

    Its derivative has converged, too; None: it does not. constants: what f and args hold whose derivative is not asked for.
    """
    way = way_between(*ends, kind)
    weight = weight_of(kind, variable, *ends)
    total, error = sum([p.total for p in parts]), sum([p.error for p in parts])
    heights = np.concatenate([p.heights for p in parts])
    panels = np.array([(p.low, p.high) for p in parts])
    value = value if ends[0] < ends[1] else -value
    if not np.abs(total - value) <= 1e-6 * np.abs(value) + 10 * error + 1e-7:
        refuse(
            function, f"the integrand is too singular: a sum over nodes gives {total:.6g}, not {value:.6g}"
        )
    for attempt in range(8):
        x, full, coarse, keep = placed(panels, way, weight)
        if x.size > MOST_NODES:  # halving all panels does not help at a singular place
            break
        goal = NESTED_CONVERGED if nested else CONVERGED
        at_once, converged, bars = has_converged(f, args, x, full, coarse, heights, goal, constants)
        if converged:
            t, full, _ = unit(panels)
            return t[keep], full[keep], at_once, bars
        panels = halved(panels, np.array([p.error for p in parts]) if attempt == 0 else None)
        heights = None
    return None


def halved(panels: Any, errors: Any) -> Any:
    """Panels of which those with the larger errors are halved, half of them; without errors all."""
    split = np.full(len(panels), True) if errors is None else errors >= np.median(errors)
    low, high = panels[split].T
    middle = (low + high) / 2
    parts = [panels[~split], np.stack([low, middle], 1), np.stack([middle, high], 1)]
    found = np.concatenate(parts)
    return found[np.argsort(found[:, 0])]


def refined(
    f: Any, args: tuple[Any, ...], marks: list[float], way: Way, weight: Any, goal: float, known: Any
) -> list[Panel]:
    """Panels halved where the sum is worst."""

    def of(low: float, high: float) -> Panel:
        x, full, coarse, _ = placed(np.array([[low, high]]), way, weight)
        x, z = known[low, high] if (low, high) in known else (x, heights_of(f, args, x))
        return Panel(low, high, float(full @ z), error_of(z, full, coarse), x, z)

    parts = [of(low, high) for low, high in zip(marks[:-1], marks[1:], strict=True)]
    while len(parts) < MOST_PANELS:
        total, error = sum([p.total for p in parts]), sum([p.error for p in parts])
        if not error > goal * abs(total) + 1e-13:
            break
        worst = max(range(len(parts)), key=lambda k: parts[k].error)
        low, high, *_ = parts.pop(worst)
        middle = (low + high) / 2
        if not low < middle < high:
            parts.append(of(low, high))
            break
        parts += [of(low, middle), of(middle, high)]
    return parts


def error_of(z: Any, full: Any, coarse: Any) -> float:
    """What a sum over the nodes of a panel may be off: the difference of both rules says that of Gauss's, which is far less
    exact than Kronrod's where they nearly agree; QUADPACK's power of it, of the scale that the integrand varies on."""
    off = abs(float((full - coarse) @ z))
    varied = float(np.abs(full) @ np.abs(z - full @ z / np.sum(full))) if np.any(full) else 0.0
    return varied * min(off / varied, (200.0 * off / varied) ** 1.5) if varied > 0.0 else off


def heights_of(f: Any, args: tuple[Any, ...], x: Any) -> Any:
    """f at places, one by one."""
    found = [f(place, *args) for place in x.tolist()]
    if {*map(type, found)} - {float, np.float64}:
        found = [number(np.asarray(z)) for z in found]
    return np.array(found, dtype=None if found else float)


def has_converged(
    f: Any,
    args: tuple[Any, ...],
    x: Any,
    full: Any,
    coarse: Any,
    heights: Any,
    goal: float,
    constants: Any,
) -> tuple[bool, bool, Any]:
    """Whether f takes all nodes at once, whether both weights give the same derivatives in all that f and args hold, and
    these, as they came; None if they are not known."""
    found = bars_at_once(f, args, x, full, coarse, heights, constants)
    at_once = found is not None
    try:
        total, bars, off = bars_one_by_one(f, args, x, full, coarse, constants) if found is None else found
    except PlaingradError:
        return (
            False,
            x.size >= 2 * NODES.size,
            None,
        )  # what it holds cannot be told: a mesh that is finer than need be
    fine = asked(bars, constants)
    size = np.max(np.abs(fine), initial=0.0)
    if fine.size and size == 0.0:
        return at_once, x.size >= (16 if total == 0.0 else 2) * NODES.size, bars  # nothing says where to look
    return at_once, fine.shape == off.shape and bool(np.all(np.abs(off) <= goal * size)), bars


def bars_one_by_one(
    f: Any, args: tuple[Any, ...], x: Any, full: Any, coarse: Any, constants: Any
) -> tuple[Any, Any, Any]:
    """The sum over nodes, the cotangents that it gives f and args, and how far those of the other weights are off."""
    key = next(KEYS)
    TABLES[key] = x.tolist(), full.tolist(), coarse.tolist()
    try:
        (total, _), pullback = derivatives.pulled(sums, f, args, key)
        return total, pullback((1.0, 0.0)), asked(pullback((1.0, -1.0)), constants)
    finally:
        del TABLES[key]


def bars_at_once(
    f: Any, args: tuple[Any, ...], x: Any, full: Any, coarse: Any, heights: Any, constants: Any
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
        if remembers(f, set()) or not takes_arrays(f, args, x):
            return None
        with np.errstate(all="ignore"):
            (z, *_), pullback = derivatives.pulled(all_at_once, f, args, key)
            if type(z) is not np.ndarray or z.dtype != float or z.shape != x.shape:
                return None
            single = heights_of(f, args, x) if heights is None else heights
            if single.shape != z.shape or not np.all(np.abs(z - single) <= SAME * np.max(np.abs(single))):
                return None
            bars = pullback((full, 0.0, 0.0))
            fine = asked(bars, constants)
            apart, alone = np.zeros(x.size), (-full[some]).tolist()
            apart[some] = full[some]
            off = asked(pullback((full - coarse + apart, *alone)), constants)  # both differences in one pass
            size = np.max(np.abs(fine), initial=0.0)
            if not np.all(np.abs(off) <= 1e-8 * size):
                difference = asked(pullback((apart, *alone)), constants)
                if difference.shape != fine.shape or not np.all(np.abs(difference) <= SAME * size):
                    return None
            return single @ full, bars, off
    except Exception:  # whatever it raises, it does not take arrays
        return None
    finally:
        del TABLES[key]


def takes_arrays(f: Any, args: tuple[Any, ...], x: Any) -> bool:
    """Whether f of all nodes at once, without derivatives, is an array of as many numbers."""
    z = f(x.copy(), *args)
    return type(z) is np.ndarray and z.dtype == float and z.shape == x.shape


def remembers(f: Any, seen: set[Any]) -> bool:
    """Whether what is written in a function changes what outlives a call; or in one of Python that it may call, by a name
    in its scope, in a module or in the class of an object there."""
    if type(f) is MethodType:
        f = f.__func__
    elif type(f) is partial:
        return remembers(f.func, seen)
    elif type(f) is not FunctionType:
        f = next((vars(cls)["__call__"] for cls in type(f).__mro__ if "__call__" in vars(cls)), None)
    if type(f) is not FunctionType or f in seen or origin.is_of(f.__module__, LIBRARIES):
        return False
    seen.add(f)
    if not origin.is_of(f.__module__, ("plaingrad",)) and derivatives.has_effects(f.__code__):
        return True
    names = f.__code__.co_names
    cells = [contents_of(cell)["contents"] for cell in f.__closure__ or ()]
    scope = [*cells, *[f.__globals__.get(name) for name in names]]
    scope = [o for o in scope if not is_among(type(o), PLAIN)]
    called = [*scope, *[found for o in scope for name in names for found in attributes(o, name)]]
    return any(remembers(g, seen) for g in called if not is_among(type(g), PLAIN))


def attributes(o: Any, name: str) -> list[Any]:
    """What o.name may be, found without code of the program."""
    if isinstance(o, ModuleType):
        return [vars(o).get(name)]
    if isinstance(o, type):
        return [vars(cls).get(name) for cls in o.__mro__]
    found = [vars(cls).get(name) for cls in type(o).__mro__]
    return [p.fget if isinstance(p, property) else p for p in (*found, getattr(o, "__dict__", {}).get(name))]


def all_at_once(f: Any, args: tuple[Any, ...], key: int) -> Any:
    """f at all nodes of a table, and at some of them by itself."""
    x, some, _ = TABLES[key]
    return f(x, *args), *[f(place, *args) for place in some]


@mover
def held(f: Any, args: Any) -> list[tuple[Any, Any]]:
    """(its name or place, a number or an array) of what a function of Python has captured, and of its arguments."""
    found = list(enumerate(args))
    if type(f) is FunctionType and f.__closure__:
        cells = zip(f.__code__.co_freevars, f.__closure__, strict=True)
        found += [(name, contents_of(cell)["contents"]) for name, cell in cells]
    return [(name, x) for name, x in found if type(x) in (float, np.float64, np.ndarray)]


def constants_of(f: Any, args: Any) -> Any:
    """Names and places of these which do not depend on the inputs at this level."""
    return frozenset([name for name, x in held(f, args) if not is_active(x)])


def asked(bars: Any, constants: Any) -> Any:
    """The numbers in the cotangents of f and args, without those of constants."""
    f_bar, args_bar = unthunk(bars[1]), unthunk(bars[2])
    if constants and isinstance(f_bar, Tangent):
        f_bar = [f_bar[name] for name in f_bar if name not in constants]
    if constants and isinstance(args_bar, tuple):
        args_bar = [x_bar for k, x_bar in enumerate(args_bar) if k not in constants]
    found = flat((f_bar, args_bar))
    return found if found.size else flat(bars[1:3])  # what depends on the inputs is not seen in these


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
