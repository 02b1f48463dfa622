"""The last line of a message is a place that exists: the section on that error in the page of errors."""

import datetime
import inspect
import pickle
import re
from pathlib import Path

import pytest

import plaingrad
from plaingrad import errors

SOURCES = Path(plaingrad.__file__).parent


def place(error):
    found = re.search(r"See docs: (.+):(\d+)$", str(error))
    assert found, str(error)
    return Path(found[1]).read_text(encoding="utf-8").splitlines()[int(found[2]) - 1]


def test_a_message_ends_with_a_file_and_line_that_open():
    with pytest.raises(plaingrad.ArgumentError) as caught:
        plaingrad.grad(lambda x: x)("rate")
    assert place(caught.value) == "(argument)="
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is plaingrad.ArgumentError and str(again) == str(caught.value)


def test_a_warning_ends_with_a_file_and_line_that_open():
    with pytest.warns(errors.TruncationWarning) as warned:
        plaingrad.grad(lambda x: datetime.timedelta(seconds=int(x * 1e3)).total_seconds() * x)(3.1415)
    assert place(warned[0].message) == "(round-trip)="


def test_every_section_that_a_message_names_exists():
    named = {
        anchor
        for path in SOURCES.rglob("*.py")
        for anchor in re.findall(r"errors#([a-z-]+)", path.read_text(encoding="utf-8"))
    }
    assert len(named) > 8
    for anchor in named:
        assert place(errors.PlaingradError(f"why.\n  See docs: errors#{anchor}")) == f"({anchor})="


def test_messages_of_other_form_stay_as_they_are():
    assert str(errors.RuleError("errors#rule")) == "errors#rule"
    assert str(errors.RuleError("See docs: errors#nowhere")) == "See docs: errors#nowhere"
    assert errors.RuleError("a", 2).args == ("a", 2)


def test_an_installed_package_has_the_page_beside_the_errors():
    tomllib = pytest.importorskip("tomllib")
    project = SOURCES.parent.parent / "pyproject.toml"
    if not project.exists():
        pytest.skip("an installed package")
    built = tomllib.loads(project.read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    shipped = SOURCES.parent / built["force-include"]["docs/reference/errors.md"]
    assert str(shipped) in errors._PAGES
    assert "missing-rule" in errors._sections()
    assert inspect.getdoc(errors.PlaingradError)
