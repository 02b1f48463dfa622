"""Derivatives of functions of numbers and arrays at levels that are used again, opened and closed by the compiled core.

With an object among the arguments, or an array in a list, at most levels inside others, and without the core,
`Level.run`, `reverse.inputs`, `reverse.run` and `forward.push` do the same.
"""

from __future__ import annotations

import sys
from _thread import _count as running_threads
from collections.abc import Callable
from contextvars import Context
from typing import Any

import numpy as np

from plaingrad import critical, rulebook
from plaingrad.engine.calls import memo, reuse
from plaingrad.engine.compiled import core
from plaingrad.engine.refusals import answered, watch
from plaingrad.engine.refusals.answered import settled
from plaingrad.engine.refusals.refuse import users_frames
from plaingrad.engine.users_code import adopt, codes
from plaingrad.rewrite import CURRENT, PLAIN


def run(self: Any, derive: Callable[..., Any], *given: Any) -> Any:
    """derive(*given) of derivation `self`; where a refusal is noted, this frame is found. See `refusals.answered`."""
    return derive(*given)


answered.running.append(run.__code__)


def ended(refusal: BaseException | None, error: BaseException | None) -> BaseException:
    """What is to be raised where a level ends that remembers `refusal`, and the program ended with `error`."""
    if refusal is not None and (error is None or (error is not refusal and isinstance(error, Exception))):
        error = settled(refusal, error)
    assert error is not None
    error.__traceback__ = users_frames(error.__traceback__)
    return error


def restore_errors(context: Context) -> None:
    """After an asynchronous exception: NumPy's error handling as in `context`, where ours was left."""
    now, before = np.geterr(), context.run(np.geterr)
    if now != before and set(now.values()) == {"ignore"}:
        np.seterr(**before)


def _count() -> int:
    """What `getrefcount` says of an object that one local variable holds."""
    x = object()
    return sys.getrefcount(x)


if core is not None:
    core.set_opening(
        {
            "current": CURRENT,
            "outermost": PLAIN,
            "repeated": memo.REPEATED,
            "running_threads": running_threads,
            "adopt": vars(adopt),
            "codes": vars(codes),
            "watch": vars(watch),
            "changes": rulebook._changes,
            "free": reuse.free_levels,
            "most": reuse.MOST,
            "times": critical.TIMES,
            "ended": ended,
            "restored": restore_errors,
            "count": _count,
        }
    )
