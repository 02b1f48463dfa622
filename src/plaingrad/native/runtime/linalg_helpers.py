"""Formulas of linear algebra that rules of arrays call from generated code, compiled or as plain Python alike.

As in `array_helpers`, `*_bar` functions take the cotangent of the result (of its parts), the result and the operands;
`*_dot` the tangents, the result and the operands.

Sources: M. B. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic differentiation",
2008; J. Townsend, "Differentiating the singular value decomposition", 2016; G. H. Golub and V. Pereyra, "The
differentiation of pseudo-inverses", 1973; M. Seeger and others, "Auto-differentiating linear algebra", 2017 (QR).
"""

from __future__ import annotations

import numpy as np

from plaingrad.errors import NativeError
from plaingrad.native.runtime.array_helpers import conj_of
from plaingrad.native.runtime.declare import register_jitable


@register_jitable
def adjoint(a):  # type: ignore[no-untyped-def]
    """The conjugate transpose."""
    return np.ascontiguousarray(conj_of(a).T)


@register_jitable
def solve_bar_b(z_bar, z, a, b):  # type: ignore[no-untyped-def]
    """np.linalg.solve(a, b) in b."""
    return np.linalg.solve(adjoint(a), np.ascontiguousarray(z_bar))


@register_jitable
def solve_bar_a(z_bar, z, a, b):  # type: ignore[no-untyped-def]
    """np.linalg.solve(a, b) in a."""
    b_bar = np.linalg.solve(adjoint(a), np.ascontiguousarray(z_bar))
    if b.ndim == 1:
        return -np.outer(b_bar, conj_of(z))
    return -np.dot(np.ascontiguousarray(b_bar), adjoint(z))


@register_jitable
def solve_dot(a_dot, b_dot, z, a, b):  # type: ignore[no-untyped-def]
    """np.linalg.solve(a, b)."""
    right = b_dot - np.dot(np.ascontiguousarray(a_dot), np.ascontiguousarray(z))
    return np.linalg.solve(np.ascontiguousarray(a), right)


@register_jitable
def inv_bar(z_bar, z, a):  # type: ignore[no-untyped-def]
    """np.linalg.inv(a)."""
    back = adjoint(z)
    return -np.dot(np.dot(back, np.ascontiguousarray(z_bar)), back)


@register_jitable
def inv_dot(a_dot, z, a):  # type: ignore[no-untyped-def]
    """np.linalg.inv(a)."""
    whole = np.ascontiguousarray(z)
    return -np.dot(np.dot(whole, np.ascontiguousarray(a_dot)), whole)


@register_jitable
def cofactors(a):  # type: ignore[no-untyped-def]
    """The conjugate cofactors of a matrix, singular ones too, from its singular values."""
    u, s, vh = np.linalg.svd(np.ascontiguousarray(a))
    others = np.empty(s.size, s.dtype)
    for k in range(s.size):
        others[k] = 1
        for i in range(s.size):
            if i != k:
                others[k] *= s[i]
    unit = conj_of(np.linalg.det(np.ascontiguousarray(u)) * np.linalg.det(np.ascontiguousarray(vh)))
    return unit * np.dot(np.ascontiguousarray(u * others), np.ascontiguousarray(vh))


@register_jitable
def is_regular(a):  # type: ignore[no-untyped-def]
    """Whether the inverse of a matrix is exact enough for second derivatives of its determinant."""
    s = np.linalg.svd(a)[1]
    return s[-1] > 0 and (s[-1] / s[0]) ** 4 > np.finfo(s.dtype).eps


@register_jitable
def det_bar(z_bar, z, a):  # type: ignore[no-untyped-def]
    """np.linalg.det(a): its cofactors."""
    return z_bar * cofactors(a)


@register_jitable
def det_dot(a_dot, z, a):  # type: ignore[no-untyped-def]
    """np.linalg.det(a)."""
    return np.sum(conj_of(cofactors(a)) * a_dot)


@register_jitable
def slogdet_bar(sign_bar, z_bar, z, a):  # type: ignore[no-untyped-def]
    """np.linalg.slogdet(a) of a real matrix; the sign is constant."""
    return z_bar * np.linalg.inv(np.ascontiguousarray(a)).T


@register_jitable
def slogdet_dot(a_dot, z, a):  # type: ignore[no-untyped-def]
    """np.linalg.slogdet(a) of a real matrix."""
    return 0.0, np.sum(np.linalg.inv(np.ascontiguousarray(a)).T * a_dot)


@register_jitable
def lower_half(p):  # type: ignore[no-untyped-def]
    """The lower triangle with half of the diagonal."""
    out = np.tril(p)
    for i in range(p.shape[0]):
        out[i, i] = out[i, i] * 0.5
    return out


@register_jitable
def lower_bar(p):  # type: ignore[no-untyped-def]
    """The cotangent of the lower triangle of a Hermitian matrix, of which only that triangle is read."""
    whole = np.tril(p + conj_of(p).T)
    for i in range(p.shape[0]):
        whole[i, i] = p[i, i].real
    return whole


@register_jitable
def hermitian(a_dot):  # type: ignore[no-untyped-def]
    """The Hermitian matrix of which `a_dot` is the lower triangle."""
    half = lower_half(a_dot)
    return half + conj_of(half).T


@register_jitable
def cholesky_bar(z_bar, z, a):  # type: ignore[no-untyped-def]
    """np.linalg.cholesky(a) (Murray 2016, arXiv:1602.07527); the triangle that is not read gets 0."""
    back = adjoint(z)
    p = lower_half(np.dot(back, np.ascontiguousarray(z_bar)))
    half = np.linalg.solve(back, p)
    return lower_bar(adjoint(np.linalg.solve(back, adjoint(half))))


@register_jitable
def cholesky_dot(a_dot, z, a):  # type: ignore[no-untyped-def]
    """np.linalg.cholesky(a)."""
    low = np.ascontiguousarray(z)
    half = np.linalg.solve(low, hermitian(a_dot))
    p = np.linalg.solve(low, adjoint(half))
    return np.dot(low, lower_half(np.ascontiguousarray(p)))


@register_jitable
def norm_bar(z_bar, z, a):  # type: ignore[no-untyped-def]
    """np.linalg.norm(a) of a vector or matrix; 0 at the origin."""
    return a * (z_bar / z if z != 0 else 0.0)


@register_jitable
def norm_dot(a_dot, z, a):  # type: ignore[no-untyped-def]
    """np.linalg.norm(a) of a vector or matrix."""
    return np.sum((conj_of(a) * a_dot).real) * (1.0 / z if z != 0 else 0.0)


# Decompositions -------------------------------------------------------------------------------------------------------


@register_jitable
def product(a, b):  # type: ignore[no-untyped-def]
    """a @ b of matrices of any layout."""
    return np.dot(np.ascontiguousarray(a), np.ascontiguousarray(b))


@register_jitable
def pinv_bar_of(z_bar, p, a):  # type: ignore[no-untyped-def]
    """The cotangent of a where that of its pseudo-inverse p is z_bar (Golub and Pereyra 1973, 4.12); constant rank."""
    pt, zt = p.T, z_bar.T
    off_range = np.eye(a.shape[0]) - product(a, p)
    off_rows = np.eye(a.shape[1]) - product(p, a)
    found = -product(product(pt, z_bar), pt)
    found += product(product(product(off_range, zt), p), pt)
    return found + product(product(product(pt, p), zt), off_rows)


@register_jitable
def pinv_dot_of(a_dot, p, a):  # type: ignore[no-untyped-def]
    """The tangent of the pseudo-inverse p of a."""
    pt, at_dot = p.T, a_dot.T
    found = -product(product(p, a_dot), p)
    found += product(product(product(p, pt), at_dot), np.eye(a.shape[0]) - product(a, p))
    return found + product(product(product(np.eye(a.shape[1]) - product(p, a), at_dot), pt), p)


@register_jitable
def pinv_bar(z_bar, z, a):  # type: ignore[no-untyped-def]
    """np.linalg.pinv(a)."""
    return pinv_bar_of(z_bar, z, a)


@register_jitable
def pinv_dot(a_dot, z, a):  # type: ignore[no-untyped-def]
    """np.linalg.pinv(a)."""
    return pinv_dot_of(a_dot, z, a)


@register_jitable
def as_matrix(x):  # type: ignore[no-untyped-def]
    """A vector as a matrix of one column; a matrix as it is."""
    return np.ascontiguousarray(x).reshape(x.shape[0], x.size // max(1, x.shape[0]))


@register_jitable
def lstsq_bar_a(x_bar, r_bar, rank_bar, s_bar, z, a, b):  # type: ignore[no-untyped-def]
    """np.linalg.lstsq(a, b), a: x = pinv(a) b, the residuals |b - a x|^2, the singular values."""
    x, xs, bs = z[0], as_matrix(z[0]), as_matrix(b)
    found = np.zeros(a.shape)
    if np.any(x_bar != 0):
        found += pinv_bar_of(product(as_matrix(x_bar.reshape(x.shape)), bs.T), np.linalg.pinv(a), a)
    if r_bar.size:
        found -= product((bs - product(a, xs)) * (2.0 * r_bar), xs.T)
    if np.any(s_bar != 0):
        u, _, v = np.linalg.svd(np.ascontiguousarray(a), False)
        found += product(u * s_bar, v)
    return found


@register_jitable
def lstsq_bar_b(x_bar, r_bar, rank_bar, s_bar, z, a, b):  # type: ignore[no-untyped-def]
    """np.linalg.lstsq(a, b), b."""
    xs, bs = as_matrix(z[0]), as_matrix(b)
    found = product(np.linalg.pinv(a).T, as_matrix(x_bar))
    if r_bar.size:
        found += (bs - product(a, xs)) * (2.0 * r_bar)
    return found.reshape(b.shape)


@register_jitable
def lstsq_dot(a_dot, b_dot, z, a, b):  # type: ignore[no-untyped-def]
    """np.linalg.lstsq(a, b)."""
    x, r, s = z[0], z[1], z[3]
    p = np.linalg.pinv(a)
    xs, bs, bs_dot = as_matrix(x), as_matrix(b), as_matrix(b_dot)
    x_dot = product(pinv_dot_of(a_dot, p, a), bs) + product(p, bs_dot)
    r_dot = np.zeros(r.shape)
    if r.size:
        r_dot += 2.0 * np.sum((bs - product(a, xs)) * (bs_dot - product(a_dot, xs)), axis=0)
    u, _, v = np.linalg.svd(np.ascontiguousarray(a), False)
    s_dot = np.zeros(s.shape)
    for k in range(s.size):
        s_dot[k] = np.dot(np.dot(np.ascontiguousarray(u[:, k]), np.ascontiguousarray(a_dot)), v[k])
    return x_dot.reshape(x.shape), r_dot, 0, s_dot


@register_jitable
def right_divided(x, r):  # type: ignore[no-untyped-def]
    """x r^-1."""
    return np.ascontiguousarray(np.linalg.solve(np.ascontiguousarray(r.T), np.ascontiguousarray(x.T)).T)


@register_jitable
def tall_qr_bar(q_bar, r_bar, q, r):  # type: ignore[no-untyped-def]
    """The cotangent of a = q r with no more columns than rows (Seeger et al. 2017, 4.3)."""
    m = product(r, r_bar.T) - product(q_bar.T, q)
    for i in range(m.shape[0]):
        for j in range(i):
            m[j, i] = m[i, j]
    return right_divided(q_bar + product(q, m), np.ascontiguousarray(r.T))


@register_jitable
def tall_qr_dot(a_dot, q, r):  # type: ignore[no-untyped-def]
    """(q_dot, r_dot) of a = q r with no more columns than rows."""
    scaled = right_divided(a_dot, r)
    inner = product(q.T, scaled)
    turn = np.tril(inner, -1)
    turn = turn - turn.T
    q_dot = product(q, turn) + scaled - product(q, inner)
    return q_dot, product(inner - turn, r)


@register_jitable
def qr_bar(q_bar, r_bar, z, a):  # type: ignore[no-untyped-def]
    """np.linalg.qr(a); of a wide matrix the left square is decomposed, the rest is q times its part of r."""
    q, r = z
    m, n = a.shape
    if m >= n:
        return tall_qr_bar(q_bar, r_bar, q, r)
    found = np.empty((m, n))
    rest = np.ascontiguousarray(a[:, m:])
    rest_bar = np.ascontiguousarray(r_bar[:, m:])
    found[:, :m] = tall_qr_bar(
        q_bar + product(rest, rest_bar.T),
        np.ascontiguousarray(r_bar[:, :m]),
        q,
        np.ascontiguousarray(r[:, :m]),
    )
    found[:, m:] = product(q, rest_bar)
    return found


@register_jitable
def qr_dot(a_dot, z, a):  # type: ignore[no-untyped-def]
    """np.linalg.qr(a)."""
    q, r = z
    m, n = a.shape
    if m >= n:
        return tall_qr_dot(a_dot, q, r)
    r_dot = np.empty((m, n))
    q_dot, left = tall_qr_dot(np.ascontiguousarray(a_dot[:, :m]), q, np.ascontiguousarray(r[:, :m]))
    r_dot[:, :m] = left
    r_dot[:, m:] = product(q_dot.T, a[:, m:]) + product(q.T, a_dot[:, m:])
    return q_dot, r_dot


@register_jitable
def over_gaps(p, s):  # type: ignore[no-untyped-def]
    """p[i, j] / (s[j]^2 - s[i]^2), 0 where p is 0: of equal singular values no pole where it does not matter."""
    found = np.zeros(p.shape)
    for i in range(s.size):
        for j in range(s.size):
            if i != j and p[i, j] != 0:
                found[i, j] = np.divide(p[i, j], (s[j] - s[i]) * (s[j] + s[i]))
    return found


@register_jitable
def off_span(u, x):  # type: ignore[no-untyped-def]
    """The part of x that is orthogonal to the columns of u."""
    return x - product(u, product(u.T, x))


@register_jitable
def svd_bar(u_bar, s_bar, v_bar, z, a):  # type: ignore[no-untyped-def]
    """np.linalg.svd(a) (Townsend 2016); what it adds to u or v to make them square has no derivative.

    Raises:
        NativeError: that is asked for.
    """
    k = z[1].size
    if np.any(u_bar[:, k:] != 0) or np.any(v_bar[k:] != 0):
        raise NativeError(
            "np.linalg.svd of a matrix that is not square has a derivative with full_matrices=False only"
        )
    return thin_svd_bar(u_bar, s_bar, v_bar, z, a)


@register_jitable
def thin_svd_bar(u_bar, s_bar, v_bar, z, a):  # type: ignore[no-untyped-def]
    """`svd_bar` where no column that was added to make u or v square is used."""
    u, s, v = z
    k = s.size
    u, v = np.ascontiguousarray(u[:, :k]), np.ascontiguousarray(v[:k].T)
    ub, vb = np.ascontiguousarray(u_bar[:, :k]), np.ascontiguousarray(v_bar[:k].T)
    left, right = product(u.T, ub), product(v.T, vb)
    left, right = over_gaps(left - left.T, s), over_gaps(right - right.T, s)
    middle = left * s + (right.T * s).T
    for i in range(k):
        middle[i, i] = s_bar[i]
    found = product(product(u, middle), v.T)
    if a.shape[0] > k:
        found += product(off_span(u, ub) / s, v.T)
    if a.shape[1] > k:
        found += product(u, (off_span(v, vb) / s).T)
    return found


@register_jitable
def svd_dot(a_dot, z, a):  # type: ignore[no-untyped-def]
    """np.linalg.svd(a); nan for what it adds to u or v to make them square."""
    whole_u, s, whole_v = z
    k = s.size
    u, v = np.ascontiguousarray(whole_u[:, :k]), np.ascontiguousarray(whole_v[:k].T)
    p = product(product(u.T, a_dot), v)
    s_dot = np.diag(p).copy()
    turned, other = p * s, (p.T * s).T
    u_dot, v_dot = np.full(whole_u.shape, np.nan), np.full(whole_v.shape, np.nan)
    u_thin = product(u, over_gaps(turned + turned.T, s))
    v_thin = product(v, over_gaps(other + other.T, s))
    if a.shape[0] > k:
        u_thin += off_span(u, product(a_dot, v)) / s
    if a.shape[1] > k:
        v_thin += off_span(v, product(a_dot.T, u)) / s
    u_dot[:, :k] = u_thin
    v_dot[:k] = v_thin.T
    return u_dot, s_dot, v_dot
