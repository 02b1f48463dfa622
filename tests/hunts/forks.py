"""Forks at random moments while other threads differentiate: is the child clean, and does it work?

    python -m tests.hunts.forks --count 1000 --seed 0

Threads take derivatives of the programs of `tests.hunts.interrupts` all the time. The main thread forks again and again,
sometimes inside of a derivative of its own. In the child nothing may be swapped, patched or held, and a gradient of each kind
must be right. A child that does not end within a minute is a fault.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable

import plaingrad as pg
from tests.hunts.injected import State, free_locks
from tests.hunts.interrupts import PROGRAMS, Box, Money, P, X

SECONDS = 60


def in_child(work: Callable[[], None]) -> str:
    """What is wrong in a forked child that does work()."""
    pid = os.fork()
    if not pid:
        try:
            signal.alarm(SECONDS)
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    return "" if status == 0 else f"status {status}"


def main() -> int:
    """The number of faults."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    programs = list(PROGRAMS.values())
    state = State((Money, Box), [P, X])
    stop = threading.Event()
    faults = 0

    def busy() -> None:
        while not stop.is_set():
            random.choice(programs)()

    def clean() -> None:
        found = state.differences()
        if found or not free_locks():
            raise AssertionError(f"not as before: {found}")
        for program in chance.sample(programs, 3):
            program()

    def goes_on() -> None:
        for program in chance.sample(programs, 3):
            program()

    sys.setswitchinterval(1e-4)
    threads = [threading.Thread(target=busy) for _ in range(3)]
    for thread in threads:
        thread.start()
    begun = time.monotonic()
    for number in range(options.count):
        time.sleep(chance.uniform(0.0, 0.01))
        said: list[str] = []
        if chance.random() < 0.7:
            said.append(in_child(clean))
        else:

            def inside(x: float) -> float:
                y = Money(x).double
                said.append(in_child(goes_on))
                return y

            if pg.grad(inside)(1.5) != 2.0:
                said.append("the parent's gradient is wrong")
        for what in filter(None, said):
            faults += 1
            print(f"fork {number}: {what}")
    stop.set()
    for thread in threads:
        thread.join()
    found = state.differences()
    print(f"{options.count} forks in {time.monotonic() - begun:.0f} s, {faults} faults, afterwards {found or 'as before'}")
    return faults


if __name__ == "__main__":
    sys.exit(bool(main()))
