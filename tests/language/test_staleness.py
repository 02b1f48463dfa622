"""Whatever is replaced between two gradients, the second gradient is that of the program as it is now."""

import binascii
import functools
import importlib
import math
import sys
import types

import numpy as np
import pytest
from cases_b import check

import plaingrad

RATE = 2.0
GAIN = 2.0


def slope(f, x=3.0):
    return plaingrad.grad(f)(x)


def test_a_replaced_code_object_takes_effect():
    def f(x):
        return x * x

    def g(x):
        return x * x * x

    assert slope(f) == 6.0
    f.__code__ = g.__code__
    assert slope(f) == 27.0
    f.__code__ = (lambda x: 5.0 * x).__code__
    check(f, 3.0, 5.0)


def test_a_replaced_code_object_of_a_callee_takes_effect():
    def helper(x):
        return x * 2.0

    def f(x):
        return helper(x) * x

    assert slope(f) == 12.0
    helper.__code__ = (lambda x: x * x).__code__
    check(f, 3.0, 27.0)


def test_replaced_defaults_take_effect():
    def f(x, k=2.0, *, m=10.0):
        return x * k + x * x * m

    assert slope(f) == 2.0 + 60.0
    f.__defaults__ = (5.0,)
    assert slope(f) == 5.0 + 60.0
    f.__kwdefaults__ = {"m": 1.0}
    assert slope(f) == 5.0 + 6.0
    f.__kwdefaults__["m"] = 100.0
    check(f, 3.0, 5.0 + 600.0)


def test_removed_defaults_are_a_plain_type_error():
    def helper(x, k=2.0):
        return x * k

    def f(x):
        return helper(x)

    assert slope(f) == 2.0
    helper.__defaults__ = None
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'k'"):
        slope(f)


def test_a_mutable_default_is_one_object_for_plain_and_differentiated_calls():
    def f(x, seen=[]):
        seen.append(float(round(x)))
        return x * sum(seen)

    assert f(1.0) == 1.0
    assert slope(f, 2.0) == 3.0
    assert f(4.0) == 28.0
    assert f.__defaults__ == ([1.0, 2.0, 4.0],)


def test_a_rebound_global_takes_effect():
    global RATE

    def f(x):
        return x * RATE

    old = RATE
    try:
        assert slope(f) == 2.0
        RATE = 7.0
        assert slope(f) == 7.0
        f.__globals__["RATE"] = 8.0
        check(f, 3.0, 8.0)
    finally:
        RATE = old


def test_a_global_function_rebound_takes_effect_and_so_does_a_shadowed_builtin():
    space = {"__builtins__": __builtins__}
    exec("def g(x): return 2.0 * x\ndef f(x): return g(x) + abs(x)", space)
    f = space["f"]
    assert slope(f, -1.0) == 2.0 - 1.0
    exec("def g(x): return 3.0 * x", space)
    assert slope(f, -1.0) == 3.0 - 1.0
    space["abs"] = lambda x: 10.0 * x
    assert slope(f, -1.0) == 3.0 + 10.0
    del space["abs"]
    check(f, -1.0, 3.0 - 1.0)


def test_a_global_rebound_by_the_program_itself():
    def f(x):
        global GAIN
        GAIN = GAIN * x
        return GAIN * x

    def reset():
        global GAIN
        GAIN = 2.0

    check(f, 3.0, 12.0, state=lambda: GAIN, reset=reset)
    reset()


def test_a_changed_cell_takes_effect():
    def make():
        k = 2.0

        def f(x):
            return x * k

        def change(value):
            nonlocal k
            k = value

        return f, change

    f, change = make()
    assert slope(f) == 2.0
    change(5.0)
    assert slope(f) == 5.0
    f.__closure__[0].cell_contents = 6.0
    check(f, 3.0, 6.0)


def test_an_emptied_cell_is_a_plain_name_error():
    k = 2.0

    def f(x):
        return x * k

    assert slope(f) == 2.0
    del k
    with pytest.raises(NameError, match="'k'"):
        slope(f)


def test_a_monkeypatched_method_takes_effect():
    class Model:
        def rate(self, x):
            return 2.0 * x

    model = Model()

    def f(x):
        return model.rate(x)

    assert slope(f) == 2.0
    Model.rate = lambda self, x: x * x
    assert slope(f) == 6.0
    model.rate = lambda x: 11.0 * x
    assert slope(f) == 11.0
    del model.rate
    check(f, 3.0, 6.0)


def test_a_monkeypatched_class_attribute_property_and_base_take_effect():
    class Base:
        k = 2.0

        @property
        def m(self):
            return 10.0

    class Other:
        k = 3.0
        m = 1.0

    class Model(Base):
        pass

    model = Model()

    def f(x):
        return x * model.k * model.m

    assert slope(f) == 20.0
    Base.k = 4.0
    assert slope(f) == 40.0
    Base.m = property(lambda self: 5.0 * self.k)
    assert slope(f) == 80.0
    model.__dict__["m"] = 1000.0  # a property is a data descriptor: it wins
    assert slope(f) == 80.0
    Base.m = 7.0
    assert slope(f) == 4000.0
    del model.__dict__["m"]
    assert slope(f) == 28.0
    Model.__bases__ = (Other,)
    check(f, 3.0, 3.0)


def test_an_object_whose_class_is_replaced():
    class Double:
        def __call__(self, x):
            return 2.0 * x

    class Square:
        def __call__(self, x):
            return x * x

    machine = Double()

    def f(x):
        return machine(x)

    assert slope(f) == slope(machine) == 2.0
    machine.__class__ = Square
    assert slope(f) == slope(machine) == 6.0
    Square.__call__ = lambda self, x: 9.0 * x
    assert slope(f) == slope(machine) == 9.0


def test_a_monkeypatched_operator_and_init_take_effect():
    class Number:
        def __init__(self, v):
            self.v = v

        def __add__(self, other):
            return Number(self.v + other.v)

        def __lt__(self, other):
            return self.v < other.v

    def f(x):
        a, b = Number(x), Number(2.0 * x)
        return (a + b).v * (1.0 if a < b else 100.0)

    assert slope(f) == 3.0
    Number.__add__ = lambda self, other: Number(self.v * other.v)
    assert slope(f) == 12.0
    Number.__lt__ = lambda self, other: self.v > other.v
    assert slope(f) == 1200.0
    Number.__init__ = lambda self, v: setattr(self, "v", v * 1.5)
    # a = 1.5x, b = 3x, product 4.5xx through Number(...): 6.75xx; 100 since not a > b
    check(f, 3.0, 100 * 2 * 6.75 * 3.0)


def test_a_class_replaced_under_its_name():
    space = {}
    exec("class A:\n    def __init__(self, x): self.y = 2.0 * x\ndef f(x): return A(x).y", space)
    f = space["f"]
    assert slope(f) == 2.0
    exec("class A:\n    def __init__(self, x): self.y = x * x", space)
    check(f, 3.0, 6.0)


def test_a_replaced_module_attribute_takes_effect(monkeypatch):
    module = types.ModuleType("plaingrad_test_module")
    module.g = lambda x: 2.0 * x

    def f(x):
        return module.g(x) + math.sin(x)

    assert slope(f, 0.5) == 2.0 + math.cos(0.5)
    module.g = lambda x: x * x
    assert slope(f, 0.5) == 1.0 + math.cos(0.5)
    monkeypatch.setattr(math, "sin", lambda x: 50.0 * x)
    assert slope(f, 0.5) == 51.0
    monkeypatch.undo()
    check(f, 0.5, 1.0 + math.cos(0.5))


def test_a_reloaded_module_takes_effect(tmp_path, monkeypatch):
    name = "plaingrad_test_reloaded"
    path = tmp_path / f"{name}.py"
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    path.write_text("K = 2.0\ndef g(x):\n    return K * x\n")
    module = importlib.import_module(name)
    old = module.g

    def f(x):
        return module.g(x)

    try:
        assert slope(f) == 2.0
        path.write_text("K = 3.0\ndef g(x):\n    return K * x * x\n")
        importlib.invalidate_caches()
        importlib.reload(module)
        assert slope(f) == 18.0
        assert slope(old) == 3.0, "the old function sees the new globals"
    finally:
        del sys.modules[name]


def test_a_rule_written_late_takes_effect_at_once():
    def g(x):
        return x * x

    def f(x):
        return g(x) * 2.0

    assert slope(f) == 12.0

    @plaingrad.rrule(g)
    def g_rrule(x):
        def g_pullback(y_bar):
            return (1000.0 * y_bar,)

        return x * x, g_pullback

    assert slope(f) == 2000.0
    assert plaingrad.value_and_grad(g)(3.0) == (9.0, 1000.0)
    assert f(3.0) == 18.0


def test_a_rule_written_late_is_seen_by_a_bound_method_a_partial_and_a_map():
    class Model:
        def g(self, x):
            return x * x

    def h(k, x):
        return k * x

    twice = functools.partial(h, 2.0)
    model = Model()

    def f(x):
        return model.g(x) + sum(map(twice, [x, x]))

    assert slope(f) == 6.0 + 4.0

    @plaingrad.rrule(Model.g)
    def g_rrule(self, x):
        return x * x, lambda y_bar: (plaingrad_no_tangent(), 100.0 * y_bar)

    @plaingrad.rrule(h)
    def h_rrule(k, x):
        return k * x, lambda y_bar: (x * y_bar, 1000.0 * y_bar)

    assert slope(f) == 100.0 + 2000.0


def plaingrad_no_tangent():
    from plaingrad.tangents import NoTangent

    return NoTangent


@pytest.mark.unchecked(reason="a call changes the rules")
def test_a_rule_written_while_a_level_is_open_takes_effect_at_the_next_call():
    def g(x):
        return x * x

    def f(x):
        first = g(x)

        @plaingrad.rrule(g)
        def g_rrule(x):
            return x * x, lambda y_bar: (100.0 * y_bar,)

        return first + g(x)

    assert slope(f) == 6.0 + 100.0


def test_a_function_declared_nondifferentiable_late_is_constant_at_once():
    def g(x):
        return x * x

    def f(x):
        return g(x) * x

    assert slope(f) == 27.0
    plaingrad.nondifferentiable(g)
    assert slope(f) == 9.0
    check(f, 3.0, 9.0)


def test_a_missing_rule_that_is_declared_after_the_refusal():
    def opaque(x):
        return len(binascii.b2a_hex(x)) * 0.0 + 2.0

    def f(x):
        return (x * opaque(x)).sum()

    with pytest.raises(plaingrad.MissingRuleError, match="b2a_hex|hexlify"):
        plaingrad.grad(f)(np.array([1.0, 2.0]))
    plaingrad.nondifferentiable(opaque)
    assert plaingrad.grad(f)(np.array([1.0, 2.0])).tolist() == [2.0, 2.0]


def test_functions_made_anew_at_each_call_are_not_mixed_up():
    def make(k):
        def g(x):
            return x**k

        return g

    def f(x):
        return sum(make(k)(x) for k in range(1, 6))

    x = 0.9
    check(f, x, sum(k * x ** (k - 1) for k in range(1, 6)))
    for k in range(1, 50):  # a freed function's address is taken by the next one
        assert slope(make(float(k)), 1.0) == k


def test_code_objects_that_compare_equal_are_not_mixed_up():
    one = eval("lambda x: x * 2.0")
    two = eval("lambda x: x * 2.0")
    assert one.__code__ == two.__code__
    integer, real = eval("lambda x: (x * 2, 2)[1] * x"), eval("lambda x: (x * 2, 2.0)[1] * x")
    assert slope(one) == slope(two) == slope(integer) == slope(real) == 2.0
    f_space, g_space = {"k": 3.0}, {"k": 4.0}
    f, g = eval("lambda x: x * k", f_space), eval("lambda x: x * k", g_space)
    assert f.__code__ == g.__code__
    assert (slope(f), slope(g), slope(f)) == (3.0, 4.0, 3.0)


def test_one_code_object_under_two_sets_of_globals_and_cells():
    def make(k):
        return lambda x: x * k * RATE

    f, g = make(3.0), make(4.0)
    h = types.FunctionType(f.__code__, {"RATE": 100.0, "__builtins__": __builtins__}, "h", None, g.__closure__)
    assert (slope(f), slope(g), slope(h)) == (6.0, 8.0, 400.0)
    assert (slope(h), slope(f), slope(g)) == (400.0, 6.0, 8.0)


def test_a_partial_whose_state_is_replaced():
    def g(k, x):
        return k * x

    p = functools.partial(g, 2.0)

    def f(x):
        return p(x)

    assert slope(f) == slope(p) == 2.0
    p.__setstate__((g, (5.0,), {}, None))
    assert slope(f) == slope(p) == 5.0


@pytest.mark.unchecked(reason="a call changes what is registered")
def test_singledispatch_registered_between_two_gradients():
    @functools.singledispatch
    def size(v):
        return v * 1.0

    def f(x):
        return size(x) + size([x])

    @size.register(list)
    def _(v):
        return v[0] * 5.0

    assert slope(f) == 6.0

    @size.register(float)
    def _(v):
        return v * v

    check(f, 3.0, 11.0)


def test_a_getattr_hook_added_late():
    class Model:
        k = 2.0

    model = Model()

    def f(x):
        return x * model.k

    assert slope(f) == 2.0
    Model.__getattribute__ = lambda self, name: 9.0 if name == "k" else object.__getattribute__(self, name)
    assert slope(f) == 9.0
    del Model.__getattribute__
    del Model.k
    Model.__getattr__ = lambda self, name: 7.0
    check(f, 3.0, 7.0)
