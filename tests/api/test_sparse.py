"""Sparse Jacobians and Hessians against closed forms, and against the dense ones of other modes."""

import math
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sampling import count

import plaingrad
from plaingrad import grad, hessian, jacobian, sparse_hessian, sparse_jacobian, sparsity

sparse = pytest.importorskip("scipy.sparse")


class Counted:
    """A function that counts its calls."""

    def __init__(self, f):
        self.f = f
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        return self.f(x)


def reaction(u):
    """Diffusion and u^2, with one-sided ends."""
    r = np.empty_like(u)
    r[1:-1] = u[2:] - 2.0 * u[1:-1] + u[:-2] + u[1:-1] ** 2
    r[0] = u[0] - u[1]
    r[-1] = u[-1] ** 3 - u[-2]
    return r


def reaction_jacobian(u):
    main, above, below = -2.0 + 2.0 * u, np.ones(len(u) - 1), np.ones(len(u) - 1)
    main[0], above[0] = 1.0, -1.0
    main[-1], below[-1] = 3.0 * u[-1] ** 2, -1.0
    return sparse.csr_array(sparse.diags([below, main, above], [-1, 0, 1]))


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def rosenbrock_hessian(x):
    main = np.zeros(len(x))
    main[:-1] = 1200.0 * x[:-1] ** 2 - 400.0 * x[1:] + 2.0
    main[1:] += 200.0
    return sparse.csr_array(sparse.diags([-400.0 * x[:-1], main, -400.0 * x[:-1]], [-1, 0, 1]))


def largest(a):
    return abs(a).max() if a.nnz else 0.0


# -- acceptance ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["auto", "forward"])
def test_a_tridiagonal_jacobian_of_size_100_000_takes_three_sweeps(mode):
    u = np.linspace(-1.0, 2.0, 100_000)
    f = Counted(reaction)
    found = sparse_jacobian(f, u, mode=mode, chunk_size=1)
    assert f.calls == 1 + 3  # one for the pattern
    assert found.nnz == 3 * len(u) - 2
    assert largest(found - reaction_jacobian(u)) <= 1e-14
    f.calls = 0
    again = sparse_jacobian(f, u, pattern=found, mode=mode, check=False)
    assert f.calls == 1  # three directions together
    assert largest(again - found) == 0.0


def test_a_tridiagonal_jacobian_by_rows_is_the_same():
    u = np.linspace(-1.0, 2.0, 1000)
    f = Counted(reaction)
    found = sparse_jacobian(f, u, mode="reverse")
    assert f.calls == 1 + 1  # one for the pattern, one recorded and pulled back three times
    assert largest(found - reaction_jacobian(u)) <= 1e-14


def test_the_hessian_of_the_chained_rosenbrock_function_of_10_000():
    x = np.random.default_rng(1).standard_normal(10_000)
    f = Counted(rosenbrock)
    found = sparse_hessian(f, x, chunk_size=1)
    assert f.calls == 1 + 3
    assert largest(found - rosenbrock_hessian(x)) <= 1e-9
    assert largest(found - found.T) == 0.0


def test_the_hessian_of_rosenbrock_in_a_loop_over_numbers():
    def looped(x):
        total = 0.0
        for k in range(len(x) - 1):
            total = total + 100.0 * (x[k + 1] - x[k] ** 2) ** 2 + (1.0 - x[k]) ** 2
        return total

    x = np.random.default_rng(2).standard_normal(40)
    found = sparse_hessian(looped, x)
    assert largest(found - rosenbrock_hessian(x)) <= 1e-9
    assert found.nnz == 3 * 40 - 2


def test_the_hessian_of_an_arrow_takes_two_sweeps():
    def f(x):
        return np.sum(x[0] * x[1:] ** 2) + x[0] ** 3

    f = Counted(f)
    x = np.random.default_rng(3).standard_normal(200)
    found = sparse_hessian(f, x, chunk_size=1)
    assert f.calls == 1 + 2
    expected = np.diag(np.concatenate([[6.0 * x[0]], np.full(199, 2.0 * x[0])]))
    expected[0, 1:] = expected[1:, 0] = 2.0 * x[1:]
    assert np.allclose(found.toarray(), expected, rtol=1e-13)
    assert found.nnz == 3 * 200 - 2


def test_a_jacobian_with_a_dense_row_and_a_dense_column_takes_three_sweeps():
    def f(x):
        y = x[0] * x
        y[0] = x @ x
        return y

    n = 300
    x = np.random.default_rng(5).standard_normal(n)
    expected = np.diag(np.full(n, x[0]))
    expected[:, 0], expected[0] = x, 2.0 * x
    f = Counted(f)
    found = sparse_jacobian(f, x, chunk_size=1)
    assert f.calls <= 1 + 3
    assert np.allclose(found.toarray(), expected, rtol=1e-14)
    assert np.array_equal(sparse_jacobian(f, x, found).toarray(), found.toarray())
    for mode in ("forward", "reverse"):
        assert np.allclose(sparse_jacobian(f, x, mode=mode).toarray(), expected, rtol=1e-14)


@pytest.mark.parametrize("mode, calls", [("forward", 1 + 2), ("reverse", 1 + 1)])
def test_a_preferred_mode_is_taken(mode, calls):
    f = Counted(lambda x: x[1:] * x[:-1])
    sparse_jacobian(plaingrad.prefer_mode(mode)(f), np.ones(5), chunk_size=1)
    assert f.calls == calls


# -- sparse polynomials with exact derivatives -----------------------------------------------------------------------


@st.composite
def polynomials(draw):
    """A list of polynomials, each a list of (coefficient, {variable: power})."""
    n = draw(st.integers(1, 7))
    rows = []
    for _ in range(draw(st.integers(1, 6))):
        terms = []
        for _ in range(draw(st.integers(0, 3))):
            powers = draw(st.dictionaries(st.integers(0, n - 1), st.integers(1, 3), max_size=3))
            terms.append((draw(st.sampled_from([-2.0, 0.5, 3.0])), powers))
        rows.append(terms)
    x = np.array(draw(st.lists(st.integers(-30, 30).map(lambda k: k / 16.0), min_size=n, max_size=n)))
    return rows, x


def evaluated(terms, x):
    total = 0.0
    for coefficient, powers in terms:
        product = coefficient
        for k, power in powers.items():
            product = product * x[k] ** power
        total = total + product
    return total


def differentiated(terms, k):
    found = []
    for coefficient, powers in terms:
        if k in powers:
            rest = {**powers, k: powers[k] - 1}
            found.append((coefficient * powers[k], {j: p for j, p in rest.items() if p}))
    return found


@given(polynomials())
@settings(max_examples=count(25, 60), deadline=None)
def test_jacobians_of_random_sparse_polynomials(case):
    rows, x = case

    def f(x):
        y = np.zeros(len(rows))
        for k, terms in enumerate(rows):
            y[k] = evaluated(terms, x)
        return y

    expected = np.array([[evaluated(differentiated(terms, k), x) for k in range(len(x))] for terms in rows])
    entries = np.array([[any(k in powers for _, powers in terms) for k in range(len(x))] for terms in rows])
    assert np.array_equal(sparsity(f, x).toarray(), entries)
    for mode in ("auto", "forward", "reverse"):
        found = sparse_jacobian(f, x, mode=mode)
        assert np.allclose(found.toarray(), expected, rtol=1e-12, atol=1e-12)
        assert found.nnz == entries.sum()


@given(polynomials())
@settings(max_examples=count(25, 60), deadline=None)
def test_hessians_of_random_sparse_polynomials(case):
    rows, x = case
    terms = [term for row in rows for term in row]

    def f(x):
        return x[0] * 0.0 + evaluated(terms, x)

    n = len(x)
    second = [[differentiated(differentiated(terms, j), k) for k in range(n)] for j in range(n)]
    expected = np.array([[evaluated(second[j][k], x) for k in range(n)] for j in range(n)])
    found = sparse_hessian(f, x)
    assert np.allclose(found.toarray(), expected, rtol=1e-11, atol=1e-11)
    allowed = sparsity(f, x, of="hessian").toarray()
    assert not np.any(expected[~allowed])
    assert np.array_equal(allowed, allowed.T)


def test_the_pattern_of_a_hessian_leaves_out_what_is_linear():
    def f(x):
        return np.sin(x[0]) * x[1] + 3.0 * x[2] + x[3] * x[4] * 2.0 + x[5:] @ np.arange(3.0)

    expected = np.zeros((8, 8), int)
    for j, k in ((0, 0), (0, 1), (3, 4)):
        expected[j, k] = expected[k, j] = 1
    assert np.array_equal(sparsity(f, np.ones(8), of="hessian").toarray(), expected)
    assert np.allclose(sparse_hessian(f, np.ones(8)).toarray(), hessian(f)(np.ones(8)))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sum(np.exp(x[1:] * x[:-1])),
        lambda x: np.log(np.sum(np.exp(x))),
        lambda x: np.sum(np.cumsum(x) ** 2),
        lambda x: x[[0, 2, 2]] @ x[[1, 1, 3]],
        lambda x: np.linalg.det(x[:4].reshape(2, 2)) + x[4] ** 2,
        lambda x: sum(math.sin(v) for v in x.tolist()),
        lambda x: np.where(x > 0.5, x**3, x**2).sum(),
        lambda x: float(np.prod(x[:3])) / x[4],
        lambda x: np.sum((np.diff(x) / x[1:]) ** 2),
        lambda x: np.einsum("i,ij,j", x, np.diag(np.arange(5.0)), x),
    ],
)
def test_hessians_are_those_of_dense_second_derivatives(f):
    x = np.array([0.7, 1.3, 0.4, 2.2, 0.9])
    assert np.allclose(sparse_hessian(f, x).toarray(), hessian(f)(x), rtol=1e-10, atol=1e-12)


# -- arguments and results of every structure ------------------------------------------------------------------------


def test_columns_are_the_numbers_of_a_structure_in_order_and_rows_those_of_the_result():
    p = {"a": 2.0, "w": np.array([[1.0, 2.0], [3.0, 4.0]]), "rest": [5.0]}

    def f(p):
        return [p["w"][:, 0] * p["a"], p["rest"][0] ** 2, "text"]

    found = sparse_jacobian(f, p)
    expected = [[1.0, 2.0, 0, 0, 0, 0], [3.0, 0, 0, 2.0, 0, 0], [0, 0, 0, 0, 0, 10.0]]
    assert found.toarray().tolist() == expected
    assert np.array_equal(sparsity(f, p).toarray(), np.array(expected) != 0)
    for mode in ("forward", "reverse"):
        assert sparse_jacobian(f, p, mode=mode).toarray().tolist() == expected


def test_objects_and_numbers():
    class Model:
        def __init__(self):
            self.rate, self.state = 3.0, np.array([1.0, 2.0])

    def energy(m):
        return m.rate * m.state[0] ** 2 + m.state[1]

    assert sparse_hessian(energy, Model()).toarray().tolist() == [[0, 2.0, 0], [2.0, 6.0, 0], [0, 0, 0]]
    assert sparse_jacobian(lambda x: x**3, 2.0).toarray().tolist() == [[12.0]]
    assert sparse_jacobian(lambda x: x * 2.0, 3).toarray().tolist() == [[2.0]]  # an int is taken as a real
    assert sparse_hessian(lambda x: x**3, 2.0).toarray().tolist() == [[12.0]]


def test_arrays_of_any_shape_and_layout():
    x = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    expected = jacobian(lambda x: x.T * x[0, 0])(x).reshape(6, 6)
    assert np.allclose(sparse_jacobian(lambda x: x.T * x[0, 0], x).toarray(), expected)
    assert sparse_jacobian(lambda x: x * x, np.array(3.0)).toarray().tolist() == [[6.0]]
    assert sparse_jacobian(lambda x: x * 2.0, np.arange(3)).toarray().tolist() == (2.0 * np.eye(3)).tolist()


def test_single_precision_stays_single():
    x = np.linspace(0.1, 1.0, 50, dtype=np.float32)
    for mode in ("forward", "reverse"):
        found = sparse_jacobian(lambda x: np.sin(x[1:]) * x[:-1], x, mode=mode)
        assert found.dtype == np.float32
        expected = jacobian(lambda x: np.sin(x[1:]) * x[:-1])(x)
        assert np.allclose(found.toarray(), expected, rtol=1e-6)
        again = sparse_jacobian(lambda x: np.sin(x[1:]) * x[:-1], x, pattern=found, mode=mode)
        assert np.array_equal(again.toarray(), found.toarray())


def test_results_without_entries():
    for f in (lambda x: np.zeros(3), lambda x: np.round(x[:3]), lambda x: np.zeros(0)):
        found = sparse_jacobian(f, np.ones(4))
        assert found.shape == (len(f(np.ones(4))), 4)
        assert found.nnz == 0
    assert sparse_jacobian(lambda x: x * 2.0, np.zeros(0)).shape == (0, 0)
    assert sparse_hessian(lambda x: x.sum(), np.ones(4)).nnz == 0
    assert sparse_hessian(lambda x: x.sum(), np.ones(4), chunk_size=1).shape == (4, 4)


def test_the_indices_are_sorted_and_zeros_in_the_pattern_are_kept():
    found = sparse_jacobian(lambda x: np.array([x[2] * 0.0, x[1] * x[0]]), np.array([0.0, 3.0, 1.0]))
    assert found.has_sorted_indices and found.has_canonical_format
    assert found.nnz == 3
    assert found.indices.tolist() == [2, 0, 1]
    assert found.data.tolist() == [0.0, 3.0, 0.0]
    assert isinstance(found, sparse.csr_array)


# -- patterns that are given -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        lambda p: p.toarray(),
        lambda p: p.tocoo(),
        lambda p: sparse.csc_matrix(p),
        lambda p: p.astype(float),
        lambda p: sparse.csr_array(np.ones(p.shape)),  # wider than it need be
        lambda p: p.toarray().tolist(),
    ],
)
@pytest.mark.parametrize("mode", ["auto", "forward", "reverse"])
def test_a_pattern_may_be_given_in_any_form(given, mode):
    u = np.linspace(0.5, 1.0, 9)
    found = sparse_jacobian(reaction, u, given(sparsity(reaction, u)), mode=mode)
    assert np.allclose(found.toarray(), reaction_jacobian(u).toarray(), rtol=1e-14)
    found = sparse_hessian(rosenbrock, u, given(sparsity(rosenbrock, u, of="hessian")))
    assert np.allclose(found.toarray(), rosenbrock_hessian(u).toarray(), rtol=1e-12)


def test_half_of_the_pattern_of_a_hessian_will_do():
    u = np.linspace(0.5, 1.0, 9)
    half = sparse.triu(sparsity(rosenbrock, u, of="hessian").astype(float))
    assert np.allclose(sparse_hessian(rosenbrock, u, half).toarray(), rosenbrock_hessian(u).toarray(), rtol=1e-12)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_a_pattern_that_leaves_out_an_entry_is_an_error(mode):
    u = np.linspace(0.5, 1.0, 30)
    whole = sparsity(reaction, u).toarray()
    for row, column in ((0, 1), (7, 7), (29, 28)):
        missing = whole.copy()
        missing[row, column] = False
        with pytest.raises(plaingrad.PatternError, match="leaves out nonzero entries"):
            sparse_jacobian(reaction, u, missing, mode=mode)
        sparse_jacobian(reaction, u, missing, mode=mode, check=False)  # as the caller wishes


def test_a_hessian_pattern_that_leaves_out_an_entry_is_an_error():
    u = np.linspace(0.5, 1.0, 30)
    with pytest.raises(plaingrad.PatternError):
        sparse_hessian(rosenbrock, u, np.eye(30))


def test_a_pattern_from_another_branch_is_an_error():
    def f(x):
        return x * x if x[0] > 0.0 else x * x[::-1]

    pattern = sparsity(f, np.ones(4))
    assert np.array_equal(pattern.toarray(), np.eye(4, dtype=bool))
    sparse_jacobian(f, 2.0 * np.ones(4), pattern)
    with pytest.raises(plaingrad.PatternError, match="at this x"):
        sparse_jacobian(f, -np.ones(4), pattern)


@pytest.mark.parametrize("bad", [np.ones((3, 5)), np.ones((4, 4)), np.ones(4), "text", sparse.csr_array((2, 3))])
def test_a_pattern_of_another_shape_is_refused(bad):
    with pytest.raises(plaingrad.ArgumentError, match="pattern"):
        sparse_jacobian(lambda x: x[1:] * x[:-1], np.ones(4), bad)
    with pytest.raises(plaingrad.ArgumentError, match="pattern"):
        sparse_hessian(lambda x: x @ x, np.ones(6), bad)


# -- refusals --------------------------------------------------------------------------------------------------------


def test_complex_numbers_are_refused():
    for f in (sparsity, sparse_jacobian):
        with pytest.raises(plaingrad.ArgumentError, match="complex"):
            f(lambda z: z, np.ones(3, complex))
        with pytest.raises(plaingrad.ArgumentError, match="complex"):
            f(lambda x: x * 1j, np.ones(3))
    with pytest.raises(plaingrad.ArgumentError, match="complex"):
        sparse_hessian(lambda z: abs(z[0]), np.ones(3, complex))


def test_arguments_and_results_without_numbers_are_refused():
    for f in (sparsity, sparse_jacobian):
        with pytest.raises(plaingrad.ArgumentError):
            f(lambda x: x, "text")
        with pytest.raises(plaingrad.ArgumentError):
            f(lambda x: None, np.ones(3))
    with pytest.raises(plaingrad.NonScalarOutputError):
        sparse_hessian(lambda x: x, np.ones(3))
    with pytest.raises(plaingrad.NonScalarOutputError):
        sparsity(lambda x: x, np.ones(3), of="hessian")
    for bad in ({"mode": "sideways"}, {"chunk_size": 0}, {"chunk_size": 1.5}):
        with pytest.raises(plaingrad.ArgumentError):
            sparse_jacobian(lambda x: x, np.ones(3), **bad)
    with pytest.raises(plaingrad.ArgumentError):
        sparsity(lambda x: x, np.ones(3), of="gradient")


def test_code_without_a_rule_is_refused_by_name():
    with pytest.raises(plaingrad.MissingRuleError):
        sparsity(lambda x: np.packbits(x.view(np.uint8)), np.ones(3))


def test_errors_of_the_function_are_its_own():
    def f(x):
        raise KeyError("mine")

    for ask in (sparsity, sparse_jacobian, sparse_hessian):
        with pytest.raises(KeyError, match="mine"):
            ask(f, np.ones(3))


def test_without_scipy_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    for ask in (sparsity, sparse_jacobian, sparse_hessian):
        with pytest.raises(ImportError, match=r"plaingrad\[scipy\]"):
            ask(lambda x: x @ x, np.ones(3))


# -- side effects, nesting, threads ----------------------------------------------------------------------------------


def test_an_argument_is_left_as_one_plain_call_would_leave_it():
    def f(x):
        x *= 2.0
        x[0] = x[1] * x[2]
        return x[1:] * x[:-1]

    for ask in (
        sparsity,
        lambda f, x: sparse_jacobian(f, x, chunk_size=1),
        lambda f, x: sparse_jacobian(f, x, mode="reverse"),
        lambda f, x: sparse_hessian(lambda x: f(x).sum(), x, chunk_size=1),
        lambda f, x: sparse_jacobian(f, x, np.ones((3, 4)), check=True),
    ):
        x, plain = np.arange(1.0, 5.0), np.arange(1.0, 5.0)
        f(plain)
        ask(f, x)
        assert np.array_equal(x, plain)
    x = np.arange(1.0, 5.0)
    assert np.allclose(sparse_jacobian(f, x.copy()).toarray(), jacobian(f)(x.copy()))


def test_called_twice_the_result_is_the_same():
    u = np.linspace(0.0, 1.0, 20)
    one, two = sparse_jacobian(reaction, u), sparse_jacobian(reaction, u)
    assert np.array_equal(one.toarray(), two.toarray())
    one.data[:] = 0.0
    one.indices[:] = 0  # the caller may do with it as they like
    assert np.array_equal(sparse_jacobian(reaction, u).toarray(), two.toarray())


def test_colourings_are_kept_within_bounds(monkeypatch):
    from plaingrad.api import kept_colourings as door

    monkeypatch.setattr(door, "KEPT", 20_000)
    for n in range(20, 60):
        sparse_jacobian(reaction, np.linspace(0.0, 1.0, n))
    kept = list(door._colourings.values())
    assert 1 <= len(kept) < 40
    assert sum(map(door.size_of, kept)) <= 20_000
    sparse_jacobian(reaction, np.linspace(0.0, 1.0, 1000))
    assert len(door._colourings) == 1


def test_the_jacobian_of_a_gradient_is_the_hessian():
    x = np.linspace(0.5, 1.5, 8)
    assert np.allclose(sparse_jacobian(grad(rosenbrock), x).toarray(), rosenbrock_hessian(x).toarray(), rtol=1e-12)


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse"])
def test_the_entries_may_be_differentiated(mode):
    x = np.array([0.3, 0.8, 1.7, 0.6])

    def f(x):
        entries = sparse_jacobian(lambda v: v[1:] ** 2 * v[:-1], x, mode=mode)
        return np.sum(entries.data**2)

    def dense(x):  # entries v1^2 and 2 v0 v1 for each pair
        return np.sum(x[1:] ** 4) + np.sum(4.0 * x[:-1] ** 2 * x[1:] ** 2)

    assert np.allclose(grad(f)(x), grad(dense)(x), rtol=1e-12)


def test_the_entries_depend_on_what_the_function_closes_over():
    def f(scale):
        return np.sum(sparse_hessian(lambda v: np.sum(v[1:] * v[:-1]) * scale**2, np.ones(4)).data)

    assert math.isclose(f(3.0), 6 * 9.0)
    assert math.isclose(grad(f)(3.0), 6 * 2 * 3.0, rel_tol=1e-12)


def test_a_product_with_entries_that_depend_on_an_outer_input():
    def f(x):
        return np.sum(sparse_jacobian(lambda v: v**3, x) @ np.arange(3.0))

    x = np.array([1.0, 2.0, 3.0])
    assert f(x) == 12.0 + 2 * 27.0
    assert np.array_equal(grad(f)(x), 6.0 * x * np.arange(3.0))


def test_a_pattern_may_be_looked_at_inside_a_differentiated_function():
    def f(x):
        pattern = sparsity(lambda v: v[1:] * v[:-1], x)
        return np.sum(x) * pattern.nnz

    assert np.array_equal(grad(f)(np.ones(4)), np.full(4, 6.0))


def test_sparsity_of_a_function_that_takes_jacobians_itself():
    def f(x):
        return np.diag(jacobian(lambda v: v**2)(x)) * x[0]

    assert sparsity(f, np.ones(3)).toarray().astype(int).tolist() == [[1, 0, 0], [1, 1, 0], [1, 0, 1]]


def test_functions_of_plaingrad_inside_keep_the_pattern():
    def pairs(v):
        return v[1:] * v[:-1]

    x = np.array([0.5, 1.5, 2.5, 3.5])
    expected = sparsity(pairs, x).toarray()
    for f in (
        lambda x: plaingrad.checkpoint(pairs, x),
        lambda x: plaingrad.hook(lambda bar: 2.0 * bar, pairs(x)),
        lambda x: plaingrad.jvp(lambda v: pairs(v) ** 2, (x,), (np.ones(4),))[1],
        lambda x: plaingrad.forwarddiff(pairs, x),
    ):
        assert np.array_equal(sparsity(f, x).toarray(), expected)
    assert np.array_equal(sparsity(lambda x: plaingrad.stop_gradient(x) * x[0], x).toarray()[:, 0], np.ones(4))
    assert sparsity(lambda x: plaingrad.stop_gradient(x) * x[0], x).nnz == 4
    chained = sparsity(lambda x: pairs(x).sum(), x, of="hessian").toarray()
    found = sparsity(lambda x: plaingrad.checkpoint(lambda v: pairs(v).sum(), x), x, of="hessian").toarray()
    assert np.array_equal(found, chained)


def test_rules_of_the_user_depend_on_all_their_arguments():
    def first(x, w):
        return x

    @plaingrad.rrule(first)
    def first_rrule(x, w):
        return x, lambda y_bar: (y_bar, float(np.sum(y_bar)) * np.ones_like(w))

    try:
        assert sparsity(lambda x: first(x[:2], x[2:]), np.ones(4)).toarray().all()
        found = sparse_jacobian(lambda x: first(x[:2], x[2:]), np.ones(4))
        assert found.toarray().tolist() == [[1, 0, 1, 1], [0, 1, 1, 1]]
    finally:
        plaingrad.remove_rule(first)


def test_many_threads_at_once():
    points = [np.linspace(0.1, 1.0 + k, 30 + k) for k in range(8)]
    found = [None] * 8

    def work(k):
        for _ in range(3):
            found[k] = sparse_jacobian(reaction, points[k]), sparse_hessian(rosenbrock, points[k])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, x in enumerate(points):
        assert largest(found[k][0] - reaction_jacobian(x)) <= 1e-13
        assert largest(found[k][1] - rosenbrock_hessian(x)) <= 1e-9
