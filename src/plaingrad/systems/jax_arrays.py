"""JAX's arrays as values, and calls of its functions differentiated by `jax.vjp` and `jax.jvp`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from plaingrad.errors import MissingRuleError
from plaingrad.systems.steps import Step, outputs


class Jax:
    """JAX."""

    name = "JAX"
    mutable = False

    def varies(self, x: Any) -> bool:
        """Whether `x` is an array of real or complex numbers."""
        jax = _jax()
        return isinstance(x, jax.Array) and jax.numpy.issubdtype(x.dtype, jax.numpy.inexact)

    def is_array(self, x: Any) -> bool:
        """Whether `x` is an array of JAX."""
        return isinstance(x, _jax().Array)

    def version(self, x: Any) -> Any:
        """Arrays of JAX are never written."""

    def held(self, f: Any) -> list[Any]:
        """None: arrays of JAX are never written."""
        return []

    def kept(self, x: Any) -> Any:
        """`x`, which nobody writes."""
        return x

    def stacked(self, each: list[Any]) -> Any:
        """Arrays of one shape along a new first axis."""
        return _jax().numpy.stack(each)

    def cloned(self, x: Any) -> Any:
        """`x`, which nobody writes."""
        return x

    def copied(self, x: Any) -> Any:
        """A new object equal to `x`."""
        return _jax().numpy.array(x, copy=True)

    def made(self, x: Any, number: Any) -> Any:
        """`number` as an array like `x`."""
        jax = _jax()
        if isinstance(number, jax.Array):
            return number.astype(x.dtype)
        if isinstance(number, np.ndarray):
            return jax.numpy.asarray(number, x.dtype)
        return jax.numpy.full_like(x, number)

    def taken_in(self, x: Any, like: Any) -> Any:
        """A number or array as an array of JAX."""
        numpy = _jax().numpy
        if like is None:
            return numpy.asarray(x)
        return numpy.asarray(x, like.dtype)

    def taken_out(self, x: Any, like: Any) -> Any:
        """An array of JAX as a number or array like `like`."""
        if isinstance(like, np.ndarray):
            return np.array(x, dtype=like.dtype)
        return x.sum().item()

    def run(self, step: Step, leaves: tuple[Any, ...]) -> Any:
        """The step; if it is to be recorded, by `jax.vjp`."""
        given = leaves if step.given is None else step.given
        if not step.recording or step.derived:
            return step.call(given)
        _, step.saved, y = _jax().vjp(self._of_leaves(step), *leaves, has_aux=True)
        return y if step.given is None else step.call(given)

    def _of_leaves(self, step: Step) -> Callable[..., Any]:
        def of_leaves(*leaves: Any) -> Any:
            y = step.again(leaves)
            return tuple(outputs(y, self.varies)), y

        return of_leaves

    def pull(
        self, step: Step, which: tuple[int, ...], bars: Any, leaves: Any, saved: bool
    ) -> tuple[Any, ...]:
        """x_bar by the function that `jax.vjp` gave; its cotangents are the conjugates of ours."""
        numpy = _jax().numpy
        pullback = step.saved if saved else None
        if pullback is None:
            pullback = _jax().vjp(self._of_leaves(step), *leaves, has_aux=True)[1]
        shapes = self._shapes(step, leaves)
        every = [numpy.zeros(z.shape, z.dtype) for z in shapes]
        for k, bar in zip(which, bars, strict=True):
            every[k] = numpy.conj(numpy.broadcast_to(numpy.asarray(bar, every[k].dtype), every[k].shape))
        return tuple([numpy.conj(d) for d in pullback(tuple(every))])

    def push(self, step: Step, leaves: Any, dots: Any, places: tuple[int, ...]) -> tuple[Any, ...]:
        """y_dot by `jax.jvp`."""
        numpy = _jax().numpy
        if (getattr(step.f, "__module__", None) or "").startswith("jax"):
            self._shapes(step, leaves)
        every = [numpy.zeros_like(x) for x in leaves]
        for k, dot in zip(places, dots, strict=True):
            every[k] = numpy.asarray(dot, every[k].dtype)
        return _jax().jvp(lambda *xs: self._of_leaves(step)(*xs)[0], tuple(leaves), tuple(every))[1]

    def _shapes(self, step: Step, leaves: Any) -> Any:
        """The shapes and types of the outputs; a function that needs values for them is refused.

        Such a function takes arrays out of JAX (`jax.numpy.unique`), where `jax.jvp` loses tangents without a word.
        """
        jax = _jax()
        try:
            return jax.eval_shape(lambda *xs: self._of_leaves(step)(*xs)[0], *leaves)
        except jax.errors.ConcretizationTypeError as error:
            if not outputs(step.again(leaves), self.varies):  # whole numbers, say those of `nonzero`
                return []
            name = getattr(step.f, "__name__", "a function")
            raise MissingRuleError(
                f"JAX has no derivative of `{name}` here: it takes numbers out of arrays that depend on the inputs.\n"
                "  To go on: give it what JAX asks for (`size=` of jax.numpy.unique), or, where only the value "
                "matters, plaingrad.stop_gradient(x).\n  See docs: errors#missing-rule"
            ) from error


def _jax() -> Any:
    return sys.modules["jax"]
