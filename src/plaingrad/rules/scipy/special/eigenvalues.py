"""Characteristic values and coefficients as eigenvalues and eigenvectors of a matrix D + t X, in t.

Mathieu's equation in Fourier series (DLMF 28.4; t = q), spheroidal ones in normalised Legendre functions (DLMF 30.8;
t = c^2, or -c^2 for oblate ones). X has two diagonals beside its own, all matrices are symmetric, so slopes are v^T X v.
They are computed by NumPy, whose rules give the derivatives of higher order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.rules.scipy.forms import defined, find, keep_quiet, row
from plaingrad.rules.scipy.implicit import called, carrying, fresh

FEWEST = 24  # rows beyond the one that is looked for


def size_of(index: Any, t: Any) -> int:
    """How many rows are enough: entries fall off as soon as the diagonal is larger than t."""
    return int(FEWEST + np.max(index, initial=0) + 2 * np.sqrt(np.max(np.abs(t), initial=0.0)))


def banded(below: Any, diagonal: Any, offset: int = 1) -> Any:
    """The symmetric matrices with these entries (..., k) on their diagonal, and beside it."""
    n = diagonal.shape[-1]
    matrix = np.zeros((*diagonal.shape, n))
    k = np.arange(n)
    matrix[..., k, k] = diagonal
    matrix[..., k[1:], k[:-1]] = matrix[..., k[:-1], k[1:]] = below[..., :-1]
    return matrix


def fourier(m: Any, t: Any, odd: bool) -> tuple[Any, Any, Any, Any]:
    """(D, X, which eigenvalue, the frequencies) of Mathieu's functions, even ones or odd ones."""
    m, t = np.broadcast_arrays(np.asarray(m).astype(int), np.asarray(t))
    parity = m % 2
    first = np.where(odd & (parity == 0), 2, parity)
    index = (m - first) // 2
    k = np.arange(size_of(index, t))
    frequency = first[..., None] + 2 * k
    below = np.ones(frequency.shape)
    below[..., 0] = np.where(first == 0, np.sqrt(2.0), 1.0)
    diagonal = np.where((first[..., None] == 1) & (k == 0), -1.0 if odd else 1.0, 0.0)
    return frequency * frequency * 1.0, banded(below, diagonal), index, frequency


def legendre(m: Any, n: Any, t: Any) -> tuple[Any, Any, Any]:
    """(D, X, which eigenvalue) of spheroidal functions: X is multiplication by x^2."""
    m, n, t = np.broadcast_arrays(*[np.asarray(part) for part in (m, n, t)])
    m, n = m.astype(int), n.astype(int)
    index = (n - m) // 2
    degree = (m + (n - m) % 2)[..., None] + 2.0 * np.arange(size_of(index, t))
    m = m[..., None] * 1.0
    square = degree * (degree + 1)
    diagonal = (2 * square - 2 * m * m - 1) / ((2 * degree - 1) * (2 * degree + 3))
    up = (degree + m + 1) * (degree + m + 2) * (degree - m + 1) * (degree - m + 2)
    below = np.sqrt(up / ((2 * degree + 1) * (2 * degree + 5))) / (2 * degree + 3)
    return square, banded(below, diagonal), index


keep_quiet(fourier, legendre)


def solved(d: Any, x: Any, index: Any, t: Any) -> tuple[Any, Any, Any]:
    """(eigenvalues, all vectors, the one that is looked for)."""
    w, v = np.linalg.eigh(d[..., None] * np.eye(d.shape[-1]) + np.asarray(t)[..., None, None] * x)
    return w, v, np.take_along_axis(v, index[..., None, None], -1)[..., 0]


def value_slope(d: Any, x: Any, index: Any, t: Any) -> Any:
    """The slope of the eigenvalue in t."""
    _, _, chosen = solved(d, x, index, t)
    return (chosen * (x @ chosen[..., None])[..., 0]).sum(-1)[()]


def vector_and_slope(d: Any, x: Any, index: Any, t: Any) -> tuple[Any, Any]:
    """The vector, and its slope in t: the sum over the others of v_j (v_j^T X v) / (w - w_j)."""
    w, v, chosen = solved(d, x, index, t)
    others = np.arange(w.shape[-1]) != index[..., None]
    gap = np.take_along_axis(w, index[..., None], -1) - w
    pull = (np.swapaxes(v, -1, -2) @ (x @ chosen[..., None]))[..., 0]
    part = np.where(others, pull / np.where(others, gap, 1.0), 0.0)
    return chosen, (v @ part[..., None])[..., 0]


# -- Mathieu's ---------------------------------------------------------------------------------------------------------


def coefficients(m: Any, q: Any, odd: bool) -> tuple[Any, Any, Any]:
    """(coefficients, slopes in q, frequencies): the integral of the function's square is pi, at 0 it or its slope is > 0."""
    d, x, index, frequency = fourier(m, q, odd)
    a, slope = vector_and_slope(d, x, index, q)
    start = (a * np.where(odd, frequency, np.where(frequency == 0, np.sqrt(0.5), 1.0))).sum(-1)
    scale = np.where(frequency == 0, np.sqrt(0.5), 1.0) * np.sign(start)[..., None]
    return a * scale, slope * scale, frequency


def mathieu_slopes(m: Any, q: Any, degrees: Any, odd: bool) -> tuple[Any, Any]:
    """The slopes in q of the function and of its derivative."""
    m, q, degrees = np.broadcast_arrays(*[np.asarray(part) for part in (m, q, degrees)])
    _, slope, frequency = coefficients(m, q, odd)
    angle = frequency * (degrees * (np.pi / 180))[..., None]
    c, s = np.cos(angle), np.sin(angle)
    of_value, of_derivative = (s, frequency * c) if odd else (c, -frequency * s)
    return (slope * of_value).sum(-1)[()], (slope * of_derivative).sum(-1)[()]


POINTS = ((2, 1, 3), (0.9, 4.4, 1.1))
row("mathieu_a", POINTS, None, lambda m, n, q, z: value_slope(*fourier(n, q, False)[:3], q))
row("mathieu_b", POINTS, None, lambda m, n, q, z: value_slope(*fourier(n, q, True)[:3], q))


def enter_coefficients(name: str, odd: bool) -> None:
    """Enter the coefficients of one function, a number q."""

    def definition(m: Any, q: Any) -> Any:
        value = called(find(name), ((m, q), {}))
        found = coefficients(m, np.asarray(q), odd)[0]
        zeros = np.zeros(max(0, len(value) - len(found)))
        return carrying(fresh(value), np.concatenate([found, zeros])[: len(value)])

    defined(name)(definition)


enter_coefficients("mathieu_even_coef", False)
enter_coefficients("mathieu_odd_coef", True)


# -- spheroidal --------------------------------------------------------------------------------------------------------


def spheroidal_slope(m: Any, n: Any, c: Any, sign: int) -> Any:
    """Of a characteristic value in c."""
    t = sign * np.asarray(c) ** 2
    return (2 * sign * np.asarray(c) * value_slope(*legendre(m, n, t), t))[()]


def enter_values(name: str, sign: int) -> None:
    """Enter a characteristic value, and the sequence of them."""
    row(name, ((1, 0, 1), (2, 1, 3), (0.9, 1.4, 1.1)), None, None, lambda _, m, n, c, z: spheroidal_slope(m, n, c, sign))

    def sequence(m: Any, n: Any, c: Any) -> Any:
        value = called(find(f"{name}_seq"), ((m, n, c), {}))
        return carrying(fresh(value), find(name)(m, np.arange(m, m + len(value)), c))

    defined(f"{name}_seq")(sequence)


enter_values("pro_cv", 1)
enter_values("obl_cv", -1)

