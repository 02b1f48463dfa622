"""The page of packages belongs to its cases, and its figures are those of its table."""

import re
from collections import Counter
from pathlib import Path

from benchmarks.wild.__main__ import row
from benchmarks.wild.one import cases, error_of, function_of, weighted
import numpy as np

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "wild.md"


def rows():
    return [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and "| `" in line]


def test_every_row_is_a_case():
    known = {f"| {case.package} |" for case in cases()}
    assert {re.match(r"\| [^|]* \|", line).group() for line in rows()} <= known


def test_the_figures_are_those_of_the_table():
    cells = [line.split(" | ")[-2] for line in rows()]
    found = Counter("refused" if cell.startswith("refused") else cell for cell in cells)
    (summary,) = re.findall(r"^\d+ functions of \d+ packages: .*\.$", PAGE.read_text(), re.M)
    assert int(summary.split()[0]) == len(cells)
    said = {outcome: int(n) for n, outcome in re.findall(r"(\d+) (\w+)(?=[,.])", summary.split(": ")[1])}
    assert said == dict(found)


def test_cases_can_be_read_and_are_compared_with_differences():
    assert len({case.package for case in cases()}) > 100
    case = cases()[0]._replace(setup="import math", expression="[math.sin(x[0]), x]", x=[0.3, 0.4])
    f = function_of(case)
    x = np.array(case.x)
    assert f(x) == weighted([np.sin(0.3), x])
    slope = np.array([1.1414709848 * np.cos(0.3) + 1.2092974268 * 1.1414709848, 1.2092974268 * 1.2092974268])
    assert error_of(slope, f, x)[0] < 1e-8 < error_of(1.001 * slope, f, x)[0]
    assert "refused: `g`" in row(
        {"package": "a", "expression": "g(x)", "outcome": "refused", "why": "needs the derivative of `g`"}
    )
