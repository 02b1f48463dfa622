"""cattrs: structures from dictionaries and back, by functions that it generates."""

import dataclasses

import attrs
import pytest

cattrs = pytest.importorskip("cattrs")


@attrs.define
class Model:
    rate: float
    rates: list[float]


@dataclasses.dataclass
class Point:
    x: float
    y: tuple[float, float] = (1.0, 2.0)


def test_structuring(agrees):
    agrees(lambda x: cattrs.structure({"rate": x, "rates": [x, 2.0]}, Model).rates[0] ** 2, 1.5)
    agrees(lambda x: cattrs.structure({"x": x, "y": (x, 3.0)}, Point).y[0] * x, 1.5)


def test_unstructuring(agrees):
    agrees(lambda x: cattrs.unstructure(Model(x, [x, x]))["rates"][1] ** 2, 1.5)
    agrees(lambda x: cattrs.structure(cattrs.unstructure(Model(x, [x])), Model).rate ** 3, 1.5)
