"""Lets the files of this folder import the helper beside them, whatever pytest's import mode; and checks derivatives."""

import sys
from pathlib import Path

import pytest

from plaingrad.testing import checked
from tests.sampling import is_in_sample

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def in_checked_mode(request):
    """In one test in four, every derivative is compared with a plain call, and its modes with one another.

    In the others only by `cases.check`, which does so for a gradient; with PLAINGRAD_TEST_ALL=1 in all tests.
    """
    if request.node.get_closest_marker("unchecked") or not is_in_sample(request.node.nodeid, 4):
        yield
    else:
        with checked():
            yield
