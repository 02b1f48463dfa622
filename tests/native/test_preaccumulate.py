"""Loops that carry one cotangent: each iteration's factor first, and the same numbers, huge, infinite or nan."""

import math

import numpy as np
import pytest

import plaingrad

pytest.importorskip("numba")

from plaingrad.native.compile import build  # noqa: E402
from plaingrad.native.border import call  # noqa: E402
from plaingrad.native.finish import ssa  # noqa: E402


def pullback(f, args, seed=1.0, argnums=(0,), taken=True, monkeypatch=None):
    """What the uncompiled pullback returns and adds; `taken` says whether loops may be preaccumulated."""
    build._built.clear()
    if not taken:
        monkeypatch.setattr(ssa, "preaccumulated", lambda *args: None)
    shadows = call.shadows_of(args, argnums)
    made = build.derived("pullback", f, call.signature_of(args), argnums)
    with np.errstate(all="ignore"):
        out = made.python(*args, seed, *shadows)
    build._built.clear()
    return made.text, [*out, *shadows]


def is_taken(text):
    return "_safe" in text


def newton(p, x, n):
    y = x
    for k in range(n):
        g = y * y * y + p[0] * y - 2.0 - 0.1 * k
        y = y - 0.9 * g / (3.0 * y * y + p[0])
    return y


def branching(p, x, n):
    y = x
    for k in range(n):
        if y > 1.0:
            y = math.sin(y) * p[0] - y * p[1] * k
        else:
            y = y * y * y + p[1]
        if k == 2:
            y = p[0] * p[1]
    return y


def inner(p, x, n):
    total = 0.0
    for i in range(n):
        y = x
        while y > 0.5:
            y = y - 0.3 * math.exp(-y) * y * p[0]
        total += y * p[1]
    return total


def scaled(p, x, n):
    y = x
    for _ in range(n):
        y = y * p[0] * p[0] * p[1] * p[1]
    return y


def roots(p, x, n):
    y = x
    for _ in range(n):
        y = math.sqrt(y) * p[0] * p[1] - p[0]
    return y * p[1]


@pytest.mark.parametrize("f", [newton, branching, inner], ids=lambda f: f.__name__)
@pytest.mark.parametrize("n", [0, 1, 6])
def test_gradients_are_those_of_the_plain_tier(f, n):
    p = np.array([1.3, 0.7])
    text, (value, x_bar, p_bar) = pullback(f, (p, 1.7, n), argnums=(0, 1))
    assert is_taken(text) or f is inner
    wanted, (p_expected, x_expected) = plaingrad.value_and_grad(f, (0, 1), tier="plain")(p, 1.7, n)
    assert value == wanted
    np.testing.assert_allclose(x_bar, x_expected, rtol=1e-12)
    np.testing.assert_allclose(p_bar, p_expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("seed", [0.0, 1e-300, 1e150, -1e305, math.inf, math.nan])
@pytest.mark.parametrize(
    ("f", "p", "x"),
    [
        (newton, [1.3, 0.7], 1.7),
        (branching, [1.3, 0.7], 1.7),
        (scaled, [1e100, 1e60], 1e-200),
        (scaled, [1e-100, 1e-60], 1e200),
        (scaled, [0.0, 1.0], 1.0),
        (scaled, [math.inf, 0.5], 1.0),
        (scaled, [1.0, 1.0], math.nan),
        (roots, [1.0, 1.0], 0.0),
        (roots, [2.0, 3.0], 4.0),
    ],
)
def test_huge_small_infinite_and_missing_numbers_are_those_of_the_ordinary_order(f, p, x, seed, monkeypatch):
    args = (np.array(p), x, 1 if f is roots else 2)
    try:
        text, found = pullback(f, args, seed, argnums=(0, 1))
    except (ValueError, ZeroDivisionError) as error:
        with pytest.raises(type(error)):
            pullback(f, args, seed, argnums=(0, 1), taken=False, monkeypatch=monkeypatch)
        return
    _, expected = pullback(f, args, seed, argnums=(0, 1), taken=False, monkeypatch=monkeypatch)
    assert is_taken(text)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(
            a, b, rtol=1e-12, atol=1e-180
        )  # below, the ordinary order underflows itself


def test_a_factor_that_overflows_does_no_harm_to_a_small_cotangent(monkeypatch):
    args = (np.array([1e100, 1.0]), 1e-190, 1)
    text, (_, x_bar, p_bar) = pullback(scaled, (args[0], args[1], 2), 1e-300, argnums=(0, 1))
    assert is_taken(text)
    assert x_bar == pytest.approx(1e100, rel=1e-12)


def two_chains(p, x, n):
    y, z = x, x
    for _ in range(n):
        y, z = y * p[0] * z * p[1], z * p[1] * y * p[0]
    return y + z


def short_chain(p, x, n):
    y = x
    for _ in range(n):
        y = y * p[0]
    return y


def into_an_array(p, x, n):
    y = x
    for k in range(n):
        y = y * p[k % 2] * y * 0.5 * x
    return y


@pytest.mark.parametrize("f", [two_chains, short_chain, into_an_array], ids=lambda f: f.__name__)
def test_loops_that_do_not_fit_are_left_as_they_are(f):
    p = np.array([1.3, 0.7])
    text, (_, p_bar) = pullback(f, (p, 1.1, 4))
    assert not is_taken(text)
    np.testing.assert_allclose(p_bar, plaingrad.grad(f, tier="plain")(p, 1.1, 4), rtol=1e-12)


def test_compiled_loops_give_the_same():
    p = np.array([1.3, 0.7])
    for f in (newton, inner):
        native = plaingrad.grad(f, tier="native")(p, 1.7, 5)
        np.testing.assert_allclose(native, plaingrad.grad(f, tier="plain")(p, 1.7, 5), rtol=1e-12)
