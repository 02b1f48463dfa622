"""`plaingrad coverage`: what is said of functions without calling them, and that it is true when they are called."""

import json
import subprocess
import sys

import numpy as np
import pytest

import plaingrad
from plaingrad.cli import main

PACKAGE = '''
"""A package as a user has it: it counts what is called."""
import ctypes
import functools
import struct
from math import sin

import numpy as np

CALLED = []
TABLE = {"packed": struct.pack}


def smooth(x):
    return helper(x) * np.exp(x)


def helper(x):
    return sin(x)


def count(f):
    @functools.wraps(f)
    def counted(*args):
        CALLED.append(f)
        return f(*args)
    return counted


@count
def packs(x):
    return struct.pack("d", x)


def chooses(name, x):
    return TABLE[name]("d", x)


def bent(x):
    return np.nested_iters(x, [[0]])


class Model:
    def __init__(self, scale):
        self.scale = scale

    def value(self, x):
        return self._inner(x) * self.scale

    def packed(self):
        return packs(self.scale)

    def _inner(self, x):
        return x * x

    @property
    def size(self):
        return abs(self.scale)

    @staticmethod
    def fixed(x):
        return np.sin(x)


class Deeper(Model):
    def _inner(self, x):
        return struct.unpack("d", x)


class Base:
    def size(self, x):
        return struct.pack("d", x)


class Above(Base):
    def size(self, x):
        return super().size(x)


def uses(x):
    model = Model(x)
    return model.packed()


def positions(x):
    return np.argmax(x)
'''


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    folder = tmp_path_factory.mktemp("covered")
    inner = folder / "covered_package"
    inner.mkdir()
    (inner / "__init__.py").write_text("")
    (inner / "sub.py").write_text(PACKAGE)
    (inner / "never.py").write_text("raise SystemExit('imported')")
    sys.path.insert(0, str(folder))
    yield "covered_package"
    sys.path.remove(str(folder))
    for name in ("covered_package", "covered_package.sub"):
        sys.modules.pop(name, None)


def asked(capsys, *args):
    status = main(["coverage", *args, "--json"])
    return status, json.loads(capsys.readouterr().out)


def test_functions_classes_and_methods_of_a_users_module(package, capsys):
    status, answer = asked(capsys, f"{package}.sub")
    found = {entry["name"].removeprefix(f"{package}.sub."): entry for entry in answer["entries"]}
    assert status == 0
    assert {name: entry["status"] for name, entry in found.items()} == {
        "smooth": "followed", "helper": "followed", "count": "followed", "packs": "depends", "chooses": "depends",
        "bent": "depends", "uses": "depends", "positions": "followed",
        "Model": "followed", "Model.value": "followed", "Model.packed": "depends", "Model.size": "followed",
        "Model.fixed": "followed",
        "Deeper": "followed", "Deeper.value": "depends", "Deeper.packed": "depends", "Deeper.size": "followed",
        "Deeper.fixed": "followed",
        "Base": "followed", "Base.size": "depends", "Above": "followed", "Above.size": "depends",
    }  # fmt: skip
    assert found["Model.value"]["kind"] == "method" and found["Model"]["kind"] == "class"
    obstacle = found["uses"]["obstacles"][0]
    assert obstacle["name"] == "struct.pack"
    assert [step.rpartition(".")[2] for step in obstacle["way"]] == ["packed", "packs", "packs"]  # the wrapper has its name
    assert answer["modules"][f"{package}.sub"]["functions"]["depends"] == 4
    assert sys.modules[f"{package}.sub"].CALLED == []  # nothing was called
    assert f"{package}.never" not in sys.modules


def test_what_is_said_is_what_happens(package, capsys):
    asked(capsys, f"{package}.sub")
    sub = sys.modules[f"{package}.sub"]
    assert plaingrad.grad(sub.smooth)(0.3) == pytest.approx(np.exp(0.3) * (np.sin(0.3) + np.cos(0.3)))
    for refused in (sub.uses, lambda x: sub.chooses("packed", x), lambda x: sub.Above().size(x)):
        with pytest.raises(plaingrad.MissingRuleError):
            plaingrad.grad(refused)(0.3)


def test_one_function(package, capsys):
    assert main(["coverage", f"{package}.sub.smooth"]) == 0
    assert capsys.readouterr().out.startswith(f"{package}.sub.smooth: followed")
    assert main(["coverage", f"{package}.sub.Model.packed"]) == 1
    out = capsys.readouterr().out
    assert f"{package}.sub.packs > struct.pack" in out
    status, answer = asked(capsys, "math.sin")
    assert status == 0 and answer["status"] == "rule"
    status, answer = asked(capsys, "numpy.packbits")
    assert status == 1 and answer["status"] == "refused" and answer["why"] == "takes integers"


def test_only_what_is_asked_for_is_listed(package, capsys):
    assert main(["coverage", f"{package}.sub", "--depends"]) == 1
    out = capsys.readouterr().out
    assert "sub.uses" in out and "sub.smooth" not in out
    assert main(["coverage", f"{package}.sub", "--refused"]) == 0
    assert "sub.uses" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "target, message",
    [
        ("no_such_module_here", "there is no module 'no_such_module_here'"),
        ("math.sinus", "math has no 'sinus'"),
        ("a file.py", "expected the name of a module"),
        ("covered_package.never", "covered_package.never cannot be imported: SystemExit: imported"),
    ],
)
def test_what_cannot_be_looked_at(package, capsys, target, message):
    assert main(["coverage", target]) == 2
    assert message in capsys.readouterr().err


def test_nothing_is_imported_but_what_is_asked_for():
    program = (
        "import sys\nfrom plaingrad.cli import main\nmain(['coverage', 'json'])\n"
        "assert 'scipy' not in sys.modules and 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


def test_numpy_has_no_ufunc_without_a_word(capsys):
    status, answer = asked(capsys, "numpy")
    ufuncs = [entry for entry in answer["entries"] if entry["kind"] == "ufunc"]
    assert len(ufuncs) > 80 and {entry["status"] for entry in ufuncs} == {"rule", "no tangent"}
    assert {entry["status"] for entry in answer["entries"] if entry["module"] == "numpy.fft"} <= {"rule", "followed"}


def test_scipy_by_module(capsys):
    pytest.importorskip("scipy")
    assert main(["coverage", "scipy.linalg"]) == 0
    out = capsys.readouterr().out
    assert "scipy.linalg.expm " in out and "scipy.linalg.cossin" in out
    status, answer = asked(capsys, "scipy.optimize.milp")
    assert status == 1 and answer["why"] == "its unknowns are integers"
    status, answer = asked(capsys, "scipy.special.obl_rad2")
    assert status == 1 and answer["status"] == "refused"
    status, answer = asked(capsys, "scipy.stats.norm.logpdf")
    assert status == 0 and answer["status"] == "followed"
