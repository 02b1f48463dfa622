"""Lets the files of this folder import the helper beside them, whatever pytest's import mode; and checks derivatives."""

import sys
from pathlib import Path

import pytest

from plaingrad.testing import checked

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def in_checked_mode(request):
    """Every derivative that a test takes is compared with a plain call, and its modes with one another."""
    if request.node.get_closest_marker("unchecked"):
        yield
    else:
        with checked():
            yield
