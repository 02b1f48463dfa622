"""Facts about `scipy.interpolate`: its Python derives by itself, down to piecewise polynomials and B-splines."""

from __future__ import annotations

from collections.abc import Iterable

from plaingrad.rulebook import Rule
from plaingrad.rules.scipy import forms
from plaingrad.rules.scipy.interpolate import banded, grids, piecewise


def rules() -> Iterable[Rule]:
    """All of them."""
    return forms.gathered()


__all__ = ["banded", "grids", "piecewise"]
