"""Formulas of rotations as quaternions (x, y, z, w): each is smooth wherever the rotation is, also at the identity.

Functions of an angle are functions of its square, by a series where that is small.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

SMALL = 0.25  # squares of angles below which series are used


def by_series(a: Any, coefficients: Any, formula: Any) -> Any:
    """formula(angle), or the series in the square a of the angle where that is small."""
    small = a < SMALL
    near = np.where(small, a, 0.0)
    total: Any = coefficients[-1]
    for c in coefficients[-2::-1]:
        total = total * near + c
    return np.where(small, total, formula(np.sqrt(np.where(small, 1.0, a))))


def factorials(first: int, scale: float = 1.0) -> list[float]:
    """(-scale)^n / (2 n + first)!."""
    return [(-scale) ** n / math.factorial(2 * n + first) for n in range(10)]


COTANGENT = (1 / 12, 1 / 720, 1 / 30240, 1 / 1209600, 1 / 47900160, 691 / 1307674368000, 1 / 74724249600)
ARCTANGENT = [(-1.0) ** n / (2 * n + 1) for n in range(24)]


def square(v: Any) -> Any:
    """|v|^2 with the axis kept."""
    return (v * v).sum(-1)[..., None]


def length(v: Any) -> Any:
    """|v| without the axis."""
    return np.linalg.norm(v, axis=-1)


def unit(v: Any) -> Any:
    """v / |v|."""
    return v / np.sqrt(square(v))


def product(p: Any, q: Any) -> Any:
    """First q, then p."""
    pv, pw, qv, qw = p[..., :3], p[..., 3:], q[..., :3], q[..., 3:]
    v = pw * qv + qw * pv + np.cross(pv, qv)
    return np.concatenate([v, pw * qw - (pv * qv).sum(-1)[..., None]], -1)


def inverse(q: Any) -> Any:
    """The opposite rotation."""
    return q * np.array([-1.0, -1.0, -1.0, 1.0])


def of_vector(r: Any) -> Any:
    """The rotation about r by |r|."""
    a = square(r)
    scale = by_series(a, [c / 2 for c in factorials(1, 0.25)], lambda t: np.sin(t / 2) / t)
    return np.concatenate([r * scale, by_series(a, factorials(0, 0.25), lambda t: np.cos(t / 2))], -1)


def vector_of(q: Any) -> Any:
    """The vector of a rotation by at most pi."""
    q = q * np.where(q[..., 3:] < 0, -1.0, 1.0)
    v, w = q[..., :3], q[..., 3:]
    a = square(v)
    small = a < 0.1 * w * w
    ratio = np.where(small, a, 0.0) / np.where(small, w * w, 1.0)
    near: Any = ARCTANGENT[-1]
    for c in ARCTANGENT[-2::-1]:
        near = near * ratio + c
    n = np.sqrt(np.where(small, 1.0, a))
    return v * np.where(small, 2.0 * near / np.where(small, w, 1.0), 2.0 * np.arctan2(n, w) / n)


def matrix_of(q: Any) -> Any:
    """The rotation matrix."""
    x, y, z, w = (q[..., k] for k in range(4))
    rows = [
        x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w),
        2 * (x * y + z * w), y * y - x * x - z * z + w * w, 2 * (y * z - x * w),
        2 * (x * z - y * w), 2 * (y * z + x * w), z * z - x * x - y * y + w * w,
    ]  # fmt: skip
    return np.reshape(np.stack(rows, -1), (*q.shape[:-1], 3, 3))


def skew(v: Any) -> Any:
    """The matrix of a product v x ..."""
    x, y, z = (v[..., k] for k in range(3))
    none = x * 0.0
    return np.reshape(np.stack([none, -z, y, z, none, -x, -y, x, none], -1), (*v.shape[:-1], 3, 3))


def turned(q: Any, turn: Any) -> Any:
    """q after a small rotation before it, of which the derivative alone counts."""
    return product(q, np.concatenate([turn / 2.0, turn[..., :1] * 0.0 + 1.0], -1))


def of_orthogonal(m: Any, which: Any) -> Any:
    """From the entries of a rotation matrix; `which` component is the largest."""
    trace = m[..., 0, 0] + m[..., 1, 1] + m[..., 2, 2]
    sums = [m[..., 1, 0] + m[..., 0, 1], m[..., 2, 0] + m[..., 0, 2], m[..., 2, 1] + m[..., 1, 2]]
    gaps = [m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1]]
    own = [1 - trace + 2 * m[..., k, k] for k in range(3)]
    rows = [
        [own[0], sums[0], sums[1], gaps[0]],
        [sums[0], own[1], sums[2], gaps[1]],
        [sums[1], sums[2], own[2], gaps[2]],
        [*gaps, 1 + trace],
    ]
    table = np.stack([np.stack(row, -1) for row in rows], -2)
    return unit(np.take_along_axis(table, which[..., None, None], -2)[..., 0, :])


def nearest_turn(r: Any, b: Any, s: Any) -> Any:
    """How the rotation r nearest to b turns: (tr S - S) turn = the axial vector of r^T b; S = r^T b at the solution."""
    c = np.swapaxes(r, -1, -2) @ b
    axial = np.stack([c[..., 2, 1] - c[..., 1, 2], c[..., 0, 2] - c[..., 2, 0], c[..., 1, 0] - c[..., 0, 1]], -1)
    trace = (s[..., 0, 0] + s[..., 1, 1] + s[..., 2, 2])[..., None, None]
    return np.linalg.solve(trace * np.eye(3) - s, axial[..., None])[..., 0]


def exponential(r: Any) -> Any:
    """The matrix that takes the translation of a twist about r to that of the motion."""
    a, k = square(r)[..., None], skew(r)
    first = by_series(a, factorials(2), lambda t: (1.0 - np.cos(t)) / t**2)
    second = by_series(a, factorials(3), lambda t: (t - np.sin(t)) / t**3)
    return np.eye(3) + first * k + second * (k @ k)


def logarithm(r: Any) -> Any:
    """Its inverse."""
    a, k = square(r)[..., None], skew(r)
    second = by_series(a, COTANGENT, lambda t: (1.0 - t / 2.0 / np.tan(t / 2.0)) / t**2)
    return np.eye(3) - k / 2.0 + second * (k @ k)


def outer_and_middle(a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any, Any]:
    """The outer angles' difference and sum, and the middle angle, of a rotation in a frame that fits its axes."""
    plus, minus = np.arctan2(b, a), np.arctan2(d, c)
    return plus - minus, plus + minus, 2.0 * np.arctan2(np.hypot(c, d), np.hypot(a, b))
