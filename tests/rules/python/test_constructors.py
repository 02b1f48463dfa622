"""Numbers made of numbers: float, complex, Fraction, Decimal."""

from decimal import Context, Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest
from tests.rules.agreement import assert_partials_agree

from plaingrad import rulebook
from plaingrad.rules.python import constructors
from plaingrad.tangents import is_zero, unthunk

HERE = [rule for rule in rulebook.rules() if rule.source.split(":")[0] == constructors.__file__]


def cotangents_of(f, z_bar, *args):
    return [unthunk(x_bar) for x_bar in rulebook.find(f).rrule(*args)[1](z_bar)]


def adjoint_of(f):
    """The adjoint of a linear rule; that of an attribute cannot be called through its descriptor."""
    rule = rulebook.find(f)
    return dict(zip(rule.rrule.__code__.co_freevars, rule.rrule.__closure__))["adjoint"].cell_contents


@pytest.mark.parametrize("f, x", [
    (float, 2.5), (float, Fraction(1, 2)), (float, Decimal("0.5")), (float, np.float32(0.5)),
    (Decimal, 0.5), (float.__float__, 0.5),
    (np.float64.__float__, np.float64(0.5)), (Decimal.normalize, Decimal("1.50")), (Fraction.__float__, Fraction(1, 2)),
    (Decimal.__float__, Decimal("0.5")), (Decimal.__complex__, Decimal("0.5")), (complex.__complex__, 2j),
    (Fraction.__copy__, Fraction(1, 2)), (Fraction, 0.5), (Decimal.from_float, 0.5),
])
def test_a_change_of_type_passes_the_cotangent_through(f, x):
    z, pullback = rulebook.find(f).rrule(x)
    assert z == x
    assert unthunk(pullback(3.0)[0]) == 3.0


def test_the_parts_of_a_number():
    assert adjoint_of(complex.real)(3.0, 1 + 2j) == 3
    assert adjoint_of(complex.imag)(3.0, 1 + 2j) == 3j
    assert adjoint_of(float.real)(3.0, 1.0) == 3
    assert adjoint_of(Decimal.real)(3.0, Decimal(1)) == 3
    assert adjoint_of(Fraction.__deepcopy__)(3.0, Fraction(1), {}) == 3


def test_complex_of_one_or_two_parts():
    f = constructors._complex
    assert_partials_agree(rulebook.find(f).rrule, (1.5, -0.5))
    assert_partials_agree(rulebook.find(f).rrule, (1.5,))
    assert_partials_agree(rulebook.find(f).rrule, (1.5 + 2j,))
    assert rulebook.find(f).rrule(2.0)[0] == 2
    z = 1 + 2j
    assert rulebook.find(constructors._complex).rrule(z)[0] is z


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # since CPython 3.14
def test_complex_of_two_complex_parts():
    assert_partials_agree(rulebook.find(constructors._complex).rrule, (1.5 + 2j, 0.5 - 1j))


class Length(float):
    pass


def test_the_new_of_a_subclass_of_float_or_complex():
    z, pullback = rulebook.find(float.__new__).rrule(Length, 2.0)
    assert type(z) is Length and pullback(3.0)[1] == 3.0
    z, pullback = rulebook.find(complex.__new__).rrule(complex, 2.0, 1.0)
    assert z == 2 + 1j and pullback(1j)[2] == 1


def test_a_fraction_of_two_numbers():
    args = (Fraction(3, 2), Fraction(5, 7))
    z, pullback = rulebook.find(Fraction).rrule(*args)
    assert z == args[0] / args[1]
    assert pullback(1) == (1 / args[1], -args[0] / args[1] ** 2)
    assert rulebook.find(Fraction.from_float.__func__).rrule(Fraction, 0.5)[0] == Fraction(1, 2)
    assert rulebook.find(Fraction.from_decimal.__func__).rrule(Fraction, Decimal("0.5"))[1](3.0)[1] == 3.0


# Exact arithmetic is its own judge: the slope of a polynomial of degree d from d + 1 points.

FRACTIONS = (Fraction(7, 3), Fraction(-5, 4))
DECIMALS = (Decimal("2.3"), Decimal("1.5"))


def exact_difference(f, args, i, h):
    def at(k):
        return f(*args[:i], args[i] + k * h, *args[i + 1 :])

    return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h)


ROWS = [rule for rule in HERE if rule.kind == "scalar"]


@pytest.mark.parametrize("rule", ROWS, ids=lambda rule: rule.function.__qualname__)
def test_partials_of_exact_numbers_agree_with_differences(rule):
    f = rule.function
    name = f.__qualname__
    if name.startswith("Fraction"):
        args, h, tolerance = FRACTIONS[: len(rule.partials)], Fraction(1, 10**6), Fraction(1, 10**18)
        if "pow" in name:  # a float, unless the exponent is whole
            args, h, tolerance = (Fraction(7, 3), Fraction(5, 4)), Fraction(1, 1000), 1e-8
    else:
        args = (*DECIMALS, Decimal("0.75"))[: len(rule.partials)]
        if name == "Decimal.scaleb":
            args = (args[0], Decimal(2))
        h, tolerance = Decimal("1e-4"), Decimal("1e-12")
    _, pullback = rule.rrule(*args)
    cotangents = [unthunk(x_bar) for x_bar in pullback(1)]
    for i, x_bar in enumerate(cotangents):
        if not is_zero(x_bar):
            assert abs(x_bar - exact_difference(f, args, i, h)) <= tolerance


def test_the_remaining_decimal_methods():
    for name in ("canonical", "conjugate", "next_minus", "next_plus", "__copy__", "__deepcopy__"):
        args = (Decimal("1.5"), {}) if name == "__deepcopy__" else (Decimal("1.5"),)
        assert cotangents_of(Decimal.__dict__[name], 2, *args)[0] == 2
    assert cotangents_of(Decimal.next_toward, 2, Decimal(1), Decimal(2))[0] == 2


@pytest.mark.parametrize("name, args", [
    ("add", (Decimal(1), Decimal(3))), ("subtract", (Decimal(1), Decimal(3))), ("multiply", (Decimal(2), Decimal(3))),
    ("divide", (Decimal(1), Decimal(3))), ("remainder", (Decimal(7), Decimal(3))), ("power", (Decimal(2), Decimal("0.5"))),
    ("plus", (Decimal("1.23456789"),)), ("minus", (Decimal("1.23456789"),)), ("abs", (Decimal("-1.23456789"),)),
    ("fma", (Decimal(2), Decimal(3), Decimal("0.123456"))), ("sqrt", (Decimal(2),)), ("exp", (Decimal(2),)), ("ln", (Decimal(2),)),
    ("log10", (Decimal(2),)), ("create_decimal", ("1.23456789",)), ("create_decimal_from_float", (0.1,)),
])
def test_a_method_of_a_context_rounds_and_signals_in_it(name, args):
    context, other = Context(prec=5), Context(prec=5)
    assert rulebook.find(Context.__dict__[name]).definition(context, *args) == getattr(other, name)(*args)
    assert context.flags == other.flags
    assert getcontext().prec == 28


@pytest.mark.parametrize("cls", [float, np.float16, np.float32, np.float64, np.longdouble, np.ndarray, Fraction, Decimal])
def test_divmod_methods_of_every_type(cls):
    x = np.array([7.5, -7.5]) if cls is np.ndarray else cls(7.5)
    y = np.array([2.0, 3.5]) if cls is np.ndarray else cls(2)
    for found, expected in [
        (rulebook.find(cls.__divmod__).definition(x, y), divmod(x, y)),
        (rulebook.find(cls.__rdivmod__).definition(y, x), divmod(x, y)),
    ]:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("cls", [np.float16, np.float32, np.longdouble, np.ndarray])
def test_float_methods_of_every_type(cls):
    x = np.array(0.5) if cls is np.ndarray else cls(0.5)
    z, pullback = rulebook.find(cls.__float__).rrule(x)
    assert type(z) is float and unthunk(pullback(3.0)[0]) == 3.0


def test_divmod_methods_are_quotient_and_remainder():
    assert rulebook.find(float.__divmod__).definition(7.5, 2.0) == divmod(7.5, 2.0)
    assert rulebook.find(float.__rdivmod__).definition(2.0, 7.5) == divmod(7.5, 2.0)
    assert rulebook.find(np.float64.__divmod__).definition(np.float64(7.5), 2.0) == divmod(7.5, 2.0)


def test_integers_end_the_derivative():
    for f in (int, bool, round, float.is_integer, Decimal.quantize):
        assert rulebook.find(f).kind == "no_tangent"


def test_a_nearby_fraction_is_refused_for_it_stands_for_the_number_and_is_a_step():
    assert rulebook.find(Fraction.limit_denominator) is None


def test_no_rule_here_is_without_a_test():
    tested = {float, complex, Decimal, Fraction, constructors._complex, float.__new__, complex.__new__, Decimal.from_float,
              Fraction.from_float.__func__, Fraction.from_decimal.__func__, Fraction.__float__, Fraction.__copy__, Fraction.__deepcopy__,
              float.real, complex.real, complex.imag, Decimal.real, complex.__complex__, Decimal.__complex__, Decimal.__float__}
    tested |= {Decimal.__dict__[name] for name in "normalize canonical conjugate next_minus next_plus next_toward __copy__ __deepcopy__".split()}
    tested |= {Context.__dict__[name] for name in "add subtract multiply divide remainder power plus minus abs fma sqrt exp ln log10".split()}
    tested |= {Context.create_decimal, Context.create_decimal_from_float}
    for cls in (float, np.float16, np.float32, np.float64, np.longdouble, np.generic, np.ndarray, Fraction, Decimal):
        tested |= {cls.__divmod__, cls.__rdivmod__}
    for cls in (float, np.float16, np.float32, np.float64, np.longdouble, np.generic, np.ndarray):
        tested.add(cls.__float__)
    if "from_number" in Fraction.__dict__:
        tested.add(Fraction.from_number.__func__)
    assert {rule.function for rule in HERE if rule.kind in ("full", "linear", "composed")} == tested
