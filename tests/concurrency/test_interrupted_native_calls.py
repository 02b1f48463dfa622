"""An asynchronous exception while a native derivative is derived, compiled, kept, loaded or called: the next one is right."""

import gc
import math
import os
import random
import sys
import threading

import numpy as np
import pytest
from tests.hunts.injected import HOME, Put, Tracer, without_collection

from plaingrad import critical, grad, rulebook
from plaingrad.rewrite import CURRENT, PLAIN

numba = pytest.importorskip("numba")

from numba.core.compiler_lock import global_compiler_lock  # noqa: E402

from plaingrad.native.frontend import current  # noqa: E402
from plaingrad.native.compile import garbage  # noqa: E402
from plaingrad.native.machine.folder import DRAFT, PREFIX  # noqa: E402

# CPython 3.14 traces generators while it closes them, and an exception there goes to nobody.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

X = np.array([0.5, 1.0, 2.0])
SOURCE = """
def f(x):
    s = 0.0
    for i in range(x.shape[0]):
        s += math.sin(x[i]) * x[i] * {}
    return s
"""
KEEPING = ("cache", "cache_folder", "machine_code", "disk")


def is_native(code):
    """Numba's own code is not followed: that would take minutes, and is not ours to repair."""
    return code.co_filename.startswith((f"{HOME}/native", f"{HOME}/critical"))


def keeps(code):
    return os.path.basename(code.co_filename)[:-3] in KEEPING


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache of its own; rules that other tests have entered are no concern of it."""
    every = rulebook.rules
    monkeypatch.setattr(rulebook, "rules", lambda: (rule for rule in every() if not rule.users))
    monkeypatch.setenv("PLAINGRAD_CACHE_DIR", str(tmp_path))
    yield tmp_path
    forget()


def forget():
    """What this process has loaded is loaded again."""
    for name in [name for name in sys.modules if name.startswith(PREFIX)]:
        del sys.modules[name]


def function_with(factor):
    space = {"math": math, "__name__": "a_program"}
    exec(SOURCE.format(factor), space)
    return numba.njit(space["f"])


def differentiate(f, factor):
    forget()
    assert np.allclose(grad(f)(X), factor * (np.sin(X) + X * np.cos(X)), rtol=1e-12)


def places(program):
    """code and line -> the number of the first event there."""
    tracer = Tracer(None, lines=True, keep=True, watched=is_native)
    tracer.run(program)
    first = {}
    for number, place in enumerate(tracer.places, 1):
        first.setdefault(place, number)
    return first


def held_locks():
    """The locks that another thread cannot take."""
    held = []

    def take():
        for lock in [lock for lock, _ in critical._shared] + [global_compiler_lock._lock]:
            if lock.acquire(timeout=5):
                lock.release()
            else:
                held.append(lock)

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    return held


def interrupt(f, factor, at, folder):
    """Put an exception in at event `at` of a gradient of `f`; then nothing is left of it, and the next one is right.

    Whether it was interrupted: some events come the first time only.
    """
    thresholds = gc.get_threshold()
    tracer = Tracer(at, lines=True, watched=is_native)
    try:
        tracer.run(lambda: differentiate(f, factor))
        assert not tracer.raised  # it was swallowed
    except Put:
        pass
    assert not held_locks(), at
    assert not [name for name in os.listdir(folder) if name.startswith(DRAFT)], at
    assert gc.get_threshold() == thresholds and not garbage._inside
    assert CURRENT.get() is PLAIN and not current._begun
    differentiate(f, factor)
    assert f(X) == pytest.approx(factor * np.sum(np.sin(X) * X))
    return bool(tracer.raised)


def test_while_it_is_derived_compiled_and_kept(folder):
    def run():
        differentiate(function_with(1.5), 1.5)  # what is compiled once a process, or machine, is compiled now
        first = places(lambda: differentiate(function_with(2.5), 2.5))
        chances = random.Random(0)
        chosen = chances.sample(sorted(first.values()), 2)
        chosen += chances.sample(sorted(n for (code, _), n in first.items() if keeps(code)), 3)
        assert all([interrupt(function_with(3.5 + k), 3.5 + k, at, folder) for k, at in enumerate(chosen)])

    without_collection(run)


def test_while_it_is_loaded_and_called(folder):
    def run():
        f = function_with(2.5)
        differentiate(f, 2.5)
        first = places(lambda: differentiate(f, 2.5))
        chosen = random.Random(1).sample(sorted(first.values()), 60)
        assert sum([interrupt(f, 2.5, at, folder) for at in chosen]) > 50

    without_collection(run)
