"""The processor's notes of floating-point operations that had no proper result: invalid, by zero, too large.

Python raises where C gives nan or inf and notes that, in flags that stay until they are cleared, a set for each thread.
"""

from __future__ import annotations

import ctypes
import os
import platform

MASKS = {
    "x86_64": 1 | 4 | 8,
    "aarch64": 1 | 2 | 4,
    "arm64": 1 | 2 | 4,
}  # FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW
MASK = MASKS.get(platform.machine(), 0) if os.name == "posix" else 0  # 0: not known here

if MASK:
    _library = ctypes.PyDLL(None)
    _clear, _test = _library.feclearexcept, _library.fetestexcept


def clear() -> None:
    """Forget what was noted in this thread."""
    if MASK:
        _clear(MASK)


def is_noted() -> bool:
    """Whether something was noted since in this thread; always, where that is not known."""
    return not MASK or _test(MASK) != 0
