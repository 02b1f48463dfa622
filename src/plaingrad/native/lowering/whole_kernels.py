"""What `numba.guvectorize` makes, called with arrays of the kernel's own ranks: one call of the kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import types
from numba.np.ufunc.gufunc import GUFunc

from plaingrad.native.lowering.stencil_kernels import captured

MISMATCH = (  # as Numba has it
    "Operand has a mismatch in one of its core dimensions. Please, check if all arguments to a @guvectorize function "
    "have the same core dimensions."
)


def is_whole_kernel(f: Any) -> bool:
    """Whether `f` applies a kernel of the user's to whole arrays."""
    return isinstance(f, GUFunc)


def at_once(f: Any, kinds: list[Any], run: Callable[..., Any]) -> Callable[..., Any] | None:
    """The function that does for arguments of types `kinds`, the outputs last, what `f` does; None if it is not known.

    Args:
        f: made by `numba.guvectorize`.
        kinds: numbers and arrays of numbers; more axes than the kernel has are not taken.
        run: the kernel, as a function that is compiled.
    """
    builder = f.gufunc_builder
    layout = [*builder.sin, *builder.sout]
    if len(kinds) != len(layout) or builder.writable_args:
        return None
    for dims, t in zip(layout, kinds, strict=True):
        if not isinstance(t, (types.Array, types.Number)) or getattr(t, "ndim", 0) != len(dims):
            return None
    if not all(builder.sout):
        return None
    declared = [tuple(found.signature.args) for found in builder._cres.values()]
    numbers = [types.unliteral(getattr(t, "dtype", t)) for t in kinds]
    fitting = [s for s in declared if [getattr(t, "dtype", t) for t in s] == numbers]
    if not fitting and (declared or not f._is_dynamic):
        return None  # NumPy converts
    if fitting and [isinstance(t, types.Array) for t in fitting[0]] != [
        isinstance(t, types.Array) for t in kinds
    ]:
        return None
    names = [f"x{k}" for k in range(len(kinds))]
    lines = [f"def form({', '.join(names)}):"]
    first: dict[str, str] = {}
    for name, dims in zip(names, layout, strict=True):
        for axis, dim in enumerate(dims):
            here = f"{name}.shape[{axis}]"
            if first.setdefault(dim, here) != here:
                lines += [f"    if {first[dim]} != {here}:", f"        raise ValueError({MISMATCH!r})"]
    lines.append(f"    kernel({', '.join(names)})")
    return captured("\n".join(lines) + "\n", {"kernel": run})  # type: ignore[no-any-return]


__all__ = ["at_once", "is_whole_kernel"]
