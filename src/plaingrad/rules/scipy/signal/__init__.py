"""Facts about `scipy.signal`: its Python derives by itself, down to the compiled filters."""

from __future__ import annotations

from collections.abc import Iterable

from plaingrad.rulebook import Rule
from plaingrad.rules.scipy import fft, forms
from plaingrad.rules.scipy.implicit import Rules
from plaingrad.rules.scipy.signal import (
    convolutions,
    filters,
    mirrored,
    peaks,
    recursive,
    segments,
    separable,
)


def rules() -> Iterable[Rule]:
    """All of them."""
    yield from forms.gathered()
    yield from Rules()  # those of helpers


__all__ = ["convolutions", "fft", "filters", "mirrored", "peaks", "recursive", "segments", "separable"]
