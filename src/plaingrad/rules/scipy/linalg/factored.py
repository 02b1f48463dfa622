"""Factors of matrices in exact arithmetic: Cholesky's, L U and L D L^H, and equations solved by them."""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.rules.numpy.linalg import inverse_or_nan
from plaingrad.rules.numpy.names import adjoint, conj
from plaingrad.rules.pushforwards import total, varies
from plaingrad.rules.scipy.linalg.entering import defined, entered, sl
from plaingrad.rules.scipy.linalg.equations import solve_op
from plaingrad.rules.scipy.linalg.matrices import (
    as_columns,
    diagonal,
    eye,
    folded,
    on_diagonal,
    plus,
    symmetrised,
)
from plaingrad.tangents import NoTangent, Thunk, ZeroTangent, is_zero

# -- Cholesky ----------------------------------------------------------------------------------------------------------


def half_lower(m: Any) -> Any:
    """The lower triangle with half of the diagonal's real part."""
    return np.tril(m, -1) + on_diagonal(np.real(diagonal(m)) / 2)


def triangular(a: Any, b: Any, trans: int = 0, lower: bool = True) -> Any:
    """op(A)^-1 b; where there is nothing to solve, what b is."""
    return solve_op(a, b, trans, lower, False) if np.size(b) else b


def cholesky_bar(lower_factor: Any, factor_bar: Any) -> Any:
    """L^-H (lower half of L^H L_bar) L^-1 (Murray, arXiv:1602.07527)."""
    p = half_lower(adjoint(lower_factor) @ np.tril(factor_bar))
    left = triangular(lower_factor, p, 2)
    return adjoint(triangular(lower_factor, adjoint(left), 2))


BLOCK = 96  # columns that are treated as one: larger ones cost operations, smaller ones calls


def folded_cholesky_bar(lower_factor: Any, factor_bar: Any) -> Any:
    """The lower triangle of a_bar, in as many operations as two factorisations (Murray, arXiv:1602.07527, 4.2).

    A = [[A1, .., ..], [.., A2, ..], [.., A3, ..]] with D D^H = A2 - R R^H and C D^H = A3 - B R^H.
    """
    n = np.shape(lower_factor)[0]
    bar = np.tril(factor_bar) + np.zeros_like(lower_factor)
    for end in range(n, 0, -BLOCK):
        start = max(0, end - BLOCK)
        here, before, after = slice(start, end), slice(0, start), slice(end, n)
        r, d = lower_factor[here, before], lower_factor[here, here]
        b, c = lower_factor[after, before], lower_factor[after, here]
        d_bar, r_bar = bar[here, here], bar[here, before]
        if end < n:
            c_bar = adjoint(triangular(d, adjoint(bar[after, here]), 2))
            bar[after, here] = c_bar
            bar[after, before] = bar[after, before] - c_bar @ r
            d_bar = d_bar - np.tril(adjoint(c_bar) @ c)
            r_bar = r_bar - adjoint(c_bar) @ b
        s = cholesky_bar(d, d_bar)
        bar[here, before] = r_bar - (s + adjoint(s)) @ r
        bar[here, here] = folded(s, True)
    return bar


def cholesky_dot(lower_factor: Any, a_dot: Any) -> Any:
    """L (lower half of L^-1 A_dot L^-H)."""
    left = triangular(lower_factor, a_dot)
    return lower_factor @ half_lower(adjoint(triangular(lower_factor, adjoint(left))))


def untouched(x: Any, lower: Any) -> Any:
    """The triangle of a factor that LAPACK leaves as it was in A."""
    return np.triu(x, 1) if lower else np.tril(x, -1)


@entered("cholesky", "cho_factor", dims=(2,))
def cholesky(f, a, lower=False, overwrite_a=False, check_finite=True):
    """One triangle of A is read, and one of the result means something; the other one of `cho_factor` is that of A."""
    z = f(a, lower, check_finite=check_finite)
    pair = isinstance(z, tuple)
    factor = z[0] if pair else z
    kept = pair and np.array_equal(untouched(factor, lower), untouched(a, lower))

    def low():
        return np.tril(factor) if lower else adjoint(np.triu(factor))

    def cholesky_pullback(z_bar):
        factor_bar = z_bar[0] if pair else z_bar
        if is_zero(factor_bar):
            return (ZeroTangent,)
        bar = folded_cholesky_bar(low(), factor_bar if lower else adjoint(factor_bar))
        bar = bar if lower else adjoint(bar)
        return (bar + untouched(factor_bar, lower) if kept else bar,)

    def cholesky_pushforward(a_dot, *others):
        factor_dot = cholesky_dot(low(), symmetrised(a_dot, lower))
        factor_dot = factor_dot if lower else adjoint(factor_dot)
        factor_dot = factor_dot + untouched(a_dot, lower) if kept else factor_dot
        return (factor_dot, NoTangent) if pair else factor_dot

    return z, cholesky_pullback, cholesky_pushforward


def solve_by_cholesky(c: Any, b: Any, lower: Any, check_finite: Any) -> Any:
    """SciPy's, with the factor as an argument of its own."""
    return sl.cho_solve((c, lower), b, check_finite=check_finite)


@defined("cho_solve")
def cho_solve(c_and_lower, b, overwrite_b=False, check_finite=True):
    """A pair is taken apart."""
    c, lower = c_and_lower
    return solve_by_cholesky(c, b, lower, check_finite)


@entered(solve_by_cholesky, dims=(2, "1|2"))
def cho_solve_core(f, c, b, lower, check_finite):
    """A = L L^H, so L_bar = (A_bar + A_bar^H) L with A_bar = -b_bar z^H, which is never formed."""
    z = f(c, b, lower, check_finite)

    def low():
        return np.tril(c) if lower else adjoint(np.triu(c))

    def cho_solve_pullback(z_bar):
        b_bar = f(c, z_bar, lower, False)

        def c_bar():
            left, right, factor = as_columns(b_bar), as_columns(z), low()
            bar = -left @ adjoint(adjoint(factor) @ right) - right @ adjoint(adjoint(factor) @ left)
            return np.tril(bar) if lower else adjoint(np.tril(bar))

        return Thunk(c_bar), b_bar

    def cho_solve_pushforward(c_dot, b_dot, *others):
        moved = b_dot
        if varies(c_dot):
            factor_dot = np.tril(c_dot) if lower else adjoint(np.triu(c_dot))
            moved = total(moved, -(factor_dot @ (adjoint(low()) @ z) + low() @ (adjoint(factor_dot) @ z)))
        return f(c, moved, lower, False)

    return z, cho_solve_pullback, cho_solve_pushforward


# -- L U ---------------------------------------------------------------------------------------------------------------


def block_lu_bar(low: Any, up: Any, low_bar: Any, up_bar: Any) -> Any:
    """L^-H (what is below the diagonal of L^H L_bar, and the rest of U_bar U^H) U^-H."""
    core = np.tril(adjoint(low) @ low_bar, -1) + np.triu(up_bar @ adjoint(up))
    return adjoint(triangular(up, adjoint(triangular(low, core, 2)), 0, False))


def square_lu_bar(lu: Any, bar: Any) -> Any:
    """The same of L below the diagonal and U in one array, as their cotangents are, in as many operations as two factorisations.

    Block by block from the last one: A = [[A1, A2], [A3, A4]] with A1 = L U, A2 = L V, A3 = M U; A4 - M V is factored further.
    """
    n = np.shape(lu)[0]
    block = BLOCK if 2 * n > 3 * BLOCK else max(n, 1)
    bar = np.array(bar, dtype=np.result_type(lu, bar))
    for end in range(n, 0, -block):
        start = max(0, end - block)
        here, after = slice(start, end), slice(end, n)
        corner, v, m = lu[here, here], lu[here, after], lu[after, here]
        corner_bar = bar[here, here]
        if end < n:
            rest_bar = bar[after, after]
            v_bar = solve_op(corner, bar[here, after] - adjoint(m) @ rest_bar, 2, True, True)
            m_bar = adjoint(
                solve_op(corner, adjoint(bar[after, here] - rest_bar @ adjoint(v)), 0, False, False)
            )
            corner_bar = corner_bar - np.tril(v_bar @ adjoint(v), -1) - np.triu(adjoint(m) @ m_bar)
            bar[here, after] = v_bar
            bar[after, here] = m_bar
        low, up = unpacked(corner)
        bar[here, here] = block_lu_bar(low, up, np.tril(corner_bar, -1), np.triu(corner_bar))
    return bar


def lu_bar(low: Any, up: Any, low_bar: Any, up_bar: Any) -> Any:
    """The cotangent of L U with unit lower L (m, k) and upper U (k, n): of the square part, and of what is beside it."""
    m, k = np.shape(low)
    n = np.shape(up)[1]
    low_bar = np.zeros_like(low) if is_zero(low_bar) else low_bar
    up_bar = np.zeros_like(up) if is_zero(up_bar) else up_bar
    square_l, square_u, l_bar, u_bar = low[:k], up[:, :k], low_bar[:k], up_bar[:, :k]
    beside = None
    if m > k:  # L2 = A2 U^-1
        beside = adjoint(triangular(square_u, adjoint(low_bar[k:]), 0, False))
        u_bar = u_bar - adjoint(low[k:]) @ beside
    elif n > k:  # U2 = L^-1 A2
        beside = triangular(square_l, up_bar[:, k:], 2)
        l_bar = l_bar - beside @ adjoint(up[:, k:])
    strict = np.tri(k, k, -1, dtype=bool)
    a_bar = square_lu_bar(np.where(strict, square_l, square_u), np.where(strict, l_bar, u_bar))
    return a_bar if beside is None else np.concatenate([a_bar, beside], 0 if m > k else 1)


def lu_dot(low: Any, up: Any, a_dot: Any) -> tuple[Any, Any]:
    """(L_dot, U_dot) of A = L U."""
    m, k = np.shape(low)
    n = np.shape(up)[1]
    square_l, square_u = low[:k], up[:, :k]
    left = triangular(square_l, a_dot[:k, :k])
    core = adjoint(triangular(square_u, adjoint(left), 2, False))
    l_dot, u_dot = square_l @ np.tril(core, -1), np.triu(core) @ square_u
    if m > k:
        below = adjoint(triangular(square_u, adjoint(a_dot[k:] - low[k:] @ u_dot), 2, False))
        l_dot = np.concatenate([l_dot, below], 0)
    elif n > k:
        u_dot = np.concatenate([u_dot, triangular(square_l, a_dot[:, k:] - l_dot @ up[:, k:])], 1)
    return l_dot, u_dot


def unpacked(lu: Any) -> tuple[Any, Any]:
    """L and U out of one array."""
    m, n = np.shape(lu)
    k = min(m, n)
    return np.tril(lu[:, :k], -1) + np.eye(m, k, dtype=np.real(lu).dtype), np.triu(lu[:k])


def packed(low: Any, up: Any) -> Any:
    """The transpose of `unpacked`; also what puts L - 1 and U into one array."""
    m, k = np.shape(low)
    n = np.shape(up)[1]
    below, above = np.tril(low, -1), np.triu(up)
    wide = np.concatenate([below, np.zeros((m, n - k))], 1) if n > k else below
    tall = np.concatenate([above, np.zeros((m - k, n))], 0) if m > k else above
    return wide + tall


def rows_of(piv: Any, m: int) -> Any:
    """The order of rows that LAPACK's exchanges lead to."""
    order = list(range(m))
    for i, j in enumerate(np.asarray(piv).tolist()):
        order[i], order[j] = order[j], order[i]
    return np.array(order, dtype=np.intp)


def inverse_order(order: Any) -> Any:
    """Where each went."""
    return np.argsort(order, kind="stable")


@entered("lu_factor", dims=(2,))
def lu_factor(f, a, *rest, **options):
    """The rows of A in the order of the pivots are L U."""
    z = f(a, *rest[1:], **options) if len(rest) < 2 else f(a, False, *rest[1:], **options)
    order = rows_of(z[1], np.shape(a)[0])

    def lu_factor_pullback(z_bar):
        if is_zero(z_bar[0]) or np.ndim(a) < 2:  # a vector: whoever uses the factors says so
            return (ZeroTangent,)
        if np.shape(a)[0] == np.shape(a)[1]:
            return (square_lu_bar(z[0], z_bar[0])[inverse_order(order)],)
        low, up = unpacked(z[0])
        k = np.shape(low)[1]
        bar = lu_bar(low, up, np.tril(z_bar[0][:, :k], -1), np.triu(z_bar[0][:k]))
        return (bar[inverse_order(order)],)

    def lu_factor_pushforward(a_dot):
        if np.ndim(a) < 2:
            return a_dot, NoTangent
        return packed(*lu_dot(*unpacked(z[0]), a_dot[order])), NoTangent

    return z, lu_factor_pullback, lu_factor_pushforward


@entered("lu", dims=(2,))
def lu(f, a, permute_l=False, overwrite_a=False, check_finite=True, **options):
    """P is constant where no two candidates for a pivot are equal."""
    z = f(a, permute_l, check_finite=check_finite, **options)
    m = np.shape(a)[0]

    def order():  # A[i] = (L U)[order[i]]
        if options.get("p_indices") and not permute_l:
            return z[0]
        p = f(a, check_finite=False)[0] if permute_l else z[0]
        return np.argmax(p, 1) if np.size(p) else np.arange(m)

    def lu_pullback(z_bar):
        low_bar, up_bar = z_bar[-2:]
        if is_zero(low_bar) and is_zero(up_bar):
            return (ZeroTangent,)
        back = order()
        low = z[-2]
        if permute_l:
            low = low[inverse_order(back)]
            low_bar = low_bar if is_zero(low_bar) else low_bar[inverse_order(back)]
        return (lu_bar(low, z[-1], low_bar, up_bar)[back],)

    def lu_pushforward(a_dot, *others):
        back = order()
        low = z[-2][inverse_order(back)] if permute_l else z[-2]
        low_dot, up_dot = lu_dot(low, z[-1], a_dot[inverse_order(back)])
        return (low_dot[back], up_dot) if permute_l else (NoTangent, low_dot, up_dot)

    return z, lu_pullback, lu_pushforward


def solve_by_lu(lu: Any, piv: Any, b: Any, trans: Any, check_finite: Any) -> Any:
    """SciPy's, with the factors as arguments of their own."""
    return sl.lu_solve((lu, piv), b, trans, check_finite=check_finite)


@defined("lu_solve")
def lu_solve(lu_and_piv, b, trans=0, overwrite_b=False, check_finite=True):
    """A pair is taken apart."""
    lu, piv = lu_and_piv
    return solve_by_lu(lu, piv, b, trans, check_finite)


@entered(solve_by_lu, dims=(2, 1, "1|2"))
def lu_solve_core(f, lu, piv, b, trans, check_finite):
    """A_bar = -b_bar z^H, or its transpose, has few columns; so have those of L and U."""
    z = f(lu, piv, b, trans, check_finite)
    order = rows_of(piv, np.shape(lu)[0])

    def adjoint_solve(x):
        return (
            conj(f(lu, piv, conj(x), 0, False))
            if trans == 1
            else f(lu, piv, x, 2 if trans == 0 else 0, False)
        )

    def lu_solve_pullback(z_bar):
        b_bar = adjoint_solve(z_bar)

        def factors_bar():
            low, up = unpacked(lu)
            left, right = as_columns(b_bar), as_columns(z)  # op(A)_bar = -left right^H
            if trans:
                left, right = (right, left) if trans == 2 else (conj(right), conj(left))
            left = -left[order]
            strict = np.tri(np.shape(lu)[0], k=-1, dtype=bool)
            return np.where(strict, left @ adjoint(up @ right), (adjoint(low) @ left) @ adjoint(right))

        return Thunk(factors_bar), NoTangent, b_bar

    def lu_solve_pushforward(lu_dot, piv_dot, b_dot, *others):
        moved = b_dot
        if varies(lu_dot):
            low, up = unpacked(lu)
            low_dot, up_dot = np.tril(lu_dot, -1), np.triu(lu_dot)
            back = inverse_order(order)
            if trans == 0:
                product = (low_dot @ (up @ z) + low @ (up_dot @ z))[back]
            else:
                flip = adjoint if trans == 2 else np.transpose
                x = z[order]
                product = flip(up_dot) @ (flip(low) @ x) + flip(up) @ (flip(low_dot) @ x)
            moved = total(moved, -product)
        return f(lu, piv, moved, trans, False)

    return z, lu_solve_pullback, lu_solve_pushforward


# -- L D L^H -----------------------------------------------------------------------------------------------------------


@entered("ldl", dims=(2,))
def ldl(f, A, lower=True, hermitian=True, overwrite_a=False, check_finite=True):
    """P A P^T = L D L^H (or L D L^T): L^-1 dA L^-H is D's change in the blocks, and what moves L beside them."""
    z = f(A, lower, hermitian, check_finite=check_finite)
    factor, d, perm = z
    hermitian = hermitian or not np.iscomplexobj(A)
    back = inverse_order(perm)

    def parts():
        n = np.shape(A)[0]
        blocks = np.eye(n, dtype=bool) | (d != 0) | (np.transpose(d) != 0)
        half = np.tril if lower else np.triu
        return factor[perm], inverse_or_nan(d), blocks, half(np.ones((n, n), bool)) & ~blocks

    def ldl_pullback(z_bar):
        if np.size(A) == 0:
            return (np.zeros(np.shape(A)),)
        unit, inverse, blocks, strict = parts()
        m_bar: Any = 0.0
        if not is_zero(z_bar[0]):
            m_bar = np.where(strict, (adjoint(unit) @ z_bar[0][perm]) @ adjoint(inverse), 0)
        if not is_zero(z_bar[1]):
            m_bar = plus(m_bar, np.where(blocks, z_bar[1], 0))
        if isinstance(m_bar, float):
            return (ZeroTangent,)
        left = triangular(unit, m_bar, 2, lower)
        other = unit if hermitian else conj(unit)
        bar = adjoint(triangular(other, adjoint(left), 2, lower))
        return (folded(bar[back][:, back], lower, hermitian),)

    def ldl_pushforward(a_dot, *others):
        if np.size(A) == 0:
            return np.zeros_like(factor), np.zeros_like(d), NoTangent
        unit, inverse, blocks, strict = parts()
        p_dot = symmetrised(a_dot, lower, hermitian)[perm][:, perm]
        left = triangular(unit, p_dot, 0, lower)
        m = np.transpose(triangular(conj(unit) if hermitian else unit, np.transpose(left), 0, lower))
        return (unit @ (np.where(strict, m, 0) @ inverse))[back], np.where(blocks, m, 0), NoTangent

    return z, ldl_pullback, ldl_pushforward


__all__ = [
    "cholesky",
    "cholesky_bar",
    "cholesky_dot",
    "eye",
    "ldl",
    "lu",
    "lu_bar",
    "lu_dot",
    "rows_of",
    "unpacked",
]
