"""Second derivatives natively through linear algebra, beside the plain tier, and beside differences where that is at a kink."""

import numpy as np
import pytest

import plaingrad
from tests.sampling import ALL

pytest.importorskip("numba")

RANDOM = np.random.default_rng(5)
M = RANDOM.normal(size=(3, 3)) + 2 * np.eye(3)
EIG = np.array([[2.0, 0.4, 0.1], [0.3, 3.0, -0.2], [0.2, 0.1, 4.5]])  # of real eigenvalues
W, R, V = RANDOM.normal(size=(3, 3)), RANDOM.normal(size=(3, 2)), RANDOM.normal(size=3)
W2, W3 = W[:2].copy(), W[0].copy()


def gaussian(a, b):
    s = a @ a.T
    return 0.5 * b @ np.linalg.solve(s, b) + 0.5 * np.linalg.slogdet(s)[1]


def inverse(a):
    return (np.linalg.inv(a) * W).sum() ** 2


def solved_matrix(a, b):
    return (np.linalg.solve(a, b) * b).sum() + np.linalg.norm(a) ** 3


def factor(a):
    return (np.linalg.cholesky(a @ a.T) * W).sum() + np.log(np.linalg.det(a) ** 2)


def decomposed(a):
    q, r = np.linalg.qr(a)
    u, s, _ = np.linalg.svd(a, False)
    return (q * r * W).sum() + (u[:, 0] ** 2 * s).sum()


def fitted(a, b):
    return (np.linalg.lstsq(a, b)[0] * W3[:2]).sum() + (np.linalg.pinv(a) * W2).sum()


def eigen(a):
    w, v = np.linalg.eigh(a + a.T)
    return (w * W3).sum() + (v**2 * W).sum()


def unsymmetric(a):
    w, v = np.linalg.eig(a)  # complex from NumPy 2.5 on
    return (w.real * W3).sum() + (v.real**2 * W).sum() + (np.linalg.eigvals(a).real[::-1] * W3).sum()


CASES = ((gaussian, M, V), (inverse, M), (solved_matrix, M, R), (factor, M), (decomposed, M), (fitted, R, V), (eigen, M), (unsymmetric, EIG))


def joined(tree):
    return np.concatenate([np.ravel(x) for x in tree])


def differences(f, args, dots, tier="plain"):
    """The product with a Hessian by differences of the gradient."""
    at, h = tuple(range(len(args))), 1e-5
    up, down = [
        joined(plaingrad.grad(f, at, tier=tier)(*[a + s * d for a, d in zip(args, dots)])) for s in (h, -h)
    ]
    return (up - down) / (2 * h)


def product(f, args, dots):
    """The product with a Hessian, natively."""
    return joined(plaingrad.hvp(f, args, dots, tier="native"))


def direction(a):
    return np.cos(np.arange(a.size) + 1.0).reshape(a.shape)


@pytest.mark.filterwarnings("ignore:`rcond`")
@pytest.mark.parametrize("f, args", [(f, args) for f, *args in CASES], ids=[case[0].__name__ for case in CASES])
def test_a_product_with_the_hessian_is_that_of_differences(f, args):
    if not ALL and f in (gaussian, inverse, solved_matrix, fitted, decomposed):  # others here do the same
        pytest.skip("with PLAINGRAD_TEST_ALL=1")
    dots = tuple(map(direction, args))
    np.testing.assert_allclose(product(f, args, dots), differences(f, args, dots), rtol=1e-6, atol=1e-7)


def test_nested_derivatives_and_machine_code_give_the_hessian_product_too():
    dots = (direction(M), direction(V))
    expected = differences(gaussian, (M, V), dots)
    both = plaingrad.grad(gaussian, (0, 1), tier="native")
    found = plaingrad.jvp(both, (M, V), dots, tier="native")[1]
    np.testing.assert_allclose(joined(found), expected, rtol=1e-6)
    again = plaingrad.grad(lambda a, b: sum((x * d).sum() for x, d in zip(both(a, b), dots)), (0, 1))(M, V)
    np.testing.assert_allclose(joined(again), expected, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:`rcond`")
def test_cotangents_that_are_zero_here_move():
    """At the minimum of a distance between eigenvectors, and of a distance of a diagonal matrix's singular vectors."""
    a = M + M.T
    v0 = np.linalg.eigh(a)[1]
    dots = (direction(M),)

    def off(a):
        return ((np.linalg.eigh(a)[1] - v0) ** 2).sum()

    np.testing.assert_allclose(product(off, (a,), dots), differences(off, (a,), dots), rtol=1e-5, atol=1e-7)
    d = np.diag([3.0, 2.0, 1.0])

    def turned(a):
        u, s, v = np.linalg.svd(a, False)
        return np.diag((u * s**2) @ v) @ W3

    np.testing.assert_allclose(product(turned, (d,), dots), differences(turned, (d,), dots), rtol=1e-5, atol=1e-7)
    x0 = np.linalg.lstsq(R, V, rcond=-1)[0]

    def fit(a):
        return ((np.linalg.lstsq(a, V)[0] - x0) ** 2).sum()

    dots = (direction(R),)
    np.testing.assert_allclose(product(fit, (R,), dots), differences(fit, (R,), dots), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("a", [np.outer(V, W3), np.diag([1.0, 0.0, 0.0]), np.array([[0.0]])], ids=["1", "diagonal", "1x1"])
def test_the_second_derivative_of_the_determinant_of_a_singular_matrix(a):
    d, h = direction(a), 1e-4

    def slope(x):
        return np.array(
            [
                [(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(x, i, 0), j, 1)) for j in range(len(a))]
                for i in range(len(a))
            ]
        )

    found = plaingrad.hvp(lambda a: np.linalg.det(a), (a,), (d,), tier="native")[0]
    np.testing.assert_allclose(found, (slope(a + h * d) - slope(a - h * d)) / (2 * h), rtol=1e-8, atol=1e-10)


def test_where_there_is_no_second_derivative_the_slope_is_not_finite():
    zero = np.zeros(2)
    for f in (lambda v: np.linalg.norm(v), lambda v: np.std(v) * 2.0):
        with np.errstate(all="ignore"):
            found = plaingrad.hvp(f, (zero,), (np.array([1.0, 0.5]),), tier="native")[0]
        assert not np.isfinite(found).any()
    with pytest.raises(plaingrad.NativeError, match="full_matrices"):
        plaingrad.hvp(lambda a: np.linalg.svd(a)[0][0, 2], (R,), (direction(R),), tier="native")
    found = plaingrad.hvp(lambda a: np.linalg.svd(a)[1][0], (R,), (direction(R),), tier="native")[0]
    np.testing.assert_allclose(
        np.ravel(found), differences(lambda a: np.linalg.svd(a)[1][0], (R,), (direction(R),)), rtol=1e-6
    )


def test_complex_and_single_precision():
    def of_complex(x):
        a = M + x * (0.3j * W)
        z = np.linalg.solve(a, V + 0j)
        return abs(z.sum()) ** 2 + abs(np.linalg.det(np.linalg.inv(a))) + np.linalg.norm(a)

    def plain(x):
        return plaingrad.grad(of_complex, tier="plain")(x)

    found = plaingrad.hvp(of_complex, (1.0,), (1.0,), tier="native")[0]
    np.testing.assert_allclose(found, (plain(1.0 + 1e-5) - plain(1.0 - 1e-5)) / 2e-5, rtol=1e-7)
    single = plaingrad.hvp(inverse, (M.astype(np.float32),), (direction(M).astype(np.float32),), tier="native")[0]
    np.testing.assert_allclose(np.ravel(single), product(inverse, (M,), (direction(M),)), rtol=2e-3)


@pytest.mark.parametrize("f, begin", [(lambda x: np.linalg.norm(x), 0), (lambda x: np.linalg.norm((x * 2.0)[1:], 2), 1)])
def test_the_norm_of_a_vector_that_runs_backwards_is_not_what_numba_takes_for_it(f, begin):
    x = np.array([0.4, 0.9, -0.3, 1.7, 0.2])[::-2]
    part = np.r_[np.zeros(begin), x[begin:] * (1 + begin)]
    value, slopes = plaingrad.value_and_grad(f, tier="native")(x)
    assert value == pytest.approx(np.sqrt(np.sum(part**2)), rel=1e-15)
    np.testing.assert_allclose(slopes, (1 + begin) * part / value, rtol=1e-14)
