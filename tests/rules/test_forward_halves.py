"""The forward half of every rule, called by itself: against differences, the rule's own pullback, and tangent by tangent."""

import inspect

import numpy as np
import pytest
from tests.rules.numpy.checks import (
    close, cotangent_of, inner, is_number, leaves, like, mapped, pull, random_like, same, shifted,
)
from tests.rules.numpy.samples import REAL_ONLY, SAMPLES

from plaingrad import rulebook
from plaingrad.define import as_callable
from plaingrad.tangents import NoTangent, ZeroTangent, is_zero

pytestmark = pytest.mark.filterwarnings("ignore")  # NumPy's own: empty slices, deprecated forms

FORWARD = [f for f in SAMPLES if rulebook.find(f) is not None and rulebook.find(f).frule is not None]
CHUNKED = [f for f in FORWARD if rulebook.find(f).chunked_frule is not None]
BY_KIND = [f for f in SAMPLES if rulebook.find(f) is not None and rulebook.find(f).frule is None and rulebook.find(f).kind in ("linear", "bilinear")]


def name_of(function):
    return getattr(function, "__qualname__", None) or getattr(function, "__name__", repr(function))


def structured(x, dot):
    """`x` with dot(leaf) in place of each real or complex number, zeros for integers in lists; NoTangent without any."""
    if is_number(x):
        return dot(x)
    if isinstance(x, (list, tuple)) and leaves(x):
        return type(x)([0.0 * dot(1.0) if is_zero(d) else d for d in [structured(part, dot) for part in x]])
    return NoTangent


def random_dots(rng, args, n=None):
    """A tangent for each argument; `n` of them along a leading axis."""

    def dot(x):
        if n is None:
            z = random_like(rng, x)
            return like(x, np.asarray(z, np.asarray(x).dtype)) if isinstance(x, np.ndarray) else type(x)(z)
        return np.stack([np.asarray(random_like(rng, x), np.asarray(x).dtype) for _ in range(n)])

    return tuple(structured(x, dot) for x in args)


def picked(dots, i):
    """Tangent `i` of a chunk."""
    return tuple(d if is_zero(d) else mapped(lambda x: x[i], d) for d in dots)


def flat_dots(y_dot, y):
    """The tangent of each number and array in `y`, in its shape."""
    if is_number(y):
        if is_zero(y_dot):
            return [np.zeros(np.shape(y))]
        assert np.iscomplexobj(y) or not np.iscomplexobj(y_dot), "a complex tangent of real numbers"
        return [np.broadcast_to(y_dot, np.shape(y))]
    if isinstance(y, (list, tuple)):
        parts = [y_dot] * len(y) if is_zero(y_dot) else y_dot
        assert len(parts) == len(y)
        return [leaf for d, part in zip(parts, y) for leaf in flat_dots(d, part)]
    return []


def pushforward_of(function, args, kwargs):
    """(y, the pushforward) of the rule, or of what its kind says."""
    rule = rulebook.find(function)
    if rule.frule is not None:
        return rule.frule(*args, **kwargs)
    call = as_callable(function)
    if rule.kind == "linear":
        return call(*args, **kwargs), lambda dots: call(dots[0], *args[1:], **kwargs)
    return call(*args, **kwargs), lambda dots: call(dots[0], *args[1:], **kwargs) + call(args[0], dots[1], *args[2:], **kwargs)


def is_coarse(args, y):
    return any(np.asarray(x).dtype.char in "efFgG" for x in [*leaves(args), *leaves(y)])


def check_forward(function, args, kwargs, steps=(1e-4, 1e-5, 1e-6)):
    """The value; <y_bar, y_dot> against the pullback and against differences; linearity, argument by argument."""
    rng = np.random.default_rng(len(repr(args)))
    rule = rulebook.find(function)
    call = as_callable(function)
    with np.errstate(all="ignore"):
        y = call(*args, **kwargs)
        again, push = pushforward_of(function, args, kwargs)
        dots = random_dots(rng, args)
        y_dots = flat_dots(push(dots), y)
        twice = flat_dots(push(tuple(d if is_zero(d) else mapped(lambda x: like(x, 2 * x), d) for d in dots)), y)
    assert same(y, again), f"value {again!r}, not {y!r}"
    assert len(y_dots) == len(leaves(y))
    if not y_dots:
        return
    rtol = 2e-3 if is_coarse(args, y) else 2e-9
    if rule.frule is not None:
        one_by_one = []
        for k in range(len(dots)):
            alone = tuple(d if i == k else ZeroTangent for i, d in enumerate(dots))
            if not is_zero(dots[k]):
                with np.errstate(all="ignore"):
                    one_by_one.append(flat_dots(push(alone), y))
        for parts, whole, double in zip(zip(*one_by_one), y_dots, twice):
            np.testing.assert_allclose(sum(parts), whole, rtol=rtol, atol=rtol)
            np.testing.assert_allclose(double, 2 * whole, rtol=rtol, atol=rtol)
    y_bar = cotangent_of(rng, y)
    flat = leaves(y_bar)
    found = inner(flat, y_dots)
    _, bars = pull(rule, args, kwargs, y_bar)
    directions = [leaf for d, x in zip(dots, args) for leaf in leaves(d if not is_zero(d) else ())]
    expected = inner(bars, directions[: len(bars)])
    assert close(found, expected, rtol), f"{function}: the pushforward gives {found}, the pullback {expected}"
    if is_coarse(args, y):
        return
    differences = []
    for h in steps:
        with np.errstate(all="ignore"):
            above, below = (leaves(call(*shifted(args, directions, s), **kwargs)) for s in (h, -h))
        differences.append(inner(flat, [(a - b) / (2 * h) for a, b in zip(above, below)]))
        if close(found, differences[-1], 2e-6):
            return
    raise AssertionError(f"{function}: the pushforward gives {found}, differences give {differences}")


def arrays_mapped(f, samples):
    return mapped(lambda x: f(x) if isinstance(x, np.ndarray) and x.ndim else x, samples)


def reversed_strides(x):
    """Equal to `x`, with negative strides."""
    backwards = (slice(None, None, -1),) * x.ndim
    return x[backwards].copy()[backwards]


def made_complex(args):
    rng = np.random.default_rng(3)
    return mapped(lambda x: like(x, x + 0.3j * rng.uniform(0.5, 1.5, np.shape(x))), args)


@pytest.mark.parametrize("function", [*FORWARD, *BY_KIND], ids=name_of)
def test_a_pushforward_agrees_with_the_pullback_and_with_differences(function):
    for args, kwargs in SAMPLES[function]:
        check_forward(function, args, kwargs)


@pytest.mark.parametrize("function", [f for f in (*FORWARD, *BY_KIND) if f not in REAL_ONLY], ids=name_of)
def test_a_pushforward_of_complex_numbers_agrees_with_the_pullback_and_with_differences(function):
    for args, kwargs in SAMPLES[function]:
        check_forward(function, made_complex(args), kwargs)


@pytest.mark.parametrize("function", [*FORWARD, *BY_KIND], ids=name_of)
def test_a_pushforward_does_not_depend_on_the_layout_of_memory(function):
    for args, kwargs in SAMPLES[function]:
        for layout in (np.asfortranarray, reversed_strides):
            check_forward(function, arrays_mapped(layout, args), kwargs)


def check_chunk(function, args, kwargs, n=3):
    """Each tangent of a chunk alone."""
    rng = np.random.default_rng(len(repr(args)))
    rule = rulebook.find(function)
    with np.errstate(all="ignore"):
        y, push = rule.chunked_frule(*args, **kwargs)
        plain_y, plain_push = rule.frule(*args, **kwargs)
    assert same(y, plain_y)
    chunk = random_dots(rng, args, n)
    places = [k for k, d in enumerate(chunk) if not is_zero(d)]
    choices = [places] if len(places) < 2 else [places, *[[k] for k in places]]
    for chosen in choices:
        dots = tuple(d if k in chosen else ZeroTangent for k, d in enumerate(chunk))
        with np.errstate(all="ignore"):
            y_dot = push(dots)
            looped = [flat_dots(plain_push(picked(dots, i)), y) for i in range(n)]
        for leaf, y_leaf, expected in zip(flat_chunk(y_dot, y, n), leaves(y), zip(*looped), strict=True):
            rtol = 1e-4 if is_coarse(args, y) else 1e-9
            np.testing.assert_allclose(leaf, np.stack(expected), rtol=rtol, atol=rtol)


def flat_chunk(y_dot, y, n):
    """The tangents of each number and array in `y`, along a leading axis."""
    if is_number(y):
        if is_zero(y_dot):
            return [np.zeros((n, *np.shape(y)))]
        assert np.ndim(y_dot) == np.ndim(y) + 1, (np.shape(y_dot), np.shape(y))
        return [np.broadcast_to(y_dot, (n, *np.shape(y)))]
    if isinstance(y, (list, tuple)):
        parts = [y_dot] * len(y) if is_zero(y_dot) else y_dot
        return [leaf for d, part in zip(parts, y, strict=True) for leaf in flat_chunk(d, part, n)]
    return []


@pytest.mark.parametrize("function", CHUNKED, ids=name_of)
def test_a_chunk_of_tangents_is_pushed_as_each_of_them_is(function):
    for args, kwargs in SAMPLES[function]:
        check_chunk(function, args, kwargs)
        if function not in REAL_ONLY:
            check_chunk(function, made_complex(args), kwargs)
        for layout in (np.asfortranarray, reversed_strides):
            check_chunk(function, arrays_mapped(layout, args), kwargs)


@pytest.mark.parametrize("function", [*FORWARD, *BY_KIND], ids=name_of)
def test_single_precision_is_kept(function):
    for args, kwargs in SAMPLES[function]:
        if "dtype" in kwargs or any(x is np.float64 for x in args):
            continue
        if not any(isinstance(x, np.ndarray) and x.ndim for x in args):
            continue
        single = arrays_mapped(lambda x: x.astype(np.float32), args)
        check_forward(function, single, kwargs)


@pytest.mark.parametrize("function", FORWARD, ids=name_of)
def test_both_halves_of_a_rule_name_their_parameters_alike(function):
    rule = rulebook.find(function)
    if rule.rrule is not None:
        for half in (rule.frule, rule.chunked_frule or rule.frule):
            assert parameters(half) == parameters(rule.rrule)


def parameters(function):
    return [(p.name, p.kind, p.default is inspect.Parameter.empty) for p in inspect.signature(function).parameters.values()]
