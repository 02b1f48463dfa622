"""Functions that return all degrees up to n, and their derivatives: a differential equation has the second ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.rules.pushforwards import dot_of, varies
from plaingrad.rules.scipy.compiled import enter
from plaingrad.rules.scipy.forms import find
from plaingrad.tangents import NoTangent, Thunk, ZeroTangent, is_zero, unthunk


def pair(name: str, second: Any, orders: int = 1) -> None:
    """Enter f(n, x), or f(m, n, x) with two orders: (z, dz/dx) with all degrees along the first axes."""
    function = find(name)
    if function is None:
        return

    def slopes(x: Any, z: Any, z_dot: Any) -> tuple[Any, Any]:
        degrees = [np.arange(count) for count in np.shape(z)[:orders]]
        degrees = [k.reshape(-1, *(1,) * (np.ndim(z) - 1 - i)) for i, k in enumerate(degrees)]
        return z_dot, second(*degrees, x, z, z_dot)

    def pair_rrule(*args: Any) -> Any:
        x, (z, z_dot) = args[-1], function(*args)

        def pair_pullback(bars: Any) -> Any:
            def x_bar() -> Any:
                total: Any = 0.0
                for bar, slope in zip(bars, slopes(x, z, z_dot), strict=True):
                    bar = unthunk(bar)
                    if not is_zero(bar):
                        total = total + (bar * np.conj(slope)).sum(tuple(range(orders)))
                return total

            return *(NoTangent for _ in args[:-1]), Thunk(x_bar)

        return (z, z_dot), pair_pullback

    def pair_frule(*args: Any) -> Any:
        x, (z, z_dot) = args[-1], function(*args)

        def pair_pushforward(dots: Any) -> Any:
            x_dot = dot_of(dots, len(args) - 1)
            if not varies(x_dot):
                return ZeroTangent, ZeroTangent
            lead = np.shape(x_dot)[: np.ndim(x_dot) - np.ndim(x)]
            along = np.reshape(x_dot, (*lead, *(1,) * orders, *np.shape(x)))
            return tuple([slope * along for slope in slopes(x, z, z_dot)])

        return (z, z_dot), pair_pushforward

    enter(function, pair_rrule, pair_frule)


def riccati(n: Any, x: Any, z: Any, z_dot: Any) -> Any:
    """x^2 z'' + (x^2 - n (n + 1)) z = 0."""
    return (n * (n + 1) / (x * x) - 1) * z


def legendre(n: Any, x: Any, z: Any, z_dot: Any) -> Any:
    """(1 - x^2) z'' - 2 x z' + n (n + 1) z = 0."""
    return associated(0, n, x, z, z_dot)


def associated(m: Any, n: Any, x: Any, z: Any, z_dot: Any) -> Any:
    """(1 - x^2) z'' - 2 x z' + (n (n + 1) - m^2 / (1 - x^2)) z = 0."""
    rest = 1 - x * x
    return (2 * x * z_dot - (n * (n + 1) - m * m / rest) * z) / rest


pair("riccati_jn", riccati)
pair("riccati_yn", riccati)
pair("lqn", legendre)
pair("lqmn", associated, orders=2)
