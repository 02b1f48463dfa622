"""bottleneck: compiled reductions, which pandas uses, too, where it is installed."""

import subprocess
import sys

import numpy as np
import pytest

import plaingrad

bn = pytest.importorskip("bottleneck")

X = np.array([[0.5, 1.2, 2.0], [0.7, np.nan, -1.1]])
THERE = ~np.isnan(X)


def with_holes(v):
    a = X.copy()
    a[THERE] = v
    return a


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("name", ["nansum", "nanmean", "nanvar", "nanstd", "nanmin", "nanmax", "nanmedian", "ss", "median"])
def test_reductions(agrees, name, axis):
    reduce = getattr(bn, name)

    def f(v):
        a = with_holes(v) if name.startswith("nan") else np.array([v, v[::-1] ** 2, v * 3.0])
        z = np.asarray(reduce(a, axis=axis))
        return (z * z * np.arange(1, z.size + 1)).sum() if z.ndim else float(z) * v[0]

    v = X[THERE]
    agrees(f, v, atol=1e-7)
    if name not in ("nanstd",):
        exact = plaingrad.jvp(plaingrad.grad(f), (v,), (v,))[1]
        by_steps = (plaingrad.grad(f)(v * (1 + 1e-5)) - plaingrad.grad(f)(v * (1 - 1e-5))) / 2e-5
        np.testing.assert_allclose(exact, by_steps, rtol=1e-5, atol=1e-7)


def test_degrees_of_freedom_and_missing_results(agrees):
    agrees(lambda v: bn.nanvar(with_holes(v), ddof=1) * v[0], X[THERE])
    nothing = np.full((2, 2), np.nan)
    assert plaingrad.grad(lambda v: np.nansum(bn.nanmean(np.vstack([nothing, v]), axis=1)))(np.ones(2)).tolist() == [0.5, 0.5]


def test_what_only_looks(agrees):
    agrees(lambda v: v[bn.nanargmax(v)] ** 2 * (1.0 if not bn.anynan(v) else 2.0), X[THERE])


def test_errors_are_those_of_a_plain_call():
    with pytest.raises(ValueError, match="numpy.nanmin raises"):
        plaingrad.grad(lambda v: bn.nanmin(v[:0]) * v[0])(np.ones(2))


LISTED_FIRST = """
import plaingrad
assert len(list(plaingrad.rules())) > 1000
import bottleneck, numpy, pandas
print(plaingrad.grad(lambda x: float(bottleneck.nansum(numpy.array([x, x * x]))))(2.0))
print(plaingrad.grad(lambda x: pandas.Series([x, x * x, 3.0]).rolling(2).mean().iloc[-1])(2.0))
"""


def test_rules_that_wait_are_there_when_they_were_listed_before_their_package_was_imported():
    done = subprocess.run([sys.executable, "-c", LISTED_FIRST], capture_output=True, text=True)
    assert done.stdout.split() == ["5.0", "2.0"], done.stderr
