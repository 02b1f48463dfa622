"""Facts about `scipy.ndimage`: its Python derives by itself, down to the compiled filters."""

from __future__ import annotations

from collections.abc import Iterable

from plaingrad.rulebook import Rule
from plaingrad.rules.scipy import forms
from plaingrad.rules.scipy.ndimage import calling, distances, filters, fourier, interpolation, orders


def rules() -> Iterable[Rule]:
    """All of them."""
    return forms.gathered()


__all__ = ["calling", "distances", "filters", "fourier", "interpolation", "orders"]
