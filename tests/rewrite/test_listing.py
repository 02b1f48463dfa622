"""Bytes become instructions and bytes again: what `dis` says of the code is the truth."""

import asyncio
import collections
import dis
import functools
import inspect
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plaingrad.rewrite.encoding import encoded, read_exceptions, write_exceptions
from plaingrad.rewrite.listing import Layout, Listing
from tests.rewrite.support import all_code

SOURCES = {
    module.__name__: inspect.getsource(module) for module in (asyncio.streams, collections, functools, typing)
}


def codes_of(name):
    return list(all_code(compile(SOURCES[name], name, "exec")))


def long_code():
    """Jumps over more than 255 code units, more than 255 names and constants, and a handler far away."""
    body = "\n".join(f"        y = y + x.name{k} * {k}.5" for k in range(600))
    source = f"def f(x, y):\n    while y:\n      try:\n{body}\n      except ValueError as e:\n        y = e\n    return y\n"
    namespace = {}
    exec(compile(source, "long", "exec"), namespace)
    return namespace["f"].__code__


def instructions_of(code):
    return [i for i in dis.get_instructions(code) if i.opname not in ("EXTENDED_ARG", "CACHE")]


def check_against_dis(code):
    found, expected = Listing(code), instructions_of(code)
    assert [(name, arg) for name, arg in found.instructions] == [(i.opname, i.arg or 0) for i in expected]
    assert list(found.opcodes) == [i.opcode for i in expected]
    assert found.locations == [tuple(i.positions) for i in expected]
    where = {i.offset: k for k, i in enumerate(expected)}
    for k, unit in enumerate(found.starts):  # the first EXTENDED_ARG is where a jump arrives
        where[2 * unit] = k
    jumps = {k: where[i.argval] for k, i in enumerate(expected) if i.opcode in dis.hasjrel}
    assert found.targets == jumps


@pytest.mark.parametrize("name", SOURCES)
def test_instructions_places_and_targets_are_those_of_dis(name):
    for code in codes_of(name):
        check_against_dis(code)


def test_instructions_of_long_code_are_those_of_dis():
    code = long_code()
    assert any(i.opname == "EXTENDED_ARG" for i in dis.get_instructions(code))
    check_against_dis(code)


def laid_out(code):
    """The code, taken apart and put together again without a change."""
    listing, layout = Listing(code), Layout()
    for i, (name, arg) in enumerate(listing.instructions):
        layout.first.append(i)
        if i in listing.targets:
            layout.jumps.append((i, name, listing.targets[i]))
            arg = 0
        layout.pieces.append(encoded(name, arg))
        layout.places.append(listing.locations[i])
    layout.first.append(len(layout.pieces))
    return layout.code(code, listing.regions)


@pytest.mark.parametrize("name", SOURCES)
def test_code_that_is_taken_apart_and_put_together_is_the_same(name):
    for code in codes_of(name):
        new = laid_out(code)
        assert new.co_code == code.co_code
        assert new.co_exceptiontable == code.co_exceptiontable
        assert list(new.co_positions()) == list(code.co_positions())


def test_long_code_is_the_same_too():
    code = long_code()
    new = laid_out(code)
    assert new.co_code == code.co_code
    assert new.co_exceptiontable == code.co_exceptiontable
    assert list(new.co_positions()) == list(code.co_positions())


def test_a_table_of_places_that_is_cut_short_says_nothing_of_the_rest():
    code = (lambda x: [x + 1, x * 2]).__code__
    short = Listing(code.replace(co_linetable=b""))
    assert set(short.locations) == {(None,) * 4}
    assert short.instructions == Listing(code).instructions


regions = st.tuples(*[st.integers(0, 10**6)] * 4)


@given(st.lists(regions, max_size=8))
def test_exception_tables_are_read_back(table):
    assert [tuple(region) for region in read_exceptions(write_exceptions(table))] == table


@given(st.lists(regions, min_size=1, max_size=4))
def test_exception_tables_are_what_dis_reads(table):
    code = (lambda: None).__code__.replace(co_exceptiontable=write_exceptions(table))
    read = [
        (e.start // 2, (e.end - e.start) // 2, e.target // 2, e.depth << 1 | e.lasti)
        for e in dis.Bytecode(code).exception_entries
    ]
    assert read == table


def test_a_function_that_is_taken_apart_and_put_together_does_what_it_did():
    def f(n):
        total = 0
        for k in range(n):
            try:
                total += 10 // (k - 2)
            except ZeroDivisionError:
                total += 1000
        return total

    f.__code__ = laid_out(f.__code__)
    assert f(5) == -5 - 10 + 1000 + 10 + 5
