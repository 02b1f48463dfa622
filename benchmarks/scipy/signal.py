"""Filters, convolutions and spectra of long signals."""

import numpy as np
from scipy import signal

from benchmarks.ordinary.program import program

RANDOM = np.random.default_rng(7)
LONG = RANDOM.normal(size=100_000)
SHORT = RANDOM.normal(size=201) / 14.0
IMAGE = RANDOM.normal(size=(256, 256))
WINDOW = RANDOM.normal(size=(15, 15)) / 15.0
B, A = signal.butter(4, 0.2)
SECTIONS = signal.butter(8, 0.2, output="sos")


@program("convolve, 10^5 with 201", LONG, goal=4)
def convolve(x):
    return np.sum(signal.convolve(x, SHORT, mode="same", method="direct") ** 2)


@program("fftconvolve in both, 10^5 with 201", SHORT, goal=4)
def fftconvolve(h):
    return np.sum(signal.fftconvolve(LONG, h, mode="same") ** 2)


@program("fftconvolve, 256 x 256 with 15 x 15", IMAGE, goal=4)
def image(x):
    return np.sum(signal.fftconvolve(x, WINDOW, mode="same") ** 2)


@program("convolve2d, 256 x 256 with 15 x 15", WINDOW, goal=4)
def convolve2d(h):
    return np.sum(signal.convolve2d(IMAGE, h, mode="valid") ** 2)


@program("lfilter, 10^5", LONG, goal=4)
def lfilter(x):
    return np.sum(signal.lfilter(B, A, x) ** 2)


@program("lfilter in its coefficients", np.concatenate([B, A[1:]]), goal=6)
def lfilter_coefficients(c):
    return np.sum(signal.lfilter(c[:5], np.concatenate([np.ones(1), c[5:]]), LONG) ** 2)


@program("sosfilt, 10^5", LONG, goal=4)
def sosfilt(x):
    return np.sum(signal.sosfilt(SECTIONS, x) ** 2)


@program("filtfilt, 10^5", LONG, goal=4)
def filtfilt(x):
    return np.sum(signal.filtfilt(B, A, x) ** 2)


@program("welch, 10^5", LONG, goal=4)
def welch(x):
    return np.sum(np.log(signal.welch(x, nperseg=512)[1][1:-1]))


@program("stft, 10^5", LONG, goal=4)
def stft(x):
    return np.sum(np.abs(signal.stft(x, nperseg=512)[2]) ** 4)


@program("resample_poly, 10^5", LONG, goal=4)
def resample(x):
    return np.sum(signal.resample_poly(x, 3, 2) ** 2)


@program("savgol_filter, 10^5", LONG, goal=4)
def savgol(x):
    return np.sum(signal.savgol_filter(x, 21, 3) ** 2)
