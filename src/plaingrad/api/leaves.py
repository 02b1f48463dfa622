"""The structure of arguments, tangents and cotangents: what fits what, and in whose words to say so."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from plaingrad.engine.inputs import fields_of, has_fields
from plaingrad.engine.kinds import ARRAY, MAPPING, NOTHING, NUMBER, SEQUENCE, kind_of
from plaingrad.errors import ArgumentError, CotangentError
from plaingrad.tangents import NoTangent, ZeroTangent

Argnums = int | tuple[int, ...]


def wraps(f: Any) -> Callable[[Any], Any]:
    """Carry over the name and documentation of `f`, where it has them."""
    present = [name for name in functools.WRAPPER_ASSIGNMENTS if hasattr(f, name)]
    return functools.wraps(f, assigned=present, updated=())


def described(x: Any) -> str:
    """ "a list", "a ndarray of shape (3,) and dtype float64"."""
    shape = f" of shape {x.shape} and dtype {x.dtype}" if isinstance(x, np.ndarray) else ""
    return f"a {type(x).__qualname__}{shape}"


def positions_of(argnums: Any) -> tuple[int, ...]:
    """`argnums` as a tuple."""
    positions = argnums if isinstance(argnums, tuple) else (argnums,)
    if not positions or not all(isinstance(n, int) and not isinstance(n, bool) for n in positions):
        raise ArgumentError(
            f"argnums must be an int or a tuple of ints, not {argnums!r}.\n  See docs: errors#argument"
        )
    return positions


def positions_in(positions: tuple[int, ...], args: tuple[Any, ...]) -> tuple[int, ...]:
    """`positions`, counted from the front of `args`; each exists and is named once."""
    found = []
    for n in positions:
        if not -len(args) <= n < len(args):
            raise ArgumentError(
                f"there is no positional argument {n} to differentiate: the call has {len(args)}.\n"
                "  Differentiated arguments are passed by position.\n  See docs: errors#argument"
            )
        found.append(n % len(args))
    if len(set(found)) != len(found):
        raise ArgumentError(f"argnums names one argument twice: {positions!r}.\n  See docs: errors#argument")
    return tuple(found)


def may_have_tangent(x: Any, depth: int = 0) -> bool:
    """Whether a real or complex number is in `x`, as far as can be seen before it is entered."""
    kind = kind_of(type(x))
    if kind == NOTHING:
        return isinstance(x, (int, np.integer)) and not isinstance(x, bool)
    if kind == NUMBER:
        return True
    if kind == ARRAY:
        return x.dtype.kind in "fciu"
    if depth > 20:
        return False
    if kind in (SEQUENCE, MAPPING):
        return any(may_have_tangent(v, depth + 1) for v in (x.values() if kind == MAPPING else x))
    if not has_fields(x):
        return False
    return any(
        may_have_tangent(v, depth + 1) for v in fields_of(x).values() if not isinstance(v, (int, np.integer))
    )


def fitting_cotangent(y_bar: Any, y: Any, path: str) -> Any:
    """`y_bar`, checked to be a cotangent of `y`."""
    if y_bar is None or y_bar is ZeroTangent or y_bar is NoTangent:
        return ZeroTangent
    kind = kind_of(type(y))
    if kind == NUMBER:
        if isinstance(y_bar, np.ndarray) and y_bar.shape == ():
            y_bar = y_bar[()]
        if not isinstance(y_bar, (int, float, complex, np.number)) and kind_of(type(y_bar)) != NUMBER:
            raise misfit(path, "a number", y_bar)
        refuse_complex(path, y_bar, y)
        return float(y_bar) if isinstance(y_bar, int) else y_bar
    if kind == ARRAY:
        if not isinstance(y_bar, np.ndarray):
            if np.shape(y_bar) != y.shape or isinstance(y_bar, (list, tuple)):
                raise misfit(path, f"an array of shape {y.shape}", y_bar)
            y_bar = np.asarray(y_bar)
        if y_bar.shape != y.shape:
            raise misfit(path, f"an array of shape {y.shape}", y_bar)
        if y_bar.dtype.kind not in "fciub":
            raise misfit(path, "an array of numbers", y_bar)
        if y.dtype.kind in "fc":
            refuse_complex(path, y_bar, y)
        return y_bar
    if kind == SEQUENCE:
        if not isinstance(y_bar, (list, tuple)) or len(y_bar) != len(y):
            raise misfit(path, f"a sequence of {len(y)} entries", y_bar)
        return [
            fitting_cotangent(part, of, f"{path}[{k}]")
            for k, (part, of) in enumerate(zip(y_bar, y, strict=True))
        ]
    if kind == MAPPING:
        if not isinstance(y_bar, Mapping) or set(y_bar) - set(y):
            raise misfit(path, f"a mapping with keys among {list(y)}", y_bar)
        return {
            key: fitting_cotangent(y_bar[key], y[key], f"{path}[{key!r}]") if key in y_bar else ZeroTangent
            for key in y
        }
    if isinstance(y_bar, Mapping) and kind not in (NOTHING,):
        return {name: y_bar.get(name, ZeroTangent) for name in getattr(y, "__dict__", {})}
    if isinstance(y, (int, np.integer)):
        return ZeroTangent
    raise CotangentError(
        f"{path} is given for {described(y)}, which has no tangent; pass None there.\n  See docs: errors#cotangent"
    )


def refuse_complex(path: str, y_bar: Any, y: Any) -> None:
    """A real output has a real cotangent."""
    if np.iscomplexobj(y_bar) and not np.iscomplexobj(y):
        raise CotangentError(
            f"{path} is complex, but the output it belongs to is real.\n  See docs: errors#cotangent"
        )


def misfit(path: str, wanted: str, got: Any) -> CotangentError:
    """The error for a cotangent of the wrong kind or shape."""
    return CotangentError(
        f"{path} must be {wanted}, like the output it belongs to; got {described(got)}.\n  See docs: errors#cotangent"
    )
