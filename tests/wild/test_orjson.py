"""orjson: JSON in Rust. Constants are free; active numbers are refused on the way out."""

import pytest

orjson = pytest.importorskip("orjson")


def test_constants(agrees):
    agrees(lambda x: x * orjson.loads(b"[1.5, 2.5]")[0] + len(orjson.dumps({"a": 1.5})) * x, 2.0)


def test_active_numbers_are_refused(refuses):
    refuses(lambda x: orjson.loads(orjson.dumps({"x": x}))["x"], 1.5123, called="orjson.dumps")
    refuses(lambda v: orjson.loads(orjson.dumps(v))[0], [1.5, 2.5], called="orjson.dumps")
