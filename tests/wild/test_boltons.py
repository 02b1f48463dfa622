"""boltons: statistics with cached properties, iteration, ranges, recursive maps."""

import pytest

pytest.importorskip("boltons")
from boltons import cacheutils, iterutils, mathutils, statsutils  # noqa: E402


@pytest.mark.parametrize(
    "name", ["mean", "variance", "std_dev", "median", "skewness", "kurtosis", "rel_std_dev", "trimean", "iqr", "median_abs_dev"]
)
def test_statistics(agrees, name):
    agrees(lambda v: getattr(statsutils.Stats(v), name), [1.0, 2.2, 4.0, 9.0])


def test_windows_chunks_and_ranges(agrees):
    agrees(lambda v: sum(sum(c) ** 2 for c in iterutils.chunked(v, 2)), [1.0, 2.0, 4.0])
    agrees(lambda v: sum(a * b for a, b in iterutils.windowed(v, 2)), [1.0, 2.0, 4.0])
    agrees(lambda v: sum(iterutils.backoff(v, 10.0)), 1.2)
    agrees(lambda v: mathutils.clamp(v, 0.0, 1.5) * v, 1.2)


def test_a_map_over_a_nested_structure(agrees):
    def twice(path, key, value):
        return key, value * 2.0 if isinstance(value, float) else value

    agrees(lambda v: iterutils.remap({"a": v, "b": [v, {"c": v}]}, twice)["b"][1]["c"], 1.2)


def test_a_cache_of_the_program(agrees):
    def model(v):
        cache = cacheutils.LRU(max_size=10)
        squared = cacheutils.cached(cache)(lambda x: x * x)
        return squared(v) + squared(v)

    agrees(model, 1.2)
