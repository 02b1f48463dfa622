"""Facts about `scipy.sparse`. Its Python derives by itself; here are the compiled functions that it calls."""

from __future__ import annotations

from collections.abc import Iterable

from plaingrad.rulebook import Rule
from plaingrad.rules.scipy import forms
from plaingrad.rules.scipy.sparse import (
    binary,
    deflation,
    eigen,
    graphs,
    iterative,
    lists,
    matrix_products,
    products,
    structure,
    superlu,
)


def rules() -> Iterable[Rule]:
    """All of them."""
    return forms.gathered()


__all__ = ["binary", "deflation", "eigen", "graphs", "iterative", "lists", "matrix_products", "products", "structure", "superlu"]
