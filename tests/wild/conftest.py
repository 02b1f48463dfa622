"""One check for all of this folder: a gradient through somebody else's package against differences."""

import math

import numpy as np
import pytest
from tests.sampling import is_in_sample

import plaingrad
from plaingrad.testing import checked


@pytest.fixture(autouse=True)
def in_checked_mode(request):
    """In one test in two, every derivative is compared with a plain call, and its modes with one another.

    In the others only by `agrees`, which does so for a gradient; with PLAINGRAD_TEST_ALL=1 in all tests.
    """
    if request.node.get_closest_marker("unchecked") or not is_in_sample(request.node.nodeid, 2):
        yield
    else:
        with checked():
            yield


def leaves(x, path="x"):
    """Every number of a structure of floats, arrays, lists, tuples and dicts: its path, value and a setter's key."""
    if isinstance(x, dict):
        return [leaf for key in x for leaf in leaves(x[key], f"{path}[{key!r}]")]
    if isinstance(x, (list, tuple)):
        return [leaf for i, part in enumerate(x) for leaf in leaves(part, f"{path}[{i}]")]
    if isinstance(x, np.ndarray):
        return [(f"{path}[{i}]", float(v)) for i, v in enumerate(x.ravel().tolist())]
    return [(path, float(x))]


def rebuilt(x, values):
    """The structure x with its numbers taken from the iterator `values`."""
    if isinstance(x, dict):
        return {key: rebuilt(part, values) for key, part in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)([rebuilt(part, values) for part in x])
    if isinstance(x, np.ndarray):
        return np.array([next(values) for _ in range(x.size)]).reshape(x.shape)
    return next(values)


def differences(f, x, step):
    """df/dx of every number of x: central differences at a step and at half of it, extrapolated."""
    values = [value for _, value in leaves(x)]
    slopes = []
    for i, value in enumerate(values):
        def at(v):
            return float(f(rebuilt(x, iter([*values[:i], v, *values[i + 1:]]))))

        h = step * max(abs(value), 1e-3)
        wide = (at(value + h) - at(value - h)) / (2 * h)
        narrow = (at(value + h / 2) - at(value - h / 2)) / h
        slopes.append((4 * narrow - wide) / 3)
    return slopes


@pytest.fixture
def agrees():
    """check(f, *args): value as in a plain call, and gradient as by differences. Returns value and gradients."""

    def check(f, *args, rtol=1e-6, atol=1e-9, step=1e-4):
        plain = f(*args)
        value, gradients = plaingrad.value_and_grad(f, tuple(range(len(args))))(*args)
        assert float(value) == float(plain), "the value is not that of a plain call"
        moved = False
        for n, (arg, gradient) in enumerate(zip(args, gradients)):
            expected = differences(lambda v, n=n: f(*args[:n], v, *args[n + 1:]), arg, step)
            got = leaves(gradient, f"argument {n}")
            assert len(got) == len(expected)
            for (path, mine), by_differences in zip(got, expected):
                assert math.isfinite(mine), f"{path}: {mine}"
                assert mine == pytest.approx(by_differences, rel=rtol, abs=atol), path
                moved |= mine != 0.0
        assert moved, "a test whose gradient is zero throughout shows nothing"
        return value, gradients

    return check


@pytest.fixture
def refuses(request):
    """check(f, *args, called=...): refused in both modes, naming what was called and the line of this test's file."""

    def check(f, *args, called, error=plaingrad.MissingRuleError, says=""):
        plain = f(*args)
        directions = tuple(rebuilt(arg, iter([1.0] * len(leaves(arg)))) for arg in args)
        for attempt in (
            lambda: plaingrad.value_and_grad(f, tuple(range(len(args))))(*args),
            lambda: plaingrad.jvp(f, args, directions),
        ):
            with pytest.raises(error) as caught:
                attempt()
            text = str(caught.value)
            assert f"`{called}" in text.splitlines()[0], text
            assert f"{request.path}:" in text, "a refusal names the user's file and line"
            assert says in text, text
        assert repr(f(*args)) == repr(plain), "after a refusal a plain call works as before"

    return check
