"""Native derivatives run by CPython, where compiling them would show nothing more; and what they are compared with."""

import numpy as np

import plaingrad
from plaingrad.native.compile import build
from plaingrad.native.border import call
from plaingrad.native.border import directions  # noqa: E402
from tests.native.typing_only import typing_only


def copied(x):
    """`x` with arrays of its own."""
    if isinstance(x, np.ndarray):
        return x.copy(order="K")
    if isinstance(x, tuple):
        parts = [copied(part) for part in x]
        return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
    return x


def has_reals(x):
    """Whether `x` holds floats or complex numbers."""
    if isinstance(x, tuple):
        return any(map(has_reals, x))
    return np.asarray(x).dtype.kind in "fc"


def differentiated(args):
    """The positions of arguments with floats in them."""
    return tuple(k for k, x in enumerate(args) if has_reals(x))


def derived(*what):
    """What `build.derived` gives, for CPython to run."""
    with typing_only():
        return build.derived(*what).python


def gradient(f, args):
    """(value, gradient of every argument with floats) of `f`, by the derived pullback, uncompiled."""
    at = differentiated(args)
    signature = call.signature_of(args)
    shadows = call.shadows_of(args, at)
    out = derived("pullback", f, signature, at)(*args, 1.0, *shadows)
    return out[0], directions.cotangents(args, signature, at, list(out[1:]), shadows)


def slope(f, args, dots):
    """The derivative of `f` in the direction `dots`, by the derived pushforward, uncompiled."""
    at = differentiated(args)
    found = derived("pushforward", f, call.signature_of(args), at)
    seeds = [copied(seed) for k in at for seed in call.seeds_of(args[k], dots[k])]  # it may write into them
    return found(*args, *seeds)[1]


def leaves(x):
    """The numbers and arrays in `x`."""
    if isinstance(x, (tuple, list)):
        return [leaf for part in x for leaf in leaves(part)]
    return [np.asarray(x)]


def direction(x, random):
    """A random tangent of `x`."""
    if isinstance(x, tuple):
        return tuple(direction(part, random) for part in x)
    if not has_reals(x):
        return 0
    dot = random.normal(size=np.shape(x))
    if np.iscomplexobj(x):
        dot = dot + 1j * random.normal(size=np.shape(x))
    return np.asarray(dot, np.asarray(x).dtype)[()]


def moved(x, dot, h):
    """x + h * dot."""
    if isinstance(x, tuple):
        parts = [moved(part, d, h) for part, d in zip(x, dot, strict=True)]
        return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
    return copied(x) if not has_reals(x) else x + h * dot


def assert_alike(found, expected, tolerance=1e-12):
    """`found` has the structure and numbers of `expected`."""
    mine, theirs = leaves(found), leaves(expected)
    assert len(mine) == len(theirs)
    for a, b in zip(mine, theirs, strict=True):
        if a.dtype == object or b.dtype == object:
            assert a == b
            continue
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def check(f, *args, tolerance=1e-12, plain=True):
    """Both native modes of `f`, uncompiled, agree with the plain tier, with differences, and with what `f` writes.

    Args:
        f: what is differentiated; it returns one real number.
        args: its arguments.
        tolerance: of the comparison with the plain tier.
        plain: whether there is a plain derivative to compare with; if not, differences decide alone.
    """
    at = differentiated(args)
    primal = getattr(f, "py_func", f)
    random = np.random.default_rng(1)
    dots = direction(tuple(args), random)

    def value(h):
        np.random.seed(0)
        return primal(*moved(tuple(args), dots, h))

    np.random.seed(0)
    mine = copied(tuple(args))
    y, bars = gradient(f, mine)
    np.random.seed(0)
    theirs = copied(tuple(args))
    if plain:
        expected, expected_bars = plaingrad.value_and_grad(primal, at, tier="plain")(*theirs)
        assert_alike(bars, expected_bars, tolerance)
    else:
        expected = primal(*theirs)
    assert_alike(y, expected, tolerance)
    assert_alike(mine, theirs, tolerance)
    np.random.seed(0)
    forward = slope(f, copied(tuple(args)), dots)
    backward = sum(
        np.vdot(bar, dot).real
        for bar, dot in zip(
            (leaf for leaf in leaves(bars) if leaf.dtype != object),
            (leaf for k in at for leaf, x in zip(leaves(dots[k]), leaves(args[k])) if has_reals(x)),
            strict=True,
        )
    )
    assert_alike(forward, backward, 1e-11)
    errors = [
        abs((8 * (value(h) - value(-h)) - (value(2 * h) - value(-2 * h))) / (12 * h) - forward)
        for h in (1e-2, 1e-3, 1e-4, 1e-5)
    ]
    assert min(errors) <= 1e-7 * max(1.0, abs(forward)), errors
    return y, bars
