"""toolz: functions of functions: curry, compose, pipe, reduceby, iterators of iterators."""

import math

import pytest

import plaingrad

toolz = pytest.importorskip("toolz")


def test_a_pipe_of_curried_functions(agrees):
    @toolz.curry
    def power(n, x):
        return x**n

    agrees(lambda x: toolz.pipe(x, math.sin, power(3), lambda v: v + 1, toolz.compose(math.exp, math.sqrt)), 0.8)


def test_groups_and_folds(agrees):
    def spread(values):
        groups = toolz.groupby(lambda v: v > 1.0, values)
        sums = toolz.reduceby(lambda v: v > 1.0, lambda a, v: a + v * v, values, 0.0)
        return toolz.valmap(sum, groups)[True] * sums[False] + toolz.merge_with(max, groups and sums, sums)[True]

    agrees(spread, [0.3, 1.4, 0.9, 2.2])


def test_windows_over_an_accumulation(agrees):
    def roughness(values):
        path = toolz.accumulate(lambda a, v: a * 0.5 + v, values)
        return sum((b - a) ** 2 for a, b in toolz.sliding_window(2, path))

    agrees(roughness, [0.3, 1.4, 0.9, 2.2, -0.7])


def test_the_largest_items():
    top = plaingrad.grad(lambda v: sum(toolz.topk(2, v)))([3.0, 1.0, 4.0, 2.0])
    assert top == [1.0, 0.0, 1.0, 0.0]


def test_an_update_deep_inside_nested_dicts(agrees):
    def updated(x):
        tree = {"a": {"b": {"c": 2 * x}}, "d": 1.0}
        tree = toolz.update_in(tree, ["a", "b", "c"], lambda v: v * v)
        tree = toolz.assoc_in(tree, ["a", "e"], x**3)
        return toolz.get_in(["a", "b", "c"], tree) + toolz.get_in(["a", "e"], tree)

    agrees(updated, 1.3)


def test_a_memoized_function_is_not_a_constant():
    calls = []

    def f(x):
        slow_square = toolz.memoize(lambda v: calls.append(1) or v * v)
        return slow_square(x) + slow_square(x)

    assert plaingrad.grad(f)(3.0) == 12.0
    assert len(calls) == 1
