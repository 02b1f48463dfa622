"""Facts about `scipy.special`: rows, by the subjects of its reference, and what SciPy lacks for them."""

from __future__ import annotations

from collections.abc import Iterable

from plaingrad.rulebook import Rule
from plaingrad.rules.scipy import forms
from plaingrad.rules.scipy.special import (
    airy,
    bessel,
    distributions,
    eigenvalues,
    elementary,
    elliptic,
    exponentials,
    gamma,
    harmonics,
    hypergeometric,
    incomplete,
    integrals,
    inverses,
    noncentral,
    normal,
    polynomials,
    private,
    refusals,
    sequences,
    wave,
    zeta,
)


def rules() -> Iterable[Rule]:
    """All of them."""
    return [*forms.gathered(), *exponentials.RULES]


__all__ = [
    "airy", "bessel", "distributions", "eigenvalues", "elementary", "elliptic", "exponentials", "gamma", "harmonics", "hypergeometric", "incomplete", "integrals",
    "inverses", "noncentral", "normal", "polynomials", "private", "refusals", "sequences", "wave", "zeta",
]  # fmt: skip
