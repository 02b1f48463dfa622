"""Copies that know instances of classes without hash."""

import copy

import numpy as np
import pytest

from plaingrad import grad, jvp, stop_gradient
from plaingrad.copying import deep_copy, shallow_copy
from plaingrad.testing import check_grads, checked


class Meta(type):
    def __eq__(cls, other):
        return cls is other


class Point(metaclass=Meta):
    def __init__(self, v):
        self.v = v

    def scaled(self, k):
        self.v = self.v * k
        return self.v


class Slotted(metaclass=Meta):
    __slots__ = ("a", "b")

    def __init__(self, a, b):
        self.a, self.b = a, b


class Listed(list, metaclass=Meta):
    pass


class Table(dict, metaclass=Meta):
    pass


class Own(metaclass=Meta):
    def __init__(self, v):
        self.v = v

    def __copy__(self):
        return Own((self.v, "copied"))

    def __deepcopy__(self, memo):
        return Own((deep_copy(self.v, memo), "copied"))


class Plain:
    pass


def test_a_deep_copy_of_everything_keeps_what_is_shared():
    x = Plain()
    x.p = Point([1.0])
    x.q, x.me, x.t = x.p, x, (x.p, 1)
    x.f, x.cls, x.a = len, Point, np.ones(2)
    x.s, x.l, x.d, x.o = Slotted(1.0, [2.0]), Listed([Point(1.0)]), Table(a=Point(2.0)), Own([1.0])
    x.l.note = 3
    with pytest.raises(TypeError):
        copy.deepcopy(x)
    y, again = deep_copy([x, x])
    assert y is again and y is not x and y.me is y
    assert y.p is y.q is y.t[0] and y.p is not x.p and y.p.v == [1.0] and y.p.v is not x.p.v
    assert y.f is len and y.cls is Point and y.a is not x.a and y.a.tolist() == [1.0, 1.0]
    assert type(y.s) is Slotted and (y.s.a, y.s.b) == (1.0, [2.0]) and y.s.b is not x.s.b
    assert type(y.l) is Listed and y.l.note == 3 and y.l[0] is not x.l[0] and y.l[0].v == 1.0
    assert type(y.d) is Table and y.d["a"].v == 2.0 and y.d["a"] is not x.d["a"]
    assert y.o.v == ([1.0], "copied") and y.o.v[0] is not x.o.v


def test_a_deep_copy_of_what_has_none_raises_as_it_does_plainly():
    for x in ([Point(iter([1.0, 2.0])), (k for k in ())], (k for k in ())):
        with pytest.raises(TypeError, match="cannot pickle"):
            deep_copy(x)


def test_shallow_copies():
    p = Point([1.0])
    assert shallow_copy(p).v is p.v and shallow_copy(p) is not p and type(shallow_copy(p)) is Point
    assert shallow_copy(Listed([p]))[0] is p and type(shallow_copy(Listed([p]))) is Listed
    assert shallow_copy(Table(a=p))["a"] is p
    assert shallow_copy(Slotted(p, 1.0)).a is p
    assert shallow_copy(Own(p)).v == (p, "copied")


def test_check_grads_and_the_checked_mode_take_such_objects():
    def f(p, k):
        return p.scaled(k) * p.v

    check_grads(f, (Point(1.5), 2.0))
    with checked() as checks:
        assert grad(f)(Point(1.5), 2.0).v == 12.0
        assert jvp(f, (Point(1.5), 2.0), ({"v": 1.0}, 0.0))[1] == 12.0
    assert checks.compared == 2 and not checks.passed_by


def test_constants_made_of_such_containers_keep_their_class():
    def f(x):
        kept = stop_gradient([Listed([x, x * x]), Table(a=x)])
        assert type(kept[0]) is Listed and type(kept[1]) is Table
        return x * kept[0][1] * kept[1]["a"]

    assert grad(f)(1.5) == 1.5**3
