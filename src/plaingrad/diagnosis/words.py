"""Times and sizes in words."""

from __future__ import annotations


def seconds(time: float) -> str:
    """A time in a unit that suits it."""
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if time >= factor:
            return f"{time / factor:.3g} {unit}"
    return f"{time / 1e-9:.0f} ns" if time > 0 else "0"


def size(count: int) -> str:
    """A number of bytes in a unit that suits it."""
    if abs(count) < 1000:
        return f"{count} B"
    unit, factor = next(((u, c) for u, c in (("kB", 1e3), ("MB", 1e6)) if abs(count) < 1000 * c), ("GB", 1e9))
    return f"{count / factor:.3g} {unit}"
