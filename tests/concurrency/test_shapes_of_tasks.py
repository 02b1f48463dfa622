"""105 programs with tasks, a shape times a way to run them: reverse, forward and nested, against complex steps."""

import functools

import numpy as np
import pytest

from benchmarks.concurrency.programs import SHAPES, SIZE, WAYS
from benchmarks.concurrency.racy import by_complex_steps
from benchmarks.concurrency.racy import main as race
from plaingrad import grad, hvp, jvp

A = np.linspace(0.1, 1.1, SIZE)
DOTS = np.cos(np.arange(SIZE))


@functools.cache
def slope_and_curvature(shape):
    """The gradient, and its change along DOTS, a difference of gradients."""
    h = 1e-5
    above, below = (by_complex_steps(shape, A + step * DOTS) for step in (h, -h))
    return by_complex_steps(shape, A), (above - below) / (2.0 * h)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_a_program_with_tasks_has_the_derivatives_of_one_without(shape, way):
    program = functools.partial(shape, way)
    slope, curvature = slope_and_curvature(shape)
    found = grad(program)(A)
    np.testing.assert_allclose(found, slope, rtol=1e-12)
    assert np.array_equal(grad(program)(A), found), "the same to the last bit"
    assert jvp(program, (A,), (DOTS,))[1] == pytest.approx(slope @ DOTS, rel=1e-12)
    np.testing.assert_allclose(hvp(program, (A,), (DOTS,))[0], curvature, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_a_gradient_of_a_gradient_of_a_program_with_tasks(shape):
    way = WAYS[SHAPES.index(shape)]
    along = grad(lambda a: grad(functools.partial(shape, way))(a) @ DOTS)(A)
    np.testing.assert_allclose(along, slope_and_curvature(shape)[1], rtol=1e-7, atol=1e-8)


def test_the_race_counts_what_is_wrong_and_what_differs(capsys):
    assert race(8) == 0
    assert "0 wrong, 0 that differ" in capsys.readouterr().out
