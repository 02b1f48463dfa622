"""Loops and branches: every way in and out."""

import math

import numba
import numpy as np

from tests.native.programs.entries import GRID, V, W, program


@program(0.7, 4)
def early_returns_in_nested_loops(x, n):
    for i in range(n):
        for j in range(n):
            x = x * 1.1 + 0.1 * j
            if x > 2.0 + i:
                return x * x * j
        if x < 0:
            return -x
    return x


@program(0.7, 5, compiled=True)
def break_and_else_of_a_for(x, n):
    s = 0.0
    for i in range(n):
        s += x * i
        if s > 100:
            break
    else:
        s = s * s
    for i in range(n):
        s += math.sin(s)
        if i == 2:
            break
    else:
        s = -s
    return s


@program(0.7)
def break_continue_and_else_of_a_while(x):
    k, s = 0, x
    while k < 8:
        k += 1
        if k % 3 == 0:
            continue
        s += s * x * 0.1
        if s > 1.3:
            break
    else:
        s = 0.5 * s
    return s * k


@program(2.6, 0.3)
def a_trip_count_out_of_a_float(x, y):
    s = 1.0
    for k in range(int(x * 2)):
        s += y**k * x
    while s > 1.0:
        s = s * 0.5 + y * 0.1
    return s


@program(0.3, 0)
def zero_trips(x, n):
    s = x * x
    for i in range(n):
        s *= x
        for j in range(i):
            s += j * x
    while n > 0:
        n -= 1
        s = s * s
    for _ in range(5, 2):
        s = 0.0
    return s


@program(0.3, 7)
def ranges_with_steps(x, n):
    s = 0.0
    for i in range(n, 0, -2):
        s = s * x + i
    for i in range(-3, n, 3):
        s += x * i * s * 0.01
    return s


@program(0.6, 0.2)
def branches_in_branches(x, y):
    if x > y:
        if x > 0.5:
            z = x * y
        else:
            z = x
        z += 1
    elif x == y:
        z = 0.0
    else:
        z = y * y
    return z * z if z > 1 else -z


@program(0.7, 6)
def a_branch_inside_a_loop_on_what_the_loop_carries(x, n):
    s, t = x, 0.0
    for _ in range(n):
        if s > 1.0:
            s, t = s * 0.5, t + s
        else:
            s = s * 1.7 + 0.1 * t
    return s * t


@program(7.0)
def newtons_method(a):
    x = a
    while abs(x * x - a) > 1e-12 * a:
        x = 0.5 * (x + a / x)
    return x


@program(V, W, 4)
def triangular_loops(a, b, n):
    s = 0.0
    for i in range(n):
        for j in range(i):
            for k in range(j, n):
                s += a[i] * b[j] * a[k] * 0.1
    return s


@program(V, 0.5)
def a_pure_sum_with_a_branch(v, x):
    s, t = 0.0, 0.0
    for k in range(4):
        d = v[k] - x
        if d < 0:
            continue
        s += math.log1p(d * d)
        t -= d * x
    return s + t * s


@program(V, W)
def log_of_a_sum_of_exponentials(v, w):
    s = 0.0
    for i in range(4):
        m = v[0]
        for j in range(1, 4):
            m = max(m, v[j] * w[i])
        t = 0.0
        for j in range(4):
            t += math.exp(v[j] * w[i] - m)
        s += math.log(t) + m
    return s


@program(GRID, V, 0.3)
def logistic_regression(rows, v, bias):
    s = 0.0
    for i in range(rows.shape[0]):
        z = bias
        for j in range(4):
            z += rows[i, j] * v[j]
        s += math.log1p(math.exp(-z)) if i % 2 else math.log1p(math.exp(z))
    return s


@program(GRID, 0.2, 0.3, compiled=True)
def an_option_on_a_mean(shocks, rate, volatility):
    total = 0.0
    for i in range(shocks.shape[0]):
        price, mean = 1.0, 0.0
        for j in range(shocks.shape[1]):
            price *= math.exp((rate - 0.5 * volatility**2) * 0.1 + volatility * shocks[i, j])
            mean += price
        total += max(mean / 5 - 1.0, 0.0)
    return total


@program(np.array([0.9, 0.3]), np.array([1.1, 0.4, 0.1, 0.4]), 6)
def a_predator_and_its_prey(start, p, n):
    x, y = start[0], start[1]
    for _ in range(n):
        dx = p[0] * x - p[1] * x * y
        dy = p[2] * x * y - p[3] * y
        x, y = x + 0.1 * dx, y + 0.1 * dy
    return x * y + x


@program(V, 0.4)
def a_parallel_range(v, x):
    s = 0.0
    w = np.zeros(4)
    for i in numba.prange(4):
        w[i] = v[i] * x
        s += w[i] ** 2
    return s + w[0]


@program(0.7, 3)
def a_loop_variable_used_behind_its_loop(x, n):
    for i in range(n):
        y = x * i
    return y * i + x


@program(V, 0.7, compiled=True)
def a_variable_first_assigned_in_a_branch_of_a_loop(v, x):
    s = 0.0
    for k in range(v.size):
        if k % 3 == 0:
            y = v[k] * x
            pair = y, k
        elif k % 3 == 2:
            s += pair[0] * pair[1]
        s += y * y
    return s + y


@program(1.5, 2)
def an_assert_and_a_raise_that_do_not_fire(x, n):
    assert x > 0, "positive"
    for k in range(n):
        if x * k > 10:
            raise ValueError("too large")
        x += k * x
    return x


@program(0.7, 4)
def random_draws(x, n):
    np.random.seed(7)
    s = 0.0
    for _ in range(n):
        s += math.sin(x * np.random.random()) + np.random.normal() * x * s
    return s
