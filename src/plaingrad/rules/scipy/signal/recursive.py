"""Recursive filters. The kernels work along the last axis, and carry the state at both ends.

A filter b, a of order m with state z (direct form II transposed, a[0] = 1) is, step by step,

    y = b[0] x + z[0],   z[j] = b[j+1] x - a[j+1] y + z[j+1]

Backwards in time runs the recursion w[n] = y_bar[n] - sum over k > 0 of a[k] w[n+k], which begins with the cotangents of
the last state, w[N+j] = z_bar[j]. Then

    x_bar[n] = sum of b[k] w[n+k],  first state's: w[j],  b_bar[k] = sum of w[n+k] x[n],  a_bar[k] = -sum of w[n+k] y[n]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.signal import _signaltools, _sigtools, _sosfilt

from plaingrad.rules.numpy.names import conj
from plaingrad.rules.pushforwards import lead_of, varies
from plaingrad.rules.scipy.compiled import definitions, each, enter
from plaingrad.rules.scipy.implicit import without_rule
from plaingrad.tangents import Thunk, ZeroTangent, is_zero, unthunk

# -- one filter: a[0] = 1, as many numbers in b as in a, one less in the state ------------------------------------------


def run(b: Any, a: Any, x: Any, z: Any) -> tuple[Any, Any]:
    """(y, last state), by the compiled filter."""
    dtype = np.result_type(b, a, x, z, np.float32)
    b, a, x = [part.astype(dtype, copy=False) for part in (b, a, x)]
    return tuple(_sigtools._linear_filter(b, a, x, -1, np.ascontiguousarray(z, dtype)))


def without_state(b: Any, a: Any, x: Any) -> Any:
    """y from rest."""
    dtype = np.result_type(b, a, x, np.float32)
    return _sigtools._linear_filter(*[part.astype(dtype, copy=False) for part in (b, a, x)], -1)


def pulse(order: int, like: Any) -> Any:
    """1, 0, ..., 0: coefficients of a filter that changes nothing."""
    return np.concatenate([np.ones(1, like.dtype), np.zeros(order, like.dtype)])


def backwards(a: Any, y_bar: Any, z_bar: Any) -> Any:
    """w, with what it begins with at its end if that is not zero."""
    order, turned = len(a) - 1, np.flip(y_bar, -1)
    a = conj(a)
    if is_zero(z_bar):
        return np.flip(without_state(pulse(order, a), a, turned), -1)
    start = [np.sum(-a[j + 1 :] * z_bar[..., : order - j], -1) for j in range(order)]
    start = np.stack(start, -1) if order else z_bar
    return np.flip(np.concatenate([np.flip(z_bar, -1), run(pulse(order, a), a, turned, start)[0]], -1), -1)


def x_from(b: Any, w: Any, n: int) -> Any:
    """The sums of conj(b[k]) w[n + k]: a finite filter, backwards, too."""
    y = without_state(conj(b), pulse(len(b) - 1, b), np.flip(w, -1))
    return np.flip(y, -1)[..., :n]


def lags(w: Any, x: Any, count: int) -> Any:
    """The sums over n of w[n + k] conj(x[n]) for all k below `count`."""
    n = x.shape[-1]
    found = []
    for k in range(count):
        part = w[..., k : n + k]
        found.append(np.sum(part * conj(x[..., : part.shape[-1]])))
    return np.stack(found)


def b_from(w: Any, x: Any, order: int) -> Any:
    """The cotangent of b."""
    return lags(w, x, order + 1)


def a_from(w: Any, y: Any, order: int) -> Any:
    """The cotangent of a, of which a[0] is 1."""
    return -np.concatenate([np.zeros(1, w.dtype), lags(w, y, order + 1)[1:]])


def first_from(w: Any, order: int) -> Any:
    """The cotangent of the first state."""
    missing = order - w.shape[-1]
    return np.concatenate([w, np.zeros((*w.shape[:-1], missing))], -1) if missing > 0 else w[..., :order]


def plain(bar: Any, like: Any) -> Any:
    """A cotangent, with zeros for one that is known to be zero."""
    return np.zeros(like.shape, like.dtype) if is_zero(bar) else unthunk(bar)


def run_rrule(b: Any, a: Any, x: Any, z: Any) -> Any:
    y, last = run(b, a, x, z)
    order = len(a) - 1

    def run_pullback(bars: Any) -> Any:
        y_bar, z_bar = plain(bars[0], y), unthunk(bars[1])
        w = Thunk(lambda: backwards(a, y_bar, z_bar))
        return (
            Thunk(lambda: b_from(unthunk(w), x, order)),
            Thunk(lambda: a_from(unthunk(w), y, order)),
            Thunk(lambda: x_from(b, unthunk(w), x.shape[-1])),
            Thunk(lambda: first_from(unthunk(w), order)),
        )

    return (y, last), run_pullback


def without_state_rrule(b: Any, a: Any, x: Any) -> Any:
    y = without_state(b, a, x)
    order = len(a) - 1

    def without_state_pullback(y_bar: Any) -> Any:
        w = Thunk(lambda: backwards(a, y_bar, ZeroTangent))
        return (
            Thunk(lambda: b_from(unthunk(w), x, order)),
            Thunk(lambda: a_from(unthunk(w), y, order)),
            Thunk(lambda: np.flip(without_state(conj(b), conj(a), np.flip(y_bar, -1)), -1)),
        )

    return y, without_state_pullback


def run_dot(b: Any, a: Any, x: Any, z: Any, y: Any, dots: Any) -> tuple[Any, Any]:
    """(y_dot, last state's) for one tangent of each of b, a, x and the first state, or for chunks of the last two."""
    b_dot, a_dot, x_dot, z_dot = dots
    order, n = len(a) - 1, x.shape[-1]
    lead = lead_of((x_dot, x), (z_dot, z))
    x_dot = x_dot if varies(x_dot) else np.zeros(lead + x.shape, y.dtype)
    z_dot = z_dot if varies(z_dot) else np.zeros((*lead, *x.shape[:-1], order), y.dtype)
    y_dot, last = run(b, a, x_dot, z_dot)
    if varies(b_dot) or varies(a_dot):
        zero = np.zeros(order + 1, y.dtype)
        b_dot = b_dot if varies(b_dot) else zero
        a_dot = np.concatenate([zero[:1], a_dot[1:]]) if varies(a_dot) else zero
        one = pulse(order, y)
        u_dot = without_state(b_dot, one, x) - without_state(a_dot, one, y)
        more, rest = run(one, a, u_dot, np.zeros((*x.shape[:-1], order), y.dtype))
        ends = []
        for j in range(order):
            part = rest[..., j]
            for i in range(min(n, order - j)):
                part = part + b_dot[j + 1 + i] * x[..., n - 1 - i] - a_dot[j + 1 + i] * y[..., n - 1 - i]
            ends.append(part)
        y_dot, last = y_dot + more, last + np.stack(ends, -1) if order else last
    return y_dot, last


def run_frule(b: Any, a: Any, x: Any, z: Any) -> Any:
    y, last = run(b, a, x, z)

    def one(dots: Any) -> Any:
        return run_dot(b, a, x, z, y, dots)

    return (y, last), lambda dots: one_by_one(one, (b, a, x, z), dots, 2)


def without_state_frule(b: Any, a: Any, x: Any) -> Any:
    y = without_state(b, a, x)

    def one(dots: Any) -> Any:
        if not varies(dots[0]) and not varies(dots[1]):
            return without_state(b, a, dots[2])
        state = np.zeros((*x.shape[:-1], len(a) - 1), y.dtype)
        return run_dot(b, a, x, state, y, (*dots, ZeroTangent))[0]

    return y, lambda dots: one_by_one(one, (b, a, x), dots, 2)


def one_by_one(one: Any, given: Any, dots: Any, coefficients: int) -> Any:
    """one(dots); for a chunk where the first few vary, of each by itself."""
    dots = (*dots, *[ZeroTangent] * (len(given) - len(dots)))
    lead = lead_of(*zip(dots, given, strict=True))
    if not any(varies(dot) for dot in dots):
        return ZeroTangent
    if not lead or not any(varies(dot) for dot in dots[:coefficients]):
        return one(dots)
    each = [one([dot[k] if varies(dot) else dot for dot in dots]) for k in range(lead[0])]
    if isinstance(each[0], tuple):
        return tuple([np.stack([part[j] for part in each]) for j in range(len(each[0]))])
    return np.stack(each)


enter(run, run_rrule, run_frule)
enter(without_state, without_state_rrule, without_state_frule)


def extended(b, count):
    """`b` with zeros, `count` numbers in all."""
    return b if len(b) == count else np.concatenate([b, np.zeros(count - len(b), b.dtype)])


@definitions(_sigtools)("_linear_filter")
def _linear_filter(b, a, x, axis=-1, zi=None):
    if a[0] == 0:
        raise ValueError("BUG: filter coefficient a[0] == 0 not supported yet")
    count = max(len(a), len(b))
    b, a = extended(b / a[0], count), extended(a / a[0], count)
    x = np.moveaxis(x, axis, -1)
    if zi is None:
        return np.moveaxis(without_state(b, a, x), -1, axis)
    zi = np.moveaxis(zi, axis, -1)
    y, last = run(b, a, x, np.broadcast_to(zi, (*x.shape[:-1], zi.shape[-1])))
    return np.moveaxis(y, -1, axis), np.moveaxis(last, -1, axis)


# -- sections of second order, one after the other: x (rows, n), states (rows, sections, 2) ------------------------------


def cascade(sos: Any, x: Any, z: Any) -> tuple[Any, Any]:
    """(y, last states), by the compiled filter."""
    dtype = np.result_type(sos, x, z, np.float32)
    y, last = np.array(x, dtype, order="C"), np.array(z, dtype, order="C")
    _sosfilt._sosfilt(np.ascontiguousarray(sos, dtype), y, last)
    return y, last


def coefficients(sos: Any, k: int) -> tuple[Any, Any]:
    """b and a of a section."""
    return sos[k, :3], np.concatenate([np.ones(1, sos.dtype), sos[k, 4:]])


def sections(sos: Any, x: Any, z: Any) -> list[tuple[Any, Any, Any, Any, Any]]:
    """For each section b, a, its x, its first state and its y."""
    found = []
    for k in range(sos.shape[0]):
        b, a = coefficients(sos, k)
        y, _ = run(b, a, x, z[:, k])
        found.append((b, a, x, z[:, k], y))
        x = y
    return found


def cascade_rrule(sos: Any, x: Any, z: Any) -> Any:
    y, last = cascade(sos, x, z)

    def cascade_pullback(bars: Any) -> Any:
        y_bar, z_bar = plain(bars[0], y), unthunk(bars[1])

        def by_sections() -> Any:
            """w of each section, and x_bar: from the last section to the first."""
            bar, found = y_bar, []
            for k in range(sos.shape[0] - 1, -1, -1):
                b, a = coefficients(sos, k)
                w = backwards(a, bar, z_bar if is_zero(z_bar) else z_bar[:, k])
                bar = x_from(b, w, x.shape[-1])
                found.append(w)
            return found[::-1], bar

        found = Thunk(by_sections)

        def sos_bar() -> Any:
            rows = []
            for (_, _, x_k, _, y_k), w in zip(sections(sos, x, z), unthunk(found)[0], strict=True):
                rows.append(np.concatenate([b_from(w, x_k, 2), a_from(w, y_k, 2)]))
            return np.stack(rows)

        def x_bar() -> Any:
            if not is_zero(z_bar):
                return unthunk(found)[1]
            return np.flip(cascade(conj(sos), np.flip(y_bar, -1), np.zeros(z.shape))[0], -1)

        states_bar = Thunk(lambda: np.stack([first_from(w, 2) for w in unthunk(found)[0]], 1))
        return Thunk(sos_bar), Thunk(x_bar), states_bar

    return (y, last), cascade_pullback


def cascade_frule(sos: Any, x: Any, z: Any) -> Any:
    y, last = cascade(sos, x, z)

    def one(dots: Any) -> Any:
        sos_dot, x_dot, z_dot = dots
        if not varies(sos_dot) and not lead_of((x_dot, x), (z_dot, z)):
            return cascade(sos, plain(x_dot, x), plain(z_dot, z))
        ends = []
        for k, (b, a, x_k, z_k, y_k) in enumerate(sections(sos, x, z)):
            b_dot, a_dot = (sos_dot[k, :3], sos_dot[k, 3:]) if varies(sos_dot) else (ZeroTangent, ZeroTangent)
            mine = z_dot[..., k, :] if varies(z_dot) else ZeroTangent
            x_dot, end = run_dot(b, a, x_k, z_k, y_k, (b_dot, a_dot, x_dot, mine))
            ends.append(end)
        return x_dot, np.stack(ends, -2)

    return (y, last), lambda dots: one_by_one(one, (sos, x, z), dots, 1)


enter(cascade, cascade_rrule, cascade_frule)


def from_rest(sos: Any, x: Any) -> Any:
    """y of states that are zero."""
    return cascade(sos, x, np.zeros((x.shape[0], sos.shape[0], 2)))[0]


def from_rest_rrule(sos: Any, x: Any) -> Any:
    y = from_rest(sos, x)

    def from_rest_pullback(y_bar: Any) -> Any:
        def sos_bar() -> Any:
            bar, rows = y_bar, []
            parts = sections(sos, x, np.zeros((x.shape[0], sos.shape[0], 2)))
            for k in range(sos.shape[0] - 1, -1, -1):
                b, a, x_k, _, y_k = parts[k]
                w = backwards(a, bar, ZeroTangent)
                rows.append(np.concatenate([b_from(w, x_k, 2), a_from(w, y_k, 2)]))
                bar = x_from(b, w, x.shape[-1])
            return np.stack(rows[::-1])

        return Thunk(sos_bar), Thunk(lambda: np.flip(from_rest(conj(sos), np.flip(y_bar, -1)), -1))

    return y, from_rest_pullback


def from_rest_frule(sos: Any, x: Any) -> Any:
    y = from_rest(sos, x)
    z = np.zeros((x.shape[0], sos.shape[0], 2))

    def one(dots: Any) -> Any:
        if varies(dots[0]):
            _, push = cascade_frule(sos, x, z)
            return push((*dots, ZeroTangent))[0]
        return each(lambda part: from_rest(sos, part), dots[1], x)

    return y, lambda dots: one_by_one(one, (sos, x), dots, 1)


enter(from_rest, from_rest_rrule, from_rest_frule)
followed = without_rule(_signaltools.sosfilt)


@definitions(_signaltools)("sosfilt")
def sosfilt_from_rest(sos, x, axis=-1, zi=None):
    """Without states, which would be carried back at each step, too."""
    sections, signal = np.asarray(sos), np.asarray(x)
    usual = signal.ndim and sections.ndim == 2 and sections.shape[1] == 6 and np.all(sections[:, 3] == 1)
    if zi is not None or not usual or np.result_type(sections, signal).char not in "fdFD":
        return followed(sos, x, axis, zi)
    dtype = np.result_type(sections, signal)
    moved = np.moveaxis(signal.astype(dtype), axis, -1)
    rows = np.reshape(moved, (-1, moved.shape[-1]))
    y = from_rest(sections / sections[:, 3:4], rows) if signal.size else rows
    return np.moveaxis(np.reshape(y, moved.shape), -1, axis)


@definitions(_sosfilt)("_sosfilt", mutates=True)
def sosfilt(sos, x, zi):
    """The signal and the states are written."""
    y, last = cascade(sos / sos[:, 3:4], x, zi)
    x[...] = y
    zi[...] = last
