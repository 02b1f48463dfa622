"""Functions, classes and other objects that a program hands about stay the objects that they are."""

import collections
import copy
import functools
import itertools
import math
import pickle
import sys
import types
import typing
import weakref
from fractions import Fraction

import numpy as np
import pytest
from cases_b import check

HOLDERS = {
    "dict keyword": lambda g: dict(a=g)["a"],
    "dict of pairs": lambda g: dict([("a", g)])["a"],
    "OrderedDict": lambda g: collections.OrderedDict(a=g)["a"],
    "defaultdict factory": lambda g: collections.defaultdict(g).default_factory,
    "defaultdict value": lambda g: collections.defaultdict(list, a=g)["a"],
    "fromkeys": lambda g: dict.fromkeys("a", g)["a"],
    "setdefault": lambda g: {}.setdefault("a", g),
    "pop default": lambda g: {}.pop("a", g),
    "get default": lambda g: {}.get("a", g),
    "getattr default": lambda g: getattr(object(), "nothing", g),
    "next default": lambda g: next(iter([]), g),
    "max default": lambda g: max([], default=g),
    "min of keyed": lambda g: min([g, g], key=lambda h: 0.0),
    "list": lambda g: list((g,))[0],
    "tuple": lambda g: tuple([g])[0],
    "set": lambda g: set([g]).pop(),
    "sorted": lambda g: sorted([g], key=id)[0],
    "deque": lambda g: collections.deque([g])[0],
    "zip": lambda g: list(zip([g]))[0][0],
    "zip_longest": lambda g: list(itertools.zip_longest([1], [], fillvalue=g))[0][1],
    "chain": lambda g: list(itertools.chain([g]))[0],
    "repeat": lambda g: next(itertools.repeat(g)),
    "product": lambda g: list(itertools.product([g]))[0][0],
    "map": lambda g: list(map(lambda h: h, [g]))[0],
    "filter": lambda g: list(filter(None, [g]))[0],
    "reduce initial": lambda g: functools.reduce(lambda a, b: a, [], g),
    "accumulate initial": lambda g: list(itertools.accumulate([], initial=g))[0],
    "namespace": lambda g: types.SimpleNamespace(a=g).a,
    "mapping proxy": lambda g: types.MappingProxyType({"a": g})["a"],
    "weak reference": lambda g: weakref.ref(g)(),
    "exception": lambda g: ValueError(g).args[0],
    "object array": lambda g: np.array([g, None], dtype=object)[0],
    "property": lambda g: property(g).fget,
    "staticmethod": lambda g: staticmethod(g).__func__,
    "wrapped": lambda g: functools.wraps(g)(lambda: None).__wrapped__,
    "keyword of a call": lambda g: (lambda **kw: kw["a"])(a=g),
    "star argument": lambda g: (lambda *a: a[0])(*[g]),
    "default of a lambda": lambda g: (lambda h=g: h).__defaults__[0],
    "cell": lambda g: (lambda: g).__closure__[0].cell_contents,
    "class attribute": lambda g: vars(type("T", (), {"g": g}))["g"],
}


@pytest.mark.parametrize("name", HOLDERS)
def test_a_function_put_somewhere_and_taken_out_is_the_same_function(name):
    hold = HOLDERS[name]

    def g(v=None):
        return v

    def f(x):
        assert hold(g) is g
        return hold(g)(x) * x

    check(f, 1.5, 3.0)


@pytest.mark.parametrize("name", [n for n in HOLDERS if n not in ("property", "staticmethod", "wrapped")])
@pytest.mark.parametrize("kind", [float, int, str, len, list, np.float64, np.sin, ValueError], ids=lambda k: k.__name__)
def test_a_builtin_put_somewhere_and_taken_out_is_the_same_object(name, kind):
    hold = HOLDERS[name]
    if name == "weak reference" and kind is np.sin:
        pytest.skip("a ufunc has no weak references")
    check(lambda x: x * (1.0 if hold(kind) is kind else 100.0), 1.5, 1.0)


def test_options_collected_in_a_dict_reach_numpy_as_they_are():
    def f(x):
        options = dict(dtype=float, order="C")
        return (np.zeros(3, **options) + x).sum() + float(np.sum([x, x], **dict(dtype=float)))

    check(f, 1.5, 5.0)


def test_partial_keeps_its_function_arguments_and_keywords():
    def g(a, b, c=1.0):
        return a * b * c

    def f(x):
        p = functools.partial(g, x, c=2.0)
        assert p.func is g and p.args[0] is x and p.keywords == {"c": 2.0}
        q = functools.partial(p, x)
        assert q.func is g and len(q.args) == 2
        return p(x) + q()

    check(f, 1.5, 8 * 1.5)


def test_functions_and_classes_that_are_pickled_or_copied_inside(monkeypatch):
    monkeypatch.setitem(sys.modules, __name__, sys.modules.get(__name__) or this_module())

    def f(x):
        same = pickle.loads(pickle.dumps({"function": math_of_the_module, "class": Fraction, "c": math.sin}))
        assert same == {"function": math_of_the_module, "class": Fraction, "c": math.sin}
        assert copy.copy(math_of_the_module) is math_of_the_module
        assert copy.deepcopy([math_of_the_module])[0] is math_of_the_module
        return math_of_the_module(x)

    check(f, 1.5, 3.0)


def this_module():
    """This file as a module that pickle can import, whatever pytest's import mode."""
    module = types.ModuleType(__name__)
    module.__dict__.update(globals())
    return module


def math_of_the_module(x):
    return x * x


def test_named_tuples_and_protocols_made_inside():
    @typing.runtime_checkable
    class HasRate(typing.Protocol):
        rate: float

    def f(x):
        Pair = collections.namedtuple("Pair", "a b", defaults=[x])
        Typed = typing.NamedTuple("Typed", [("a", float), ("b", float)])
        assert Typed.__annotations__ == {"a": float, "b": float}
        model = types.SimpleNamespace(rate=x)
        assert isinstance(model, HasRate) and not isinstance(x, HasRate)
        assert isinstance(x, typing.SupportsFloat) and isinstance(x, collections.abc.Hashable)
        pair, typed = Pair(x), Typed(x, b=x * x)
        assert pair._asdict() == {"a": x, "b": x} and typed._replace(a=0.0).b is typed.b
        return pair.a * pair.b + typed.a * typed.b + model.rate

    check(f, 1.5, 2 * 1.5 + 3 * 1.5**2 + 1)


def test_the_same_bound_method_and_the_same_class_are_equal_and_hash_alike():
    class Model:
        def rate(self, x):
            return x * 2.0

    def f(x):
        model = Model()
        table = {model.rate: x, Model: x * x, Model.rate: 3.0 * x}
        return table[model.rate] + table[type(model)] + table[Model.rate] + {model.rate, model.rate}.pop()(x)

    check(f, 1.5, 1 + 3.0 + 3 + 2)


def test_functions_compare_and_register_as_the_originals():
    registry = {}

    def register(g):
        registry[g.__name__] = g
        return g

    @register
    def double(v):
        return v * 2.0

    def f(x):
        assert registry["double"] is double and double in registry.values()
        assert [double, double].index(double) == 0 and [double].count(double) == 1

        @register
        def triple(v):
            return v * 3.0

        assert registry["triple"] is triple
        return sum(g(x) for g in (double, triple) if g in registry.values())

    check(f, 1.5, 5.0)
