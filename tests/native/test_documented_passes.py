"""The explanation of the native tier names what the code does, in its order."""

import pathlib
import re

import pytest

pytest.importorskip("numba")

from plaingrad.native.loops.forms import FORMS as LOOP_FORMS
from plaingrad.native.finish import pipeline
from plaingrad.native.lowering import prepare

FORMS = (*LOOP_FORMS.loops, *LOOP_FORMS.runs)
PAGES = pathlib.Path(__file__).parents[2] / "docs" / "explanation"


def documented(heading):
    """(function, file) in the first two columns of the table under a heading of the page, in order."""
    text = (PAGES / "native-tier.md").read_text(encoding="utf-8")
    section = text[text.index(heading) :].split("\n### ")[0].split("\n## ")[0]
    return re.findall(r"^\| `(\w+)` \| `(\w+/\w+)\.py` \|", section, re.MULTILINE)


def named(functions):
    """(function, file) of each."""
    return [(f.__name__, "/".join(f.__module__.split(".")[2:])) for f in functions]


@pytest.mark.parametrize(
    ("heading", "passes"),
    [
        ("### Lowered", prepare.PASSES),
        ("### Finished", pipeline.PASSES),
    ],
    ids=["lowering", "finish"],
)
def test_the_page_lists_the_passes_in_the_order_of_the_code(heading, passes):
    assert documented(heading) == named(passes)


def test_the_page_lists_the_forms_of_loops_with_what_they_need_and_save():
    text = (PAGES / "native-loops.md").read_text(encoding="utf-8")
    section = text[text.index("### Special forms of loops") :]
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|", section, re.MULTILINE)[1 : 1 + len(FORMS)]
    assert rows == [(form.name, form.needs, form.saves) for form in FORMS]
