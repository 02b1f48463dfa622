"""The machinery of the language itself: descriptors that bind, and arrays made over existing memory."""

from __future__ import annotations

from types import FunctionType

import numpy as np

from plaingrad.define import mover

mover(FunctionType.__get__, classmethod.__get__, staticmethod.__get__)
mover(np.ndarray)  # a view of the buffer it is given, else memory without contents
