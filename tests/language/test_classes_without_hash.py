"""Classes whose metaclass has `__eq__` without `__hash__`, or compares classes in its own way, are classes like others.

The first can be no keys of a table; of the second, two may be equal, and a table would take one for the other.
"""

import copy
import math
import threading

import numpy as np
import pytest

import plaingrad
from plaingrad import Tangent, derivative, grad, hessian, jacobian, jvp, value_and_grad, vjp
from plaingrad.testing import checked

BOTH = pytest.mark.parametrize("operator", [grad, derivative])


class Meta(type):
    """Its classes have no hash."""

    def __eq__(cls, other):
        return cls is other


class ByName(type):
    """Its classes are equal where their names are."""

    def __eq__(cls, other):
        return isinstance(other, type) and cls.__name__ == other.__name__

    def __hash__(cls):
        return hash(cls.__name__)


class Asking(Meta):
    """Calls of its classes are Python code."""

    def __call__(cls, *args):
        made = super().__call__(*args)
        made.note = args[0] * 2.0
        return made


class Vec(metaclass=Meta):
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __add__(self, o):
        return Vec(self.x + o.x, self.y + o.y) if isinstance(o, Vec) else NotImplemented

    def __radd__(self, o):
        return self if o == 0 else NotImplemented

    def __mul__(self, k):
        return Vec(self.x * k, self.y * k)

    __rmul__ = __mul__

    def __imul__(self, k):
        self.x *= k
        self.y *= k
        return self

    def __neg__(self):
        return Vec(-self.x, -self.y)

    def __abs__(self):
        return math.hypot(self.x, self.y)

    def __divmod__(self, k):
        return self.x // k, self.y % k

    def __matmul__(self, o):
        return self.x * o.x + self.y * o.y

    def __eq__(self, o):
        return self.x == o.x

    def __lt__(self, o):
        return self.x < o.x

    def __hash__(self):
        return 7

    def __bool__(self):
        return self.x > 0

    def __len__(self):
        return 2

    def __iter__(self):
        yield self.x
        yield self.y

    def __getitem__(self, k):
        return (self.x, self.y)[k]

    def __setitem__(self, k, v):
        setattr(self, "xy"[k], v)

    def __contains__(self, v):
        return v in (self.x, self.y)

    def __call__(self, k):
        return self.x * k + self.y

    def __enter__(self):
        self.x = self.x * 2.0
        return self

    def __exit__(self, *error):
        self.y = self.x

    def __float__(self):
        return self.x

    @property
    def square(self):
        return self.x * self.x

    @square.setter
    def square(self, v):
        self.x = v**0.5

    @classmethod
    def of(cls, x):
        return cls(x, 1.0)

    @staticmethod
    def twice(x):
        return 2.0 * x


class Sub(Vec):
    def __add__(self, o):
        return super().__add__(o) * 3.0


class Slotted(metaclass=Meta):
    __slots__ = ("__b", "a")

    def __init__(self, a, b):
        self.a, self.__b = a, b

    def product(self):
        return self.a * self.__b


class Noted(metaclass=Asking):
    def __init__(self, v):
        self.v = v


class Metres(float, metaclass=Meta):
    def __add__(self, o):
        return Metres(float(self) + float(o))


class Listed(list, metaclass=Meta):
    def total(self):
        return sum(self)


class Table(dict, metaclass=Meta):
    def __missing__(self, key):
        return key * 2.0


class Reader(metaclass=Meta):
    """A descriptor."""

    def __get__(self, o, cls=None):
        return o.v * 3.0


class Failure(Exception, metaclass=Meta):
    pass


class Holder:
    reader = Reader()

    def __init__(self, v):
        self.v = v


CAPTURED = Vec(2.0, 1.0)


def raised(x):
    try:
        raise Failure(x * x)
    except Failure as error:
        return error.args[0]


def written(x):
    v = Vec(1.0, 1.0)
    v[0] = x
    v.square = v.square * x
    v *= 2.0
    return v.x


def managed(x):
    with Vec(x, 0.0) as v:
        pass
    return v.y * x


def table(x):
    t = Table(a=x)
    t["b"] = x * x
    return t["a"] * t["b"] + t[x]


PROGRAMS = {  # at 1.5: the program, its slope
    "method": (lambda x: CAPTURED(x) * x, 4 * 1.5 + 1),
    "call": (lambda x: Vec(x, x)(x), 2 * 1.5 + 1),
    "operators": (lambda x: (Vec(x, 1.0) + 2.0 * Vec(x, x) + -Vec(1.0, x)).y, 1.0),
    "reflected sum": (lambda x: sum([Vec(x, x), Vec(x * x, 1.0)]).x, 1 + 2 * 1.5),
    "matmul": (lambda x: Vec(x, 1.0) @ Vec(x, x), 2 * 1.5 + 1),
    "divmod": (lambda x: divmod(Vec(x, x), 1.0)[1], 1.0),
    "abs": (lambda x: abs(Vec(x, 2.0 * x)), 5**0.5),
    "subclass": (lambda x: (Vec(x, x) + Sub(x, x)).x + (Sub(x, x) + Vec(x, x)).x, 2 + 6.0),
    "sorted": (lambda x: sorted([Vec(4.0, x), Vec(x, x * x)])[0].y, 2 * 1.5),
    "compared": (lambda x: x if Vec(x, 0.0) < Vec(2.0, 0.0) else 0.0, 1.0),
    "equal": (lambda x: x * 2.0 if Vec(x, 0.0) == Vec(x, 1.0) and CAPTURED != Vec(x, 0.0) else 0.0, 2.0),
    "keys": (lambda x: {Vec(x, 1.0): x * x}[Vec(x, 2.0)], 2 * 1.5),
    "truth": (lambda x: x * 2.0 if Vec(x, 0.0) else 0.0, 2.0),
    "len and iteration": (lambda x: len(Vec(x, x)) * sum(part for part in Vec(x, x * x)), 2 * (1 + 2 * 1.5)),
    "items": (lambda x: Vec(x, x * x)[1] * (x in Vec(x, 0.0)), 2 * 1.5),
    "unpacked": (lambda x: (lambda a, b: a * b)(*Vec(x, x)), 2 * 1.5),
    "written": (written, 3 * 1.5**0.5),
    "managed": (managed, 4 * 1.5),
    "property": (lambda x: Vec(x, 0.0).square, 2 * 1.5),
    "class and static methods": (lambda x: Vec.of(x).x * Vec.twice(x), 4 * 1.5),
    "slots": (lambda x: Slotted(x, x).product(), 2 * 1.5),
    "metaclass call": (lambda x: Noted(x).note * Noted(x).v, 4 * 1.5),
    "float": (lambda x: float(Vec(x, 0.0)) + math.sin(Vec(x, 0.0)), 1 + math.cos(1.5)),
    "a kind of float": (lambda x: float(Metres(x) + Metres(x * x)), 1 + 2 * 1.5),
    "a kind of list": (lambda x: Listed([x, x * x, Listed([x])[0]]).total(), 2 + 2 * 1.5),
    "a kind of dict": (table, 3 * 1.5**2 + 2.0),
    "descriptor": (lambda x: Holder(x).reader, 3.0),
    "exception": (raised, 2 * 1.5),
    "isinstance": (lambda x: x * isinstance(Sub(x, x), Vec) * (not isinstance(x, Vec)), 1.0),
    "issubclass": (lambda x: x * issubclass(Sub, Vec), 1.0),
    "getattr": (lambda x: getattr(Vec(x, 1.0), "x") * hasattr(CAPTURED, "y"), 1.0),
    "in containers": (lambda x: [Vec(x, 1.0)][0].x * {"v": (Vec(x, 1.0),)}["v"][0].x, 2 * 1.5),
    "an array of objects": (lambda x: np.array([x, x * x], dtype=object).sum() * Vec(x, 0.0).x, 2 * 1.5 + 3 * 1.5**2),
    "made inside": (lambda x: Meta("Made", (Vec,), {"k": x})(x, x).k * x, 2 * 1.5),
    "a class statement": (lambda x: made_in_a_statement(x), 2 * 1.5),
    "copied": (lambda x: Vec.of(x).__class__(*Vec(x, x)).y, 1.0),
}


def made_in_a_statement(x):
    class Made(Vec, metaclass=Meta):
        rate = x

        def scaled(self):
            return self.rate * self.x

    return Made(x, 0.0).scaled()


@BOTH
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_class_without_hash(operator, name):
    f, slope = PROGRAMS[name]
    assert operator(f)(1.5) == pytest.approx(slope, rel=1e-12)
    assert operator(f)(1.5) == pytest.approx(slope, rel=1e-12)


@pytest.mark.parametrize("name", PROGRAMS)
def test_its_value_and_second_derivative(name):
    f, _ = PROGRAMS[name]
    assert value_and_grad(f)(1.5)[0] == f(1.5)
    h = 1e-5
    expected = (grad(f)(1.5 + h) - grad(f)(1.5 - h)) / (2 * h)
    for second in (grad(grad(f)), derivative(grad(f)), grad(derivative(f))):
        assert second(1.5) == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in ("made inside", "a class statement")])
def test_in_threads(name):
    f, slope = PROGRAMS[name]
    found = []
    threads = [threading.Thread(target=lambda: found.append(grad(f)(1.5))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == pytest.approx([slope] * 4, rel=1e-12)


def test_as_an_argument():
    v = Vec(3.0, 2.0)
    g = grad(lambda v: v(v.x) * v.y)(v)
    assert type(g) is Tangent and g.primal_type is Vec and (g.x, g.y) == (12.0, 13.0)
    assert (v.x, v.y) == (3.0, 2.0)
    s = grad(Slotted.product)(Slotted(3.0, 2.0))
    assert s["a"] == 2.0 and s["_Slotted__b"] == 3.0
    listed = grad(lambda vs: sum(v.square for v in vs["all"]))({"all": [Vec(3.0, 2.0), Sub(1.0, 1.0)]})
    assert [part.x for part in listed["all"]] == [6.0, 2.0] and listed["all"][1].primal_type is Sub
    assert grad(Listed.total)(Listed([1.0, 2.0])) == [1.0, 1.0]
    assert grad(lambda t: t["a"] * t["b"])(Table(a=2.0, b=3.0)) == {"a": 3.0, "b": 2.0}
    assert grad(lambda m: float(m) * m.real)(Metres(3.0)) == 6.0


def test_a_kind_of_float_in_every_mode():
    def f(x):
        return Metres(x) * Metres(x) * x

    for x in (1.5, Metres(1.5)):
        assert derivative(f)(x) == pytest.approx(3 * 1.5**2)
        assert jacobian(f)(x) == pytest.approx(3 * 1.5**2)
        assert hessian(f)(x) == pytest.approx(6 * 1.5)
        assert derivative(f, order=3)(x) == pytest.approx(6.0)
        assert jvp(f, (x,), (2.0,))[1] == pytest.approx(6 * 1.5**2)
        assert jvp(f, (x,), (Metres(2.0),))[1] == pytest.approx(6 * 1.5**2)
        assert vjp(f, x)[1](Metres(2.0))[0] == pytest.approx(6 * 1.5**2)
    rows = jacobian(lambda x: Metres(x[0]) * Metres(x[1]))(np.array([2.0, 3.0]))
    assert rows.tolist() == [3.0, 2.0]


def test_tangents_and_cotangents():
    def f(v):
        return Vec(v.x * v.y, v.x)

    y, y_dot = jvp(f, (Vec(3.0, 2.0),), (Tangent(Vec, {"x": 1.0, "y": 10.0}),))
    assert (y.x, y.y) == (6.0, 3.0) and type(y_dot) is Tangent and (y_dot.x, y_dot.y) == (32.0, 1.0)
    y, pullback = vjp(f, Vec(3.0, 2.0))
    (v_bar,) = pullback(Tangent(Vec, {"x": 1.0, "y": 10.0}))
    assert (v_bar.x, v_bar.y) == (12.0, 3.0)
    (v_bar,) = pullback({"x": 1.0})
    assert (v_bar.x, v_bar.y) == (2.0, 3.0)
    assert plaingrad.zero_tangent(y) == Tangent(Vec, {"x": 0.0, "y": 0.0})
    of_vectors = plaingrad.tangent_type(Vec)
    assert plaingrad.tangent_type(y) is of_vectors and isinstance(y_dot, of_vectors) and issubclass(of_vectors, Tangent)
    projected = plaingrad.project_to(y)({"x": 2.0 + 1.0j})
    assert (projected.x, projected.y) == (2.0, plaingrad.ZeroTangent)
    assert v_bar + v_bar == 2.0 * v_bar
    rows = jacobian(lambda v: np.array([v.x * v.y, v.x]))(Vec(3.0, 2.0))
    assert rows.x.tolist() == [2.0, 1.0] and rows.y.tolist() == [3.0, 0.0]
    assert hessian(lambda x: Vec(x[0], x[1])(x[0]))(np.array([3.0, 2.0])).tolist() == [[2.0, 0.0], [0.0, 0.0]]


def test_checked_and_with_rules():
    class Model(metaclass=Meta):
        def __init__(self, k):
            self.k = k

        def __call__(self, x):
            return self.k * x

    with checked():
        assert grad(lambda x: Vec(x, x)(x))(1.5) == 4.0
        assert grad(lambda v: v(v.x))(Vec(1.5, 2.0)).x == 3.0

    @plaingrad.rrule(Model)
    def model_rrule(k):
        model = Model(k)

        def model_pullback(model_bar):
            return (model_bar["k"] * 100.0,)

        return model, model_pullback

    assert grad(lambda x: Model(x)(1.0))(2.0) == 100.0

    def area(v: Vec) -> float:
        return v.x * v.y

    @plaingrad.rrule(area)
    def area_rrule(v: Vec):
        return v.x * v.y, lambda z_bar: (Tangent(Vec, {"x": z_bar * v.y, "y": z_bar * v.x * 50.0}),)

    assert grad(lambda x: area(Vec(x, x)))(2.0) == 102.0


def test_errors_are_those_of_the_plain_call():
    programs = [
        lambda x: {Vec: x},
        lambda x: hash(Vec) * x,
        lambda x: Vec(x, x) - 1.0,
        lambda x: Vec(x),
        lambda x: Vec(x, x).missing,
        lambda x: Slotted(x, x) < Slotted(x, x),
        lambda x: Slotted(x, x)[0],
        lambda x: {Slotted(x, x): 1}[Listed()],
        lambda x: copy.deepcopy(Slotted(x, x)),
    ]
    for f in programs:
        with pytest.raises((TypeError, AttributeError)) as plain:
            f(1.5)
        for operator in (grad, derivative):
            with pytest.raises(type(plain.value)) as found:
                operator(f)(1.5)
            assert type(found.value) is type(plain.value) and str(found.value) == str(plain.value)


def test_a_class_that_is_changed_while_the_program_runs():
    class Rate(metaclass=Meta):
        def __lt__(self, o):
            return True

    def f(x):
        first, second = Rate(), Rate()
        first.v, second.v = x, x * x
        low = sorted([second, first])[0].v
        Rate.__lt__ = lambda self, o: self.__dict__.update(v=self.v * x) or False
        min(first, second)
        Rate.__lt__ = lambda self, o: True
        return low + second.v

    assert f(1.5) == 1.5 + 1.5**3
    for operator in (grad, derivative):
        assert operator(f)(1.5) == pytest.approx(1 + 3 * 1.5**2)


def scaling(k):
    class Scaled(metaclass=ByName):
        def __init__(self, v):
            self.v = v

        def __lt__(self, o):
            self.v = self.v * k
            return self.v < o.v

    return Scaled


def having(*names):
    return ByName("Having", (), {"__slots__": names})


@BOTH
def test_equal_classes_are_not_taken_for_each_other(operator):
    one, other = scaling(2.0), scaling(3.0)
    assert one == other and one is not other

    def f(x):
        ones, others = [one(x), one(x * x)], [other(x), other(x * x)]
        ones.sort()
        others.sort()
        return ones[0].v * ones[1].v + others[0].v * others[1].v

    assert f(1.5) == pytest.approx(5 * 1.5**3)
    assert operator(f)(1.5) == pytest.approx(15 * 1.5**2)


def test_objects_of_equal_classes_have_their_own_fields():
    for name in ("a", "b"):
        o = having(name)()
        setattr(o, name, 3.0)
        assert grad(lambda o, name=name: getattr(o, name) ** 2)(o)[name] == 6.0


def test_a_rule_for_a_class_is_not_that_of_an_equal_one():
    one, other = scaling(1.0), scaling(1.0)

    @plaingrad.rrule(one)
    def one_rrule(v):
        return one(v), lambda o_bar: (o_bar["v"] * 100.0,)

    assert grad(lambda x: one(x).v)(1.5) == 100.0
    assert grad(lambda x: other(x).v)(1.5) == 1.0


def test_the_native_tier_refuses_it_by_name():
    pytest.importorskip("numba")
    with pytest.raises(plaingrad.NativeError, match="argument 0, of type Vec, is nothing that Numba takes"):
        grad(lambda v: v.x * 2.0, tier="native")(Vec(1.5, 1.0))
    with pytest.raises(plaingrad.NativeError, match="Numba cannot compile"):
        grad(lambda x: Vec(x, x).x, tier="native")(1.5)
    assert grad(lambda v: v.x * 2.0, tier="auto")(Vec(1.5, 1.0)).x == 2.0


class Keyed(type):
    """Comparing one of its classes with any other raises."""

    key = 1

    def __eq__(cls, other):
        return cls.key == other.key

    def __hash__(cls):
        return hash(cls.key)


class Rated(metaclass=Keyed):
    def __init__(self, rate):
        self.rate = rate

    def __lt__(self, other):
        return self.rate < other.rate

    def __call__(self, x):
        return self.rate * x

    def __add__(self, other):
        return Rated(self.rate + other.rate)

    @property
    def double(self):
        return 2.0 * self.rate


@BOTH
def test_a_comparison_that_raises_is_not_made(operator):
    with pytest.raises(AttributeError):
        assert Rated == float

    def f(x):
        rates = sorted([Rated(x), Rated(x * x)])
        made = {"a": rates[0] + rates[1], "b": (Rated(2.0),)}
        return made["a"](x) * made["b"][0].double + isinstance(made["a"], Rated) * [*rates][0].rate

    assert operator(f)(1.5) == pytest.approx(4 * (2 * 1.5 + 3 * 1.5**2) + 1)
    assert grad(lambda r: r(2.0) * r.double)(Rated(1.5)).rate == 12.0
    with checked() as checks:
        assert grad(lambda r: r(2.0) * r.double)(Rated(1.5)).rate == 12.0
    assert not checks.passed_by
