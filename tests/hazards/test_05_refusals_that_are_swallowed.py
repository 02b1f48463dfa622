"""A refusal that the program catches without naming it: a plain call goes another way, so it is raised at the end."""

import asyncio
import contextlib
import threading
import warnings

import numpy as np
import pytest

import plaingrad
from plaingrad import derivative, grad, jvp, vjp

X = 1.75
SLOPES = {
    "grad": grad,
    "derivative": derivative,
    "twice": lambda f: grad(grad(f)),
    "forward over reverse": lambda f: derivative(grad(f)),
    "vjp": lambda f: lambda x: vjp(f, x)[1](1.0)[0],
    "taylor": lambda f: derivative(f, order=2),
}


def opaque(x):
    """C code without a rule, of a number."""
    return x.as_integer_ratio()[0] * x


def zero_instead(x):
    try:
        return opaque(x)
    except Exception:
        return 0.0


def bare_except(x):
    try:
        y = opaque(x)
    except:  # noqa: E722
        y = 1.0
    return x * y


def suppressed(x):
    with contextlib.suppress(Exception):
        return opaque(x)
    return x


RETURNED_FROM_FINALLY = """
def returned_from_finally(x):
    try:
        return opaque(x)
    finally:
        return x
"""
with warnings.catch_warnings():
    warnings.simplefilter("ignore", SyntaxWarning)  # of this `return`, since Python 3.14
    exec(compile(RETURNED_FROM_FINALLY, __file__, "exec"))
returned_from_finally = globals()["returned_from_finally"]


def another_error(x):
    try:
        return opaque(x)
    except Exception as error:
        raise TypeError("can't convert the given type") from error


def another_error_without_cause(x):
    try:
        return opaque(x)
    except Exception:
        raise ValueError("not a number") from None


def gathered(x):
    async def one(v):
        return opaque(v)

    async def both():
        return await asyncio.gather(one(x), one(2.0 * x), return_exceptions=True)

    return x * sum(1.0 if isinstance(r, Exception) else r for r in asyncio.run(both()))


def in_a_method_of_a_class(x):
    class Curve:
        def __init__(self, value):
            self.value = value

        @property
        def slope(self):
            try:
                return opaque(self.value)
            except Exception:
                return 2.0

    return Curve(x).slope * x


def from_a_generator(x):
    def values():
        for k in (1.0, 2.0):
            try:
                yield opaque(k * x)
            except Exception:
                yield k

    return x * sum(values())


@pytest.mark.parametrize("slope", SLOPES.values(), ids=SLOPES)
@pytest.mark.parametrize(
    "f",
    [zero_instead, bare_except, suppressed, returned_from_finally, another_error, another_error_without_cause,
     gathered, in_a_method_of_a_class, from_a_generator],
)  # fmt: skip
def test_a_missing_rule_that_is_swallowed_is_raised_at_the_end(f, slope):
    with pytest.raises(plaingrad.MissingRuleError, match=r"as_integer_ratio.*test_05_refusals.*:\d+") as refused:
        slope(f)(X)
    (note,) = refused.value.__notes__
    assert "except plaingrad.MissingRuleError" in note
    assert grad(lambda x: x * x)(X) == 2 * X  # nothing is left for the next one


def test_an_array_that_is_met_under_two_names_is_refused_at_the_end():
    given = np.ones(3)

    def f(x):
        try:
            given[0] = x[1] * 2.0
        except Exception:
            return x.sum()
        return given.sum() + x.sum()

    with pytest.raises(plaingrad.AliasError):
        grad(f)(given)


def test_rules_for_arrays_are_no_exception():
    def f(x):
        try:
            return np.partition(x, 1, kind="introselect")[0] + memoryview(x)[0]
        except Exception:
            return x.sum()

    for slope in (grad, lambda f: lambda x: jvp(f, (x,), (x,))):
        with pytest.raises(plaingrad.MissingRuleError):
            slope(f)(np.array([1.0, 3.0, 2.0]))


def test_a_program_that_names_the_error_answers_it():
    def by_name(x):
        try:
            return opaque(x)
        except plaingrad.MissingRuleError:
            return x * x

    def by_its_base(x):
        try:
            return opaque(x)
        except plaingrad.PlaingradError:
            return x * x

    def by_what_python_calls_it(x):
        try:
            return opaque(x)
        except NotImplementedError:
            return x * x

    def further_up(x):
        def inner():
            try:
                return opaque(x)
            except Exception as error:
                raise error

        with contextlib.suppress(plaingrad.MissingRuleError):
            return inner()
        return x * x

    for f in (by_name, by_its_base, by_what_python_calls_it, further_up):
        assert grad(f)(X) == derivative(f)(X) == 2 * X
        assert grad(grad(f))(X) == derivative(grad(f))(X) == 2.0


def test_inside_another_derivative_it_is_the_outer_programs_to_answer():
    def f(x):
        try:
            inner = grad(opaque)(2.5)
        except Exception:  # a plain call of f meets it too
            inner = 3.0
        return x * inner

    assert f(X) == 3.0 * X
    assert grad(f)(X) == derivative(f)(X) == 3.0

    def from_a_pullback(x):
        y, pullback = vjp(lambda v: unfinished(v), 2.5)
        try:
            inner = pullback(1.0)[0]
        except Exception:
            inner = 3.0
        return x * y * inner

    def unfinished(v):
        return v + 0.0

    @plaingrad.rrule(unfinished)
    def unfinished_rrule(v):
        def unfinished_pullback(y_bar):
            raise plaingrad.MissingRuleError("there is none")

        return v, unfinished_pullback

    assert from_a_pullback(X) == X * 2.5 * 3.0
    assert grad(from_a_pullback)(X) == 7.5


def test_errors_of_the_program_itself_are_its_own():
    def f(x):
        try:
            return x / 0
        except Exception:
            return x * x

    def g(x):
        try:
            return {}["missing"] * x
        except Exception as error:
            raise ValueError("no such key") from error

    assert grad(f)(X) == 2 * X
    with pytest.raises(ValueError, match="no such key"):
        grad(g)(X)


def test_the_first_of_two_refusals_is_raised_and_each_run_has_its_own():
    def f(x):
        return zero_instead(x) + suppressed(2.0 * x)

    seen = []
    for _ in range(2):
        with pytest.raises(plaingrad.MissingRuleError, match="zero_instead|opaque") as refused:
            grad(f)(X)
        seen.append(refused.value)
        assert len(refused.value.__notes__) == 1
    assert seen[0] is not seen[1]


def test_threads_do_not_mix_up_their_refusals():
    found = {}

    def work(k):
        try:
            found[k] = grad(zero_instead if k % 2 else (lambda x: x * x))(float(k))
        except plaingrad.MissingRuleError:
            found[k] = "refused"

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {k: "refused" if k % 2 else 2.0 * k for k in range(6)}


def test_in_a_checkpoint_it_is_raised_too():
    def f(x):
        return plaingrad.checkpoint(zero_instead, x) + x

    with pytest.raises(plaingrad.MissingRuleError, match="as_integer_ratio"):
        grad(f)(X)
