"""Progress of long work: a callback that is told how far it is.

Told of are chunked Jacobians, the sweeps of sparse Jacobians and Hessians, the way back over a checkpointed sequence,
native derivations with their compilation, and the evaluations of `plaingrad.optimize.minimize`.
"""

from __future__ import annotations

import contextlib
import contextvars
import importlib
from collections.abc import Callable, Iterator
from typing import Any

#: callback(what, done, total): `what` names the work, `total` is None where nobody knows it. At the end done == total.
Callback = Callable[[str, int, int | None], None]

_callback: contextvars.ContextVar[Callback | None] = contextvars.ContextVar(
    "plaingrad progress", default=None
)


@contextlib.contextmanager
def shown(callback: Callback | None = None) -> Iterator[None]:
    """Work that is done inside, in this context, is told to `callback`; without one, tqdm shows bars.

    An exception that the callback raises ends the work.

    Examples:
        >>> import numpy as np
        >>> import plaingrad
        >>> told = []
        >>> with shown(lambda what, done, total: told.append((what, done, total))):
        ...     _ = plaingrad.jacobian(lambda x: x * x, mode="forward", chunk_size=2)(np.ones(4))
        >>> told
        [('jacobian, forward', 2, 4), ('jacobian, forward', 4, 4)]
    """
    bars = None if callback is not None else Bars()
    token = _callback.set(bars if callback is None else callback)
    try:
        yield
    finally:
        _callback.reset(token)
        if bars is not None:
            bars.close()


def told(what: str, done: int, total: int | None) -> None:
    """Tell who wants to know."""
    callback = _callback.get()
    if callback is not None:
        callback(what, done, total)


class Bars:
    """A callback that shows a bar of tqdm for each kind of work.

    Raises:
        ImportError: tqdm is not installed.
    """

    def __init__(self, **options: Any) -> None:
        self.tqdm = importlib.import_module("tqdm.auto").tqdm
        self.options = options
        self.bars: dict[str, Any] = {}

    def __call__(self, what: str, done: int, total: int | None) -> None:
        """Show how far the work is."""
        bar = self.bars.get(what)
        if bar is None or bar.total != total or done < bar.n:
            if bar is not None:
                bar.close()
            bar = self.bars[what] = self.tqdm(desc=what, total=total, **self.options)
        bar.update(done - bar.n)

    def close(self) -> None:
        """End all bars."""
        for bar in self.bars.values():
            bar.close()
        self.bars.clear()
