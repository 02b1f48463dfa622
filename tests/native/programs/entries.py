"""The list of programs: a decorator enters each with its arguments."""

import numpy as np

PROGRAMS = {}

V = np.array([0.3, -0.8, 1.7, 0.6])
W = np.array([1.1, 0.4, -0.9, 0.7])
M = np.array([[0.2, -0.5, 0.9], [1.1, 0.4, -0.3], [0.7, 0.8, -1.2]])
GRID = np.sin(np.arange(30.0)).reshape(6, 5)
CUBE = np.cos(np.arange(24.0)).reshape(2, 3, 4)
Z = np.array([0.3 + 0.7j, -0.6 + 0.2j, 1.1 - 0.4j])


def program(*args, compiled=False):
    """Enter a program with its arguments; its name is the sentence.

    Args:
        compiled: compile it too; for one of each kind.
    """

    def enter(f):
        assert f.__name__ not in PROGRAMS
        PROGRAMS[f.__name__] = f, args, compiled
        return f

    return enter
