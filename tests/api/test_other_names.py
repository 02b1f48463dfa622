"""Names that users of other packages type say what they are called here."""

import re

import numpy as np
import plaingrad
import pytest
from plaingrad.api.other_names import ADVICE, MODULES


@pytest.mark.parametrize(
    "name, word",
    [
        ("ravel_pytree", "ravel"),
        ("custom_vjp", "rrule"),
        ("custom_jvp", "frule"),
        ("requires_grad", "grad_wrt"),
        ("elementwise_grad", "sum"),
        ("make_jaxpr", "show"),
        ("jit", "numba"),
        ("no_grad", "stop_gradient"),
        ("backward", "value_and_grad"),
    ],
)
def test_a_name_typed_by_habit_says_what_it_is_called_here(name, word):
    with pytest.raises(AttributeError, match=word) as found:
        getattr(plaingrad, name)
    assert found.value.name == name


def test_other_names_are_unknown_as_ever():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'$"):
        plaingrad.nothing


def test_advice_is_of_names_that_do_not_exist_and_names_ones_that_do():
    assert not set(ADVICE) & {*plaingrad.__all__, *MODULES}
    assert list(ADVICE) == sorted(ADVICE)
    for advice in ADVICE.values():
        for name in re.findall(r"(?:plaingrad\.|use |or |, )(\w+)\(", advice):
            assert name in plaingrad.__all__ or hasattr(plaingrad.testing, name), advice


def test_jacobians_of_either_mode_under_the_names_of_jax():
    x = np.array([1.0, 2.0, 3.0])
    f = lambda x: x[:2] * x[1:]
    expected = [[2.0, 1.0, 0.0], [0.0, 3.0, 2.0]]
    np.testing.assert_array_equal(plaingrad.jacfwd(f)(x), expected)
    np.testing.assert_array_equal(plaingrad.jacrev(f)(x), expected)
    assert plaingrad.jacrev(lambda x: (x * x, "aux"), has_aux=True)(3.0) == (6.0, "aux")
