"""`numba.stencil` as loops around the kernel's own text, its relative indices made those of the places."""

from __future__ import annotations

import ast
import inspect
import textwrap
from functools import lru_cache
from types import FunctionType
from typing import Any

import numpy as np
from numba.core import types
from numba.np.numpy_support import as_dtype
from numba.stencils.stencil import StencilFunc

from plaingrad.native.frontend.current import dispatcher_of

SMALLER = (
    "Secondary stencil array does not have some dimension smaller in size than the same dimension in the first "
    "stencil input."
)


class Unknown(Exception):
    """A form of stencils that is left alone."""


def is_stencil(f: Any) -> bool:
    """Whether `f` was made by `numba.stencil`."""
    return isinstance(f, StencilFunc)


def by_places(f: Any, kinds: list[Any], result: Any) -> Any:
    """The function that does for arguments of types `kinds` what the stencil `f` does; None where that is not known."""
    if not isinstance(result, types.Array) or not kinds or not isinstance(kinds[0], types.Array):
        return None
    if result.ndim != kinds[0].ndim or result.layout != "C" or set(f.options) - {
        "neighborhood", "cval", "standard_indexing"}:  # fmt: skip
        return None
    ranks = tuple([t.ndim if isinstance(t, types.Array) else 0 for t in kinds])
    around = f.neighborhood
    try:
        return _form(
            f.kernel_ir.func_id.func,
            ranks,
            as_dtype(result.dtype).type,
            f.options.get("cval", 0),
            tuple(f.options.get("standard_indexing", ())),
            None if around is None else tuple(map(tuple, around)),
        )
    except (Unknown, OSError, SyntaxError, TypeError):
        return None


@lru_cache(256)
def _form(
    kernel: FunctionType,
    ranks: tuple[int, ...],
    element: Any,
    border: Any,
    absolute: tuple[str, ...],
    around: tuple[tuple[int, int], ...] | None,
) -> Any:
    """A function of arguments of these ranks: the kernel at every place whose neighbours are there."""
    names = list(kernel.__code__.co_varnames[: kernel.__code__.co_argcount])
    if len(names) != len(ranks) or kernel.__defaults__ or kernel.__kwdefaults__:
        raise Unknown
    rank = ranks[0]
    relative = [(n, r) for n, r in zip(names, ranks, strict=True) if r and n not in absolute]
    if not relative or relative[0][0] != names[0] or any(r != rank for _, r in relative):
        raise Unknown
    tree = _text(kernel)
    moved = _Moved([n for n, _ in relative], [f"place_{d}_" for d in range(rank)])
    tree.body = [moved.visit(s) for s in tree.body]
    tree.name = "at_place_"
    tree.args.args += [ast.arg(p) for p in moved.places]
    if around is None and moved.is_computed:
        raise Unknown
    reach = around or tuple([(min(0, *o), max(0, *o)) if o else (0, 0) for o in moved.offsets])
    if len(reach) != rank:
        raise Unknown
    space = {
        "element": element,
        "border": element(border),
        "kernel": dispatcher_of(_with_cells(tree, kernel)),
    }
    return captured(_loops(names, moved, reach, bool(border)), space)


def captured(source: str, space: dict[str, Any], name: str = "form") -> Any:
    """The function `name` that `source` defines; it captures what is in `space`, which tells it from others like it."""
    inner = textwrap.indent(source, "    ")
    made: dict[str, Any] = {}
    exec(compile(f"def maker({', '.join(space)}):\n{inner}    return {name}\n", f"<{name}>", "exec"),
         {"np": np, "__name__": __name__}, made)  # fmt: skip
    return made["maker"](**space)


def _loops(names: list[str], moved: _Moved, reach: tuple[tuple[int, int], ...], has_border: bool) -> str:
    """The text of the function that calls the kernel at every place whose neighbours are there."""
    first, given, at = names[0], ", ".join(names), ", ".join(moved.places)
    lines = [f"def form({given}):"]
    for n in moved.relative[1:]:
        tests = " or ".join(f"{n}.shape[{d}] < {first}.shape[{d}]" for d in range(len(reach)))
        lines += [f"    if {tests}:", f"        raise ValueError({SMALLER!r})"]
    made = "np.full({}.shape, border, element)" if has_border else "np.zeros({}.shape, element)"
    lines.append(f"    out = {made.format(first)}")
    for d, (p, (low, high)) in enumerate(zip(moved.places, reach, strict=True)):
        lines.append(
            f"{'    ' * (d + 1)}for {p} in range({-min(0, low)}, {first}.shape[{d}] - {max(0, high)}):"
        )
    lines += [f"{'    ' * (len(reach) + 1)}out[{at}] = kernel({given}, {at})", "    return out"]
    return "\n".join(lines) + "\n"


def _text(kernel: FunctionType) -> ast.FunctionDef:
    """The definition of a kernel, without decorators; `Unknown` if it is no longer that."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(kernel))).body
    if not isinstance(tree, ast.FunctionDef):  # a lambda, whose text is more than itself
        raise Unknown
    tree.decorator_list = []
    if not _are_alike(_with_cells(tree, kernel).__code__, kernel.__code__):
        raise Unknown
    return tree


def _are_alike(a: Any, b: Any) -> bool:
    """Whether two codes are of one text: the file may have been changed since."""
    return all(
        getattr(a, part) == getattr(b, part)
        for part in ("co_code", "co_names", "co_varnames", "co_freevars", "co_consts")
    )


def _with_cells(tree: ast.FunctionDef, kernel: FunctionType) -> FunctionType:
    """The function of a changed definition, with the globals and captured values of the kernel."""
    free = list(kernel.__code__.co_freevars)
    module: Any = ast.Module([tree], [])
    if free:
        maker = ast.FunctionDef(
            name="maker_",
            args=ast.arguments([], [ast.arg(n) for n in free], None, [], [], None, []),
            body=[tree, ast.Return(ast.Name(tree.name, ast.Load()))],
            decorator_list=[],
        )
        module = ast.Module([maker], [])
    space: dict[str, Any] = {}
    start = kernel.__code__.co_firstlineno - 1
    ast.increment_lineno(module, start)
    exec(
        compile(ast.fix_missing_locations(module), kernel.__code__.co_filename, "exec"),
        kernel.__globals__,
        space,
    )
    if not free:
        return space[tree.name]  # type: ignore[no-any-return]
    cells = kernel.__closure__ or ()
    return space["maker_"](*[cell.cell_contents for cell in cells])  # type: ignore[no-any-return]


class _Moved(ast.NodeTransformer):
    """Relative indices with the place added to them.

    Attributes:
        offsets: along each axis the constant offsets that were met.
        is_computed: whether some are no constants.
    """

    def __init__(self, relative: list[str], places: list[str]) -> None:
        self.relative, self.places = relative, places
        self.offsets: list[list[int]] = [[] for _ in places]
        self.is_computed = False

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        """x[-1, k] becomes x[place_0_ + -1, place_1_ + k]."""
        if not isinstance(node.value, ast.Name) or node.value.id not in self.relative:
            return self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            raise Unknown
        index = node.slice
        parts = list(index.elts) if isinstance(index, ast.Tuple) else [index]
        if len(parts) != len(self.places):
            raise Unknown
        moved: list[ast.expr] = []
        for d, part in enumerate(parts):
            if isinstance(part, (ast.Slice, ast.Starred)):
                raise Unknown
            try:
                offset = ast.literal_eval(part)
            except ValueError:
                self.is_computed = True
            else:
                if type(offset) is not int:
                    raise Unknown
                self.offsets[d].append(offset)
            moved.append(ast.BinOp(ast.Name(self.places[d], ast.Load()), ast.Add(), self.visit(part)))
        node.slice = moved[0] if len(moved) == 1 else ast.Tuple(moved, ast.Load())
        return node

    def visit_Name(self, node: ast.Name) -> Any:
        """An array that is relative is only indexed."""
        if node.id in self.relative or node.id in self.places:
            raise Unknown
        return node
