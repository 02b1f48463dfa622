"""The memory of a cotangent goes to the operand that reads it last; arrays added whole have one cotangent between them."""

import weakref

import numpy as np
import pytest

from plaingrad import grad, hvp, jvp, vjp

X = np.array([0.3, -0.7, 1.1, 0.9, -1.3, 0.5])
V = np.linspace(1.0, 2.0, 6)
PROGRAMS = []


def program(f):
    PROGRAMS.append(f)
    return f


@program
def chains_of_temporaries(x):
    return np.sum(((2.0 * x - x[::-1]) * 3.0 + 1.0 / (2.0 + np.exp(-x))) ** 2)


@program
def one_temporary_read_twice(x):
    y = 2.0 * x
    z = y + y
    w = z - y
    return np.sum(z * w * y) + np.sum(w)


@program
def both_sides_whole(x):
    a, b = x * x, np.sin(x)
    c = a + b
    d = c * 2.0
    return np.sum(d * c) + np.sum((a - b) / (3.0 + b))


@program
def added_whole_and_read_later(x):
    out = np.zeros(6)
    z = x * x
    out += z
    y = out * 3.0
    out += z
    out *= 2.0
    out += np.sin(x)
    return np.sum(out * out) + np.sum(y * z)


@program
def added_whole_between_writes(x):
    out, z = np.zeros(6), np.cos(x)
    out += z
    out[2] = x[0]
    out += z
    out[1:3] = 0.5
    z += out
    out += z
    return np.sum(out * z)


@program
def added_whole_from_another_order(x):
    out, z = np.zeros((2, 3)), np.asfortranarray((x * x).reshape(2, 3)) * 1.5
    out += z
    z += out
    out += z.T.copy().T
    return np.sum(out**2)


@program
def what_is_added_was_read_before(x):
    z = x * 2.0
    out = z * z
    out += z
    out += out * z
    z += out
    return np.sum(z) + np.sum(out * z)


@program
def products_of_all_shapes(x):
    m = x.reshape(2, 3) * x.reshape(2, 3)
    n, r = m @ m.T, np.outer(x, x)[::-2, 1::2]
    return (
        (n @ n).sum()
        + ((x[::-3] @ m) @ m[1])
        + ((m.T @ n) @ x[1:3]).sum()
        + (r @ r.T @ r).sum()
        + (m[:, ::-1] @ m.T[::-1]).sum()
    )


def columns(f, x):
    """By central differences of fourth order."""
    found = []
    for e in np.eye(x.size) * 1e-3:
        found.append((8 * (f(x + e) - f(x - e)) - (f(x + 2 * e) - f(x - 2 * e))) / 12e-3)
    return np.array(found)


@pytest.mark.parametrize("f", PROGRAMS)
def test_gradients_are_those_of_differences(f):
    np.testing.assert_allclose(grad(f)(X), columns(f, X), rtol=1e-7, atol=1e-8)
    np.testing.assert_array_equal(grad(f)(X), grad(f)(X))


@pytest.mark.parametrize("f", PROGRAMS)
def test_modes_agree(f):
    (second,) = hvp(f, (X,), (V,))
    ahead = lambda x: np.sum(grad(f)(x) * V)
    np.testing.assert_allclose(grad(ahead)(X), second, rtol=1e-10, atol=1e-10)
    assert jvp(f, (X,), (V,))[1] == pytest.approx(grad(f)(X) @ V, rel=1e-11)


def test_a_pullback_that_is_called_again_finds_its_cotangents_as_they_were():
    def f(x):
        out = np.zeros(6)
        z = x * x
        out += z
        return out + z

    _, pull = vjp(f, X)
    bar = V.copy()
    first, second = pull(bar)[0], pull(bar)[0]
    np.testing.assert_array_equal(bar, V)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(first, 4 * X * V, rtol=1e-14)


def test_a_cotangent_of_nan_goes_where_it_belongs_only():
    def f(x):
        m = x.reshape(2, 3)
        return (m @ np.ones(3))[0] + np.sqrt(m[1, 0] * 0.0)

    with np.errstate(all="ignore"):
        g = grad(f)(X)
    assert np.isnan(g[3])
    np.testing.assert_array_equal(g[:3], 1.0)
    np.testing.assert_array_equal(g[4:], 0.0)


def test_empty_products_have_gradients_of_zeros():
    np.testing.assert_array_equal(grad(lambda x: (x[:0].reshape(3, 0) @ x[:0]).sum() + x[0])(X), np.eye(6)[0])
    np.testing.assert_array_equal(
        grad(lambda x: (x.reshape(6, 1)[:, :0] @ np.zeros((0, 2))).sum())(X), np.zeros(6)
    )


def test_arrays_that_nothing_holds_are_let_go_of_while_others_watch():
    gone = []

    def f(x):
        y = x * 1.0
        kept = []
        for k in range(1500):
            z = y * 0.5
            if k % 500 == 0:
                kept.append(z)
            # What is called when an array goes makes others.
            weakref.finalize(z, lambda: gone.append(float(np.sum(y * 2.0))))
            y = z + 0.5 * y
        return np.sum(y) + sum(np.sum(z) for z in kept)

    wanted = 1.0 + 3 * 0.5
    np.testing.assert_allclose(grad(f)(X), np.full(6, wanted), rtol=1e-12)
    assert len(gone) > 1000  # a level may keep some for a while


def test_a_function_with_attributes_is_what_it_is_at_each_call():
    def double(x):
        return 2.0 * x

    def triple(x, times=3.0):
        return times * x

    space = {"__name__": __name__}
    exec("def f(x): return 2.0 * x", space)
    f = space["f"]
    f.what = "of a namespace"
    g = grad(f)
    assert (g(1.0), g(1.0)) == (2.0, 2.0)
    f.__code__ = triple.__code__
    f.__defaults__ = (3.0,)
    assert (g(1.0), g(1.0)) == (3.0, 3.0)
    f.__defaults__ = (5.0,)
    assert g(1.0) == 5.0
    f.__code__ = double.__code__
    assert g(1.0) == 2.0
