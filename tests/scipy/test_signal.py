"""Filters, convolutions, changes of rate and spectra."""

import numpy as np
import pytest
from tests.scipy.agreement import agrees

import plaingrad

signal = pytest.importorskip("scipy.signal")
pytestmark = pytest.mark.filterwarnings("ignore")

X = np.cos(np.arange(12.0) * 1.3) + 0.2 * np.arange(12.0)
TABLE = X[:, None][:6] * [1.0, 0.4, -2.0, 0.3, 1.1, 0.7, -0.2] + np.arange(7.0) * 0.2
B, A = signal.butter(3, 0.3)
SECTIONS = signal.butter(4, 0.3, output="sos")


def poles(x):
    return np.append(1.2, x[3:5] * 0.1)


def sections(x):
    """SECTIONS with other coefficients; the fourth is 1 in all."""
    return SECTIONS * (1 + 0.1 * (np.arange(6) != 3) * x[0])


def both(results):
    """All numbers of a signal and its last state."""
    return np.concatenate([np.ravel(part) for part in results])


FILTERS = {
    "lfilter": lambda x: signal.lfilter(B, A, x),
    "lfilter of coefficients": lambda x: signal.lfilter(x[:3], poles(x), x),
    "lfilter without poles": lambda x: signal.lfilter(x[:3], 1.0, x),
    "lfilter with a state": lambda x: np.concatenate(signal.lfilter(B, A, x, zi=x[:3])),
    "lfilter of a short signal": lambda x: np.concatenate(signal.lfilter(B, A, x[:2], zi=x[:3])),
    "lfilter with complex coefficients": lambda x: signal.lfilter(
        x[:3] * (1 + 0.3j), poles(x) * (1 + 0.1j), x
    ),
    "states": lambda x: signal.lfilter_zi(x[:3], poles(x)),
    "filtfilt": lambda x: signal.filtfilt(x[:3], poles(x), x, padlen=6),
    "sosfilt": lambda x: signal.sosfilt(SECTIONS * (1 + 0.1 * (np.arange(6) < 3) * x[0]), x),
    "sosfilt of a table": lambda x: signal.sosfilt(
        SECTIONS * (1 + 0.1 * (np.arange(6) < 3) * x[0]), x.reshape(6, 2), axis=0
    ),
    "sosfilt with a state": lambda x: both(signal.sosfilt(sections(x), x, zi=x[:4].reshape(2, 2) * x[0])),
    "sosfilt of a short signal": lambda x: both(signal.sosfilt(sections(x), x[:1], zi=x[:4].reshape(2, 2))),
    "sosfilt with complex coefficients": lambda x: signal.sosfilt(
        sections(x) * (1 + 0.2j * (np.arange(6) < 3)), x
    ),
    "sosfilt of a fixed filter, with its states": lambda x: both(
        signal.sosfilt(SECTIONS, x[2:], zi=x[:4].reshape(2, 2))
    ),
    "lfilter with a state, of coefficients": lambda x: both(
        signal.lfilter(x[:3], poles(x), x[5:], zi=x[:2] * x[1])
    ),
    "lfilter of less than its state": lambda x: both(
        signal.lfilter(x[:5], poles(x), x[5:7], zi=x[:4] * x[1])
    ),
    "lfilter without memory": lambda x: signal.lfilter([2.0 * x[0]], [x[1]], x),
    "sosfiltfilt": lambda x: signal.sosfiltfilt(SECTIONS, x, padlen=5),
    "upfirdn": lambda x: signal.upfirdn(x[:4], x, 3, 2),
    "resample": lambda x: np.append(signal.resample(x, 17), signal.resample(x, 7)),
    "resample_poly": lambda x: signal.resample_poly(x, 3, 2),
    "decimate": lambda x: signal.decimate(np.tile(x, 4), 2),
    "savgol_filter": lambda x: signal.savgol_filter(x, 5, 2, mode="nearest"),
    "hilbert": lambda x: signal.hilbert(x),
    "medfilt": lambda x: signal.medfilt(x, 3),
    "wiener": lambda x: signal.wiener(x, 3),
    "freqz": lambda x: signal.freqz(x[:3], poles(x), worN=8)[1],
    "welch": lambda x: signal.welch(np.append(x, x * x), nperseg=8)[1],
    "stft and back": lambda x: signal.istft(signal.stft(x, nperseg=4)[2] * (1 + 0.1j), nperseg=4)[1],
    "butter": lambda x: np.concatenate(signal.butter(3, 0.3 + 0.01 * x[0])),
    "window": lambda x: signal.get_window(("kaiser", 2.0 + 0.1 * x[0]), 9),
    "prominences": lambda x: signal.peak_prominences(x, signal.find_peaks(x)[0])[0],
    "czt": lambda x: signal.czt(x, 5),
}


SETS_SHAPES = not hasattr(
    signal, "freqz_sos"
)  # before 1.15 `sosfilt` with states assigns to `x.shape`, which is refused


@pytest.mark.parametrize("name", FILTERS)
def test_filters(name):
    if SETS_SHAPES and (
        name in ("sosfiltfilt", "decimate")
        or (name.startswith("sosfilt") and ("state" in name or "short" in name))
    ):
        pytest.skip("this SciPy assigns to x.shape")
    agrees(FILTERS[name], X, tolerance=1e-6)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolutions(mode):
    for f in (signal.convolve, signal.correlate, signal.fftconvolve, signal.oaconvolve):
        agrees(lambda x, f=f: f(x, x[:4], mode), X, nested=False)
    agrees(lambda x: signal.convolve(x, x[:2, :3], mode, method="direct"), TABLE)
    agrees(
        lambda x: signal.correlate(x * (1 + 1j), x[:2, :3] * (2 - 1j), mode, method="direct"),
        TABLE,
        nested=False,
    )


@pytest.mark.parametrize("boundary", ["fill", "wrap", "symm"])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolutions_of_tables(mode, boundary):
    for columns in (2, 3):
        agrees(lambda x, n=columns: signal.convolve2d(x, x[:3, :n], mode, boundary, 0.3), TABLE, nested=False)
        agrees(lambda x, n=columns: signal.correlate2d(x, x[:2, :n], mode, boundary), TABLE, nested=False)


def test_a_filter_in_single_precision():
    gradient = plaingrad.grad(lambda x: signal.sosfilt(SECTIONS.astype(np.float32), x).sum())(
        X.astype(np.float32)
    )
    exact = plaingrad.grad(lambda x: signal.sosfilt(SECTIONS, x).sum())(X)
    assert gradient.dtype == np.float32 and np.allclose(gradient, exact, atol=1e-4)


def test_a_filter_along_another_axis():
    agrees(lambda x: signal.lfilter(B, A, x, axis=0), TABLE)
    agrees(lambda x: signal.lfilter(B, A, x[::-1, ::2], axis=-1), TABLE, nested=False)


@pytest.mark.skipif(SETS_SHAPES, reason="this SciPy assigns to x.shape")
def test_what_a_filter_returns_is_scipys_to_the_last_bit():
    state = np.ones((2, 2))
    for f in (
        lambda x: signal.sosfilt(SECTIONS, x),
        lambda x: signal.sosfilt(SECTIONS, x, zi=state)[0],
        lambda x: signal.lfilter(B, A, x),
        lambda x: signal.lfilter(B, A, x, zi=X[:3])[0],
    ):
        weights = np.sin(1.0 + np.arange(12.0))
        value, _ = plaingrad.value_and_grad(lambda x, f=f: (f(x) * weights).sum())(X)
        assert value == (f(X) * weights).sum()


@pytest.mark.skipif(SETS_SHAPES, reason="this SciPy assigns to x.shape")
def test_filters_that_scipy_does_not_take_raise_what_it_raises():
    wrong = SECTIONS.copy()
    wrong[0, 3] = 2.0
    for sections in (wrong, SECTIONS[:, :5]):
        with pytest.raises(ValueError, match="sos"):
            plaingrad.grad(lambda x, sections=sections: signal.sosfilt(sections, x).sum())(X)
    with pytest.raises(ValueError):
        plaingrad.grad(lambda x: signal.sosfilt(SECTIONS, x, zi=np.ones((1, 2)))[0].sum())(X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolve2d_of_images_and_windows_of_every_type(dtype, mode):
    random = np.random.default_rng(2)
    a, v = random.normal(size=(12, 11)).astype(dtype), random.normal(size=(4, 3)).astype(dtype)
    if dtype is np.complex128:
        a, v = a + 1j * random.normal(size=a.shape), v + 1j * random.normal(size=v.shape)
    for function in (signal.convolve2d, signal.correlate2d):
        f = lambda a, v, g=function: np.sum(np.abs(g(a, v, mode)) ** 2)
        bars = plaingrad.grad(f, argnums=(0, 1))(a, v)
        for k, x_bar in enumerate(bars):
            assert x_bar.dtype == dtype
            exact = [a.astype(np.promote_types(dtype, float)), v.astype(np.promote_types(dtype, float))]
            x_dot = random.normal(size=exact[k].shape)
            moved = [[x + s * x_dot if n == k else x for n, x in enumerate(exact)] for s in (1e-6, -1e-6)]
            difference = (f(*moved[0]) - f(*moved[1])) / 2e-6
            assert np.sum(np.real(x_bar) * x_dot) == pytest.approx(difference, rel=1e-4 if dtype is np.float32 else 1e-7)
