"""Checked mode: every derivative taken at the top is compared with a plain call, and its two modes with one another.

The engine asks whoever looks on (`engine.watch`) before it records a call or pushes one forward. Here it is let go on;
then the function is called plainly, on copies of the arguments as they were, and value, arguments, surroundings and
exception are compared. The other mode is run for <y_bar, J x_dot> in a random direction; where it refuses, differences
of plain calls stand in. What the function can reach (globals, closures, random generators) is put back each time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from plaingrad.engine.forward.forward import ForwardLevel
from plaingrad.engine.refusals import watch
from plaingrad.engine.reverse.run import Run
from plaingrad.tangents import is_zero
from plaingrad.testing.compared_calls import Call, is_checking
from plaingrad.testing.structures import copied, flat, random_like, tangent_like


@contextlib.contextmanager
def checked() -> Iterator[Checks]:
    """Inside, every derivative that is taken outside of others is checked; all threads are meant.

    It is compared with a plain call on copies of the arguments: the value and its type, the arguments and what else the
    function can reach afterwards, the exception. Forward mode is compared with reverse mode along a random direction;
    where one of them refuses, with finite differences. The environment variable `PLAINGRAD_CHECK=1` asks for the same
    from the import on.

    The function is called a few times more than else. The random generators of `random` and NumPy, globals, closures
    and objects that it can reach are put back; what it does to files, queues or counters in C happens again.

    Yields:
        The counts: how many derivatives were `compared`, and how many could not be (`passed_by`).

    Raises:
        CheckError: a derivative does not fit.

    Examples:
        >>> import plaingrad
        >>> from plaingrad.testing import checked
        >>> with checked() as checks:
        ...     plaingrad.grad(lambda x: x * x)(3.0)
        6.0
        >>> checks.compared
        1
    """
    before = watch.observer
    watch.observer = checks = Checks()
    try:
        yield checks
    finally:
        watch.observer = before


def always() -> None:
    """Check from now on."""
    watch.observer = Checks()


class Checks:
    """What looks on.

    Attributes:
        compared: how many derivatives were compared with a plain call.
        passed_by: how many were not: an argument cannot be copied, or is what the function reads elsewhere, too.
    """

    def __init__(self) -> None:
        self.compared = 0
        self.passed_by = 0
        self.hooks = 0
        self.inner = 0

    def went_inside(self) -> None:
        """A derivative is taken inside another."""
        self.inner += 1

    def hooked(self) -> None:
        """A hook was put on a value: reverse mode alone knows it."""
        self.hooks += 1

    def recorded(self, run: Run, f: Any, args: Any, argnums: Any, kwargs: Any, result: Any) -> None:
        """Record a call in reverse mode, and compare."""
        if is_checking.get():
            self.inner += 1
            run.record(f, args, argnums, kwargs, result)
            return
        call = Call(f, args, kwargs, argnums, result)
        hooks = self.hooks

        def recorded() -> Any:
            run.record(f, args, argnums, kwargs, result)
            return run.value

        call.compare(self, "reverse mode", recorded)
        if call.is_sound and call.has_numbers() and self.hooks == hooks:
            with call.other_runs():
                y_bar = tangent_like(call.y, random_like(call.random))
                bars = flat(run.pull(copied(y_bar)), call.active)
                call.compare_forward(y_bar, bars)

    def pushed(
        self, pushed: Any, f: Any, args: Any, dots: Any, kwargs: Any, chunk: Any, level_class: Any
    ) -> Any:
        """Push a call forward, and compare."""
        if is_checking.get():
            self.inner += 1
            return pushed(f, args, dots, kwargs, chunk, level_class)
        argnums = tuple([n for n, x_dot in enumerate(dots) if not (x_dot is None or is_zero(x_dot))])
        call = Call(f, args, kwargs, argnums)
        hooks = self.hooks
        found: list[Any] = []

        def pushed_once() -> Any:
            found.extend(pushed(f, args, dots, kwargs, chunk, level_class))
            return found[0]

        call.compare(self, "forward mode", pushed_once)
        if call.is_sound and call.has_numbers() and self.hooks == hooks:
            k = (
                None
                if chunk is None
                else 0
                if level_class is not ForwardLevel
                else int(call.random.integers(chunk))
            )
            with call.other_runs():
                ways = [part_of(t, k) for t in flat(tuple([dots[n] for n in argnums]), call.active)]
                call.compare_reverse(ways, [part_of(t, k) for t in flat(found[1], call.y)])
        return found[0], found[1]


def part_of(t: Any, k: int | None) -> Any:
    """Tangent `k` of a chunk."""
    return t if t is None or k is None else np.asarray(t)[k]
