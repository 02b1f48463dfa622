"""Composite Gauss-Kronrod rules: panels of the unit interval, their nodes and weights, and how these become places."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plaingrad.rules.scipy.implicit import mover

POINTS = 10  # Gauss points whose Kronrod rule is used


class Way(NamedTuple):
    """How t in the unit interval becomes x.

    Attributes:
        kind: "finite", "up" (from a to infinity), "down" (from -infinity to b), "all", or "ends" (denser at both).
        a: the lower end, or a point of an infinite interval.
        b: the upper end.
    """

    kind: str
    a: float
    b: float

    def points(self, t: Any) -> tuple[Any, Any]:
        """(x, dx/dt)."""
        if self.kind == "finite":
            return self.a + (self.b - self.a) * t, (self.b - self.a) * np.ones_like(t)
        if self.kind == "ends":  # singular ends are smoothed
            s, s_dot = t**3 * (10 - 15 * t + 6 * t * t), 30 * t * t * (1 - t) ** 2
            return self.a + (self.b - self.a) * s, (self.b - self.a) * s_dot
        if self.kind == "up":
            return self.a + (1 - t) / t, 1 / t**2
        if self.kind == "down":
            return self.b - (1 - t) / t, 1 / t**2
        s = 2 * t - 1
        return s / (1 - s * s), 2 * (1 + s * s) / (1 - s * s) ** 2


def way_of(a: float, b: float, singular: bool = False) -> Way:
    """The way from a < b, either of which may be infinite."""
    if np.isinf(a) and np.isinf(b):
        return Way("all", a, b)
    if np.isinf(b):
        return Way("up", a, b)
    if np.isinf(a):
        return Way("down", a, b)
    return Way("ends" if singular else "finite", a, b)


def kronrod() -> tuple[Any, Any, Any]:
    """(nodes in (0, 1), Kronrod weights, Gauss weights, 0 at the nodes that Kronrod added)."""
    gauss, weights = np.polynomial.legendre.leggauss(POINTS)
    nodes = np.sort(np.concatenate([gauss, stieltjes_roots(gauss, weights)]))
    low = np.polynomial.legendre.legvander(nodes, nodes.size - 1).T
    right = np.zeros(nodes.size)
    right[0] = 2.0  # the integral of P_0; of the others 0
    full = np.linalg.solve(low, right)
    coarse = np.zeros(nodes.size)
    coarse[1::2] = weights
    return (nodes + 1) / 2, full / 2, coarse / 2


def stieltjes_roots(gauss: Any, weights: Any) -> Any:
    """The nodes that Kronrod adds: roots of the E of degree n + 1 with integral of P_n E x^k zero for k <= n."""
    n = gauss.size
    fine, w = np.polynomial.legendre.leggauss(2 * n + 2)
    legendre = np.polynomial.legendre.legvander(fine, n + 1)
    moments = (legendre[:, n] * w) @ np.einsum("ij,ik->ijk", legendre[:, : n + 1], legendre).reshape(
        fine.size, -1
    )
    matrix = moments.reshape(n + 1, n + 2)
    coefficients = np.append(np.linalg.lstsq(matrix[:, :-1], -matrix[:, -1], rcond=None)[0], 1.0)
    return np.polynomial.legendre.legroots(coefficients).real


NODES, FULL, COARSE = kronrod()


def placed(panels: Any, way: Way, weight: Any) -> tuple[Any, Any, Any, Any]:
    """The nodes x on all panels, both weights, and which of all nodes these are."""
    t, full, coarse = unit(panels)
    x, x_dot = way.points(t)
    factor = x_dot * (1.0 if weight is None else weight(x))
    keep = np.isfinite(x) & np.isfinite(factor)
    return x[keep], (full * factor)[keep], (coarse * factor)[keep], keep


def unit(panels: Any) -> tuple[Any, Any, Any]:
    """The nodes t on all panels, and both weights."""
    t = (panels[:, :1] + (panels[:, 1:] - panels[:, :1]) * NODES).ravel()
    size = np.repeat(panels[:, 1] - panels[:, 0], NODES.size)
    return t, np.tile(FULL, panels.shape[0]) * size, np.tile(COARSE, panels.shape[0]) * size


@mover
def way_between(low: Any, high: Any, kind: Any) -> Way:
    """The way between ends in either order; weights may be singular there."""
    singular = kind is not None and kind.startswith("alg")
    return way_of(low, high, singular) if low < high else way_of(high, low, singular)


def nodes(t: Any, full: Any, low: Any, high: Any, kind: Any, variable: Any) -> tuple[Any, Any]:
    """(nodes x, weights), which move with the ends."""
    xs, x_dot = way_between(low, high, kind).points(t)
    full = full * x_dot if low < high else full * -x_dot
    weight = weight_of(kind, variable, low, high)
    return xs, full if weight is None else full * weight(xs)


def weight_of(kind: Any, variable: Any, a: Any, b: Any) -> Any:
    """The weight as a function, or None."""
    if kind is None:
        return None
    if kind in ("cos", "sin"):
        wave = np.cos if kind == "cos" else np.sin
        return lambda x: wave(variable * x)
    power = lambda x: (x - a) ** variable[0] * (b - x) ** variable[1]
    if kind == "alg":
        return power
    if kind == "alg-loga":
        return lambda x: power(x) * np.log(x - a)
    if kind == "alg-logb":
        return lambda x: power(x) * np.log(b - x)
    return lambda x: power(x) * np.log(x - a) * np.log(b - x)


def breaks_of(points: Any, way: Way) -> Any:
    """Break points as t."""
    inside = [p for p in (points if points is not None else ()) if way.a < p < way.b]
    return (np.array(inside, dtype=float) - way.a) / (way.b - way.a) if way.kind == "finite" else np.zeros(0)
