"""Finding what a rule is about in whatever NumPy is installed, and the axis arithmetic that rules share."""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.errors import MissingRuleError

ABSENT: Any = np._NoValue  # NumPy's own mark for "not given"


def functions(*names: str, where: Any = np) -> tuple[Any, ...]:
    """The functions of these names that this version of NumPy has, each once."""
    found: list[Any] = []
    for name in names:
        function = getattr(where, name, None)
        if function is not None and all(function is not f for f in found):
            found.append(function)
    return tuple(found)


def methods(*names: str, types: tuple[type, ...] = (np.ndarray, np.generic)) -> tuple[Any, ...]:
    """The descriptors of these names found in the types' own dictionaries."""
    return tuple(vars(t)[name] for name in names for t in types if name in vars(t))


def both(*names: str) -> tuple[Any, ...]:
    """NumPy's functions and the methods of arrays and array scalars that have these names."""
    return functions(*names) + methods(*names)


def given(**options: Any) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in options.items() if value is not ABSENT}


def refuse(name: str, why: str, instead: str) -> MissingRuleError:
    """The error for a form of a function that has no derivative here."""
    return MissingRuleError(f"{name} {why}.\n  Instead: {instead}\n  See docs: errors#missing-rule")


def refuse_out(name: str, out: Any) -> None:
    """Raise if `out` reached a rule by position: rules return fresh memory, the keyword is dealt with before them."""
    if out is not None and out is not ABSENT:
        raise refuse(name, "was given its output array by position", "pass it by keyword, out=...")


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """`axis` (None, a number or a tuple) as a tuple of axes, counted from the front."""
    if axis is None:
        return tuple(range(ndim))
    if isinstance(axis, tuple):
        return tuple(i % ndim for i in axis) if ndim else ()
    return (axis % ndim,) if ndim else ()


def restored(z: Any, shape: tuple[int, ...], axis: Any) -> Any:
    """`z`, a reduction over `axis` of an array of `shape`, with the reduced axes back as axes of length 1."""
    axes = axes_of(axis, len(shape))
    return np.reshape(z, tuple(1 if i in axes else n for i, n in enumerate(shape)))


def spread(z: Any, shape: tuple[int, ...], axis: Any) -> Any:
    """`z`, a reduction over `axis`, repeated along the reduced axes: a read-only view of `shape`."""
    if axis is not None or np.ndim(z):
        z = restored(z, shape, axis)
    return np.broadcast_to(z, shape)


def count(shape: tuple[int, ...], axis: Any) -> int:
    """How many elements a reduction over `axis` takes together."""
    n = 1
    for i in axes_of(axis, len(shape)):
        n *= shape[i]
    return n


def at_axis(index: Any, axis: int, ndim: int) -> tuple[Any, ...]:
    """The subscript that applies `index` to one axis and takes the others whole."""
    return (slice(None),) * (axis % ndim) + (index,)


def is_complex(x: Any) -> bool:
    """Whether `x` (number, array, or nested list) has a complex dtype."""
    return np.iscomplexobj(x)


def conj(x: Any) -> Any:
    """The complex conjugate; real `x` is returned as it is, without a copy."""
    return np.conjugate(x) if np.iscomplexobj(x) else x


def adjoint(x: Any) -> Any:
    """The conjugate transpose of (a stack of) matrices; a view where `x` is real."""
    return conj(np.swapaxes(x, -1, -2))
