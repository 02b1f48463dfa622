"""Hazard 13: some C code gives the same object back and needs no rule; some silently makes a new one and does."""

import array
import bisect
import collections
import copy
import functools
import heapq
import itertools
import math
import operator
import pickle
import random
import statistics
import types

import numpy as np
import pytest
from cases_b import check, check_or_refuse

import plaingrad

Point = collections.namedtuple("Point", "a b")

GIVES_THE_SAME = {
    "float": lambda x: float(x),
    "+x": lambda x: +x,
    "real": lambda x: x.real,
    "conjugate": lambda x: x.conjugate(),
    "min": lambda x: min(x, 100.0),
    "max": lambda x: max([x, -1.0]),
    "min of one": lambda x: min([x]),
    "copy": lambda x: copy.copy(x),
    "deepcopy": lambda x: copy.deepcopy([x, {"a": (x,)}])[1]["a"][0],
    "heapq": lambda x: heapq.nsmallest(1, [x, 9.0])[0],
    "heappushpop": lambda x: heapq.heappushpop([9.0], x),
    "heapreplace": lambda x: heapq.heapreplace([x], 3.0),
    "random.choice": lambda x: random.Random(1).choice([x, x]),
    "random.sample": lambda x: random.Random(1).sample([x, x], 1)[0],
    "random.shuffle": lambda x: (lambda v: (random.Random(1).shuffle(v), v[0])[1])([x, x]),
    "sorted": lambda x: sorted([9.0, x])[0],
    "reversed": lambda x: next(reversed([1.0, x])),
    "zip": lambda x: list(zip([x], [1.0]))[0][0],
    "enumerate": lambda x: list(enumerate([x]))[0][1],
    "chain": lambda x: list(itertools.chain([1.0], (x,)))[1],
    "islice": lambda x: next(itertools.islice([0.0, x], 1, None)),
    "cycle": lambda x: list(itertools.islice(itertools.cycle([x, 2.0]), 3))[2],
    "tee": lambda x: [list(i) for i in itertools.tee([x])][1][0],
    "product": lambda x: list(itertools.product([1.0], [x]))[0][1],
    "permutations": lambda x: list(itertools.permutations([1.0, x]))[1][0],
    "combinations": lambda x: list(itertools.combinations([1.0, x, 2.0], 2))[0][1],
    "zip_longest": lambda x: list(itertools.zip_longest([1.0, 2.0], [], fillvalue=x))[1][1],
    "repeat": lambda x: list(itertools.repeat(x, 3))[2],
    "compress": lambda x: list(itertools.compress([1.0, x], [0, 1]))[0],
    "dropwhile": lambda x: list(itertools.dropwhile(lambda v: v < 1.2, [1.0, x]))[0],
    "pairwise": lambda x: list(itertools.pairwise([1.0, x]))[0][1],
    "deque": lambda x: collections.deque([1.0, x], maxlen=1).pop(),
    "deque rotated": lambda x: (lambda d: (d.rotate(1), d[0])[1])(collections.deque([1.0, x])),
    "dict views": lambda x: list({"a": x}.values())[0] * list({"b": 1.0}.items())[0][1],
    "dict methods": lambda x: {"a": x}.pop("a") + {"a": 0.0}.setdefault("b", x) * 0.0 + {}.get("a", x) * 0.0,
    "dict or": lambda x: ({"a": 1.0} | {"a": x})["a"],
    "fromkeys": lambda x: dict.fromkeys("ab", x)["b"],
    "namedtuple": lambda x: Point(1.0, b=x)._replace(a=2.0)[1],
    "OrderedDict": lambda x: collections.OrderedDict(a=x).popitem()[1],
    "defaultdict": lambda x: collections.defaultdict(lambda: x)["any"],
    "ChainMap": lambda x: collections.ChainMap({}, {"a": x})["a"],
    "Counter": lambda x: collections.Counter({"a": x})["a"],
    "UserDict": lambda x: collections.UserDict(a=x)["a"],
    "MappingProxy": lambda x: types.MappingProxyType({"a": x})["a"],
    "SimpleNamespace": lambda x: types.SimpleNamespace(a=x).a,
    "itemgetter": lambda x: operator.itemgetter(1, 0)([0.0, x])[0],
    "attrgetter": lambda x: operator.attrgetter("a.b")(types.SimpleNamespace(a=types.SimpleNamespace(b=x))),
    "methodcaller": lambda x: operator.methodcaller("get", "a")({"a": x}),
    "list methods": lambda x: (lambda v: (v.insert(0, x), v.reverse(), v.append(1.0), v.pop(-2))[3])([2.0]),
    "slices": lambda x: [1.0, x, 2.0][::-1][1:2][0],
    "list times": lambda x: ([x] * 3)[2] + 0.0 * (2 * [x])[1],
    "tuple plus": lambda x: ((1.0,) + (x,))[1],
    "set": lambda x: next(iter({x})) * 1.0,
    "frozenset": lambda x: max(frozenset([x]) | {0.0}),
    "getattr": lambda x: getattr(types.SimpleNamespace(a=x), "a", None),
    "next default": lambda x: next(iter([]), x),
    "reduce of one": lambda x: functools.reduce(operator.add, [x]),
    "bisect": lambda x: (lambda v: (bisect.insort(v, x), v[1])[1])([1.0, 9.0]),
    "partial": lambda x: functools.partial(lambda a, b: b, 1.0)(x),
    "filter": lambda x: list(filter(None, [0.0, x]))[0],
    "iter of callable": lambda x: next(iter(lambda: x, None)),
    "and or": lambda x: (x and x) or 0.0,
    "str.join of keys": lambda x: {"ab": x}["".join(["a", "b"])],
    "vars": lambda x: vars(types.SimpleNamespace(a=x))["a"],
    "array of objects": lambda x: np.array([x, None], dtype=object)[0],
    "contextlib": lambda x: __import__("contextlib").nullcontext(x).__enter__(),
    "cell": lambda x: (lambda: x).__closure__[0].cell_contents,
    "default": lambda x: (lambda y=x: y).__defaults__[0],
    "bound self": lambda x: x.__add__.__self__,
    "slice fields": lambda x: slice(x, None).start,
    "exception args": lambda x: ValueError(x).args[0],
    "range index": lambda x: [x, x][range(2)[1]],
    "match": lambda x: __import__("queue").SimpleQueue().put(x) or x,
    "queue": lambda x: (lambda q: (q.put(x), q.get())[1])(__import__("queue").Queue()),
    "groupby": lambda x: [list(g) for _, g in itertools.groupby([x])][0][0],
    "weak value": lambda x: __import__("weakref").WeakKeyDictionary({types.FunctionType: x})[types.FunctionType],
}


@pytest.mark.parametrize("name", GIVES_THE_SAME)
def test_the_same_object_comes_back_with_its_slope(name):
    same = GIVES_THE_SAME[name]
    check(lambda x: same(x) * same(x) * 3.0, 1.5, 9.0)
    check(lambda x: same(x * x) * x, 1.5, 3 * 1.5**2)


MAKES_A_NEW_ONE = {
    "sum of one": (lambda x: sum([x]), 1.0),
    "sum of one with start": (lambda x: sum([x], 0.0), 1.0),
    "sum with active start": (lambda x: sum([1, 2], x), 1.0),
    "sum of a generator": (lambda x: sum(x for _ in range(3)), 3.0),
    "sum of bools and ints": (lambda x: sum([True, 1, x, x]), 2.0),
    "abs": (lambda x: abs(x), 1.0),
    "abs of negative": (lambda x: abs(-x), 1.0),
    "round to digits": (lambda x: round(x, 20) * 0.0 + x, 1.0),
    "x + 0": (lambda x: x + 0, 1.0),
    "0 + x": (lambda x: 0 + x, 1.0),
    "x * 1": (lambda x: x * 1, 1.0),
    "x / 1": (lambda x: x / 1, 1.0),
    "x ** 1": (lambda x: x**1, 1.0),
    "- - x": (lambda x: - -x, 1.0),
    "divmod": (lambda x: divmod(x, 1)[1], 1.0),
    "math.fabs": (lambda x: math.fabs(x), 1.0),
    "math.fsum": (lambda x: math.fsum([x]), 1.0),
    "math.prod": (lambda x: math.prod([x]), 1.0),
    "math.copysign": (lambda x: math.copysign(x, 1.0), 1.0),
    "math.fmod": (lambda x: math.fmod(x, 100.0), 1.0),
    "math.hypot": (lambda x: math.hypot(x), 1.0),
    "math.ldexp": (lambda x: math.ldexp(x, 0), 1.0),
    "math.modf": (lambda x: math.modf(x)[0], 1.0),
    "math.frexp": (lambda x: math.frexp(x)[0], 0.5),
    "math.dist": (lambda x: math.dist([x], [0.0]), 1.0),
    "math.sumprod": (lambda x: math.sumprod([x, x], [1.0, 2.0]) if hasattr(math, "sumprod") else 3 * x, 3.0),
    "math.nextafter": (lambda x: math.nextafter(x, 9.0), 1.0),
    "math.fma": (lambda x: math.fma(x, x, x) if hasattr(math, "fma") else x * x + x, 4.0),
    "statistics.mean": (lambda x: statistics.mean([x]), 1.0),
    "statistics.fmean": (lambda x: statistics.fmean([x, 0.0]), 0.5),
    "statistics.fmean weights": (lambda x: statistics.fmean([x, 0.0], [3.0, 1.0]), 0.75),
    "statistics.geometric_mean": (lambda x: statistics.geometric_mean([x, x]), 1.0),
    "statistics.harmonic_mean": (lambda x: statistics.harmonic_mean([x, x]), 1.0),
    "statistics.median": (lambda x: statistics.median([x, 0.0]), 0.5),
    "statistics.stdev": (lambda x: statistics.stdev([x, 0.0]), 1 / math.sqrt(2)),
    "statistics.pvariance": (lambda x: statistics.pvariance([x, 0.0]), 1.5 / 2),
    "statistics.linear_regression": (
        lambda x: statistics.linear_regression([0.0, 1.0, 2.0], [0.0, x, 0.0]).intercept, 1 / 3,
    ),
    "statistics.correlation": (lambda x: statistics.covariance([0.0, x], [0.0, 1.0]), 0.5),
    "Counter + Counter": (lambda x: (collections.Counter(a=x) + collections.Counter(a=x))["a"], 2.0),
    "Counter.update": (lambda x: (lambda c: (c.update({"a": x}), c["a"])[1])(collections.Counter(a=x)), 2.0),
    "Counter.total": (lambda x: collections.Counter(a=x, b=1.0).total(), 1.0),
    "Counter.subtract": (lambda x: (lambda c: (c.subtract({"a": x}), c["a"])[1])(collections.Counter(a=1.0)), -1.0),
    "pickle": (lambda x: pickle.loads(pickle.dumps(x)), 1.0),
    "array.array": (lambda x: array.array("d", [x])[0], 1.0),
    "array.array to list": (lambda x: array.array("d", [x]).tolist()[0], 1.0),
    "np.array": (lambda x: float(np.array([x])[0]), 1.0),
    "np.asarray of list": (lambda x: float(np.asarray([x, 1.0]).sum()), 1.0),
    "np.where": (lambda x: float(np.where(True, x, 0.0)), 1.0),
    "np.where array": (lambda x: float(np.where([True, False], x, [5.0, 6.0]).sum()), 1.0),
    "np.clip": (lambda x: float(np.clip(x, 0.0, 9.0)), 1.0),
    "np.clip outside": (lambda x: float(np.clip(5.0, 0.0, x)), 1.0),
    "np.full": (lambda x: float(np.full(3, x).sum()), 3.0),
    "np.full_like": (lambda x: float(np.full_like(np.zeros(2), x).sum()), 2.0),
    "np.linspace": (lambda x: float(np.linspace(0.0, x, 5)[1]), 0.25),
    "np.arange": (lambda x: float(np.arange(0.0, 3.0, x)[1]), 1.0),
    "np.stack": (lambda x: float(np.stack([x, 2.0 * x]).sum()), 3.0),
    "np.tolist": (lambda x: np.array([x, 2.0]).tolist()[0], 1.0),
    "list of array": (lambda x: float(list(np.array([x, 2.0]))[0]), 1.0),
    "np.interp": (lambda x: float(np.interp(x, [0.0, 2.0], [0.0, 6.0])), 3.0),
    "np.polyval": (lambda x: float(np.polyval([1.0, 0.0, 0.0], x)), 3.0),
    "np.repeat and tile": (lambda x: float(np.repeat(x, 2).sum() + np.tile([x], 3).sum()), 5.0),
    "np.diag": (lambda x: float(np.diag([x, 1.0])[0, 0]), 1.0),
    "np.eye times": (lambda x: float((np.eye(2) * x).trace()), 2.0),
    "np.maximum": (lambda x: float(np.maximum(x, 1.0)), 1.0),
    "np.float32 and back": (lambda x: float(np.float32(x)), 1.0),
    "np.nan_to_num": (lambda x: float(np.nan_to_num(x)), 1.0),
    "np.copysign": (lambda x: float(np.copysign(x, 1.0)), 1.0),
    "np.atleast_2d": (lambda x: float(np.atleast_2d(x)[0, 0]), 1.0),
    "np.append": (lambda x: float(np.append([1.0], x)[1]), 1.0),
    "np.r_": (lambda x: float(np.r_[1.0, x][1]), 1.0),
    "np.meshgrid": (lambda x: float(np.meshgrid([x], [1.0])[0][0, 0]), 1.0),
    "np.select": (lambda x: float(np.select([[True]], [[x]])[0]), 1.0),
    "np.choose": (lambda x: float(np.choose([0], [[x], [1.0]])[0]), 1.0),
    "np.block": (lambda x: float(np.block([[x, 1.0]])[0, 0]), 1.0),
    "np.fromfunction": (lambda x: float(np.fromfunction(lambda i: i * x, (3,)).sum()), 3.0),
    "np.random scale": (lambda x: float(x * np.random.default_rng(1).integers(3, 4)), 3.0),
    "accumulate": (lambda x: list(itertools.accumulate([x, x]))[1], 2.0),
    "operator.concat": (lambda x: sum(operator.concat([x], [x])), 2.0),
    "functools.reduce": (lambda x: functools.reduce(operator.mul, [x, x]), 3.0),
    "complex": (lambda x: complex(x).real, 1.0),
    "complex of two": (lambda x: complex(0.0, x).imag, 1.0),
    "complex abs": (lambda x: abs(complex(x, 0.0)), 1.0),
    "float of np": (lambda x: float(np.float64(x)), 1.0),
    "range sum": (lambda x: sum(x * i for i in range(3)), 3.0),
    "random.uniform": (lambda x: random.Random(3).uniform(0.0, x) / random.Random(3).random(), 1.0),
    "random.gauss": (lambda x: random.Random(3).gauss(x, 0.0), 1.0),
    "random.triangular": (lambda x: random.Random(3).triangular(0.0, x, x) / random.Random(3).triangular(0, 1, 1), 1.0),
}  # fmt: skip


@pytest.mark.parametrize("name", MAKES_A_NEW_ONE)
def test_a_new_object_has_the_slope_of_the_old(name):
    new, slope = MAKES_A_NEW_ONE[name]
    single = 1e-6 if "float32" in name else None
    check_or_refuse(lambda x: new(x), 1.5, slope, rtol=single)
    check_or_refuse(lambda x: new(x) * 2.0 + x, 1.5, 2 * slope + 1, rtol=single)


RULES_ARE_REQUIRED = [
    "sum of one", "sum with active start", "sum of a generator", "abs", "x + 0", "divmod", "math.fsum", "math.prod",
    "statistics.mean", "statistics.fmean", "statistics.median", "Counter + Counter", "np.array", "np.asarray of list",
    "np.where", "np.clip", "np.full", "np.stack", "np.tolist", "list of array", "np.interp", "accumulate",
    "functools.reduce", "complex", "float of np", "round to digits",
]  # fmt: skip


@pytest.mark.parametrize("name", RULES_ARE_REQUIRED)
def test_the_common_ones_are_right_and_not_refused(name):
    new, slope = MAKES_A_NEW_ONE[name]
    assert plaingrad.grad(new)(1.5) == pytest.approx(slope, rel=1e-12)


def test_identity_is_not_confused_by_equal_numbers_in_one_container():
    def f(p):
        a, b = p
        values = [a, b, 1.5]
        values.sort()
        return values[0] * 1.0 + values[1] * 10.0 + values[2] * 100.0

    check(f, [1.5, 1.5], [1.0, 10.0])


def test_identity_survives_garbage_and_reused_addresses():
    def f(x):
        total = 0.0
        for i in range(2000):
            y = x * i
            z = float(i) + 0.5  # takes the address of a dead number, and is a constant
            total = total + y * 1e-3 + z * 0.0
            del y, z
        return total

    check(f, 1.5, 1e-3 * 1999 * 1000)


def test_a_constant_made_where_an_active_number_died_is_inactive():
    def f(x):
        kept = 0.0
        for i in range(500):
            y = x * 2.0
            y = None
            z = float(i)  # noqa: F841
            kept = kept + z
        return kept * 0.0 + x

    check(f, 1.5, 1.0)
