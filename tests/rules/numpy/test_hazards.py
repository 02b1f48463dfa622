"""Memory that changes between call and pullback, results written in place, parameters given by name."""

import copy

import numpy as np
import pytest

import plaingrad
from plaingrad import value_and_grad
from tests.rules.numpy.composed_samples import COMPOSED
from tests.rules.numpy.samples import SAMPLES
from tests.rules.numpy.test_programs import differences
from tests.sampling import is_in_sample

PROGRAMS = {}


def program(f):
    PROGRAMS[f.__name__] = f
    return f


@program
def a_mask_that_is_cleared_later(x):
    mask = np.array([True, False, True, True])
    s = np.sum(x[0], where=mask)
    mask[:] = False
    return s * s


@program
def a_list_of_axes_that_is_changed_later(x):
    axes = [0, 1]
    s = np.tensordot(x, x, (axes, axes))
    axes[0] = 1
    return s


@program
def a_list_of_indices_that_is_changed_later(x):
    places, counts, condition, q = [0, 2], [1, 2, 0, 1], [True, False, True, False], [0.3, 0.7]
    y = np.take(x, places, 0).prod() + np.repeat(x, counts, 1).prod() + np.compress(condition, x[0]).prod()
    y = y + np.where(condition, x[1], 1.0).prod() + np.quantile(x, q).prod()
    places[0], counts[0], condition[0], q[0] = 1, 0, False, 0.9
    return y


@program
def weights_that_are_cleared_later(x):
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    a = np.average(x, axis=1, weights=weights)
    weights[:] = 0
    return (a**2).sum()


@program
def an_argument_that_is_overwritten_later(x):
    y = x.copy()
    s, p, m = np.sort(y, axis=0), np.prod(y, 0), np.max(y)
    n, i, e = np.linalg.norm(y), np.linalg.inv(y[:, :3]), np.einsum("ij,kj->ik", y, y)
    y[...] = 7.0
    return (s * np.arange(4)).sum() + p.sum() + m + n * i.sum() * e.sum()


@program
def a_result_that_is_overwritten_later(x):
    z, c = np.linalg.inv(x[:, :3]), np.cumprod(x, 1)
    q, r = np.linalg.qr(x[:, :3])
    total = z.sum() * c.sum() + (q * r).sum()
    z[...] = 1.0
    c *= 2
    r += q
    q[0] = 0
    return total + z.sum() + c.sum() + r.sum()


@program
def choices_that_are_replaced_later(x):
    choices = [x[0], x[1]]
    y = np.choose([0, 1, 0, 1], choices)
    choices[0] = choices[1] = 0
    return (y**2).sum()


@program
def out_of_every_kind(x):
    y = x.copy()
    np.clip(y, -0.5, 0.5, out=y)
    y.clip(-0.2, 0.3, out=y)
    means = np.empty(4)
    np.mean(x, axis=0, out=means)
    np.max(x, axis=0, out=means[::-1])
    square = np.zeros((3, 3))
    np.matmul(x, x.T, out=square)
    square @= square
    rows, long, product = np.zeros(2), np.zeros(8), np.zeros((3, 3))
    np.take(x, [1, 2], out=rows)
    np.concatenate([x[0], x[1]], out=long)
    np.einsum("ij,kj->ik", x, x, out=product)
    return (y * x).sum() + (means**2).sum() + square.sum() + rows.sum() * long.prod() + (product**2).sum()


@program
def sums_and_products_in_place(x):
    y = x.copy()
    np.cumsum(y, axis=1, out=y)
    np.cumprod(y, axis=0, out=y)
    np.add.accumulate(y, out=y)
    y[1:] -= y[:-1]
    y[:, ::2] *= y[:, 1::2]
    y /= 1 + y**2
    y **= 2
    y %= 0.7
    return y.sum()


@program
def methods_that_write(x):
    y = x.copy()
    y.put([0, 5], [x[0, 0] ** 2, 3.0])
    y.partition(2, axis=1)
    y[0].fill(x[2, 2])
    z = x.copy()
    z.flat = x.T * 2
    z.real = z * 3
    return (y**2).sum() + (z * x).sum()


@program
def rows_that_change_places(x):
    y = x.copy()
    y[[0, 1]] = y[[1, 0]]
    y[:, 0], y[:, 1] = y[:, 1].copy(), y[:, 0].copy()
    y[y < -1] = x[y < -1] ** 2
    return (y * np.arange(12.0).reshape(3, 4)).sum()


@program
def parts_of_complex_numbers(x):
    z = x + 1j * x[::-1]
    z.imag *= 2
    z.real[0] = x[1]
    z.view(float)[0, 0] = x[2, 2] * 3
    return np.abs(z).sum() + np.sum(z.conj() * z).real


@program
def windows_that_overlap(x):
    w = np.lib.stride_tricks.sliding_window_view(x.ravel(), 3)
    return (w**2 * np.arange(3)).sum()


@program
def integers_between(x):
    order = np.argsort(x[0])
    bins = np.digitize(x[0], [-1, 0, 1])
    grid = np.sort(x[0])
    k = np.clip(np.searchsorted(grid, x[1]) - 1, 0, 2)
    t = (x[1] - grid[k]) / (grid[k + 1] - grid[k])
    total = x[1][order].cumsum().prod() + x[2][np.argmax(x[2])] + np.bincount(bins, weights=x[1], minlength=4) @ np.arange(4.0)
    return total + (x[2][k] * (1 - t) + x[2][k + 1] * t).sum()


@program
def parameters_by_name(x):
    total = np.sum(a=x, axis=0).prod() + np.mean(a=x) * np.max(a=x) * np.std(a=x) * np.linalg.norm(x=x[:, :3])
    total += np.stack(arrays=[x, x]).prod() * np.where(x > 0, x, 1.0).sum() * np.clip(a=x, a_min=-1, a_max=x[0]).sum()
    total += np.linalg.solve(a=x[:, :3], b=x[:, 3]).sum() * np.linalg.det(a=x[:, :3]) + np.take(a=x, indices=[1, 2], axis=0).prod()
    total += np.cumsum(a=x, axis=0).prod() + np.sort(a=x, axis=0)[0].prod() + np.transpose(a=x)[0].prod()
    return total + np.broadcast_to(array=x[0], shape=(2, 4)).prod() + np.tensordot(a=x, b=x).sum() + np.outer(a=x, b=x).sum()


@program
def arrays_made_like_others_and_filled(x):
    y, z, w = np.empty_like(x), np.zeros_like(x), np.ones_like(x)
    y[:] = x
    z += y
    w *= z
    return w.prod()


@program
def integers_and_booleans_mixed_in(x):
    counts = np.sum(x[x > 0]) / np.count_nonzero(x > 0)
    return counts + (x * np.arange(4)).sum() + (np.arange(3) @ x).prod() + (x > 0).sum() * x[0, 0] + (x.astype(int) + x).sum()


@program
def lists_of_numbers_in_place_of_arrays(x):
    total = np.sum([float(v) for v in x[0]]) * np.mean(list(x[1])) * np.max([x[0, 0], x[1, 1]]) * np.prod((x[0, 1], 2.0))
    total += np.stack([x[0, 0], x[0, 1]]).prod() * np.concatenate(([x[0, 0]], x[1])).prod() * np.hstack((x[0, 0], x[1])).sum()
    return total + np.array([x[0], x[1]]).prod() + np.dot([x[0, 0], 1.0], [x[1, 1], x[2, 2]])


@program
def reductions_with_a_mask(x):
    total = x.sum(where=x > 0) * x.mean(where=x > 0) * np.max(x, where=x < 1, initial=-5.0)
    return total + np.add.reduce(x, axis=0, where=x > 0, initial=2.0).prod()


@program
def what_leaves_nan_out(x):
    y = np.where(x > 1, np.nan, x)
    total = np.nansum(y) + np.nanmax(y) * np.nanstd(y) + np.nanprod(y) + np.nanmedian(y) + np.nanpercentile(y, 40)
    return total + np.nancumsum(y).sum() + np.nanmean(y, axis=0).sum()


@program
def nested_lists_that_are_changed_later(x):
    m = [[abs(x[0, 0]) + 3.0, x[0, 1]], [x[0, 1], abs(x[1, 1]) + 3.0]]
    la = np.linalg
    total = la.inv(m).sum() + la.det(m) + la.solve(m, [x[0, 0], 1.0]).sum() + la.norm(m) + la.eigvalsh(m)[0] + la.pinv(m).sum()
    total += la.svd(m)[1][0] + la.slogdet(m)[1] + la.qr(m)[1].sum() + la.lstsq(m, [x[0, 0], 1.0], rcond=None)[0].sum()
    total += np.trace(m) + np.dot(m, m).sum() + np.matmul(m, m).sum() + np.einsum("ij,jk", m, m).sum() + np.max(m) + np.var(m)
    total += np.cumsum(m).prod() + np.sort(m).prod() + np.diag(m).prod() + la.cholesky(m).sum() + np.vdot(m, m) + np.mean(m)
    m[0] = None
    return total


@program
def negative_axes(x):
    return np.concatenate([x, x], axis=-1).std(axis=-1).prod() + np.stack([x, x], axis=-1).max(axis=-2).prod()


@program
def python_loops_over_rows(x):
    total = sum(a @ b for a, b in zip(x, x[1:])) + sum(v for v in map(np.sum, x)) + np.sum([r.max() for r in x])
    return total + np.apply_along_axis(np.sort, 0, x)[0].prod() + np.apply_over_axes(np.sum, x, [0])[0].prod()


@program
def copies_of_every_depth(x):
    return (copy.deepcopy(x) * copy.copy(x)).sum() + copy.deepcopy([x, x[0], (x[1, 1], x)])[1].prod()


@program
def the_global_generator(x):
    np.random.seed(0)
    return (np.random.normal(x) * np.random.uniform(0, x) * np.random.randn(3, 4)).sum()


@program
def triangles_and_pieces(x):
    total = (np.tril(x[:, :3]) @ np.triu(x[:, :3])).sum() + x[np.tril_indices(3)].prod()
    return total + sum((i + 1) * v.prod() for i, v in enumerate(np.vsplit(x, 3))) + np.split(x, [1, 3], axis=1)[1].prod()


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore")
def test_(name):
    f = PROGRAMS[name]
    x = np.random.default_rng(3).standard_normal((3, 4))
    value, x_bar = value_and_grad(f)(x.copy())
    assert value == f(x.copy())
    np.testing.assert_allclose(x_bar, differences(f, x), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("index", [None, (None, None), ..., (), True, False, np.array(True), np.array(False)], ids=str)
def test_items_of_array_scalars(index):
    def f(x):
        return (x.sum()[index] ** 2).sum() + x[0]

    x = np.array([0.5, 1.5])
    count = np.size(np.float64(1.0)[index])  # it is empty where the index is False
    np.testing.assert_array_equal(plaingrad.grad(f)(x), [4.0 * count + 1.0, 4.0 * count])
    assert plaingrad.jvp(f, (x,), (np.array([1.0, 2.0]),))[1] == 12.0 * count + 1.0
    np.testing.assert_array_equal(plaingrad.jacobian(f, mode="forward")(x), plaingrad.grad(f)(x))
    np.testing.assert_array_equal(plaingrad.hessian(f)(x), np.full((2, 2), 2.0 * count))


def test_resize_to_the_same_number_of_elements_copies():
    """The definition returned a view of its argument: what was written into it later appeared in both."""

    def f(x):
        first = x[:2]
        resized = np.resize(first, (2,))
        resized[0] = 3.0 * x[2]
        return (np.concatenate([resized, first]) * np.array([1.0, 10.0, 100.0, 1000.0])).sum()

    x = np.array([1.3, 0.4, 0.7])
    value, gradient = plaingrad.value_and_grad(f)(x)
    assert value == f(x)
    np.testing.assert_array_equal(gradient, [100.0, 1010.0, 3.0])
    assert plaingrad.jvp(f, (x,), (np.array([1.0, 2.0, 3.0]),)) == (f(x), 2129.0)


def arrays_in(x):
    """The arrays in arguments and results."""
    if isinstance(x, np.ndarray):
        return [x]
    return [one for part in x for one in arrays_in(part)] if isinstance(x, (list, tuple)) else []


def sharing(function, args, kwargs):
    """For each array of the result, which of those among the arguments it shares memory with."""
    result = function(*args, **kwargs)
    given = arrays_in([*args, *kwargs.values()])
    return [[bool(np.shares_memory(y, x)) for x in given] for y in arrays_in(result)]


COPYING = [
    (function, sample)
    for table in (SAMPLES, COMPOSED)
    for function, samples in table.items()
    if is_in_sample(getattr(function, "__name__", function), 6) or function is np.resize
    for sample in samples
    if arrays_in([*sample[0], *sample[1].values()])
]


@pytest.mark.filterwarnings("ignore")
def test_results_share_memory_with_arguments_as_those_of_the_plain_call():
    for function, (args, kwargs) in COPYING:
        x = [one.copy(order="K") for one in arrays_in([*args, *kwargs.values()]) if one.dtype.kind in "fc"]
        plain = raised_or(lambda: sharing(function, *replaced((args, kwargs), iter(x))))
        if isinstance(plain, Exception) or not x:
            continue
        for differentiate in (plaingrad.grad, lambda f: lambda x: plaingrad.jvp(f, (x,), (x,))):
            seen = []

            def f(x):
                seen.append(sharing(function, *replaced((args, kwargs), iter(x))))
                return sum([abs(one).sum() for one in x])

            if not isinstance(raised_or(lambda: differentiate(f)(x)), Exception):
                assert seen == [plain], (function, args, kwargs)


def replaced(x, values):
    """Arguments with other arrays of numbers."""
    if isinstance(x, np.ndarray) and x.dtype.kind in "fc":
        return next(values)
    if isinstance(x, dict):
        return {name: replaced(one, values) for name, one in x.items()}
    return type(x)(replaced(one, values) for one in x) if type(x) in (list, tuple) else x


def raised_or(call):
    """What the call returns, or the exception that it raises."""
    try:
        return call()
    except Exception as error:
        return error
