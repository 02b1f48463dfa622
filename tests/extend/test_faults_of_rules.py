"""An exception in the code of a rule stays what it is, and says of which rule it is and where the function was called."""

import inspect

import numpy as np
import pytest

import plaingrad
from plaingrad import NoTangent, Thunk, derivative, frule, grad, jacobian, jvp, linear_rule, linearize, rrule, vjp


class Odd(Exception):
    """An exception with arguments of its own."""

    def __init__(self, code, detail):
        super().__init__(code, detail)
        self.code = code


def raising(x):
    return x * x


@rrule(raising)
def raising_rrule(x):
    def raising_pullback(y_bar):
        raise Odd(7, "detail")

    return x * x, raising_pullback


def pushing(x):
    return x * x


@frule(pushing)
def pushing_frule(d_f, d_x):
    raise Odd(7, "detail")


def of_two(x, y):
    return x * y


@rrule(of_two)
def of_two_rrule(x, y):
    def of_two_pullback(z_bar):
        return NoTangent, {}["y"], z_bar * x

    return x * y, of_two_pullback


def postponed(x):
    return x * x


@rrule(postponed)
def postponed_rrule(x):
    return x * x, lambda y_bar: (Thunk(lambda: 1 / 0),)


def summed(x):
    return 3.0 * x


def summed_adjoint(y_bar, x):
    raise KeyError("adjoint")


linear_rule(summed, summed_adjoint)


def mixed_up(x):
    return x * x


@rrule(mixed_up)
def mixed_up_rrule(x):
    return x * x, lambda y_bar: (y_bar @ np.ones((2, 2)),)


def program(f):
    def called(x):
        y = f(x)
        return y * 2.0

    return called


def line_of_call():
    lines, start = inspect.getsourcelines(program)
    return start + next(k for k, line in enumerate(lines) if "y = f(x)" in line)


REVERSE = {
    "grad": lambda f: grad(f)(1.5),
    "vjp": lambda f: vjp(f, 1.5)[1](1.0),
    "linearize": lambda f: linearize(f, 1.5)[1](1.0),
    "reverse over reverse": lambda f: grad(grad(f))(1.5),
    "forward over reverse": lambda f: derivative(grad(f))(1.5),
    "jacobian": lambda f: jacobian(lambda x: np.stack([f(x[0]), f(x[1])]), mode="reverse")(np.array([1.0, 2.0])),
}
FORWARD = {
    "jvp": lambda f: jvp(f, (1.5,), (1.0,)),
    "derivative": lambda f: derivative(f)(1.5),
    "forward over forward": lambda f: derivative(derivative(f))(1.5),
    "reverse over forward": lambda f: grad(derivative(f))(1.5),
}


def check_note(error, name):
    (note,) = [text for text in error.__notes__ if "rule for" in text]
    assert name in note and f"{__file__}:{line_of_call()}" in note and "`called`" in note


@pytest.mark.parametrize("take", [*REVERSE.values(), *FORWARD.values()], ids=[*REVERSE, *FORWARD])
def test_an_exception_in_a_pullback_names_the_rule_and_the_call(take):
    with pytest.raises(Odd) as raised:
        take(program(raising))
    assert type(raised.value) is Odd and raised.value.args == (7, "detail") and raised.value.code == 7
    check_note(raised.value, "raising")
    assert "raising_pullback" in [entry.name for entry in raised.traceback]


@pytest.mark.parametrize("take", FORWARD.values(), ids=FORWARD)
def test_an_exception_in_a_forward_rule_names_it(take):
    with pytest.raises(Odd) as raised:
        take(program(pushing))
    check_note(raised.value, "pushing")


@pytest.mark.parametrize("take", [*REVERSE.values(), *FORWARD.values()], ids=[*REVERSE, *FORWARD])
@pytest.mark.parametrize(
    "f, error", [(postponed, ZeroDivisionError), (summed, KeyError), (mixed_up, (ValueError, TypeError))]
)
def test_so_do_postponed_cotangents_adjoints_and_errors_of_numpy(take, f, error):
    if f is summed and take in FORWARD.values():
        assert derivative(f)(1.5) == 3.0  # a linear function is its own pushforward
        return
    with pytest.raises(error) as raised:
        take(program(f))
    check_note(raised.value, f.__name__)


def test_of_two_calls_the_one_that_is_pulled_back_is_named():
    def f(x):
        first = of_two(x, 2.0)
        return first + of_two(x, x)

    with pytest.raises(KeyError, match="y") as raised:
        grad(f)(1.5)
    (note,) = raised.value.__notes__
    line = inspect.getsourcelines(f)[1] + 2  # the last call is the first on the way back
    assert f"{__file__}:{line}" in note and "of_two" in note


def test_our_own_errors_name_the_rule_themselves():
    def nothing(x):
        return x * x

    @rrule(nothing)
    def nothing_rrule(x):
        return x * x, lambda y_bar: (None,)

    with pytest.raises(plaingrad.RuleError, match="nothing") as raised:
        grad(nothing)(1.5)
    assert not getattr(raised.value, "__notes__", [])


def test_exceptions_of_the_function_itself_have_no_note():
    def positive(x):
        if x < 0:
            raise ValueError("negative")
        return x * x

    @rrule(positive)
    def positive_rrule(x):
        return positive(x), lambda y_bar: (2 * x * y_bar,)

    with pytest.raises(ValueError, match="negative") as raised:
        grad(positive)(-1.0)
    assert not getattr(raised.value, "__notes__", [])
    assert grad(positive)(3.0) == 6.0
