"""Spectra of overlapping segments: SciPy's loop over them as one transform of all, where its trend is SciPy's, too."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import signal

from plaingrad.rules.scipy.compiled import definitions
from plaingrad.rules.scipy.implicit import called, carrying, fresh, is_active, without_rule

TRENDS = ("constant", "linear")
Transform = getattr(signal, "ShortTimeFFT", None)  # SciPy has it from 1.12 on
one_by_one = without_rule(Transform.stft_detrend) if Transform is not None else None


@definitions(Transform)("stft_detrend")
def stft_detrend(self, x, detr, p0=None, p1=None, *, k_offset=0, padding="zeros", axis=-1):
    """Any other function that takes the trend away gets the segments one by one."""
    options = {"p0": p0, "p1": p1, "k_offset": k_offset, "padding": padding, "axis": axis}
    plain = type(x) is np.ndarray and x.dtype == float and type(self) is Transform
    if not plain or padding != "zeros" or not (detr is None or detr in TRENDS):
        return one_by_one(self, x, detr, **options)
    if not is_active((x, self.win)):
        return called(signal.ShortTimeFFT.stft_detrend, ((self, x, detr), options))
    value = fresh(called(signal.ShortTimeFFT.stft_detrend, ((self, x, detr), options)))
    segments = segments_of(self, np.moveaxis(x, axis, -1), k_offset, *self.p_range(x.shape[axis], p0, p1))
    if detr is not None:
        segments = signal.detrend(segments, type=detr)
    spectra = np.swapaxes(self._fft_func(segments * np.conj(self.win)), -1, -2)
    if x.ndim > 1:
        spectra = np.moveaxis(spectra, -2, axis if axis >= 0 else axis - 1)
    return carrying(value, spectra)


def segments_of(transform: Any, x: Any, k_offset: int, first: int, last: int) -> Any:
    """The segments, rows along the last axis but one, with zeros where they stick out."""
    start = first * transform.hop - transform.m_num_mid + k_offset
    end = start + (last - first) * transform.hop + transform.m_num
    n = x.shape[-1]
    around = [(0, 0)] * (x.ndim - 1) + [(-min(start, 0), max(end - n, 0))]
    whole = np.pad(x[..., max(start, 0) : min(end, n)], around)
    windows = np.lib.stride_tricks.sliding_window_view(whole, transform.m_num, axis=-1)
    return windows[..., : (last - first) * transform.hop : transform.hop, :]
