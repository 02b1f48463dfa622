"""numpy.fft. The adjoint of a transform is the unscaled transform back: the norms "backward" and "forward" change places."""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.rules.numpy.names import at_axis, linear, refuse_out
from plaingrad.rules.pushforwards import from_back

OPPOSITE = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


def fitted(x: Any, n: int, axis: int) -> Any:
    """`x` with exactly `n` entries along `axis`: cut off, or zeros after."""
    have = np.shape(x)[axis]
    if have == n:
        return x
    if have > n:
        return x[at_axis(slice(0, n), axis, np.ndim(x))]
    shape = list(np.shape(x))
    shape[axis] = n - have
    return np.concatenate([x, np.zeros(shape, x.dtype)], axis)


def enter_transform(function: Any, back: Any) -> None:
    """Complex to complex, along one axis."""

    def adjoint(z_bar, a, n=None, axis=-1, norm=None, out=None):
        refuse_out("np.fft", out)
        return fitted(back(z_bar, axis=axis, norm=OPPOSITE[norm]), np.shape(a)[axis], axis)

    linear(function, adjoint, along_one_axis(function))


def along_one_axis(function: Any) -> Any:
    """The transform of each tangent, its axis counted from the back."""

    def push(a_dot, a, z, n=None, axis=-1, norm=None, out=None):
        return function(a_dot, n, axis % np.ndim(a) - np.ndim(a), norm)

    return push


enter_transform(np.fft.fft, np.fft.ifft)
enter_transform(np.fft.ifft, np.fft.fft)


def rfft_adjoint(z_bar, a, n=None, axis=-1, norm=None, out=None):
    """Only half of the spectrum was given: the rest has no cotangent."""
    refuse_out("np.fft.rfft", out)
    n = np.shape(a)[axis] if n is None else n
    a_bar = np.real(np.fft.ifft(fitted(z_bar, n, axis), axis=axis, norm=OPPOSITE[norm]))
    return fitted(a_bar, np.shape(a)[axis], axis)


def irfft_adjoint(z_bar, a, n=None, axis=-1, norm=None, out=None):
    """Entries that stand for their mirror images too count twice."""
    refuse_out("np.fft.irfft", out)
    n = np.shape(z_bar)[axis]
    a_bar = np.fft.rfft(z_bar, axis=axis, norm=OPPOSITE[norm])
    weight = np.full(n // 2 + 1, 2.0, np.asarray(z_bar).dtype)
    weight[0] = 1
    if n % 2 == 0:
        weight[-1] = 1
    a_bar = np.moveaxis(np.moveaxis(a_bar, axis, -1) * weight, -1, axis)
    return fitted(a_bar, np.shape(a)[axis], axis)


linear(np.fft.rfft, rfft_adjoint, along_one_axis(np.fft.rfft))
linear(np.fft.irfft, irfft_adjoint, along_one_axis(np.fft.irfft))


def enter_many(function: Any, back: Any, default_axes: Any) -> None:
    """Complex to complex, along several axes."""

    def adjoint(z_bar, a, s=None, axes=default_axes, norm=None, out=None):
        refuse_out("np.fft", out)
        if axes is None:
            axes = tuple(range(-len(s), 0)) if s is not None else tuple(range(np.ndim(a)))
        a_bar = back(z_bar, axes=axes, norm=OPPOSITE[norm])
        for axis in axes:
            a_bar = fitted(a_bar, np.shape(a)[axis], axis)
        return a_bar

    def push(a_dot, a, z, s=None, axes=default_axes, norm=None, out=None):
        axes = range(-len(s), 0) if axes is None and s is not None else from_back(axes, np.ndim(a))
        return function(a_dot, s, tuple(axes), norm)

    linear(function, adjoint, push)


enter_many(np.fft.fftn, np.fft.ifftn, None)
enter_many(np.fft.ifftn, np.fft.fftn, None)
enter_many(np.fft.fft2, np.fft.ifftn, (-2, -1))
enter_many(np.fft.ifft2, np.fft.fftn, (-2, -1))

linear(np.fft.fftshift, lambda z_bar, x, axes=None: np.fft.ifftshift(z_bar, axes),
       lambda x_dot, x, z, axes=None: np.fft.fftshift(x_dot, from_back(axes, np.ndim(x))))  # fmt: skip
linear(np.fft.ifftshift, lambda z_bar, x, axes=None: np.fft.fftshift(z_bar, axes),
       lambda x_dot, x, z, axes=None: np.fft.ifftshift(x_dot, from_back(axes, np.ndim(x))))  # fmt: skip
