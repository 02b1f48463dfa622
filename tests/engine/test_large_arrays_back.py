"""Steps on large arrays on the way back: right in every layout, and nobody's array is written into."""

import numpy as np
import pytest

import plaingrad
from plaingrad import grad

DRAWN = np.random.default_rng(8).uniform(0.5, 2.0, 40_000)
LAYOUTS = {
    "a vector": lambda x: x,
    "every other": lambda x: x[::2],
    "backwards": lambda x: x[::-1],
    "rows": lambda x: x.reshape(100, 400),
    "columns": lambda x: np.asfortranarray(x.reshape(100, 400)),
    "turned": lambda x: x.reshape(400, 100).T,
    "a part of rows": lambda x: x.reshape(100, 400)[:, 40:360],
    "short rows": lambda x: x.reshape(4000, 10),
}
PROGRAMS = {  # of numbers, one by one
    "products": lambda x, c: x * c * x,
    "quotients": lambda x, c: c / x - x / (c + x),
    "sums and differences": lambda x, c: (x + c) - (c - x) * 3.0 - (x - 2.0 * x),
    "one result read twice": lambda x, c: (lambda y: y * y + y)(x * c),
    "a result and its argument": lambda x, c: (lambda y: y * x - y / x)(x + x),
    "functions": lambda x, c: np.sin(x * c) * np.exp(-x) + np.sqrt(x) * np.log(x) + np.tanh(x) ** 2,
    "slopes that are large": lambda x, c: np.sin(np.sin(x) * c) - np.arctan(x) * x,
    "signs and powers": lambda x, c: -(x**3) * c - (-x),
}


def slopes(f, x):
    """The derivative of f at each number of x, by a complex step."""
    return f(x + 1e-30j).imag / 1e-30


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_of_numbers_on_large_arrays(program, layout):
    f = PROGRAMS[program]
    x = LAYOUTS[layout](DRAWN)
    c = np.cos(np.arange(x.shape[-1]))  # a row for all rows
    expected = slopes(lambda x: f(x, c), x)
    np.testing.assert_allclose(grad(lambda x: f(x, c).sum())(x), expected, rtol=1e-12, atol=1e-13)
    weights = np.linspace(-1.0, 1.0, x.size).reshape(x.shape)
    by_x, by_c = grad(lambda x, c: (weights * f(x, c)).sum(), argnums=(0, 1))(x, c)
    np.testing.assert_allclose(by_x, weights * expected, rtol=1e-12, atol=1e-13)
    by_row = weights * slopes(lambda c: f(x, c), np.broadcast_to(c, x.shape) + 0.0)
    by_row = by_row.sum(axis=0) if x.ndim == 2 else by_row
    np.testing.assert_allclose(by_c, by_row, rtol=1e-11, atol=1e-11)


def test_a_part_of_an_array_and_the_whole():
    weights = np.linspace(-1.0, 1.0, 10_000)

    def f(x):
        part = x[10_000:20_000]
        return (part * weights * np.sin(part)).sum() + (x * x).sum() + (x[:10_000] / part).sum()

    expected = 2.0 * DRAWN
    part = DRAWN[10_000:20_000]
    expected[10_000:20_000] += weights * (np.sin(part) + part * np.cos(part)) - DRAWN[:10_000] / part**2
    expected[:10_000] += 1.0 / part
    np.testing.assert_allclose(grad(f)(DRAWN), expected, rtol=1e-12)


def test_a_cotangent_that_somebody_keeps_is_not_written_into():
    kept = []

    def keeps(x):
        return x * 1.0

    def rule(x):
        def pullback(z_bar):
            x_bar = z_bar * 1.0
            kept.append((x_bar, x_bar.copy(), z_bar, z_bar.copy()))
            return (x_bar,)

        return x * 1.0, pullback

    plaingrad.rrule(keeps)(rule)

    def f(x):
        y = x * x
        z = keeps(np.sin(keeps(y) * 2.0) * y)
        return (z * y + keeps(z) + y).sum()

    def plain(x):
        y = x * x
        z = np.sin(y * 2.0) * y
        return z * y + z + y

    np.testing.assert_allclose(grad(f)(DRAWN), slopes(plain, DRAWN), rtol=1e-12, atol=1e-13)
    assert len(kept) == 3
    for x_bar, x_bar_then, z_bar, z_bar_then in kept:
        assert np.array_equal(x_bar, x_bar_then) and np.array_equal(z_bar, z_bar_then)


def test_a_seed_is_the_callers():
    y, pull = plaingrad.vjp(lambda x: np.sin(x * 2.0) * x + x, DRAWN)
    y_bar = np.linspace(0.0, 1.0, DRAWN.size)
    before = y_bar.copy()
    first = pull(y_bar)[0]
    held = first.copy()
    second = pull(y_bar)[0]
    assert np.array_equal(y_bar, before) and np.array_equal(first, held) and np.array_equal(second, held)
    again = y_bar * 2.0
    pull_of_sum = plaingrad.vjp(lambda x: x + 1.0, DRAWN)[1]
    assert np.array_equal(pull_of_sum(again)[0], before * 2.0) and np.array_equal(again, before * 2.0)
