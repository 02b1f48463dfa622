"""QR and RQ: orthogonal columns, a triangle with a real diagonal."""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.rules.numpy.linalg import solution_or_nan
from plaingrad.rules.numpy.names import adjoint, conj
from plaingrad.rules.pushforwards import varies
from plaingrad.rules.scipy.linalg.entering import entered, refusal, sl
from plaingrad.rules.scipy.linalg.equations import solve_op
from plaingrad.rules.scipy.linalg.matrices import diagonal, on_diagonal
from plaingrad.rules.scipy.linalg.singular import columns_bar, with_unknown
from plaingrad.tangents import NoTangent, Thunk, ZeroTangent, is_zero


def solve_triangle(r: Any, b: Any, trans: int = 0) -> Any:
    """op(R)^-1 b, with inf or nan where R is singular."""
    if np.size(b) == 0:
        return b
    if np.any(diagonal(r) == 0):
        return solution_or_nan(adjoint(r) if trans else r, b)
    return solve_op(r, b, trans, False, False)


def square_bar(q: Any, r: Any, q_bar: Any, r_bar: Any) -> Any:
    """a_bar of A = Q R with square R: (q_bar + Q copyltu(M)) R^-H, M = R r_bar^H - q_bar^H Q."""
    m: Any = 0.0
    if not is_zero(r_bar):
        m = r @ adjoint(np.triu(r_bar))
    if not is_zero(q_bar):
        m = m - adjoint(q_bar) @ q
    low = np.tril(m, -1)
    c = q @ (low + adjoint(low) + on_diagonal(np.real(diagonal(m))))
    return adjoint(solve_triangle(r, adjoint(c if is_zero(q_bar) else q_bar + c)))


def qr_bar(a: Any, q: Any, r: Any, q_bar: Any, r_bar: Any) -> Any:
    """a_bar of the thin factors, also where R is wide: A = [X Y], R = [U V], X = Q U and V = Q^H Y."""
    k, n = np.shape(r)
    if is_zero(q_bar) and is_zero(r_bar):
        return ZeroTangent
    if n == k:
        return square_bar(q, r, q_bar, r_bar)
    y = a[:, k:]
    if is_zero(r_bar):
        return np.concatenate([square_bar(q, r[:, :k], q_bar, r_bar), np.zeros_like(y)], 1)
    v_bar = r_bar[:, k:]
    through = y @ adjoint(v_bar)
    x_bar = square_bar(q, r[:, :k], through if is_zero(q_bar) else q_bar + through, r_bar[:, :k])
    return np.concatenate([x_bar, q @ v_bar], 1)


def qr_dot(a: Any, a_dot: Any, q: Any, r: Any) -> tuple[Any, Any]:
    """(q_dot, r_dot): Q^H A_dot R^-1 is skew-Hermitian plus upper triangular with a real diagonal."""
    k, n = np.shape(r)
    image = adjoint(solve_triangle(r[:, :k], adjoint(a_dot[:, :k]), 2))
    m = adjoint(q) @ image
    low = np.tril(m, -1)
    turn = low - adjoint(low)
    if np.iscomplexobj(m):
        turn = turn + 1j * on_diagonal(np.imag(diagonal(m)))
    q_dot, r_dot = image - q @ (m - turn), (m - turn) @ r[:, :k]
    if n > k:
        r_dot = np.concatenate([r_dot, adjoint(q_dot) @ a[:, k:] + adjoint(q) @ a_dot[:, k:]], 1)
    return q_dot, r_dot


def asked(lwork: Any) -> dict[str, Any]:
    """The size of the work space if the program says one: SciPy 1.18 warns of it."""
    return {} if lwork is None else {"lwork": lwork}


@entered("qr", dims=(2,))
def qr(f, a, overwrite_a=False, lwork=None, mode="full", pivoting=False, check_finite=True):
    """With pivoting the columns of A are taken in an order that is constant where no two are equally long."""
    z = f(a, mode=mode, pivoting=pivoting, check_finite=check_finite, **asked(lwork))
    m, n = np.shape(a)
    k = min(m, n)
    order = z[-1] if pivoting else np.arange(n)
    raw = mode == "raw"
    place = 0 if mode == "r" else 1  # of R

    def factors():
        if mode in ("r", "raw"):
            q, r = sl.qr(a[:, order], mode="economic", check_finite=False)
            return q, r
        return z[0][:, :k], z[1][:k]

    def qr_pullback(z_bar):
        if np.size(a) == 0:
            return (np.zeros(np.shape(a)),)
        if raw and any(not is_zero(part) and np.any(part != 0) for part in z_bar[0]):
            raise refusal("qr with mode='raw'", "it gives the internals of LAPACK", 'mode="economic"')
        r_bar = z_bar[place]
        r_bar = r_bar if is_zero(r_bar) else r_bar[:k]
        q_bar = ZeroTangent if place == 0 or raw else columns_bar(z[0], z_bar[0], k, "qr with mode='full'")
        bar = qr_bar(a[:, order], *factors(), q_bar, r_bar)
        return (bar if is_zero(bar) or not pivoting else bar[:, np.argsort(order)],)

    def qr_pushforward(a_dot, *others):
        if np.size(a) == 0:
            return tuple([np.zeros_like(part) for part in z[: place + 1]]) + ((NoTangent,) if pivoting else ())
        q_dot, r_dot = qr_dot(a[:, order], a_dot[:, order], *factors())
        rows = np.shape(z[place])[0]
        if rows > k:
            r_dot = np.concatenate([r_dot, np.zeros((rows - k, n))], 0)
        after = (NoTangent,) if pivoting else ()
        if mode == "r":
            return (r_dot, *after)
        if raw:
            unknown = tuple([np.full(np.shape(part), np.nan) for part in z[0]])
            return (unknown, r_dot, *after)
        return (with_unknown(q_dot, z[0]), r_dot, *after)

    return z, qr_pullback, qr_pushforward


@entered("rq", dims=(2,))
def rq(f, a, overwrite_a=False, lwork=None, mode="full", check_finite=True):
    """A = R Q is the QR decomposition of A^H with its rows and columns in reverse."""
    z = f(a, mode=mode, check_finite=check_finite, **asked(lwork))
    m, n = np.shape(a)
    k = min(m, n)
    single = mode == "r"

    def turned(r, q):  # R' = reversed R^H, Q' = (reversed Q)^H
        return adjoint(q[::-1]), adjoint(r[::-1, ::-1])

    def factors():
        r, q = f(a, mode="economic", check_finite=False) if single else z
        return turned(r[:, np.shape(r)[1] - k :], q[np.shape(q)[0] - k :])

    def rq_pullback(z_bar):
        if np.size(a) == 0:
            return (np.zeros(np.shape(a)),)
        r_bar, q_bar = (z_bar, ZeroTangent) if single else z_bar
        if not is_zero(r_bar):
            r_bar = adjoint(r_bar[:, np.shape(r_bar)[1] - k :][::-1, ::-1])
        if not is_zero(q_bar):
            q_bar = columns_bar(adjoint(z[1][::-1]), adjoint(q_bar[::-1]), k, "rq with mode='full'")
        bar = qr_bar(adjoint(a[::-1]), *factors(), q_bar, r_bar)
        return (bar if is_zero(bar) else adjoint(bar)[::-1],)

    def rq_pushforward(a_dot, *others):
        if np.size(a) == 0:
            return np.zeros_like(z) if single else tuple([np.zeros_like(part) for part in z])
        q_dot, r_dot = qr_dot(adjoint(a[::-1]), adjoint(a_dot[::-1]), *factors())
        r_dot = adjoint(r_dot)[::-1, ::-1]
        width = np.shape(z if single else z[0])[1]
        if width > k:
            r_dot = np.concatenate([np.zeros((m, width - k)), r_dot], 1)
        if single:
            return r_dot
        return r_dot, adjoint(with_unknown(q_dot, adjoint(z[1][::-1])))[::-1]

    return z, rq_pullback, rq_pushforward


@entered("qr_multiply", dims=(2, "1|2"))
def qr_multiply(f, a, c, mode="right", pivoting=False, conjugate=False, overwrite_a=False, overwrite_c=False):
    """c Q or Q c, and R."""
    z = f(a, c, mode, pivoting, conjugate)
    order = z[2] if pivoting else np.arange(np.shape(a)[1])
    vector = np.ndim(c) == 1
    matrix = (c[:, None] if mode == "left" else c[None, :]) if vector else c
    k = np.shape(a)[1] if np.shape(a)[0] > np.shape(a)[1] else np.shape(a)[0]

    def factors():
        return sl.qr(a[:, order], mode="economic", check_finite=False)

    def used(q):
        q = conj(q) if conjugate else q
        return q[:, : np.shape(matrix)[0]] if mode == "left" else q

    def product(x, q):
        return np.reshape(q @ x if mode == "left" else x @ q, np.shape(z[0]))

    def multiply_pullback(z_bar):
        q, r = factors()
        mine, zs = used(q), z_bar[0]
        if is_zero(zs):
            return qr_bar(a[:, order], q, r, ZeroTangent, z_bar[1])[:, np.argsort(order)], ZeroTangent
        if vector:
            zs = zs[:, None] if mode == "left" else zs[None, :]
        q_bar = zs @ adjoint(matrix) if mode == "left" else adjoint(matrix) @ zs
        q_bar = conj(q_bar) if conjugate else q_bar
        if np.shape(q_bar)[1] < k:
            q_bar = np.concatenate([q_bar, np.zeros((np.shape(q)[0], k - np.shape(q_bar)[1]))], 1)
        c_bar = adjoint(mine) @ zs if mode == "left" else zs @ adjoint(mine)
        return Thunk(lambda: qr_bar(a[:, order], q, r, q_bar, z_bar[1])[:, np.argsort(order)]), np.reshape(c_bar, np.shape(c))

    def multiply_pushforward(a_dot, c_dot, *others):
        q, r = factors()
        first: Any = np.zeros_like(z[0])
        r_dot: Any = np.zeros_like(z[1])
        if varies(c_dot):
            first = first + product(np.reshape(c_dot, np.shape(matrix)), used(q))
        if varies(a_dot):
            q_dot, r_dot = qr_dot(a[:, order], a_dot[:, order], q, r)
            first = first + product(matrix, used(q_dot))
        return (first, r_dot, NoTangent) if pivoting else (first, r_dot)

    return z, multiply_pullback, multiply_pushforward


__all__ = ["qr", "qr_bar", "qr_dot", "qr_multiply", "rq"]
