"""Fourier, cosine and sine transforms of pocketfft, or of ducc since SciPy 1.18. The adjoint of each is one of them, of the other direction or type.

`scipy.fft`'s public functions choose a backend in C code; a differentiated call goes to SciPy's own.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import numpy as np
import scipy.fft

from plaingrad.define import _source_of
from plaingrad.rulebook import Rule
from plaingrad.rules.pushforwards import pushed
from plaingrad.rules.scipy.compiled import each, enter
from plaingrad.rules.scipy.forms import find, keep
from plaingrad.tangents import NoTangent

PACKAGE = "_pocketfft" if importlib.util.find_spec("scipy.fft._pocketfft") else "_duccfft"
pocketfft = importlib.import_module(f"scipy.fft.{PACKAGE}.py{PACKAGE[1:]}")
BACKENDS = (
    *("scipy.fft._basic_backend", "scipy.fft._realtransforms_backend", "scipy.fft._fftlog_backend"),
    *(f"scipy.fft.{PACKAGE}", "scipy.fft._fftlog"),
)


def all_axes(axes: Any, ndim: int) -> tuple[int, ...]:
    """Axes counted from the front; None means all."""
    return tuple(range(ndim)) if axes is None else tuple([axis % ndim for axis in axes])


def complex_transform(a: Any, axes: Any, forward: bool, inorm: int, threads: int) -> Any:
    """z_k = c sum over j of a_j exp(-+ 2 pi i j k / n)."""
    return pocketfft.c2c(a, axes, forward, inorm, None, threads)


def complex_adjoint(z_bar: Any, a: Any, axes: Any, forward: bool, inorm: int, threads: int) -> Any:
    """The exponential is conjugated; the factor is the same."""
    return complex_transform(z_bar, axes, not forward, inorm, threads)


def from_real(a: Any, axes: Any, forward: bool, inorm: int, threads: int) -> Any:
    """The first n // 2 + 1 results of the transform of real numbers."""
    return pocketfft.r2c(a, axes, forward, inorm, None, threads)


def from_real_adjoint(z_bar: Any, a: Any, axes: Any, forward: bool, inorm: int, threads: int) -> Any:
    """The real part of the complex transform of z_bar, with zeros for the rest: numbers with a partner count half."""
    size = a.shape[axes[-1]]
    halves = z_bar / partners(z_bar, axes[-1], size)
    return to_real(halves + 0j, axes, size, not forward, inorm, threads)


def to_real(a: Any, axes: Any, size: int, forward: bool, inorm: int, threads: int) -> Any:
    """The real transform of half a spectrum; of the numbers without a partner the real parts count."""
    return pocketfft.c2r(a, axes, size, forward, inorm, None, threads)


def to_real_adjoint(z_bar: Any, a: Any, axes: Any, size: int, forward: bool, inorm: int, threads: int) -> Any:
    """Numbers with a conjugate partner count twice."""
    return from_real(z_bar, axes, not forward, inorm, threads) * partners(a, axes[-1], size)


def partners(half: Any, axis: int, size: int) -> Any:
    """For the numbers of half a spectrum along an axis: 2 where they stand for themselves and a conjugate, else 1."""
    count = np.full(half.shape[axis], 2.0, half.real.dtype)
    count[0] = 1.0
    if size % 2 == 0:
        count[size // 2 :] = 1.0
    shape = [1] * half.ndim
    shape[axis] = len(count)
    return count.reshape(shape)


def real_transform(a: Any, sine: bool, kind: int, axes: Any, inorm: int, threads: int, orthogonal: Any) -> Any:
    """A cosine or sine transform of type 1 to 4."""
    transform = pocketfft.dst if sine else pocketfft.dct
    return transform(a, kind, axes, inorm, None, threads, orthogonal)


def end_factors(n: int, sine: bool, kind: int, dtype: Any) -> Any:
    """By how much the numbers at the ends count less in a transform of this type than in the transpose of its partner."""
    factors = np.ones(n, dtype)
    if kind == 1 and not sine:
        factors[0] = factors[-1] = 0.5
    elif kind in (2, 3):
        factors[-1 if sine else 0] = 0.5
    return factors


def first_factors(shape: Any, axes: Any, kind: int, dtype: Any) -> Any:
    """What older SciPy multiplies the first of the results (type 2) or of the numbers (type 3) of sine transforms by."""
    factors = np.ones(shape, dtype)
    for axis in axes:
        first = (*(slice(None),) * axis, 0)
        factors[first] *= np.sqrt(0.5 if kind == 2 else 2.0)
    return factors


def sines_are_orthogonal() -> bool:
    """Whether sine transforms of type 2 are orthogonal where they should be: those of older SciPy are not."""
    matrix = pocketfft.dst(np.eye(3), 2, (0,), 1, None, 1, True)
    return bool(np.allclose(matrix @ matrix.T, np.eye(3)))


SINES_ARE_ORTHOGONAL = sines_are_orthogonal()


def real_adjoint(
    z_bar: Any, a: Any, sine: bool, kind: int, axes: Any, inorm: int, threads: int, orthogonal: Any
) -> Any:
    """Types 2 and 3 are transposes of each other, 1 and 4 of themselves, but for the numbers at the ends."""
    partner = {1: 1, 2: 3, 3: 2, 4: 4}[kind]
    if orthogonal or orthogonal is None and inorm == 1:
        if not sine or kind not in (2, 3) or SINES_ARE_ORTHOGONAL:
            return real_transform(z_bar, sine, partner, axes, inorm, threads, orthogonal)
        ends = first_factors(a.shape, axes, kind, z_bar.dtype)
        if kind == 2:
            return real_adjoint(z_bar * ends, a, sine, kind, axes, inorm, threads, False)
        return real_adjoint(z_bar, a, sine, kind, axes, inorm, threads, False) * ends
    factors = []
    for axis in axes:
        shape = [1] * a.ndim
        shape[axis] = a.shape[axis]
        factors.append(end_factors(a.shape[axis], sine, kind, z_bar.dtype).reshape(shape))
    if kind in (1, 2):
        for factor in factors:
            z_bar = z_bar / factor
    z = real_transform(z_bar, sine, partner, axes, inorm, threads, orthogonal)
    if kind in (1, 3):
        for factor in factors:
            z = z * factor
    return z


def enter_linear(function: Any, adjoint: Any) -> None:
    """Enter a transform that is linear in its first argument."""

    def transform_rrule(a: Any, *others: Any) -> Any:
        def transform_pullback(z_bar: Any) -> Any:
            return adjoint(z_bar, a, *others), *(NoTangent for _ in others)

        return function(a, *others), transform_pullback

    def transform_frule(a: Any, *others: Any) -> Any:
        def transform_pushforward(dots: Any) -> Any:
            return pushed(lambda a_dot: each(lambda part: function(part, *others), a_dot, a), dots[0])

        return function(a, *others), transform_pushforward

    enter(function, transform_rrule, transform_frule, "linear")


enter_linear(complex_transform, complex_adjoint)
enter_linear(from_real, from_real_adjoint)
enter_linear(to_real, to_real_adjoint)
enter_linear(real_transform, real_adjoint)


# ---------------------------------------------------------------------------------------------------------
# pocketfft's functions may write their result into an array.


def written(z, out):
    """`z`, or `out` with it."""
    if out is None:
        return z
    out[...] = z
    return out


def c2c(a, axes=None, forward=True, inorm=0, out=None, nthreads=1):
    return written(complex_transform(a, all_axes(axes, a.ndim), forward, inorm, nthreads), out)


def r2c(a, axes=None, forward=True, inorm=0, out=None, nthreads=1):
    return written(from_real(a, all_axes(axes, a.ndim), forward, inorm, nthreads), out)


def c2r(a, axes=None, lastsize=0, forward=True, inorm=0, out=None, nthreads=1):
    axes = all_axes(axes, a.ndim)
    size = lastsize or 2 * a.shape[axes[-1]] - 2
    return written(to_real(a, axes, size, forward, inorm, nthreads), out)


def dct(a, type, axes=None, inorm=0, out=None, nthreads=1, ortho=None):
    return written(real_transform(a, False, type, all_axes(axes, a.ndim), inorm, nthreads, ortho), out)


def dst(a, type, axes=None, inorm=0, out=None, nthreads=1, ortho=None):
    return written(real_transform(a, True, type, all_axes(axes, a.ndim), inorm, nthreads, ortho), out)


for definition in (c2c, r2c, c2r, dct, dst):
    compiled = getattr(pocketfft, definition.__name__, None)
    if compiled is not None:
        keep(Rule(compiled, "composed", definition=definition, mutates=True, source=_source_of(definition)))

for name in scipy.fft.__all__:
    function = getattr(scipy.fft, name)
    backend = find(name, BACKENDS)
    if type(function).__module__ == "uarray" and backend is not None:
        keep(Rule(function, "composed", definition=backend, source=f"{__file__}:1"))
