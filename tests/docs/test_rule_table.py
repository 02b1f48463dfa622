"""The rule table of the reference is printed from the rulebook."""

import importlib.util
from pathlib import Path

FILE = Path(__file__).resolve().parents[2] / "docs" / "rule_table.py"


def module():
    spec = importlib.util.spec_from_file_location("rule_table", FILE)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_every_rule_we_ship_has_a_line():
    printer = module()
    table = printer.rule_table()
    assert table.count("\n### ") >= 2  # topics
    names = [printer.name_of(rule.function) for rule in printer.shipped()]
    assert [name for name in names if printer.code(name) not in table] == []


def test_a_row_is_printed_as_it_is_written():
    row = "| `cmath.sin`, `math.sin`, `numpy.sin` | partial derivatives | from the row | `m.cos(x)` |"
    assert row in module().rule_table()


def test_it_says_where_the_forward_half_comes_from():
    table = module().rule_table()
    assert "| `numpy.linalg.solve` | rule | written, in chunks | `solve_rrule` |" in table
    assert "| `numpy.correlate` | rule | written | `correlate_rrule` |" in table


def test_a_bar_in_a_cell_does_not_split_it():
    assert module().code("a | b") == "`a \\| b`"


def test_topics_are_subjects_not_files():
    table = module().rule_table()
    assert [line for line in table.splitlines() if line.startswith("#") and (".py" in line or "/" in line)] == []
    assert all(part.strip() for part in table.split("### ")[1:])


def test_no_line_shows_what_only_we_call_so():
    table = module().rule_table()
    assert [line for line in table.splitlines() if "plaingrad." in line or "<locals>" in line or " at 0x" in line] == []
