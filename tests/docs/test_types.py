"""What type checkers know of plaingrad, and what `help` says of a derivative."""

import json
import pydoc
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from plaingrad import grad, value_and_grad, vmap

PROGRAM = Path(__file__).with_name("typed_program.py")


def by_pyright(folder):
    settings = {"typeCheckingMode": "standard", "pythonVersion": "3.11", "extraPaths": [str(PROGRAM.parents[2] / "src")]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "-p", str(folder), "--pythonpath", sys.executable, "--outputjson"]
    report = json.loads(subprocess.run(command, capture_output=True, text=True, cwd=folder).stdout)
    assert report["summary"]["filesAnalyzed"] == 1
    return {d["range"]["start"]["line"] + 1: d["message"] for d in report["generalDiagnostics"] if d["severity"] == "error"}


def by_mypy(folder):
    kept = Path(sys.prefix) / "mypy"  # what it knows of NumPy takes longest
    command = [sys.executable, "-m", "mypy", "--strict", "--python-version", "3.11", "--cache-dir", str(kept), PROGRAM.name]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert "checked 1 source file" in done.stdout, done.stdout + done.stderr
    said = (re.match(r"typed_program\.py:(\d+): error: (.*)", line) for line in done.stdout.splitlines())
    return {int(found[1]): found[2] for found in said if found}


@pytest.mark.parametrize("checker, check", [("pyright", by_pyright), ("mypy", by_mypy)])
def test_a_users_program_is_typed(checker, check, tmp_path):
    pytest.importorskip(checker)
    shutil.copy(PROGRAM, tmp_path)
    found = check(tmp_path)
    lines = PROGRAM.read_text(encoding="utf-8").splitlines()
    expected = {n for n, line in enumerate(lines, 1) if "# error: " in line}
    assert len(expected) == 7 and set(found) == expected, found


def test_help_of_a_gradient_says_that_it_is_one():
    def area(radius: float) -> float:
        """The area of a disc."""
        return 3.14 * radius**2

    for made, said in ((grad(area), "The gradient of area"), (value_and_grad(area), "The value and the gradient of area")):
        text = pydoc.plain(pydoc.render_doc(made))
        assert said in text and "The area of a disc." in text and "radius: float" in text
    assert "area of every example of a batch" in pydoc.plain(pydoc.render_doc(vmap(area)))
