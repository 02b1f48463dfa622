"""Krylov solvers, differentiated as what they solve: x = A^-1 b. No iteration is.

What the solver found is a constant of the level; then x - A^-1 (A x - b) has the derivative of the solution. Its pullback
is one solution with A^H, its pushforward one with A, by the same solver, as exact as the program asked it to be: beside
the size of the right-hand side, because cotangents and tangents may be of any size.
"""

from __future__ import annotations

from inspect import signature
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse import issparse
from scipy.sparse import linalg as solvers

from plaingrad.rules import derivatives
from plaingrad.rules.pushforwards import dot_of, varies
from plaingrad.rules.scipy.forms import keep
from plaingrad.rules.scipy.implicit import (
    Rules,
    called,
    carrying,
    copied,
    fresh,
    is_active,
    outside,
    refuse,
    stepped,
    underived,
)
from plaingrad.rules.scipy.sparse.facts import enter
from plaingrad.tangents import NoTangent

RULES = Rules()
HERMITIAN = ("cg", "minres")  # for these A is its own adjoint
NAMES = (*HERMITIAN, "bicg", "bicgstab", "cgs", "gmres", "lgmres", "qmr", "gcrotmk", "tfqmr")
OPTIONS = ("maxiter", "restart", "inner_m", "outer_k", "m", "k", "shift")
RELATIVE = "rtol" if "rtol" in signature(solvers.cg).parameters else "tol"
LOOSEST = 1e-5  # what SciPy takes, if nothing is said


class Hidden:
    """A name for a system that the engine does not look into: in what is kept under it, A is one level further out."""


SYSTEMS: WeakKeyDictionary[Hidden, Any] = WeakKeyDictionary()


@outside
def hidden(order: int, function: Any, a: Any, x: Any, options: dict[str, Any], preconditioner: Any) -> Hidden:
    """The system as it is now: what the program writes into its arrays afterwards does not count."""
    name = Hidden()
    a = a.copy() if issparse(a) or isinstance(a, np.ndarray) else a
    SYSTEMS[name] = function, a, product_with(a, x), options, preconditioner
    return name


def system(name: Hidden, x: Any) -> Any:
    """Solver, matrix, options and preconditioner, if the operator is still what it was."""
    function, a, before, options, preconditioner = SYSTEMS[name]
    if not (issparse(a) or isinstance(a, np.ndarray)) and not np.array_equal(product_with(a, x), before):
        refuse(function, "its operator is not what it was: the program has written into arrays that it reads")
    return function, a, options, preconditioner


def relative(given: dict[str, Any], size: float) -> dict[str, float]:
    """The tolerances that a program gave for a right-hand side of this size, as those for one of any size."""
    known, absolute = given.get(RELATIVE), given.get("atol")
    found = {} if known is None else {RELATIVE: float(known)}
    if isinstance(absolute, (int, float)) and absolute > 0 and size > 0:
        found[RELATIVE] = max(found.get(RELATIVE, 0.0), min(absolute / size, LOOSEST))
    return found if "atol" not in given else {**found, "atol": 0.0}


def adjoint_of(a: Any) -> Any:
    """A^H of an array, a sparse matrix, or an operator."""
    if issparse(a) or isinstance(a, np.ndarray):
        return a.conj().T
    operator = solvers.aslinearoperator(a)
    zero = np.zeros(operator.shape[1], operator.dtype)

    def transposed(y: Any) -> Any:
        """An operator of the program that has no adjoint: it is linear, so its derivative has one."""
        try:
            return operator.rmatvec(y)
        except NotImplementedError:
            return derivatives.gradient(lambda x: (operator.matvec(x) * y).sum(), zero)

    return solvers.LinearOperator(operator.shape[::-1], matvec=transposed, dtype=operator.dtype)


def product_with(a: Any, x: Any) -> Any:
    """A x."""
    return a @ x if issparse(a) or isinstance(a, np.ndarray) else solvers.aslinearoperator(a).matvec(x)


def answer(function: Any, a: Any, b: Any, options: dict[str, Any]) -> Any:
    """The solution; by GMRES where the solver breaks down, and refused where that does not converge either."""
    x, info = function(a, b, **options)
    if info != 0 and function.__name__ not in HERMITIAN:
        tolerances = {key: options[key] for key in (RELATIVE, "atol") if key in options}
        x, info = solvers.gmres(a, b, restart=min(len(b), 100), **tolerances)
    if info != 0:
        refuse(function, "the solver has not converged in a system of the derivative")
    return np.reshape(x, np.shape(b))


def improved(x: Any, r: Any, name: Hidden) -> Any:
    """x, with the derivative of x - A^-1 r."""
    return copied(x)


def improved_rrule(x: Any, r: Any, name: Hidden) -> Any:
    def improved_pullback(x_bar: Any) -> Any:
        function, a, options, preconditioner = system(name, x)
        if function.__name__ in HERMITIAN:
            r_bar = -answer(function, a, x_bar, {**options, "M": preconditioner})
        else:
            r_bar = -answer(function, adjoint_of(a), x_bar, options)
        return x_bar, r_bar, NoTangent

    return x * 1.0, improved_pullback


def improved_frule(x: Any, r: Any, name: Hidden) -> Any:
    def improved_pushforward(dots: Any) -> Any:
        x_dot, r_dot = dot_of(dots, 0), dot_of(dots, 1)
        if not varies(r_dot):
            return x_dot
        function, a, options, preconditioner = system(name, x)
        used = {**options, "M": preconditioner} if preconditioner is not None else options
        if np.ndim(r_dot) > np.ndim(r):
            z_dot = -np.stack([answer(function, a, part, used) for part in r_dot])
        else:
            z_dot = -answer(function, a, r_dot, used)
        return x_dot + z_dot if varies(x_dot) else z_dot

    return x * 1.0, improved_pushforward


enter(improved, improved_rrule, improved_frule)


def shifted(a: Any, x: Any, shift: Any) -> Any:
    """(A - shift) x, as `minres` solves."""
    return product_with(a, x) - shift * x if shift is not None else product_with(a, x)


@RULES.defined(*[getattr(solvers, name, None) for name in NAMES])
def iterative(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """(x, info)."""
    a, b, shift = given["A"], np.asarray(given["b"]), given.get("shift")
    x, info = called(function, call)
    x = fresh(x)
    b = np.reshape(b, np.shape(x))
    r = shifted(a, x, shift) - b
    if not is_active(r):
        return x, info
    if info != 0:
        refuse(function, "the solver has not converged")
    options = {name: given[name] for name in OPTIONS if given.get(name) is not None}
    options |= relative(given, float(np.linalg.norm(fresh(b))))
    name = hidden(function, a, x, options, given.get("M"))
    return stepped(improved, lambda x: shifted(a, x, shift) - b, x, r, name), info


# -- least squares: x is the solution of A^H A x = A^H b, or of least norm ----------------------------------------------

EXACT = {RELATIVE: 1e-12, "atol": 0.0}
NEAR = 1e-4  # the most that a solution may be off, of its size


@outside
def normal_system(order: int, function: Any, a: Any, b: Any, x: Any, damp: Any, wide: bool) -> tuple[Hidden, Any]:
    """A^H A + damp^2, of A as it is now, and x; or where A is wide A A^H, and the y with A^H y = x."""
    a = a.copy() if issparse(a) or isinstance(a, np.ndarray) else a
    first, second = (adjoint_of(a), a) if wide else (a, adjoint_of(a))
    size = len(b) if wide else x.size

    def product(v: Any) -> Any:
        return product_with(second, product_with(first, v)) + damp * damp * v

    name, operator = Hidden(), solvers.LinearOperator((size, size), matvec=product, dtype=x.dtype)
    options = {**EXACT, "maxiter": 20 * size + 100}
    if wide:
        y = answer(solvers.cg, operator, b, options)
        off = product_with(first, y) - x
    else:
        y, off = x, answer(solvers.cg, operator, product(x) - product_with(second, b), options)
    if not np.max(np.abs(off), initial=0.0) <= NEAR * (1.0 + np.max(np.abs(x), initial=0.0)):
        refuse(function, "the solver has not converged, or the matrix is nearly of lower rank")
    SYSTEMS[name] = solvers.cg, operator, product(y), options, None
    return name, y


@RULES.defined(solvers.lsqr, solvers.lsmr)
def least_squares(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """(x, reason, iterations, norms and estimates): of those only x has a derivative."""
    a, b, damp, start = given["A"], np.reshape(np.asarray(given["b"]), (-1,)), given["damp"], given["x0"]
    outcome = called(function, call)
    x = fresh(outcome[0])
    r = product_with(a, x) - b
    if not is_active((r, damp, start)):
        return outcome
    if start is not None:
        refuse(function, "it begins with x0, which the solution may depend on")
    wide = len(b) < x.size and not is_active(damp) and damp == 0
    name, y = normal_system(function, a, b, x, damp, wide)
    if wide:

        def of_least_norm(y: Any) -> Any:
            return product_with(a, product_with(adjoint_of(a), y)) - b

        z = product_with(adjoint_of(a), stepped(improved, of_least_norm, y, of_least_norm(y), name))
    else:

        def normal(x: Any) -> Any:
            return product_with(adjoint_of(a), product_with(a, x) - b) + damp * damp * x

        z = stepped(improved, normal, x, normal(x), name)
    name_of = f"a result of `scipy.sparse.linalg.{function.__name__}`"
    rest = [underived(part, z, name_of) if isinstance(part, (float, np.ndarray)) else part for part in outcome[1:]]
    return carrying(x, z), *rest


for rule in RULES:
    keep(rule)

