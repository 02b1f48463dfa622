"""Functions of matrices. L(A, E), the derivative of f at A along E, is a block of f([[A, E], [0, A]]) (Mathias, 1996).

The adjoint of L(A, .) is L(A^H, .), for functions that are real on the real axis.
"""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np

from plaingrad.rulebook import Rule
from plaingrad.rules.numpy.names import adjoint, conj
from plaingrad.rules.pushforwards import total, varies
from plaingrad.rules.scipy.linalg.entering import defined, entered, keep, sl
from plaingrad.rules.scipy.linalg.matrices import on_diagonal
from plaingrad.rules.scipy.linalg.schur import complex_schur
from plaingrad.rules.scipy.linalg.spectra import near
from plaingrad.tangents import NoTangent, Thunk, ZeroTangent, is_zero


def in_block(a: Any, e: Any) -> Any:
    """[[A, E], [0, A]]."""
    return np.concatenate([np.concatenate([a, e], 1), np.concatenate([np.zeros_like(a), a], 1)], 0)


def along(f: Any, a: Any, e: Any) -> Any:
    """L(A, E)."""
    n = np.shape(a)[0]
    return f(in_block(a, e))[:n, n:]


def result_of(z: Any) -> Any:
    """The matrix, where an estimate of the error comes with it."""
    return z[0] if isinstance(z, tuple) else z


def maps(z: Any, a: Any, slope: Any) -> Any:
    """The rule for z = f(A), or (f(A), estimate), of `slope(a, e)`."""
    pair = isinstance(z, tuple)

    def function_pullback(z_bar):
        bar = z_bar[0] if pair else z_bar
        if np.size(a) == 0 or is_zero(bar):
            return (ZeroTangent,)
        return (slope(adjoint(a), bar),)

    def function_pushforward(a_dot, *others):
        z_dot = slope(a, a_dot) if np.size(a) else np.zeros_like(result_of(z))
        return (z_dot, *(NoTangent,) * (len(z) - 1)) if pair else z_dot

    return z, function_pullback, function_pushforward


# -- Exponentials ------------------------------------------------------------------------------------------------------


def exponential_slope(a: Any, e: Any) -> Any:
    """The derivative at A along E; nan where A is not finite."""
    if not np.all(np.isfinite(a)):
        return np.full_like(e, np.nan)
    return sl.expm_frechet(a, e, compute_expm=False, check_finite=False)


@entered("expm", dims=(2,))
def expm(f, A):
    """By scaling, Pade and squaring of the derivative (Al-Mohy and Higham, 2009)."""
    return maps(f(A), A, exponential_slope)


@entered("expm_frechet", dims=(2, 2))
def expm_frechet(f, A, E, method=None, compute_expm=True, check_finite=True):
    """The second derivative is the first one of a block matrix."""
    z = f(A, E, method, compute_expm, check_finite)
    n = np.shape(A)[0]

    def frechet_pullback(z_bar):
        p_bar, l_bar = z_bar if compute_expm else (ZeroTangent, z_bar)
        zero = np.zeros_like(result_of(z))
        p_bar = zero if is_zero(p_bar) else p_bar
        l_bar = zero if is_zero(l_bar) else l_bar

        def a_bar():
            seed = np.concatenate([np.concatenate([p_bar, l_bar], 1), np.concatenate([zero, zero], 1)], 0)
            bar = sl.expm_frechet(adjoint(in_block(A, E)), seed, compute_expm=False, check_finite=False)
            return bar[:n, :n] + bar[n:, n:]

        return Thunk(a_bar), Thunk(lambda: sl.expm_frechet(adjoint(A), l_bar, compute_expm=False, check_finite=False))

    def frechet_pushforward(a_dot, e_dot, *others):
        l_dot: Any = ZeroTangent
        p_dot: Any = np.zeros_like(result_of(z))
        if varies(a_dot):
            whole = sl.expm_frechet(in_block(A, E), in_block(a_dot, np.zeros_like(a_dot)), compute_expm=False, check_finite=False)
            l_dot, p_dot = whole[:n, n:], whole[:n, :n]
        if varies(e_dot):
            l_dot = total(l_dot, sl.expm_frechet(A, e_dot, compute_expm=False, check_finite=False))
        return (p_dot, l_dot) if compute_expm else l_dot

    return z, frechet_pullback, frechet_pushforward


# -- Logarithms and powers -----------------------------------------------------------------------------------------------


def logarithm(a: Any) -> Any:
    """The logarithm without a word printed."""
    disp = inspect.signature(sl.logm).parameters.get("disp")  # gone in SciPy 1.18
    loud = disp is not None and disp.default is True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sl.logm(a, disp=False)[0] if loud else sl.logm(a)


@entered("logm", dims=(2,))
def logm(f, A, *rest, **options):
    """By the block."""
    return maps(f(A, *rest, **options), A, lambda a, e: along(logarithm, a, e))


def lyapunov_like(z: Any, e: Any) -> Any:
    """X with Z X + X Z = E; nan where there is none."""
    try:
        with warnings.catch_warnings():  # the primal has warned, if there was anything to warn of
            warnings.simplefilter("ignore")
            return sl.solve_sylvester(z, z, e)
    except (np.linalg.LinAlgError, ValueError):  # singular, or not finite
        return np.full_like(e, np.nan)


@entered("sqrtm", dims=(2,))
def sqrtm(f, A, *rest, **options):
    """Z Z = A, so Z Z_dot + Z_dot Z = A_dot."""
    z = f(A, *rest, **options)
    root = result_of(z)
    return maps(z, A, lambda a, e: lyapunov_like(root if a is A else adjoint(root), e))


@entered("signm", dims=(2,))
def signm(f, A, *rest, **options):
    """With N = A S, N S_dot + S_dot N = A_dot - S A_dot S (Kenney and Laub, 1991)."""
    z = f(A, *rest, **options)
    s = result_of(z)

    def slope(a, e):
        if a is A:
            return lyapunov_like(a @ s, e - s @ e @ s)
        y = lyapunov_like(a @ adjoint(s), e)
        return y - adjoint(s) @ y @ adjoint(s)

    return maps(z, A, slope)


@entered("fractional_matrix_power", dims=(2, None))
def fractional_matrix_power(f, A, t):
    """In t: log(A) A^t."""
    z = f(A, t)

    def slope(a, e):
        return along(lambda m: f(m, t), a, e)

    def power_pullback(z_bar):
        def t_bar():
            return np.sum(np.real(conj(logarithm(A) @ z) * z_bar))

        if np.size(A) == 0:
            return ZeroTangent, ZeroTangent
        return Thunk(lambda: slope(adjoint(A), z_bar)), Thunk(t_bar) if np.asarray(t).dtype.kind == "f" else NoTangent

    def power_pushforward(a_dot, t_dot):
        z_dot: Any = slope(A, a_dot) if varies(a_dot) else ZeroTangent
        return total(z_dot, logarithm(A) @ z * t_dot) if varies(t_dot) else z_dot

    return z, power_pullback, power_pushforward


# -- Any function: by Schur's complex form and Parlett's recurrence ------------------------------------------------------


def parlett(t: Any, values: Any) -> Any:
    """F with F T = T F for triangular T, from its diagonal; each diagonal follows from those below."""
    n = np.shape(t)[0]
    f = on_complex(values)
    for p in range(1, n):
        rows = np.arange(n - p)
        columns = rows + p
        gaps = t[columns, columns] - t[rows, rows]
        sums = t[rows, columns] * (f[columns, columns] - f[rows, rows])
        for k in range(1, p):
            sums = sums + t[rows, rows + k] * f[rows + k, columns] - f[rows, rows + k] * t[rows + k, columns]
        f = f + placed(np.where(gaps == 0, sums, sums / np.where(gaps == 0, 1, gaps)), p)
    return f


def placed(values: Any, p: int) -> Any:
    """A matrix with these values on diagonal p."""
    n = np.shape(values)[0] + p
    z = np.zeros((n, n), complex)
    z[np.arange(n - p), np.arange(p, n)] = values
    return z


def on_complex(values: Any) -> Any:
    """A complex diagonal matrix."""
    return on_diagonal(np.real(values)) + 1j * on_diagonal(np.imag(values))


def undetermined(f: Any) -> Any:
    """f, without a derivative."""
    return f


@entered(undetermined, dims=(2,))
def undetermined_core(g, f):
    """nan."""
    return g(f), lambda z_bar: (np.full_like(f, np.nan),), lambda f_dot: np.full_like(f, np.nan)


@defined("funm")
def funm(A, func, disp=True):
    """Whatever func depends on has its derivative, too; where two eigenvalues are equal it is nan."""
    A = np.asarray(A)
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        sl.funm(A, func, disp)  # it says what is wrong
    if A.ndim == 2:
        f, err = funm_of_one(A, func)
    else:
        found = [funm_of_one(a, func) for a in np.reshape(A, (-1, *A.shape[-2:]))]
        f, err = np.reshape(np.stack([f for f, _ in found]), A.shape), max([err for _, err in found])
    if disp:
        if err > 1000 * tolerance_of(f):
            print("funm result may be inaccurate, approximate err =", err)
        return f
    return f, err


def tolerance_of(f: Any) -> Any:
    """The resolution of its numbers."""
    return np.finfo(f.dtype).eps


def funm_of_one(A: Any, func: Any) -> Any:
    """f(A), and SciPy's estimate of its error."""
    t, z = complex_schur(A)
    w = np.diagonal(t)
    values = func(w)
    f = z @ parlett(t, values + 0j) @ np.conj(np.transpose(z))
    if has_equal(w):
        f = undetermined(f)
    if np.isrealobj(A) and is_nearly_real(f, A):
        f = np.real(f)
    return f, error_of(t, f)


def error_of(t: Any, f: Any) -> float:
    """SciPy's estimate: the resolution over the smallest distance of two eigenvalues."""
    w = np.diagonal(t)
    gaps = np.abs(w[:, None] - w[None, :])[np.triu_indices(len(w), 1)]
    smallest = np.min(gaps[gaps != 0], initial=np.abs(t[0, 0]))
    tol = tolerance_of(f)
    if not np.all(np.isfinite(f)):
        return np.inf
    return float(min(1, max(tol, tol / (smallest or tol) * np.linalg.norm(np.triu(t, 1), 1))))


def has_equal(w: Any) -> bool:
    """Whether two numbers agree but for rounding."""
    w = np.asarray(w)
    return bool(np.any(near(w[:, None], w[None, :], w) & ~np.eye(len(w), dtype=bool)))


def is_nearly_real(f: Any, a: Any) -> bool:
    """SciPy's condition for a real result."""
    tolerance = 1e3 * np.finfo(float).eps if np.asarray(a).dtype.char != "f" else 1e6 * np.finfo(np.float32).eps
    return bool(np.allclose(np.imag(f), 0.0, atol=tolerance))


for _function in (error_of, has_equal, is_nearly_real, tolerance_of):
    keep(Rule(_function, "no_tangent", source=f"{__file__}:1"))

__all__ = ["expm", "expm_frechet", "funm", "logm", "signm", "sqrtm"]
