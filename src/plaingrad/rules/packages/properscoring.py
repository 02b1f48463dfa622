"""The continuous ranked probability score of an ensemble, of properscoring, which compiles it by Numba."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from plaingrad.rulebook import Rule
from plaingrad.rules.packages.formulas import rules_by_formulas

MODULE = "properscoring._crps"  # of the functions that call the compiled one, which does not know its own
COMPILED = "properscoring._gufuncs"


def _crps_ensemble_gufunc(value: Any, observation: Any, forecasts: Any, weights: Any) -> Any:
    """E|X - y| - E|X - X'| / 2: T. Gneiting, A. Raftery, J. Am. Stat. Assoc. 102 (2007) 359, equation 21."""
    x, y = np.asarray(forecasts), np.asarray(observation)
    w = weights / np.sum(weights, axis=-1, keepdims=True)
    apart = np.abs(x[..., :, None] - x[..., None, :])
    spread = (w[..., :, None] * w[..., None, :] * apart).sum(axis=(-1, -2))
    return (w * np.abs(x - y[..., None])).sum(axis=-1) - 0.5 * spread


def rules() -> Iterable[Rule]:
    """Of `properscoring._gufuncs`."""
    yield from rules_by_formulas(
        sys.modules.get(COMPILED), {"_crps_ensemble_gufunc": _crps_ensemble_gufunc}
    )
