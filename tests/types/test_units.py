"""Gradients in their units, with pint, astropy and unyt: closed forms, second order, arrays."""

import importlib

import numpy as np
import pytest

import plaingrad
from plaingrad import units


class Kit:
    def __init__(self, name):
        self.name = name
        if name == "astropy":
            pytest.importorskip("astropy")
            self.package = importlib.import_module("astropy.units")
        else:
            self.package = pytest.importorskip(name)
        if name == "pint":
            self.registry = self.package.UnitRegistry()

    def __call__(self, x, unit):
        if self.name == "pint":
            return self.registry.Quantity(x, unit)
        if self.name == "astropy":
            return x * self.package.Unit(unit.replace("**", ""))
        return (self.package.unyt_array if np.ndim(x) else self.package.unyt_quantity)(x, unit)

    def same(self, found, x, unit):
        """Whether a quantity is x in a unit."""
        expected = self(x, unit)
        ratio = found / expected
        value = ratio.to("").magnitude if self.name == "pint" else ratio.to("").value
        assert units.unit_of(found) is not None
        np.testing.assert_allclose(value, np.ones(np.shape(x)), rtol=1e-14)
        return True


@pytest.fixture(params=["pint", "astropy", "unyt"])
def kit(request):
    return Kit(request.param)


def test_a_gradient_has_the_unit_of_the_result_over_that_of_the_argument(kit):
    mass = kit(3.0, "kg")
    energy = lambda v: 0.5 * mass * v**2
    v = kit(2.0, "m/s")
    y, slope = units.value_and_grad(energy)(v)
    assert kit.same(y, 6.0, "J") and kit.same(slope, 6.0, "kg*m/s")
    assert kit.same(units.grad(units.grad(energy))(v), 3.0, "kg")
    assert kit.same(v, 2.0, "m/s")


def test_several_arguments_arrays_and_conversions(kit):
    x, t = kit(np.array([1.0, 2.0, 4.0]), "km"), kit(2.0, "s")
    f = lambda x, t: ((x.to("m") / t) ** 2).sum()
    x_bar, t_bar = units.grad(f, argnums=(0, -1))(x, t)
    meters = np.array([1e3, 2e3, 4e3])
    assert kit.same(x_bar, 2 * meters / 4.0, "m/s**2") and kit.same(t_bar, -2 * (meters**2).sum() / 8.0, "m**2/s**3")
    assert isinstance(units.magnitude_of(x_bar), np.ndarray)


def test_results_and_arguments_without_unit(kit):
    x = kit(2.0, "m")
    ratio = units.grad(lambda x: units.magnitude_of((x / kit(4.0, "m")) ** 2))(x)
    assert kit.same(ratio, 0.25, "1/m")
    assert kit.same(units.grad(lambda a: a * x**2)(3.0), 4.0, "m**2")
    assert units.grad(lambda a: a * a)(3.0) == plaingrad.grad(lambda a: a * a)(3.0) == 6.0


def test_what_does_not_fit_is_said(kit):
    with pytest.raises(plaingrad.ArgumentError, match="argnums has 1"):
        units.grad(lambda x: x, argnums=1)(kit(1.0, "m"))
    with pytest.raises(plaingrad.NonScalarOutputError):
        units.grad(lambda x: x * 2)(kit(np.ones(2), "m"))
    with pytest.raises(Exception, match="(?i)convert|dimension"):
        units.grad(lambda x: x + kit(1.0, "s"))(kit(1.0, "m"))
