"""The benchmarks can still be run: they name what is there.

In a process of their own, since they pin the threads of libraries when they are imported.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba")
pytest.importorskip("benchmarks")  # not part of a source distribution

ROOT = Path(__file__).parent.parent

PROGRAM = """
import importlib, pkgutil, sys
import benchmarks
from plaingrad.native.loops.forms import FORMS

failed = []
for found in sorted(found.name for found in pkgutil.walk_packages(benchmarks.__path__, "benchmarks.")):
    if not found.endswith(("peers", "__main__")):
        try:
            importlib.import_module(found)
        except Exception as error:
            failed.append(f"{found}: {error!r}")
assert not failed, failed

from benchmarks import compile_time, loop_forms

# Compile times are measured of programs that call functions.
row = compile_time.measured("calls", 4)
assert min(row.primal, row.front, row.derivation, row.sweeps) > 0.0

# Every form of a loop has programs that show what it earns.
assert {form.name for form in (*FORMS.loops, *FORMS.runs)} == loop_forms.PROGRAMS.keys()
for name in (*loop_forms.PROGRAMS, *loop_forms.WITHIN):
    with loop_forms.without(name):  # what it replaces is there
        pass
"""


def test_benchmarks_are_imported_and_name_what_is_there():
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, "NUMBA_OPT": "0"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
