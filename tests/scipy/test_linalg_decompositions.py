"""scipy.linalg: decompositions have the derivatives that differences say, where they are determined."""

import numpy as np
import pytest
from tests.scipy.linalg_cases import hermitian, matrix, moves, positive, vector

import plaingrad
from plaingrad.errors import MissingRuleError

sl = pytest.importorskip("scipy.linalg")
pytestmark = pytest.mark.filterwarnings("ignore")  # of SciPy about what it is given
NEW = hasattr(sl.solve_triangular, "__wrapped__")

both = pytest.mark.parametrize("c", [False, True], ids=["real", "complex"])
triangles = pytest.mark.parametrize("lower", [False, True], ids=["upper", "lower"])
shapes = pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (1, 1)], ids=str)


def squares(parts):
    """What does not depend on the signs or phases of columns."""
    return [np.abs(part) ** 2 for part in parts]


@both
@triangles
def test_cholesky(c, lower):
    moves(lambda a: sl.cholesky(a, lower=lower), positive(1, 4, c))
    moves(
        lambda a: sl.cho_factor(a, lower)[0] * (np.tri(4) if lower else np.tri(4).T),
        positive(1, 4, c),
        nested=False,
    )


def test_the_pullback_of_cholesky_in_blocks(monkeypatch):
    from plaingrad.rules.scipy.linalg import factored

    monkeypatch.setattr(factored, "BLOCK", 2)
    for c in (False, True):
        for lower in (False, True):
            moves(lambda a: sl.cholesky(a, lower=lower), positive(1, 5, c))


@both
@shapes
def test_lu(c, shape):
    a = matrix(1, *shape, c)
    moves(lambda a: sl.lu(a)[1:], a)
    moves(lambda a: sl.lu(a, permute_l=True), a, nested=False)
    if NEW or shape[0] == shape[1]:
        moves(lambda a: sl.lu_factor(a)[0], a, nested=False)
    if NEW:
        moves(lambda a: sl.lu(a, p_indices=True)[1:], a, nested=False)


@both
def test_the_pullback_of_lu_in_blocks(c, monkeypatch):
    from plaingrad.rules.scipy.linalg import factored

    monkeypatch.setattr(factored, "BLOCK", 2)
    for m, n in ((5, 5), (6, 5), (5, 6)):
        a = matrix(m, m, n, c) + 4 * np.eye(m, n)
        moves(lambda a: sl.lu(a)[1:], a, nested=m == n)
        moves(lambda a: sl.lu_factor(a)[0] if m == n else sl.lu(a)[2], a[::-1], nested=False)


@both
@pytest.mark.parametrize("lower", [False, True], ids=["upper", "lower"])
def test_banded_cholesky_in_blocks(c, lower, monkeypatch):
    from plaingrad.rules.scipy.linalg import banded_factors

    monkeypatch.setattr(banded_factors, "COLUMNS", 2)
    for below in (0, 1, 3):
        row, column = np.indices((below + 1, 8))
        exists = (row + column < 8) if lower else (column >= below - row)
        h = 0.3 * matrix(below, below + 1, 8, c)
        h[0 if lower else below] = 6 + np.arange(8)
        moves(lambda h, exists=exists: exists * sl.cholesky_banded(h, lower=lower), h)


@both
@triangles
@pytest.mark.parametrize("symmetric", [False, True])
def test_ldl_with_blocks_of_one_and_two(c, lower, symmetric):
    h = hermitian(1, 5, c)
    moves(lambda a: sl.ldl(a, lower, not symmetric)[:2], h)
    h = h.copy()
    h[np.arange(5), np.arange(5)] *= 1e-3
    assert np.count_nonzero(np.triu(sl.ldl(h, lower, not symmetric)[1], 1)), "a block of two"
    moves(lambda a: sl.ldl(a, lower, not symmetric)[:2], h, nested=False)


@both
@shapes
@pytest.mark.parametrize("pivoting", [False, True])
def test_qr(c, shape, pivoting):
    a, k = matrix(1, *shape, c), min(shape)
    for mode in ("economic", "r"):
        moves(lambda a: sl.qr(a, mode=mode, pivoting=pivoting), a, nested=mode == "economic")
    moves(lambda a: [part[:k, :k] for part in sl.qr(a)], a, nested=False)
    if shape[0] >= shape[1]:
        moves(
            lambda a, x: sl.qr_multiply(a, x, "right", pivoting), a, matrix(2, 2, shape[0], c), nested=False
        )
        moves(
            lambda a, x: sl.qr_multiply(a, x, "left", pivoting, True), a, vector(2, shape[1], c), nested=False
        )


@both
@shapes
def test_rq(c, shape):
    a, k = matrix(1, *shape, c), min(shape)
    moves(lambda a: sl.rq(a, mode="economic"), a)
    moves(lambda a: sl.rq(a, mode="r"), a, nested=False)
    moves(lambda a: (sl.rq(a)[0], sl.rq(a)[1][-k:]), a, nested=False)


@both
@shapes
def test_svd(c, shape):
    a = matrix(1, *shape, c)

    def products(a):
        u, s, vh = sl.svd(a, full_matrices=False)
        return [(u * np.sin(s)) @ vh, s, *squares((u, vh))]

    moves(products, a)
    moves(sl.svdvals, a)
    moves(lambda a: sl.svd(a, compute_uv=False), a, nested=False)
    moves(lambda a: sl.svd(a)[1], a, nested=False)


@both
@triangles
@pytest.mark.parametrize(
    "part",
    [{}, {"subset_by_index": [1, 2]}, {"subset_by_value": [-1.0, 20.0]}],
    ids=["all", "index", "value"],
)
def test_hermitian_spectra(c, lower, part):
    h, b = hermitian(1, 4, c), positive(2, 4, c)
    moves(lambda a: squares(sl.eigh(a, lower=lower, **part)), h)
    moves(lambda a: sl.eigvalsh(a, lower=lower, **part), h, nested=False)
    for kind in (1, 2, 3):
        if "subset_by_value" not in part:
            moves(lambda a, b: squares(sl.eigh(a, b, lower=lower, type=kind, **part)), h, b, nested=not part)
            moves(lambda a, b: sl.eigvalsh(a, b, lower=lower, type=kind, **part), h, b, nested=False)


@both
@triangles
def test_spectra_of_bands(c, lower):
    ab = matrix(1, 3, 6, c)
    ab[0 if lower else 2] = np.arange(6) ** 1.3
    chosen = {"select": "i", "select_range": (1, 3)}
    moves(lambda a: squares(sl.eig_banded(a, lower=lower)), ab)
    moves(lambda a: squares(sl.eig_banded(a, lower=lower, **chosen)), ab, nested=False)
    moves(lambda a: sl.eigvals_banded(a, lower=lower, **chosen), ab, nested=False)


@triangles
@pytest.mark.parametrize("kind", [0, 1, 2, 3])
def test_phases_of_complex_eigenvectors_are_those_of_lapack(lower, kind):
    h, b = hermitian(1, 4, True), positive(2, 4, True)
    if kind == 0:
        moves(lambda a: sl.eigh(a, lower=lower, driver="evd")[1], h)  # the signs of others jump
        moves(lambda a: sl.eigh(a, lower=lower, subset_by_index=[1, 2])[1], h, nested=False)
        moves(lambda a: sl.eigh(a, lower=lower, driver="ev")[1], h, nested=False)
        ab = matrix(1, 3, 6, True)
        ab[0 if lower else 2] = np.arange(6) ** 1.3
        moves(lambda a: sl.eig_banded(a, lower=lower)[1], ab, nested=False)
    else:
        moves(lambda a, b: sl.eigh(a, b, lower=lower, type=kind)[1], h, b)
        moves(
            lambda a, b: sl.eigh(a, b, lower=lower, type=kind, subset_by_index=[1, 2])[1], h, b, nested=False
        )


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (1, 1), (40, 2)], ids=str)
def test_phases_of_complex_singular_vectors_are_those_of_lapack(shape):
    moves(lambda a: sl.svd(a, full_matrices=False), matrix(1, *shape, True), nested=shape != (40, 2))
    moves(
        lambda a: sl.svd(a, full_matrices=False, lapack_driver="gesvd")[2],
        matrix(1, *shape, True),
        nested=False,
    )


def test_tridiagonal_spectra():
    d, e = vector(1, 5), vector(2, 4)
    moves(lambda d, e: squares(sl.eigh_tridiagonal(d, e)), d, e)
    moves(
        lambda d, e: squares(sl.eigh_tridiagonal(d, e, select="i", select_range=(1, 2))), d, e, nested=False
    )
    moves(lambda d, e: sl.eigvalsh_tridiagonal(d, e), d, e, nested=False)


@both
def test_general_spectra(c):
    a, b = matrix(1, 4, 4, c), matrix(2, 4, 4, c)
    moves(sl.eig, a)
    moves(lambda a: sl.eig(a, left=True), a)
    moves(lambda a: sl.eig(a, left=True, right=False), a, nested=False)
    moves(sl.eigvals, a)
    moves(lambda a: sl.eigvals(a, homogeneous_eigvals=True), a, nested=False)
    moves(sl.eigvals, a, b)
    moves(lambda a, b: sl.eig(a, b)[0], a, b, nested=False)


def test_real_vectors_of_two_matrices():
    moves(
        lambda a, b: sl.eig(a, b),
        np.diag([1.0, 2.0, 3.0]) + 0.1 * matrix(1, 3),
        np.eye(3) + 0.1 * matrix(2, 3),
    )


def test_vectors_of_two_matrices_where_their_turn_does_not_matter():
    a, b, d = matrix(1, 4), matrix(2, 4), matrix(3, 4)

    def f(a):
        return np.sum(np.cos(np.arange(16.0).reshape(4, 4)) * np.abs(sl.eig(a, b)[1]) ** 2)

    h = 1e-6
    assert np.sum(plaingrad.grad(f)(a) * d) == pytest.approx(
        (f(a + h * d) - f(a - h * d)) / (2 * h), rel=1e-5
    )
    with pytest.raises(MissingRuleError, match="phase"):
        plaingrad.grad(lambda a: np.sum(np.real(sl.eig(a, b)[1])))(a)
    assert np.isnan(plaingrad.jvp(lambda a: np.sum(np.real(sl.eig(a, b)[1])), (a,), (d,))[1])


@both
def test_schur_and_hessenberg(c):
    a = matrix(1, 5, 5, c)
    moves(lambda a: sl.hessenberg(a, calc_q=True), a)
    moves(sl.hessenberg, matrix(2, 2, 2, c), nested=False)
    moves(lambda a: np.diag(sl.schur(a, output="complex")[0]), a, nested=False)


@pytest.mark.parametrize("shift", [0.0, 2.0], ids=["pairs", "sorted"])
def test_real_schur_forms(shift):
    a = sl.block_diag([[1.0, 2.0], [-3.0, 1.0]], 4.0, [[2.0, 1.0], [-0.5, 2.0]]) + 0.3 * matrix(
        7, 5
    )  # LAPACK jumps not near here
    sort = {"sort": "lhp"} if shift else {}
    moves(lambda a: squares(sl.schur(a, **sort)[:2]), a - shift * np.eye(5), tolerance=1e-5)


def test_an_order_of_schur_forms_by_a_differentiated_threshold():
    a = np.array([[0.0, 2.0, 2.0], [0.0, 1.0, 2.0], [1.0, 0.0, 1.0]])

    def f(c, a):
        t, _, count = sl.schur(a, output="complex", sort=lambda x: x.real > c)
        return count * c * c + np.real(t[2, 2])

    assert plaingrad.jvp(lambda c: f(c, a), (1.5,), (1.0,))[1] == plaingrad.grad(f)(1.5, a) == 3.0
    moves(f, np.array(1.5), a, nested=False)


def test_a_complex_schur_form_where_its_phases_do_not_matter():
    a, d = matrix(1, 4), matrix(2, 4)

    def f(a):
        t, z = sl.schur(a, output="complex")
        return np.sum(np.real(z @ np.triu(t @ t) @ z.conj().T) * np.cos(np.arange(16.0).reshape(4, 4)))

    h = 1e-6
    assert np.sum(plaingrad.grad(f)(a) * d) == pytest.approx(
        (f(a + h * d) - f(a - h * d)) / (2 * h), rel=1e-5
    )
    with pytest.raises(MissingRuleError, match="phases"):
        plaingrad.grad(lambda a: np.sum(np.real(sl.schur(a, output="complex")[1])))(a)


@both
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)], ids=str)
@pytest.mark.parametrize("side", ["right", "left"])
def test_polar(c, shape, side):
    moves(lambda a: sl.polar(a, side), matrix(1, *shape, c))


def test_polar_and_procrustes_where_singular_values_are_equal():
    moves(sl.polar, np.eye(3))
    moves(lambda a, b: sl.orthogonal_procrustes(a, b), np.eye(4)[:, :3], np.eye(4)[:, :3] + 0.0)
    moves(lambda a, b: sl.orthogonal_procrustes(a, b), matrix(1, 6, 3, True), matrix(2, 6, 3, True))


@both
def test_angles_between_spaces(c):
    for m, n in ((2, 3), (3, 2), (1, 1)):
        moves(sl.subspace_angles, matrix(1, 6, m, c), matrix(2, 6, n, c))


def projection(q):
    return q @ q.conj().T


@both
@pytest.mark.parametrize("space", [
    lambda a: sl.null_space(a), lambda a: sl.orth(a.T), lambda a: sl.qr(a.T)[0][:, 2:], lambda a: sl.svd(a)[2][2:].conj().T,
], ids=["null_space", "orth", "qr", "svd"])  # fmt: skip
def test_what_depends_on_a_space_only_is_determined(c, space):
    a, d = matrix(1, 2, 4, c), matrix(2, 2, 4, c)
    weights = np.cos(np.arange(16.0).reshape(4, 4))

    def f(a):
        return np.sum(weights * np.real(projection(space(a))))

    h = 1e-6
    expected = (f(a + h * d) - f(a - h * d)) / (2 * h)
    assert np.sum(np.real(np.conj(plaingrad.grad(f)(a)) * d)) == pytest.approx(expected, rel=1e-6)


@both
@pytest.mark.parametrize(
    "basis",
    [lambda a: sl.null_space(a), lambda a: sl.qr(a.T)[0][:, 2:], lambda a: sl.svd(a)[2][2:]],
    ids=["null_space", "qr", "svd"],
)
def test_a_basis_that_is_not_determined_is_refused(c, basis):
    with pytest.raises(MissingRuleError, match="determined"):
        plaingrad.grad(lambda a: np.sum(np.real(basis(a))))(matrix(1, 2, 4, c))


def test_forward_mode_knows_no_basis():
    a = matrix(1, 2, 4)
    with pytest.raises(MissingRuleError, match="null_space"):
        plaingrad.jvp(sl.null_space, (a,), (a,))
    assert np.isnan(plaingrad.jvp(lambda a: sl.qr(a.T)[0], (a,), (a[::-1],))[1][:, 2:]).all()
    moves(lambda a: sl.null_space(a) ** 2, matrix(1, 3, 4))  # one vector is determined but for its sign


@pytest.mark.skipif(not NEW, reason="this SciPy takes no batches")
def test_batches():
    a = np.stack([positive(1, 3), positive(2, 3)])
    for f in (
        lambda a: sl.cholesky(a),
        lambda a: sl.lu(a)[1:],
        lambda a: sl.qr(a),
        lambda a: squares(sl.eigh(a)),
        lambda a: sl.svdvals(a),
        lambda a: sl.polar(a),
        lambda a: sl.schur(a)[0][..., 0, 0],
    ):
        moves(f, a, nested=False)
    moves(lambda a, b: squares(sl.eigh(a, b)), a, positive(3, 3), nested=False)
    moves(lambda d, e: sl.eigh_tridiagonal(d, e)[0], a[:, 0], a[0, :1, :2], nested=False)


@pytest.mark.parametrize("name", ["qr", "rq", "svd", "qr_insert"])
def test_the_only_column_that_completes_a_basis_moves(name):
    """It is determined but for its sign; forwards it was nan."""
    tall = np.cos(np.arange(12.0) ** 1.3).reshape(4, 3)
    functions = {
        "qr": (sl.qr, tall), "rq": (sl.rq, tall.T), "svd": (sl.svd, tall),
        "qr_insert": (lambda a: sl.qr_insert(*sl.qr(a), a[0] * a[1], 1), tall[:3]),
    }  # fmt: skip
    f, x = functions[name]
    v = np.sin(2.0 + np.arange(float(x.size))).reshape(x.shape)
    tangents = plaingrad.jvp(f, (x,), (v,))[1]
    h = 1e-5
    for tangent, above, below in zip(tangents, f(x + h * v), f(x - h * v), strict=True):
        np.testing.assert_allclose(tangent, (above - below) / (2 * h), atol=1e-7)
