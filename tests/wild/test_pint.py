"""pint: numbers with units, a class of deep machinery around every operation."""

import math
import warnings

import pytest

import plaingrad

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pint = pytest.importorskip("pint")
    units = pint.UnitRegistry()


def test_a_speed_in_other_units():
    def speed(metres, seconds):
        return (units.Quantity(metres, "m") / units.Quantity(seconds, "s")).to("km/h").magnitude

    gradients = plaingrad.grad(speed, (0, 1))(100.0, 9.58)
    assert gradients == pytest.approx((3.6 / 9.58, -3.6 * 100 / 9.58**2))


def test_a_pendulum(agrees):
    def period(centimetres, g):
        length = centimetres * units.cm
        gravity = units.Quantity(g, "m/s**2")
        return (2 * math.pi * (length / gravity) ** 0.5).to("ms").magnitude

    agrees(period, 40.0, 9.81)


def test_temperatures_have_offsets(agrees):
    agrees(lambda c: units.Quantity(c, "degC").to("degF").magnitude ** 2, 21.0)


def test_quantities_compared_and_summed(agrees):
    def total(a, b):
        lengths = [units.Quantity(a, "m"), units.Quantity(b, "inch"), units.Quantity(3.0, "cm")]
        return (sum(lengths[1:], lengths[0]) * max(lengths)).to("cm**2").m

    agrees(total, 0.2, 5.0)
