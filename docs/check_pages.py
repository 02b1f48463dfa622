"""Reads the built pages as a reader does, and says what is wrong with them.

`make docs` builds the pages, then runs `python docs/check_pages.py docs/_build/html`.
"""

from __future__ import annotations

import html
import json
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag

import plaingrad
from plaingrad import errors

PUBLIC = [f"plaingrad.{name}" for name in plaingrad.__all__] + ["plaingrad.errors.TruncationWarning"]
ERRORS = [name for name in vars(errors) if name.endswith(("Error", "Warning"))]
TAG = re.compile(r"<[^>]*>")
SET_AS_CODE = re.compile(r"<(pre|code)\b.*?</\1>", re.DOTALL)
HEADING = re.compile(r"<h([1-6])\b[^>]*>(.*?)</h\1>", re.DOTALL)
ROOT = Path(__file__).resolve().parents[1]
SOUGHT = re.compile(r'""".* Search: (.+)\. Page: docs/(\S+)\.md\."""')
ALSO_SOUGHT = {
    "optimize": ("how-to/fit-a-model", "reference/scipy-optimize"),
    "nan": ("how-to/find-a-nan",),
    "ODE": ("how-to/fit-a-model", "reference/scipy-integrate"),
    "pandas": ("how-to/pandas",),
}
SEEN_AT_ONCE = 5  # results of a search that one sees without scrolling
IN_TITLE, IN_TEXT, PART_OF_TITLE, PART_OF_TEXT, DECISION = 15, 5, 7, 2, -12  # as in `search_scores.js`
MOST_WORDS = 1500  # of a page, in sentences: neither code nor tables
ADDRESS = re.compile(r'<a [^>]*href="([^"]+)"')
NAME = re.compile(r'\bid="([^"]+)"')
RAISED = re.compile(r"<p>(<a [^>]*>)?<strong>(\w+)</strong>")


def faults(folder: Path) -> list[str]:
    """One line for each fault of the pages in `folder`."""
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.html")}
    pages = {name: article(path.read_text(encoding="utf-8")) for name, path in files.items()}
    found = [f"{name}: {fault}" for name, page in pages.items() for fault in faults_of_any(page)]
    found += [f"reference/api.html: {fault}" for fault in faults_of_api(pages["reference/api.html"])]
    found += [f"reference/rules.html: {fault}" for fault in faults_of_rules(pages["reference/rules.html"])]
    found += faults_of_links(folder, files)
    found += faults_of_search(folder)
    return found


def faults_of_links(folder: Path, files: dict[str, Path]) -> list[str]:
    """Links to pages, or to places in them, that are not there."""
    texts = {name: path.read_text(encoding="utf-8") for name, path in files.items()}
    names = {name: set(map(html.unescape, NAME.findall(text))) for name, text in texts.items()}
    found = []
    for name, text in texts.items():
        for link in sorted(set(ADDRESS.findall(text))):
            target, place = urldefrag(unquote(html.unescape(link)))
            if re.match(r"\w+:", target):
                continue
            path = (folder / name).parent.joinpath(target).resolve() if target else (folder / name).resolve()
            there = (
                path.relative_to(folder.resolve()).as_posix() if path.is_relative_to(folder.resolve()) else ""
            )
            if not path.exists() or (place and there in names and place not in names[there]):
                found.append(f"{name}: has a link that leads nowhere: {link}")
    return found


def faults_of_search(folder: Path) -> list[str]:
    """Words by which a reader does not find the page that is meant for the task."""
    written = (folder / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(written[written.index("(") + 1 : written.rindex(")")])
    found = []
    for words, pages in sought():
        results = list(results_of(index, words))[:SEEN_AT_ONCE]
        if not set(pages) & set(results):
            found.append(f"a search for {words!r} gives {results}, and not {' or '.join(pages)}")
    return found


def sought() -> Iterator[tuple[str, tuple[str, ...]]]:
    """(what is searched for, pages one of which it should give)."""
    yield from ALSO_SOUGHT.items()
    for path in sorted((ROOT / "tests" / "docs" / "tasks").glob("*.py")):
        said = SOUGHT.match(path.read_text(encoding="utf-8").splitlines()[0])
        if said is not None:
            yield said[1], (said[2],)


def results_of(index: dict[str, Any], words: str) -> list[str]:
    """The pages that hold all of `words`, those first that the search of the site shows first."""
    stem = import_module("snowballstemmer").stemmer("english").stemWord  # which comes with Sphinx
    scores: list[dict[int, int]] = []
    for word in words.lower().split():
        of_word: dict[int, int] = {}
        for kind, whole, part in (("terms", IN_TEXT, PART_OF_TEXT), ("titleterms", IN_TITLE, PART_OF_TITLE)):
            terms, root = index[kind], stem(word)
            given = [(terms[root], whole)] if root in terms else []
            given += [(terms[t], part) for t in terms if root in t and root not in terms and len(root) > 2]
            for pages, score in given:
                for page in pages if isinstance(pages, list) else [pages]:
                    of_word[page] = max(score, of_word.get(page, 0))
        scores.append(of_word)
    pages = set.intersection(*map(set, scores))
    names, titles = index["docnames"], index["titles"]

    def place(p: int) -> tuple[int, str]:
        score = max(score[p] for score in scores) + DECISION * names[p].startswith("decisions/")
        return -score, titles[p].lower()

    return [names[p] for p in sorted(pages, key=place)]


def too_long(sources: Path) -> list[str]:
    """Pages with more sentences than one reads at a sitting."""
    found = []
    for path in sorted(sources.rglob("*.md")):
        if "_build" not in path.parts and path.name != "rule-table.md":
            count = len(sentences(path.read_text(encoding="utf-8")).split())
            if count > MOST_WORDS:
                found.append(
                    f"{path.relative_to(sources)}: has {count} words; {MOST_WORDS} are enough for a page"
                )
    return found


def sentences(page: str) -> str:
    """The source of a page without code and tables."""
    page = re.sub(r"^(`{3,}|:{3,})[^\n]*\n.*?^\1$", "", page, flags=re.DOTALL | re.MULTILINE)
    return "\n".join(line for line in page.splitlines() if not line.startswith("|"))


def faults_of_any(page: str) -> list[str]:
    """Marks of the languages that pages are written in, left for the reader to see."""
    found = [f"shows {line.strip()!r}" for line in text(page).splitlines() if "\\*" in line]
    return found + ["holds an error of its conversion"] * ('class="problematic"' in page)


def faults_of_api(page: str) -> list[str]:
    """Names without an entry, sentences taken for types, code that is not set as code, exceptions that lead nowhere."""
    found = [f"has no entry for {name}" for name in PUBLIC if f'id="{name}"' not in page]
    found += [f"has a field {name}" for name in ("Return type", "Yield type", "Type") if f">{name}<" in page]
    prose = text(SET_AS_CODE.sub("", page))
    found += [f"shows a backtick: {line.strip()!r}" for line in prose.splitlines() if "`" in line]
    unlinked = [name for link, name in RAISED.findall(page) if name in ERRORS and not link]
    return found + [f"has no link at {name}" for name in unlinked]


def faults_of_rules(page: str) -> list[str]:
    """Files as topics, and functions that nobody but the package itself calls."""
    headings = [text(heading) for _, heading in HEADING.findall(page)]
    found = [f"has a file as topic: {heading}" for heading in headings if ".py" in heading or "/" in heading]
    return found + [f"lists {name}" for name in re.findall(r"plaingrad\.rules\.[\w.]+", page)]


def article(page: str) -> str:
    """The page without what the theme puts around it."""
    return page[page.index("<article") : page.index("</article>")] if "<article" in page else ""


def text(part: str) -> str:
    """What a reader sees of `part`."""
    return html.unescape(TAG.sub("", part))


if __name__ == "__main__":
    wrong = faults(Path(sys.argv[1])) + too_long(Path(__file__).parent)
    print(*wrong, sep="\n", end="\n" if wrong else "")
    sys.exit(bool(wrong))
