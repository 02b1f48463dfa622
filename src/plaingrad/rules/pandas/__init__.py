"""Facts about pandas' compiled functions, entered when a program that has imported pandas calls one of them.

Nothing of pandas is imported before that: `wait` tells the rulebook what to wait for.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from functools import partial

from plaingrad import rulebook
from plaingrad.rulebook import Rule
from plaingrad.tangents import fields

PARTS = {
    "arithmetic": ("pandas.core.computation.expressions",),
    "predicates": ("pandas._libs.lib", "pandas.api.types", "pandas._libs.missing"),
    "blocks": tuple([f"pandas._libs.{name}" for name in ("internals", "indexing", "ops_dispatch")]),
    "moves": ("pandas._libs.algos", "pandas._libs.lib"),
    "windows": ("pandas._libs.window.aggregations", "pandas._libs.algos"),
    "groups": ("pandas._libs.groupby",),
    "sums": ("pandas._libs.window.aggregations",),
}  # fmt: skip
# Compiled classes, and the attributes under which they hold values.
HOLDERS = {
    "pandas._libs.internals.Block": ("values",),
    "pandas._libs.internals.SharedBlock": (),
    "pandas._libs.internals.NumpyBlock": ("values",),
    "pandas._libs.internals.NDArrayBackedBlock": ("values",),
    "pandas._libs.internals.BlockManager": ("blocks", "axes", "_dtypes_cache", "_interleaved_dtype"),
    "pandas._libs.indexing.NDFrameIndexerBase": ("obj",),
}


def rules(module: str) -> Iterable[Rule]:
    """The rules for functions of a module."""
    for part, modules in PARTS.items():
        if module in modules:
            yield from importlib.import_module(f"{__name__}.{part}").rules()


def wait() -> None:
    """Let the rulebook enter these rules when pandas is met."""
    for cls, names in HOLDERS.items():
        fields.holds(cls, names)
    for module in sorted({module for modules in PARTS.values() for module in modules}):
        rulebook.when_met(module, partial(rules, module))
