"""CPython's collector of garbage is as it was after native derivatives have been made."""

import gc
import threading

import numpy as np
import pytest

import plaingrad

pytest.importorskip("numba")

from plaingrad.native.compile.garbage import OBJECTS, seldom_collected  # noqa: E402


@pytest.fixture(autouse=True)
def usual():
    before = gc.get_threshold()
    yield before
    gc.set_threshold(*before)


def test_thresholds_are_raised_inside_and_restored_behind(usual):
    def work(k):
        assert gc.get_threshold()[0] == max(OBJECTS, usual[0])
        if k:
            seldom_collected(work, k - 1)
        assert gc.get_threshold()[0] == max(OBJECTS, usual[0])
        return k

    assert seldom_collected(work, 2) == 2
    assert gc.get_threshold() == usual


def test_an_exception_restores_them_too(usual):
    with pytest.raises(KeyError):
        seldom_collected({}.__getitem__, 1)
    assert gc.get_threshold() == usual


def test_what_somebody_sets_meanwhile_stays():
    seldom_collected(gc.set_threshold, 123, 4, 5)
    assert gc.get_threshold()[0] == 123


def test_a_collector_that_is_told_not_to_run_does_not():
    gc.set_threshold(0)
    assert seldom_collected(gc.get_threshold)[0] == 0
    assert gc.get_threshold()[0] == 0


def test_threads_that_overlap_leave_the_thresholds_as_they_were(usual):
    both_in, first_out = threading.Barrier(2), threading.Event()

    def first():
        seldom_collected(both_in.wait)
        first_out.set()

    def last():
        both_in.wait()
        first_out.wait()
        assert gc.get_threshold()[0] == max(OBJECTS, usual[0])

    other = threading.Thread(target=first)
    other.start()
    seldom_collected(last)
    other.join()
    assert gc.get_threshold() == usual


def test_a_native_gradient_leaves_them(usual):
    slope = plaingrad.grad(lambda x: float(np.sum(x * x)), tier="native")(np.array([1.0, 2.0]))
    assert slope.tolist() == [2.0, 4.0]
    assert gc.get_threshold() == usual
    assert gc.isenabled()
