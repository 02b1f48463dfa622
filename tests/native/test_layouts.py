"""Arrays that do not lie in C order, that may be views, or that a function writes into by position."""


import numpy as np
import pytest

import plaingrad

numba = pytest.importorskip("numba")

from plaingrad.native.runtime import workspace  # noqa: E402
from tests.native import comparison  # noqa: E402
from tests.native.uncompiled import check  # noqa: E402

RNG = np.random.default_rng(11)
SQUARE = np.asfortranarray(RNG.normal(size=(4, 4)))


def overwritten(x, m):
    for k in range(2):
        if k > 0:
            m += x
        m[1:3, ::2] = x
    return np.sum(m * m)


def test_compiled_shadows_of_arrays_in_fortran_order_are_kept_as_they_lie():
    value, found = comparison.gradient(overwritten, (1.3, SQUARE.copy(order="F")), (0, 1), compiled=True)
    wanted_value, wanted = plaingrad.value_and_grad(overwritten, (0, 1), tier="plain")(
        1.3, SQUARE.copy(order="F")
    )
    comparison.assert_close((value, found), (wanted_value, wanted), 1e-12, "gradient")


def written_recursively(m, n):
    if n == 0:
        return np.sum(m * m)
    m[n, ::2] = m[0, ::2] * m[n, 1]
    return written_recursively(m, n - 1) * m[1, 2]


def test_compiled_shadows_in_fortran_order_are_kept_by_functions_that_call_themselves():
    value, found = comparison.gradient(written_recursively, (SQUARE.copy(order="F"), 3), (0,), compiled=True)
    wanted = plaingrad.value_and_grad(written_recursively, (0,), tier="plain")(SQUARE.copy(order="F"), 3)
    comparison.assert_close((value, found), wanted, 1e-12, "gradient")


def turned(x):
    y = x.copy()
    z = np.asfortranarray(y)  # the same memory, of a vector
    z[1] = x[0] ** 2
    return np.sum(y * x * x)


def column_by_column(m):
    w = m.copy()
    total = 0.0
    for k in range(w.shape[1] - 1):
        z = np.ascontiguousarray(w[:, k])
        w[:, k + 1] = z * z
        total += np.sum(z * z * z)
    return total + np.sum(w)


@pytest.mark.parametrize(
    ("f", "x"), [(turned, RNG.normal(size=4)), (column_by_column, RNG.normal(size=(3, 3)))]
)
def test_what_may_be_the_same_memory_in_another_order(f, x):
    check(f, x)


def written_through_a_column(m):
    z = np.ascontiguousarray(m[:, 0])
    z[0] = m[1, 0] ** 2
    return np.sum(m * m)


def test_a_column_that_turns_out_to_be_contiguous_is_refused_where_it_is_written():
    check(written_through_a_column, RNG.normal(size=(3, 3)))
    with pytest.raises(plaingrad.NativeError, match="overlapping view"):
        comparison.gradient(written_through_a_column, (RNG.normal(size=(3, 1)),), (0,))


def product_into(a, b):
    out = np.empty((3, 2))
    np.dot(a, b, out)
    return out[1, 1] * out[0, 0]


def clipped_into(a, b):
    out = np.empty(a.shape)
    np.clip(a, -0.5, 0.5, out)
    return np.sum(out * out)


def rounded_into(a, b):
    out = a.copy()
    np.round(a, 1, out)
    return np.sum(out * a)


def made_finite(a, b):
    out = a * 2.0
    np.nan_to_num(out, copy=False)
    return np.sum(out * a)


def exponential_into(a, b):
    out = np.empty(a.shape)
    z = np.exp(a, out)
    return np.sum(z * out)


@pytest.mark.parametrize("f", [product_into, clipped_into, rounded_into, made_finite, exponential_into])
def test_an_array_that_is_written_as_an_argument_given_by_position_is_refused(f):
    args = RNG.normal(size=(3, 4)), RNG.normal(size=(4, 2))
    numba.njit(f)(*args)
    with pytest.raises(plaingrad.NativeError, match="which writes into an array"):
        plaingrad.grad(f, tier="native")(*args)


def limited(u, c, steps):
    for _ in range(steps):
        slopes = np.zeros(u.size)
        for i in range(1, u.size - 1):
            slopes[i] = max(u[i] - u[i - 1], u[i + 1] - u[i])
        v = u.copy()
        for i in range(1, u.size - 1):
            v[i] = u[i] - c * (slopes[i] - slopes[i - 1])
        u = v
    return np.sum(u**2)


def test_compiled_an_array_of_a_stencil_may_be_made_with_a_length_for_its_shape():
    u = RNG.normal(size=20)
    value, found = plaingrad.value_and_grad(limited, (0, 1), tier="native")(u, 0.3, 3)
    assert value == numba.njit(limited)(u, 0.3, 3)
    comparison.assert_close(
        found, plaingrad.grad(limited, (0, 1), tier="plain")(u, 0.3, 3), 1e-12, "gradient"
    )


@numba.njit
def with_lead(arena, n):
    return workspace.room_from(arena, n, np.float64, 3).shape


def test_rooms_with_a_lead_take_a_length_as_a_shape():
    assert with_lead(workspace.Arena().header, 7) == (7,)


def written_by_a_flat_view(a):
    flat = a.T.ravel()
    flat[1] = flat[0] * flat[2]
    return np.sum(a * a * a)


def new_and_written_by_a_flat_view(a):
    b = np.asfortranarray(a * a)
    flat = b.T.ravel()
    flat[1] = flat[0] * flat[2]
    return np.sum(b * b * b * a)


def read_by_a_flat_view(a):
    flat = np.ravel(a.T)
    return np.sum(flat * flat * flat * np.arange(flat.size))


def in_fortran_order(x):
    return np.array(x, order="F")


FLAT_VIEWS = [written_by_a_flat_view, new_and_written_by_a_flat_view, read_by_a_flat_view]
BY_ROWS = np.arange(6.0).reshape(2, 3) ** 1.2 + 0.5
ALONG = np.cos(np.arange(6.0)).reshape(2, 3)
OPERATORS = {
    "grad": lambda f, a, tier: plaingrad.grad(f, tier=tier)(a),
    "jacobian": lambda f, a, tier: plaingrad.jacobian(f, tier=tier, mode="forward")(a),
    "hessian": lambda f, a, tier: plaingrad.hessian(f, tier=tier)(a),
    "hvp": lambda f, a, tier: plaingrad.hvp(f, (a,), (ALONG,), tier=tier)[0],
    "jvp": lambda f, a, tier: plaingrad.jvp(f, (a,), (ALONG,), tier=tier)[1],
    "vjp": lambda f, a, tier: plaingrad.vjp(f, a, tier=tier)[1](1.0)[0],
}


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("f", FLAT_VIEWS, ids=lambda f: f.__name__)
def test_a_flat_view_of_an_array_in_fortran_order_is_one_of_its_derivative(f, operator):
    """The flat view of the transpose is memory of the array where it lies in Fortran order, and a copy elsewhere."""
    found, wanted = (OPERATORS[operator](f, in_fortran_order(BY_ROWS), tier) for tier in ("native", "plain"))
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)
    if operator == "grad":
        h = 1e-6
        above, below = (f(in_fortran_order(BY_ROWS + d * ALONG)) for d in (h, -h))
        np.testing.assert_allclose(np.sum(found * ALONG), (above - below) / (2 * h), rtol=1e-8)


def test_programs_run_again_on_copies_see_arrays_in_their_order():
    """The Hessian's program runs on copies, which are views where the arrays were."""

    def f(a):
        part = a[::1]
        part[0, 0] = part[0, 1] ** 2
        return np.sum(a * a * a)

    wide = np.arange(12.0).reshape(2, 6) + 1.0
    for a in (wide[:, ::2], wide.T[::2].T, wide[:, :3].copy(order="F")):
        found, expected = (plaingrad.hessian(f, tier=tier)(a.copy(order="K")) for tier in ("native", "plain"))
        np.testing.assert_allclose(found, expected, rtol=1e-13)
        np.testing.assert_allclose(plaingrad.hessian(f, tier="native")(a), expected, rtol=1e-13)


def row_into_column(m):
    m[:, 2] = m[1]
    return np.sum(m * m)


@pytest.mark.usefixtures("machine_code")
def test_numba_assigns_a_row_to_a_column_as_if_it_were_copied():
    m, direction = SQUARE.copy(), RNG.normal(size=SQUARE.shape)
    copied = m.copy()
    copied[:, 2] = m[1]
    expected = 2.0 * copied
    expected[:, 2] = 0.0
    expected[1] += 2.0 * copied[:, 2]
    value, (found,) = comparison.gradient(row_into_column, (m.copy(),), (0,), compiled=True)
    comparison.assert_close((value, found), (np.sum(copied**2), expected), 1e-12, "gradient")
    _, along = plaingrad.jvp(row_into_column, (m.copy(),), (direction,), tier="native")
    comparison.assert_close(along, np.sum(expected * direction), 1e-12, "tangent")


def test_run_by_cpython_it_is_refused_where_numpy_overwrites_what_it_has_not_read():
    with pytest.raises(plaingrad.NativeError, match="shares elements"):
        comparison.gradient(row_into_column, (SQUARE.copy(),), (0,))
    with pytest.raises(plaingrad.NativeError, match="shares elements"):
        comparison.pushed_forward(row_into_column, (SQUARE[::-1].copy()[::-1],), (0,), [np.ones(SQUARE.shape)])
