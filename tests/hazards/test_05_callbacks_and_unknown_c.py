"""Hazard 5: C code that calls back, and C code that gets an active array and may write it."""

import array
import bisect
import collections
import ctypes
import functools
import heapq
import itertools
import math
import operator
import re
import sqlite3
import types
import zlib

import numpy as np
import pytest
from cases_b import check, check_or_refuse

import plaingrad

X = np.array([1.5, -0.5, 2.0])


# Callbacks into C code that has a rule or only moves references.


def test_keys_of_sorted_min_max_and_sort_compute_and_keep_active_numbers():
    def f(x):
        seen = []

        def key(v):
            seen.append(v * x)
            return -v

        a = sorted([x, 2.0 * x, 3.0 * x], key=key)
        b = max(a, key=lambda v: (seen.append(x), v)[1])
        a.sort(key=key)
        return a[0] * b + sum(seen)

    # a[0] = b = 3x; seen: 2 * (x + 2x + 3x) x and 3 x
    x = 1.5
    check(f, x, 18 * x + 24 * x + 3)


def test_map_filter_reduce_accumulate_starmap_and_partial():
    def f(x):
        a = list(map(lambda u, v: u * v, [x, x], [x, 2.0]))
        b = list(filter(lambda v: v * x > 0, [x, -x, x * x]))
        c = functools.reduce(lambda u, v: u * x + v, [1.0, 2.0, 3.0])
        d = list(itertools.accumulate([x, x, x], lambda u, v: u * v))
        e = list(itertools.starmap(functools.partial(lambda k, u, v: k * u * v, x), [(1.0, 2.0), (x, x)]))
        g = sum(itertools.takewhile(lambda v: v < 10.0 * x, (x * i for i in itertools.count())))
        h = sorted([x, -x], key=functools.cmp_to_key(lambda u, v: (u > v) - (u < v)))
        return sum(a) + sum(b) + c + sum(d) + sum(e) + g + h[1]

    # a: xx + 2x; b: x + xx; c: xx + 2x + 3; d: x + xx + x^3; e: 2x + x^3; g: 45 x; h: x
    x = 1.5
    check(f, x, 2 * x + 2 + 1 + 2 * x + 2 * x + 2 + 1 + 2 * x + 3 * x**2 + 2 + 3 * x**2 + 45 + 1)


def test_groupby_bisect_nlargest_and_defaultdict_factories():
    def f(x):
        groups = {k: sum(g) for k, g in itertools.groupby([x, 2.0 * x, -x], key=lambda v: v > 0)}
        place = bisect.bisect([1.0, 2.0, 3.0], x, key=lambda v: v)
        top = heapq.nlargest(2, [x, 2.0 * x, x * x], key=lambda v: v * x)
        d = collections.defaultdict(lambda: x * x)
        d["a"] += x
        return groups[True] * place + sum(top) + d["a"] + d["b"] + groups[False]

    # 3x * 1; 2x + xx; xx + x + xx; -x
    x = 1.5
    check(f, x, 3 + 2 + 2 * x + 4 * x + 1 - 1)


def test_callbacks_of_re_sub_iter_and_property_machinery():
    def f(x):
        seen = []
        text = re.sub("a+", lambda m: seen.append(x * len(m.group())) or "b", "aa-a-aaa")
        read = iter(lambda: seen.pop() if seen else None, None)
        return sum(read) * len(text)

    check(f, 1.5, 6.0 * 5)


def test_numpy_functions_that_call_python_back():
    def f(x):
        rows = np.apply_along_axis(lambda r: (r * r).sum(), 1, x.reshape(1, 3))
        table = np.fromfunction(lambda i, j: (i + j) * x[0], (2, 2))
        pieces = np.piecewise(x, [x < 0, x >= 0], [lambda v: v * 3.0, lambda v: v * v])
        return rows.sum() + table.sum() + pieces.sum()

    # 2x; 4 of x0; (2 x0, 3, 2 x2)
    check_or_refuse(f, X, 2 * X + np.array([4.0, 0.0, 0.0]) + np.array([3.0, 3.0, 4.0]))


def test_fromiter_from_a_generator_of_active_numbers():
    check_or_refuse(lambda x: np.fromiter((x * k for k in range(4)), float).sum(), 1.5, 6.0)
    check_or_refuse(lambda x: np.fromiter(map(lambda k: x * k, range(4)), float, count=4)[2], 1.5, 2.0)


# Callbacks into C code without a rule: no active number may come back through it.

CALL_BACK = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)


def through_ctypes(x):
    return CALL_BACK(lambda t: t * x)(2.0)


def through_sqlite(x):
    base = sqlite3.connect(":memory:")
    try:
        base.create_function("g", 1, lambda t: t * x)
        return base.execute("select g(2.0)").fetchone()[0]
    finally:
        base.close()


def through_sqlite_parameter(x):
    base = sqlite3.connect(":memory:")
    try:
        return base.execute("select ? * 2.0", (x,)).fetchone()[0]
    finally:
        base.close()


def through_array_array(x):
    return sum(array.array("d", [x, x * x]))


def through_array_append(x):
    a = array.array("d")
    a.append(x)
    return a[0] * 2.0


def through_ctypes_double(x):
    return ctypes.c_double(x).value * 2.0


def through_ctypes_array(x):
    block = (ctypes.c_double * 2)()
    block[0] = x
    return block[0] * 3.0


def through_simple_namespace_repr(x):
    return float(repr(types.SimpleNamespace(a=x)).split("=")[1].rstrip(")"))


# ctypes cannot pass an exception on from a callback: it reports it as unraisable, and the refusal comes afterwards.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("f", "slope"),
    [
        (through_ctypes, 2.0), (through_sqlite, 2.0), (through_sqlite_parameter, 2.0),
        (through_array_array, 1 + 3.25 * 2), (through_array_append, 2.0), (through_ctypes_double, 2.0),
        (through_ctypes_array, 3.0), (through_simple_namespace_repr, 1.0),
    ],
)  # fmt: skip
def test_active_numbers_that_pass_through_unknown_c_code_are_right_or_refused(f, slope):
    check_or_refuse(f, 3.25, slope)


def test_callbacks_that_return_nothing_active_are_called_and_may_keep_active_numbers():
    def f(x):
        kept = []
        base = sqlite3.connect(":memory:")
        try:
            base.create_function("keep", 1, lambda t: kept.append(t * x) or 1)
            assert base.execute("select keep(2.0)").fetchone()[0] == 1
        finally:
            base.close()
        return kept[0] * x

    check_or_refuse(f, 1.5, 4 * 1.5)


# Unknown C code that gets an active array is refused whatever it returns.


def test_unknown_c_functions_of_an_active_array_are_refused_by_name_and_line():
    for call, name in (
        (lambda x: len(zlib.compress(x)) * 0.0 + x[0], "compress"),
        (lambda x: zlib.adler32(memoryview(x)) * 0.0 + x[0], "adler32|memoryview"),
        (lambda x: np.fft.fft(x).real.sum() + np.lib.format.dtype_to_descr(x.dtype).count("f") + x[0], None),
    ):
        if name is None:
            check_or_refuse(call, X, np.array([1.0 + 3.0, 0.0, 0.0]))
            continue
        with pytest.raises(plaingrad.MissingRuleError, match=name) as refused:
            plaingrad.grad(call)(X)
        assert "test_05_callbacks_and_unknown_c.py" in str(refused.value)


def test_unknown_c_functions_of_inactive_arrays_are_called():
    g = np.array([1.0, 2.0, 3.0])
    check(lambda x: (x * (zlib.crc32(g) % 7)).sum(), X, np.full(3, float(zlib.crc32(g) % 7)))


METHODS_THAT_WRITE = {
    "sort": (lambda a, x: a.sort(), lambda x: np.arange(1.0, 4.0)[np.argsort(np.argsort(x))]),
    "sort from the end": (lambda a, x: a[::-1].sort(), lambda x: np.arange(3.0, 0.0, -1)[np.argsort(np.argsort(x))]),
    "fill": (lambda a, x: a.fill(x[1]), lambda x: np.array([0.0, 6.0, 0.0])),
    "put": (lambda a, x: a.put([0, 2], x[1] * 2.0), lambda x: np.array([0.0, 2.0 + 8.0, 0.0])),
    "itemset": (lambda a, x: a.__setitem__(0, x[1]), lambda x: np.array([0.0, 3.0, 3.0])),
    "partition": (lambda a, x: a.partition(0), None),
    "copyto": (lambda a, x: np.copyto(a, x[::-1]), lambda x: np.array([3.0, 2.0, 1.0])),
    "copyto where": (lambda a, x: np.copyto(a, 7.0, where=a < 0), lambda x: np.array([1.0, 0.0, 3.0])),
    "putmask": (lambda a, x: np.putmask(a, a < 0, x[::-1] * 3.0), lambda x: np.array([1.0, 6.0, 3.0])),
    "place": (lambda a, x: np.place(a, a > 0, [x[1]]), lambda x: np.array([0.0, 1.0 + 2.0 + 3.0, 0.0])),
    "fill_diagonal": (lambda a, x: np.fill_diagonal(a[:1].reshape(1, 1), x[2]), lambda x: np.array([0.0, 2.0, 4.0])),
    "put_along_axis": (
        lambda a, x: np.put_along_axis(a, np.array([2, 0]), x[:2] * 5.0, 0),
        lambda x: np.array([15.0, 2.0 + 5.0, 0.0]),
    ),
    "add.at": (lambda a, x: np.add.at(a, [0, 0, 1], x[2]), lambda x: np.array([1.0, 2.0, 3.0 + 2.0 + 2.0])),
    "resize": (lambda a, x: a.resize(3, refcheck=False), lambda x: np.array([1.0, 2.0, 3.0])),
    "byteswap": (lambda a, x: a.byteswap(inplace=True).byteswap(inplace=True), lambda x: np.array([1.0, 2.0, 3.0])),
    "setfield": (lambda a, x: a.setfield(x[0], float), lambda x: np.array([6.0, 0.0, 0.0])),
    "shape": (lambda a, x: a.setflags(write=True), lambda x: np.array([1.0, 2.0, 3.0])),
    "operator.setitem": (lambda a, x: operator.setitem(a, 0, x[0] * 4.0), lambda x: np.array([4.0, 2.0, 3.0])),
    "shuffle": (lambda a, x: np.random.default_rng(5).shuffle(a), None),
}


@pytest.mark.parametrize("name", METHODS_THAT_WRITE)
def test_methods_that_write_an_active_array_are_right_or_refused(name):
    write, gradient = METHODS_THAT_WRITE[name]

    def f(x):
        a = x * 1.0
        write(a, x)
        return (a * np.arange(1.0, 4.0)).sum()

    if gradient is not None:
        expected = gradient(X)
    else:  # a permutation: see where each element went
        order = np.array([f(row) for row in np.eye(3)]) if name == "shuffle" else None
        if order is None:
            a = X.copy()
            write(a, X)
            order = np.array([1.0 + list(a).index(v) for v in X])
        expected = order
    check_or_refuse(f, X, expected)


def test_an_array_handed_to_unknown_c_code_inside_a_container_is_refused():
    def f(x):
        return zlib.crc32(b"".join([x])) * 0.0 + x[0]

    with pytest.raises((plaingrad.MissingRuleError, plaingrad.RoundTripError)):
        plaingrad.grad(f)(X)


def test_a_rule_for_the_user_function_above_it_is_a_way_out():
    def g(x):
        return ctypes.c_double(math.sin(x)).value

    def f(x):
        return g(x) * 2.0

    check_or_refuse(f, 0.5, 2 * math.cos(0.5))

    @plaingrad.rrule(g)
    def g_rrule(x):
        return g(x), lambda y_bar: (y_bar * math.cos(x),)

    check(f, 0.5, 2 * math.cos(0.5))
