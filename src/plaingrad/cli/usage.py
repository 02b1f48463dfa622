"""What the command line refuses."""

from __future__ import annotations


class UsageError(Exception):
    """The command cannot be carried out as given: one line on stderr, exit status 2."""
