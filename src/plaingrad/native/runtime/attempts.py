"""Whether a call would raise, asked before it is made: what becomes of a `try` around it."""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.native.runtime.declare import register_jitable


@register_jitable
def go_together(shape, other):  # type: ignore[no-untyped-def]
    """Whether arrays of these shapes can be combined elementwise."""
    n, m = len(shape), len(other)
    for k in range(1, min(n, m) + 1):
        a, b = shape[n - k], other[m - k]
        if a != b and a != 1 and b != 1:
            return False
    return True


@register_jitable
def is_place(index, n):  # type: ignore[no-untyped-def]
    """Whether a sequence of `n` has an element there, counted from the end if the index is negative."""
    return -n <= index < n


@register_jitable
def has_place(a, index):  # type: ignore[no-untyped-def]
    """Whether a vector has such an element."""
    return -a.size <= index < a.size


@register_jitable
def may_have_shape(shape):  # type: ignore[no-untyped-def]
    """Whether there are arrays of this shape."""
    try:
        np.empty(shape, np.int8)
    except Exception:
        return False
    return True


@register_jitable
def cholesky_succeeds(a):  # type: ignore[no-untyped-def]
    """Whether np.linalg.cholesky(a) raises nothing."""
    try:
        np.linalg.cholesky(a)
    except Exception:
        return False
    return True


@register_jitable
def inv_succeeds(a):  # type: ignore[no-untyped-def]
    """Whether np.linalg.inv(a) raises nothing."""
    try:
        np.linalg.inv(a)
    except Exception:
        return False
    return True


@register_jitable
def solve_succeeds(a, b):  # type: ignore[no-untyped-def]
    """Whether np.linalg.solve(a, b) raises nothing."""
    try:
        np.linalg.solve(a, b)
    except Exception:
        return False
    return True


@register_jitable
def det_succeeds(a):  # type: ignore[no-untyped-def]
    """Whether np.linalg.det(a) raises nothing."""
    try:
        np.linalg.det(a)
    except Exception:
        return False
    return True


@register_jitable
def slogdet_succeeds(a):  # type: ignore[no-untyped-def]
    """Whether np.linalg.slogdet(a) raises nothing."""
    try:
        np.linalg.slogdet(a)
    except Exception:
        return False
    return True


@register_jitable
def eigh_succeeds(a):  # type: ignore[no-untyped-def]
    """Whether np.linalg.eigh(a) and eigvalsh(a) raise nothing."""
    try:
        np.linalg.eigh(a)
    except Exception:
        return False
    return True


OF = (
    (np.linalg.cholesky, cholesky_succeeds),
    (np.linalg.inv, inv_succeeds),
    (np.linalg.solve, solve_succeeds),
    (np.linalg.det, det_succeeds),
    (np.linalg.slogdet, slogdet_succeeds),
    (np.linalg.eigh, eigh_succeeds),
    (np.linalg.eigvalsh, eigh_succeeds),
)


def asked_before(f: Any) -> Any:
    """The function that says whether a call of `f` would raise nothing; None if there is none."""
    return next((asked for g, asked in OF if f is g), None)


NAMES = ("go_together", "is_place", "has_place", "may_have_shape", *[asked.__name__ for _, asked in OF])
