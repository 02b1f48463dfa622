"""Functions that take their argument apart, or put something into it: derivatives are by the argument as it was given."""

import copy
from collections import deque
from dataclasses import dataclass

import numpy as np
import pytest

from plaingrad import (
    Dual,
    NoTangent,
    Tangent,
    ZeroTangent,
    build_frule,
    build_rrule,
    grad,
    hessian,
    hook,
    hvp,
    jacobian,
    jvp,
    linearize,
    sparse_hessian,
    sparse_jacobian,
    taylor,
    vhp,
    vjp,
)
from plaingrad.errors import ArgumentError

A, B = 1.5, 0.5
DIRECTION = (0.3, -0.7)


class Box:
    def __init__(self, a, b):
        self.a = a
        self.b = b


@dataclass
class Data:
    a: float
    b: object


def renamed(p):
    p["a"] = p.pop("a") * 2.0
    return p["a"] ** 3 * p["b"]


def emptied(p):
    x = p.pop()
    y = p.pop()
    assert not p
    return x * x * y


def key_added(p):
    p["product"] = p["a"] * p["b"]
    p["array"] = np.ones(2)
    return p["product"] ** 2


def entry_added(p):
    p.append(p[0] * p[1])
    return p[2] ** 2


def entry_before(p):
    p.insert(0, 5.0)
    return p[1] ** 2 * p[2]


def swapped(p):
    p[0], p[1] = p[1] * 2.0, p[0]
    return p[0] ** 2 * p[1]


def rotated(p):
    p.rotate(1)
    p.appendleft(p[0] * p[1])
    return p[0] * p[1]


def attribute_added(p):
    p.c = p.a * p.b
    return p.c**2


def attribute_deleted(p):
    a = p.a
    del p.a
    return p.b**3 * a


def nested(p):
    p["a"] = [p["a"]]
    return p["a"][0] ** 2 * p["b"]


def replaced(p):
    a = p["a"]
    p["a"] = "text"
    p["b"] = None
    return a**3


def cleared(p):
    total = sum(p.values()) ** 2
    p.clear()
    return total


CASES = [
    (renamed, dict, lambda a, b: 8 * a**3 * b, lambda a, b: (24 * a * a * b, 8 * a**3),
     lambda a, b: ((48 * a * b, 24 * a * a), (24 * a * a, 0.0))),
    (emptied, list, lambda a, b: b * b * a, lambda a, b: (b * b, 2 * a * b),
     lambda a, b: ((0.0, 2 * b), (2 * b, 2 * a))),
    (key_added, dict, *(square := (
        lambda a, b: (a * b) ** 2, lambda a, b: (2 * a * b * b, 2 * a * a * b),
        lambda a, b: ((2 * b * b, 4 * a * b), (4 * a * b, 2 * a * a))))),
    (entry_added, list, *square),
    (entry_before, list, lambda a, b: a * a * b, lambda a, b: (2 * a * b, a * a),
     lambda a, b: ((2 * b, 2 * a), (2 * a, 0.0))),
    (swapped, list, lambda a, b: 4 * b * b * a, lambda a, b: (4 * b * b, 8 * a * b),
     lambda a, b: ((0.0, 8 * b), (8 * b, 8 * a))),
    (rotated, deque, lambda a, b: a * b * b, lambda a, b: (b * b, 2 * a * b),
     lambda a, b: ((0.0, 2 * b), (2 * b, 2 * a))),
    (attribute_added, Box, *square),
    (attribute_added, Data, *square),
    (attribute_deleted, Box, *(cube := (
        lambda a, b: b**3 * a, lambda a, b: (b**3, 3 * b * b * a),
        lambda a, b: ((0.0, 3 * b * b), (3 * b * b, 6 * b * a))))),
    (attribute_deleted, Data, *cube),
    (nested, dict, lambda a, b: a * a * b, lambda a, b: (2 * a * b, a * a),
     lambda a, b: ((2 * b, 2 * a), (2 * a, 0.0))),
    (replaced, dict, lambda a, b: a**3, lambda a, b: (3 * a * a, 0.0), lambda a, b: ((6 * a, 0.0), (0.0, 0.0))),
    (cleared, dict, lambda a, b: (a + b) ** 2, lambda a, b: (2 * (a + b), 2 * (a + b)),
     lambda a, b: ((2.0, 2.0), (2.0, 2.0))),
]  # fmt: skip


def made(cls):
    return {"a": A, "b": B} if cls is dict else cls([A, B]) if cls in (list, deque) else cls(A, B)


def direction_of(cls):
    a, b = DIRECTION
    return [a, b] if cls in (list, deque) else {"a": a, "b": b}


def tangent_of(cls):
    return direction_of(cls) if cls in (dict, list, deque) else Tangent(cls, direction_of(cls))


def entries(found):
    return [found[0], found[1]] if isinstance(found, (list, tuple)) else [found["a"], found["b"]]


def held(p):
    return dict(vars(p)) if isinstance(p, (Box, Data)) else copy.copy(p)


FIRST = {
    "grad": lambda f, p, v: grad(f)(p),
    "vjp": lambda f, p, v: vjp(f, p)[1](1.0)[0],
    "jacobian, forward": lambda f, p, v: jacobian(f, mode="forward")(p),
    "jacobian, one by one": lambda f, p, v: jacobian(f, mode="forward", chunk_size=1)(p),
    "jacobian, reverse": lambda f, p, v: jacobian(f, mode="reverse")(p),
    "build_rrule": lambda f, p, v: build_rrule(f)(p)[1](1.0)[1],
}
ALONG = {
    "jvp": lambda f, p, v: jvp(f, (p,), (v,))[1],
    "linearize": lambda f, p, v: linearize(f, p)[1](v),
    "taylor": lambda f, p, v: taylor(f, p, 2, v)[1],
    "build_frule": lambda f, p, v: build_frule(f)(Dual(f, NoTangent), Dual(p, tangent_of(type(p)))).tangent,
}
PRODUCTS = {
    "hvp": lambda f, p, v: hvp(f, (p,), (v,))[0],
    "vhp": lambda f, p, v: vhp(f, (p,), (v,))[0],
    "linearize of grad": lambda f, p, v: linearize(grad(f), p)[1](v),
    "jvp of grad": lambda f, p, v: jvp(grad(f), (p,), (v,))[1],
}
ids = [f"{f.__name__} {cls.__name__}" for f, cls, *_ in CASES]


@pytest.mark.parametrize(("f", "cls", "y", "slopes", "second"), CASES, ids=ids)
def test_derivatives_are_by_the_argument_as_it_was_given(f, cls, y, slopes, second):
    plain = made(cls)
    assert f(plain) == pytest.approx(y(A, B))
    gradient, matrix = np.array(slopes(A, B)), np.array(second(A, B))
    for name, take in {**FIRST, **ALONG, **PRODUCTS}.items():
        p = made(cls)
        found = take(f, p, direction_of(cls))
        wanted = gradient if name in FIRST else gradient @ DIRECTION if name in ALONG else matrix @ DIRECTION
        found = found if name in ALONG else entries(found)
        np.testing.assert_allclose(found, wanted, rtol=1e-13, atol=1e-13, err_msg=name)
        assert str(held(p)) == str(held(plain)), name  # it was left as a plain call leaves it
    for chunk_size in (None, 1):
        rows = entries(hessian(f, chunk_size=chunk_size)(made(cls)))
        np.testing.assert_allclose([entries(row) for row in rows], matrix, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(sparse_jacobian(f, made(cls)).toarray(), [gradient], rtol=1e-13)
    np.testing.assert_allclose(sparse_hessian(f, made(cls)).toarray(), matrix, rtol=1e-13)


def test_a_pullback_fits_the_value_as_it_was_returned():
    y, pullback = vjp(lambda x: [x * x, {"k": x**3}], 0.5)
    y.append(1.0)
    y[1]["l"] = 2.0
    del y[0]
    assert pullback([1.0, {"k": 2.0}]) == (1.0 + 6.0 * 0.25,)
    y, pullback = build_rrule(lambda x: [x * x, x])(0.5)
    y.clear()
    assert pullback([1.0, 1.0])[1] == 2.0


def test_a_hook_gets_and_gives_what_the_value_was():
    def f(x):
        p = {"k": x, "l": x * x}
        q = hook(lambda bar: {"k": bar["k"] * 10.0, "l": bar["l"]}, p)
        del p["k"]
        return q["k"] + q["l"]

    assert grad(f)(3.0) == 16.0


def test_an_argument_without_a_direction_is_held_fixed():
    def f(k, u):
        return k**3 * (u**2).sum()

    k, u = 2.0, np.array([1.0, 3.0])
    for product in (hvp, vhp):
        of_k, of_u = product(f, (k, u), (1.0, None))
        assert (of_k, of_u) == (pytest.approx(6 * k * 10.0), None)
        of_k, of_u = product(f, (k, u), (None, np.array([1.0, 0.0])))
        assert of_k is None
        np.testing.assert_allclose(of_u, [2 * k**3, 0.0])
        of_k, of_u = product(f, (k, u), (1.0, ZeroTangent))  # a direction that is zero is one
        np.testing.assert_allclose(of_u, 6 * k**2 * u)
        with pytest.raises(ArgumentError, match="held fixed"):
            product(f, (k, u), (None, None))


def test_what_is_held_fixed_need_not_have_a_derivative():
    def f(x, n):
        return x ** int(n) + len(str(n))

    for product in (hvp, vhp):
        assert product(f, (2.0, 3.0), (1.0, None)) == (12.0, None)
