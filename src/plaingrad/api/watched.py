"""Gradients by what a function reads from outside: arrays and objects in globals, closures and attributes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, ParamSpec, TypeVar, overload

import numpy as np

from plaingrad.api.gradients import checked_pair, first_of
from plaingrad.api.leaves import COTANGENT, check_callable, described, is_int, kept, structure_of
from plaingrad.api.seeds import unit_cotangent
from plaingrad.engine.memory.kinds import MAPPING, NUMBER, SEQUENCE, kind_of
from plaingrad.engine.reverse.watched import WatchedRun
from plaingrad.errors import ArgumentError

P = ParamSpec("P")
Y = TypeVar("Y")


@overload
def grad_wrt(
    f: Callable[P, Y], parameters: Any, value: Literal[True], has_aux: bool = False
) -> Callable[P, tuple[Y, Any]]: ...
@overload
def grad_wrt(
    f: Callable[P, Any], parameters: Any, value: bool = False, has_aux: bool = False
) -> Callable[P, Any]: ...
def grad_wrt(
    f: Callable[..., Any], parameters: Any, value: bool = False, has_aux: bool = False
) -> Callable[..., Any]:
    """The function that returns the gradient of f(*args) by `parameters`, which `f` reads from outside.

    That is for parameters in globals, closures and objects, which are no arguments of `f`. An array is known by its
    memory: whatever name, attribute or view `f` reads it by, it is differentiated. A number is known by the list,
    dictionary or object that holds it, and where `f` reads it from that. So a float by itself, which is a value and
    not a place, is refused. Reverse mode, in the plain tier.

    Args:
        f: as for `grad`; its own arguments are held fixed.
        parameters: an array, an object, or a list, tuple or dictionary of arrays, objects, lists and dictionaries.
        value: return `(f(*args), gradient)`.
        has_aux: as for `grad`.

    Returns:
        A function of the same arguments as `f`. It returns the gradient, with the structure of `parameters`: that is
        read at each call, so it may be changed between calls. Zero for what `f` does not read. An array that stands in
        several places has one gradient, which is in each of them. What a cache already holds is a constant.

    Raises:
        ArgumentError: there is a float or int among the parameters, arrays that overlap, or nothing with a tangent.
        NonScalarOutputError: `f` returned something else than one real number.

    Examples:
        >>> import numpy as np
        >>> W, b = np.array([[1.0, 2.0]]), np.array([0.5])
        >>> def loss(x):
        ...     return np.sum((W @ x + b) ** 2)
        >>> grad_wrt(loss, [W, b])(np.array([1.0, 1.0]))
        [array([[7., 7.]]), array([7.])]
    """
    check_callable(f, "grad_wrt")
    refuse_compiled(f)
    check_places(parameters)

    def gradient_by_parameters(*args: Any, **kwargs: Any) -> Any:
        check_places(parameters)
        run = WatchedRun(f, parameters, args, kwargs, first_of if has_aux else lambda y: y)
        y = checked_pair(run.value)[0] if has_aux else run.value
        (bar,) = run.pull_once(unit_cotangent(y, f))
        if value:
            return run.value, bar
        return (bar, run.value[1]) if has_aux else bar

    # It has no attributes of `f`, and cannot be pickled: in another process, parameters would be other memory.
    gradient_by_parameters.__plaingrad_derivative__ = True  # type: ignore[attr-defined]
    gradient_by_parameters.__doc__ = (
        f"grad_wrt of {getattr(f, '__name__', repr(f))}: its gradient by parameters that it reads from outside; see "
        "plaingrad.grad_wrt."
    )
    return gradient_by_parameters


class Watched:
    """A call, by parameters that it reads from outside; what `watch` gives.

    It is called with a function and its arguments, once, and returns what the function returns.
    """

    def __init__(self, parameters: Any) -> None:
        check_places(parameters)
        self.parameters = parameters
        self.is_open = False
        self.f: Any = None
        self.run: WatchedRun | None = None
        self.value: Any = None

    def __enter__(self) -> Watched:
        self.is_open = True
        return self

    def __exit__(self, *exception: object) -> None:
        self.is_open = False

    def __repr__(self) -> str:
        called = "nothing called yet" if self.f is None else getattr(self.f, "__qualname__", repr(self.f))
        return f"<plaingrad.watch of {described(self.parameters)}: {called}>"

    def __call__(self, f: Callable[P, Y], *args: P.args, **kwargs: P.kwargs) -> Y:
        """f(*args, **kwargs), recorded."""
        check_callable(f, "watch")
        refuse_compiled(f)
        if not self.is_open:
            raise ArgumentError(
                "the block of watch is over, or has not begun.\n  To go on: call it in the block, `with "
                "plaingrad.watch(parameters) as watched: y = watched(f, x)`.\n  See docs: errors#argument"
            )
        if self.f is not None:
            raise ArgumentError(
                "one watch is for one call: a second call could use what the first one returned, and what the block "
                "computed of it, which nobody has seen.\n  To go on: make one function of both, or open another "
                "block.\n  See docs: errors#argument"
            )
        self.f = f
        self.run = run = WatchedRun(f, self.parameters, args, kwargs, lambda y: y)
        run.watch()
        self.value = kept(run.value)
        return run.value  # type: ignore[no-any-return]

    def gradient(self, y: Any, y_bar: Any = None) -> Any:
        """The gradient of `y`, which the call returned, by the parameters: with their structure.

        Args:
            y: the very object that the call returned. What the block computes of it is not watched.
            y_bar: a cotangent of it, of its structure; without one `y` must be a real number.

        Raises:
            ArgumentError: `y` is something else than the call returned.
            CotangentError: `y_bar` does not fit `y`.
            ChangedSinceError: an array that was read has changed since the call.
        """
        run = self.run
        if run is None or y is not run.value:
            what = (
                "nothing was called yet" if run is None else f"{described(y)} is not what the call returned"
            )
            raise ArgumentError(
                f"{what}, and what a block computes is not watched.\n  To go on: put all that is to be differentiated "
                "into the function that watch calls, or give its value and a cotangent.\n  See docs: errors#argument"
            )
        seed = unit_cotangent(y, self.f) if y_bar is None else COTANGENT.of(y_bar, self.value, "y_bar")
        return run.pull(seed)[0]


def watch(parameters: Any) -> Watched:
    """A block in which one call is recorded, to be differentiated by `parameters`, which it reads from outside.

    As `grad_wrt`, of which this is the pullback: `watched(f, *args)` calls `f`, and `watched.gradient(y)` is the
    gradient of what it returned. Statements of the block itself cannot be recorded, for they are running already: what
    is to be differentiated belongs into `f`. The gradient may be asked for more than once, in the block and after it.

    Args:
        parameters: as for `grad_wrt`.

    Raises:
        ArgumentError: as for `grad_wrt`.

    Examples:
        >>> import numpy as np
        >>> W, b = np.array([[1.0, 2.0]]), np.array([0.5])
        >>> with watch({"W": W, "b": b}) as watched:
        ...     y = watched(lambda x: np.sum((W @ x + b) ** 2), np.array([1.0, 1.0]))
        >>> float(y), watched.gradient(y)
        (12.25, {'W': array([[7., 7.]]), 'b': array([7.])})
    """
    return Watched(parameters)


def refuse_compiled(f: Any) -> None:
    """Refuse what Numba compiles."""
    if type(f).__module__.startswith("numba."):
        raise ArgumentError(
            "Numba reads globals and closures once, when it compiles, as constants: there is no gradient by them.\n"
            "  To go on: pass the parameters as arguments, or differentiate the Python function (`f.py_func`).\n"
            "  See docs: errors#argument"
        )


def check_places(parameters: Any) -> None:
    """Refuse numbers that are no place, those that are parameters themselves, and parameters that hold none."""
    kind = kind_of(type(parameters))
    several = kind in (SEQUENCE, MAPPING)
    given = parameters.values() if kind == MAPPING else parameters if several else (parameters,)
    for x in given:
        whole = isinstance(x, np.ndarray) and x.dtype.kind not in "fc"
        if whole or is_value(x):
            hint = (
                "give what holds it, a list, dictionary or object from which the function reads it ([model], "
                "[numbers]), or pass it as an argument to f and use grad"
            )
            hint = "make it an array of floats" if whole else hint
            raise ArgumentError(
                f"{described(x)} cannot be a parameter by itself: it is a value, which no name can be followed to.\n"
                f"  To go on: {hint}.\n  See docs: errors#argument"
            )
    if not structure_of(parameters)[1]:
        raise ArgumentError(
            f"there is no real or complex number in the parameters, {described(parameters)}.\n"
            "  See docs: errors#argument"
        )


def is_value(x: Any) -> bool:
    """Whether `x` is a number, or a tuple that holds one: what is rebuilt, not changed in its place."""
    if isinstance(x, tuple):
        return any(map(is_value, x))
    return kind_of(type(x)) == NUMBER or is_int(x)
