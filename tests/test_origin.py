"""Whose code it is: a program's module is the program's, whatever its name."""

import importlib
import json
import sys

import numpy as np
import plaingrad
import pytest
from plaingrad import origin

MEMOS = """
MEMO = {}

class Square:
    factor = 1.0

    def __call__(self, p):
        return self.factor * p * p

def square(p):
    def found():
        if "square" not in MEMO:
            MEMO["square"] = p * p
        return MEMO["square"]
    MEMO.clear()
    return found
"""


@pytest.fixture(params=["test", "scipy_models", "numpy_helpers", "numba_kernels"])
def module(request, tmp_path, monkeypatch):
    """A module of the program that is called like, or nearly like, one of a library."""
    (tmp_path / f"{request.param}.py").write_text(MEMOS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, request.param, raising=False)
    yield importlib.import_module(request.param)
    sys.modules.pop(request.param, None)


def test_a_module_of_the_program_is_the_programs_whatever_its_name(module):
    assert not origin.is_standard(module.__name__) and not origin.is_of_package(module.__name__)
    assert not origin.is_of(module.__name__, ("numpy", "scipy", "numba"))


def test_modules_of_the_library_and_of_packages():
    assert origin.is_standard("json.decoder") and origin.is_standard("math") and origin.is_standard(json.__name__)
    assert not origin.is_standard("numpy.linalg") and origin.is_of_package("numpy.linalg")
    assert not origin.is_standard("__main__") and not origin.is_standard(None) and not origin.is_of_package(__name__)
    assert origin.is_of("numpy.linalg", ("numpy",)) and origin.is_of("numpy", ("numpy",))
    assert not origin.is_of(None, ("numpy",)) and origin.package_of(None) == ""
    assert origin.is_standard_file(json.__file__) and not origin.is_installed_file(json.__file__)
    assert origin.is_installed_file(np.__file__) and not origin.is_standard_file(np.__file__)


def test_a_memo_in_a_module_that_is_called_like_a_library_has_its_derivative(module):
    optimize = pytest.importorskip("scipy.optimize")

    def f(p):
        found = module.square(p)
        return optimize.brentq(lambda x: x * x - found(), 0.0, 10.0, xtol=1e-14)

    assert np.isclose(plaingrad.grad(f)(3.0), 1.0, rtol=1e-10)  # the root is p
    assert np.isclose(plaingrad.jvp(f, (3.0,), (1.0,))[1], 1.0, rtol=1e-10)


def test_a_method_that_such_a_module_is_given_later_is_the_one_that_is_differentiated(module, monkeypatch):
    square, gradient = module.Square(), plaingrad.grad(lambda p: module.Square()(p))
    assert gradient(3.0) == 6.0 and square(3.0) == 9.0
    monkeypatch.setattr(module.Square, "__call__", lambda self, p: p * p * p)
    assert gradient(3.0) == 27.0
