"""Whole derivatives natively, from outside: arguments of every form, pairs with aux, rows from one forward sweep."""

from typing import NamedTuple

import numpy as np
import pytest

import plaingrad
from plaingrad import ZeroTangent, hessian, hvp, jacobian, vhp
from plaingrad.errors import NonScalarOutputError

pytest.importorskip("numba")

from plaingrad.native.compile import build  # noqa: E402

X = np.linspace(0.3, 1.0, 5)


class Pair(NamedTuple):
    left: float
    right: np.ndarray


def with_aux(x, c=2.0):
    y = np.empty(2)
    y[0] = x[0] * x[1] * c
    y[1] = np.sum(x * x)
    return y, (x[0] * 3.0, x * x, 7, Pair(x[1], x * c))


def assert_alike(found, expected):
    assert type(found) is type(expected)
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            assert_alike(a, b)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("mode", ["forward", "reverse", "auto"])
def test_aux_of_a_jacobian_is_returned_and_not_differentiated(mode, in_python):
    found = jacobian(with_aux, mode=mode, has_aux=True, tier="native")(X, c=3.0)
    assert_alike(found, jacobian(with_aux, mode=mode, has_aux=True, tier="plain")(X, c=3.0))
    assert isinstance(found[1][3], Pair)


def test_a_jacobian_with_aux_of_what_is_no_pair_is_refused():
    for tier in ("native", "plain"):
        with pytest.raises(NonScalarOutputError, match=r"\(y, aux\)"):
            jacobian(lambda x: x * 2.0, has_aux=True, tier=tier)(X)
        with pytest.raises(NonScalarOutputError, match=r"\(y, aux\)"):
            jacobian(lambda x: (x, x, x), has_aux=True, tier=tier)(X)


def test_rows_come_from_one_forward_sweep(monkeypatch):
    count = []
    recorded = build.Sweeps.recorded

    def counted(self, *args):
        count.append(1)
        return recorded(self, *args)

    monkeypatch.setattr(build.Sweeps, "recorded", counted)
    found = jacobian(lambda x: x * x[0], mode="reverse", tier="native")(X)
    np.testing.assert_allclose(found, X[0] * np.eye(5) + np.outer(X, np.eye(5)[0]), rtol=1e-14)
    assert count == [1]


def weighted(a, x, b=2.0, *, c=1.0):
    return np.sum(x * x * x) * a * b + c * a


@pytest.mark.parametrize("argnums", [(1, 0), (-1,), (0, -2), 1, (2, 0)])
def test_positions_may_be_in_any_order_and_counted_from_the_end(argnums, in_python):
    args = (1.5, X, 0.5)
    for take in (jacobian, hessian):
        assert_alike(take(weighted, argnums, tier="native")(*args), take(weighted, argnums, tier="plain")(*args))


def test_arguments_by_keyword_and_defaults_are_those_of_a_call():
    for take in (jacobian, hessian):
        expected = take(weighted, 1, tier="plain")(1.5, X, c=3.0)
        assert_alike(take(weighted, 1, tier="native")(1.5, X, c=3.0), expected)


@pytest.mark.parametrize(
    "x", [X.astype(np.float32), X[:0], X[::-2], np.array(0.7), X.reshape(5, 1).T, np.array([np.nan, 1.0])],
    ids=["float32", "empty", "negative stride", "0-d", "transposed", "nan"],
)  # fmt: skip
def test_arrays_of_every_kind(x, in_python):
    def f(x):
        return np.sum(x * x * x) if x.ndim else x[()] ** 3

    mode = "forward" if np.isnan(x).any() else "auto"  # it spreads 0 * nan; which mode is cheaper differs with the tier
    for take in (lambda tier: jacobian(f, mode=mode, tier=tier)(x), lambda tier: hessian(f, tier=tier)(x),
                 lambda tier: vhp(f, (x,), (np.ones_like(x),), tier=tier)[0]):  # fmt: skip
        found, expected = take("native"), take("plain")
        assert found.shape == expected.shape
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-5 if x.dtype == np.float32 else 1e-12)


def test_a_weight_times_the_hessian_is_the_hessian_times_it():
    def f(p, c):
        return p[0] * np.sum(p[1] ** 3) * c

    primals, weights = ((2.0, X), 0.5), ((1.0, X[::-1]), ZeroTangent)
    found = vhp(f, primals, weights, tier="native")
    assert_alike(found, vhp(f, primals, weights, tier="plain"))
    assert_alike(found, hvp(f, primals, weights, tier="native"))
    for product in (hvp, vhp):  # held fixed
        of_p, of_c = product(f, primals, (weights[0], None), tier="native")
        assert of_c is None
        assert_alike(of_p, product(f, primals, (weights[0], None), tier="plain")[0])
        assert_alike(of_p, found[0])
    zeros = (ZeroTangent, ZeroTangent)
    assert_alike(vhp(f, primals, zeros, tier="native"), vhp(f, primals, zeros, tier="plain"))


def test_an_exception_in_the_middle_leaves_everything_ready_for_the_next_call():
    def f(x, n):
        if n > 2:
            raise ValueError("too many")
        return x * x * n

    for mode in ("forward", "reverse"):
        take = jacobian(f, mode=mode, tier="native")
        np.testing.assert_allclose(take(X, 2), np.diag(4.0 * X))
        for _ in range(3):
            with pytest.raises(ValueError, match="too many"):
                take(X, 3)
        np.testing.assert_allclose(take(X, 1), np.diag(2.0 * X))


def test_what_has_no_tier_is_told():
    with pytest.raises(plaingrad.ArgumentError):
        vhp(lambda x: x * x, (1.0,), (1.0,), tier="fast")
    with pytest.raises(plaingrad.ArgumentError):
        plaingrad.wirtinger(lambda x: x * x, tier="fast")


def test_a_pullback_of_arguments_changed_since_is_not_differentiated():
    def f(u):
        return u[0] ** 2 * u[1]

    u = np.array([1.5, 0.5])
    _, pullback = plaingrad.vjp(f, u, tier="native")
    assert plaingrad.derivative(lambda t: pullback(t)[0][0] * t)(2.0) == pytest.approx(6.0)
    _, pullback = plaingrad.vjp(f, u, tier="native")
    u[0] = 9.0
    with pytest.raises(plaingrad.ChangedSinceError, match="changed since this pullback"):
        plaingrad.derivative(lambda t: pullback(t)[0][0] * t)(2.0)
