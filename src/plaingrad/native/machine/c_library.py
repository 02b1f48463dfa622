"""Which C library computes exp, log and the like: told by the bits of what it gives, not by its version.

Distributions mend a version without a new number, and the same file gives other bits on processors without fused
multiply-add. Machine code kept on disk may hold functions of our own that were chosen for their bits (`vecmath`).
"""

from __future__ import annotations

import functools
import hashlib
import math
import struct

# Numbers of which glibc 2.36 gives another value with fused multiply-add than without, about 1 in 2000.
TELLING = {
    math.exp: (2.6734, 1.54013, 2.75561, 2.27007, 1.60001, 2.07541),
    math.expm1: (1.76136, 1.04268, 0.39624, 1.07443, 0.37879, 2.30451),
    math.log: (0.69028, 1.10475),
    math.log1p: (0.5685, 2.1272, 0.60084, 0.46615, 1.78562, 1.86206),
    math.tanh: (0.20286, 0.85999, 0.15067, 0.21381, 0.04921, 0.12314),
    math.sin: (0.24471, 0.48996, 2.41493, 2.80144, 1.15305, 1.06004),
    math.cos: (0.98845, 1.20579, 2.05745, 1.85641, 2.18261, 2.41124),
}


@functools.cache
def fingerprint() -> str:
    """A hash of some values of the functions of `math`, in less than a millisecond."""
    found = [f(x) for f, numbers in TELLING.items() for x in numbers]
    for k in range(100):
        x = 0.013 * (k + 1) ** 1.1
        found += [f(x) for f in TELLING]
        found += [math.expm1(-x), math.log1p(-x / 4.0), math.exp(-x), math.sin(1e3 * x), math.cos(1e3 * x)]
    return hashlib.sha256(struct.pack(f"<{len(found)}d", *found)).hexdigest()[:16]
