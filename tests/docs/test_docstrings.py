"""The examples in docstrings run."""

import doctest
import importlib
import pkgutil

import pytest

import plaingrad

MODULES = ["plaingrad"] + [
    module.name
    for module in pkgutil.walk_packages(plaingrad.__path__, "plaingrad.")
    if not module.name.endswith("__main__")
]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_of(name, monkeypatch):
    if name.startswith("plaingrad.native."):
        pytest.importorskip("numba")
    if name.startswith("plaingrad.jax"):
        pytest.importorskip("jax")
    if name.startswith("plaingrad.torch"):
        pytest.importorskip("torch")
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    module = importlib.import_module(name)
    # For each docstring doctest has all files looked up whose lines were ever read.
    monkeypatch.setattr("linecache.checkcache", lambda *_: None)
    user = {"__name__": "__main__"}  # examples are a user's code, not this package's own
    assert doctest.testmod(module, extraglobs=user, optionflags=flags, verbose=False).failed == 0


def test_every_public_function_has_an_example():
    functions = [getattr(plaingrad, name) for name in plaingrad.__all__]
    without = [
        f.__name__
        for f in functions
        if callable(f) and not isinstance(f, type) and ">>>" not in (f.__doc__ or "")
    ]
    assert without == []
