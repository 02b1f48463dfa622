"""Deflated linear systems: how eigenvectors of a sparse matrix move, without anything of the size of its square.

For A v_i = w_i M v_i and a residual r the eigenvector moves by -S_i r, where S_i inverts A - w_i M on everything but v_i. Along
the other vectors v_j that are known S_i divides by w_j - w_i; on the rest it is one solution of a system in which the known
ones are moved away from 0, by MINRES or GMRES. With a shift sigma the inverse of A - sigma M comes first: that is as quick as
the solver that found the vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.sparse import linalg as solvers

from plaingrad.rules.pushforwards import dot_of, varies
from plaingrad.rules.scipy.implicit import copied, refuse
from plaingrad.rules.scipy.sparse.facts import enter
from plaingrad.rules.scipy.sparse.iterative import EXACT, SYSTEMS, Hidden, adjoint_of, product_with
from plaingrad.tangents import NoTangent

EXACTLY = {name: tolerance for name, tolerance in EXACT.items() if name != "atol"}
NEAR = 1e-9  # eigenvalues that are no further apart, of the largest, are equal


@dataclass(frozen=True)
class Pairs:
    """Eigenpairs that were found: A V = M V diag(w), U^H M V = 1.

    Attributes:
        function: SciPy's function that found them.
        a, m: the matrices; m None for the identity.
        w, v, u: eigenvalues, vectors, left vectors; `u` is `v` where A and M are Hermitian.
        inverse: an operator for (A - sigma M)^-1, or None.
        sigma: the shift.
        symmetric: A and M are Hermitian.
        turns: of which vectors the phase is arbitrary.
        sizes: how far the spectrum that is known reaches.
    """

    function: Any
    a: Any
    m: Any
    w: Any
    v: Any
    u: Any
    inverse: Any
    sigma: Any
    symmetric: bool
    turns: Any
    sizes: float


def times(a: Any, x: Any) -> Any:
    """A X of an array, a sparse matrix, an operator, or a function; X itself where A is None."""
    if a is None:
        return x
    if issparse(a) or isinstance(a, np.ndarray):
        return np.asarray(a @ x)
    if isinstance(a, solvers.LinearOperator):
        return a.matmat(x)
    return a(x) if callable(a) else solvers.aslinearoperator(a).matmat(x)


def applied(a: Any, x: Any) -> Any:
    """A x of one vector."""
    return x if a is None else product_with(a, x)


def conjugate(x: Any) -> Any:
    """Of real numbers themselves."""
    return np.conj(x) if np.iscomplexobj(x) else x


def shares(s: Pairs, k: int, parts: Any, w: Any) -> Any:
    """parts_j / (w_j - w_k) for j other than k; nan where these are equal."""
    same = np.abs(w - w[k]) <= NEAR * s.sizes
    gaps = np.where(same, 1.0, w - w[k])
    return np.where(np.arange(len(w)) == k, 0.0, np.where(same, np.nan, parts / gaps))


def inverted(s: Pairs, k: int, p: Any) -> Any:
    """S_k p."""
    if s.symmetric:
        return inverse_on(s, s.a, s.m, s.w, s.v, s.v, s.inverse, s.sigma, k, p)
    return inverse_on(s, s.a, s.m, s.w, s.v, s.u, s.inverse, s.sigma, k, p)


def adjoint_inverted(s: Pairs, k: int, p: Any) -> Any:
    """S_k^H p."""
    if s.symmetric:
        return inverted(s, k, p)
    inverse = None if s.inverse is None else adjoint_of(s.inverse)
    m = None if s.m is None else adjoint_of(s.m)
    sigma = None if s.sigma is None else np.conj(s.sigma)
    return inverse_on(s, adjoint_of(s.a), m, np.conj(s.w), s.u, s.v, inverse, sigma, k, p)


def inverse_on(
    s: Pairs, a: Any, m: Any, w: Any, v: Any, u: Any, inverse: Any, sigma: Any, k: int, p: Any
) -> Any:
    """(A - w_k M)^-1 p on everything but v_k, where A V = M V diag(w) and U^H M V = 1."""
    known = conjugate(u).T @ p
    coefficients = shares(s, k, known, w)
    if not np.all(np.isfinite(coefficients)):
        return np.full(v.shape[0], np.nan, np.result_type(v, p))
    mv = times(m, v)
    rest = p - mv @ known
    found = v @ coefficients
    size = np.sqrt(np.abs((conjugate(rest) * rest).sum()))
    if v.shape[0] == v.shape[1] or not size > 1e-14 * np.sqrt(np.abs((conjugate(p) * p).sum())):
        return found
    mu = mv if u is v else times(None if m is None else adjoint_of(m), u)
    if inverse is None:
        away = s.sizes * (1.0 if s.w.real.mean() <= 0 else -1.0)

        def system(x: Any) -> Any:
            return applied(a, x) - w[k] * applied(m, x) + mv @ ((away - (w - w[k])) * (conjugate(mu).T @ x))

        right = rest
    else:
        shift = w[k] - sigma

        def system(x: Any) -> Any:
            mx = applied(m, x)
            y = x - shift * applied(inverse, mx) + v @ (shift / (w - sigma) * (conjugate(mu).T @ x))
            return applied(m, y) if s.symmetric else y

        right = applied(inverse, rest)
        right = applied(m, right) if s.symmetric else right
    return found + solution(s, system, right, np.result_type(v, w, p, right))


def solution(s: Pairs, system: Any, right: Any, dtype: Any) -> Any:
    """x with system(x) = right, a linear function; complex Hermitian ones as real ones of twice the size."""
    n = len(right)
    if not s.symmetric:
        operator = solvers.LinearOperator((n, n), matvec=system, dtype=dtype)
        x, _ = solvers.gmres(operator, right, restart=min(n, 200), maxiter=50, **EXACT)
    elif dtype.kind == "c":

        def parts(x: Any) -> Any:
            y = system(x[:n] + 1j * x[n:])
            return np.concatenate([y.real, y.imag])

        operator = solvers.LinearOperator((2 * n, 2 * n), matvec=parts, dtype=np.float64)
        x, _ = solvers.minres(operator, np.concatenate([right.real, right.imag]), maxiter=40 * n, **EXACTLY)
        x = x[:n] + 1j * x[n:]
    else:
        operator = solvers.LinearOperator((n, n), matvec=system, dtype=dtype)
        x, _ = solvers.minres(operator, right, maxiter=20 * n + 100, **EXACTLY)
    size = np.sqrt(np.abs((conjugate(right) * right).sum()))
    off = system(x) - right
    if not np.sqrt(np.abs((conjugate(off) * off).sum())) <= 1e-6 * size:
        refuse(s.function, "the linear system of an eigenvector's derivative was not solved: its eigenvalue is nearly a double one")
    return x


def turned(v: Any, r: Any, name: Hidden) -> Any:
    """V, whose columns have the derivative of v_k - S_k r_k."""
    return copied(v)


def turned_rrule(v: Any, r: Any, name: Hidden) -> Any:
    """Where a phase is arbitrary, nothing may depend on it."""

    def turned_pullback(v_bar: Any) -> Any:
        s = SYSTEMS[name]
        along = np.abs(np.imag((np.conj(s.v) * v_bar).sum(0))) if np.iscomplexobj(s.v) else np.zeros(len(s.w))
        if np.any(s.turns & (along > 1e-6 * np.abs(v_bar).max(initial=0.0))):
            refuse(s.function, "the phase of an eigenvector is arbitrary, and the result depends on it")
        columns = [
            -adjoint_inverted(s, k, v_bar[:, k]) if np.any(v_bar[:, k] != 0) else np.zeros_like(v_bar[:, k])
            for k in range(len(s.w))
        ]
        return v_bar, np.stack(columns, 1), NoTangent

    return v * 1.0, turned_pullback


def turned_frule(v: Any, r: Any, name: Hidden) -> Any:
    """The same forwards; nan where a phase is arbitrary."""

    def turned_pushforward(dots: Any) -> Any:
        v_dot, r_dot = dot_of(dots, 0), dot_of(dots, 1)
        if not varies(r_dot):
            return v_dot
        s = SYSTEMS[name]

        def moved(part: Any) -> Any:
            columns = [-inverted(s, k, part[:, k]) for k in range(len(s.w))]
            return np.stack(columns, 1) + np.where(s.turns, np.nan, 0.0)

        z_dot = np.stack([moved(part) for part in r_dot]) if np.ndim(r_dot) > np.ndim(r) else moved(r_dot)
        return v_dot + z_dot if varies(v_dot) else z_dot

    return v * 1.0, turned_pushforward


enter(turned, turned_rrule, turned_frule)
