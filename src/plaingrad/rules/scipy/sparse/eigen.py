"""Some eigenvalues and singular values of large matrices: `eigsh`, `eigs`, `lobpcg`, `svds`, as what they solve.

The solver's result is a constant of the level. With the residual R = A V - M V diag(w), which is 0 but has the derivative of
A and M, the eigenvalues are w + diag(U^H R), and the vectors V - S R (see `deflation`), scaled to their length. So A's
cotangent is one of products with vectors: it has the places of A. Nothing of the iteration is differentiated.
"""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
import scipy.sparse as sparse
from scipy.sparse import issparse
from scipy.sparse import linalg as solvers

from plaingrad.rulebook import Rule
from plaingrad.rules.scipy.forms import keep
from plaingrad.rules.scipy.implicit import (
    Parameters,
    Rules,
    bound,
    called,
    carrying,
    fresh,
    is_active,
    ordered,
    outside,
    refuse,
)
from plaingrad.rules.scipy.sparse.deflation import Pairs, times, turned
from plaingrad.rules.scipy.sparse.iterative import SYSTEMS, Hidden, adjoint_of

RULES = Rules()
AT_PAIR = 1e-4  # the most that a residual may be, of the largest eigenvalue
CLOSE = 1e-6  # the most that lengths may be off


def is_matrix(a: Any) -> bool:
    """Whether its numbers are known."""
    return issparse(a) or isinstance(a, np.ndarray)


def same(a: Any) -> Any:
    """As it is now: what the program writes into its arrays afterwards does not count."""
    return a.copy() if is_matrix(a) else a


def in_any_phase(function: Any, call: Any) -> Any:
    """function(...), for what does not depend on the phases of complex vectors: so these may stand still as the vectors move."""
    args, kwargs = call
    return function(*args, **kwargs)


@outside
def found_with_vectors(order: int, function: Any, given: dict[str, Any], changed: dict[str, Any]) -> Any:
    """The function's result with vectors, where the program did not ask for them."""
    options = {name: given[name] for name in given if name not in ("rng", "random_state", "options")}
    return in_any_phase(function, ((), {**options, **changed, **(given.get("options") or {})}))


@outside
def shifted_inverse(order: int, a: Any, m: Any, sigma: Any, given: Any) -> Any:
    """(A - sigma M)^-1, or None if there is no shift, or only an operator that is inverted by iteration."""
    if sigma is None or given is not None:
        return given
    if not is_matrix(a) or m is not None and not is_matrix(m):
        return None
    unit = sparse.eye(a.shape[0], format="csc") if m is None else sparse.csc_matrix(m)
    numbers = sparse.csc_matrix(a)
    factors = solvers.splu((numbers - sigma * unit).tocsc())
    dtype = np.result_type(numbers.dtype, np.asarray(sigma).dtype)

    def solve(b: Any, way: str) -> Any:
        if np.iscomplexobj(b) and dtype.kind != "c":
            return factors.solve(b.real, way) + 1j * factors.solve(b.imag, way)
        return factors.solve(b if dtype.kind != "c" or np.iscomplexobj(b) else b + 0j, way)

    return solvers.LinearOperator(
        a.shape, matvec=lambda b: solve(b, "N"), rmatvec=lambda b: solve(b, "H"), dtype=dtype
    )


@outside
def kept(order: int, function: Any, a: Any, m: Any, w: Any, v: Any, u: Any, inverse: Any, sigma: Any, symmetric: bool, turns: Any) -> Hidden:
    """A name for the system of the vectors' derivatives."""
    name = Hidden()
    sizes = float(np.max(np.abs(w), initial=0.0)) or 1.0
    SYSTEMS[name] = Pairs(function, same(a), None if m is None else same(m), w, v, u, inverse, sigma, symmetric, turns, sizes)
    return name


@outside
def check(order: int, function: Any, r: Any, w: Any, nv: Any, v: Any) -> None:
    """Refuse what is no solution."""
    if not np.max(np.abs(r), initial=0.0) <= AT_PAIR * (np.max(np.abs(w), initial=0.0) or 1.0) * (1.0 + np.max(np.abs(nv), initial=0.0)):
        refuse(function, "the solver has not converged")
    if not np.all(np.abs((np.conj(v) * nv).sum(0) - 1.0) <= CLOSE):
        refuse(function, "its vectors are scaled in another way than by V^H M V = 1")


@outside
def are_turned(order: int, v: Any, real: bool, free: bool) -> Any:
    """Of which vectors the phase is arbitrary: not of real ones of a real matrix, which have a sign only."""
    if free or not np.iscomplexobj(v):
        return np.zeros(v.shape[1], bool)
    return ~np.all(v.imag == 0, 0) if real else np.ones(v.shape[1], bool)


def is_real(*matrices: Any) -> bool:
    """Whether none of them is complex."""
    return not any(m is not None and np.dtype(getattr(m, "dtype", None) or float).kind == "c" for m in matrices)


def pairs(
    function: Any, a: Any, m: Any, w: Any, v: Any, u: Any, inverse: Any, sigma: Any, symmetric: bool, vectors: bool, free: bool
) -> Any:
    """(w, V) with their derivatives; V None if it is not asked for; None if nothing depends on the inputs."""
    mv = times(m, v)
    r = times(a, v) - mv * w
    if not is_active(r):
        return None
    if ordered() > 1:
        refuse(function, "several derivatives at once are not known of it")
    check(function, r, w, mv, v)
    left = u() if callable(u) else v
    moved = (np.conj(left) * r).sum(0)
    new_w = carrying(w, w + (moved if np.iscomplexobj(w) else moved.real))
    if not vectors:
        return new_w, None
    turns = are_turned(v, is_real(a, m), free)
    name = kept(function, a, m, w, v, left, inverse() if inverse is not None else None, sigma, symmetric, turns)
    y = turned(v, r, name)
    length = (np.conj(y) * times(m, y)).sum(0).real
    return new_w, carrying(v, y / np.sqrt(length))


def eigsh(function: Any, call: Any, given: dict[str, Any], free: bool) -> Any:
    """(w, V), or w."""
    a, m, sigma, wanted = given["A"], given["M"], given["sigma"], given["return_eigenvectors"]
    outcome = called(in_any_phase, ((function, call), {}))
    w, v = outcome if wanted else found_with_vectors(function, given, {"return_eigenvectors": True})
    w, v = fresh(w), fresh(v)
    if given["mode"] != "normal":
        sigma = None

    def inverse() -> Any:
        return shifted_inverse(a, m, sigma, given["OPinv"] if sigma is not None else None)

    moved = pairs(function, a, m, w, v, None, inverse, sigma, True, wanted, free)
    if moved is None:
        return called(function, call) if np.iscomplexobj(v) else outcome
    return moved if wanted else in_order(outcome, w, moved[0])


@outside
def order_of(order: int, w: Any, values: Any) -> Any:
    """Where each of `values` stands in w."""
    rest = np.abs(values[:, None] - w[None, :])
    places = []
    for k in range(len(values)):
        places.append(int(np.argmin(rest[k])))
        rest[:, places[-1]] = np.inf
    return np.array(places, int)


def in_order(values: Any, w: Any, moved: Any) -> Any:
    """Eigenvalues that were found without vectors, with the derivatives of those that were found with them."""
    return carrying(fresh(values), moved[order_of(w, values)])


@outside
def left_vectors(order: int, function: Any, given: dict[str, Any], w: Any, v: Any, mv: Any) -> Any:
    """U with U^H A = diag(w) U^H M and U^H M V = 1."""
    changed: dict[str, Any] = {"A": adjoint_of(given["A"]), "return_eigenvectors": True, "v0": None}
    if given["M"] is not None:
        changed["M"] = adjoint_of(given["M"])
    for name in ("Minv", "OPinv"):
        if given[name] is not None:
            changed[name] = adjoint_of(given[name])
    if given["sigma"] is not None:
        changed["sigma"] = np.conj(given["sigma"])
    if given["which"] in ("LI", "SI") and not is_real(given["A"]):
        changed["which"] = {"LI": "SI", "SI": "LI"}[given["which"]]
    options = {name: given[name] for name in given if name not in ("rng",)}
    values, u = in_any_phase(function, ((), {**options, **changed}))
    if is_real(given["A"], given["M"]):  # of a pair of eigenvalues one may have been found only, and the other one here
        values, u = np.concatenate([values, np.conj(values)]), np.concatenate([u, np.conj(u)], 1)
    places = order_of(values, np.conj(w))
    size = np.max(np.abs(w), initial=0.0)
    if not np.all(np.abs(values[places] - np.conj(w)) <= 1e-6 * size):
        refuse(function, "the left eigenvectors were not found")
    u = u[:, places]
    overlap = (np.conj(u) * mv).sum(0)
    return u / np.conj(overlap)


def eigs(function: Any, call: Any, given: dict[str, Any], free: bool) -> Any:
    """(w, V), or w: complex."""
    a, m, sigma, wanted = given["A"], given["M"], given["sigma"], given["return_eigenvectors"]
    outcome = called(in_any_phase, ((function, call), {}))
    w, v = outcome if wanted else found_with_vectors(function, given, {"return_eigenvectors": True})
    w, v = fresh(w), fresh(v)

    def inverse() -> Any:
        return shifted_inverse(a, m, sigma, given["OPinv"] if sigma is not None and given["OPpart"] is None else None)

    def left() -> Any:
        return left_vectors(function, given, w, v, times(m, v))

    moved = pairs(function, a, m, w, v, left, inverse, sigma, False, wanted, free)
    if moved is None:
        return called(function, call)
    return moved if wanted else in_order(outcome, w, moved[0])


def lobpcg(function: Any, call: Any, given: dict[str, Any], free: bool) -> Any:
    """(w, V, histories)."""
    outcome = called(in_any_phase, ((function, call), {}))
    w, v = fresh(outcome[0]), fresh(outcome[1])
    moved = pairs(function, given["A"], given["B"], w, v, None, None, None, True, True, free)
    if moved is None:
        return called(function, call) if np.iscomplexobj(v) else outcome
    if given["Y"] is not None:
        refuse(function, "with constraints Y")
    return (*moved, *outcome[2:])


# -- singular values: eigenvalues of ((0, A), (A^H, 0)), with the vectors (u, v) / sqrt(2) ------------------------------


def crossed(a: Any) -> Any:
    """The operator ((0, A), (A^H, 0)), of matrices."""
    m, n = a.shape
    back = adjoint_of(a)

    def product(x: Any) -> Any:
        x = np.reshape(x, (m + n, -1))
        return np.concatenate([times(a, x[m:]), times(back, x[:m])])

    def vector(x: Any) -> Any:
        return product(x)[:, 0]

    dtype = np.result_type(a.dtype, np.float64)
    return solvers.LinearOperator((m + n, m + n), matvec=vector, rmatvec=vector, matmat=product, rmatmat=product, dtype=dtype)


@outside
def kept_crossed(order: int, function: Any, a: Any, s: Any, u: Any, v: Any, turns: Any) -> Hidden:
    """The name of the system of u and v; the vectors of -s are known, too."""
    name = Hidden()
    both = np.concatenate([np.concatenate([u, u], 1), np.concatenate([v, -v], 1)]) / np.sqrt(2.0)
    w = np.concatenate([s, -s])
    sizes = float(np.max(np.abs(s), initial=0.0)) or 1.0
    also = np.concatenate([turns, np.zeros(len(s), bool)])
    SYSTEMS[name] = Pairs(function, crossed(same(a)), None, w, both, both, None, None, True, also, sizes)
    return name


def svds(function: Any, call: Any, given: dict[str, Any], free: bool) -> Any:
    """(u, s, vh), or some of them."""
    wanted = given["return_singular_vectors"]
    outcome = called(in_any_phase, ((function, call), {}))
    whole = outcome
    if wanted is not True:
        whole = found_with_vectors(function, given, {"return_singular_vectors": True})
    u, s, vh = [fresh(part) for part in whole]
    a = given["A"]
    if not isinstance(a, np.ndarray) and not issparse(a):
        a = solvers.aslinearoperator(a)
    r_u = times(a, np.conj(vh.T)) - u * s
    if not is_active(r_u):
        return called(function, call) if np.iscomplexobj(u) else outcome
    if ordered() > 1:
        refuse(function, "several derivatives at once are not known of it")
    check(function, r_u, s, u, u)
    new_s = carrying(s, s + (np.conj(u) * r_u).sum(0).real)
    if wanted is False:
        return in_order(outcome, s, new_s)
    r_v = times(adjoint_of(a), u) - np.conj(vh.T) * s
    v = np.conj(vh.T)
    name = kept_crossed(function, a, s, u, v, are_turned(u, False, free))
    k = len(s)
    r = np.concatenate([r_u, r_v]) / np.sqrt(2.0)
    start = np.concatenate([np.concatenate([u, u], 1), np.concatenate([v, -v], 1)]) / np.sqrt(2.0)
    x = turned(start, np.concatenate([r, r * 0.0], 1), name)[:, :k] * np.sqrt(2.0)
    new_u, new_v = x[: u.shape[0]], x[u.shape[0] :]
    new_u, new_vh = carrying(u, new_u), carrying(vh, np.conj(new_v).T)
    if wanted is True:
        return new_u, new_s, new_vh
    return (new_u if wanted == "u" else None), new_s, (new_vh if wanted == "vh" else None)


DEFINITIONS = {solvers.eigsh: eigsh, solvers.eigs: eigs, solvers.lobpcg: lobpcg, solvers.svds: svds}
PARAMETERS = {function: Parameters(signature(function)) for function in DEFINITIONS}


@RULES.defined(*DEFINITIONS)
def solver(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """Any of these."""
    return DEFINITIONS[function](function, call, given, False)


def defined_in_any_phase(function: Any, call: Any) -> Any:
    """As the solver itself, but for the phases."""
    args, kwargs = call
    return DEFINITIONS[function](function, call, bound(PARAMETERS[function], args, kwargs), True)


for rule in RULES:
    keep(rule)
keep(Rule(in_any_phase, "composed", definition=defined_in_any_phase, source=f"{__file__}:1"))
