"""Legendre functions and spherical harmonics that give derivatives themselves (`diff_n`), since SciPy 1.15.

Their derivative of order diff_n is one of their results with diff_n + 1, which SciPy has up to 2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.errors import MissingRuleError
from plaingrad.rulebook import Rule
from plaingrad.rules.pushforwards import dot_of, total, varies
from plaingrad.rules.scipy.forms import find, keep, source
from plaingrad.tangents import NoTangent, Thunk, is_zero, unthunk

THIRD = "SciPy has no third derivatives of it"


def higher(name: str, function: Any, args: Any, options: dict[str, Any]) -> Any:
    """The results with one derivative more."""
    n = options.get("diff_n", 0)
    if n >= 2:
        raise MissingRuleError(
            f"scipy.special.{name} with diff_n=2 has no derivative here: {THIRD}.\n  See docs: errors#missing-rule"
        )
    return function(*args, **{**options, "diff_n": n + 1})


def summed(x: Any, shape: tuple[int, ...]) -> Any:
    """`x` summed over the axes by which it is larger than `shape`."""
    x = np.sum(x, axis=tuple(range(np.ndim(x) - len(shape)))) if np.ndim(x) > len(shape) else x
    axes = tuple([k for k, n in enumerate(shape) if n == 1 and np.shape(x)[k] != 1])
    return np.sum(x, axis=axes, keepdims=True) if axes else x


def of_one_variable(name: str, place: int) -> None:
    """Enter a function of degrees and one variable at `place`, whose derivatives are stacked along the first axis."""
    function = find(name)
    if function is None:
        return

    def stacked_rrule(*args: Any, **options: Any) -> Any:
        z = function(*args, **options)

        def stacked_pullback(z_bar: Any) -> Any:
            def x_bar() -> Any:
                return summed(z_bar * np.conjugate(higher(name, function, args, options)[1:]), np.shape(args[place]))

            return tuple([NoTangent] * place + [Thunk(x_bar)])

        return z, stacked_pullback

    def stacked_frule(*args: Any, **options: Any) -> Any:
        z = function(*args, **options)

        def stacked_pushforward(dots: Any) -> Any:
            return higher(name, function, args, options)[1:] * dots[place]

        return z, stacked_pushforward

    keep(Rule(function, "full", stacked_rrule, frule=stacked_frule, source=source()))


def harmonic(name: str) -> None:
    """Enter Y(n, m, theta, phi): values, then gradients and second derivatives on axes behind those of the values."""
    function = find(name)
    if function is None:
        return

    def parts_of(z: Any) -> Any:
        return z if isinstance(z, tuple) else (z,)

    def harmonic_rrule(n: Any, m: Any, theta: Any, phi: Any, **options: Any) -> Any:
        args = (n, m, theta, phi)
        z = function(*args, **options)

        def harmonic_pullback(z_bar: Any) -> Any:
            def cotangent(axis: int) -> Any:
                slopes = higher(name, function, args, options)[1:]
                bars = [unthunk(part) for part in parts_of(z_bar)]
                sums = [
                    behind(part * np.conjugate(slope[..., axis]), k)
                    for k, (part, slope) in enumerate(zip(bars, slopes))
                    if not is_zero(part)
                ]
                shape = np.shape(args[2 + axis])
                whole = total(*sums)
                return whole if is_zero(whole) else summed(np.real(whole), shape)

            return NoTangent, NoTangent, Thunk(lambda: cotangent(0)), Thunk(lambda: cotangent(1))

        return z, harmonic_pullback

    def harmonic_frule(n: Any, m: Any, theta: Any, phi: Any, **options: Any) -> Any:
        args = (n, m, theta, phi)
        z = function(*args, **options)

        def harmonic_pushforward(dots: Any) -> Any:
            slopes = higher(name, function, args, options)[1:]

            def along(k: int, axis: int) -> Any:
                x_dot = dots[2 + axis]
                return slopes[k][..., axis] * np.reshape(x_dot, (*np.shape(x_dot), *(1,) * k))

            tangents = tuple(
                [total(*[along(k, axis) for axis in (0, 1) if varies(dot_of(dots, 2 + axis))]) for k in range(len(slopes))]
            )
            return tangents if isinstance(z, tuple) else tangents[0]

        return z, harmonic_pushforward

    keep(Rule(function, "full", harmonic_rrule, frule=harmonic_frule, source=source()))


def behind(x: Any, k: int) -> Any:
    """`x` summed over its last k axes."""
    return np.sum(x, axis=tuple(range(-k, 0))) if k else x


of_one_variable("legendre_p", 1)
of_one_variable("legendre_p_all", 1)
of_one_variable("assoc_legendre_p", 2)
of_one_variable("assoc_legendre_p_all", 2)
of_one_variable("sph_legendre_p", 2)
of_one_variable("sph_legendre_p_all", 2)
harmonic("sph_harm_y")
harmonic("sph_harm_y_all")
