"""The parts of the public door that compute with derivatives. They are ordinary Python over numbers and arrays.

Where a derivative is being taken around the call they run rewritten, one level out, and are recorded there like any
other code. They know nothing of levels.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def element(a: np.ndarray) -> Any:
    """The number in a 0-d array."""
    return a[()]


def as_array(x: Any) -> np.ndarray:
    """A number as a 0-d array."""
    return np.array(x)
