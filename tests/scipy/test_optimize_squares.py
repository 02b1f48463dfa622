"""Least squares and linear problems have the derivatives of their solutions: by closed forms, in both modes, nested."""

import numpy as np
import plaingrad
import pytest
from tests.scipy.agreement import agrees

so = pytest.importorskip("scipy.optimize")
pytestmark = pytest.mark.filterwarnings("ignore")

T = np.linspace(0.0, 1.0, 12)
Y = np.exp(-1.3 * T) + 0.1 * np.sin(17 * T) + 0.3
RNG = np.random.default_rng(0)
M = RNG.normal(size=(9, 3))


def steps(f, a):
    """Central differences, extrapolated."""
    one, two = [(f(a + h) - f(a - h)) / (2 * h) for h in (2e-3, 1e-3)]
    return (4 * two - one) / 3


def both(f, at):
    reverse, forward = plaingrad.grad(f)(at), plaingrad.jvp(f, (at,), (1.0,))[1]
    assert reverse == pytest.approx(forward, rel=1e-8, abs=1e-12)
    return reverse


def model(x, p, q):
    return p * np.exp(-q * x)


TIGHT = {"xtol": 1e-14, "ftol": 1e-15}


@pytest.mark.parametrize("loss", ["linear", "soft_l1", "cauchy", "arctan", "huber"])
def test_losses(loss):
    def f(a):
        return so.least_squares(
            lambda p: model(T, *p) - Y - a * T**2, [1.0, 1.0], jac="3-point", loss=loss, f_scale=0.3, gtol=1e-15, **TIGHT
        )

    for part in (lambda a: f(a).x[1], lambda a: f(a).cost, lambda a: f(a).fun[3]):
        assert both(part, 0.2) == pytest.approx(steps(part, 0.2), rel=2e-4, abs=1e-6)


def test_bounds_of_least_squares():
    def f(a):
        return so.least_squares(lambda p: model(T, *p) - Y, [1.0, 0.1], bounds=([-3, -1], [4, a])).x

    assert both(lambda a: f(a)[1], 0.4) == pytest.approx(1.0)
    # p is then the linear fit of Y by exp(-a T)
    exact = lambda a: (np.exp(-a * T) @ Y) / (np.exp(-a * T) @ np.exp(-a * T))  # noqa: E731
    assert both(lambda a: f(a)[0], 0.4) == pytest.approx(steps(exact, 0.4), rel=1e-7)


@pytest.mark.parametrize("options", [{}, {"bounds": (-9.0, 9.0)}, {"sigma": 1 + T}, {"sigma": np.eye(12) + 0.2}])
@pytest.mark.parametrize("absolute", [False, True])
def test_curve_fit_of_a_linear_model_is_linear_regression(options, absolute):
    x = np.stack([np.ones(12), T], 1)
    sigma = options.get("sigma", np.ones(12))
    covariance = sigma if np.ndim(sigma) == 2 else np.diag(np.asarray(sigma) ** 2)
    weight = np.linalg.inv(covariance)

    def fit(y):
        return so.curve_fit(lambda t, p, q: p + q * t, T, y, absolute_sigma=absolute, **options)

    inverse = np.linalg.inv(x.T @ weight @ x)
    np.testing.assert_allclose(plaingrad.grad(lambda y: fit(y)[0][1])(Y), (inverse @ x.T @ weight)[1], atol=1e-9)
    found = plaingrad.grad(lambda y: fit(y)[1][0, 1])(Y)
    residual = Y - x @ (inverse @ x.T @ weight @ Y)
    exact = np.zeros(12) if absolute else 2 * weight @ residual / 10 * inverse[0, 1]
    np.testing.assert_allclose(found, exact, atol=1e-6)


def test_curve_fit_of_a_nonlinear_model_in_data_and_second_order():
    def popt(a):
        return so.curve_fit(model, T * a, Y, [1.0, 1.0], **TIGHT)[0][1]  # q is proportional to 1/a

    q = popt(1.1)
    assert both(popt, 1.1) == pytest.approx(-q / 1.1, rel=1e-6)
    assert plaingrad.grad(plaingrad.grad(popt))(1.1) == pytest.approx(2 * q / 1.1**2, rel=1e-5)


def test_leastsq_and_its_covariance():
    x = np.stack([np.ones(12), T], 1)

    def f(y):
        return so.leastsq(lambda p: x @ p - y, [0.0, 0.0])[0][1]

    np.testing.assert_allclose(plaingrad.grad(f)(Y), np.linalg.pinv(x)[1], atol=1e-9)

    def cov(a):
        return so.leastsq(lambda p: a * (x @ p) - Y, [0.0, 0.0], full_output=True)[1][0, 0]

    assert both(cov, 1.3) == pytest.approx(-2 / 1.3**3 * np.linalg.inv(x.T @ x)[0, 0], rel=1e-5)


def test_nnls_is_the_unbounded_solution_in_what_is_not_zero():
    b = M @ np.array([1.0, 2.0, -1.0])
    free = M[:, so.nnls(M, b)[0] > 0]
    np.testing.assert_allclose(plaingrad.grad(lambda b: so.nnls(M, b)[0].sum())(b), np.linalg.pinv(free).sum(0), atol=1e-9)
    residual = free @ (np.linalg.pinv(free) @ b) - b
    np.testing.assert_allclose(plaingrad.grad(lambda b: so.nnls(M, b)[1])(b), -residual / np.linalg.norm(residual), atol=1e-8)


def test_nnls_moves_with_the_matrix_too_in_every_mode_and_order():
    random = np.random.default_rng(7)
    a, b = np.abs(random.normal(size=(9, 4))), random.normal(size=9) + 0.5

    def f(z):
        x, norm = so.nnls(a * z[:4] + 0.1 * z[4], b * z[5] + z[6:])
        return np.append(x, norm)

    assert 0 < np.count_nonzero(f(np.ones(15))[:4]) < 4
    agrees(f, np.ones(15) + 0.01 * np.arange(15), 1e-6)
    agrees(lambda z: so.nnls(A=[[z[0], 1.0], [0.2, z[1]], [1.0, 1.0]], b=[z[2], 5.0, 1.0])[0], np.array([1.0, 2.0, 3.0]), 1e-6)
    series = plaingrad.taylor(lambda t: so.nnls(a * t, b + t * t)[0].sum(), 1.0, 2)
    values = [so.nnls(a * t, b + t * t)[0].sum() for t in (1 - 1e-3, 1.0, 1 + 1e-3)]
    assert series[1] == pytest.approx((values[2] - values[0]) / 2e-3, rel=1e-5)
    assert series[2] == pytest.approx((values[2] - 2 * values[1] + values[0]) / 2e-6, rel=1e-3)


def test_nnls_is_refused_where_its_solution_has_no_derivative():
    with pytest.raises(plaingrad.MissingRuleError, match="does not hold it"):
        plaingrad.grad(lambda b: so.nnls(np.eye(3), b)[0].sum())(np.array([1.0, 0.0, 1.0]))
    close = np.array([[1.0, 1.0], [1.0, 1.0 + 1e-9], [1.0, 1.0], [0.0, 0.0]])
    right = np.array([2.0, 2.0 + 1e-9, 2.0, 1.0])
    with pytest.raises(plaingrad.MissingRuleError, match="depend on each other|does not hold it"):
        plaingrad.grad(lambda b: so.nnls(close, b)[0].sum())(right)


def test_lsq_linear():
    b = M @ np.array([1.0, 2.0, -1.0])

    def f(a):
        return so.lsq_linear(M, b, bounds=(-5.0, np.array([a, 9.0, 9.0]))).x

    assert both(lambda a: f(a)[0], 0.5) == pytest.approx(1.0)
    rest = M[:, 1:]
    assert both(lambda a: f(a)[1], 0.5) == pytest.approx(-(np.linalg.pinv(rest) @ M[:, 0])[0], rel=1e-7)


def test_linprog_is_the_vertex_of_its_active_constraints():
    def f(a):  # min -x - 2y under x + a y <= 4, x <= 3: x = 3, y = 1 / a
        return so.linprog([-1.0, -2.0], A_ub=[[1.0, a]], b_ub=[4.0], bounds=[(0, 3), (0, None)])

    assert both(lambda a: f(a).x[1], 3.0) == pytest.approx(-1 / 3.0**2)
    assert both(lambda a: f(a).fun, 3.0) == pytest.approx(2 / 3.0**2)
    assert both(lambda a: f(a).slack[0] + f(a).x[0], 3.0) == pytest.approx(0.0, abs=1e-9)
    assert plaingrad.grad(plaingrad.grad(lambda a: f(a).x[1]))(3.0) == pytest.approx(2 / 3.0**3)
    with pytest.raises(plaingrad.MissingRuleError, match="degenerate|singular|does not hold"):  # a whole edge is best
        plaingrad.grad(lambda a: so.linprog([-1.0, -1.0 * a], A_ub=[[1.0, 1.0]], b_ub=[1.0]).x[0])(1.0)


def test_integers_are_constant_or_refused():
    costs = RNG.normal(size=(4, 4))
    rows, columns = so.linear_sum_assignment(costs)
    found = plaingrad.grad(lambda c: c[so.linear_sum_assignment(c)].sum())(costs)
    expected = np.zeros((4, 4))
    expected[rows, columns] = 1.0
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(plaingrad.MissingRuleError, match=r"scipy.optimize.milp.*integers"):
        plaingrad.grad(lambda c: so.milp(c, integrality=np.ones(2)).fun)(np.array([1.0, 2.0]))


def test_isotonic_regression_is_means_of_blocks():
    if not hasattr(so, "isotonic_regression"):
        pytest.skip("newer SciPy")
    y = np.array([1.0, 3.0, 2.0, 4.0, 3.6])
    jacobian = plaingrad.jacobian(lambda y: so.isotonic_regression(y).x)(y)
    expected = np.zeros((5, 5))
    expected[0, 0] = 1.0
    expected[1:3, 1:3] = expected[3:, 3:] = 0.5
    np.testing.assert_allclose(jacobian, expected)


def test_the_right_side_of_nnls_may_be_one_column():
    nnls = pytest.importorskip("scipy.optimize").nnls
    rng = np.random.default_rng(1)
    A, b = rng.random((8, 4)), rng.random(8)

    def f(b):
        x, norm = nnls(A, b)
        return (x * x).sum() + norm

    slope = plaingrad.grad(f)
    column = b[:, None]
    np.testing.assert_allclose(slope(column), slope(b)[:, None])
    np.testing.assert_allclose(plaingrad.jvp(f, (column,), (column,))[1], b @ slope(b))
    np.testing.assert_allclose(np.reshape(plaingrad.hessian(f)(column), (8, 8)), plaingrad.hessian(f)(b))
