"""Checks of gradients and rules, for use in tests."""

from plaingrad.testing.checks import checked
from plaingrad.testing.gradients import check_grads
from plaingrad.testing.rules import check_rule

__all__ = ["check_grads", "check_rule", "checked"]
