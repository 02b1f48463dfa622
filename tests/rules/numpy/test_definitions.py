"""Definitions in terms of simpler functions: run as plain Python, each does what the function it defines does."""

import copy

import numpy as np
import pytest
from tests.rules.numpy.checks import same
from tests.rules.numpy.composed_samples import COMPOSED, RANDOM

from plaingrad import rulebook

pytestmark = pytest.mark.filterwarnings("ignore")


def name_of(function):
    return getattr(function, "__qualname__", None) or getattr(function, "__name__", repr(function))


def run(function, args, kwargs):
    """The result, and the arguments as they are afterwards."""
    args, kwargs = copy.deepcopy((args, kwargs))
    with np.errstate(all="ignore"):
        return function(*args, **kwargs), args, kwargs


def nothing_changes(a, b):
    if isinstance(a, dict):
        return all(nothing_changes(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(nothing_changes(x, y) for x, y in zip(a, b))
    return same(a, b) if isinstance(a, (np.ndarray, np.generic, float)) else True


@pytest.mark.parametrize("function", COMPOSED, ids=name_of)
def test_a_definition_gives_what_its_function_gives(function):
    for args, kwargs in COMPOSED[function]:
        expected, expected_args, expected_kwargs = run(function, args, kwargs)
        found, found_args, found_kwargs = run(rulebook.find(function).definition, args, kwargs)
        assert same(expected, found) if expected is not None else found is None, (args, kwargs, expected, found)
        assert nothing_changes(expected_args, found_args), (args, kwargs)
        assert nothing_changes(expected_kwargs, found_kwargs), (args, kwargs)


def test_unique_elements_that_repeat():
    definition = rulebook.find(np.unique).definition
    for x in ([1.5, 0.5, 1.5, np.nan, 0.5, np.nan], [[1.5, 0.5], [1.5, 0.5], [0.5, 2.5]], [2.0]):
        for options in ({}, {"axis": 0}, {"return_inverse": True, "return_counts": True}):
            assert same(np.unique(x, **options), definition(x, **options))


@pytest.mark.parametrize("call", RANDOM, ids=name_of)
def test_a_definition_draws_the_same_numbers(call):
    method, samples = RANDOM[call]
    rule = rulebook.find(method)
    definition = rule.definition or (lambda *a, **k: rule.rrule(*a, **k)[0])
    cls = method.__objclass__ if hasattr(method, "__objclass__") else None
    for args, kwargs in samples:
        legacy = "RandomState" in call.__name__
        for function, keep in ((method, "expected"), (definition, "found")):
            generator = np.random.RandomState(5) if legacy else np.random.default_rng(5)
            result = run(lambda *a, g=generator, f=function, **k: f(g, *a, **k), args, kwargs)[:2]
            if keep == "expected":
                expected = result
        assert same(expected[0], result[0]) if expected[0] is not None else result[0] is None, (args, kwargs, expected, result)
        assert nothing_changes(expected[1], result[1])
    del cls


@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.maximum])
def test_ufunc_at_where_elements_share_memory(ufunc):
    definition = rulebook.find(np.ufunc.at).definition
    memory = np.arange(1.0, 7.0)
    windows = [lambda m: np.lib.stride_tricks.as_strided(m, (4, 3), (8, 8)), lambda m: np.lib.stride_tricks.as_strided(m, (3, 2), (0, 8))]
    for window in windows:
        expected, found = memory.copy(), memory.copy()
        ufunc.at(window(expected), ([0, 1, 2, 2], [1, 0, 0, 1]), [1.5, 2.5, 3.5, 0.5])
        definition(ufunc, window(found), ([0, 1, 2, 2], [1, 0, 0, 1]), [1.5, 2.5, 3.5, 0.5])
        np.testing.assert_array_equal(found, expected)
