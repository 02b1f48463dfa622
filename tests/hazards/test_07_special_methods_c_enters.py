"""Special methods that only C code enters, of classes that nothing else in the derivative meets.

Each method computes with the active number that it finds in a global. The instances are made before, and reach the
program through globals, so that nothing but the operation itself tells the engine about their class.
"""

from __future__ import annotations

import builtins
import collections
import copy
import functools
import heapq
import itertools
import json
import math
import operator
import struct
import types
import weakref
from bisect import bisect_left
from typing import Any

import numpy as np
import pytest

from plaingrad import grad, jvp

CURRENT: list[Any] = [0.0]
SEEN: list[Any] = []


def note() -> None:
    SEEN.append(CURRENT[0] * CURRENT[0])


SOURCE = '''
class K:
    """Each special method notes the square of the active number."""

    def __eq__(self, other):
        note()
        return self is other

    def __hash__(self):
        note()
        return 7

    def __lt__(self, other):
        note()
        return True

    def __le__(self, other):
        note()
        return True

    def __add__(self, other):
        note()
        return self

    def __radd__(self, other):
        note()
        return self

    def __mul__(self, other):
        note()
        return self

    def __mod__(self, other):
        note()
        return self

    def __contains__(self, x):
        note()
        return False

    def __getitem__(self, k):
        note()
        return 1.0

    def __setitem__(self, k, v):
        note()

    def __delitem__(self, k):
        note()

    def __iter__(self):
        note()
        return iter([1.0])

    def __reversed__(self):
        note()
        return iter([1.0])

    def __len__(self):
        note()
        return 1

    def __float__(self):
        note()
        return 1.0

    def __complex__(self):
        note()
        return 1j

    def __int__(self):
        note()
        return 1

    def __index__(self):
        note()
        return 0

    def __bool__(self):
        note()
        return True

    def __call__(self, *args):
        note()
        return 0

    def __neg__(self):
        note()
        return self

    def __abs__(self):
        note()
        return 1.0

    def __round__(self, digits=0):
        note()
        return 1

    def __floor__(self):
        note()
        return 1

    def __divmod__(self, other):
        note()
        return 1, 2

    def __pow__(self, other):
        note()
        return 1

    def __matmul__(self, other):
        note()
        return 1

    def __str__(self):
        note()
        return "K"

    def __repr__(self):
        note()
        return "K"

    def __format__(self, spec):
        note()
        return "K"

    def __enter__(self):
        note()
        return self

    def __exit__(self, *args):
        note()

    def __copy__(self):
        note()
        return self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        note()
        return 1.0
'''


class Things:
    """New instances of a new class, alone and in containers."""

    def __init__(self) -> None:
        namespace: dict[str, Any] = {"note": note}
        exec(SOURCE, namespace)
        self.K = K = namespace["K"]
        self.a, self.b = a, b = K(), K()
        self.ta, self.tb, self.la, self.lb = (a,), (b,), [a], [b]
        self.tta, self.ttb = ((a,), 1), ((b,), 1)
        self.deep, self.other = [1, (2, {"k": [((a,),)]})], [1, (2, {"k": [((b,),)]})]
        self.da, self.db = {"k": a}, {"k": b}
        self.qa, self.qb = collections.deque([a]), collections.deque([b])
        self.na, self.nb = types.SimpleNamespace(k=a), types.SimpleNamespace(k=b)
        self.empty: dict[Any, Any] = {}
        self.keyed = {a: 1.0}
        self.set = {a}
        self.numbers = [1.0, 2.0, 3.0]
        self.objects = np.array([a, 1], dtype=object)
        self.others = np.array([b, 1], dtype=object)
        self.ref = weakref.ref(a)
        self.partial = functools.partial(a)
        self.cached = functools.lru_cache(lambda k: 1.0)
        self.text = "abc"
        SEEN.clear()


def unpacked(t: Any) -> None:
    (_,) = t.a


def starred(t: Any) -> None:
    first, *_ = t.a


def with_(t: Any) -> None:
    with t.a:
        pass


def loop(t: Any) -> None:
    for _ in t.a:
        pass


def set_slice(t: Any) -> None:
    t.numbers[t.a :] = [4.0]


def delete_item(t: Any) -> None:
    del t.numbers[t.a]


def delete_slice(t: Any) -> None:
    del t.numbers[t.a :]


def delete_key(t: Any) -> None:
    del t.keyed[t.a]


def set_element(t: Any) -> None:
    t.numbers[t.a] = 5.0


def in_place_set(t: Any) -> None:
    s = {1}
    s |= t.set


def matched(t: Any) -> None:
    match t.ta:
        case (1.0,):
            pass
        case [x]:
            pass


def matched_mapping(t: Any) -> None:
    match t.da:
        case {"k": 1.0}:
            pass


def conditional(t: Any) -> None:
    while not t.a:
        pass
    assert t.a and not (not t.a)


def set_comprehension(t: Any) -> None:
    {x for x in t.la}


def dict_comprehension(t: Any) -> None:
    {x: 1 for x in t.la}


def iterated_pairs(t: Any) -> None:
    it = zip(t.la, [1], strict=True)
    dict(it)


def keywords(t: Any) -> None:
    dict(**{"a": t.a}) == dict(a=t.b)


PROGRAMS = {
    "tuple == tuple": lambda t: t.ta == t.tb,
    "tuple != tuple": lambda t: t.ta != t.tb,
    "list == list": lambda t: t.la == t.lb,
    "tuple < tuple": lambda t: t.ta < t.tb,
    "nested tuples ==": lambda t: t.tta == t.ttb,
    "deep containers ==": lambda t: t.deep == t.other,
    "dict == dict": lambda t: t.da == t.db,
    "deque == deque": lambda t: t.qa == t.qb,
    "namespaces ==": lambda t: t.na == t.nb,
    "items ==": lambda t: t.da.items() == t.db.items(),
    "slices ==": lambda t: slice(t.a, 1) == slice(t.b, 1),
    "set == set": lambda t: t.set == {t.b},
    "set < set": lambda t: t.set < {t.b, 1},
    "in a list": lambda t: t.a in [t.b],
    "number in a list": lambda t: 1.0 in t.lb,
    "tuple in a list": lambda t: t.ta in [t.tb],
    "nested tuple in a list": lambda t: t.tta in [t.ttb],
    "list in a list": lambda t: t.la in [t.lb],
    "in a deque": lambda t: t.a in t.qb,
    "in values": lambda t: t.a in t.db.values(),
    "in items": lambda t: ("k", t.a) in t.db.items(),
    "in a generator": lambda t: t.a in (x for x in t.lb),
    "in an iterator": lambda t: t.a in iter(t.lb),
    "in a set": lambda t: t.a in {1},
    "tuple in a set": lambda t: t.ta in {1},
    "tuple in a dict": lambda t: t.ta in t.empty,
    "dict.get": lambda t: t.empty.get(t.ta),
    "dict.setdefault": lambda t: t.empty.setdefault(t.ta, 1),
    "dict.pop": lambda t: t.empty.pop(t.tta, None),
    "dict item": lambda t: t.empty[t.tta],
    "dict item set": lambda t: operator.setitem(t.empty, t.ta, 1),
    "dict.fromkeys": lambda t: dict.fromkeys([t.ta]),
    "dict.fromkeys of a generator": lambda t: dict.fromkeys(x for x in [t.ta]),
    "dict.update": lambda t: t.empty.update([(t.ta, 1)]),
    "dict.update by a generator": lambda t: t.empty.update((x, 1) for x in t.la),
    "dict display": lambda t: {t.ta: 1}[t.ta],
    "set display": lambda t: {t.a, t.b},
    "set of tuples": lambda t: {t.ta, t.tb},
    "set of a generator": lambda t: set(x for x in t.la),
    "set of tuples of an iterator": lambda t: set(iter([t.tta])),
    "set.add": lambda t: set().add(t.ta),
    "set.discard": lambda t: set().discard(t.ta),
    "set.update": lambda t: set().update([t.ta]),
    "set.union": lambda t: set().union(t.la),
    "set & keys": lambda t: t.set & {t.b: 1}.keys(),
    "frozenset": lambda t: frozenset(t.la),
    "frozenset hash": lambda t: hash(frozenset(t.la)),
    "hash": lambda t: hash(t.a),
    "hash of a tuple": lambda t: hash(t.ta),
    "hash of a nested tuple": lambda t: hash(t.tta),
    "hash of a reference": lambda t: hash(t.ref),
    "Counter": lambda t: collections.Counter(t.la),
    "Counter of a generator": lambda t: collections.Counter(x for x in t.la),
    "defaultdict": lambda t: collections.defaultdict(list)[t.ta],
    "OrderedDict": lambda t: collections.OrderedDict([(t.ta, 1)]),
    "OrderedDict.move_to_end": lambda t: collections.OrderedDict([(t.ta, 1)]).move_to_end(t.ta),
    "dict of zip": lambda t: dict(zip(t.la, [1], strict=True)),
    "dict of an iterator": iterated_pairs,
    "dict of a mapping": lambda t: dict(t.keyed),
    "keywords": keywords,
    "heappush": lambda t: heapq.heappush([t.tb], t.ta),
    "heappush of nested tuples": lambda t: heapq.heappush([t.ttb], t.tta),
    "heapify": lambda t: heapq.heapify([t.ttb, t.tta]),
    "nsmallest": lambda t: heapq.nsmallest(1, [t.ttb, t.tta]),
    "merge": lambda t: list(heapq.merge([t.tb], [t.ta])),
    "bisect": lambda t: bisect_left([t.tb], t.ta),
    "min": lambda t: min(t.a, t.b),
    "min of tuples": lambda t: min(t.ta, t.tb),
    "max of nested tuples": lambda t: max([t.tta, t.ttb]),
    "min by key": lambda t: min([1, 2], key=lambda k: t.ta),
    "min of a generator": lambda t: min(x for x in (t.ta, t.tb)),
    "sorted": lambda t: sorted([t.a, t.b]),
    "sorted tuples": lambda t: sorted([t.ta, t.tb]),
    "sorted nested tuples": lambda t: sorted([t.tta, t.ttb]),
    "sorted by key": lambda t: sorted([1, 2], key=lambda k: (1, t.ta)),
    "sorted by a method": lambda t: sorted([1, 2], key=t.a),
    "list.sort": lambda t: [t.ttb, t.tta].sort(),
    "list +": lambda t: t.la + t.lb,
    "list.index": lambda t: [t.b, t.a].index(t.a),
    "list.index of a tuple": lambda t: [t.tb, t.ta].index(t.ta),
    "list.index from": lambda t: [1.0, 2.0].index(2.0, t.a),
    "tuple.index": lambda t: (t.b, t.a).index(t.a),
    "list.count": lambda t: t.lb.count(t.a),
    "tuple.count": lambda t: t.tb.count(1.0),
    "list.remove": lambda t: [t.b, t.a].remove(t.a),
    "list.insert": lambda t: [1.0].insert(t.a, 2.0),
    "list.pop": lambda t: [1.0].pop(t.a),
    "deque.index": lambda t: collections.deque([t.b, t.a]).index(t.a),
    "deque.rotate": lambda t: collections.deque([1, 2]).rotate(t.a),
    "list item": lambda t: t.numbers[t.a],
    "tuple item": lambda t: (1.0, 2.0)[t.a],
    "slice of a list": lambda t: t.numbers[t.a :],
    "slice of a tuple": lambda t: (1.0, 2.0)[t.a :],
    "slice of a text": lambda t: t.text[t.a :],
    "item of a text": lambda t: t.text[t.a],
    "item of a range": lambda t: range(3)[t.a],
    "item of an array": lambda t: np.ones(3)[t.a],
    "slice of an array": lambda t: np.ones(3)[t.a :],
    "items of an array": lambda t: np.ones((3, 3))[t.a, t.a :],
    "set element": set_element,
    "set slice": set_slice,
    "delete item": delete_item,
    "delete slice": delete_slice,
    "delete key": delete_key,
    "slice.indices": lambda t: slice(t.a, 2).indices(3),
    "list *": lambda t: [1.0] * t.a,
    "text *": lambda t: "a" * t.a,
    "range": lambda t: list(range(t.a)),
    "range of two": lambda t: range(t.a, 5),
    "in a range": lambda t: t.a in range(3),
    "range.index": lambda t: range(3).index(t.a),
    "repeat": lambda t: itertools.repeat(1, t.a),
    "islice": lambda t: list(itertools.islice([1, 2], t.a)),
    "count": lambda t: next(itertools.count(t.a)),
    "combinations": lambda t: list(itertools.combinations([1, 2], t.a)),
    "groupby": lambda t: list(itertools.groupby([t.ta, t.tb])),
    "takewhile": lambda t: list(itertools.takewhile(t.a, [1])),
    "filter": lambda t: list(filter(None, t.la)),
    "filter of a generator": lambda t: list(filter(None, (x for x in t.la))),
    "compress": lambda t: list(itertools.compress([1], t.la)),
    "starmap": lambda t: list(itertools.starmap(t.a, [(1,)])),
    "chain": lambda t: list(itertools.chain(t.a)),
    "any": lambda t: any(t.la),
    "all of a generator": lambda t: all(x for x in t.la),
    "+": lambda t: t.a + t.b,
    "1.0 +": lambda t: 1.0 + t.a,
    "@": lambda t: t.a @ t.b,
    "-": lambda t: -t.a,
    "%": lambda t: t.a % 2,
    "1.0 ==": lambda t: 1.0 == t.a,
    "1.0 >": lambda t: 1.0 > t.a,
    "in": lambda t: 1.0 in t.a,
    "item": lambda t: t.a[0],
    "item set": lambda t: operator.setitem(t.a, 0, 1.0),
    "item deleted": lambda t: operator.delitem(t.a, 0),
    "len": lambda t: len(t.a),
    "float": lambda t: float(t.a),
    "int": lambda t: int(t.a),
    "complex": lambda t: complex(t.a),
    "bool": lambda t: bool(t.a),
    "if": lambda t: 1 if t.a else 0,
    "while, and, not": conditional,
    "abs": lambda t: abs(t.a),
    "round": lambda t: round(t.a),
    "round to digits": lambda t: round(1.5, t.a),
    "floor": lambda t: math.floor(t.a),
    "math.sqrt": lambda t: math.sqrt(t.a),
    "math.isnan": lambda t: math.isnan(t.a),
    "math.gcd": lambda t: math.gcd(t.a, 2),
    "math.fsum": lambda t: math.fsum(t.la),
    "divmod": lambda t: divmod(t.a, 1),
    "pow": lambda t: pow(t.a, 2),
    "operator.index": lambda t: operator.index(t.a),
    "operator.itemgetter": lambda t: operator.itemgetter(t.a)([1.0]),
    "operator.countOf": lambda t: operator.countOf(t.lb, t.a),
    "operator.indexOf": lambda t: operator.indexOf([t.tb, t.ta], t.ta),
    "operator.contains": lambda t: operator.contains(t.lb, t.ta),
    "operator.eq": lambda t: operator.eq(t.ta, t.tb),
    "operator.length_hint": lambda t: operator.length_hint(t.a),
    "hex": lambda t: hex(t.a),
    "chr": lambda t: chr(t.a),
    "bytes": lambda t: bytes([t.a]),
    "call": lambda t: t.a(1),
    "partial": lambda t: t.partial(1),
    "map": lambda t: list(map(t.a, [1.0])),
    "max by key": lambda t: max([1.0, 2.0], key=t.a),
    "reduce": lambda t: functools.reduce(t.a, [1, 2]),
    "cmp_to_key": lambda t: sorted([1, 2], key=functools.cmp_to_key(t.a)),
    "cached": lambda t: t.cached(t.a),
    "cached with a tuple": lambda t: t.cached(t.ta),
    "sum": lambda t: sum(t.a),
    "sum of entries": lambda t: sum(t.la),
    "tuple": lambda t: tuple(t.a),
    "list": lambda t: list(t.a),
    "star": lambda t: [*t.a],
    "star in a call": lambda t: max(*t.a, 0.0),
    "set star": lambda t: {*t.la},
    "dict star": lambda t: {**t.keyed},
    "iter": lambda t: next(iter(t.a)),
    "reversed": lambda t: list(reversed(t.a)),
    "enumerate": lambda t: list(enumerate(t.a)),
    "zip": lambda t: list(zip(t.a, t.a, strict=False)),
    "unpacking": unpacked,
    "starred unpacking": starred,
    "for": loop,
    "with": with_,
    "set comprehension": set_comprehension,
    "dict comprehension": dict_comprehension,
    "|=": in_place_set,
    "match": matched,
    "match of a mapping": matched_mapping,
    "str": lambda t: str(t.a),
    "repr of a list": lambda t: repr(t.la),
    "f-string": lambda t: f"{t.a}",
    "f-string of a list": lambda t: f"{t.deep}",
    "format": lambda t: format(t.a, ""),
    "str.format": lambda t: "{}".format(t.a),  # noqa: UP032
    "str %": lambda t: "%s" % (t.a,),  # noqa: UP031
    "str %d": lambda t: "%d" % t.a,  # noqa: UP031
    "print": lambda t: print(t.ta, file=types.SimpleNamespace(write=lambda text: None)),
    "json": lambda t: json.dumps([1.0, t.a], default=t.a),
    "struct": lambda t: struct.pack("d", t.a),
    "copy": lambda t: copy.copy(t.a),
    "deepcopy": lambda t: copy.deepcopy(t.keyed),
    "attribute": lambda t: t.a.anything,
    "getattr": lambda t: builtins.getattr(t.a, "anything"),
    "attrgetter": lambda t: operator.attrgetter("anything")(t.a),
    "methodcaller": lambda t: operator.methodcaller("count", t.a)(t.lb),
    "np.array": lambda t: np.array([t.a], dtype=float),
    "np.float64": lambda t: np.float64(t.a),
    "objects ==": lambda t: t.objects == t.others,
    "objects +": lambda t: t.objects + t.others,
    "np.equal of objects": lambda t: np.equal(t.objects, t.others),
    "sum of objects": lambda t: np.sum(np.array([t.a, t.b])),
    "sort of objects": lambda t: np.sort(np.array([t.a, t.b])),
    "np.zeros": lambda t: np.zeros(t.a),
    "np.sum over axis": lambda t: np.sum(np.ones((2, 2)), axis=t.a),
    "np.roll": lambda t: np.roll(np.ones(3), t.a),
    "array in": lambda t: t.a in t.others,
}


def run(name: str, x: Any) -> Any:
    """The program; then the sum of what the special methods noted, and how often they did."""
    t = Things()
    CURRENT[0] = x
    try:
        PROGRAMS[name](t)
    except Exception:
        pass
    CURRENT[0] = 0.0
    noted = list(SEEN)
    return sum(noted, 0.0) + x, len(noted)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_special_methods_compute_is_differentiated(name):
    _, count = run(name, 3.0)

    def f(x):
        t = THINGS[-1]
        SEEN.clear()
        CURRENT[0] = x
        try:
            PROGRAMS[name](t)
        except Exception:
            pass
        CURRENT[0] = 0.0
        return sum(SEEN, 0.0) + x

    THINGS.append(Things())
    assert grad(f)(3.0) == 6.0 * count + 1.0
    THINGS.append(Things())
    assert jvp(f, (3.0,), (1.0,))[1] == 6.0 * count + 1.0
    THINGS.append(Things())
    assert grad(grad(f))(3.0) == 2.0 * count


THINGS: list[Things] = []


class Value:
    """A number of a program's own, whose methods NumPy calls by the names of its ufuncs."""

    def __init__(self, x):
        self.x = x

    def sqrt(self):
        return Value(self.x**0.5)

    def conjugate(self):
        return Value(self.x * 2.0)

    def arctan2(self, other):
        return Value(math.atan2(self.x, other.x))


@pytest.mark.parametrize(
    "f, slope",
    [
        (lambda x: np.sqrt(Value(x)).x, 0.5 / 1.3**0.5),
        (lambda x: np.conj(Value(x)).x, 2.0),
        (lambda x: np.arctan2(Value(x), Value(2.0)).x, 2.0 / (1.3**2 + 4.0)),
    ],
)
def test_methods_that_ufuncs_call_of_objects(f, slope):
    assert grad(f)(1.3) == pytest.approx(slope, rel=1e-14)
    assert jvp(f, (1.3,), (1.0,))[1] == pytest.approx(slope, rel=1e-14)
    assert grad(grad(f))(1.3) == pytest.approx(jvp(grad(f), (1.3,), (1.0,))[1])
