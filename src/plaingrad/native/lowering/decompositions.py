"""Functions of NumPy that are put together from others: where their derivative may be wanted, they are taken apart.

An entry of `COMPOSED` looks at the types of the arguments of a call and names a Python function that computes the same
from functions with rules, which `inline` puts in place of the call; or None, and the call stays. The functions are
compiled by Numba with the rest of the program, so they are written in what Numba takes; where the order of operations
matters to the last bit it is Numba's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types

from plaingrad.native.lowering.composition import (
    COMPOSED,
    are_vectors,
    composed,
    is_matrix,
    is_number,
    is_real_array,
    is_real_vector,
    is_vector,
)
from plaingrad.native.program.value_types import is_array, is_real

# Linear algebra -------------------------------------------------------------------------------------------------------


@composed(np.linalg.matrix_power, is_matrix)
def matrix_power(a, n):  # type: ignore[no-untyped-def]
    """a^n by repeated squaring."""
    if n < 0:
        base = np.ascontiguousarray(np.linalg.inv(np.ascontiguousarray(a)))
        left = -n
    else:
        base = np.ascontiguousarray(a).copy()
        left = n
    if left == 3:
        return np.dot(np.dot(base, base), base)  # the order in which Numba multiplies: its last bits
    result = np.zeros_like(base)
    for i in range(a.shape[0]):
        result[i, i] = 1.0
    first = True
    while left > 0:
        if left % 2 == 1:
            result = base.copy() if first else np.dot(result, base)
            first = False
        left //= 2
        if left > 0:
            base = np.dot(base, base)
    return result


def vector_norm(x, ord):  # type: ignore[no-untyped-def]
    """(sum |x|^ord)^(1/ord), and its limits."""
    if ord == 2:
        return np.linalg.norm(np.ascontiguousarray(x))
    sizes = np.abs(x)
    if ord == np.inf:
        return sizes.max()
    if ord == -np.inf:
        return sizes.min()
    if ord == 0:
        return np.float64(np.count_nonzero(x))
    if ord == 1:
        return sizes.sum()
    return np.sum(sizes**ord) ** (1.0 / ord)


def matrix_norm(x, ord):  # type: ignore[no-untyped-def]
    """The norm of a matrix that a number names."""
    if abs(ord) != 1 and abs(ord) != 2 and abs(ord) != np.inf:
        raise ValueError("Invalid norm order for matrices.")
    if ord == 2:
        return np.linalg.svd(x, False)[1][0]
    if ord == -2:
        return np.linalg.svd(x, False)[1][-1]
    sizes = np.abs(x)
    if ord == 1:
        return np.sum(sizes, axis=0).max()
    if ord == -1:
        return np.sum(sizes, axis=0).min()
    if ord == np.inf:
        return np.sum(sizes, axis=1).max()
    return np.sum(sizes, axis=1).min()


def named_norm(x, ord):  # type: ignore[no-untyped-def]
    """The norm of a matrix that a word names."""
    if ord == "fro":
        return np.linalg.norm(x)
    if ord == "nuc":
        return np.linalg.svd(x, False)[1].sum()
    raise ValueError("Invalid norm order for matrices.")


def norm_of_view(x, ord=None):  # type: ignore[no-untyped-def]
    """Of a vector that may run backwards: there Numba's norm, which asks BLAS, is that of its first element."""
    return np.linalg.norm(np.ascontiguousarray(x))


def norm_of(x: Any, ord: Any = None) -> Any:
    """Which of the norms it is; None for the one that has a rule of its own."""
    if ord is None or isinstance(ord, (types.NoneType, types.Omitted)):
        return norm_of_view if isinstance(x, types.Array) and x.ndim == 1 and x.layout == "A" else None
    if not is_real_array(x):
        return None
    if isinstance(ord, types.UnicodeType):
        return named_norm if x.ndim == 2 else None
    return vector_norm if x.ndim == 1 else matrix_norm


COMPOSED[np.linalg.norm] = norm_of


def cond(x, p=2):  # type: ignore[no-untyped-def]
    """The ratio of the extreme singular values, or the product of the norms of the matrix and its inverse."""
    if p == 2:
        s = np.linalg.svd(x, False)[1]
        return s[0] / s[-1]
    if p == -2:
        s = np.linalg.svd(x, False)[1]
        return s[-1] / s[0]
    return np.linalg.norm(x, p) * np.linalg.norm(np.linalg.inv(x), p)


def cond_of(x: Any, p: Any = None) -> Any:
    """`cond` for orders that are numbers."""
    if not is_real_array(x):
        return None
    if isinstance(p, types.UnicodeType):
        return named_cond
    return cond_2 if p is None or isinstance(p, (types.NoneType, types.Omitted)) else cond


COMPOSED[np.linalg.cond] = cond_of


def named_cond(x, p):  # type: ignore[no-untyped-def]
    """The product of the norms of the matrix and its inverse."""
    return np.linalg.norm(x, p) * np.linalg.norm(np.linalg.inv(x), p)


def cond_2(x, p=None):  # type: ignore[no-untyped-def]
    """The ratio of the extreme singular values."""
    s = np.linalg.svd(x, False)[1]
    return s[0] / s[-1]


# Sums of products -----------------------------------------------------------------------------------------------------


@composed(np.convolve, are_vectors)
def convolve(a, v, mode="full"):  # type: ignore[no-untyped-def]
    """z[k] = sum of a[i] v[k - i]."""
    if len(a) < len(v):
        a, v = v, a
    n, m = len(a), len(v)
    if n == 0:
        raise ValueError("'a' cannot be empty")
    if m == 0:
        raise ValueError("'v' cannot be empty")
    first, count = 0, n + m - 1
    if mode == "same":
        first, count = (m - 1) // 2, n
    elif mode == "valid":
        first, count = m - 1, n - m + 1
    elif mode != "full":
        raise ValueError("Invalid 'mode', valid are 'full', 'same', 'valid'")
    found = np.zeros(count, (a[:1] * v[:1]).dtype)
    for k in range(count):
        s = a[0] * v[0] * 0.0
        place = k + first
        for i in range(max(0, place - m + 1), min(place + 1, n)):
            s += a[i] * v[place - i]
        found[k] = s
    return found


@composed(np.correlate, lambda a, b, *rest: is_real_vector(a) and is_real_vector(b))
def correlate(a, v, mode="valid"):  # type: ignore[no-untyped-def]
    """z[k] = sum of a[k + i] v[i]."""
    if len(a) < len(v):
        return np.convolve(a, v[::-1], mode)[::1]
    return np.convolve(a, v[::-1], mode)


# Statistics -----------------------------------------------------------------------------------------------------------


# Making and joining ---------------------------------------------------------------------------------------------------


def append(arr, values):  # type: ignore[no-untyped-def]
    """All elements of one array, then all of the other."""
    return np.concatenate((arr.flatten(), values.flatten()))


def append_of(arr: Any, values: Any, axis: Any = None) -> Any:
    """np.append of an array or of a number."""
    if axis is not None or not is_array(arr):
        return None
    return append if is_array(values) else append_number if is_real(values) else None


COMPOSED[np.append] = append_of


def append_number(arr, values):  # type: ignore[no-untyped-def]
    """All elements of an array, then a number."""
    found = np.empty(arr.size + 1, arr.dtype)
    found[:-1] = arr.flatten()
    found[-1] = values
    return found


@composed(np.delete, lambda arr, obj: is_vector(arr) and isinstance(obj, types.Integer))
def delete(arr, obj):  # type: ignore[no-untyped-def]
    """A vector without one element."""
    n = arr.size
    if not -n <= obj < n:
        raise IndexError("obj must be within bounds of the array")
    k = obj + n if obj < 0 else obj
    return np.concatenate((arr[:k], arr[k + 1 :]))


@composed(np.extract, lambda condition, arr: is_array(arr) and isinstance(condition, types.Array))
def extract(condition, arr):  # type: ignore[no-untyped-def]
    """The elements where the condition holds."""
    return arr.flatten()[condition.flatten() != 0]


@composed(np.diagflat, lambda v, *rest: is_array(v) and not rest)
def diagflat(v):  # type: ignore[no-untyped-def]
    """A matrix with these elements on the diagonal."""
    return np.diag(v.flatten())


@composed(np.fill_diagonal, lambda a, val, *rest: is_array(a) and a.ndim == 2 and is_number(val) and not rest)
def fill_diagonal(a, val):  # type: ignore[no-untyped-def]
    """Write a number on the diagonal."""
    for i in range(min(a.shape[0], a.shape[1])):
        a[i, i] = val


@composed(np.take_along_axis, lambda arr, *rest: is_vector(arr))
def take_along_axis(arr, indices, axis):  # type: ignore[no-untyped-def]
    """The elements of a vector in another order."""
    return arr[indices]


@composed(np.trim_zeros, lambda filt, *rest: is_vector(filt) and not rest)
def trim_zeros(filt):  # type: ignore[no-untyped-def]
    """A vector without the zeros at its ends."""
    first, last = 0, len(filt)
    while first < last and filt[first] == 0:
        first += 1
    while last > first and filt[last - 1] == 0:
        last -= 1
    return filt[first:last]


@composed(np.vander, lambda x, *rest: is_vector(x) and not rest)
def vander(x):  # type: ignore[no-untyped-def]
    """Powers of the elements, falling."""
    n = len(x)
    found = np.ones((n, n), x.dtype)
    for i in range(n):
        for j in range(n - 2, -1, -1):
            found[i, j] = found[i, j + 1] * x[i]
    return found


@composed(np.resize, lambda a, new_shape: is_array(a) and isinstance(new_shape, types.Integer))
def resize(a, new_shape):  # type: ignore[no-untyped-def]
    """The elements over and over, as many as are wanted."""
    flat = a.flatten()
    found = np.zeros(new_shape, a.dtype)
    for i in range(new_shape if flat.size else 0):
        found[i] = flat[i % flat.size]
    return found


@composed(np.logspace, lambda *kinds: all(map(is_number, kinds)))
def logspace(start, stop, num=50):  # type: ignore[no-untyped-def]
    """10 to equally spaced powers."""
    return np.power(10.0, np.linspace(start, stop, num))


@composed(np.partition, is_real_vector)
def partition(a, kth):  # type: ignore[no-untyped-def]
    """A vector partly sorted."""
    return a[np.argpartition(a, kth)]


@composed(np.bincount, lambda x, weights=None, minlength=0: is_array(weights))
def bincount(x, weights, minlength=0):  # type: ignore[no-untyped-def]
    """The sum of the weights of each number."""
    n = minlength
    for k in x:
        if k < 0:
            raise ValueError("first argument must be non-negative")
        n = max(n, k + 1)
    found = np.zeros(n)
    for i in range(len(x)):
        found[x[i]] += weights[i]
    return found


# Element by element ---------------------------------------------------------------------------------------------------


@composed(np.nan_to_num, lambda x: is_array(x) and x.dtype is types.float64)
def nan_to_num(x):  # type: ignore[no-untyped-def]
    """0 for nan, the greatest numbers for infinities."""
    most = 1.7976931348623157e308
    return np.where(np.isnan(x), 0.0, np.where(x == np.inf, most, np.where(x == -np.inf, -most, x)))


@composed(np.angle, lambda z: isinstance(getattr(z, "dtype", z), types.Complex))
def angle(z):  # type: ignore[no-untyped-def]
    """The argument of complex numbers."""
    return np.arctan2(z.imag, z.real)


@composed(np.conj, lambda z: isinstance(z, types.Complex))
def conj(z):  # type: ignore[no-untyped-def]
    """x - iy for x + iy, of a number."""
    return complex(z.real, -z.imag)


@composed(np.unwrap, lambda p, *rest: is_real_vector(p) and not rest)
def unwrap(p):  # type: ignore[no-untyped-def]
    """Angles without jumps of more than pi."""
    found = p.copy()
    shift = 0.0
    for i in range(1, len(p)):
        d = p[i] - p[i - 1]
        turned = np.mod(d + np.pi, 2 * np.pi) - np.pi
        if turned == -np.pi and d > 0:
            turned = np.pi
        if abs(d) >= np.pi:
            shift += turned - d
        found[i] = p[i] + shift
    return found
