"""Transforms."""

import numpy as np
from scipy import fft

from benchmarks.ordinary.program import program

RANDOM = np.random.default_rng(9)
SIGNAL = RANDOM.normal(size=2**20)
IMAGE = RANDOM.normal(size=(512, 512))


@program("rfft, 2^20", SIGNAL, goal=4)
def rfft(x):
    return np.sum(np.abs(fft.rfft(x)) ** 2)


@program("fft2, 512 x 512", IMAGE, goal=4)
def fft2(x):
    return np.sum(np.abs(fft.fft2(x)) ** 2)


@program("fft and ifft with a filter, 2^20", SIGNAL, goal=4)
def filtered(x):
    return np.sum(fft.ifft(fft.fft(x) * np.exp(-np.abs(SIGNAL))).real ** 3)


@program("dctn, 512 x 512", IMAGE, goal=4)
def dctn(x):
    return np.sum(fft.dctn(x, norm="ortho") ** 4)
