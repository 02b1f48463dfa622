"""Functions of arrays that the compiled core differentiates by their rules, in every mode, against differences.

The same programs run where the core is not in use.
"""

import threading
import warnings

import numpy as np
import pytest

import plaingrad
from plaingrad import grad, hvp, jvp, linearize, value_and_grad, vjp

pytestmark = pytest.mark.usefixtures("collections_as_usual")

X = np.array([0.7, -1.2, 0.4, 1.9, -0.6, 1.1])
V = np.array([0.3, 1.0, -0.5, 0.2, 0.8, -1.1])
K = np.linspace(0.4, 1.7, 6)
PLACES = np.array([0, 3, 3, -1, 2, 0])
ROWS = np.linspace(-1.0, 1.3, 36).reshape(6, 6)
PROGRAMS = {}


def program(f):
    PROGRAMS[f.__name__] = f
    return f


@program
def joined(x):
    y = np.concatenate([x[2:], x[:2] * x[1]]) * x
    y = np.hstack([y[:1], np.ones(2), y[1:]]) ** 2
    m = np.vstack([y, y[::-1]]) + np.stack([y, 2.0 * y])
    return np.sum(np.column_stack([m[0], m[1] * y]) * 0.3) + np.sum(np.append(x, x * x))


@program
def joined_along_an_axis(x):
    m = x.reshape(2, 3)
    t = np.stack([m * m, np.sin(m)], axis=-1)
    return np.sum(np.concatenate([t, t[:, :, ::-1] * m[..., None]], axis=1) ** 2)


@program
def arrays_of_arrays(x):
    return np.sum(np.array([x, x * x, K]) * np.array([x, x, x])) + np.array([x[0], x[1] * x[2]]).prod()


@program
def chosen_by_kind(x):
    y = np.where(x > 0.5, x * x, -x) + np.where(K > 1.0, x, x[0])
    return np.sum(np.clip(y, -0.5, 2.0) * np.maximum(x, 0.1) + np.minimum(y, K) * np.maximum(x, y))


@program
def softmax(x):
    m = x.reshape(2, 3)
    p = np.exp(m - m.max(axis=1, keepdims=True))
    p = p / p.sum(axis=1, keepdims=True)
    top = np.max(m, axis=0)
    return np.sum(p * p) + np.sum(top * top) + (np.log(np.sum(np.exp(x - x.max()))) + np.min(x)) ** 2


@program
def sums_that_keep_axes(x):
    m = x.reshape(3, 2) * x.reshape(3, 2)
    n = m / np.mean(m, axis=0, keepdims=True) + m.sum(axis=-1, keepdims=True) * x[0]
    return np.sum(n * n) + np.sum(m.mean(keepdims=True) * m) + np.sum(np.sum(m, axis=(0, 1)) * x)


@program
def places(x):
    y = x[PLACES] * x
    m = np.outer(y, x)
    z = m[[0, 2, 2]] * m[PLACES[:3]][:, ::-1]
    return np.sum(z) + np.sum(m[PLACES, PLACES[::-1]] * y) + np.sum(m[:, np.array([1, 1, 4])] ** 2)


@program
def truth_values(x):
    y = x * x
    m = np.outer(x, y)
    return (
        y[x > 0].sum() * y[np.array([True, False] * 3)][1] + np.sum(m[x > 0] ** 2) + np.sum(m[m > 0.3] ** 2)
    )


@program
def written_places(x):
    y = x * 1.0
    y[np.array([1, 4])] = y[np.array([0, 1])] * x[2]
    y[PLACES[:3]] = x[1:4] * x[0]
    y[x > 1.0] *= x[1]
    y[np.array([0, 0, 2])] = x[3]
    m = np.outer(y, x)
    m[1:3, np.array([0, 2])] = y[:2] * 2.0
    m[np.array([0, 5])] += y
    m[np.array([True, False, False, True, False, True])] = 0.25
    return np.sum(y**3) + np.sum(m * m)


@program
def filled(x):
    a = np.zeros(6)
    a[:] = x * x
    b = np.empty((2, 3))
    b[0] = 1.0
    b[1] = x[:3]
    c = np.zeros(4)
    c[2] = x[0] * x[1]
    c += x[1:5]
    d = np.full(6, 2.0)
    d *= x
    e = np.ones(6)
    e /= x * x + 1.0
    e[0] = 3.0
    return np.sum(a * d) + np.sum(b**2) * c[2] + np.sum(c * c) + np.sum(e * e)


@program
def multiplied_in_place(x):
    y = x * 1.0
    y *= K
    z = y * y
    y *= x
    y /= x * x + 1.0
    y[1:] *= x[:-1]
    y[::-2] /= K[:3]
    y *= x[0]
    y /= 1.5 + x[1]
    m = np.outer(y, x)
    m *= K
    m /= (x * x + 1.0)[:, None]
    m *= m.sum() * 0.1
    return np.sum(y * z) + np.sum(m * m)


@program
def a_factor_that_changes(x):
    y = x * x
    z = y * x
    y *= z
    y[PLACES[:2]] = z[:2]
    return np.sum(y * z) + y[0]


@program
def ufuncs_of_two(x):
    y = np.hypot(x, K) + np.arctan2(x, K + x * x) + np.logaddexp(x, K * x)
    y = np.add(y, np.multiply(x, K)) - np.subtract(K, np.divide(x, 1.0 + y * y))
    return np.sum(np.power(2.0 + np.sin(y), x) + K**x + (1.5 + x * x) ** K + np.power(x, 3))


@program
def rows_against_columns(x):
    return np.sum(np.hypot(x[:, None], K[None, :] * x) * np.maximum(x[:, None], x)) + np.sum(2.0 ** x[:3])


@program
def products(x):
    m = ROWS * x + np.eye(6)
    t = np.einsum("ij,jk->ik", m, m) + np.tensordot(m, ROWS, 1)
    s = np.einsum("ij,ij->i", m, t) * np.einsum("i,j,ij->j", x, K, m)
    u = (m.reshape(6, 2, 3) @ m.reshape(6, 3, 2)).sum(axis=0)
    return np.sum(s * s) * 1e-3 + np.sum(u * u) * 1e-3 + np.sum(np.inner(m, m)) + np.sum(np.outer(x, x) ** 2)


@program
def axes_moved(x):
    m = x.reshape(2, 3) * x.reshape(2, 3)
    y = m.T.reshape(-1) * x + np.swapaxes(m, 0, 1).ravel() + np.transpose(m).flatten() * x[0]
    y = np.roll(np.flip(y), 2) + np.cumsum(np.sort(x)) + np.repeat(m[0], 2) * np.tile(m[1], 2)
    return np.sum(y * y) + np.trace(m) * np.sum(np.diag(m)) + np.sum(np.broadcast_to(x[1:2], (3, 6)) * x)


@program
def linear_systems(x):
    m = ROWS * x + 5.0 * np.eye(6)
    y = np.linalg.solve(m, x) + np.linalg.solve(m, np.outer(x, K))[1]
    inverse = np.linalg.inv(m)
    sign, size = np.linalg.slogdet(m)
    return np.sum(y * y) + np.sum(inverse * inverse) + sign * size**2 + np.linalg.det(m) * 1e-4


@program
def stacks_of_systems(x):
    m = (x[:, None, None] * ROWS[:2, :2] + 3.0 * np.eye(2)) * np.ones((6, 1, 1))
    y = np.linalg.solve(m, np.stack([x, x * x], axis=1)[..., None])
    return np.sum(y * y) + np.sum(np.linalg.inv(m) ** 2) + np.sum(np.linalg.slogdet(m)[1] * x)


@program
def lengths_and_spreads(x):
    m = np.outer(x, K) + x
    y = np.linalg.norm(x) * np.linalg.norm(m) + np.sum(np.linalg.norm(m, axis=1) * x) + np.linalg.norm(x, 2)
    y = y + np.var(x) * x.std() + np.sum(np.var(m, axis=0) * np.std(m, axis=1, ddof=1))
    return y + np.sum(m / np.linalg.norm(m, axis=0, keepdims=True)) + np.sum(m.var(axis=1, keepdims=True) * m)


@program
def quaternions(x):
    q = np.concatenate([[x[0]], x[1:4]])
    q = np.concatenate([[0.5, x[1]], q * x[:4], (x[2], 1.0)]) * np.array([1.0, -1.0] * 4)
    return np.sum(q * q) + np.log(np.sum(x * x)) * np.sqrt(np.sum(q * q)) + np.sum(np.diff(x * x) ** 2)


def difference(f, x, v, h=1e-4):
    """(f(x + hv) - f(x - hv)) / 2h to fourth order."""
    near, far = f(x + h * v) - f(x - h * v), f(x + 2 * h * v) - f(x - 2 * h * v)
    return (8 * near - far) / (12 * h)


@pytest.mark.parametrize("f", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_all_modes_agree_with_differences(f):
    value, x_bar = value_and_grad(f)(X)
    assert value == f(X)
    np.testing.assert_allclose(x_bar @ V, difference(f, X, V), rtol=1e-7)
    value, z_dot = jvp(f, (X,), (V,))
    assert value == f(X)
    np.testing.assert_allclose(z_dot, x_bar @ V, rtol=1e-11)
    np.testing.assert_allclose(hvp(f, (X,), (V,))[0], difference(grad(f), X, V), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("f", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_reverse_over_reverse_agrees_with_forward_over_reverse(f):
    twice = grad(lambda x: grad(f)(x) @ V)(X)
    np.testing.assert_allclose(twice, hvp(f, (X,), (V,))[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("f", [softmax, places, written_places, multiplied_in_place, linear_systems])
def test_a_pullback_serves_twice_and_the_arguments_stay(f):
    x = X.copy()
    _, pullback = vjp(f, x)
    np.testing.assert_array_equal(pullback(1.0)[0], pullback(1.0)[0])
    np.testing.assert_array_equal(x, X)
    _, push = linearize(f, x)
    np.testing.assert_allclose(push(V), pullback(1.0)[0] @ V, rtol=1e-11)


@pytest.mark.parametrize("f", [joined, softmax, places, products])
def test_a_pullback_of_a_level_inside_a_jvp_serves_after_it(f):
    kept = []

    def inside(x):
        value, pullback = vjp(f, x)
        kept.append(pullback)
        return value

    jvp(inside, (X,), (V,))
    np.testing.assert_allclose(kept[0](1.0)[0], grad(f)(X), rtol=1e-12)


def test_lists_and_indices_that_change_later_are_not_read_again():
    def f(x):
        rows, where = [x, x * x], np.array([0, 1])
        y = np.concatenate(rows)
        z = y[where]
        rows[0] = x * 3.0
        rows.append(x)
        where[:] = 5
        return np.sum(z * z) + y[7]

    np.testing.assert_allclose(grad(f)(X) @ V, difference(f, X, V), rtol=1e-8)


def test_operands_that_are_written_later_have_their_values_on_the_way_back():
    def f(x):
        a, b = x * 1.0, x * x
        m = np.outer(a, b) + np.hypot(a[:, None], b)
        s = np.linalg.norm(a)
        a[:] = 0.0
        b *= 2.0
        return np.sum(m * m) + s * np.sum(b)

    np.testing.assert_allclose(grad(f)(X) @ V, difference(f, X, V), rtol=1e-8)
    np.testing.assert_allclose(hvp(f, (X,), (V,))[0], difference(grad(f), X, V), rtol=1e-6)


def test_results_that_are_written_later_have_their_values_on_the_way_back():
    def f(x):
        y = np.power(x * x + 1.0, K)
        z = np.max(y.reshape(2, 3), axis=1)
        w = np.linalg.inv(np.diag(y))
        s = np.sum(w * w) + np.sum(z * y[:2])
        y[:] = z[0] = w[0] = 1.0
        return s + np.sum(y)

    np.testing.assert_allclose(grad(f)(X) @ V, difference(f, X, V), rtol=1e-8)
    np.testing.assert_allclose(hvp(f, (X,), (V,))[0], difference(grad(f), X, V), rtol=1e-6, atol=1e-9)


def test_elements_that_tie_share_the_cotangent():
    x = np.array([1.0, 2.0, 2.0, -1.0])
    np.testing.assert_array_equal(grad(np.max)(x), [0.0, 0.5, 0.5, 0.0])
    np.testing.assert_array_equal(grad(lambda x: x.max(axis=0, keepdims=True)[0])(x), [0.0, 0.5, 0.5, 0.0])
    assert jvp(np.max, (x,), (np.array([0.0, 1.0, 3.0, 0.0]),))[1] == 2.0
    assert jvp(lambda x: np.max(x, axis=0), (x,), (np.array([0.0, 1.0, 3.0, 0.0]),))[1] == 2.0


def test_a_norm_of_nothing_has_slope_zero():
    np.testing.assert_array_equal(grad(np.linalg.norm)(np.zeros(3)), np.zeros(3))
    tiny = np.array([3e-200, 4e-200])
    np.testing.assert_allclose(grad(np.linalg.norm)(tiny), [0.6, 0.8], rtol=1e-12)


def test_a_variance_of_equal_numbers_has_a_slope_and_its_root_the_one_of_the_rule():
    x = np.full(4, 2.0)
    np.testing.assert_array_equal(grad(np.var)(x), np.zeros(4))
    np.testing.assert_array_equal(hvp(np.var, (x,), (np.eye(4)[0],))[0], 0.5 * (np.eye(4)[0] - 0.25))


def test_an_operation_in_place_that_raises_leaves_what_the_plain_call_leaves():
    def f(x):
        y = x * 1.0
        try:
            with np.errstate(over="raise"):
                y *= np.array([10.0, 1.7e308, 10.0, 1.7e308, 10.0, 10.0])
        except FloatingPointError:
            y[~np.isfinite(y)] = x[0]
        return np.sum(y * y)

    def plain(x):
        y = x * np.array([10.0, 0.0, 10.0, 0.0, 10.0, 10.0])
        y[[1, 3]] = x[0]
        return np.sum(y * y)

    assert value_and_grad(f)(X)[0] == f(X)
    np.testing.assert_allclose(grad(f)(X), grad(plain)(X), rtol=1e-12)
    np.testing.assert_allclose(jvp(f, (X,), (V,))[1], grad(plain)(X) @ V, rtol=1e-12)


@pytest.mark.parametrize("mode", ["grad", "jvp", "hvp"])
def test_only_the_primal_warns_and_once(mode):
    def f(x):
        y = np.power(x, K)  # nan, for numbers below zero
        return np.sum(np.where(x > 0, y, 0.0)) + np.sum(np.hypot(x, 0.0) * 0.0)

    run = {
        "grad": lambda: grad(f)(X),
        "jvp": lambda: jvp(f, (X,), (V,)),
        "hvp": lambda: hvp(f, (X,), (V,)),
    }[mode]
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        run()
    assert len(seen) == 1


def test_threads_have_their_own_steps():
    found = []

    def work():
        for _ in range(20):
            found.append(hvp(softmax, (X,), (V,))[0] + grad(multiplied_in_place)(X))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 80
    for one in found:
        np.testing.assert_array_equal(one, found[0])


def test_subclasses_and_other_types_go_the_general_way():
    class Kept(np.ndarray):
        pass

    def f(x):
        y = x.view(Kept)
        z = np.concatenate([y, y]) * 2.0
        return np.sum(np.asarray(z) ** 2)

    np.testing.assert_allclose(grad(f)(X), 16.0 * X, rtol=1e-12)

    def g(x):
        y = x.astype(np.float32)
        return np.sum(np.maximum(np.concatenate([y, y]), np.float32(0.5)).astype(float))

    np.testing.assert_allclose(grad(g)(X), 2.0 * (X > 0.5), rtol=1e-6)


def test_complex_arrays_beside_real_ones_go_the_general_way():
    def f(x):
        z = np.concatenate([x, 1j * x])
        return np.sum(np.abs(np.where(np.arange(12) > 3, z, 2.0 * z)) ** 2)

    np.testing.assert_allclose(grad(f)(X) @ V, difference(f, X, V), rtol=1e-8)


def test_empty_arrays_and_arrays_without_axes():
    def f(x):
        none = x[:0]
        y = np.concatenate([none, x, none])[np.array([], int)]
        s = np.sum(x).reshape(())
        return np.sum(y) + np.where(True, s, 0.0) * np.max(x) + np.sum(np.clip(none, 0, 1))

    np.testing.assert_allclose(grad(f)(X) @ V, difference(f, X, V), rtol=1e-8)
    np.testing.assert_allclose(hvp(f, (X,), (V,))[0], difference(grad(f), X, V), rtol=1e-6)


def test_a_rule_of_the_program_is_used_in_place_of_ours():
    def halved(x):
        return np.flip(x) * 1.0

    calls = []

    @plaingrad.rrule(np.flipud)
    def flipud_rrule(m):
        calls.append(1)
        return np.flip(m, 0), lambda z_bar: (7.0 * z_bar,)

    try:
        np.testing.assert_array_equal(grad(lambda x: np.sum(np.flipud(x)))(X), np.full(6, 7.0))
        assert calls
    finally:
        plaingrad.remove_rule(np.flipud)
    np.testing.assert_array_equal(grad(lambda x: np.sum(np.flipud(x)))(X), np.ones(6))
    np.testing.assert_array_equal(grad(lambda x: np.sum(halved(x)))(X), np.ones(6))


def test_arrays_without_axes_are_multiplied_in_place():
    def f(x):
        s = np.sum(x).reshape(())
        t = np.array(s) * 1.0
        s = s * np.ones(())
        w = np.empty(())
        w[...] = x[0]
        w *= x[1]
        w /= x[2]
        return w * t + s

    np.testing.assert_allclose(grad(f)(X) @ V, difference(f, X, V), rtol=1e-8)
    np.testing.assert_allclose(hvp(f, (X,), (V,))[0], difference(grad(f), X, V), rtol=1e-6)


def test_rows_of_records_stay_tuples():
    def f(x):
        r = np.array([(x[0] * x[1], 1), (x[2], 2)], dtype=[("a", float), ("b", int)])
        return np.sum(r["a"] ** 2)

    np.testing.assert_allclose(grad(f)(X) @ V, difference(f, X, V), rtol=1e-8)


def test_an_order_that_is_differentiated_and_options_of_differences_go_the_general_way():
    def f(x):
        return (
            np.linalg.norm(x, x[3])
            + np.sum(np.diff(x, 1, -1, x[0] * 2.0, x[1]) ** 2)
            + np.sum(np.diff(x, n=2) ** 2)
        )

    np.testing.assert_allclose(grad(f)(X) @ V, difference(f, X, V), rtol=1e-8)
    np.testing.assert_allclose(jvp(f, (X,), (V,))[1], difference(f, X, V), rtol=1e-8)


def test_results_lie_in_memory_as_in_a_plain_call():
    operations = [
        lambda a, b: a.astype(float), lambda a, b: a.copy(), lambda a, b: np.copy(a), lambda a, b: a + b,
        lambda a, b: a * 2.0, lambda a, b: -a, lambda a, b: np.exp(a), lambda a, b: a**2, lambda a, b: a**b,
        lambda a, b: np.maximum(a, b), lambda a, b: np.where(a > b, a, b), lambda a, b: np.concatenate([a, b]),
        lambda a, b: np.stack([a, b], 1), lambda a, b: a @ b.T, lambda a, b: np.sum(a, 0), lambda a, b: a.mean(1),
        lambda a, b: np.cumsum(a, 1), lambda a, b: np.sort(a, 0), lambda a, b: a[[1, 0]], lambda a, b: a[:, [0, 1]],
        lambda a, b: a[a > 0], lambda a, b: np.clip(a, 0.1, 0.8), lambda a, b: np.outer(a[0], b[0]),
        lambda a, b: np.sum(a, 1, keepdims=True), lambda a, b: np.max(a, 0), lambda a, b: np.reshape(a, (-1,)),
        lambda a, b: a.ravel(), lambda a, b: np.array(a), lambda a, b: np.add(a, b), lambda a, b: np.diff(a, axis=0),
        lambda a, b: np.abs(a), lambda a, b: np.roll(a, 1, 0), lambda a, b: np.tile(a, 2), lambda a, b: np.flip(a),
    ]  # fmt: skip
    x = np.linspace(0.1, 1.3, 24).reshape(4, 6)
    forms = [
        lambda x: x[:3, :3],
        lambda x: x[:3, :3].T,
        lambda x: x[::-1, ::2][:3, :3],
        lambda x: np.asfortranarray(x)[:, :4],
    ]
    seen = []

    def looked_at(x):
        total = 0.0
        for form in forms:
            a = form(x)
            for operation in operations:
                z = operation(a, a * 1.5 if a.flags.c_contiguous else 1.5 * a)
                seen.append(
                    (type(z), z.dtype, z.shape, z.strides, z.flags.c_contiguous, z.flags.f_contiguous)
                )
                total = total + np.sum(z)
        return total

    looked_at(x)
    plain = list(seen)
    for derivative in (grad, lambda f: lambda x: jvp(f, (x,), (x,)), lambda f: lambda x: hvp(f, (x,), (x,))):
        seen.clear()
        derivative(looked_at)(x)
        assert seen == plain


@pytest.mark.parametrize(
    "mode", [grad, lambda f: lambda x: jvp(f, (x,), (V,)), lambda f: lambda x: hvp(f, (x,), (V,))]
)
def test_a_copy_of_a_type_keeps_the_order_in_memory(mode):
    def f(x):
        m = np.outer(x, x).T.astype(float)
        assert m.flags.f_contiguous
        assert not m.flags.c_contiguous
        return np.sum(m * m)

    mode(f)(X)


def test_a_sum_of_products_that_is_one_number_is_linearized():
    m = np.arange(9.0).reshape(3, 3)

    def f(x):
        u = np.array([x, x * x, 1.0])
        return float(np.einsum("i,ij,j->", u, m, u))

    pushed = plaingrad.linearize(f, 0.7)[1](1.0)
    assert pushed == pytest.approx(grad(f)(0.7), rel=1e-13)
    h = 1e-5
    assert pushed == pytest.approx((f(0.7 + h) - f(0.7 - h)) / (2 * h), rel=1e-8)


def test_a_maximum_whose_array_is_given_by_name():
    x = np.array([[1.0, 2.0, 4.0]])
    for f in (lambda x: np.max(a=x), lambda x: np.linalg.norm(x=x, axis=1)[0], lambda x: np.diff(a=x)[0, 1]):
        np.testing.assert_allclose(grad(f)(x) @ x[0], f(x), rtol=1e-13)  # of degree one
