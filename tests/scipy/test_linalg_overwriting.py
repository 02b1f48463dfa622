"""Flags that let LAPACK write into its arguments, given by position."""

import inspect

import numpy as np
import pytest
from tests.scipy.agreement import slope

import plaingrad

pytestmark = pytest.mark.filterwarnings("ignore")
linalg = pytest.importorskip("scipy.linalg")
blas, lapack = linalg.blas, linalg.lapack
RANDOM = np.random.default_rng(1)
A = np.asfortranarray(RANDOM.normal(size=(4, 4)) + 4 * np.eye(4))
B = np.asfortranarray(RANDOM.normal(size=(4, 3)))
S = np.asfortranarray(A @ A.T)
U = np.asfortranarray(np.triu(A))
V = np.cos(np.arange(16.0)).reshape(4, 4)
CASES = {
    "solve": (S, B), "inv": (A,), "det": (A,), "lstsq": (A, B), "cholesky": (S,), "cho_factor": (S,), "lu": (A,),
    "lu_factor": (A,), "qr": (A,), "rq": (A,), "svdvals": (A,), "hessenberg": (A,), "ldl": (S,),
    "solve_triangular": (U, B), "solve_banded": ((1, 1), A[:3], B),
}  # fmt: skip


def number(result):
    """From all arrays in a result one number, in which every entry counts differently."""
    total = 0.0
    for part in result if isinstance(result, tuple) else (result,):
        part = np.asarray(part)
        if part.dtype.kind == "f":
            total = total + (part * np.cos(1.0 + np.arange(part.size)).reshape(part.shape)).sum()
    return total


@pytest.mark.parametrize("name", CASES)
def test_flags_given_by_position_change_nothing(name):
    function, arguments = getattr(linalg, name), CASES[name]
    parameters = list(inspect.signature(function).parameters.values())
    flags = [k for k, p in enumerate(parameters) if p.name.startswith("overwrite") and p.kind is p.POSITIONAL_OR_KEYWORD]
    place = 1 if name == "solve_banded" else 0
    options = [True if k in flags else parameters[k].default for k in range(len(arguments), max(flags) + 1)]

    def of(a):
        a = np.asfortranarray(a * 1.0)
        before = np.sum(a**2)
        others = [x.copy(order="F") if isinstance(x, np.ndarray) else x for x in arguments]
        others[place] = a
        return before + number(function(*others, *options))

    at = arguments[place]
    v = V[: len(at)] + (V.T if len(at) == 4 else 0.0)

    def plain(a):
        others = list(arguments)
        others[place] = a
        return np.sum(a**2) + number(function(*others))

    expected = slope(plain, at, v)
    assert np.isclose((plaingrad.grad(of)(at) * v).sum(), expected, rtol=1e-6)
    assert np.isclose(plaingrad.jvp(of, (at,), (v,))[1], expected, rtol=1e-6)


WRAPPED = {
    "dgemm": lambda a: blas.dgemm(1.0, a, B, 1.0, B.copy(order="F"), 0, 0, 1),
    "dtrsm": lambda a: blas.dtrsm(1.0, a, B.copy(order="F"), 0, 0, 0, 0, 1),
    "dpotrf": lambda a: lapack.dpotrf(a, 0, 1, 1)[0],
    "dtrtrs": lambda a: lapack.dtrtrs(a, B.copy(order="F"), 0, 0, 0, 4, 1)[0],
    "dgesv": lambda a: lapack.dgesv(a, B, 1, 0)[2],
}


@pytest.mark.parametrize("name", WRAPPED)
def test_wrappers_that_would_write_into_their_arguments_refuse(name):
    with pytest.raises(plaingrad.MissingRuleError, match="overwrite_"):
        plaingrad.grad(lambda a: WRAPPED[name](a).sum())(S)


def test_a_wrapper_keeps_the_triangle_that_it_does_not_clean():
    v = V + V.T
    expected = slope(lambda a: number(lapack.dpotrf(a, 1, 0)[0]), S, v)
    assert np.isclose((plaingrad.grad(lambda a: number(lapack.dpotrf(a, 1, 0)[0]))(S) * v).sum(), expected)
    assert np.isclose(plaingrad.jvp(lambda a: number(lapack.dpotrf(a, 1, 0)[0]), (S,), (v,))[1], expected)
