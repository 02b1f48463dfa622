"""Facts about `scipy.signal`: its Python derives by itself, down to the compiled filters."""

from __future__ import annotations

from collections.abc import Iterable

from plaingrad.rulebook import Rule
from plaingrad.rules.scipy import fft, forms
from plaingrad.rules.scipy.signal import convolutions, filters, mirrored, peaks, recursive, separable


def rules() -> Iterable[Rule]:
    """All of them."""
    return forms.gathered()


__all__ = ["convolutions", "fft", "filters", "mirrored", "peaks", "recursive", "separable"]
