"""SciPy's solvers with derivatives filled in take and return structures, and hand everything else on."""

import dataclasses

import numpy as np
import plaingrad
import pytest

so = pytest.importorskip("scipy.optimize")
optimize = pytest.importorskip("plaingrad.optimize")
pytestmark = pytest.mark.filterwarnings("ignore")


@dataclasses.dataclass(frozen=True)
class Model:
    a: float
    b: np.ndarray
    name: str = "model"


def distance(p):
    return (p.a - 1.0) ** 2 + np.sum((p.b - p.a * np.array([1.0, 2.0])) ** 2)


START = Model(0.0, np.zeros(2))
METHODS = (
    None, "Nelder-Mead", "CG", "BFGS", "Newton-CG", "L-BFGS-B", "TNC", "COBYLA", "SLSQP", "trust-constr", "dogleg",
    "trust-ncg", "trust-exact", "trust-krylov",
)  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gets_the_derivatives_that_it_takes(method):
    found = optimize.minimize(distance, START, method=method, tol=1e-8)
    assert type(found.x) is Model
    assert found.x.name == "model"
    assert type(found.x.a) is float
    np.testing.assert_allclose([found.x.a, *found.x.b], [1.0, 1.0, 2.0], atol=1e-3)


def test_exact_gradients_need_fewer_evaluations():
    assert optimize.minimize(distance, START).nfev < so.minimize(lambda x: distance(Model(x[0], x[1:])), np.zeros(3)).nfev


def test_what_scipy_takes_stays_as_it_is():
    found = optimize.minimize(lambda x, c: np.sum((x - c) ** 2), [1.0, 2.0], args=(3.0,), bounds=[(None, 2.5), (0, 9)])
    np.testing.assert_allclose(found.x, [2.5, 3.0])
    plain = optimize.minimize(lambda x: np.sum(x**2), [1.0, 2.0], jac=lambda x: 2 * x)
    np.testing.assert_allclose(plain.x, [0.0, 0.0], atol=1e-8)


@pytest.mark.parametrize("method", ["SLSQP", "trust-constr"])
def test_constraints_get_structures_and_jacobians(method):
    below = {"type": "ineq", "fun": lambda p: 0.5 - p.a}
    assert optimize.minimize(distance, START, method=method, constraints=below).x.a == pytest.approx(0.5, abs=1e-5)
    disc = so.NonlinearConstraint(lambda p: p.a**2, -np.inf, 0.25)
    assert optimize.minimize(distance, START, method=method, constraints=[disc]).x.a == pytest.approx(0.5, abs=1e-3)


def test_callbacks_get_structures():
    seen = []
    optimize.minimize(distance, START, callback=lambda p: seen.append(p))
    assert seen[-1].a == pytest.approx(1.0, abs=1e-4)

    def by_name(intermediate_result):
        seen.append(intermediate_result.x)

    optimize.minimize(distance, START, callback=by_name, method="BFGS")
    assert type(seen[-1]) is Model or isinstance(seen[-1], np.ndarray)  # older SciPy passes x


def test_roots_and_fits():
    found = optimize.root(lambda p: {"a": p["a"] ** 2 - 4, "b": [p["b"][0] - p["a"]]}, {"a": 1.0, "b": [0.0]}).x
    assert found == {"a": pytest.approx(2.0), "b": [pytest.approx(2.0)]}
    fit = optimize.least_squares(lambda p, c: np.append(p.b - c, p.a), Model(0.3, np.ones(2)), args=(2.0,), bounds=(-9, 1.5))
    np.testing.assert_allclose(fit.x.b, [1.5, 1.5])
    t = np.linspace(0.0, 1.0, 9)
    popt, pcov = optimize.curve_fit(lambda t, p: p.a + p.b[1] * t + p.b[0] * t**2, t, 1 + 2 * t, START)
    np.testing.assert_allclose([popt.a, *popt.b], [1.0, 0.0, 2.0], atol=1e-9)
    assert pcov.shape == (3, 3)
    np.testing.assert_allclose(optimize.curve_fit(lambda t, a, b: a + b * t, t, 1 + 2 * t)[0], [1.0, 2.0])


def test_what_is_found_has_a_derivative():
    def f(a):
        return optimize.minimize(lambda p: (p["x"] - a * a) ** 2 + a**3, {"x": 0.0})

    assert plaingrad.grad(lambda a: f(a).x["x"])(1.3) == pytest.approx(2.6)
    assert plaingrad.grad(lambda a: f(a).fun)(1.3) == pytest.approx(3 * 1.69, rel=1e-6)


def test_bad_structures_are_refused():
    with pytest.raises(plaingrad.ArgumentError, match="complex"):
        optimize.minimize(lambda p: 0.0, {"z": 1j})
    with pytest.raises(plaingrad.ArgumentError, match="without real numbers"):
        optimize.minimize(lambda p: 0.0, {"n": "text"})


TARGET = np.array([[1.0, 2.0, 0.5], [3.0, -4.0, 0.1]])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [float, int])
def test_an_array_with_two_axes_is_a_structure(method, dtype):
    if method == "dogleg" or dtype is int and method is not None:
        return
    seen = []
    found = optimize.minimize(
        lambda x: ((x - TARGET) ** 2).sum(), np.zeros((2, 3), dtype), method=method, tol=1e-8, callback=lambda xk, *_: seen.append(xk)
    )
    np.testing.assert_allclose(found.x, TARGET, atol=0.1 if method in ("COBYLA", "Nelder-Mead") else 2e-3)
    assert all(np.shape(x) == (2, 3) for x in seen)


def test_roots_fits_and_motions_of_arrays_with_two_axes():
    for method in ("hybr", "lm", "krylov"):
        found = optimize.root(lambda x: x**3 - TARGET**3, np.ones((2, 3)) + TARGET, method=method)
        np.testing.assert_allclose(found.x, TARGET, atol=1e-4)
    fit = optimize.least_squares(lambda x: x - TARGET, np.zeros((2, 3)))
    np.testing.assert_allclose(fit.x, TARGET, atol=1e-8)
    integrate = pytest.importorskip("plaingrad.integrate")
    for method in ("RK45", "BDF"):
        found = integrate.solve_ivp(lambda t, y: -y, (0.0, 1.0), TARGET, method=method, t_eval=[0.5, 1.0], rtol=1e-8, atol=1e-10)
        assert found.y.shape == (2, 3, 2)
        np.testing.assert_allclose(found.y[..., 1], TARGET * np.exp(-1.0), rtol=1e-5)


def test_what_is_found_from_an_array_with_two_axes_has_a_derivative():
    def found(a):
        return optimize.minimize(lambda x: ((x - a * TARGET) ** 2).sum(), np.zeros((2, 3))).x[1, 0]

    assert plaingrad.grad(found)(2.0) == pytest.approx(3.0, abs=1e-6)
