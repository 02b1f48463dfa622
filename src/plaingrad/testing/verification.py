"""`verify=True`: a gradient against differences along one random direction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from plaingrad.api.gradients import value_and_grad
from plaingrad.copying import deep_copy
from plaingrad.diagnosis.debugging import debugged
from plaingrad.errors import VerificationError
from plaingrad.testing.case import as_real
from plaingrad.testing.differences import along
from plaingrad.testing.structures import flat, leaf_inner, leaves_of, random_like
from plaingrad.testing.suspects import suspects

RTOL, UNIT = 1e-5, 2.3e-16


def verified(
    operator: Any,
    derivative: Callable[..., Any],
    f: Callable[..., Any],
    options: tuple[Any, ...],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    debug: bool,
) -> Any:
    """derivative(*args, **kwargs), the gradient of `f`, if differences confirm it.

    Raises:
        VerificationError: they do not.
    """
    argnums, has_aux = options
    given = tuple([as_real(x) for x in deep_copy(args)])
    found = debugged(derivative, *args, **kwargs) if debug else derivative(*args, **kwargs)
    with_value = operator is value_and_grad
    x_bars = found[1] if with_value else found[0] if has_aux else found
    positions = argnums if isinstance(argnums, tuple) else (argnums,)
    positions = tuple([n % len(args) for n in positions])
    bars = dict(zip(positions, x_bars if isinstance(argnums, tuple) else (x_bars,), strict=True))

    def value(*some: Any) -> Any:
        """f, without what it returns besides."""
        y = f(*some, **deep_copy(kwargs))
        return y[0] if has_aux else y

    check(value, f, given, bars)
    return found


def check(f: Callable[..., Any], whole: Any, args: tuple[Any, ...], bars: dict[int, Any]) -> None:
    """Compare gradients `bars`, by position, with differences of `f` along one random direction."""
    random = np.random.default_rng(0)
    make = random_like(random)
    names = [leaf for n, x in enumerate(args) for leaf in leaves_of(x, f"argument {n}")]
    found = [bar for n, x in enumerate(args) for bar in flat(bars.get(n), x)]
    moves = [n in bars for n, x in enumerate(args) for _ in leaves_of(x, "")]
    ways = [make(leaf.x) if moving else None for leaf, moving in zip(names, moves, strict=True)]
    ours, theirs = compared(f, args, ways, found)
    if ours is None:
        return
    lines = [f"the gradient of {getattr(whole, '__qualname__', repr(whole))} is not what differences say"]
    lines.append(f"  Along a random direction the gradient gives {ours:.10g}, differences {theirs:.10g}.")
    wrong = []
    for k, leaf in enumerate(names):
        if ways[k] is not None:
            alone = [way if j == k else None for j, way in enumerate(ways)]
            ours, theirs = compared(f, args, alone, found)
            if ours is not None:
                wrong.append(leaf.path)
                lines.append(f"  {leaf.path}: the gradient gives {ours:.10g}, differences {theirs:.10g}.")
    lines += [f"  {text}" for text in suspects(f, args, tuple(bars), wrong)]
    raise VerificationError("\n".join([*lines, "  See docs: errors#verification"]))


def compared(f: Any, args: tuple[Any, ...], ways: list[Any], bars: list[Any]) -> tuple[Any, Any]:
    """(the derivative along `ways` by the gradient, that by differences) where they differ; else (None, None)."""
    ours = sum([leaf_inner(bar, way) for bar, way in zip(bars, ways, strict=True) if way is not None], 0.0)
    size = sum(
        [abs(leaf_inner(bar, way)) for bar, way in zip(bars, ways, strict=True) if way is not None], 0.0
    )
    single = any(getattr(way, "dtype", None) in (np.float32, np.complex64) for way in ways)
    unit, rtol = (6e-8, 1e-2) if single else (UNIT, RTOL)
    within = rtol * max(size, 1e-300)
    estimate = along(f, args, ways, 1.0, unit, expected=ours, within=within)
    if ours != ours and estimate.value != estimate.value:
        return None, None
    if estimate.value == estimate.value:
        slack = estimate.error + estimate.noise
        if abs(ours - estimate.value) <= within + rtol * abs(estimate.value) + slack:
            return None, None
    return ours, estimate.value
