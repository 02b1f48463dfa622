"""`profile` gives time and memory to the lines that have them."""

import json
import math
import re
import time
from html.parser import HTMLParser

import numpy as np
import pytest

import plaingrad
from plaingrad import profile
from plaingrad.cli import main


def helper(x):
    return math.sin(x) * 0.5


def looped(x, n):
    for _ in range(n):
        x = x + helper(x)
    big = np.ones(200_000) * x
    time.sleep(0.02)
    return (big @ big) * 1e-9


@pytest.fixture(scope="module")
def found():
    return profile(looped, 0.3, 200)


def cost_of(found, source):
    (row,) = [row for row in found.rows if row.source == source]
    return row.cost


def test_hits_and_entries_are_counted_by_line(found):
    assert cost_of(found, "x = x + helper(x)").hits == 200
    assert cost_of(found, "return math.sin(x) * 0.5").hits == 200
    assert cost_of(found, "return math.sin(x) * 0.5").entries >= 200
    assert cost_of(found, "time.sleep(0.02)").entries == 0
    assert found.entries == sum(row.cost.entries for row in found.rows)


def test_time_goes_to_the_line_that_takes_it(found):
    slept = cost_of(found, "time.sleep(0.02)")
    assert slept.time > 0.005 and slept.back == 0.0
    assert found.forward >= 0.02 and found.plain >= 0.02
    assert sum(row.cost.time for row in found.rows) == pytest.approx(found.forward, rel=1e-6)
    assert sum(row.cost.back for row in found.rows) == pytest.approx(found.reverse, rel=1e-6)


def test_memory_goes_to_the_line_that_allocates_it(found):
    assert cost_of(found, "big = np.ones(200_000) * x").held >= 1_600_000
    assert cost_of(found, "big = np.ones(200_000) * x").peak >= 3_200_000  # the ones besides
    assert 3_200_000 <= found.peak < 20_000_000
    assert abs(cost_of(found, "time.sleep(0.02)").held) < 100_000


def test_the_way_back_is_given_to_lines_with_entries(found):
    assert cost_of(found, "return (big @ big) * 1e-9").back > 0.0
    assert cost_of(found, "return math.sin(x) * 0.5").back > 0.0


def test_it_prints_and_is_data(found):
    text = repr(found)
    assert "test_profiling.py" in text and "time.sleep(0.02)" in text and "times the plain call" in text
    data = json.loads(json.dumps(found.as_json()))
    assert data["rows"][0]["time"] == found.rows[0].cost.time


class Strict(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        if tag != "meta":
            self.open.append(tag)
        assert not {"src", "href"} & {name for name, _ in attrs}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_the_page_needs_no_other_file_and_is_well_formed(found, tmp_path):
    found.save(tmp_path / "page.html")
    page = Strict()
    page.feed((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert not page.open
    assert "x = x + helper(x)" in page.text and "def looped(x, n):" in page.text
    assert re.search(r"<table>", found._repr_html_()) and "<html" not in found._repr_html_()


def test_long_loops_get_advice(monkeypatch):
    monkeypatch.setattr("plaingrad.diagnosis.advice.MANY", 100)
    found = profile(looped, 0.3, 200)
    assert any("tier='native'" in text and "x" in text for text in found.advice)
    assert any(text.startswith("Forward mode") for text in found.advice)


def test_arguments_and_tracing_are_left_alone():
    import sys
    import tracemalloc

    def f(x):
        x *= 2.0
        return x @ x

    x = np.array([1.0, 2.0])
    before = sys.gettrace()
    assert "f: plain" in repr(profile(f, x)).replace("test_arguments_and_tracing_are_left_alone.<locals>.", "")
    assert x.tolist() == [1.0, 2.0] and sys.gettrace() is before and not tracemalloc.is_tracing()
    with pytest.raises(plaingrad.ArgumentError):
        profile(math.sin, "text")


def test_the_command(tmp_path, capsys):
    file = tmp_path / "profiled.py"
    file.write_text("def f(x, n):\n    for _ in range(n):\n        x = x * 1.01\n    return x\n")
    assert main(["profile", f"{file}:f", "--at", "[1.0, 30]", "--wrt", "x", "--save", str(tmp_path / "p.html")]) == 0
    out = capsys.readouterr().out
    assert "x = x * 1.01" in out and "x = x * 1.01" in (tmp_path / "p.html").read_text()
    assert main(["profile", f"{file}:f", "--at", "[1.0, 30]", "--wrt", "x", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["entries"] >= 1


def test_a_function_whose_lines_are_compiled_is_one_row():
    numba = pytest.importorskip("numba")

    @numba.njit
    def cube(x):
        return x * x * x

    found = profile(cube, 2.0)
    (row,) = found.rows
    assert (row.source, row.cost.entries) == ("def cube(x):", found.entries) and row.cost.time == found.forward
    assert "py_func" in found.advice[0]
