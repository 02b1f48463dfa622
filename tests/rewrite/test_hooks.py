"""The names of the hooks, and the plain ones."""

import pytest
from plaingrad.rewrite import CURRENT, HOOK_NAMES, PLAIN, Hooks


def test_the_plain_hooks_are_current_by_default():
    assert CURRENT.get() is PLAIN


def test_every_name_has_a_plain_hook():
    assert len(HOOK_NAMES) == len(set(HOOK_NAMES)) == 48
    assert all(callable(getattr(PLAIN, name)) for name in HOOK_NAMES)


def test_hooks_not_given_are_those_of_the_base():
    hooks = Hooks(PLAIN, add=max)
    assert hooks.add is max
    assert hooks.sub is PLAIN.sub


def test_a_misspelt_hook_is_refused():
    with pytest.raises(TypeError, match="no such hooks: plus"):
        Hooks(PLAIN, plus=max)


@pytest.mark.parametrize("name", ["prep", "iterable", "meet", "text"])
def test_witnesses_return_their_argument(name):
    o = object()
    assert getattr(PLAIN, name)(o) is o


def test_stores_and_containment_have_their_operands_in_stack_order():
    d = {}
    PLAIN.setitem(1, d, "k")
    assert d == {"k": 1}
    PLAIN.set_attr(2, test_stores_and_containment_have_their_operands_in_stack_order, "note")
    assert test_stores_and_containment_have_their_operands_in_stack_order.note == 2
    assert PLAIN.contains("k", d)
    assert not PLAIN.contains("q", d)
