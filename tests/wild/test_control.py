"""control: transfer functions and state space; its polynomials go through np.nditer, which has no rule."""

import warnings

import numpy as np
import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    ct = pytest.importorskip("control")


def test_a_state_space_system_at_a_frequency(agrees):
    agrees(lambda a: ct.ss([[a]], [[1.0]], [[1.0]], [[0.0]])(1.0).real, -2.0)
    agrees(lambda x: x * abs(ct.tf([1.0], [1.0, 2.0, 1.0])(1j)), 2.0)


def test_polynomials_with_active_coefficients_are_refused(refuses):
    refuses(lambda k: abs(ct.tf([k], [1.0, k, 1.0])(1j)), 2.0, called="control.", says="numpy.nditer")
    refuses(lambda k: ct.dcgain(ct.tf([k], [1.0, 2.0, 3.0])), 2.0, called="control.", says="numpy.nditer")


def test_what_control_catches_and_makes_another_error_of_is_still_a_refusal(refuses):
    response = np.array([1.0, 2.0]), np.array([-90.0, -100.0]), np.array([1.0, 2.0])
    system = ct.tf([1.0], [1.0, 2.0, 3.0])
    refuses(lambda k: ct.margin((k * response[0], *response[1:]))[0], 2.0, called="control.", says="parcur")
    refuses(lambda k: abs((system * k)(1j)), 2.0, called="control.", says="numpy.nditer")


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")  # control does, and NumPy 2.5 warns
def test_a_feedback_loop_that_control_finds_by_trying(agrees):
    plant = ct.ss([[-1.0]], [[1.0]], [[1.0]], [[0.0]])
    agrees(lambda k: abs(ct.feedback(plant, k)(1j)), 2.0)
    agrees(lambda k: abs(plant.feedback(ct.ss([[k]], [[1.0]], [[1.0]], [[0.0]]))(1j)), 2.0)
