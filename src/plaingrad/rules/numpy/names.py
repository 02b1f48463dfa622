"""Finding what a rule is about in whatever NumPy is installed, and the axis arithmetic that rules share."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from types import BuiltinFunctionType
from typing import Any

import numpy as np

from plaingrad import define, rulebook
from plaingrad.errors import MissingRuleError
from plaingrad.rulebook import Rule
from plaingrad.rules.pushforwards import both_forms, joined, pushed, total, varies
from plaingrad.tangents import NoTangent, Thunk, ZeroTangent
from plaingrad.tangents.spaces import has_tangent_space

SMALL = 10_000  # elements: below, the time of a call counts, not that of a copy
ABSENT: Any = np._NoValue  # NumPy's own mark for "not given"


# The first parameter in a text of a signature; `inspect.signature` takes long to say as much.
FIRST_NAME = re.compile(r"\(\s*(?:\$module,\s*)?\$?(\w+)")


def functions(*names: str, where: Any = np) -> tuple[Any, ...]:
    """The functions of these names that this version of NumPy has, each once."""
    found: list[Any] = []
    for name in names:
        function = vars(where).get(name)  # not getattr: some old names only warn
        if function is not None and all(function is not f for f in found):
            found.append(function)
    return tuple(found)


def methods(*names: str, types: tuple[type, ...] = (np.ndarray, np.generic)) -> tuple[Any, ...]:
    """The descriptors of these names found in the types' own dictionaries."""
    return tuple(vars(t)[name] for name in names for t in types if name in vars(t))


def both(*names: str) -> tuple[Any, ...]:
    """NumPy's functions and the methods of arrays and array scalars that have these names."""
    return functions(*names) + methods(*names)


def array(x: Any) -> Any:
    """`x`; a list or tuple as an array, for what it holds now: it may be changed before the pullback."""
    return np.asarray(x) if isinstance(x, (list, tuple)) else x


def frozen(option: Any) -> Any:
    """`option` as it is now, should it be or hold a list."""
    if type(option) is list or type(option) is tuple:
        return type(option)([frozen(entry) for entry in option])
    return option


def first_name(function: Any, adjoint: Callable[..., Any]) -> str:
    """What `function` calls its first parameter; as the adjoint does where that cannot be known."""
    implementation = getattr(function, "__wrapped__", function)  # of one that NumPy dispatches
    code = getattr(implementation, "__code__", None)
    if code is not None and code.co_argcount:
        return code.co_varnames[0]
    found = FIRST_NAME.match(getattr(implementation, "__text_signature__", None) or "")
    return found[1] if found else adjoint.__code__.co_varnames[1]


def place_of_out(adjoint: Callable[..., Any], operands: int) -> int:
    """Where `out` comes among the arguments after z_bar and the operands, if by position; far off if nowhere."""
    code = adjoint.__code__
    names = code.co_varnames[: code.co_argcount]
    return names.index("out") - operands if "out" in names else 1000


def linear(function: Any, adjoint: Callable[..., Any], push: Callable[..., Any] | None = None) -> None:
    """As `define.linear`: x_bar = adjoint(z_bar, x, *others). A list is handed to the adjoint as an array.

    The rule's parameter bears the function's own name for it, so `np.take(a=x, ...)` is understood.

    Args:
        function: the callable.
        adjoint: the transpose.
        push: z_dot = push(x_dot, x, z, *others), also for a chunk of tangents; without it, z_dot = function(x_dot, *others).
    """

    call = define.as_callable(function)
    place = place_of_out(adjoint, 2)

    def step(x: Any, others: tuple[Any, ...], options: dict[str, Any]) -> Any:
        if len(others) > place:
            refuse_out(function.__name__, others[place])
        z = call(x, *others, **options)
        x, others = array(x), tuple([frozen(option) for option in others])
        options = {name: frozen(option) for name, option in options.items()}

        def linear_pullback(z_bar: Any) -> tuple[Any, ...]:
            return (Thunk(lambda: adjoint(z_bar, x, *others, **options)),)

        return z, linear_pullback

    def rrule(x: Any, *others: Any, **options: Any) -> Any:
        return step(x, others, options)

    names = (first_name(function, adjoint), "others", "options")
    rrule.__code__ = rrule.__code__.replace(co_varnames=names)
    rulebook.add(Rule(function, "linear", rrule, source=define._source_of(adjoint)))
    if push is None and place == 1000:
        return

    def pushed_step(x: Any, others: tuple[Any, ...], options: dict[str, Any]) -> Any:
        if len(others) > place:
            refuse_out(function.__name__, others[place])
        z = call(x, *others, **options)

        def linear_pushforward(dots: tuple[Any, ...]) -> Any:
            if not varies(dots[0]):
                return dots[0]
            if push is None:
                return call(dots[0], *others, **options)
            return push(joined(dots[0], x), x, z, *others, **options)

        return z, linear_pushforward

    def frule(x: Any, *others: Any, **options: Any) -> Any:
        return pushed_step(x, others, options)

    frule.__code__ = frule.__code__.replace(co_varnames=names)
    (define.frule if push is None else both_forms)(function)(frule)


def bilinear(function: Any, adjoint_a: Callable[..., Any], adjoint_b: Callable[..., Any], push: Any = None) -> None:
    """As `define.bilinear`, where lists are handed to the adjoints as arrays.

    Args:
        function: the callable.
        adjoint_a: the transpose in the first argument.
        adjoint_b: the transpose in the second.
        push: for chunks, a pair of functions: z_dot = push[0](a_dot, a, b, *others) + push[1](b_dot, a, b, *others).
    """

    place = place_of_out(adjoint_a, 3)

    def rrule(a: Any, b: Any, *others: Any, **options: Any) -> Any:
        if len(others) > place:
            refuse_out(function.__name__, others[place])
        z = function(a, b, *others, **options)
        a, b, others = array(a), array(b), tuple([frozen(option) for option in others])
        options = {name: frozen(option) for name, option in options.items()}

        def bilinear_pullback(z_bar: Any) -> tuple[Any, ...]:
            return (
                Thunk(lambda: adjoint_a(z_bar, a, b, *others, **options)),
                Thunk(lambda: adjoint_b(z_bar, a, b, *others, **options)),
            )

        return z, bilinear_pullback

    rulebook.add(Rule(function, "bilinear", rrule, source=define._source_of(adjoint_a)))

    @define.frule(function)
    def frule(a: Any, b: Any, *others: Any, **options: Any) -> Any:
        if len(others) > place:
            refuse_out(function.__name__, others[place])

        def bilinear_pushforward(dots: tuple[Any, ...]) -> Any:
            a_dot, b_dot = dots[:2]
            if not varies(b_dot):
                return function(a_dot, b, *others, **options)
            z_dot = function(a, b_dot, *others, **options)
            return function(a_dot, b, *others, **options) + z_dot if varies(a_dot) else z_dot

        return function(a, b, *others, **options), bilinear_pushforward

    if push is not None:
        enter_chunked_bilinear(function, place, *push)


def enter_chunked_bilinear(function: Any, place: int, push_a: Callable[..., Any], push_b: Callable[..., Any]) -> None:
    """The forward half of `bilinear` for chunks; `place` is that of `out` among the other arguments."""

    @define.frule(function, chunked=True)
    def chunked_frule(a: Any, b: Any, *others: Any, **options: Any) -> Any:
        if len(others) > place:
            refuse_out(function.__name__, others[place])
        z = function(a, b, *others, **options)

        def bilinear_pushforward(dots: tuple[Any, ...]) -> Any:
            x, y = array(a), array(b)
            a_dot, b_dot = joined(dots[0], a), joined(dots[1], b)
            return total(
                pushed(push_a, a_dot, x, y, *others, **options), pushed(push_b, b_dot, x, y, *others, **options)
            )

        return z, bilinear_pushforward


def linear_rrule(*functions: Any) -> Callable[[Any], Any]:
    """Decorate a reverse rule, written out, of functions that are linear in their first argument."""

    def enter(rule: Any) -> Any:
        for function in functions:
            rulebook.add(Rule(function, "linear", rule, source=define._source_of(rule)))
        return rule

    return enter


def enter_implementations() -> None:
    """Give the C code behind NumPy's dispatchers the rules of the dispatchers: NumPy's own code calls it directly."""
    for rule in rulebook.entered():
        implementation = getattr(rule.function, "__wrapped__", None)
        if type(rule.function) is type(np.sum) and type(implementation) is BuiltinFunctionType:
            rulebook.add(rule.but(function=implementation))


def _places_of_out() -> dict[Any, int]:
    """By function, and by method of arrays: how many arguments come before the output array."""
    places = {
        2: "max min amax amin ptp nanmax nanmin median nanmedian dot outer concatenate",
        3: "clip take sum prod mean std var cumsum cumprod nansum nanprod nanmean nanstd nanvar nancumsum nancumprod "
        "compress quantile percentile nanquantile nanpercentile",
        5: "trace",
    }
    found: dict[Any, int] = {}
    for place, names in places.items():
        for owner in (np, np.ndarray):
            found |= {vars(owner)[name]: place for name in names.split() if name in vars(owner)}
    return found


#: Where the output array comes by position; it is handed on by name.
PLACES_OF_OUT = _places_of_out()


def into(function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """function(*args, **kwargs) for a function that has a rule and is given `out=`: the result is written there."""
    kwargs = dict(kwargs)
    out = kwargs.pop("out")
    target = out[0] if isinstance(out, tuple) else out
    z = function(*args, **kwargs)
    if function in (np.clip, np.ndarray.clip) and kwargs.get("where") is not None:
        z = np.where(kwargs["where"], z, target)  # in reductions `where` is about the argument
    return written(z, target, function not in BROADCAST_INTO)


# Functions that broadcast their results into a larger `out`, as ufuncs do.
BROADCAST_INTO = (
    *(np.clip, np.ndarray.clip, np.fix),
    *(np.quantile, np.percentile, np.nanquantile, np.nanpercentile),
)


def written(z: Any, out: Any, exactly: bool = False) -> Any:
    """`z`, or `out` after `z` was written to it; with `exactly` both must have one shape.

    Raises:
        ValueError: `z` has another shape, or more axes than `out`, where an assignment would drop those of length 1.
    """
    if out is None:
        return z
    shape = np.shape(z)
    if len(shape) > out.ndim or exactly and shape != out.shape:
        raise ValueError(f"non-broadcastable output operand with shape {out.shape} doesn't match the shape {shape}")
    out[...] = z
    return out


def write_results(function: Any, place: int) -> None:
    """Enter a function whose results have no tangent; written to `out`, they replace what the array held.

    Args:
        place: where `out` comes by position.
    """

    def fresh(*args: Any, **options: Any) -> Any:
        return function(*args, **options)

    def definition(*args: Any, **options: Any) -> Any:
        if len(args) > place:
            out = args[place]
            args = (*args[:place], None, *args[place + 1 :])
        else:
            out = options.pop("out", None)
        z = fresh(*args, **options)
        return written(z, out[0] if isinstance(out, tuple) else out, True)

    define.no_tangent(fresh)
    define.composed(function)(definition)


def given(**options: Any) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in options.items() if value is not ABSENT}


def refuse(name: str, why: str, instead: str) -> MissingRuleError:
    """The error for a form of a function that has no derivative here."""
    return MissingRuleError(f"{name} {why}.\n  Instead: {instead}\n  See docs: errors#missing-rule")


def refuse_out(name: str, out: Any) -> None:
    """Raise if `out` reached a rule by position: rules return fresh memory, the keyword is dealt with by `into`."""
    if out is not None and out is not ABSENT:
        raise refuse(name, "was given its output array by position", "pass it by keyword, out=...")


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """`axis` (None, a number or a tuple) as a tuple of axes, counted from the front."""
    if axis is None:
        return tuple(range(ndim))
    if isinstance(axis, tuple):
        return tuple(i % ndim for i in axis) if ndim else ()
    return (axis % ndim,) if ndim else ()


def restored(z: Any, shape: tuple[int, ...], axis: Any) -> Any:
    """`z`, a reduction over `axis` of an array of `shape`, with the reduced axes back as axes of length 1."""
    axes = axes_of(axis, len(shape))
    kept = tuple([1 if i in axes else n for i, n in enumerate(shape)])
    return z.reshape(kept) if isinstance(z, (np.ndarray, np.generic)) else np.reshape(z, kept)


def spread(z: Any, shape: tuple[int, ...], axis: Any) -> Any:
    """`z`, a reduction over `axis`, repeated along the reduced axes: a read-only view of `shape` unless that is small."""
    if axis is None and np.ndim(z) == 0:
        return np.full(shape, z) if math.prod(shape) <= SMALL else np.broadcast_to(z, shape)
    z = restored(z, shape, axis)
    if math.prod(shape) > SMALL:
        return np.broadcast_to(z, shape)
    whole = np.empty(shape, z.dtype)  # five times as fast as a view, which NumPy makes in Python
    whole[...] = z
    return whole


def count(shape: tuple[int, ...], axis: Any) -> int:
    """How many elements a reduction over `axis` takes together."""
    n = 1
    for i in axes_of(axis, len(shape)):
        n *= shape[i]
    return n


def at_axis(index: Any, axis: int, ndim: int) -> tuple[Any, ...]:
    """The subscript that applies `index` to one axis and takes the others whole."""
    return (slice(None),) * (axis % ndim) + (index,)


def is_complex(x: Any) -> bool:
    """Whether `x` (number, array, or nested list) has a complex dtype."""
    return np.iscomplexobj(x)


def conj(x: Any) -> Any:
    """The complex conjugate; real `x` is returned as it is, without a copy."""
    return np.conjugate(x) if np.iscomplexobj(x) else x


def no_slope(x: Any) -> Any:
    """The cotangent of an argument that does not move the result: of numbers it is zero, of anything else there is none."""
    return ZeroTangent if has_tangent_space(x) else NoTangent


def adjoint(x: Any) -> Any:
    """The conjugate transpose of (a stack of) matrices; a view where `x` is real."""
    return conj(np.swapaxes(x, -1, -2))
