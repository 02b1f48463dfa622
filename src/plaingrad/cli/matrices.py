"""`plaingrad grad`, `jacobian` and `hessian`: JSON of the structure of `--at`, or a table with a line a number."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from plaingrad import api
from plaingrad.cli.call import Call
from plaingrad.cli.points import leaves, plain
from plaingrad.cli.usage import UsageError
from plaingrad.copying import deep_copy
from plaingrad.tables import aligned

OF_ONE = "result"  # the path of a result that is one number or array


def grad_command(options: argparse.Namespace) -> int:
    """`plaingrad grad`: null where there is no derivative."""
    call = Call.from_options(options)
    gradient = call.gradient()
    if options.table:
        rows = [
            (path(call.names[argument], keys), shown(x), shown(x_bar))
            for argument, bar in zip(call.wrt, gradient)
            for keys, x, x_bar in leaves(call.args[argument], bar)
        ]
        print(aligned([("path", "value", "derivative"), *rows], right=(1, 2)))
    else:
        print(json.dumps(call.mirrored(gradient), allow_nan=False))
    return 0


def jacobian_command(options: argparse.Namespace) -> int:
    """`plaingrad jacobian`: in place of each number or array of the result its derivatives."""
    call = Call.from_options(options)
    check_point(call)

    def twice(*args: Any) -> tuple[Any, Any]:
        result = call.f(*args)
        return result, result

    twice.__name__ = getattr(call.f, "__name__", "the function")  # as messages name it
    slopes, result = api.jacobian(twice, argnums=call.wrt, has_aux=True)(*deep_copy(call.args))
    check_result(result)
    if options.table:
        print(table(call, outputs(result, slopes, OF_ONE)))
    else:
        print(json.dumps(nested(result, slopes, call.mirrored), allow_nan=False))
    return 0


def hessian_command(options: argparse.Namespace) -> int:
    """`plaingrad hessian`: in place of each number or array of `--at` the derivatives of its derivative."""
    call = Call.from_options(options)
    check_point(call)
    second = api.hessian(call.f, argnums=call.wrt)(*deep_copy(call.args))
    if options.table:
        rows = (
            row
            for argument, slopes in zip(call.wrt, second)
            for row in outputs(call.args[argument], slopes, call.names[argument])
        )
        print(table(call, rows))
    else:
        by_argument = zip(call.wrt, second)
        entries = tuple([nested(call.args[k], slopes, call.mirrored) for k, slopes in by_argument])
        print(json.dumps(call.mirrored(entries), allow_nan=False))
    return 0


def check_point(call: Call) -> None:
    """Refuse a point without numbers."""
    if not call.wrt:
        raise UsageError("--at holds no number to differentiate with respect to")


def check_result(y: Any) -> None:
    """Refuse results for which JSON has no word."""
    if isinstance(y, (list, tuple, dict)):
        for part in y.values() if isinstance(y, dict) else y:
            check_result(part)
    elif not (y is None or isinstance(y, (str, bool, int, float, np.ndarray, np.generic))):
        raise UsageError(
            f"the function returned {type(y).__name__}; a Jacobian is printed for numbers, arrays, lists and dicts"
        )


def nested(y: Any, slopes: Any, of_leaf: Callable[[Any], Any]) -> Any:
    """The structure of `y` with `of_leaf` of the derivatives in place of each number and array."""
    if slopes is None or isinstance(y, (str, bool)):
        return None
    if isinstance(y, dict):
        return {key: nested(part, slopes[key], of_leaf) for key, part in y.items()}
    if isinstance(y, (list, tuple)):
        return [nested(part, of, of_leaf) for part, of in zip(y, slopes, strict=True)]
    return of_leaf(slopes)


def outputs(y: Any, slopes: Any, name: str) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """The path of each number in `y`, and its derivatives, one entry a differentiated argument."""
    if slopes is None or isinstance(y, (str, bool)):
        return
    if isinstance(y, dict):
        for key, part in y.items():
            yield from outputs(part, slopes[key], path(name, (key,)))
    elif isinstance(y, (list, tuple)):
        for k, (part, of) in enumerate(zip(y, slopes, strict=True)):
            yield from outputs(part, of, path(name, (k,)))
    elif np.ndim(y):
        for index in np.ndindex(np.shape(y)):
            yield path(name, index), tuple([of_entry(x_bar, index) for x_bar in slopes])
    else:
        yield name, tuple(slopes)


def of_entry(x_bar: Any, index: tuple[int, ...]) -> Any:
    """The derivatives of one entry of an array, from those of the array."""
    if isinstance(x_bar, dict):
        return {key: of_entry(part, index) for key, part in x_bar.items()}
    if isinstance(x_bar, (list, tuple)):
        return [of_entry(part, index) for part in x_bar]
    return x_bar[index] if np.ndim(x_bar) else x_bar


def table(call: Call, rows: Iterator[tuple[str, Sequence[Any]]]) -> str:
    """A line for each number that is differentiated, a column for each one with respect to which."""
    lines, columns = [], [""]
    for name, slopes in rows:
        found = [
            (path(call.names[argument], keys), x_bar)
            for argument, bar in zip(call.wrt, slopes)
            for keys, _, x_bar in leaves(call.args[argument], bar)
        ]
        columns = ["", *[column for column, _ in found]]
        lines.append([name, *[shown(x_bar) for _, x_bar in found]])
    return aligned([columns, *lines], right=range(1, len(columns)))


def path(name: str, keys: Sequence[Any]) -> str:
    """A name with its indices and keys, as Python writes them."""
    return name + "".join(f"[{key!r}]" for key in keys)


def shown(x: Any) -> str:
    """Nine digits of a number."""
    x = plain(x)
    return f"{x:.9g}" if isinstance(x, (int, float)) else str(x)
