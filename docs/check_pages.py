"""Reads the built pages as a reader does, and says what is wrong with them.

`make docs` builds the pages, then runs `python docs/check_pages.py docs/_build/html`.
"""

from __future__ import annotations

import html
import re
import sys
from pathlib import Path

import plaingrad
from plaingrad import errors

PUBLIC = [f"plaingrad.{name}" for name in plaingrad.__all__] + ["plaingrad.errors.TruncationWarning"]
ERRORS = [name for name in vars(errors) if name.endswith(("Error", "Warning"))]
TAG = re.compile(r"<[^>]*>")
SET_AS_CODE = re.compile(r"<(pre|code)\b.*?</\1>", re.DOTALL)
HEADING = re.compile(r"<h([1-6])\b[^>]*>(.*?)</h\1>", re.DOTALL)
RAISED = re.compile(r"<p>(<a [^>]*>)?<strong>(\w+)</strong>")


def faults(folder: Path) -> list[str]:
    """One line for each fault of the pages in `folder`."""
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.html")}
    pages = {name: article(path.read_text(encoding="utf-8")) for name, path in files.items()}
    found = [f"{name}: {fault}" for name, page in pages.items() for fault in faults_of_any(page)]
    found += [f"reference/api.html: {fault}" for fault in faults_of_api(pages["reference/api.html"])]
    found += [f"reference/rules.html: {fault}" for fault in faults_of_rules(pages["reference/rules.html"])]
    return found


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
    wrong = faults(Path(sys.argv[1]))
    print(*wrong, sep="\n", end="\n" if wrong else "")
    sys.exit(bool(wrong))
