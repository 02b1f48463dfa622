"""`debug=True` and `verify=True`: a derivative that is looked at while it is taken, or compared with differences.

Both are done in rooms further up, which are imported when they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plaingrad.api.operator_objects import Derivative, derives
from plaingrad.critical import imported
from plaingrad.rewrite import CURRENT, PLAIN


def looked_at(
    operator: Callable[..., Any], f: Any, options: tuple[Any, ...], debug: bool, verify: bool = False
) -> Derivative:
    """operator(f, *options, tier), looked at: `options` are those before the tier."""
    tier = "plain" if debug else "auto"
    derivative = operator(f, *options, tier)
    marks = (debug, verify) if verify else (debug,)

    @derives(operator, f, *options, tier, *marks)
    def looked(*args: Any, **kwargs: Any) -> Any:
        if CURRENT.get() is not PLAIN:  # inside of another derivative, which is the one to look at
            return derivative(*args, **kwargs)
        if verify:
            return imported("plaingrad.testing.verification").verified(
                operator, derivative, f, options, args, kwargs, debug
            )
        return debugged(derivative, *args, **kwargs)

    return looked


def debugged(derivative: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """derivative(*args, **kwargs), which raises NotFiniteError where something becomes nan or infinite."""
    return imported("plaingrad.diagnosis.debugging").debugged(derivative, *args, **kwargs)
