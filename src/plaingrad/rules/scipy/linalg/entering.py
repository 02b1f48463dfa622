"""How a function of `scipy.linalg` gets its rule: one core for one problem, and batches of it.

A core takes what the function takes and returns `(z, pullback, pushforward)`, for arrays with core dimensions only. The
rule of the public function loops over batches as SciPy does, and sums what was broadcast.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.linalg

from plaingrad.errors import MissingRuleError
from plaingrad.rulebook import Rule
from plaingrad.rules.pushforwards import joined, varies
from plaingrad.rules.scipy.forms import find
from plaingrad.tangents import NoTangent, ZeroTangent, is_zero, unthunk

sl: Any = scipy.linalg  # what it returns depends on options in ways that its types do not say
MODULES = ("scipy.linalg",)
RULES: dict[int, Rule] = {}  # by the identity of the function


def keep(rule: Rule) -> None:
    """Let the rulebook have `rule`."""
    RULES.setdefault(id(rule.function), rule)


def gathered() -> Iterator[Rule]:
    """The rules stated so far."""
    return iter([*RULES.values()])


def place_of(code: Any) -> str:
    """Where a function is written."""
    return f"{code.co_filename}:{code.co_firstlineno}"


def entered(
    *names: Any, dims: tuple[Any, ...], modules: tuple[str, ...] = MODULES, batches: bool = True
) -> Any:
    """Decorate the core of the functions of these names.

    Args:
        names: of the functions that are found in `modules`, or functions; the core gets the function first.
        dims: for each array argument, by position, its core dimensions, None for one that is no array; "1|2" is a
            vector if it has one axis and else matrices.
        modules: where to look.
        batches: loop over leading axes; without it the core deals with them.
    """

    def enter(core: Any) -> Any:
        for name in names:
            function = find(name, modules) if isinstance(name, str) else name
            if function is not None:
                keep(rule_of(function, core, dims if batches else ()))
        return core

    return enter


def rule_of(function: Any, core: Any, dims: tuple[Any, ...]) -> Rule:
    """The rule that `core` says."""
    parameters = inspect.signature(core).parameters.values()
    plain = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD][1:]
    names = tuple([p.name for p in plain])
    defaults = tuple([p.default for p in plain])

    flags = overwriting(function)

    def given(args: tuple[Any, ...], options: dict[str, Any]) -> tuple[list[Any], list[Any]]:
        """All arguments by position, arrays as arrays, and what stands behind them. Nothing is written over."""
        args = tuple([False if k in flags else x for k, x in enumerate(args)])
        options = {name: x for name, x in options.items() if not name.startswith("overwrite_")}
        known: list[Any] = [*args[: len(names)]]
        for name, default in zip(names[len(known) :], defaults[len(known) :], strict=True):
            if name in options:
                known.append(options.pop(name))
            elif default is inspect.Parameter.empty:
                function(*args, **options)  # it says what is missing
            else:
                known.append(default)
        for k, dim in enumerate(dims):
            if dim is not None and known[k] is not None:
                known[k] = np.asarray(known[k])
        return known, [*args[len(names) :], options]

    def linalg_rrule(*args: Any, **options: Any) -> Any:
        known, rest = given(args, options)
        z, pullback, _ = solved(core, function, dims, known, rest)
        return z, pullback

    def linalg_frule(*args: Any, **options: Any) -> Any:
        known, rest = given(args, options)
        z, _, pushforward = solved(core, function, dims, known, rest)

        def linalg_pushforward(dots: Any) -> Any:
            every = [joined(x_dot, x) if varies(x_dot) else x_dot for x_dot, x in zip(dots, known, strict=False)]
            every += [ZeroTangent] * (len(names) - len(every))
            return pushforward(*every)

        return z, linalg_pushforward

    frule = linalg_frule if "no_pushforward" not in core.__code__.co_names else None
    return Rule(function, "full", linalg_rrule, frule=frule, names=names, source=place_of(core.__code__))


def overwriting(function: Any) -> frozenset[int]:
    """The positions of `overwrite_a` and the like."""
    try:
        names = inspect.signature(function).parameters
    except (TypeError, ValueError):  # C code says nothing
        return frozenset()
    return frozenset([k for k, name in enumerate(names) if name.startswith("overwrite_")])


def solved(core: Any, function: Any, dims: tuple[Any, ...], known: list[Any], rest: list[Any]) -> Any:
    """What the core returns; for a batch, the same of all of it."""
    shapes: list[tuple[int, ...]] = []
    for x, dim in zip(known, dims, strict=False):
        n = 0 if dim is None or x is None else np.ndim(x) - core_ndim(x, dim)
        shapes.append(np.shape(x)[:n] if n > 0 else ())
    if not any(shapes):
        return core(function, *known, *rest[:-1], **rest[-1])
    batch = np.broadcast_shapes(*shapes)
    if math.prod(batch) == 0 or not hasattr(find("solve_triangular", MODULES), "__wrapped__"):
        function(*known, *rest[:-1], **rest[-1])  # it says what it does not take
    return of_batch(core, function, dims, known, rest, batch)


def core_ndim(x: Any, dim: Any) -> int:
    """The number of core dimensions of the array `x`."""
    return min(np.ndim(x), 2) if dim == "1|2" else dim


def of_batch(core: Any, function: Any, dims: Any, known: list[Any], rest: list[Any], batch: tuple[int, ...]) -> Any:
    """The core for each problem of a batch."""
    places = [k for k, dim in enumerate(dims) if dim is not None and known[k] is not None]

    def whole(x: Any, k: int) -> Any:
        """An array, or its tangent, with one leading axis for the batch."""
        shape = np.shape(known[k])[np.ndim(known[k]) - core_ndim(known[k], dims[k]) :]
        full = (*batch, *shape)  # a view of what is broadcast is read-only, and the oldest SciPy takes no such arrays
        return np.reshape(x if np.shape(x) == full else np.array(np.broadcast_to(x, full)), (-1, *shape))

    arrays = {k: whole(known[k], k) for k in places}
    count = math.prod(batch)
    each = []
    for i in range(count):
        mine = [arrays[k][i] if k in arrays else x for k, x in enumerate(known)]
        each.append(core(function, *mine, *rest[:-1], **rest[-1]))

    def stacked(parts: list[Any]) -> Any:
        if isinstance(parts[0], tuple):
            return tuple([stacked([part[j] for part in parts]) for j in range(len(parts[0]))])
        if parts[0] is None or parts[0] is NoTangent or all(part is ZeroTangent for part in parts):
            return parts[0]
        return np.reshape(np.stack(parts), (*batch, *np.shape(parts[0])))

    def batch_pullback(z_bar: Any) -> Any:
        found = [pull(one_of(z_bar, i, len(batch), count)) for i, (_, pull, _) in enumerate(each)]
        bars: list[Any] = []
        for k, x in enumerate(known):
            parts = [unthunk(bar[k]) if k < len(bar) else NoTangent for bar in found]
            if k not in arrays or all(is_zero(part) for part in parts):
                bars.append(parts[0])
                continue
            filled = [np.zeros(np.shape(arrays[k])[1:]) if is_zero(part) else part for part in parts]
            bars.append(unbroadcast(stacked(filled), np.shape(x)))
        return tuple(bars)

    def batch_pushforward(*dots: Any) -> Any:
        wholes = [whole(x_dot, k) if k in arrays and varies(x_dot) else x_dot for k, x_dot in enumerate(dots)]
        pushed = []
        for i, (_, _, push) in enumerate(each):
            pushed.append(push(*[x_dot[i] if k in arrays and varies(x_dot) else x_dot for k, x_dot in enumerate(wholes)]))
        return stacked(pushed)

    return stacked([z for z, _, _ in each]), batch_pullback, batch_pushforward


def one_of(z_bar: Any, i: int, axes: int, count: int) -> Any:
    """What belongs to problem `i` of the cotangent of a batch."""
    if isinstance(z_bar, tuple):
        return tuple([one_of(part, i, axes, count) for part in z_bar])
    z_bar = unthunk(z_bar)
    if is_zero(z_bar):
        return z_bar
    return np.reshape(z_bar, (count, *np.shape(z_bar)[axes:]))[i]


def unbroadcast(x_bar: Any, shape: tuple[int, ...]) -> Any:
    """The sum over what was broadcast."""
    extra = np.ndim(x_bar) - len(shape)
    x_bar = np.sum(x_bar, axis=tuple(range(extra))) if extra else x_bar
    ones = tuple([k for k, n in enumerate(shape) if n == 1 and np.shape(x_bar)[k] != 1])
    return np.sum(x_bar, axis=ones, keepdims=True) if ones else x_bar


def no_pushforward(*dots: Any) -> Any:
    """In the place of a pushforward: the pullback is transposed instead."""
    raise AssertionError


def defined(*names: str, modules: tuple[str, ...] = MODULES) -> Callable[[Any], Any]:
    """Decorate a Python definition, in terms of functions with rules; it runs as user code would."""

    def enter(definition: Any) -> Any:
        for name in names:
            function = find(name, modules)
            if function is not None:
                keep(Rule(function, "composed", definition=definition, source=place_of(definition.__code__)))
        return definition

    return enter


def none(*names: str, modules: tuple[str, ...] = MODULES) -> None:
    """Enter functions whose results are indices, integers, or constant."""
    for name in names:
        function = find(name, modules)
        if function is not None:
            keep(Rule(function, "no_tangent", source=f"{__file__}:1"))


def refusal(name: str, why: str, instead: str = "") -> MissingRuleError:
    """The error for a function, or a form of it, that has no derivative here."""
    way = f"Instead: {instead}" if instead else "If it does not matter: plaingrad.nondifferentiable"
    return MissingRuleError(f"scipy.linalg.{name} has no derivative here: {why}.\n  {way}\n  See docs: errors#missing-rule")


__all__ = ["defined", "entered", "find", "gathered", "no_pushforward", "none", "refusal", "rule_of", "sl"]
