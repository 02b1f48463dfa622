"""A derivative taken natively beside that of the plain tier, the program's own effects, and differences."""

import dataclasses
import math
import os

import numpy as np
import pytest

import plaingrad
from plaingrad.native.border import conversion, call
from plaingrad.native.border import directions  # noqa: E402
from tests.native.typing_only import typing_only

def copied(x):
    """Arguments with memory of their own, of the same layout and strides."""
    if isinstance(x, tuple):
        parts = [copied(part) for part in x]
        return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
    if not isinstance(x, np.ndarray):
        return x
    if x.ndim and any(s < 0 for s in x.strides):
        back = tuple(slice(None, None, -1 if s < 0 else 1) for s in x.strides)
        return copied(x[back])[back]
    if x.flags.c_contiguous or x.flags.f_contiguous:
        return x.copy(order="K")
    room = np.zeros(tuple(2 * n for n in x.shape), x.dtype)
    room[tuple(slice(0, 2 * n, 2) for n in x.shape)] = x
    return room[tuple(slice(0, 2 * n, 2) for n in x.shape)]


def leaves(x):
    """The numbers and arrays in a result, in order."""
    if isinstance(x, (tuple, list)):
        return [leaf for part in x for leaf in leaves(part)]
    if isinstance(x, (dict, plaingrad.Tangent)):
        return [leaf for key in x for leaf in leaves(x[key])]
    return [] if x is None else [np.asarray(x)]


def bits(x):
    """What is equal if two results are the same to the last bit (any nan is any other)."""
    found = []
    for leaf in leaves(x):
        if leaf.dtype.kind in "fc":
            leaf = np.where(np.isnan(leaf), leaf.dtype.type(math.nan), leaf)
        found.append((leaf.dtype.str, leaf.shape, leaf.tobytes()))
    return found


def assert_close(found, wanted, rtol, what):
    """Assert that two results agree to `rtol`, relative to an element or to a thousandth of the largest."""
    found, wanted = leaves(found), leaves(wanted)
    assert len(found) == len(wanted), f"{what}: {found} beside {wanted}"
    finite = [np.abs(w[np.isfinite(w)]).max(initial=0.0) for w in wanted if w.dtype.kind in "fc"]
    atol = rtol * (1e-3 * max(finite, default=0.0) + 1e-3)
    for u, v in zip(found, wanted):
        assert u.shape == v.shape, f"{what}: shape {u.shape} beside {v.shape}"
        np.testing.assert_allclose(u, v, rtol=rtol, atol=atol, err_msg=what)


def differentiable(args):
    """The positions of arguments that hold real or complex numbers."""

    def holds(x):
        if isinstance(x, (tuple, list)):
            return any(map(holds, x))
        if isinstance(x, dict):
            return any(map(holds, x.values()))
        if dataclasses.is_dataclass(x):
            return any(map(holds, vars(x).values()))
        return np.asarray(x).dtype.kind in "fc"

    return tuple(k for k, x in enumerate(args) if holds(x))


def random_like(x, random):
    """A random tangent of the shape and dtype of `x`; None of what has no tangent."""
    if isinstance(x, tuple):
        parts = [random_like(part, random) for part in x]
        return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
    kind = np.asarray(x).dtype
    if kind.kind not in "fc":
        return None
    numbers = random.normal(size=np.shape(x))
    if kind.kind == "c":
        numbers = numbers + 1j * random.normal(size=np.shape(x))
    return np.asarray(numbers, kind) if isinstance(x, np.ndarray) else type(x)(numbers)


def inner(a, b):
    """Re <conj(a), b> over all leaves that have a tangent."""
    if isinstance(a, (tuple, list)):
        return sum(inner(u, v) for u, v in zip(a, b, strict=True))
    if a is None or b is None:
        return 0.0
    return float(np.sum(np.real(np.conj(np.asarray(a)) * np.asarray(b))))


def moved(x, dot, h):
    """x + h dot, structure and layout kept."""
    if isinstance(x, tuple):
        parts = [moved(u, v, h) for u, v in zip(x, dot)]
        return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
    if dot is None:
        return copied(x)
    if isinstance(x, np.ndarray):
        new = copied(x)
        new += h * dot
        return new
    return x + h * dot


def form(mode, f, kinds, at, compiled):
    """The derived program, compiled or as CPython runs it."""
    if compiled:
        return call.derived(mode, f, kinds, at).run
    with typing_only():
        return call.derived(mode, f, kinds, at).python


def pulled_back(f, args, at, seed, compiled=False):
    """(leaves of the result, cotangents of the arguments at `at`), natively."""
    kinds = call.signature_of(args)
    shadows = call.shadows_of(args, at)
    out = list(form("pullback", f, kinds, at, compiled)(*args, *seed, *shadows))
    numbers = sum(not hasattr(t, "ndim") for k in at for t in call.tangent_leaves(kinds[k]))
    place = len(out) - numbers
    return out[:place], directions.cotangents(args, kinds, at, out[place:], shadows)


def gradient(f, args, at, compiled=False):
    """(the value of a function that returns a number, its gradient), natively; arguments of any kind the border takes."""
    given = conversion.taken(f, args, at, {})
    shadows = call.shadows_of(given.args, given.positions)
    run = form("pullback", given.f, given.signature, given.positions, compiled)
    value, *bars = run(*given.args, 1.0, *shadows)
    return value, given.gradients(bars, shadows)


def pushed_forward(f, args, at, dots, compiled=False):
    """(leaves of the result, their tangents), natively."""
    given = [d for k in at for d in call.seeds_of(args[k], dots[k])]
    out = list(form("pushforward", f, call.signature_of(args), at, compiled)(*args, *given))
    return out


def slope_by_differences(f, args, dots, at, weigh):
    """(the directional derivative by central differences, how far two orders of it differ): the best of several steps."""

    def value(h):
        return weigh(f(*[moved(x, dots[k], h) if k in at else copied(x) for k, x in enumerate(args)]))

    best = math.nan, math.inf
    for h in (1e-2, 1e-3, 1e-4, 1e-5):
        wide = (value(2 * h) - value(-2 * h)) / (4 * h)
        narrow = (value(h) - value(-h)) / (2 * h)
        refined = (4 * narrow - wide) / 3
        if abs(refined - narrow) < best[1]:
            best = refined, abs(refined - narrow)
    return best


def resident():
    """The bytes of memory in use by this process."""
    if not os.path.exists("/proc/self/statm"):
        pytest.skip("this system does not say how much memory a process has")
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
