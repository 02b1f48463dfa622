"""Spectra of overlapping segments, which are one transform: against the loop over them, and differences."""

from functools import partial

import numpy as np
import pytest

import plaingrad

signal = pytest.importorskip("scipy.signal")
if not hasattr(signal, "ShortTimeFFT"):
    pytest.skip("this SciPy has no ShortTimeFFT", allow_module_level=True)

RANDOM = np.random.default_rng(7)
X = RANDOM.normal(size=97)
WEIGHTS = RANDOM.normal(size=4000)


def weighed(z):
    z = np.ravel(z)
    return np.sum(WEIGHTS[: z.size] * np.real(z)) + np.sum(WEIGHTS[-z.size :] * np.imag(z))


@pytest.mark.parametrize("detr", ["constant", "linear", None])
@pytest.mark.parametrize("mode", ["onesided", "twosided", "centered", "onesided2X"])
@pytest.mark.parametrize("shift", [None, 0, 3])
def test_all_segments_at_once_are_the_loop_over_them(detr, mode, shift):
    transform = signal.ShortTimeFFT(np.hanning(13)[1:-1], 4, 1.0, fft_mode=mode, mfft=16, scale_to="psd", phase_shift=shift)
    one_by_one = partial(signal.detrend, type=detr) if detr else lambda x: x * 1.0

    for options in ({}, {"p0": 1, "p1": 9, "k_offset": 5}):
        at_once = lambda x, o=options: weighed(transform.stft_detrend(x, detr, **o))
        looped = lambda x, o=options: weighed(transform.stft_detrend(x, one_by_one, **o))
        value, x_bar = plaingrad.value_and_grad(at_once)(X)
        assert value == at_once(X)
        np.testing.assert_allclose(x_bar, plaingrad.grad(looped)(X), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_segments_along_an_axis(axis):
    x = RANDOM.normal(size=(40, 33))
    f = lambda x: weighed(signal.welch(x, nperseg=8, axis=axis)[1])
    x_dot = RANDOM.normal(size=x.shape)
    difference = (f(x + 1e-6 * x_dot) - f(x - 1e-6 * x_dot)) / 2e-6
    assert np.sum(plaingrad.grad(f)(x) * x_dot) == pytest.approx(difference, rel=1e-7)
    assert plaingrad.jvp(f, (x,), (x_dot,))[1] == pytest.approx(difference, rel=1e-7)


def test_a_window_and_second_derivatives():
    window = np.hanning(10)[1:-1]
    f = lambda w: np.sum(np.log(signal.welch(X, window=w, nperseg=8)[1]))
    w_dot = RANDOM.normal(size=8)
    difference = (f(window + 1e-6 * w_dot) - f(window - 1e-6 * w_dot)) / 2e-6
    assert np.sum(plaingrad.grad(f)(window) * w_dot) == pytest.approx(difference, rel=1e-6)
    g = lambda x: np.sum(np.log(signal.csd(x, x * x, nperseg=16)[1][1:-1].real ** 2 + 1.0))
    x_dot = RANDOM.normal(size=97)
    along = plaingrad.jvp(plaingrad.grad(g), (X,), (x_dot,))[1]
    slope = plaingrad.grad(g)
    np.testing.assert_allclose(along, (slope(X + 1e-6 * x_dot) - slope(X - 1e-6 * x_dot)) / 2e-6, rtol=1e-4, atol=1e-5)


def test_what_scipy_raises_is_raised():
    transform = signal.ShortTimeFFT(np.hanning(11), 4, 1.0)
    with pytest.raises(ValueError, match="must be >="):
        plaingrad.grad(lambda x: weighed(transform.stft_detrend(x, "constant")))(X[:3])
    with pytest.raises(ValueError, match="Trend type"):
        plaingrad.grad(lambda x: weighed(transform.stft_detrend(x, "bad")))(X)
