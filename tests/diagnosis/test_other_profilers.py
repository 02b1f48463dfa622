"""cProfile and tracemalloc show the user's functions and lines while a gradient is taken; so does `profile`."""

import cProfile
import linecache
import math
import pstats
import tracemalloc

import numpy as np
import pytest

import plaingrad
from plaingrad import grad


def helper(x):
    return math.sin(x) * x


def model(x):
    total = 0.0
    for k in range(30):
        total = total + helper(x * k)
    return total


def arrays(x):
    y = np.exp(x)
    return (y * y).sum()


def test_cprofile_shows_the_users_functions_with_their_calls():
    profile = cProfile.Profile()
    profile.enable()
    try:
        grad(model)(0.5)
    finally:
        profile.disable()
    counts = {key: row[1] for key, row in pstats.Stats(profile).stats.items()}
    assert counts[__file__, helper.__code__.co_firstlineno, "helper"] == 30
    assert counts[__file__, model.__code__.co_firstlineno, "model"] == 1


def test_tracemalloc_blames_the_users_line():
    x = np.ones(200_000)
    grad(arrays)(x)
    tracemalloc.start(25)
    try:
        found = []

        def kept(x):
            value = arrays(x)
            found.append(tracemalloc.take_snapshot())
            return value

        grad(kept)(x)
    finally:
        tracemalloc.stop()
    lines = set()
    for trace in found[0].traces:
        if trace.size >= x.nbytes:
            lines |= {linecache.getline(frame.filename, frame.lineno).strip() for frame in trace.traceback}
    assert "y = np.exp(x)" in lines


def test_line_profiler_leaves_gradients_as_they_are():
    """It counts lines of the code objects that it was given, and rewritten code is another: `profile` is for that."""
    line_profiler = pytest.importorskip("line_profiler")
    profiler = line_profiler.LineProfiler()
    profiled = profiler(helper)

    def f(x):
        return sum([profiled(x * k) for k in range(5)])

    assert f(0.5) == sum([helper(0.5 * k) for k in range(5)])
    (rows,) = [rows for (file, _, name), rows in profiler.get_stats().timings.items() if name.endswith("helper")]
    assert [(line, hits) for line, hits, _ in rows] == [(helper.__code__.co_firstlineno + 1, 5)]
    expected = sum(k * (math.cos(0.5 * k) * 0.5 * k + math.sin(0.5 * k)) for k in range(5))
    assert grad(f)(0.5) == pytest.approx(expected, rel=1e-14)
    found = {row.source: row.cost.hits for row in plaingrad.profile(model, 0.5).rows}
    assert found["return math.sin(x) * x"] == 30
