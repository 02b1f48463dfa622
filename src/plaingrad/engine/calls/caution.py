"""`warnings.warn` from rewritten code: `stacklevel` counts frames of the user's program, not those of the engine."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any

from plaingrad.engine.refusals.blame import is_engine_frame

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level


def warns(level: Level) -> Any:
    """What to call instead of `warnings.warn`."""

    def warn(
        message: Any, category: Any = None, stacklevel: int = 1, source: Any = None, **options: Any
    ) -> None:
        warnings.warn(message, category, 1 + frames_of(stacklevel), source, **options)

    return warn


def frames_of(stacklevel: int) -> int:
    """The number of frames from the caller of `warn` to the one that `stacklevel` means in a plain call."""
    if stacklevel <= 1:
        return 1
    frame = sys._getframe(2)  # the one that calls `warn`
    left, count = stacklevel, 0
    while frame is not None:
        count += 1
        if not is_engine_frame(frame):
            left -= 1
            if left == 0:
                return count
        frame = frame.f_back
    return count + left
