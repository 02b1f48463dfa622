"""SuperLU: `spsolve`, `splu`, `factorized` and triangular systems. The factors of A serve its transpose, too.

x = A^-1 b has b_bar = A^-H x_bar and A_bar = -b_bar x^H at the places of A, so that a gradient costs two triangular
solves more. All matrices here are in columns; one in rows is the transpose of one in columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.linalg import SuperLU
from scipy.sparse.linalg._dsolve import _superlu

from plaingrad.errors import MissingRuleError
from plaingrad.rulebook import Rule
from plaingrad.rules.numpy.names import conj
from plaingrad.rules.pushforwards import pushed, total
from plaingrad.rules.scipy.forms import keep
from plaingrad.rules.scipy.implicit import underived
from plaingrad.rules.scipy.sparse.facts import constant, each, enter
from plaingrad.rules.scipy.sparse.products import product, sampled, turned
from plaingrad.tangents import NoTangent, Thunk, ZeroTangent

Structure = tuple[Any, Any, Any]  # number of rows, index pointer, indices


def factors(structure: Structure, a: Any, options: Any) -> Any:
    """The factors of A; None if it is singular."""
    n, p, j = structure
    build = {"csc_construct_func": sparse.csc_array, "ilu": False, "options": options}
    try:
        return _superlu.gstrf(n, int(p[-1]), a, j, p, **build)
    except RuntimeError:
        return None


def places(structure: Structure) -> Any:
    """Form, shape and index arrays, as in `products`."""
    n, p, j = structure
    return "csc", (n, n), p, j


def plainly(function: Any, *args: Any, **options: Any) -> Any:
    """function(*args), of which nothing has a derivative."""
    return function(*args, **options)


def same_kind(b: Any, a: Any) -> Any:
    """`b` in the precision of `a`, which SuperLU asks for."""
    dtype = np.asarray(a).dtype
    return b if b.dtype == dtype or dtype.kind != "c" and np.iscomplexobj(b) else b.astype(dtype)


constant(factors, places, plainly)


def by_adjoint(solve: Any, way: str, z_bar: Any) -> Any:
    """The solution of the adjoint system; `solve(way, b)` knows A ("N"), A^T ("T") and A^H ("H")."""
    if way == "T":  # the adjoint of A^T is the conjugate of A
        return conj(solve("N", conj(z_bar)))
    return solve("H" if way == "N" else "N", z_bar)


def of_matrix(way: str, at: Any, z: Any, b_bar: Any) -> Any:
    """The cotangent of the numbers of A, from the solution z and the cotangent of the right side."""
    if way == "N":
        return sampled(*at, -b_bar, conj(z))
    return sampled(*at, conj(z), -b_bar) if way == "T" else sampled(*at, z, -conj(b_bar))


def moved_by(way: str, at: Any, a_dot: Any, z: Any) -> Any:
    """A_dot z, A_dot^T z or A_dot^H z."""
    if way == "N":
        return product(*at, a_dot, z)
    return product(*turned(*at), a_dot if way == "T" else conj(a_dot), z)


def solution(lu: Any, way: str, structure: Structure, a: Any, b: Any) -> Any:
    """A^-1 b, A^-T b or A^-H b by the factors of A, whose numbers are `a`."""
    return lu.solve(same_kind(b, a), way)


def solution_rrule(lu: Any, way: str, structure: Structure, a: Any, b: Any) -> Any:
    z = solution(lu, way, structure, a, b)

    def solution_pullback(z_bar: Any) -> Any:
        b_bar = by_adjoint(lambda other, right: solution(lu, other, structure, a, right), way, z_bar)
        return NoTangent, NoTangent, NoTangent, Thunk(lambda: of_matrix(way, places(structure), z, b_bar)), b_bar

    return z, solution_pullback


def solution_frule(lu: Any, way: str, structure: Structure, a: Any, b: Any) -> Any:
    z = solution(lu, way, structure, a, b)

    def solution_pushforward(dots: Any) -> Any:
        at = places(structure)
        right = total(
            pushed(lambda a_dot: -each(lambda part: moved_by(way, at, part, z), a_dot, a), dots[3]), dots[4]
        )
        return pushed(lambda r: columns_at_once(lambda c: solution(lu, way, structure, a, c), r, b), right)

    return z, solution_pushforward


def columns_at_once(solve: Any, right: Any, b: Any) -> Any:
    """solve(right); a chunk of vectors as the columns of a matrix."""
    if np.ndim(b) == 1 and np.ndim(right) == 2:
        return solve(right.T).T
    return each(solve, right, b)


enter(solution, solution_rrule, solution_frule)


def gssv(n, nnz, a, j, p, b, flag, options=None):
    """`spsolve`; its matrix is in rows if not `flag`. As there a singular one gives what SuperLU gives."""
    structure = (n, p, j)
    lu = factors(structure, a, options)
    if lu is None:
        x, info = plainly(_superlu.gssv, n, nnz, a, j, p, b, flag, options=options)
        return x, info
    return solution(lu, "N" if flag else "T", structure, a, b), 0


# ---------------------------------------------------------------------------------------------------------
# Factors that are kept


class Factorization:
    """What `splu` and `spilu` return for a differentiated matrix: a `SuperLU` that knows the numbers that it is of.

    Attributes:
        lu: the factors themselves.
        exact: they are not of an incomplete factorization.
    """

    def __init__(self, lu: Any, structure: Structure, a: Any, exact: bool) -> None:
        self.lu, self.structure, self.numbers, self.exact = lu, structure, a, exact
        self.shape, self.nnz, self.perm_r, self.perm_c = (structure[0], structure[0]), lu.nnz, lu.perm_r, lu.perm_c

    def solve(self, rhs: Any, trans: str = "N") -> Any:
        """As that of `SuperLU`."""
        if self.exact:
            return solution(self.lu, trans, self.structure, self.numbers, np.asarray(rhs))
        value = approximation(self.lu, trans, self.numbers, np.asarray(rhs))
        return underived(value, self.numbers, "the solution by `spilu` of a differentiated matrix")

    @property
    def L(self) -> Any:
        """Refused."""
        raise no_factor("L")

    @property
    def U(self) -> Any:
        """Refused."""
        raise no_factor("U")


def no_factor(name: str) -> MissingRuleError:
    """The error for the triangular factors themselves."""
    return MissingRuleError(
        f"`{name}` of a sparse factorization of a differentiated matrix has no derivative here: its places of fill "
        "are SuperLU's.\n  Instead: solve with the factorization, or scipy.linalg.lu of the dense matrix.\n"
        "  See docs: errors#missing-rule"
    )


def gstrf(n, nnz, a, j, p, csc_construct_func=None, ilu=False, options=None):
    """`splu`, and `spilu` if `ilu`."""
    build = {"csc_construct_func": csc_construct_func, "ilu": ilu, "options": options}
    lu = plainly(_superlu.gstrf, n, nnz, a, j, p, **build)
    return Factorization(lu, (n, p, j), a, not ilu)


def approximation(lu: Any, way: str, a: Any, b: Any) -> Any:
    """The solution by incomplete factors, as a value: what these leave out depends on the numbers."""
    return lu.solve(same_kind(b, a), way)


def solve_constant(lu: Any, b: Any, way: str) -> Any:
    """The solution by factors of a constant matrix."""
    return lu.solve(b, way)


def solve_constant_rrule(lu: Any, b: Any, way: str) -> Any:
    def solve_constant_pullback(z_bar: Any) -> Any:
        return NoTangent, by_adjoint(lambda other, right: solve_constant(lu, right, other), way, z_bar), NoTangent

    return solve_constant(lu, b, way), solve_constant_pullback


def solve_constant_frule(lu: Any, b: Any, way: str) -> Any:
    def solve_constant_pushforward(dots: Any) -> Any:
        return pushed(lambda r: columns_at_once(lambda c: solve_constant(lu, c, way), r, b), dots[1])

    return solve_constant(lu, b, way), solve_constant_pushforward


def superlu_solve(self, rhs, trans="N"):
    """`SuperLU.solve`."""
    return solve_constant(self, np.asarray(rhs), trans)


constant(approximation)
enter(solve_constant, solve_constant_rrule, solve_constant_frule)


# ---------------------------------------------------------------------------------------------------------
# `spsolve_triangular`: M has the numbers of L below its diagonal, those of U above it, and ones on it.


def triangular(way: str, lower: Structure, u: Structure, a_lower: Any, a_upper: Any, b: Any) -> Any:
    """M^-1 b, M^-T b or M^-H b."""
    arguments = [
        (n, int(p[-1]), a, j, p) for (n, p, j), a in ((lower, a_lower), (u, a_upper))
    ]
    return _superlu.gstrs(way, *arguments[0], *arguments[1], b.copy())[0]


def beside(structure: Structure, below: bool) -> Any:
    """Which stored numbers are beside the diagonal, on the side of the factor."""
    n, p, j = structure
    column = np.repeat(np.arange(n), np.diff(p))
    return (j > column if below else j < column).astype(float)


constant(beside)


def triangular_rrule(way: str, lower: Structure, u: Structure, a_lower: Any, a_upper: Any, b: Any) -> Any:
    z = triangular(way, lower, u, a_lower, a_upper, b)

    def triangular_pullback(z_bar: Any) -> Any:
        b_bar = by_adjoint(lambda other, right: triangular(other, lower, u, a_lower, a_upper, right), way, z_bar)

        def bar(structure: Structure, below: bool) -> Any:
            return of_matrix(way, places(structure), z, b_bar) * beside(structure, below)

        return NoTangent, NoTangent, NoTangent, Thunk(lambda: bar(lower, True)), Thunk(lambda: bar(u, False)), b_bar

    return z, triangular_pullback


def triangular_frule(way: str, lower: Structure, u: Structure, a_lower: Any, a_upper: Any, b: Any) -> Any:
    z = triangular(way, lower, u, a_lower, a_upper, b)

    def triangular_pushforward(dots: Any) -> Any:
        def right(structure: Structure, below: bool, a: Any, a_dot: Any) -> Any:
            mask, at = beside(structure, below), places(structure)
            return -each(lambda part: moved_by(way, at, part * mask, z), a_dot, a)

        moved = total(
            pushed(lambda a_dot: right(lower, True, a_lower, a_dot), dots[3]),
            pushed(lambda a_dot: right(u, False, a_upper, a_dot), dots[4]),
            dots[5] if len(dots) > 5 else ZeroTangent,
        )
        return pushed(lambda r: each(lambda c: triangular(way, lower, u, a_lower, a_upper, c), r, b), moved)

    return z, triangular_pushforward


enter(triangular, triangular_rrule, triangular_frule)


def gstrs(trans, n, nnz, a, j, p, m, u_nnz, u, u_j, u_p, b):
    return triangular(trans, (n, p, j), (m, u_p, u_j), a, u, b), 0


for name, definition in (("gssv", gssv), ("gstrf", gstrf), ("gstrs", gstrs)):
    compiled = getattr(_superlu, name, None)
    if compiled is not None:
        keep(Rule(compiled, "composed", definition=definition, source=f"{__file__}:1"))
keep(Rule(SuperLU.solve, "composed", definition=superlu_solve, source=f"{__file__}:1"))
