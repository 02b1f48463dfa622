"""Recursion: as deep as the plain call, mutual, memoised, tree-shaped, through methods and generators."""

import functools
import math
import threading

import pytest
from cases_b import check

import plaingrad


def in_a_fresh_stack(call):
    """The result of call() in a thread of its own, where recursion starts near depth 0."""
    out = []

    def run():
        try:
            out.append(call())
        except BaseException as error:
            out.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if isinstance(out[0], BaseException):
        raise out[0]
    return out[0]


def test_recursion_to_nine_hundred_levels_works_under_the_gradient():
    def down(n, x):
        if n == 0:
            return x
        return down(n - 1, x) + x * 2.0**-10

    def f(x):
        return down(900, x) * x

    value, slope = in_a_fresh_stack(lambda: plaingrad.value_and_grad(f)(3.0))
    k = 1 + 900 * 2.0**-10
    assert value == in_a_fresh_stack(lambda: f(3.0))
    assert slope == pytest.approx(2 * k * 3.0, rel=1e-12)


def test_recursion_through_a_method_and_keywords_is_as_deep():
    class Walker:
        def __init__(self, step):
            self.step = step

        def walk(self, *, n):
            return self.step if n == 0 else self.walk(n=n - 1) + self.step

    def f(x):
        return Walker(x * x).walk(n=880)

    slope = in_a_fresh_stack(lambda: plaingrad.grad(f)(0.5))
    assert slope == pytest.approx(881 * 2 * 0.5, rel=1e-12)


def test_recursion_without_end_is_a_recursion_error_and_can_be_caught():
    def forever(x):
        return forever(x * 1.0)

    def f(x):
        try:
            return forever(x)
        except RecursionError:
            return x * x

    assert in_a_fresh_stack(lambda: plaingrad.grad(f)(3.0)) == 6.0
    with pytest.raises(RecursionError):
        plaingrad.grad(forever)(1.0)
    check(lambda x: x * x, 2.0, 4.0)


def test_mutual_recursion():
    def even(n, x):
        return x if n == 0 else odd(n - 1, x) * x

    def odd(n, x):
        return 1.0 if n == 0 else even(n - 1, x) + x

    def f(x):
        return even(4, x)

    # even4 = odd3 x; odd3 = even2 + x; even2 = odd1 x; odd1 = even0 + x = 2x
    # even2 = 2xx; odd3 = 2xx + x; even4 = 2xxx + xx
    check(f, 1.3, 6 * 1.3**2 + 2 * 1.3)


def test_factorial_like_product():
    def product(x, n):
        return 1.0 if n == 0 else (x + n) * product(x, n - 1)

    x, n = 0.7, 12
    p = math.prod(x + k for k in range(1, n + 1))
    check(lambda x: product(x, n), x, p * sum(1 / (x + k) for k in range(1, n + 1)), rtol=1e-11)


def test_fibonacci_tree_of_active_numbers():
    def fib(n, a, b):
        return (a, b)[n] if n < 2 else fib(n - 1, a, b) + fib(n - 2, a, b)

    # F(n) = fibonacci(n-1) a + fibonacci(n) b, 0-based with fibonacci(0)=0, (1)=1
    check(lambda p: fib(12, p[0], p[1]) * p[0], [1.5, 2.5], [2 * 89 * 1.5 + 144 * 2.5, 144 * 1.5])


def test_memoised_by_a_dictionary_of_the_call():
    def f(x):
        memo = {}

        def fib(n):
            if n < 2:
                return x if n else 1.0
            if n not in memo:
                memo[n] = fib(n - 1) + fib(n - 2)
            return memo[n]

        return fib(40) * x

    a, b = 63245986, 102334155  # fibonacci numbers 39 and 40
    x = 0.5
    check(f, x, a + 2 * b * x)


def test_memoised_by_lru_cache_defined_inside():
    def f(x):
        @functools.lru_cache(maxsize=None)
        def fib(n):
            return fib(n - 1) + fib(n - 2) if n >= 2 else (x if n else 1.0)

        return fib(40) * x

    a, b = 63245986, 102334155
    x = 0.5
    check(f, x, a + 2 * b * x)


def test_memoised_by_functools_cache_of_active_arguments():
    @functools.cache
    def power(x, n):
        if n == 0:
            return 1.0
        half = power(x, n // 2)
        return half * half * (x if n % 2 else 1.0)

    x = 1.1
    check(lambda x: power(x, 13), x, 13 * x**12)


def test_ackermann_like_recursion():
    def ackermann(m, n, x):
        if m == 0:
            return n + 1, x
        if n == 0:
            k, y = ackermann(m - 1, 1, x)
            return k, y * 1.01
        inner, y = ackermann(m, n - 1, x)
        k, z = ackermann(m - 1, inner, y)
        return k, z + x * 0.001

    def f(x):
        return ackermann(2, 2, x)[1]

    assert ackermann(2, 2, 1.0)[0] == 7
    slope = f(1.0)  # f(x) = slope * x: every step is linear and homogeneous in x
    assert f(3.0) == pytest.approx(3.0 * slope, rel=1e-13)
    check(f, 3.0, slope)


def test_hanoi_moves_weighted_by_an_active_cost():
    def hanoi(n, a, b, c, cost):
        if n == 0:
            return 0.0
        return hanoi(n - 1, a, c, b, cost) + cost[a] * cost[b] + hanoi(n - 1, c, b, a, cost)

    def moves(n, a, b, c, count):
        if n:
            moves(n - 1, a, c, b, count)
            count[a][b] += 1
            moves(n - 1, c, b, a, count)
        return count

    cost = [1.5, 2.5, 3.5]
    n = moves(5, 0, 1, 2, [[0] * 3 for _ in range(3)])
    slope = [sum((n[i][j] + n[j][i]) * cost[j] for j in range(3)) for i in range(3)]
    check(lambda c: hanoi(5, 0, 1, 2, c), cost, slope)


def test_a_recursive_closure_and_a_fixed_point_combinator():
    def f(x):
        y = lambda g: (lambda h: h(h))(lambda h: g(lambda *a: h(h)(*a)))
        power = y(lambda me: lambda n: 1.0 if n == 0 else x * me(n - 1))
        return power(7)

    check(f, 1.2, 7 * 1.2**6)


def test_a_recursive_generator():
    def leaves(tree):
        if isinstance(tree, list):
            for branch in tree:
                yield from leaves(branch)
        else:
            yield tree

    def f(tree):
        return math.prod(leaves(tree))

    check(f, [1.5, [2.0, [3.0, 0.5]], [[4.0]]], [12.0, [9.0, [6.0, 36.0]], [[4.5]]])


def test_a_linked_list_walked_by_recursion():
    def f(x):
        chain = None
        for i in range(300):
            chain = (x * i, chain)

        def total(link):
            return 0.0 if link is None else link[0] + total(link[1])

        return total(chain) * x

    check(f, 1.1, 2 * 1.1 * 300 * 299 / 2)


def test_recursion_over_an_expression_tree_with_match():
    def value(e, x):
        match e:
            case ("add", a, b):
                return value(a, x) + value(b, x)
            case ("mul", a, b):
                return value(a, x) * value(b, x)
            case ("sin", a):
                return math.sin(value(a, x))
            case "x":
                return x
            case float(c):
                return c

    tree = ("add", ("mul", "x", ("sin", ("mul", 2.0, "x"))), ("mul", "x", "x"))
    x = 0.8
    check(lambda x: value(tree, x), x, math.sin(2 * x) + 2 * x * math.cos(2 * x) + 2 * x)


def test_adaptive_quadrature_by_recursion():
    def simpson(g, a, b):
        return (b - a) / 6.0 * (g(a) + 4.0 * g((a + b) / 2.0) + g(b))

    def integrate(g, a, b, whole, depth):
        m = (a + b) / 2.0
        left, right = simpson(g, a, m), simpson(g, m, b)
        if depth == 0 or abs(left + right - whole) < 1e-13:
            return left + right
        return integrate(g, a, m, left, depth - 1) + integrate(g, m, b, right, depth - 1)

    def f(k):
        g = lambda t: math.exp(k * t)
        return integrate(g, 0.0, 1.0, simpson(g, 0.0, 1.0), 12)

    k = 0.9  # the integral is (exp(k) - 1) / k
    check(f, k, (k * math.exp(k) - math.exp(k) + 1) / k**2, rtol=1e-9)
