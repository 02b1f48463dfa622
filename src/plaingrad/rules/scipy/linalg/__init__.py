"""The rules of `scipy.linalg`."""

from __future__ import annotations

from collections.abc import Iterable

from plaingrad.rulebook import Rule
from plaingrad.rules.scipy.linalg import (
    control,
    eigenvectors,
    entering,
    equations,
    factored,
    functions,
    lapack,
    least_squares,
    orthogonal,
    schur,
    singular,
    spectra,
    structured,
)


def rules() -> Iterable[Rule]:
    """All of them."""
    return entering.gathered()


__all__ = ["control", "eigenvectors", "equations", "factored", "functions", "lapack", "least_squares", "orthogonal", "schur", "singular", "spectra", "structured"]
