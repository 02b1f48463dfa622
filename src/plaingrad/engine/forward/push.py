"""One differentiated call in forward mode: run the function at a new level, and read off the tangent of its value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plaingrad.engine.calls import opening
from plaingrad.engine.calls.reuse import give_back, new_level
from plaingrad.engine.compiled import core
from plaingrad.engine.forward.forward import ForwardLevel
from plaingrad.engine.refusals import watch
from plaingrad.engine.reverse.inputs import Inputs, inputs_of, with_fresh
from plaingrad.rewrite import CURRENT, PLAIN
from plaingrad.tangents import NoTangent, ZeroTangent


def push(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    dots: tuple[Any, ...],
    kwargs: dict[str, Any],
    chunk: int | None = None,
    level_class: type[ForwardLevel] = ForwardLevel,
) -> tuple[Any, Any]:
    """(y, y_dot): the value f(*args, **kwargs), and its tangent where the arguments have tangents `dots`.

    Args:
        f: the function.
        args: its positional arguments.
        dots: a tangent for each, of its structure; None or ZeroTangent: not differentiated.
        kwargs: its keyword arguments.
        chunk: every leaf of `dots`, and of the result, has a leading axis of this length.
        level_class: what to carry along; see `engine.forward`.
    """
    observer = None if watch.observer is None else watch.looking_on()
    if observer is not None:
        return observer.pushed(unobserved, f, args, dots, kwargs, chunk, level_class)
    return unobserved(f, args, dots, kwargs, chunk, level_class)


def unobserved(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    dots: tuple[Any, ...],
    kwargs: dict[str, Any],
    chunk: int | None,
    level_class: type[ForwardLevel],
) -> tuple[Any, Any]:
    """`push`, whoever looks on."""
    active = tuple(
        [
            n
            for n, x_dot in enumerate(dots)
            if not (x_dot is None or x_dot is ZeroTangent or x_dot is NoTangent)
        ]
    )
    outer = CURRENT.get()
    if not isinstance(level_class, type):  # somebody asks the level later
        return _pushed(level_class(outer, chunk), f, args, active, dots, kwargs)
    if chunk is None and level_class is ForwardLevel:
        found = in_core(f, args, active, dots, kwargs)
        if found is not None:
            return found
    held = [new_level(level_class, outer, chunk)]
    pushed = _pushed(held[0], f, args, active, dots, kwargs)
    give_back(held)
    return pushed


def in_core(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    active: tuple[int, ...],
    dots: tuple[Any, ...],
    kwargs: dict[str, Any],
    as_it_is: bool = False,
) -> tuple[Any, Any] | None:
    """`push` of floats, lists, tuples and dictionaries of them, and arrays, by the compiled core.

    Args:
        active: which arguments move.
        as_it_is: `f` is plaingrad's own, which only moves references: it does not run rewritten.

    Returns:
        None if nothing was done.
    """
    if core is None or CURRENT.get() is not PLAIN:
        return None
    containers = core.containers_in(args, active, dots)
    derivation = None if containers is None else core.begin(ForwardLevel)
    if derivation is None:
        return None
    done = opening.run(derivation, derivation.push, f, args, dots, kwargs, containers, as_it_is)
    if done is None or done[2]:
        return None if done is None else done[:2]
    held = derivation.released()
    value = inputs_of(held[0], derivation.given).own(done[0])
    give_back(held)
    return value, done[1]


def _pushed(
    level: Any, f: Callable[..., Any], args: Any, active: tuple[int, ...], dots: Any, kwargs: dict[str, Any]
) -> tuple[Any, Any]:
    """f(*args) run at `level`: its value and tangent."""
    inputs, value, y_dot = with_fresh(level, args, active, _run, level, f, active, dots, kwargs)
    return inputs.own(value), y_dot


def _run(
    inputs: Inputs, level: Any, f: Any, active: tuple[int, ...], dots: Any, kwargs: Any
) -> tuple[Inputs, Any, Any]:
    for n, node in zip(active, inputs.nodes, strict=True):
        level.seed(node, inputs.args[n], dots[n])
    value = level.run(f, inputs.args, kwargs)
    return inputs, value, level.tangent_of(value)
