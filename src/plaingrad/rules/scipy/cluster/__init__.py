"""Facts about `scipy.cluster`: its Python derives by itself, down to the compiled functions of trees and of means."""

from __future__ import annotations

from collections.abc import Iterable

from plaingrad.rulebook import Rule
from plaingrad.rules.scipy import forms
from plaingrad.rules.scipy.cluster import hierarchy, means


def rules() -> Iterable[Rule]:
    """All of them."""
    return forms.gathered()


__all__ = ["hierarchy", "means"]
