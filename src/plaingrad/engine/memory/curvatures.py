"""Second derivatives of elementwise functions of real arrays, by the rows that say the first ones.

One row is one fact: the function, then d2z/dx2 by x, z and the slope s. The compiled core takes them where reverse mode
runs inside forward mode; of functions that are not here, the slope's row is pushed forward itself.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from plaingrad import rulebook

CURVATURES: dict[Any, Callable[[Any, Any, Any], Any]] = {
    np.sin: lambda x, z, s: -z,
    np.cos: lambda x, z, s: -z,
    np.tan: lambda x, z, s: 2.0 * z * s,
    np.arcsin: lambda x, z, s: x * s * s * s,
    np.arccos: lambda x, z, s: x * s * s * s,
    np.arctan: lambda x, z, s: -2.0 * x * s * s,
    np.sinh: lambda x, z, s: z,
    np.cosh: lambda x, z, s: z,
    np.arcsinh: lambda x, z, s: -x * s * s * s,
    np.arctanh: lambda x, z, s: 2.0 * x * s * s,
    np.expm1: lambda x, z, s: s,
    np.exp2: lambda x, z, s: math.log(2.0) * s,
    np.log1p: lambda x, z, s: -s * s,
    np.log2: lambda x, z, s: -s / x,
    np.log10: lambda x, z, s: -s / x,
    np.absolute: lambda x, z, s: np.zeros_like(x),
    np.reciprocal: lambda x, z, s: -2.0 * z * s,
}


# Of functions of two: d2z/dx2, d2z/dxdy and d2z/dy2 by x, y and z, where `SMOOTH` says that nothing is near its end.
CURVATURES_OF_TWO: dict[Any, Callable[[Any, Any, Any], tuple[Any, Any, Any]]] = {
    np.hypot: lambda x, y, z: (y * y / z**3, -x * y / z**3, x * x / z**3),
    np.arctan2: lambda x, y, z: _of_angle(x, y, x * x + y * y),
    np.logaddexp: lambda x, y, z: _of_softmax(np.exp(x - z) * np.exp(y - z)),
    np.power: lambda x, y, z: _of_power(x, y, z, np.log(x)),
}


def _of_angle(x: Any, y: Any, r: Any) -> tuple[Any, Any, Any]:
    mixed = (x - y) * (x + y) / (r * r)
    return -2.0 * x * y / (r * r), mixed, 2.0 * x * y / (r * r)


def _of_softmax(both: Any) -> tuple[Any, Any, Any]:
    return both, -both, both


def _of_power(x: Any, y: Any, z: Any, u: Any) -> tuple[Any, Any, Any]:
    return y * (y - 1.0) * z / (x * x), z / x * (1.0 + y * u), z * u * u


SMOOTH: dict[Any, Callable[[Any, Any, Any], Any]] = {
    np.hypot: lambda x, y, z: (z > 1e-90) & (z < 1e90),
    np.arctan2: lambda x, y, z: np.abs(np.log2(np.hypot(x, y))) < 200.0,
    np.logaddexp: lambda x, y, z: np.isfinite(z),
    np.power: lambda x, y, z: (x > 1e-90) & (x < 1e90) & (z > 1e-90) & (z < 1e90),
}


def curvature_of_two(f: Any, x: Any, y: Any, z: Any) -> tuple[Any, Any, Any] | None:
    """The second derivatives of z = f(x, y); None where they are not known, or near an end."""
    if f not in CURVATURES_OF_TWO or not np.all(SMOOTH[f](x, y, z)):
        return None
    return CURVATURES_OF_TWO[f](x, y, z)


@functools.cache
def curvatures() -> dict[Any, Callable[[Any, Any, Any], Any]]:
    """The rows, by the partial derivatives of plaingrad's own rules."""
    found = {}
    for f, curvature in CURVATURES.items():
        rule = rulebook.find(f)
        if rule is not None and rule.own and rule.kind == "scalar":
            found[rule.partials[0]] = curvature
    return found
