"""jsonschema: validation asks about numbers and keeps none."""

import pytest

jsonschema = pytest.importorskip("jsonschema")

SCHEMA = {
    "type": "object",
    "properties": {
        "rate": {"type": "number", "minimum": 0, "exclusiveMaximum": 10},
        "rates": {"type": "array", "items": {"type": "number"}, "minItems": 1},
    },
    "required": ["rate"],
}


def test_a_validated_document(agrees):
    def model(rate, rates):
        jsonschema.validate({"rate": rate, "rates": rates}, SCHEMA)
        return rate * sum(r * r for r in rates)

    agrees(model, 1.5, [1.0, 2.0])


def test_what_is_invalid_raises_as_in_a_plain_call():
    import plaingrad

    def model(rate):
        jsonschema.validate({"rate": rate}, SCHEMA)
        return rate

    for call in (lambda: model(11.0), lambda: plaingrad.grad(model)(11.0)):
        with pytest.raises(jsonschema.ValidationError, match="11.0 is greater than or equal to the maximum of 10"):
            call()
