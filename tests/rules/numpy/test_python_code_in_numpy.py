"""Functions of NumPy's that are Python code, with no rule of their own: rewritten like any other code."""

import numpy as np
import pytest
from tests.rules.numpy.test_programs import differences

from plaingrad import value_and_grad

pytestmark = pytest.mark.filterwarnings("ignore")


def written_along_an_axis(x, values):
    np.put_along_axis(x, np.argmax(x, 1)[:, None], values * 2, 1)
    return x


CASES = [
    lambda x: np.angle(x[0] + 1j*x[1]).sum(),
    lambda x: np.apply_over_axes(np.sum, x, [0,1]).sum(),
    lambda x: np.array_split(x, 2)[0].prod(),
    lambda x: np.atleast_1d(x[0,0], x).__getitem__(0).sum(),
    lambda x: np.cumulative_sum(x, axis=1, include_initial=True).prod(0)[1:].sum(),
    lambda x: np.cumulative_prod(x, axis=1).sum(),
    lambda x: sum(p.prod() for p in np.dsplit(x.reshape(1,3,4), 2)),
    lambda x: np.ediff1d(x, to_begin=x[0,0], to_end=[x[1,1], 2.]).prod(),
    lambda x: np.fromfunction(lambda i, j: x[0,0]*i + j, (2,2)).prod(),
    lambda x: np.gradient(x[0], 0.5, edge_order=2).prod(),
    lambda x: np.gradient(x, x[0,0], axis=0).prod(),
    lambda x: np.gradient(x[0], np.array([0., 1., 3., 4.5])).prod(),
    lambda x: np.histogram(x, bins=3, weights=x*x)[0].prod(),
    lambda x: np.histogram([.1,.2,.9], bins=np.sort(x[0]))[0].sum() + x[0,0],
    lambda x: np.histogram(x[0], bins=4)[1].sum(),
    lambda x: np.histogram2d(x[0], x[1], bins=2, weights=x[2])[0].sum(),
    lambda x: np.histogramdd(x, bins=2, weights=x[:,0])[0].sum(),
    lambda x: np.i0(x).prod(),
    lambda x: np.intersect1d(x[0], x[0, :2]).prod(),
    lambda x: np.setdiff1d(x[0], x[0, :2]).prod(),
    lambda x: np.setxor1d(x[0], x[1]).prod(),
    lambda x: np.union1d(x[0], x[0]).prod(),
    lambda x: np.kaiser(4, x[0,0]**2).sum(),
    lambda x: np.kron(x[:2,:2], x).sum(),
    lambda x: np.logspace(x[0,0], 2., 3, base=2.).sum(),
    lambda x: np.pad(x, ((1,2),(0,1)), mode="reflect").prod(),
    lambda x: np.pad(x, 1, mode="constant", constant_values=x[0,0]).sum(),
    lambda x: np.pad(x, 1, mode="linear_ramp", end_values=x[0,0]).sum(),
    lambda x: np.pad(x, 1, mode="mean").sum(),
    lambda x: np.pad(x, 1, mode="maximum").sum(),
    lambda x: np.pad(x, 1, mode="wrap").prod(),
    lambda x: np.pad(x, 1, mode="symmetric").prod(),
    lambda x: np.poly(x[0]).prod(),
    lambda x: np.polyadd(x[0], x[1,:2]).prod(),
    lambda x: np.polysub(x[0,:3], x[1]).prod(),
    lambda x: np.polymul(x[0], x[1]).prod(),
    lambda x: np.polydiv(x[0], x[1,:2])[0].prod(),
    lambda x: np.polyder(x[0]).prod(),
    lambda x: np.polyint(x[0]).sum(),
    lambda x: np.polyfit(x[0], x[1], 2).prod(),
    lambda x: np.polyfit(x[0], x[1], 2, w=np.abs(x[2]), cov=True)[1].sum(),
    lambda x: np.poly1d(x[0])(x[1]).sum(),
    lambda x: np.real_if_close(x).prod(),
    lambda x: np.round(x, 2).sum() + x[0,0],
    lambda x: np.sinc(x).prod(),
    lambda x: np.trim_zeros(x[0]).prod(),
    lambda x: np.unique_values(x).prod(),
    lambda x: np.unique_counts(x)[0].prod(),
    lambda x: np.unstack(x)[0].prod(),
    lambda x: np.unwrap(x*6, axis=1).prod(),
    lambda x: np.vander(x[0], 3, True).prod(),
    lambda x: np.linalg.diagonal(x).prod(),
    lambda x: np.linalg.trace(x),
    lambda x: np.linalg.matrix_norm(x),
    lambda x: np.linalg.matrix_norm(x, ord=1),
    lambda x: np.linalg.vector_norm(x, axis=(0,1)),
    lambda x: np.linalg.vector_norm(x, ord=3),
    lambda x: np.linalg.vecdot(x, x+1).prod(),
    lambda x: np.linalg.tensorinv(x[:, :3].reshape(3,3,1)+0, 1).sum(),
    lambda x: np.linalg.matrix_power(x[:, :3], -2).sum(),
    lambda x: np.linalg.multi_dot([x, x.T, x, x.T]).sum(),
    lambda x: np.linalg.cond(x),
    lambda x: np.fft.hfft(x[0]+1j*x[1]).prod(),
    lambda x: np.abs(np.fft.ihfft(x[0])).prod(),
    lambda x: np.fft.irfft2(x+1j*x).prod(),
    lambda x: np.abs(np.fft.rfftn(x)).sum(),
    lambda x: np.fft.irfftn(np.fft.rfftn(x)).sum(),
    lambda x: np.corrcoef(x).sum(),
    lambda x: np.cov(x, aweights=np.abs(x[0])).sum(),
    lambda x: np.average(x, axis=1, weights=x[0]**2, returned=True)[0].sum(),
    lambda x: np.linalg.slogdet(x[:, :3])[1] + np.linalg.slogdet(x[:, :3]).logabsdet,
    lambda x: np.linalg.svd(x[:, :3]).S.prod(),
    lambda x: np.linalg.qr(x).R.sum(),
    lambda x: np.tri(3)[0].sum()*x[0,0],
    lambda x: np.polynomial.polynomial.polyval(x[0], x[1]).prod(),
    lambda x: np.polynomial.Polynomial(x[0])(x[1]).prod(),
    lambda x: np.polynomial.chebyshev.chebval(x[0], x[1]).prod(),
    lambda x: np.polynomial.legendre.legfit(np.arange(4.), x[1], 2).sum(),
    lambda x: np.polynomial.hermite.hermval(x[0], x[1]).prod(),
    lambda x: np.lib.stride_tricks.sliding_window_view(x[0], 2).prod(),
    lambda x: np.lib.stride_tricks.as_strided(x, (2,2), (8,8)).prod(),
    lambda x: np.mask_indices(3, np.triu)[0].sum()*x[0,0],
    lambda x: np.einsum_path("ij,jk", x, x.T)[0][0].__len__()*x[0,0],
    lambda x: np.isin(x, x[0]).sum()*x[0,0],
    lambda x: np.rec.fromarrays([x[0], x[1]], names="a,b").a.prod(),
    lambda x: np.array([(x[0,0], 1)], dtype=[("a", float), ("b", int)])["a"].sum(),
    lambda x: np.diag_indices(2)[0].sum()*x[0,0],
    lambda x: np.nanmean(np.where(x>0, x, np.nan)),
    lambda x: np.vectorize(np.maximum)(x, 0.1).prod(),
    lambda x: np.add.reduce([x[0], x[1]]).prod(),
    lambda x: np.array(list(map(float, x[0]))).prod(),
    lambda x: np.fromiter((a*a for a in x[0]), float).prod(),
    lambda x: np.array([[a for a in r] for r in x]).prod(),
    lambda x: np.asarray(x[0].tolist()).prod(),
    lambda x: np.ndarray((2,2), buffer=x)[0].prod(),
    lambda x: np.copy(x, order="F").prod(),
    lambda x: np.float64(x[0,0]).__mul__(x[0,1]),
    lambda x: divmod(x[0,0], .7)[1] + divmod(x, .7)[1].sum(),
    lambda x: x.max(axis=0).sum() + max(x[0]) + sorted(x[0])[1] + min(x.ravel()),
    lambda x: sum(x[0]) + sum(x).sum() + x.sum(0).__getitem__(0),
    lambda x: np.insert(x, [1, 2], x[:, :2], axis=1).prod(),
    lambda x: written_along_an_axis(x.copy(), x[:, :1]).prod(),
]


@pytest.mark.parametrize("f", CASES, ids=range(len(CASES)))
def test_a_function_without_a_rule(f):
    x = np.random.default_rng(3).standard_normal((3, 4))
    try:
        expected = f(x.copy())
    except (AttributeError, TypeError):
        pytest.skip("not in this version of NumPy")
    value, x_bar = value_and_grad(f)(x.copy())
    assert value == expected
    np.testing.assert_allclose(x_bar, differences(f, x), rtol=2e-5, atol=1e-6)
