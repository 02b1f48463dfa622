"""Which mode `mode="auto"` takes: by what a recorded run consists of, and by how many results it has."""

import math

import numpy as np
import plaingrad
import pytest
from plaingrad.api import choice
from plaingrad.api.choice import COMPILED, PYTHON, Known, Program
from plaingrad.engine.compiled import core
from plaingrad.engine.reverse.run import Run
from plaingrad.rewrite import CURRENT

compiled = pytest.mark.skipif(core is None, reason="the costs are those of the compiled core")


def levels_of(f):
    """`f`, and the list of the levels that it is called at."""
    seen = []

    def noting(*args):
        seen.append(type(CURRENT.get()).__name__)
        return f(*args)

    return noting, seen


def numbers(results, steps=200):
    """So many results of arithmetic on numbers."""

    def f(x):
        total = 0.0
        for k in range(steps):
            total = total * 0.9 + math.sin(x[k % len(x)]) * x[(k + 1) % len(x)]
        return [total * (k + 1.0) for k in range(results)]

    return f


def arrays(results):
    """So many results of operations on arrays."""

    def f(x):
        u = t = np.linspace(0.0, 1.0, 200)
        for k in range(30):
            u = np.tanh(u * x[k % len(x)]) + 0.5 * t
        return u[-results:]

    return f


def check(f, x):
    """The Jacobian is that of central differences."""
    found = plaingrad.jacobian(f)(x)
    if isinstance(f(x), np.ndarray):
        found = np.transpose(found)  # an array's leaf holds the structure of the argument
    found, x = np.array(found), np.array(x)
    for k in range(len(x)):
        step = 1e-6 * np.eye(len(x))[k]
        slope = (np.array(f((x + step).tolist())) - np.array(f((x - step).tolist()))) / 2e-6
        np.testing.assert_allclose(found[:, k], slope, rtol=1e-6, atol=1e-7)


POINTS = {n: [0.3 + 0.05 * k for k in range(n)] for n in (1, 2, 3, 5, 8, 12)}


@compiled
@pytest.mark.parametrize("inputs", [2, 3, 5, 8, 12])
@pytest.mark.parametrize("results", [1, 3])
def test_few_results_are_pulled_back_from(inputs, results):
    for make in (numbers, arrays):
        f, levels = levels_of(make(results))
        plaingrad.jacobian(f)(POINTS[inputs])
        assert levels == ["ReverseLevel"]


@pytest.mark.parametrize("results", [1, 50])
def test_one_input_is_pushed_at_once(results):
    f, levels = levels_of(numbers(results))
    plaingrad.jacobian(f)(POINTS[1])
    assert levels == ["ForwardLevel"]


@compiled
def test_on_numbers_ten_results_are_pulled_back_from_once_a_run_is_recorded():
    f, levels = levels_of(numbers(10, steps=4000))
    plaingrad.jacobian(f)(POINTS[12])
    assert levels == ["ReverseLevel"]


@compiled
@pytest.mark.parametrize("inputs", [2, 3, 12])
def test_of_many_results_of_numbers_all_inputs_are_pushed_together(inputs):
    f, levels = levels_of(numbers(100, steps=4000))
    plaingrad.jacobian(f)(POINTS[inputs])
    assert levels == ["ReverseLevel", "ForwardLevel"]


@compiled
def test_many_results_of_arrays_are_pushed_together():
    f, levels = levels_of(arrays(100))
    plaingrad.jacobian(f)(POINTS[12])
    assert levels == ["ReverseLevel", "ForwardLevel"]


@pytest.mark.parametrize("inputs", [2, 3, 12])
def test_the_second_derivative_that_a_function_takes_records_no_run_to_choose(inputs):
    f, levels = levels_of(arrays(150))
    jacobian = plaingrad.jacobian(f)
    first = jacobian(POINTS[inputs])
    assert levels[0] == "ReverseLevel"
    levels.clear()
    second = jacobian(POINTS[inputs])
    assert set(levels) == {"ForwardLevel"}
    np.testing.assert_allclose(first, second, rtol=1e-13)


def test_what_is_known_is_forgotten_for_another_number_of_inputs():
    f, levels = levels_of(arrays(150))
    jacobian = plaingrad.jacobian(f)
    jacobian(POINTS[12])
    levels.clear()
    jacobian(POINTS[5])
    assert levels[0] == "ReverseLevel"


def test_a_function_with_other_results_the_next_time_is_followed():
    results = [150]
    f, levels = levels_of(lambda x: arrays(results[0])(x))
    jacobian = plaingrad.jacobian(f)
    jacobian(POINTS[12])
    results[0] = 1
    assert np.array(jacobian(POINTS[12])).shape == (12, 1)
    levels.clear()
    assert np.array(jacobian(POINTS[12])).shape == (12, 1)
    assert levels == ["ReverseLevel"]


@pytest.mark.parametrize("inputs", [1, 2, 3, 5, 8, 12])
@pytest.mark.parametrize("results", [1, 3, 40])
def test_jacobians_are_those_of_differences_whatever_is_chosen(inputs, results):
    check(numbers(results), POINTS[inputs])
    check(arrays(results), POINTS[inputs])


def test_what_the_function_changes_is_changed_once_whatever_is_chosen():
    calls = []

    def f(x):
        calls.append(x[0])
        x[0] = x[0] * 2.0
        return [x[0] * x[1] + k for k in range(300)]

    for point in ([1.0, 3.0], np.array([1.0, 3.0])):
        x = point.copy()
        found = np.array(plaingrad.jacobian(f)(x))
        assert found.reshape(300, 2)[7].tolist() == [6.0, 2.0]
        assert x[0] == 2.0


@pytest.mark.parametrize("make", [numbers, arrays])
def test_forward_mode_asked_for_takes_all_directions_together(make):
    f, levels = levels_of(make(2))
    for inputs in (2, 3, 12):
        plaingrad.jacobian(f, mode="forward")(POINTS[inputs])
    assert levels == ["ForwardLevel"] * 3


def test_a_chunk_that_is_asked_for_is_taken():
    f, levels = levels_of(numbers(2))
    plaingrad.jacobian(f, mode="forward", chunk_size=3)(POINTS[3])
    assert levels == ["ForwardLevel"]


def test_gradients_are_recorded_whatever_the_number_of_inputs():
    for inputs in (1, 2, 5):
        f, levels = levels_of(lambda x: numbers(1)(x)[0])
        plaingrad.grad(f)(POINTS[inputs])
        assert levels == ["ReverseLevel"]


def test_the_estimates_know_numbers_from_arrays():
    of_numbers = Program(numbers=10_000, elements=0, arrays=0, largest=1, directions=3, outputs=10)
    of_arrays = Program(numbers=0, elements=0, arrays=100, largest=100, directions=3, outputs=10)
    assert choice.is_reverse(of_numbers, recorded=True)
    assert not choice.is_reverse(of_arrays, recorded=True)
    for ways in (COMPILED, PYTHON):
        for program in (of_numbers, of_arrays):
            assert ways.pull.of(program) < ways.push.of(program) < ways.chunk.of(program)
    assert Known().program is None


@compiled
def test_a_tape_tells_numbers_elements_and_arrays_apart():
    def f(x):
        a = np.array([x[0], x[1], 1.0])  # an array
        a[2] = a[0] * x[2]  # an element read, a number, an element written
        return np.sum(a * 2.0) + x[2]  # two arrays, a number

    run = Run(f, (POINTS[3],), (0,), {})
    numbers_, elements, arrays_ = run.level.tape.census()
    assert elements == 2
    assert arrays_ == 3
    assert numbers_ == 4  # one for each operand
