"""Solutions of differential equations have derivatives: in data, parameters, times and events, by closed forms."""

import math

import numpy as np
import plaingrad
import pytest

si = pytest.importorskip("scipy.integrate")
pytestmark = pytest.mark.filterwarnings("ignore")

A = 1.3
TIGHT = {"rtol": 1e-9, "atol": 1e-11}
METHODS = ("RK45", "DOP853", "LSODA", "BDF", "Radau")
BY_VARIATION = ("LSODA", "BDF", "Radau")


def decay(t, y, a):
    """y = y0 / (1 + a y0 t)."""
    return -a * y * y


def check(f, first, second=None, tolerance=1e-6):
    assert plaingrad.grad(f)(A) == pytest.approx(first, rel=tolerance)
    assert plaingrad.jvp(f, (A,), (1.0,))[1] == pytest.approx(first, rel=tolerance)
    if second is not None:
        slope = plaingrad.grad(f)
        assert plaingrad.grad(slope)(A) == pytest.approx(second, rel=10 * tolerance)
        assert plaingrad.jvp(slope, (A,), (1.0,))[1] == pytest.approx(second, rel=10 * tolerance)


@pytest.mark.parametrize("method", METHODS)
def test_parameters_initial_values_and_times(method):
    def last(a, span=(0.0, 2.0), y0=1.0, **options):
        return si.solve_ivp(decay, span, [y0], method=method, args=(a,), **TIGHT, **options).y[0, -1]

    check(last, -2 / (1 + 2 * A) ** 2, 8 / (1 + 2 * A) ** 3)
    check(lambda a: last(1.0, y0=a), 1 / (1 + 2 * A) ** 2)
    check(lambda a: last(1.0, (0.0, a)), -1 / (1 + A) ** 2, 2 / (1 + A) ** 3)
    check(lambda a: last(1.0, (a, 2.0)), 1 / (3 - A) ** 2)
    check(lambda a: last(a, t_eval=[0.5, 1.0]), -1 / (1 + A) ** 2)
    check(lambda a: last(0.5, (2.0, 0.0), 0.25 * a), 0.25 / (1 - 0.25 * A) ** 2)  # backwards


@pytest.mark.parametrize("method", BY_VARIATION)
def test_dense_output_and_times_to_evaluate_at(method):
    def solved(a, **options):
        return si.solve_ivp(decay, (0.0, 2.0), [1.0], method=method, args=(a,), **TIGHT, **options)

    check(lambda a: solved(a, dense_output=True).sol(0.7)[0], -0.7 / (1 + 0.7 * A) ** 2)
    check(lambda a: solved(a, dense_output=True).sol(np.array([0.3, 0.7]))[0, 1], -0.7 / (1 + 0.7 * A) ** 2)
    check(lambda a: solved(1.0, t_eval=np.array([0.1, 0.5]) * a).y[0, 1], -0.5 / (1 + 0.5 * A) ** 2)


@pytest.mark.parametrize("method", ["RK45", *BY_VARIATION])
def test_the_time_of_an_event_has_a_derivative(method):
    def event(t, y, a):
        return y[0] - 0.4

    event.terminal = True

    def solved(a):
        return si.solve_ivp(decay, (0.0, 5.0), [1.0], method=method, args=(a,), events=event, **TIGHT)

    check(lambda a: solved(a).t[-1], -1.5 / A**2, 3 / A**3, tolerance=1e-5)  # a t = 1 / 0.4 - 1
    check(lambda a: solved(a).t_events[0][0], -1.5 / A**2, tolerance=1e-5)
    assert plaingrad.grad(lambda a: solved(a).y_events[0][0][0])(A) == pytest.approx(0.0, abs=1e-6)
    assert plaingrad.grad(lambda a: solved(a).y[0, -1])(A) == pytest.approx(0.0, abs=1e-6)


def test_an_event_that_alone_depends_on_the_inputs():
    def found(a):
        return si.solve_ivp(
            lambda t, y: -y, (0.0, 5.0), [1.0], method="LSODA", events=lambda t, y: y[0] - a / 4, **TIGHT
        ).t_events[0][0]

    check(found, -1 / A, 1 / A**2, tolerance=1e-5)


@pytest.mark.parametrize("method", BY_VARIATION)
def test_a_gradient_of_a_stiff_system(method):
    def reaction(t, y, k):  # Robertson's
        slow, fast, square = k[0] * y[0], k[2] * y[1] * y[2], k[1] * y[1] ** 2
        return np.array([-slow + fast, slow - fast - square, square])

    def last(k, i=2):
        return si.solve_ivp(
            reaction, (0.0, 40.0), [1.0, 0.0, 0.0], method=method, args=(k,), rtol=1e-9, atol=1e-13
        ).y[i, -1]

    k = np.array([0.04, 3e7, 1e4])
    found = plaingrad.grad(last)(k)
    steps = [
        (last(k * (1 + 1e-3 * d)) - last(k * (1 - 1e-3 * d))) / (2e-3 * k[i]) for i, d in enumerate(np.eye(3))
    ]
    np.testing.assert_allclose(found, steps, rtol=1e-4)


def test_a_matrix_exponential_in_both_modes():
    m = np.array([[-0.5, 2.0], [-2.0, -0.5]])
    y0 = np.array([1.0, 0.3])

    def last(m):
        return si.solve_ivp(lambda t, y: m @ y, (0.0, 1.0), y0, method="LSODA", **TIGHT).y[:, -1]

    linalg = pytest.importorskip("scipy.linalg")
    jacobian = plaingrad.jacobian(last)(m)
    for i in range(2):
        for j in range(2):
            e = np.zeros((2, 2))
            e[i, j] = 1.0
            np.testing.assert_allclose(jacobian[:, i, j], linalg.expm_frechet(m, e)[1] @ y0, atol=1e-7)


def test_odeint():
    def last(a, t=(0.0, 1.0, 2.0)):
        return si.odeint(lambda y, t, a: -a * y * y, [1.0], t, args=(a,), **TIGHT)[-1, 0]

    check(last, -2 / (1 + 2 * A) ** 2, 8 / (1 + 2 * A) ** 3)
    check(lambda a: last(1.0, np.array([0.0, 0.5, 1.0]) * a), -1 / (1 + A) ** 2)
    with_facts = lambda a: si.odeint(decay, [a], [0.0, 1.0], args=(1.0,), tfirst=True, full_output=True)[0][
        1, 0
    ]  # noqa: E731
    check(with_facts, 1 / (1 + A) ** 2, tolerance=1e-5)


@pytest.mark.parametrize("name", ["vode", "lsoda", "dopri5", "dop853"])
def test_ode(name):
    def last(a):
        solver = si.ode(lambda t, y: -a * y * y).set_integrator(name, **TIGHT).set_initial_value([1.0], 0.0)
        solver.integrate(0.5)
        return solver.integrate(a)[0]

    check(last, -2 * A / (1 + A * A) ** 2, tolerance=1e-5)


def test_boundary_value_problems():
    def solved(a):  # y'' = -a**2 y, y(0) = 0, y(1) = sin(a): y = sin(a x)
        return si.solve_bvp(
            lambda x, y: np.array([y[1], -a * a * y[0]]),
            lambda left, right: np.array([left[0], right[0] - np.sin(a)]),
            np.linspace(0, 1, 9),
            np.ones((2, 9)),
            tol=1e-8,
        )

    check(lambda a: solved(a).sol(0.3)[0], 0.3 * math.cos(0.3 * A), -0.09 * math.sin(0.3 * A), tolerance=1e-6)
    check(lambda a: solved(a).sol(0.3, 1)[0], math.cos(0.3 * A) - 0.3 * A * math.sin(0.3 * A), tolerance=1e-5)
    check(lambda a: solved(a).y[1, 0], 1.0, tolerance=1e-6)


def test_an_eigenvalue_of_a_boundary_value_problem():
    def eigenvalue(a):  # y'' = -p**2 a y: p = pi / sqrt(a)
        x = np.linspace(0, 1, 9)
        return si.solve_bvp(
            lambda x, y, p: np.array([y[1], -(p[0] ** 2) * a * y[0]]),
            lambda left, right, p: np.array([left[0], right[0], left[1] - p[0]]),
            x,
            np.array([np.sin(3 * x), 3 * np.cos(3 * x)]),
            p=[3 / math.sqrt(a)],
            tol=1e-9,
        ).p[0]

    check(eigenvalue, -math.pi / 2 * A**-1.5, tolerance=1e-6)


def test_what_is_refused():
    with pytest.raises(plaingrad.MissingRuleError, match=r"`scipy.integrate.solve_ivp` at .*complex"):
        plaingrad.grad(
            lambda a: si.solve_ivp(decay, (0, 1), [a + 1j], method="BDF", args=(1.0,)).y[0, -1].real
        )(A)
    with pytest.raises(plaingrad.MissingRuleError, match="complex"):
        plaingrad.grad(
            lambda a: (
                si.ode(lambda t, y: -a * y)
                .set_integrator("zvode")
                .set_initial_value([1.0], 0.0)
                .integrate(1.0)[0]
                .real
            )
        )(A)


@pytest.mark.parametrize("method", ["LSODA", "Radau", "BDF"])
@pytest.mark.parametrize("rtol", [1e-5, 1e-11])
def test_derivatives_are_as_exact_as_the_solution(method, rtol):
    def population(rate):
        def grows(t, y):
            return rate * y * (1 - y)

        return si.solve_ivp(grows, (0, 3), [0.1], method=method, rtol=rtol, atol=rtol / 100).y[0, -1]

    e = np.exp(6.0)
    exact = 3 * 0.1 * e * 0.9 / (1 + 0.1 * (e - 1)) ** 2
    assert abs(plaingrad.grad(population)(2.0) / exact - 1) < 200 * rtol


def test_a_right_hand_side_that_is_steep_beside_its_solution():
    def wave(w):  # Prothero and Robinson's problem: y = cos(w t), whatever the steepness
        def pulls(t, y):
            return -1e4 * (y - np.cos(w * t)) - w * np.sin(w * t)

        return si.solve_ivp(pulls, (0, 5), [1.0], method="LSODA", rtol=1e-8, atol=1e-10).y[0, -1]

    np.testing.assert_allclose(plaingrad.grad(wave)(2.0), -5 * np.sin(10.0), rtol=1e-8)


def test_a_right_hand_side_that_returns_the_same_array_each_time():
    def last(k):
        rates = np.zeros(1)

        def falls(t, y):
            rates[0] = -k * y[0]
            return rates

        return si.solve_ivp(falls, (0, 1), [1.0], method="LSODA", rtol=1e-9, atol=1e-12).y[0, -1]

    np.testing.assert_allclose(plaingrad.grad(last)(2.0), -np.exp(-2.0), rtol=1e-7)


@pytest.mark.parametrize("method", ["RK23", "RK45", "DOP853"])
def test_steps_that_cross_a_jump_at_a_constant_time(method):
    """y' = p until 0.83, then 0.3 p - y / 2: step lengths move with p, and must not count where the slope jumps."""

    def rate(t, y, p):
        return [p] if t < 0.83 else [0.3 * p - 0.5 * y[0]]

    def f(p):
        return si.solve_ivp(rate, (0, 2), [0.2], method=method, args=(p,), rtol=1e-6, atol=1e-8).y[0, -1]

    decay = np.exp(-0.5 * 1.17)
    assert plaingrad.grad(f)(0.7) == pytest.approx(0.83 * decay + 0.6 * (1 - decay), rel=1e-4)
    assert plaingrad.jvp(f, (0.7,), (1.0,))[1] == pytest.approx(0.83 * decay + 0.6 * (1 - decay), rel=1e-4)
