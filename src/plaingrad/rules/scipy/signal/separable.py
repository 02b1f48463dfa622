"""`sepfir2d`: two filters of odd length, along the rows and along the columns, of an image mirrored at its edges."""

from __future__ import annotations

import numpy as np
from scipy import ndimage, signal

from plaingrad.rulebook import Rule
from plaingrad.rules.scipy.forms import keep
from plaingrad.rules.scipy.implicit import Rules, called, carrying, fresh


def sepfir2d(input, hrow, hcol):
    """As two convolutions."""
    value = called(signal.sepfir2d, ((input, hrow, hcol), {}))
    x, rows, columns = np.asarray(input), np.asarray(hrow) * 1.0, np.asarray(hcol) * 1.0
    z = ndimage.convolve1d(x, rows, 1, mode="reflect")
    return carrying(fresh(value), ndimage.convolve1d(z, columns, 0, mode="reflect"))


keep(Rule(signal.sepfir2d, "composed", definition=sepfir2d, source=f"{__file__}:1"))
for rule in Rules():
    keep(rule)
