"""The table of types says what happens."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHEAP = ("float", "complex", "Fraction", "Decimal", "numpy", "array", "masked", "structured", "memoryview", "mpmath", "gmpy2")


def test_the_lines_about_types_that_are_cheap_to_import_are_as_they_are_tried():
    pytest.importorskip("mpmath")
    spec = importlib.util.spec_from_file_location("types_table", ROOT / "docs" / "types_table.py")
    table = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(table)
    table.ROWS = [row for row in table.ROWS if row[0].startswith(CHEAP)]
    page = table.PAGE.read_text(encoding="utf-8").splitlines()
    lines = list(table.rows())
    assert len(lines) > 12 and [line for line in lines if line not in page] == []
