"""Arrays with units of astropy, unyt, quantities and pint: values, units and derivatives against the plain call.

They run in checked mode, one in two for each package and one in four for pint, whose registry is large; all with
PLAINGRAD_TEST_ALL=1.
"""

import contextlib
import functools
import importlib

import numpy as np
import pytest
from tests.sampling import is_in_sample

from plaingrad import grad, jvp, value_and_grad
from plaingrad.testing import checked

PACKAGES = ["astropy", "unyt", "quantities", "pint"]
X = np.array([[1.3, 2.1, 0.7], [0.4, 1.9, 2.6]])


class Kit:
    """One package: how to make lengths, seconds and plain numbers of what it makes."""

    def __init__(self, name):
        self.name = name
        if name == "astropy":
            pytest.importorskip("astropy")
            self.package = importlib.import_module("astropy.units")
        else:
            self.package = pytest.importorskip(name)
        if name == "pint":
            self.registry = self.package.UnitRegistry()

    def quantity(self, x, unit):
        if self.name == "astropy":
            return x * getattr(self.package, unit)
        if self.name == "unyt":
            return self.package.unyt_array(x, unit)
        return (self.registry if self.name == "pint" else self.package).Quantity(x, unit)

    def converted(self, q, unit):
        if self.name == "quantities":
            return q.rescale(unit)
        return q.to(unit)

    def numbers(self, q):
        if self.name == "pint":
            return np.asarray(q.magnitude) if hasattr(q, "magnitude") else np.asarray(q)
        return q.view(np.ndarray) if isinstance(q, np.ndarray) else np.asarray(q)

    def unit(self, q):
        return str(getattr(q, "units", getattr(q, "unit", None)))


kit_of = functools.cache(Kit)


@pytest.fixture(params=PACKAGES)
def kit(request):
    return kit_of(request.param)


PROGRAMS = {
    "kinetic energy": lambda kit, x: 0.5 * kit.quantity(2.0, "kg") * (kit.quantity(x, "km") / kit.quantity(3.0, "s")) ** 2,
    "converted": lambda kit, x: kit.converted(kit.quantity(x, "km") * kit.quantity(x, "km"), "m**2" if kit.name != "astropy" else "m2"),
    "sum": lambda kit, x: np.sum(kit.quantity(x, "m")),
    "method": lambda kit, x: kit.quantity(x, "m").mean(),
    "std": lambda kit, x: kit.quantity(x, "m").std(axis=0) if kit.name != "quantities" else kit.quantity(x, "m").mean(axis=0),
    "sqrt": lambda kit, x: np.sqrt(kit.quantity(x, "m") * kit.quantity(x, "m") + kit.quantity(1.0, "m") ** 2),
    "ratio": lambda kit, x: np.exp(kit.quantity(x, "m") / kit.quantity(2.0, "m")),
    "reshape": lambda kit, x: kit.quantity(x, "m").reshape(3, 2),
    "index": lambda kit, x: kit.quantity(x, "m")[1, 1:],
    "element": lambda kit, x: kit.quantity(x, "m")[0, 2],
    "loop": lambda kit, x: [row * 2.0 for row in kit.quantity(x, "m")][1],
    "written": lambda kit, x: written(kit.quantity(1.0 * x, "m")),
    "in place": lambda kit, x: in_place(kit.quantity(1.0 * x, "m")),
    "transposed": lambda kit, x: kit.quantity(x, "m").T,
    "maximum": lambda kit, x: np.maximum(kit.quantity(x, "m"), kit.quantity(1.5, "m")),
    "cumsum": lambda kit, x: np.cumsum(kit.quantity(x, "m"), axis=1),
    "negative": lambda kit, x: abs(-kit.quantity(x, "m")),
}


def written(q):
    q[0] = q[1]
    return q


def in_place(q):
    q += q
    q *= 3.0
    return q


@pytest.fixture(autouse=True)
def in_checked_mode(request):
    """As in this folder, but for a sample of the programs."""
    name = request.node.name
    with checked() if is_in_sample(name, 4 if "[pint-" in name else 2) else contextlib.nullcontext():
        yield


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore")
def test_units_values_and_derivatives_are_those_of_the_plain_call(kit, name):
    seen = []

    def f(x):
        q = PROGRAMS[name](kit, x)
        seen.append((type(q).__name__, kit.unit(q)))
        numbers = kit.numbers(q)
        return float(np.sum(numbers * numbers * np.arange(1.0, 1.0 + numbers.size).reshape(numbers.shape)))

    value = f(X.copy())
    step, direction = 1e-6, np.cos(np.arange(6.0)).reshape(2, 3)
    slope = (f(X + step * direction) - f(X - step * direction)) / (2 * step)
    y, x_bar = value_and_grad(f)(X.copy())
    z, z_dot = jvp(f, (X.copy(),), (direction,))
    assert y == value and z == value
    assert seen == seen[:1] * len(seen)
    assert np.sum(x_bar * direction) == pytest.approx(slope, rel=1e-5)
    assert float(z_dot) == pytest.approx(slope, rel=1e-5)


def test_astropy_square_kilometres_are_square_metres():
    units = pytest.importorskip("astropy.units")

    def area(x):
        return ((x * units.km) ** 2).to(units.m**2).value

    assert value_and_grad(area)(2.5) == (6.25e6, 5e6)
    assert grad(lambda x: np.sum((x * units.km).to_value(units.m)))(np.ones(2)).tolist() == [1000.0, 1000.0]


def test_an_astropy_quantity_as_argument_has_a_plain_gradient():
    units = pytest.importorskip("astropy.units")
    q = np.array([1.0, 2.0]) * units.m

    def f(q):
        assert q.unit == units.m
        return (q * q).sum().value

    q_bar = grad(f)(q)
    assert type(q_bar) is np.ndarray and q_bar.tolist() == [2.0, 4.0]
    with pytest.raises(units.UnitConversionError):
        grad(lambda q: (q + 1.0 * units.s).sum().value)(q)
