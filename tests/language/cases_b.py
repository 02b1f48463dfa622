"""`check(f, x, expected)` for programs of one argument, and its variant for programs that may be refused."""

import copy

import cases
import plaingrad

TOLERANCE = None


def check(f, x, expected, state=cases.nothing, reset=cases.nothing, rtol=None):
    """Asserts that df/dx at x is `expected` and that a plain call cannot tell the difference, before or after.

    The formula in `expected` is worked out by hand: nothing here compares plaingrad with plaingrad.

    Args:
        f: the program.
        x: its argument, of any structure.
        expected: the gradient, of the same structure (`cases.Fields` for objects).
        state: returns what f leaves behind outside (globals, counters, text).
        reset: puts that back, before each call.
        rtol: a looser tolerance, where the numbers are not float64.
    """
    code = getattr(f, "__code__", None)
    reset()
    before = f(copy.deepcopy(x))
    cases.check(f, x, gradient=expected, setup=reset, state=state, rtol=rtol or TOLERANCE)
    reset()
    assert cases.same(f(copy.deepcopy(x)), before), "a plain call afterwards gives what it gave before"
    assert getattr(f, "__code__", None) is code


def check_or_refuse(f, x, expected, *errors, **options):
    """As `check`, where a refusal by one of `errors` is as good an answer as the right gradient."""
    errors = errors or (plaingrad.MissingRuleError, plaingrad.RoundTripError)
    options.get("reset", cases.nothing)()
    try:
        plaingrad.grad(f)(copy.deepcopy(x))
    except errors as refusal:
        assert len(str(refusal)) > 40, "a refusal says what, where and why"
        return
    check(f, x, expected, **options)
