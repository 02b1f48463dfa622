"""What forward mode does with tangents: rows, linear and bilinear functions, chunks, structures.

Ordinary Python over numbers and arrays: under a nested derivative it runs rewritten, at the next level out.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from plaingrad import number_classes
from plaingrad.class_keys import is_instance, is_own_key
from plaingrad.tangents import NoTangent, Tangent, ZeroTangent, unthunk
from plaingrad.tangents.project import for_numpy, in_the_arithmetic_of, is_complex
from plaingrad.tangents.types import primal_type_of


def aligned(x_dot: Any, x: Any, ndim: int, lead: tuple[int, ...]) -> Any:
    """`x_dot` with axes between those of the chunk and its own, so that it broadcasts as `x` does to `ndim` axes."""
    if not lead:
        return x_dot
    missing = ndim - axes_of(x)
    if missing <= 0:
        return x_dot
    return np.reshape(x_dot, lead + (1,) * missing + np.shape(x))


def axes_of(x: Any) -> int:
    """The number of axes of a number or array; NumPy is not asked about numbers, whose class may have no hash."""
    return 0 if isinstance(x, (float, int, complex)) or number_classes.is_own(x) else np.ndim(x)


def row(partials: Any, m: Any, args: tuple[Any, ...], z: Any, positions: Any, dots: Any, lead: Any) -> Any:
    """z_dot = the sum of dz/dx * x_dot over the arguments that vary; None where there is none."""
    try:
        return _row(partials, m, args, z, positions, dots, lead)
    except (SystemError, TypeError):  # NumPy fails at numbers of classes without hash
        if not lead or all(is_own_key(type(x)) for x in (*args, z)):
            raise
        return _row(partials, m, tuple(map(for_numpy, args)), for_numpy(z), positions, dots, lead)


def _row(partials: Any, m: Any, args: tuple[Any, ...], z: Any, positions: Any, dots: Any, lead: Any) -> Any:
    z_dot: Any = None
    ndim = axes_of(z) if lead else 0
    for position, x_dot in zip(positions, dots, strict=True):
        partial = partials[position] if position < len(partials) else None
        if partial is None:
            continue
        x_dot = aligned(x_dot, args[position], ndim, lead)
        if callable(partial):
            x_dot = partial(m, *args, z) * x_dot
        elif partial == -1:
            x_dot = -x_dot
        elif partial != 1:
            x_dot = partial * x_dot
        z_dot = x_dot if z_dot is None else z_dot + x_dot
    return z_dot


def linear(f: Callable[..., Any], x: Any, x_dot: Any, others: Any, options: dict[str, Any], lead: Any) -> Any:
    """f(x_dot, *others) for one tangent or each of a chunk."""
    if not lead:
        return f(of_type(x_dot, x), *others, **options)
    return stacked([f(of_type(chosen(x_dot, k), x), *others, **options) for k in range(lead[0])])


def of_type(x_dot: Any, x: Any) -> Any:
    """`x_dot` as exactly the type of `x`: methods of a type take nothing else."""
    if number_classes.is_own(x):
        return number_classes.made(x, x_dot)
    if is_instance(x, (float, complex, np.inexact, Fraction, Decimal)) and type(x_dot) is not type(x):
        return type(x)(x_dot)
    if isinstance(x, np.ndarray) and not isinstance(x_dot, np.ndarray):
        return np.asarray(x_dot)
    return x_dot


def bilinear(f: Any, a: Any, b: Any, a_dot: Any, b_dot: Any, others: Any, options: Any, lead: Any) -> Any:
    """f(a_dot, b) + f(a, b_dot) for one tangent or each of a chunk; None stands for a tangent that is zero."""
    if lead:
        each = [
            bilinear(f, a, b, chosen(a_dot, k), chosen(b_dot, k), others, options, ()) for k in range(lead[0])
        ]
        return stacked(each)
    if b_dot is None:
        return f(a_dot, b, *others, **options)
    if a_dot is None:
        return f(a, b_dot, *others, **options)
    return f(a_dot, b, *others, **options) + f(a, b_dot, *others, **options)


def by_pushforward(push: Callable[[Any], Any], dots: tuple[Any, ...], lead: Any, chunked: bool) -> Any:
    """push(dots), for each tangent of a chunk if the pushforward takes them one by one."""
    if not lead or chunked:
        return push(dots)
    return stacked([push(tuple([chosen(x_dot, k) for x_dot in dots])) for k in range(lead[0])])


def chosen(x_dot: Any, k: int) -> Any:
    """Tangent `k` of a chunk."""
    if x_dot is None or x_dot is ZeroTangent or x_dot is NoTangent:
        return x_dot
    if isinstance(x_dot, tuple):
        return tuple([chosen(part, k) for part in x_dot])
    if isinstance(x_dot, list):
        return [chosen(part, k) for part in x_dot]
    if type(x_dot) is Tangent:
        return Tangent(primal_type_of(x_dot), {name: chosen(x_dot[name], k) for name in x_dot})
    if isinstance(x_dot, dict):
        return {key: chosen(part, k) for key, part in x_dot.items()}
    return x_dot[k]


def stacked(each: list[Any]) -> Any:
    """A chunk out of its tangents; all have the same structure."""
    each = [unthunk(y_dot) for y_dot in each]
    first = each[0]
    if first is None or all(y_dot is ZeroTangent or y_dot is NoTangent for y_dot in each):
        return ZeroTangent
    found = number_classes.system_of(first) if number_classes.known else None
    if found is not None:
        return found.stacked([found.made(first, 0) if y_dot is ZeroTangent else y_dot for y_dot in each])
    if isinstance(first, (tuple, list)):
        return [stacked([y_dot[k] for y_dot in each]) for k in range(len(first))]
    if isinstance(first, dict):
        return {key: stacked([y_dot[key] for y_dot in each]) for key in first}
    if type(first) is Tangent:
        return Tangent(
            primal_type_of(first), {name: stacked([y_dot[name] for y_dot in each]) for name in first}
        )
    zero = next((y_dot * 0 for y_dot in each if y_dot is not ZeroTangent), 0.0)
    return np.stack([zero if y_dot is ZeroTangent else y_dot for y_dot in each])


def number_tangent(x_dot: Any, x: Any, lead: Any) -> Any:
    """`x_dot` as a tangent of the number `x`: real where `x` is, a Python float for a Python float."""
    if lead and number_classes.known and number_classes.system_of(x) is not None:
        return x_dot
    if isinstance(x_dot, np.ndarray) and not lead:
        x_dot = x_dot[()] if x_dot.ndim == 0 else np.sum(x_dot)
    if number_classes.known and not lead:
        x_dot = in_the_arithmetic_of(x, x_dot)
    if (
        not isinstance(x, (complex, np.complexfloating))
        and not number_classes.is_own(x)
        and is_complex(x_dot)
    ):
        x_dot = np.real(x_dot) if lead else x_dot.real
    if lead:
        if np.shape(x_dot) != lead:
            x_dot = np.broadcast_to(x_dot, lead)
        if isinstance(x, float) and x_dot.dtype.kind == "O":  # of decimals or fractions
            return np.array([float(d) for d in x_dot])
        return x_dot
    if type(x) is float or type(x) is np.float64:
        return float(x_dot) if type(x_dot) is not float else x_dot
    if isinstance(x, Decimal) and not isinstance(x_dot, Decimal):
        return Decimal(x_dot)
    if type(x) is complex and isinstance(x_dot, (np.number, float, int)):
        return complex(x_dot)
    return x_dot


def array_tangent(x_dot: Any, x: np.ndarray, lead: Any) -> Any:
    """`x_dot` as a tangent of the array `x`: its shape behind the chunk's, its dtype, real where `x` is."""
    if x.dtype.kind != "c" and np.iscomplexobj(x_dot):
        x_dot = np.real(x_dot)
    shape = lead + x.shape
    if np.shape(x_dot) != shape:
        if lead and np.ndim(x_dot) < len(shape):
            x_dot = np.reshape(x_dot, lead + (1,) * (len(shape) - np.ndim(x_dot)) + np.shape(x_dot)[1:])
        x_dot = np.broadcast_to(x_dot, shape)
    if type(x_dot) is not np.ndarray or x_dot.dtype != x.dtype:
        return np.asarray(x_dot, dtype=x.dtype)
    return x_dot
