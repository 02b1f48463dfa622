"""Functions of the user's: nested, recursive, closures, writing, returning arrays and tuples."""

import math

import numpy as np

from tests.native.programs.entries import M, V, program

SCALE = 1.5
TABLE = np.array([0.5, -1.5, 2.5])


def squares(v):
    return v * v


def normalised(v):
    n = math.sqrt(np.sum(v * v))
    return v / n, n


def pushed(v, k, x):
    v[k] = v[k] * x + v[k - 1]
    return v[k] * 2.0


def first_above(v, limit):
    for k in range(v.shape[0]):
        if v[k] > limit:
            return v[k] * k
    return limit * 3.0


def power(x, n):
    if n == 0:
        return 1.0
    half = power(x, n // 2)
    return half * half * (x if n % 2 else 1.0)


def gcd_like(a, b, x):
    return x if b == 0 else gcd_like(b, a % b, x * 1.1 + 0.1 * a)


def weighted(x, y=0.5, power=2):
    return x**power * y


@program(V, 0.4, compiled=True)
def a_helper_that_returns_an_array(v, x):
    w = squares(v * x)
    return np.sum(squares(w) - v)


@program(V)
def a_helper_that_returns_an_array_and_a_number(v):
    w, n = normalised(v)
    u, _ = normalised(w + 1.0)
    return np.sum(w * u) * n


@program(V, 0.4)
def a_helper_that_writes_and_returns(v, x):
    s = 0.0
    for k in range(4):
        s += pushed(v, k, x) * x
    return s + np.sum(v * v)


@program(V, 0.4, 0.9)
def a_helper_that_returns_early(v, x, y):
    return first_above(v, x) * first_above(v, y) + first_above(v, 5.0 * x)


@program(1.2, 5, compiled=True)
def a_recursive_helper(x, n):
    return power(x, n) + power(x * x, 3)


@program(1.2, 30, 18)
def a_recursion_by_integers(x, a, b):
    return gcd_like(a, b, x) * x


@program(1.2, 0.3)
def a_helper_with_defaults_and_keywords(x, y):
    return weighted(x) + weighted(x, power=3) + weighted(x, y) + weighted(y=x, x=y)


@program(1.2, 0.3)
def nested_functions_that_capture(x, y):
    def scaled(t):
        return t * y * SCALE

    def twice(t):
        return scaled(scaled(t)) + x

    return twice(x) * scaled(2.0)


@program(1.2, 1)
def constants_and_arrays_of_the_module(x, k):
    return SCALE * x * TABLE[k] + TABLE[2] * math.sin(x * TABLE[0])


@program(M, 0.3)
def a_helper_given_views(m, x):
    s = 0.0
    for i in range(3):
        s += pushed(m[i], 1, x) + pushed(m[:, i], 2, x)
    return s + np.sum(m)
