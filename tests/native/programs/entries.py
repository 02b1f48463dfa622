"""The list of programs, and decorators that enter programs in lists: each with its arguments."""

import numpy as np


def entering(programs, **usual):
    """A decorator, `@program(*args)`, that enters a function in `programs`; its name is the sentence.

    Args:
        programs: name -> (function, arguments, and what the decorator was told by keyword).
        usual: the keywords that the decorator takes, with what they are otherwise.
    """

    def program(*args, **told):
        assert told.keys() <= usual.keys()

        def enter(f):
            assert f.__name__ not in programs
            programs[f.__name__] = (f, args, *{**usual, **told}.values())
            return f

        return enter

    return program


PROGRAMS = {}
program = entering(PROGRAMS, compiled=False)  # compiled: compile it too; for one of each kind

V = np.array([0.3, -0.8, 1.7, 0.6])
W = np.array([1.1, 0.4, -0.9, 0.7])
M = np.array([[0.2, -0.5, 0.9], [1.1, 0.4, -0.3], [0.7, 0.8, -1.2]])
GRID = np.sin(np.arange(30.0)).reshape(6, 5)
CUBE = np.cos(np.arange(24.0)).reshape(2, 3, 4)
Z = np.array([0.3 + 0.7j, -0.6 + 0.2j, 1.1 - 0.4j])
