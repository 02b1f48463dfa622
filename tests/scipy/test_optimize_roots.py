"""Root finders have the derivative of the root, in every mode and order, and are not differentiated themselves."""

import functools
import sys

import itertools

import numpy as np
import plaingrad
import pytest

so = pytest.importorskip("scipy.optimize")
sparse = pytest.importorskip("scipy.sparse")
spla = pytest.importorskip("scipy.sparse.linalg")

BRACKETING = ("brentq", "brenth", "ridder", "bisect", "toms748")
SYSTEMS = ("hybr", "lm", "broyden1", "anderson", "krylov", "df-sane")
A = 2.0
FIRST = A ** (-2 / 3) / 3  # of the cube root
SECOND = -2 / 9 * A ** (-5 / 3)


def check(f, first, second, tolerance=1e-8):
    """Both modes, each in the other, and Taylor coefficients."""
    assert plaingrad.grad(f)(A) == pytest.approx(first, rel=tolerance)
    assert plaingrad.jvp(f, (A,), (1.0,))[1] == pytest.approx(first, rel=tolerance)
    slope = plaingrad.grad(f)
    for found in (
        plaingrad.grad(slope)(A),
        plaingrad.jvp(slope, (A,), (1.0,))[1],
        plaingrad.grad(plaingrad.derivative(f))(A),
        2 * plaingrad.taylor(f, A, 2)[2],
    ):
        assert found == pytest.approx(second, rel=100 * tolerance)


class Cube:
    def __init__(self, a):
        self.a = a

    def __call__(self, x):
        return x**3 - self.a

    def value(self, x):
        return x**3 - self.a


@pytest.mark.parametrize("name", BRACKETING)
def test_the_cube_root_by_a_bracket(name):
    solve = getattr(so, name)
    check(lambda a: solve(lambda x: x**3 - a, 0.1, 5.0, xtol=1e-13), FIRST, SECOND)
    check(lambda a: solve(lambda x, a: x**3 - a, 0.1, 5.0, (a,), xtol=1e-13, full_output=True)[1].root, FIRST, SECOND)


def test_what_the_function_gets_its_parameter_from_does_not_matter():
    check(lambda a: so.brentq(Cube(a), 0.1, 5.0, xtol=1e-13), FIRST, SECOND)
    check(lambda a: so.brentq(Cube(a).value, 0.1, 5.0, xtol=1e-13), FIRST, SECOND)
    check(lambda a: so.brentq(lambda x, p: x**3 - p["a"][0], 0.1, 5.0, ({"a": [a]},), xtol=1e-13), FIRST, SECOND)


def test_a_cache_that_the_solver_has_filled_hides_nothing():
    check(lambda a: so.brentq(functools.lru_cache(lambda x: x**3 - a), 0.1, 5.0, xtol=1e-13), FIRST, SECOND)


def test_an_iteration_that_was_cut_short_is_refused():
    with pytest.raises(plaingrad.MissingRuleError, match="not converged"):
        plaingrad.grad(lambda a: so.newton(lambda x: np.cos(x) - a * x, 1.0, maxiter=2, disp=False))(1.3)


def test_newton_of_one_number_and_of_many():
    check(lambda a: so.newton(lambda x: x**3 - a, 1.0), FIRST, SECOND)
    check(lambda a: so.newton(lambda x: x**3 - a, a, lambda x: 3 * x**2), FIRST, SECOND)
    check(lambda a: so.newton(lambda x: x**3 - np.array([a, a]), np.array([1.0, 1.2]))[1], FIRST, SECOND)


def test_a_starting_point_that_is_the_root_has_no_part_in_it():
    def f(a):
        return so.newton(lambda x: x - 8.0, a * 4.0)

    assert f(2.0) == 8.0
    assert plaingrad.grad(f)(2.0) == 0.0


def test_root_scalar():
    check(lambda a: so.root_scalar(lambda x: x**3 - a, bracket=(0.1, 4.0), xtol=1e-13).root, FIRST, SECOND)
    check(lambda a: so.root_scalar(lambda x: (x**3 - a, 3 * x * x), fprime=True, x0=1.0).root, FIRST, SECOND)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", SYSTEMS)
def test_systems_of_equations(method):
    def f(a):  # x0 = a^(1/3), x1 = a^(5/3)
        return so.root(
            lambda x: np.array([x[0] ** 3 - a, x[1] * x[0] - a * a]) / 10, [1.1, 3.0], method=method, tol=1e-10
        ).x[1]

    check(f, 5 / 3 * A ** (2 / 3), 10 / 9 * A ** (-1 / 3), 1e-5)


def test_fsolve_and_a_gradient_by_many_parameters():
    def f(b):
        return np.sum(so.fsolve(lambda x: x + 0.1 * np.tanh(x @ m) - b, np.zeros(4), xtol=1e-13) ** 2)

    m = np.random.default_rng(0).normal(size=(4, 4))
    b = np.array([0.3, -1.0, 2.0, 0.5])
    x = so.fsolve(lambda x: x + 0.1 * np.tanh(x @ m) - b, np.zeros(4), xtol=1e-13)
    slopes = np.eye(4) + 0.1 * (1 - np.tanh(x @ m) ** 2)[:, None] * m.T
    np.testing.assert_allclose(plaingrad.grad(f)(b), np.linalg.solve(slopes.T, 2 * x), rtol=1e-9)
    hessian = plaingrad.hessian(f)(b)
    steps = [(plaingrad.grad(f)(b + h) - plaingrad.grad(f)(b - h)) / 2e-4 for h in 1e-4 * np.eye(4)]
    np.testing.assert_allclose(hessian, steps, atol=1e-6)


def test_fixed_points_and_large_systems():
    def slope(a):  # x = cos(a x)
        x = so.fixed_point(lambda x: np.cos(a * x), 0.5, xtol=1e-13)
        return -x * np.sin(a * x) / (1 + a * np.sin(a * x))

    found = plaingrad.grad(lambda a: so.fixed_point(lambda x: np.cos(a * x), 0.5, xtol=1e-13))(0.8)
    assert found == pytest.approx(slope(0.8), rel=1e-8)
    assert plaingrad.grad(
        lambda a: so.fixed_point(lambda x: np.cos(a * x), np.array([0.5, 0.4]), xtol=1e-13).sum()
    )(0.8) == pytest.approx(2 * slope(0.8), rel=1e-8)
    check(lambda a: so.newton_krylov(lambda x: x**3 - a, [1.0, 1.1], f_tol=1e-12)[0], FIRST, SECOND, 1e-6)


def test_solvers_inside_of_solvers():
    def f(a):  # y = sqrt(a), from an inner cube root of a y**2 = y**3 ... and an outer equation
        def inner(b):
            return so.brentq(lambda x: x**3 - b, 0.1, 9.0, xtol=1e-13)

        return so.brentq(lambda y: inner(y**3) ** 2 - a, 0.2, 5.0, xtol=1e-13)

    check(f, 0.5 * A**-0.5, -0.25 * A**-1.5, 1e-7)


def test_the_solver_sees_plain_numbers_and_the_function_runs_once_more():
    seen, calls = [], itertools.count()

    def f(a):
        def equation(x):
            seen.append(type(x))
            next(calls)
            return x**3 - a

        return so.brentq(equation, 0.1, 5.0)

    f(A)
    plain, seen[:] = len(seen), []
    plaingrad.jvp(f, (A,), (1.0,))
    assert seen == [float] * plain  # what is kept is what a plain call keeps
    assert 2 * plain < next(calls) <= 2 * plain + 5


def test_bad_input_raises_what_scipy_raises():
    with pytest.raises(ValueError, match="different signs"):
        plaingrad.grad(lambda a: so.brentq(lambda x: x**2 + a, 0.0, 1.0))(A)
    with pytest.raises(RuntimeError, match="converge"):
        plaingrad.grad(lambda a: so.newton(lambda x: x**2 + a, 0.5, maxiter=5))(A)


def test_what_is_no_root_is_refused():
    with pytest.raises(plaingrad.MissingRuleError, match=r"`scipy.optimize.brentq` at .*test_optimize_roots.py"):
        plaingrad.grad(lambda a: so.brentq(lambda x: 1 / (x - a), 0.1, 5.3))(A)  # a pole
    with pytest.raises(plaingrad.MissingRuleError, match="double"):
        plaingrad.grad(lambda a: so.newton(lambda x: (x - a) ** 2, a, lambda x: 2 * (x - a) + 1e-9))(A)
    with pytest.raises(plaingrad.MissingRuleError, match="not converged"):
        plaingrad.grad(lambda a: so.root(lambda x: x**3 - a, 30.0, options={"maxfev": 3}).x[0])(A)


def test_where_nothing_depends_on_the_inputs_nothing_is_refused():
    assert plaingrad.grad(lambda a: a * so.brentq(lambda x: 1 / (x - 2.5), 0.1, 5.3))(A) == pytest.approx(2.5)


def test_other_fields_refuse_where_they_are_used():
    def f(a):
        return so.root(lambda x: x**3 - a, 1.0).fun[0]

    with pytest.raises(plaingrad.MissingRuleError, match="`fun` of the result"):
        plaingrad.grad(f)(A)
    assert np.isnan(plaingrad.jvp(f, (A,), (1.0,))[1])


def test_caches_that_the_solver_has_filled():
    """Of the function, of one that it calls, of a method, and of one that calls itself."""

    class Model:
        def __init__(self, a):
            self.a = a

        @functools.lru_cache  # noqa: B019
        def slope(self, x):
            return x * x - self.a

    def by_method(a):
        model = Model(a)
        return so.brentq(lambda x: model.slope(x), 0.0, 5.0, xtol=1e-14)

    def by_function(a):
        @functools.lru_cache
        def square(x):
            return x * x / a

        return so.brentq(functools.lru_cache(lambda x: square(x) - 1.0), 0.0, 5.0, xtol=1e-14)

    def by_recursion(a):
        @functools.lru_cache
        def power(n, x):
            return a * x if n == 0 else power(n - 1, x) * 0.5 + (power(n - 2, x) * 0.5 if n > 1 else a * x * 0.5)

        return so.brentq(lambda x: power(60, x) - 2.0, 0.0, 5.0, xtol=1e-14)

    for f, first, second in (
        (by_method, lambda a: 0.5 / a**0.5, lambda a: -0.25 / a**1.5),
        (by_function, lambda a: 0.5 / a**0.5, lambda a: -0.25 / a**1.5),
        (by_recursion, lambda a: -2.0 / a**2, lambda a: 4.0 / a**3),
    ):
        assert plaingrad.grad(f)(1.3) == pytest.approx(first(1.3), rel=1e-9)
        assert plaingrad.jvp(f, (1.3,), (1.0,))[1] == pytest.approx(first(1.3), rel=1e-9)
        assert plaingrad.grad(plaingrad.grad(f))(1.3) == pytest.approx(second(1.3), rel=1e-7)


@pytest.fixture
def few_are_many(monkeypatch):
    """No matrix is made for more than a hundred unknowns."""
    plaingrad.grad(lambda x: so.brentq(lambda t: t - x, 0.0, 9.0))(1.0)  # the rules are there
    monkeypatch.setattr(sys.modules["plaingrad.rules.scipy.optimize.large_roots"], "LARGEST", 100)


@pytest.mark.parametrize("method", ["newton_krylov", "anderson", "root", "fixed_point"])
def test_the_root_of_more_equations_than_a_matrix_is_made_for(method, few_are_many):
    n = 4500 if method == "anderson" else 300
    c, w = np.linspace(0.5, 1.5, n), np.cos(np.arange(n))

    def equations(x, p):
        return x + 0.3 * np.sin(np.roll(x, 1)) * p[0] - p[1] * c

    def f(p):
        if method == "root":
            return so.root(lambda x: equations(x, p), np.ones(n), method="krylov", options={"fatol": 1e-11}).x @ w
        if method == "fixed_point":
            return so.fixed_point(lambda x: x - equations(x, p), np.ones(n), xtol=1e-12, method="iteration") @ w
        return getattr(so, method)(lambda x: equations(x, p), np.ones(n), f_tol=1e-11) @ w

    p = np.array([0.7, 1.2])
    x = so.newton_krylov(lambda x: equations(x, p), np.ones(n), f_tol=1e-12)
    beside = sparse.csr_array((0.3 * p[0] * np.cos(np.roll(x, 1)), (np.arange(n), (np.arange(n) - 1) % n)), (n, n))
    multipliers = spla.spsolve((sparse.csr_array(sparse.eye(n)) + beside).T.tocsc(), w)
    exact = np.array([-multipliers @ (0.3 * np.sin(np.roll(x, 1))), multipliers @ c])
    slope = plaingrad.grad(f)
    np.testing.assert_allclose(slope(p), exact, rtol=1e-9)
    assert plaingrad.jvp(f, (p,), (p,))[1] == pytest.approx(exact @ p, rel=1e-9)
    by_steps = (slope(p * (1 + 1e-5)) - slope(p * (1 - 1e-5))) / 2e-5
    np.testing.assert_allclose(plaingrad.jvp(slope, (p,), (p,))[1], by_steps, rtol=1e-6)


def test_large_equations_that_gmres_does_not_solve_are_refused(few_are_many):
    n = 300

    def f(p):  # its derivative is the shift of a cycle, for which GMRES gets nowhere
        return so.root(lambda x: np.roll(x, 1) - p, np.ones(n), method="df-sane").x.sum()

    with pytest.raises(plaingrad.MissingRuleError, match="GMRES does not solve|has not converged"):
        plaingrad.grad(lambda p: f(p[0] * np.sin(np.arange(n)) + 1.0))(np.array([0.5]))


def test_a_function_that_is_not_defined_beside_its_root():
    """Whether the root is a pole is looked up on both sides; what the function raises there is not the user's concern."""

    def root(a):
        def f(x):
            if x < 1.0:
                raise ValueError("outside")
            return (x**3 - a**3) * (1.0 + x) + 1e-16

        return so.brentq(f, 1.0, 3.0)

    assert plaingrad.grad(root)(1.0 + 1e-10) == pytest.approx(1.0, rel=1e-6)


def test_a_derivative_calls_the_function_three_times_more():
    """Once at the level, once for its slope, once to tell a root from a pole."""
    tick = itertools.count().__next__  # what Python counts is put back

    def root(a):
        def f(x):
            tick()
            return np.exp(x) + x**3 - a

        return so.brentq(f, -3.0, 3.0)

    root(2.0)
    plain = tick()
    plaingrad.grad(root)(2.0)
    assert tick() - 2 * plain - 1 <= 3
