"""Derivatives by differences: central ones at many steps, extrapolated; where rounding blinds them, others."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plaingrad.engine.memory.kinds import ARRAY, NUMBER, kind_of
from plaingrad.testing.structures import (
    Leaf,
    copied,
    flat,
    is_leaf,
    leaf_inner,
    leaves_of,
    magnitude,
    mapped,
    tangent_like,
    wide,
)

FIRST_STEP, RATIO, STEPS = 2.0**-6, 4.0, 9  # relative to the size of the entries

#: mpmath's names for functions of `math`, `cmath` and NumPy.
ALIASES = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
    "arctan2": "atan2", "lgamma": "loggamma", "absolute": "fabs", "power": "power", "pow": "power",
}  # fmt: skip


@dataclass(frozen=True)
class Estimate:
    """A derivative by differences.

    Attributes:
        value: the derivative.
        error: how far it may be off.
        noise: the rounding error that was to be expected.
        seen: the largest size of the function among the points that were tried.
    """

    value: float
    error: float
    noise: float
    seen: float = 0.0


def directions_in(x: Any) -> Iterator[tuple[Any, complex]]:
    """(index, 1 or 1j) of every real direction in a leaf."""
    places = np.ndindex(x.shape) if isinstance(x, np.ndarray) else (None,)
    ways = (1.0, 1j) if np.iscomplexobj(x) else (1.0,)
    for at in places:
        for way in ways:
            yield at, way


def unit_direction(
    leaves: Sequence[Leaf], k: int, at: Any, way: complex, size: float = 1.0
) -> tuple[str, list[Any]]:
    """(the path of one entry, the direction that moves it alone, by `size`): of leaf `k`, at index `at`."""
    path, x = leaves[k]
    ways: list[Any] = [None] * len(leaves)
    if at is None:
        ways[k] = as_step(way * size, x)
    else:
        ways[k] = np.zeros(x.shape, complex if x.dtype.kind == "c" else float)
        ways[k][at] = way * size if x.dtype.kind == "c" else size
        path = f"{path}[{', '.join(map(str, at))}]"
    return path + (".imag" if way == 1j else ""), ways


def as_step(step: Any, x: Any) -> Any:
    """A step of a number: real for a real one."""
    return complex(step) if isinstance(x, (complex, np.complexfloating)) else float(np.real(step))


def moved(args: tuple[Any, ...], directions: list[Any], h: Any) -> tuple[Any, ...]:
    """Copies of `args` with h * direction added to each leaf; None: it stays where it is."""
    remaining = iter(directions)

    def change(x: Any) -> Any:
        d = next(remaining)
        return x if d is None else plus(x, d, h)

    return tuple([mapped(copied(x), change) for x in args])


def plus(x: Any, d: Any, h: Any) -> Any:
    """x + h d, laid out in memory as `x` is, and complex only where `x` or h is."""
    if isinstance(x, np.ndarray):
        step = np.asarray(h * d)
        if step.dtype.kind == "c" and x.dtype.kind != "c":
            return x + step
        x[...] = x + step  # `x` is a copy
        return x
    step = h * d
    if isinstance(x, (float, complex, np.inexact)):
        if isinstance(step, (complex, np.complexfloating)) and not isinstance(
            x, (complex, np.complexfloating)
        ):
            return complex(x) + complex(step)
        new = x + step
        return (
            type(x)(new)
            if type(x) is float or type(x) is complex or isinstance(x, np.generic)
            else remade(x, new)
        )
    return x + type(x)(step)  # Fraction, Decimal: in their own arithmetic


def remade(x: Any, new: Any) -> Any:
    """A number of the type of `x`, a user's subclass of float, with its attributes."""
    try:
        made = type(x).__new__(type(x), new)
        made.__dict__.update(getattr(x, "__dict__", {}))
        return made
    except Exception:
        return new


def size_of(x: Any) -> Any:
    """The scale of each entry of a leaf, on which a step is a small one."""
    absolute = np.abs(wide(np.asarray(x) if isinstance(x, np.ndarray) else x))  # without its unit
    if isinstance(x, np.ndarray):
        finite = absolute[np.isfinite(absolute)]
        top = float(finite.max()) if finite.size else 1.0
        floor = 1e-3 * top if top > 0 else 1.0
        return np.where(np.isfinite(absolute), np.maximum(absolute, floor), 0.0)
    absolute = float(absolute)
    if not math.isfinite(absolute):
        return 0.0
    return absolute if absolute > 0 else 1.0


def along(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    directions: list[Any],
    y_bar: Any,
    unit: float,
    thorough: bool = False,
    expected: float = math.nan,
    within: float = 0.0,
) -> Estimate:
    """<y_bar, df> along `directions` by central differences, extrapolated (Ridders 1982): the entry of the table that
    its neighbours confirm best.

    Args:
        f: the function.
        args: where.
        directions: one for each leaf of `args`, None for one that stays where it is.
        y_bar: the weights of the results.
        unit: the rounding unit of the results.
        thorough: every step is tried, and what the smallest ones scatter by counts as rounding.
        expected: the derivative that is to be confirmed.
        within: an extrapolated estimate as near to `expected` as this ends the search; far nearer than is to be told.
    """
    table: list[list[float]] = []
    best, best_h = Estimate(math.nan, math.inf, math.inf), 1.0
    single = unit > 1e-10
    h = 2.0**-4 if single else FIRST_STEP
    tried: list[tuple[float, float]] = []
    seen = 0.0
    for _ in range(5 if single else STEPS):
        central, size = difference(f, args, directions, y_bar, h)
        noise = 4 * unit * size / h if size < math.inf else math.inf
        seen = max(seen, size if size < math.inf else 0.0)
        row = [central]
        tried.append((h, central))
        for j, left in enumerate(table[-1] if table else ()):
            new = refined(left, row[j], RATIO, j + 1)
            error = max(abs(new - row[j]), abs(new - left))
            if error + noise < best.error + best.noise:
                best, best_h = Estimate(new, error, noise), h
            if abs(new - expected) <= within:
                return Estimate(new, error, noise, seen)
            row.append(new)
        table.append(row)
        if not thorough and best.error + best.noise <= 1e-10 * abs(best.value):
            break
        h /= RATIO
    if thorough and best.value == best.value:
        rounding = max((abs(d - best.value) * step for step, d in tried[-4:] if d == d), default=0.0)
        return Estimate(best.value, max(best.error, rounding / best_h), best.noise, seen)
    return best


def refined(coarse: float, fine: float, ratio: float, order: int = 1) -> float:
    """Two estimates at steps of this ratio, extrapolated: their error begins with the power 2 * order of the step."""
    factor = ratio ** (2 * order)
    return (factor * fine - coarse) / (factor - 1)


def difference(
    f: Callable[..., Any], args: tuple[Any, ...], directions: list[Any], y_bar: Any, h: float
) -> tuple[float, float]:
    """`central`; nan where `f` is not defined."""
    try:
        return central(f, args, directions, y_bar, h)
    except Exception:
        return math.nan, math.inf


def central(
    f: Callable[..., Any], args: tuple[Any, ...], directions: list[Any], y_bar: Any, h: float
) -> tuple[float, float]:
    """The central difference of <y_bar, f> at one step along `directions`, and the size of what is subtracted."""
    with np.errstate(all="ignore"):
        high, low = f(*moved(args, directions, h)), f(*moved(args, directions, -h))
        total = 0.0
        for bar, (_, p), (_, q) in zip(
            flat(y_bar, high), leaves_of(high, ""), leaves_of(low, ""), strict=True
        ):
            if bar is not None:
                total += leaf_inner(bar, gap(p, q))
        return total / (2 * h), magnitude(y_bar, tuple_like(high), high)


def gap(p: Any, q: Any) -> Any:
    """p - q; exact numbers are subtracted before they are rounded."""
    if np.shape(p) != np.shape(q):
        raise ValueError("the result changes its shape")
    return wide(p) - wide(q) if isinstance(p, (np.ndarray, float, complex, np.inexact)) else float(p - q)


def tuple_like(y: Any) -> Any:
    """`y` as a tangent of itself."""
    return tangent_like(y, lambda x: x)


def complex_step(
    f: Callable[..., Any], args: tuple[Any, ...], directions: list[Any], y_bar: Any
) -> float | None:
    """<y_bar, df> by f(x + ih), which subtracts nothing; None where `f` or its arguments are not made for it."""
    found = []
    for h in (1e-20, 1e-30):
        try:
            with np.errstate(all="ignore"):
                y = f(*moved(args, directions, 1j * h))
        except Exception:
            return None
        bars = flat(y_bar, y)
        total = 0.0
        for bar, (_, p) in zip(bars, leaves_of(y, ""), strict=False):
            if bar is None:
                continue
            if np.iscomplexobj(bar) or not np.iscomplexobj(p):
                return None
            total += leaf_inner(bar, np.imag(p) / h)
        found.append(total)
    return found[0] if abs(found[0] - found[1]) <= 1e-10 * abs(found[0]) else None


def by_mpmath(
    f: Callable[..., Any], args: tuple[Any, ...], directions: list[Any], y_bar: Any
) -> float | None:
    """<y_bar, df> with sixty digits, for functions of numbers that mpmath has or that are plain arithmetic."""
    try:
        import mpmath
    except ImportError:
        return None
    if not all(is_leaf(x) and kind_of(type(x)) == NUMBER for x in args) or kind_of(type(y_bar)) != NUMBER:
        return None
    name = getattr(f, "__name__", "")
    module = type(f).__module__ if isinstance(f, np.ufunc) else getattr(f, "__module__", None)
    if module in ("math", "cmath", "numpy", "_operator"):
        f = getattr(mpmath, ALIASES.get(name, name), f)
    with mpmath.workdps(60):
        try:
            exact = [mpmath.mpmathify(x) for x in args]
            ways = [0 if d is None else mpmath.mpmathify(d) for d in directions]
            found = []
            for h in (mpmath.mpf(10) ** -18, mpmath.mpf(10) ** -20):
                high = f(*[x + h * d for x, d in zip(exact, ways, strict=True)])
                low = f(*[x - h * d for x, d in zip(exact, ways, strict=True)])
                slope = (high - low) / (2 * h)
                if not isinstance(slope, (mpmath.mpf, mpmath.mpc)):
                    return None
                found.append(float(mpmath.re(mpmath.conj(mpmath.mpmathify(y_bar)) * slope)))
        except Exception:
            return None
    return found[0] if abs(found[0] - found[1]) <= 1e-10 * abs(found[0]) else None


def widened(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """`args` with every number in double precision at least."""

    def change(x: Any) -> Any:
        if kind_of(type(x)) == ARRAY or isinstance(x, (np.float16, np.float32, np.complex64)):
            dtype = np.result_type(x.dtype, np.float64)
            return x.astype(dtype) if isinstance(x, np.ndarray) else dtype.type(x)
        return x

    return tuple([mapped(copied(x), change) for x in args])
