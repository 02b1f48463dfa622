"""A function of each of many numbers: eight at once, with the C library's bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types

from plaingrad.native.runtime.declare import overload
from plaingrad.native.runtime.vector import simd_functions
from plaingrad.native.runtime.vector.code import WIDTH
from plaingrad.native.runtime.vector.simd import all_alike, lane, with_lane
from plaingrad.native.runtime.vector.simd_memory import pack_at, put, put_at, take


def _each(name: str) -> Any:
    """The function that puts f(x[k]) into x[k] for k < n: x a vector of numbers, or of packs if it has two axes."""
    of_pack, vector = getattr(simd_functions, name), getattr(np, name)

    def function(x, n):  # type: ignore[no-untyped-def]
        with np.errstate(all="ignore"):
            x[:n] = vector(x[:n])

    function.__name__ = function.__qualname__ = f"{name}_each"

    @overload(function)
    def _of_each(x, n):  # type: ignore[no-untyped-def]
        if not isinstance(x, types.Array) or x.dtype != types.float64:
            return None

        def of_packs(x, n):  # type: ignore[no-untyped-def]
            for k in range(n):
                put(x, k, of_pack(take(x, k)))

        def of_numbers(x, n):  # type: ignore[no-untyped-def]
            whole = n // WIDTH * WIDTH
            for k in range(0, whole, WIDTH):
                put_at(x, k, of_pack(pack_at(x, k)))
            if whole < n:
                rest = all_alike(1.0)
                for k in range(n - whole):
                    rest = with_lane(rest, k, x[whole + k])
                rest = of_pack(rest)
                for k in range(n - whole):
                    x[whole + k] = lane(rest, k)

        return of_packs if x.ndim == 2 else of_numbers

    return function


exp_each, expm1_each, log_each, log1p_each, tanh_each, sin_each, cos_each = (
    _each(name) for name in ("exp", "expm1", "log", "log1p", "tanh", "sin", "cos")
)
EACH = {
    "exp": exp_each,
    "expm1": expm1_each,
    "log": log_each,
    "log1p": log1p_each,
    "tanh": tanh_each,
    "sin": sin_each,
    "cos": cos_each,
}
