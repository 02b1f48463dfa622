"""quantities: arrays with units, a subclass of ndarray with its own operators."""

import warnings

import numpy as np
import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pq = pytest.importorskip("quantities")

X = np.array([1.0, 2.0, 3.5])


def test_units_are_rescaled(agrees):
    agrees(lambda v: float((v * pq.km).rescale("m")), 1.5)
    agrees(lambda v: float((v * pq.km).sum().rescale("m")), X)


def test_products_of_units(agrees):
    agrees(lambda v: float(((v * pq.km) * (v * pq.s)).sum().rescale("m*s").magnitude), X)
