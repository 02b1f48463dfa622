"""Methods of lists of arrays that Numba gets wrong, as functions that count references."""

from __future__ import annotations

from plaingrad.native.runtime.declare import register_jitable


@register_jitable
def popped(xs, k):  # type: ignore[no-untyped-def]
    """xs.pop(k), of which Numba (0.68) gives the array away without counting that reference: it is freed too early."""
    n = len(xs)
    if n == 0:
        raise IndexError("pop from empty list")
    at = k + n if k < 0 else k
    if at < 0 or at >= n:
        raise IndexError("pop index out of range")
    x = xs[at]
    for j in range(at, n - 1):
        xs[j] = xs[j + 1]
    xs.pop()
    return x


@register_jitable
def emptied(xs):  # type: ignore[no-untyped-def]
    """xs.clear(), after which Numba (0.68) never frees the arrays."""
    while len(xs) > 0:
        xs.pop()


OURS = (popped, emptied)
