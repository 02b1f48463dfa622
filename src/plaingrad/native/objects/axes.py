"""Forms of NumPy that Numba lacks: reductions of a matrix along an axis that may be kept, Python's classes as types."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from plaingrad.native.objects.engine import Frame
from plaingrad.native.objects.values import Leaf, Static, load

REDUCTIONS = {name: getattr(np, name) for name in ("max", "min", "mean", "sum", "std", "var", "prod")}
DTYPES: dict[Any, Any] = {int: np.int64, float: np.float64, complex: np.complex128, bool: np.bool_}
TEXT = """
def {name}(x):
    rows, columns = x.shape
    out = {array}([{function}(x[{index}]) for k in range({count})])
    return out{kept}
"""  # what has another rank has no type there, and is refused


def is_wanted(name: str, args: list[Any], named: dict[str, Any]) -> bool:
    """Whether a reduction is one along a known axis of a matrix, of which Numba knows nothing."""
    axis = args[0] if args else named.get("axis")
    kept = named.get("keepdims", Static(False))
    known = isinstance(axis, Static) and axis.value in (0, 1, -1) and isinstance(kept, Static)
    known = known and (name != "sum" or bool(kept.value))  # Numba has that, for any rank
    return known and len(args) <= 1 and set(named) <= {"axis", "keepdims"} and not (args and "axis" in named)


def reduced(f: Frame, x: Leaf, name: str, args: list[Any], named: dict[str, Any]) -> Any:
    """x.max(axis=1, keepdims=True): a loop over rows or columns of a matrix; what is no matrix, Numba refuses."""
    along_rows = (args[0] if args else named["axis"]).value == 0
    kept = bool(named.get("keepdims", Static(False)).value)
    whole = f.whole
    key = ("axes", name, along_rows, kept)
    if key not in whole.made:
        made = whole.fresh(name)
        reduction, array = whole.outside(REDUCTIONS[name], name), whole.outside(np.array, "array")
        assert isinstance(reduction, ast.Name) and isinstance(array, ast.Name)
        text = TEXT.format(
            name=made,
            function=reduction.id,
            array=array.id,
            index=":, k" if along_rows else "k, :",
            count="columns" if along_rows else "rows",
            kept=(".reshape((1, columns))" if along_rows else ".reshape((rows, 1))") if kept else "",
        )
        place_of: dict[str, Any] = {}
        exec(compile(text, f.home.file, "exec"), whole.space, place_of)
        whole.space[made] = place_of[made]
        whole.mine.add(made)
        whole.made[key] = made
    return f.leaf(ast.Call(load(whole.made[key]), [load(x.name)], []))


__all__ = ["DTYPES", "REDUCTIONS", "is_wanted", "reduced"]
