"""One small program for each builtin and each function of the standard library, through `grad`, against closed forms."""

import bisect
import cmath
import collections
import contextlib
import contextvars
import copy
import functools
import heapq
import io
import itertools
import logging
import math
import numbers
import operator
import queue
import random
import re
import statistics
import threading
import types
import typing
import weakref
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

import plaingrad
from plaingrad import grad, value_and_grad
from plaingrad.engine.forward.push import push
from plaingrad.errors import PlaingradError

X = 1.7


class Vector:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    def __abs__(self):
        return math.sqrt(self.x * self.x + self.y * self.y)

    def __round__(self, n=None):
        return self.x * 2

    def __divmod__(self, n):
        return self.x * n, self.y * n

    def __float__(self):
        return self.x * 3.0

    def __complex__(self):
        return complex(self.x, self.y)

    def __len__(self):
        return 2

    def __iter__(self):
        yield self.x * 1.0
        yield self.y * 2.0

    def __lt__(self, other):
        return self.x < other.x

    def __pow__(self, n, modulus=None):
        return self.x**n

    def __reversed__(self):
        return iter((self.y, self.x))

    def __getitem__(self, i):
        return (self.x, self.y)[i] * 5.0

    def __floor__(self):
        return self.x * 7.0

    def __index__(self):
        return 1

    def __contains__(self, v):
        return v == self.x

    def scaled(self, k, plus=0.0):
        return self.x * k + plus


class Length(float):
    pass


class Meta(type):
    def __call__(cls, *args, **kwargs):
        return super().__call__(*args, **kwargs)


class MeasuredLength(float, metaclass=Meta):
    pass


class Square(metaclass=Meta):
    def __new__(cls, side):
        square = super().__new__(cls)
        square.area = side * side
        return square

    def __init__(self, side):
        self.side = side


class Pairs(list, metaclass=Meta):
    pass


def counter(x):
    c = collections.Counter({"a": x, "b": 2.0})
    c.update({"a": x * x})
    c = c + collections.Counter({"a": 1.0})
    return c["a"] * dict(c.most_common(1))["a"]


def group(x):
    total = 0.0
    for key, items in itertools.groupby([x, x + 1, 3 * x], key=lambda v: v > 3):
        total = total + sum(items) * (2.0 if key else 1.0)
    return total


def tee(x):
    a, b = itertools.tee([x, x * x])
    return next(a) * sum(b)


def weak(x):
    v = Vector(x, x)
    ref = weakref.ref(v)
    return ref().x * ref().y


VARIABLE = contextvars.ContextVar("variable")


def context(x):
    token = VARIABLE.set(x * 3)
    y = VARIABLE.get()
    VARIABLE.reset(token)
    return y * y


def simple_queue(x):
    q = queue.SimpleQueue()
    q.put(x * 2)
    q.put((x, 1))
    return q.get() * q.get()[0]


def python_queue(x):
    q = queue.Queue()
    q.put(x * 2)
    p = queue.PriorityQueue()
    p.put((x, "b"))
    p.put((x / 2, "a"))
    return q.get() * p.get()[0]


def locks(x):
    lock, rlock, event = threading.Lock(), threading.RLock(), threading.Event()
    with lock, rlock:
        local = threading.local()
        local.x = x * x
        event.set()
    return local.x if event.is_set() else 0.0


def heap(x):
    h = []
    for k in (3.0, 1.0, 2.0):
        heapq.heappush(h, (k * x, k))
    heapq.heapreplace(h, (x * 10, 0))
    return heapq.heappop(h)[0] + heapq.nlargest(1, h)[0][0] + sum(v for v, _ in heapq.merge([(x, 0)], [(2 * x, 0)]))


def bisection(x):
    a = [1.0, 2.0, 3.0]
    bisect.insort(a, x)
    bisect.insort(a, -x, key=lambda v: v)
    return a[bisect.bisect_left(a, x)] * a[0]


def deque(x):
    d = collections.deque([x, 2 * x], maxlen=3)
    d.append(3 * x)
    d.appendleft(4 * x)
    d.extend([x])
    d.rotate(1)
    return d.popleft() * d[0] + d.pop()


def defaultdict(x):
    d = collections.defaultdict(lambda: x * 2)
    d["a"] += x
    e = collections.defaultdict(list)
    e["k"].append(x)
    return d["a"] * d["b"] + e["k"][0]


def ordered(x):
    d = collections.OrderedDict(a=x, b=2 * x)
    d.move_to_end("a")
    return next(iter(d.values())) * d.popitem()[1]


Pair = collections.namedtuple("Pair", "a b")


def named(x):
    p = Pair(x, 2.0)
    p = p._replace(b=x * x)
    q = Pair._make([p.b, p.a])
    return q.a * p.a + sum(q) + p._asdict()["b"]


def chain_map(x):
    m = collections.ChainMap({"a": x}, {"b": x * x})
    u = collections.UserDict(a=x)
    v = collections.UserList([x])
    return m["a"] * m["b"] * u["a"] * v[0]


def namespace(x):
    n = types.SimpleNamespace(a=x)
    n.b = n.a * 2
    m = types.MappingProxyType({"c": x})
    return n.a * n.b * m["c"]


def getters(x):
    v = Vector(x, Vector(x * x, 1.0))
    rows = [(x, "a"), (2 * x, "b")]
    return (operator.attrgetter("y.x")(v) + operator.itemgetter(0)(rows[1]) + operator.methodcaller("scaled", 3.0, plus=x)(v)
            + sum(map(operator.itemgetter(0), rows)) + max(rows, key=operator.itemgetter(0))[0] + math.prod(operator.itemgetter(0, 0)(rows[0])))


def compare(x):
    key = functools.cmp_to_key(lambda a, b: (a > b) - (a < b))
    return sorted([3.0 * x, x, 2.0 * x], key=key)[1] * min([x, 5.0], key=key)


def exceptions(x):
    try:
        raise ValueError(x * x, "text")
    except ValueError as error:
        return error.args[0] * 2


def copies(x):
    a = {"v": [x, (x * x,)], "o": Vector(x, 1.0)}
    b, c = copy.copy(a), copy.deepcopy(a)
    return b["v"][0] * c["v"][1][0] * c["o"].x * copy.copy(a["o"]).x


def text_is_harmless(x):
    logging.getLogger("quiet").debug("%s", x)
    with contextlib.redirect_stdout(io.StringIO()):
        print(x, [x], {"a": x})
    s = f"{x:.3f} {x!r}" + str(x) + "{:g}".format(x) + "%r" % x + format(x, ".2f") + repr([x])
    return x * x if re.sub(r"\d", lambda m: "0", s) else 0.0


def interval(x):
    if isinstance(x, numbers.Real) and isinstance(x, float) and not callable(x) and hash(x) is not None and id(x):
        return typing.cast(float, x) * typing.NewType("Metres", float)(x)
    return 0.0


def exact(x):
    a = Fraction(x)
    return float(a * a + 3 * a / 2 - Fraction(1, 3) + abs(-a) ** 2)


def decimals(x):
    a = Decimal(x)
    return float(a * a + a.sqrt() * 2 - 3 * a / 2 + a.exp().ln())


def fractions_of_floats(x):
    return Fraction(x) * x


def uniform(x):
    rng = random.Random(3)
    u = [random.Random(3).random() for _ in range(1)][0]
    return rng.uniform(0.0, x) - u * x + x * x


def gauss(x):
    return random.Random(5).gauss(x, 2 * x) + random.Random(6).normalvariate(x, x) + random.Random(7).expovariate(1 / x)


def draws(x):
    rng = random.Random(1)
    a = [x, x, x]
    rng.shuffle(a)
    return rng.choice(a) * rng.sample(a, 2)[1] + rng.choices(a, k=2)[0] * rng.randint(1, 1) + rng.triangular(x, x, x)


GAUSS_SLOPE = ((random.Random(5).gauss(0, 1) * 2 + 1) + random.Random(6).normalvariate(0, 1) + 1 + random.Random(7).expovariate(1))

CASES = {
    # builtins
    "abs": (lambda x: abs(-x) * abs(x), 2 * X),
    "abs of an object": (lambda x: abs(Vector(3 * x, 4 * x)), 5.0),
    "abs of a complex number": (lambda x: abs(complex(3 * x, 4 * x)), 5.0),
    "sum of a list": (lambda x: sum([x, 2 * x, 3, True, x * x]), 3 + 2 * X),
    "sum of a generator": (lambda x: sum(k * x for k in range(4)), 6.0),
    "sum with a start": (lambda x: sum([x], x * x) + sum((x, x), start=1), 1 + 2 * X + 2),
    "sum of arrays": (lambda x: sum([np.array([x, 2 * x]), 1.0, x])[1], 3.0),
    "sum of an array": (lambda x: sum(np.array([x, 2 * x])), 3.0),
    "sum of objects": (lambda x: sum([Vector(x, x), Vector(x * x, 1.0)], Vector(0.0, 0.0)).x, 1 + 2 * X),
    "sum of dict values": (lambda x: sum({"a": x, "b": x * x}.values()), 1 + 2 * X),
    "sum of a map": (lambda x: sum(map(lambda v: v * x, [x, 2.0])), 2 * X + 2),
    "sum of objects with a start": (lambda x: sum([Vector(x, x)], Vector(x * x, 1.0)).x, 1 + 2 * X),
    "sum of lists": (lambda x: sum([[x], [x * x]], [])[1], 2 * X),
    "pow": (lambda x: pow(x, 3) + pow(2.0, x) + x**x, 3 * X**2 + 2**X * math.log(2) + X**X * (math.log(X) + 1)),
    "pow of an object": (lambda x: pow(Vector(x, x), 2) + Vector(x, x) ** 2, 4 * X),
    "pow with three integers": (lambda x: x * pow(3, 4, 5), 1.0),
    "divmod": (lambda x: divmod(7 * x, 2.0)[1] + divmod(9.0, x)[1] + divmod(x, 2)[0], 7 - 9 // X),
    "divmod of an object": (lambda x: sum(divmod(Vector(x, x * x), 3)), 3 + 6 * X),
    "round": (lambda x: round(x) * x + round(x, 1) * x, 2 + 1.7),
    "round of an object": (lambda x: round(Vector(x, x)), 2.0),
    "float": (lambda x: float(x) * float(np.float64(x)) * float("2"), 4 * X),
    "float of an object": (lambda x: float(Vector(x, x)), 3.0),
    "float of an array": (lambda x: float(np.array(x * x)), 2 * X),
    "complex": (lambda x: (complex(x, x) * complex(x)).imag + complex(imag=x).imag + complex(real=x).real, 2 * X + 2),
    "complex of an object": (lambda x: complex(Vector(x, 2 * x)).imag, 2.0),
    "int and bool": (lambda x: x * int(x) * bool(x), 1.0),
    "min and max": (lambda x: max(x, 1.0) * min([x, 3.0]) + max([(x, 1), (2 * x, 0)])[0] + max([], default=x), 2 * X + 3),
    "max with a key": (lambda x: max([1.0, x], key=lambda v: v * x) * min("ab", key=lambda c: c) .__len__(), 1.0),
    "max of an array": (lambda x: max(np.array([x, 2 * x])), 2.0),
    "sorted": (lambda x: sorted([3 * x, x, 2 * x])[1] + sorted([x, 2 * x], key=lambda v: -v)[0], 4.0),
    "sorted objects": (lambda x: sorted([Vector(x, 1.0), Vector(x * x, 2.0)])[1].x, 2 * X),
    "map filter zip enumerate": (lambda x: sum(a * b * i for i, (a, b) in enumerate(zip(map(lambda v: v * x, [1.0, 2.0]),
                                                                                    filter(None, [x, 0.0, x])), 1)), 2 * X * 5),
    "reversed": (lambda x: list(reversed([x, 2 * x]))[0] + next(reversed(Vector(x, 4 * x))), 6.0),
    "reversed array": (lambda x: next(reversed(np.array([x, 2 * x]))), 2.0),
    "iter with a sentinel": (lambda x: sum(itertools.islice(iter(lambda: x * x, None), 3)), 6 * X),
    "iter of an object": (lambda x: sum(Vector(x, x)) + list(Vector(x, x))[1], 5.0),
    "next with a default": (lambda x: next(iter([]), x), 1.0),
    "any all len": (lambda x: x * any([x, 0]) * all(v > 0 for v in [x, x]) * len([x, x]), 2.0),
    "list tuple dict set": (lambda x: list((x,))[0] * tuple([x])[0] * dict(a=x)["a"] * dict([("b", x)])["b"] * set([x]).pop()
                            * frozenset((x,)).__iter__().__next__(), 6 * X**5),
    "list of an array": (lambda x: list(np.array([x, x * x]))[1] + tuple(np.array([x]))[0], 2 * X + 1),
    "getattr setattr hasattr": (lambda x: getattr(Vector(x, 1.0), "x") * hasattr(Vector(x, x), "y"), 1.0),
    "isinstance and friends": (interval, 2 * X),
    "text": (text_is_harmless, 2 * X),
    "subclass of float": (lambda x: Length(x) * Length(x), 2 * X),
    "metaclasses": (lambda x: MeasuredLength(x) * MeasuredLength(x) + Square(x).area + Square(x).side + Pairs([x, x])[0]
                    + type.__call__(float, x) + type.__call__(Square, x).area, 6 * X + 3),
    "slice and range": (lambda x: [x, x * x, x][slice(1, 2)][0] * len(range(3)), 6 * X),
    # methods of numbers and containers
    "methods of float": (lambda x: x.__add__(x) * x.__rsub__(1.0) + x.conjugate() + x.real + x.imag + x.__pow__(2) + x.is_integer()
                         + x.__neg__() + x.__truediv__(2.0) + x.__float__(), 2 - 4 * X + 1 + 1 + 2 * X - 1 + 0.5 + 1),
    "methods of complex": (lambda x: (complex(x, 2 * x).conjugate() * 1j).real + complex(x, x).__mul__(2j).imag, 4.0),
    "methods of list": (lambda x: (lambda a: (a.append(x), a.insert(0, x * x), a.extend([x]), a.extend(np.array([x])), a.reverse(), a.sort(),
                                              a.pop(0) + a[-1] + a.index(x) + a.count(x) + a.copy()[0])[-1])([]), 1 + 2 * X + 1),
    "methods of dict": (lambda x: (lambda d: d.setdefault("a", x) * d.get("b", x) + d.pop("a") + sum(dict.fromkeys("ab", x).values())
                                   + [v for _, v in {"q": x}.items()][0] + ({"a": 1.0} | {"a": x})["a"])({}), 2 * X + 1 + 2 + 2),
    "methods of set": (lambda x: sum({x} | {2 * x}) + sum({x}.union([3 * x])), 7.0),
    # math
    "fsum": (lambda x: math.fsum([x, x * x]) + math.fsum(k * x for k in range(3)) + math.fsum(np.array([x])), 1 + 2 * X + 3 + 1),
    "prod": (lambda x: math.prod([x, x, 2]) + math.prod([], start=x), 4 * X + 1),
    "prod of an array": (lambda x: math.prod(np.array([x, 2 * x])), 4 * X),
    "hypot and dist": (lambda x: math.hypot(2 * x, 3 * x, 6 * x) + math.dist((3 * x, 0.0), [0.0, 4 * x]) + math.dist(np.array([x]), [0.0]), 13.0),
    "log to a base": (lambda x: math.log(x, 2) + math.log(2, x) + cmath.log(x, 2).real,
                      2 / (X * math.log(2)) - math.log(2) / (X * math.log(X) ** 2)),
    "modf frexp ldexp": (lambda x: math.modf(x)[0] + math.frexp(x)[0] + math.ldexp(x, 3), 1 + 0.5 + 8),
    "several results of ufuncs": (lambda x: np.modf(x)[0] + np.frexp(np.array([x]))[0][0] + np.divmod(3.0, x)[1] + np.divmod(np.array([x]), 1.0)[1][0],
                                  1 + 0.5 - 3 // X + 1),
    "gamma": (lambda x: math.gamma(x + 1) / math.gamma(x) + math.lgamma(x + 1) - math.lgamma(x), 1 + 1 / X),
    "remainders": (lambda x: math.fmod(7 * x, 2) + math.remainder(5 * x, 3) + (9 * x) % 4 + 9 % x, 7 + 5 + 9 - 9 // X),
    "polar and rect": (lambda x: cmath.polar(complex(0.0, x))[0] + cmath.polar(complex(1.0, x))[1] + cmath.rect(x, 0.0).real
                       + cmath.phase(complex(1.0, x)), 2 + 2 / (1 + X * X)),
    "cmath": (lambda x: cmath.exp(complex(0.0, x)).real + cmath.sqrt(complex(x)).real, -math.sin(X) + 0.5 / math.sqrt(X)),
    "integers of math": (lambda x: x * math.floor(x) * math.comb(3, 2) * math.gcd(4, 6) + math.isclose(x, x) + math.ceil(x) + math.trunc(x), 6.0),
    "floor of an object": (lambda x: math.floor(Vector(x, x)), 7.0),
    # operator
    "operators": (lambda x: operator.add(x, x) * operator.mul(x, 2.0) + operator.neg(x) + operator.pow(x, 2) + operator.truediv(x, 2)
                  + operator.sub(x, 1.0) + operator.mod(x, 1.0) + operator.abs(x) + operator.pos(x), 8 * X - 1 + 2 * X + 0.5 + 1 + 1 + 1 + 1),
    "operators in place": (lambda x: operator.iadd(x, x) * operator.imul(x, x) + operator.iadd([x], [x])[1], 6 * X * X + 1),
    "operators on arrays": (lambda x: operator.getitem(operator.matmul(np.array([[x, 0.0], [0.0, x]]), np.array([x, 1.0])), 0), 2 * X),
    "operators on objects": (lambda x: operator.add(Vector(x, x), Vector(x, x)).x + operator.getitem(Vector(x, x), 0), 7.0),
    "operators on lists": (lambda x: operator.add([x], [x * x])[1] + operator.concat([x], [x])[0] + operator.contains([x], x), 2 * X + 1),
    "setitem": (lambda x: (lambda a: (operator.setitem(a, 0, x), a[0] * a[0])[1])([0.0]), 2 * X),
    "setitem of an array": (lambda x: (lambda a: (operator.setitem(a, 0, x), a[0] * a[0])[1])(np.zeros(2)), 2 * X),
    "getters": (getters, 2 * X + 2 + 4 + 3 + 2 + 2 * X),
    "call": (lambda x: operator.call(lambda v: v * v, x), 2 * X),
    # functools
    "reduce": (lambda x: functools.reduce(lambda a, b: a * b, [x, x, x]) + functools.reduce(operator.add, [x, x], 1.0), 3 * X * X + 2),
    "reduce of an array": (lambda x: functools.reduce(operator.mul, np.array([x, x])), 2 * X),
    "cmp_to_key": (compare, 4 * X),
    "partial": (lambda x: functools.partial(pow, x)(2) + functools.partial(lambda a, b: a * b, b=x)(x), 4 * X),
    "singledispatch": (lambda x: functools.singledispatch(lambda v: v * v)(x), 2 * X),
    # itertools
    "accumulate": (lambda x: list(itertools.accumulate([x, x, x]))[2] + list(itertools.accumulate([x, x], lambda a, b: a * b))[1]
                   + list(itertools.accumulate(np.array([x, x]), initial=x))[2], 6 + 2 * X),
    "count": (lambda x: sum(itertools.islice(itertools.count(x, 2 * x), 3)), 9.0),
    "chain": (lambda x: sum(itertools.chain([x], (x,), np.array([x]))) + sum(itertools.chain.from_iterable([[x], [x]])), 5.0),
    "combinatorics": (lambda x: sum(a * b for a, b in itertools.combinations([x, x, x], 2)) + sum(a * b for a, b in itertools.product([x], [x, 1.0]))
                      + sum(a for a, _ in itertools.permutations([x, x])), 6 * X + 2 * X + 1 + 2),
    "selection": (lambda x: sum(itertools.compress([x, x], [1, 0])) + sum(itertools.takewhile(lambda v: v < 2, [x, 9.0]))
                  + sum(itertools.dropwhile(lambda v: v < 2, [1.0, 3 * x])) + sum(itertools.filterfalse(None, [0.0, x]))
                  + sum(itertools.starmap(lambda a, b: a * b, [(x, x)])) + sum(itertools.islice(itertools.cycle([x]), 2))
                  + sum(itertools.repeat(x, 3)) + sum(a * b for a, b in itertools.pairwise([x, x]))
                  + sum(a for a, b in itertools.zip_longest([x], [], fillvalue=x)), 1 + 1 + 3 + 2 * X + 2 + 3 + 2 * X + 1),
    "groupby": (group, 2 + 6),
    "tee": (tee, 2 * X + 3 * X * X),
    # collections and other containers
    "Counter": (counter, 2 * (X + X * X + 1) * (1 + 2 * X)),
    "deque": (deque, 2 * X + 2),
    "defaultdict": (defaultdict, 12 * X + 1),
    "OrderedDict": (ordered, 4 * X),
    "namedtuple": (named, 3 * X * X + 1 + 2 * X + 2 * X),
    "ChainMap and User": (chain_map, 5 * X**4),
    "namespaces": (namespace, 6 * X * X),
    "heapq": (heap, 2.0 + 10 + 3),
    "bisect": (bisection, -2 * X),
    "bisect of an array": (lambda x: np.array([x, 2 * x, 3 * x])[bisect.bisect(np.array([x, 2 * x]), 1.5 * x)], 2.0),
    # statistics
    "mean": (lambda x: statistics.mean([x, x * x, 3.0]) + statistics.fmean([x, 2 * x]) + statistics.mean(v for v in [x, x]), (1 + 2 * X) / 3 + 1.5 + 1),
    "weighted mean": (lambda x: statistics.fmean([x, 2.0], [x, 1.0]), (2 * X * (X + 1) - X * X - 2) / (X + 1) ** 2),
    "other means": (lambda x: statistics.geometric_mean([x, 4 * x]) + statistics.harmonic_mean([x, x]) + statistics.harmonic_mean([x]), 4.0),
    "variances": (lambda x: statistics.variance([x, 3 * x]) + statistics.pvariance([x, 3 * x]) + statistics.stdev([x, 3 * x]) + statistics.pstdev([x, 3 * x])
                  + statistics.variance([x, 3 * x], 2 * x), 4 * X + 2 * X + math.sqrt(2) + 1 + 4 * X),
    "medians": (lambda x: statistics.median([x, 2 * x, 3 * x]) + statistics.median([x, 2 * x]) + statistics.median_low([x, 2 * x])
                + statistics.median_high([x, 2 * x]), 2 + 1.5 + 1 + 2),
    "quantiles": (lambda x: statistics.quantiles([x, 2 * x, 3 * x])[1] + statistics.mode([x, x, 1.0]), 3.0),
    "two variables": (lambda x: statistics.covariance([x, 2 * x, 3 * x], [1.0, 2.0, 3.0]) + statistics.correlation([x, 2 * x, 5.0], [x, 2 * x, 5.0])
                      + statistics.linear_regression([1.0, 2.0, 3.0], [x, 2 * x, 3 * x]).slope, 2.0),
    "NormalDist": (lambda x: statistics.NormalDist(x, 2 * x).inv_cdf(0.5) + statistics.NormalDist(x, x).zscore(3 * x)
                   + statistics.NormalDist(0.0, 1.0).cdf(x) + statistics.NormalDist.from_samples([x, 3 * x]).mean,
                   1 + math.exp(-X * X / 2) / math.sqrt(2 * math.pi) + 2),
    "stdev of NormalDist": (lambda x: statistics.NormalDist.from_samples([x, 3 * x]).stdev, math.sqrt(2)),
    # random
    "uniform": (uniform, 2 * X),
    "gauss": (gauss, GAUSS_SLOPE),
    "draws": (draws, 2 * X + 1 + 1),
    # objects
    "weakref": (weak, 2 * X),
    "contextvars": (context, 18 * X),
    "SimpleQueue": (simple_queue, 4 * X),
    "queue": (python_queue, 2 * X),
    "locks": (locks, 2 * X),
    "exceptions": (exceptions, 4 * X),
    "copy": (copies, 5 * X**4),
    "Fraction": (exact, 4 * X + 1.5),
    "Fraction and float": (fractions_of_floats, 2 * X),
    "Decimal": (decimals, 2 * X + 1 / math.sqrt(X) - 1.5 + 1),
}


@pytest.mark.parametrize("name", CASES)
def test_gradient_of(name):
    f, expected = CASES[name]
    value, slope = value_and_grad(f)(X)
    assert value == f(X)
    assert slope == pytest.approx(expected, rel=1e-9)


SECOND = {
    "pow": (lambda x: x**3 + 2.0**x + x**-1, 6 * X + 2**X * math.log(2) ** 2 + 2 / X**3),
    "sqrt": (lambda x: math.sqrt(x), -0.25 * X**-1.5),
    "lgamma": (lambda x: math.lgamma(x + 1) - math.lgamma(x), -1 / X**2),
    "sum": (lambda x: sum([x * x, x]), 2.0),
    "hypot": (lambda x: math.hypot(x, 1.0), (X * X + 1) ** -1.5),
    "fsum": (lambda x: math.fsum([x**3]), 6 * X),
    "prod": (lambda x: math.prod([x, x, x]), 6 * X),
    "variance": (lambda x: statistics.variance([x, 3 * x]), 4.0),
    "stdev": (lambda x: statistics.stdev([x * x, 0.0]), math.sqrt(2)),
    "atan2": (lambda x: math.atan2(x, 2.0), -4 * X / (X * X + 4) ** 2),
    "log to a base": (lambda x: math.log(x, 2), -1 / (X * X * math.log(2))),
    "complex": (lambda x: abs(cmath.exp(complex(x, x))), math.exp(X)),
    "acosh": (lambda x: math.acosh(x), -X * (X * X - 1) ** -1.5),
    "erf": (lambda x: math.erf(x), -4 * X * math.exp(-X * X) / math.sqrt(math.pi)),
}


@pytest.mark.parametrize("name", SECOND)
def test_second_derivative_of(name):
    f, expected = SECOND[name]
    assert grad(grad(f))(X) == pytest.approx(expected, rel=1e-9)


def test_a_third_derivative_through_digamma():
    def f(x):
        return math.lgamma(x + 1) - math.lgamma(x)

    assert grad(grad(grad(f)))(X) == pytest.approx(2 / X**3, rel=1e-9)


@pytest.mark.parametrize("f", [
    lambda x: Fraction(x).numerator / Fraction(x).denominator,
    lambda x: x.as_integer_ratio()[0] / 2.0,
    lambda x: float.fromhex(x.hex()),
    lambda x: float(str(x)),
    lambda x: float(repr(x * x)),
    lambda x: float("%.17g" % x),
    lambda x: Decimal(x).as_tuple().digits[0] * 1.0,
])
def test_a_number_taken_apart_is_refused_or_ends_the_derivative_openly(f):
    with pytest.raises(PlaingradError):
        grad(f)(X)


def test_decimal_context():
    def f(x):
        with localcontext() as context:
            context.prec = 40
            y = Decimal(x)
            return float(context.divide(y, Decimal(3)) + context.sqrt(y))

    assert grad(f)(X) == pytest.approx(1 / 3 + 0.5 / math.sqrt(X))


@pytest.mark.parametrize("number", [Decimal, Fraction])
@pytest.mark.parametrize("f, slope", [
    (lambda d: d / 2, 0.5), (lambda d: 3 / d, -3 / X**2), (lambda d: d**3, 3 * X**2), (lambda d: 2 * d - d * d + 1, 2 - 2 * X),
    (lambda d: d % 1 + divmod(d, 1)[1], 2), (lambda d: +d - (-d), 2), (lambda d: sum([d, d * d, 1]), 1 + 2 * X),
    (lambda d: max(d, 1) * min(d, 9), 2 * X), (lambda d: sorted([d * 2, d])[0], 1), (lambda d: statistics.mean([d, d * d]), 0.5 + X),
    (lambda d: statistics.variance([d, 3 * d]), 4 * X), (lambda d: math.sqrt(d), 0.5 / math.sqrt(X)), (lambda d: math.prod([d, d]), 2 * X),
    (lambda d: math.hypot(d, 1), X / math.hypot(X, 1)), (lambda d: math.atan2(d, 2), 2 / (4 + X**2)), (lambda d: math.fsum([d, 1.5, d]), 2),
    (lambda d: math.dist([d, 0], [0, 1]), X / math.hypot(X, 1)), (lambda d: math.log(d, 3), 1 / (X * math.log(3))),
    (lambda d: 2**d, math.log(2) * 2**X), (lambda d: statistics.stdev([d, 3 * d]), math.sqrt(2)),
])
def test_exact_numbers(number, f, slope):
    assert grad(lambda x: float(f(number(x))))(X) == pytest.approx(slope, rel=1e-9)
    assert plaingrad.jvp(lambda x: float(f(number(x))), (X,), (1.0,))[1] == pytest.approx(slope, rel=1e-9)
    chunk = push(lambda x: float(f(number(x))), (X,), (np.array([1.0, -2.0]),), {}, chunk=2)[1]
    np.testing.assert_allclose(chunk, [slope, -2 * slope], rtol=1e-9)


def test_the_gradient_of_a_decimal_argument():
    assert float(grad(lambda d: float(d * d))(Decimal("1.5"))) == pytest.approx(3.0)
    assert float(grad(lambda d: float(d * d))(Fraction(3, 2))) == pytest.approx(3.0)


@pytest.mark.parametrize("f, x, slope", [
    (lambda x: abs(x), 0.0, 0.0), (lambda x: x**2.0, 0.0, 0.0), (lambda x: x**0, 0.0, 0.0), (lambda x: (x**2 + 1.0) ** 0.0, 0.0, 0.0),
    (lambda x: math.sqrt(x), 0.0, math.inf), (lambda x: math.hypot(x, x), 0.0, 0.0), (lambda x: 0.0**x, 2.0, 0.0),
    (lambda x: (-2.0) ** (x / x + 1), 1.0, 0.0), (lambda x: max(x, 0.0), 0.0, 1.0), (lambda x: math.pow(x, 2), -3.0, -6.0),
    (lambda x: x**-1.0, 1e-200, -math.inf), (lambda x: math.copysign(x, -1.0), 2.0, -1.0),
])
def test_at_singular_points(f, x, slope):
    assert grad(f)(x) == pytest.approx(slope)


assert plaingrad
