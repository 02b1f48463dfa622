"""Matrix equations: Sylvester's, Lyapunov's and Riccati's, differentiated as what they solve."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np

from plaingrad.rules.numpy.names import adjoint
from plaingrad.rules.pushforwards import total, varies
from plaingrad.rules.scipy.linalg.entering import entered, refusal, sl
from plaingrad.tangents import Thunk, unthunk


@entered("solve_sylvester", dims=(2, 2, 2))
def solve_sylvester(f, a, b, q):
    """A X + X B = Q."""
    z = f(a, b, q)

    def sylvester_pullback(z_bar):
        y = f(adjoint(a), adjoint(b), z_bar)
        return Thunk(lambda: -y @ adjoint(z)), Thunk(lambda: -adjoint(z) @ y), y

    def sylvester_pushforward(a_dot, b_dot, q_dot):
        moved = total(q_dot, -(a_dot @ z) if varies(a_dot) else a_dot)
        return f(a, b, total(moved, -(z @ b_dot) if varies(b_dot) else b_dot))

    return z, sylvester_pullback, sylvester_pushforward


@entered("solve_continuous_lyapunov", "solve_lyapunov", dims=(2, 2))
def solve_continuous_lyapunov(f, a, q):
    """A X + X A^H = Q."""
    z = f(a, q)

    def lyapunov_pullback(z_bar):
        y = f(adjoint(a), z_bar)
        return Thunk(lambda: -(y @ adjoint(z) + adjoint(y) @ z)), y

    def lyapunov_pushforward(a_dot, q_dot):
        return f(a, total(q_dot, -(a_dot @ z + z @ adjoint(a_dot)) if varies(a_dot) else a_dot))

    return z, lyapunov_pullback, lyapunov_pushforward


@entered("solve_discrete_lyapunov", dims=(2, 2))
def solve_discrete_lyapunov(f, a, q, method=None):
    """X = A X A^H + Q."""
    z = f(a, q, method)

    def stein_pullback(z_bar):
        y = f(adjoint(a), z_bar, method)
        return Thunk(lambda: y @ a @ adjoint(z) + adjoint(y) @ a @ z), y

    def stein_pushforward(a_dot, q_dot, *others):
        moved = a_dot @ z @ adjoint(a) + a @ z @ adjoint(a_dot) if varies(a_dot) else a_dot
        return f(a, total(q_dot, moved), method)

    return z, stein_pullback, stein_pushforward


def hermitian(x: Any) -> Any:
    """The Hermitian part."""
    return (x + adjoint(x)) / 2


def right_divided(a: Any, e: Any) -> Any:
    """A E^-1."""
    return a if e is None else adjoint(sl.solve(adjoint(e), adjoint(a)))


def between(w: Any, e: Any) -> Any:
    """E^-H W E^-1."""
    return w if e is None else adjoint(sl.solve(adjoint(e), adjoint(sl.solve(adjoint(e), w))))


def through(y: Any, e: Any) -> Any:
    """E^-1 Y E^-H."""
    return y if e is None else adjoint(sl.solve(e, adjoint(sl.solve(e, y))))


# Both equations say that (A - B K)^H ... (A - B K) is in balance with Q + K^H R K - S K - K^H S^H, where K is best: so
# the slope in K vanishes, and only the letters move.


def riccati(z: Any, e: Any, gain: Any, balance: Any, solve_back: Any, left: Any, sign: float, rest: Any) -> Any:
    """The rule of an algebraic Riccati equation.

    Args:
        z: X.
        e: E, or None.
        gain: K.
        balance: F^H X_dot F - X_dot + W = 0, or F^H X_dot + X_dot F + W = 0, solved for X_dot from W.
        solve_back: the adjoint of `balance`.
        left: what stands to the left of A_dot and B_dot, and of E_dot.
        sign: of the terms in E_dot.
        rest: what is left of the equation.
    """
    of_a, of_e = left

    def check():
        if np.max(np.abs(rest), initial=0.0) > np.sqrt(np.finfo(z.real.dtype).eps) * np.max(np.abs(z), initial=0.0):
            raise refusal("solve_*_are", "SciPy's result does not solve the equation", "balanced=False")

    def riccati_pullback(z_bar):
        check()
        v = through(solve_back(hermitian(z_bar)), e)
        k = adjoint(gain)
        return (
            Thunk(lambda: 2 * adjoint(of_a) @ v),
            Thunk(lambda: -2 * adjoint(of_a) @ v @ k),
            v,
            Thunk(lambda: gain @ v @ k),
            Thunk(lambda: 2 * sign * adjoint(of_e) @ v),
            Thunk(lambda: -2 * v @ k),
        )

    def riccati_pushforward(*dots):
        check()
        a_dot, b_dot, q_dot, r_dot, e_dot, s_dot = dots[:6]
        half: Any = np.zeros_like(z)
        half = half + of_a @ a_dot if varies(a_dot) else half
        half = half - of_a @ b_dot @ gain if varies(b_dot) else half
        half = half + sign * of_e @ e_dot if varies(e_dot) else half
        half = half - s_dot @ gain if varies(s_dot) else half
        w = half + adjoint(half)
        w = w + hermitian(q_dot) if varies(q_dot) else w
        w = w + adjoint(gain) @ hermitian(r_dot) @ gain if varies(r_dot) else w
        return balance(between(w, e))

    return z, riccati_pullback, riccati_pushforward


def of_matrices(core: Any) -> Any:
    """A core whose numbers and vectors are matrices of one row, as SciPy has them."""

    def of_any(f: Any, *args: Any, **options: Any) -> Any:
        shapes = [None if x is None else np.shape(x) for x in args[:6]]
        matrices = [x if x is None else np.atleast_2d(x) for x in args[:6]]
        z, pullback, pushforward = core(f, *matrices, *args[6:], **options)
        if all(shape is None or len(shape) > 1 for shape in shapes):
            return z, pullback, pushforward

        def any_pullback(z_bar):
            bars = zip(pullback(z_bar), shapes, strict=False)
            return tuple([bar if shape is None else np.reshape(unthunk(bar), shape) for bar, shape in bars])

        def any_pushforward(*dots):
            return pushforward(*[np.atleast_2d(x_dot) if varies(x_dot) else x_dot for x_dot in dots])

        return z, any_pullback, any_pushforward

    return functools.update_wrapper(of_any, core)


def without_warnings(f: Any, *args: Any) -> Any:
    """f(*args), of which the plain call knows nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return f(*args)


@entered("solve_continuous_are", dims=(2, 2, 2, 2, 2, 2))
@of_matrices
def solve_continuous_are(f, a, b, q, r, e=None, s=None, balanced=True):
    """A^H X E + E^H X A - (E^H X B + S) R^-1 (B^H X E + S^H) + Q = 0."""
    z = f(a, b, q, r, e, s, balanced)
    inner = adjoint(b) @ z if e is None else adjoint(b) @ z @ e
    gain = sl.solve(r, inner if s is None else inner + adjoint(s))
    closed = a - b @ gain
    loop = right_divided(closed, e)

    def balance(w):
        return without_warnings(sl.solve_continuous_lyapunov, adjoint(loop), -w)

    def solve_back(x_bar):
        return without_warnings(sl.solve_continuous_lyapunov, loop, -x_bar)

    ex = z if e is None else adjoint(e) @ z
    left = z @ a if e is None else adjoint(e) @ z @ a
    rest = left + adjoint(left) - adjoint(gain) @ r @ gain + q
    return riccati(z, e, gain, balance, solve_back, (ex, adjoint(closed) @ z), 1.0, rest)


@entered("solve_discrete_are", dims=(2, 2, 2, 2, 2, 2))
@of_matrices
def solve_discrete_are(f, a, b, q, r, e=None, s=None, balanced=True):
    """A^H X A - E^H X E - (A^H X B + S) (R + B^H X B)^-1 (B^H X A + S^H) + Q = 0."""
    z = f(a, b, q, r, e, s, balanced)
    bx = adjoint(b) @ z
    inner = bx @ a
    gain = sl.solve(r + bx @ b, inner if s is None else inner + adjoint(s))
    closed = a - b @ gain
    loop = right_divided(closed, e)

    def balance(w):
        return sl.solve_discrete_lyapunov(adjoint(loop), w)

    def solve_back(x_bar):
        return sl.solve_discrete_lyapunov(loop, x_bar)

    ex = z if e is None else adjoint(e) @ z
    old = z if e is None else ex @ e
    rest = adjoint(a) @ z @ a - old - adjoint(gain) @ (r + bx @ b) @ gain + q
    return riccati(z, e, gain, balance, solve_back, (adjoint(closed) @ z, ex), -1.0, rest)


__all__ = ["solve_continuous_are", "solve_discrete_are", "solve_sylvester"]
