"""What the tests of the native tier share: `grad` is reverse mode, also where there are few inputs."""

import importlib.util

import pytest


@pytest.fixture(autouse=True)
def reverse_mode(monkeypatch, request):
    """`grad` by forward mode, for few inputs, is tested by itself: in modules that set BY_COLUMNS."""
    if importlib.util.find_spec("numba") is None:
        return
    if not getattr(request.module, "BY_COLUMNS", False):
        monkeypatch.setattr("plaingrad.native.call.FEW_COLUMNS", 0)
