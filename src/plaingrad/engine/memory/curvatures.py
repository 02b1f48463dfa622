"""Second derivatives of elementwise functions of real arrays, by the rows that say the first ones.

One row is one fact: the function, then d2z/dx2 by x, z and the slope s. The compiled core takes them where reverse mode
runs inside forward mode; of functions that are not here, the slope's row is pushed forward itself.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from plaingrad import rulebook

CURVATURES: dict[Any, Callable[[Any, Any, Any], Any]] = {
    np.sin: lambda x, z, s: -z,
    np.cos: lambda x, z, s: -z,
    np.tan: lambda x, z, s: 2.0 * z * s,
    np.arcsin: lambda x, z, s: x * s * s * s,
    np.arccos: lambda x, z, s: x * s * s * s,
    np.arctan: lambda x, z, s: -2.0 * x * s * s,
    np.sinh: lambda x, z, s: z,
    np.cosh: lambda x, z, s: z,
    np.arcsinh: lambda x, z, s: -x * s * s * s,
    np.arctanh: lambda x, z, s: 2.0 * x * s * s,
    np.expm1: lambda x, z, s: s,
    np.exp2: lambda x, z, s: math.log(2.0) * s,
    np.log1p: lambda x, z, s: -s * s,
    np.log2: lambda x, z, s: -s / x,
    np.log10: lambda x, z, s: -s / x,
    np.reciprocal: lambda x, z, s: -2.0 * z * s,
}


@functools.cache
def curvatures() -> dict[Any, Callable[[Any, Any, Any], Any]]:
    """The rows, by the partial derivatives of plaingrad's own rules."""
    found = {}
    for f, curvature in CURVATURES.items():
        rule = rulebook.find(f)
        if rule is not None and rule.own and rule.kind == "scalar":
            found[rule.partials[0]] = curvature
    return found
