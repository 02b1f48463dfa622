"""Hazard 15: code is replaced while a derivative is being taken, by the program or by another thread."""

import dis
import functools
import gc
import inspect
import marshal
import math
import pickle
import sys
import threading
import types
import weakref

import numpy as np
import pytest
from cases_b import check

import plaingrad
from plaingrad import derivative, grad


class E:
    """A number with operators of its own."""

    def __init__(self, v):
        self.v = v

    def __mul__(self, other):
        return self.v * other

    def __call__(self, t):
        return self.v * t

    def __lt__(self, other):
        E.kept.append(self.v * other.v)
        return self.v < other.v

    @property
    def half(self):
        return self.v / 2.0

    @half.setter
    def half(self, value):
        self.v = value * 2.0

    kept = []


class F(E):
    pass


FUNCTIONS = {
    **{name: E.__dict__[name] for name in ("__init__", "__mul__", "__call__", "__lt__")},
    **{"get": E.half.fget, "set": E.half.fset},
}
CODES = {name: f.__code__ for name, f in FUNCTIONS.items()}
ATTRIBUTES = dict(vars(E))


@pytest.fixture(autouse=True)
def as_before():
    yield
    for name, f in FUNCTIONS.items():
        f.__code__ = CODES[name]
    for cls, attributes in ((E, ATTRIBUTES), (F, {})):
        for name, value in attributes.items():
            if vars(cls)[name] is not value:
                setattr(cls, name, value)
        for name in set(vars(cls)) - set(attributes) - {"__module__", "__doc__"}:
            delattr(cls, name)
    E.kept.clear()


def states():
    return {name: f.__code__ for name, f in FUNCTIONS.items()}


def both(f, x, slope):
    """The plain call and both modes agree, with fresh code before each, and leave the same code behind."""
    y = f(x)
    after = states()
    for name, g in FUNCTIONS.items():
        g.__code__ = CODES[name]
    for derived in (grad(f), derivative(f), lambda x: plaingrad.value_and_grad(f)(x)[1]):
        assert derived(x) == pytest.approx(slope, rel=1e-12)
        assert all(code is after[name] for name, code in states().items())
        for name, g in FUNCTIONS.items():
            g.__code__ = CODES[name]
    assert plaingrad.value_and_grad(f)(x)[0] == y


# -- by the program --------------------------------------------------------------------------------------------------


def test_a_special_method_gets_other_code_and_keeps_it():
    def cube(self, other):
        return self.v**3 * other

    def f(x):
        e = E(x)
        before = e * 2.0
        E.__mul__.__code__ = cube.__code__
        assert E.__mul__.__code__ is cube.__code__
        return before + e * 2.0

    both(f, 1.5, 2.0 + 6.0 * 1.5**2)


def test_code_is_saved_replaced_and_put_back():
    def f(x):
        e = E(x)
        before = e * 2.0
        saved = E.__mul__.__code__
        assert saved is CODES["__mul__"]
        E.__mul__.__code__ = (lambda self, other: self.v * self.v * other).__code__
        try:
            between = e * 2.0
        finally:
            E.__mul__.__code__ = saved
        return before + between + e * 2.0

    both(f, 1.5, 2.0 + 4.0 * 1.5 + 2.0)


@pytest.mark.parametrize("how", ["assignment", "setattr", "__setattr__", "descriptor", "object.__setattr__"])
def test_every_way_to_assign_code(how):
    new = (lambda self, t: self.v * self.v * t).__code__
    ways = {
        "setattr": lambda f: setattr(f, "__code__", new),
        "__setattr__": lambda f: f.__setattr__("__code__", new),
        "descriptor": lambda f: types.FunctionType.__code__.__set__(f, new),
        "object.__setattr__": lambda f: object.__setattr__(f, "__code__", new),
    }

    def f(x):
        e = E(x)
        before = e(3.0) + sum(map(e, [1.0, 1.0]))
        if how == "assignment":
            E.__call__.__code__ = new
        else:
            ways[how](E.__call__)
        return before + sum(map(e, [1.0, 1.0]))

    both(f, 1.5, 5.0 + 2 * 2 * 1.5)


def test_the_code_of_getters_and_setters():
    def f(x):
        e = E(x)
        e.half = e.half * 1.0
        before = e.half
        type(e).half.fget.__code__ = (lambda self: self.v * self.v).__code__
        E.half.fset.__code__ = (lambda self, value: self.__dict__.update(v=value * 3.0)).__code__
        e.half = x
        return before + e.half  # x/2 + (3x)^2

    both(f, 1.5, 0.5 + 18 * 1.5)


def test_the_code_of_a_method_that_c_code_enters_in_a_loop():
    def reverse(self, other):
        E.kept.append(self.v * other.v * 10.0)
        return self.v > other.v

    def f(x):
        E.kept.clear()
        cards = [E(x), E(x * 2.0)]
        sorted(cards)
        E.__lt__.__code__ = reverse.__code__
        sorted(cards)
        return sum(E.kept)

    both(f, 1.5, 2 * (2.0 + 20.0) * 1.5)


def test_the_code_of_init_when_the_class_was_called_before():
    def twice(self, v):
        self.v = v * v

    def f(x):
        first = E(x)
        E.__init__.__code__ = twice.__code__
        return first.v + E(x).v

    both(f, 1.5, 1.0 + 3.0)


def test_code_is_replaced_before_an_exception_and_stays():
    def f(x):
        e = E(x)
        e * 1.0
        E.__mul__.__code__ = (lambda self, other: other).__code__
        raise KeyError(e * 2.0)

    with pytest.raises(KeyError, match="2.0"):
        grad(f)(1.5)
    assert E(7.0) * 3.0 == 3.0


def test_code_is_replaced_under_two_levels():
    def f(x):
        e = E(x)
        before = e * 1.0

        def inner(y):
            E.__mul__.__code__ = (lambda self, other: self.v * self.v * other).__code__
            return (e * y) * y  # x^2 y^2

        slope = grad(inner)(2.0)  # 2 x^2 y
        after = e * 1.0
        E.__mul__.__code__ = CODES["__mul__"]
        return before + slope + after

    both(f, 1.5, 1.0 + 8 * 1.5 + 2 * 1.5)
    second = grad(grad(f))(1.5)
    assert second == pytest.approx(8.0 + 2.0, rel=1e-12)


def test_code_that_does_not_fit_is_refused_as_ever():
    k = 2.0
    captures = (lambda self, other: k).__code__

    def f(x):
        e = E(x)
        e * 1.0
        for wrong, error in ((captures, ValueError), (None, TypeError), ("text", TypeError)):
            with pytest.raises(error) as ours:
                E.__mul__.__code__ = wrong
            with pytest.raises(error) as plain:
                test_code_that_does_not_fit_is_refused_as_ever.__code__ = wrong
            assert type(ours.value) is type(plain.value)
        with pytest.raises((TypeError, AttributeError)):
            del E.__mul__.__code__
        return e * 2.0

    both(f, 1.5, 2.0)


def test_code_from_a_frame_is_the_programs():
    def f(x):
        def h(x):
            return x * x

        def g(x):
            return x * 3.0, sys._getframe().f_code

        y, code = g(x)
        h.__code__ = (lambda x: x * 5.0).__code__
        return y + h(x) + h.__code__.co_consts[-1]

    check(f, 1.5, 8.0)

    def method(self, other):
        return self.v * self.v, sys._getframe().f_code

    def ours(x):
        E.__mul__.__code__ = method.__code__
        _, code = E(x) * 1.0
        E.__call__.__code__ = code
        return E(x)(2.0)[0]

    assert grad(ours)(1.5) == 3.0
    assert E.__call__.__code__ is method.__code__


def test_callbacks_that_c_code_keeps():
    class Thing:
        pass

    def f(x):
        gone = []

        def callback(_):
            gone.append(x * 2.0)

        thing = Thing()
        reference = weakref.ref(thing, callback)
        code = callback.__code__
        callback.__code__ = (lambda _: gone.append(x * x)).__code__.replace(co_freevars=code.co_freevars)
        del thing
        gc.collect()
        assert reference() is None
        return gone[0]

    check(f, 1.5, 3.0)


def test_operators_are_replaced_deleted_and_inherited_again():
    def f(x):
        e = F(x)
        total = e * 2.0
        F.__mul__ = lambda self, other: self.v * self.v * other
        total += e * 2.0
        del F.__mul__
        total += e * 2.0
        setattr(F, "__mul__", lambda self, other: self.v**3 * other)
        total += e * 2.0
        delattr(F, "__mul__")
        F.half = property(lambda self: self.v * 7.0)
        total += e.half
        del F.half
        return total + e.half

    both(f, 1.5, 2.0 + 6.0 + 2.0 + 6 * 1.5**2 + 7.0 + 0.5)


def test_functools_and_mock_patch_special_methods():
    from unittest import mock

    def f(x):
        e = E(x)
        before = e * 2.0
        with mock.patch.object(E, "__mul__", lambda self, other: self.v * self.v * other):
            between = e * 2.0
        return before + between + e * 2.0

    both(f, 1.5, 2.0 + 6.0 + 2.0)
    assert vars(E)["__mul__"] is FUNCTIONS["__mul__"]


# -- by another thread ------------------------------------------------------------------------------------------------


def beside(change):
    """(ask, result): ask() lets another thread, which knows no level, do `change`, and waits until it has."""
    asked, done, result = threading.Event(), threading.Event(), []

    def work():
        asked.wait(60)
        try:
            result.append(change())
        finally:
            done.set()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()

    def ask():
        asked.set()
        assert done.wait(60)

    return ask, result


def five(self, other):
    return 5.0 * self.v * self.v


CHANGES = {
    "an operator": (lambda: setattr(E, "__mul__", five), lambda e, x: e * 1.0),
    "its code": (lambda: setattr(E.__mul__, "__code__", five.__code__), lambda e, x: e * 1.0),
    "an operator of the class itself": (lambda: setattr(F, "__mul__", five), lambda e, x: e * 1.0),
    "the bases": (lambda: setattr(F, "__bases__", (G, E)), lambda e, x: e * 1.0),
    "a property": (
        lambda: setattr(E, "half", property(lambda self: 5.0 * self.v * self.v)),
        lambda e, x: e.half,
    ),
    "the code of a getter": (
        lambda: setattr(E.half.fget, "__code__", (lambda self: 5.0 * self.v * self.v).__code__),
        lambda e, x: e.half,
    ),
    "__call__": (lambda: setattr(E, "__call__", five), lambda e, x: sum(map(e, [1.0]))),
    "__init__": (
        lambda: setattr(E, "__init__", lambda self, v: setattr(self, "v", 5.0 * v * v)),
        lambda e, x: F(x).v,
    ),
    "a new operator": (lambda: setattr(E, "__add__", five), lambda e, x: e + 1.0),
    "a reflected operator": (lambda: setattr(E, "__radd__", five), lambda e, x: 1.0 + e),
    "len and iteration": (
        lambda: setattr(E, "__iter__", lambda self: iter([5.0 * self.v * self.v])),
        lambda e, x: sum(list(e)),
    ),
    "__getattr__": (
        lambda: setattr(E, "__getattr__", lambda self, name: 5.0 * self.v * self.v),
        lambda e, x: e.missing,
    ),
    "__setattr__": (
        lambda: setattr(E, "__setattr__", lambda self, k, v: self.__dict__.update({k: 5.0 * v * v})),
        lambda e, x: (setattr(e, "w", x), e.w)[1],
    ),
}


class G:
    __mul__ = five


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("mode", [grad, derivative, lambda f: lambda x: grad(grad(lambda y: f(y) * 1.0))(x) * x])
def test_another_thread_replaces(name, mode):
    change, use = CHANGES[name]
    bases = F.__bases__
    ask, _ = beside(change)

    def f(x):
        e = F(x)
        e.w = x  # what is to change was in use before
        e * 1.0, e.half, e(1.0), F(x)
        ask()
        return use(e, x)

    try:
        assert mode(f)(1.5) == pytest.approx(15.0, rel=1e-12)
    finally:
        F.__bases__ = bases


def classes_with_helpers():
    """A descriptor's class, a metaclass, and a class that has both."""

    class Field:
        def __get__(self, instance, owner=None):
            return self if instance is None else instance.v * 0.75

        def __set__(self, instance, value):
            instance.v = value * 0.5

    class Meta(type):
        def __call__(cls, v):
            return super().__call__(v)

        def __iter__(cls):
            return iter([cls.kind])

    class Has(metaclass=Meta):
        field = Field()
        kind = 1.0

        def __init__(self, v):
            self.v = v

    class Wrapper:
        inner = Field()

        def __get__(self, instance, owner=None):
            self.v = instance.v
            return self.inner

    class Outer:
        field = Wrapper()

        def __init__(self, v):
            self.v = v

    class OtherField:
        def __get__(self, instance, owner=None):
            return 5.0 * instance.v * instance.v

    return types.SimpleNamespace(**locals())


def square(v):
    return 5.0 * v * v


HELPERS = {
    "a getter": (
        lambda c: setattr(c.Field, "__get__", lambda self, instance, owner=None: square(instance.v)),
        lambda c, x: c.Has(x).field,
    ),
    "a getter, by getattr": (
        lambda c: setattr(c.Field, "__get__", lambda self, instance, owner=None: square(instance.v)),
        lambda c, x: getattr(c.Has(x), "field"),
    ),
    "a setter": (
        lambda c: setattr(c.Field, "__set__", lambda self, instance, v: setattr(instance, "v", square(v))),
        lambda c, x: (has := c.Has(x), setattr(has, "field", x), has.v)[-1],
    ),
    "a getter behind a getter": (
        lambda c: setattr(c.Field, "__get__", lambda self, instance, owner=None: square(instance.v)),
        lambda c, x: c.Outer(x).field,
    ),
    "the class of a descriptor": (
        lambda c: setattr(vars(c.Has)["field"], "__class__", c.OtherField),
        lambda c, x: c.Has(x).field,
    ),
    "the call of a class": (
        lambda c: setattr(c.Meta, "__call__", lambda cls, v: square(v)),
        lambda c, x: c.Has(x),
    ),
    "the call of a class, in C": (
        lambda c: setattr(c.Meta, "__call__", lambda cls, v: square(v)),
        lambda c, x: sum(map(c.Has, [x])),
    ),
    "the iterator of a class": (
        lambda c: setattr(c.Meta, "__iter__", lambda cls: iter([square(cls.kind)])),
        lambda c, x: (setattr(c.Has, "kind", x), sum(c.Has))[-1],
    ),
}


@pytest.mark.parametrize("name", HELPERS)
@pytest.mark.parametrize("by_other", [False, True], ids=["itself", "another thread"])
@pytest.mark.parametrize("mode", [grad, derivative, lambda f: lambda x: grad(grad(lambda y: f(y) * 1.0))(x) * x])
def test_what_serves_a_class_is_replaced(name, by_other, mode):
    # Neither a metaclass nor the class of a descriptor is a base: CPython's version of the class stays.
    change, use = HELPERS[name]
    c = classes_with_helpers()
    ask = beside(lambda: change(c))[0] if by_other else lambda: change(c)

    def f(x):
        has = c.Has(x)
        has.field = has.field + x
        setattr(has, "field", getattr(has, "field"))
        list(map(c.Has, [x])), list(c.Has), c.Outer(x).field
        ask()
        return use(c, x)

    assert mode(f)(1.5) == pytest.approx(15.0, rel=1e-12)


def test_what_another_thread_has_assigned_stays():
    ask, _ = beside(lambda: setattr(E.__mul__, "__code__", five.__code__))

    def f(x):
        e = E(x)
        e * 1.0
        ask()
        return e * 1.0

    assert grad(f)(1.5) == 15.0
    assert E.__mul__.__code__ is five.__code__ and E(2.0) * 1.0 == 20.0


class Key:
    """Hashed and compared, and computes in both."""

    def __init__(self, v):
        self.v = v

    def __hash__(self):
        return hash(round(self.v, 3))

    def __eq__(self, other):
        return self.v == other.v


LOOKS = {
    "identity": lambda: all(f.__code__ is CODES[name] for name, f in FUNCTIONS.items()),
    "getattr": lambda: getattr(E.__mul__, "__code__") is CODES["__mul__"],
    "descriptor": lambda: types.FunctionType.__code__.__get__(E.__mul__) is CODES["__mul__"],
    "marshal": lambda: marshal.loads(marshal.dumps(E.__mul__.__code__)) == CODES["__mul__"],
    "instructions": lambda: dis.Bytecode(E.__mul__).dis() == dis.Bytecode(CODES["__mul__"]).dis(),
    "names": lambda: E.__mul__.__code__.co_varnames == ("self", "other"),
    "source": lambda: inspect.getsource(E.__mul__).strip().startswith("def __mul__"),
    "signature": lambda: str(inspect.signature(E.__mul__)) == "(self, other)",
    "pickle by name": lambda: pickle.loads(pickle.dumps(E.__mul__)) is E.__mul__,
    "pickle": lambda: pickle.loads(pickle.dumps(E(2.0))).v == 2.0,
    "copied function": lambda: types.FunctionType(E.__mul__.__code__, {})(E(2.0), 3.0) == 6.0,
    "class attributes": lambda: dict(vars(E)) == ATTRIBUTES,
}


@pytest.mark.parametrize("name", LOOKS)
def test_what_everybody_sees_while_a_level_is_open(name):
    look = LOOKS[name]
    ask, result = beside(look)

    def f(x):
        e = E(x)
        y = e * 2.0 + e(1.0) + e.half
        sorted([e, E(2.0)])
        ask()
        assert look()
        return y

    assert grad(f)(1.5) == 3.5
    assert result == [True]


def test_cloudpickle_sees_the_original_code_and_the_copy_works_elsewhere():
    cloudpickle = pytest.importorskip("cloudpickle")

    class Local:
        def __init__(self, v):
            self.v = v

        def __mul__(self, other):
            return self.v * other

    ask, result = beside(lambda: cloudpickle.dumps(Local))

    def f(x):
        y = Local(x) * 2.0
        ask()
        return y

    assert grad(f)(1.5) == 2.0
    assert b".level" not in result[0]
    again = pickle.loads(result[0])
    assert again(3.0) * 2.0 == 6.0 and grad(lambda x: again(x) * 2.0)(1.0) == 2.0


def test_another_thread_calls_what_runs_rewritten_here():
    ask, result = beside(lambda: (E(3.0) * 2.0, E(3.0).half, sorted([E(2.0), E(1.0)])[0].v, E(3.0)(1.0)))

    def f(x):
        e = E(x)
        y = e * 2.0 + e.half + e(1.0)
        sorted([e, e])
        ask()
        return y

    assert grad(f)(1.5) == 3.5
    assert result == [(6.0, 1.5, 1.0, 3.0)]


def test_threads_replace_code_all_the_time_and_each_value_has_its_own_slope():
    one, two = CODES["__mul__"], (lambda self, other: self.v * self.v * other).__code__
    stop = threading.Event()

    def flip():
        while not stop.is_set():
            E.__mul__.__code__ = two
            E.__mul__.__code__ = one

    thread = threading.Thread(target=flip, daemon=True)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    thread.start()
    try:
        for _ in range(200):
            y, slope = plaingrad.value_and_grad(lambda x: E(x) * 1.0)(1.5)
            assert (y, slope) in ((1.5, 1.0), (2.25, 3.0))
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(interval)


# -- afterwards -------------------------------------------------------------------------------------------------------


def test_functions_elsewhere_are_assigned_and_read_as_ever():
    grad(lambda x: E(x) * 1.0)(1.0)

    def f():
        return 1

    def g():
        return 2

    f.__code__ = g.__code__
    assert f() == 2 and f.__code__ is g.__code__
    assert types.FunctionType.__code__.__get__(f) is g.__code__
    wrapped = functools.wraps(f)(lambda: f())
    assert inspect.unwrap(wrapped) is f and math.isclose(wrapped(), 2)


def test_arrays_of_objects_follow_too():
    def f(x):
        row = np.array([E(x), E(x * 2.0)], dtype=object)
        before = (row * 1.0).sum()
        E.__mul__.__code__ = (lambda self, other: self.v * self.v * other).__code__
        return before + (row * 1.0).sum()

    assert grad(f)(1.5) == pytest.approx(3.0 + 2 * 5 * 1.5)
