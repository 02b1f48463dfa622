"""cachetools: caches in Python, whose keys are tuples of the arguments."""

import pytest

cachetools = pytest.importorskip("cachetools")


class Model:
    def __init__(self):
        self.cache = cachetools.TTLCache(10, 100)

    @cachetools.cachedmethod(lambda self: self.cache)
    def square(self, x):
        return x * x


def test_a_method_with_a_cache(agrees):
    def twice(x):
        model = Model()
        return model.square(x) + model.square(x) * x

    agrees(twice, 1.5)


def test_a_function_with_a_cache_of_this_call(agrees):
    def program(x):
        power = cachetools.cached(cachetools.LRUCache(4))(lambda y, n: y**n)
        return sum(power(x, n) for n in (1, 2, 3, 2, 1))

    agrees(program, 1.2)


def test_a_cache_of_constants_is_used_and_filled():
    import plaingrad

    cache = cachetools.LRUCache(4)
    calls = []

    @cachetools.cached(cache)
    def table(name):
        calls.append(name)
        return {"km": 1000.0}[name]

    assert table("km") == 1000.0
    assert plaingrad.grad(lambda x: x * table("km"))(2.0) == 1000.0
    assert calls == ["km"] and len(cache) == 1
