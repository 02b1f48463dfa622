"""A rule given in one mode serves the other: the linear map it returns is transposed by differentiating it.

The pullback of a rule is linear in the cotangent, so reverse mode of it, at any cotangent, is the pushforward; and
the other way round. It costs a recorded run of the map for each call of the rule, once for a whole chunk.

`record`, here, is the class `Run`, which records the run of a function. It is handed in, because runs are made of
reverse levels, and these turn rules round.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from plaingrad.engine.memory.kinds import ARRAY, MAPPING, NUMBER, OBJECT, SEQUENCE, kind_of
from plaingrad.engine.memory.linear_maps import pulled, pushed
from plaingrad.errors import MissingRuleError
from plaingrad.tangents import ZeroTangent, has_tangent_space
from plaingrad.tangents.fields import parts_of

#: record(f, args, argnums, kwargs): f(*args, **kwargs) with what can be pulled back through it.
Recorder = Callable[[Callable[..., Any], tuple[Any, ...], tuple[int, ...], dict[str, Any]], Any]


def pushforward_of(
    record: Recorder,
    pullback: Callable[[Any], Any],
    y: Any,
    positions: list[int],
    xs: list[Any],
    name: str,
    strict: bool = False,
) -> Any:
    """`push(dots) -> y_dot` for the linear map that `pullback` transposes; `dots` has one entry per position."""
    if not has_tangent_space(y):
        return lambda dots: ZeroTangent
    run = _recorded(
        record,
        functools.partial(pulled, pullback, positions, xs, name, y, strict),
        (unit_like(y),),
        "forward",
        name,
    )
    return lambda dots: run.pull(dots)[0]


def pullback_of(
    record: Recorder, push: Callable[[Any], Any], positions: list[int], xs: list[Any], count: int, name: str
) -> Any:
    """`pullback(y_bar) -> cotangents` for the linear map `push`; a tuple with `count` entries."""

    def transposed_pullback(y_bar: Any) -> tuple[Any, ...]:
        units = tuple([unit_like(x) for x in xs])
        found = _recorded(
            record, functools.partial(pushed, push, positions, xs, count), units, "reverse", name
        ).pull(y_bar)
        x_bars: list[Any] = [ZeroTangent] * count
        for position, x_bar in zip(positions, found, strict=True):
            x_bars[position] = x_bar
        return tuple(x_bars)

    return transposed_pullback


def _recorded(record: Recorder, linear_map: Any, units: tuple[Any, ...], mode: str, name: str) -> Any:
    try:
        return record(linear_map, units, tuple(range(len(units))), {})
    except MissingRuleError as error:
        raise MissingRuleError(
            f"the rule for {name} is given in one mode only and cannot be turned round for {mode} mode:\n  {error}"
        ) from error


def unit_like(y: Any, seen: tuple[int, ...] = ()) -> Any:
    """Some tangent of `y`, with its structure: ones where there are numbers, else `ZeroTangent`.

    That of an object is a dictionary, which the engine can take apart.
    """
    kind = kind_of(type(y))
    if kind == NUMBER:
        return type(y)(1)
    if kind == ARRAY:
        return np.ones_like(y) if y.dtype.kind in "fc" else ZeroTangent
    if kind == SEQUENCE:
        parts = [unit_like(part, seen) for part in y]
        return tuple(parts) if isinstance(y, tuple) else parts
    if kind == MAPPING:
        return {key: unit_like(part, seen) for key, part in y.items()}
    if kind == OBJECT and id(y) not in seen:
        fields = {name: unit_like(part, (*seen, id(y))) for name, part in parts_of(y).items()}
        return fields if any(part is not ZeroTangent for part in fields.values()) else ZeroTangent
    return ZeroTangent
