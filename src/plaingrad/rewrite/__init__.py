"""Code object -> code object: ordinary functions whose instructions call the hooks of the current level."""

from plaingrad.rewrite.cache import (
    is_rewritten,
    known_form,
    locals_read,
    original,
    rewrite_function,
    rewritten,
    with_code,
)
from plaingrad.rewrite.describe import describe
from plaingrad.rewrite.hooks import CURRENT, HOOK_NAMES, PLAIN, Hooks, in_force

__all__ = [
    "CURRENT",
    "HOOK_NAMES",
    "PLAIN",
    "Hooks",
    "describe",
    "in_force",
    "is_rewritten",
    "known_form",
    "locals_read",
    "original",
    "rewrite_function",
    "rewritten",
    "with_code",
]
