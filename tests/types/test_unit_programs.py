"""Formulas of physics over quantities of pint, astropy and unyt: every derivative has its unit, to second order.

The truth is the same formula over plain numbers in SI units, by differences of high order, and the units of quotients.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.types.test_units import Kit

from plaingrad import units

#: name: (formula of q and of a maker of constants, the unit of q, its size in SI units)
FORMULAS = {
    "kinetic energy": (lambda q, c: 0.5 * c(3.0, "kg") * q**2, "m/s", 2.0),
    "potential energy": (lambda q, c: -c(5.0, "N*m**2") / q, "m", 1.5),
    "free fall": (lambda q, c: c(2.0, "m") - 0.5 * c(9.81, "m/s**2") * q * q, "s", 0.7),
    "ohm": (lambda q, c: c(230.0, "V") ** 2 / (q + c(5.0, "ohm")), "ohm", 12.0),
    "parallel resistors": (lambda q, c: 1 / (1 / q + 1 / c(5.0, "ohm")), "ohm", 12.0),
    "pendulum": (lambda q, c: 2 * math.pi * (q / c(9.81, "m/s**2")) ** 0.5, "m", 0.8),
    "ideal gas": (lambda q, c: c(2.0, "mol") * c(8.314, "J/(mol*K)") * c(300.0, "K") / q, "m**3", 0.4),
    "van der waals": (lambda q, c: c(900.0, "J") / (q - c(0.05, "m**3")) - c(7.0, "Pa*m**6") / q**2, "m**3", 0.4),
    "lens": (lambda q, c: 1 / (1 / c(0.1, "m") - 1 / q), "m", 0.5),
    "drag": (lambda q, c: 0.5 * c(1.2, "kg/m**3") * q**2 * c(0.3, "m**2") * q / abs(q), "m/s", 3.0),
    "stefan": (lambda q, c: c(5.67e-8, "W/(m**2*K**4)") * (q**4 - c(280.0, "K") ** 4), "K", 310.0),
    "ratio": (lambda q, c: (q / c(2.0, "m")) ** 3 + 1, "m", 1.5),
    "spring by steps": (lambda q, c: spring(q, c), "m", 0.3),
    "largest": (lambda q, c: max(q * q, c(1.0, "m**2")) * q, "m", 1.5),
    "branches": (lambda q, c: q**2 if q > c(1.0, "m") else q * c(1.0, "m"), "m", 0.5),
    "sum": (lambda q, c: sum((q * k for k in range(1, 4)), c(0.0, "m")) * q, "m", 1.5),
    "list": (lambda q, c: [q * q, q * c(3.0, "m")][0] + [q * q, q * c(3.0, "m")][1], "m", 1.5),
    "dictionary": (lambda q, c: {"speed": q / c(2.0, "s")}["speed"] ** 2, "m", 1.5),
    "in other units": (lambda q, c: (q + c(1.0, "km")) ** 2, "m", 1500.0),
    "polynomial": (lambda q, c: c(2.0, "kg/m**3") * q**3 - c(1.0, "kg/m**2") * q**2 + c(4.0, "kg/m") * q, "m", 1.2),
}  # fmt: skip
TWICE = ("kinetic energy", "pendulum", "spring by steps", "polynomial")


def spring(q, c):
    x, v, dt, rate = q, c(0.0, "m/s"), c(0.1, "s"), c(4.0, "1/s**2")
    for _ in range(5):
        v = v - rate * x * dt
        x = x + v * dt
    return x * v


SI = {"km": 1e3}


def plain(number, unit):
    return number * SI.get(unit, 1.0)


def differences(f, x, h):
    """f'(x) and f''(x), of eighth order."""
    first = ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280))
    second = ((1, 8 / 5), (2, -1 / 5), (3, 8 / 315), (4, -1 / 560))
    slope = sum(w * (f(x + k * h) - f(x - k * h)) for k, w in first) / h
    return slope, (sum(w * (f(x + k * h) + f(x - k * h)) for k, w in second) - 205 / 72 * f(x)) / h**2


@pytest.mark.parametrize("package", ["pint", "astropy", "unyt"])
def test_formulas_have_derivatives_in_their_units(package):
    kit = Kit(package)

    def magnitude(quantity):
        """In SI units, whatever they are."""
        if package == "pint":
            return float(quantity.to_base_units().magnitude)
        return float(quantity.si.value) if package == "astropy" else float(quantity.in_mks().value)

    for name, (formula, unit, x) in FORMULAS.items():
        q = kit(x, unit)
        value, slope = units.value_and_grad(lambda q, f=formula: f(q, kit))(q)
        slopes = [(slope, value / q)]
        truth, curvature = differences(lambda x, f=formula: f(x, plain), x, 0.02 * x)
        np.testing.assert_allclose(magnitude(value), formula(x, plain), rtol=1e-12, err_msg=name)
        np.testing.assert_allclose(magnitude(slope), truth, rtol=1e-8, err_msg=name)
        if name in TWICE[: 1 if package == "unyt" else None]:  # whose arithmetic is many calls
            second = units.grad(units.grad(lambda q, f=formula: f(q, kit)))(q)
            limit = 1e-9 * abs(truth / x)
            np.testing.assert_allclose(magnitude(second), curvature, rtol=1e-6, atol=limit, err_msg=name)
            slopes.append((second, value / q / q))
        for found, ratio in slopes:
            assert math.isfinite(magnitude(found + ratio)), name  # which have one unit, or cannot be added
