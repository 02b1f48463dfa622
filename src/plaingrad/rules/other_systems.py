"""Rules of calls and conversions of other systems' arrays: PyTorch's and JAX's.

Ordinary Python over these calls, so that derivatives of derivatives are calls again.
"""

from __future__ import annotations

from typing import Any

from plaingrad.define import frule, no_tangent, rrule
from plaingrad.systems import Conversion, Derived, Step
from plaingrad.systems.steps import Place, outputs
from plaingrad.tangents import NoTangent, ZeroTangent


def run(step: Step, *leaves: Any) -> Any:
    """The step, as a function of the arrays that are differentiated."""
    return step.run(leaves)


def recorded(step: Step) -> None:
    """The next run of `step` is to be recorded."""
    step.record()


def is_kept_by_copy(step: Step) -> bool:
    """Whether leaves are to be copied, because the pullback will be a function of them."""
    return step.nested and step.system.mutable


def copying(step: Step) -> Step:
    """The copy of an array as a step."""
    return Step(step.system, step.system.cloned, (Place(0),), {})


def derived(step: Step, which: Any, places: Any = ()) -> Step:
    """The pullback of the outputs `which`, or with None the pushforward of the leaves at `places`."""
    return Derived(step, which, places)


def places_of_outputs(step: Step, y: Any) -> Any:
    """`y` with the number of each array of real numbers in its place, and -1 in others."""
    count = [0]

    def numbered(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: numbered(inner) for key, inner in part.items()}
        if isinstance(part, (list, tuple)):
            return [numbered(inner) for inner in part]
        if not step.system.varies(part):
            return -1
        count[0] += 1
        return count[0] - 1

    return numbered(y)


def gather(places: Any, y_bar: Any, found: list[tuple[int, Any]]) -> list[tuple[int, Any]]:
    """(number, cotangent) of each output that has one."""
    if y_bar is None or y_bar is ZeroTangent or y_bar is NoTangent:
        return found
    if isinstance(places, list):
        for k, inner in enumerate(places):
            gather(inner, y_bar[k], found)
    elif isinstance(places, dict):
        for key, inner in places.items():
            gather(inner, y_bar.get(key, ZeroTangent), found)
    elif places >= 0:
        found.append((places, y_bar))
    return found


def spread(places: Any, dots: Any) -> Any:
    """The tangents of the outputs in their places."""
    if isinstance(places, list):
        return [spread(inner, dots) for inner in places]
    if isinstance(places, dict):
        return {key: spread(inner, dots) for key, inner in places.items()}
    return dots[places] if places >= 0 else ZeroTangent


@rrule(run)
def run_rrule(step: Step, *leaves: Any) -> Any:
    """x_bar by the system's own reverse mode."""
    recorded(step)
    y = run(step, *leaves)
    if is_kept_by_copy(step):  # the program may write them, and the pullback is differentiated
        leaves = tuple([run(copying(step), x) for x in leaves])
    places = places_of_outputs(step, y)

    def run_pullback(y_bar: Any) -> Any:
        found = gather(places, y_bar, [])
        if not found:
            return NoTangent, *[ZeroTangent for _ in leaves]
        pull = derived(step, tuple([k for k, _ in found]))
        return NoTangent, *run(pull, *[bar for _, bar in found], *leaves)

    return y, run_pullback


@frule(run)
def run_frule(step: Step, *leaves: Any) -> Any:
    """y_dot by the system's own forward mode, or the pullback differentiated."""
    y = run(step, *leaves)
    places = places_of_outputs(step, y)

    def run_pushforward(dots: Any) -> Any:
        varying = [(k, x_dot) for k, x_dot in enumerate(dots[1:]) if x_dot is not ZeroTangent]
        push = derived(step, None, tuple([k for k, _ in varying]))
        return spread(places, run(push, *leaves, *[x_dot for _, x_dot in varying]))

    return y, run_pushforward


def taken_in(conversion: Conversion, x: Any) -> Any:
    """A number, or an array of NumPy, as an array of the system."""
    if conversion.f is not None:
        return conversion.f(x)
    return conversion.system.taken_in(x, conversion.like)


def taken_out(conversion: Conversion, x: Any) -> Any:
    """An array of the system as a number, or as an array of NumPy."""
    if conversion.f is not None:
        return conversion.f(x)
    return conversion.system.taken_out(x, conversion.like)


def like(conversion: Conversion, x: Any) -> Conversion:
    """The conversion of derivatives to the type of `x`."""
    return Conversion(conversion.system, None, x)


@rrule(taken_in)
def taken_in_rrule(conversion: Conversion, x: Any) -> Any:
    """The conversion back."""
    y = taken_in(conversion, x)

    def taken_in_pullback(y_bar: Any) -> Any:
        return NoTangent, taken_out(like(conversion, x), y_bar)

    return y, taken_in_pullback


@frule(taken_in)
def taken_in_frule(conversion: Conversion, x: Any) -> Any:
    """The same conversion."""
    y = taken_in(conversion, x)

    def taken_in_pushforward(dots: Any) -> Any:
        return taken_in(like(conversion, y), dots[1])

    return y, taken_in_pushforward


@rrule(taken_out)
def taken_out_rrule(conversion: Conversion, x: Any) -> Any:
    """The conversion back."""
    y = taken_out(conversion, x)

    def taken_out_pullback(y_bar: Any) -> Any:
        return NoTangent, taken_in(like(conversion, x), y_bar)

    return y, taken_out_pullback


@frule(taken_out)
def taken_out_frule(conversion: Conversion, x: Any) -> Any:
    """The same conversion."""
    y = taken_out(conversion, x)

    def taken_out_pushforward(dots: Any) -> Any:
        return taken_out(like(conversion, y), dots[1])

    return y, taken_out_pushforward


no_tangent(recorded, derived, places_of_outputs, like, outputs, is_kept_by_copy, copying)
