"""PyWavelets: transforms in C, thresholds in NumPy."""

import numpy as np
import pytest

pywt = pytest.importorskip("pywt")

X = np.array([1.0, 2.0, 1.5, 3.0, 2.7, 4.0, 3.1, 2.05])


@pytest.mark.parametrize("mode", ["soft", "hard", "garrote", "greater", "less"])
def test_thresholds(agrees, mode):
    agrees(lambda v: (pywt.threshold(v, 2.2, mode) ** 2).sum(), X)


def test_a_wavelet_of_constants(agrees):
    filters = np.array(pywt.Wavelet("db2").dec_lo)
    agrees(lambda v: np.convolve(v, filters)[::2].sum(), X)
    agrees(lambda x: x * pywt.dwt(X, "db2")[0].sum(), 1.5)


def test_transforms_are_refused_by_what_was_called(refuses):
    refuses(lambda v: pywt.dwt(v, "db2")[0].sum(), X, called="pywt.dwt")
    refuses(lambda v: pywt.wavedec(v, "haar")[0].sum(), X, called="pywt.wavedec")
    refuses(lambda v: pywt.cwt(v, [1.0, 2.0], "mexh")[0].sum(), X, called="pywt.cwt")
