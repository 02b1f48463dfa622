"""JAX on the same programs: the same source, with `jax.numpy` and `jax.scipy` in the place of NumPy and SciPy."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.ordinary import peers
from benchmarks.ordinary.check import numbers
from benchmarks.ordinary.program import Program, ported

jax = peers.jax
LONGEST = 60  # seconds for the first gradient, compiling included
PARTS = ("special", "linalg", "fft", "signal", "ndimage", "stats", "optimize", "integrate", "interpolate")


def functions_of_jax() -> dict[Any, Any]:
    """Modules of NumPy and SciPy, and what takes their place."""
    found = {np: jax.numpy}
    for part in (*PARTS, "sparse.linalg", "spatial.transform"):
        if theirs := sys.modules.get(f"scipy.{part}"):
            found[theirs] = importlib.import_module(f"jax.scipy.{part}")
    if fft := sys.modules.get("scipy.fft"):
        found[fft] = SimpleNamespace(**{**vars(jax.numpy.fft), **vars(jax.scipy.fft)})
    return found


def by_jax(p: Program) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """(the value, the gradient), compiled, to be called."""
    f = ported(p, functions_of_jax(), jax.numpy.asarray)
    x = jax.numpy.asarray(p.x)
    value, gradient = jax.jit(f), jax.jit(jax.grad(f))
    return lambda: jax.block_until_ready(value(x)), lambda: jax.block_until_ready(gradient(x))


def gradients(p: Program, ours: Any) -> tuple[dict[str, Callable[[], Any]], str]:
    """JAX's value and gradient, to be called, if the gradient is ours; else why not."""
    if jax is None:
        return {}, "JAX is not installed"
    try:
        with peers.limited(LONGEST):
            value, gradient = by_jax(p)
            theirs, found = numbers(gradient()), numbers(ours)
            value()
    except AttributeError as error:
        return {}, str(error).replace("module 'jax.scipy.", "JAX's '").replace("has no attribute", "has no")
    except Exception as error:  # whatever somebody else's package raises
        return {}, f"{type(error).__name__}: {' '.join(str(error).split())[:110]}"
    if not np.allclose(theirs, found, rtol=1e-5, atol=1e-5 * np.max(np.abs(found))):
        return {}, "its gradient is another"
    return {"JAX": value, "JAX gradient": gradient}, ""
