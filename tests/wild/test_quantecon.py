"""quantecon: economics in NumPy and Numba."""

import warnings

import numpy as np
import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("numba")
    qe = pytest.importorskip("quantecon")


def test_stationary_distributions(agrees):
    agrees(lambda a: qe.MarkovChain(np.array([[1 - a, a], [0.3, 0.7]])).stationary_distributions[0, 0], 0.4)


def test_state_space_and_equations_by_iteration(agrees):
    agrees(lambda a: qe.solve_discrete_lyapunov(np.array([[a]]), np.array([[1.0]]))[0, 0], 0.6)

    def cost(r):
        return qe.LQ(np.eye(1), np.eye(1) * r, np.eye(1) * 0.9, np.eye(1), beta=0.95).stationary_values()[0][0, 0]

    agrees(cost, 0.5, rtol=1e-4)  # iterated to a tolerance of 1e-8
