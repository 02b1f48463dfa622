"""Where NumPy keeps the bodies of its methods, in both of its major versions."""

from types import SimpleNamespace

from plaingrad.engine.values.subclasses import numpys_methods


def test_a_core_without_methods_is_that_of_older_versions():
    methods = object()
    old = SimpleNamespace(_methods=methods)
    stub = SimpleNamespace()
    assert numpys_methods({"core": old}) is methods
    assert numpys_methods({"_core": stub, "core": old}) is methods  # 1.26, once C code for both has been imported
    assert numpys_methods({"_core": old, "core": stub}) is methods
