"""Covariance matrices: what SciPy computes from eigenvectors depends on none of their phases and degeneracies.

`_PSD` holds U with U U^T = M^-1 (the pseudoinverse P where M is singular), by eigenvectors of M. These have no
derivative where eigenvalues coincide, as those of s * identity do. Whoever uses U sees U U^T only, so that

    dU = -P dM U / 2 + (I - M P) dM P U,  d log det M = sum(P * dM)

serve as well; they are exact for U U^T in every order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import _multivariate

from plaingrad.rules.pushforwards import dot_of, varies
from plaingrad.rules.scipy.compiled import each, enter
from plaingrad.rules.scipy.implicit import called, fresh, is_active, outside
from plaingrad.rules.scipy.stats.names import RULES
from plaingrad.tangents import ZeroTangent, is_zero, unthunk


@outside
def factor_of(order: int, matrix: Any, options: dict[str, Any]) -> Any:
    """SciPy's object, a constant."""
    return _multivariate._PSD(matrix, **options)


def factored(matrix: Any, options: Any) -> Any:
    """(U, log of the pseudodeterminant)."""
    psd = factor_of(matrix, options)
    return fresh(psd.U), fresh(psd.log_pdet)


def factored_rrule(matrix: Any, options: Any) -> Any:
    u, log = factored(matrix, options)

    def factored_pullback(bars: Any) -> tuple[Any, ...]:
        u_bar, log_bar = unthunk(bars[0]), unthunk(bars[1])
        inverse = u @ u.T
        matrix_bar = 0.0 * inverse
        if not is_zero(log_bar):
            matrix_bar = matrix_bar + log_bar * inverse
        if not is_zero(u_bar):
            gap = np.eye(u.shape[0]) - inverse @ matrix
            matrix_bar = matrix_bar - inverse @ u_bar @ u.T / 2 + gap @ u_bar @ (inverse @ u).T
        return (matrix_bar + matrix_bar.T) / 2, ZeroTangent

    return (u, log), factored_pullback


def factored_frule(matrix: Any, options: Any) -> Any:
    u, log = factored(matrix, options)

    def factored_pushforward(dots: Any) -> Any:
        m_dot = dot_of(dots, 0)
        if not varies(m_dot):
            return ZeroTangent, ZeroTangent
        inverse = u @ u.T
        gap = np.eye(u.shape[0]) - matrix @ inverse

        def moved(part: Any) -> Any:
            part = (part + part.T) / 2
            return -inverse @ part @ u / 2 + gap @ part @ inverse @ u

        return each(moved, m_dot, matrix), each(lambda part: (inverse * part).sum(), m_dot, matrix)

    return (u, log), factored_pushforward


enter(factored, factored_rrule, factored_frule)


@RULES.defined(_multivariate._PSD)
def psd(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """SciPy's object, with the derivatives of its factor."""
    plain = called(function, call)
    whole = given["M"]
    if not is_active(whole):
        return plain
    whole = np.asarray(whole)
    half = np.tril if given["lower"] else np.triu  # the other triangle is not read
    matrix = half(whole) + half(whole, -1 if given["lower"] else 1).T
    options = {name: value for name, value in given.items() if name != "M"}
    z = object.__new__(_multivariate._PSD)
    z.eps, z.V, z.rank = plain.eps, plain.V, plain.rank
    z._M, z._pinv = whole, None
    z.U, z.log_pdet = factored(matrix, options)
    return z
