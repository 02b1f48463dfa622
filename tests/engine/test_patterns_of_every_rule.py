"""Every rule of NumPy: what moves when an argument does is in its pattern, mutated arguments included.

Each function is tried at its first sample and at one in three of the others; at all with PLAINGRAD_TEST_ALL=1.
"""

import copy

import numpy as np
import pytest
from tests.rules.numpy.checks import leaves
from tests.rules.numpy.composed_samples import COMPOSED, RANDOM
from tests.rules.numpy.test_through_the_engine import SAMPLES, moved, name_of
from tests.sampling import sample_of

from plaingrad.engine.sparsity.patterns import find_pattern

pytestmark = pytest.mark.filterwarnings("ignore")


def after(function, args, kwargs, values):
    """The numbers and arrays in the results and in the arguments as `function` leaves them."""
    everything = (*args, *kwargs.values())
    inputs = moved(everything, [v.copy() if isinstance(v, np.ndarray) else v for v in values])
    results = function(*inputs[: len(args)], **dict(zip(kwargs, inputs[len(args) :])))
    return leaves([results, inputs])


def flat(ys):
    return np.concatenate([np.zeros(0), *[np.ravel(y) for y in ys]])


def stepped(xs, j, step):
    """The values with number j, counted through all of them, moved."""
    xs = [copy.deepcopy(x) for x in xs]
    for k, x in enumerate(xs):
        if j < np.size(x):
            if isinstance(x, np.ndarray):
                x[np.unravel_index(j, x.shape)] += step
            else:
                xs[k] = type(x)(x + step)
            return xs
        j -= np.size(x)
    raise IndexError


def check(function, args, kwargs):
    xs = [copy.deepcopy(x) for x in leaves((*args, *kwargs.values()))]
    if not xs:
        return

    def f(values):
        return after(function, args, kwargs, values)

    with np.errstate(all="ignore"):
        before = flat(f(xs))
        starts, columns = find_pattern(f, (xs,), (0,), {}, list)
        n = sum(map(np.size, xs))
        found = np.zeros((before.size, n), bool)
        found[np.repeat(np.arange(before.size), np.diff(starts)), columns] = True
        where = np.concatenate([np.full(np.size(x), np.iscomplexobj(x)) for x in xs])
        for j in range(n):
            for step in (1e-4, -1e-3, 1e-4j, 1e-3 - 1e-3j) if where[j] else (1e-4, -1e-3):
                try:
                    changed = differs(f, xs, j, step, before) & differs(f, xs, j, step / 32, before)  # not by a jump
                except (ValueError, np.linalg.LinAlgError):
                    continue
                assert not np.any(changed & ~found[:, j]), f"missing in column {j}: {args} {kwargs}"


def differs(f, xs, j, step, before):
    there = flat(f(stepped(xs, j, step)))
    if there.shape != before.shape:
        return np.zeros(before.shape, bool)
    return ~((there == before) | (np.isnan(there) & np.isnan(before)))


@pytest.mark.parametrize("function", SAMPLES, ids=name_of)
def test_rules_miss_no_dependence(function):
    for args, kwargs in sample_of(SAMPLES[function], name_of(function), 3):
        check(function, args, kwargs)


@pytest.mark.parametrize("function", COMPOSED, ids=name_of)
def test_definitions_miss_no_dependence(function):
    for args, kwargs in sample_of(COMPOSED[function], name_of(function), 3):
        check(function, args, kwargs)


@pytest.mark.parametrize("function", RANDOM, ids=name_of)
def test_draws_miss_no_dependence(function):
    for args, kwargs in RANDOM[function][1]:
        check(function, args, kwargs)
