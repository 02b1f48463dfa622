"""Losses for `test_distributed.py`: functions of a module, which other processes find by name."""

import os
import random
import time

import numpy as np


def logistic(w, part):
    """The negative log likelihood of a part, (rows, labels)."""
    rows, labels = part
    z = rows @ w["slope"] + w["offset"]
    return np.sum(np.log1p(np.exp(-z * labels)))


def from_file(w, path):
    """The same for a part that is a file."""
    loaded = np.load(path)
    return logistic(w, (loaded["rows"], loaded["labels"]))


def failing(w, part):
    """Fails in part 1."""
    if part == 1:
        raise ValueError("bad part")
    return w * w * part


def slow(w, part):
    """Takes long in part 1."""
    if part == 1:
        time.sleep(4.0)
    return w * part


def ending(w, part):
    """Ends its process in part 1."""
    if part == 1:
        os._exit(1)
    return w * part


def ending_once(w, part):
    """Ends its process on the way, the first time."""
    number, marker = part
    if number == 1:
        try:
            with open(marker, "x"):
                pass
        except FileExistsError:
            pass
        else:
            os._exit(1)
    return w * w * number


def square(x):
    """x^2."""
    return x * x


def weighted(a, b):
    """Several numbers."""
    return {"s": np.sum(a) * b, "a": a * b}


def lost_a_second_time(x, marker):
    """x^3; the worker ends when it runs for the second time, and only then."""
    if not os.path.exists(marker):
        open(marker, "w").close()
    elif not os.path.exists(marker + "2"):
        open(marker + "2", "w").close()
        os._exit(1)
    return x**3


def drawn(x):
    """Another number each time."""
    return x * random.random()


class Total:
    """An actor."""

    def __init__(self):
        self.total = 0.0

    def add(self, x):
        """Add x."""
        self.total += x
        return self.total


def raising(x):
    """An exception with a number in it."""
    raise ValueError(x * x)
