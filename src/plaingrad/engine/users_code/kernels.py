"""What `numba.stencil` and `numba.guvectorize` make, called from Python, place by place.

The kernel of a stencil reads the neighbours of a place by offsets (`a[-1, 0]`) and returns the number that stands
there. It is differentiated natively where there is a native rule; else it is handed arrays that add the place to what
they are indexed with, and the border, where neighbours are missing, is what Numba makes it. The kernel of a generalized
ufunc is handed the arrays of one place, and writes into the last of them.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from plaingrad.critical import imported
from plaingrad.engine.memory.kinds import ARRAY, kind_of
from plaingrad.engine.refusals.refuse import missing_rule
from plaingrad.engine.users_code.compilers import called_natively, elementwise, plainly
from plaingrad.errors import NativeError
from plaingrad.rewrite import PLAIN

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level


def over_elements(level: Level, f: Any) -> Any:
    """What to call instead of `f`, which Numba made of a function of an element, of a place or of parts of arrays."""
    name = type(f).__name__
    make = {"StencilFunc": stencil, "GUFunc": whole_kernel}.get(name, elementwise)
    return make(level, f)


def stencil(level: Level, f: Any) -> Any:
    """What to call instead of a stencil."""
    refused = called_natively(level, f)

    def over_places(*args: Any, **kwargs: Any) -> Any:
        active = any(map(level.calls.finds_active, (*args, *kwargs.values())))
        if kwargs or not active or kind_of(type(args[0])) != ARRAY:
            return refused(*args, **kwargs)
        if level.parent is PLAIN and level.takes_native_rules:
            native = level.outside(imported, "plaingrad.native.border.rule")
            compiled = level.outside(native.of_stencil, f, len(args))
            if level.outside(native.takes, compiled, args):
                try:
                    return level.apply(native.rule_of(compiled), compiled, args, {})
                except NativeError:
                    pass
        y = plainly(f, *args)
        reach = reach_of(f, args[0].ndim)
        if y.dtype.kind not in "fc":
            return y
        if reach is None:
            return refused(*args)
        z = at_each_place(level, f.kernel_ir.func_id.func, args, relative_in(f, args), reach, y)
        check_alike(f, y, z)
        return z

    return over_places


def check_alike(f: Any, y: np.ndarray, z: np.ndarray) -> None:
    """Refuse a kernel whose compiled form has other values `y` than its Python form, `z`."""
    if not np.allclose(y, z, rtol=1e-6 if y.dtype.itemsize == 4 else 1e-9, atol=0.0, equal_nan=True):
        missing_rule(
            f,
            "Numba's compiled form of it gives other numbers than the Python function.",
            what="is code of Numba without a derivative rule",
        )


def whole_kernel(level: Level, f: Any) -> Any:
    """What to call instead of a generalized ufunc."""
    refused = called_natively(level, f)
    builder = f.gufunc_builder
    ranks = [len(dims) for dims in (*builder.sin, *builder.sout)]

    def over_places(*args: Any, **kwargs: Any) -> Any:
        if kwargs or len(args) != len(builder.sin) or builder.writable_args:
            return refused(*args, **kwargs)
        if not any(map(level.calls.finds_active, args)):
            return refused(*args)
        results = plainly(f, *args)
        ys = [np.asarray(y) for y in (results if isinstance(results, tuple) else (results,))]
        numbers = given_as_numbers(f, args)
        if numbers is None or not all(y.dtype.kind in "fc" for y in ys):
            return refused(*args)
        zs = [np.zeros_like(y) for y in ys]
        # What is one number for the kernel is an array of one for its text, unless it was declared to be a number.
        whole = [
            z[..., np.newaxis] if not rank else z for z, rank in zip(zs, ranks[len(args) :], strict=True)
        ]
        run = level.prep(builder.py_func)
        for place in np.ndindex(*ys[0].shape[: ys[0].ndim - ranks[len(args)]]):
            given = [
                x if kind_of(type(x)) != ARRAY and plain else part_at(level, x, place, rank, plain)
                for x, rank, plain in zip(args, ranks, numbers, strict=False)
            ]
            run(*given, *[level.getitem(z, place) for z in whole])
        for y, z in zip(ys, zs, strict=True):
            check_alike(f, y, z)
        found = [z if z.ndim else level.getitem(z, ()) for z in zs]
        return tuple(found) if isinstance(results, tuple) else found[0]

    return over_places


def given_as_numbers(f: Any, args: tuple[Any, ...]) -> list[bool] | None:
    """Which arguments are declared to be numbers; None where the declarations do not agree, or there is none."""
    made = [found.signature.args for found in f.gufunc_builder._cres.values()]
    kinds = {tuple([not hasattr(t, "ndim") for t in types[: len(args)]]) for types in made}
    return list(kinds.pop()) if len(kinds) == 1 else None


def part_at(level: Level, x: Any, place: tuple[int, ...], rank: int, plain: bool) -> Any:
    """What stands at `place` of an argument of which the kernel has the last `rank` axes; broadcast, as NumPy does."""
    if kind_of(type(x)) != ARRAY:
        x = level.prep(np.asarray)(x)
    outer = x.shape[: x.ndim - rank]
    at = tuple([0 if n == 1 else p for p, n in zip(place[len(place) - len(outer) :], outer, strict=True)])
    if rank or plain:
        return level.getitem(x, at) if at or not rank else x
    return level.getitem(level.getitem(x, (..., np.newaxis)), at)


def relative_in(f: Any, args: tuple[Any, ...]) -> tuple[bool, ...]:
    """Which arguments are read by offsets from the place."""
    whole = f.options.get("standard_indexing", ())
    return tuple(
        [
            kind_of(type(x)) == ARRAY and n not in whole
            for n, x in zip(f.kernel_ir.arg_names, args, strict=True)
        ]
    )


def reach_of(f: Any, rank: int) -> tuple[tuple[int, int], ...] | None:
    """(lowest, highest) offset along each axis; None where they are computed and not declared."""
    if f.neighborhood is not None:
        return tuple(map(tuple, f.neighborhood))
    constants: dict[str, Any] = {}
    tuples: dict[str, list[str]] = {}
    low, high = [0] * rank, [0] * rank
    whole = f.options.get("standard_indexing", ())
    read = [n for n in f.kernel_ir.arg_names if n not in whole]
    for _, block in sorted(f.kernel_ir.blocks.items()):
        for statement in block.body:
            value = getattr(statement, "value", None)
            if type(value).__name__ in ("Const", "FreeVar", "Global"):
                constants[statement.target.name] = value.value
            op = getattr(value, "op", None)
            if op == "build_tuple":
                tuples[statement.target.name] = [item.name for item in value.items]
            if op not in ("getitem", "static_getitem") or value.value.name not in read:
                continue
            name = value.index.name if op == "getitem" else value.index_var.name
            at = [constants.get(n) for n in tuples[name]] if name in tuples else constants.get(name)
            offsets = tuple(at) if isinstance(at, (tuple, list)) else (at,)
            if len(offsets) != rank or not all(isinstance(n, int) for n in offsets):
                return None
            low, high = list(map(min, low, offsets)), list(map(max, high, offsets))
    return tuple(zip(low, high, strict=True))


class Neighbours:
    """An array as a kernel sees it from a place: indices are offsets."""

    __slots__ = ("array", "level", "place")

    def __init__(self, level: Level, array: Any, place: tuple[int, ...]) -> None:
        self.level = level
        self.array = array
        self.place = place

    def __getitem__(self, offset: Any) -> Any:
        offsets = offset if isinstance(offset, tuple) else (offset,)
        at = tuple([p + o for p, o in zip(self.place, offsets, strict=True)])
        return self.level.getitem(self.array, at)


def at_each_place(
    level: Level, kernel: Any, args: Any, relative: Any, reach: Any, y: np.ndarray
) -> np.ndarray:
    """The kernel at every place whose neighbours are there; elsewhere what Numba has put there, a constant."""
    z, run = y.copy(), level.prep(kernel)
    inner = [range(-low, n - high) for (low, high), n in zip(reach, z.shape, strict=True)]
    for place in itertools.product(*inner):
        given = [Neighbours(level, x, place) if near else x for x, near in zip(args, relative, strict=True)]
        level.setitem(run(*given), z, place)
    return z
