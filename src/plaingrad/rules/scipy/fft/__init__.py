"""Facts about `scipy.fft`: its functions are followed to pocketfft, whose transforms are linear."""

from __future__ import annotations

from collections.abc import Iterable

from plaingrad.rulebook import Rule
from plaingrad.rules.scipy import forms
from plaingrad.rules.scipy.fft import old, transforms


def rules() -> Iterable[Rule]:
    """All of them."""
    return forms.gathered()


__all__ = ["old", "transforms"]
