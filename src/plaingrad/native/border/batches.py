"""Compiled loops that apply a function of one example to a batch."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np

from plaingrad.errors import NativeError
from plaingrad.native.analysis.effects import argument_types, effects_of
from plaingrad.native.analysis.users_functions import is_users
from plaingrad.native.border.call import plainly
from plaingrad.native.border.conversion import signature_of
from plaingrad.native.frontend.translation import program
from plaingrad.native.program.ir import Do, Let, statements

WORTH_THREADS = 2e-3  # seconds that the rest takes in one thread
COMPUTING = frozenset(("math", "cmath", "numpy", "builtins", "operator", "_operator"))


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


def rest_in_threads(f: Any, loop: Any, first: Any, mapped: tuple[bool, ...], arrays: list[Any]) -> Any:
    """What `loop` gives for all examples but the first, by as many threads as Numba has where `f` only computes.

    The threads each run the loop for a run of examples, without the GIL. A parallel loop of Numba (`prange`) would not
    say which of several exceptions is the first, and its thread pool may end the process: where it is entered by two
    threads, or after a fork.
    """
    count = next(x.shape[0] for x, is_mapped in zip(arrays, mapped, strict=True) if is_mapped)
    threads = numba.get_num_threads()

    def part(start: int, stop: int) -> Any:
        return loop(first, *[x[start:stop] if m else x for x, m in zip(arrays, mapped, strict=True)])

    few = (count - 1) // (8 * threads)
    if threads == 1 or not few:
        return part(1, count)
    part(1, 1)  # compiled, with no example
    begun = time.perf_counter()
    done = part(1, 1 + few)
    is_long = (time.perf_counter() - begun) * (count - 1 - few) > WORTH_THREADS * few
    example = tuple([x[0] if is_mapped else x for x, is_mapped in zip(arrays, mapped, strict=True)])
    if not is_long or not only_computes(f, example):
        return np.concatenate([done, part(1 + few, count)])
    bounds = np.linspace(1 + few, count, threads + 1).astype(int).tolist()
    with ThreadPoolExecutor(threads) as pool:
        parts = list(pool.map(part, bounds[:-1], bounds[1:]))  # raises what the first example that fails does
    return np.concatenate([done, *parts])


def only_computes(f: Any, args: tuple[Any, ...]) -> bool:
    """Whether calls of `f`, a dispatcher, may run side by side: it writes into nothing, draws and prints nothing."""
    try:
        signature = signature_of(args)
        effects = plainly(effects_of, f, signature)
        return not effects.writes and not effects.once and plainly(_calls_what_computes, f, signature, set())
    except NativeError:
        return False


def _calls_what_computes(f: Any, signature: tuple[Any, ...], seen: set[Any]) -> bool:
    """Whether a function calls functions of NumPy and `math` only, and others that do: no foreign C code."""
    if (f, signature) in seen:
        return True
    seen.add((f, signature))
    whole = program(f, signature)
    calls = [s.call if isinstance(s, Do) else s for s in statements(whole.body)]
    for call in calls:
        if not isinstance(call, Let) or call.op != "call":
            continue
        callee = getattr(call.args[0], "value", None)
        if is_users(callee):
            if not _calls_what_computes(callee, argument_types(whole, call), seen):
                return False
        elif str(getattr(callee, "__module__", "")).partition(".")[0] not in COMPUTING:
            return False
    return True
