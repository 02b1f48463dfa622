"""filterpy: Kalman filters that keep their state in attributes, g-h filters, Gaussians."""

import numpy as np
import pytest

pytest.importorskip("filterpy")
from filterpy.common import Q_discrete_white_noise  # noqa: E402
from filterpy.gh import GHFilter  # noqa: E402
from filterpy.kalman import KalmanFilter, predict  # noqa: E402
from filterpy.stats import gaussian, mul  # noqa: E402

F = np.array([[1.0, 1.0], [0.0, 1.0]])


def filtered(noise, observations):
    kalman = KalmanFilter(2, 1)
    kalman.x = np.array([[0.0], [1.0]])
    kalman.F, kalman.H = F, np.array([[1.0, 0.0]])
    kalman.P = kalman.P * 10.0
    kalman.R = kalman.R * 2.0
    kalman.Q = np.eye(2) * noise
    for z in observations:
        kalman.predict()
        kalman.update(z)
    return kalman.x[0, 0]


def test_a_kalman_filter_by_its_noise_and_observations(agrees):
    agrees(filtered, 0.1, [1.0, 2.1, 2.9])


def test_one_step_and_its_covariance(agrees):
    agrees(lambda q: predict(np.array([1.0, 2.0]), np.eye(2) * q, F=F)[1].sum(), 1.3)
    agrees(lambda q: Q_discrete_white_noise(2, q, 0.3).sum(), 0.4)


def test_a_gh_filter_and_gaussians(agrees):
    agrees(lambda g: GHFilter(0.0, 1.0, 1.0, g, 0.2).update(1.3)[0], 0.4)
    agrees(lambda m: gaussian(1.0, m, 0.2), 0.4)
    agrees(lambda m: mul(m, 0.3, 1.0, 0.2)[0], 0.4)


def test_a_likelihood_by_compiled_code(agrees):
    def likelihood(r):
        kalman = KalmanFilter(1, 1)
        kalman.F = kalman.H = np.eye(1)
        kalman.R = kalman.R * r
        kalman.predict()
        kalman.update(1.0)
        return float(kalman.log_likelihood)

    agrees(likelihood, 1.3)
