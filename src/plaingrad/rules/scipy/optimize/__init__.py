"""Facts about `scipy.optimize`: solvers are differentiated as what they solve, by the implicit function theorem."""

from __future__ import annotations

from collections.abc import Iterable

from plaingrad.rulebook import Rule
from plaingrad.rules.scipy import forms
from plaingrad.rules.scipy.optimize import minimizers, nonnegative, roots, squares


def rules() -> Iterable[Rule]:
    """All of them, and those of Krylov solvers, which large roots need."""
    return [*roots.RULES, *minimizers.RULES, *squares.RULES, *nonnegative.RULES, *forms.gathered()]
