"""attrs: classes whose methods are generated and compiled from text, with slots, converters and validators."""

import math

import pytest

attrs = pytest.importorskip("attrs")

import plaingrad  # noqa: E402


@attrs.define
class Spring:
    stiffness: float = attrs.field(converter=float, validator=attrs.validators.gt(0))
    length: float = attrs.field(default=1.0)
    name: str = "spring"
    history: list = attrs.field(factory=list)

    def energy(self, x):
        self.history.append(x)
        return 0.5 * self.stiffness * (x - self.length) ** 2


@attrs.frozen(order=True)
class Point:
    x: float
    y: float

    @classmethod
    def polar(cls, r, angle):
        return cls(r * math.cos(angle), r * math.sin(angle))


def test_a_slotted_class_with_converters_and_validators(agrees):
    agrees(lambda k, length, x: Spring(k, length).energy(x) + Spring(stiffness=k * k).energy(x), 2.0, 0.7, 1.9)


def test_frozen_points_that_are_sorted_and_evolved(agrees):
    def f(r, angle):
        points = sorted(Point.polar(r * k, angle * k) for k in (1, 2, 3))
        moved = attrs.evolve(points[0], y=points[0].x * 2.0)
        return moved.y * points[1].x + sum(attrs.astuple(points[2]))

    agrees(f, 1.3, 0.4)


def test_the_gradient_of_an_attrs_object_has_its_fields():
    gradient = plaingrad.grad(lambda spring: spring.energy(3.0))(Spring(2.0, 0.5))
    assert gradient.stiffness == pytest.approx(0.5 * 2.5**2)
    assert gradient.length == pytest.approx(-2.0 * 2.5)
    assert gradient.name is None
