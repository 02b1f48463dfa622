"""The rules of SciPy's functions are entered when one of them is first met, not when another one is by chance."""

import subprocess
import sys
from types import FunctionType

import pytest

pytest.importorskip("scipy")

from plaingrad.rules import scipy as rules_of_scipy  # noqa: E402


def test_every_function_with_a_rule_is_of_a_module_that_is_waited_for():
    waited = {module for modules in rules_of_scipy.PACKAGES.values() for module in modules}
    waited |= {*rules_of_scipy.PYTHON_MODULES, "scipy.special"}
    unheard = set()
    for package in rules_of_scipy.PACKAGES:
        for rule in rules_of_scipy.rules_of(package):
            function = rule.function
            if type(function) is FunctionType and not function.__module__.startswith(("plaingrad.", "numpy")):
                if function.__module__ not in waited and "array_api_compat" not in function.__module__:
                    unheard.add((function.__module__, function.__name__))
    assert not unheard


def test_the_rulebook_is_whole_where_scipy_is_not_installed():
    program = "import sys; sys.modules['scipy'] = None; import plaingrad; print(len(list(plaingrad.rulebook.rules())))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 1000


def test_a_function_of_cython_wakes_the_rules_of_its_package():
    program = (
        "import numpy as np, plaingrad; from scipy.sparse import csgraph\n"
        "print(plaingrad.grad(lambda x: csgraph.minimum_spanning_tree(x).sum())(np.array([[0.0, 2.0], [0.0, 0.0]])).tolist())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[[0.0, 1.0], [0.0, 0.0]]", done.stderr


def test_a_function_compiled_by_cython_may_be_the_first_of_its_module():
    program = (
        "import numpy as np, scipy.spatial, plaingrad\n"
        "d = scipy.spatial.Delaunay(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))\n"
        "def f(x): return (x * (1 + scipy.spatial.tsearch(d, x)[:, None])).sum()\n"
        "x = np.array([[0.2, 0.1], [0.9, 0.8]])\n"
        "print((plaingrad.grad(f)(x) == (1 + scipy.spatial.tsearch(d, x)[:, None]) * np.ones(2)).all())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "True\n", done.stderr
