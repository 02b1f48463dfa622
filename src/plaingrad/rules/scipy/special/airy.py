"""Airy's functions, also scaled: Ai'' = x Ai."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special as sc

from plaingrad.define import POSITIVE, REAL
from plaingrad.rules.scipy.forms import several
from plaingrad.rules.scipy.special.bessel import ive_slope, kve_slope

FAR = 10.0


def through_bessel(x: Any) -> tuple[Any, Any, Any, Any]:
    """The slopes of the scaled functions where x > FAR: they are Bessel functions of zeta = 2 x^(3/2) / 3 (DLMF 9.6)."""
    zeta = 2 / 3 * x * np.sqrt(x)
    third, root = 1 / 3, np.sqrt(x / 3)

    def pair(v: float) -> tuple[Any, Any]:
        return sc.kve(v, zeta), kve_slope(v, zeta, sc.kve(v, zeta)) * np.sqrt(x)

    def grown(v: float) -> tuple[Any, Any]:
        value = sc.ive(v, zeta)
        return value, ive_slope(v, zeta, value) * np.sqrt(x)

    k, k_slope = pair(third)
    other, other_slope = pair(2 * third)
    i = [grown(v) for v in (-third, third, -2 * third, 2 * third)]
    return (
        (k / (2 * x) + k_slope) * root / np.pi,
        -(other + x * other_slope) / (np.pi * np.sqrt(3.0)),
        ((i[0][0] + i[1][0]) / (2 * x) + i[0][1] + i[1][1]) * root,
        (i[2][0] + i[3][0] + x * (i[2][1] + i[3][1])) / np.sqrt(3.0),
    )


def real_slopes(x: Any, z: Any) -> Any:
    """The slopes of airye for real x: to the left of 0 nothing is scaled, and the first two are nan."""
    far = np.greater(x, FAR)
    root = np.sqrt(np.where(np.less(x, 0), 0.0, x))
    y = np.where(far, x, FAR)
    outside = through_bessel(y)
    left = np.where(np.less(x, 0), np.nan, 0.0)
    direct = (
        z[1] + root * z[0] + left, x * z[0] + root * z[1] + left, z[3] - root * z[2], x * z[2] - root * z[3],
    )  # fmt: skip
    return tuple([np.where(far, a, b)[()] for a, b in zip(outside, direct)])


def complex_slopes(x: Any, z: Any) -> Any:
    """Of Ai(x) exp(zeta), and of Bi(x) with exp(-|Re zeta|) held."""
    root = np.sqrt(x)
    return z[1] + root * z[0], x * z[0] + root * z[1], z[3], x * z[2]


def rate(x: Any, x_dot: Any) -> Any:
    """The derivative of |Re zeta|, zeta = 2 x^(3/2) / 3."""
    root = np.sqrt(x)
    return np.sign(np.real(x * root)) * np.real(root * x_dot)


def slopes(k: int) -> Any:
    """The slope of one of the four."""
    return lambda m, x, z: (complex_slopes if np.iscomplexobj(x) else real_slopes)(x, z)[k]


several("airy", REAL, (lambda m, x, z: z[1],), (lambda m, x, z: x * z[0],), (lambda m, x, z: z[3],),
        (lambda m, x, z: x * z[2],))
several("airye", POSITIVE, (slopes(0),), (slopes(1),), (slopes(2),), (slopes(3),), damping=(None, None, rate, rate))
