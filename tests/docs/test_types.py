"""What type checkers know of plaingrad, and what `help` says of a derivative."""

import json
import pydoc
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from plaingrad import grad, value_and_grad, vmap

PROGRAM = Path(__file__).with_name("typed_program.py")


def test_a_users_program_is_typed(tmp_path):
    pytest.importorskip("pyright")
    shutil.copy(PROGRAM, tmp_path)
    settings = {"typeCheckingMode": "standard", "pythonVersion": "3.11", "extraPaths": [str(PROGRAM.parents[2] / "src")]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "-p", str(tmp_path), "--pythonpath", sys.executable, "--outputjson"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == 1
    found = {d["range"]["start"]["line"] + 1: d["message"] for d in report["generalDiagnostics"] if d["severity"] == "error"}
    lines = PROGRAM.read_text(encoding="utf-8").splitlines()
    expected = {n for n, line in enumerate(lines, 1) if "# error: " in line}
    assert set(found) == expected, found


def test_help_of_a_gradient_says_that_it_is_one():
    def area(radius: float) -> float:
        """The area of a disc."""
        return 3.14 * radius**2

    for made, said in ((grad(area), "The gradient of area"), (value_and_grad(area), "The value and the gradient of area")):
        text = pydoc.plain(pydoc.render_doc(made))
        assert said in text and "The area of a disc." in text and "radius: float" in text
    assert "area of every example of a batch" in pydoc.plain(pydoc.render_doc(vmap(area)))
