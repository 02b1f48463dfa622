"""Items of lists and tuples under whole numbers, read and written by the compiled core, where the plain call does."""

import plaingrad
import pytest


def test_places_counted_from_the_end_are_those_of_the_list():
    def f(x, n):
        values = [x * k for k in range(n)]
        values[-1] = x * x
        values[-n] = 3.0 * x
        values[True] = 7.0 * x
        pair = (values[-1], values[-n])
        return pair[-1] * pair[0] + values[1] + values[-2]

    for n in (4, 5, 50):  # 3 x^3 + 7 x + (n - 2) x
        assert plaingrad.grad(f)(2.0, n) == pytest.approx(9.0 * 4.0 + 7.0 + n - 2)
        assert plaingrad.jvp(lambda x, n=n: f(x, n), (2.0,), (1.0,))[1] == pytest.approx(36.0 + 7.0 + n - 2)
        assert plaingrad.hessian(lambda x, n=n: f(x, n))(2.0) == pytest.approx(18.0 * 2.0)


@pytest.mark.parametrize("place", [3, -4, 2**62, -(2**62), 2**63, -(2**63) - 1, 10**30, -(10**30)])
def test_places_that_are_not_there_raise_what_the_plain_call_raises(place):
    def read(x, sequence):
        return sequence(v * x for v in (1.0, 2.0, 3.0))[place] * x

    def write(x):
        values = [x, x, x]
        values[place] = x * x
        return values[0]

    for f, args in ((read, (2.0, list)), (read, (2.0, tuple)), (write, (2.0,))):
        with pytest.raises(IndexError) as plain:
            f(*args)
        with pytest.raises(IndexError) as ours:
            plaingrad.grad(f)(*args)
        assert str(ours.value).startswith(str(plain.value))


def test_a_value_stays_while_the_program_lets_go_of_it():
    """Values of an expression whose last owner lets go of them while its other values are made."""

    class Holder:
        def __init__(self, x):
            self.items = [x * 2.0, x * 3.0]

        @property
        def last(self):
            return self.items.pop()

        def __getattr__(self, name):
            self.items = []
            return 5.0

    def f(x):
        h = Holder(x)
        first = h.items[0] * h.last + h.last * 0.5 + x  # 6 x^2 + x + x
        h = Holder(x)
        second = h.items[1] * h.missing  # 15 x
        cell = x * 4.0

        def swap():
            nonlocal cell
            before, cell = cell * 1.0, x * x
            return before

        third = cell * swap() + cell  # 16 x^2 + x^2
        return first + second + third

    for _ in range(3):
        assert plaingrad.grad(f)(1.5) == pytest.approx(46.0 * 1.5 + 17.0)
    assert plaingrad.jvp(f, (1.5,), (1.0,))[1] == pytest.approx(46.0 * 1.5 + 17.0)
    assert plaingrad.hessian(f)(1.5) == pytest.approx(46.0)


def test_derivatives_that_fail_or_are_left_leave_nothing_for_the_next():
    def f(x, n, fails):
        total = x
        for k in range(n):
            total = total * 0.999 + x * 0.001
            if fails and k == n - 1:
                raise ValueError("as the program says")
        return total

    derive = plaingrad.grad(f)
    expected = {n: derive(1.0, n, False) for n in (3, 50, 700, 5000, 40000)}
    for n in (40000, 3, 5000, 50, 700, 3, 40000):
        with pytest.raises(ValueError, match="as the program says"):
            derive(1.0, n, True)
        assert derive(1.0, n, False) == expected[n] == pytest.approx(1.0)


def test_a_generator_that_outlives_its_derivative_and_goes_on_in_another():
    left = []

    def steps(x):
        while True:
            x = x * 1.5
            yield x

    def f(x):
        g = steps(x)
        left.append(g)
        return next(g) * next(g)

    for _ in range(5):
        assert plaingrad.grad(f)(2.0) == pytest.approx(2.0 * 1.5**3 * 2.0)

    def h(x):
        return next(left[0]) * x  # that is a number of then, and does not depend on x

    assert plaingrad.grad(h)(2.0) == pytest.approx(2.0 * 1.5**3)
    assert plaingrad.grad(f)(2.0) == pytest.approx(2.0 * 1.5**3 * 2.0)
