"""Every function of arrays that Numba knows: differentiated natively as in the plain tier, or refused.

`TABLE` is the list; `REFUSED` names its entries that have no native rule. A third of the entries runs with the suite, all
of them with PLAINGRAD_TEST_ALL=1 (Numba compiles its own form of every function, which takes the time).
"""

import os

import numpy as np
import pytest

import plaingrad
from tests.native.uncompiled import check, copied, differentiated, gradient

numba = pytest.importorskip("numba")

V = np.array([0.3, -0.8, 1.7, 0.6])
U = np.array([1.2, 0.4, -0.5, 0.9])
P = np.array([0.3, 0.8, 1.7, 0.6])
M = np.array([[0.2, -0.5, 0.9], [1.1, 0.4, -0.3], [0.7, 0.8, -1.2]])
S = M @ M.T + 2 * np.eye(3)
R = np.array([[0.2, -0.5], [1.1, 0.4], [0.7, 0.8]])
Q = np.arange(24.0).reshape(2, 3, 4) / 7 - 1.3
C = V + 1j * U
CM = M + 1j * M.T
K = np.array([2, 0, 1])
X = 1.3
w = np.cos(np.arange(100.0))  # weights, so that every element counts differently
W3, W4, W5 = w[:3].copy(), w[:4].copy(), np.array([0.5, -0.2, 0.7, 1.1, -0.9])
W6, W9 = w[:6].reshape(3, 2).copy(), w[:9].reshape(3, 3).copy()

TABLE = {}


def entry(name, f, *args):
    """Enter a function that returns one real number, with its arguments."""
    TABLE[name] = (f, args)


# linalg
entry("linalg.cholesky", lambda a: (np.linalg.cholesky((a + a.T) / 2) * W9).sum(), S)
entry("linalg.cond", lambda a: np.linalg.cond(a), M)
entry("linalg.cond 1", lambda a: np.linalg.cond(a, 1), M)
entry("linalg.cond fro", lambda a: np.linalg.cond(a, "fro"), M)
entry("linalg.cond 2", lambda a: np.linalg.cond(a, 2), M)
entry("linalg.cond -2", lambda a: np.linalg.cond(a, -2), M)
entry("linalg.cond inf", lambda a: np.linalg.cond(a, np.inf), M)
entry("linalg.det", lambda a: np.linalg.det(a), M)
entry("linalg.eig", lambda a: np.linalg.eig(a)[0].real.sum(), M)
entry("linalg.eigvals", lambda a: np.linalg.eigvals(a).real.sum(), M)
entry(
    "linalg.eigh",
    lambda a: (np.linalg.eigh((a + a.T) / 2)[1] ** 2 * W9).sum() + np.linalg.eigh((a + a.T) / 2)[0][1],
    S,
)
entry("linalg.eigvalsh", lambda a: (np.linalg.eigvalsh((a + a.T) / 2) * W3).sum(), S)
entry("linalg.inv", lambda a: (np.linalg.inv(a) * W9).sum(), M)


def lst(a, b):
    x, r, k, s = np.linalg.lstsq(a, b)
    return (x * W3[:2]).sum()


entry("linalg.lstsq", lst, R, U[:3].copy())


def lst2(a, b):
    x, r, k, s = np.linalg.lstsq(a, b)
    return (x * x).sum() + r[0]


entry("linalg.lstsq residuals", lst2, R, U[:3].copy())


def lst3(a, b):
    return (np.linalg.lstsq(a, b)[0] * W9[:2]).sum()


entry("linalg.lstsq matrix", lst3, R, M)
entry(
    "linalg.lstsq wide",
    lambda a, b: (np.linalg.lstsq(a, b)[0] * W3).sum(),
    np.ascontiguousarray(R.T),
    U[:2].copy(),
)
entry("linalg.matrix_power", lambda a: (np.linalg.matrix_power(a, 3) * W9).sum(), M)
entry("linalg.matrix_power -2", lambda a: (np.linalg.matrix_power(a, -2) * W9).sum(), M)
entry("linalg.matrix_power 0", lambda a: (np.linalg.matrix_power(a, 0) * W9).sum() + a[0, 0], M)
entry("linalg.matrix_rank", lambda a: np.linalg.matrix_rank(a) * a[0, 0], M)
for o in ("None", "2", "1", "np.inf", "-np.inf", "0", "3.5", "-1"):
    entry(f"linalg.norm vector {o}", eval(f"lambda v: np.linalg.norm(v,{o})"), V)
for o in ("None", "2", "1", "np.inf", "-np.inf", "-1", "-2", "'fro'", "'nuc'"):
    entry(f"linalg.norm matrix {o}", eval(f"lambda v: np.linalg.norm(v,{o})"), M)
entry("linalg.norm complex", lambda v: np.linalg.norm(v), C)
entry("linalg.norm vector x", lambda v, p: np.linalg.norm(v, p), V, 3.0)
entry("linalg.pinv", lambda a: (np.linalg.pinv(a) * W6.T).sum(), R)
entry("linalg.pinv wide", lambda a: (np.linalg.pinv(a) * W6).sum(), np.ascontiguousarray(R.T))


def qr(a):
    q, r = np.linalg.qr(a)
    return (q * W6).sum() + (r * W9[:2, :2]).sum()


entry("linalg.qr tall", qr, R)


def qr2(a):
    q, r = np.linalg.qr(a)
    return (q * W9).sum() + (r * W9.T).sum()


entry("linalg.qr square", qr2, M)


def qrw(a):
    q, r = np.linalg.qr(a)
    return (q * W9[:2, :2]).sum() + (r * W6.T).sum()


entry("linalg.qr wide", qrw, np.ascontiguousarray(R.T))
entry("linalg.slogdet", lambda a: np.linalg.slogdet(a)[1] * np.linalg.slogdet(a)[0], M)
entry("linalg.slogdet complex", lambda a: np.linalg.slogdet(a)[1], CM)
entry("linalg.solve", lambda a, b: (np.linalg.solve(a, b) * W3).sum(), M, U[:3].copy())
entry("linalg.solve matrix", lambda a, b: (np.linalg.solve(a, b) * W6).sum(), M, R)


def svd(a):
    u, s, v = np.linalg.svd(a, False)
    return (s * W3[:2]).sum() + (u * u * W6).sum() + (v * v * W9[:2, :2]).sum()


entry("linalg.svd thin", svd, R)


def svd0(a):
    u, s, v = np.linalg.svd(a)
    return (s * W3[:2]).sum()


entry("linalg.svd full", svd0, R)


def svd1(a):
    u, s, v = np.linalg.svd(a)
    return (s * W3).sum() + ((u @ v) * W9).sum()


entry("linalg.svd square", svd1, M)
entry("linalg.solve complex", lambda a, b: (np.linalg.solve(a, b) * W3).sum().real, CM, C[:3].copy())
entry("linalg.inv complex", lambda a: np.abs(np.linalg.inv(a)).sum(), CM)
entry("linalg.det complex", lambda a: abs(np.linalg.det(a)), CM)
# products
entry("dot", lambda a, b: (np.dot(a, b) * W6).sum(), M, R)
entry("kron", lambda a, b: np.kron(a, b).sum(), M, R)
entry("outer", lambda a, b: (np.outer(a, b) * M).sum(), V[:3].copy(), U[:3].copy())
entry("trace", lambda a: np.trace(a) + np.trace(a, 1), M)
entry("vdot", lambda a, b: np.vdot(a, b), V, U)
entry("vdot complex", lambda a, b: np.vdot(a, b).imag, C, C * 1j)
entry("cross", lambda a, b: (np.cross(a, b) * W3).sum(), V[:3].copy(), U[:3].copy())
entry("convolve", lambda a, b: (np.convolve(a, b) * w[:8]).sum(), V, W5)
entry("convolve same", lambda a, b: (np.convolve(a, b, "same") * W5).sum(), V, W5)
entry("convolve valid", lambda a, b: (np.convolve(a, b, "valid") * w[:2]).sum(), W5, V)
entry("correlate", lambda a, b: (np.correlate(a, b) * w[:2]).sum(), W5, V)
entry("correlate full", lambda a, b: (np.correlate(a, b, "full") * w[:8]).sum(), W5, V)
entry("correlate swapped", lambda a, b: (np.correlate(a, b) * w[:2]).sum(), V, W5)
entry(
    "interp",
    lambda x, xp, fp: (np.interp(x, xp, fp) * W3).sum(),
    np.array([0.1, 0.7, 1.4]),
    np.array([0.0, 0.5, 1.0, 2.0]),
    V,
)
entry("corrcoef", lambda a: (np.corrcoef(a) * W9).sum(), M)
entry("cov", lambda a: (np.cov(a) * W9).sum(), M)
# reductions
for n in "all any argmax argmin count_nonzero".split():
    entry(n, eval(f"lambda v: np.{n}(v)*v[0]"), V)
for n in "cumprod cumsum nancumprod nancumsum".split():
    entry(n, eval(f"lambda v: (np.{n}(v)*W4).sum()"), V)
for n in "max min mean median prod ptp std sum var nanmax nanmin nanmean nanmedian nanprod nanstd nansum nanvar".split():
    entry(n, eval(f"lambda v: np.{n}(v)*v[1]"), V)
entry("sum axis", lambda m: (np.sum(m, axis=0) * W3).sum() + (m.sum(1) * W3).sum(), M)
entry("mean of matrix", lambda m: np.mean(m) * m[0, 0], M)
for n in "percentile quantile nanpercentile nanquantile".split():
    entry(n, eval(f"lambda v: np.{n}(v,{0.4 if 'quantile' in n else 40.0})"), V)
entry("quantile many", lambda v: (np.quantile(v, np.array([0.1, 0.5])) * w[:2]).sum(), V)
entry("average", lambda v: np.average(v, weights=v * v), V)
entry("sort", lambda v: (np.sort(v) * W4).sum(), V)
entry("argsort", lambda v: v[np.argsort(v)][0] * v[0], V)
entry("partition", lambda v: np.partition(v, 2)[2] * v[0], V)
entry("argpartition", lambda v: v[np.argpartition(v, 2)[2]], V)
entry("trapezoid", lambda v: np.trapezoid(v), V)
entry("trapezoid x", lambda v, x: np.trapezoid(v, x), V, U)
entry("unwrap", lambda v: (np.unwrap(v * 5) * W4).sum(), V)
entry("diff", lambda v: (np.diff(v) * W3).sum() + np.diff(v, 2)[0], V)
entry("ediff1d", lambda v: (np.ediff1d(v) * W3).sum(), V)
entry("digitize", lambda v: v[0] * np.digitize(v, np.array([0.0, 1.0]))[2], V)
entry("searchsorted", lambda v: v[0] * np.searchsorted(np.sort(v), 0.5), V)
entry("histogram", lambda v: v[0] * np.histogram(v, 3)[0][0], V)
entry("bincount", lambda v: v[0] * np.bincount(K)[1], V)
entry("bincount weights", lambda v: (np.bincount(K, v) * W3).sum(), V[:3].copy())
# making, joining
entry("append", lambda v, x: (np.append(v, x) * W5).sum(), V, X)
entry("array_split", lambda v: np.array_split(v, 2)[1][0] * v[0], V)
entry("split", lambda v: np.split(v, 2)[1][0] * v[0], V)
entry("hsplit", lambda v: np.hsplit(v, 2)[1][0] * v[0], V)
for n in "asarray ascontiguousarray asfortranarray copy ravel asarray_chkfinite atleast_1d flip flipud nan_to_num real imag angle sinc".split():
    entry(n, eval(f"lambda v: (np.{n}(v)*W4).sum()"), V)
entry("angle complex", lambda v: (np.angle(v) * W4).sum(), C)
entry("real imag complex", lambda v: (np.real(v) * np.imag(v) * W4).sum() + (v.real * v.imag).sum(), C)
entry("conj complex", lambda v: (np.conj(v) * v * v).sum().real, C)
entry("abs complex", lambda v: (np.abs(v) * W4).sum(), C)
entry("sum complex", lambda v: (v * v).sum().imag * v.mean().real * v.prod().real, C)
entry("exp complex", lambda v: (np.exp(v) * np.sin(v) / np.sqrt(v)).sum().real, C)
entry(
    "complex scalars", lambda z: abs(z * z + 1j * z.conjugate()) + z.real * z.imag + (z**2).real, 0.3 + 0.8j
)
entry("atleast_2d", lambda v: np.atleast_2d(v)[0, 1] * v[0], V)
entry("atleast_3d", lambda v: np.atleast_3d(v)[0, 1, 0] * v[0], V)
entry("broadcast_to", lambda v: (np.broadcast_to(v, (3, 4)) * w[:12].reshape(3, 4)).sum(), V)
entry("broadcast_arrays", lambda v, m: (np.broadcast_arrays(v, m)[0] * W9).sum(), V[:3].copy(), M)
entry("column_stack", lambda v, u: (np.column_stack((v, u))[1] * w[:2]).sum(), V, U)
entry("concatenate", lambda v, u: (np.concatenate((v, u)) * w[:8]).sum(), V, U)
entry("dstack", lambda v, u: np.dstack((v, u))[0, 1, 1], V, U)
entry("dstack 3", lambda v, u: np.dstack((v, u))[0, 1, 1], Q, Q)
entry("hstack", lambda v, u: (np.hstack((v, u)) * w[:8]).sum(), V, U)
entry("vstack", lambda v, u: (np.vstack((v, u)) * w[:8].reshape(2, 4)).sum(), V, U)
entry("row_stack", lambda v, u: (np.row_stack((v, u)) * w[:8].reshape(2, 4)).sum(), V, U)
entry("stack", lambda v, u: (np.stack((v, u), 1) * w[:8].reshape(4, 2)).sum(), V, U)
entry("delete", lambda v: (np.delete(v, 1) * W3).sum(), V)
entry("diag", lambda v: (np.diag(v) @ np.diag(v, 0)).sum() + np.diag(np.outer(v, v))[1], V)
entry("diagflat", lambda v: (np.diagflat(v) * w[:16].reshape(4, 4)).sum(), V)
entry("expand_dims", lambda v: np.expand_dims(v, 1)[1, 0] * v[0], V)
entry("extract", lambda v: np.extract(v > 0, v).sum(), V)
entry("eye", lambda x: (np.eye(3) * x).sum(), X)
entry("fill_diagonal", lambda m, x: _fd(m, x), M, X)


@numba.njit
def _fd(m, x):
    a = m * 1.0
    np.fill_diagonal(a, x)
    return (a * W9).sum()


entry("fliplr", lambda m: (np.fliplr(m) * W9).sum(), M)
entry("rot90", lambda m: (np.rot90(m) * W9).sum(), M)
entry("full", lambda x: np.full(3, x).sum() + np.full((2, 2), x)[0, 0] * x, X)
entry("full_like", lambda v, x: np.full_like(v, x).sum(), V, X)
entry("geomspace", lambda x: np.geomspace(1.0, x, 4).sum(), X)
entry("linspace", lambda x, y: (np.linspace(x, y, 4) * W4).sum(), X, 2.0)
entry("logspace", lambda x: np.logspace(0.0, x, 4).sum(), X)
entry("arange", lambda x: (np.arange(3) * x).sum(), X)
entry("arange of numbers", lambda x: np.arange(0.0, x, 0.5).sum(), X)
for n in "bartlett blackman hamming hanning".split():
    entry(n, eval(f"lambda v: (np.{n}(4)*v).sum()"), V)
entry("kaiser", lambda v: (np.kaiser(4, 2.0) * v).sum(), V)
entry("kaiser beta", lambda b: np.kaiser(4, b)[1], X)
entry("tri", lambda m: (np.tri(3) * m).sum(), M)
entry("indices", lambda m: (np.indices((3, 3))[0] * m).sum(), M)
entry("tril", lambda m: (np.tril(m) * W9).sum() + np.tril(m, 1)[0, 1], M)
entry("triu", lambda m: (np.triu(m) * W9).sum(), M)
entry("tril_indices", lambda m: m[np.tril_indices(3)[0][1], 0], M)
entry("vander", lambda v: (np.vander(v) * w[:16].reshape(4, 4)).sum(), V)
entry("repeat", lambda v: (np.repeat(v, 2) * w[:8]).sum(), V)
entry("reshape", lambda v: (v.reshape(2, 2) @ v.reshape((2, 2))).sum() + np.reshape(v, (2, 2))[0, 1], V)
entry("resize", lambda v: np.resize(v, 6).sum() * v[0], V)
entry("roll", lambda v: (np.roll(v, 1) * W4).sum(), V)
entry("round", lambda v: np.round(v, 1).sum() + np.around(v).sum() + v[0], V)
entry("select", lambda v: np.select([v > 0.5, v < 0.0], [v * v, v * 2.0], 0.0).sum(), V)
entry("where", lambda v, u: (np.where(v > u, v * v, u) * W4).sum(), V, U)
entry("where numbers", lambda v, x: (np.where(v > 0, v, x) * W4).sum(), V, X)
entry("swapaxes", lambda m: (np.swapaxes(m, 0, 1) * W9).sum(), M)
entry("moveaxis", lambda m: (np.moveaxis(m, 0, 1) * W9).sum(), M)
entry("transpose", lambda m: (np.transpose(m) * W9).sum() + (m.transpose() * W9).sum() + m.T[0, 1], M)
entry("transpose axes", lambda m: (m.transpose((2, 0, 1)) * w[:24].reshape(4, 2, 3)).sum(), Q)
entry("take", lambda v: (np.take(v, K) * W3).sum() + v.take(K)[0], V)
entry("take_along_axis", lambda v: np.take_along_axis(v, K, 0)[0] * v[0], V)
entry("trim_zeros", lambda v: np.trim_zeros(v)[0] * v[1], V)
entry("unique", lambda v: np.unique(v)[0] * v[1], V)
entry("union1d", lambda v, u: np.union1d(v, u)[0] * v[1], V, U)
entry("intersect1d", lambda v: np.intersect1d(v, v)[0] * v[1], V)
entry("nonzero", lambda v: v[np.nonzero(v)[0][1]] * v[0], V)
entry("flatnonzero", lambda v: v[np.flatnonzero(v)[1]] * v[0], V)
entry("argwhere", lambda v: v[np.argwhere(v)[1, 0]] * v[0], V)
entry("clip", lambda v, x: (np.clip(v, -x, 0.5) * W4).sum(), V, 0.7)
entry("isclose", lambda v: v[0] if np.isclose(v, v)[0] else v[1], V)
entry("allclose", lambda v: v[0] if np.allclose(v, v) else v[1], V)
entry("array_equal", lambda v: v[0] if np.array_equal(v, v) else v[1], V)
entry("isnan", lambda v: v[0] if not np.isnan(v).any() else v[1], V)
entry("isfinite", lambda v: v[np.isfinite(v)].sum(), V)
entry("copysign", lambda v, u: np.copysign(v, u).sum() * v[0], V, U)
entry("frombuffer", lambda v: np.frombuffer(v)[0] * v[0], V)
entry("searchsorted2", lambda v, x: v[0] * np.searchsorted(np.array([0.0, 1.0]), x), V, X)
entry(
    "a.sum mean",
    lambda m: (
        m.sum() * m.mean() * m.max() * m.min() * m.std() + m.var() + m.prod() + m.cumsum()[2] + m.cumprod()[2]
    ),
    M,
)
entry("a.argmax", lambda v: v[v.argmax()] * v[v.argmin()], V)
entry(
    "a.dot",
    lambda m, v: (
        m.dot(v).sum() + m.flatten()[2] + m.copy()[0, 0] + m.astype(np.float64)[0, 0] + m.conj()[0, 1]
    ),
    M,
    W3.copy(),
)
entry("a.nonzero", lambda v: v[v.nonzero()[0]].sum(), V)
entry("a.repeat", lambda v: v.repeat(2)[3] * v[0], V)
entry("a.view", lambda v: v.view(np.float64)[1] * v[0], V)
entry("a.item", lambda v: v[:1].item() * v[1], V)
entry("a.T imag", lambda v: (v.imag * v.real).sum(), C)
entry("a.sort", lambda v: _so(v), V)


@numba.njit
def _so(v):
    a = v * 1.0
    a.sort()
    return (a * W4).sum()


entry("a.argsort", lambda v: v[v.argsort()][0], V)
UF = "add subtract multiply divide true_divide floor_divide power float_power remainder mod fmod arctan2 hypot logaddexp logaddexp2 maximum minimum fmax fmin nextafter ldexp"
for n in UF.split():
    entry(
        "ufunc " + n,
        eval(f"lambda v,u: (np.{n}(v,u)*W4).sum()")
        if n != "ldexp"
        else (lambda v, u: (np.ldexp(v, 2) * u).sum()),
        P,
        P[::-1].copy() * 0.9 + 0.05,
    )
UF1 = "negative positive absolute fabs rint sign conj exp exp2 log log2 log10 expm1 log1p sqrt square cbrt reciprocal sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh deg2rad rad2deg degrees radians floor ceil trunc spacing signbit isinf"
for n in UF1.split():
    a = {"arccosh": P + 1.5, "arcsin": P / 2, "arccos": P / 2, "arctanh": P / 2}.get(n, P)
    entry("ufunc " + n, eval(f"lambda v: (np.{n}(v)*W4).sum()+v[0]"), a)


REFUSED = (
    "linalg.slogdet complex",
    "nanpercentile",
    "nanquantile",
    "quantile many",
    "trapezoid x",
    "array_split",
    "split",
    "hsplit",
    "asarray_chkfinite",
    "imag",
    "angle",
    "atleast_3d",
    "broadcast_arrays",
    "dstack",
    "row_stack",
    "geomspace",
    "arange of numbers",
    "kaiser beta",
    "unique",
    "union1d",
    "intersect1d",
    "frombuffer",
    "ufunc ldexp",
)
EVERY = 1 if os.environ.get("PLAINGRAD_TEST_ALL") else 3
APART = ("select",)  # is taken apart before Numba sees it: see test_compiled_taken_apart.py
DIFFERENTIATED = [name for name in TABLE if name not in (*REFUSED, *APART)]


@pytest.mark.parametrize("name", DIFFERENTIATED[::EVERY])
def test_the_function_has_the_derivative_of_the_plain_tier(name):
    f, args = TABLE[name]
    check(f, *args, tolerance=1e-10)


@pytest.mark.parametrize("name", REFUSED[::EVERY])
def test_a_function_without_a_rule_is_refused(name):
    f, args = TABLE[name]
    with pytest.raises(plaingrad.NativeError, match="no native derivative"):
        plaingrad.grad(f, differentiated(args), tier="native")(*copied(args))


@pytest.mark.parametrize("order", [-np.inf, -2])
def test_a_decomposition_in_an_arm_that_is_not_taken_is_no_obstacle_for_cpython(order):
    check(lambda v: np.linalg.norm(v, order), M, tolerance=1e-10)


def test_a_decomposition_is_differentiated_when_compiled_too():
    def f(a):
        q, r = np.linalg.qr(a)
        return (q * a).sum() * r[0, 1]

    found = plaingrad.grad(f, tier="native")(R)
    np.testing.assert_allclose(found, plaingrad.grad(f, tier="plain")(R), rtol=1e-9)


def test_vectors_that_make_a_full_decomposition_square_have_no_derivative():
    def f(a):
        u, _, _ = np.linalg.svd(a)
        return u[0, 2]

    with pytest.raises(plaingrad.NativeError, match="full_matrices"):
        gradient(f, (R,))


def test_equal_singular_values_are_no_pole_where_vectors_are_not_used():
    a = np.diag([2.0, 2.0, 1.0])
    _, (bar,) = gradient(lambda a: np.linalg.svd(a, False)[1].sum(), (a,))
    np.testing.assert_allclose(bar, np.eye(3), atol=1e-12)


def test_a_refused_function_of_constants_is_no_obstacle():
    def f(x, v):
        return x * np.unique(v)[1] * np.linalg.eigvals(np.outer(v, v) * 1.0).real.max()

    v = np.array([1, 2, 2])
    assert np.isclose(gradient(f, (3.0, v))[1][0], 2.0 * 9.0)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("function", [np.max, np.min, np.ptp])
def test_elements_that_are_no_extreme_have_no_share_in_an_infinite_cotangent(function):
    def f(x):
        return function(x) * np.inf

    x = np.array([1.0, 2.0, 2.0, 0.5, 0.7])
    for tier in ("native", "plain"):
        expected = np.zeros(5)
        if function is not np.min:
            expected[1:3] = np.inf
        if function is not np.max:
            expected[3] = np.inf if function is np.min else -np.inf
        np.testing.assert_array_equal(plaingrad.grad(f, tier=tier)(x), expected)
        np.testing.assert_array_equal(plaingrad.jacobian(f, tier=tier, mode="reverse")(x), expected)
        moved = np.array([0.0, 1.0, 1.0, 0.0, np.inf])  # the last is neither
        assert plaingrad.jvp(lambda x: function(x), (x,), (moved,), tier=tier)[1] == (0.0 if function is np.min else 1.0)
