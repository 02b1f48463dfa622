"""The distance of two structures of atoms after the best rotation, of MDAnalysis."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from plaingrad.rulebook import Rule
from plaingrad.rules.packages.formulas import rules_by_formulas
from plaingrad.rules.scipy.implicit import refuse

MODULE = "MDAnalysis.lib.qcprot"


def CalcRMSDRotationalMatrix(value: Any, ref: Any, conf: Any, N: Any, rot: Any = None, weights: Any = None) -> Any:
    """By the singular values of conf^T ref: W. Kabsch, Acta Crystallographica A 32 (1976) 922."""
    if rot is not None:
        refuse(CalcRMSDRotationalMatrix, "it writes the rotation into an argument; use rot=None")
    w = np.ones(len(ref)) if weights is None else np.asarray(weights)
    products = (conf * w[:, None]).T @ ref
    s = np.linalg.svd(products, compute_uv=False)
    best = s[0] + s[1] + (s[2] if np.linalg.det(products) >= 0 else -s[2])
    squares = ((ref * ref + conf * conf) * w[:, None]).sum()
    return np.sqrt(np.abs(squares - 2.0 * best) / N)


def rules() -> Iterable[Rule]:
    """Of `MDAnalysis.lib.qcprot`; its other functions write into arguments, and are refused."""
    yield from rules_by_formulas(
        sys.modules.get(MODULE), {"CalcRMSDRotationalMatrix": CalcRMSDRotationalMatrix}
    )
