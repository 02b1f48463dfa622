"""Is a reverse rule right? Its inner product with a direction must be that of central differences."""

import numpy as np

from plaingrad import rulebook
from plaingrad.tangents import NoTangent, is_zero, project, unthunk


def is_number(x):
    return isinstance(x, (float, complex, np.inexact)) or (isinstance(x, np.ndarray) and x.dtype.kind in "fc")


def leaves(x):
    """The real and complex numbers and arrays in nested lists, tuples and dicts."""
    if is_number(x):
        return [x]
    if isinstance(x, (list, tuple)):
        return [leaf for part in x for leaf in leaves(part)]
    if isinstance(x, dict):
        return [leaf for part in x.values() for leaf in leaves(part)]
    return []


def mapped(f, x):
    """`x` with f(leaf) in place of each leaf."""
    if is_number(x):
        return f(x)
    if type(x) is list:
        return [mapped(f, part) for part in x]
    if type(x) is tuple:
        return tuple(mapped(f, part) for part in x)
    if type(x) is dict:
        return {key: mapped(f, part) for key, part in x.items()}
    return x


def random_like(rng, x):
    z = rng.standard_normal(np.shape(x))
    if np.iscomplexobj(x):
        z = z + 1j * rng.standard_normal(np.shape(x))
    return z


def cotangent_of(rng, y):
    """A random cotangent with the structure of `y`; zero-like for integers in it."""
    if is_number(y):
        bar = random_like(rng, y)
        return np.asarray(bar, np.asarray(y).dtype) if isinstance(y, np.ndarray) else np.asarray(y).dtype.type(bar)
    if isinstance(y, (list, tuple)):
        return tuple(cotangent_of(rng, part) for part in y)
    return NoTangent


def inner(y_bar, y_dot):
    return sum(float(np.sum(np.real(np.conj(b) * d))) for b, d in zip(y_bar, y_dot))


def shifted(args, directions, h):
    remaining = iter(directions)
    return mapped(lambda x: like(x, x + h * next(remaining)), args)


def like(x, y):
    """`y`; for an array `x`, laid out in memory as `x` is."""
    if not isinstance(x, np.ndarray):
        return y
    forwards = tuple(slice(None, None, -1 if stride < 0 else 1) for stride in x.strides)
    forwards = (..., *forwards)
    z = np.empty_like(x[forwards], dtype=np.asarray(y).dtype)[forwards]
    z[...] = y
    return z


def derivative(f, args, directions, y_bar, h):
    """<y_bar, (f(x + h d) - f(x - h d)) / 2h>."""
    above, below = leaves(f(shifted(args, directions, h))), leaves(f(shifted(args, directions, -h)))
    return inner(y_bar, [(a - b) / (2 * h) for a, b in zip(above, below)])


def flat_bars(x_bar, x):
    """The projected cotangent of each leaf of `x`."""
    x_bar = unthunk(x_bar)
    if is_number(x):
        return [project(0.0 * x if is_zero(x_bar) else x_bar, x)]
    if isinstance(x, (list, tuple)):
        if not is_zero(x_bar) and isinstance(x_bar, np.ndarray):
            assert len(x_bar) == len(x)
        parts = [x_bar] * len(x) if is_zero(x_bar) else x_bar
        return [leaf for b, part in zip(parts, x) for leaf in flat_bars(b, part)]
    return []


def same(a, b):
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    return np.shape(a) == np.shape(b) and np.asarray(a).dtype == np.asarray(b).dtype and np.array_equal(
        a, b, equal_nan=np.asarray(a).dtype.kind in "fc"
    )


def close(a, b, rtol=2e-6):
    scale = max(1.0, abs(a), abs(b))
    return abs(a - b) <= rtol * scale


def pull(rule, args, kwargs, y_bar):
    """(y, the projected cotangent of each leaf of args)."""
    y, pullback = rule.rrule(*args, **kwargs)
    bars = pullback(y_bar)
    assert isinstance(bars, tuple), f"a pullback of {rule.function} returned {type(bars)}"
    bars = bars + (NoTangent,) * (len(args) - len(bars))
    with np.errstate(all="ignore"):
        return y, [leaf for b, x in zip(bars, args) for leaf in flat_bars(b, x)]


def check_rule(function, args, kwargs, *, steps=(1e-4, 1e-5, 1e-6), directions=2, exact=True):
    """Assert that the rule's value is the function's, and its cotangents those of central differences."""
    rng = np.random.default_rng(len(repr(args)))
    rule = rulebook.find(function)
    with np.errstate(all="ignore"):
        y = function(*args, **kwargs)
        y_bar = cotangent_of(rng, y)
        again, bars = pull(rule, args, kwargs, y_bar)
    assert not exact or same(y, again), f"value {again!r}, not {y!r}"
    xs = leaves(args)
    assert len(xs) == len(bars)
    for x, x_bar in zip(xs, bars):
        assert np.shape(x) == np.shape(x_bar)
        if isinstance(x, np.ndarray):
            assert x.dtype == x_bar.dtype, f"{x_bar.dtype} for {x.dtype}"
    y_bars = leaves(y_bar)
    if any(np.asarray(x).dtype.char in "efF" for x in [*xs, *y_bars]):  # too coarse for differences
        return bars
    if not y_bars:
        return bars
    for _ in range(directions):
        dots = [random_like(rng, x) for x in xs]
        expected = inner(bars, dots)
        found = []
        for h in steps:
            with np.errstate(all="ignore"):
                found.append(derivative(lambda a: function(*a, **kwargs), args, dots, y_bars, h))
            if close(expected, found[-1]):
                break
        else:
            raise AssertionError(f"{function}: pullback gives {expected}, differences give {found}")
    # linear in the cotangent, and repeatable
    doubled = mapped(lambda b: b * 2, y_bar)
    _, twice = pull(rule, args, kwargs, doubled)
    for a, b in zip(bars, twice):
        np.testing.assert_allclose(b, np.multiply(2, a), rtol=1e-9, atol=1e-9)
    return bars
