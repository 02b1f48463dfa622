"""The wrappers of BLAS and LAPACK that programs call most. Results come from the wrapped routine itself.

Strides and offsets into vectors, and flags that let the routine write into its arguments, are refused.
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from plaingrad.rules.numpy.names import adjoint, conj
from plaingrad.rules.pushforwards import total, varies
from plaingrad.rules.scipy.linalg.entering import find, keep, refusal, rule_of
from plaingrad.rules.scipy.linalg.equations import op, solve_op, solve_triangular, triangle
from plaingrad.rules.scipy.linalg.factored import (
    cho_solve_core,
    cholesky_dot,
    folded_cholesky_bar,
    inverse_order,
    lu_bar,
    lu_dot,
    lu_solve_core,
    packed,
    rows_of,
    unpacked,
    untouched,
)
from plaingrad.rules.scipy.linalg.matrices import as_columns, symmetrised
from plaingrad.tangents import NoTangent, Thunk, ZeroTangent, is_zero

BLAS = ("scipy.linalg.blas",)
LAPACK = ("scipy.linalg.lapack",)


def blas(*names: str, prefixes: str = "sdcz") -> Any:
    """Decorate the core of a routine, for each type of numbers."""
    return wrapped(*[prefix + name for name in names for prefix in prefixes], modules=BLAS)


def lapack(*names: str, prefixes: str = "sdcz") -> Any:
    """The same for LAPACK."""
    return wrapped(*[prefix + name for name in names for prefix in prefixes], modules=LAPACK)


def wrapped(*names: str, modules: tuple[str, ...]) -> Any:
    """Decorate the core of wrapped routines; one that would write into its arguments is refused."""

    def enter(core: Any) -> Any:
        for name in names:
            function = find(name, modules)
            if function is None:
                continue

            rule = rule_of(function, core, ())
            refused = partial(in_place_refused, name, tuple(inspect.signature(core).parameters)[1:])
            keep(replace(rule, rrule=refused(rule.rrule), frule=refused(rule.frule)))
        return core

    return enter


def in_place_refused(name: str, parameters: tuple[str, ...], rule: Any) -> Any:
    """`rule`, for calls that leave their arguments as they are."""

    def wrapped_rule(*args: Any, **options: Any) -> Any:
        for option, x in (*zip(parameters, args, strict=False), *options.items()):
            if option.startswith("overwrite_") and x:
                raise refusal(f"{name} with {option}", "it writes into its arguments", f"the result, without {option}")
        return rule(*args, **options)

    return wrapped_rule


def plain(name: str, options: dict[str, Any]) -> None:
    """Refuse strides and offsets."""
    for option, x in options.items():
        if option.startswith(("inc", "off")) and x not in (0, 1) or option.startswith("off") and x != 0 or option == "n":
            raise refusal(f"blas.{name} with {option}", "it takes parts of vectors", f"slices, x[::k], without {option}")


def sums(*parts: Any) -> Any:
    """The sum of what varies."""
    return total(*[part for part in parts if part is not None])


# -- Vectors -------------------------------------------------------------------------------------------------------------


def inner_product(conjugated: bool) -> Any:
    """The core of x . y, or x^H y."""

    def dot(f, x, y, **options):
        """Bilinear, or sesquilinear."""
        plain("dot", options)
        x, y = np.asarray(x), np.asarray(y)
        z = f(x, y, **options)

        def dot_pullback(z_bar):
            if conjugated:
                return conj(z_bar) * y, z_bar * x
            return z_bar * conj(y), z_bar * conj(x)

        def dot_pushforward(x_dot, y_dot):
            first = np.sum((conj(x_dot) if conjugated else x_dot) * y) if varies(x_dot) else ZeroTangent
            return total(first, np.sum((conj(x) if conjugated else x) * y_dot) if varies(y_dot) else ZeroTangent)

        return z, dot_pullback, dot_pushforward

    return dot


blas("dot", prefixes="sd")(inner_product(False))
blas("dotu", prefixes="cz")(inner_product(False))
blas("dotc", prefixes="cz")(inner_product(True))


@wrapped("snrm2", "dnrm2", "scnrm2", "dznrm2", modules=BLAS)
def nrm2(f, x, **options):
    """The length."""
    plain("nrm2", options)
    x = np.asarray(x)
    z = f(x, **options)

    def slope():
        return x / z if z != 0 else np.zeros_like(x)

    def nrm2_pushforward(x_dot):
        return np.sum(np.real(conj(slope()) * x_dot))

    return z, lambda z_bar: (np.real(z_bar) * slope(),), nrm2_pushforward


# -- Products ------------------------------------------------------------------------------------------------------------


def unop(m_bar: Any, trans: int) -> Any:
    """The transpose of `op` as a linear map."""
    return op(m_bar, int(trans))


def product_maps(z: Any, alpha: Any, left: Any, right: Any, beta: Any, c: Any) -> Any:
    """The linear maps of z = alpha L R + beta C: on alpha, L, R, beta, C."""

    def back(z_bar):
        scaled = conj(alpha) * z_bar
        return (
            Thunk(lambda: np.sum(z_bar * conj(left @ right))),
            lambda: scaled @ adjoint(right),
            lambda: adjoint(left) @ scaled,
            NoTangent if c is None else Thunk(lambda: np.sum(z_bar * conj(c))),
            NoTangent if c is None else conj(beta) * z_bar,
        )

    def forth(alpha_dot, left_dot, right_dot, beta_dot, c_dot):
        return sums(
            alpha_dot * (left @ right) if varies(alpha_dot) else None,
            alpha * (left_dot @ right) if varies(left_dot) else None,
            alpha * (left @ right_dot) if varies(right_dot) else None,
            beta_dot * c if varies(beta_dot) and c is not None else None,
            beta * c_dot if varies(c_dot) else None,
        )

    del z
    return back, forth


@blas("gemm")
def gemm(f, alpha, a, b, beta=0.0, c=None, trans_a=0, trans_b=0, overwrite_c=0):
    """alpha op(A) op(B) + beta C."""
    a, b = np.asarray(a), np.asarray(b)
    z = f(alpha, a, b, beta, trans_a=trans_a, trans_b=trans_b, **({} if c is None else {"c": c}))
    back, forth = product_maps(z, alpha, op(a, trans_a), op(b, trans_b), beta, c)

    def gemm_pullback(z_bar):
        alpha_bar, left, right, beta_bar, c_bar = back(z_bar)
        return alpha_bar, Thunk(lambda: unop(left(), trans_a)), Thunk(lambda: unop(right(), trans_b)), beta_bar, c_bar

    def gemm_pushforward(alpha_dot, a_dot, b_dot, beta_dot, c_dot, *others):
        left = op(a_dot, trans_a) if varies(a_dot) else a_dot
        right = op(b_dot, trans_b) if varies(b_dot) else b_dot
        return forth(alpha_dot, left, right, beta_dot, c_dot)

    return z, gemm_pullback, gemm_pushforward


@blas("syrk")
def syrk(f, alpha, a, beta=0.0, c=None, trans=0, lower=0, overwrite_c=0):
    """A triangle of alpha A A^T + beta C, or alpha A^T A + beta C; the other one is that of C."""
    a = np.asarray(a)
    z = f(alpha, a, beta, trans=trans, lower=lower, **({} if c is None else {"c": c}))
    m = op(a, 1) if trans else a

    def syrk_pullback(z_bar):
        bar = triangle(z_bar, lower, False)
        m_bar = conj(alpha) * (bar + np.swapaxes(bar, -1, -2)) @ conj(m)
        return (
            Thunk(lambda: np.sum(bar * conj(m @ np.swapaxes(m, -1, -2)))),
            op(m_bar, 1) if trans else m_bar,
            NoTangent if c is None else Thunk(lambda: np.sum(bar * conj(c))),
            NoTangent if c is None else conj(beta) * bar + untouched(z_bar, lower),
        )

    def syrk_pushforward(alpha_dot, a_dot, beta_dot, c_dot, *others):
        parts = []
        if varies(alpha_dot):
            parts.append(alpha_dot * triangle(m @ np.swapaxes(m, -1, -2), lower, False))
        if varies(a_dot):
            half = (op(a_dot, 1) if trans else a_dot) @ np.swapaxes(m, -1, -2)
            parts.append(alpha * triangle(half + np.swapaxes(half, -1, -2), lower, False))
        if varies(beta_dot) and c is not None:
            parts.append(beta_dot * triangle(c, lower, False))
        if varies(c_dot):
            parts.append(beta * triangle(c_dot, lower, False) + untouched(c_dot, lower))
        return sums(*parts)

    return z, syrk_pullback, syrk_pushforward


@blas("gemv")
def gemv(f, alpha, a, x, beta=0.0, y=None, offx=0, incx=1, offy=0, incy=1, trans=0, overwrite_y=0):
    """alpha op(A) x + beta y."""
    plain("gemv", {"offx": offx, "incx": incx, "offy": offy, "incy": incy})
    a, x = np.asarray(a), np.asarray(x)
    z = f(alpha, a, x, beta, trans=trans, **({} if y is None else {"y": y}))
    back, forth = product_maps(z, alpha, op(a, trans), as_columns(x), beta, None if y is None else as_columns(y))

    def gemv_pullback(z_bar):
        alpha_bar, left, right, beta_bar, y_bar = back(as_columns(z_bar))
        y_bar = y_bar if y is None else y_bar[:, 0]
        return alpha_bar, Thunk(lambda: unop(left(), trans)), Thunk(lambda: right()[:, 0]), beta_bar, y_bar

    def gemv_pushforward(alpha_dot, a_dot, x_dot, beta_dot, y_dot, *others):
        left = op(a_dot, trans) if varies(a_dot) else a_dot
        columns = [as_columns(part) if varies(part) else part for part in (x_dot, y_dot)]
        return forth(alpha_dot, left, columns[0], beta_dot, columns[1])[:, 0]

    return z, gemv_pullback, gemv_pushforward


def triangular_maps(z: Any, alpha: Any, a: Any, b: Any, side: int, lower: int, trans: int, unit: int, inverse: bool) -> Any:
    """z = alpha op(A)^(+-1) B, or B op(A)^(+-1) for side 1."""
    def full(m):
        return triangle(m, lower, False) if not unit else triangle(m, lower, True) + np.eye(len(a))

    def apply(x, back=False):  # op(A)^(+-1), or its adjoint, from the left
        if inverse:
            return solve_op(a, x, trans + 10 if back else trans, lower, unit)
        m = op(full(a), trans)
        return (adjoint(m) if back else m) @ x

    def on(x, back=False):
        if not side:
            return apply(x, back)
        return adjoint(apply(adjoint(x), not back))

    def pullback(z_bar):
        b_bar = conj(alpha) * on(z_bar, True)

        def a_bar():
            if inverse:  # op(A) Z = alpha B
                w = on(z_bar, True)
                m_bar = -w @ adjoint(z) if not side else -adjoint(z) @ w
            else:
                m_bar = conj(alpha) * (z_bar @ adjoint(b) if not side else adjoint(b) @ z_bar)
            return triangle(op(m_bar, trans), lower, unit)

        return Thunk(lambda: np.sum(z_bar * conj(on(b)))), Thunk(a_bar), b_bar

    def pushforward(alpha_dot, a_dot, b_dot, *others):
        parts = [alpha_dot * on(b) if varies(alpha_dot) else None, alpha * on(b_dot) if varies(b_dot) else None]
        if varies(a_dot):
            m_dot = op(triangle(a_dot, lower, unit), trans)
            if inverse:
                parts.append(-on(m_dot @ z if not side else z @ m_dot))
            else:
                parts.append(alpha * (m_dot @ b if not side else b @ m_dot))
        return sums(*parts)

    return z, pullback, pushforward


@blas("trmm")
def trmm(f, alpha, a, b, side=0, lower=0, trans_a=0, diag=0, overwrite_b=0):
    """alpha op(A) B."""
    a, b = np.asarray(a), np.asarray(b)
    z = f(alpha, a, b, side=side, lower=lower, trans_a=trans_a, diag=diag)
    return triangular_maps(z, alpha, a, b, side, lower, trans_a, diag, False)


@blas("trsm")
def trsm(f, alpha, a, b, side=0, lower=0, trans_a=0, diag=0, overwrite_b=0):
    """alpha op(A)^-1 B."""
    a, b = np.asarray(a), np.asarray(b)
    z = f(alpha, a, b, side=side, lower=lower, trans_a=trans_a, diag=diag)
    return triangular_maps(z, alpha, a, b, side, lower, trans_a, diag, True)


# -- Factors and equations -----------------------------------------------------------------------------------------------


@lapack("potrf")
def potrf(f, a, lower=0, clean=1, overwrite_a=0):
    """As `cholesky`."""
    a = np.asarray(a)
    z = f(a, lower=lower, clean=clean)

    def low():
        return np.tril(z[0]) if lower else adjoint(np.triu(z[0]))

    def potrf_pullback(z_bar):
        if is_zero(z_bar[0]):
            return (ZeroTangent,)
        bar = folded_cholesky_bar(low(), z_bar[0] if lower else adjoint(z_bar[0]))
        bar = bar if lower else adjoint(bar)
        return (bar if clean else bar + untouched(z_bar[0], lower),)

    def potrf_pushforward(a_dot, *others):
        c_dot = cholesky_dot(low(), symmetrised(a_dot, lower))
        c_dot = c_dot if lower else adjoint(c_dot)
        return c_dot if clean else c_dot + untouched(a_dot, lower), NoTangent

    return z, potrf_pullback, potrf_pushforward


@lapack("potrs")
def potrs(f, c, b, lower=0, overwrite_b=0):
    """As `cho_solve`."""
    z = f(c, b, lower=lower)
    c, b = np.asarray(c), np.asarray(b)
    _, pullback, pushforward = cho_solve_core(lambda c, b, lower, _: f(c, b, lower=lower)[0], c, b, lower, False)
    return z, lambda z_bar: pullback(z_bar[0]), lambda c_dot, b_dot, *others: (pushforward(c_dot, b_dot), NoTangent)


@lapack("trtrs")
def trtrs(f, a, b, lower=0, trans=0, unitdiag=0, lda=None, overwrite_b=0):
    """As `solve_triangular`."""
    z = f(a, b, lower=lower, trans=trans, unitdiag=unitdiag, **({} if lda is None else {"lda": lda}))
    a, b = np.asarray(a), np.asarray(b)

    def solve(a, b, *others, **options):
        return z[0]

    _, pullback, pushforward = solve_triangular(solve, a, b, trans, lower, unitdiag)
    return z, lambda z_bar: pullback(z_bar[0]), lambda a_dot, b_dot, *others: (pushforward(a_dot, b_dot), NoTangent)


@lapack("trtri")
def trtri(f, c, lower=0, unitdiag=0, overwrite_c=0):
    """The inverse of a triangle of C; what is outside of it stays."""
    c = np.asarray(c)
    z = f(c, lower=lower, unitdiag=unitdiag)

    def inverse():
        return triangle(z[0], lower, unitdiag) + np.eye(len(c)) if unitdiag else triangle(z[0], lower, False)

    def trtri_pullback(z_bar):
        if is_zero(z_bar[0]):
            return (ZeroTangent,)
        bar, back = triangle(z_bar[0], lower, unitdiag), adjoint(inverse())
        return (z_bar[0] - bar - triangle(back @ bar @ back, lower, unitdiag),)

    def trtri_pushforward(c_dot, *others):
        dot, m = triangle(c_dot, lower, unitdiag), inverse()
        return c_dot - dot - triangle(m @ dot @ m, lower, unitdiag), NoTangent

    return z, trtri_pullback, trtri_pushforward


@lapack("potri", prefixes="sd")
def potri(f, c, lower=0, overwrite_c=0):
    """A triangle of A^-1 by the factor C, A = L L^T or U^T U; the other one stays."""
    c = np.asarray(c)
    z = f(c, lower=lower)

    def parts():
        inside = triangle(z[0], lower, False)
        low = triangle(c, lower, False) if lower else adjoint(triangle(c, lower, False))
        return low, inside + adjoint(triangle(z[0], lower, True))

    def potri_pullback(z_bar):
        if is_zero(z_bar[0]):
            return (ZeroTangent,)
        low, inverse = parts()
        a_bar = -inverse @ triangle(z_bar[0], lower, False) @ inverse
        low_bar = (a_bar + adjoint(a_bar)) @ low
        return (triangle(low_bar if lower else adjoint(low_bar), lower, False) + untouched(z_bar[0], lower),)

    def potri_pushforward(c_dot, *others):
        low, inverse = parts()
        dot = triangle(c_dot, lower, False)
        half = (dot if lower else adjoint(dot)) @ adjoint(low)
        a_dot = half + adjoint(half)
        return triangle(-inverse @ a_dot @ inverse, lower, False) + untouched(c_dot, lower), NoTangent

    return z, potri_pullback, potri_pushforward


@lapack("getrf")
def getrf(f, a, overwrite_a=0):
    """As `lu_factor`."""
    a = np.asarray(a)
    z = f(a)
    order = rows_of(z[1], np.shape(a)[0])

    def getrf_pullback(z_bar):
        if is_zero(z_bar[0]):
            return (ZeroTangent,)
        low, up = unpacked(z[0])
        k = np.shape(low)[1]
        return (lu_bar(low, up, np.tril(z_bar[0][:, :k], -1), np.triu(z_bar[0][:k]))[inverse_order(order)],)

    def getrf_pushforward(a_dot, *others):
        return packed(*lu_dot(*unpacked(z[0]), a_dot[order])), NoTangent, NoTangent

    return z, getrf_pullback, getrf_pushforward


@lapack("getrs")
def getrs(f, lu, piv, b, trans=0, overwrite_b=0):
    """As `lu_solve`."""
    z = f(lu, piv, b, trans=trans)
    lu, b = np.asarray(lu), np.asarray(b)

    def solve(lu, piv, b, trans, _):
        return f(lu, piv, b, trans=trans)[0]

    _, pullback, pushforward = lu_solve_core(solve, lu, piv, b, trans, False)
    return z, lambda z_bar: pullback(z_bar[0]), lambda *dots: (pushforward(*dots), NoTangent)


@lapack("gesv")
def gesv(f, a, b, overwrite_a=0, overwrite_b=0):
    """The factors and the solution."""
    a, b = np.asarray(a), np.asarray(b)
    z = f(a, b)
    lu, piv, x, _ = z
    order = rows_of(piv, np.shape(a)[0])

    def solve(right, back):
        low, up = unpacked(lu)
        if back:
            y = solve_op(low, solve_op(up, right, 2, False, False), 2, True, True)
            return y[inverse_order(order)]
        return solve_op(up, solve_op(low, right[order], 0, True, True), 0, False, False)

    def gesv_pullback(z_bar):
        a_bar, b_bar = np.zeros_like(a), ZeroTangent
        if not is_zero(z_bar[0]):
            low, up = unpacked(lu)
            a_bar = a_bar + lu_bar(low, up, np.tril(z_bar[0], -1), np.triu(z_bar[0]))[inverse_order(order)]
        if not is_zero(z_bar[2]):
            b_bar = solve(z_bar[2], True)
            a_bar = a_bar - as_columns(b_bar) @ adjoint(as_columns(x))
        return a_bar, b_bar

    def gesv_pushforward(a_dot, b_dot, *others):
        lu_dot_ = packed(*lu_dot(*unpacked(lu), a_dot[order])) if varies(a_dot) else np.zeros_like(lu)
        moved = total(b_dot, -(a_dot @ x) if varies(a_dot) else a_dot)
        return lu_dot_, NoTangent, solve(moved, False), NoTangent

    return z, gesv_pullback, gesv_pushforward


__all__ = ["gemm", "gesv", "getrf", "potrf"]
