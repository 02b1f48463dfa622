"""The benchmarks can still be run: they name what is there."""

import importlib
import pkgutil

import pytest

pytest.importorskip("numba")
benchmarks = pytest.importorskip("benchmarks")  # not part of a source distribution

MODULES = sorted(
    found.name
    for found in pkgutil.walk_packages(benchmarks.__path__, "benchmarks.")
    if not found.name.endswith(("peers", "__main__"))
)


@pytest.mark.parametrize("name", MODULES)
def test_a_benchmark_is_imported(name):
    importlib.import_module(name)


def test_compile_times_are_measured_of_programs_that_call_functions(monkeypatch):
    monkeypatch.setattr("numba.config.OPT", 0)
    from benchmarks import compile_time

    row = compile_time.measured("calls", 4)
    assert min(row.primal, row.front, row.derivation, row.sweeps) > 0.0


def test_every_form_of_a_loop_has_programs_that_show_what_it_earns():
    from benchmarks import loop_forms
    from plaingrad.native.loops.forms import FORMS

    assert {form.name for form in (*FORMS.loops, *FORMS.runs)} == loop_forms.PROGRAMS.keys()
    for name in (*loop_forms.PROGRAMS, *loop_forms.WITHIN):
        with loop_forms.without(name):  # what it replaces is there
            pass
