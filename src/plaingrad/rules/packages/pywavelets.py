"""The discrete wavelet transforms of PyWavelets, in C: convolutions of the extended signal, of which each second stays."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from plaingrad.rulebook import Rule
from plaingrad.rules.packages.formulas import rules_by_formulas
from plaingrad.rules.scipy.implicit import refuse

MODULE = "pywt._extensions._dwt"
CHECKS = "pywt._extensions._pywt"


def refuse_periodization(mode: Any) -> None:
    """Of that mode the formulas are not true, though they may give the same numbers."""
    if mode == sys.modules["pywt"].Modes.periodization:
        refuse(dwt_single, "it is not known for periodization; use another mode")


def halves(data: Any, wavelet: Any, mode: Any, n: int) -> tuple[Any, Any]:
    """Approximation and details, of n numbers each, of a vector."""
    pywt: Any = sys.modules["pywt"]
    refuse_periodization(mode)
    width = wavelet.dec_len - 1
    name = next(name for name in pywt.Modes.modes if getattr(pywt.Modes, name) == mode)
    extended = pywt.pad(data, (width, width + 1), name)
    low, high = (
        np.convolve(extended, np.array(f), "valid")[1::2][:n] for f in (wavelet.dec_lo, wavelet.dec_hi)
    )
    return low, high


def dwt_single(value: Any, data: Any, wavelet: Any, mode: Any) -> Any:
    """One level of the transform of a vector."""
    low, high = halves(np.asarray(data), wavelet, mode, len(value[0]))
    return low.astype(value[0].dtype), high.astype(value[1].dtype)


def dwt_axis(value: Any, data: Any, wavelet: Any, mode: Any, axis: int = 0) -> Any:
    """The same along an axis."""
    last = np.moveaxis(np.asarray(data), axis, -1)
    shape = np.moveaxis(value[0], axis, -1).shape
    found = [halves(row, wavelet, mode, shape[-1]) for row in np.reshape(last, (-1, last.shape[-1]))]
    return tuple(
        [
            np.moveaxis(np.reshape(np.stack([pair[k] for pair in found]), shape), -1, axis).astype(value[k].dtype)
            for k in (0, 1)
        ]
    )


def whole(low: Any, high: Any, wavelet: Any, n: int) -> Any:
    """The vector of n numbers that has these halves; None is none."""
    z = 0.0
    for half, f in ((low, wavelet.rec_lo), (high, wavelet.rec_hi)):
        if half is not None:
            apart = np.stack([half, np.zeros(len(half))], axis=1).reshape(-1)
            z = z + np.convolve(apart, np.array(f))[wavelet.rec_len - 2 :][:n]
    return z


def idwt_single(value: Any, cA: Any, cD: Any, wavelet: Any, mode: Any) -> Any:
    """The inverse of one level."""
    refuse_periodization(mode)
    return whole(cA, cD, wavelet, len(value)).astype(value.dtype)


def rules() -> Iterable[Rule]:
    """Of `pywt._extensions._dwt`; periodization, and inverses along an axis, are refused."""
    formulas = {"dwt_single": dwt_single, "dwt_axis": dwt_axis, "idwt_single": idwt_single}
    yield from rules_by_formulas(sys.modules.get(MODULE), formulas)


def rules_of_checks() -> Iterable[Rule]:
    """What looks for the type of numbers."""
    function = getattr(sys.modules.get(CHECKS), "_check_dtype", None)
    if function is not None:
        yield Rule(function, "no_tangent", source=f"{__file__}:1")
