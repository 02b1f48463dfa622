"""The collector of garbage at rest while plaingrad is imported: what is made meanwhile stays."""

from __future__ import annotations

import gc
from types import TracebackType


class AtRest:
    """A context without collections; what held before holds again behind it, whatever happens."""

    def __enter__(self) -> None:
        self.was_on = gc.isenabled()
        gc.disable()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.was_on:
            if not gc.get_freeze_count():  # else the program has frozen what it means to keep
                gc.freeze()
                gc.unfreeze()  # all objects count as old now: the next collection does not look through them
            gc.enable()
