"""Facts about `scipy.stats`: its Python derives by itself, down to compiled functions, integrals and limits."""

from __future__ import annotations

from collections.abc import Iterable

from plaingrad.rulebook import Rule
from plaingrad.rules.scipy import forms
from plaingrad.rules.scipy.stats import (
    boxes,
    covariances,
    densities,
    discrepancies,
    fits,
    infrastructure,
    integrals,
    kernels,
    moments,
    ranges,
    switches,
    transforms,
    urns,
)
from plaingrad.rules.scipy.stats.names import RULES


def rules() -> Iterable[Rule]:
    """All of them."""
    return [*RULES, *forms.gathered()]


__all__ = ["boxes", "covariances", "densities", "discrepancies", "fits", "infrastructure", "integrals", "kernels", "moments", "ranges", "switches", "transforms", "urns"]
