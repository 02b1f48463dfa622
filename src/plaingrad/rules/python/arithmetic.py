"""Builtins and `math` functions that make one number of several, with the primal of the original to the last bit."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from plaingrad.class_keys import is_heap, is_instance
from plaingrad.define import composed, no_tangent, rrule
from plaingrad.rules.elementwise import direction, scale_for
from plaingrad.rules.pushforwards import both_forms, total, varies
from plaingrad.rules.python.calls import call_binary
from plaingrad.tangents import NoTangent

no_tangent(round)  # integers, or a step between its jumps


NUMBERS = (int, float, complex, np.number)


def _leading_numbers(start: Any, items: list[Any]) -> int:
    """How many items at the start are plain numbers, as `start` is; text is left to the builtin, which refuses it."""
    if isinstance(start, (str, bytes, bytearray)):
        return len(items)
    if not isinstance(start, NUMBERS):
        return 0
    for n, x in enumerate(items):
        if not isinstance(x, NUMBERS):
            return n
    return len(items)


no_tangent(_leading_numbers)


def _sum_of_numbers(start: Any, *items: Any) -> Any:
    return sum(items, start)


@rrule(_sum_of_numbers)
def sum_of_numbers_rrule(start: Any, *items: Any) -> Any:
    """The builtin's own sum: since CPython 3.12 it is compensated, so a loop would give other digits."""

    def sum_pullback(z_bar: Any) -> Any:
        return (z_bar,) * (1 + len(items))

    return sum(items, start), sum_pullback


@both_forms(_sum_of_numbers, affine=True)
def sum_of_numbers_frule(start: Any, *items: Any) -> Any:
    """The sum of the tangents."""
    return sum(items, start), lambda dots: total(*dots)


def _tells_its_length(x: Any) -> bool:
    return is_heap(type(x)) and hasattr(type(x), "__len__")


no_tangent(_tells_its_length)


@composed(sum)
def sum_(iterable: Any, /, start: Any = 0) -> Any:
    """Numbers at the start natively, what follows (arrays, objects) by `+`, as the builtin does."""
    items = list(iter(iterable) if _tells_its_length(iterable) else iterable)  # it is not asked for it
    n = _leading_numbers(start, items)
    if n == len(items):
        return _sum_of_numbers(start, *items)
    total = _sum_of_numbers(start, *items[:n]) if n else start
    for x in items[n:]:
        total = total + x
    return total


def _are_divisible(x: Any, y: Any) -> bool:
    numeric = (float, int, np.ndarray, np.generic, Fraction, Decimal)
    own = {type(x).__module__, type(y).__module__} - {"builtins", "numpy", "fractions", "decimal"}
    return is_instance(x, numeric) and is_instance(y, numeric) and not own


no_tangent(_are_divisible)


def quotient_of(x: Any, y: Any) -> Any:
    """The whole quotient, with the errors of `divmod`."""
    return divmod(x, y)[0]


no_tangent(quotient_of)


@composed(divmod)
def divmod_(x: Any, y: Any, /) -> Any:
    """x // y and x % y, or what the operands' own methods say."""
    if _are_divisible(x, y):
        return quotient_of(x, y), x % y
    return call_binary(x, y, "__divmod__", "__rdivmod__")


@rrule(math.hypot)
def hypot_rrule(*coordinates: Any) -> Any:
    """z**2 = sum of x**2; 0 at the kink."""
    z = math.hypot(*coordinates)

    def hypot_pullback(z_bar: Any) -> Any:
        return tuple([z_bar * slope for slope in slopes_of_length(coordinates, z)])

    return z, hypot_pullback


def slopes_of_length(coordinates: Any, z: Any) -> list[Any]:
    """x / z for each coordinate x of a point at the distance z from the origin; 0 at the kink."""
    scale = scale_for(z)
    if scale != 1.0:
        coordinates = [x * scale for x in coordinates]
        z = math.hypot(*coordinates)
    return [direction(x, z) for x in coordinates]


@both_forms(math.hypot)
def hypot_frule(*coordinates: Any) -> Any:
    """z z_dot = sum of x x_dot; 0 at the kink."""
    z = math.hypot(*coordinates)

    def hypot_pushforward(dots: Any) -> Any:
        slopes = slopes_of_length(coordinates, z)
        return total(*[slope * x_dot for slope, x_dot in zip(slopes, dots) if varies(x_dot)])

    return z, hypot_pushforward


def in_floats(x: Any) -> Any:
    """`x`, or the float that `math` makes of an exact number, which mixes with no float itself."""
    return float(x) if is_instance(x, (Decimal, Fraction)) else x


def _distance(n: int, *coordinates: Any) -> Any:
    """The distance of the point made of the first n coordinates from that of the others."""
    return math.dist(coordinates[:n], coordinates[n:])


@rrule(_distance)
def distance_rrule(n: int, *coordinates: Any) -> Any:
    """z**2 = sum of (p - q)**2; 0 at the kink."""
    z = _distance(n, *coordinates)

    def distance_pullback(z_bar: Any) -> Any:
        p_bar = [z_bar * slope for slope in slopes_of_distance(n, coordinates, z)]
        return NoTangent, *p_bar, *[-x_bar for x_bar in p_bar]

    return z, distance_pullback


def slopes_of_distance(n: int, coordinates: Any, z: Any) -> list[Any]:
    """(p - q) / z for each pair of coordinates; 0 at the kink."""
    scale = scale_for(z)
    if scale == 1.0:
        return [direction(p - q, z) for p, q in zip(coordinates[:n], coordinates[n:])]
    differences = [p * scale - q * scale for p, q in zip(coordinates[:n], coordinates[n:])]
    return slopes_of_length(differences, math.hypot(*differences))


@both_forms(_distance)
def distance_frule(n: int, *coordinates: Any) -> Any:
    """z z_dot = sum of (p - q) (p_dot - q_dot); 0 at the kink."""
    z = _distance(n, *coordinates)

    def distance_pushforward(dots: Any) -> Any:
        p_dots, q_dots = dots[1 : n + 1], dots[n + 1 :]
        parts = []
        for slope, p_dot, q_dot in zip(slopes_of_distance(n, coordinates, z), p_dots, q_dots):
            moved = total(p_dot, -q_dot if varies(q_dot) else q_dot)
            if varies(moved):
                parts.append(slope * moved)
        return total(*parts)

    return z, distance_pushforward


@composed(math.dist)
def dist(p: Any, q: Any, /) -> Any:
    """The Euclidean distance of two points."""
    p = tuple(p)
    return _distance(len(p), *[in_floats(x) for x in (*p, *q)])


def _exact_sum(*items: Any) -> Any:
    return math.fsum(items)


@rrule(_exact_sum)
def exact_sum_rrule(*items: Any) -> Any:
    """A sum rounded once."""

    def exact_sum_pullback(z_bar: Any) -> Any:
        return (z_bar,) * len(items)

    return math.fsum(items), exact_sum_pullback


@both_forms(_exact_sum, affine=True)
def exact_sum_frule(*items: Any) -> Any:
    """The sum of the tangents."""
    return math.fsum(items), lambda dots: total(*dots)


@composed(math.fsum)
def fsum(seq: Any, /) -> Any:
    """A sum rounded once."""
    return _exact_sum(*[in_floats(x) for x in seq])


@composed(math.prod)
def prod(iterable: Any, /, *, start: Any = 1) -> Any:
    """The product, from left to right."""
    z = start
    for x in iterable:
        z = z * x
    return z


if hasattr(math, "sumprod"):  # since CPython 3.12

    def _exact_sum_of_products(n: int, *items: Any) -> Any:
        return math.sumprod(items[:n], items[n:])

    @rrule(_exact_sum_of_products)
    def exact_sum_of_products_rrule(n: int, *items: Any) -> Any:
        """Sum of p q, rounded once."""

        def sum_of_products_pullback(z_bar: Any) -> Any:
            return NoTangent, *[z_bar * q for q in items[n:]], *[z_bar * p for p in items[:n]]

        return _exact_sum_of_products(n, *items), sum_of_products_pullback

    @both_forms(_exact_sum_of_products)
    def exact_sum_of_products_frule(n: int, *items: Any) -> Any:
        """Sum of p_dot q + p q_dot."""

        def sum_of_products_pushforward(dots: Any) -> Any:
            others = (*items[n:], *items[:n])
            return total(*[x_dot * x for x_dot, x in zip(dots[1:], others) if varies(x_dot)])

        return _exact_sum_of_products(n, *items), sum_of_products_pushforward

    @composed(math.sumprod)
    def sumprod(p: Any, q: Any, /) -> Any:
        """Sum of p q."""
        p = list(p)
        q = list(q)
        if _leading_numbers(0, p) + _leading_numbers(0, q) == len(p) + len(q):
            return _exact_sum_of_products(len(p), *p, *q)
        z = 0
        for x, y in zip(p, q, strict=True):
            z = z + x * y
        return z
