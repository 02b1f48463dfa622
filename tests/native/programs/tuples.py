"""Tuples and named tuples, of numbers and arrays, carried, swapped and returned."""

import math
from collections import namedtuple

import numpy as np

from tests.native.programs.entries import V, W, program

Point = namedtuple("Point", "x y")
Model = namedtuple("Model", "weights bias point")


def rotated(p, angle):
    return Point(p.x * math.cos(angle) - p.y * math.sin(angle), p.x * math.sin(angle) + p.y * math.cos(angle))


@program(Point(0.3, 0.8), 0.4)
def a_named_tuple_as_an_argument(p, t):
    return p.x * p.y * t + p[0]


@program(0.3, 0.8, compiled=True)
def named_tuples_from_and_to_a_helper(x, y):
    p = rotated(Point(x, y), x * y)
    q = rotated(p, 0.3)
    return q.x * p.y + q.y


@program(Model(V, 0.5, Point(0.2, 0.7)))
def a_nested_named_tuple_with_an_array(m):
    s = m.bias
    for w in m.weights:
        s = math.tanh(s * w + m.point.x) + m.point.y
    return s


@program((0.2, (V, 0.5)), 1.2)
def nested_tuples(t, x):
    a, (v, b) = t
    return a * x + b * np.sum(v * v) + v[1] * a


@program(0.3, 6)
def tuples_carried_by_a_loop_that_breaks(x, n):
    state = (x, 1.0, 0.0)
    for k in range(n):
        state = (state[1] * 0.9, state[0] + state[2] * x, math.sin(state[0]))
        if state[1] > 2.0:
            break
    return state[0] * state[1] + state[2]


@program(V, W)
def arrays_swapped_through_a_tuple(a, b):
    pair = (a * 2.0, b * b)
    pair = (pair[1], pair[0])
    u, v = pair
    u[0] = v[1] * u[2]
    return np.sum(u * v)


@program(0.3, 0.7)
def a_tuple_chosen_by_a_branch(x, y):
    t = (x * y, x) if x > y else (y, x * x)
    return t[0] * t[1]
