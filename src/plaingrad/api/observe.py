"""Looking on while derivatives are taken."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import CodeType, FunctionType, MethodType
from typing import Any, TypeVar

import numpy as np

from plaingrad.api import recorded
from plaingrad.api.leaves import (
    COTANGENT,
    Leaf,
    active_positions,
    check_callable,
    filled,
    here,
    leaf_values,
    structure_of,
    with_leaves,
)
from plaingrad.api.tiers import Tier, chosen
from plaingrad.class_keys import is_among
from plaingrad.engine.memory.kinds import EXACT
from plaingrad.engine.refusals import watch
from plaingrad.errors import ArgumentError
from plaingrad.rewrite import CURRENT, PLAIN, describe
from plaingrad.tangents import ZeroTangent

X = TypeVar("X")


def hook(fn: Callable[[Any], Any], x: X) -> X:
    """`x` itself; where the reverse pass comes by, its cotangent x_bar becomes `fn(x_bar)`.

    For clipping, scaling, recording or printing gradients. Forward mode passes tangents on as they are. Of several
    nested reverse passes the innermost that depends on `x` is meant.

    Args:
        fn: gets the cotangent, which has the structure of `x`; returns the one to go on with, or None to keep it. It
            is not called where `x` had no influence on the result.
        x: a number, an array (a copy of it is returned), or lists, tuples, dicts and dataclasses of these, nested
            (rebuilt; the cotangent of a dataclass is a `Tangent`).

    Raises:
        ArgumentError: `x` is something else.
        CotangentError: `fn` returned something that is no cotangent of `x`.

    Examples:
        >>> import plaingrad
        >>> def clip(x_bar): return max(-1.0, min(1.0, x_bar))
        >>> plaingrad.grad(lambda x: 100.0 * hook(clip, x))(3.0)
        1.0
        >>> plaingrad.grad(lambda x: hook(print, x) ** 2)(3.0)
        6.0
        6.0
    """
    if not callable(fn):
        raise ArgumentError(f"hook(fn, x) needs a function first, not {fn!r}.\n  See docs: errors#argument")
    structure, leaves = structure_of(x)
    if not leaves:
        return x
    if watch.observer is not None:
        watch.observer.hooked()

    # What the hook keeps holds no value: they may change, and a checkpoint asks who knows them.
    blank = with_leaves(x, structure, [blank_like(leaf) for leaf in leaves], "hook takes", True)
    outline, count = structure_of(blank)[0], len(leaves)

    def gather(x_bar: Any) -> tuple[Any, ...]:
        found = leaf_values(outline, COTANGENT.of(x_bar, blank, "what the hook returned"))
        return tuple([found.get(n, ZeroTangent) for n in range(count)])

    def spread(bars: tuple[Any, ...]) -> Any:
        return filled(outline, lambda leaf: bars[leaf.position])

    values = hooked(recorded.hook_on_leaves(fn, spread, gather), tuple([leaf.x for leaf in leaves]))
    return with_leaves(x, structure, values, "hook takes", True)


def blank_like(leaf: Leaf) -> Any:
    """A number or array that a cotangent fits as it fits the leaf."""
    if leaf.is_array:
        return np.broadcast_to(np.zeros((), leaf.x.dtype), leaf.shape)
    if is_among(type(leaf.x), EXACT) or isinstance(leaf.x, np.generic):
        return type(leaf.x)(0)
    return 0j if leaf.is_complex else 0.0


def hooked(on_leaves: Callable[[Any], Any], leaves: tuple[Any, ...]) -> tuple[Any, ...]:
    """`leaves`, hooked at the innermost level that one of them depends on."""
    level = CURRENT.get()
    while level is not PLAIN and not level.is_active(leaves):
        level = level.parent
    if level is PLAIN:
        return here(recorded.copies, leaves)
    rule = recorded.hook_rule(on_leaves, lambda leaves: hooked(on_leaves, leaves))
    return level.apply(rule, recorded.copies, (leaves,), {})


def nestlevel() -> int:
    """How many derivatives are being taken around this call: 0 in a plain one.

    In the code of a rule, the levels outside the one that applies it.

    Examples:
        >>> import plaingrad
        >>> nestlevel(), plaingrad.grad(lambda x: x * nestlevel())(1.0)
        (0, 1.0)
    """
    level = CURRENT.get()
    count = 0
    while level is not PLAIN:
        count += 1
        level = level.parent
    return count


def why_not_native(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Everything that stands in the way of `grad(f, tier="native")` for such arguments; nothing if there is nothing.

    `f` is not called. What Numba cannot compile is followed through classes, lists and dictionaries, as `grad` does it;
    after each construct that is refused it goes on.

    Args:
        f: a function, method, or object with a Python `__call__`.
        args: arguments that `f` could be called with. Those that have a tangent are taken to be differentiated.
        kwargs: its arguments by keyword.

    Returns:
        A tuple, false where `f` is differentiated natively, of entries with the attributes `file`, `line`, `function`,
        `expression`, `why` and `fix`. Printed, it is a few lines for each of them.

    Raises:
        NativeError: Numba is not installed.
        TypeError: `f` cannot be called with these arguments.

    Examples:
        >>> why_not_native(lambda x: x * x, 2.0)
        Nothing stands in the way of a native derivative.
    """
    check_callable(f, "why_not_native")
    chosen("native", f)
    return importlib.import_module("plaingrad.native.objects.obstacles").why_not(
        f, args, active_positions(args), kwargs
    )


def tiers_chosen(f: Callable[..., Any]) -> list[Any]:
    """What `tier="fastest"` has chosen for `f` so far: an entry for each operator and list of types of arguments.

    Returns:
        A list of entries with the attributes `operator`, `tier` ("native" or "plain"), and `why` the native tier was
        not taken; empty if `f` was not differentiated with `tier="fastest"` yet, or is not for the native tier at all.

    Examples:
        >>> import plaingrad
        >>> def square(x): return x * x
        >>> plaingrad.grad(square, tier="fastest")(3.0)
        6.0
        >>> [choice.tier for choice in tiers_chosen(square)]
        ['native']
    """
    check_callable(f, "tiers_chosen")
    chosen("native", f)
    return importlib.import_module("plaingrad.native.objects.fastest").choices_of(f)


def show(f: Callable[..., Any], *args: Any, tier: Tier = "auto") -> str:
    """Print, and return, what is run in place of `f`.

    Without `args`: the instructions of `f` beside the rewritten ones of the plain tier. With `args`, for a function
    made by `numba.njit` or with `tier="native"`: the stages of the native tier for arguments of these types, with the
    lines of `f` in comments. These are Numba's typed IR and, as Python source, the structured program, the program of
    forward mode (pushforward) and that of reverse mode (pullback), with respect to all arguments that have a tangent.

    Args:
        f: a Python function, method, or object with a Python `__call__`; or a code object.
        args: arguments that `f` could be called with. It is not called.
        tier: "plain": always the bytecode; "native": always the native stages; "auto": as `grad` would choose.

    Raises:
        ArgumentError: there is no Python bytecode behind `f`, or the native stages are asked for without arguments.
        NativeError: `f` has no native derivative for these arguments.

    Examples:
        >>> text = show(lambda x: x + 1.0)  # doctest: +ELLIPSIS
        <BLANKLINE>
        ...
    """
    native = chosen(tier, f) if args or tier == "native" else None
    if native is not None:
        if not args:
            raise ArgumentError("the native stages depend on the types of the arguments: show(f, *args).")
        args = native.bound(f, args, {})
        signature = native.signature_of(args)
        f = native.as_now(f, signature)
        stages = importlib.import_module("plaingrad.native.compile.build").stages
        text = stages(f, signature, native.differentiable(signature))
    else:
        code = _code_of(f)
        if code is None:
            raise ArgumentError(f"{f!r} has no Python bytecode to show")
        text = describe(code)
    print(text)
    return Printed(text)


class Printed(str):
    """Text that was printed already: a notebook or prompt, which show a result, do not show it again."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{self.count(chr(10)) + 1} lines of text, as printed>"

    def _ipython_display_(self) -> None:
        """Nothing: it has been printed."""


def _code_of(f: Any) -> CodeType | None:
    if isinstance(f, CodeType):
        return f
    if isinstance(f, MethodType):
        f = f.__func__
    elif not isinstance(f, FunctionType):
        f = getattr(f, "__wrapped__", None) or vars(type(f)).get("__call__")
    return getattr(f, "__code__", None)
