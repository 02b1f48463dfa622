"""unyt: arrays with units, a subclass of ndarray, over sympy."""

import warnings

import numpy as np
import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    unyt = pytest.importorskip("unyt")

X = np.array([1.0, 2.0, 3.5])


def test_a_quantity_is_converted(agrees):
    agrees(lambda v: float(((v * unyt.km) / (2 * unyt.s)).to("m/s")), 1.5)


def test_arrays_with_units(agrees):
    agrees(lambda v: float((v * unyt.km).sum().to("m")), X)
    agrees(lambda v: float(np.sum((v * unyt.km) ** 2).to_value("m**2")), X)
    agrees(lambda v: float(unyt.unyt_array(v, "km").max().to_value("m")), X)
