"""Rational approximation: the weights of `AAA` are a singular vector of the matrix that its points of support make."""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.rules.scipy.compiled import constant
from plaingrad.rules.scipy.forms import find
from plaingrad.rules.scipy.implicit import Rules, called, carrying, fresh, is_active, mover, refuse, underived

RULES = Rules()
AAA = find("AAA", ("scipy.interpolate._bary_rational",))


def support_of(z: Any, zj: Any) -> tuple[Any, Any]:
    """The places of the points of support, in their order, and those of the others."""
    order = np.argsort(z, kind="stable")
    chosen = order[np.searchsorted(z, zj, sorter=order)]
    return chosen, np.setdiff1d(np.arange(len(z)), chosen)


constant(support_of)


@mover
def keep_errors(approximant: Any, errors: Any) -> None:
    """Set what nobody differentiates."""
    approximant.errors = errors


@RULES.defined(getattr(AAA, "_compute_weights", None))
def weights(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """Which points are of support is structure; the weights w minimise |A w| with |w| = 1 over the other points."""
    zj, fj, wj = called(function, call)
    approximant, z, f = given["self"], given["z"], given["f"]
    if not is_active((z, f)):
        return zj, fj, wj
    chosen, others = support_of(z, zj)
    if len(others) < len(chosen) or np.any(z[chosen] != zj) or len(zj) < len(approximant.errors):
        refuse(AAA, "there are as many points of support as others, or some have no weight")
    points, values = z[chosen], f[chosen]
    matrix = (f[others][:, None] - values) / (z[others][:, None] - points)
    _, _, rows = np.linalg.svd(matrix, full_matrices=False)
    vector = np.conj(rows[-1])
    phase = fresh(np.vdot(vector, wj))
    if not abs(abs(phase) - 1) < 1e-6:
        refuse(AAA, "its weights are not one singular vector: several errors are equal, or rounding")
    approximant._points, approximant._values = z, f
    keep_errors(approximant, underived(fresh(approximant.errors), np.sum(f), "`errors` of `scipy.interpolate.AAA`"))
    return carrying(fresh(zj), points), carrying(fresh(fj), values), carrying(fresh(wj), vector * phase)
