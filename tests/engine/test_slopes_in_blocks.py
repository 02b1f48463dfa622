"""Slopes of elementwise functions of large arrays are evaluated in blocks: the same numbers, whatever the array is like."""

import numpy as np
import pytest

import plaingrad
from plaingrad.engine.memory import blocks

X = np.random.default_rng(5).uniform(0.1, 2.0, 3 * blocks.BLOCK + blocks.LARGE + 7)
SHAPES = {
    "a vector": lambda x: x,
    "rows": lambda x: x[: 250 * 200].reshape(250, 200),
    "columns": lambda x: np.asfortranarray(x[: 250 * 200].reshape(250, 200)),
    "every other": lambda x: x[::2],
    "backwards": lambda x: x[::-1],
    "a row repeated": lambda x: np.broadcast_to(x[:200], (250, 200)),
}


@pytest.mark.parametrize("shape", sorted(SHAPES))
@pytest.mark.parametrize("weighted", [False, True])
def test_a_large_array_has_the_slope_of_its_numbers(shape, weighted):
    x = SHAPES[shape](X)
    w = np.random.default_rng(6).normal(size=x.shape) if weighted else 1.0
    for f, slope in ((np.sin, np.cos(x)), (np.arctan, 1 / (1 + x * x)), (np.cbrt, np.cbrt(x) / (3 * x))):
        np.testing.assert_allclose(plaingrad.grad(lambda x, f=f: np.sum(w * f(x)))(x), w * slope, rtol=1e-13)
        _, z_dot = plaingrad.jvp(f, (x,), (np.full(x.shape, 2.0),))
        np.testing.assert_allclose(z_dot, 2.0 * slope, rtol=1e-13)


def test_blocks_are_taken_and_end_where_the_array_does(monkeypatch):
    seen = []

    def partial(m, x, z):
        seen.append(x.size)
        return m.cos(x)

    partial.__module__ = "plaingrad.rules.elementwise"
    x_bar = blocks.product_in_blocks(np.broadcast_to(2.0, X.shape), partial, (X,), np.sin(X))
    np.testing.assert_array_equal(x_bar, 2.0 * np.cos(X))
    assert sum(seen) == X.size and max(seen) <= blocks.BLOCK and min(seen) > blocks.BLOCK // 2


def test_a_users_partial_sees_all_of_an_array():
    def halved(x):
        return np.sin(x) * 1.0

    sizes = []

    def slope(x, z):
        sizes.append(np.size(x))
        return np.cos(x)

    plaingrad.scalar_rule(halved, slope)
    np.testing.assert_allclose(plaingrad.grad(lambda x: np.sum(halved(x)))(X), np.cos(X))
    assert sizes == [X.size]


def test_second_derivatives_of_large_arrays():
    inner = plaingrad.grad(lambda x: np.sum(np.sin(x) * np.arctan(x)))
    found = plaingrad.grad(lambda x: np.sum(inner(x)))(X)
    s, c, a, d = np.sin(X), np.cos(X), np.arctan(X), 1 / (1 + X * X)
    np.testing.assert_allclose(found, -s * a + 2 * c * d - 2 * X * s * d * d, rtol=1e-11)


def test_one_slope_of_two_arguments_where_the_other_is_a_number():
    special = pytest.importorskip("scipy.special")
    found = plaingrad.grad(lambda x: np.sum(special.jv(1.5, x)))(X)
    np.testing.assert_allclose(found, (special.jv(0.5, X) - special.jv(2.5, X)) / 2, rtol=1e-12)
    np.testing.assert_allclose(
        plaingrad.grad(lambda m: np.sum(special.ellipk(m)))(X / 2.1),
        (special.ellipe(X / 2.1) / (1 - X / 2.1) - special.ellipk(X / 2.1)) / (2 * X / 2.1),
        rtol=1e-9,
    )


def test_a_pole_in_a_block_is_infinite_without_a_warning_of_its_own():
    x = X.copy()
    x[40] = 0.0
    found = plaingrad.grad(lambda x: np.sum(np.sqrt(x) + np.cbrt(x)))(x)
    assert np.isinf(found[40]) and np.isfinite(np.delete(found, 40)).all()
