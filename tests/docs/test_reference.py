"""The reference knows every public name, and no other."""

import importlib
import re
from pathlib import Path

import plaingrad

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"
API = (REFERENCE / "api.md").read_text(encoding="utf-8")


def test_every_public_name_is_on_the_page():
    errors = (REFERENCE / "errors.md").read_text(encoding="utf-8")
    unknown = [name for name in plaingrad.__all__ if not re.search(rf"\b{name}\b", API + errors)]
    assert unknown == []


def test_every_name_on_the_page_exists():
    for path in re.findall(r"autofunction:: ([\w.]+)", API):
        module, _, name = path.rpartition(".")
        assert callable(getattr(importlib.import_module(module), name)), path


def test_the_public_names_are_in_order():
    assert plaingrad.__all__ == sorted(plaingrad.__all__)
