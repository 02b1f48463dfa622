"""The explanation of the native tier names what the code does, in its order."""

import pathlib
import re

import pytest

pytest.importorskip("numba")

from plaingrad.native.loops import forms
from plaingrad.native.finish import pipeline
from plaingrad.native.lowering import prepare

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "explanation" / "native-tier.md"


def documented(heading):
    """The functions in the first column of the table under a heading of the page, in order."""
    text = PAGE.read_text(encoding="utf-8")
    section = text[text.index(heading) :].split("\n### ")[0].split("\n## ")[0]
    return re.findall(r"^\| `(\w+\.\w+)`", section, re.MULTILINE)


def named(functions):
    """module.function of each."""
    return [f"{f.__module__.rpartition('.')[2]}.{f.__name__}" for f in functions]


@pytest.mark.parametrize(
    ("heading", "passes"),
    [
        ("### Made ready", prepare.PASSES),
        ("### Polished", pipeline.PASSES),
        ("### Special forms of loops", forms.FORMS),
    ],
    ids=["prepare", "polish", "loop_forms"],
)
def test_the_page_lists_the_passes_in_the_order_of_the_code(heading, passes):
    assert documented(heading) == named(passes)
