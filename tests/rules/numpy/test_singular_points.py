"""Where a function has a kink, a tie or a pole: one decision each, the same through grad."""

import numpy as np
import pytest

import plaingrad
from plaingrad import grad, jvp


def test_elements_that_tie_for_the_maximum_share_equally():
    np.testing.assert_array_equal(grad(np.max)(np.array([1.0, 3.0, 3.0, 2.0])), [0, 0.5, 0.5, 0])
    rows = np.array([[1.0, 1.0], [2.0, 5.0]])
    np.testing.assert_array_equal(grad(lambda x: x.min(axis=1).sum())(rows), [[0.5, 0.5], [1, 0]])


def test_an_initial_value_that_ties_takes_its_share():
    x_bar, initial_bar = grad(lambda x, i: np.max(x, initial=i), argnums=(0, 1))(np.array([1.0, 3.0]), 3.0)
    np.testing.assert_array_equal(x_bar, [0, 0.5])
    assert initial_bar == 0.5


def test_a_running_maximum_stays_with_the_element_that_reached_it_first():
    x_bar = grad(lambda x: np.maximum.accumulate(x).sum())(np.array([1.0, 3.0, 3.0, 2.0]))
    np.testing.assert_array_equal(x_bar, [1, 3, 0, 0])


def test_a_clipped_element_on_its_bound_keeps_the_cotangent():
    x_bar, low_bar = grad(lambda x, low: np.clip(x, low, 2.0).sum(), argnums=(0, 1))(np.array([0.0, 1.0, 2.0, 3.0]), 1.0)
    np.testing.assert_array_equal(x_bar, [0, 1, 1, 0])
    assert low_bar == 1.0


def test_equal_elements_keep_their_order_when_sorted():
    x_bar = grad(lambda x: np.sum(np.sort(x) * np.array([1.0, 10.0, 100.0])))(np.array([2.0, 1.0, 1.0]))
    np.testing.assert_array_equal(x_bar, [100, 1, 10])


@pytest.mark.parametrize("f", [np.linalg.norm, np.std, lambda x: np.linalg.norm(x, 3), lambda x: np.linalg.norm(x, 1)])
def test_the_tip_of_a_cone_has_gradient_zero(f):
    np.testing.assert_array_equal(grad(f)(np.zeros(3)), np.zeros(3))


def test_a_zero_row_does_not_poison_the_norms_of_the_others():
    x = np.array([[0.0, 0.0], [3.0, 4.0]])
    np.testing.assert_allclose(grad(lambda x: np.linalg.norm(x, axis=1).sum())(x), [[0, 0], [0.6, 0.8]])


def test_singular_values_that_are_zero_have_gradient_zero():
    x_bar = grad(lambda x: np.linalg.svd(x, compute_uv=False).sum())(np.zeros((2, 3)))
    np.testing.assert_array_equal(x_bar, np.zeros((2, 3)))


def test_a_product_with_zeros_is_differentiated_without_dividing_by_them():
    np.testing.assert_array_equal(grad(np.prod)(np.array([2.0, 0.0, 3.0])), [0, 6, 0])
    np.testing.assert_array_equal(grad(np.prod)(np.array([2.0, 0.0, 0.0])), [0, 0, 0])
    np.testing.assert_array_equal(grad(lambda x: np.cumprod(x).sum())(np.array([2.0, 0.0, 3.0])), [1, 8, 0])


def test_the_determinant_of_a_singular_matrix_has_its_cofactors_as_gradient():
    a = np.array([[1.0, 2.0], [2.0, 4.0]])
    np.testing.assert_allclose(grad(np.linalg.det)(a), [[4, -2], [-2, 1]])
    np.testing.assert_allclose(grad(np.linalg.det)(np.zeros((2, 2))), np.zeros((2, 2)))


def test_a_nan_takes_the_cotangent_of_the_nan_it_causes():
    x = np.array([1.0, np.nan, 3.0])
    np.testing.assert_array_equal(grad(np.max)(x), [0, 1, 0])
    np.testing.assert_array_equal(grad(np.median)(x), [0, 1, 0])
    np.testing.assert_array_equal(grad(np.nansum)(x), [1, 0, 1])
    np.testing.assert_array_equal(grad(np.nanmean)(x), [0.5, 0, 0.5])


def test_what_a_mask_leaves_out_cannot_poison_what_it_keeps():
    x = np.array([0.0, 4.0])
    np.testing.assert_array_equal(grad(lambda x: np.divide(1.0, x, out=np.zeros(2), where=x != 0).sum())(x), [0, -0.0625])
    np.testing.assert_array_equal(grad(lambda x: np.sqrt(x, out=np.zeros(2), where=x > 0).sum())(x), [0, 0.25])


def test_equal_eigenvalues_are_no_pole_for_a_function_of_the_eigenvalues():
    np.testing.assert_allclose(grad(lambda a: np.linalg.eigvalsh(a).sum())(np.eye(3)), np.eye(3))
    np.testing.assert_allclose(grad(lambda a: np.linalg.eigh(a)[0].sum())(np.eye(3)), np.eye(3))


def test_only_the_triangle_that_lapack_reads_has_a_gradient():
    a = np.array([[4.0, 1.0], [1.0, 3.0]])
    assert grad(lambda a: np.linalg.cholesky(a).sum())(a)[0, 1] == 0
    assert grad(lambda a: np.linalg.eigvalsh(a)[0])(a)[0, 1] == 0
    assert grad(lambda a: np.linalg.eigvalsh(a, "U")[0])(a)[1, 0] == 0


def test_infinities_that_tie_share_equally_in_a_log_of_a_sum():
    x_bar = grad(np.logaddexp.reduce)(np.array([-np.inf, 0.0, 0.0]))
    np.testing.assert_allclose(x_bar, [0, 0.5, 0.5])
    np.testing.assert_allclose(grad(np.logaddexp.reduce)(np.array([-np.inf, -np.inf])), [0.5, 0.5])


def test_unscaled_noise_has_a_mean_all_the_same():
    loc_bar, scale_bar = grad(lambda m, s: np.random.default_rng(1).normal(m, s), argnums=(0, 1))(0.5, 0.0)
    assert loc_bar == 1.0
    assert scale_bar == np.random.default_rng(1).normal()


@pytest.mark.parametrize("n", [3, 14])
def test_the_determinant_of_a_singular_matrix_has_the_derivatives_of_a_polynomial(n):
    diagonal = np.array([0.0, 0.0] + [2.0] * (n - 2))

    def on_a_line(t):  # t**2 (2 + t)**(n - 2), in turned bases
        return np.linalg.det(q @ (np.diag(diagonal) + t * np.eye(n)) @ q.T)

    q = np.linalg.qr(np.random.default_rng(0).standard_normal((n, n)))[0]
    powers = [0.0, 0.0, 2 * 2.0 ** (n - 2), 6 * (n - 2) * 2.0 ** (n - 3)]
    f, derivatives = on_a_line, []
    for _ in range(3):
        f = grad(f)
        derivatives.append(f(0.0))
    np.testing.assert_allclose(derivatives, powers[1:], rtol=1e-9, atol=1e-9)


def test_the_determinant_of_a_large_matrix_of_zeros_has_a_gradient_of_zeros():
    assert not grad(np.linalg.det)(np.zeros((20, 20))).any()


def test_singular_factors_give_nan_and_no_exception():
    zero = np.zeros((2, 2))
    assert np.isnan(grad(lambda a: np.linalg.qr(a)[0].sum())(zero)).all()
    assert np.isnan(grad(lambda a: np.linalg.slogdet(a)[1])(zero)).all()
    assert np.isnan(jvp(lambda a: np.linalg.slogdet(a)[1], (zero,), (np.eye(2),))[1])


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_a_norm_moves_with_its_order_also_at_the_orders_that_have_names(p):
    x, h = np.array([3.1, -1.2, 0.7]), 1e-5
    truth = (np.linalg.norm(x, p + h) - np.linalg.norm(x, p - h)) / (2 * h)
    assert grad(lambda p: np.linalg.norm(x, p))(p) == pytest.approx(truth, rel=1e-8)
    assert jvp(lambda p: np.linalg.norm(x, p), (p,), (1.0,))[1] == pytest.approx(truth, rel=1e-8)


def test_a_fill_of_an_array_scalar_has_no_effect_as_in_a_plain_call():
    def f(x):
        x.fill(5.0)
        return 2 * x

    assert grad(f)(np.float64(1.5)) == 2.0


def test_the_flat_iterator_of_an_array_scalar_gives_its_number():
    assert grad(lambda x: sum(x.flat) * x)(np.float64(1.5)) == 3.0


@pytest.mark.filterwarnings("ignore")
def test_columns_that_only_complete_a_basis_have_no_derivative():
    a = np.arange(6.0).reshape(3, 2) ** 2
    with pytest.raises(plaingrad.errors.MissingRuleError):
        grad(lambda a: np.linalg.svd(a)[0][0, 2])(a)
    u_dot = jvp(lambda a: np.linalg.svd(a)[0], (a,), (np.ones((3, 2)),))[1]
    assert np.isnan(u_dot[:, 2]).all() and np.isfinite(u_dot[:, :2]).all()


@pytest.mark.filterwarnings("ignore")
def test_an_element_that_stays_beside_one_that_varies_has_a_tangent_of_zero():
    def f(x):
        return np.sqrt(np.array([0.0, x]))[0]

    assert grad(f)(2.0) == 0.0
    assert np.isnan(jvp(f, (2.0,), (1.0,))[1])
