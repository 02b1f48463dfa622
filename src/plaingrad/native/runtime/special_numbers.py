"""NumPy for one number at a time, as slopes of `scipy.special` use it.

Slopes have this module in the place of `numpy`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types

from plaingrad.native.runtime.declare import overload


def __getattr__(name: str) -> Any:
    return getattr(np, name)


def where(taken: Any, x: Any, y: Any) -> Any:
    """x if taken, else y."""
    return np.where(taken, x, y)[()]


@overload(where)
def _where(taken, x, y):  # type: ignore[no-untyped-def]
    return lambda taken, x, y: x if taken else y


def any(x: Any) -> Any:
    """x itself."""
    return x


@overload(any)
def _any(x):  # type: ignore[no-untyped-def]
    return lambda x: x


def asarray(x: Any) -> Any:
    """x itself."""
    return x


@overload(asarray)
def _asarray(x):  # type: ignore[no-untyped-def]
    return lambda x: x


def kind_of(*args: Any) -> Any:
    """Nothing: results are not converted."""
    return None


@overload(kind_of)
def _kind_of(*args):  # type: ignore[no-untyped-def]
    return lambda *args: None


def real(x: Any) -> Any:
    """The real part."""
    return np.real(x)


@overload(real)
def _real(x):  # type: ignore[no-untyped-def]
    return (lambda x: x.real) if isinstance(x, types.Complex) else (lambda x: x)


def imag(x: Any) -> Any:
    """The imaginary part."""
    return np.imag(x)


@overload(imag)
def _imag(x):  # type: ignore[no-untyped-def]
    return (lambda x: x.imag) if isinstance(x, types.Complex) else (lambda x: 0.0)
