"""Every rule again in forward mode, as users meet it: `jvp` against `vjp`, chunks, and each mode inside the other.

Second derivatives are tried at the first sample of each function and at one in twelve of the others, chunks of tangents
inside of other levels at one sample of each other function; at all of them with PLAINGRAD_TEST_ALL=1.
"""

import copy

import numpy as np
import pytest
from tests.rules.numpy.checks import inner, leaves, like, mapped, random_like
from tests.rules.numpy.composed_samples import COMPOSED, RANDOM
from tests.rules.numpy.test_through_the_engine import PUBLIC, REAL_ONLY, SAMPLES, moved, name_of
from tests.sampling import count, sample_of

import plaingrad
from plaingrad.engine.forward.push import push

pytestmark = pytest.mark.filterwarnings("ignore")


def after(function, args, kwargs, values):
    """The numbers and arrays in the results and in the arguments as `function` leaves them."""
    everything = (*args, *kwargs.values())
    inputs = moved(everything, [v.copy() if isinstance(v, np.ndarray) else v for v in values])
    results = function(*inputs[: len(args)], **dict(zip(kwargs, inputs[len(args) :])))
    return leaves([results, inputs])


def tangent_like(rng, x):
    z = np.asarray(random_like(rng, x), np.asarray(x).dtype)
    return z if isinstance(x, np.ndarray) else type(x)(z[()])


def dense(y_dot, y):
    return np.zeros(np.shape(y)) if y_dot is None else y_dot


def check_against_the_other_mode(function, args, kwargs):
    rng = np.random.default_rng(11)
    xs = [copy.deepcopy(x) for x in leaves((*args, *kwargs.values()))]
    if not xs:
        return

    def f(values):
        return after(function, args, kwargs, values)

    with np.errstate(all="ignore"):
        plain = f(xs)
        dots = [tangent_like(rng, x) for x in xs]
        zs, z_dots = plaingrad.jvp(f, (xs,), (dots,))
        for z, expected, z_dot in zip(zs, plain, z_dots, strict=True):
            np.testing.assert_array_equal(z, expected)
            assert np.shape(z_dot) == np.shape(z)
            assert np.asarray(z_dot).dtype == np.asarray(z).dtype or not isinstance(z, np.ndarray)
        coarse = any(np.asarray(z).dtype.char in "efFgG" for z in [*xs, *plain])
        tolerance = 1e-2 if coarse else 1e-10
        zs, pullback = plaingrad.vjp(f, xs)
        z_bars = [np.where(np.isfinite(z) & np.isfinite(d), tangent_like(rng, z), 0) for z, d in zip(zs, z_dots)]
        z_bars = [bar.astype(z.dtype) if isinstance(z, np.ndarray) else type(z)(bar[()]) for bar, z in zip(z_bars, zs)]
        (x_bars,) = pullback(z_bars)
        found = inner(z_bars, [np.where(np.isfinite(d), d, 0) for d in z_dots])
        expected = inner([dense(x_bar, x) for x_bar, x in zip(x_bars, xs)], dots)
        assert abs(found - expected) <= tolerance * max(1.0, abs(expected)), f"jvp gives {found}, vjp {expected}: {args} {kwargs}"
        others = [tangent_like(rng, x) for x in xs]
        pairs = [np.stack([a, b]) for a, b in zip(dots, others)]
        _, chunk = push(f, (xs,), (pairs,), {}, chunk=2)
        _, second = plaingrad.jvp(f, (xs,), (others,))
        for z, pair, each in zip(plain, chunk, zip(z_dots, second), strict=True):
            pair = np.zeros((2, *np.shape(z))) if pair is None else pair
            assert np.shape(pair) == (2, *np.shape(z))
            np.testing.assert_allclose(pair, np.stack(each), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("function", PUBLIC, ids=name_of)
def test_forward_mode_agrees_with_reverse_mode(function):
    for args, kwargs in SAMPLES[function]:
        check_against_the_other_mode(function, args, kwargs)


@pytest.mark.parametrize("function", [f for f in PUBLIC if f not in REAL_ONLY], ids=name_of)
def test_forward_mode_agrees_with_reverse_mode_for_complex_numbers(function):
    for args, kwargs in SAMPLES[function]:
        mixed = mapped(lambda x: like(x, x + 0.3j * (1 + 0.1 * np.cos(np.arange(np.size(x)))).reshape(np.shape(x))[()]), args)
        check_against_the_other_mode(function, mixed, kwargs)


@pytest.mark.parametrize("function", COMPOSED, ids=name_of)
def test_forward_mode_of_a_definition_agrees_with_reverse_mode(function):
    for args, kwargs in COMPOSED[function]:
        check_against_the_other_mode(function, args, kwargs)


@pytest.mark.parametrize("call", RANDOM, ids=name_of)
def test_forward_mode_along_the_path_of_a_random_number_agrees_with_reverse_mode(call):
    for args, kwargs in RANDOM[call][1]:
        check_against_the_other_mode(call, args, kwargs)


def check_second_order(function, args, kwargs):
    """Forward over reverse, reverse over forward and forward over forward against reverse over reverse."""
    rng = np.random.default_rng(11)
    xs = [copy.deepcopy(x) for x in leaves((*args, *kwargs.values()))]
    if not any(np.any(np.asarray(x) != 0) for x in xs):  # nothing there, or a kink at 0
        return
    with np.errstate(all="ignore"):
        plain = after(function, args, kwargs, xs)
        if any(np.asarray(z).dtype.char in "efFg" or not np.all(np.isfinite(z)) for z in plain):
            return
        weights = [rng.uniform(0.5, 1.5, np.shape(z)) for z in plain]
        inner_dots, outer_dots = ([tangent_like(rng, x) for x in xs] for _ in range(2))

        def f(values):
            total = 0.0
            for z, weight in zip(after(function, args, kwargs, values), weights):
                total = total + np.sum(np.real(z) ** 2 * weight) + np.sum(np.imag(z) ** 2 * weight)
            return total

        def slope_in_reverse(values):
            total = 0.0
            for x_bar, direction in zip(plaingrad.grad(f)(values), inner_dots):
                total = total + np.sum(np.real(np.conjugate(x_bar) * direction))
            return total

        def slope_forward(values):
            return plaingrad.jvp(f, (values,), (inner_dots,))[1]

        truth = inner(plaingrad.grad(slope_in_reverse)(xs), outer_dots)
        found = {
            "forward over reverse": plaingrad.jvp(slope_in_reverse, (xs,), (outer_dots,))[1],
            "reverse over forward": inner(plaingrad.grad(slope_forward)(xs), outer_dots),
            "forward over forward": plaingrad.jvp(slope_forward, (xs,), (outer_dots,))[1],
        }
        for mode, value in found.items():
            assert abs(value - truth) <= 1e-8 * max(1.0, abs(truth)), f"{mode} gives {value}, reverse over reverse {truth}: {args} {kwargs}"


TWICE = PUBLIC + [f for f in COMPOSED if f not in SAMPLES]


@pytest.mark.parametrize("function", TWICE, ids=name_of)
def test_second_derivatives_agree_in_all_pairs_of_modes(function):
    samples = SAMPLES.get(function, []) + COMPOSED.get(function, [])
    for args, kwargs in sample_of(samples, name_of(function), 12):
        check_second_order(function, args, kwargs)


def check_chunks_and_levels(function, args, kwargs):
    """A chunk inside each mode, and around reverse mode, against single tangents."""
    rng = np.random.default_rng(11)
    xs = [copy.deepcopy(x) for x in leaves((*args, *kwargs.values()))]
    if not any(np.any(np.asarray(x) != 0) for x in xs):
        return
    with np.errstate(all="ignore"):
        plain = after(function, args, kwargs, xs)
        if any(np.asarray(z).dtype.char in "efFg" or not np.all(np.isfinite(z)) for z in plain):
            return
        weights = [rng.uniform(0.5, 1.5, np.shape(z)) for z in plain]
        outer_dots, *inner_dots = ([tangent_like(rng, x) for x in xs] for _ in range(3))
        chunk = [np.stack(pair) for pair in zip(*inner_dots)]

        def f(values):
            total = 0.0
            for z, weight in zip(after(function, args, kwargs, values), weights):
                total = total + np.sum(np.real(z) ** 2 * weight) + np.sum(np.imag(z) ** 2 * weight)
            return total

        def slopes_of_a_chunk(values):
            first, second = push(f, (values,), (chunk,), {}, chunk=2)[1]
            return first + 3 * second

        def slopes_one_by_one(values):
            first, second = [plaingrad.jvp(f, (values,), (dots,))[1] for dots in inner_dots]
            return first + 3 * second

        truth = plaingrad.jvp(slopes_one_by_one, (xs,), (outer_dots,))[1]
        over_reverse = push(plaingrad.grad(f), (xs,), (chunk,), {}, chunk=2)[1]
        found = {
            "reverse over a chunk": inner(plaingrad.grad(slopes_of_a_chunk)(xs), outer_dots),
            "forward over a chunk": plaingrad.jvp(slopes_of_a_chunk, (xs,), (outer_dots,))[1],
            "a chunk over reverse": sum(inner([d[0] + 3 * d[1]], [outer]) for d, outer in zip(over_reverse, outer_dots)),
        }
        for mode, value in found.items():
            assert abs(value - truth) <= 1e-8 * max(1.0, abs(truth)), f"{mode} gives {value}, not {truth}: {args} {kwargs}"


@pytest.mark.parametrize("function", sample_of(TWICE, "chunks", 2), ids=name_of)
def test_chunks_and_other_levels_keep_apart(function):
    for args, kwargs in (SAMPLES.get(function, []) + COMPOSED.get(function, []))[: count(1, 3)]:
        check_chunks_and_levels(function, args, kwargs)
