"""Points as JSON: the value of `--at`, and gradients of the same structure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from plaingrad.cli.usage import UsageError

DEEPEST = 100  # levels of lists and objects in --at


def from_json(text: str) -> Any:
    """The value of `--at`, which must be strict JSON: no NaN, no name twice, no number that no float can hold."""

    def refused(what: str) -> Any:
        raise UsageError(f"--at is not a point: {what}")

    def real(digits: str) -> float:
        x = float(digits)
        return x if math.isfinite(x) else refused(f"no float is as large as {shortened(digits)}")

    def integer(digits: str) -> int:
        real(digits)
        return int(digits)

    def entries(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            refused(f"the name {shortened(repr(twice))} stands in one object twice")
        return made

    try:
        at = json.loads(
            text,
            object_pairs_hook=entries,
            parse_float=real,
            parse_int=integer,
            parse_constant=lambda name: refused(name),
        )
    except json.JSONDecodeError as error:
        raise UsageError(f"--at is not JSON: {error}") from None
    except RecursionError:
        at = refused(f"it is nested more than {DEEPEST} deep")
    inside = [at]
    for _ in range(DEEPEST):
        inside = [
            part
            for x in inside
            if isinstance(x, (list, dict))
            for part in (x.values() if isinstance(x, dict) else x)
        ]
    return refused(f"it is nested more than {DEEPEST} deep") if inside else at


def shortened(text: str) -> str:
    """At most the beginning of a long text, for messages of one line."""
    return text if len(text) <= 40 else f"{text[:30]}... ({len(text)} characters)"


def as_reals(value: Any) -> Any:
    """`value` with its integers as floats: a point has real coordinates."""
    if isinstance(value, dict):
        return {key: as_reals(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [as_reals(entry) for entry in value]
    return float(value) if is_number(value) else value


def is_number(x: Any) -> bool:
    """Whether `x` is a JSON number; true and false are none."""
    return isinstance(x, (int, float)) and not isinstance(x, bool)


def has_number(value: Any) -> bool:
    """Whether a number is anywhere in `value`."""
    if isinstance(value, np.ndarray):
        return value.size > 0
    if isinstance(value, (list, dict)):
        return any(map(has_number, value.values() if isinstance(value, dict) else value))
    return is_number(value)


def as_arrays(value: Any) -> Any:
    """`value` with each outermost rectangular list of numbers as a float64 array."""
    if isinstance(value, dict):
        return {key: as_arrays(entry) for key, entry in value.items()}
    if not isinstance(value, list):
        return value
    try:
        array = np.array(value)
    except ValueError:  # ragged
        return [as_arrays(entry) for entry in value]
    return array.astype(float) if array.dtype.kind in "iuf" else [as_arrays(entry) for entry in value]


def plain(x_bar: Any) -> Any:
    """A gradient as JSON can hold it: what is no finite number as the text that `float` reads."""
    if isinstance(x_bar, dict):
        return {key: plain(entry) for key, entry in x_bar.items()}
    if isinstance(x_bar, (list, tuple)):
        return [plain(entry) for entry in x_bar]
    if isinstance(x_bar, (np.ndarray, np.generic)):
        return plain(x_bar.tolist())
    if isinstance(x_bar, float) and not math.isfinite(x_bar):
        return str(x_bar)
    return x_bar


def leaves(x: Any, x_bar: Any) -> Iterator[tuple[tuple[Any, ...], float, float]]:
    """The keys, the value and the derivative of every number in `x`."""
    if isinstance(x, np.ndarray):
        for index in np.ndindex(x.shape):
            yield index, float(x[index]), float(x_bar[index])
    elif isinstance(x, (list, dict)):
        for key in range(len(x)) if isinstance(x, list) else x:
            for keys, value, derivative in leaves(x[key], x_bar[key]):
                yield (key, *keys), value, derivative
    elif is_number(x):
        yield (), x, x_bar


def replaced(value: Any, keys: tuple[Any, ...], x: float) -> Any:
    """`value` with the number under `keys` replaced, in place where it can be."""
    if not keys:
        return x
    if isinstance(value, np.ndarray):
        value[keys] = x
    else:
        value[keys[0]] = replaced(value[keys[0]], keys[1:], x)
    return value
