"""Equations with a band matrix, whose entry (i, j) is ab[ku + i - j, j]: those of splines."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import lapack, solve_banded

from plaingrad.rulebook import Rule
from plaingrad.rules.numpy.names import conj
from plaingrad.rules.pushforwards import dot_of, pushed, total
from plaingrad.rules.scipy.compiled import each, enter
from plaingrad.rules.scipy.forms import keep
from plaingrad.rules.scipy.implicit import Rules, called, copied, fresh, underived
from plaingrad.tangents import NoTangent, Thunk, ZeroTangent


def moved_row(row: Any, count: int) -> Any:
    """`row` with its entries `count` places further on, zeros in the places left."""
    n = len(row)
    zeros = np.zeros(min(abs(count), n), row.dtype)
    if abs(count) >= n:
        return zeros
    return np.concatenate([zeros, row[: n - count]]) if count >= 0 else np.concatenate([row[-count:], zeros])


def transposed(kl: int, ku: int, ab: Any) -> Any:
    """The transpose, as a band matrix with kl and ku exchanged."""
    return np.stack([moved_row(ab[ku - d], -d) for d in range(-kl, ku + 1)])


def times(kl: int, ku: int, ab: Any, x: Any) -> Any:
    """A x."""
    n = len(x)
    z = np.zeros((n, *x.shape[1:]), np.result_type(ab, x))
    for d in range(-ku, kl + 1):
        first, last = max(0, -d), min(n, n - d)
        if first < last:
            shape = (-1, *(1,) * (x.ndim - 1))
            z[first + d : last + d] += ab[ku + d, first:last].reshape(shape) * x[first:last]
    return z


def band_of(kl: int, ku: int, u: Any, v: Any) -> Any:
    """The entries of u v^T in the band."""
    rows = []
    for d in range(-ku, kl + 1):
        n = len(v)
        first, last = max(0, -d), min(n, n - d)
        row = np.zeros(n, np.result_type(u, v))
        if first < last:
            product = u[first + d : last + d] * v[first:last]
            row[first:last] = product.reshape(last - first, -1).sum(1)
        rows.append(row)
    return np.stack(rows)


def banded(kl: int, ku: int, ab: Any, b: Any) -> Any:
    """A^-1 b."""
    return solve_banded((kl, ku), ab, b)


def banded_rrule(kl: int, ku: int, ab: Any, b: Any) -> Any:
    z = banded(kl, ku, ab, b)

    def banded_pullback(z_bar: Any) -> Any:
        b_bar = banded(ku, kl, conj(transposed(kl, ku, ab)), z_bar)
        return NoTangent, NoTangent, Thunk(lambda: -band_of(kl, ku, b_bar, conj(z))), b_bar

    return z, banded_pullback


def banded_frule(kl: int, ku: int, ab: Any, b: Any) -> Any:
    z = banded(kl, ku, ab, b)

    def banded_pushforward(dots: Any) -> Any:
        right = total(
            pushed(lambda ab_dot: -each(lambda part: times(kl, ku, part, z), ab_dot, ab), dots[2]), dot_of(dots, 3)
        )
        return pushed(lambda r: each(lambda part: banded(kl, ku, ab, part), r, b), right)

    return z, banded_pushforward


enter(banded, banded_rrule, banded_frule)


# -- LAPACK's functions, which give factors as well ----------------------------------------------------------------------


def solution(kl: int, ku: int, ab: Any, b: Any, z: Any) -> Any:
    """A^-1 b where it is known already."""
    return copied(z)


def solution_rrule(kl: int, ku: int, ab: Any, b: Any, z: Any) -> Any:
    def solution_pullback(z_bar: Any) -> Any:
        b_bar = banded(ku, kl, conj(transposed(kl, ku, ab)), z_bar)
        return NoTangent, NoTangent, Thunk(lambda: -band_of(kl, ku, b_bar, conj(z))), b_bar, ZeroTangent

    return z * 1.0, solution_pullback


def solution_frule(kl: int, ku: int, ab: Any, b: Any, z: Any) -> Any:
    _, pushforward = banded_frule(kl, ku, ab, b)
    return z * 1.0, lambda dots: pushforward(tuple(dots)[:4])


enter(solution, solution_rrule, solution_frule)


def given_by(name: str, found: Any, bands: Any, kl: int, ku: int, b: Any) -> tuple[Any, ...]:
    """What LAPACK gives: factors have no derivative here, pivots none at all, and x its own."""
    *factors, x, info = found
    if info != 0:
        return (*factors, x, info)
    z = solution(kl, ku, bands, b, fresh(x))
    name = f"a factor of `scipy.linalg.lapack.{name}`"
    spoiled = [part if part.dtype.kind in "iu" else underived(fresh(part), z, name) for part in factors]
    return (*spoiled, z, info)


def entered(name: str) -> None:
    """Enter one of them."""
    function = getattr(lapack, name)

    def gbsv(kl, ku, ab, b, overwrite_ab=False, overwrite_b=False):
        return given_by(name, called(function, ((kl, ku, ab, b), {})), ab[kl:], kl, ku, b)

    def gtsv(dl, d, du, b, overwrite_dl=False, overwrite_d=False, overwrite_du=False, overwrite_b=False):
        zero = np.zeros(1, d.dtype)
        bands = np.stack([np.concatenate([zero, du]), d, np.concatenate([dl, zero])])
        return given_by(name, called(function, ((dl, d, du, b), {})), bands, 1, 1, b)

    keep(Rule(function, "composed", definition=gtsv if name.endswith("gtsv") else gbsv, source=f"{__file__}:1"))


for letter in "sdcz":
    for name in ("gbsv", "gtsv"):
        if hasattr(lapack, letter + name):
            entered(letter + name)
for rule in Rules():
    keep(rule)
