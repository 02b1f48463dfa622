"""Forward mode inside of a reverse-mode derivative: functions whose run is replaced by their own derivative."""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TypeVar

from plaingrad import rulebook
from plaingrad.api import recorded
from plaingrad.api.checkpoints import checkpoint
from plaingrad.api.leaves import check_callable, filled, is_plain, structure_of, with_leaves
from plaingrad.api.operator_objects import wraps
from plaingrad.api.seeds import unit_directions
from plaingrad.api.snapshots import Snapshot
from plaingrad.api.whole import FEW_DIRECTIONS
from plaingrad.engine.forward.mixed import push_inside
from plaingrad.engine.reverse.reverse import ReverseLevel
from plaingrad.errors import ArgumentError
from plaingrad.rewrite import CURRENT, PLAIN
from plaingrad.rule_data import Rule, name_of

F = TypeVar("F", bound=Callable[..., Any])
Mode = Literal["forward", "reverse", "checkpoint"]


def forwarddiff(f: Callable[[Any], Any], x: Any) -> Any:
    """`f(x)`; inside a reverse-mode derivative, its own derivative by `x` is taken in forward mode.

    The reverse pass then keeps nothing of the run of `f` but dy/dx: for a long computation on few numbers. All
    directions of `x` are pushed at once, and `f` runs once. What `f` reads besides `x` (captured variables, globals) is
    differentiated too, in reverse mode as ever; and so is what it leaves elsewhere (in a list, an array, an attribute).
    In a plain call, and in forward mode, this is `f(x)`.

    Args:
        f: a function of one argument.
        x: a number, an array, or lists, tuples and dicts of these; `f` may not change it in place.

    Raises:
        ArgumentError: `x` holds an object, or `f` changed `x`.

    Examples:
        >>> import plaingrad
        >>> def settled(x):
        ...     for _ in range(1000):
        ...         x = 0.5 * (x + 2.0 / x)
        ...     return x
        >>> plaingrad.grad(lambda x, c: c * forwarddiff(lambda x: c * x * settled(x), x), argnums=1)(3.0, 2.0) == (
        ...     12.0 * settled(3.0))
        True
    """
    check_callable(f, "forwarddiff")
    level = CURRENT.get()
    if level is PLAIN:
        return f(x)
    if not isinstance(level, ReverseLevel) or not level.is_active(x):
        return level.prep(f)(x)
    structure, leaves = structure_of(x)
    fresh = [
        level.outside(recorded.copied, leaf.x) if leaf.is_array else level.fresh_number(leaf.x)
        for leaf in leaves
    ]
    own = with_leaves(x, structure, fresh, "forwarddiff takes")
    before = Snapshot([own])
    directions = sum(leaf.directions for leaf in leaves)
    dots = unit_directions(leaves, 0, directions)
    x_dot = filled(structure, lambda leaf: dots[leaf.position])
    known = [(leaf.x, fresh[leaf.position], dots[leaf.position]) for leaf in leaves]
    y = push_inside(level, f, own, x_dot, directions, known, partial(recorded.pull_by_tangents, leaves))
    if before.is_changed():
        raise ArgumentError(
            "the function given to forwarddiff changed its argument in place; let it work on a copy.\n"
            "  See docs: errors#argument"
        )
    return y


def prefer_mode(mode: Mode, of: Callable[..., Any] | None = None) -> Callable[[F], F]:
    """Decorate a function: say in which mode it is best differentiated.

    `jacobian(f)` with mode="auto" follows it. With "forward", a call of the function inside a reverse-mode derivative
    is what `forwarddiff` makes of it, if there are no more than 256 numbers among its arguments; so `grad` uses forward
    mode for this function too. With "checkpoint" such a call is a `checkpoint`. Objects among the arguments, `self` for
    one, and keyword arguments count as captured.

    Args:
        mode: "forward", "reverse" or "checkpoint".
        of: a function that cannot be decorated, as one of a library: it is entered there and then, as a rule, and holds
            wherever the function is called; `remove_rule(of)` ends it.

    Examples:
        >>> from plaingrad import grad, jacobian, remove_rule
        >>> @prefer_mode("forward")
        ... def f(t): return [t, t * t]
        >>> jacobian(f)(3.0)
        [1.0, 6.0]
        >>> import statistics
        >>> line = prefer_mode("checkpoint", of=statistics.linear_regression)
        >>> grad(lambda x: statistics.linear_regression([0.0, 1.0], [x, 3 * x]).slope)(1.0)
        2.0
        >>> remove_rule(statistics.linear_regression)
    """
    if mode not in ("forward", "reverse", "checkpoint"):
        raise ArgumentError(
            f'the mode is "forward", "reverse" or "checkpoint", not {mode!r}.\n  See docs: errors#argument'
        )
    if of is not None:
        check_callable(of, "prefer_mode")
        known = rulebook.find(of)
        if known is not None:
            raise ArgumentError(
                f"{name_of(of)} has a rule, so it has no mode of its own.\n  See docs: errors#argument"
            )
        rule = Rule(of, "composed", definition=_in_mode(mode, past_rules(of)), mutates=True, users=True)
        rulebook.add(rule)
        return of  # type: ignore[return-value]

    def enter(f: F) -> F:
        in_mode = wraps(f)(_in_mode(mode, f))
        in_mode.__plaingrad_mode__ = "reverse" if mode == "checkpoint" else mode
        return in_mode

    return enter


def _in_mode(mode: Mode, f: Any) -> Any:
    def in_mode(*args: Any, **kwargs: Any) -> Any:
        level = CURRENT.get()
        if mode == "checkpoint" and level is not PLAIN:
            return checkpoint(f, *args, **kwargs)
        if mode == "forward" and isinstance(level, ReverseLevel):
            moving = [n for n, x in enumerate(args) if is_plain(x) and level.is_active(x)]
            x = tuple([args[n] for n in moving])
            if moving and sum(leaf.directions for leaf in structure_of(x)[1]) <= FEW_DIRECTIONS:
                return forwarddiff(recorded.of_some(f, moving, args, kwargs), x)
        return f(*args, **kwargs) if level is PLAIN else level.prep(f)(*args, **kwargs)

    return in_mode


def past_rules(f: Any) -> Any:
    """`f` from its bytecode, whatever rules it has."""

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        level = CURRENT.get()
        return (f if level is PLAIN else level.calls.without_rule(f))(*args, **kwargs)

    return call
