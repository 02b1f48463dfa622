"""Rules that a test enters are gone after it."""

import pytest

from plaingrad import rulebook


@pytest.fixture(autouse=True)
def rulebook_as_before():
    before = list(rulebook.rules())
    yield
    for rule in [rule for rule in rulebook.rules() if rule not in before]:
        rulebook.uncover(rule.function)
    now = list(rulebook.rules())
    for rule in before:
        if rule not in now:  # a variant was entered, or it was removed
            rulebook.add(rule)
