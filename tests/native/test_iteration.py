"""`enumerate`, `zip` and `range`, one inside of the other; iteration over literal tuples, and `in`."""

import numpy as np
import pytest

numba = pytest.importorskip("numba")

from numpy.testing import assert_allclose  # noqa: E402

import plaingrad  # noqa: E402
from plaingrad.errors import NativeError  # noqa: E402
from tests.native import uncompiled  # noqa: E402
from tests.native.uncompiled import check  # noqa: E402

literal_unroll = numba.literal_unroll
RNG = np.random.default_rng(3)


def pairs_counted(x, y):
    total = 0.0
    for k, (u, v) in enumerate(zip(x, y)):
        total += k * u * v
    return total


def counted_beside(x, y):
    total = 0.0
    for (k, u), v in zip(enumerate(x, 3), y):
        total += k * u * v
    return total


def ranges_beside(x, y):
    total = 0.0
    for k, u, v in zip(range(3, 0, -1), x, y[::-1]):
        total += k * u * v
    for k, j in enumerate(range(1, 5, 2)):
        total += k * x[j] ** 2
    return total


def pairs_of_pairs(x, y):
    total = 0.0
    for (u, v), (k, z) in zip(zip(x, y), enumerate(y, 1)):
        total += u * v * k * z
    return total


def left_early(x, y):
    total = 0.0
    for k, (u, v) in enumerate(zip(x, y)):
        if k > 1 and u > v:
            break
        total += u * v
    else:
        total *= x[0]
    return total * total


@pytest.mark.parametrize("f", [pairs_counted, counted_beside, ranges_beside, pairs_of_pairs, left_early])
@pytest.mark.parametrize("n", [5, 0])
def test_nested_iterations_are_counted_loops(f, n):
    x = RNG.normal(size=6)
    check(f, x, RNG.normal(size=n))


def by_membership(x, k, name):
    if k in (1, 3):
        y = x * x
    elif k not in (5, 7):
        y = x**3
    else:
        y = x
    return y * 2.0 if name in ("double", "twice") else y


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("name", ["twice", "once"])
def test_compiled_membership_decides(k, name):
    args = 2.0, k, name
    assert plaingrad.value_and_grad(by_membership, tier="native")(*args) == plaingrad.value_and_grad(
        by_membership, tier="plain"
    )(*args)


def unrolled(x):
    total = 0.0
    for factor in literal_unroll((1, 2.5, x)):
        total += factor * x
    return total


@numba.njit
def square(x):
    return x * x


@numba.njit
def cube(x):
    return x * x * x


def unrolled_functions(x):
    total = 0.0
    for f in literal_unroll((square, cube)):
        total += f(x)
    return total


@pytest.mark.parametrize("f, slope", [(unrolled, 3.5 + 2 * 1.7), (unrolled_functions, 2 * 1.7 + 3 * 1.7**2)])
def test_values_of_several_types_one_after_the_other_are_taken_apart(f, slope):
    assert plaingrad.grad(f, tier="native")(1.7) == pytest.approx(slope, rel=1e-14)


def exchanged(x, y):
    s, t = 2.0 * x, y - 0.5
    total = 0.0
    for _ in range(3):
        for u, v in zip(s, t):
            total += np.sin(u * v)
            s, t = t, s
    return total * s[0]


def test_what_zip_goes_through_may_change_names_meanwhile():
    check(exchanged, RNG.normal(size=3), RNG.normal(size=3))


def over_constants(x, y):
    total = 0.0
    for i in (0, 2, 1):
        total += x[i] * i * np.sin(y[i - 1])
    for sign in (-1.0, 1.0):
        for k in (1, 2):
            total += sign * x[k] ** k * y[0]
    for k, squared in enumerate((True, False)):
        total += x[k] ** 2 if squared else y[k]
    return total


def over_pairs_of_constants(x, y):
    total = 0.0
    for k, weight in ((1, 0.5), (2, 0.7)):
        total += x[k] ** 2 * weight * y[k]
    for (k, weight), power in (((0, 0.5), 3), ((2, 1.5), 2)):
        total += weight * y[k] ** power
    return total


@pytest.mark.parametrize("f", [over_constants, over_pairs_of_constants])
def test_tuples_of_constants_are_gone_through(f):
    x, y = RNG.normal(size=3), RNG.normal(size=3)
    check(f, x, y)
    found = plaingrad.hessian(f, tier="native")(x, y)
    np.testing.assert_allclose(found, plaingrad.hessian(f, tier="plain")(x, y), rtol=1e-12, atol=1e-12)


def either_range(x, n):
    r = range(3)
    if n > 1:
        r = range(5)
    for k, _ in enumerate(r):
        x = x * 1.1 + k
    return x


def either_zip(x, n):
    u = np.ones(2) * x
    pairs = zip(u, u)
    if n > 1:
        pairs = zip(u[:1], u[:1])
    for p, q in pairs:
        x += p * q
    return x


@pytest.mark.parametrize("f", [either_range, either_zip])
def test_iterators_that_may_be_one_or_another_are_refused(f):
    with pytest.raises(plaingrad.NativeError, match="iteration over"):
        plaingrad.grad(f, tier="native")(1.5, 2)


COEFFICIENTS = (0.5, -1.25, 3.0)


def over_a_global_tuple(x, y):
    total = 0.0
    for c in COEFFICIENTS:
        total = c + x[0] * total
    for k, c in enumerate(COEFFICIENTS, 1):
        total += c * y[0] ** k
    for c, u in zip(COEFFICIENTS, x):
        total *= c + u
    return total


def test_tuples_of_numbers_outside_of_the_function_are_gone_through():
    check(over_a_global_tuple, RNG.normal(size=2), RNG.normal(size=1))


@pytest.mark.parametrize("a", [np.arange(1.0, 7.0).reshape(2, 3), np.ones((0, 2))])
def test_elements_by_nditer_come_in_the_order_of_their_indices(a):
    def f(a):
        b = a * 1.0
        s = 0.5
        for v in np.nditer(b):
            b *= 1.5
            s = s * 0.3 + v.item() ** 2
        return s

    def plain(a):
        b, s = a * 1.0, 0.5
        for k in np.ndindex(a.shape):
            b = b * 1.5
            s = s * 0.3 + b[k] ** 2
        return s

    value, found = uncompiled.gradient(f, (a,))
    wanted, slope = plaingrad.value_and_grad(plain)(a)
    assert_allclose(value, wanted, rtol=1e-13)
    assert_allclose(found[0], slope, rtol=1e-13)


def test_items_of_nditer_that_are_used_as_arrays_are_refused():
    def f(a):
        s = 0.0
        for v in np.nditer(a):
            s += np.sum(v * 1.0)
        return s

    with pytest.raises(
        NativeError, match=r"an item of `np.nditer` other than by `.item\(\)` at .*test_iteration"
    ):
        uncompiled.gradient(f, (np.ones(3),))
