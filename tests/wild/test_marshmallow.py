"""marshmallow: schemas that validate and convert numbers with Python code; numbers from text are refused."""

import pytest

import plaingrad

marshmallow = pytest.importorskip("marshmallow")
from marshmallow import fields, validate  # noqa: E402


class Rates(marshmallow.Schema):
    rate = fields.Float(validate=validate.Range(min=0.0))
    many = fields.List(fields.Float())


def test_loading_and_dumping_numbers(agrees):
    agrees(lambda x: Rates().load({"rate": x})["rate"] ** 2, 1.5)
    agrees(lambda x: Rates().dump({"rate": x})["rate"] ** 2, 1.5)
    agrees(lambda v: sum(z * z for z in Rates().load({"many": v})["many"]), [1.5, 2.5])


def test_numbers_from_text_are_refused(refuses):
    error = plaingrad.errors.RoundTripError
    for f in (
        lambda x: Rates().load({"rate": str(x)})["rate"],
        lambda x: Rates().loads(Rates().dumps({"rate": x}))["rate"],
    ):
        with pytest.raises(error, match=r"test_marshmallow\.py:\d+"):
            plaingrad.grad(f)(1.5123)
