"""What a forked child begins with: the levels of the thread that forked, and nothing of other threads.

Only that thread goes on in the child. So levels that others had open are closed, their classes run their own code
again, arguments that were made fresh for them are put back, and no lock is held. Before the fork every lock of a
module is taken, so that no other thread is in the middle of what it guards.
"""

from __future__ import annotations

import os
import threading

from plaingrad import critical
from plaingrad.engine.checkpoints import segment
from plaingrad.engine.reverse import exclusive
from plaingrad.engine.users_code import adopt
from plaingrad.rewrite import CURRENT


def begin_in_child() -> None:
    """Close what belongs to threads that are no more."""
    know_threads_anew()
    critical.after_fork_in_child()
    kept = exclusive.levels_around(CURRENT.get())
    adopt.close_others(kept)
    kept = {*kept, *adopt.open_levels()}
    segment.forget_others(kept)
    exclusive.restore_others(kept)
    for level in adopt.open_levels():
        level.activating, level.sweeping = threading.RLock(), threading.RLock()


def know_threads_anew() -> None:
    """Let `threading` know that this thread is the only one, where a library kept it from that.

    A fork ends the other threads. If one of these has factorised a sparse matrix by SciPy's SuperLU and keeps it, an
    exception is left behind, with which `threading` fails to begin anew: a process of multiprocessing would, when it
    ends, wait for threads that are no more.
    """
    if threading.main_thread() is not threading.current_thread():
        threading._after_fork()  # type: ignore[attr-defined]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=critical.before_fork,
        after_in_parent=critical.after_fork,
        after_in_child=begin_in_child,
    )
