"""Who refers to a value besides tapes and tables, and when two tapes say the same."""

import functools

import numpy as np
import pytest

from plaingrad.engine.memory.holders import Inside, fingerprint
from plaingrad.engine.memory.tape import STEP, ArraySlot, RuleStep, Tree
from plaingrad.rulebook import Rule

RULE = Rule(abs, "full")


def tape_of(x, *kept):
    """A tape with one step, whose pullback keeps values in the usual places."""
    cells, plain = kept[::2], kept[1::2]

    def pullback(y_bar, default=plain):
        return cells

    slots = Tree({0: ArraySlot(0, x), "view": ArraySlot(0, x[1:])})
    return [0, STEP, RuleStep(slots, ((0, slots),), functools.partial(pullback, 1.0), RULE)]


def test_what_only_the_tape_keeps_is_not_held_elsewhere():
    x = np.ones(3)
    a, b = [np.zeros(2)], (np.ones(2), [float("2.5")])
    tape = tape_of(x, a, b)
    ids = {id(x), id(a[0]), id(b[0]), id(b[1][0])}
    del x, a, b
    inside = Inside(ids)
    inside.see_tape(tape, 0)
    inside.follow()
    assert len(inside.nodes.keys() & ids) == 4
    assert inside.held_elsewhere() == []


@pytest.mark.parametrize("how", ["itself", "view", "list", "slice of a slice", "closure"])
def test_one_more_reference_counts(how):
    x, y = np.ones(4), np.ones(4)
    box = [y]
    tape = tape_of(x, box, np.zeros(2))
    holders = {
        "itself": lambda: y,
        "view": lambda: y[1:],
        "list": lambda: box,
        "slice of a slice": lambda: y[1:][1:],
        "closure": lambda: (lambda z: lambda: z)(y),
    }
    held = holders[how]()
    wanted = {id(x), id(y)}
    key = id(y)
    del x, y, box, holders
    inside = Inside(wanted)
    inside.see_tape(tape, 0)
    inside.follow()
    assert [id(z) for z in inside.held_elsewhere()] == [key]
    assert held is not None


def test_the_tape_from_an_entry_on():
    x = np.ones(4)
    tape = tape_of(x) + tape_of(x)
    key = id(x)
    del x
    inside = Inside({key})
    inside.see_tape(tape, 3)
    inside.follow()
    assert [id(z) for z in inside.held_elsewhere()] == [key]  # the first entry was not looked at


def test_tapes_say_the_same_in_any_order_of_their_entries():
    x, y = np.arange(3.0), np.arange(3.0) + 1.0
    one = [*tape_of(x, y, 2), 5, 0, 0.5, 6, 5, 0.25]
    other = [7, 0, 0.25, 8, 7, 0.5, *tape_of(x.copy(), y.copy(), 2)]
    assert fingerprint(one, {}) == fingerprint(other, {})


@pytest.mark.parametrize("change", ["slope", "entry", "array", "shift", "text", "rule"])
def test_tapes_that_say_something_else(change):
    def make(slope=0.5, more=(), y=1.0, k=2, text="a", rule=RULE):
        tape = [*tape_of(np.arange(3.0), np.full(3, y), (k, text)), 5, 0, slope, *more]
        tape[2].rule = rule
        return tape

    other = {
        "slope": make(slope=0.75),
        "entry": make(more=(6, 5, 0.5)),
        "array": make(y=2.0),
        "shift": make(k=3),
        "text": make(text="b"),
        "rule": make(rule=Rule(min, "full")),
    }[change]
    assert fingerprint(make(), {}) == fingerprint(make(), {})
    assert fingerprint(make(), {}) != fingerprint(other, {})


def test_what_is_in_active_arrays_does_not_count():
    x, y = np.zeros(3), np.ones(3)
    assert fingerprint(tape_of(x), {id(x): 0}) == fingerprint(tape_of(y), {id(y): 0})
    assert fingerprint(tape_of(x), {}) != fingerprint(tape_of(y), {})
