"""Tasks for other processes, which find them by name."""

import math
import os
import time
import random
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

import plaingrad


@dataclass
class Spring:
    stiffness: float
    mass: float = 1.0

    def period(self, k):
        return k * math.sqrt(self.mass / self.stiffness)


class Own:
    """Pickles in its own way."""

    def __init__(self, x):
        self.square = x * x

    def __reduce__(self):
        return Own, (math.sqrt(self.square),)


def double(y):
    return y * 2.0


def mixed(x, k=1.0):
    return {"a": math.sin(x * k), "b": [x * x, 3], "n": 7, "name": "mixed"}


def layer(w, x):
    return np.tanh(w @ x), float(np.sum(x))


def stretched(spring, by):
    return Spring(spring.stiffness * by, spring.mass + by * by)


def of_own(own):
    return own.square


def as_decimal(x):
    return Decimal(x)


def as_text(x):
    return f"{x:.12f}"


def as_bytes(a):
    return a.tobytes()


def drawn(x):
    return x * random.random()


def failing(x):
    raise ValueError(f"not {x > 0}")


def ends_a_second_time(x, marker):
    """x^2, the first time."""
    if os.path.exists(marker):
        os._exit(1)
    with open(marker, "w"):
        return x * x


def in_place(a):
    a[0] = a[1] * 3.0
    return a


def single(x):
    return np.float32(x) * np.float32(2.0)


def turned(z):
    return z * z * 1j


def count(x):
    return int(x * 10), x > 1


def hangs_a_second_time(x, marker):
    """Takes long when it runs again: on the way back."""
    try:
        open(marker, "x").close()
    except FileExistsError:
        time.sleep(1.5)
    return x * x


def times(a, b):
    """a b."""
    return a * b


def called(f, y):
    """f(y)."""
    return f(y)


def first_called(fs, y):
    """fs[0](y)."""
    return fs[0](y)


def held_called(o, y):
    """The function that an object holds, of y."""
    return o.f(y)


def twice(x):
    """One number at three places."""
    y = math.sin(x)
    return [y, y, {"y": y}]


def total(xs):
    """Twice the sum."""
    return 2.0 * sum(xs)


def reason(error):
    """Twice what an exception is about."""
    return 2.0 * error.args[0]


def noted(x, path):
    """x^2; a line in a file for each run."""
    with open(path, "a") as file:
        file.write("run\n")
    return x * x


def with_process(x):
    """x^3, and the process that has computed it."""
    return x**3, os.getpid()


def kept_here():
    """How many tapes this process keeps."""
    from plaingrad.rules.processes import tapes

    return len(tapes._tapes.kept)


def large(a):
    """Much to record."""
    for _ in range(40):
        a = np.sin(a) * a
    return float(a.sum())


def late(x):
    """A rule waits on the way back."""
    return x * x


def late_rule(x):
    def pullback(y_bar):
        time.sleep(1.5)
        return (2.0 * x * y_bar,)

    return x * x, pullback


plaingrad.rrule(late)(late_rule)


def calls_late(x):
    return late(x)


def refused_part(x):
    """Cannot be recorded; its first half could."""
    return x * 2.0, float.fromhex(x.hex())


def overwrites(a):
    """Writes into its argument before it fails to be recorded."""
    a[0] = a[0] * 2.0
    return float.fromhex(float(a[0]).hex()) * 1.0


def forks(x):
    """Has a child that outlives it."""
    if os.fork() == 0:
        time.sleep(2.0)
        os._exit(0)
    return x * x
