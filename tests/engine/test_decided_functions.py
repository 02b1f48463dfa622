"""What was decided for a function is asked for once more when the function, or what is under its name, has changed."""

import gc

import plaingrad
import pytest


class Model:
    def __init__(self, rate):
        self.rate = rate

    def value(self, x, power=2):
        return self.rate * x**power


def square(x):
    return x * x


def cube(x):
    return x * x * x


def test_code_defaults_and_methods_may_change_between_two_calls():
    def f(x, m):
        def local(v, factor=2.0):
            return v * factor

        total = m.value(x) + local(x)
        local.__defaults__ = (5.0,)
        total += local(x)
        local.__code__ = (lambda v, factor: v * v * factor).__code__
        total += local(x)
        m.value = lambda x: 7.0 * x
        total += m.value(x)
        del m.value
        total += m.value(x)
        Model.value.__defaults__ = (3,)
        total += m.value(x)
        return total

    for derive in (
        lambda: plaingrad.grad(f)(2.0, Model(1.5)),
        lambda: plaingrad.jvp(lambda x: f(x, Model(1.5)), (2.0,), (1.0,))[1],
    ):
        try:
            # 1.5 x^2 + 2 x + 5 x + 5 x^2 + 7 x + 1.5 x^2 + 1.5 x^3
            assert derive() == pytest.approx(3 * 2 + 2 + 5 + 10 * 2 + 7 + 3 * 2 + 4.5 * 4)
        finally:
            Model.value.__defaults__ = (2,)


def test_a_function_in_the_memory_of_one_that_is_gone_is_decided_anew():
    def f(x):
        total = 0.0
        for k in range(200):
            made = (lambda v, k=k: v * k) if k % 2 else (lambda v: v * v)
            total += made(x)
            del made
            if k % 50 == 0:
                gc.collect()
        return total

    assert plaingrad.grad(f)(3.0) == pytest.approx(sum(k for k in range(200) if k % 2) + 100 * 6.0)
    assert plaingrad.hvp(f, (3.0,), (1.0,))[0] == pytest.approx(200.0)


def test_bisection_in_lists_of_numbers_and_of_others():
    import bisect
    from fractions import Fraction

    def f(x):
        a = [0.0, 1, 2.5, 2.5, 4.0]
        k = (
            bisect.bisect_right(a, x)
            + bisect.bisect_left(a, 2.5) * 10
            + bisect.bisect_left((x, x + 1, x + 2), x + 1.5)
        )
        k += (
            bisect.bisect([Fraction(1, 2), 3.0], x)
            + bisect.bisect_left(a, x, 1, 4)
            + bisect.bisect_left(a, -x, key=lambda v: -v)
        )
        bisect.insort(a, x)
        return x * k + a[bisect.bisect_right(a, x) - 1] * x

    for x in (2.5, 3.0, 0.7):
        y, slope = plaingrad.value_and_grad(f)(x)
        assert y == f(x)
        assert slope == pytest.approx((y - x * x) / x + 2 * x)
    with pytest.raises(ValueError, match="lo must be"):
        plaingrad.grad(lambda x: x * bisect.bisect([1.0], x, -1))(1.0)
    with pytest.raises(TypeError):
        plaingrad.grad(lambda x: x * bisect.bisect([1.0, "a"], x))(2.0)
    with pytest.raises(IndexError):
        plaingrad.grad(lambda x: x * bisect.bisect([1.0], x, 0, 9))(2.0)


def test_closures_of_one_code_each_have_their_own_rules_attributes_and_cells():
    def f(x):
        def made(k):
            def inner(v, scale=1.0 + k):
                return v * v * k * scale

            return inner

        total = made(1.0)(x) + made(2.0)(x) + made(3.0)(x)
        named = made(4.0)
        named.note = "kept"
        total += named(x)
        ruled = made(5.0)
        plaingrad.rrule(ruled)(lambda v: (v * 0 + 1.0, lambda z_bar: (1000.0 * z_bar,)))
        total += ruled(x)
        return total + made(6.0)(x)

    expected = 2 * 3.0 * sum(k * (1.0 + k) for k in (1, 2, 3, 4, 6)) + 1000.0
    assert plaingrad.grad(f)(3.0) == pytest.approx(expected)


class Stack(list):
    """Methods from C and from Python, an attribute that hides a method, one that is computed."""

    def scaled(self, x):
        return 2.0 * x

    @property
    def chosen(self):
        return self.scaled if len(self) % 2 else (lambda x: x * x)

    def __getattr__(self, name):
        if name == "made":
            return lambda x: 5.0 * x
        raise AttributeError(name)

    @staticmethod
    def fixed(x):
        return 7.0 * x

    @classmethod
    def of_class(cls, x):
        return 11.0 * x


def test_methods_are_found_as_the_interpreter_finds_them():
    def f(x):
        s = Stack()
        s.append(x)  # of a C class
        total = s.scaled(x) + s.chosen(x) + s.made(x) + s.fixed(x) + s.of_class(x) + Stack.of_class(x)
        s.append(x)
        total += s.chosen(x)
        s.scaled = lambda x: 13.0 * x
        total += s.scaled(x)
        del s.scaled
        total += s.scaled(x) + Stack.scaled(s, x)
        return total + sum(s)

    # 2 x, 2 x, 5 x, 7 x, 11 x, 11 x; x^2; 13 x; 2 x, 2 x; 2 x
    for _ in range(2):
        assert plaingrad.grad(f)(3.0) == pytest.approx(38 + 2 * 3.0 + 13 + 4 + 2)
        assert plaingrad.hvp(f, (3.0,), (1.0,))[0] == pytest.approx(2.0)
    with pytest.raises(AttributeError, match="missing"):
        plaingrad.grad(lambda x: Stack().missing(x))(1.0)
    with pytest.raises(AttributeError, match="'Model' object has no attribute 'missing'"):
        plaingrad.grad(lambda x: Model(1.0).missing(x))(1.0)
