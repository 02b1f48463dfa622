"""Pieces that recurrences of power series are made of: coefficients as Python numbers or arrays, with other values."""

from __future__ import annotations

from operator import mul
from typing import Any

import numpy as np


def exponents(x: np.ndarray) -> np.ndarray:
    """0, 1, 2, ... along the leading axis of `x`, in its precision."""
    kind = x.real.dtype if x.dtype.kind in "fc" else x.dtype
    return np.arange(x.shape[0]).astype(kind).reshape((-1,) + (1,) * (x.ndim - 1))


def opened(x: np.ndarray) -> Any:
    """The coefficients of one number as a list, or an array as it is."""
    return x.tolist() if x.ndim == 1 else x


def closed(z: Any, like: np.ndarray) -> np.ndarray:
    """A list of coefficients as an array again."""
    return np.array(z, like.dtype) if type(z) is list else z


def begun(z: Any, x: Any) -> Any:
    """Room for a series like `x`, with `z` in its first place."""
    if type(x) is list:
        return [plain_number(z)] + [0.0] * (len(x) - 1)
    s = np.zeros_like(x)
    s[0] = z
    return s


def plain_number(z: Any) -> Any:
    """The Python number that a NumPy one is."""
    return z.item() if isinstance(z, (np.generic, np.ndarray)) else z


def dot_product(a: Any, b: Any) -> Any:
    """The sum of products along the leading axis."""
    return sum(map(mul, a, b)) if type(a) is list else (a * b).sum(0)


def scaled(x: Any) -> Any:
    """k x_k: the coefficients of t x'(t)."""
    return [k * c for k, c in enumerate(x)] if type(x) is list else x * exponents(x)


def plus(c: float, x: np.ndarray) -> np.ndarray:
    """c + x: only the value moves."""
    return np.concatenate((x[:1] + c, x[1:]))


def with_value(z: Any, x: np.ndarray) -> np.ndarray:
    """`x` with another value."""
    return np.concatenate((np.broadcast_to(np.asarray(z, x.dtype), (1, *x.shape[1:])), x[1:]))
