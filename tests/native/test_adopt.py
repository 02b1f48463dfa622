"""Cotangents of whole arrays that are adopted, not added, are right: broadcast operands, several uses, loops, branches."""

import numpy as np
import pytest
from numba import typeof, types

import plaingrad
from plaingrad.native.reverse import first_contribution
from plaingrad.native.compile import build
from tests.native.uncompiled import gradient
from tests.sampling import some


def network(w, v, b, x):
    h = np.maximum(x @ w + b, 0.0)
    z = np.tanh(h @ v)
    return np.sum(z * z)


def used_twice(a, b):
    c = a * b
    d = c + b
    return np.sum(c * d) + np.sum(d)


def handed_on(a, b):
    c = a * 2.0
    d = c + b  # the cotangent of d ends here, and is read once more, for b
    e = d + c
    return np.sum(e * e)


def in_branches(a, b):
    c = np.exp(a)
    if b[0] > 0.0:
        d = c + b
    else:
        d = c * b
    return np.sum(d * d)


def in_a_loop(a, b):
    u = a * 1.0
    for k in range(3):
        v = u + b
        w = v * u
        u = w + v
    return np.sum(u)


def products_in_a_loop(w, x):
    h = x * 1.0
    for k in range(3):
        h = np.sin(h @ w)
    return np.sum(h)


def broadcast_both_ways(a, b):
    c = a * 2.0
    d = b * 3.0
    e = c + d
    return np.sum(e * e * c)


R = np.random.default_rng(0)
PROGRAMS = [
    (network, (R.normal(size=(3, 4)), R.normal(size=(4, 2)), R.normal(size=4), R.normal(size=(5, 3)))),
    (used_twice, (R.normal(size=(2, 3)), R.normal(size=(2, 3)))),
    (used_twice, (R.normal(size=(2, 3)), R.normal(size=(1, 3)))),
    (handed_on, (R.normal(size=4), R.normal(size=4))),
    (handed_on, (R.normal(size=1), R.normal(size=4))),
    (handed_on, (R.normal(size=(4, 1)), R.normal(size=3))),
    (in_branches, (R.normal(size=3), np.array([0.5, 1.0, 2.0]))),
    (in_branches, (R.normal(size=3), np.array([-0.5, 1.0, 2.0]))),
    (in_a_loop, (R.normal(size=3), R.normal(size=3))),
    (products_in_a_loop, (R.normal(size=(3, 3)), R.normal(size=(2, 3)))),
    (broadcast_both_ways, (R.normal(size=(3, 1)), R.normal(size=(1, 2)))),
    (network, (np.zeros((3, 0)), np.zeros((0, 2)), np.zeros(0), R.normal(size=(5, 3)))),
]
IDS = [f"{f.__name__}{k}" for k, (f, _) in enumerate(PROGRAMS)]


@pytest.mark.parametrize("f, args", PROGRAMS, ids=IDS)
def test_gradients_of_array_programs_agree_with_the_plain_tier(f, args):
    value, found = gradient(f, args)
    wanted_value, wanted = plaingrad.value_and_grad(f, tuple(range(len(args))), tier="plain")(*args)
    assert value == pytest.approx(wanted_value, rel=1e-13)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("k", some([0], [5]))
def test_compiled_gradients_agree_too(k):
    f, args = PROGRAMS[k]
    found = plaingrad.grad(f, tuple(range(len(args))), tier="native")(*args)
    for a, b in zip(found, gradient(f, args)[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-14)


def test_the_first_contribution_to_a_cotangent_is_not_added_to_zeros():
    f, args = PROGRAMS[0]
    text = build.derived("pullback", f, tuple(map(typeof, args)), (0, 1, 2)).text
    assert "put_dot_a(" in text

    def products_of_single_precision(a, b):
        c = a * b
        d = c * c
        return np.dot(d, d)

    text = build.derived("pullback", products_of_single_precision, (types.float32[::1],) * 2, (0, 1)).text
    assert "adopted(" in text


def test_what_is_adopted_has_the_shape_of_the_buffer():
    buffer, term = np.full((2, 1), 7.0), np.ones((2, 3))
    assert first_contribution.adopted(buffer, term) is buffer
    np.testing.assert_array_equal(buffer, [[3.0], [3.0]])
    term = np.ones((2, 1))
    assert first_contribution.adopted(buffer, term) is term
    assert first_contribution.spare(buffer, term) is buffer
    assert first_contribution.spare(np.ones(1), term) is term


def test_a_pullback_of_whole_arrays_may_be_called_twice():
    f, args = PROGRAMS[3]
    y, pullback = plaingrad.vjp(f, *args, tier="native")
    first, second = pullback(1.0), pullback(2.0)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_allclose(2.0 * a, b, rtol=1e-13)
