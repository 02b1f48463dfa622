"""Filters between changes of rate. The kernel works along the last axis."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.signal import _upfirdn_apply

from plaingrad.rulebook import Rule
from plaingrad.rules.numpy.names import conj
from plaingrad.rules.pushforwards import dot_of, pushed, total
from plaingrad.rules.scipy.compiled import constant, definitions, each, enter
from plaingrad.rules.scipy.forms import find, keep
from plaingrad.tangents import NoTangent, Thunk

mode_number = getattr(_upfirdn_apply, "mode_enum", lambda name: -1)
PADDED = {mode_number(ours): theirs for ours, theirs in (("symmetric", "symmetric"), ("edge", "edge"), ("wrap", "wrap"), ("reflect", "reflect"))}
LINE, SMOOTH, ANTISYMMETRIC = (mode_number(name) for name in ("line", "smooth", "antisymmetric"))

# ---------------------------------------------------------------------------------------------------------
# y[n] = sum over k of h[n down - k up] x[k]


def padded(x, left, right):
    """Zeros on both sides along the last axis."""
    sides = [np.zeros((*x.shape[:-1], n), x.dtype) for n in (left, right)]
    return np.concatenate([sides[0], x, sides[1]], -1)


def output_length(taps: int, n: int, up: int, down: int) -> int:
    """How many results there are."""
    return ((n - 1) * up + taps - 1) // down + 1


constant(output_length)


def changed_rate(h: Any, x: Any, up: int, down: int) -> Any:
    """y, by the compiled function, which takes h in phases."""
    dtype = np.result_type(h, x, np.float32)
    rows = -(-len(h) // up)
    phases = np.zeros(rows * up, dtype)
    phases[: len(h)] = h
    phases = np.ascontiguousarray(phases.reshape(rows, up).T[:, ::-1].ravel())
    y = np.zeros((*x.shape[:-1], output_length(len(h), x.shape[-1], up, down)), dtype)
    _upfirdn_apply._apply(np.ascontiguousarray(x, dtype), phases, y, up, down, x.ndim - 1, 0, 0.0)
    return y


def changed_rate_rrule(h: Any, x: Any, up: int, down: int) -> Any:
    n, taps = x.shape[-1], len(h)

    def x_cotangent(y_bar: Any) -> Any:
        """The same with up and down exchanged and h reversed; zeros before it make its delay a multiple of up."""
        delay = -(taps - 1) % up
        reversed_h = np.concatenate([np.zeros(delay, h.dtype), conj(h)[::-1]])
        first = (taps - 1 + delay) // up
        part = changed_rate(reversed_h, y_bar, down, up)[..., first : first + n]
        return padded(part, 0, n - part.shape[-1])

    def tap(y_bar: Any, j: int) -> Any:
        """The sum of y_bar[m] conj(x[k]) over m down - k up = j."""
        k = next((k for k in range(down) if (j + k * up) % down == 0 and k < n), None)
        if k is None:
            return 0.0 * y_bar.sum()
        left, right = y_bar[..., (j + k * up) // down :: up], conj(x)[..., k::down]
        length = min(left.shape[-1], right.shape[-1])
        return (left[..., :length] * right[..., :length]).sum()

    def changed_rate_pullback(y_bar: Any) -> Any:
        h_bar = Thunk(lambda: np.stack([tap(y_bar, j) for j in range(taps)]))
        return h_bar, Thunk(lambda: x_cotangent(y_bar)), NoTangent, NoTangent

    return changed_rate(h, x, up, down), changed_rate_pullback


def changed_rate_frule(h: Any, x: Any, up: int, down: int) -> Any:
    def changed_rate_pushforward(dots: Any) -> Any:
        return total(
            pushed(lambda h_dot: each(lambda part: changed_rate(part, x, up, down), h_dot, h), dots[0]),
            pushed(lambda x_dot: changed_rate(h, x_dot, up, down), dot_of(dots, 1)),
        )

    return changed_rate(h, x, up, down), changed_rate_pushforward


enter(changed_rate, changed_rate_rrule, changed_rate_frule, "bilinear")


def extended(x, n, mode, cval):
    """`n` more numbers on both sides along the last axis, by the rule that SciPy's number `mode` stands for."""
    if mode == 0:
        sides = np.full((*x.shape[:-1], n), cval, x.dtype)
        return np.concatenate([sides, x, sides], -1)
    widths = [(0, 0)] * (x.ndim - 1) + [(n, n)]
    if mode in PADDED:
        return np.pad(x, widths, PADDED[mode])
    size, k = x.shape[-1], np.arange(1, n + 1)
    first, last = x[..., :1], x[..., -1:]
    if mode == LINE:
        step = (last - first) / max(size - 1, 1)
        return np.concatenate([first - step * k[::-1], x, last + step * k], -1)
    if mode == SMOOTH:
        steps = x[..., :1] - x[..., 1:2], x[..., -1:] - x[..., -2:-1]
        return np.concatenate([first + steps[0] * k[::-1], x, last + steps[1] * k], -1)
    if mode == ANTISYMMETRIC:
        sign = 1 - 2 * ((np.arange(-n, size + n) // size) % 2)
        return np.pad(x, widths, "symmetric") * sign.astype(x.real.dtype)
    return np.pad(x, widths, "reflect", reflect_type="odd")


@definitions(_upfirdn_apply)("_apply", mutates=True)
def upfirdn(x, phases, out, up, down, axis, mode, cval):
    """`phases` is h in the order in which the compiled function reads it; `out` holds zeros."""
    h = phases.reshape(up, -1)[:, ::-1].T.ravel()
    n, x = out.shape[axis], np.moveaxis(x, axis, -1)
    first = 0
    if x.shape[-1] and (mode != 0 or cval != 0):
        reach = -(-len(h) // (up * down)) * down  # as many as a result sees, and whole steps of it
        x, first = extended(x, reach, mode, cval), reach * up // down
    y = changed_rate(h, x, up, down)[..., first : first + n]
    out[...] = np.moveaxis(padded(y, 0, n - y.shape[-1]), -1, axis)


constant(getattr(_upfirdn_apply, "_output_len", None), getattr(_upfirdn_apply, "mode_enum", None))


def solve(x1, x2):
    """The `solve` of SciPy's array namespace for NumPy, which calls NumPy's compiled code by its private name."""
    return np.linalg.solve(x1, x2[:, None])[:, 0] if x2.ndim == 1 else np.linalg.solve(x1, x2)


for where in ("scipy._lib.array_api_compat.numpy.linalg", "scipy._external.array_api_compat.numpy.linalg"):
    function = find("solve", (where,))
    if function is not None and function is not np.linalg.solve:
        keep(Rule(function, "composed", definition=solve, source=f"{__file__}:1"))
