"""Gradients of Numba functions taken inside of another derivative: one step of the level around, with a native rule.

The pullback of (y, gradient) along (y_bar, w) is y_bar times the gradient plus the Hessian times w, since that is
symmetric: forward mode over reverse mode, with the cotangent of y as the tangent of the seed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types

from plaingrad.errors import NativeError
from plaingrad.native.analysis.effects import effects_of
from plaingrad.native.border import call
from plaingrad.native.border.conversion import signature_of
from plaingrad.native.border.directions import tangent_of
from plaingrad.native.border.linear import applied, is_nothing
from plaingrad.native.frontend.current import as_now
from plaingrad.rewrite import PLAIN
from plaingrad.rulebook import Rule
from plaingrad.tangents import NoTangent, ZeroTangent


def value_and_gradient(
    level: Any, f: Any, args: tuple[Any, ...], positions: tuple[int, ...], kwargs: dict[str, Any]
) -> tuple[Any, tuple[Any, ...]]:
    """(f(*args), gradients) as one step of `level`, for a dispatcher of numbers and arrays.

    Raises:
        NativeError: that is not possible here; the level differentiates what the plain tier does instead.
    """
    if kwargs or level.parent is not PLAIN or not level.takes_native_rules or not call.is_dispatcher(f):
        raise NativeError("a gradient inside of a derivative is plain here.\n  See docs: errors#native")
    signature = level.outside(signature_of, args)
    step = Step(level.outside(as_now, f, signature), signature, positions)
    level.outside(step.compile)
    y, *gradients = level.apply(step.rule(), step, args, {})
    return y, tuple(gradients)


class Step:
    """The function (y, gradients) of the arguments of a Numba function.

    Attributes:
        f: the dispatcher, as it is now.
        signature: the types of its arguments.
        positions: of the arguments that the gradients are in.
        moving: the positions of all arguments with a tangent.
    """

    __name__ = "gradient"
    __qualname__ = "gradient"
    __module__ = "plaingrad.native.border.nested"

    def __init__(self, f: Any, signature: tuple[Any, ...], positions: tuple[int, ...]) -> None:
        self.f = f
        self.signature = signature
        self.positions = positions
        self.moving = call.differentiable(signature)
        for k in self.moving:
            if not (signature[k] == types.float64 or getattr(signature[k], "dtype", None) == types.float64):
                raise NativeError(f"a gradient in a {signature[k]} is plain here.\n  See docs: errors#native")
        if not set(positions) <= set(self.moving):
            raise NativeError("an argument without tangent.\n  See docs: errors#native")

    def compile(self) -> None:
        """Derive and compile all that a derivative will need, while the plain tier can still be taken instead.

        Raises:
            NativeError: it cannot be derived.
        """
        effects = call.plainly(effects_of, self.f, self.signature)
        if effects.writes or effects.aliases or effects.once:
            raise NativeError("a function with effects is plain here.\n  See docs: errors#native")
        if call.result_type(self.f, self.signature) != types.float64:
            raise NativeError("a function of several results is plain here.\n  See docs: errors#native")
        run = self.pushed().run
        seed = types.float64
        contiguous = [
            types.Array(types.float64, t.ndim, "F" if t.layout == "F" else "C")
            if isinstance(t, types.Array)
            else t
            for t in (self.signature[k] for k in self.moving)
        ]
        call.plainly(run.compile, (*self.signature, seed, *contiguous, seed))

    def pushed(self) -> Any:
        """The cotangents of all arguments, pushed forward along all arguments and the seed."""
        gradient = call.derived("cotangents", self.f, self.signature, self.moving).run
        places = (*self.moving, len(self.signature))
        return call.derived("pushforward", gradient, (*self.signature, types.float64), places)

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        """(y, gradients)."""
        y, found = call.plainly(call.value_and_gradient, self.f, args, self.positions, {})
        return (y, *found)

    def second(self, args: tuple[Any, ...], dots: dict[int, Any], seed_dot: float) -> dict[int, Any]:
        """Position -> seed_dot times the gradient plus the Hessian times `dots`."""
        given = []
        for k in self.moving:
            dot, x = dots.get(k, ZeroTangent), args[k]
            if isinstance(x, np.ndarray):
                given.append(tangent_of(x, ZeroTangent if is_nothing(dot) else dot))
            else:
                given.append(0.0 if is_nothing(dot) else float(dot))
        out = call.plainly(self.pushed().run, *args, 1.0, *given, seed_dot)
        return dict(zip(self.moving, out[len(self.moving) :], strict=True))

    def pull_of(self, args: tuple[Any, ...]) -> Callable[[Any], Any]:
        """The map from cotangents of (y, gradients) to those of all arguments."""

        def pull(bars: Any) -> tuple[Any, ...]:
            bars = [ZeroTangent] * (1 + len(self.positions)) if is_nothing(bars) else bars
            y_bar = 0.0 if is_nothing(bars[0]) else float(bars[0])
            found = self.second(args, dict(zip(self.positions, bars[1:], strict=True)), y_bar)
            return tuple([found.get(k, NoTangent) for k in range(len(args))])

        return pull

    def push_of(self, args: tuple[Any, ...]) -> Callable[[Any], Any]:
        """The map from tangents of all arguments to those of (y, gradients): the transpose, the same Hessian."""

        def push(dots: Any) -> Any:
            moving = {} if is_nothing(dots) else {k: dots[k] for k in self.moving if not is_nothing(dots[k])}
            if not moving:
                return ZeroTangent
            whole = self.second(args, {}, 1.0)  # the gradient in all arguments
            y_dot = sum(float(np.sum(whole[k] * np.asarray(dot))) for k, dot in moving.items())
            found = self.second(args, moving, 0.0)
            return (y_dot, *[found[k] for k in self.positions])

        return push

    def rule(self) -> Rule:
        """Its rule, in both modes."""

        def gradient_rrule(*args: Any) -> Any:
            def gradient_pullback(bars: Any) -> tuple[Any, ...]:
                return applied(self.pull_of(args), self.push_of(args), bars)  # type: ignore[no-any-return]

            return self(*args), gradient_pullback

        def gradient_frule(*args: Any) -> Any:
            def gradient_pushforward(dots: tuple[Any, ...]) -> Any:
                return applied(self.push_of(args), self.pull_of(args), tuple(dots))

            return self(*args), gradient_pushforward

        return Rule(self, "full", gradient_rrule, gradient_frule, source="native:gradient")


__all__ = ["Step", "value_and_gradient"]
