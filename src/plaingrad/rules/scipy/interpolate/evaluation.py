"""Values of B-splines: one rule in coefficients and queries, and de Boor's scheme where knots vary, too."""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.rules.pushforwards import pushed, total
from plaingrad.rules.scipy.compiled import each, enter
from plaingrad.rules.scipy.implicit import is_active
from plaingrad.rules.scipy.interpolate.basis import basis, gathered, places
from plaingrad.rules.scipy.interpolate.piecewise import spans
from plaingrad.tangents import NoTangent, Thunk


def spline(t, c, k, x, nu, extrapolate):
    """The derivative of order nu of the spline at x, c: (n, d)."""
    span, none = spans(t, k, x, extrapolate)
    if nu > k:
        z = np.zeros((len(x), c.shape[1]), c.dtype)
    else:
        z = de_boor(t, c, k, x, nu, span) if is_active(t) else in_span(t, c, k, x, nu, span)
    return np.where(none[:, None], np.nan, z) if none.any() else z


def in_span(t: Any, c: Any, k: int, x: Any, nu: int, span: Any) -> Any:
    """The sum of basis functions times coefficients, knots t and spans constant."""
    return summed(rows_at(t, k, x, nu, span), c, span - k)


def rows_at(t: Any, k: int, x: Any, nu: int, span: Any) -> Any:
    """The basis functions, 0 beyond the last derivative."""
    return basis(t, k, x, span, nu) if nu <= k else np.zeros((len(x), k + 1))


def summed(rows: Any, c: Any, first: Any) -> Any:
    """Column by column, so that no array is larger than the result."""
    z = rows[:, 0, None] * c[first]
    for a in range(1, rows.shape[1]):
        z = z + rows[:, a, None] * c[first + a]
    return z


def in_span_rrule(t: Any, c: Any, k: int, x: Any, nu: int, span: Any) -> Any:
    rows = rows_at(t, k, x, nu, span)

    def in_span_pullback(z_bar: Any) -> Any:
        def c_bar() -> Any:
            parts = np.reshape(rows[:, :, None] * z_bar[:, None, :], (-1, c.shape[1]))
            place = np.reshape(places(span - k, k + 1), (-1,))
            columns = [gathered(len(c), place, parts[:, d]) for d in range(c.shape[1])]
            return np.stack(columns, -1) if columns else np.zeros(c.shape)

        return NoTangent, Thunk(c_bar), NoTangent, Thunk(lambda: np.sum(z_bar * in_span(t, c, k, x, nu + 1, span), 1))

    return summed(rows, c, span - k), in_span_pullback


def in_span_frule(t: Any, c: Any, k: int, x: Any, nu: int, span: Any) -> Any:
    rows = rows_at(t, k, x, nu, span)

    def in_span_pushforward(dots: Any) -> Any:
        along = pushed(lambda dot: each(lambda part: summed(rows, part, span - k), dot, c), dots[1])
        moved = pushed(
            lambda dot: each(lambda part: part[:, None] * in_span(t, c, k, x, nu + 1, span), dot, x), dots[3]
        )
        return total(along, moved)

    return summed(rows, c, span - k), in_span_pushforward


enter(in_span, in_span_rrule, in_span_frule)


def de_boor(t: Any, c: Any, k: int, x: Any, nu: int, span: Any) -> Any:
    """De Boor's scheme, for the spline of degree k - nu whose coefficients are differences of c."""
    d = [c[span - k + j] for j in range(k + 1)]
    for m in range(1, nu + 1):
        width = k - m + 1
        d = [
            width * (d[j] - d[j - 1]) / (t[span - k + m + j - 1 + width] - t[span - k + m + j - 1])[:, None]
            for j in range(1, len(d))
        ]
    q = k - nu
    for r in range(1, q + 1):
        following = []
        for j in range(1, len(d)):
            i = span - q + r + j - 1
            share = ((x - t[i]) / (t[i + q + 1 - r] - t[i]))[:, None]
            following.append((1 - share) * d[j - 1] + share * d[j])
        d = following
    return d[0]
