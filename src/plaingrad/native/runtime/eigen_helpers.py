"""Formulas of eigenvalues and eigenvectors that rules of arrays call from generated code; as in `linalg_helpers`.

Source: M. B. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic differentiation",
2008.
"""

from __future__ import annotations

import numpy as np

from plaingrad.native.runtime.declare import register_jitable
from plaingrad.native.runtime.linalg_helpers import adjoint, hermitian, lower_bar


@register_jitable
def gaps(w):  # type: ignore[no-untyped-def]
    """1 / (w[j] - w[i]), 0 on the diagonal."""
    out = np.zeros((w.size, w.size), w.dtype)
    for i in range(w.size):
        for j in range(w.size):
            if i != j:
                out[i, j] = np.divide(1.0, w[j] - w[i])
    return out


@register_jitable
def eigh_bar(w_bar, v_bar, z, a):  # type: ignore[no-untyped-def]
    """np.linalg.eigh(a) (Giles 2008, 3.1); of equal eigenvalues no pole where the vectors are not used."""
    w, v = z
    v = np.ascontiguousarray(v)
    middle = np.zeros_like(v)
    if np.any(v_bar != 0):
        middle = gaps(w) * np.dot(adjoint(v), np.ascontiguousarray(v_bar))
    for i in range(w.size):
        middle[i, i] = w_bar[i]
    p = np.dot(np.dot(v, middle), adjoint(v))
    return lower_bar(p)


@register_jitable
def eigvalsh_bar(z_bar, z, a):  # type: ignore[no-untyped-def]
    """np.linalg.eigvalsh(a)."""
    _, v = np.linalg.eigh(a)
    return lower_bar(np.dot(np.ascontiguousarray(v * z_bar), adjoint(v)))


@register_jitable
def eigvalsh_dot(a_dot, z, a):  # type: ignore[no-untyped-def]
    """np.linalg.eigvalsh(a)."""
    _, v = np.linalg.eigh(a)
    v = np.ascontiguousarray(v)
    turned = np.dot(np.dot(adjoint(v), hermitian(a_dot)), v)
    return np.diag(turned).real.copy()


@register_jitable
def eigh_dot(a_dot, z, a):  # type: ignore[no-untyped-def]
    """np.linalg.eigh(a)."""
    w, v = z
    v = np.ascontiguousarray(v)
    turned = np.dot(np.dot(adjoint(v), hermitian(a_dot)), v)
    return np.diag(turned).real.copy(), np.dot(v, gaps(w) * turned)


@register_jitable
def off_direction(v, x):  # type: ignore[no-untyped-def]
    """Of every column of x what is orthogonal to that column of v, a unit vector."""
    found = np.empty_like(v)
    for j in range(v.shape[1]):
        along = np.sum(v[:, j] * x[:, j])
        for i in range(v.shape[0]):
            found[i, j] = x[i, j] - v[i, j] * along
    return found


@register_jitable
def eig_bar(w_bar, v_bar, z, a):  # type: ignore[no-untyped-def]
    """np.linalg.eig(a) of a real matrix with real eigenvalues; no pole where the vectors are not used."""
    w, v = z
    v = np.ascontiguousarray(v)
    middle = np.zeros_like(v)
    if np.any(v_bar != 0):
        middle = gaps(w) * np.dot(adjoint(v), off_direction(v, v_bar))
    for i in range(w.size):
        middle[i, i] = w_bar[i]
    return np.linalg.solve(adjoint(v), np.dot(middle, adjoint(v)))


@register_jitable
def eig_dot(a_dot, z, a):  # type: ignore[no-untyped-def]
    """np.linalg.eig(a) of a real matrix with real eigenvalues."""
    w, v = z
    v = np.ascontiguousarray(v)
    p = np.linalg.solve(v, np.dot(np.ascontiguousarray(a_dot).astype(v.dtype), v))
    return np.diag(p).copy(), off_direction(v, np.dot(v, gaps(w) * p))


@register_jitable
def matching(z, w):  # type: ignore[no-untyped-def]
    """Of every number in z the place of the same in w: two routines may give them in two orders."""
    found = np.empty(z.size, np.int64)
    taken = np.zeros(z.size, np.bool_)
    for i in range(z.size):
        best = -1
        for j in range(z.size):
            if not taken[j] and (best < 0 or np.abs(w[j] - z[i]) < np.abs(w[best] - z[i])):
                best = j
        found[i] = best
        taken[best] = True
    return found


@register_jitable
def eigvals_bar(z_bar, z, a):  # type: ignore[no-untyped-def]
    """np.linalg.eigvals(a) of a real matrix with real eigenvalues."""
    w, v = np.linalg.eig(np.ascontiguousarray(a))
    v = np.ascontiguousarray(v)
    places = matching(z, w)
    middle = np.zeros_like(v)
    for i in range(w.size):
        middle[places[i], places[i]] = z_bar[i]
    return np.linalg.solve(adjoint(v), np.dot(middle, adjoint(v)))


@register_jitable
def eigvals_dot(a_dot, z, a):  # type: ignore[no-untyped-def]
    """np.linalg.eigvals(a) of a real matrix with real eigenvalues."""
    w, v = np.linalg.eig(np.ascontiguousarray(a))
    v = np.ascontiguousarray(v)
    p = np.linalg.solve(v, np.dot(np.ascontiguousarray(a_dot).astype(v.dtype), v))
    places = matching(z, w)
    found = np.zeros_like(w)
    for i in range(w.size):
        found[i] = p[places[i], places[i]]
    return found
