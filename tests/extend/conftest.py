"""Rules that a test enters are gone after it."""

import pytest

from plaingrad import rulebook


@pytest.fixture(autouse=True)
def rulebook_as_before():
    before, covered = dict(rulebook._rules), dict(rulebook._covered)
    yield
    with rulebook._lock:
        rulebook._rules.clear()
        rulebook._rules.update(before)
        rulebook._covered.clear()
        rulebook._covered.update(covered)
        rulebook._tell()
