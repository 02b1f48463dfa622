"""The programs of the tests of the language, natively: every one that Numba can type, against the plain tier.

`language_taken.txt` and `language_refused.txt` are written by `python -m tests.native.language_programs`.
"""

import functools
import sys
import warnings

import numpy as np
import pytest

pytest.importorskip("numba")

from tests.native import language_programs  # noqa: E402
from tests.native.comparison import assert_close  # noqa: E402

TAKEN = language_programs.TAKEN.read_text().split("\n")[:-1]
REFUSED = dict(line.split("  ", 1) for line in language_programs.REFUSED.read_text().split("\n")[:-1])


@functools.cache
def programs():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return language_programs.recorded()


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="other versions have other programs; the lists are of 3.11")
def test_every_program_of_the_language_is_listed():
    found = set(programs())
    assert found - set(TAKEN) - set(REFUSED) == set(), "run python -m tests.native.language_programs"
    assert set(TAKEN) - found == set(), "run python -m tests.native.language_programs"


def test_refusals_have_a_reason_and_none_is_a_crash():
    assert all(reason and not reason.startswith("RAISES") for reason in REFUSED.values())


@pytest.mark.parametrize("part", range(4))
def test_programs_of_the_language_give_the_same_natively(part):
    wrong = []
    for name in TAKEN[part::4]:
        if name not in programs():  # of another version
            continue
        f, args, _ = programs()[name]
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                value, gradient = language_programs.native(f, args)
                y, expected = language_programs.plain(f, args)
                assert_close(value, y, 1e-12, "value")
                assert_close(gradient, expected, 1e-12, "gradient")
            except Exception as error:
                wrong.append(f"{name}: {type(error).__name__}: {error}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", TAKEN[::40])
def test_some_of_them_compiled(name):
    from tests.native import comparison

    if name not in programs():
        pytest.skip("a program of another version")
    f, args, _ = programs()[name]
    at = comparison.differentiable(args)
    y, expected = language_programs.plain(f, args)
    value, gradient = comparison.gradient(f, comparison.copied(args), at, compiled=True)
    assert_close(value, y, 1e-12, "value")
    assert_close(gradient, expected, 1e-12, "gradient")
