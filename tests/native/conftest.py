"""What the tests of the native tier share: `grad` is reverse mode, also where there are few inputs."""

import importlib.util
import os
import zlib
from dataclasses import replace

import pytest

collect_ignore_glob = ["test_*.py"] if importlib.util.find_spec("numba") is None else []


@pytest.fixture(autouse=True)
def reverse_mode(monkeypatch, request):
    """`grad` by forward mode, for few inputs, is tested by itself: in modules that set BY_COLUMNS."""
    if not getattr(request.module, "BY_COLUMNS", False):
        monkeypatch.setattr("plaingrad.native.border.call.FEW_COLUMNS", 0)


@pytest.fixture
def in_python(monkeypatch):
    """Derived programs are run by CPython, where compiling adds nothing; those that are derived again are as ever."""
    from plaingrad.native.border import call
    from tests.native.typing_only import typing_only

    derived = call.derived

    def uncompiled(mode, *others):
        with typing_only():
            found = derived(mode, *others)
        return found if mode in ("cotangents", "tangents") else replace(found, run=found.python)

    monkeypatch.setattr(call, "derived", uncompiled)


COMPILED_ONE_IN = 1 if os.environ.get("PLAINGRAD_TEST_ALL") else 4


@pytest.fixture
def mostly_in_python(request):
    """Where tests of many programs compare numbers, one in four is compiled, chosen by its name; CPython runs the others.

    With PLAINGRAD_TEST_ALL=1 all are compiled.
    """
    if zlib.crc32(request.node.nodeid.encode()) % COMPILED_ONE_IN:
        request.getfixturevalue("in_python")
