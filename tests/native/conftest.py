"""What the tests of the native tier share: `grad` is reverse mode, also where there are few inputs."""

import importlib.util
import os
import re
from dataclasses import replace

import pytest

from tests.sampling import ALL, is_in_sample

collect_ignore_glob = ["test_*.py"] if importlib.util.find_spec("numba") is None else []
if not collect_ignore_glob and not ALL and os.environ.get("NUMBA_OPT") == "0":
    from tests.native import cheaper_numba

    cheaper_numba.install()


@pytest.fixture(autouse=True)
def reverse_mode(monkeypatch, request):
    """`grad` by forward mode, for few inputs, is tested by itself: in modules that set BY_COLUMNS."""
    if not getattr(request.module, "BY_COLUMNS", False):
        monkeypatch.setattr("plaingrad.native.border.call.FEW_COLUMNS", 0)


@pytest.fixture
def in_python(monkeypatch):
    """Derived programs are run by CPython, where compiling adds nothing; those that are derived again are as ever."""
    from plaingrad.native.border import call
    from plaingrad.native.frontend import typed_ir
    from tests.native.typing_only import typing_only

    derived, typed = call.derived, typed_ir.typed_ir

    def typed_only(*what):
        with typing_only():
            return typed(*what)

    def uncompiled(mode, *others):
        found = derived(mode, *others)
        return found if mode in ("cotangents", "tangents") else replace(found, run=found.python)

    monkeypatch.setattr(call, "derived", uncompiled)
    monkeypatch.setattr(typed_ir, "typed_ir", typed_only)


@pytest.fixture
def machine_code():
    """Asked for by tests that are about compiled code although their names do not say it."""


ABOUT_COMPILED_CODE = frozenset(
    "adbench blocks borrowed build cache cache_folder declare garbage hazards makers near nested split vecmath workspace".split()
)
SAYS_COMPILED = re.compile("compile|machine_code|bits|memory|process|thread|warn")


@pytest.fixture(autouse=True)
def mostly_in_python(request):
    """One test in twenty-four has its derivatives compiled, chosen by its name; CPython runs those of the others.

    What derived programs compute is the same. Tests about compiled code are compiled all: those of the files above, those
    whose name says so or that use the fixture `machine_code`, those marked `optimised`. With PLAINGRAD_TEST_ALL=1 every test
    is.
    """
    node = request.node
    is_about_compiled_code = (
        node.path.stem.removeprefix("test_") in ABOUT_COMPILED_CODE
        or SAYS_COMPILED.search(node.name)
        or "machine_code" in request.fixturenames
        or node.get_closest_marker("optimised")
    )
    if not is_about_compiled_code and not is_in_sample(node.nodeid, 24):
        request.getfixturevalue("in_python")
