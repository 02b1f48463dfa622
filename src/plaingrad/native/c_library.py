"""Which C library computes exp, log and the like: told by the bits of what it gives, not by its version.

Distributions mend a version without a new number, and the same file gives other bits on processors without fused
multiply-add. Machine code kept on disk may hold functions of our own that were chosen for their bits (`vecmath`).
"""

from __future__ import annotations

import functools
import hashlib
import math
import struct


@functools.cache
def fingerprint() -> str:
    """A hash of some values of the functions of `math`, in less than a millisecond."""
    found = []
    for k in range(100):
        x = 0.013 * (k + 1) ** 1.1
        found += [f(x) for f in (math.exp, math.expm1, math.log, math.log1p, math.tanh, math.sin, math.cos)]
        found += [math.expm1(-x), math.log1p(-x / 4.0), math.exp(-x), math.sin(1e3 * x), math.cos(1e3 * x)]
    return hashlib.sha256(struct.pack(f"<{len(found)}d", *found)).hexdigest()[:16]
