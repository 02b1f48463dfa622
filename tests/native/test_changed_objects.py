"""Objects that are arguments and are changed, natively: they are left as a plain call leaves them."""

import copy
import math
from dataclasses import dataclass, field

import numpy as np
import plaingrad
import pytest


@dataclass
class Part:
    size: float


@dataclass
class Rod:
    length: float
    heats: np.ndarray
    spare: np.ndarray
    part: Part
    other: Part
    count: int = 0
    log: list = field(default_factory=list)
    names: dict = field(default_factory=dict)


def rod():
    return Rod(
        0.5, np.array([1.0, 2.0]), np.array([0.3, 0.4]), Part(0.7), Part(0.2), 3, [1.5], {"first": 2.0}
    )


def works(r, h):
    held = r.part
    for _ in range(3):
        r.length += h * math.sin(r.length)
    r.heats[0] += r.length
    r.heats, r.spare = r.spare, r.heats * held.size
    held.size = held.size * r.length  # held by nobody who is an argument, after the next line
    r.part, r.made = r.other, Part(r.length * held.size)
    if r.length > 0.1:
        r.count += 2
    r.is_long = r.length > 0.4
    r.log.append(r.length * h)
    r.log[0] = r.names["first"]
    r.names["second"] = [h, h]
    return r.length * held.size + float(np.sum(r.spare)) + r.made.size + r.names["first"] * r.log[1]


def state(r):
    fields = {k: vars(v) if isinstance(v, Part) else v for k, v in vars(r).items()}
    return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in fields.items()}


def test_an_object_is_left_as_a_plain_call_leaves_it_and_has_the_same_gradient():
    ours, theirs = rod(), rod()
    part, other, heats, spare = ours.part, ours.other, ours.heats, ours.spare
    value, found = plaingrad.value_and_grad(works, argnums=(0, 1), tier="native")(ours, 0.1)
    expected_value, expected = plaingrad.value_and_grad(works, argnums=(0, 1), tier="plain")(theirs, 0.1)
    assert value == pytest.approx(expected_value, rel=1e-13)
    assert found[1] == pytest.approx(expected[1], rel=1e-12)
    for name in ("length", "heats", "spare"):
        np.testing.assert_allclose(found[0][name], expected[0][name], rtol=1e-12)
    assert found[0].part.size == pytest.approx(expected[0].part.size, rel=1e-12)
    assert found[0].names["first"] == pytest.approx(expected[0].names["first"], rel=1e-12)
    mine, its = state(ours), state(theirs)
    assert mine.keys() == its.keys() and list(mine) == list(its)
    for name, value in its.items():
        assert type(mine[name]) is type(value), name
        if isinstance(value, (float, list)):
            np.testing.assert_allclose(mine[name], value, rtol=1e-13)
    assert ours.count == 5 and ours.is_long is True
    assert ours.part is other and ours.heats is spare and ours.spare is not heats
    assert part.size == pytest.approx(theirs.length * 0.7, rel=1e-13)  # changed, though the argument lost it
    assert heats[0] == pytest.approx(1.0 + theirs.length, rel=1e-13)
    again = plaingrad.grad(works, tier="native")(rod(), 0.1)
    assert again.length == found[0].length


def grows(r, h):
    r.length = r.length * h
    if r.length < 0.0:
        raise ValueError(f"short: {r.length}")
    return r.length * r.heats[0] * Part(r.length).size


def test_other_operators_leave_it_too_and_an_exception_what_python_leaves():
    first = Rod(0.5, np.array([1.0, 2.0]), np.ones(1), Part(0.7), Part(0.2))
    r = copy.deepcopy(first)
    y, pull = plaingrad.vjp(grows, r, 3.0, tier="native")
    bar, h_bar = pull(1.0)
    assert (y, r.length, bar.length, h_bar) == (2.25, 1.5, 9.0, 1.5)
    r = copy.deepcopy(first)
    y, dot = plaingrad.jvp(grows, (r, 3.0), (None, 1.0), tier="native")
    assert (y, r.length, dot) == (2.25, 1.5, 1.5)
    with pytest.raises(ValueError, match=r"short: -1\.5"):
        plaingrad.grad(grows, tier="native")(r, -1.0)
    assert r.length == -1.5
    assert first.length == 0.5


class Pendulum:
    def __init__(self):
        self.angle, self.damping, self.steps = 0.7, np.array([1.2, 0.4]), 0

    def step(self, h):
        self.angle = self.angle + h * np.sin(self.angle) * self.damping[0]
        self.damping[1] = self.damping[1] * self.angle
        self.steps += 1


def swings(p, h):
    total = 0.0
    for _ in range(3):
        p.step(h)
        total += p.angle**2 * p.damping[1]
    return total


@pytest.mark.parametrize("tier", ["native", "plain"])
def test_second_derivatives_and_pullbacks_leave_it_after_one_call_with_its_counts_whole(tier):
    direction = {"angle": 1.0, "damping": np.array([0.5, 0.2])}
    called = Pendulum()
    y = swings(called, 0.3)

    def check(p):
        assert p.angle == pytest.approx(called.angle, rel=1e-14) and p.damping[0] == 1.2
        assert p.damping[1] == pytest.approx(called.damping[1], rel=1e-14)
        assert type(p.steps) is int and p.steps == 3

    p = Pendulum()
    bar, h_bar = plaingrad.hvp(swings, (p, 0.3), (direction, 0.1), tier=tier)
    check(p)
    assert bar.angle == pytest.approx(88.662777607121, rel=1e-9)  # differences of gradients of the plain tier
    assert h_bar == pytest.approx(148.88363571763915, rel=1e-9)
    p = Pendulum()
    found, pull = plaingrad.vjp(swings, p, 0.3, tier=tier)
    check(p)
    assert found == pytest.approx(y, rel=1e-14) and pull(1.0)[1] == pytest.approx(19.492004316238987, rel=1e-12)
    check(p)


TABLE = [1.0, 2.0]


def fills(table, x):
    table[0] = Part(x).size * 3.0
    return table[0] * TABLE[0]


def test_a_list_that_is_also_read_from_outside_is_refused_if_it_is_changed():
    own = [1.0, 2.0]
    assert plaingrad.grad(fills, argnums=1, tier="native")(own, 0.5) == 3.0
    assert own == [1.5, 2.0]
    with pytest.raises(plaingrad.NativeError, match="from outside"):
        plaingrad.grad(fills, argnums=1, tier="native")(TABLE, 0.5)
    assert TABLE == [1.0, 2.0]


def lets_go(holder, x):
    old = holder.size
    holder.size = Part(1.0)
    old.size = x * 5.0


def let_go(x):
    holder = Part(Part(x))
    part = holder.size
    lets_go(holder, x)
    return part.size * holder.size.size


def test_what_a_callee_changes_in_an_object_that_its_argument_loses_is_seen():
    assert plaingrad.grad(let_go, tier="native")(0.7) == 5.0


def goes_through_what_grows(x):
    parts = [Part(x), Part(2.0 * x)]
    for part in parts:
        if len(parts) < 6:
            parts.append(Part(part.size * x))
    return sum(part.size for part in parts)


def test_a_list_that_grows_while_a_loop_goes_through_it_is_refused():
    with pytest.raises(plaingrad.NativeError, match="gone through"):
        plaingrad.grad(goes_through_what_grows, tier="native")(0.7)
