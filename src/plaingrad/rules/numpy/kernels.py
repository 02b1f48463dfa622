"""Short forms of rules, for arrays of float64 and the options that are common.

In the place of a rule the compiled core takes what is here: a rule in both modes, which returns None where the rule
itself has to do it (ties, poles, numbers near the ends of the range, options that are rare), and which gives the same
derivatives. `KERNELS` has them by function; `MULTILINEAR` says which are linear in each of their arrays, `PARTS` which
entry of the result has a derivative.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from plaingrad import rulebook
from plaingrad.rule_data import Rule
from plaingrad.rules.numpy.einsum import einsum_bar, labels_of
from plaingrad.tangents import NoTangent, Thunk, ZeroTangent

la = np.linalg
KERNELS: dict[Any, Rule] = {}
MULTILINEAR: set[Any] = set()
PARTS: dict[Any, int] = {la.slogdet: 1}
LEAST, MOST = 1e-140, 1e140  # between these no square loses digits


def kernel(rrule: Callable[..., Any], frule: Callable[..., Any], *functions: Any, kind: Any = "full") -> None:
    """Enter a short form of the rules of functions."""
    for f in functions:
        KERNELS[f] = Rule(f, kind, rrule, frule, affine=kind == "affine")


def is_moderate(z: Any) -> bool:
    """Whether lengths are neither zero nor near the ends of the range."""
    if type(z) is np.float64:
        return bool(LEAST < z < MOST)
    return bool(((z > LEAST) & (z < MOST)).all())


def kept(z: Any, axis: Any, keepdims: Any) -> Any:
    """`z`, with an axis of length 1 for the one that was summed over."""
    return z if axis is None or keepdims else np.expand_dims(z, axis)


# -- Einstein summation


@functools.lru_cache(1000)
def backwards(subscripts: str) -> tuple[str, ...] | None:
    """What the cotangent of each operand is summed by, of z_bar and the other operands; None where that is not all."""
    left, arrow, result = subscripts.replace(" ", "").partition("->")
    words = left.split(",")
    if not arrow or "." in subscripts or len(words) < 2:
        return None
    found = []
    for k, word in enumerate(words):
        others = [*words[:k], *words[k + 1 :]]
        if len(set(word)) < len(word) or not set(word) <= set(result).union(*others):
            return None
        found.append(",".join([result, *others]) + "->" + word)
    return tuple(found)


def einsum_rrule(subscripts: str, *arrays: Any, optimize: bool = False) -> Any:
    """Of several arrays."""
    if len(arrays) < 2 or type(subscripts) is not str:
        return None
    z = np.einsum(subscripts, *arrays, optimize=optimize)
    quick = backwards(subscripts)

    def einsum_pullback(z_bar: Any) -> Any:
        faster = bool(optimize) or len(arrays) > 2 or np.size(z_bar) > 1000

        def bar(k: int) -> Any:
            if quick is not None and has_sizes(subscripts, arrays):
                others = (*arrays[:k], *arrays[k + 1 :])
                return np.einsum(quick[k], z_bar, *others, optimize=faster)
            labels, result = labels_of(subscripts, [np.ndim(a) for a in arrays])
            return einsum_bar(z_bar, k, arrays, labels, result, faster)

        return (NoTangent, *[Thunk(functools.partial(bar, k)) for k in range(len(arrays))])

    return z, einsum_pullback


def has_sizes(subscripts: str, arrays: Any) -> bool:
    """Whether every label has one length: an axis of length 1 may stand for a longer one."""
    sizes: dict[str, int] = {}
    for word, a in zip(subscripts.replace(" ", "").partition("->")[0].split(","), arrays, strict=True):
        for label, n in zip(word, np.shape(a), strict=True):
            if sizes.setdefault(label, n) != n:
                return False
    return True


def einsum_frule(subscripts: str, *arrays: Any, optimize: bool = False) -> Any:
    """The sum over operands, each replaced by its tangent."""
    if len(arrays) < 2 or type(subscripts) is not str:
        return None
    z = np.einsum(subscripts, *arrays, optimize=optimize)

    def einsum_pushforward(dots: Any) -> Any:
        z_dot: Any = ZeroTangent
        for k, x_dot in enumerate(dots[1:]):
            if x_dot is not ZeroTangent:
                faster = bool(optimize) or len(arrays) > 2 or np.size(x_dot) > 1000
                term = np.einsum(subscripts, *arrays[:k], x_dot, *arrays[k + 1 :], optimize=faster)
                z_dot = term if z_dot is ZeroTangent else z_dot + term
        return z_dot

    return z, einsum_pushforward


kernel(einsum_rrule, einsum_frule, np.einsum)
MULTILINEAR.add(np.einsum)


# -- extremes


def enter_extreme(f: Any) -> None:
    """The largest or smallest element, where none ties with it."""

    def winners(a: Any, z: Any, axis: Any, keepdims: Any) -> Any:
        mask = a == kept(z, axis, keepdims)
        unique = np.count_nonzero(mask) == np.size(z) and not (z != z).any()
        return mask if unique else None

    def extreme_rrule(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        if out is not None or type(axis) is tuple or (axis is None and keepdims):
            return None
        z = f(a, axis, None, keepdims)

        def extreme_pullback(z_bar: Any) -> Any:
            mask = winners(a, z, axis, keepdims)
            if mask is None:
                rule = rulebook.find(f)
                assert rule is not None
                assert rule.rrule is not None
                return rule.rrule(a, axis, None, keepdims)[1](z_bar)
            return (np.where(mask, kept(z_bar, axis, keepdims), 0.0),)

        return z, extreme_pullback

    def extreme_frule(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        if out is not None or type(axis) is tuple or (axis is None and keepdims):
            return None
        z = f(a, axis, None, keepdims)

        def extreme_pushforward(dots: Any) -> Any:
            mask = winners(a, z, axis, keepdims)
            if mask is None:
                rule = rulebook.find(f)
                assert rule is not None
                assert rule.frule is not None
                return rule.frule(a, axis, None, keepdims)[1](dots)
            if axis is None:
                return np.float64(dots[0][mask][0])
            return np.add.reduce(np.where(mask, dots[0], 0.0), axis, None, None, keepdims)

        return z, extreme_pushforward

    KERNELS[f] = Rule(f, "full", extreme_rrule, extreme_frule, affine=True)


for _f in (np.max, np.min, np.ndarray.max, np.ndarray.min):
    enter_extreme(_f)


# -- differences of neighbours -----------------------------------------------------------------------------------------


def diff_rrule(a: Any, n: int = 1, axis: int = -1) -> Any:
    """Each difference goes to one neighbour, and its negative to the other."""
    if n != 1 or type(axis) is not int:
        return None
    after, before = sides(axis % a.ndim, a.ndim)
    shape = a.shape

    def diff_pullback(z_bar: Any) -> Any:
        a_bar = np.zeros(shape)
        a_bar[after] += z_bar
        a_bar[before] -= z_bar
        return (a_bar,)

    return np.diff(a, 1, axis), diff_pullback


def sides(axis: int, ndim: int) -> tuple[Any, Any]:
    """Where elements of an array are that have one before them along an axis, and one behind."""
    ahead = (slice(None),) * axis
    return (*ahead, slice(1, None)), (*ahead, slice(None, -1))


def diff_frule(a: Any, n: int = 1, axis: int = -1) -> Any:
    """The differences of the tangent."""
    if n != 1 or type(axis) is not int:
        return None
    return np.diff(a, 1, axis), lambda dots: np.diff(dots[0], 1, axis)


KERNELS[np.diff] = Rule(np.diff, "full", diff_rrule, diff_frule, affine=True)


# -- lengths, variances, determinants


def is_length(x: Any, ord: Any, axis: Any) -> bool:
    """Whether the norm is a root of a sum of squares."""
    return (axis is None or type(axis) is int) and (
        ord is None or (type(ord) is int and ord == 2 and (x.ndim == 1 or axis is not None))
    )


def norm_rrule(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """x_bar = z_bar x / z."""
    if not is_length(x, ord, axis):
        return None
    z = la.norm(x, ord, axis, keepdims)
    if not is_moderate(z) or (axis is None and keepdims):
        return None
    return z, lambda z_bar: (kept(z_bar / z, axis, keepdims) * x,)


def norm_frule(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """z_dot = x . x_dot / z."""
    if not is_length(x, ord, axis):
        return None
    z = la.norm(x, ord, axis, keepdims)
    if not is_moderate(z) or (axis is None and keepdims):
        return None
    return z, lambda dots: np.add.reduce(x * dots[0], axis, None, None, keepdims) / z


kernel(norm_rrule, norm_frule, la.norm)


def spread_of(a: Any, axis: Any, ddof: Any) -> Any:
    """The distances from the mean, and what their squares are divided by; None where a short form is not enough."""
    n = (a.size if axis is None else a.shape[axis]) - ddof
    if n <= 0:
        return None
    return a - a.mean(axis, keepdims=True), n


def enter_variance(f: Any, is_root: bool) -> None:
    """a_bar = 2 z_bar (a - mean) / n of the variance; half of that, divided by z, of its root."""

    def of(a: Any, axis: Any, dtype: Any, out: Any, ddof: Any, keepdims: Any) -> Any:
        rare = dtype is not None or out is not None or type(ddof) is not int or (axis is None and keepdims)
        if rare or not (axis is None or type(axis) is int):
            return None
        z = f(a, axis, None, None, ddof, keepdims)
        found = spread_of(a, axis, ddof)
        return None if found is None or (is_root and not is_moderate(z)) else (z, *found)

    def variance_rrule(
        a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False
    ) -> Any:
        found = of(a, axis, dtype, out, ddof, keepdims)
        if found is None:
            return None
        z, apart, n = found
        return z, lambda z_bar: (
            kept(z_bar / (z * n) if is_root else z_bar * (2.0 / n), axis, keepdims) * apart,
        )

    def variance_frule(
        a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False
    ) -> Any:
        found = of(a, axis, dtype, out, ddof, keepdims)
        if found is None:
            return None
        z, apart, n = found

        def variance_pushforward(dots: Any) -> Any:
            total = np.add.reduce(apart * dots[0], axis, None, None, keepdims)
            return total / (z * n) if is_root else total * (2.0 / n)

        return z, variance_pushforward

    kernel(variance_rrule, variance_frule, f)


for _f in (np.var, np.ndarray.var):
    enter_variance(_f, False)
for _f in (np.std, np.ndarray.std):
    enter_variance(_f, True)


def slogdet_rrule(a: Any) -> Any:
    """A_bar = z_bar A^-T, of the logarithm."""
    if a.ndim != 2:
        return None
    z = la.slogdet(a)
    return (z, lambda log_bar: (log_bar * la.inv(a).T,)) if np.isfinite(z[1]) else None


def slogdet_frule(a: Any) -> Any:
    """tr(A^-1 A_dot)."""
    if a.ndim != 2:
        return None
    z = la.slogdet(a)
    return (z, lambda dots: np.add.reduce(la.inv(a).T * dots[0], None)) if np.isfinite(z[1]) else None


kernel(slogdet_rrule, slogdet_frule, la.slogdet)
