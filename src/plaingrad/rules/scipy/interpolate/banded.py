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
from plaingrad.tangents import NoTangent, Thunk


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


def gbsv(kl, ku, ab, b, overwrite_ab=False, overwrite_b=False):
    """LAPACK's solution; the factors are not needed by SciPy's callers."""
    return None, None, banded(kl, ku, ab[kl:], b), 0


def gtsv(dl, d, du, b, overwrite_dl=False, overwrite_d=False, overwrite_du=False, overwrite_b=False):
    """That with three diagonals."""
    zero = np.zeros(1, d.dtype)
    ab = np.stack([np.concatenate([zero, du]), d, np.concatenate([dl, zero])])
    return None, None, None, banded(1, 1, ab, b), 0


for letter in "sdcz":
    for definition in (gbsv, gtsv):
        function = getattr(lapack, letter + definition.__name__, None)
        if function is not None:
            keep(Rule(function, "composed", definition=definition, source=f"{__file__}:1"))
