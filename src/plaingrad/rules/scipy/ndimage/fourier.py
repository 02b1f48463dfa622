"""Filters in frequency space: `fourier_gaussian` and its kind multiply a spectrum by a function of the frequencies."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special
from scipy.ndimage import _nd_image

from plaingrad.rules.scipy.forms import keep
from plaingrad.rules.scipy.implicit import Rules, carrying, fresh, is_active, outside
from plaingrad.rules.scipy.ndimage.filters import defined

GAUSSIAN, UNIFORM, ELLIPSOID = range(3)


@outside
def factors(order: int, name: str, shape: Any, params: Any, n: int, axis: int, kind: int) -> Any:
    """What the compiled function multiplies by."""
    if name == "fourier_shift":
        out = np.zeros(shape, complex)
        _nd_image.fourier_shift(np.ones(shape), params, n, axis, out)
    else:
        out = np.zeros(shape)
        _nd_image.fourier_filter(np.ones(shape), params, n, axis, out, kind)
    return out


@outside
def frequencies(order: int, shape: Any, n: int, axis: int) -> Any:
    """Of each axis, lined up; of the one that a real transform has halved, only those from 0 on."""
    found = []
    for k, size in enumerate(shape):
        f = np.arange(size) / n if n >= 0 and k == axis else np.fft.fftfreq(size)
        found.append(f.reshape([-1 if j == k else 1 for j in range(len(shape))]))
    return found


def ball(r: Any, dimensions: int) -> Any:
    """The transform of an interval, a disc or a ball, 1 at r = 0."""
    safe = np.where(r == 0, 1.0, r)
    if dimensions == 1:
        z = np.sin(safe) / safe
    elif dimensions == 2:
        z = 2.0 * special.jv(1, safe) / safe
    else:
        z = 3.0 * (np.sin(safe) - safe * np.cos(safe)) / safe**3
    return np.where(r == 0, 1.0, z)


def formula(name: str, shape: Any, params: Any, n: int, axis: int, kind: int) -> Any:
    """The same in closed form."""
    parts = [f * params[k] for k, f in enumerate(frequencies(shape, n, axis))]
    if name == "fourier_shift":
        angle = 2.0 * np.pi * sum(parts)
        return np.cos(angle) - 1j * np.sin(angle)
    if kind == UNIFORM:
        z: Any = 1.0
        for part in parts:
            z = z * np.sinc(part)
        return z
    square = sum(part * part for part in parts)
    if kind == GAUSSIAN:
        return np.exp(-2.0 * np.pi**2 * square)
    away = square > 0
    return ball(np.pi * np.where(away, np.sqrt(np.where(away, square, 1.0)), 0.0), len(shape))


def multiplied(name: str, x: Any, params: Any, n: int, axis: int, kind: int) -> Any:
    """The filtered spectrum."""
    z = factors(name, x.shape, params, n, axis, kind)
    if is_active(params):
        z = carrying(fresh(z), formula(name, x.shape, params, n, axis, kind))
    return x * z


@defined("fourier_filter", mutates=True)
def fourier_filter(x, params, n, axis, output, kind):
    output[...] = multiplied("fourier_filter", x, params, n, axis, kind)


@defined("fourier_shift", mutates=True)
def fourier_shift(x, shifts, n, axis, output):
    output[...] = multiplied("fourier_shift", x, shifts, n, axis, 0)


for rule in Rules():
    keep(rule)
