"""Facts about `scipy.integrate`: integrals under the integral sign, initial value problems by the steps or their
variational equations, boundary value problems by the implicit function theorem.
"""

from __future__ import annotations

from collections.abc import Iterable

from plaingrad.rulebook import Rule
from plaingrad.rules.scipy.integrate import boundary, initial, quadrature, samples, sums, tanh_sinh


def rules() -> Iterable[Rule]:
    """All of them."""
    return [*quadrature.RULES, *initial.RULES, *boundary.RULES, *sums.RULES, *samples.RULES, *tanh_sinh.RULES]
