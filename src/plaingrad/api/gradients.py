"""Gradients and pullbacks. Thin: the work is done in `plaingrad.engine`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, Literal, ParamSpec, TypeVar, overload

import numpy as np

from plaingrad.api.leaves import (
    COTANGENT,
    Argnums,
    active_positions,
    check_callable,
    described,
    kept,
    positions_in,
    positions_of,
    structure_of,
)
from plaingrad.api.looked_at import bounded, debugged, looked_at
from plaingrad.api.operator_objects import Derivative, derives
from plaingrad.api.seeds import unit_cotangent
from plaingrad.api.tiers import Tier, check_tier, chosen, fastest, in_tier, natively
from plaingrad.api.whole import pushed_gradient
from plaingrad.critical import imported
from plaingrad.engine.refusals.refuse import refuse
from plaingrad.engine.reverse.run import Run, in_core
from plaingrad.engine.reverse.taken import recorded
from plaingrad.engine.users_code.coroutines import awaitable, awaited, is_coroutine_function
from plaingrad.engine.values.borrowed import of_their_own
from plaingrad.errors import ChangedSinceError, NativeError, NonScalarOutputError
from plaingrad.rewrite import CURRENT, PLAIN

P = ParamSpec("P")
Y = TypeVar("Y")
A = TypeVar("A")


@overload
def grad(
    f: Callable[P, tuple[Any, A]],
    argnums: Argnums = 0,
    *,
    has_aux: Literal[True],
    tier: Tier = "auto",
    debug: bool = False,
    verify: bool = False,
    max_memory: float | None = None,
) -> Callable[P, tuple[Any, A]]: ...
@overload
def grad(
    f: Callable[P, tuple[Any, A]],
    argnums: Argnums,
    has_aux: Literal[True],
    tier: Tier = "auto",
    debug: bool = False,
    verify: bool = False,
    max_memory: float | None = None,
) -> Callable[P, tuple[Any, A]]: ...
@overload
def grad(
    f: Callable[P, Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    tier: Tier = "auto",
    debug: bool = False,
    verify: bool = False,
    max_memory: float | None = None,
) -> Callable[P, Any]: ...
def grad(
    f: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    tier: Tier = "auto",
    debug: bool = False,
    verify: bool = False,
    max_memory: float | None = None,
) -> Callable[..., Any]:
    """The function that returns df/d(argument).

    Args:
        f: any Python callable that returns one real number (a float, or a 0-d array).
        argnums: which positional argument to differentiate, or a tuple of several. Arguments may be floats, ints
            (taken as reals), complex numbers, float or complex arrays of any shape, and lists, tuples, dicts,
            namedtuples, dataclasses and other objects of these, nested.
        has_aux: `f` returns `(y, aux)`; `aux` is not differentiated and is returned beside the gradient.
        tier: "plain" takes any Python; "native" derives a gradient from Numba's typed form of `f` and compiles it
            (needs Numba); "auto": native for functions made by `numba.njit` where that is possible, else plain;
            "fastest": native where that gives what the plain tier gives, else plain, decided at the first call.
        debug: stop at the line where a value that depends on the arguments, or a cotangent, becomes nan or infinite;
            slow, and in the plain tier.
        verify: compare each gradient with differences along one random direction.
        max_memory: stop at the line where the tape takes more than so many bytes; in the plain tier. See `tape_size`.

    Returns:
        A function of the same arguments as `f`. It returns the gradient, with the structure of the argument: an
        array of the same shape and dtype for an array, a list for a list, a `Tangent` for an object; `None` for an
        entry that has no tangent. With several `argnums` a tuple; with `has_aux` a pair `(gradient, aux)`. For a
        complex argument z = x + iy the gradient is df/dx + i df/dy.

    Raises:
        NonScalarOutputError: `f` returned something else than one real number.
        ArgumentError: an argument has no tangent, or there is no such argument.
        MissingRuleError: the value depends on the argument through C code that has no rule.
        NativeError: with `tier="native"`: Numba cannot compile `f`, or something in it has no native rule.
        NotFiniteError: with `debug`: something is nan or infinite.
        VerificationError: with `verify`: the gradient and differences do not agree.
        TapeMemoryError: with `max_memory`: the tape takes more than that.

    Examples:
        >>> import math
        >>> grad(lambda x: x * math.sin(x))(2.0) == math.sin(2.0) + 2.0 * math.cos(2.0)
        True
        >>> grad(lambda p: p["a"] * p["b"])({"a": 3.0, "b": 4.0})
        {'a': 4.0, 'b': 3.0}
    """
    check_callable(f, "grad")
    if is_coroutine_function(f):
        return awaitable(grad, f, argnums, has_aux, tier, debug, verify, max_memory)
    if debug or verify or max_memory is not None:
        return looked_at(grad, f, (argnums, has_aux), debug, verify, max_memory)
    return gradient_operator(grad, f, argnums, has_aux, tier)


def value_and_grad(
    f: Callable[P, Y],
    argnums: Argnums = 0,
    has_aux: bool = False,
    tier: Tier = "auto",
    debug: bool = False,
    verify: bool = False,
    max_memory: float | None = None,
) -> Callable[P, tuple[Y, Any]]:
    """The function that returns `(f(*args), gradient)`; see `grad`.

    With `has_aux` it returns `((y, aux), gradient)`.

    Examples:
        >>> value_and_grad(lambda x, y: x * y, argnums=(0, 1))(3.0, 4.0)
        (12.0, (4.0, 3.0))
    """
    check_callable(f, "value_and_grad")
    if is_coroutine_function(f):
        return awaitable(value_and_grad, f, argnums, has_aux, tier, debug, verify, max_memory)
    if debug or verify or max_memory is not None:
        return looked_at(value_and_grad, f, (argnums, has_aux), debug, verify, max_memory)
    return gradient_operator(value_and_grad, f, argnums, has_aux, tier)


def gradient_operator(
    operator: Callable[..., Any], f: Callable[..., Any], argnums: Argnums, has_aux: bool, tier: Tier
) -> Derivative:
    """What `grad` and `value_and_grad` return."""
    positions = positions_of(argnums)
    check_tier(tier)
    with_value = operator is value_and_grad
    if tier == "fastest":
        return in_fastest(operator, f, positions, argnums, has_aux)
    is_first, is_plain = positions == (0,), tier != "native" and type(f) is FunctionType

    @derives(operator, f, argnums, has_aux, tier)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        at = positions if is_first and args else positions_in(positions, args)
        found = None
        if not is_plain and chosen(tier, f) is not None:
            found = native_gradients(f, args, at, kwargs, has_aux, tier)
        if found is None and getattr(f, "__plaingrad_mode__", None) == "forward":
            found = pushed_gradient(f, args, kwargs, at, has_aux)
        if found is None and has_aux:
            found = gradients_and_aux(f, args, at, kwargs)
        if found is None:
            found = in_core(f, args, at, kwargs)
            if type(found) is not tuple:  # as in `recorded_gradients`, with a frame less in tracebacks
                run = Run(f, args, at, kwargs) if found is None else found
                found = run.value, run.pull_once(unit_cotangent(run.value, f))
        value, x_bars = found
        x_bar = x_bars if isinstance(argnums, tuple) else x_bars[0]
        if with_value:
            return value, x_bar
        return (x_bar, value[1]) if has_aux else x_bar

    return gradient


def native_gradients(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    at: tuple[int, ...],
    kwargs: dict[str, Any],
    has_aux: bool,
    tier: Tier,
) -> tuple[Any, tuple[Any, ...]] | None:
    """(f(*args, **kwargs), its gradients by the arguments at `at`) natively; None where the plain tier is to do it."""
    level = CURRENT.get()
    try:
        if level is PLAIN:
            objects = imported("plaingrad.native.objects.call")
            return objects.value_and_gradient(f, args, at, kwargs, has_aux)  # type: ignore[no-any-return]
        if not has_aux:
            nested = imported("plaingrad.native.border.nested")
            return nested.value_and_gradient(level, f, args, at, kwargs)  # type: ignore[no-any-return]
    except NativeError:
        if tier == "native" and level is PLAIN:
            raise
    return None  # at a level, which differentiates the plain tier


def gradients_and_aux(
    f: Callable[..., Any], args: tuple[Any, ...], at: tuple[int, ...], kwargs: dict[str, Any]
) -> tuple[Any, tuple[Any, ...]]:
    """((y, aux), the gradients of y), in reverse mode."""
    run = Run(f, args, at, kwargs, first_of)
    y, _ = checked_pair(run.value)
    return run.value, run.pull_once(unit_cotangent(y, f))


def checked_pair(value: Any) -> tuple[Any, Any]:
    """What a function with `has_aux` returned: (y, aux)."""
    if not (type(value) is tuple and len(value) == 2):
        raise NonScalarOutputError(
            f"with has_aux=True the function must return (y, aux), not {described(value)}"
        )
    return value


def in_fastest(
    operator: Callable[..., Any], f: Callable[..., Any], positions: tuple[int, ...], *options: Any
) -> Derivative:
    """operator(f, *options, tier), with the tier that is chosen for the types of the arguments."""
    by = {t: operator(f, *options, t) for t in ("native", "auto")}
    words = f"{operator.__name__}({', '.join(map(repr, options))})"

    @derives(operator, f, *options, "fastest")
    def by_the_fastest(*args: Any, **kwargs: Any) -> Any:
        at = positions_in(positions, args)
        return fastest(words, f, args, kwargs, at, lambda t, args, kwargs: by[t](*args, **kwargs))

    return by_the_fastest


def at_point(
    operator: str,
    f: Callable[..., Any],
    primals: Sequence[Any],
    by: Callable[..., Any],
    shown: Callable[[Any], Any] = lambda result: result,
) -> Any:
    """The derivative of `f` at a point by one of two tiers: by(tier, arguments). See `fastest`."""
    args, positions = tuple(primals), active_positions(primals)
    return fastest(operator, f, args, {}, positions, lambda t, args, _: by(t, args), shown)


def recorded_gradients(
    f: Callable[..., Any], args: tuple[Any, ...], at: tuple[int, ...], kwargs: dict[str, Any]
) -> tuple[Any, tuple[Any, ...]]:
    """(f(*args, **kwargs), its gradients by the arguments at `at`), in the plain tier and in reverse mode."""
    found = in_core(f, args, at, kwargs)
    if type(found) is tuple:
        return found
    run = Run(f, args, at, kwargs) if found is None else found
    return run.value, run.pull_once(unit_cotangent(run.value, f))


def vjp(
    f: Callable[..., Y],
    *args: Any,
    tier: Tier = "auto",
    debug: bool = False,
    max_memory: float | None = None,
) -> tuple[Y, Callable[[Any], tuple[Any, ...]]]:
    """`(y, pullback)`: the value `f(*args)` and the map from a cotangent of it to cotangents of the arguments.

    `pullback(y_bar)` returns a tuple with one entry per argument, `None` for an argument without tangent (with
    `tier="native"` an int that the function counts with is one). `y_bar` has the structure, shapes and dtypes of `y`.
    It may be called any number of times.

    Args:
        f: as for `grad`; its result may have any structure.
        args: its arguments.
        tier: as for `grad`.
        debug: as for `grad`; of cotangents when `pullback` is called.
        max_memory: as for `grad`.

    Raises:
        CotangentError: `y_bar` does not fit `y`.
        ChangedSinceError: an array that the pullback reads was changed since the call.

    Examples:
        >>> y, pullback = vjp(lambda x, y: x * y, 3.0, 4.0)
        >>> y, pullback(1.0), pullback(2.0)
        (12.0, (4.0, 3.0), (8.0, 6.0))
    """
    check_callable(f, "vjp")
    if is_coroutine_function(f):
        return awaited(vjp, f, *args, tier=tier, debug=debug, max_memory=max_memory)
    if max_memory is not None:
        return bounded(vjp, max_memory, f, *args, tier="plain", debug=debug)  # type: ignore[no-any-return]
    if debug:
        return debugged(vjp, f, *args, tier="plain")  # type: ignore[no-any-return]
    check_tier(tier)
    active = active_positions(args)
    if tier == "fastest":
        by = lambda t, args: vjp(f, *args, tier=t)
        return at_point("vjp", f, args, by, lambda r: (r[0], r[1](r[0])))  # type: ignore[no-any-return]
    native = natively(tier, f) if tier == "native" else None
    if native is not None:
        return native_vjp(native, f, args)
    run = recorded(in_tier(tier, f, args, "pullback"), args, active, {})
    run.watch()
    y = kept(run.value)
    count = len(args)  # the arguments are not kept: they may lie in memory that is to be given back

    def pullback(y_bar: Any) -> tuple[Any, ...]:
        """The cotangents of the arguments."""
        found = dict(zip(active, run.pull(COTANGENT.of(y_bar, y, "y_bar")), strict=True))
        return tuple(found.get(n) for n in range(count))

    return run.value, pullback


def native_vjp(
    native: Any, f: Callable[..., Any], args: tuple[Any, ...]
) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """`vjp` in the native tier: `f` runs compiled, once, with all that it does to its arguments."""
    y, pulled = native.vjp(f, args)
    value = kept(y)
    args = of_their_own(args)  # the memory of others may be given back before the pullback is called
    recorded: list[Callable[[Any], tuple[Any, ...]]] = []

    def pullback(y_bar: Any) -> tuple[Any, ...]:
        """The cotangents of the arguments."""
        if CURRENT.get() is PLAIN:
            return pulled(COTANGENT.of(y_bar, value, "y_bar"))
        if not recorded:  # the pullback itself is differentiated: the plain tier knows how
            again, pull = vjp(in_tier("native", f, args, "pullback"), *args)
            refuse_another(value, again)
            recorded.append(pull)
        return recorded[0](y_bar)

    return y, pullback


def refuse_another(value: Any, again: Any) -> None:
    """Refuse to differentiate the pullback of a call that gives another value when it is made again."""
    leaves, others = (structure_of(y, as_real=True)[1] for y in (value, again))
    if len(leaves) != len(others) or not all(
        np.shape(a.x) == np.shape(b.x) and np.allclose(a.x, b.x, rtol=1e-9, equal_nan=True)
        for a, b in zip(leaves, others, strict=True)
    ):
        refuse(
            ChangedSinceError,
            "an argument of the function was changed since this pullback was made",
            why="The pullback is differentiated, for which the function is called again.",
            fix="differentiate it before changing the argument, or pass a copy to vjp",
            anchor="changed-since",
        )


def first_of(value: Any) -> Any:
    """y, of (y, aux)."""
    return value[0] if type(value) is tuple and value else None
