"""Helpers of GPy: a matrix is made symmetric in place by compiled code, and squared by a routine that overwrites."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from plaingrad.rulebook import Rule
from plaingrad.rules.packages.formulas import rules_by_formulas
from plaingrad.rules.scipy.implicit import refuse, source_of

MODULE = "GPy.util.linalg"
COMPILED = "GPy.util.linalg_cython"


def symmetrify(A: Any, upper: bool = False) -> None:
    """A triangle, the lower one or the upper one, is written into the other."""
    n = A.shape[0]
    kept = np.triu(np.ones((n, n), bool)) if upper else np.tril(np.ones((n, n), bool))
    A[...] = np.where(kept, A, A.T)


def tdot_blas(value: Any, mat: Any, out: Any = None) -> Any:
    """M M^T."""
    if out is not None:
        refuse(tdot_blas, "it writes into an argument; leave out `out`")
    return mat @ mat.T


def rules() -> Iterable[Rule]:
    """Of `GPy.util.linalg`."""
    yield from rules_by_formulas(sys.modules.get(MODULE), {"tdot_blas": tdot_blas})


def rules_of_compiled() -> Iterable[Rule]:
    """Of `GPy.util.linalg_cython`."""
    function = getattr(sys.modules.get(COMPILED), "symmetrify", None)
    if function is not None:
        yield Rule(function, "composed", definition=symmetrify, mutates=True, source=source_of(symmetrify))
