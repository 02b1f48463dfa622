"""The table of all rules."""

import math
import sys

import numpy as np

import plaingrad
import pytest
from plaingrad import ArgumentError, defined_as, frule, nondifferentiable, rrule, rules, scalar_rule
from plaingrad.rulebook import rules as entries


def test_every_rule_is_listed():
    table = rules()
    hidden = sum(hasattr(rule.function, "updating") for rule in entries())
    assert len(table) == sum(len(rule.variants) or 1 for rule in entries()) - hidden
    assert all(info.kind for info in table) and table[0].function is next(entries()).function


def test_rules_of_the_program_say_where_and_what_they_are():
    def f(x):
        return x

    @rrule(f)
    def rule(x: float):
        return x, lambda y_bar: (y_bar,)

    (info,) = rules(f)
    assert info.function is f and info.kind == "full" and info.modes == ("reverse",) and info.types == "(x: float)"
    assert info.source == f"{__file__}:{rule.__code__.co_firstlineno}"
    frule(f)(lambda f, x: x)
    assert [info.modes for info in rules(f)] == [("reverse",), ("forward",)]
    line = sys._getframe().f_lineno + 1
    scalar_rule(f, 1.0, domain=((1.0, 2.0),))
    assert rules(f)[1].source == f"{__file__}:{line}" and rules(f)[1].domain == ((1.0, 2.0),)
    assert f in [info.function for info in rules()]


def test_the_modes_of_a_rule_that_writes():
    def into(z, x):
        z[:] = x

    rrule(into, mutates="z")(lambda z, x: (None, lambda y_bar, z_bar: (y_bar, z_bar)))
    assert rules(into)[0].modes == ("reverse",) and rules(into)[0].kind == "composed"
    assert [info.function for info in rules() if info.source.startswith(__file__)].count(into) == 1
    defined_as(into)(into)
    assert rules(into)[0].modes == ("reverse", "forward")


def test_the_table_is_short_in_the_shell_and_whole_in_print():
    table = rules()
    assert repr(table).startswith(f"... {len(table) - 40} more\nfunction") and repr(table).count("\n") == 41
    assert str(table).count("\n") == len(table)
    assert "numpy.ndarray.sum" in str(table) and "math.hypot" in str(table) and "numpy.exp " in str(table)
    assert len(table[:3]) == 3 and str(rules(lambda x: x)) == "function  given as  for  modes  source"


def test_rules_for_methods_are_found_by_the_bound_ones():
    class Model:
        def step(self, x):
            return x

    nondifferentiable(Model.step)
    assert rules(Model().step)[0].kind == rules(Model.step)[0].kind == "no_tangent"
    assert rules(np.sin)[0].modes == rules(math.sin)[0].modes == ("reverse", "forward")
    assert plaingrad.rules is rules


def test_the_table_is_one_in_a_notebook():
    found = rules(math.erf)._repr_html_()
    assert found.startswith("<table><tr><th") and "<td style=\"text-align:left\">math.erf</td>" in found
    everything = rules()._repr_html_()
    assert everything.count("<tr>") == 41 and f"the last 40 of {len(rules())} rules" in everything
    assert "<lambda>" not in everything


def test_a_name_is_no_function():
    """The table was empty, as of a function without a rule."""
    with pytest.raises(ArgumentError, match=r"rules\(math.sin\)"):
        rules("sin")
