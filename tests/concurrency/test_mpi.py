"""Messages between the ranks of an MPI program: its derivatives against those of the same program in one process."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("mpi4py")

PROGRAMS = pathlib.Path(__file__).with_name("mpi_programs.py")
EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


def mpiexec():
    """The launcher beside this Python, or the one on the path."""
    return shutil.which("mpiexec", path=os.path.dirname(sys.executable)) or shutil.which("mpiexec")


def printed(program, ranks, timeout):
    """What the ranks of a program print, which ends well."""
    launcher = mpiexec()
    if launcher is None:
        pytest.skip("mpiexec is not installed")
    done = subprocess.run(
        [launcher, "-n", str(ranks), sys.executable, str(program)], capture_output=True, text=True, timeout=timeout
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_programs_of_several_ranks(ranks):
    assert printed(PROGRAMS, ranks, 100).count("right") == ranks


def test_the_stencil_has_the_gradient_of_one_process():
    text = printed(EXAMPLES / "mpi_stencil.py", 2, 60)
    assert float(text.split()[-1]) < 1e-13


def test_the_example_comes_to_rest():
    text = printed(EXAMPLES / "mpi_chain.py", 2, 60)
    before, after = (float(word) for word in text.split() if word[0].isdigit())
    assert after < 0.01 * before
