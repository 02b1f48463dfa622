"""Functions that move references, and definitions in Python of those that do more."""

import bisect
import builtins
import collections
import contextvars
import functools
import itertools
import operator
import re

import numpy as np
import pytest

from plaingrad import rulebook
from plaingrad.rules.python import containers, iteration, objects, operators, text

A = [3.0, 1.0, 2.0]


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def scaled(self, factor, *, offset=0.0):
        return factor * self.x + offset


P = Point(Point(1.0, 2.0), 3.0)


@pytest.mark.parametrize("f, args, options", [
    (itertools.accumulate, (A,), {}), (itertools.accumulate, (A, operator.mul), {}), (itertools.accumulate, (A,), {"initial": 5}),
    (itertools.accumulate, ([],), {}), (itertools.accumulate, ([], max), {"initial": 1.0}),
])
def test_running_totals(f, args, options):
    assert list(rulebook.find(f).definition(*args, **options)) == list(f(*args, **options))


def test_running_totals_refuse_at_once_what_cannot_be_iterated():
    with pytest.raises(TypeError):
        rulebook.find(itertools.accumulate).definition(3.0)


def test_reduction_and_reversal():
    reduce, reverse = rulebook.find(functools.reduce).definition, rulebook.find(reversed).definition
    assert reduce(operator.sub, A) == functools.reduce(operator.sub, A)
    assert reduce(operator.sub, A, 9.0) == functools.reduce(operator.sub, A, 9.0)
    assert reduce(operator.sub, [], 9.0) == 9.0
    with pytest.raises(TypeError, match="empty"):
        reduce(operator.sub, [])
    assert list(reverse(np.array(A))) == list(reverse(A)) == A[::-1]


@pytest.mark.parametrize("key", [None, lambda v: -v])
@pytest.mark.parametrize("side", ["left", "right"])
def test_bisection(side, key):
    bisector, inserter = getattr(bisect, f"bisect_{side}"), getattr(bisect, f"insort_{side}")
    values = sorted([1.0, 2.0, 2.0, 3.0, 5.0], key=key)
    for x in (0.0, 1.0, 2.0, 4.0, 5.0, 6.0):
        wanted = x if key is None else key(x)
        assert rulebook.find(bisector).definition(values, wanted, key=key) == bisector(values, wanted, key=key)
        assert rulebook.find(bisector).definition(values, wanted, 1, 3, key=key) == bisector(values, wanted, 1, 3, key=key)
        found, expected = list(values), list(values)
        rulebook.find(inserter).definition(found, x, key=key)
        inserter(expected, x, key=key)
        assert found == expected
    with pytest.raises(ValueError):
        rulebook.find(bisector).definition(values, 1.0, -1)


class Pair(tuple):
    pass


@pytest.mark.parametrize("cls", [tuple, Pair, frozenset])
def test_immutable_containers_are_made_of_their_elements(cls):
    new = rulebook.find((frozenset if cls is frozenset else tuple).__new__).definition
    found = new(cls, iter([1.0, 2.0]))
    assert found == cls([1.0, 2.0]) and type(found) is cls
    assert new(cls) == cls()


def test_printing(capsys):
    rulebook.find(print).definition(1.5, "a", [2.5], sep="-", end="!")
    assert capsys.readouterr().out == "1.5-a-[2.5]!"


def test_running_in_a_context():
    run = rulebook.find(contextvars.Context.run).definition
    assert run(contextvars.copy_context(), pow, 2, exp=3) == 8


def test_counting_from_a_float():
    found = itertools.islice(rulebook.find(itertools.count).definition(0.1, 0.3), 9)
    assert list(found) == list(itertools.islice(itertools.count(0.1, 0.3), 9))


@pytest.mark.parametrize("f, args", [
    (operator.getitem, (A, 1)), (operator.contains, (A, 2.0)), (operator.concat, (A, A)), (operator.countOf, (A, 2.0)),
    (operator.indexOf, (A, 2.0)), (operator.call, (max, 1.0, 2.0)), (operator.iadd, (1.0, 2.0)), (operator.isub, (1.0, 2.0)),
    (operator.imul, (1.0, 2.0)), (operator.itruediv, (1.0, 2.0)), (operator.ifloordiv, (5.0, 2.0)), (operator.imod, (5.0, 2.0)),
    (operator.ipow, (5.0, 2.0)), (operator.iand, (6, 3)), (operator.ior, (6, 3)), (operator.ixor, (6, 3)), (operator.ilshift, (6, 3)),
    (operator.irshift, (6, 1)), (operator.iconcat, ((1,), (2,))),
])
def test_an_operator_is_the_syntax_that_it_stands_for(f, args):
    assert rulebook.find(f).definition(*args) == f(*args)


def test_operators_that_change_a_container():
    a = list(A)
    rulebook.find(operator.setitem).definition(a, 0, 7.0)
    rulebook.find(operator.delitem).definition(a, 1)
    assert a == [7.0, 2.0]
    with pytest.raises(ValueError, match="not in sequence"):
        rulebook.find(operator.indexOf).definition(A, 9.0)
    a = list(A)
    assert rulebook.find(operator.iconcat).definition(a, [1]) is a
    for name in "iadd isub imul itruediv ifloordiv imod ipow imatmul iand ior ixor ilshift irshift setitem delitem".split():
        assert rulebook.find(getattr(operator, name)).mutates


@pytest.mark.parametrize("getter, o", [
    (operator.itemgetter(1), A), (operator.itemgetter(1, 0), A), (operator.itemgetter("a"), {"a": 1.0}),
    (operator.attrgetter("y"), P), (operator.attrgetter("x.y", "y"), P), (operator.methodcaller("scaled", 2.0), P.x),
    (operator.methodcaller("scaled", 2.0, offset=1.0), P.x), (operator.methodcaller("scaled", factor=2.0), P.x),
])
def test_a_getter_does_what_its_arguments_say(getter, o):
    assert rulebook.find(type(getter).__call__).definition(getter, o) == getter(o)


ORDINARY = [
    list, tuple, dict, set, frozenset, map, filter, zip, enumerate, reversed, sorted, min, max, any, all, len, next, iter, sum, abs,
    pow, divmod, round, float, complex, int, bool, isinstance, issubclass, callable, hash, id, type, object, slice, range, property,
    list.append, list.extend, list.insert, list.pop, list.sort, list.index, list.copy, dict.get, dict.items, dict.update, dict.fromkeys,
    dict.setdefault, set.add, set.union, tuple.index, tuple.count, frozenset.union, collections.deque, collections.deque.appendleft,
    collections.deque.rotate, collections.OrderedDict, collections.OrderedDict.move_to_end, collections.defaultdict, functools.reduce,
    functools.cmp_to_key, re.Pattern.sub, str.join, str.split, ValueError, KeyError, Exception.with_traceback, object.__setattr__,
    object.__new__, tuple.__new__, dict.__setitem__, list.__getitem__, list.__init__,
    *(f for f in vars(itertools).values() if isinstance(f, type) and f.__module__ == "itertools"),
]


@pytest.mark.parametrize("f", [f for f in ORDINARY if f.__name__[0] != "_"], ids=lambda f: f.__qualname__)
def test_what_ordinary_programs_use_is_known(f):
    assert rulebook.find(f) is not None


def test_every_method_of_the_builtin_containers_is_known():
    for cls in (*containers.CONTAINERS, *containers.iterator_types()):
        for name, f in vars(cls).items():
            if name == "__new__" and hasattr(cls, "__next__"):
                continue
            if callable(f) and not isinstance(f, type) and name not in ("__repr__", "__str__", "__format__"):
                assert rulebook.find(f) is not None, (cls, name)


def test_methods_that_iterate_are_told_from_those_that_only_move():
    assert rulebook.find(list.extend).kind == "higher_order"
    assert rulebook.find(list.sort).kind == "higher_order"
    assert rulebook.find(list.append).kind == "mover"
    assert rulebook.find(dict.fromkeys).kind == "inspector"


def test_methods_that_compare_or_hash_are_told_from_those_that_only_move():
    for method in (list.index, list.__eq__, dict.get, dict.__getitem__, set.add, tuple.__lt__, str.find, slice.indices, len):
        assert rulebook.find(method).kind == "inspector"
    for method in (dict.values, collections.deque.popleft, set.copy, list.reverse):
        assert rulebook.find(method).kind == "mover"


def test_every_builtin_exception_may_carry_a_value():
    for cls in vars(builtins).values():
        if isinstance(cls, type) and issubclass(cls, BaseException):
            assert rulebook.find(cls) is not None


def test_the_doors_between_numbers_and_text_are_listed_once():
    for doors in (text.FORMATTERS, text.PARSERS, text.DIGITS):
        assert len(set(map(id, doors))) == len(doors)


def test_calls_and_properties_by_hand():
    def call(f):
        return rulebook.find(f).definition

    assert call(type(call).__call__)(pow, 2, exp=3) == 8
    assert call(type(P.scaled).__call__)(P.x.scaled, 2.0, offset=1.0) == 3.0
    assert call(functools.partial.__call__)(functools.partial(pow, 2), 3) == 8
    assert call(staticmethod.__call__)(staticmethod(pow), 2, 3) == 8
    assert call(type(list[int]).__call__)(list[int], (1, 2)) == [1, 2]
    assert call(type.__call__)(type, 1.5) is float
    assert call(type.__call__)(Point, 1.0, y=2.0).y == 2.0
    assert call(type.__call__)(float, 2) == 2.0
    assert call(property.__get__)(property(lambda p: p.y), P) == 3.0
    reader = property(lambda p: p.y)
    assert call(property.__get__)(reader, None, Point) is reader
    with pytest.raises(AttributeError):
        call(property.__get__)(property(), P)


def test_no_definition_here_is_without_a_test():
    tested = {operator.getitem, operator.setitem, operator.delitem, operator.contains, operator.concat, operator.countOf,
              operator.indexOf, operator.call, operator.iconcat, operator.itemgetter.__call__, operator.attrgetter.__call__,
              operator.methodcaller.__call__, itertools.accumulate, itertools.count, iteration._running_totals, functools.reduce,
              reversed, contextvars.Context.run, print, type(list[int]).__call__, type(lambda: 0).__call__, type(P.scaled).__call__,
              functools.partial.__call__, staticmethod.__call__, property.__get__, type.__call__, tuple.__new__, frozenset.__new__, containers._place,
              bisect.bisect_left, bisect.bisect_right, bisect.insort_left, bisect.insort_right}
    tested |= {getattr(operator, "i" + name) for name in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()}
    files = {module.__file__ for module in (operators, iteration, objects, text, containers)}
    here = {rule.function for rule in rulebook.rules()
            if rule.source.split(":")[0] in files and rule.kind in ("full", "linear", "composed", "scalar")}
    assert here == tested
