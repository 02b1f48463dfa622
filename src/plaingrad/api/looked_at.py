"""`debug=`, `verify=` and `max_memory=`: a derivative that is looked at while it is taken, compared, or bounded.

All are done in rooms further up, which are imported when they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plaingrad.api.operator_objects import Derivative, derives
from plaingrad.critical import imported
from plaingrad.errors import ArgumentError
from plaingrad.rewrite import CURRENT, PLAIN


def looked_at(
    operator: Callable[..., Any],
    f: Any,
    options: tuple[Any, ...],
    debug: bool,
    verify: bool = False,
    max_memory: float | None = None,
) -> Derivative:
    """operator(f, *options, tier), looked at: `options` are those before the tier."""
    tier = "auto" if verify and not debug and max_memory is None else "plain"
    derivative = operator(f, *options, tier)
    marks: dict[str, Any] = {"debug": debug, "verify": verify, "max_memory": max_memory}
    if max_memory is not None:
        check_bound(max_memory)

    @derives(operator, f, *options, tier, **{name: mark for name, mark in marks.items() if mark})
    def looked(*args: Any, **kwargs: Any) -> Any:
        if CURRENT.get() is not PLAIN:  # inside of another derivative, which is the one to look at
            return derivative(*args, **kwargs)
        if max_memory is not None:
            return bounded(look, max_memory, *args, **kwargs)
        return look(*args, **kwargs)

    def look(*args: Any, **kwargs: Any) -> Any:
        if verify:
            return imported("plaingrad.testing.verification").verified(
                operator, derivative, f, options, args, kwargs, debug
            )
        return debugged(derivative, *args, **kwargs) if debug else derivative(*args, **kwargs)

    return looked


def check_bound(max_memory: Any) -> None:
    """Refuse what is no number of bytes."""
    if isinstance(max_memory, bool) or not isinstance(max_memory, (int, float)) or not max_memory > 0:
        raise ArgumentError(
            f"max_memory is a number of bytes, such as 2e9, not {max_memory!r}.\n  See docs: errors#argument"
        )


def bounded(derivative: Callable[..., Any], max_memory: float, *args: Any, **kwargs: Any) -> Any:
    """derivative(*args, **kwargs), which raises TapeMemoryError where the tape takes more than `max_memory` bytes."""
    check_bound(max_memory)
    if CURRENT.get() is not PLAIN:
        return derivative(*args, **kwargs)
    return imported("plaingrad.diagnosis.tape_memory").bounded(derivative, max_memory, *args, **kwargs)


def debugged(derivative: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """derivative(*args, **kwargs), which raises NotFiniteError where something becomes nan or infinite."""
    return imported("plaingrad.diagnosis.debugging").debugged(derivative, *args, **kwargs)
