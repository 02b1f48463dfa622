"""Filters of mirrored signals, extensions of `upfirdn`, and widths of peaks."""

import numpy as np
import pytest
from tests.scipy.agreement import agrees

import plaingrad

signal = pytest.importorskip("scipy.signal")
from scipy.signal import _spline  # noqa: E402

X = np.cos(np.arange(120.0) ** 1.3) + 0.1 * np.arange(120.0)
IMAGE = np.cos(np.arange(1200.0) ** 1.2).reshape(30, 40)
H = np.cos(np.arange(9.0) + 1)
old = pytest.mark.skipif(not hasattr(_spline, "symiirorder1_ic"), reason="these filters are all compiled before SciPy 1.12")


@old
def test_filters_of_mirrored_signals():
    agrees(lambda x: signal.symiirorder1(x, 0.8, 0.3), X, nested=False)
    agrees(lambda p: signal.symiirorder1(X, p[0], p[1], precision=1e-11), [0.8, 0.3])
    for r, omega in ((0.5, 0.3), (0.5, 0.0), (0.4, np.pi), (0.6, 1.7)):
        agrees(lambda x, r=r, omega=omega: signal.symiirorder2(x, r, omega), X, nested=omega == 0.3)
    agrees(lambda x: signal.symiirorder2(x.reshape(2, 60), 0.3, 0.7), X, nested=False)


@old
def test_their_parameters_are_those_of_sums_that_do_not_end():
    """SciPy's sums end early, by 1e-5 of their size."""
    agrees(lambda p: signal.symiirorder2(X, p[0], p[1], precision=1e-11), [0.2, 0.9], tolerance=1e-3, nested=False)
    with pytest.raises(plaingrad.MissingRuleError, match="poles meet"):
        plaingrad.grad(lambda omega: signal.symiirorder2(X, 0.5, omega).sum())(0.0)


@old
def test_spline_filters_of_images():
    for f in (signal.cspline2d, signal.qspline2d, signal.spline_filter, lambda x: signal.cspline2d(x, 5.0)):
        agrees(f, IMAGE, nested=False)
    x = IMAGE.astype(np.float32)
    assert plaingrad.grad(lambda x: signal.spline_filter(x).sum())(x).dtype == np.float32


MODES = ["constant", "wrap", "edge", "smooth", "symmetric", "reflect", "antisymmetric", "antireflect", "line"]


@pytest.mark.parametrize("mode", MODES)
def test_signals_extended_beyond_their_ends(mode):
    cval = 0.3 if mode == "constant" else 0
    for up, down in ((1, 1), (3, 2), (2, 5)):
        for n in (40, 7, 2):
            agrees(lambda x, u=up, d=down: signal.upfirdn(H, x, u, d, mode=mode, cval=cval), X[:n], nested=n == 7 and up == 3)
    agrees(lambda h: signal.upfirdn(h, X[:30], 3, 2, mode=mode), H, nested=False)
    agrees(lambda x: signal.upfirdn(H, x, 3, 2, axis=0, mode=mode), X[:30].reshape(10, 3), nested=False)


@pytest.mark.parametrize("padtype", ["line", "mean", "smooth", "antisymmetric"])
def test_resampling_with_extensions(padtype):
    agrees(lambda x: signal.resample_poly(x, 3, 2, padtype=padtype), X[:40], nested=False)


def test_widths_of_peaks():
    x = np.sin(np.arange(60.0) * 0.5) + 0.4 * np.sin(np.arange(60.0) * 1.3)
    peaks = signal.find_peaks(x)[0]
    for height in (0.5, 0.8, 1.0):
        agrees(lambda x, h=height: np.concatenate(signal.peak_widths(x, peaks, rel_height=h)), x, nested=height == 0.5)
    agrees(lambda h: np.concatenate(signal.peak_widths(x, peaks, rel_height=h[0])), [0.5], nested=False)
    agrees(lambda x: signal.find_peaks(x, width=1)[1]["widths"], x, nested=False)


def test_the_width_of_a_triangle():
    """Of height a and slopes 1 and -1/2, at half its height: 3a / 2."""

    def width(a):
        x = np.concatenate([[0.0], a - np.arange(4.0)[::-1], a - 0.5 * np.arange(1.0, 8.0), [0.0]])
        return signal.peak_widths(x, np.array([4]), prominence_data=(np.array([3.5]), np.array([0]), np.array([12])))[0][0]

    value, slope = plaingrad.value_and_grad(width)(4.0)
    assert abs(value - 5.25) < 1e-12 and abs(slope) < 1e-12  # 1.75 below the top, wherever that is
