"""Right-hand sides that switch at times that move with the inputs, against closed forms, by every kind of solver."""

import numpy as np
import plaingrad
import pytest

si = pytest.importorskip("scipy.integrate")
pytestmark = pytest.mark.filterwarnings("ignore")
FINE = {"rtol": 1e-9, "atol": 1e-10}


def by_ivp(method):
    return lambda f, y0, end: si.solve_ivp(f, (0.0, end), [y0], method=method, **FINE).y[0, -1]


def by_odeint(f, y0, end):
    return si.odeint(lambda y, t: f(t, y), [y0], [0.0, end], **FINE)[-1, 0]


def by_ode(f, y0, end):
    return si.ode(f).set_integrator("dopri5", rtol=1e-9, atol=1e-10).set_initial_value([y0], 0.0).integrate(end)[0]


SOLVERS = {"RK45": by_ivp("RK45"), "Radau": by_ivp("Radau"), "odeint": by_odeint, "ode": by_ode}


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_slope_that_falls_when_the_state_is_reached(solver):
    """y' is 1 below p, then 0.3: y(2) = p + 0.3 (2 - p + y0), on which LSODA of `solve_ivp` does not end."""
    solve = SOLVERS[solver]

    def f(p, y0):
        return solve(lambda t, y: [0.3 if y[0] > p else 1.0], y0, 2.0)

    assert plaingrad.grad(f, (0, 1))(0.83, 0.0) == pytest.approx((0.7, 0.3), rel=1e-6)
    assert plaingrad.jvp(f, (0.83, 0.0), (1.0, 2.0))[1] == pytest.approx(1.3, rel=1e-6)


RATES = {  # the rate until p, and after it; y' = rate * y
    "if": lambda t, y, p: [(1.0 if t < p else -0.5) * y[0]],
    "any": lambda t, y, p: -0.5 * y if np.any(np.array([t]) >= p) else y,
    "where": lambda t, y, p: np.where(t < p, 1.0, -0.5) * y,
    "heaviside": lambda t, y, p: (1.0 - 1.5 * np.heaviside(t - p, 1.0)) * y,
}


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("solver", ["RK45", "odeint"])
def test_a_rate_that_changes_at_a_time(solver, rate):
    """y(2) = exp(p - 0.5 (2 - p)), whose derivative is 1.5 times itself; the second is refused."""
    f = lambda p: SOLVERS[solver](lambda t, y: RATES[rate](t, y, p), 1.0, 2.0)
    exact = np.exp(0.8 - 0.6)
    assert plaingrad.grad(f)(0.8) == pytest.approx(1.5 * exact, rel=1e-6)
    if rate == "if":
        with pytest.raises(plaingrad.MissingRuleError, match="only first derivatives"):
            plaingrad.grad(plaingrad.grad(f))(0.8)


def test_a_start_that_moves_has_second_derivatives():
    """y(2) = p exp((p^4 - 4) / 2)."""
    f = lambda p: si.solve_ivp(lambda t, y: -y * t, (p * p, 2.0), [p], method="LSODA", **FINE).y[0, -1]
    exact = lambda p: np.exp((p**4 - 4) / 2) * (10 * p**3 + 4 * p**7)  # f'': u' = 2 p^3, f = p exp(u)
    assert plaingrad.grad(plaingrad.grad(f))(0.8) == pytest.approx(exact(0.8), rel=1e-5)


def test_a_ball_that_leaves_its_track_twice_and_is_asked_at_times():
    """y' = 1, but 3 between the times p and p^2 + 1: y = t + 2 (t - p), then t + 2 (p^2 + 1 - p)."""

    def f(p):
        rate = lambda t, y: [3.0 if p < t < p * p + 1 else 1.0]
        found = si.solve_ivp(rate, (0, 3), [0.0], t_eval=[0.5, 1.0, 3.0], dense_output=True, **FINE)
        return np.concatenate([found.y[0], found.sol(np.array([1.0, 2.0]))[0]])

    p = 0.8
    slopes = [0.0, -2.0, 4 * p - 2, -2.0, 4 * p - 2]
    np.testing.assert_allclose(plaingrad.jacobian(f)(p), slopes, atol=1e-6)


def test_the_time_of_an_event_after_a_switch():
    """y reaches 2 at p + (2 - p) / 0.5."""

    def f(p):
        def reached(t, y):
            return y[0] - 2.0

        reached.terminal = True
        rate = lambda t, y: [0.5 if y[0] > p else 1.0]
        return si.solve_ivp(rate, (0, 9), [0.0], events=reached, **FINE).t_events[0][0]

    assert plaingrad.grad(f)(0.8) == pytest.approx(-1.0, rel=1e-6)


def test_backwards_in_time():
    """y(0) = 1 - 2 (2 - p) - p."""
    f = lambda p: si.solve_ivp(lambda t, y: [2.0 if t > p else 1.0], (2.0, 0.0), [1.0], method="LSODA", **FINE).y[0, -1]
    assert plaingrad.grad(f)(0.8) == pytest.approx(1.0, rel=1e-6)


def test_a_bend_is_no_jump_and_is_exact():
    """y' = max(y - p, 0) + 1 from 0 to 2: y(2) = p - 1 + exp(2 - p)."""
    for method in ("RK45", "BDF"):
        f = lambda p: si.solve_ivp(lambda t, y: [max(y[0] - p, 0.0) + 1], (0, 2), [0.0], method=method, **FINE).y[0, -1]  # noqa: B023
        assert plaingrad.grad(f)(0.8) == pytest.approx(1 - np.exp(1.2), rel=1e-6)


def test_a_switch_at_a_constant_time_stays():
    for method in ("RK45", "LSODA"):
        f = lambda p: si.solve_ivp(lambda t, y: [p if t > 0.7 else p * p], (0, 2), [0.0], method=method, **FINE).y[0, -1]  # noqa: B023
        assert plaingrad.grad(f)(0.8) == pytest.approx(0.7 * 1.6 + 1.3, rel=1e-5)


def test_what_is_not_known_is_refused():
    table = pytest.importorskip("scipy.interpolate").interp1d

    def f(p):
        rate = table([0.0, p, 3.0], [1.0, 2.0, 3.0], kind="previous")
        return si.solve_ivp(lambda t, y: [rate(t)], (0, 2), [0.0], **FINE).y[0, -1]

    with pytest.raises(plaingrad.MissingRuleError, match="jumps at t = 0.8, and whether that moves"):
        plaingrad.grad(f)(0.8)
