"""The slopes of distances between all pairs of points: for each metric dz/dx, of a feature at a time or as matrix products.

A distance comes from SciPy; here is only how it moves. Matrices have a row for each x and a column for each y. `pdist` is
taken as such a matrix of its points with themselves, of which the part above the diagonal counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial import distance

from plaingrad.rules.pushforwards import dot_of, pushed, total, varies
from plaingrad.rules.scipy.compiled import constant, each, enter
from plaingrad.rules.scipy.implicit import copied
from plaingrad.tangents import NoTangent, Thunk, ZeroTangent

SQUARES = ("euclidean", "sqeuclidean", "mahalanobis")
BLOCK = 1 << 15  # pairs that are looked at together: as many as the processor's cache holds
CLOSE = 1e-5  # of the extent of all points: what is nearer is subtracted point by point


def full(z: Any) -> Any:
    """A condensed matrix as a symmetric one, with zeros on the diagonal."""
    return distance.squareform(z, checks=False)


def half(matrix: Any) -> Any:
    """What is above the diagonal, row by row."""
    return distance.squareform(matrix, checks=False)


def middle(matrix: Any) -> Any:
    """The same of a symmetric matrix, as the mean of both halves."""
    return distance.squareform(matrix, checks=False)


def full_rrule(z: Any) -> Any:
    return full(z), lambda z_bar: (half(z_bar) + half(np.swapaxes(z_bar, 0, 1)),)


def full_frule(z: Any) -> Any:
    return full(z), lambda dots: pushed(lambda z_dot: each(full, z_dot, z), dots[0])


def half_rrule(matrix: Any) -> Any:
    return half(matrix), lambda z_bar: (np.triu(full(z_bar)),)


def half_frule(matrix: Any) -> Any:
    return half(matrix), lambda dots: pushed(lambda dot: each(half, dot, matrix), dots[0])


def middle_rrule(matrix: Any) -> Any:
    return middle(matrix), lambda z_bar: (full(z_bar) / 2.0,)


def middle_frule(matrix: Any) -> Any:
    return middle(matrix), lambda dots: pushed(lambda dot: each(half, dot, matrix), dots[0])


enter(full, full_rrule, full_frule, "linear")
enter(half, half_rrule, half_frule, "linear")
enter(middle, middle_rrule, middle_frule, "linear")


def divided(a: Any, b: Any) -> Any:
    """a / b; 0 where b is 0."""
    none = b == 0
    if not np.any(none):
        return a / b
    return np.where(none, 0.0, a / np.where(none, 1.0, b))


def widest(x: Any, y: Any, w: Any) -> Any:
    """For each pair the feature with the largest difference, of equal ones the first, among those whose weight is not 0."""
    best, which = None, None
    for k in range(x.shape[1]):
        size = np.abs(x[:, k, None] - y[None, :, k]) * (1.0 if w is None else w[k] > 0)
        which = np.zeros(size.shape, int) if which is None else np.where(size > best, k, which)
        best = size if best is None else np.maximum(best, size)
    return which


constant(widest)


def prepared(kind: str, x: Any, y: Any, w: Any) -> Any:
    """What the slopes of all features share."""
    if kind == "chebyshev":
        return widest(x, y, w)
    if kind == "braycurtis":
        return sum(np.abs(x[:, k, None] + y[None, :, k]) * weight(w, k) for k in range(x.shape[1]))
    return None


def weight(w: Any, k: int) -> Any:
    """That of a feature."""
    return 1.0 if w is None else w[k]


def slopes(kind: str, z: Any, x: Any, y: Any, p: Any, shared: Any, k: int) -> tuple[Any, Any, Any]:
    """dz/dx_k, dz/dy_k (None: the opposite) and dz/dw_k, the first two over the weight."""
    xk, yk = x[:, k, None], y[None, :, k]
    u = xk - yk
    if kind in SQUARES:
        s = divided(u, z) if kind == "euclidean" else 2.0 * u
        return s, None, s * u / 2.0
    if kind == "cityblock":
        return np.sign(u), None, np.abs(u)
    if kind == "chebyshev":
        return np.where(shared == k, np.sign(u), 0.0), None, u * 0.0
    if kind == "minkowski":
        ratio = divided(np.abs(u), z)
        return np.sign(u) * ratio ** (p - 1.0), None, ratio**p * z / p
    if kind == "canberra":
        size = np.abs(xk) + np.abs(yk)
        part = divided(np.abs(u), size)
        s = np.sign(u)
        return divided(s - part * np.sign(xk), size), divided(-s - part * np.sign(yk), size), part
    if kind == "braycurtis":
        both, s = z * np.sign(xk + yk), np.sign(u)
        part = np.abs(u) - z * np.abs(xk + yk)
        return divided(s - both, shared), divided(-s - both, shared), divided(part, shared)
    with np.errstate(divide="ignore"):  # Jensen and Shannon: the points are distributions
        none = u == 0
        logs = [np.log(np.where(none, 1.0, 2.0 * a / np.where(none, 1.0, xk + yk))) for a in (xk, yk)]
    return divided(logs[0], 4.0 * z), divided(logs[1], 4.0 * z), u * 0.0


def order_slope(z: Any, x: Any, y: Any, w: Any, p: Any) -> Any:
    """dz/dp of Minkowski's distance."""
    z_p: Any = -z * np.log(np.where(z == 0, 1.0, z)) / p
    for k in range(x.shape[1]):
        u = np.abs(x[:, k, None] - y[None, :, k])
        z_p = z_p + weight(w, k) * divided(u, z) ** p * z * np.log(np.where(u == 0, 1.0, u)) / p
    return z_p


def moved(kind: str, z: Any, x: Any, y: Any, w: Any, p: Any) -> Any:
    """Distances z, with the derivative that they have in the points x and y, in weights (or a matrix) w, and in p."""
    return copied(z)


def is_close(z: Any, x: Any, kind: str) -> bool:
    """Whether points are so near to each other that products lose digits."""
    z = np.sqrt(z) if kind == "sqeuclidean" else z
    return bool(np.any((z > 0) & (z < CLOSE * np.max(np.abs(x), initial=0.0))))


constant(is_close)


def by_squares_bar(kind: str, z: Any, x: Any, y: Any, w: Any, z_bar: Any) -> tuple[Any, Any, Any]:
    """(x_bar, y_bar, w_bar) of z^2 = (x - y) W (x - y)^T, or of its root: sums of s_ij (x_i - y_j)."""
    centre = x.mean(0)
    x, y = x - centre, y - centre
    rows = max(1, BLOCK // max(1, len(y)))
    x_sums, y_sum = [], 0.0 * y
    for n in range(0, max(1, len(x)), rows):
        part, z_part = x[n : n + rows], z_bar[n : n + rows]
        s = 2.0 * z_part if kind == "sqeuclidean" else divided(z_part, z[n : n + rows])
        x_sums.append(s.sum(1)[:, None] * part - s @ y)
        y_sum = y_sum + (s.sum(0)[:, None] * y - s.T @ part)
    x_sum = np.concatenate(x_sums)

    def turned(part: Any) -> Any:
        if w is None:
            return part
        return part * w if kind != "mahalanobis" else part @ (w + w.T) / 2.0

    def w_bar() -> Any:
        if kind == "mahalanobis":
            return (x.T @ x_sum + y.T @ y_sum) / 2.0
        return ((x * x_sum).sum(0) + (y * y_sum).sum(0)) / 2.0

    return turned(x_sum), turned(y_sum), Thunk(w_bar)


def by_squares_dot(kind: str, z: Any, x: Any, y: Any, w: Any, x_dot: Any, y_dot: Any, w_dot: Any) -> Any:
    """z_dot of the same."""
    centre = x.mean(0)
    x, y = x - centre, y - centre
    matrix = None if w is None else (w + w.T) / 2.0 if kind == "mahalanobis" else np.diag(w)
    z_dot: Any = 0.0
    for along, sign in ((x_dot, 1.0), (y_dot, -1.0)):
        if varies(along):
            v = along if matrix is None else along @ matrix
            inner = (v * x).sum(1)[:, None] - v @ y.T if sign > 0 else (v @ x.T).T - (v * y).sum(1)[None, :]
            z_dot = z_dot + sign * inner
    if varies(w_dot):
        square = w_dot if kind == "mahalanobis" else np.diag(w_dot)
        mixed = x @ square @ y.T + (y @ square @ x.T).T
        z_dot = z_dot + (((x @ square) * x).sum(1)[:, None] + ((y @ square) * y).sum(1)[None, :] - mixed) / 2.0
    return 2.0 * z_dot if kind == "sqeuclidean" else divided(z_dot, z)


def by_products(kind: str, z: Any, x: Any, w: Any) -> bool:
    """Whether sums over pairs are matrix products."""
    return kind == "mahalanobis" or kind in SQUARES and not is_close(z, x, kind)


def moved_rrule(kind: str, z: Any, x: Any, y: Any, w: Any, p: Any) -> Any:
    def of_rows(z_bar: Any, z: Any, x: Any) -> Any:
        """What a few rows give: x_bar for each feature, and y_bar and w_bar."""
        shared = prepared(kind, x, y, w)
        x_bars, y_bars, w_bars = [], [], []
        for k in range(x.shape[1]):
            x_k, y_k, w_k = slopes(kind, z, x, y, p, shared, k)
            wk = weight(w, k) if kind != "chebyshev" else 1.0
            s = z_bar * x_k
            x_bars.append(s.sum(1) * wk)
            y_bars.append((s.sum(0) * -wk) if y_k is None else (z_bar * y_k).sum(0) * wk)
            w_bars.append((z_bar * w_k).sum() if w is not None else 0.0)
        return np.stack(x_bars, 1), np.stack(y_bars, 1), np.stack(w_bars) if w is not None else ZeroTangent

    def by_features(z_bar: Any) -> Any:
        rows = max(1, BLOCK // max(1, len(y)))
        parts = [of_rows(z_bar[n : n + rows], z[n : n + rows], x[n : n + rows]) for n in range(0, len(x), rows)]
        y_bar = sum(part[1] for part in parts)
        return np.concatenate([part[0] for part in parts]), y_bar, total(*[part[2] for part in parts])

    def moved_pullback(z_bar: Any) -> Any:
        if by_products(kind, z, x, w):
            found = by_squares_bar(kind, z, x, y, w, z_bar)
        else:
            found = by_features(z_bar)
        p_bar = Thunk(lambda: (z_bar * order_slope(z, x, y, w, p)).sum()) if kind == "minkowski" else ZeroTangent
        return NoTangent, ZeroTangent, *found, p_bar

    return z * 1.0, moved_pullback


def moved_frule(kind: str, z: Any, x: Any, y: Any, w: Any, p: Any) -> Any:
    def along(x_dot: Any, y_dot: Any, w_dot: Any, p_dot: Any) -> Any:
        if by_products(kind, z, x, w):
            return by_squares_dot(kind, z, x, y, w, x_dot, y_dot, w_dot)
        shared = prepared(kind, x, y, w)
        z_dot = p_dot * order_slope(z, x, y, w, p) if varies(p_dot) else z * 0.0
        for k in range(x.shape[1]):
            x_k, y_k, w_k = slopes(kind, z, x, y, p, shared, k)
            wk = weight(w, k) if kind != "chebyshev" else 1.0
            if varies(x_dot):
                z_dot = z_dot + x_k * x_dot[:, k, None] * wk
            if varies(y_dot):
                z_dot = z_dot + (-x_k if y_k is None else y_k) * y_dot[None, :, k] * wk
            if varies(w_dot):
                z_dot = z_dot + w_k * w_dot[k]
        return z_dot

    def moved_pushforward(dots: Any) -> Any:
        parts = [dot_of(dots, k) for k in range(2, 6)]
        lead = [len(dot) for dot, value in zip(parts, (x, y, w, p), strict=True) if varies(dot) and np.ndim(dot) > np.ndim(value)]
        if not any(varies(dot) for dot in parts):
            return ZeroTangent
        if not lead:
            return along(*parts)
        return np.stack([along(*[dot[n] if varies(dot) else dot for dot in parts]) for n in range(lead[0])])

    return z * 1.0, moved_pushforward


enter(moved, moved_rrule, moved_frule)


# -- the distances of one set of points, condensed ---------------------------------------------------------------------


def apart(kind: str, z: Any, x: Any, w: Any) -> Any:
    """Condensed distances z of points x, Euclidean or their squares, with their derivative in x and in weights w."""
    return copied(z)


def apart_rrule(kind: str, z: Any, x: Any, w: Any) -> Any:
    """Every pair pulls its two points with s (x_i - x_j): s is symmetric, so one product with it has both."""

    def apart_pullback(z_bar: Any) -> Any:
        s = full(2.0 * z_bar if kind == "sqeuclidean" else divided(z_bar, z))
        centred = x - x.mean(0)
        pull = s.sum(1)[:, None] * centred - s @ centred
        w_bar = ZeroTangent if w is None else Thunk(lambda: (centred * pull).sum(0) / 2.0)
        return NoTangent, ZeroTangent, pull if w is None else pull * w, w_bar

    return z * 1.0, apart_pullback


def apart_frule(kind: str, z: Any, x: Any, w: Any) -> Any:
    def apart_pushforward(dots: Any) -> Any:
        x_dot, w_dot = dot_of(dots, 2), dot_of(dots, 3)
        if not varies(x_dot) and not varies(w_dot):
            return ZeroTangent
        distances = full(z)

        def along(x_dot: Any, w_dot: Any) -> Any:
            return half(by_squares_dot(kind, distances, x, x, w, x_dot, x_dot, w_dot))

        pairs = [(dot, value) for dot, value in ((x_dot, x), (w_dot, w)) if varies(dot)]
        lead = [len(dot) for dot, value in pairs if np.ndim(dot) > np.ndim(value)]
        if not lead:
            return along(x_dot, w_dot)
        parts = [[dot[n] if varies(dot) else dot for dot in (x_dot, w_dot)] for n in range(lead[0])]
        return np.stack([along(*part) for part in parts])

    return z * 1.0, apart_pushforward


enter(apart, apart_rrule, apart_frule)

__all__ = ["apart", "full", "half", "is_close", "middle", "moved"]
