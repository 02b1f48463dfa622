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


def name_of(function: Any) -> str:
    """The name of a function that is a reduction; "" of others."""
    return next((name for name, known in REDUCTIONS.items() if known is function), "")


ACCUMULATED = """
def {name}(x):
    out = x.copy()
    for k in range(1, len(x)):
        out[k] = {function}(out[k - 1], out[k])
    return out
"""


def accumulated(f: Frame, ufunc: Any, args: list[Any], named: dict[str, Any]) -> Any:
    """np.maximum.accumulate(x), or np.minimum: along the first axis."""
    if ufunc not in (np.maximum, np.minimum) or named or len(args) != 1 or not isinstance(args[0], Leaf):
        raise f.refuse(f"`{ufunc.__name__}.accumulate`")
    key = ("axes", ufunc.__name__)
    if key not in f.whole.made:
        function = f.whole.outside(ufunc, ufunc.__name__)
        assert isinstance(function, ast.Name)
        f.whole.made[key] = _defined(f, ufunc.__name__, ACCUMULATED, function=function.id)
    return f.leaf(ast.Call(load(f.whole.made[key]), [load(args[0].name)], []))


def _defined(f: Frame, base: str, text: str, **parts: str) -> str:
    """The name of a function of this text, defined now."""
    whole, made = f.whole, f.whole.fresh(base)
    place_of: dict[str, Any] = {}
    exec(compile(text.format(name=made, **parts), f.home.file, "exec"), whole.space, place_of)
    whole.space[made] = place_of[made]
    whole.mine.add(made)
    return made


def reduced(f: Frame, x: Leaf, name: str, args: list[Any], named: dict[str, Any]) -> Any:
    """x.max(axis=1, keepdims=True): a loop over rows or columns of a matrix; what is no matrix, Numba refuses."""
    along_rows = (args[0] if args else named["axis"]).value == 0
    kept = bool(named.get("keepdims", Static(False)).value)
    whole = f.whole
    key = ("axes", name, along_rows, kept)
    if key not in whole.made:
        reduction, array = whole.outside(REDUCTIONS[name], name), whole.outside(np.array, "array")
        assert isinstance(reduction, ast.Name) and isinstance(array, ast.Name)
        whole.made[key] = _defined(
            f,
            name,
            TEXT,
            function=reduction.id,
            array=array.id,
            index=":, k" if along_rows else "k, :",
            count="columns" if along_rows else "rows",
            kept=(".reshape((1, columns))" if along_rows else ".reshape((rows, 1))") if kept else "",
        )
    return f.leaf(ast.Call(load(whole.made[key]), [load(x.name)], []))


__all__ = ["DTYPES", "REDUCTIONS", "accumulated", "is_wanted", "name_of", "reduced"]
