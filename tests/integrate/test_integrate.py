"""SciPy's solver of initial value problems, with states in any structure and Jacobians filled in."""

import numpy as np
import plaingrad
import pytest

pytest.importorskip("scipy.integrate")
integrate = pytest.importorskip("plaingrad.integrate")


def fall(t, y):
    return {"height": y["speed"], "speed": -9.81 * np.ones(2)}


START = {"height": np.zeros(2), "speed": np.array([1.0, 2.0])}


@pytest.mark.parametrize("method", ["RK45", "BDF", "LSODA"])
def test_states_keep_their_structure(method):
    def lands(t, y):
        return y["height"][0] + 1.0

    lands.terminal = True
    found = integrate.solve_ivp(fall, (0.0, 9.0), START, method=method, dense_output=True, events=lands, rtol=1e-8)
    t = (1 + np.sqrt(1 + 2 * 9.81)) / 9.81
    assert found.t[-1] == pytest.approx(t, rel=1e-5)
    assert found.y["height"].shape == (2, len(found.t))
    np.testing.assert_allclose(found.y["speed"][:, -1], START["speed"] - 9.81 * t, rtol=1e-5)
    np.testing.assert_allclose(found.sol(0.2)["speed"], START["speed"] - 0.2 * 9.81, rtol=1e-5)
    np.testing.assert_allclose(found.y_events[0]["height"][0], [-1.0], rtol=1e-5)


def test_the_jacobian_is_exact():
    seen = []

    def jumps(t, y):
        seen.append(t)
        return -50.0 * (y - np.cos(t))

    found = integrate.solve_ivp(jumps, (0.0, 2.0), [0.0], method="Radau", rtol=1e-8, atol=1e-10)
    exact = (2500 * np.cos(2.0) + 50 * np.sin(2.0)) / 2501
    assert found.y[0, -1] == pytest.approx(exact, rel=1e-6)


def test_what_is_found_has_a_derivative():
    def last(a):
        found = integrate.solve_ivp(lambda t, y: {"y": -a * y["y"]}, (0.0, 1.0), {"y": 1.0}, method="LSODA", rtol=1e-9, atol=1e-10)
        return found.y["y"][-1]

    assert plaingrad.grad(last)(1.3) == pytest.approx(-np.exp(-1.3), rel=1e-6)
