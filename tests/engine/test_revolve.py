"""The schedule of binomial checkpointing, against dynamic programming and for long chains."""

import functools
import math

import pytest

from plaingrad import checkpoint_sequence, grad
from plaingrad.engine.checkpoints.revolve import first_part, least_advances, repetitions


@functools.cache
def fewest(n, states):
    """The fewest steps that are not recorded, by trying every place for the next state."""
    if n <= 1:
        return 0
    if states == 1:
        return n * (n - 1) // 2
    return min(m + fewest(n - m, states - 1) + fewest(m, states) for m in range(1, n))


@pytest.mark.parametrize("states", range(1, 9))
def test_the_formula_is_the_optimum(states):
    assert [least_advances(n, states) for n in range(70)] == [fewest(n, states) for n in range(70)]


@pytest.mark.parametrize("states", range(2, 9))
def test_the_first_part_is_an_optimal_one(states):
    for n in range(2, 70):
        m = first_part(n, states)
        assert 1 <= m < n
        assert m + fewest(n - m, states - 1) + fewest(m, states) == fewest(n, states)


def test_figures_of_the_documentation():
    assert math.comb(24, 4) == 10_626 and repetitions(10_600, 20) == 4
    assert math.comb(26, 6) == 230_230 and repetitions(230_000, 20) == 6
    assert 100_000 + least_advances(100_000, 20) == 634_220


@pytest.mark.parametrize(("n", "states"), [(3000, 12), (2000, 3), (500, 500), (400, 399)])
def test_long_chains_take_as_few_calls(n, states):
    calls = 0

    def step(x):
        nonlocal calls
        calls += 1
        return x * 0.999

    assert grad(lambda x: checkpoint_sequence(step, x, n, states))(1.0) == pytest.approx(0.999**n, rel=1e-12)
    assert calls == n + least_advances(n, states)
