"""What a function of the program decides on: code that tells what it compares, and calls whose results have no derivative.

Told are pairs of numbers or of arrays, which are compared, and an `Unknown` for what may branch on its arguments by
itself: code without a derivative rule, a library's object.
"""

from __future__ import annotations

import bisect
import copy
import functools
import math
from contextvars import ContextVar
from types import FunctionType, MethodType, SimpleNamespace
from typing import Any

import numpy as np

from plaingrad import rulebook
from plaingrad.rules import derivatives
from plaingrad.rules.scipy.implicit import mover

MOST = 2000  # comparisons of one evaluation
LARGEST = 256  # numbers in arrays that are compared
TOLD: ContextVar[list[Any] | None] = ContextVar("TOLD", default=None)
NUMBERS = (float, int, np.floating, np.integer)
SMOOTH = frozenset(("scalar", "linear", "bilinear", "full", "composed", "mover", "inspector", "higher_order", "outside", "asks"))


class Unknown:
    """A call that may branch on what it is called with.

    Attributes:
        parts: the function and its arguments.
    """

    def __init__(self, *parts: Any) -> None:
        self.parts = parts


@mover
def compared(a: Any, b: Any) -> None:
    """Note what is compared."""
    told = TOLD.get()
    if told is not None and len(told) < MOST:
        told.append((a, b) if is_numeric(a) and is_numeric(b) else Unknown(a, b))


def is_numeric(x: Any) -> bool:
    """Whether x is a number, or a small array of numbers."""
    return isinstance(x, NUMBERS) or (isinstance(x, np.ndarray) and x.dtype.kind in "fiub" and x.size <= LARGEST)


@mover
def unknown(*parts: Any) -> None:
    """Note a call that may branch by itself."""
    told = TOLD.get()
    if told is not None and len(told) < MOST:
        told.append(Unknown(*parts))


@mover
def whole(u: Any, shift: float = 0.0) -> None:
    """Note u and the whole number next to it, which a function of the kind of `floor` compares it with."""
    if isinstance(u, NUMBERS):
        if math.isfinite(u):
            compared(u, float(round(float(u) - shift)) + shift)
    elif is_numeric(u):
        compared(u, np.round(u - shift) + shift)


def divided(a: Any, b: Any) -> None:
    """Note a / b, whose whole part is taken."""
    if may_divide(a, b):
        whole(a / b)


@mover
def may_divide(a: Any, b: Any) -> bool:
    """Whether a / b is a number, or numbers."""
    return is_numeric(a) and is_numeric(b) and bool(np.all(b != 0))


def choosing(f: Any) -> Any:
    """`max` and the like: told of two arguments."""

    def told(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 2:
            compared(args[0], args[1])
        return f(*args, **kwargs)

    return told


def at_zero(f: Any) -> Any:
    """`abs` and the like."""

    def told(*args: Any, **kwargs: Any) -> Any:
        if args:
            compared(args[0], 0.0)
        return f(*args, **kwargs)

    return told


def at_whole(f: Any, shift: float = 0.0) -> Any:
    """`floor` and the like."""

    def told(*args: Any, **kwargs: Any) -> Any:
        if args:
            whole(args[0], shift)
        return f(*args, **kwargs)

    return told


def between(f: Any) -> Any:
    """`np.clip` and the like."""

    def told(x: Any, *args: Any, **kwargs: Any) -> Any:
        for bound in (*args[:2], *kwargs.values()):
            compared(x, bound)
        return f(x, *args, **kwargs)

    return told


def dividing(f: Any) -> Any:
    """`np.fmod` and the like."""

    def told(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 2:
            divided(args[0], args[1])
        return f(*args, **kwargs)

    return told


def among(f: Any) -> Any:
    """`np.digitize(x, edges)` and the like."""

    def told(x: Any, edges: Any, *args: Any, **kwargs: Any) -> Any:
        each_edge(x, edges)
        return f(x, edges, *args, **kwargs)

    return told


def into(f: Any) -> Any:
    """`bisect(edges, x)` and the like."""

    def told(edges: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        if not kwargs.get("key"):
            each_edge(x, edges)
        return f(edges, x, *args, **kwargs)

    return told


@mover
def each_edge(x: Any, edges: Any) -> None:
    """Note x, a number or an array, and every edge that it is looked up among."""
    if isinstance(edges, np.ndarray) and isinstance(x, NUMBERS):
        compared(x, edges)
    elif len(edges) <= LARGEST:
        for k in range(len(edges)):
            compared(x, edges[k : k + 1] if isinstance(edges, np.ndarray) else edges[k])
    else:
        unknown(x, edges)


SWITCHES: dict[Any, Any] = {
    **{f: choosing(f) for f in (max, min, np.maximum, np.minimum, np.fmax, np.fmin)},
    **{f: choosing(f) for f in (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal)},
    **{f: at_zero(f) for f in (abs, math.fabs, np.abs, np.fabs, np.sign, np.heaviside)},
    **{f: at_whole(f) for f in (math.floor, math.ceil, math.trunc, int, np.floor, np.ceil, np.trunc)},
    **{f: at_whole(f, 0.5) for f in (round, np.rint, np.round)},
    **{f: dividing(f) for f in (math.fmod, np.fmod, np.mod, np.remainder, np.floor_divide, divmod)},
    np.clip: between(np.clip),
    np.digitize: among(np.digitize),
    **{f: into(f) for f in (np.searchsorted, bisect.bisect_left, bisect.bisect_right)},
}
METHODS = {"clip": np.clip, "searchsorted": np.searchsorted, "round": np.round, "__abs__": np.abs}  # of arrays


@mover
def followed(f: Any) -> Any:
    """What to call instead of f: the same, which tells what it compares."""
    return watched(f, followed_function)


@mover
def followed_function(f: Any) -> Any:
    """The same of a Python function: not of those that are not the program's."""
    told = SWITCHES.get(f)
    if told is not None:
        return told
    module = f.__module__
    is_theirs = type(module) is str and module.startswith(("plaingrad.", "numpy", "scipy"))
    rule = rulebook.find(f)
    if rule is not None or is_theirs:
        return f if rule is None or rule.kind in SMOOTH else deciding(f)
    return derivatives.watched(f, CALLED)


@mover
def integrand(f: Any) -> Any:
    """The integrand as code that tells what it compares."""
    return derivatives.watched(f, CALLED)


@mover
def watched(f: Any, of_function: Any = integrand) -> Any:
    """f with what `of_function` makes of the Python function behind it; itself where there is none."""
    t = type(f)
    if t is FunctionType:
        return of_function(f)
    if t is MethodType:
        return MethodType(watched(f.__func__, of_function), f.__self__)
    if t is functools.partial:
        return functools.partial(watched(f.func, of_function), *f.args, **f.keywords)
    if t is np.vectorize:
        again = copy.copy(f)
        again.pyfunc = watched(f.pyfunc, of_function)
        return again
    if isinstance(f, type) or t.__module__.startswith(("plaingrad.", "numpy", "scipy")):
        return compiled(f)
    call = next((vars(cls)["__call__"] for cls in t.__mro__ if "__call__" in vars(cls)), None)
    if type(call) is FunctionType:
        return MethodType(followed_function(call), f)
    return compiled(f)


def compiled(f: Any) -> Any:
    """The same of what is no Python code of the program's."""
    try:
        told = SWITCHES.get(f)
    except TypeError:  # it has no hash
        return f
    if told is not None:
        return told
    rule = rulebook.find(f)
    return f if isinstance(f, type) or (rule is not None and rule.kind in SMOOTH) else deciding(f)


def deciding(f: Any) -> Any:
    """f, whose calls are noted."""

    def told(*args: Any, **kwargs: Any) -> Any:
        unknown(f, args, kwargs)
        return f(*args, **kwargs)

    return told


@mover
def method(o: Any, name: str) -> Any:
    """An object with what is called instead of a method of o."""
    if isinstance(o, np.ndarray) and name in METHODS:
        return SimpleNamespace(**{name: functools.partial(SWITCHES[METHODS[name]], o)})
    return SimpleNamespace(**{name: followed(getattr(o, name))})


CALLED = {"compared": compared, "divided": divided, "prep": followed, "method": method}


@mover
def begin() -> Any:
    """From now on it is noted what is compared."""
    return TOLD.set([])


@mover
def end(token: Any) -> list[Any]:
    """What was noted."""
    told = TOLD.get()
    TOLD.reset(token)
    return told or []


def comparisons(f: Any, args: Any, x: Any) -> list[Any]:
    """What f(x) compares."""
    token = begin()
    told = []
    try:
        watched(f)(x, *args)
    finally:
        told = end(token)
    return told


def signs(pair: Any) -> tuple[int, ...]:
    """How each comparison of a pair comes out: -1, 0 or 1."""
    if isinstance(pair, Unknown):
        return ()
    a, b = pair
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        try:
            return tuple((np.greater(a, b).astype(int) - np.less(a, b)).ravel().tolist())
        except ValueError:  # shapes that do not fit
            return ()
    return (int(a > b) - int(a < b),)


def pattern(told: list[Any]) -> tuple[Any, ...]:
    """How all comparisons come out."""
    return tuple([signs(pair) for pair in told])


Reason = tuple[int, int] | None  # which pair, and which of its numbers; None: not known


@mover
def why(below: list[Any], above: list[Any]) -> Reason:
    """Which comparison comes out differently, the first."""
    for k, (a, b) in enumerate(zip(below, above, strict=False)):
        one, other = signs(a), signs(b)
        if len(one) != len(other):
            break
        for j in range(len(one)):
            if one[j] != other[j]:
                return k, j
    return None


def gap_of(told: list[Any], reason: Any) -> Any:
    """a - b of the comparison."""
    k, j = reason
    a, b = told[k]
    return np.reshape(a - b, (-1,))[j]


@mover
def undecided(below: list[Any], above: list[Any]) -> list[Any]:
    """All that may decide why the function branches, where no comparison says it."""
    is_long = len(below) != len(above) or len(below) >= MOST
    return [pair.parts if isinstance(pair, Unknown) else pair for pair in below if is_long or isinstance(pair, Unknown)]


def is_unknown(told: list[Any]) -> bool:
    """Whether there are calls that may branch by themselves."""
    return any(isinstance(pair, Unknown) for pair in told)


__all__ = ["Reason", "comparisons", "gap_of", "is_unknown", "pattern", "undecided", "watched", "why"]
