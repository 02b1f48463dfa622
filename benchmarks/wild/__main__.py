"""The page of packages: cases are tried, a process for each package, and what becomes of them stands in the table.

python -m benchmarks.wild [PACKAGE ...] [--from FILE] tries them with this interpreter, where the packages that it finds
are installed; with --from it reads lines that `benchmarks.wild.one` has printed, a later line in place of an earlier.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.wild.one import cases

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "wild.md"
HEAD = """# Packages as they are

Functions of packages for science, engineering, finance, statistics and graphics, as they are on PyPI: is the gradient
right, what is refused, and by which missing rule, and how long the value with its gradient takes, as a multiple of the
plain call. Right means that it agrees with central differences to five digits, at the best of six steps.
Of one that is nan, a part of the program is not finite, and is overwritten later: 0 times nan is nan, see
{doc}`../how-to/find-a-nan`. `python -m benchmarks.wild` tries the cases of `benchmarks/wild/cases.txt` and writes this
page; what is refused is mostly compiled code of the package itself.

Small functions of a few numbers take tens of times as long as their plain call, since that takes microseconds and to
open a derivative does too; {doc}`../explanation/costs` tells where the time goes.
"""
MISSING = re.compile(r"needs the derivative of `([^`]*)`")


def tried(packages: list[str]) -> list[dict[str, Any]]:
    """What becomes of the cases of the packages."""
    found = []
    for package in packages:
        run = [sys.executable, "-m", "benchmarks.wild.one", package]
        done = subprocess.run(run, capture_output=True, text=True, check=False)
        found += parsed(done.stdout)
        if done.returncode:
            found.append(
                {"package": package, "expression": "", "outcome": "crash", "why": done.stderr[-300:]}
            )
    return found


def parsed(text: str) -> list[dict[str, Any]]:
    """The lines of results in a text."""
    return [json.loads(line[1:]) for line in text.splitlines() if line.startswith("@")]


def said_of(found: dict[str, Any]) -> str:
    """The outcome of a case in a word: wrong is not what is nan, which nobody takes for a number."""
    is_nan = found["outcome"] == "wrong" and "nan" in found["why"].split(" and ")[0]
    return "nan" if is_nan else str(found["outcome"])


def row(found: dict[str, Any]) -> str:
    """The line of the table for one case."""
    said = said_of(found)
    if said == "refused":
        missing = MISSING.search(found["why"])
        said = f"refused: `{missing[1]}`" if missing else f"refused: `{found['error']}`"
    ratio = f"{found['ratio']:.0f}" if "ratio" in found else ""
    expression = found["expression"].replace("|", "\\|")
    shown = expression if len(expression) <= 80 else expression[:77] + "..."
    return f"| {found['package']} | `{shown}` | {said} | {ratio} |"


def page(results: list[dict[str, Any]]) -> str:
    """The page."""
    known = {(case.package, case.expression) for case in cases()}
    by_case = {(found["package"], found["expression"]): found for found in results}
    kept = [
        found
        for key, found in by_case.items()
        if key in known and found["outcome"] not in ("no such call", "too long")
    ]
    kept.sort(key=lambda found: found["package"].lower())
    outcomes = Counter(said_of(found) for found in kept)
    count = len({found["package"] for found in kept})
    said = ", ".join(f"{n} {outcome}" for outcome, n in outcomes.most_common())
    summary = f"{len(kept)} functions of {count} packages: {said}."
    lines = [
        HEAD,
        summary,
        "",
        "| package | function | gradient | time |",
        "|---|---|---|---|",
        *map(row, kept),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the page."""
    args = sys.argv[1:]
    if args[:1] == ["--from"]:
        results = parsed("".join(Path(name).read_text() for name in args[1:]))
    else:
        results = tried(args or list(dict.fromkeys(case.package for case in cases())))
    PAGE.write_text(page(results))


if __name__ == "__main__":
    main()
