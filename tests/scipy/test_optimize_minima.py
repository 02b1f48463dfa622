"""Minimisers have the derivative of the minimum: by closed forms, with bounds and constraints, in both modes, nested."""

import numpy as np
import plaingrad
import pytest

so = pytest.importorskip("scipy.optimize")
pytestmark = pytest.mark.filterwarnings("ignore")

A = 1.3
OPTIONS = {
    "Nelder-Mead": {}, "Powell": {"tol": 1e-9}, "CG": {}, "BFGS": {}, "L-BFGS-B": {}, "TNC": {}, "COBYLA": {"tol": 1e-6},
    "SLSQP": {}, "trust-constr": {}, "Newton-CG": {}, "trust-exact": {},
}  # fmt: skip
BOUNDED = ("Nelder-Mead", "L-BFGS-B", "TNC", "SLSQP", "trust-constr")  # Powell stops 2 % off here
CONSTRAINED = ("COBYLA", "SLSQP", "trust-constr")


def bowl(x, a):
    """Least at (a, a**2), where it is a**3."""
    return 0.5 * (x[0] - a) ** 2 + 0.5 * (x[1] - a * x[0]) ** 2 + a**3


def circle(x, a):
    return 0.5 * (x[0] - a) ** 2 + 0.5 * (x[1] - a * a) ** 2


def minimised(a, method, f=bowl, **options):
    if method in ("Newton-CG", "trust-exact"):
        options["jac"] = lambda x, a: np.array([x[0] - a - a * (x[1] - a * x[0]), x[1] - a * x[0]])
        options["hess"] = lambda x, a: np.array([[1 + a * a, -a], [-a, 1.0]])
    return so.minimize(f, [0.4, 0.3], args=(a,), method=method, **OPTIONS.get(method, {}), **options)


def both(f, at=A):
    reverse, forward = plaingrad.grad(f)(at), plaingrad.jvp(f, (at,), (1.0,))[1]
    assert reverse == pytest.approx(forward, rel=1e-9, abs=1e-12)
    return reverse


def second(f, at=A):
    slope = plaingrad.grad(f)
    found = plaingrad.grad(slope)(at)
    assert plaingrad.jvp(slope, (at,), (1.0,))[1] == pytest.approx(found, rel=1e-7, abs=1e-10)
    return found


@pytest.mark.parametrize("method", OPTIONS)
def test_every_method(method):
    assert both(lambda a: minimised(a, method).x[0]) == pytest.approx(1.0, rel=1e-7)
    assert both(lambda a: minimised(a, method).x[1]) == pytest.approx(2 * A, rel=1e-7)
    assert both(lambda a: minimised(a, method).fun) == pytest.approx(3 * A**2, rel=1e-3)  # at SciPy's x


@pytest.mark.parametrize("method", ["Nelder-Mead", "BFGS", "SLSQP"])
def test_second_derivatives(method):
    assert second(lambda a: minimised(a, method).x[1]) == pytest.approx(2.0, rel=1e-6)
    assert 2 * plaingrad.taylor(lambda a: minimised(a, method).x[1], A, 2)[2] == pytest.approx(2.0, rel=1e-6)


@pytest.mark.parametrize("method", BOUNDED)
def test_a_bound_that_holds_the_solution_moves_it(method):
    def f(a, bounds=None):
        return minimised(a, method, bounds=[(None, a / 2), (-9.0, 9.0)]).x

    assert both(lambda a: f(a)[0]) == pytest.approx(0.5)
    assert both(lambda a: f(a)[1]) == pytest.approx(A, rel=1e-6)
    far = so.Bounds([-9.0, -9.0], [9.0, 9.0])
    assert both(lambda a: minimised(a, method, bounds=far).x[1]) == pytest.approx(2 * A, rel=1e-6)


@pytest.mark.parametrize("method", CONSTRAINED)
def test_constraints(method):
    slope = 1 - (1 + 2 * A) / 2  # x = p - (sum(p) - 1) / 2 with p = (a, a**2)
    below = {"type": "ineq", "fun": lambda x, c: c - x[0] - x[1], "args": (1.0,)}
    assert both(lambda a: minimised(a, method, circle, constraints=below).x[0]) == pytest.approx(slope, rel=1e-5)
    line = so.LinearConstraint([[1.0, 1.0]], -np.inf, 1.0)
    assert both(lambda a: minimised(a, method, circle, constraints=[line]).x[0]) == pytest.approx(slope, rel=1e-5)

    def moved(a):  # the constraint moves, too: sum(x) = a
        curve = so.NonlinearConstraint(lambda x: x[0] + x[1] - a, -np.inf, 0.0)
        return minimised(a, method, circle, constraints=curve).x[0]

    assert both(moved) == pytest.approx(slope + 0.5, rel=1e-5)
    far = {"type": "ineq", "fun": lambda x: 50 - x[0] - x[1]}
    assert both(lambda a: minimised(a, method, circle, constraints=far).x[1]) == pytest.approx(2 * A, rel=1e-5)


def test_equations_among_constraints():
    equal = {"type": "eq", "fun": lambda x: x[0] + x[1] - 1.0}
    slope = 1 - (1 + 2 * A) / 2
    loose = {"SLSQP": {}, "trust-constr": {"gtol": 1e-4}}  # its differences are no better
    for method in loose:
        found = both(lambda a: minimised(a, method, circle, constraints=equal, options=loose[method]).x[0])
        assert found == pytest.approx(slope)
    assert second(lambda a: minimised(a, "SLSQP", circle, constraints=equal).x[0]) == pytest.approx(-1.0, rel=1e-6)
    # the value's derivative is that of f and of the multiplier: f = (a + a**2 - 1)**2 / 4
    value = both(lambda a: minimised(a, "SLSQP", circle, constraints=equal).fun)
    assert value == pytest.approx((A + A**2 - 1) * (1 + 2 * A) / 2, rel=1e-5)


def test_functions_of_one_number():
    def g(x, a):
        return (x - a**2) ** 2 + a

    for method in ("brent", "golden"):
        assert both(lambda a: so.minimize_scalar(g, args=(a,), method=method).x) == pytest.approx(2 * A, rel=1e-6)
    assert both(lambda a: so.minimize_scalar(g, args=(a,), bounds=(0, 9)).x) == pytest.approx(2 * A, rel=1e-6)
    assert both(lambda a: so.fminbound(g, 0, a / 2, args=(a,), xtol=1e-9)) == pytest.approx(0.5)
    assert both(lambda a: so.golden(g, args=(a,), full_output=True)[1]) == pytest.approx(1.0, rel=1e-5)
    assert second(lambda a: so.brent(g, args=(a,))) == pytest.approx(2.0, rel=1e-6)


def test_older_names():
    options = {"disp": 0}
    for name in ("fmin", "fmin_powell", "fmin_cg", "fmin_bfgs"):
        solve = getattr(so, name)
        assert both(lambda a: solve(bowl, [0.4, 0.3], args=(a,), **options)[1]) == pytest.approx(2 * A, rel=1e-6)
        full = both(lambda a: solve(bowl, [0.4, 0.3], args=(a,), full_output=True, **options)[1])
        assert full == pytest.approx(3 * A * A, rel=1e-3)
    found = both(lambda a: so.fmin_l_bfgs_b(bowl, [0.4, 0.3], args=(a,), approx_grad=True)[0][1])
    assert found == pytest.approx(2 * A, rel=1e-6)
    found = both(lambda a: so.fmin_tnc(bowl, [0.4, 0.3], args=(a,), approx_grad=True, disp=0)[0][1])
    assert found == pytest.approx(2 * A, rel=1e-6)
    slope = 1 - (1 + 2 * A) / 2
    below = [lambda x, a: 1.0 - x[0] - x[1]]
    found = both(lambda a: so.fmin_slsqp(circle, [0.4, 0.3], ieqcons=below, args=(a,), disp=0)[0])
    assert found == pytest.approx(slope, rel=1e-5)
    assert both(lambda a: so.fmin_cobyla(circle, [0.4, 0.3], below, args=(a,))[0]) == pytest.approx(slope, rel=1e-3)


def test_global_ones():
    box = [(-4.0, 4.0)] * 2
    assert both(lambda a: so.dual_annealing(bowl, box, (a,), maxiter=5, seed=1).x[1]) == pytest.approx(2 * A, rel=1e-6)
    found = both(lambda a: so.differential_evolution(bowl, box, (a,), maxiter=20, seed=1).x[1])
    assert found == pytest.approx(2 * A, rel=1e-6)
    options = {"args": (1.0,)}
    found = both(lambda a: so.basinhopping(lambda x, c: bowl(x, a * c), [0.4, 0.3], 2, minimizer_kwargs=options).x[1])
    assert found == pytest.approx(2 * A, rel=1e-6)
    assert both(lambda a: so.brute(bowl, box, (a,), Ns=8)[1]) == pytest.approx(2 * A, rel=1e-6)
    with pytest.raises(plaingrad.MissingRuleError, match="grid"):
        plaingrad.grad(lambda a: so.brute(bowl, box, (a,), Ns=8, finish=None)[1])(A)


def test_a_gradient_by_many_parameters():
    rng = np.random.default_rng(0)
    m, b = rng.normal(size=(9, 3)), rng.normal(size=9)

    def f(b):  # ridge: x = (m'm + I)^-1 m'b
        return np.sum(so.minimize(lambda x: np.sum((m @ x - b) ** 2) + np.sum(x * x), np.zeros(3)).x)

    np.testing.assert_allclose(plaingrad.grad(f)(b), m @ np.linalg.inv(m.T @ m + np.eye(3)).sum(0), rtol=1e-7)


def test_a_minimum_inside_of_an_objective():
    def inner(y):  # min over x of (x - y)**2 + x**2: x = y / 2
        return so.minimize(lambda x: (x[0] - y) ** 2 + x[0] ** 2, [0.1], method="BFGS").x[0]

    def outer(a):
        return so.minimize_scalar(lambda y: (inner(y) - a) ** 2).x  # y = 2 a

    assert both(outer) == pytest.approx(2.0, rel=1e-6)


def test_what_has_not_converged_or_is_degenerate_is_refused():
    with pytest.raises(plaingrad.MissingRuleError, match=r"`scipy.optimize.minimize` at .*not converged"):
        plaingrad.grad(lambda a: minimised(a, "Nelder-Mead", options={"maxiter": 3}).x[0])(A)
    with pytest.raises(plaingrad.MissingRuleError, match="singular"):  # a valley
        plaingrad.grad(lambda a: so.minimize(lambda x: (x[0] + x[1] - a) ** 2, [0.0, 0.0]).x[0])(A)
    with pytest.raises(plaingrad.MissingRuleError, match="does not hold"):  # the minimum happens to lie on the bound
        plaingrad.grad(lambda a: minimised(a, "L-BFGS-B", circle, bounds=[(-9, A), (-9, 9)]).x[0])(A)


def test_other_fields_refuse_where_they_are_used():
    with pytest.raises(plaingrad.MissingRuleError, match="`hess_inv` of the result"):
        plaingrad.grad(lambda a: minimised(a, "BFGS").hess_inv[0, 0])(A)
    assert plaingrad.grad(lambda a: a * minimised(a, "BFGS").nit)(A) == minimised(A, "BFGS").nit


def test_a_minimum_whose_second_derivative_vanishes_is_refused():
    """Newton steps only halve the distance there, and a matrix taken at a distance would give a wrong number."""

    def flat(a):
        return so.minimize(lambda z: (z[0] - a) ** 4, [0.5], tol=1e-12).x[0]

    def flat_in_one_direction(a):
        return so.minimize(lambda z: (z[0] - a) ** 4 + (z[1] - 2.0 * a) ** 2, [0.5, 0.5], tol=1e-12).x[1]

    for f in (flat, flat_in_one_direction):
        with pytest.raises(plaingrad.MissingRuleError, match="regular|singular"):
            plaingrad.grad(f)(1.0)
