"""What `numba.vectorize` and its kin make, which Numba runs element by element, as loops that call the kernels.

A call of one is replaced by a function made for the ranks of its arguments; the kernel is a function of the user's like
any other, which is put in the place of its call or differentiated by itself.
"""

from __future__ import annotations

import dis
from collections.abc import Callable
from functools import lru_cache
from types import FunctionType
from typing import Any

import numba
from numba.core import types
from numba.np.numpy_support import as_dtype
from numba.np.ufunc.dufunc import DUFunc

from plaingrad import rulebook
from plaingrad.errors import NativeError
from plaingrad.native.frontend.current import dispatcher_of
from plaingrad.native.frontend.translation import program
from plaingrad.native.lowering.stencil_kernels import by_places, captured, is_stencil
from plaingrad.native.lowering.whole_kernels import at_once, is_whole_kernel

DIVISIONS = ("/", "//", "%", "/=", "//=", "%=")
PASSED_ON = ("fastmath", "boundscheck")


def is_kernel(f: Any) -> bool:
    """Whether `f` applies a kernel of the user's to every element, and has no rule."""
    if not (isinstance(f, DUFunc) or is_stencil(f) or is_whole_kernel(f)) or str(f.__module__).startswith(
        "plaingrad."
    ):
        return False
    return rulebook.find(f) is None


def by_elements(f: Any, kinds: list[Any], result: Any) -> Callable[..., Any] | None:
    """The function that does for arguments of types `kinds` what `f` does; None where that is not known.

    Args:
        f: made by `numba.vectorize`, `numba.guvectorize` or `numba.stencil`.
        kinds: numbers and arrays of numbers.
        result: the type of the result.
    """
    if is_stencil(f):
        return by_places(f, kinds, result)  # type: ignore[no-any-return]
    if is_whole_kernel(f):
        options = f.gufunc_builder.targetoptions
        run = _compiled(f.gufunc_builder.py_func, tuple((k, options.get(k)) for k in PASSED_ON))
        return at_once(f, kinds, run)
    ranks = tuple([t.ndim if isinstance(t, types.Array) else 0 for t in kinds])
    numbers = [types.unliteral(t.dtype if isinstance(t, types.Array) else t) for t in kinds]
    kernel = f._dispatcher.py_func
    if len(kinds) != kernel.__code__.co_argcount or not all(isinstance(t, types.Number) for t in numbers):
        return None
    if isinstance(result, types.Array) and result.ndim > 1 and result.layout != "C":
        return None
    declared = [tuple(s.args) for s in f._dispatcher.overloads] if f._frozen else []
    if f._frozen and tuple(numbers) not in declared:
        if len(declared) != 1:
            return None  # NumPy chooses
        numbers = list(declared[0])
    run = _compiled(kernel, tuple((k, f._dispatcher.targetoptions.get(k)) for k in PASSED_ON))
    element = getattr(result, "dtype", result)
    try:
        if program(run, tuple(numbers)).result != element:
            return None
    except NativeError:
        return None
    return _form(run, ranks, tuple(as_dtype(t).type for t in numbers), as_dtype(element).type)


@lru_cache(256)
def _compiled(kernel: FunctionType, options: tuple[tuple[str, Any], ...]) -> Any:
    """The kernel as a function: with NumPy's errors, if it divides."""
    given = {k: value for k, value in options if value}
    divides = any(i.opname == "BINARY_OP" and i.argrepr in DIVISIONS for i in dis.get_instructions(kernel))
    if divides:
        given["error_model"] = "numpy"
    return numba.njit(**given)(dispatcher_of(kernel).py_func) if given else dispatcher_of(kernel)


@lru_cache(256)
def _form(kernel: Any, ranks: tuple[int, ...], scalars: tuple[Any, ...], element: Any) -> Any:
    """A function of numbers and arrays of these ranks that calls `kernel` for every element of their broadcast."""
    names = [f"x{k}" for k in range(len(ranks))]
    space: dict[str, Any] = {"kernel": kernel, "element": element}
    space.update({f"t{k}": t for k, t in enumerate(scalars)})
    rank = max(ranks, default=0)
    places = [f"i{d}" for d in range(rank)]
    given = []
    for k, (x, r) in enumerate(zip(names, ranks, strict=True)):
        at = f"{x}[{', '.join(places)}]" if r else x
        given.append(f"t{k}({at})")
    call = f"kernel({', '.join(given)})"
    if not rank:
        return captured(f"def form({', '.join(names)}):\n    return {call}\n", space)
    arrays = [x for x, r in zip(names, ranks, strict=True) if r]
    lines = [f"def loop({', '.join(names)}):", f"    out = np.empty({arrays[0]}.shape, element)"]
    lines += [f"{'    ' * (d + 1)}for {i} in range(out.shape[{d}]):" for d, i in enumerate(places)]
    lines += [f"{'    ' * (rank + 1)}out[{', '.join(places)}] = {call}", "    return out"]
    loop = captured("\n".join(lines) + "\n", space, "loop")
    if len(arrays) == 1:
        return loop
    alike = (
        " and ".join(f"{arrays[0]}.shape == {x}.shape" for x in arrays[1:])
        if len(set(ranks) - {0}) == 1
        else ""
    )
    lines = [f"def form({', '.join(names)}):"]
    if alike:
        lines += [f"    if {alike}:", f"        return loop({', '.join(names)})"]
    for d in range(rank):
        sizes = [
            f"{x}.shape[{d - rank + r}]" for x, r in zip(names, ranks, strict=True) if d - rank + r >= 0 and r
        ]
        size = sizes[-1]
        for n in sizes[-2::-1]:
            size = f"({size} if {n} == 1 else {n})"
        lines.append(f"    n{d} = {size}")
    shape = "".join(f"n{d}, " for d in range(rank))
    whole = [f"np.broadcast_to({x}, ({shape}))" if r else x for x, r in zip(names, ranks, strict=True)]
    lines.append(f"    return loop({', '.join(whole)})")
    return captured("\n".join(lines) + "\n", {**space, "loop": numba.njit(loop)})
