"""Objects that are called: their class is looked at once, and again when it, or the rulebook, changes."""

import pytest

import plaingrad
from plaingrad import grad


class Scaled:
    def __init__(self, by):
        self.by = by

    def __call__(self, x):
        return x * self.by


def total(objects, x):
    y = x * 0.0
    for _ in range(3):
        for f in objects:
            y = y + f(x)
    return y


def test_every_object_of_a_class_is_called_with_its_own_state():
    objects = [Scaled(2.0), Scaled(5.0)]
    assert grad(lambda x: total(objects, x))(1.5) == 21.0
    assert grad(lambda by: total([Scaled(by)], 1.5))(4.0) == 4.5


def test_a_class_that_changes_meanwhile_is_looked_at_again():
    class Changing:
        def __call__(self, x):
            return x * 2.0

    f = Changing()

    def program(x):
        y = f(x) + f(x)
        Changing.__call__ = lambda self, x: x * x
        y = y + f(x) + f(x)
        Changing.__call__ = lambda self, x: x * 3.0
        return y + f(x)

    assert grad(program)(1.5) == 2.0 + 2.0 + 3.0 + 3.0 + 3.0


def test_one_object_with_a_rule_of_its_own_is_found_among_others():
    with_rule, without = Scaled(2.0), Scaled(3.0)
    plaingrad.rrule(with_rule)(lambda x: (with_rule(x), lambda y_bar: (y_bar * 100.0,)))
    try:
        assert grad(lambda x: total([without, with_rule], x))(1.5) == 309.0
    finally:
        plaingrad.remove_rule(with_rule)
    assert grad(lambda x: total([without, with_rule], x))(1.5) == 15.0


def test_an_object_that_is_not_callable_says_so_as_python_does():
    class Silent:
        pass

    with pytest.raises(TypeError, match="'Silent' object is not callable"):
        grad(lambda x: x * Silent()(x))(1.0)
