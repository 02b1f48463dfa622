"""Objects: methods, operators, descriptors, metaclasses, protocols, and dunders that C code enters."""

import abc
import copy
import dataclasses
import datetime
import enum
import fractions
import heapq
import math
import operator
import types
from collections import namedtuple
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import pytest

import plaingrad
from cases import Fields, check, check_or_refused


class Vec:
    """A small vector with every arithmetic dunder."""

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __add__(self, o):
        if not isinstance(o, Vec):
            return NotImplemented
        return Vec(self.x + o.x, self.y + o.y)

    def __radd__(self, o):
        return self if o == 0 else Vec(o + self.x, o + self.y)

    def __sub__(self, o):
        return Vec(self.x - o.x, self.y - o.y)

    def __rsub__(self, o):
        return Vec(o - self.x, o - self.y)

    def __mul__(self, k):
        return Vec(self.x * k, self.y * k)

    __rmul__ = __mul__

    def __truediv__(self, k):
        return Vec(self.x / k, self.y / k)

    def __rtruediv__(self, k):
        return Vec(k / self.x, k / self.y)

    def __matmul__(self, o):
        return self.x * o.x + self.y * o.y

    def __rmatmul__(self, o):
        return o[0] * self.x + o[1] * self.y

    def __mod__(self, k):
        return Vec(self.x % k, self.y % k)

    def __floordiv__(self, k):
        return Vec(self.x // k, self.y // k)

    def __divmod__(self, k):
        return self // k, self % k

    def __pow__(self, n, m=None):
        return Vec(self.x**n, self.y**n) if m is None else Vec(self.x**n * m, self.y**n * m)

    def __rpow__(self, b):
        return Vec(b**self.x, b**self.y)

    def __neg__(self):
        return Vec(-self.x, -self.y)

    def __pos__(self):
        return Vec(self.x * 3.0, self.y * 3.0)

    def __invert__(self):
        return Vec(self.y, -self.x)

    def __abs__(self):
        return math.hypot(self.x, self.y)

    def __iadd__(self, o):
        self.x += o.x
        self.y += o.y
        return self

    def __imul__(self, k):
        self.x *= k
        self.y *= k
        return self

    def __lshift__(self, k):
        return Vec(self.x + k, self.y)

    def __rshift__(self, k):
        return Vec(self.x, self.y + k)

    def __rrshift__(self, k):
        return Vec(k * self.x, self.y)

    def __and__(self, o):
        return Vec(self.x * o.x, self.y * o.y)

    def __or__(self, o):
        return Vec(self.x, o.y)

    def __xor__(self, o):
        return self.x * o.y - self.y * o.x

    def __getitem__(self, i):
        return (self.x, self.y)[i]

    def __setitem__(self, i, v):
        setattr(self, "xy"[i], v)

    def __iter__(self):
        yield self.x
        yield self.y

    def __len__(self):
        return 2

    def __call__(self, t):
        return self.x + self.y * t


def test_arithmetic_dunders_are_entered_from_operators():
    def f(x, y):
        a, b = Vec(x, y), Vec(y, 2.0)
        c = (a + b - a * 2.0 / y) @ (2.0 * b)
        d = (-a) ^ (~b)
        return c + d

    # a + b - 2a/y = (x + y - 2x/y, y) ; 2b = (2y, 4): c = 2y(x + y) - 4x + 4y
    # -a = (-x, -y); ~b = (2, -y): xor = (-x)(-y) - (-y)(2) = xy + 2y
    x, y = 2.0, 3.0
    check(f, x, y, gradient=(2 * y - 4 + y, 2 * x + 4 * y + 4 + x + 2))


def test_reflected_dunders_are_entered_when_the_left_operand_gives_up():
    def f(x, y):
        a = Vec(x, y)
        b = 10.0 - a
        c = 1.0 / a
        d = 2.0**a
        e = [y, x] @ a
        g = 5.0 >> a
        return b.x + c.y + d.x + e + g.x + sum([a, a]).y

    # 10 - x + 1/y + 2^x + 2xy + 5x + 2y
    x, y = 2.0, 3.0
    check(f, x, y, gradient=(-1 + 2**x * math.log(2) + 2 * y + 5, -1 / y**2 + 2 * x + 2))


def test_the_remaining_operators_reach_their_dunders():
    def f(x, y):
        a = Vec(x, y)
        q, r = divmod(a, 2.0)
        p = pow(a, 2, y)
        s = (a << y) >> x
        t = (a & a) | (a**3)
        return q.x + r.y + p.x + abs(a) + (+a).y + s.x * s.y + t.x + t.y

    # q.x const ; r.y = y - 2 ; x^2 y ; hypot ; 3y ; (x+y)^2 ; x^2 + y^3
    x, y = 2.5, 3.5
    h = math.hypot(x, y)
    check(
        f,
        x,
        y,
        gradient=(
            2 * x * y + x / h + 2 * (x + y) + 2 * x,
            1 + x * x + y / h + 3 + 2 * (x + y) + 3 * y * y,
        ),
    )


def test_in_place_dunders_mutate_or_fall_back():
    def f(x, y):
        a = Vec(x, y)
        alias = a
        a += Vec(y, 1.0)
        a *= x
        b = a
        b -= Vec(1.0, 2.0)  # no __isub__: a new object
        return alias.x + b.y * 10.0 + (alias is a) + (b is a)

    # alias.x = (x + y) x ; b.y = (y + 1) x - 2
    x, y = 2.0, 3.0
    check(f, x, y, gradient=(2 * x + y + 10 * (y + 1), x + 10 * x))


def test_items_iteration_length_and_calls_of_an_object():
    def f(x, y):
        v = Vec(x, y)
        v[1] = v[0] * v[-1]
        a, b = v
        v[0] += 1.0
        return a + b * 2 + sum(v) + v(x) * len(v) + max(v) + [*v][1]

    # y' = xy ; a = x ; b = xy ; sum = x + 1 + xy ; v(x) = x + 1 + x^2 y ; max = xy ; xy
    x, y = 2.0, 3.0
    check(f, x, y, gradient=(1 + 2 * y + 1 + y + 2 + 4 * x * y + 2 * y, 2 * x + x + 2 * x * x + 2 * x))


def test_an_object_is_an_argument_and_its_gradient_has_its_fields():
    check(lambda v, w: v @ w * abs(v), Vec(3.0, 4.0), Vec(1.0, 2.0), gradient=_vec_gradient())


def _vec_gradient():
    dot, h = 11.0, 5.0
    return (
        Fields(x=1.0 * h + dot * 3 / h, y=2.0 * h + dot * 4 / h),
        Fields(x=3.0 * h, y=4.0 * h),
    )


def test_an_object_with_call_and_a_bound_method_are_differentiable_functions():
    v = Vec(2.0, 3.0)
    check(v, 5.0, gradient=3.0)
    check(v.__mul__(2.0).__call__, 5.0, gradient=6.0)
    check(Vec(2.0, 1.5).__call__, 5.0, gradient=1.5)


class Polynomial:
    evaluations = 0

    def __init__(self, *coefficients):
        self.c = list(coefficients)

    @classmethod
    def from_roots(cls, *roots):
        out = cls(1.0)
        for r in roots:
            out = out * cls(-r, 1.0)
        return out

    @staticmethod
    def _convolve(a, b):
        out = [0.0] * (len(a) + len(b) - 1)
        for i, u in enumerate(a):
            for j, v in enumerate(b):
                out[i + j] += u * v
        return out

    def __mul__(self, other):
        return type(self)(*self._convolve(self.c, other.c))

    @property
    def derivative(self):
        return type(self)(*(k * c for k, c in enumerate(self.c) if k))

    def __call__(self, x):
        type(self).evaluations += 1
        out = 0.0
        for c in reversed(self.c):
            out = out * x + c
        return out


def test_class_methods_static_methods_and_properties_make_polynomials():
    def f(r, s, x):
        p = Polynomial.from_roots(r, s)
        return p(x) + 10.0 * p.derivative(x)

    def restart():
        Polynomial.evaluations = 0

    r, s, x = 1.0, -2.0, 0.5
    check(
        f,
        r,
        s,
        x,
        gradient=(-(x - s) - 10.0, -(x - r) - 10.0, 2 * x - r - s + 20.0),
        setup=restart,
        state=lambda: Polynomial.evaluations,
    )


def test_properties_with_setters_and_deleters_convert_units():
    class Temperature:
        def __init__(self, celsius):
            self._c = celsius

        @property
        def fahrenheit(self):
            return self._c * 9 / 5 + 32

        @fahrenheit.setter
        def fahrenheit(self, value):
            self._c = (value - 32) * 5 / 9

        @fahrenheit.deleter
        def fahrenheit(self):
            self._c = self._c * 0.0 + 1.0

        kelvin = property(lambda self: self._c + 273.15, lambda self, k: setattr(self, "_c", k - 273.15))

    def f(x):
        t = Temperature(x)
        t.fahrenheit += 18.0  # x + 10
        t.kelvin = t.kelvin * 2.0
        y = t._c
        del t.fahrenheit
        return y * t._c + t.fahrenheit

    check(f, 20.0, gradient=2.0)


def test_inheritance_with_zero_argument_super():
    class Base:
        def __init__(self, rate):
            self.rate = rate

        def price(self, t):
            return self.rate * t

    class Taxed(Base):
        def __init__(self, rate, tax):
            super().__init__(rate * 2.0)
            self.tax = tax

        def price(self, t):
            return super().price(t) * (1.0 + self.tax)

    class Doubled(Taxed):
        def price(self, t):
            inner = super().price
            return inner(t) + super(Taxed, self).price(t)

    def f(rate, tax):
        return Doubled(rate, tax).price(3.0)

    # 6 rate (1 + tax) + 6 rate
    check(f, 2.0, 0.5, gradient=(6 * 1.5 + 6, 12.0))


def test_a_diamond_visits_every_class_of_the_mro_once():
    class A:
        def go(self, x):
            return x

    class B(A):
        def go(self, x):
            return super().go(x * x) + 1.0

    class C(A):
        def go(self, x):
            return super().go(x * 3.0) * x

    class D(B, C):
        def go(self, x):
            return super().go(x + 1.0)

    # D -> B with u = x + 1 -> C with u^2 -> A: 3 u^2 * u^2 + 1
    x = 0.5
    check(lambda v: D().go(v), x, gradient=12 * (x + 1) ** 3)


def test_super_works_in_class_methods_static_new_and_property():
    class Base:
        def __new__(cls, *args):
            o = super().__new__(cls)
            o.made_with = args[0] * 2.0
            return o

        @classmethod
        def unit(cls, k):
            return cls(k)

        @property
        def size(self):
            return self.made_with + self.k

    class Child(Base):
        def __init__(self, k):
            self.k = k

        @classmethod
        def unit(cls, k):
            return super().unit(k * k)

        @property
        def size(self):
            return super().size * 10.0

    # (2 k^2 + k^2) * 10
    check(lambda k: Child.unit(k).size, 1.5, gradient=60 * 1.5)


def test_getattr_computes_missing_attributes():
    class Lazy:
        def __init__(self, x):
            self.x = x

        def __getattr__(self, name):
            if name.startswith("pow"):
                value = self.x ** int(name[3:])
                setattr(self, name, value)
                return value
            raise AttributeError(name)

    def f(x):
        o = Lazy(x)
        return o.pow3 + o.pow3 * o.pow2 + getattr(o, "none", 1.0) * hasattr(o, "pow4")

    x = 1.2
    check(f, x, gradient=3 * x * x + 5 * x**4)


def test_getattribute_and_setattr_intercept_every_access():
    class Scaled:
        def __init__(self, x):
            self.x = x

        def __getattribute__(self, name):
            value = super().__getattribute__(name)
            return value * 2.0 if name in ("x", "y") else value

        def __setattr__(self, name, value):
            super().__setattr__(name, value * value)

        def __delattr__(self, name):
            self.y = self.x
            super().__delattr__(name)

    def f(x):
        o = Scaled(x)  # stores x^2
        a = o.x  # 2 x^2
        o.y = a  # stores 4 x^4
        b = o.y  # 8 x^4
        del o.x  # y stores 4 x^4
        return a + b + o.y

    x = 1.1
    check(f, x, gradient=4 * x + 64 * x**3)


def test_descriptors_with_set_name_get_set_and_delete():
    class Logged:
        def __set_name__(self, owner, name):
            self.name = "_" + name

        def __get__(self, o, owner=None):
            if o is None:
                return self
            return math.exp(getattr(o, self.name))

        def __set__(self, o, value):
            setattr(o, self.name, math.log(value))

        def __delete__(self, o):
            setattr(o, self.name, getattr(o, self.name) * 2.0)

    class Model:
        rate = Logged()
        scale = Logged()

        def __init__(self, rate, scale):
            self.rate, self.scale = rate, scale

    def f(r, s):
        m = Model(r, s)
        m.rate *= s  # r s
        del m.scale  # s^2
        return m.rate * m.scale + m._rate

    # r s^3 + log(r s)
    r, s = 1.5, 2.0
    check(f, r, s, gradient=(s**3 + 1 / r, 3 * r * s * s + 1 / s), rtol=1e-12)


def test_a_non_data_descriptor_is_a_method_factory():
    class Method:
        def __init__(self, g):
            self.g = g

        def __get__(self, o, owner=None):
            return types.MethodType(self.g, o)

    class Thing:
        def __init__(self, x):
            self.x = x

        cube = Method(lambda self, k: k * self.x**3)

    check(lambda x: Thing(x).cube(x) + Thing.__dict__["cube"].g(Thing(x), 2.0), 1.2, gradient=4 * 1.2**3 + 6 * 1.44)


class Slotted:
    __slots__ = ("_cache", "a", "b")

    def __init__(self, a, b):
        self.a, self.b = a, b

    @property
    def product(self):
        try:
            return self._cache
        except AttributeError:
            self._cache = self.a * self.b
            return self._cache


class SlottedChild(Slotted):
    __slots__ = ("c",)


def test_slots_are_fields_of_arguments_and_gradients():
    def f(s):
        return s.product * s.product + s.a

    check(f, Slotted(2.0, 3.0), gradient=Fields(a=2 * 6.0 * 3.0 + 1, b=2 * 6.0 * 2.0))


def test_inherited_slots_and_slots_made_inside():
    def f(x, y):
        s = SlottedChild(x, y)
        s.c = s.product
        del s.a
        return s.c * s.b + hasattr(s, "a")

    check(f, 2.0, 3.0, gradient=(9.0, 12.0))


@dataclasses.dataclass
class Rates:
    growth: float
    death: float = 0.5
    steps: int = 3
    name: str = "fox"
    history: list = dataclasses.field(default_factory=list)
    ratio: float = dataclasses.field(init=False, default=0.0)

    def __post_init__(self):
        self.ratio = self.growth / self.death


@dataclasses.dataclass(frozen=True, order=True)
class Job:
    cost: float
    label: str = dataclasses.field(compare=False, default="")

    @property
    def double(self):
        return self.cost * 2.0


def test_a_dataclass_argument_gives_a_tangent_with_its_fields():
    def f(r):
        y = 1.0
        for _ in range(r.steps):
            y = y * r.growth - r.death
            r.history.append(y)
        return sum(r.history) + r.ratio

    # y1 = g - d ; y2 = g y1 - d ; y3 = g y2 - d
    g, d = 1.5, 0.5
    y1 = g - d
    y2 = g * y1 - d
    a1, b1 = 1.0, -1.0
    a2, b2 = y1 + g * a1, g * b1 - 1
    a3, b3 = y2 + g * a2, g * b2 - 1
    check(
        f,
        Rates(g),
        gradient=Fields(growth=a1 + a2 + a3, death=b1 + b2 + b3, steps=None, name=None, history=[], ratio=1.0),
    )


def test_dataclasses_are_built_replaced_and_converted_inside():
    def f(x, y):
        r = Rates(x, death=y)
        s = dataclasses.replace(r, growth=r.ratio * y * y)
        d = dataclasses.asdict(s)
        t = dataclasses.astuple(Job(x * y))
        fields = [getattr(s, field.name) for field in dataclasses.fields(s) if field.name == "ratio"]
        return d["growth"] + t[0] * 2 + fields[0] + copy.deepcopy(s).growth + copy.copy(r).ratio

    # growth = xy ; 2xy ; s.ratio = x ; xy ; x/y
    x, y = 2.0, 4.0
    check(f, x, y, gradient=(4 * y + 1 + 1 / y, 4 * x - x / y**2))


def test_a_frozen_ordered_dataclass_is_compared_and_hashed():
    def f(x, y):
        jobs = [Job(x, "a"), Job(y, "b"), Job(x * y, "c")]
        ordered = sorted(jobs)
        table = {job: job.cost for job in jobs}
        best = max(table)
        return ordered[0].double + 10 * best.cost + 100 * table[Job(y)]

    # y < x < xy
    check(f, 3.0, 2.0, gradient=(10 * 2.0, 2 + 10 * 3.0 + 100))


def test_a_frozen_dataclass_is_an_argument():
    check(lambda j: j.double * j.cost, Job(3.0, "z"), gradient=Fields(cost=12.0, label=None))


class Particle(NamedTuple):
    mass: float
    speed: float = 2.0

    @property
    def energy(self):
        return 0.5 * self.mass * self.speed**2

    def faster(self, k):
        return self._replace(speed=self.speed * k)


def test_typed_namedtuples_have_methods_and_defaults():
    check(lambda p, k: p.faster(k).energy, Particle(3.0), 2.0, gradient=(Particle(8.0, 24.0), 24.0))


def test_enums_with_values_and_behaviour_scale_numbers():
    class Unit(enum.Enum):
        METRE = 1.0
        FOOT = 0.3048

        def to_metres(self, v):
            return v * self.value

        @classmethod
        def parse(cls, name):
            return cls[name.upper()]

    class Mode(enum.IntEnum):
        LINEAR = 1
        SQUARE = 2

    def f(x):
        total = 0.0
        for unit in Unit:
            total += unit.to_metres(x)
        total += Unit.parse("foot").to_metres(x) ** Mode.SQUARE
        return total if Unit(1.0) is Unit.METRE else 0.0

    x = 2.0
    check(f, x, gradient=1.3048 + 2 * x * 0.3048**2)


def test_a_metaclass_controls_calls_attributes_and_namespaces():
    class Meta(type):
        def __prepare__(name, bases, **kw):  # noqa: N804
            return {"from_prepare": kw.get("k", 1.0)}

        def __new__(mcls, name, bases, namespace, k=1.0):
            namespace["tripled"] = k * 3.0
            return super().__new__(mcls, name, bases, namespace)

        def __init__(cls, name, bases, namespace, k=1.0):
            super().__init__(name, bases, namespace)
            cls.squared = k * k

        def __call__(cls, *args):
            o = super().__call__(*args)
            o.v = o.v * 10.0
            return o

        @property
        def unit(cls):
            return cls.squared + cls.tripled

        def __getitem__(cls, i):
            return cls.squared * i

        def __len__(cls):
            return 7

    def f(x):
        class Thing(metaclass=Meta, k=x):
            def __init__(self, v):
                self.v = v

        return Thing(x).v + Thing.unit + Thing[2.0] + Thing.from_prepare * len(Thing)

    # 10x + x^2 + 3x + 2 x^2 + 7x
    check(f, 1.5, gradient=20 + 6 * 1.5)


def test_a_class_body_computes_with_active_numbers():
    def f(x):
        class Model:
            rate = x * x
            table = [rate_ * 2.0 for rate_ in (x, 3.0)]
            if x > 0:
                sign = x
            else:
                sign = -x

            def __init__(self, k=rate):
                self.k = k

            def out(self):
                return self.k * self.rate + self.table[0] + self.sign

        Model.rate = Model.rate * 2.0
        return Model().out()

    # x^2 * 2 x^2 + 2x + x
    check(f, 1.5, gradient=8 * 1.5**3 + 3)


def test_class_attributes_are_shared_shadowed_and_restored():
    class Counter:
        total = 0.0

        def add(self, v):
            Counter.total += v
            self.total = v * 2.0
            return self

    class Sub(Counter):
        pass

    def restart():
        Counter.total = 0.0
        if "total" in vars(Sub):
            del Sub.total

    def f(x):
        a = Counter().add(x)
        b = Counter().add(x * x)
        Sub.total = Sub.total * x
        del a.total
        return Counter.total + b.total * 3 + Sub.total + a.total

    # S = x + x^2 (twice: class and a) ; 6 x^2 ; S x
    x = 1.5
    check(
        f,
        x,
        gradient=2 * (1 + 2 * x) + 12 * x + 2 * x + 3 * x * x,
        setup=restart,
        state=lambda: (Counter.total, vars(Sub).get("total")),
    )


def test_init_subclass_registers_and_configures():
    class Plugin:
        registry = {}

        def __init_subclass__(cls, /, gain=1.0, **kw):
            super().__init_subclass__(**kw)
            cls.gain = gain * 2.0
            cls.registry[cls.__name__] = cls

        def run(self, v):
            return self.gain * v

    def f(x):
        Plugin.registry.clear()

        class First(Plugin, gain=x):
            pass

        class Second(First, gain=x * x):
            def run(self, v):
                return super().run(v) + First().run(v)

        return sum(cls().run(x) for cls in Plugin.registry.values())

    # First: 2x^2 ; Second: 2 x^3 + 2 x^2
    x = 1.5
    check(f, x, gradient=8 * x + 6 * x * x)


def test_an_iterator_class_changes_its_state_between_steps():
    class Orbit:
        def __init__(self, x, n):
            self.x, self.n = x, n

        def __iter__(self):
            return self

        def __next__(self):
            if self.n == 0:
                raise StopIteration
            self.n -= 1
            self.x = self.x * self.x
            return self.x

        def __length_hint__(self):
            return self.n

    def f(x):
        orbit = Orbit(x, 4)
        first = next(orbit)
        rest = list(orbit)
        return first + sum(rest) + next(orbit, x) + sum(Orbit(x, 1))

    # x^2 + x^4 + x^8 + x^16 + x + x^2
    x = 1.1
    check(f, x, gradient=4 * x + 4 * x**3 + 8 * x**7 + 16 * x**15 + 1)


def test_the_old_sequence_protocol_iterates_with_getitem_only():
    class Squares:
        def __init__(self, v):
            self.v = v

        def __getitem__(self, i):
            if i >= len(self.v):
                raise IndexError
            return self.v[i] * self.v[i]

    def f(v):
        s = Squares(v)
        a, b, c = s
        return sum(s) + a * b + max(s) + list(s)[2] + (c in s)

    a, b, c = v = [1.0, 2.0, 3.0]
    check(f, v, gradient=[2 * a + 2 * a * b * b, 2 * b + 2 * b * a * a, 2 * c + 2 * c + 2 * c])


def test_a_reversible_container_and_missing_keys_compute():
    class Grow(dict):
        def __missing__(self, key):
            value = self["base"] * key
            self[key] = value
            return value

    class Span:
        def __init__(self, v):
            self.v = v

        def __reversed__(self):
            return (a * 2.0 for a in self.v[::-1])

    def f(x):
        g = Grow(base=x * x)
        s = g[3.0] + g[3.0] * g[2.0]
        w, out = 1.0, s
        for a in reversed(Span([x, 5.0])):
            out += w * a
            w *= 10
        return out

    # 3x^2 + 6 x^4 + 10 + 20 x
    x = 1.5
    check(f, x, gradient=6 * x + 24 * x**3 + 20)


def test_context_manager_classes_compute_on_entry_and_exit():
    class Scope:
        def __init__(self, stack, k):
            self.stack, self.k = stack, k

        def __enter__(self):
            self.stack.append(self.k * self.k)
            return self.stack

        def __exit__(self, kind, error, trace):
            self.stack.append(self.k * 3.0)
            return kind is ZeroDivisionError

    def f(x):
        stack = []
        with Scope(stack, x) as s, Scope(s, x * 2.0):
            s.append(x)
            1 / 0
        return sum(k * v for k, v in enumerate(stack, start=1))

    # x^2, 4x^2, x, 6x, 3x
    x = 1.5
    check(f, x, gradient=2 * x + 16 * x + 3 + 24 + 15)


def test_contains_computes_and_keeps_what_it_computed():
    class Interval:
        def __init__(self, low, high):
            self.low, self.high, self.depth = low, high, 0.0

        def __contains__(self, v):
            self.depth = (v - self.low) * (self.high - v)
            return self.depth > 0

    def f(v, low, high):
        i = Interval(low, high)
        return i.depth if v in i and 100.0 not in i else i.depth + 0.0

    # `100.0 not in i` computes last: (100 - low)(high - 100)
    check(f, 2.0, 1.0, 5.0, gradient=(0.0, -(5.0 - 100.0), 99.0))


def test_bool_and_len_entered_from_truth_tests_keep_what_they_computed():
    class Gate:
        def __init__(self, v):
            self.v, self.open = v, None

        def __bool__(self):
            self.open = self.v * self.v
            return self.open > 1.0

    class Bag:
        def __init__(self, v):
            self.v, self.seen = v, 0.0

        def __len__(self):
            self.seen = self.seen + self.v
            return 1

    def f(x):
        g, bag = Gate(x), Bag(x)
        y = x if g else -x
        z = g.open
        if not bag or bag and bool(bag):
            y += bag.seen
        return y + z + any([g, bag]) * g.open + len(bag) * bag.seen

    # y = x + 3x ; z = x^2 ; any stops at the gate: x^2 ; len: 4x
    x = 1.5
    check(f, x, gradient=1 + 3 + 4 * x + 4)


class Route:
    """Its comparisons, entered from C code, compute lengths and keep them."""

    def __init__(self, legs):
        self.legs = legs
        self.length = None

    def _measure(self):
        if self.length is None:
            self.length = math.fsum(self.legs) if len(self.legs) > 2 else self.legs[0] + self.legs[1]
        return self.length

    def __lt__(self, other):
        return self._measure() < other._measure()

    def __eq__(self, other):
        return self._measure() == other._measure()

    def __hash__(self):
        self.length = self.legs[0] * 1.0 + self.legs[1]
        return hash(self.length)


def routes(v):
    return [Route([v[0], v[1]]), Route([v[1], v[2]]), Route([v[0], v[2]])]


@pytest.mark.parametrize(
    "lengths_after",
    [
        lambda rs: sorted(rs),
        lambda rs: (rs.sort(), rs)[1],
        lambda rs: [min(rs), max(rs), rs[0]],
        lambda rs: [heapq.heapify(rs), heapq.heappop(rs), rs[0], rs[1]][1:],
        lambda rs: [rs[0], *rs[1:]] if rs.index(rs[2]) < 9 and rs[0] in rs[1:] + rs else rs,
        lambda rs: rs if rs.count(rs[1]) and rs[0] == rs[2] or rs[1] == rs[0] or True else rs,
        lambda rs: list({r: 1 for r in rs}),
        lambda rs: list(set(rs)),
        lambda rs: rs if (rs[0], 1.0) < (rs[1], 2.0) or [rs[2]] < [rs[1]] or True else rs,
    ],
    ids=["sorted", "sort", "min-max", "heap", "index-in", "count-eq", "dict", "set", "tuples"],
)
def test_comparison_and_hash_dunders_entered_from_c_keep_active_values(lengths_after):
    def f(v):
        return sum(r.length * r.length for r in lengths_after(routes(v)) if r.length is not None)

    a, b, c = v = [1.0, 2.5, 5.0]
    plain = {r.legs[0] + r.legs[1] for r in lengths_after(routes(v)) if r.length is not None}
    kept = [r for r in lengths_after(routes(v)) if r.length is not None]
    assert plain
    gradient = [0.0, 0.0, 0.0]
    for r in kept:
        for leg in r.legs:
            gradient[v.index(leg)] += 2 * r.length
    check(f, v, gradient=gradient)


def test_the_plain_class_is_unharmed_after_its_dunders_were_swapped():
    before = Route.__lt__.__code__, Route.__eq__.__code__, Route.__hash__.__code__
    plaingrad.grad(lambda v: sorted(routes(v))[0].length)([1.0, 2.0, 3.0])
    assert (Route.__lt__.__code__, Route.__eq__.__code__, Route.__hash__.__code__) == before
    assert sorted(routes([3.0, 2.0, 1.0]))[0].length == 3.0


def test_methods_and_dunders_replaced_while_the_program_runs_take_effect():
    def f(x):
        seen = []

        class Base:
            pass

        class Item(Base):
            def __init__(self, v):
                self.v = v

            def __lt__(self, other):
                return self.v < other.v

            @property
            def area(self):
                return self.v

        first = Item(x)
        sorted([first, Item(1.0)])
        Base.__len__ = lambda self: seen.append(self.v * 2.0) or 3
        Item.__lt__ = lambda self, other: seen.append(self.v * 5.0) or False
        total = len(first) * x
        sorted([first, first])
        Item.__init__ = lambda self, v: setattr(self, "v", v * v)
        total += Item(x).v + first.area
        Item.area = property(lambda self: self.v * 7.0)
        total += first.area
        del Base.__len__
        type.__setattr__(Item, "__call__", lambda self, k: self.v * k)
        return total + first(11.0) + sum(seen)

    # 3x + x^2 + x + 7x + 11x + 2x + 5x
    check(f, 1.5, gradient=3 + 2 * 1.5 + 1 + 7 + 11 + 2 + 5)


def test_an_object_changes_its_class_and_a_class_its_bases():
    def f(x):
        class A:
            def value(self):
                return x

            def __len__(self):
                return 1

        class B:
            def value(self):
                return x * x

            def __len__(self):
                seen.append(x * 3.0)
                return 2

        class C(A):
            pass

        seen = []
        a, c = A(), C()
        total = a.value() + len(a) + c.value()
        a.__class__ = B
        C.__bases__ = (B,)
        return total + a.value() + len(a) * x + c.value() + len(c) * x + sum(seen)

    # 2x + x^2 + 2x + x^2 + 2x + 6x
    check(f, 1.5, gradient=12 + 4 * 1.5)


@pytest.mark.unchecked  # which does not put back what a metaclass can reach
def test_a_metaclass_without_hash_is_only_asked_by_the_program():
    calls = []

    class Comparing(type):
        def __eq__(cls, other):
            calls.append("eq")
            return cls is other

    class Unhashable(metaclass=Comparing):
        def __init__(self, v):
            self.v = v

        def __lt__(self, other):
            return self.v < other.v

    def f(x):
        one = sorted([Unhashable(x), Unhashable(4.0)])[0].v
        return one * (Unhashable == type(Unhashable(x))) * (1 + (Unhashable == int))

    check(f, 1.5, gradient=1.0, setup=calls.clear, state=lambda: list(calls))


@pytest.mark.xfail(strict=True, reason="classes are keys of the engine's tables; see the page on limits")
@pytest.mark.unchecked
def test_a_metaclass_that_hashes_is_only_asked_by_the_program():
    calls = []

    class Hashing(type):
        def __hash__(cls):
            calls.append("hash")
            return 1

        def __eq__(cls, other):
            calls.append("eq")
            return cls is other

    class Counted(metaclass=Hashing):
        def __init__(self, v):
            self.v = v

        def __lt__(self, other):
            return self.v < other.v

    def f(x):
        return sorted([Counted(x * x), Counted(9.0)])[0].v * len({Counted: 1, int: 2})

    check(f, 1.5, gradient=4 * 1.5, setup=calls.clear, state=lambda: list(calls))


def test_abstract_base_classes_and_mixins_provide_methods():
    class Shape(abc.ABC):
        @property
        @abc.abstractmethod
        def area(self): ...

        @abc.abstractmethod
        def scaled(self, k):
            return k * self.area

        def volume(self, h):
            return self.area * h

    class Square(Shape):
        def __init__(self, a):
            self.a = a

        @property
        def area(self):
            return self.a**2

        def scaled(self, k):
            return super().scaled(k) + 1.0

    def f(a):
        with pytest.raises(TypeError):
            Shape()
        s = Square(a)
        return s.scaled(3.0) + s.volume(a) if isinstance(s, Shape) else 0.0

    check(f, 1.5, gradient=6 * 1.5 + 3 * 1.5**2)


def test_instance_and_subclass_checks_enter_python_and_keep_what_they_compute():
    def f(x):
        seen = []

        class Meta(type):
            def __instancecheck__(cls, o):
                seen.append(o * 2.0)
                return True

            def __subclasscheck__(cls, c):
                seen.append(x * x)
                return True

        class Kind(metaclass=Meta):
            pass

        class Hooked(abc.ABC):
            @classmethod
            def __subclasshook__(cls, c):
                seen.append(x * 5.0)
                return True

        assert isinstance(x, Kind) and issubclass(int, Kind) and isinstance(3, (list, Hooked))
        return sum(seen)

    check_or_refused(f, 1.5, gradient=2 + 3.0 + 5.0)


def test_module_level_getattr_and_dir_compute():
    def f(x):
        module = types.ModuleType("lazy")
        exec("def __getattr__(name):\n    return base * 2.0 if name == 'double' else None\n", module.__dict__)
        module.base = x * x
        return module.double + getattr(module, "double")

    check_or_refused(f, 1.5, gradient=8 * 1.5)


def test_finalisers_and_state_dunders_run_with_active_values():
    def f(x):
        log = []

        class Resource:
            def __init__(self, v):
                self.v = v

            def __del__(self):
                log.append(self.v * self.v)

            def __getstate__(self):
                return {"v": self.v * 2.0}

            def __setstate__(self, state):
                self.v = state["v"] * 3.0

        r = Resource(x)
        s = copy.copy(r)
        t = copy.deepcopy(s)
        total = s.v + t.v
        del r, s, t
        return total + sum(log)

    # 6x + 36x + x^2 + 36 x^2 + 36^2 x^2
    check(f, 1.5, gradient=42 + 2 * 1.5 * (1 + 36 + 1296))


def test_reflected_operators_of_every_kind_receive_the_number():
    class Odd:
        def __init__(self, k):
            self.k = k

        def __rsub__(self, o):
            return NotImplemented

        def __rdivmod__(self, o):
            return o * self.k, 1.0

        def __rpow__(self, o):
            return o**self.k

        def __rmatmul__(self, o):
            return o * 5.0

        def __rand__(self, o):
            return o * 7.0

        def __rmod__(self, o):
            return o * o

        def __rfloordiv__(self, o):
            return o * 11.0

    def f(x):
        odd = Odd(x)
        with pytest.raises(TypeError):
            x - odd
        return divmod(x, odd)[0] + x**odd + x @ odd + (x & odd) + x % odd + x // odd

    # x^2 + x^x + 5x + 7x + x^2 + 11x
    x = 1.5
    check(f, x, gradient=4 * x + x**x * (math.log(x) + 1) + 23)


def test_comparisons_may_return_numbers():
    class Fuzzy:
        def __lt__(self, o):
            return o * 2.0

        def __eq__(self, o):
            return o * 3.0

        def __ge__(self, o):
            return o * 5.0

    def f(x):
        fuzzy = Fuzzy()
        return (fuzzy < x) + (x > fuzzy) + (fuzzy == x) + (x <= fuzzy) + (x == fuzzy)

    check(f, 1.5, gradient=2 + 2 + 3 + 5 + 3)


def test_subscripts_take_objects_slices_and_active_keys():
    class Field:
        def __getitem__(self, key):
            if isinstance(key, slice):
                return key.start * key.stop
            return sum(key) if isinstance(key, tuple) else key * key

        def __setitem__(self, key, v):
            self.last = key.start * v

        def __delitem__(self, key):
            self.gone = key * 4.0

        def __class_getitem__(cls, key):
            return key * 9.0

    def f(x):
        field = Field()
        field[x:] = x
        del field[x]
        return field[x] + field[x:x] + field[x, 2.0, x] + field.last + field.gone + Field[x]

    # x^2 + x^2 + 2x + 2 + x^2 + 4x + 9x
    check(f, 1.5, gradient=6 * 1.5 + 15)


def test_protocols_are_checked_at_run_time_without_harm():
    @runtime_checkable
    class Field(Protocol):
        def at(self, x: float) -> float: ...

    class Spring:
        k = 3.0

        def at(self, x):
            return -self.k * x

    def f(x):
        force = Spring()
        return force.at(x) * x if isinstance(force, Field) and not isinstance(x, Field) else 0.0

    check(f, 1.5, gradient=-6 * 1.5)


def test_number_conversions_entered_from_c_give_back_active_numbers():
    class Money:
        def __init__(self, v):
            self.v = v

        def __float__(self):
            return self.v * 2.0

        def __index__(self):
            return 3

        def __complex__(self):
            return complex(self.v, 1.0)

        def __floor__(self):
            return self.v * 3.0

        def __round__(self, n=0):
            return self.v * 5.0

        def __trunc__(self):
            return self.v * 7.0

    def f(x):
        m = Money(x)
        return (
            float(m) * x
            + math.floor(m)
            + round(m)
            + round(m, 2)
            + math.trunc(m)
            + complex(m).real
            + [0.0, 1.0, 2.0, x][m]
            + operator.index(m)
        )

    x = 1.5
    check(f, x, gradient=4 * x + 3 + 5 + 5 + 7 + 1 + 1)


def test_a_float_subclass_is_exact_or_refused():
    class Metres(float):
        def __add__(self, o):
            return Metres(super().__add__(o))

        def __mul__(self, o):
            return Metres(float(self) * float(o))

    def f(x):
        m = Metres(x * 2.0)
        return float(m * m + m)

    check_or_refused(f, 1.5, gradient=8 * 1.5 + 2)


def test_an_instance_of_a_float_subclass_keeps_its_class_or_is_refused():
    class Tagged(float):
        unit = "m"

    def f(x):
        t = Tagged(x * 2.0)
        t.note = x * x
        assert type(t) is Tagged and t.unit == "m"
        return t.note * float(t) + t

    check_or_refused(f, 1.5, gradient=6 * 1.5**2 + 2)


class Odd(float):
    """A float whose operators mean something else."""

    def __add__(self, o):
        return float(self) * float(o)

    __radd__ = __add__

    def __mul__(self, o):
        return float(self) + 3.0 * float(o)

    __rmul__ = __mul__

    def __iadd__(self, o):
        return float(self) - float(o)

    def __pow__(self, o):
        return float(o) * 7.0

    def __getitem__(self, k):
        return float(self) * k


class OddFraction(fractions.Fraction):
    def __mul__(self, o):
        return 5.0 * o


class OddArray(np.ndarray):
    def __mul__(self, o):
        return np.asarray(self) + o

    def __getitem__(self, i):
        return np.asarray(self)[i] * 10.0

    def __setitem__(self, i, v):
        np.asarray(self)[i] = v * 2.0


class OddList(list):
    def __add__(self, o):
        return sum(self) * o


def odd_in_place(x):
    k = Odd(2.0)
    k += x
    return k


def odd_write(x):
    a = np.zeros(2).view(OddArray)
    a[1] = x
    return float(a[1])


@pytest.mark.parametrize(
    ("f", "slope"),
    [
        (lambda x: Odd(2.0) + x, 2.0),
        (lambda x: x + Odd(2.0), 2.0),
        (lambda x: x * Odd(2.0), 3.0),
        (lambda x: Odd(2.0) ** x, 7.0),
        (lambda x: Odd(2.0)[x], 2.0),
        (odd_in_place, -1.0),
        (lambda x: OddFraction(1, 2) * x, 5.0),
        (lambda x: float((np.ones(2).view(OddArray) * x).sum()), 2.0),
        (lambda x: float((np.array([x, 1.0]).view(OddArray) * x).sum()), 3.0),
        (lambda x: float(np.array([x, 1.0]).view(OddArray)[0]), 10.0),
        (odd_write, 20.0),
        (lambda x: OddList([1.0, x]) + x, 1.0 + 2 * 1.5),
    ],
)
def test_subclasses_of_numbers_and_arrays_have_operators_of_their_own(f, slope):
    check_or_refused(f, 1.5, gradient=slope)


class Own(float):
    """A float with conversions and one-place operators of its own."""

    def __init__(self, v):
        self.whole = v * 3.0

    def __neg__(self):
        return self.whole * 7.0

    def __float__(self):
        return self.whole * 9.0

    def __divmod__(self, o):
        return self.whole * 2.0, o

    def __add__(self, o):
        return NotImplemented


class OwnTimes(np.ndarray):
    """An array whose product calls that of its base by name."""

    def __mul__(self, o):
        return np.asarray(np.ndarray.__mul__(self, o)) * 3.0

    def __add__(self, o):
        return super().__add__(o) * 2.0


class OwnCount(int):
    """An int with operators of its own."""

    def __mul__(self, o):
        return o * o


class OwnUfuncs(np.ndarray):
    """An array whose ufuncs give three times as much."""

    def __array_ufunc__(self, ufunc, method, *args, **kwargs):
        return getattr(ufunc, method)(*[np.asarray(a) for a in args], **kwargs) * 3.0


def list_and_array(x):
    a = [1.0, 2.0]
    a += np.array([x, x * x])
    return float(a @ np.array([1.0, 3.0]))


@pytest.mark.parametrize(
    ("f", "slope"),
    [
        (lambda x: Own(x).whole, 3.0),
        (lambda x: -Own(x), 21.0),
        (lambda x: float(Own(x)), 27.0),
        (lambda x: divmod(Own(x), 2)[0], 6.0),
        (lambda x: Own(x) + 2.0, 1.0),
        (lambda x: x + Own(x), 2.0),
        (lambda x: OwnCount(2) * x, 2 * 1.5),
        (lambda x: float((np.array([x, 1.0]).view(OwnUfuncs) * 2.0).sum()), 6.0),
        (lambda x: float((np.array([x, 1.0]).view(OwnTimes) * 2.0).sum()), 6.0),
        (lambda x: float((np.array([x, 1.0]).view(OwnTimes) + x).sum()), 3 * 2 * 3.0),
        (list_and_array, 1.0 + 3 * 2 * 1.5),
    ],
)
def test_own_conversions_and_fallbacks_of_subclasses_of_numbers(f, slope):
    check_or_refused(f, 1.5, gradient=slope)


def test_an_active_number_times_an_object_of_c_code_is_exact_or_refused():
    def f(x):
        return (datetime.timedelta(days=1) * x).total_seconds()

    def g(x):
        return float((np.timedelta64(10**6, "s") * x) / np.timedelta64(1, "s"))

    check_or_refused(f, 1.5, gradient=86400.0)
    check_or_refused(g, 1.5, gradient=1e6)


def test_subclasses_of_list_and_dict_compute_in_their_overrides():
    class Doubling(list):
        def __getitem__(self, i):
            return super().__getitem__(i) * 2.0

        def append(self, v):
            super().append(v * v)

    class Logging(dict):
        def __setitem__(self, k, v):
            super().__setitem__(k, v * 3.0)

        def get(self, k, default=0.0):
            return super().get(k, default) + 1.0

    def f(x):
        d = Doubling([x])
        d.append(x)
        e = Logging()
        e["k"] = d[1]
        return d[0] + e["k"] * e.get("k") + e.get("none", x) + sum(d)

    # 2x + (6 x^2)(6 x^2 + 1) + x + 1 + x + x^2
    x = 1.2
    check(f, x, gradient=2 + 36 * 4 * x**3 + 12 * x + 1 + 1 + 2 * x)


def test_copy_dunders_decide_what_a_copy_holds():
    class Sample:
        def __init__(self, v):
            self.v = v

        def __copy__(self):
            return Sample(self.v * 2.0)

        def __deepcopy__(self, memo):
            return Sample(self.v * 3.0)

    def f(x):
        s = Sample(x)
        nested = copy.deepcopy([s, (s, {"k": s})])
        return copy.copy(s).v + nested[0].v + nested[1][1]["k"].v

    check(f, 1.5, gradient=2 + 3 + 3)


def test_an_automatic_differentiation_class_of_the_users_own_is_differentiated():
    class Dual:
        def __init__(self, v, d=0.0):
            self.v, self.d = v, d

        def __add__(self, o):
            o = o if isinstance(o, Dual) else Dual(o)
            return Dual(self.v + o.v, self.d + o.d)

        def __mul__(self, o):
            o = o if isinstance(o, Dual) else Dual(o)
            return Dual(self.v * o.v, self.v * o.d + self.d * o.v)

        __radd__, __rmul__ = __add__, __mul__

        def sin(self):
            return Dual(math.sin(self.v), math.cos(self.v) * self.d)

    def slope(x):
        t = Dual(x, 1.0)
        return (2.0 * t * t + t.sin() + 1.0).d  # 4x + cos x

    check(slope, 0.7, gradient=4 - math.sin(0.7))


def test_a_linked_structure_with_parent_pointers_is_an_argument():
    class Node:
        def __init__(self, value, parent=None):
            self.value, self.parent, self.children = value, parent, []
            if parent is not None:
                parent.children.append(self)

    def path_product(node):
        out = 1.0
        while node is not None:
            out *= node.value
            node = node.parent
        return out

    def f(leaf):
        return path_product(leaf)

    root = Node(2.0)
    middle = Node(3.0, root)
    leaf = Node(5.0, middle)
    y, g = plaingrad.value_and_grad(f)(leaf)
    assert y == 30.0
    assert (g.value, g.parent.value, g.parent.parent.value) == (6.0, 10.0, 15.0)
    assert leaf.parent is middle and leaf.value == 5.0


def test_a_tree_class_is_built_and_folded_by_a_visitor():
    class Expr:
        def accept(self, visitor):
            return getattr(visitor, "visit_" + type(self).__name__.lower())(self)

    class Num(Expr):
        def __init__(self, v):
            self.v = v

    class Bin(Expr):
        def __init__(self, op, left, right):
            self.op, self.left, self.right = op, left, right

    class Evaluate:
        ops = {"+": operator.add, "*": operator.mul, "-": lambda a, b: a - b, "/": operator.truediv}

        def visit_num(self, e):
            return e.v

        def visit_bin(self, e):
            return self.ops[e.op](e.left.accept(self), e.right.accept(self))

    def f(x, y):
        tree = Bin("*", Bin("+", Num(x), Num(2.0)), Bin("/", Num(y), Bin("-", Num(x), Num(y))))
        return tree.accept(Evaluate())

    # (x + 2) y / (x - y)
    x, y = 2.0, 3.0
    check(f, x, y, gradient=(y / (x - y) - (x + 2) * y / (x - y) ** 2, (x + 2) * x / (x - y) ** 2))


def test_an_observer_writes_through_a_bound_method_kept_elsewhere():
    class Signal:
        def __init__(self):
            self.slots = []

        def connect(self, g):
            self.slots.append(g)

        def fire(self, v):
            for g in self.slots:
                g(v)

    class Meter:
        def __init__(self):
            self.total = 0.0

        def read(self, v):
            self.total += v * v

    def f(x):
        signal, meters = Signal(), [Meter(), Meter()]
        for m in meters:
            signal.connect(m.read)
        signal.connect(meters[0].read)
        signal.fire(x)
        signal.fire(x * 2.0)
        return meters[0].total + 10.0 * meters[1].total

    # m0: 2 x^2 + 8 x^2 ; m1: 5 x^2
    check(f, 1.5, gradient=2 * 1.5 * (10 + 50))


def test_a_module_like_layer_holds_arrays_and_its_gradient_mirrors_it():
    class Linear:
        def __init__(self, w, b):
            self.w, self.b = w, b

        def __call__(self, x):
            return self.w @ x + self.b

    class Net:
        def __init__(self, *layers):
            self.layers = list(layers)
            self.activation = np.tanh

        def __call__(self, x):
            for layer in self.layers[:-1]:
                x = self.activation(layer(x))
            return self.layers[-1](x)

    x = np.array([0.5, -1.0])

    def loss(net):
        return float((net(x) ** 2).sum())

    w1, b1 = np.array([[0.1, 0.2], [-0.3, 0.4]]), np.array([0.05, -0.05])
    w2, b2 = np.array([[1.0, -2.0]]), np.array([0.3])
    h = np.tanh(w1 @ x + b1)
    y = w2 @ h + b2
    dh = (w2.T @ (2 * y)) * (1 - h * h)
    net = Net(Linear(w1, b1), Linear(w2, b2))
    value, g = plaingrad.value_and_grad(loss)(net)
    assert value == loss(net)
    np.testing.assert_allclose(g.layers[0].w, np.outer(dh, x), rtol=1e-13)
    np.testing.assert_allclose(g.layers[0].b, dh, rtol=1e-13)
    np.testing.assert_allclose(g.layers[1].w, np.outer(2 * y, h), rtol=1e-13)
    np.testing.assert_allclose(g.layers[1]["b"], 2 * y, rtol=1e-13)
    assert net.layers[0].w is w1


def test_objects_with_a_complex_and_a_float32_field():
    Signal = namedtuple("Signal", "amplitude gain")

    def f(s):
        return (s.amplitude * s.amplitude).real * float(s.gain)

    z, k = 1.0 + 2.0j, np.float32(0.5)
    check(f, Signal(z, k), gradient=Signal((2 * z).conjugate() * 0.5, np.float32((z * z).real)), rtol=1e-6)


def test_attributes_of_functions_modules_and_types_made_on_the_fly():
    def f(x):
        module = types.ModuleType("made")
        exec("def g(v):\n    return v * k\n", module.__dict__)
        module.k = x
        klass = type("Made", (), {"m": lambda self, v: v * self.c, "c": x * x})
        return module.g(x) + klass().m(2.0)

    check(f, 1.5, gradient=6 * 1.5)


def test_a_singleton_and_a_borg_share_their_state_between_runs():
    class Borg:
        _state = {}

        def __init__(self):
            self.__dict__ = self._state

    def f(x):
        a, b = Borg(), Borg()
        a.v = x
        b.v *= x
        a.v += b.v
        return Borg().v

    check(f, 1.5, gradient=4 * 1.5, setup=Borg._state.clear, state=lambda: Borg._state)


def test_a_class_iterates_and_its_elements_are_active():
    def f(x):
        class Meta(type):
            def __iter__(cls):
                yield x * 7.0
                yield x * x

        class A(metaclass=Meta):
            pass

        return sum(A) + max(A)

    check(f, 1.5, gradient=7 + 2 * 1.5 + 7)


def test_private_slots_of_an_argument():
    class Point:
        __slots__ = ("__x",)

        def __init__(self, x):
            self.__x = x

        def squared(self):
            return self.__x * self.__x

    assert plaingrad.grad(lambda p: p.squared())(Point(1.5))["_Point__x"] == 3.0


def test_what_a_closure_holds_is_finalised_when_the_closure_dies():
    def f(x):
        ended = []

        class Resource:
            def __init__(self, v):
                self.v = v

            def __del__(self):
                ended.append(self.v * 2.0)

        def use():
            resource = Resource(x)
            read = lambda: resource.v  # noqa: E731
            return read()

        use()
        return sum(ended) + x

    check(f, 1.5, gradient=3.0)


@pytest.mark.parametrize("base", [dict, list, tuple])
def test_special_methods_of_functions_in_a_subclass_of_a_container(base):
    class Container(base):
        def __abs__(self):
            return type(self)(abs(x) for x in self) if base is not dict else Container({k: abs(v) for k, v in self.items()})

        def __round__(self, digits=0):
            return self.values_()[0] * 2.0

        def values_(self):
            return list(self.values()) if base is dict else list(self)

    def f(x):
        c = Container({"a": x, "b": -2.0 * x}) if base is dict else Container([x, -2.0 * x])
        return sum(abs(c).values_()) + round(c)

    assert f(1.5) == 7.5
    assert plaingrad.grad(f)(1.5) == 5.0
    assert plaingrad.jvp(f, (1.5,), (1.0,)) == (7.5, 5.0)
