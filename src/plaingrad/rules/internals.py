"""The machinery of the language itself: descriptors that bind, and arrays made over existing memory."""

from __future__ import annotations

import functools
from types import FunctionType

import numpy as np

from plaingrad.define import mover

mover(FunctionType.__get__, classmethod.__get__, staticmethod.__get__)
mover(functools._lru_cache_wrapper)  # it keeps the function, which runs rewritten when it is called
mover(np.ndarray)  # a view of the buffer it is given, else memory without contents
