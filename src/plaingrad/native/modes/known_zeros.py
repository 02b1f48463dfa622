"""Known-zero propagation: arguments that are exactly 0.0 make what they are multiplied with inactive.

A rate of reaction that is given as 0.0 makes `k * u * (1 - u)` zero whatever `u` is, and nothing of it need be kept for
the way back. The value is computed all the same. The derivative differs from the plain tier's only where a factor is
infinite or nan: 0 * inf is left out of the sum, where it would have made it nan. Programs are derived for such
arguments only where they are not differentiated, and at most `MOST` times for one list of argument types.
"""

from __future__ import annotations

from typing import Any

from numba.core import types

from plaingrad.native.program.ir import Const, Let, Operand, Program, Var, statements
from plaingrad.native.program.per_function import PerFunction

MOST = 2  # programs for different sets of zeros, beside the one for all values
_seen = PerFunction()


def zero_numbers(program: Program, given: frozenset[str]) -> set[str]:
    """The variables that are zero, or nan, if the parameters `given` are zero."""
    if not given:
        return set()
    count: dict[str, int] = {}
    lets = [s for s in statements(program.body) if isinstance(s, Let)]
    for s in lets:
        count[s.target] = count.get(s.target, 0) + 1
    found = {name for name in given if name not in count}

    def is_zero(x: Operand) -> bool:
        return (isinstance(x, Var) and x.name in found) or (
            isinstance(x, Const) and x.value == 0 and x.value is not False
        )

    changed = True
    while changed:
        changed = False
        for s in lets:
            if (
                s.target in found
                or count[s.target] != 1
                or not isinstance(program.types.get(s.target), types.Float)
            ):
                continue
            if _makes_zero(s, is_zero):
                found.add(s.target)
                changed = True
    return found


def _makes_zero(s: Let, is_zero: Any) -> bool:
    if s.op in ("copy", "unary"):
        return is_zero(s.args[0])
    if s.op == "call":
        return s.args[0] == Const(float) and len(s.args) == 2 and is_zero(s.args[1])
    if s.op != "binary":
        return False
    a, b = s.args
    if s.detail == "*":
        return is_zero(a) or is_zero(b)
    if s.detail == "/":
        return is_zero(a)
    return s.detail in ("+", "-") and is_zero(a) and is_zero(b)


def zeros_among(
    function: Any, signature: tuple[Any, ...], args: tuple[Any, ...], positions: tuple[int, ...]
) -> tuple[int, ...]:
    """The positions of numbers that are 0.0 and not differentiated, for which a program of its own is derived.

    Args:
        function: the Python function.
        signature: its argument types.
        args: the arguments.
        positions: of the differentiated ones.
    """
    found = tuple([k for k, x in enumerate(args) if k not in positions and isinstance(x, float) and x == 0.0])
    if not found:
        return ()
    seen = _seen.of(function).setdefault((signature, positions), set())
    if found not in seen and len(seen) >= MOST:
        return ()
    seen.add(found)
    return found


__all__ = ["zero_numbers", "zeros_among"]
