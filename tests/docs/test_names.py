"""What the pages call by name exists under that name: files and folders."""

import re

import pytest
from tests.docs.test_examples import FENCE, PAGES, ROOT

FOLDERS = ("src", "tests", "benchmarks", "examples", "docs")
PATHS = [*ROOT.glob("*.py"), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))]
FILES = [path.relative_to(ROOT).as_posix() for path in PATHS]
CODE = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"[\w./]*\w\.py\b")
OTHERS = {"model.py", "FILE.py", "scipy/linalg/_basic.py"}  # a user's, and a package's


def code_on(page):
    """The code in the prose of a page, with the number of its line."""
    text = FENCE.sub(lambda block: "\n" * block[0].count("\n"), page.read_text(encoding="utf-8"))
    for number, line in enumerate(text.splitlines(), 1):
        for code in CODE.findall(line):
            yield number, code


def is_file(name):
    return any(f"/{file}".endswith(f"/{name}") for file in FILES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_that_a_page_names_exists(page):
    named = [(line, name.lstrip("./")) for line, code in code_on(page) for name in FILE.findall(code)]
    assert [(line, name) for line, name in named if name not in OTHERS and not is_file(name)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_folder_that_a_page_names_exists(page):
    named = [(line, code) for line, code in code_on(page) if re.fullmatch(r"[\w./]*\w/", code)]
    assert [(line, name) for line, name in named if not any(f"/{name}" in f"/{file}" or (ROOT / name).is_dir() for file in FILES)] == []
