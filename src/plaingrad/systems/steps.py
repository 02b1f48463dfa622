"""A call of a function of another system as data: a function of the arrays that are differentiated, the leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol


class System(Protocol):
    """What is asked of a system: PyTorch, JAX."""

    name: str
    mutable: bool  # whether its arrays can be written

    def varies(self, x: Any) -> bool:
        """Whether an array of its own holds real or complex numbers."""
        ...

    def is_array(self, x: Any) -> bool:
        """Whether `x` is an array of its own."""
        ...

    def version(self, x: Any) -> Any:
        """What changes when the array `x` is written."""
        ...

    def held(self, f: Any) -> list[Any]:
        """Arrays that a function or module has, and that may be written where nobody counts."""
        ...

    def kept(self, x: Any) -> Any:
        """`x`, any constant of a call, or a copy if it may be written where `version` does not tell."""
        ...

    def stacked(self, each: list[Any]) -> Any:
        """Arrays of one shape along a new first axis."""
        ...

    def cloned(self, x: Any) -> Any:
        """A copy of `x` in memory of its own, by a function of the system."""
        ...

    def copied(self, x: Any) -> Any:
        """A new object for the array `x`."""
        ...

    def made(self, x: Any, number: Any) -> Any:
        """`number` as an array like `x`."""
        ...

    def taken_in(self, x: Any, like: Any) -> Any:
        """A number, or array of NumPy, as an array with the type and place of `like`; None: float64, on the CPU."""
        ...

    def run(self, step: Step, leaves: tuple[Any, ...]) -> Any:
        """The step; if it is to be recorded, with what the pullback needs."""
        ...

    def pull(
        self, step: Step, which: tuple[int, ...], bars: Any, leaves: Any, saved: bool
    ) -> tuple[Any, ...]:
        """Cotangents of the leaves from those of the outputs `which`, by the recorded run if `saved`."""
        ...

    def push(self, step: Step, leaves: Any, dots: Any, places: tuple[int, ...]) -> tuple[Any, ...]:
        """Tangents of the outputs from those of the leaves at `places`."""
        ...


class Place:
    """Where in the arguments of a call a leaf belongs."""

    __slots__ = ("k",)

    def __init__(self, k: int) -> None:
        self.k = k


class Step:
    """f(*args, **kwargs) as a function of its leaves, which `args` and `kwargs` name by their places."""

    __slots__ = (
        "args",
        "derived",
        "f",
        "given",
        "kwargs",
        "nested",
        "random",
        "recording",
        "saved",
        "system",
        "versions",
        "watch",
    )

    def __init__(
        self, system: System, f: Callable[..., Any], args: Any, kwargs: Any, given: Any = None
    ) -> None:
        self.system, self.f, self.args, self.kwargs = system, f, args, kwargs
        self.given = given  # the leaves as they were given, if some were no arrays of the system
        self.recording, self.derived = False, False
        self.saved: Any = None
        self.nested = False  # whether the derivative is differentiated, too
        self.watch: Callable[[Any], None] | None = None  # what is to see everything that is used in the call
        self.random: Any = None  # the state of random numbers before the call, if it has drawn some
        self.versions: list[tuple[Any, Any]] = []  # constants of a recorded call, as they were

    def record(self) -> None:
        """The next run is to be recorded: constants are to be what they are now."""
        self.recording = True
        self.args, self.kwargs = (mapped(x, self.system.kept) for x in (self.args, self.kwargs))
        held = constants((self.args, self.kwargs, self.system.held(self.f)))
        self.versions = [(x, self.system.version(x)) for x in held if self.system.is_array(x)]

    def call(self, leaves: Any) -> Any:
        """The call itself."""
        return self.f(*put(self.args, leaves), **put(self.kwargs, leaves))

    def again(self, leaves: Any) -> Any:
        """The call, to be differentiated, whatever has been saved."""
        return self.call(leaves)

    def run(self, leaves: tuple[Any, ...]) -> Any:
        """The call itself, recorded if it is to be."""
        return self.system.run(self, leaves)

    @property
    def changed(self) -> Any:
        """A constant that was written since; None if there is none."""
        return next((x for x, version in self.versions if self.system.version(x) != version), None)


class Derived(Step):
    """The pullback or pushforward of a step, which is a function of arrays itself."""

    __slots__ = ("of", "places", "which")

    def __init__(self, of: Step, which: tuple[int, ...] | None, places: tuple[int, ...] = ()) -> None:
        super().__init__(of.system, self.again, (), {})
        self.of, self.which, self.places, self.derived = of, which, places, True
        self.nested = of.nested

    def again(self, leaves: Any) -> Any:
        """The derivative by calling the function again, so that it can be differentiated too."""
        return self._derivative(leaves, False)

    def _derivative(self, arrays: Any, saved: bool) -> Any:
        if self.which is not None:
            count = len(self.which)
            return self.system.pull(self.of, self.which, arrays[:count], arrays[count:], saved)
        count = len(arrays) - len(self.places)
        return self.system.push(self.of, arrays[:count], arrays[count:], self.places)

    def call(self, leaves: Any) -> Any:
        """The derivative, by what was saved if nobody differentiates it."""
        return self._derivative(leaves, not self.recording)


class Conversion:
    """What makes an array of a system out of a number or an array of NumPy, or the other way round.

    Attributes:
        system: the system.
        f: the conversion that the program called; None: any, for derivatives.
        like: the array of the system, or the number or array of NumPy, whose type the result has.
    """

    __slots__ = ("f", "like", "system")

    def __init__(self, system: System, f: Callable[[Any], Any] | None, like: Any) -> None:
        self.system, self.f, self.like = system, f, like


def put(x: Any, leaves: Any) -> Any:
    """`x` with leaves in their places."""
    return mapped(x, lambda part: leaves[part.k] if type(part) is Place else part)


def mapped(x: Any, change: Callable[[Any], Any]) -> Any:
    """`x`, arguments of a call, with change(part) for every part that is no container."""
    t = type(x)
    if t is dict:
        return {key: mapped(part, change) for key, part in x.items()}
    if t is list:
        return [mapped(part, change) for part in x]
    if t is slice:
        return slice(mapped(x.start, change), mapped(x.stop, change), mapped(x.step, change))
    if isinstance(x, tuple):
        parts = [mapped(part, change) for part in x]
        return t(*parts) if hasattr(t, "_fields") else t(parts)
    return change(x)


def constants(x: Any) -> Iterator[Any]:
    """What is no container in the arguments of a call."""
    if isinstance(x, (list, tuple)):
        for part in x:
            yield from constants(part)
    elif isinstance(x, dict):
        for part in x.values():
            yield from constants(part)
    else:
        yield x


def outputs(y: Any, varies: Callable[[Any], bool]) -> list[Any]:
    """The arrays of real and complex numbers in a result, in order."""
    return [part for part in constants(y) if varies(part)]
