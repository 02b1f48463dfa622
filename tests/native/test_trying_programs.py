"""Random programs with `try`, and what they have shown to be wrong."""

import linecache
import math

import numpy as np
import pytest

pytest.importorskip("numba")

import numba

import plaingrad
from tests.native import comparison, trying_programs, uncompiled
from tests.sampling import some


@pytest.mark.parametrize("seed", some([2, 4], [3004, 3014]))
def test_a_random_program_with_try_has_the_derivatives_of_the_plain_tier(seed):
    text, name = trying_programs.program(seed, 1), f"<trying random program {seed}>"
    f, native = trying_programs.compiled_text(text, name), trying_programs.native_form(text, name)
    args, at = trying_programs.arguments(seed)
    with np.errstate(all="ignore"):
        mine, theirs = comparison.copied(args), comparison.copied(args)
        (value,), found = comparison.pulled_back(native, mine, at, [1.0])
        wanted, expected = plaingrad.value_and_grad(f, at, tier="plain")(*theirs)
    comparison.assert_close((value, mine), (wanted, theirs), 1e-12, "value and arguments left")
    comparison.assert_close(found, expected, 1e-9, "gradient")


@numba.njit
def with_finally(x, n):
    for c in range(n):
        try:
            x = x * 1.5
            if x > 3.0:
                raise ValueError
        finally:
            x = math.sin(x)
    return x


def test_what_a_finally_raises_again_is_what_the_compiled_function_raises():
    value, found = uncompiled.gradient(with_finally, (0.5, 3))
    assert (value, found[0]) == pytest.approx(
        plaingrad.value_and_grad(with_finally.py_func)(0.5, 3), rel=1e-13
    )
    with pytest.raises(AssertionError):
        with_finally(2.5, 3)
    with pytest.raises(AssertionError):
        uncompiled.gradient(with_finally, (2.5, 3))


def of_text(text):
    """The function `f` of a text."""
    name = f"<{text[:40]}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {}
    exec(compile(text, name, "exec"), space)
    return numba.njit(space["f"])


def test_long_chains_of_blocks_are_one_block():
    body = "".join(f"        s = s + 1.0 / (x - {k}.0)\n" for k in range(8))
    f = of_text(
        f"def f(x):\n    s = x\n    try:\n{body}    except Exception:\n        s = s * x\n    return s\n"
    )
    for x in (-1.5, 7.0):
        value, found = uncompiled.gradient(f, (x,))
        assert (value, found[0]) == pytest.approx(plaingrad.value_and_grad(f.py_func)(x), rel=1e-12)


def test_hundreds_of_returns_are_refused_not_a_limit_of_python():
    body = "".join(f"    if x < {k}.5:\n        return x * {k}.0\n" for k in range(120))
    f = of_text(f"def f(x):\n{body}    return x\n")
    with pytest.raises(plaingrad.NativeError, match="too many branches that leave it"):
        uncompiled.gradient(f, (30.2,))
