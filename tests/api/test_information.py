"""What users are told about the form of the core: on request always, unasked once, and only those who keep logs."""

import os
import subprocess
import sys

import pytest

UNBUILT = "import sys; sys.modules['plaingrad.engine.compiled._core'] = None\n"
LOGGED = "import logging; logging.basicConfig(level='INFO', stream=sys.stdout, format='%(name)s: %(message)s')\n"
PROGRAM = """
import plaingrad
print(plaingrad.info()["core"])
assert plaingrad.grad(lambda x: x * x)(3.0) == 6.0
assert plaingrad.jvp(lambda x: x * x, (3.0,), (1.0,)) == (9.0, 6.0)
"""


def output(code, **environment):
    """What a new process prints; it must end well and leave the standard error empty."""
    environment = {**os.environ, "PLAINGRAD_COMPILED": "1", **environment}
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=120)
    assert (found.returncode, found.stderr) == (0, "")
    return found.stdout.splitlines()


def test_the_slower_form_is_said_once_to_those_who_log():
    lines = output(UNBUILT + LOGGED + PROGRAM)
    assert len(lines) == 2
    assert lines[0].startswith("python: the extension was not built")
    assert lines[1].startswith("plaingrad: the compiled core is not in use: the extension was not built")


def test_the_slower_form_is_not_said_to_others():
    assert len(output(UNBUILT + PROGRAM)) == 1


@pytest.mark.parametrize("asked", ["0", "1"])
def test_nothing_is_said_of_what_was_asked_for(asked):
    lines = output("import sys\n" + LOGGED + PROGRAM, PLAINGRAD_COMPILED=asked)
    assert len(lines) == (1 if asked == "0" or lines[0] == "compiled" else 2)
