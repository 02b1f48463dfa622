"""Predicates of pandas: they look at what a thing is, not at its numbers."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from plaingrad.rulebook import Rule

PREDICATES = (
    "is_bool", "is_complex", "is_decimal", "is_float", "is_integer", "is_interval", "is_iterator", "is_list_like",
    "is_np_dtype", "is_pyarrow_array", "is_scalar", "infer_dtype",
)  # fmt: skip


def item_from_zerodim(val: Any) -> Any:
    """The number in an array without axes; anything else as it is."""
    return val[()] if isinstance(val, np.ndarray) and val.ndim == 0 else val


def rules() -> Iterable[Rule]:
    """Of `pandas._libs.lib` and `missing`, as far as this pandas has them."""
    lib = sys.modules.get("pandas._libs.lib")
    for name in PREDICATES:
        if getattr(lib, name, None) is not None:
            yield Rule(getattr(lib, name), "no_tangent", source=f"{__file__}:1")
    missing = sys.modules.get("pandas._libs.missing")
    for name in ("checknull", "isnaobj", "is_matching_na"):
        if getattr(missing, name, None) is not None:
            yield Rule(getattr(missing, name), "no_tangent", source=f"{__file__}:1")
    if lib is not None and hasattr(lib, "item_from_zerodim"):
        yield Rule(lib.item_from_zerodim, "composed", definition=item_from_zerodim, source=f"{__file__}:1")
