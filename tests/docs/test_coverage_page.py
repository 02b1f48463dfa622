"""What the page of what is covered says of a function holds for the libraries that are installed."""

import re
from importlib.metadata import version
from pathlib import Path

import pytest
from tests.sampling import ALL

from plaingrad.cli import survey

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "coverage.md"
NAME = re.compile(r"`([\w.]+)`")
RIGHT = ("rule", "followed", "no tangent", "checked")
CHOSEN = ("numpy.fft", "numpy.linalg", "scipy.linalg", "scipy.fft", "scipy.ndimage")


def rows():
    """(module, what is said, the names of which it is said) for each row of the page's tables of names."""
    text = PAGE.read_text(encoding="utf-8")
    for part in text.split("\n## ")[1:]:
        module, _, table = part.partition("\n")
        for line in table.splitlines():
            said, names = (line.strip("|").split(" | ", 1) + [""])[:2] if line.startswith("| ") else ("", "")
            if names:
                names = re.sub(r" \(.*?\)(?=,|$)", "", names.strip(" |"))  # the uses that are refused
                yield module, said.strip(), NAME.findall(names)


def test_the_figures_of_the_page_are_those_of_its_tables():
    text = PAGE.read_text(encoding="utf-8")
    right = int(re.search(r"\*\*(\d+) are right", text)[1])
    checked = sum(len(names) for module, said, names in rows() if "followed, checked" in said or said == "rule, checked")
    assert right == checked > 600
    assert "wrong in" not in text


def of_page(library):
    """The version that the page is about, without its last part."""
    found = re.search(rf"{library} (\d+\.\d+)", PAGE.read_text(encoding="utf-8"))
    return found[1]


def test_what_is_said_to_be_differentiated_is_not_refused():
    pytest.importorskip("scipy")
    for library in ("NumPy", "SciPy"):
        if not version(library.lower()).startswith(of_page(library) + "."):
            pytest.skip(f"the page is about another {library}")
    modules = {module for module, _, _ in rows()}
    for module in modules if ALL else CHOSEN:
        try:
            entries = survey.survey(survey.found(module)[0])
        except survey.UsageError:
            continue  # this version does not have it
        now = {entry.name: entry for entry in entries}
        for of, said, names in rows():
            if of == module and said.startswith(RIGHT) and "refused" not in said:
                for name in names:
                    entry = now.get(f"{module}.{name}")
                    assert entry is None or entry.status != "refused", (module, name, entry.verdict.why)


def test_every_name_stands_in_one_row():
    for module in {module for module, _, _ in rows()}:
        names = [name for of, _, names in rows() if of == module for name in names]
        assert len(names) == len(set(names))
