"""control: transfer functions, whose polynomials lie in arrays of objects that np.nditer goes through, and state space."""

import warnings

import numpy as np
import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    ct = pytest.importorskip("control")


def test_a_state_space_system_at_a_frequency(agrees):
    agrees(lambda a: ct.ss([[a]], [[1.0]], [[1.0]], [[0.0]])(1.0).real, -2.0)
    agrees(lambda x: x * abs(ct.tf([1.0], [1.0, 2.0, 1.0])(1j)), 2.0)


def test_transfer_functions_with_differentiated_coefficients(agrees):
    agrees(lambda k: abs(ct.tf([k], [1.0, k * k, 1.0])(1j)), 2.0)
    agrees(lambda k: abs(ct.tf([k], [1.0, 0.5, k])(0.3j)), 2.0)
    agrees(lambda k: ct.dcgain(ct.tf([k], [1.0, 2.0, 3.0])), 2.0)
    system = ct.tf([1.0], [1.0, 2.0, 3.0])
    agrees(lambda k: abs(ct.feedback(system * k, system)(0.5j)), 2.0)


def test_margins_of_a_measured_response(agrees):
    gain, phase, frequency = np.array([4.0, 2.0, 0.5, 0.2]), np.array([-90.0, -120.0, -170.0, -200.0]), np.array([1.0, 2.0, 3.0, 4.0])
    agrees(lambda k: ct.margin((k * gain, phase, frequency))[0], 1.3)
    agrees(lambda k: ct.margin((k * gain, phase, frequency))[1], 1.3)
    agrees(lambda k: ct.margin((k * gain, phase, frequency))[3], 1.3)


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")  # control does, and NumPy 2.5 warns
def test_a_feedback_loop_that_control_finds_by_trying(agrees):
    plant = ct.ss([[-1.0]], [[1.0]], [[1.0]], [[0.0]])
    agrees(lambda k: abs(ct.feedback(plant, k)(1j)), 2.0)
    agrees(lambda k: abs(plant.feedback(ct.ss([[k]], [[1.0]], [[1.0]], [[0.0]]))(1j)), 2.0)
