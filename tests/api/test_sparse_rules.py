"""Sparse Jacobians behind rules of the program's own whose results are containers and objects."""

import collections
from dataclasses import dataclass

import numpy as np
import pytest

from plaingrad import (
    Dual,
    NoTangent,
    Tangent,
    frule,
    grad,
    jacobian,
    remove_rule,
    rrule,
    scalar_rule,
    sparse_hessian,
    sparse_jacobian,
    sparsity,
)
from plaingrad.errors import PatternError

pytest.importorskip("scipy.sparse")

U = np.linspace(0.5, 1.5, 6)


@dataclass
class Pair:
    a: object
    b: object


@dataclass(frozen=True)
class Frozen:
    a: object
    b: object


class Slots:
    __slots__ = ("a", "b")

    def __init__(self, a, b):
        self.a = a
        self.b = b


class Made:
    def __init__(self, u):
        self.a, self.b = parts(u)


def parts(u):
    return u[1:] * u[:-1], u[0] * u[-1]


KINDS = {
    "dict": lambda a, b: {"a": a, "b": b},
    "ordered": lambda a, b: collections.OrderedDict(a=a, b=b),
    "default": lambda a, b: collections.defaultdict(float, {"a": a, "b": b}),
    "dataclass": Pair,
    "frozen": Frozen,
    "slots": Slots,
    "nested": lambda a, b: [{"a": (a,)}, Pair(b, "text")],
}


def entries(y):
    if isinstance(y, list):
        return y[0]["a"][0], y[1]["a"] if isinstance(y[1], Tangent) else y[1].a
    return (y["a"], y["b"]) if isinstance(y, (dict, Tangent)) else (y.a, y.b)


def tangent(y, a, b):
    if isinstance(y, list):
        return [{"a": (a,)}, {"a": b, "b": NoTangent}]
    return {"a": a, "b": b} if isinstance(y, dict) else Tangent(type(y), {"a": a, "b": b})


def pulled(u, a_bar, b_bar):
    u_bar = np.zeros_like(u)
    u_bar[1:] += a_bar * u[:-1]
    u_bar[:-1] += a_bar * u[1:]
    u_bar[0] += b_bar * u[-1]
    u_bar[-1] += b_bar * u[0]
    return (u_bar,)


def with_rule(kind, mode):
    """(a function with a rule of its own, the same without)."""

    def plain(u):
        return KINDS[kind](*parts(u))

    def f(u):
        return plain(u)

    if mode == "rrule":
        rrule(f)(lambda u: (plain(u), lambda y_bar: pulled(u, *entries(y_bar))))
    else:

        def rule(_, u):
            x, x_dot = u.primal, u.tangent
            y = plain(x)
            b_dot = x_dot[0] * x[-1] + x[0] * x_dot[-1]
            return Dual(y, tangent(y, x_dot[1:] * x[:-1] + x[1:] * x_dot[:-1], b_dot))

        frule(f)(rule)
    return f, plain


def used(f):
    def values(u):
        a, b = entries(f(u))
        return np.concatenate([a * a, [b * 1.0 + u[2]]])

    return values


def expected(u):
    a, _ = parts(u)
    found = np.zeros((6, 6))
    for k in range(5):
        found[k, k], found[k, k + 1] = 2 * a[k] * u[k + 1], 2 * a[k] * u[k]
    found[5, 0], found[5, 5], found[5, 2] = u[-1], u[0], 1.0
    return found


@pytest.mark.parametrize("mode", ["rrule", "frule"])
@pytest.mark.parametrize("kind", KINDS)
def test_entries_behind_a_rule_whose_result_is_a_structure(kind, mode):
    f, plain = with_rule(kind, mode)
    for way in ("auto", "forward", "reverse"):
        np.testing.assert_allclose(sparse_jacobian(used(f), U, mode=way).toarray(), expected(U), atol=1e-15)
        np.testing.assert_allclose(sparse_jacobian(used(plain), U, mode=way).toarray(), expected(U), atol=1e-15)
        if way != "auto":
            np.testing.assert_allclose(jacobian(used(f), mode=way)(U), expected(U), atol=1e-15)
    assert (sparsity(used(f), U).toarray() | (expected(U) == 0)).all()
    whole = jacobian(grad(lambda u: used(plain)(u).sum()))(U)
    np.testing.assert_allclose(sparse_hessian(lambda u: used(f)(u).sum(), U).toarray(), whole, atol=1e-14)


def test_entries_behind_the_rule_of_a_class():
    rrule(Made)(lambda u: (Made(u), lambda y_bar: pulled(u, y_bar["a"], y_bar["b"])))
    try:
        np.testing.assert_allclose(sparse_jacobian(used(Made), U).toarray(), expected(U), atol=1e-15)
    finally:
        remove_rule(Made)


def test_where_a_rule_of_the_program_took_part_the_result_is_compared_with_another_product():
    def doubled(u):
        return u * 2.0

    @rrule(doubled)
    def doubled_rrule(u):
        return u * 2.0, lambda y_bar: (y_bar + np.roll(y_bar, 1) * np.abs(y_bar),)  # not linear

    def f(u):
        return doubled(u) * u

    with pytest.raises(PatternError, match=r"doubled.*took part"):
        sparse_jacobian(f, U, mode="reverse")
    assert sparse_jacobian(f, U, mode="reverse", check=False).shape == (6, 6)  # as the caller wishes
    remove_rule(doubled)
    np.testing.assert_allclose(sparse_jacobian(f, U).toarray(), np.diag(4 * U))


def test_right_rules_pass_the_comparison_in_every_precision():
    def bent(x):
        return x * x

    scalar_rule(bent, lambda x, y: 2.0 * x)
    for dtype in (np.float64, np.float32):
        u = U.astype(dtype)
        found = sparse_jacobian(lambda u: np.stack([bent(t) for t in u]) * u[::-1], u)
        assert found.dtype == dtype
        np.testing.assert_allclose(found.toarray(), np.diag(2 * u * u[::-1]) + np.diag(u**2)[:, ::-1], rtol=1e-6)
