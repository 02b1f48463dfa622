"""Arguments for every rule of NumPy: smooth points, in the shapes and layouts that people use."""

import operator

import numpy as np

from plaingrad.rules.numpy.diagonals import add_on_diagonal
from plaingrad.rules.numpy.indexing import add_along_axis, add_at_indices
from plaingrad.rules.numpy.interpolation import finite_numbers
from plaingrad.rules.numpy.norms import euclidean_norm, power_norm
from plaingrad.rules.numpy.einsum import einsum_of_many, einsum_of_one
from plaingrad.rules.numpy.reductions import differences
from plaingrad.rules.numpy.ufuncs import added_at, reduced, sums_of_segments

rng = np.random.default_rng(7)
plain_einsum = {"optimize": False}


def real(*shape):
    return rng.standard_normal(shape)


def distinct(*shape):
    """Well separated numbers in random order: sorting is smooth near them."""
    n = int(np.prod(shape))
    return (rng.permutation(n) * 0.37 - 1.1 + rng.uniform(-0.1, 0.1, n)).reshape(shape)


def spd(n, *batch):
    a = rng.standard_normal((*batch, n, n))
    return a @ np.swapaxes(a, -1, -2) + n * np.eye(n)


def well(n, *batch):
    return rng.standard_normal((*batch, n, n)) + 3 * np.eye(n)


v, w = real(5), real(5)
m, n = real(3, 4), real(4, 2)
t = real(2, 3, 4)
zeros_in = np.array([[1.5, 0.0, 2.0, -0.5], [0.0, 0.0, 3.0, 1.0], [2.0, 1.0, -1.0, 0.5]])
with_nan = np.array([[1.5, np.nan, 2.0, -0.5], [0.3, 0.1, np.nan, 1.1], [np.nan, np.nan, np.nan, np.nan]])
mask = np.array([[True, False, True, True], [False, False, False, False], [True, True, True, False]])
some = np.array([[True, False, True, True], [True, False, False, False], [True, True, True, False]])
nd = np.ndarray
ABSENT = object()

SAMPLES = {}
REAL_ONLY = set()  # functions of real numbers, and those whose complex samples are given by hand


def row(function, *samples, real_only=False):
    if function is None:
        return
    SAMPLES.setdefault(function, []).extend(samples)
    if real_only:
        REAL_ONLY.add(function)


def both(name):
    return [f for f in (getattr(np, name, None), vars(nd).get(name)) if f is not None]


def args(*a, **k):
    return a, k


reduction = [
    args(v), args(m), args(t), args(m, 0), args(m, -1), args(t, (0, 2)), args(m, axis=1, keepdims=True), args(m, keepdims=True),
    args(t, axis=(0, -1), keepdims=True), args(np.array(1.3)), args(t, axis=()),
]  # fmt: skip
for f in both("sum"):
    row(f, *reduction, args(m, where=mask), args(m, axis=0, where=mask, initial=2.5), args(m, 1, None, None, True, 0.5), args(np.zeros((0, 3)), 0))
for f in both("mean"):
    row(f, *reduction, args(m, where=mask), args(m, axis=1, where=some))
for f in both("prod"):
    row(f, *reduction, args(zeros_in, 0), args(zeros_in, 1), args(zeros_in), args(np.array([0.0, 2.0, 3.0])), args(m, 0, None, None, False, 2.5), args(zeros_in, axis=1, where=mask), args(zeros_in, axis=1, where=some, initial=1.5), args(np.zeros(1)), args(np.zeros((0, 3)), 0))
for name in ("max", "min", "amax", "amin", "ptp"):
    for f in both(name):
        if f is not None and name != "ptp":
            row(f, *[args(distinct(3, 4), **k) for k in ({}, {"axis": 0}, {"axis": -1, "keepdims": True}, {"keepdims": True})], args(distinct(2, 3, 4), (0, 2)), args(distinct(3, 4), axis=1, where=some, initial=0.3), args(np.array(2.0)), real_only=True)
for name in ("var", "std"):
    for f in both(name):
        row(f, *reduction[:2], args(m, 0), args(t, (0, 2), ddof=1), args(m, axis=1, keepdims=True), args(m, axis=0, where=some, ddof=0.5))
for name in ("cumsum", "cumprod"):
    for f in both(name):
        row(f, args(v), args(m), args(m, 0), args(t, -1), args(zeros_in), args(zeros_in, 1), args(zeros_in, 0), args(np.zeros(0)))
row(np.sum, args([1.0, 2.0, 3.0]), args([[1.0, 2.0], [3.0, 4.0]], axis=0), args([v, w]), args(1.5))
row(np.nansum, args(with_nan), args(with_nan, 1), args(m, 0), real_only=True)
row(np.nanmean, args(with_nan), args(with_nan[:2], 1), args(m, 0), real_only=True)
row(np.nanprod, args(with_nan), args(with_nan, 1), args(zeros_in, 0), real_only=True)
row(np.nanvar, args(with_nan), args(with_nan[:2], 1), args(m, 0, ddof=1), real_only=True)
row(np.nanstd, args(with_nan), args(with_nan[:2], 1), args(m, 0, keepdims=True), real_only=True)
row(np.nancumsum, args(with_nan), args(with_nan, 1), real_only=True)
row(np.nancumprod, args(with_nan), args(with_nan, 1), real_only=True)
for f in (np.nanmax, np.nanmin):
    row(f, args(with_nan), args(with_nan[:2], 1), args(distinct(3, 4), 0, keepdims=True), real_only=True)
for f in (np.median, np.nanmedian):
    row(f, args(distinct(5)), args(distinct(6)), args(distinct(3, 4), 0), args(distinct(2, 3, 4), (0, 2)), args(distinct(3, 4), axis=1, keepdims=True), args(distinct(3, 4)), real_only=True)
row(np.nanmedian, args(with_nan[:2], 1), args(with_nan), real_only=True)
for f, q in ((np.quantile, 1), (np.percentile, 100), (np.nanquantile, 1), (np.nanpercentile, 100)):
    row(f, args(distinct(7), 0.31 * q), args(distinct(3, 4), 0.4 * q, 0), args(distinct(3, 4), np.array([0.21, 0.83]) * q, axis=1), args(distinct(2, 3, 4), np.array([0.21, 0.6]) * q, (0, -1), keepdims=True), real_only=True)
    for method in ("linear", "lower", "higher", "nearest", "midpoint", "weibull", "hazen", "median_unbiased", "normal_unbiased", "interpolated_inverted_cdf", "inverted_cdf", "closest_observation", "averaged_inverted_cdf"):
        row(f, args(distinct(9), np.array([0.37, 0.64, 0.97]) * q, method=method), real_only=True)
row(np.quantile, args(distinct(3, 4), np.array([[0.21], [0.6]]), 1), real_only=True)
row(np.nanquantile, args(with_nan[:2], 0.3, 1), args(with_nan, 0.3), real_only=True)
if np.__version__ >= "2":
    row(np.quantile, args(distinct(6), 0.43, method="inverted_cdf", weights=np.array([1, 2, 1, 3, 2, 1])), real_only=True)
no = np._NoValue
row(differences, *[args(a, k, axis, no, no) for a, k, axis in ((v, 1, -1), (m, 1, -1), (m, 1, 0), (m, 2, -1), (v, 3, -1))], args(v, 1, -1, 2.0, 3.0), args(m, 2, 1, real(3, 2), real(3, 1)), args(m, 1, 0, 1.5, no))

# Gathers and selections
for f in both("take"):
    row(f, args(v, [0, 2, 2, -1]), args(m, [[0, 5], [5, 11]]), args(m, [2, 0, 0], 0), args(t, [[1, -1], [0, 0]], axis=1), args(t, 2, axis=-1), args(v, [7, -8], mode="wrap"), args(v, [7, -8], mode="clip"))
row(np.take_along_axis, args(m, np.array([[0, 1], [2, 2], [3, 0]]), 1), args(m, np.argsort(m, 0), 0), args(m, np.array([1, 1, 7]), None), args(t, np.array([[[0]], [[2]]]), 1))
row(np.compress, args([True, False, True], m, 0), args([False, True, True], m), args([1, 0, 1, 0, 1], v))
row(nd.compress, args(m, [True, False, True], 0), args(m, [False, True, True]))
row(np.extract, args(mask, m), args(v > 0, v))
row(np.where, args(mask, m, real(3, 4)), args(mask, 1.5, m), args(mask[0], real(3, 1), v[:4]), args(True, 2.0, v), args(mask))
for f in (np.clip, nd.clip):
    row(f, args(m, -0.5, 0.5), args(m, None, 0.3), args(m, -0.3, None), args(m, real(4) - 2, 0.2), args(m, 0.5, -0.5), real_only=True)
row(np.sort, args(distinct(6)), args(distinct(3, 4), 0), args(distinct(3, 4), None), args(distinct(2, 3, 4)), real_only=True)
row(np.partition, args(distinct(6), 2), args(distinct(3, 4), (1, 2)), args(distinct(3, 4), 1, None), args(distinct(3, 4), 1, axis=0), real_only=True)

# Creation
for f in (np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.asfortranarray, np.copy, np.asarray_chkfinite, np.require):
    row(f, args(m), args(v), args([1.5, 2.5]), args([[1.0, 2.0], [3.0, 4.0]]), args([v, w]))
for f in (np.array, np.asarray, np.asanyarray):
    row(f, args(2.5), args([np.array(1.5), 2.0, np.float64(3.0)]), args(m, np.float64), args((v[0], v[1])))
row(getattr(np, "asfarray", None), args(m), args([1.5, 2.0]), real_only=True)
row(np.array, args(v, ndmin=3), args([1.5, 2.5], ndmin=2), args(2.5, ndmin=2), args(m, copy=True))
for f in (nd.copy, nd.__copy__, nd.__array__):
    row(f, args(m), args(np.array(1.5)))
row(nd.__deepcopy__, args(m, {}))
row(nd.astype, args(m, np.float64), args(m, np.complex128), args(m, float, copy=False))
row(getattr(np, "astype", None), args(m, np.float64), args(m, np.complex128))
for f in (np.float64, np.longdouble, np.complex128):
    row(f, args(1.5), args(np.float64(1.5)), args(v), args([1.5, 2.5]), args(np.array(1.5)), real_only=f is not np.complex128)
for f in (np.float16, np.float32, np.complex64, np.clongdouble):
    row(f, args(1.5), args(v), args([1.5, 2.5]), real_only=True)
if np.__version__ >= "2":
    row(np.complex128, args(1.5, 2.5), real_only=True)
row(np.full, args((2, 3), 1.5), args(3, v[:3]), args((2, 5), v))
row(np.full_like, args(np.zeros((2, 5)), 1.5), args(np.zeros((2, 5)), v), real_only=True)
row(np.arange, args(5.3), args(1.5, 4.2), args(1.5, 4.2, 0.31), args(3.1, -2.2, -0.7), real_only=True)
row(np.linspace, args(1.5, 4.5, 7), args(v, w, 4), args(v, 1.5, 4, axis=-1), args(v, w, 4, False, True), args(1.5, 2.5, 1), args(1.0, 2.0, 3, True, True), args(m, m[0] + 1, 5, axis=1))
for f in {np.concatenate, getattr(np, "concat", np.concatenate)}:
    row(f, args([v, w]), args((m, real(2, 4))), args([m, real(3, 1)], 1), args([m, v], None), args([m, real(3, 2)], axis=-1), args(t), args([[1.5, 2.5], [3.5]]))
row(np.stack, args([v, w]), args([m, real(3, 4)], 1), args([v, w], axis=-1), args(t, 1), args([1.5, 2.5]))
row(np.vstack, args([v, w]), args([m, v[:4]]), args([1.5, 2.5]), args(t))
row(vars(np).get("row_stack"), args([v, w]), args([m, v[:4]]))
row(np.hstack, args([v, w]), args([m, real(3, 2)]), args([1.5, 2.5]), args([v, 1.5]), args(t))
row(np.dstack, args([v, w]), args([m, real(3, 4)]), args([1.5, 2.5]), args([t, real(2, 3, 1)]))
row(np.column_stack, args([v, w]), args([m, v[:3]]), args(t))
row(np.append, args(v, 2.5), args(m, v), args(m, real(1, 4), 0), args(m, real(3, 2), axis=1))
for f in both("repeat"):
    row(f, args(v, 3), args(m, 2), args(m, 2, 0), args(m, [1, 0, 2, 3], 1), args(v, [0, 1, 2, 3, 1]), args(t, 2, axis=-2), args(v, 0))
row(np.tile, args(v, 3), args(m, (2, 1)), args(m, (2, 3, 2)), args(t, 2), args(1.5, 4), args(v, (2, 2)))
for f in both("trace"):
    row(f, args(m), args(m, 1), args(m, -1), args(t), args(t, 0, 1, 2), args(real(4, 4)))
for f in both("diagonal"):
    row(f, args(m), args(m, 1), args(t, -1, 2, 1), args(t))
row(np.diag, args(v), args(v, 1), args(v, -2), args(m), args(m, 2))
row(np.diagflat, args(v), args(m, 1), args([1.5, 2.0]))
for f in (np.tril, np.triu):
    row(f, args(m), args(m, 1), args(t, -1), args(v))

# Shapes
row(np.reshape, args(m, (2, 6)), args(m, -1), args(t, (4, 6), "F"), args(m, (2, 6), "A"), args([1.5, 2.5, 3.5, 4.5], (2, 2)))
row(nd.reshape, args(m, 2, 6), args(m, (6, 2)), args(t, -1), args(t, (4, 6), order="F"), args(m, 2, 6, order="A"))
for f in (np.ravel, nd.ravel, nd.flatten):
    row(f, args(m), args(t, "F"), args(t, "A"), args(t, "K"), args(np.swapaxes(t, 0, 2), "K"), args(np.swapaxes(t, 1, 2)[:, ::-1], "K"), args(m.T, "A"))
for f in {np.transpose, getattr(np, "permute_dims", np.transpose)}:
    row(f, args(m), args(t), args(t, (2, 0, 1)), args(t, (-1, 0, 1)))
for f in {getattr(np, "matrix_transpose", None), getattr(np.linalg, "matrix_transpose", None)}:
    row(f, args(m), args(t))
row(np.swapaxes, args(t, 0, 2))
row(np.moveaxis, args(t, 0, -1), args(t, (0, 1), (-1, 0)))
row(np.rollaxis, args(t, 2), args(t, 0, 3), args(t, 1, 0), args(t, -1, 1), args(t, 0, -1))
row(np.squeeze, args(t[:, :1]), args(t[:1, :, :1], 0), args(np.array(1.5)))
row(np.expand_dims, args(m, 1), args(m, (0, -1)), args(1.5, 0))
row(np.flip, args(m), args(m, 0), args(t, (0, -1)), args([1.5, 2.5]))
row(np.fliplr, args(m))
row(np.flipud, args(m))
row(np.broadcast_to, args(v, (3, 5)), args(1.5, (2, 2)), args(m[:, :1], (2, 3, 4)))
row(np.roll, args(m, 2), args(m, -1, 0), args(t, (1, 2), (0, 2)), args(v, 3))
row(np.rot90, args(m), args(t, 3, (1, 2)), args(m, 2), args(m, -1))
row(np.real, args(m), args(1.5))
row(np.imag, args(m), args(np.complex128(1 + 2j)))

# Products
for f in {np.matmul, operator.matmul, getattr(np.linalg, "matmul", np.matmul)}:
    row(f, args(m, n), args(v, w), args(m, v[:4]), args(v[:3], m), args(t, n), args(real(2, 1, 3, 4), real(5, 4, 2)), args(t, v[:4]), args(v[:3], t), args(m, real(2, 4, 2)), args(np.zeros((0, 3)), m))
for f in both("dot"):
    row(f, args(m, n), args(v, w), args(m, v[:4]), args(v[:3], m), args(t, n), args(t, real(5, 4, 2)), args(v[:4], real(5, 4, 2)), args(t, v[:4]))
row(np.dot, args(2.0, v), args(m, 1.5), args(2.0, 3.0), args([1.0, 2.0], [3.0, 4.0]))
row(np.inner, args(v, w), args(m, real(2, 4)), args(t, v[:4]), args(v[:4], t), args(t, m), args(2.0, m), args(m, 2.0))
row(np.vdot, args(v, w), args(m, real(4, 3)))
for f in {np.outer, getattr(np.linalg, "outer", np.outer)}:
    row(f, args(v, w), args(v, m.ravel()))
row(np.outer, args(m, v), args(2.0, v))
for f in {np.tensordot, getattr(np.linalg, "tensordot", np.tensordot)}:
    row(f, args(m, n, axes=1), args(t, real(3, 4, 5)), args(t, real(4, 5, 3), axes=([1, 2], [2, 0])), args(t, m, axes=([2, 1], [1, 0])), args(v, w, axes=0), args(t, real(5, 3), axes=(1, 1)), args(t, real(4, 2, 2), axes=((0, 2), (1, 0))))
row(np.cross, args(real(3), real(3)), args(real(4, 3), real(3)), args(real(3, 4), real(4, 3), 0, 1, 0), args(real(2, 3, 4), real(2, 3, 4), axis=1), args(real(2, 1, 3), real(5, 3)))
row(getattr(np.linalg, "cross", None), args(real(4, 3), real(4, 3)), args(real(3, 2), real(3, 2), axis=0))
for f in (np.convolve, np.correlate):
    for mode in ("full", "same", "valid"):
        row(f, *[args(real(a), real(b), mode) for a, b in ((7, 3), (7, 4), (3, 7), (4, 7), (5, 5), (6, 1), (8, 4), (4, 8))])
row(getattr(np, "vecdot", None), args(v, w), args(m, real(4)), args(t, m))
row(getattr(np, "matvec", None), args(m, v[:4]), args(t, v[:4]), args(m, real(5, 4)))
row(getattr(np, "vecmat", None), args(v[:3], m), args(v[:3], t), args(real(5, 3), m))

# Linear algebra
la = np.linalg
row(la.inv, args(well(3)), args(well(3, 2)))
row(la.solve, args(well(3), real(3)), args(well(3), real(3, 2)), args(well(3, 2), real(2, 3, 4)), args(well(3), real(2, 3, 2)))
row(la.det, args(well(3)), args(well(3, 2)), args(well(1)), args(np.array([[1.0, 2.0], [2.0, 4.0]])), args(np.zeros((2, 2))))
row(la.det, args(np.array([[1.0, 2.0, 0.5], [2.0, 4.0, 1.0], [3.0, -1.0, 2.0]])))
row(la.slogdet, args(well(3)), args(-well(3, 2)))
row(la.pinv, args(m), args(m.T), args(well(3, 2)))
row(la.lstsq, args(m.T, real(4)), args(m.T, real(4, 2)), args(m, real(3)), args(well(3), real(3, 2)))
row(la.cholesky, args(spd(3)), args(spd(4, 2)))
if np.__version__ >= "2":
    row(la.cholesky, args(spd(3), upper=True))
row(la.eigvalsh, args(spd(3)), args(spd(3, 2)), args(real(3, 3)), args(real(3, 3), "U"))
row(la.eigh, args(spd(3)), args(real(4, 4)), args(real(2, 3, 3), "U"), real_only=True)
row(la.eigvals, args(np.diag([1.0, 2.0, 4.0]) + 0.1 * real(3, 3)), args(real(4, 4)))
row(la.eig, args(np.diag([1.0, 2.0, 4.0]) + 0.1 * real(3, 3)), args(np.array([[0.5, 1.5, 0.1], [-1.2, 0.3, 0.2], [0.3, 0.1, 2.0]])), args(real(2, 3, 3)))
row(la.svd, args(m, False), args(m.T, False), args(well(3)), args(well(3, 2)), real_only=True)
row(la.svd, args(m, compute_uv=False), args(m.T, True, False))
row(getattr(la, "svdvals", None), args(m), args(well(3, 2)))
row(la.qr, args(well(3)), args(m), args(m.T), args(t), args(m, "r"), args(m.T, "r"), args(well(3), "complete"), args(m, "complete"))
row(getattr(la, "trace", None))

# Fourier transforms
for f in (np.fft.fft, np.fft.ifft):
    row(f, args(v), args(m, 6), args(m, 2, 0), args(t, None, 1, "ortho"), args(v, 5, -1, "forward"))
row(np.fft.rfft, args(v), args(m), args(m, 6), args(m, 2, 0), args(t, None, 1, "ortho"), args(v, 4, -1, "forward"), real_only=True)
row(np.fft.irfft, args(v), args(m), args(m, 7), args(m, 3, 0), args(t, None, 1, "ortho"), args(v, 4, -1, "forward"))
for f in (np.fft.fftn, np.fft.ifftn):
    row(f, args(m), args(t, None, (0, 2)), args(t, (3, 5), (1, 2), "ortho"))
for f in (np.fft.fft2, np.fft.ifft2):
    row(f, args(m), args(t), args(t, (2, 5)), args(t, None, (0, 1), "forward"))
for f in (np.fft.fftshift, np.fft.ifftshift):
    row(f, args(v), args(m), args(m, 1), args(t, (0, 2)))

# Nothing at all
z = np.zeros
for f, sample in [
    (np.var, args(z((0, 3)), 1)), (np.std, args(z((3, 0)), 0)), (np.sort, args(z((0, 3)), 0)), (np.take, args(z((0, 3)), [1], 1)),
    (np.take, args(z(3), np.array([], int))), (np.concatenate, args([z((0, 3)), z((2, 3))])), (differences, args(z(0), 1, -1, no, no)), (differences, args(z(1), 1, -1, no, no)),
    (np.repeat, args(z(0), 2)), (np.tile, args(z(0), 2)), (np.tile, args(z(3), 0)), (np.trace, args(z((0, 3)))), (np.dot, args(z((0, 3)), z((3, 2)))),
    (np.dot, args(z((2, 0)), z((0, 2)))), (np.matmul, args(z((2, 0)), z((0, 2)))), (np.inner, args(z((2, 0)), z((3, 0)))), (np.outer, args(z(0), z(3))),
    (np.max, args(z((0, 3)), 1)), (np.max, args(z((3, 0)), 0)), (np.cumsum, args(z((0, 3)), 0)), (np.cumprod, args(z((0, 3)), 1)), (np.prod, args(z((0, 3)), 1)),
    (la.inv, args(z((0, 2, 2)))), (la.det, args(z((0, 2, 2)))), (la.det, args(z((0, 0)))), (la.solve, args(z((0, 2, 2)), z((0, 2, 1)))),
    (la.cholesky, args(z((0, 2, 2)))), (la.svd, args(z((0, 2, 2)), False)), (la.eigh, args(z((0, 2, 2)))), (np.where, args(z((0, 3), bool), z((0, 3)), 1.5)),
    (np.clip, args(z((0, 3)), -1.0, 1.0)), (np.stack, args([z(0), z(0)])), (np.linspace, args(1.0, 2.0, 0)), (np.median, args(z((0, 3)), 1)),
    (np.quantile, args(z((3, 0)), 0.5, 0)), (np.flip, args(z(0))), (np.diag, args(z(0))), (np.diag, args(z((0, 3)))), (np.tril, args(z((0, 3)))), (np.partition, args(z((0, 3)), 0)),
]:  # fmt: skip
    row(f, sample)

# Behind the scenes
umath = np._core.umath if hasattr(getattr(np, "_core", None), "umath") else np.core.umath
multiarray = np._core.multiarray if hasattr(getattr(np, "_core", None), "multiarray") else np.core.multiarray
stride_tricks = getattr(np.lib, "_stride_tricks_impl", np.lib.stride_tricks)
row(umath.clip, args(m, -0.5, 0.5), args(m, real(4) - 2, 0.2), real_only=True)
row(stride_tricks._broadcast_to, args(v, (3, 5), False, True), args(1.5, (2, 2), False, True))
row(nd.__array_wrap__, args(v, m))
row(vars(nd).get("__array_prepare__"), args(v, m))
for name in ("product", "cumproduct"):
    row(vars(np).get(name), args(v), args(zeros_in, 1))
row(add_along_axis, args(m, np.array([[0, 1, 1, 4]]), 1, (3, 5)))
row(add_at_indices, args(v, np.array([1, 1, 0, 3, 2]), 0, 4), args(m, np.array([1, 1, 0]), 0, 4), args(t, np.array([[1, 0, 3], [0, 0, 2]]), 0, 4))
row(add_on_diagonal, args(v, (5, 6), 0, 0, 1), args(m, (3, 6, 5), 1, 1, 2))
row(multiarray.interp, args(real(6), np.sort(distinct(5)), w), args(real(6) * 5, np.sort(distinct(5)), w, 1.5, 2.5), args(0.3, np.sort(distinct(5)), w), args(real(2, 3), [0.1, 0.9], [1.0, 2.0]), real_only=True)
row(multiarray.interp_complex, args(real(6), np.sort(distinct(5)), w + 1j * v), args(real(6) * 5, np.sort(distinct(5)), w + 1j * v, 1.5 + 1j, 2.5), real_only=True)
row(finite_numbers, args(with_nan, 0.5, None, None), args(v, 0.0, None, None), args(np.array([np.inf, 1.0, -np.inf, np.nan]), 0.5, 1.5, 2.5), real_only=True)
row(np.bincount, args([0, 1, 1, 3, 0], v), args([0, 1, 1, 3, 0], v, 7), args(np.array([True, False, True]), v[:3]), real_only=True)
row(euclidean_norm, args(m, None, None, False), args(m, 2, 0, True), args(np.zeros(3), None, None, False), args(t, "fro", (0, 2), False), args(np.array([[3.0, 4.0], [0.0, 0.0]]), None, 1, False))
row(power_norm, args(m, 3, 0, False), args(v, 1.5, 0, True), args(m, 0.5, 1, False), args(m, -1.5, 1, False), real_only=True)
row(einsum_of_one, args(m, [0, 1], [0]), args(real(3, 3), [0, 0], [0]), args(real(3, 3, 3), [0, 0, 0], []), args(real(2, 3, 2), [1, 0, 1], [0]), args(t, [0, 1, 2], [2, 0]))
row(einsum_of_many, args([[0, 1], [1, 2]], [0, 2], plain_einsum, m, n), args([[0, 1], [1]], [1], plain_einsum, m, v[:4]), args([[0, 0], [0, 1]], [1, 0], plain_einsum, real(3, 3), m), args([[0, 1], [2], [1, 2]], [], plain_einsum, m, v, real(4, 5)), args([[0], [1]], [], {"optimize": True}, v, w), args([[0, 1], [0, 1]], [0], plain_einsum, m, real(1, 4)))
row(sums_of_segments, args(v, [0, 2, 3], 0, None), args(v, [3, 0, 2, 2], 0, None), args(m, [0, 3], 1, None))
for ufunc in (np.logaddexp, np.logaddexp2, np.fmax, np.fmin):
    row(reduced, args(ufunc, distinct(5), 0, False), args(ufunc, distinct(3, 4), None, False), args(ufunc, distinct(2, 3, 4), (0, 2), True), args(ufunc, distinct(3, 4), -1, True), real_only=True)
row(reduced, args(np.fmax, with_nan[:2], 1, False), args(np.logaddexp, np.array([-np.inf, 1.5, 2.0]), 0, False), real_only=True)
row(added_at, args(v, [0, 1, 1], real(3)), args(m, ([0, 0], [1, 1]), 2.5), args(m, 1, real(4)), args(m, (slice(None), [0, 0]), real(3, 2)))
SAMPLES = {f: s for f, s in SAMPLES.items() if s}
