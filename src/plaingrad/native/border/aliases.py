"""Arrays that a native call reaches by two ways: refused where one of them is written."""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.errors import AliasError
from plaingrad.native.analysis.effects import effects_of
from plaingrad.native.frontend.current import original, snapshot_of
from plaingrad.native.program.dispatchers import is_dispatcher


def arrays_in(x: Any) -> list[np.ndarray]:
    """The arrays in an argument."""
    if isinstance(x, np.ndarray):
        return [x]
    return [a for part in x for a in arrays_in(part)] if isinstance(x, tuple) else []


def refuse_aliases(found: Any, args: tuple[Any, ...]) -> None:
    """Arrays that share memory, one of which the function writes, have no derivatives of their own."""
    if not found.writes:
        return
    every = [x for arg in args for x in arrays_in(arg)]
    for k, a in enumerate(every):
        for b in every[:k]:
            if np.may_share_memory(a, b) and np.shares_memory(a, b):
                raise shared_arguments()


def live_arrays(f: Any) -> list[np.ndarray]:
    """The global or captured arrays that compiled code of a stand-in reads where they are."""
    snapshot = snapshot_of(f)
    return [] if snapshot is None else snapshot.live


def captured_by(f: Any) -> list[np.ndarray]:
    """The global or captured arrays that a stand-in reads as they are: of a dispatcher those that are not copied."""
    snapshot = snapshot_of(f)
    if snapshot is None:
        return []
    copied = [] if is_dispatcher(original(f)) else [a for a, _, _ in snapshot.arrays]
    return [*snapshot.live, *copied]


def refuse_captured(f: Any, args: tuple[Any, ...], signature: tuple[Any, ...]) -> None:
    """An argument that shares memory with an array that the function reads from outside must not be written.

    Raises:
        AliasError: it is.
    """
    captured = captured_by(f)
    if not captured:
        return
    for a in [x for arg in args for x in arrays_in(arg)]:
        if any(np.may_share_memory(a, b) and np.shares_memory(a, b) for b in captured):
            if effects_of(f, signature).writes:
                raise AliasError(
                    f"an array is an argument of `{name_of(f)}` and is read by it as a global, or captured, variable "
                    "too, and the function writes into its arguments.\n"
                    "  To go on: pass a copy, or use one of the two names only.\n  See docs: errors#alias"
                )


def refuse_shared(f: Any, args: tuple[Any, ...], signature: tuple[Any, ...]) -> None:
    """Arguments that share memory, for what takes derivatives of copies of them.

    Raises:
        AliasError: the function writes into them.
    """
    every = [x for arg in args for x in arrays_in(arg)]
    for k, a in enumerate(every):
        for b in every[:k]:
            if np.may_share_memory(a, b) and np.shares_memory(a, b) and effects_of(f, signature).writes:
                raise shared_arguments()


def shared_arguments() -> AliasError:
    """What is said of arguments that share memory."""
    return AliasError(
        "two of the arguments share memory, and the function writes into its arguments.\n"
        "  To go on: pass a copy of one of them.\n  See docs: errors#alias"
    )


def name_of(f: Any) -> str:
    """What a function is called in messages."""
    return str(getattr(f, "__name__", None) or type(f).__name__)
