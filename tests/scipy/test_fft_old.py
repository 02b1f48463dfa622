"""scipy.fftpack: linear in the periodic function; not so in periods and shifts."""

import numpy as np
import pytest
from tests.scipy.agreement import agrees

import plaingrad

fftpack = pytest.importorskip("scipy.fftpack")
X = np.cos(np.arange(8.0) ** 1.3)
TABLE = np.cos(np.arange(24.0) ** 1.1).reshape(4, 6)


@pytest.mark.parametrize("n", [1, 2, 7, 8])
def test_operators_of_periodic_functions(n):
    x = X[:n]
    for call in (
        lambda x: fftpack.diff(x, 1, 3.0),
        lambda x: fftpack.diff(x, 2),
        lambda x: fftpack.diff(x - x.mean(), -1),
        lambda x: fftpack.diff(x, 0),
        fftpack.hilbert,
        fftpack.ihilbert,
        lambda x: fftpack.tilbert(x, 0.7, 2.0),
        lambda x: fftpack.itilbert(x * (1 + 2j), 0.7),
        lambda x: fftpack.cs_diff(x, 0.4, 0.7),
        lambda x: fftpack.sc_diff(x, 0.4, 0.7, 2.0),
        lambda x: fftpack.ss_diff(x, 0.4, 0.7),
        lambda x: fftpack.cc_diff(x, 0.4, 0.7),
        lambda x: fftpack.shift(x, 0.3, 2.0),
    ):
        agrees(call, x, nested=n == 7)


@pytest.mark.parametrize("name", ["cs_diff", "sc_diff", "ss_diff", "cc_diff", "tilbert", "itilbert", "shift"])
def test_their_parameters_have_derivatives_although_factors_are_kept(name):
    f = getattr(fftpack, name)
    for _ in range(2):  # the second time, SciPy has the factors
        agrees(lambda p: f(X, *(p if "diff" in name else p[:2])), [0.7, 1.3, 2.2], nested=False)
    agrees(lambda p: f(X, *(p if "diff" in name else p[:2])), [0.6, 1.3, 2.2])


@pytest.mark.parametrize("n", [None, 3, 9, 6])
def test_real_transforms_in_one_array(n):
    for f in (fftpack.rfft, fftpack.irfft):
        agrees(lambda x, f=f: f(x, n), X, nested=n is None)
        agrees(lambda x, f=f: f(x, n, axis=0), TABLE, nested=False)
    assert plaingrad.grad(lambda x: fftpack.rfft(x).sum())(X.astype(np.float32)).dtype == np.float32


def test_a_derivative_of_a_sine_is_a_cosine():
    t = np.arange(16) * (2 * np.pi / 16)
    slope = plaingrad.grad(lambda a: fftpack.diff(np.sin(t) * a)[0])(1.0)
    assert abs(slope - 1.0) < 1e-12


def test_what_scipy_raises_comes_through():
    with pytest.raises(Exception) as plain:
        fftpack.hilbert(TABLE)
    with pytest.raises(type(plain.value)):
        plaingrad.grad(lambda x: fftpack.hilbert(x).sum())(TABLE)


def test_an_array_that_may_be_overwritten_keeps_its_derivatives():
    for f in (fftpack.rfft, fftpack.irfft):
        def total(x, f=f):
            y = x * 1.0
            return f(y, overwrite_x=True).sum() + (y * y).sum()

        expected = plaingrad.grad(lambda x, f=f: f(x).sum())(X) + 2 * X
        np.testing.assert_allclose(plaingrad.grad(total)(X), expected)
