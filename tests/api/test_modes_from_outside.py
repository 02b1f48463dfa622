"""Modes of functions, also of those of a library, set from outside."""

import math
import statistics

import numpy as np
import pytest

import plaingrad
from plaingrad import ArgumentError, grad, jvp, prefer_mode, remove_rule


def settled(x):
    y = 1.0
    for _ in range(20):
        y = 0.5 * (y + x / y)
    return y


@pytest.mark.parametrize("mode", ["forward", "checkpoint", "reverse"])
def test_a_function_of_a_module_is_differentiated_in_a_mode_set_from_outside(mode):
    assert prefer_mode(mode, of=settled) is settled
    try:
        for _ in range(2):
            assert math.isclose(grad(lambda x: x * settled(x))(4.0), 3.0)
            assert math.isclose(grad(grad(settled))(4.0), -0.25 / 8, rel_tol=1e-12)
            assert math.isclose(jvp(settled, (4.0,), (1.0,))[1], 0.25)
        assert math.isclose(grad(lambda x: settled(x[0]) * x[1])(np.array([4.0, 3.0]))[0], 0.75)
    finally:
        remove_rule(settled)


def steps_of(f):
    return plaingrad.tape_size(f, 4.0).operations


def test_a_mode_set_from_outside_makes_the_tape_shorter():
    def f(x):
        return settled(x) * x

    whole = steps_of(f)
    prefer_mode("forward", of=settled)
    try:
        assert steps_of(f) < whole / 4
    finally:
        remove_rule(settled)
    assert steps_of(f) == whole


def test_checkpointed_calls_run_again_once():
    runs = []

    def inner(x):
        runs.append(1)
        return math.sin(x)

    prefer_mode("checkpoint", of=inner)
    assert grad(lambda x: inner(x) * x)(0.5) == math.sin(0.5) + 0.5 * math.cos(0.5)
    assert len(runs) == 2
    decorated = prefer_mode("checkpoint")(lambda x: inner(x) * 2)
    assert grad(decorated)(0.5) == 2 * math.cos(0.5)


def test_exceptions_are_those_of_the_function():
    def fails(x):
        raise KeyError(x)

    prefer_mode("checkpoint", of=fails)
    with pytest.raises(KeyError):
        grad(fails)(1.0)
    with pytest.raises(ArgumentError, match="has a rule"):
        prefer_mode("forward", of=math.sin)
    with pytest.raises(ArgumentError, match="taylor"):
        prefer_mode("taylor")
    assert statistics.mean([1.0, 2.0]) == 1.5
