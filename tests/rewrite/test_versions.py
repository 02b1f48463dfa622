"""Each version is data; an unknown one is refused."""

import dis
import sys
import types

import pytest
from plaingrad.errors import UnsupportedPythonError
from plaingrad.rewrite import versions
from plaingrad.rewrite.cache import facts
from plaingrad.rewrite.transform import Rewriting


def test_this_version_is_described():
    assert facts().name == "%d.%d" % sys.version_info[:2]


@pytest.mark.parametrize("info", [(3, 10, 0), (3, 99, 0), (4, 0, 0)])
def test_other_versions_are_refused_by_name(monkeypatch, info):
    monkeypatch.setattr(versions, "sys", types.SimpleNamespace(version_info=info, implementation=sys.implementation))
    with pytest.raises(UnsupportedPythonError, match=f"this is cpython {info[0]}.{info[1]}"):
        versions.running()


def test_other_implementations_are_refused(monkeypatch):
    other = types.SimpleNamespace(version_info=sys.version_info, implementation=types.SimpleNamespace(name="pypy"))
    monkeypatch.setattr(versions, "sys", other)
    with pytest.raises(UnsupportedPythonError, match="this is pypy"):
        versions.running()


@pytest.mark.parametrize("name", versions.SUPPORTED)
def test_every_action_is_a_verb_of_the_rewriter(name):
    import importlib

    version = importlib.import_module(f"plaingrad.rewrite.versions.py{name.replace('.', '')}").VERSION
    assert version.name == name
    for opcode, (verb, *_) in version.actions.items():
        assert callable(getattr(Rewriting, verb, None)), (opcode, verb)


#: Instructions that no code object holds, or that the decoder takes away.
INTERNAL = set("CACHE EXTENDED_ARG RESERVED INTERPRETER_EXIT ENTER_EXECUTOR EXIT_INIT_CHECK".split())


def test_every_instruction_of_this_version_is_listed():
    real = {name for name, op in dis.opmap.items() if op < min(236, getattr(dis, "MIN_INSTRUMENTED_OPCODE", 256))}
    real = {name for name in real if not name.startswith(("INSTRUMENTED_", "<")) and name not in INTERNAL}
    assert real - set(facts().actions) == set()


def test_no_instruction_is_listed_that_this_version_does_not_have():
    assert set(facts().actions) - set(dis.opmap) == set()
