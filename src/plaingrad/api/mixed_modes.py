"""Forward mode inside of a reverse-mode derivative: functions whose run is replaced by their own derivative."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TypeVar

from plaingrad.api import recorded
from plaingrad.api.leaves import check_callable, filled, is_plain, structure_of, with_leaves
from plaingrad.api.operator_objects import wraps
from plaingrad.api.seeds import unit_directions
from plaingrad.api.snapshots import Snapshot
from plaingrad.api.whole import FEW_DIRECTIONS
from plaingrad.engine.forward.mixed import push_inside
from plaingrad.engine.reverse.reverse import ReverseLevel
from plaingrad.errors import ArgumentError
from plaingrad.rewrite import CURRENT, PLAIN

F = TypeVar("F", bound=Callable[..., Any])


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


def prefer_mode(mode: Literal["forward", "reverse"]) -> Callable[[F], F]:
    """Decorate a function: say in which mode it is best differentiated.

    `jacobian(f)` with mode="auto" follows it. With "forward", a call of the function inside a reverse-mode derivative
    is what `forwarddiff` makes of it, if there are no more than 256 numbers among its arguments; so `grad` uses forward
    mode for this function too. Objects among the arguments, `self` for one, and keyword arguments count as captured.

    Examples:
        >>> from plaingrad import jacobian
        >>> @prefer_mode("forward")
        ... def f(t): return [t, t * t]
        >>> jacobian(f)(3.0)
        [1.0, 6.0]
    """
    if mode not in ("forward", "reverse"):
        raise ArgumentError(f'the mode is "forward" or "reverse", not {mode!r}.\n  See docs: errors#argument')

    def enter(f: F) -> F:
        @wraps(f)
        def in_mode(*args: Any, **kwargs: Any) -> Any:
            level = CURRENT.get()
            if mode == "forward" and isinstance(level, ReverseLevel):
                moving = [n for n, x in enumerate(args) if is_plain(x) and level.is_active(x)]
                x = tuple([args[n] for n in moving])
                if moving and sum(leaf.directions for leaf in structure_of(x)[1]) <= FEW_DIRECTIONS:
                    return forwarddiff(recorded.of_some(f, moving, args, kwargs), x)
            return f(*args, **kwargs) if level is PLAIN else level.prep(f)(*args, **kwargs)

        in_mode.__plaingrad_mode__ = mode
        return in_mode

    return enter
