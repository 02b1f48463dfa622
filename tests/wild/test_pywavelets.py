"""PyWavelets: transforms in C, thresholds in NumPy."""

import numpy as np
import pytest

pywt = pytest.importorskip("pywt")
pytestmark = pytest.mark.filterwarnings("ignore:Level value")

X = np.array([1.0, 2.0, 1.5, 3.0, 2.7, 4.0, 3.1, 2.05])


@pytest.mark.parametrize("mode", ["soft", "hard", "garrote", "greater", "less"])
def test_thresholds(agrees, mode):
    agrees(lambda v: (pywt.threshold(v, 2.2, mode) ** 2).sum(), X)


def test_a_wavelet_of_constants(agrees):
    filters = np.array(pywt.Wavelet("db2").dec_lo)
    agrees(lambda v: np.convolve(v, filters)[::2].sum(), X)
    agrees(lambda x: x * pywt.dwt(X, "db2")[0].sum(), 1.5)


def squares(parts):
    return sum((part * part * np.arange(1.0, part.size + 1)).sum() for part in parts)


@pytest.mark.parametrize("mode", [mode for mode in pywt.Modes.modes if mode != "periodization"])
def test_transforms(agrees, mode):
    agrees(lambda v: squares(pywt.dwt(v[:7], "db2", mode)), X)


@pytest.mark.parametrize("wavelet", ["haar", "db5", "bior2.2"])
def test_inverses_and_levels(agrees, wavelet):
    agrees(lambda v: squares([pywt.idwt(v, v * v, wavelet)]) + squares([pywt.idwt(None, v, wavelet)]), X)
    agrees(lambda v: squares(pywt.wavedec(v, wavelet, level=1)), X)


def test_the_continuous_transform(agrees):
    agrees(lambda v: (pywt.cwt(v, [1.0, 2.0], "mexh")[0] ** 2).sum(), X)


def test_shrinkage_and_images(agrees):
    def smoothed(v):
        parts = pywt.wavedec(v, "db2", level=2)
        return squares([pywt.waverec([pywt.threshold(part, 0.3) for part in parts], "db2")])

    def image(v):
        low, others = pywt.dwt2(v.reshape(2, 4), "haar")
        return squares([low.reshape(-1), *[part.reshape(-1) for part in others]])

    agrees(smoothed, X)
    agrees(image, X)


def test_transforms_are_refused_by_what_was_called(refuses):
    refuses(lambda v: pywt.dwt(v * 0.0, "db2", "periodization")[0].sum(), X, called="pywt.dwt")
    refuses(lambda v: pywt.idwt(v, v * 0.0, "db2", "periodization").sum(), X, called="pywt.idwt")
