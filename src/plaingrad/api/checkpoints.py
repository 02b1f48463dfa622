"""Memory for time: tapes that are made again when they are needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from plaingrad.api.leaves import wraps
from plaingrad.engine.checkpoint import checkpointed_call

F = TypeVar("F", bound=Callable[..., Any])


def checkpoint(f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """f(*args, **kwargs); a reverse pass through it runs `f` once more instead of keeping its intermediate values."""
    return checkpointed_call(f, args, kwargs)


def checkpointed(f: F) -> F:
    """`f`, every call of which is a checkpoint: a decorator of functions and methods."""

    @wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        return checkpoint(f, *args, **kwargs)

    return call  # type: ignore[return-value]
