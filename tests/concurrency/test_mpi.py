"""Messages between the ranks of an MPI program: its derivatives against those of the same program in one process."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("mpi4py")

PROGRAMS = pathlib.Path(__file__).with_name("mpi_programs.py")


def mpiexec():
    """The launcher beside this Python, or the one on the path."""
    return shutil.which("mpiexec", path=os.path.dirname(sys.executable)) or shutil.which("mpiexec")


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_programs_of_several_ranks(ranks):
    launcher = mpiexec()
    if launcher is None:
        pytest.skip("mpiexec is not installed")
    done = subprocess.run(
        [launcher, "-n", str(ranks), sys.executable, str(PROGRAMS)], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("right") == ranks


def test_the_stencil_has_the_gradient_of_one_process():
    launcher = mpiexec()
    if launcher is None:
        pytest.skip("mpiexec is not installed")
    example = pathlib.Path(__file__).parents[2] / "examples" / "mpi_stencil.py"
    done = subprocess.run(
        [launcher, "-n", "2", sys.executable, str(example)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split()[-1]) < 1e-13


def test_the_example_comes_to_rest():
    launcher = mpiexec()
    if launcher is None:
        pytest.skip("mpiexec is not installed")
    example = pathlib.Path(__file__).parents[2] / "examples" / "mpi_chain.py"
    done = subprocess.run(
        [launcher, "-n", "2", sys.executable, str(example)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    before, after = (float(word) for word in done.stdout.split() if word[0].isdigit())
    assert after < 0.01 * before
