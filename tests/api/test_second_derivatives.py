"""Second derivatives of NumPy programs in every pair of modes, against differences of first ones.

Of each program forward over forward mode and one or two of the other pairs are tried; all with PLAINGRAD_TEST_ALL=1.
"""

import itertools
import math

import numpy as np
import pytest
from tests.sampling import sample_of

from plaingrad import ArgumentError, grad, hessian, hvp, jacobian, vhp

random = np.random.default_rng(0)
A, B, w = random.normal(size=(3, 3)), random.normal(size=(3, 3)), random.normal(size=9)
m = lambda x: x.reshape(3, 3)
S = lambda x: m(x) @ m(x).T + 3 * np.eye(3)

PROGRAMS = {
    "sum": lambda x: np.sum(x**3),
    "prod": lambda x: np.prod(x),
    "cumsum": lambda x: (np.cumsum(x) ** 2 * w).sum(),
    "cumprod": lambda x: (np.cumprod(x) * w).sum(),
    "mean": lambda x: np.mean(x**2) * x[0],
    "var": lambda x: np.var(x) ** 2,
    "std": lambda x: np.std(x),
    "max": lambda x: np.max(x) ** 2 * x[0],
    "min": lambda x: np.min(x) * x[1],
    "sort": lambda x: (np.sort(x) ** 2 * w).sum(),
    "argsort": lambda x: (x[np.argsort(x)] ** 2 * w).sum(),
    "where": lambda x: np.where(x > 0.9, x**2, np.sin(x)).sum(),
    "clip": lambda x: (np.clip(x, 0.8, 1.1) ** 2 * w).sum(),
    "abs": lambda x: (np.abs(x - 1) * x).sum(),
    "maximum": lambda x: (np.maximum(x, x[::-1]) ** 2 * w).sum(),
    "dot": lambda x: np.dot(x, x) * x[0],
    "matmul": lambda x: (m(x) @ A @ m(x)).sum(),
    "outer": lambda x: (np.outer(x, x) * np.outer(w, x)).sum(),
    "einsum": lambda x: np.einsum("ij,jk,ki", m(x), m(x), m(x)),
    "tensordot": lambda x: np.tensordot(m(x), m(x), 2) ** 2,
    "inner": lambda x: np.inner(x, x) ** 2,
    "kron": lambda x: (np.kron(x[:3], x[3:]) ** 2).sum(),
    "trace": lambda x: np.trace(m(x) @ m(x) @ m(x)),
    "det": lambda x: np.linalg.det(m(x) + 2 * np.eye(3)),
    "inv": lambda x: (np.linalg.inv(S(x)) * B).sum(),
    "solve": lambda x: np.linalg.solve(S(x), w[:3]).sum(),
    "slogdet": lambda x: np.linalg.slogdet(S(x))[1],
    "cholesky": lambda x: (np.linalg.cholesky(S(x)) * B).sum(),
    "eigvalsh": lambda x: (np.linalg.eigvalsh(S(x)) ** 2).sum(),
    "eigh": lambda x: (np.linalg.eigh(S(x))[0] * w[:3]).sum(),
    "norm": lambda x: np.linalg.norm(x),
    "norm1": lambda x: np.linalg.norm(m(x), 1) * x[0],
    "svd": lambda x: (np.linalg.svd(m(x))[1] * w[:3]).sum(),
    "qr": lambda x: (np.linalg.qr(m(x) + 2 * np.eye(3))[1] * B).sum(),
    "pinv": lambda x: (np.linalg.pinv(m(x) + 2 * np.eye(3)) * B).sum(),
    "mpow": lambda x: np.linalg.matrix_power(m(x), 3).sum(),
    "fft": lambda x: (np.abs(np.fft.fft(x)) ** 2 * w).sum(),
    "rfft": lambda x: (np.abs(np.fft.rfft(x)) ** 3).sum(),
    "ifft": lambda x: np.real(np.fft.ifft(x**2) * w).sum(),
    "convolve": lambda x: (np.convolve(x[:4], x[4:]) ** 2).sum(),
    "interp": lambda x: (np.interp(x, np.linspace(0, 2, 5), np.linspace(0, 2, 5) ** 2) * x).sum(),
    "diff": lambda x: (np.diff(x) ** 3).sum(),
    "gradient": lambda x: (np.gradient(x) ** 3).sum(),
    "cross": lambda x: (np.cross(x[:3], x[3:6]) * x[6:]).sum(),
    "roll": lambda x: (np.roll(x, 2) * x * w).sum(),
    "pad": lambda x: (np.pad(x, 2, mode="reflect") ** 3).sum(),
    "concat": lambda x: (np.concatenate([x, x**2]) ** 2).sum(),
    "stack": lambda x: (np.stack([x, x**2]) ** 2).sum(),
    "take": lambda x: (np.take(x, [0, 0, 3]) ** 3).sum(),
    "fancy": lambda x: (x[[0, 0, 5, 5]] ** 3 * w[:4]).sum(),
    "mask": lambda x: (x[x > 0.9] ** 3).sum(),
    "setitem": lambda x: (lambda y: (y.__setitem__(slice(0, 3), x[3:6] * x[:3]), (y**2).sum())[1])(x * 2.0),
    "exp": lambda x: np.exp(x @ A.ravel()[:9] * 0.1),
    "log": lambda x: (np.log(x + 2) * w).sum(),
    "tanh": lambda x: np.tanh(x).sum() ** 2,
    "arctan2": lambda x: np.arctan2(x[:4], x[4:8]).sum(),
    "hypot": lambda x: np.hypot(x[:4], x[4:8]).sum() ** 2,
    "power": lambda x: np.power(x + 2, x).sum(),
    "logaddexp": lambda x: np.logaddexp(x, x[::-1] ** 2).sum(),
    "logsumexp": lambda x: np.log(np.sum(np.exp(x))),
    "sinc": lambda x: np.sinc(x).sum(),
    "sqrt": lambda x: np.sqrt(x + 2).sum() ** 2,
    "cbrt": lambda x: np.cbrt(x + 3).sum() ** 2,
    "expm1": lambda x: np.expm1(x).sum() ** 2,
    "log1p": lambda x: np.log1p(x + 1).sum() ** 2,
    "remainder": lambda x: (np.remainder(x, 0.7) * x).sum(),
    "median": lambda x: np.median(x) ** 2 * x[0],
    "percentile": lambda x: np.percentile(x, 30) * x[2] * x[1],
    "quantile": lambda x: np.quantile(x, 0.4) ** 2 * x[3],
    "average": lambda x: np.average(x, weights=x**2),
    "ptp": lambda x: np.ptp(x) ** 2,
    "broadcast": lambda x: (np.broadcast_to(x[:3], (3, 3)) * m(x)).sum() * x[0],
    "tile": lambda x: (np.tile(x, 2) ** 3).sum(),
    "repeat": lambda x: (np.repeat(x, 2) ** 3).sum(),
    "flip": lambda x: (np.flip(x) * x * x).sum(),
    "tril": lambda x: (np.tril(m(x)) @ m(x)).sum(),
    "diag": lambda x: (np.diag(x[:3]) @ m(x)).sum(),
    "swapaxes": lambda x: (m(x).T @ m(x) * A).sum(),
    "add.at": lambda x: (lambda y: (np.add.at(y, [0, 0, 1], x[:3] * x[3:6]), (y**2).sum())[1])(x * 1.0),
    "multiply.reduce": lambda x: np.multiply.reduce(x),
    "nansum": lambda x: np.nansum(x**3),
    "polyval": lambda x: np.polyval(x[:4], x[5]),
    "trapezoid": lambda x: (np.trapezoid if hasattr(np, "trapezoid") else np.trapz)(x**2, x),
    "cov": lambda x: (np.cov(m(x)) * B).sum(),
    "corrcoef": lambda x: (np.corrcoef(m(x)) * B).sum(),
    "lstsq": lambda x: np.linalg.lstsq(m(x) + 2 * np.eye(3), w[:3], rcond=None)[0].sum(),
    "cond": lambda x: np.linalg.cond(m(x) + 2 * np.eye(3)),
    "unwrap": lambda x: (np.unwrap(x * 3) ** 2).sum(),
    "vander": lambda x: (np.vander(x[:3]) ** 2).sum(),
    "meshgrid": lambda x: (lambda g: (g[0] * g[1] ** 2).sum())(np.meshgrid(x[:3], x[3:6])),
    "piecewise": lambda x: np.piecewise(x, [x < 0.9, x >= 0.9], [lambda t: t**2, lambda t: t**3]).sum(),
    "choose": lambda x: (np.choose([0, 1, 0], [x[:3], x[3:6]]) ** 3).sum(),
    "list": lambda x: sum(v**3 for v in x) * x[0],
    "tolist": lambda x: math.prod(x.tolist()),
    "math": lambda x: math.sin(x[0]) * math.exp(x[1]) * math.hypot(x[2], x[3], x[4]),
    "fsum": lambda x: math.fsum(x**2) ** 2,
    "inplace": lambda x: (
        lambda y: [y.__imul__(x), y.__iadd__(x[::-1]), y.__itruediv__(x + 1), (y**2).sum()][-1]
    )(x * 1.0),
    "out": lambda x: (lambda y: (np.multiply(x, x, out=y), (y * x).sum())[1])(np.zeros(9)),
}


def differences(g, x, h=1e-5):
    """Central differences of `g` along each coordinate, as columns."""
    return np.array([(g(x + h * e) - g(x - h * e)) / (2 * h) for e in np.eye(len(x))]).T


@pytest.mark.parametrize("name", PROGRAMS)
def test_second_derivatives_are_the_same_in_every_pair_of_modes(name):
    f = PROGRAMS[name]
    x = np.random.default_rng(0).uniform(0.3, 1.7, 9)
    slopes = differences(f, x)
    np.testing.assert_allclose(grad(f)(x), slopes, atol=1e-6 * (1 + np.abs(slopes).max()))
    expected = differences(grad(f), x)
    scale = np.abs(expected).max() + 1e-3
    for outer, inner in sample_of(itertools.product(("forward", "reverse"), repeat=2), name, 3):
        found = jacobian(jacobian(f, mode=inner), mode=outer)(x)
        np.testing.assert_allclose(found, expected, atol=1e-5 * scale, err_msg=f"{outer} over {inner}")
    exact = hessian(f)(x)
    np.testing.assert_allclose(hessian(f, chunk_size=4)(x), exact, rtol=1e-9, atol=1e-10 * scale)
    for product in (hvp, vhp):
        np.testing.assert_allclose(
            product(f, (x,), (x[::-1],))[0], exact @ x[::-1], rtol=1e-8, atol=1e-9 * scale
        )


@pytest.mark.parametrize("product", [hvp, vhp])
@pytest.mark.parametrize("n", [2, np.int64(2)])
def test_an_int_without_a_direction_is_held_fixed_and_may_be_counted_with(product, n):
    def f(x, n):
        total = 0.0
        for k in range(n):
            total += x[k] ** 3
        return total

    x, v = np.array([1.0, 2.0, 3.0]), np.array([0.5, -1.0, 2.0])
    found, of_n = product(f, (x, n), (v, None))
    np.testing.assert_allclose(found, [3.0, -12.0, 0.0], rtol=1e-14)
    assert of_n is None
    with pytest.raises(ArgumentError, match="held fixed"):
        product(lambda n: 2.0 * n, (n,), (None,))
    assert product(lambda x, n: n * x**2, (1.5, n), (1.0, 1)) == (2 * n + 3.0, 3.0)


@pytest.mark.parametrize("tier", ["plain", "native"])
@pytest.mark.parametrize("product", [hvp, vhp])
def test_an_array_of_ints_without_a_direction_may_hold_places(product, tier):
    if tier == "native":
        pytest.importorskip("numba")

    def f(x, places):
        x[1] = x[0] * x[2]
        return np.sum(x[places] ** 3)

    x, v, places = np.array([1.0, 2.0, 3.0]), np.array([0.5, -1.0, 2.0]), np.array([2, 1])
    left = x.copy()
    found, of_places = product(f, (left, places), (v, None), tier=tier)
    # x2**3 + (x0 x2)**3
    a, c, da, dc = 1.0, 3.0, 0.5, 2.0
    expected = [6 * a * c**3 * da + 9 * a**2 * c**2 * dc, 0.0, 6 * c * dc + 9 * a**2 * c**2 * da + 6 * a**3 * c * dc]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert of_places is None and left.tolist() == [1.0, 3.0, 3.0]
