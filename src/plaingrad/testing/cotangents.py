"""Cotangents that a pullback seldom gets in a test: with zeros, large and small ones, and in other memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from plaingrad.tangents import NoTangent, unthunk
from plaingrad.testing.case import Case
from plaingrad.testing.fitting import as_rules_get_it, largest, projected
from plaingrad.testing.structures import combined, copied, flat, leaves_of, tangent_like
from plaingrad.testing.words import in_short

UNITS = 6  # elements of the result that get a cotangent of their own
FACTORS = {
    2: (64.0,),
    4: (1e4, 1e-4),
    8: (1e6, 1e-6),
}  # bytes of a real number: what a cotangent is multiplied by


def pulled(pullback: Callable[..., Any], y_bar: Any) -> Any:
    """The cotangents for another cotangent; where the pullback raises, the exception."""
    try:
        return [unthunk(bar) for bar in pullback(y_bar)]
    except Exception as error:
        return error


def look_at_cotangents(case: Case, y: Any, pullback: Callable[..., Any], y_bar: Any, bars: list[Any]) -> None:
    """The pullback of a rule at other cotangents, which by linearity tell what it must give."""
    known = {
        n: projected(bars[n], case.args[n])
        for n in case.positions
        if n < len(bars) and bars[n] is not NoTangent and all(map(is_finite, flat(bars[n], case.args[n])))
    }

    def compare(check: str, words: str, given: Any, expected: dict[int, Any]) -> bool:
        found = pulled(pullback, given)
        if isinstance(found, Exception):
            case.report(check, f"the pullback raises for {words}: {in_short(found)}")
            return False
        before = len(case.problems)
        for n, bar in expected.items():
            if n < len(found):
                x = case.args[n]
                part = projected(found[n], x)
                case.compare(
                    check, f"argument {n}", part, bar, x, f"for {words} the cotangent is", (known[n],)
                )
        return len(case.problems) == before

    zero = {n: combined(0.0, bar, 0.0, bar, case.args[n]) for n, bar in known.items()}
    nothing = tangent_like(y, lambda leaf: leaf * 0 if isinstance(leaf, np.ndarray) else type(leaf)(0))
    if not compare("zero", "a y_bar of zeros", as_rules_get_it(nothing, y), zero):
        return
    for where, only, others in with_zeros(case, y, y_bar):
        first = pulled(pullback, as_rules_get_it(copied(only), y))
        if isinstance(first, Exception):
            case.report(
                "unit", f"the pullback raises for a y_bar that is zero but at {where}: {in_short(first)}"
            )
            return
        rest = {}
        for n, bar in known.items():
            x = case.args[n]
            part = projected(first[n], x)
            if not all(map(is_finite, flat(part, x))):
                case.report("unit", f"argument {n}: nan or inf for a y_bar that is zero but at {where}")
                return
            rest[n] = combined(1.0, bar, -1.0, part, x)
        words = f"a y_bar that is zero at {where} (the difference of those for all of it, and for that alone)"
        if not compare("unit", words, as_rules_get_it(others, y), rest):
            return
    width = smallest_real(case, y)
    for factor in FACTORS.get(width, FACTORS[8]):
        sizes = [largest(part) for n, bar in known.items() for part in flat(bar, case.args[n])]
        if max(sizes, default=0.0) * factor > (3e4 if width == 2 else 1e30):
            continue
        times = {n: combined(factor, bar, 0.0, bar, case.args[n]) for n, bar in known.items()}
        scaled = combined(factor, y_bar, 0.0, y_bar, y)
        if not compare("size", f"a y_bar {factor:g} times as large", as_rules_get_it(scaled, y), times):
            return
    for words, arranged in layouts(y, y_bar):
        if not compare("layout", words, as_rules_get_it(arranged, y), known):
            return


def is_finite(part: Any) -> bool:
    """Whether a tangent of a leaf is finite; None is zero."""
    return part is None or bool(np.all(np.isfinite(np.asarray(part, complex))))


def smallest_real(case: Case, y: Any) -> int:
    """The bytes of the least precise real number among the results and the differentiated arguments."""
    sizes = [8]
    for leaf in (*leaves_of(y, ""), *leaves_of(case.active, "")):
        kind = getattr(leaf.x, "dtype", None)
        if kind is not None and kind.kind in "fc":
            sizes.append(kind.itemsize // (2 if kind.kind == "c" else 1))
    return min(sizes)


def with_zeros(case: Case, y: Any, y_bar: Any) -> Iterator[tuple[str, Any, Any]]:
    """(one place in the result, y_bar at that place alone, y_bar everywhere else)."""
    places = [
        (k, leaf.path, at)
        for k, leaf in enumerate(leaves_of(y, "the result"))
        for at in (np.ndindex(leaf.x.shape) if isinstance(leaf.x, np.ndarray) else (None,))
    ]
    if len(places) < 2:
        return
    if len(places) > UNITS:
        places = [places[k] for k in sorted(case.random.choice(len(places), UNITS, replace=False).tolist())]
    for k, path, at in places:
        only, others = (part_of(y, y_bar, k, at, alone) for alone in (True, False))
        yield path if at is None or at == () else f"{path}[{', '.join(map(str, at))}]", only, others


def part_of(y: Any, y_bar: Any, chosen: int, at: Any, alone: bool) -> Any:
    """`y_bar` with zeros everywhere else than at a place (`alone`), or there."""
    parts = iter(enumerate(flat(y_bar, y)))

    def make(leaf: Any) -> Any:
        k, part = next(parts)
        if not isinstance(part, np.ndarray):
            return part if (k == chosen) == alone else part * 0
        mask = np.full(part.shape, k == chosen and at is None)
        if k == chosen and at is not None:
            mask[at] = True
        return np.where(mask == alone, part, part * 0)

    return tangent_like(y, make)


def layouts(y: Any, y_bar: Any) -> Iterator[tuple[str, Any]]:
    """`y_bar` again with arrays that may not be written, and such that are not contiguous."""
    if not any(isinstance(part, np.ndarray) and part.size for part in flat(y_bar, y)):
        return

    def arranged(change: Callable[[np.ndarray], np.ndarray]) -> Any:
        parts = iter(flat(y_bar, y))

        def make(leaf: Any) -> Any:
            part = next(parts)
            return change(part) if isinstance(part, np.ndarray) else part

        return tangent_like(y, make)

    yield "a read-only y_bar", arranged(read_only)
    yield "a y_bar of every second element of an array, backwards", arranged(spaced)


def read_only(part: np.ndarray) -> np.ndarray:
    """A copy that may not be written."""
    part = part.copy()
    part.flags.writeable = False
    return part


def spaced(part: np.ndarray) -> np.ndarray:
    """The same elements in memory with gaps, from the end to the front."""
    if part.ndim == 0:
        return part
    memory = np.full((*part.shape[:-1], 2 * part.shape[-1]), np.nan, part.dtype)[..., ::-2]
    memory[...] = part
    return memory
