"""Solutions of wave equations in other coordinates: parabolic cylinder, Mathieu's and spheroidal functions, in x.

They come in pairs of a value and its derivative; the derivative of that is what their differential equation says.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.rules.scipy.forms import find, several, unknown
from plaingrad.rules.scipy.forms import refused as refuse
from plaingrad.rules.scipy.special.eigenvalues import mathieu_slopes

DEGREE = np.pi / 180
POINTS = ((0.3, 1.7, 2.2), (0.9, -0.4, 1.1))
MATHIEU = ((2, 1, 3), (0.9, 4.4, 1.1), (30.0, 14.0, 80.0))
MODIFIED = ((2, 1, 3), (0.9, 4.4, 1.1), (0.3, 0.6, 0.9))
ORDER = "derivatives of these functions in the order are not computed"
PARAMETER = "derivatives of these functions in their parameter are not computed"


def cylinder(name: str, second: Any) -> None:
    """Enter a parabolic cylinder function and its derivative in x."""
    several(name, POINTS, (unknown(name, 0, ORDER), lambda m, v, x, z: z[1]), (unknown(name, 0, ORDER), second))


cylinder("pbdv", lambda m, v, x, z: (x * x / 4 - v - 0.5) * z[0])
cylinder("pbvv", lambda m, v, x, z: (x * x / 4 - v - 0.5) * z[0])
cylinder("pbwa", lambda m, v, x, z: (v - x * x / 4) * z[0])


# Mathieu ------------------------------------------------------------------------------------------------------------------

def mathieu(name: str, value: str) -> None:
    """Enter an angular function; x is in degrees, its derivative in radians."""
    a = find(value)
    odd = value == "mathieu_b"
    several(name, MATHIEU,
            (None, lambda m, n, q, x, z: mathieu_slopes(n, q, x, odd)[0], lambda m, n, q, x, z: DEGREE * z[1]),
            (None, lambda m, n, q, x, z: mathieu_slopes(n, q, x, odd)[1],
             lambda m, n, q, x, z: -DEGREE * (a(n, q) - 2 * q * np.cos(2 * DEGREE * x)) * z[0]))  # fmt: skip


def modified_mathieu(name: str, value: str) -> None:
    """Enter a radial function."""
    a = find(value)
    several(name, MODIFIED, (None, unknown(name, 1, PARAMETER), lambda m, n, q, x, z: z[1]),
            (None, unknown(name, 1, PARAMETER), lambda m, n, q, x, z: (a(n, q) - 2 * q * np.cosh(2 * x)) * z[0]))  # fmt: skip


mathieu("mathieu_cem", "mathieu_a")
mathieu("mathieu_sem", "mathieu_b")
for _k in ("1", "2"):
    modified_mathieu(f"mathieu_modcem{_k}", "mathieu_a")
    modified_mathieu(f"mathieu_modsem{_k}", "mathieu_b")


# Spheroidal ---------------------------------------------------------------------------------------------------------------

INSIDE = ((1, 0, 1), (2, 1, 3), (0.9, 1.4, 1.1), (0.3, 0.6, -0.4))
OUTSIDE = (*INSIDE[:3], (1.3, 1.6, 2.4))


def angular(sign: int) -> Any:
    """f'' of an angular function; sign 1 prolate, -1 oblate (DLMF 30.2.1)."""
    return lambda m, n, c, cv, x, z: (
        (2 * x * z[1] - (cv - sign * c * c * x * x - np.multiply(m, m) / (1 - x * x)) * z[0]) / (1 - x * x)
    )


def radial(sign: int) -> Any:
    """f'' of a radial function."""
    return lambda m, n, c, cv, x, z: (
        (-2 * x * z[1] + (cv - c * c * x * x + sign * np.multiply(m, m) / (x * x - sign)) * z[0]) / (x * x - sign)
    )


def spheroidal(name: str, value: str, second: Any, domain: Any) -> None:
    """Enter a function and the one like it that is given its characteristic value."""
    cv = find(value)
    known = f"{name}_cv"
    several(name, domain, (None, None, unknown(name, 2, PARAMETER), lambda m_, m, n, c, x, z: z[1]),
            (None, None, unknown(name, 2, PARAMETER), lambda m_, m, n, c, x, z: second(m, n, c, cv(m, n, c), x, z)))  # fmt: skip
    several(known, (*domain[:3], tuple(map(float, cv(*domain[:3]))), domain[3]),
            (None, None, unknown(known, 2, PARAMETER), unknown(known, 3, PARAMETER),
             lambda m_, m, n, c, v, x, z: solves(cv(m, n, c), v, z[1])),
            (None, None, unknown(known, 2, PARAMETER), unknown(known, 3, PARAMETER),
             lambda m_, m, n, c, v, x, z: solves(cv(m, n, c), v, second(m, n, c, v, x, z))))  # fmt: skip


def solves(value: Any, given: Any, slope: Any) -> Any:
    """`slope`, nan where the given value is no characteristic one: then the function solves no equation."""
    return np.where(np.abs(value - given) <= 1e-8 * np.abs(value), slope, np.nan)[()]


spheroidal("pro_ang1", "pro_cv", angular(1), INSIDE)
spheroidal("obl_ang1", "obl_cv", angular(-1), INSIDE)
spheroidal("pro_rad1", "pro_cv", radial(1), OUTSIDE)
spheroidal("obl_rad1", "obl_cv", radial(-1), OUTSIDE)
refuse("the values that SciPy gives do not agree with the derivatives that it gives", "pro_rad2", "obl_rad2", "pro_rad2_cv", "obl_rad2_cv")
