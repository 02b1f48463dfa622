"""The page of features: every row of the four documents that plaingrad grew from, where it is told and where tested."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "features.md"
ROWS = [f"{section}{n}" for section, count in [("A", 8), ("B", 11), ("C", 5), ("D", 8)] for n in range(1, count + 1)]


def rows():
    """The rows of the page: number, what it is, pages, and tests."""
    lines = PAGE.read_text().splitlines()
    return [tuple(cell.strip() for cell in line.split("|")[1:-1]) for line in lines if re.match(r"\| [A-D]\d", line)]


def test_every_feature_has_a_row():
    assert [row[0] for row in rows()] == ROWS


def test_every_row_is_tested_under_its_name():
    for number, _, _, files in rows():
        texts = [(ROOT / name).read_text() for name in re.findall(r"`([^`]*)`", files)]
        assert texts, number
        assert f"def test_{number.lower()}_" in texts[0], number


def test_every_row_is_told_in_a_page_that_is_there():
    for number, _, pages, _ in rows():
        names = re.findall(r"\{doc\}`([^`]*)`", pages)
        assert names, number
        for name in names:
            assert (PAGE.parent / f"{name}.md").resolve().is_file(), name
