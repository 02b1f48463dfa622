"""Compiled functions of bezier, which has each one in Python as well."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable
from typing import Any

from plaingrad.rulebook import Rule
from plaingrad.rules.packages.formulas import rules_by_formulas

MODULE = "bezier._speedup"
#: Of `bezier.hazmat`: functions of a module by their names.
TWINS = {
    "curve_helpers": "compute_length elevate_nodes evaluate_hodograph evaluate_multi evaluate_multi_barycentric "
    "get_curvature specialize_curve",
    "triangle_helpers": "compute_area compute_edge_nodes de_casteljau_one_round evaluate_barycentric "
    "evaluate_barycentric_multi evaluate_cartesian_multi jacobian_both jacobian_det specialize_triangle",
    "helpers": "cross_product",
}


def formula_of(twin: Any) -> Callable[..., Any]:
    """The function in Python, as a formula."""

    def formula(value: Any, *args: Any, **kwargs: Any) -> Any:
        return twin(*args, **kwargs)

    return formula


def rules() -> Iterable[Rule]:
    """Of `bezier._speedup`; intersections, and what locates points, are refused."""
    module: Any = sys.modules.get(MODULE)
    if module is None:
        return
    for name, functions in TWINS.items():
        twins = importlib.import_module(f"bezier.hazmat.{name}")
        found = {f: formula_of(getattr(twins, f)) for f in functions.split() if hasattr(twins, f)}
        yield from rules_by_formulas(module, found)
