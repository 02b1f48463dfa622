"""The tiers of a derivative: which one is to be tried for a function, and what is differentiated in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from plaingrad.critical import imported
from plaingrad.errors import ArgumentError, NativeError
from plaingrad.rewrite import CURRENT, PLAIN

Tier = Literal["auto", "plain", "native", "fastest"]


def check_tier(tier: Any) -> None:
    """Refuse what is no tier."""
    if tier not in ("auto", "plain", "native", "fastest"):
        raise ArgumentError(
            f'tier must be "auto", "plain", "native" or "fastest", not {tier!r}.\n  See docs: errors#argument'
        )


def chosen(tier: Tier, f: Callable[..., Any]) -> Any:
    """The native tier, if it is to be tried first for `f`; None for the plain tier.

    A function that computes derivatives is for the plain tier, whatever was asked for; what it differentiates has a
    tier of its own, and is one step.
    """
    if tier == "plain" or getattr(f, "__plaingrad_derivative__", False):
        return None
    if tier in ("auto", "fastest") and not type(f).__module__.startswith("numba."):
        return None
    try:
        return imported("plaingrad.native.border.call")
    except ImportError as error:
        raise NativeError(
            'tier="native" needs Numba: pip install "plaingrad[native]".\n  See docs: errors#native'
        ) from error


def in_tier(tier: Tier, f: Callable[..., Any], args: tuple[Any, ...], mode: str) -> Callable[..., Any]:
    """`f` as the engine differentiates it in this tier: what Numba compiles is one native step."""
    native = chosen(tier, f)
    if tier == "plain":
        return getattr(f, "py_func", f) if type(f).__module__.startswith("numba.") else f
    if tier in ("auto", "fastest") or native is None:
        return f
    return imported("plaingrad.native.border.rule").compiled_form(f, args, mode)  # type: ignore[no-any-return]


def natively(tier: Tier, f: Callable[..., Any]) -> Any:
    """The operators of the native tier if derivatives of `f` are to be tried natively first; or None."""
    if chosen(tier, f) is None or CURRENT.get() is not PLAIN:
        return None
    return imported("plaingrad.native.objects.other_operators")


def fastest(
    operator: str,
    f: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    positions: tuple[int, ...],
    by: Callable[..., Any],
    shown: Callable[[Any], Any] = lambda result: result,
) -> Any:
    """A derivative of f(*args, **kwargs) by the tier that is chosen for it.

    Args:
        operator: its name and options, in words.
        f: the function.
        args: its arguments.
        kwargs: its arguments by keyword.
        positions: of those that are differentiated.
        by: (tier, args, kwargs) -> the derivative by that tier.
        shown: what to compare of it: values in structures.
    """
    if CURRENT.get() is PLAIN and not getattr(f, "__plaingrad_derivative__", False):
        try:
            native = imported("plaingrad.native.objects.fastest")
        except ImportError:
            native = None  # no Numba
        if native is not None:
            return native.taken_fastest(native.Task(operator, f, args, kwargs, positions, by, shown))
    return by("auto", args, kwargs)
