"""What `make test` has instead of functions of Numba gives what these give."""

import math

import pytest

numba = pytest.importorskip("numba")

from numba.core import compiler, ir  # noqa: E402
from numba.core.targetconfig import ConfigStack, TargetConfig  # noqa: E402
from tests.native import cheaper_numba  # noqa: E402


def some_flags():
    """Flags with nothing set, with some, and with other values of these."""
    for settings in (
        {},
        {"nrt": True, "fastmath": True},
        {"nrt": True, "fastmath": {"contract"}, "error_model": "numpy"},
    ):
        flags = compiler.Flags()
        for name, value in settings.items():
            setattr(flags, name, value)
        yield flags
    yield from filter(None, [ConfigStack.top_or_none()])


def test_flags_have_the_values_and_the_hash_that_numba_gives_them():
    for flags in some_flags():
        expected = {name: getattr(flags, name) for name in flags.options}
        assert list(cheaper_numba.values(flags).items()) == list(expected.items())
        assert cheaper_numba.hash_of_names(flags) == hash(tuple(sorted(expected)))
        for other in some_flags():
            assert (flags == other) == (expected == {name: getattr(other, name) for name in other.options})


def test_flags_of_a_class_derived_later_have_its_options():
    class Options(TargetConfig):
        pass

    assert cheaper_numba.values(Options()) == {}


def program(x, *rest, scale=2.0):
    total = 0.0
    for k, (a, b) in enumerate(zip(rest, x)):
        if a > b:
            total += math.sin(a) * scale
        elif k:
            raise ValueError("no", k)
        else:
            total -= x[1:k][0] + {"a": a, "b": b}["a"] + [a, b, total][-1]
        print(total, a)
    return total, x


def test_statements_have_the_variables_that_numba_finds():
    statements = [s for block in compiler.run_frontend(program).blocks.values() for s in block.body]
    assert len(statements) > 50
    found = 0
    for statement in statements:
        for part in (statement, vars(statement), getattr(statement, "value", None)):
            mine = cheaper_numba.variables(statement, part)
            theirs = cheaper_numba.VARIABLES(statement, part)
            assert list(map(id, mine)) == list(map(id, theirs))
            found += len(mine)
    assert found > 100 and all(isinstance(v, ir.Var) for v in mine)


def test_who_listens_is_told(monkeypatch):
    from numba.core import event

    class Listener(event.Listener):
        heard = ()

        def on_start(self, sent):
            self.heard += ("start", sent.data)

        def on_end(self, sent):
            self.heard += ("end", sent.data)

    listener = Listener()
    with event.install_listener("numba:compile", listener), cheaper_numba.trigger_event("numba:compile", 5):
        cheaper_numba.if_heard(event.start_event)("numba:compile", data=6)
    assert listener.heard == ("start", 5, "start", 6, "end", 5)
    with cheaper_numba.trigger_event("numba:compile", 7):
        pass
    assert listener.heard == ("start", 5, "start", 6, "end", 5)
