"""A JAX function inside a plain one, and a plain function inside a JAX one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import plaingrad
from plaingrad.define import no_tangent, rrule
from plaingrad.tangents import NoTangent


def inside(f: Callable[..., Any]) -> Callable[..., Any]:
    """A JAX function as a plain one, of floats and NumPy arrays, which JAX differentiates.

    It takes and returns floats, NumPy arrays, and tuples of these; an integer is not differentiated. It is one step of
    whatever is differentiated around it, in both modes and to any order. Precision is JAX's: floats of 64 bits stay
    what they are with `jax.config.update("jax_enable_x64", True)` only.

    Args:
        f: a function of JAX arrays, compiled (`jax.jit`) or not, without side effects.

    Examples:
        >>> import jax, jax.numpy as jnp, plaingrad, plaingrad.jax
        >>> jax.config.update("jax_enable_x64", True)
        >>> norm = plaingrad.jax.inside(jax.jit(lambda x: jnp.sqrt(jnp.sum(x * x))))
        >>> import numpy as np
        >>> round(plaingrad.grad(lambda a: 2 * norm(np.array([a, 2.0])))(1.5), 12)
        1.2
    """

    @functools.wraps(f)
    def plain(*args: Any) -> Any:
        return run(f, *args)

    return plain


def run(f: Callable[..., Any], *args: Any) -> Any:
    """f(*args), with JAX's arrays as NumPy's."""
    for x in args:
        if not isinstance(x, (float, int, np.ndarray, np.generic)):
            raise plaingrad.ArgumentError(
                f"a JAX function is given a {type(x).__qualname__}; give it floats and NumPy arrays"
            )
    return jax.tree_util.tree_map(_as_numpy, f(*args))


def _as_numpy(x: Any) -> Any:
    return float(x) if np.ndim(x) == 0 and np.dtype(x.dtype) == float else np.array(x)


@functools.lru_cache(256)
def pulled_by_jax(f: Callable[..., Any], places: tuple[int, ...]) -> Callable[..., Any]:
    """The function of the arguments of `f` and a cotangent that gives the cotangents of the arguments at `places`."""

    def pull(*args: Any) -> Any:
        *primals, z_bar = args

        def of_places(*parts: Any) -> Any:
            whole = list(primals)
            for place, part in zip(places, parts, strict=True):
                whole[place] = part
            return f(*whole)

        z, pullback = jax.vjp(of_places, *[jax.numpy.asarray(primals[place]) for place in places])
        return pullback(jax.numpy.asarray(z_bar, z.dtype).reshape(z.shape))

    return pull


@functools.lru_cache(256)
def part_of(f: Callable[..., Any], place: int) -> Callable[..., Any]:
    """One of the results of a function with several; always the same function."""
    return lambda *args: f(*args)[place]


def _is_real(x: Any) -> bool:
    return isinstance(x, (float, np.floating)) or (isinstance(x, np.ndarray) and x.dtype.kind == "f")


@rrule(run)
def run_rrule(f: Callable[..., Any], *args: Any) -> Any:
    """x_bar by `jax.vjp`, which is a JAX function itself: so its derivatives are known, too."""
    z = run(f, *args)
    places = real_places(args)
    count = result_count(z)

    def run_pullback(z_bar: Any) -> Any:
        bars: list[Any] = [NoTangent] * len(args)
        for k in range(count or 1):
            g = f if count is None else part_of(f, k)
            part = z_bar if count is None else z_bar[k]
            for n, place in enumerate(places):
                x_bar = run(part_of(pulled_by_jax(g, places), n), *args, part)
                bars[place] = x_bar if bars[place] is NoTangent else bars[place] + x_bar
        return NoTangent, *bars

    return z, run_pullback


def real_places(args: tuple[Any, ...]) -> tuple[int, ...]:
    """Which arguments are real numbers or arrays of them."""
    return tuple([place for place, x in enumerate(args) if _is_real(x)])


def result_count(z: Any) -> int | None:
    """How many results there are; None for one that is no tuple."""
    return len(z) if isinstance(z, (tuple, list)) else None


no_tangent(pulled_by_jax, part_of, real_places, result_count)


def function(f: Callable[..., Any], result: Any = None) -> Callable[..., Any]:
    """A plain function as a JAX one, which plaingrad differentiates: under `jax.grad`, `jax.jit` and `jax.vmap`.

    Inside JAX it is a `jax.pure_callback` with a `jax.custom_vjp`, whose backward pass is such a function again: so
    reverse mode works to any order; JAX's forward mode does not.

    Args:
        f: a function of floats (for JAX arrays without axes) and NumPy arrays; its value depends on nothing else.
        result: `jax.ShapeDtypeStruct` of the result, or a tuple of them, or a function from the arguments to these; a
            number of the type of the arguments if it is not given.

    Examples:
        >>> import jax, jax.numpy as jnp, plaingrad.jax
        >>> jax.config.update("jax_enable_x64", True)
        >>> def steps(x):
        ...     y = 1.0
        ...     while abs(y * y - x) > 1e-12:
        ...         y = (y + x / y) / 2
        ...     return y
        >>> root = plaingrad.jax.function(steps)
        >>> round(float(jax.grad(lambda x: 3 * root(x) ** 3)(4.0)), 9)
        9.0
    """

    def shapes(args: tuple[Any, ...]) -> Any:
        if result is None:
            return jax.ShapeDtypeStruct((), jax.numpy.result_type(*args))
        return result(*args) if callable(result) else result

    def on_host(*args: Any) -> Any:
        y = f(*[_from_jax(x) for x in args])
        return jax.tree_util.tree_map(lambda part, like: np.asarray(part, like.dtype), y, shapes(args))

    @jax.custom_vjp
    def called(*args: Any) -> Any:
        return jax.pure_callback(on_host, shapes(args), *args, vmap_method="sequential")

    def forward(*args: Any) -> Any:
        return called(*args), args

    def backward(args: Any, y_bar: Any) -> Any:
        likes = tuple(jax.ShapeDtypeStruct(np.shape(x), jax.numpy.result_type(x)) for x in args)

        def pull(*values: Any) -> Any:
            count = len(args)
            bars = plaingrad.vjp(f, *values[:count])[1](
                values[count] if len(values) == count + 1 else values[count:]
            )
            return bars

        return function(pull, likes)(*args, *(y_bar if isinstance(y_bar, tuple) else (y_bar,)))

    called.defvjp(forward, backward)
    return called


def _from_jax(x: Any) -> Any:
    return float(x) if np.ndim(x) == 0 else np.array(x)
