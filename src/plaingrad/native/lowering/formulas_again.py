"""Formulas of array rules in the form in which they are differentiated again.

A formula that skips what is zero, or that chooses by a value, is right at that value only: what is zero here may not be
zero nearby, and the derivative of its code would be silently wrong. `inline` puts these in the place of the calls.
Where there is no second derivative (a norm at the origin, equal singular values) what they compute is the same, with
an infinite slope.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.errors import NativeError
from plaingrad.native.analysis.helper_calls import REPLACED
from plaingrad.native.lowering.composition import composed
from plaingrad.native.runtime import eigen_helpers, linalg_helpers, reduction_helpers
from plaingrad.native.runtime.array_helpers import conj_of
from plaingrad.native.runtime.eigen_helpers import gaps, off_direction
from plaingrad.native.runtime.linalg_helpers import (
    adjoint,
    as_matrix,
    is_regular,
    lower_bar,
    pinv_bar_of,
    product,
    thin_svd_bar,
)

HUGE = 1e308  # twice this is a slope of infinity, of a zero that stays a zero


def again(f: Any) -> Any:
    """Enter a function for the formula of its name."""
    assert f.__name__ in REPLACED
    (module,) = [m for m in (reduction_helpers, linalg_helpers, eigen_helpers) if hasattr(m, f.__name__)]
    return composed(getattr(module, f.__name__))(f)


@again
def cofactors(a):  # type: ignore[no-untyped-def]
    """The conjugate cofactors of a matrix: by its inverse, or one by one."""
    whole = np.ascontiguousarray(a)
    if is_regular(whole):
        return np.linalg.det(conj_of(whole)) * np.linalg.inv(adjoint(whole))
    n = a.shape[0]
    found = np.ones_like(whole)
    for i in range(n):
        for j in range(n if n > 1 else 0):
            minor = np.empty((n - 1, n - 1), whole.dtype)
            for k in range(n - 1):
                for m in range(n - 1):
                    minor[k, m] = whole[k + 1 if k >= i else k, m + 1 if m >= j else m]
            found[i, j] = np.linalg.det(conj_of(minor)) * (1 - 2 * ((i + j) % 2))
    return found


@again
def eigh_bar(w_bar, v_bar, z, a):  # type: ignore[no-untyped-def]
    """np.linalg.eigh(a); equal eigenvalues are poles."""
    w, v = z
    v = np.ascontiguousarray(v)
    middle = gaps(w) * np.dot(adjoint(v), np.ascontiguousarray(v_bar))
    for i in range(w.size):
        middle[i, i] = w_bar[i]
    p = np.dot(np.dot(v, middle), adjoint(v))
    return lower_bar(p)


@again
def eig_bar(w_bar, v_bar, z, a):  # type: ignore[no-untyped-def]
    """np.linalg.eig(a) of a real matrix with real eigenvalues; equal ones are poles."""
    w, v = z
    v = np.ascontiguousarray(v)
    middle = gaps(w) * np.dot(adjoint(v), off_direction(v, v_bar))
    for i in range(w.size):
        middle[i, i] = w_bar[i]
    return np.linalg.solve(adjoint(v), np.dot(middle, adjoint(v)))


@again
def lstsq_bar_a(x_bar, r_bar, rank_bar, s_bar, z, a, b):  # type: ignore[no-untyped-def]
    """np.linalg.lstsq(a, b), a."""
    x, xs, bs = z[0], as_matrix(z[0]), as_matrix(b)
    found = pinv_bar_of(product(as_matrix(x_bar.reshape(x.shape)), bs.T), np.linalg.pinv(a), a)
    if r_bar.size:
        found -= product((bs - product(a, xs)) * (2.0 * r_bar), xs.T)
    u, _, v = np.linalg.svd(np.ascontiguousarray(a), False)
    return found + product(u * s_bar, v)


@again
def over_gaps(p, s):  # type: ignore[no-untyped-def]
    """p[i, j] / (s[j]^2 - s[i]^2); of equal singular values 0 where p is 0, which moves by infinity."""
    found = np.zeros(p.shape)
    for i in range(s.size):
        for j in range(s.size):
            gap = (s[j] - s[i]) * (s[j] + s[i])
            if gap != 0:
                found[i, j] = p[i, j] / gap
            elif i != j:
                found[i, j] = p[i, j] * HUGE * HUGE
    return found


@again
def svd_bar(u_bar, s_bar, v_bar, z, a):  # type: ignore[no-untyped-def]
    """np.linalg.svd(a); what it adds to u or v to make them square must not be used nearby either."""
    k = z[1].size
    u_rest, v_rest = u_bar[:, k:], v_bar[k:]
    if np.any(u_rest != 0) or np.any(v_rest != 0):
        raise NativeError(
            "np.linalg.svd of a matrix that is not square has a derivative with full_matrices=False only"
        )
    found = thin_svd_bar(u_bar, s_bar, v_bar, z, a)
    if u_rest.size > 0:
        found = found + np.sum(u_rest * HUGE * HUGE)
    if v_rest.size > 0:
        found = found + np.sum(v_rest * HUGE * HUGE)
    return found


@again
def norm_bar(z_bar, z, a):  # type: ignore[no-untyped-def]
    """np.linalg.norm(a) of a vector or matrix."""
    if z != 0:
        return a * (z_bar / z)
    return (a * HUGE * HUGE).astype((a * z).dtype)


@again
def norm_dot(a_dot, z, a):  # type: ignore[no-untyped-def]
    """np.linalg.norm(a) of a vector or matrix."""
    inner = np.sum((conj_of(a) * a_dot).real)
    return inner / z if z != 0 else inner * HUGE * HUGE


@again
def std_bar(z_bar, z, a):  # type: ignore[no-untyped-def]
    """np.std(a)."""
    off = a - np.mean(a)
    if z != 0:
        return off * (z_bar / (max(a.size, 1) * z))
    return (off * HUGE * HUGE).astype((off * z).dtype)


@again
def std_dot(a_dot, z, a):  # type: ignore[no-untyped-def]
    """np.std(a)."""
    inner = np.sum((conj_of(a - np.mean(a)) * a_dot).real)
    return inner / (max(a.size, 1) * z) if z != 0 else inner * HUGE * HUGE
