"""Derivatives of functions of quantities with units (pint, astropy, unyt): each is a quantity in its own unit.

The unit of df/dx is the unit of f over that of x. What is differentiated is the magnitude; the quantity is made of it
by its own library, inside of the differentiated function, and so is everything that the library does after.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from plaingrad import api
from plaingrad.errors import ArgumentError

LIBRARIES = ("pint", "astropy", "unyt")


def grad(f: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """The function that returns df/dx as a quantity, in the unit of f over that of x.

    Args:
        f: a function whose result is one quantity, or number.
        argnums: the arguments to differentiate by: quantities, or numbers and arrays, which have no unit.

    Returns:
        A function of the same arguments as `f`. A derivative whose unit cancels is a quantity without dimension; where
        neither the result nor the argument is a quantity, it is what `plaingrad.grad` returns.

    Raises:
        NonScalarOutputError: the result is not one number.

    Examples:
        >>> import plaingrad.units
        >>> import pint
        >>> unit = pint.UnitRegistry()
        >>> def energy(v): return 0.5 * (3.0 * unit.kilogram) * v**2
        >>> print(plaingrad.units.grad(energy)(2.0 * unit.meter / unit.second))
        6.0 kilogram * meter / second
        >>> print(plaingrad.units.grad(plaingrad.units.grad(energy))(2.0 * unit.meter / unit.second))
        3.0 kilogram
    """
    both = value_and_grad(f, argnums)

    @functools.wraps(f)
    def slope(*args: Any, **kwargs: Any) -> Any:
        return both(*args, **kwargs)[1]

    return slope


def value_and_grad(f: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """The function that returns `(f(x), df/dx)`, both in their units; see `grad`.

    Examples:
        >>> import plaingrad.units
        >>> import pint
        >>> unit = pint.UnitRegistry()
        >>> y, slope = plaingrad.units.value_and_grad(lambda t: 9.81 * unit("m/s**2") * t**2 / 2)(2.0 * unit.second)
        >>> print(y, "and", slope)
        19.62 meter and 19.62 meter / second
    """
    positions = argnums if isinstance(argnums, tuple) else (argnums,)

    @functools.wraps(f)
    def value_and_slope(*args: Any, **kwargs: Any) -> Any:
        chosen = _positive(positions, args)
        units = {n: unit_of(args[n]) for n in chosen}
        of_result: list[Any] = []

        def of_magnitudes(*magnitudes: Any) -> Any:
            given = list(args)
            for n, magnitude in zip(chosen, magnitudes, strict=True):
                given[n] = with_unit(args[n], magnitude, units[n])
            y = f(*given, **kwargs)
            of_result[:] = y, unit_of(y)
            return magnitude_of(y)

        differentiated = tuple(range(len(chosen)))
        parts = [magnitude_of(args[n]) for n in chosen]
        m, slopes = api.value_and_grad(of_magnitudes, differentiated)(*parts)
        y, unit = of_result
        found = [_slope(slope, y, unit, args[n], units[n]) for n, slope in zip(chosen, slopes, strict=True)]
        value = m if unit is None else with_unit(y, m, unit)
        return value, tuple(found) if isinstance(argnums, tuple) else found[0]

    return value_and_slope


def _positive(positions: tuple[int, ...], args: tuple[Any, ...]) -> tuple[int, ...]:
    for n in positions:
        if not -len(args) <= n < len(args):
            raise ArgumentError(
                f"argnums has {n}, and there are {len(args)} positional arguments.\n  See docs: errors#argument"
            )
    return tuple([n % len(args) for n in positions])


def _slope(slope: Any, y: Any, unit_y: Any, x: Any, unit_x: Any) -> Any:
    """A derivative with the unit of the result over that of the argument."""
    if unit_y is None and unit_x is None:
        return slope
    if unit_y is None:
        return with_unit(x, slope, unit_x**-1)
    return with_unit(y, slope, unit_y if unit_x is None else unit_y / unit_x)


def library_of(x: Any) -> str:
    """The library of units whose quantity `x` is, or nothing."""
    for cls in type(x).__mro__:
        name = cls.__module__.partition(".")[0]
        if name in LIBRARIES and (hasattr(x, "units") or hasattr(x, "unit")):
            return name
    return ""


def unit_of(x: Any) -> Any:
    """The unit of a quantity, None for what has none."""
    library = library_of(x)
    if not library:
        return None
    return x.unit if library == "astropy" else x.units


def magnitude_of(x: Any) -> Any:
    """The number or array of a quantity; anything else as it is."""
    library = library_of(x)
    if not library:
        return x
    if library == "pint":
        return x.magnitude
    value = x.value
    return value.item() if value.shape == () else value


def with_unit(like: Any, magnitude: Any, unit: Any) -> Any:
    """A quantity with a magnitude and a unit, of the library of `like`."""
    library = library_of(like)
    if library == "pint":
        return like._REGISTRY.Quantity(magnitude, unit)
    if library == "astropy":
        return magnitude * unit if unit is not None else magnitude
    if library == "unyt":
        return magnitude * unit
    return magnitude
