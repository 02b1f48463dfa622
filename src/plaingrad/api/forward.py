"""Forward mode: tangents, linear maps, and derivatives of functions of one number."""

from __future__ import annotations

import cmath
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, ParamSpec, TypeVar, overload

import numpy as np

from plaingrad import number_classes
from plaingrad.api import recorded
from plaingrad.api.directions import jvp_of_batch
from plaingrad.api.gradients import at_point, in_fastest, vjp
from plaingrad.api.jacobian_entries import check_holomorphic
from plaingrad.api.leaves import (
    Leaf,
    check_callable,
    check_has_numbers,
    checked_order,
    described,
    filled,
    fitting_tangents,
    here,
    is_whole_numbers,
    kept,
    leaf_values,
    structure_of,
)
from plaingrad.api.looked_at import debugged, looked_at
from plaingrad.api.operator_objects import derives
from plaingrad.api.seeds import direction_type, of_numpy
from plaingrad.api.tiers import Tier, check_tier, in_tier, natively
from plaingrad.critical import imported
from plaingrad.engine.forward.push import push
from plaingrad.engine.memory.kinds import NUMBER, kind_of
from plaingrad.engine.users_code.coroutines import awaitable, awaited, is_coroutine_function
from plaingrad.errors import ArgumentError, NativeError, NonScalarOutputError
from plaingrad.tangents import ZeroTangent

P = ParamSpec("P")
Y = TypeVar("Y")
A = TypeVar("A")

MOST_FACTORIAL = 170  # the last n whose n! is a float
ASIDE = cmath.exp(
    1j
)  # a direction none of whose powers is real: only a holomorphic function looks alike along it


@overload
def jvp(
    f: Callable[..., tuple[Y, A]],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: Literal[True],
    tier: Tier = "auto",
    debug: bool = False,
    batch: bool = False,
) -> tuple[Y, Any, A]: ...
@overload
def jvp(
    f: Callable[..., Y],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool = False,
    tier: Tier = "auto",
    debug: bool = False,
    batch: bool = False,
) -> tuple[Y, Any]: ...
def jvp(
    f: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool = False,
    tier: Tier = "auto",
    debug: bool = False,
    batch: bool = False,
) -> tuple[Any, ...]:
    """`(y, y_dot)`: the value `f(*primals)` and its derivative along `tangents`.

    Args:
        f: any Python callable; its result may have any structure.
        primals: the arguments, a tuple. As for `grad`: numbers, arrays, and structures of these.
        tangents: the direction, one entry for each argument, with its structure, shapes and realness; None (or
            `ZeroTangent`) for an argument that is held fixed, and for an entry that is or has no tangent.
        has_aux: `f` returns `(y, aux)`; the result is `(y, y_dot, aux)`.
        tier, debug: as for `grad`; `debug` looks at tangents.
        batch: each number and array of `tangents` has a leading axis, along which several directions lie: an array for
            a number. So has each of y_dot. `f` runs once, with all of them, in the plain tier.

    Returns:
        The value, and y_dot with its structure: a list for a list, a dict for a dict, a `Tangent` for an object,
        None for an entry without tangent.

    Raises:
        TangentError: `tangents` do not fit `primals`.
        MissingRuleError: the value depends on an argument through C code that has no rule.

    Examples:
        >>> jvp(lambda x, y: x * y, (3.0, 4.0), (1.0, 0.0))
        (12.0, 4.0)
        >>> jvp(lambda p: [p["a"] ** 2, "text"], ({"a": 3.0},), ({"a": 1.0},))
        ([9.0, 'text'], [6.0, None])
        >>> jvp(lambda x, y: x * y, (3.0, 4.0), ([1.0, 0.0, 2.0], None), batch=True)
        (12.0, array([4., 0., 8.]))
    """
    check_callable(f, "jvp")
    if is_coroutine_function(f):
        return awaited(jvp, f, primals, tangents, has_aux, tier, debug, batch)
    if batch:
        return jvp_of_batch(f, primals, tangents, has_aux)
    if debug:
        return debugged(jvp, f, primals, tangents, has_aux, "plain")  # type: ignore[no-any-return]
    check_tier(tier)
    if tier == "fastest":
        still = tuple([n for n, dot in enumerate(tangents) if dot is None or dot is ZeroTangent])
        words = f"jvp(has_aux={has_aux}, still={still})"
        return at_point(words, f, primals, lambda t, args: jvp(f, args, tangents, has_aux, t))  # type: ignore[no-any-return]
    dots = fitting_tangents(primals, tangents)
    native = natively(tier, f) if tier == "native" else None
    if native is not None:
        y, y_dot = native.jvp(f, tuple(primals), dots)
    else:
        y, y_dot = push(in_tier(tier, f, tuple(primals), "pushforward"), tuple(primals), dots, {})
    if not has_aux:
        return y, mirrored(y, y_dot)
    if not (type(y) is tuple and len(y) == 2):
        raise NonScalarOutputError(f"with has_aux=True the function must return (y, aux), not {described(y)}")
    return y[0], mirrored(y[0], y_dot[0] if type(y_dot) is tuple else None), y[1]


def linearize(
    f: Callable[..., Y], *primals: Any, tier: Tier = "auto", debug: bool = False
) -> tuple[Y, Callable[..., Any]]:
    """`(y, f_jvp)`: the value `f(*primals)`, and the linear map from tangents of the arguments to that of the value.

    `f` is called once, and what it did is kept; `f_jvp(*tangents)` gives y_dot as `jvp` does, any number of times,
    without calling `f` again. Natively nothing is kept, and `f_jvp` is a compiled sweep of forward mode.

    Args:
        f: as for `jvp`.
        primals: its arguments.
        tier: as for `grad`.
        debug: as for `jvp`, which `f_jvp` then is: it calls `f` again.

    Raises:
        TangentError: `tangents` do not fit `primals`.

    Examples:
        >>> y, f_jvp = linearize(lambda x, y: x * y, 3.0, 4.0)
        >>> y, f_jvp(1.0, 0.0), f_jvp(0.0, 1.0)
        (12.0, 4.0, 3.0)
    """
    check_callable(f, "linearize")
    if debug:
        given, y = kept(primals), debugged(vjp, f, *primals, tier="plain")[0]
        return y, lambda *dots: debugged(jvp, f, kept(given), dots, False, "plain")[1]
    check_tier(tier)
    if tier == "fastest":
        at = lambda t, args: linearize(f, *args, tier=t)
        return at_point("linearize", f, primals, at, lambda r: (r[0], r[1](*primals)))  # type: ignore[no-any-return]
    native = natively(tier, f)
    if native is not None:
        try:
            return natively_linear(native, f, primals)
        except NativeError:
            if tier == "native":
                raise
    given = kept(primals)  # as they are before `f` changes them
    y, pullback = vjp(f, *primals, tier=tier)
    structure, leaves = of_numpy(*structure_of(y, as_real=True))
    transposed: list[Callable[..., Any]] = []

    def transpose() -> Callable[..., Any]:
        def from_leaves(*bars: Any) -> Any:
            return pullback(filled(structure, lambda leaf: bars[leaf.position]))

        zeros = [np.zeros_like(leaf.x) if leaf.is_array else type(leaf.x)(0) for leaf in leaves]
        return vjp(from_leaves, *zeros)[1]

    def f_jvp(*tangents: Any) -> Any:
        """The tangent of the value."""
        dots = fitting_tangents(given, tangents)
        if not leaves:
            return filled(structure, lambda leaf: None)
        if not transposed:
            transposed.append(transpose())
        found = transposed[0](dots)
        return filled(structure, lambda leaf: found[leaf.position])

    return y, f_jvp


def natively_linear(native: Any, f: Any, primals: tuple[Any, ...]) -> tuple[Any, Callable[..., Any]]:
    """`linearize` by compiled forward mode.

    Raises:
        NativeError: it cannot be derived.
    """
    given = kept(primals)  # as they are before `f` changes them
    y, push_leaves = native.linear_map(f, primals)
    structure = structure_of(y, as_real=True)

    def f_jvp(*tangents: Any) -> Any:
        """The tangent of the value."""
        return with_dots(structure, push_leaves(fitting_tangents(given, tangents)))

    return y, f_jvp


def with_dots(of_value: tuple[Any, list[Leaf]], dots: Sequence[Any]) -> Any:
    """The structure of a value with `dots` for its real numbers and arrays, in order; zeros for a whole number alone.

    Args:
        of_value: its structure and leaves.
        dots: as many as there are leaves.
    """
    structure, leaves = of_value
    if not dots:
        return filled(structure, lambda leaf: np.zeros_like(leaf.x) if leaf.is_array else type(leaf.x)(0))
    rest = iter(dots)
    found = {leaf.position: type(leaf.x)(0) if is_whole_numbers(leaf.x) else next(rest) for leaf in leaves}
    return filled(structure, lambda leaf: found[leaf.position])


def mirrored(y: Any, y_dot: Any, of_leaf: Callable[[Leaf, Any], Any] | None = None) -> Any:
    """`y_dot` with the structure of `y`, zeros where nothing varies, None where there is no tangent.

    Args:
        of_leaf: what becomes of the entry of a leaf, if it is not to be taken as it is.
    """
    if type(y) is float and type(y_dot) is float and of_leaf is None:
        return y_dot
    structure, _ = structure_of(y, as_real=True)
    found = leaf_values(structure, y_dot)

    def entry(leaf: Leaf) -> Any:
        dot = found.get(leaf.position)
        if dot is None:
            return np.zeros_like(leaf.x) if leaf.is_array else type(leaf.x)(0)
        if of_leaf is not None:
            dot = of_leaf(leaf, dot)
        if isinstance(leaf.x, np.generic) and type(dot) is not type(leaf.x):
            return here(recorded.in_type, dot, type(leaf.x))  # np.float64 for np.float64
        return dot

    return filled(structure, entry)


@overload
def derivative(
    f: Callable[P, Y], order: int = 1, *, value: Literal[True], tier: Tier = "auto", debug: bool = False
) -> Callable[P, tuple[Y, Any]]: ...
@overload
def derivative(
    f: Callable[P, Any], order: int = 1, value: bool = False, tier: Tier = "auto", debug: bool = False
) -> Callable[P, Any]: ...
def derivative(
    f: Callable[..., Any],
    order: int = 1,
    value: bool = False,
    tier: Tier = "auto",
    debug: bool = False,
) -> Callable[..., Any]:
    """The function that returns d^n f / dx^n, for a function of one number.

    Args:
        f: any Python callable; its first argument is a number, which is differentiated. Its result may be a number,
            an array, or lists, tuples, dicts and objects of these.
        order: n; 0 gives `f` itself. `f` runs once (for a complex x twice): they are n! times Taylor coefficients.
        value: return the pair `(f(x), derivative)`.
        tier: as for `grad`; natively up to the third order.

    Returns:
        A function of the same arguments as `f`. It returns the derivative, with the structure of the result. For a
        complex argument it is the complex derivative of a holomorphic function.

    Raises:
        ArgumentError: the first argument is not a number, or `order` is no natural number.
        NotHolomorphicError: the argument is complex and f has no complex derivative there; see `wirtinger`.
        MissingRuleError: the value depends on the argument through C code that has no rule.

    Examples:
        >>> import cmath
        >>> derivative(lambda t: t**5, order=3)(2.0), derivative(cmath.exp)(1j) == cmath.exp(1j)
        (240.0, True)
        >>> derivative(lambda t: [t, t * t], value=True)(3.0)
        ([3.0, 9.0], [1.0, 6.0])
    """
    check_callable(f, "derivative")
    if is_coroutine_function(f):
        return awaitable(derivative, f, order, value, tier, debug)
    if debug:
        return looked_at(derivative, f, (order, value), debug)
    order = checked_order(order)
    check_tier(tier)
    if tier == "fastest":
        return in_fastest(derivative, f, (0,), order, value)

    @derives(derivative, f, order, value, tier)
    def derivative_of(x: Any, *others: Any, **kwargs: Any) -> Any:
        x = as_number(x)
        if order == 0:
            y = f(x, *others, **kwargs)
            return (y, y) if value else y
        native = natively(tier, f)
        try:
            found = nth if native is None else partial(natively_nth, native)
            y, d = found(f, x, order, others, kwargs)
        except NativeError:
            if tier == "native":
                raise
            y, d = nth(f, x, order, others, kwargs)
        check_has_numbers(y, f)
        return (y, d) if value else d

    return derivative_of


def as_number(x: Any) -> Any:
    """The number by which `derivative` differentiates; an int is taken as a real number."""
    if type(x) is float:
        return x
    if isinstance(x, (int, np.integer)) and not isinstance(x, bool):
        return float(x)
    if kind_of(type(x)) != NUMBER:
        hint = "; for an array use jacobian or jvp" if isinstance(x, np.ndarray) else ""
        raise ArgumentError(
            f"derivative is by one number, not {described(x)}{hint}.\n  See docs: errors#argument"
        )
    return x


def natively_nth(
    native: Any, f: Any, x: Any, order: int, others: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, Any]:
    """(f(x), the derivative of that order) by compiled forward mode over itself.

    Raises:
        NativeError: it cannot be derived.
        NotHolomorphicError: x is complex, and one of the derivatives up to that order does not exist.
    """
    if not isinstance(x, (float, complex, np.inexact)):
        raise NativeError(
            f"natively, derivatives are by a float, not {described(x)}.\n  See docs: errors#native"
        )
    y, dots = native.derivative(f, x, order, others, kwargs)
    if isinstance(x, (complex, np.complexfloating)):
        for n in range(1, order + 1):
            ahead = dots if n == order else native.derivative(f, x, n, others, kwargs)[1]
            turned = native.derivative(f, x, n, others, kwargs, ASIDE)[1]
            for along_1, aside in zip(ahead, turned, strict=True):
                check_holomorphic(along_1, np.asarray(aside) * (1j / ASIDE**n), f)
    return y, with_dots(structure_of(y, as_real=True), dots)


def nth(f: Any, x: Any, order: int, others: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """(f(x), the derivative of that order): from the Taylor coefficients where numbers are floats, else by nesting."""
    if order == 1:
        return first(f, x, others, kwargs)
    if isinstance(x, (float, complex, np.inexact)):
        return by_taylor(f, x, order, others, kwargs)

    def one_order_less(x: Any) -> tuple[Any, Any]:
        return nth(f, x, order - 1, others, kwargs)

    (y, _), (_, d) = first(one_order_less, x, (), {})
    return y, d


def first(f: Any, x: Any, others: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """(f(x), df/dx)."""
    args = (x, *others)
    held = (None,) * len(others)
    if not isinstance(x, (complex, np.complexfloating)):
        y, y_dot = push(f, args, (number_classes.one(x), *held), kwargs)
        return y, mirrored(y, y_dot)
    seed = np.array([1, 1j], direction_type(x))
    y, y_dot = push(f, args, (seed, *held), kwargs, chunk=2)

    def of_leaf(leaf: Leaf, dot: Any) -> Any:
        along_1, along_i = (here(recorded.chosen, dot, k, leaf) for k in (0, 1))
        check_holomorphic(along_1, along_i, f)
        return along_1

    return y, mirrored(y, y_dot, of_leaf)


def by_taylor(f: Any, x: Any, order: int, others: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """(f(x), the derivative of that order): n! times the Taylor coefficient, in one run of `f`, two for complex x."""
    if order > MOST_FACTORIAL:
        raise ArgumentError(
            f"{order}! is beyond the floats; taylor(f, x, {order}) gives the coefficients f^(k) / k!.\n"
            "  See docs: errors#argument"
        )
    kind = direction_type(x)
    held = (None,) * len(others)
    level = imported("plaingrad.engine.taylor.jets").JetLevel

    def along(direction: complex) -> tuple[Any, Any]:
        seed = np.zeros(order, kind)
        seed[0] = direction
        return push(f, (x, *others), (seed, *held), kwargs, order, level)

    y, y_dot = along(1.0)
    again: dict[int, Any] = {}
    if isinstance(x, (complex, np.complexfloating)):
        again = leaf_values(structure_of(y, as_real=True)[0], along(ASIDE)[1])

    def of_leaf(leaf: Leaf, dot: Any) -> Any:
        d = here(recorded.nth_from_taylor, dot, order, leaf)
        if leaf.position in again:
            found = again[leaf.position]
            aside = here(recorded.nth_from_taylor, found, order, leaf)
            check_holomorphic(d, np.asarray(aside) * (1j / ASIDE**order), f)
            # The n-th may be zero where lower ones tell that f is not holomorphic.
            ahead = [np.asarray(here(recorded.chosen, dot, n, leaf)) for n in range(order)]
            turned = [np.asarray(here(recorded.chosen, found, n, leaf)) for n in range(order)]
            check_holomorphic(
                np.stack(ahead), np.stack([c * (1j / ASIDE ** (n + 1)) for n, c in enumerate(turned)]), f
            )
        return d

    return y, mirrored(y, y_dot, of_leaf)
