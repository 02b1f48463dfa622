"""Compiled loops that apply a function of one example to a batch."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np


def loop_over(f: Any, mapped: tuple[bool, ...], kind: Any) -> Any:
    """A dispatcher: what `f` gives for each example, as an array.

    Its first argument is a result, which says the shape of all; then come the arguments of `f`, those that are mapped
    with the examples along their first axis. It is derived like any function that Numba compiles.

    Args:
        f: a dispatcher.
        mapped: which arguments are.
        kind: the dtype of a result that is a number; None for an array.
    """
    names = [f"a{n}" for n in range(len(mapped))]
    count = next(f"{name}.shape[0]" for name, is_mapped in zip(names, mapped, strict=True) if is_mapped)
    values = [f"{name}[k]" if is_mapped else name for name, is_mapped in zip(names, mapped, strict=True)]
    whole, check = f"np.empty({count}, kind)", []
    if kind is None:
        whole = f"np.empty(({count},) + model.shape, model.dtype)"
        check = [
            "        if y.shape != model.shape:",
            "            raise ValueError('the results have different shapes')",
        ]
    lines = [
        f"def loop({', '.join(['model', *names])}):",
        f"    out = {whole}",
        f"    for k in range({count}):",
        f"        y = f({', '.join(values)})",
        *check,
        "        out[k] = y",
        "    return out",
    ]
    namespace = {"f": f, "np": np, "kind": kind}
    exec("\n".join(lines), namespace)
    return numba.njit(nogil=True)(namespace["loop"])
