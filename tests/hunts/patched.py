"""A small package whose code `tests.hunts.patches` changes while it is differentiated. It is executed afresh for each program."""

# ruff: noqa: B023
import contextlib
import functools
import operator

rate = 1.5
numbers = [0.5, 2.0]


def helper(x):
    return x * rate


def scale(x):
    return helper(x) + 0.25 * x * rate


def shifted(x, k=2.0, *, q=0.5):
    return x * k + q * x * x


def magnitude(x):
    return abs(x) + sum([x, 1.0])


def made():
    factor = 1.25

    def rule(x):
        return x * x

    def use(x):
        return rule(x) * factor

    def put_factor(value):
        nonlocal factor
        factor, before = value, factor
        return before

    def put_rule(value):
        nonlocal rule
        rule, before = value, rule
        return before

    return use, put_factor, put_rule


use, put_factor, put_rule = made()
table = {"one": helper, "two": lambda x: x * 3.0}
chain = [helper, scale]
part = functools.partial(shifted, k=3.0)


@functools.singledispatch
def dispatched(x):
    return x * 2.0


@dispatched.register(list)
def dispatched_list(x):
    return x[0] * 0.5


@functools.wraps(helper)
def decorated(x):
    return decorated.__wrapped__(x) * 2.0


@contextlib.contextmanager
def entered(x):
    yield x * rate


def produced(x):
    for k in (1.0, 2.0, 3.0):
        yield helper(x) * k


class Meta(type):
    def __call__(cls, *args):
        return super().__call__(*args)

    def __add__(cls, other):
        return cls.kind + other


class Field:
    """A descriptor."""

    def __get__(self, instance, owner=None):
        return self if instance is None else instance.v * 0.75

    def __set__(self, instance, value):
        instance.v = value * 0.5


class Base(metaclass=Meta):
    kind = 0.5
    field = Field()

    def __init__(self, v):
        self.v = v

    def __mul__(self, other):
        return self.v * other

    __rmul__ = __mul__

    def __add__(self, other):
        return self.v + getattr(other, "v", other)

    def __radd__(self, other):
        return other + self.v

    def __neg__(self):
        return -self.v

    def __pow__(self, k):
        return self.v**k

    def __call__(self, t):
        return self.v * t

    def __lt__(self, other):
        seen.append(self.v * 0.5)
        return self.v < other.v

    def __eq__(self, other):
        seen.append(self.v * 0.25)
        return self is other

    def __hash__(self):
        return 7

    def __getitem__(self, k):
        if k > 2:
            raise IndexError(k)
        return self.v * (k + 1.0)

    def __iter__(self):
        return iter([self.v, self.v * self.v])

    def __len__(self):
        return 3

    def __contains__(self, item):
        seen.append(self.v * item)
        return True

    def __enter__(self):
        return self.v

    def __exit__(self, *_):
        seen.append(self.v * 2.0)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self.v * 1.75

    def __format__(self, spec):
        seen.append(self.v * 0.125)
        return "text"

    @property
    def half(self):
        return self.v / 2.0

    @half.setter
    def half(self, value):
        self.v = value * 2.0

    @functools.cached_property
    def whole(self):
        return self.v * 1.25

    def method(self, t):
        return self.v * t + self.kind

    @staticmethod
    def static(t):
        return t * 1.5

    @classmethod
    def of_class(cls, t):
        return t * cls.kind

    def twice(self, t):
        return self.method(t) + self.method(t * 0.5)


class Sub(Base):
    def twice(self, t):
        return super().twice(t) * 1.5


class Leaf(Sub):
    pass


class Other(metaclass=Meta):
    """Another class of the same layout; instances and bases are exchanged for it."""

    kind = 0.25
    field = 2.0
    half = 1.0
    whole = 0.5

    def __init__(self, v):
        self.v = v * 2.0

    def __mul__(self, other):
        return self.v * self.v * other

    __rmul__ = __mul__

    def __add__(self, other):
        return self.v * getattr(other, "v", other)

    def __radd__(self, other):
        return other + self.v * self.v

    def __neg__(self):
        return self.v * -3.0

    def __pow__(self, k):
        return self.v * k

    def __call__(self, t):
        return self.v + t

    def __lt__(self, other):
        seen.append(self.v * 1.5)
        return self.v > other.v

    def __getitem__(self, k):
        if k > 1:
            raise IndexError(k)
        return self.v + k

    def __iter__(self):
        return iter([self.v * 3.0])

    def __len__(self):
        return 2

    def __contains__(self, item):
        seen.append(self.v + item)
        return False

    def __enter__(self):
        return self.v * 0.5

    def __exit__(self, *_):
        seen.append(self.v)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self.v * 5.0

    def __format__(self, spec):
        seen.append(self.v * 0.375)
        return "other"

    def method(self, t):
        return self.v + t

    def twice(self, t):
        return self.method(t) * 2.0

    @staticmethod
    def static(t):
        return t * 3.5

    @classmethod
    def of_class(cls, t):
        return t + cls.kind


seen = []
outside = Sub(1.5)
bound = outside.method
multiply = operator.mul


# -- what takes the place of the functions above: no free variables, so that code can be exchanged, too ----------------------


class New:
    """For each name, what may be put there instead."""

    def number_a(x):
        return x * x * 0.5

    def number_b(x):
        return x * rate + 2.0 * x

    def init(self, v):
        self.v = v * v

    def item_a(self, other):
        return self.v * self.v * getattr(other, "v", other)

    def item_b(self, other):
        return self.v + 3.0 * getattr(other, "v", other) * rate

    def compare(self, other):
        seen.append(self.v * other.v)
        return self.v > other.v

    def alone_a(self):
        return self.v * self.v

    def alone_b(self):
        return helper(self.v) + 1.0

    def setter(self, value):
        self.__dict__["v"] = value * 3.0

    def iterate(self):
        return iter([self.v * 3.0, self.v])

    def generate(self):
        yield self.v * rate
        yield self.v * self.v

    def length(self):
        return 2

    def get_item(self, k):
        if k > 1:
            raise IndexError(k)
        return self.v * self.v + k

    def exit(self, *_):
        seen.append(self.v * self.v)

    def text(self, spec):
        seen.append(self.v * self.v)
        return "new"

    def missing(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self.v * self.v * 0.5

    def get(self, instance, owner=None):
        return self if instance is None else instance.v * instance.v

    def put(self, instance, value):
        instance.v = value * value

    def static(t):
        return t * t

    def of_class(cls, t):
        return t * t * cls.kind

    def shifted(x, k=1.0, *, q=1.5):
        return x * q + k * x * x

    def produce(x):
        yield x * x
        yield helper(x)

    def add_to_class(cls, other):
        return other * other

    def set_attribute(self, name, value):
        self.__dict__[name] = value * 2.0
