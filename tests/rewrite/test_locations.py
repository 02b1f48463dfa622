"""The table of lines and columns says the same to those who read all of it and to those who read lines only."""

import dis
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plaingrad.rewrite import rewritten
from plaingrad.rewrite.locations import location_table


def nop_code(first_line, table, units):
    code = (lambda: None).__code__
    return code.replace(co_code=bytes([dis.opmap["NOP"], 0]) * units, co_linetable=table, co_firstlineno=first_line)


line = st.integers(1, 5000)
column = st.integers(0, 20) | st.integers(60, 300) | st.integers(0, 10**5)


@st.composite
def places(draw):
    if draw(st.integers(0, 9)) == 0:
        return (None, None, None, None)
    first, start = draw(line), draw(column)
    if draw(st.integers(0, 9)) == 0:
        return (first, first, None, None)
    if draw(st.booleans()):
        return (first, first, start, start + draw(st.integers(0, 20)))
    return (first, first + draw(st.integers(0, 80)), start, draw(column))


@given(line, st.lists(st.tuples(places(), st.integers(1, 30)), min_size=1, max_size=20))
def test_what_is_packed_is_read_back(first_line, runs):
    locations, words = [place for place, _ in runs], [n for _, n in runs]
    table = location_table(first_line, locations, words)
    code = nop_code(first_line, table, sum(words))
    expected = [place for place, n in runs for _ in range(n)]
    assert list(code.co_positions()) == expected
    by_line = [n for start, end, n in code.co_lines() for _ in range(start, end, 2)]
    assert by_line == [place[0] for place in expected]


def test_neighbours_at_one_place_share_their_entries():
    place = (1, 1, 0, 5)
    assert location_table(1, [place] * 4, [1, 2, 3, 2]) == location_table(1, [place], [8])


def lines(code):
    return [n for n, _ in groupby(n for *_, n in code.co_lines() if n is not None)]


@pytest.mark.parametrize("column", [70, 79, 80, 120, 127, 128, 200, 255, 256, 1000])
def test_long_lines_keep_their_numbers(column):
    source = f"def f(x):\n  y = 1\n{' ' * column}\n  return ({' ' * column}x + y,\n  {' ' * column}x.a,\n  {' ' * column}y / x)\n"
    ns = {}
    exec(compile(source, "m", "exec"), ns)
    code = ns["f"].__code__
    assert lines(rewritten(code)) == lines(code)
