"""Targets for processes that are started by spawn or by a fork server: these find them by name."""

import math
import multiprocessing
import os
import signal
import threading
import time
from typing import Any

import numpy as np

import plaingrad

SERVER: Any = multiprocessing.get_context("forkserver" if hasattr(os, "fork") else "spawn")
WEIGHT = 2.0  # programs may change it; a process that is not forked has its own


def squares(taken, given, w=1.0):
    """Squares of what comes, until None does, times w."""
    while (x := taken.get()) is not None:
        given.put(x * x * w)


def answers(pipe, x, weights):
    """Answers what comes with sums of it, three times, with a weight from among the arguments."""
    for _ in range(3):
        (got,) = pipe.recv()
        pipe.send({"u": got * x + weights["w"].sum(), "n": 3})


def reads_a_global(pipe, x):
    """The global is that of this process."""
    pipe.send(x * WEIGHT)


def writes_an_array(pipe, a, same):
    """An array that is there twice is one, here too."""
    a *= 2.0
    pipe.send((a * same).sum())


def goes_on(pipe, x, daemon):
    """Ends, but for a thread."""

    def later():
        time.sleep(0.2)
        pipe.send(x * x)

    threading.Thread(target=later, daemon=daemon).start()


def sends_and_sleeps(pipe, x):
    """Waits to be killed."""
    pipe.send(pipe.recv() * x)
    time.sleep(60)


def kills_itself(pipe, x):
    """Ends without a word on the way back as well as here."""
    pipe.send(x * x)
    os.kill(os.getpid(), signal.SIGKILL)


def rounds(pipe):
    """What a process is refused."""
    pipe.send(float(str(pipe.recv() * 1.234567)))


def cube(x):
    """The tests enter a rule for it."""
    return x**3


def sends_a_cube(pipe, x):
    """Calls it."""
    pipe.send(cube(x))


def stalls(x):
    """Its rule answers late."""
    return x * x


@plaingrad.rrule(stalls)
def stalls_rrule(x):
    """Takes a while on the way back."""

    def pullback(bar):
        time.sleep(3)
        return (2.0 * x * bar,)

    return x * x, pullback


def hangs_on_the_way_back(pipe, x):
    """Hangs."""
    pipe.send(stalls(x))


def starts_another(context, pipe, x):
    """A child with a child of its own."""
    here, there = context.Pipe()
    child = context.Process(target=reads_a_global, args=(there, x * x))
    child.start()
    pipe.send(here.recv() * x)
    child.join()


class Own:
    """Cubes, in a process."""

    def __init__(self, x, out, **options):
        super().__init__(**options)
        self.x, self.out = x, out

    def run(self):
        """Send the cube."""
        self.out.send(self.x**3 + math.sin(self.x))


class ServerOwn(Own, SERVER.Process):  # type: ignore[name-defined, misc]
    """The same, by a fork server."""


class Holder:
    """Whose method may be a target."""

    def __init__(self, x):
        self.x = np.array([x, 2.0])

    def work(self, pipe):
        """Send a sum."""
        pipe.send(self.x @ self.x)
