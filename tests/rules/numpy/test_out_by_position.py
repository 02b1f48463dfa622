"""An output array that NumPy's functions are given by position is written, as one given by name is."""

import numpy as np
import pytest

from plaingrad import grad, jvp

A = np.array([0.5, 2.0, -3.0])

#: f(a, out), where `out` has three elements
FORMS = {
    "clip": lambda a, out: np.clip(a, 0, 1.5, out),
    "clip as a method": lambda a, out: a.clip(0, 1.5, out),
    "clip of what was computed": lambda a, out: np.clip(a * 2, a[2], 1.5, out),
    "cumsum": lambda a, out: np.cumsum(a, 0, None, out),
    "cumprod": lambda a, out: a.cumprod(0, None, out),
    "take": lambda a, out: np.take(a, [2, 1, 1], 0, out),
    "round": lambda a, out: np.around(a, 1, out) + a,
    "dot": lambda a, out: np.dot(np.outer(a, a), a, out),
    "sum": lambda a, out: np.sum(np.outer(a, a), 0, None, out),
    "sum as a method": lambda a, out: np.outer(a, a).sum(1, None, out),
    "sum with axes kept": lambda a, out: np.sum(np.outer(a, a), 0, None, out.reshape(1, 3), True),
    "prod": lambda a, out: np.prod(np.outer(a, a), 0, None, out),
    "mean": lambda a, out: np.mean(np.outer(a, a), 0, None, out),
    "max": lambda a, out: np.max(np.outer(a, a), 0, out),
    "std": lambda a, out: np.std(np.outer(a, a), 0, None, out),
    "var": lambda a, out: np.var(np.outer(a, a), 0, None, out),
    "median": lambda a, out: np.median(np.outer(a, a), 0, out),
    "nansum": lambda a, out: np.nansum(np.outer(a, a), 0, None, out),
    "compress": lambda a, out: np.compress([True, True, True], a, 0, out),
    "concatenate": lambda a, out: np.concatenate([a[1:], a[:1]], 0, out),
    "outer": lambda a, out: np.outer(a, a[:1], out.reshape(3, 1)),
    "none": lambda a, out: np.multiply(np.clip(a, 0, 1.5, None), 2, out),
}


@pytest.mark.parametrize("name", FORMS)
def test_the_array_is_written_and_returned(name):
    def f(a):
        out = np.full(3, 7.0)
        result = FORMS[name](a, out)
        assert name == "round" or np.shares_memory(result, out)
        return (out * out * a).sum()

    def slope(v):
        steps = [(k * 1e-3, w) for k, w in ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280))]
        return sum(w * (f(A + h * v) - f(A - h * v)) for h, w in steps) / 1e-3

    found = grad(f)(A.copy())
    np.testing.assert_allclose(found, [slope(v) for v in np.eye(3)], rtol=1e-8, atol=1e-8)
    v = np.array([0.3, -1.0, 0.2])
    np.testing.assert_allclose(jvp(f, (A.copy(),), (v,))[1], found @ v, rtol=1e-12)
    second = jvp(grad(f), (A.copy(),), (v,))[1]
    h = 1e-5
    np.testing.assert_allclose(second, (grad(f)(A + h * v) - grad(f)(A - h * v)) / (2 * h), rtol=1e-6, atol=1e-7)
