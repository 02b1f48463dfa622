"""emcee: autocorrelation of chains by FFT."""

import numpy as np
import pytest

emcee = pytest.importorskip("emcee")


def test_autocorrelation(agrees):
    agrees(lambda v: emcee.autocorr.function_1d(v)[1], np.array([1.0, 2.0, 3.5, 2.2]))


def test_the_time_of_a_chain(agrees):
    chain = np.random.default_rng(0).standard_normal(20)
    agrees(lambda v: emcee.autocorr.integrated_time(v.reshape(-1, 1, 1), tol=0)[0], chain)
