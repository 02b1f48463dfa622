"""Hazard 12: a cache filled at one level must not answer at another."""

import functools

import pytest
from cases_b import check

import plaingrad


def test_calls_with_active_arguments_neither_read_nor_fill_the_cache_of_the_program():
    calls = []

    @functools.lru_cache(maxsize=None)
    def square(x):
        calls.append(1)
        return x * x

    assert square(3.0) == 9.0
    before = square.cache_info()
    assert plaingrad.grad(lambda x: square(x) * x)(3.0) == 27.0
    assert square.cache_info() == before
    assert square(3.0) == 9.0 and square.cache_info().hits == before.hits + 1
    assert plaingrad.grad(square)(3.0) == 6.0


def test_within_one_level_the_function_runs_once_per_argument():
    calls = []

    @functools.lru_cache(maxsize=None)
    def slow(x, k):
        calls.append(k)
        return x * k

    def f(x):
        return slow(x, 2.0) + slow(x, 2.0) + slow(x, 3.0)

    assert plaingrad.grad(f)(1.5) == 7.0
    assert calls == [2.0, 3.0], "as often as a plain call on an empty cache"


def test_equal_values_of_different_origin_are_not_mixed_up():
    @functools.lru_cache(maxsize=None)
    def same(v):
        return v * 1.0

    def f(p):
        a, b = p
        return same(a) * 10.0 + same(b) * 100.0 + same(1.5) * a

    check(f, [1.5, 1.5], [10.0 + 1.5, 100.0])


def test_an_active_argument_does_not_answer_for_an_equal_constant():
    @functools.lru_cache(maxsize=None)
    def same(v):
        return v * 1.0

    def f(x):
        first = same(1.5)  # a constant
        return same(x) * first

    def g(x):
        first = same(x)
        return same(1.5) * first * first

    check(f, 1.5, 1.5)
    check(g, 1.5, 1.5 * 2 * 1.5)


def test_a_cache_on_a_method_a_classmethod_and_a_property():
    class Model:
        def __init__(self, k):
            self.k = k

        @functools.lru_cache(maxsize=None)
        def rate(self, n):
            return self.k * n

        @functools.cached_property
        def square(self):
            return self.k * self.k

    def f(x):
        model = Model(x)
        return model.rate(3.0) + model.rate(3.0) + model.square * model.square

    check(f, 1.5, 6 + 4 * 1.5**3)


def test_a_cache_that_reads_an_active_global_or_cell():
    def f(x):
        @functools.cache
        def g(n):
            return x * n

        return g(2) + g(2) + g(3)

    check(f, 1.5, 7.0)


def test_cache_clear_info_and_parameters_inside():
    def f(x):
        @functools.lru_cache(maxsize=2)
        def g(n):
            return x * n

        y = g(1.0) + g(2.0) + g(3.0) + g(1.0)
        assert g.cache_parameters() == {"maxsize": 2, "typed": False}
        assert g.__wrapped__(5.0) == 5.0 * x
        g.cache_clear()
        return y + g(1.0) + g.__wrapped__(2.0)

    check(f, 1.5, 7 + 1 + 2)


def test_an_exception_is_not_cached():
    calls = []

    def f(x):
        calls.clear()

        @functools.cache
        def g(n):
            calls.append(n)
            if len(calls) == 1:
                raise ValueError(x)
            return x * n

        try:
            return g(2.0)
        except ValueError as error:
            return g(2.0) * error.args[0]

    check(f, 1.5, 4 * 1.5)


def test_two_levels_have_two_memos():
    @functools.cache
    def square(v):
        return v * v

    def f(x):
        outer = square(x)
        slope = plaingrad.grad(lambda y: square(y) * square(x))(x)  # 2 x xx
        return outer + slope + square(x)

    check(f, 1.5, 4 * 1.5 + 6 * 1.5**2)


def test_unhashable_arguments_raise_the_plain_error():
    @functools.cache
    def g(v):
        return v[0]

    with pytest.raises(TypeError) as plain:
        g([1.5])
    with pytest.raises(TypeError) as ours:
        plaingrad.grad(lambda x: g([x]))(1.5)
    assert str(ours.value) == str(plain.value)


def test_fibonacci_of_three_hundred_is_linear_in_time():
    @functools.cache
    def fib(n, a):
        return a if n < 2 else fib(n - 1, a) + fib(n - 2, a)

    def plain(n):
        a, b = 1, 1
        for _ in range(n):
            a, b = b, a + b
        return a

    check(lambda x: fib(200, x), 1.0, float(plain(200)))
