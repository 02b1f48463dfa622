"""Which operators hot hooks may do: those whose rules are plaingrad's own, as long as the rulebook is as it is."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from plaingrad import rulebook
from plaingrad.engine.fusion.fused import may_fuse
from plaingrad.engine.memory.tape import ARRAY_ARITHMETIC
from plaingrad.rewrite.hooks import BINARY, IN_PLACE, setter

HOT = ("add", "sub", "mul", "truediv", "pow", "neg")  # operators that have hot hooks


def is_own(name: str) -> bool:
    """Whether the rule of an operator is plaingrad's own."""
    rule = rulebook.find(getattr(operator, name))
    return rule is not None and rule.own


@functools.lru_cache(1)
def own_operators(changes: int) -> tuple[frozenset[str], bool, bool]:
    """The hot hooks whose rules are plaingrad's own; whether arrays' are; whether runs may be fused."""
    plain = [name for name in HOT if is_own(name)]
    own = frozenset([*plain, *(f"i{name}" for name in plain if f"i{name}" in IN_PLACE)])
    return own, all(map(is_own, ARRAY_ARITHMETIC)), len(plain) == len(HOT) and may_fuse()


def has_own_numbers(own: frozenset[str]) -> bool:
    """Whether `own`, of `own_operators`, are all operators that have hot hooks."""
    return own.issuperset(HOT)


COMPILED = (
    "matmul",
    "floordiv",
    "mod",
    "lshift",
    "rshift",
    "and_",
    "or_",
    "xor",
)  # as in `engine.compiled`, besides


@functools.lru_cache(1)
def own_compiled(changes: int) -> frozenset[str]:
    """The compiled hooks beyond those in `HOT` that no rule of the users' is about."""

    def is_free(name: str) -> bool:
        rule = rulebook.find(getattr(operator, name))
        return rule is None or not rule.users

    free = [name for name in COMPILED if is_free(name)]
    return frozenset([*free, *(f"i{name}" for name in free if name in ("floordiv", "mod"))])


@functools.lru_cache(16)
def arithmetic_setter(
    own: frozenset[str], compiled: frozenset[str] = frozenset()
) -> Callable[[Any, dict[str, Any]], None]:
    """The function of a level and its hot hooks that sets those in `own`, and the general ones of other operators.

    `compiled`: those that are only in the hot hooks of compiled levels.
    """
    names = (*BINARY, *IN_PLACE, "neg")
    own = own | compiled
    lines = [
        f"level.{name} = " + (f"hot['{name}']" if name in own else f"level.general_{name}") for name in names
    ]
    return setter(lines, "level", "hot")
