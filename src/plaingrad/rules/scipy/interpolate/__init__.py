"""Facts about `scipy.interpolate`: its Python derives by itself, down to piecewise polynomials, B-splines and fits."""

from __future__ import annotations

from collections.abc import Iterable

from plaingrad.rulebook import Rule
from plaingrad.rules.scipy import forms
from plaingrad.rules.scipy.interpolate import (
    banded,
    basis,
    bsplines,
    curves,
    fitpack,
    fits,
    grids,
    piecewise,
    polynomials,
    radial,
    rational,
    scattered,
    surfaces,
)


def rules() -> Iterable[Rule]:
    """All of them."""
    return [*forms.gathered(), *curves.RULES, *surfaces.RULES, *rational.RULES, *scattered.RULES]


__all__ = ["banded", "basis", "bsplines", "fitpack", "fits", "grids", "piecewise", "polynomials", "radial"]
