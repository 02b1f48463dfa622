"""`scipy.fftpack`'s real transforms in one array, and its operators of periodic functions.

Each operator multiplies the Fourier coefficients of x by a function of their frequency k. SciPy keeps those factors between
calls; here they are computed anew, so that what they depend on (the period, the shift, a and b) has a derivative, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.fft
from scipy import fftpack

from plaingrad.rules.scipy.forms import keep
from plaingrad.rules.scipy.implicit import Rules, called, carrying, fresh

RULES = Rules()


def as_numbers(x: Any) -> Any:
    """An array of numbers with a fraction."""
    x = np.asarray(x)
    return x if x.dtype.kind in "fc" else x * 1.0


def kept(given: dict[str, Any]) -> Any:
    """A call that does not use x as its memory: the program may, but need not, find it changed."""
    return (), {**given, "overwrite_x": False}


@RULES.defined(fftpack.rfft)
def rfft(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """Re y0, Re y1, Im y1, ..., with Re y(n/2) at the end if n is even."""
    value = called(function, kept(given))
    n, axis = value.shape[given["axis"]], given["axis"]
    y = np.moveaxis(scipy.fft.rfft(as_numbers(given["x"]), n, axis), axis, -1)
    pairs = np.stack([y.real, y.imag], -1).reshape(*y.shape[:-1], -1)
    packed = np.concatenate([pairs[..., :1], pairs[..., 2 : n + 1]], -1)
    return carrying(fresh(value), np.moveaxis(packed, -1, axis))


@RULES.defined(fftpack.irfft)
def irfft(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """The way back."""
    value = called(function, kept(given))
    n, axis = value.shape[given["axis"]], given["axis"]
    x = np.moveaxis(as_numbers(given["x"]), axis, -1)[..., :n]
    lead, missing = x.shape[:-1], n + 1 - n % 2 - x.shape[-1]
    x = np.concatenate([x, np.zeros((*lead, missing), x.dtype)], -1)  # Im y(n/2) is 0
    y = np.concatenate([x[..., :1] + 0j, x[..., 1::2] + 1j * x[..., 2::2]], -1)
    return carrying(fresh(value), np.moveaxis(scipy.fft.irfft(y, n), -1, axis))


# ---------------------------------------------------------------------------------------------------------


def frequencies(n: int) -> Any:
    """1, 2, ... up to half the length."""
    return np.arange(1.0, n // 2 + 1)


def multiplied(function: Any, call: Any, x: Any, first: Any, factors: Any, nyquist: Any = 0.0) -> Any:
    """x with its coefficients times `first` at 0, `factors` above, and `nyquist` at the last one of an even number."""
    value = called(function, call)
    x = as_numbers(x)
    n = len(x)
    parts = [np.zeros(1) + first, factors[: (n - 1) // 2]]
    if n % 2 == 0:
        parts.append(np.zeros(1) + nyquist)
    both = np.concatenate([part + 0j for part in parts])
    y = scipy.fft.irfft(scipy.fft.rfft(x.real) * both, n)
    if np.iscomplexobj(x):
        y = y + 1j * scipy.fft.irfft(scipy.fft.rfft(x.imag) * both, n)
    return carrying(fresh(value), y)


def scale_of(period: Any) -> Any:
    """2 pi over the period, which is 2 pi if nothing is said."""
    return 1.0 if period is None else 2.0 * np.pi / period


@RULES.defined(fftpack.diff)
def diff(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """(i k)^order; an integral has no constant term."""
    x, order = given["x"], given["order"]
    if order == 0:
        return np.asarray(x)
    k = scale_of(given["period"]) * frequencies(len(x))
    # SciPy drops the highest coefficient in derivatives of even order, too
    return multiplied(function, call, x, 0.0, k**order * (1j**order))


@RULES.defined(fftpack.hilbert)
def hilbert(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """i sign(k)."""
    x = given["x"]
    return multiplied(function, call, x, 0.0, frequencies(len(x)) * 0 + 1j)


@RULES.defined(fftpack.ihilbert)
def ihilbert(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """-i sign(k)."""
    x = given["x"]
    return multiplied(function, call, x, 0.0, frequencies(len(x)) * 0 - 1j)


@RULES.defined(fftpack.tilbert)
def tilbert(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """i coth(h k)."""
    x = given["x"]
    k = given["h"] * scale_of(given["period"]) * frequencies(len(x))
    return multiplied(function, call, x, 0.0, 1j / np.tanh(k))


@RULES.defined(fftpack.itilbert)
def itilbert(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """-i tanh(h k)."""
    x = given["x"]
    k = given["h"] * scale_of(given["period"]) * frequencies(len(x))
    return multiplied(function, call, x, 0.0, -1j * np.tanh(k))


def ratio(upper: Any, lower: Any, factor: complex) -> Any:
    """A definition: factor upper(a k) / lower(b k), 0 at k = 0 unless it is a ratio of the same functions."""

    def definition(function: Any, call: Any, given: dict[str, Any]) -> Any:
        x, scale = given["x"], scale_of(given["period"])
        a, b, k = given["a"], given["b"], frequencies(len(x))
        z = factor * upper(a * scale * k) / lower(b * scale * k)
        if upper is not lower:
            return multiplied(function, call, x, 0.0, z)
        last = z[-1] if len(z) else 0.0
        return multiplied(function, call, x, a / b if upper is np.sinh else 1.0, z, last)

    return definition


RULES.defined(fftpack.cs_diff)(ratio(np.cosh, np.sinh, -1j))
RULES.defined(fftpack.sc_diff)(ratio(np.sinh, np.cosh, 1j))
RULES.defined(fftpack.ss_diff)(ratio(np.sinh, np.sinh, 1.0))
RULES.defined(fftpack.cc_diff)(ratio(np.cosh, np.cosh, 1.0))


@RULES.defined(fftpack.shift)
def shift(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """exp(i a k); SciPy takes cos + sin at the highest coefficient."""
    x = given["x"]
    k = given["a"] * scale_of(given["period"]) * frequencies(len(x))
    last = np.cos(k[-1]) + np.sin(k[-1]) if len(k) else 0.0
    return multiplied(function, call, x, 1.0, np.cos(k) + 1j * np.sin(k), last)


for rule in RULES:
    keep(rule)
