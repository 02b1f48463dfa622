"""The matrix of CPythons and the checks, for those who like nox better than make.

`make test` tries a sample of cases that are alike and compiles a sample of the native programs, CI runs a sample on
3.12 to 3.14; here everything runs everywhere.
"""

import importlib.util

import nox

nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["lint", "tests"]
SPEC = importlib.util.spec_from_file_location("groups", ".ci/groups.py")
groups = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(groups)
THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@nox.session(python=["3.11", "3.12", "3.13", "3.14"])
def tests(session):
    """Every test under each CPython, every native program compiled and optimised as Numba does it by default."""
    session.install(*groups.arguments("test"))
    session.run(
        "pytest", "-q", "--timeout", "600", *session.posargs, env={**THREADS, "PLAINGRAD_TEST_ALL": "1"}
    )


@nox.session(python=["3.11", "3.12", "3.13", "3.14"])
def wheels(session):
    """The wheel of each CPython and the source distribution, in dist/, installed and tried."""
    session.install("build")
    session.run("python", ".ci/wheels.py", "dist")


@nox.session
def lint(session):
    """Layout, types and layers."""
    session.install(*groups.arguments("lint"))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("pyright", "--pythonpath", "python")
    session.run("lint-imports")


@nox.session
def docs(session):
    """The documentation as HTML, warnings being errors; the built pages are read and checked."""
    session.install(*groups.arguments("docs"))
    session.run("sphinx-build", "-q", "-E", "-W", "-b", "html", "docs", "docs/_build/html")
    session.run("python", "docs/check_pages.py", "docs/_build/html")
