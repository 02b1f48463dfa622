"""One run of a function for a whole batch, or for blocks of it; what cannot be one is left to the loop."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import CodeType
from typing import Any

import numpy as np

from plaingrad.engine.batches import admitted
from plaingrad.engine.batches.level import BatchLevel
from plaingrad.engine.batches.mapped import Batch, Mapped, NotBatched
from plaingrad.rewrite import CURRENT, in_force


def run(level: BatchLevel, f: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """f(*args, **kwargs) at `level`."""
    instead = partial(_called, level, f)
    return in_force(level, instead, *args, **kwargs)


def _called(level: BatchLevel, f: Any, *args: Any, **kwargs: Any) -> Any:
    y = level.prep(f)(*args, **kwargs)
    level.check()
    return y


def try_batch(
    f: Callable[..., Any], code: CodeType, batch: Batch, args: Any, kwargs: Any, results: list[Any]
) -> bool:
    """Whether f(*args, **kwargs) has run for all examples at once; if not, nothing has been done.

    Args:
        f: the function of one example.
        code: its code, which is not tried again where it was given up, unless that was for these numbers.
        batch: the run.
        args: arguments, with `Mapped` ones among them, or in structures.
        kwargs: arguments by keyword, the same for all.
        results: what it gives is put here.
    """
    level = BatchLevel(CURRENT.get(), batch)
    try:
        with np.errstate(
            divide="raise", over="raise", invalid="raise"
        ):  # the loop warns, or raises, as it does
            results.append(run(level, f, args, kwargs))
        return True
    except NotBatched as given_up:
        if given_up.batch is not batch:
            raise
        reason = str(given_up)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
    if not batch.once and type(level.parent) is not BatchLevel:
        admitted.remember(code, reason)
    return False


__all__ = ["Batch", "BatchLevel", "Mapped", "NotBatched", "run", "try_batch"]
