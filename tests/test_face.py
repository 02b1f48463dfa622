"""What stands around the code: citation, security, issue forms, completion."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import plaingrad

ROOT = Path(__file__).resolve().parents[1]
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def test_the_citation_is_of_this_version():
    lines = (ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    assert f"version: {plaingrad.__version__}" in lines


def test_issue_forms_are_forms():
    yaml = pytest.importorskip("yaml")
    assert len(FORMS) == 4
    for form in FORMS:
        said = yaml.safe_load(form.read_text(encoding="utf-8"))
        if form.name != "config.yml":
            assert {"name", "description", "body"} <= said.keys()
            assert all(part["type"] in ("textarea", "input", "dropdown") for part in said["body"])


def test_the_command_completes_in_the_shell(tmp_path):
    pytest.importorskip("argcomplete")
    line = "plaingrad che"
    program = (
        "import os, sys; os.environ.update(_ARGCOMPLETE='1', _ARGCOMPLETE_IFS='\\n', "
        f"COMP_LINE={line!r}, COMP_POINT='{len(line)}', _ARGCOMPLETE_STDOUT_FILENAME=sys.argv[1]); "
        "from plaingrad import cli; cli.main([])"
    )
    out = tmp_path / "words"
    subprocess.run([sys.executable, "-c", program, str(out)], check=False, timeout=60)
    assert out.read_text().split() == ["check"]


def test_completion_is_an_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "argcomplete" in project["optional-dependencies"]["completion"][0]


def test_dependency_groups_are_for_those_who_work_on_it_and_extras_for_users():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras, groups = project["project"]["optional-dependencies"], project["dependency-groups"]
    assert set(extras) == {"scipy", "native", "completion", "mpi", "dask", "ray", "demo"}
    assert not any("pytest" in requirement for extra in extras.values() for requirement in extra)
    program = [sys.executable, str(ROOT / ".ci" / "groups.py")]
    said = subprocess.run([*program, "test", "docs"], capture_output=True, text=True, check=True).stdout.split()
    assert said[:2] == ["-e", ".[scipy,native]"] and len(said) == len(set(said))
    assert {r for name in ("wild", "test", "docs") for r in groups[name] if isinstance(r, str)} <= {*said, "plaingrad[scipy,native]", "plaingrad[scipy]"}
