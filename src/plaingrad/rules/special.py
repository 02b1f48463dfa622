"""Special functions that other rows need for their derivatives, differentiable to every order.

Where the program has imported SciPy its compiled functions do the work. SciPy is not imported for that: it would take
longer than most programs' gradients of `math.gamma`.
"""

from __future__ import annotations

import math
import sys
from typing import Any

from plaingrad.define import scalar

# B(2k) / (2k)!, the coefficients of the Euler-Maclaurin formula.
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)


def digamma(x: float) -> float:
    """The logarithmic derivative of the gamma function (Abramowitz and Stegun 6.3.5, 6.3.7, 6.3.18)."""
    if math.isnan(x) or x == math.inf:
        return x
    if x <= 0 and x == math.floor(x):
        return math.nan  # a pole
    compiled = getattr(sys.modules.get("scipy.special"), "psi", None)
    if compiled is not None:
        return float(compiled(x))
    return digamma_in_python(x)


def digamma_in_python(x: float) -> float:
    """The same where there is no SciPy; x is no pole."""
    if x < -0.5:
        # Reflection; the argument of the tangent is reduced exactly, so that digamma is good near poles.
        return digamma_in_python(1 - x) - math.pi / math.tan(math.pi * math.remainder(x, 1.0))
    terms = []
    while x < 12:
        terms.append(-1 / x)
        x += 1
    square = 1 / (x * x)
    terms += [math.log(x), -0.5 / x]
    power = square
    for k, b in enumerate(BERNOULLI, 1):
        terms.append(-b / (2 * k) * power)
        power *= square
    return math.fsum(terms)


def polygamma(n: int, x: float) -> float:
    """The n-th derivative of digamma, n >= 1: (-1)**(n+1) n! zeta(n+1, x), by the Euler-Maclaurin formula."""
    if math.isnan(x) or (x <= 0 and x == math.floor(x)):
        return math.nan
    compiled = getattr(sys.modules.get("scipy.special"), "zeta", None)
    if compiled is not None and x > 0:
        return (-1.0) ** (n + 1) * math.factorial(n) * float(compiled(n + 1, x))
    return polygamma_in_python(n, x)


def polygamma_in_python(n: int, x: float) -> float:
    """The same where there is no SciPy; x is no pole."""
    s = n + 1
    terms = []
    while x < 12 + n:
        terms.append(_inverse_power(x, s))
        x += 1
    terms += [x ** (1 - s) / (s - 1), 0.5 * x**-s]
    rising = s  # s (s + 1) ... (s + 2k - 2)
    for k, b in enumerate(BERNOULLI, 1):
        terms.append(b / math.factorial(2 * k) * rising * x ** (1 - s - 2 * k))
        rising *= (s + 2 * k - 1) * (s + 2 * k)
    return (-1.0) ** (n + 1) * math.factorial(n) * math.fsum(terms)


def _inverse_power(x: float, s: int) -> float:
    """x ** -s, inf where it overflows."""
    z = 1 / x
    for _ in range(s - 1):
        z = z / x
    return z


_SAMPLES: Any = ((-2.3, -0.7, 0.4, 1.9),)
scalar("digamma", _SAMPLES, lambda m, x, z: polygamma(1, x), functions=(digamma,))
scalar("polygamma", ((1, 2, 3), (-1.3, 0.4, 5.2)), None, lambda m, n, x, z: polygamma(n + 1, x), functions=(polygamma,))
