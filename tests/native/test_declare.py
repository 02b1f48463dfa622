"""Helpers of derived programs kept on disk: never one for another, never of other flags, other sources or damaged."""

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import plaingrad

numba = pytest.importorskip("numba")

from plaingrad.native.runtime import declare  # noqa: E402
from plaingrad.native.machine import fingerprint  # noqa: E402

HERE = os.pathsep.join((str(Path(plaingrad.__file__).parents[1]), os.environ.get("PYTHONPATH", "")))
RUN = """
import numpy as np, plaingrad
from numba.core import event
from plaingrad.native.compile import cache
cache.key_of = lambda *args: None  # programs themselves are derived anew

def f(x, n):
    total = 0.0
    for k in range(n):
        x = np.sin(x) * x
        total += np.max(x)
    return total

class Compiled(event.Listener):
    names = []
    def on_start(self, begun):
        self.names.append(str(begun.data["dispatcher"].py_func.__module__))
    def on_end(self, ended):
        pass

with event.install_listener("numba:compile", Compiled()):
    value, slope = plaingrad.value_and_grad(f, tier="native")(np.array([0.3, 0.9]), 3)
print(value.hex(), [x.hex() for x in slope.tolist()])
print(len([name for name in Compiled.names if name.startswith("plaingrad.native.") and "build" not in name]))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of its own; functions of this file count as helpers."""
    monkeypatch.setattr(fingerprint, "PACKAGE", Path(__file__).parent)
    monkeypatch.setattr(fingerprint, "is_as_imported", lambda age=0.0: True)
    monkeypatch.setenv("PLAINGRAD_CACHE_DIR", str(tmp_path / "kept"))
    return tmp_path / "kept"


def loaded(run):
    """How many of the compiled forms of a dispatcher came from disk."""
    return sum(run.stats.cache_hits.values())


def pair():
    """Two functions with the same instructions on one line."""
    return (lambda x: math.sin(x), lambda x: math.cos(x))


def test_functions_that_differ_in_names_only_are_told_apart(folder):
    first, second = pair()
    assert first.__code__.co_code == second.__code__.co_code
    assert declare.compiled(first)(1.0) == math.sin(1.0)
    assert declare.compiled(second)(1.0) == math.cos(1.0)
    again, other = (declare.compiled(f) for f in pair())
    assert (again(1.0), other(1.0)) == (math.sin(1.0), math.cos(1.0))
    assert (loaded(again), loaded(other)) == (1, 1)


def test_functions_that_enclose_other_values_are_told_apart(folder):
    def times(factor):
        return declare.compiled(lambda x: factor * x)

    assert [times(k)(3.0) for k in (2.0, 5.0, -0.0, 0.0)] == [6.0, 15.0, -0.0, 0.0]
    assert math.copysign(1.0, times(-0.0)(3.0)) == -1.0
    assert math.copysign(1.0, times(0.0)(3.0)) == 1.0


def test_two_loaded_functions_of_one_name_and_type_stay_two_in_one_program(folder):
    for times_loaded in (0, 1):
        sine, cosine = (declare.compiled(f) for f in pair())
        both = numba.njit(lambda x: sine(x) + 10.0 * cosine(x))
        assert both(0.4) == math.sin(0.4) + 10.0 * math.cos(0.4)
        assert (loaded(sine), loaded(cosine)) == (times_loaded, times_loaded)


def test_machine_code_is_kept_for_the_flags_of_the_caller(folder):
    def quotient(x, y):
        return x / y

    def raising(x, y):
        return inner(x, y)

    inner = declare.compiled(quotient)
    assert numba.njit(error_model="numpy")(raising)(1.0, 0.0) == math.inf
    inner = declare.compiled(quotient)  # as in another process
    with pytest.raises(ZeroDivisionError):
        numba.njit(error_model="python")(raising)(1.0, 0.0)
    assert loaded(inner) == 0
    inner = declare.compiled(quotient)
    assert numba.njit(error_model="numpy")(raising)(1.0, 0.0) == math.inf
    assert loaded(inner) == 1


def triple(x):
    return 3.0 * x


def test_damaged_files_are_compiled_anew(folder):
    declare.compiled(triple)(1.0)
    (path,) = folder.rglob("*.bin")
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    for damaged in (b"", whole[:-20], bytes(flipped), b"no code" * 100):
        path.write_bytes(damaged)
        run = declare.compiled(triple)
        assert run(2.0) == 6.0
        assert loaded(run) == 0
        assert path.read_bytes() != damaged
    run = declare.compiled(triple)
    assert (run(2.0), loaded(run)) == (6.0, 1)


def test_code_for_other_arguments_is_never_used_even_from_the_wrong_file(folder):
    run = declare.compiled(triple)
    run(1.0)
    (of_floats,) = folder.rglob("*.bin")
    run(1j)
    (of_complex,) = set(folder.rglob("*.bin")) - {of_floats}
    of_complex.write_bytes(of_floats.read_bytes())
    run = declare.compiled(triple)
    assert (run(2j), loaded(run)) == (6j, 0)


def test_nothing_is_found_or_kept_when_the_sources_have_changed(folder, monkeypatch):
    declare.compiled(triple)(1.0)
    monkeypatch.setattr(fingerprint, "surroundings", lambda: "other sources")
    run = declare.compiled(triple)
    assert (run(1.0), loaded(run)) == (3.0, 0)
    run = declare.compiled(triple)
    assert (run(1.0), loaded(run)) == (3.0, 1)
    monkeypatch.setattr(fingerprint, "is_as_imported", lambda age=0.0: False)
    before = {path: path.read_bytes() for path in folder.rglob("*.bin")}
    declare.compiled(triple)(np.ones(2))
    assert {path: path.read_bytes() for path in folder.rglob("*.bin")} == before


def test_sources_that_were_edited_since_they_were_imported_are_noticed(tmp_path, monkeypatch):
    (tmp_path / "module.py").write_text("one = 1\n")
    monkeypatch.setattr(fingerprint, "PACKAGE", tmp_path)
    monkeypatch.setattr(fingerprint, "STAMPS", fingerprint.stamps())
    assert fingerprint.is_as_imported()
    (tmp_path / "module.py").write_text("one = 1.0\n")
    assert not fingerprint.is_as_imported()


def test_an_empty_variable_keeps_nothing(folder, monkeypatch):
    monkeypatch.setenv("PLAINGRAD_CACHE_DIR", "")
    assert declare.compiled(lambda x: x + 1.0)(1.0) == 2.0
    assert not folder.exists()


def test_a_folder_that_cannot_be_made_is_no_matter(folder, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PLAINGRAD_CACHE_DIR", str(tmp_path / "file" / "kept"))
    assert declare.compiled(lambda x: x + 2.0)(1.0) == 3.0


def test_functions_of_the_users_are_not_kept(folder, monkeypatch):
    monkeypatch.setattr(fingerprint, "PACKAGE", Path("/nowhere"))
    assert declare.compiled(lambda x: x + 3.0)(1.0) == 4.0
    assert not folder.exists()


def test_later_processes_compile_no_helper_and_find_the_same_bits(tmp_path):
    env = {**os.environ, "PYTHONPATH": HERE, "PLAINGRAD_CACHE_DIR": str(tmp_path / "kept")}
    found = []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", RUN], env=env, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        found.append(done.stdout.splitlines())
        if found[-1][1] == "0":  # else when an arena is collected, the interpreter's choice, was decisive: a process more
            break
    assert len({numbers for numbers, _ in found}) == 1
    assert int(found[0][1]) > 10
    assert len(found) > 1 and int(found[-1][1]) == 0


@declare.register_jitable
def _described(x, sign):
    """A helper whose error names a number: Numba looks for the environment of the function then."""
    if x < 0:
        raise ValueError("below", x, sign)
    return sign * x


@declare.register_jitable
def _calls(x):
    return _described(x, 2.0) + _described(x, 1.0)


def test_helpers_that_are_linked_raise_as_they_would_by_themselves(folder):
    for _ in range(2):  # compiled, then loaded

        def program(x):
            return _calls(x)

        run = declare.program(program, {})
        assert run(1.5) == 4.5
        with pytest.raises(ValueError, match="below") as caught:
            run(-1.5)
        assert caught.value.args == ("below", -1.5, 2.0)


def test_a_helper_that_moves_is_compiled_once_for_all_flags(folder):
    @declare.register_jitable(moves=True)
    def second(x):
        return x[1]

    @declare.register_jitable
    def product(x):
        return x[0] * x[1]

    def program(x):
        return second(x) + product(x)

    x = np.array([2.0, 3.0])
    for options in ({}, {"fastmath": True}, {"error_model": "numpy"}):
        assert declare.program(program, options)(x) == 9.0
    names = [path.name.split("_")[0] for path in folder.rglob("*.bin")]
    assert (names.count("second"), names.count("product")) == (1, 3)
