"""Functions whose rewritten form is not kept, closures and such with attributes, are decided by their code alone.

Whatever may change in between says something else at once: cells, attributes, defaults, code, rules, special methods.
"""

import functools
import gc
import math
import types
import weakref

import pytest

import plaingrad


def scaled(c):
    def f(x, k=1.0, *, p=1.0):
        return c * x * x * k * p

    return f


def warm(f, x=0.7):
    for _ in range(3):
        plaingrad.grad(f)(x)
    return f


def test_two_closures_of_one_code_have_each_their_cells():
    f, g = warm(scaled(2.0)), scaled(5.0)
    assert plaingrad.grad(lambda x: f(x) * g(x))(1.5) == pytest.approx(10.0 * 4 * 1.5**3, rel=1e-14)


def test_contents_of_a_cell_that_change():
    factor = 2.0

    def f(x):
        return factor * x

    def g(x):
        nonlocal factor
        y = f(x)
        factor = x
        return y + f(x)

    warm(f)
    factor = 3.0
    assert plaingrad.grad(f)(1.0) == 3.0
    f.__closure__[0].cell_contents = 4.0
    assert plaingrad.grad(f)(1.0) == 4.0
    assert plaingrad.grad(g)(1.5) == pytest.approx(4.0 + 2 * 1.5, rel=1e-14)


def test_attributes_that_change():
    def f(x):
        f.calls += 1
        return f.weight * x

    f.calls, f.weight = 0, 2.0
    warm(f)
    f.weight = 7.0
    assert (plaingrad.grad(f)(1.0), f.calls) == (7.0, 4)
    f.__dict__ = {"calls": 0, "weight": 9.0}
    assert (plaingrad.grad(f)(1.0), f.calls) == (9.0, 1)


@pytest.mark.parametrize("attributes", [{}, {"note": "an attribute"}])
def test_defaults_that_change(attributes):
    f = scaled(1.0)
    f.__dict__.update(attributes)
    warm(f)
    f.__defaults__ = (3.0,)
    assert plaingrad.grad(f)(1.0) == 6.0
    f.__kwdefaults__ = {"p": 10.0}
    assert plaingrad.grad(f)(1.0) == 60.0
    f.__kwdefaults__["p"] = 5.0
    assert plaingrad.grad(f)(1.0) == 30.0

    def g(x):
        y = f(x)
        f.__defaults__ = (x,)
        return y + f(x)

    assert plaingrad.grad(g)(2.0) == pytest.approx(5 * (6 * 2.0 + 3 * 4.0), rel=1e-14)


def test_code_that_is_replaced_between_two_derivatives_and_within_one():
    f, cubic = scaled(2.0), (lambda c: lambda x: c * x * x * x)(0.0)
    warm(f)
    before = f.__code__

    def g(x):
        y = f(x)
        f.__code__ = cubic.__code__
        return y + f(x)

    assert plaingrad.grad(g)(1.0) == pytest.approx(4.0 + 6.0)
    assert plaingrad.grad(f)(1.0) == 6.0
    f.__code__ = before
    assert plaingrad.grad(f)(1.0) == 4.0


def test_a_rule_belongs_to_one_closure_only_and_goes_again():
    f, g = warm(scaled(2.0)), warm(scaled(2.0))
    plaingrad.rrule(f)(lambda x: (f(x), lambda y_bar: (100.0 * y_bar,)))
    inside = lambda h: plaingrad.grad(lambda x: h(x))(1.0)
    assert (inside(f), inside(g)) == (100.0, 4.0)
    plaingrad.remove_rule(f)
    assert (inside(f), inside(g)) == (4.0, 4.0)


def test_a_rule_that_is_entered_while_the_function_runs():
    f = warm(scaled(2.0))

    def g(x):
        y = f(x)
        plaingrad.nondifferentiable(f)
        return y + f(x)

    assert plaingrad.grad(g)(1.0) == 4.0


def test_decorated_functions_share_their_wrappers_code():
    def doubled(f):
        @functools.wraps(f)
        def wrapper(*args, **kwargs):
            return 2.0 * f(*args, **kwargs)

        return wrapper

    f, g = doubled(math.sin), doubled(lambda x: x * x)
    for _ in range(3):
        assert plaingrad.grad(f)(0.3) == pytest.approx(2 * math.cos(0.3), rel=1e-14)
        assert plaingrad.grad(g)(0.3) == pytest.approx(4 * 0.3, rel=1e-14)


def test_special_methods_that_are_closures():
    def made(c):
        class Number:
            def __init__(self, x):
                self.x = x

            def __lt__(self, other):
                self.last = c * self.x
                return self.x < other.x

        return Number

    def f(x):
        found = sorted([number(x), number(2 * x), number(3 * x)], reverse=True)
        return sum(one.last for one in found if hasattr(one, "last"))

    for c in (2.0, 5.0):
        number = made(c)
        for _ in range(3):
            plain = f(1.0)
            assert plaingrad.grad(f)(1.0) == pytest.approx(plain, rel=1e-14)


def test_functions_over_other_globals_with_the_same_code():
    def body(x):
        return weight * x  # noqa: F821

    one = types.FunctionType(body.__code__, {"weight": 2.0})
    two = types.FunctionType(body.__code__, {"weight": 3.0})
    for _ in range(3):
        assert (plaingrad.grad(one)(1.0), plaingrad.grad(two)(1.0)) == (2.0, 3.0)


def test_closures_go_with_what_their_cells_hold():
    class Held:
        pass

    def made():
        held = Held()

        def f(x):
            return x * x if held is not None else x

        return f, weakref.ref(held)

    warm(made()[0])
    f, held = made()
    plaingrad.grad(lambda x: f(x) + f(x))(1.0)
    del f
    assert held() is None
    f, held = made()
    f.itself = f
    plaingrad.grad(f)(1.0)
    del f
    gc.collect()
    assert held() is None


def test_a_closure_inside_nested_derivatives():
    def f(x):
        c = x * x
        g = lambda y: c * y * y * y
        return plaingrad.grad(g)(x) + plaingrad.jvp(g, (x,), (1.0,))[1]

    for _ in range(3):
        assert plaingrad.grad(f)(1.2) == pytest.approx(6 * 4 * 1.2**3, rel=1e-13)


def test_closures_that_take_one_anothers_place_in_memory():
    def f(x):
        s = 0.0
        for k in range(60):
            if k % 3:
                g = lambda y: y * k
            elif k % 2:
                g = lambda y, c=2.0: y * y * k * c
            else:

                def g(y, *, c=1.0):
                    return y * y * y * k * c

            s += g(x)
            del g
        return s

    expected = sum(k if k % 3 else (4.0 * 1.5 * k if k % 2 else 3 * 1.5**2 * k) for k in range(60))
    for _ in range(3):
        assert plaingrad.grad(f)(1.5) == pytest.approx(expected, rel=1e-13)
        assert plaingrad.jvp(f, (1.5,), (1.0,))[1] == pytest.approx(expected, rel=1e-13)


def test_names_documentation_and_attributes_of_closures_are_those_of_the_program():
    seen = []

    def made(c):
        @functools.wraps(math.sin)
        def f(x):
            """Documented."""
            seen.append((f.__name__, f.__doc__, f.__qualname__, f.__module__, f.__wrapped__, f.note))
            return c * x

        f.note = c
        return f

    f = made(2.0)
    f(1.0)
    for _ in range(3):
        plaingrad.grad(lambda x: f(x))(1.0)
    assert len({*seen}) == 1


def test_generators_and_coroutines_that_are_closures():
    def f(x):
        def powers():
            p = x
            for _ in range(3):
                yield p
                p = p * x

        async def last():
            return x * x

        coroutine = last()
        try:
            coroutine.send(None)
        except StopIteration as stop:
            return sum(powers()) + stop.value

    for _ in range(3):
        assert plaingrad.grad(f)(2.0) == pytest.approx(1 + 4 + 12 + 4, rel=1e-14)
