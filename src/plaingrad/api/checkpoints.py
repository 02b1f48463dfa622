"""Memory for time: intermediate values that are computed again when the reverse pass needs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from plaingrad.api.leaves import check_callable, described
from plaingrad.api.operator_objects import wraps
from plaingrad.critical import imported
from plaingrad.errors import ArgumentError

F = TypeVar("F", bound=Callable[..., Any])
State = TypeVar("State")
P = ParamSpec("P")
Y = TypeVar("Y")


def checkpoint(f: Callable[P, Y], /, *args: P.args, **kwargs: P.kwargs) -> Y:
    """f(*args, **kwargs); a reverse pass runs `f` once more instead of keeping what `f` computes on the way.

    In reverse mode the intermediate values of `f` are let go when it returns. If a cotangent arrives at its result,
    the reverse pass calls `f` again with the same arguments, and reverses that. Checkpoints inside `f` are met again
    in that second run: the body of d nested checkpoints runs d + 1 times. Forward mode needs no intermediate values
    and just calls `f`, as do calls outside of derivatives.

    The value and the gradient are those of `f(*args, **kwargs)`. What `f` reads besides its arguments (attributes,
    globals, closures) may depend on the differentiated inputs, too. The global generators of random numbers, and
    those that `f` can reach, draw the same numbers in the second run. Other side effects, such as printing, happen
    twice.

    Where something that `f` computes becomes known otherwise than through its result (appended to an outer list,
    say), or where `f` writes to arrays that it did not make, everything is kept: that is right, and saves no memory.

    Raises:
        CheckpointError: the second run did something else than the first.

    Examples:
        >>> import math, plaingrad
        >>> def deep(x):
        ...     for _ in range(100):
        ...         x = math.sin(x) + x
        ...     return x
        >>> plaingrad.grad(lambda x: checkpoint(deep, x))(0.1) == plaingrad.grad(deep)(0.1)
        True
    """
    check_callable(f, "checkpoint")
    run = imported("plaingrad.engine.checkpoints.checkpoint").checkpointed_call
    return run(f, args, kwargs)  # type: ignore[no-any-return]


def checkpointed(f: F) -> F:
    """`f`, every call of which is a `checkpoint`: a decorator for functions and methods.

    Examples:
        >>> import plaingrad
        >>> @checkpointed
        ... def cube(x):
        ...     square = x * x  # not kept
        ...     return square * x
        >>> plaingrad.grad(cube)(2.0)
        12.0
    """
    check_callable(f, "checkpointed")

    @wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        return checkpoint(f, *args, **kwargs)

    return call  # type: ignore[return-value]


def checkpoint_sequence(step: Callable[[State], State], state: State, n: int, budget: int) -> State:
    """step(step(...step(state))), `n` times; a reverse pass keeps at most `budget` of the states.

    The schedule is binomial, which is the best there is: with s = `budget` and the smallest r for which
    C(s + r, s) >= n, a reverse pass and the forward run before it take

        n + r n - C(s + r, s + 1)

    calls of `step` (A. Griewank and A. Walther, "Algorithm 799: revolve", ACM Transactions on Mathematical Software 26
    (2000) 19-45): no step is run more than r + 1 times. 20 states are enough for 10 600 steps with r = 4, and
    for 230 000 with r = 6. One step at a time is recorded. A further reverse pass through the same run begins with
    the first state, and takes up to `n` steps more.

    Args:
        step: takes a state and returns the next. It may change its argument in place and return it. What else it
            reads (attributes, globals, closures) may depend on the differentiated inputs, and must not change.
        state: a number, an array, or lists, tuples, dicts and objects of these, nested. What changes from step to
            step belongs into the state: for a step that needs its number `k`, a state `(k, x)`.
        n: the number of steps.
        budget: the number of states that may be in memory, the first one included; 1 or more.

    Raises:
        CheckpointError: a value that depends on the state is kept elsewhere than in the state; or a step did not do
            again what it did before.
        ArgumentError: `n` or `budget` is no such number, or the state holds something that cannot be copied.

    Examples:
        >>> import math, plaingrad
        >>> def oscillate(state):
        ...     q, p = state
        ...     p = p - 0.01 * q
        ...     return q + 0.01 * p, p
        >>> def angle(q):
        ...     return checkpoint_sequence(oscillate, (q, 0.0), 1000, budget=5)[0]
        >>> abs(plaingrad.grad(angle)(0.1) - math.cos(10.0)) < 0.01
        True
    """
    check_callable(step, "checkpoint_sequence")
    for name, value, least in (("n", n, 0), ("budget", budget, 1)):
        if isinstance(value, bool) or not hasattr(value, "__index__") or value < least:
            got = value if isinstance(value, (int, float)) else described(value)
            raise ArgumentError(
                f"{name} must be a whole number, {least} or more, not {got}.\n  See docs: errors#argument"
            )
    repeated = imported("plaingrad.engine.checkpoints.revolve").repeated
    return repeated(step, state, int(n), int(budget))
