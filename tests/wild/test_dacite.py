"""dacite: nested dataclasses from dictionaries, with types checked and cast."""

import dataclasses

import pytest

dacite = pytest.importorskip("dacite")


@dataclasses.dataclass
class Inner:
    scale: float
    name: str = "a"


@dataclasses.dataclass
class Outer:
    rate: float
    inner: Inner
    rates: list[float]


def test_nested_dataclasses(agrees):
    def model(x, rates):
        made = dacite.from_dict(Outer, {"rate": x, "inner": {"scale": 2.0 * x}, "rates": rates})
        return made.rate * made.inner.scale + sum(r * r for r in made.rates)

    agrees(model, 1.5, [1.0, 2.0])


def test_casts(agrees):
    config = dacite.Config(cast=[float], type_hooks={str: str.lower})
    agrees(lambda x: dacite.from_dict(Inner, {"scale": x, "name": "B"}, config).scale ** 2, 1.5)
