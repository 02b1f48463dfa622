"""Transforms of scipy.fft: linear, so that differences are exact but for rounding."""

import numpy as np
import pytest
from tests.scipy.agreement import agrees

fft = pytest.importorskip("scipy.fft")

X = np.cos(np.arange(12.0) * 1.3) + 0.2 * np.arange(12.0)
TABLE = X[:, None][:6] * [1.0, 0.4, -2.0, 0.3, 1.1] + np.arange(5.0) * 0.2


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("n", [None, 15, 7])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_one_axis(name, n, norm):
    f = getattr(fft, name)
    factor = 1.0 if name in ("rfft", "ihfft") else 1 + 2j
    agrees(lambda x: f(x * factor, n=n, norm=norm), X, nested=norm is None and n is None)


@pytest.mark.parametrize("name", ["fft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn"])
def test_several_axes(name):
    f = getattr(fft, name)
    factor = 1.0 if name in ("rfft2", "rfftn", "ihfftn") else 1 - 0.5j
    agrees(lambda x: f(x * factor), TABLE, nested=False)


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ["dct", "idct", "dst", "idst"])
def test_cosine_and_sine_transforms(name, kind):
    f = getattr(fft, name)
    for norm in (None, "ortho", "forward"):
        agrees(lambda x, norm=norm: f(x, type=kind, norm=norm), X, nested=norm is None)
    agrees(lambda x: f(x, type=kind, axis=0, n=5), TABLE, nested=False)
    agrees(lambda x: getattr(fft, name + "n")(x, type=kind), TABLE, nested=False)


def test_a_cosine_transform_of_complex_numbers():
    agrees(lambda x: fft.dct(x * (1 + 2j)), X)


def test_hankel_transforms():
    agrees(lambda x: fft.fht(x, 0.1, 1.5), X)
    agrees(lambda x: fft.ifht(x, 0.1, 1.5, bias=0.2), X, nested=False)


def test_two_transforms_that_undo_each_other_have_the_slope_one():
    import plaingrad

    assert np.allclose(plaingrad.jacobian(lambda x: fft.irfft(fft.rfft(x), n=12))(X), np.eye(12))
