"""Rules that a test enters are gone after it."""

import pytest

from plaingrad import rulebook


@pytest.fixture(autouse=True)
def rulebook_as_before():
    before = {id(rule): rule for rule in rulebook.rules()}  # by identity: there are thousands
    yield
    for rule in [rule for rule in rulebook.rules() if id(rule) not in before]:
        rulebook.uncover(rule.function)
    now = {id(rule) for rule in rulebook.rules()}
    for rule in before.values():
        if id(rule) not in now:  # a variant was entered, or it was removed
            rulebook.add(rule)
