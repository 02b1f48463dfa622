"""Projection of a cotangent onto the space of its primal: shape, realness, precision. Applied once, here."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from plaingrad import number_classes
from plaingrad.class_keys import is_instance, is_own_key


def unbroadcast(x_bar: Any, shape: tuple[int, ...]) -> Any:
    """The sum of `x_bar` over the axes along which a primal of `shape` was broadcast."""
    x_bar_shape = np.shape(x_bar)
    if x_bar_shape == shape:
        return x_bar
    extra = len(x_bar_shape) - len(shape)
    if extra < 0:  # the cotangent is constant along axes it does not have
        x_bar = np.reshape(x_bar, (1,) * -extra + x_bar_shape)
    elif extra:
        x_bar = np.sum(x_bar, axis=tuple(range(extra)))
    stretched = tuple(i for i, n in enumerate(shape) if n == 1 and np.shape(x_bar)[i] != 1)
    if stretched:
        x_bar = np.sum(x_bar, axis=stretched, keepdims=True)
    return x_bar if np.shape(x_bar) == shape else np.broadcast_to(x_bar, shape)


def for_numpy(x: Any) -> Any:
    """`x`; a number of a class without hash, which NumPy fails at, as the float or complex number that it is."""
    if is_own_key(type(x)) or not isinstance(x, (float, complex)):
        return x
    return complex.__pos__(x) if isinstance(x, complex) else float.__pos__(x)


def is_complex(x: Any) -> bool:
    """Whether `x` is a complex number or array; NumPy is not asked about numbers, whose class may have no hash."""
    if isinstance(x, (float, complex)):
        return isinstance(x, complex)
    known = number_classes.of(x)
    return bool(np.iscomplexobj(x)) if known is None else known.is_complex


def project(x_bar: Any, x: Any) -> Any:
    """`x_bar` as a cotangent of `x`: its shape, real where `x` is real, in `x`'s precision.

    `x` is a number or an array. For a Python number or a NumPy scalar the result is a number.
    """
    if isinstance(x, np.ndarray):
        x_bar = unbroadcast(x_bar, x.shape)
        if x.dtype.kind != "c" and np.iscomplexobj(x_bar):
            x_bar = np.real(x_bar)
        if x.dtype.kind in "fc":
            if type(x_bar) is not np.ndarray or x_bar.dtype != x.dtype:
                x_bar = np.asarray(x_bar, dtype=x.dtype)
            return x_bar
        return np.asarray(x_bar)
    if isinstance(x_bar, np.ndarray):
        x_bar = np.sum(x_bar) if x_bar.ndim else x_bar[()]
    if number_classes.known:
        x_bar = in_the_arithmetic_of(x, x_bar)
    if not isinstance(x, (complex, np.complexfloating)) and isinstance(x_bar, (complex, np.complexfloating)):
        x_bar = x_bar if number_classes.is_own(x) else x_bar.real
    if isinstance(x, Decimal):  # Decimal mixes with no float
        return x_bar if isinstance(x_bar, Decimal) else as_decimal(x_bar)
    if isinstance(x_bar, Decimal) or (is_instance(x_bar, Fraction) and not is_instance(x, Fraction)):
        return float(x_bar)
    return x_bar


def in_the_arithmetic_of(x: Any, x_bar: Any) -> Any:
    """`x_bar` in the class of `x`, if one of them is a number with arithmetic of its own."""
    if number_classes.is_own(x):
        return number_classes.made(x, x_bar)
    if number_classes.is_own(x_bar):
        if is_instance(x, (Decimal, Fraction)):
            return type(x)(str(x_bar))
        return number_classes.plain(x_bar, isinstance(x, (complex, np.complexfloating)))
    return x_bar


def as_decimal(x_bar: Any) -> Decimal:
    """A number of another kind as a Decimal."""
    if is_instance(x_bar, Fraction):
        return Decimal(x_bar.numerator) / Decimal(x_bar.denominator)
    return Decimal(x_bar)
