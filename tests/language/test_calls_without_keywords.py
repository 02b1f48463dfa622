"""C code that is called without keywords gets none: some tell an empty dictionary from no dictionary."""

import functools

import pytest


from plaingrad import checkpoint, derivative, grad, remove_rule, rrule

_testcapi = pytest.importorskip("_testcapi")
told = _testcapi.meth_varargs_keywords  # (module, positional arguments, keywords or None)
OPERATORS = [grad, derivative, lambda f: grad(grad(f)), lambda f: derivative(f, order=2), lambda f: grad(derivative(f))]


def mapped(x):
    return list(map(told, [1, 2]))


def in_a_list(x):
    return [[told][0](1)]


PROGRAMS = {
    "a call": lambda x: [told(1)],
    "no argument": lambda x: [told()],
    "arguments in a tuple": lambda x: [told(*(1, 2))],
    "map": mapped,
    "partial": lambda x: [functools.partial(told, 1)(2)],
    "from a list": in_a_list,
    "a key": lambda x: [told("a", [1])],
    "checkpoint": lambda x: [checkpoint(lambda y: told(1), x)],
    "reduce": lambda x: [functools.reduce(told, [1, 2])],
}


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_c_code_gets_no_dictionary(name, operator):
    seen = []

    def f(x):
        seen.extend(PROGRAMS[name](x))
        return x * x

    assert operator(f)(2.0) in (2.0, 4.0)
    assert seen and all(keywords is None for _, _, keywords in seen)


@pytest.mark.parametrize("operator", OPERATORS)
def test_nor_does_c_code_with_a_rule(operator):
    seen = []

    def told_rrule(*args):
        return told(*args), lambda y_bar: (0.0,) * len(args)

    def f(x):
        seen.append(told(x))
        return x * x

    rrule(told)(told_rrule)
    try:
        operator(f)(2.0)
    finally:
        remove_rule(told)
    assert all(keywords is None for _, _, keywords in seen)


def test_keywords_that_are_given_arrive():
    seen = []
    grad(lambda x: (seen.append(told(1, a=2)), x)[1])(2.0)
    assert [entry[1:] for entry in seen] == [((1,), {"a": 2})]
