"""Facts about pandas' compiled functions, entered when a program that has imported pandas calls one of them.

Nothing of pandas is imported before that: `wait` tells the rulebook what to wait for.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from functools import partial

from plaingrad import rulebook
from plaingrad.rulebook import Rule

PARTS = {
    "predicates": ("pandas._libs.lib", "pandas.api.types"),
    "blocks": (
        "pandas._libs.internals", "pandas._libs.indexing", "pandas._libs.ops_dispatch", "pandas.core.arraylike",
    ),
    "moves": ("pandas._libs.algos", "pandas._libs.lib"),
}  # fmt: skip


def rules(module: str) -> Iterable[Rule]:
    """The rules for functions of a module."""
    for part, modules in PARTS.items():
        if module in modules:
            yield from importlib.import_module(f"{__name__}.{part}").rules()


def wait() -> None:
    """Let the rulebook enter these rules when pandas is met."""
    for module in {module for modules in PARTS.values() for module in modules}:
        rulebook.when_met(module, partial(rules, module))
