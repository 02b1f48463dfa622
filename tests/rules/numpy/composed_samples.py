"""Arguments for the rules of NumPy that are definitions in terms of simpler functions."""

import operator

import numpy as np
from tests.rules.numpy.samples import args, distinct, m, mask, n, nd, real, some, spd, t, v, w, well, zeros_in

from plaingrad.rules.numpy.random_numbers import GENERATORS

COMPOSED = {}


def row(function, *samples):
    if function is not None:
        COMPOSED.setdefault(function, []).extend(samples)


def zeros(*shape):
    return np.zeros(shape)


row(np.choose, args([0, 2, 1, 0], real(3, 4)), args(np.array([[0, 1], [2, 0]]), (1.5, real(2, 2), real(2))), args([0, 4, -1], real(3, 3), mode="wrap"), args([0, 4, -1], real(3, 3), mode="clip"))
row(np.choose, args(1, distinct(4)), args([[1, 0], [0, 2]], [1.5, 2.5, v[:2]]))
row(nd.choose, args(np.array([1, 0]), real(2, 2)), args(np.array([1, 0]), v[:2], w[:2]))
row(np.diff, args(v), args(m), args(m, 1, 0), args(m, 2), args(v, 3), args(v, 0), args(v, 1, -1, 2.0, 3.0), args(m, 2, 1, real(3, 2), real(3, 1)))
row(np.ptp, args(distinct(3, 4)), args(distinct(3, 4), 1), args(distinct(3, 4), axis=0, keepdims=True))
row(vars(nd).get("ptp"), args(distinct(3, 4)), args(distinct(3, 4), 1))
row(np.sort_complex, args(distinct(5)), args(distinct(5) + 1j * real(5)), args(distinct(3, 4)))
for name in ("round", "around", "round_"):
    row(vars(np).get(name), args(distinct(3, 4)), args(distinct(3, 4), 1, zeros(3, 4)), args(1.52, 1))
for name in ("fix", "isneginf", "isposinf"):
    row(vars(np).get(name), args(v), args(v, zeros(*v.shape)))
row(nd.round, args(distinct(3, 4), 1), args(distinct(3, 4), 0, zeros(3, 4)))
for name in ("any", "all"):
    row(vars(np)[name], args(m > 0), args(m, 1), args(m, axis=0, keepdims=True), args(m, 0, zeros(4)), args(m, where=mask))
    row(vars(nd)[name], args(m), args(m, 1), args(m, 0, out=zeros(4)))
row(vars(np).get("msort"), args(distinct(3, 4)))
row(np.unique, args(distinct(5)), args(distinct(2, 3), True, True, True), args(distinct(3, 2), axis=0), args([0.5, 2.5, 1.5], return_counts=True))
row(nd.sort, args(distinct(5)), args(distinct(3, 4)), args(distinct(3, 4), 0))
row(nd.partition, args(distinct(5), 2), args(distinct(3, 4), 1, 0))
row(nd.fill, args(zeros(2, 3), 1.5), args(real(3), 2.5))
row(nd.put, args(real(2, 3), [0, 4], v[:2]), args(real(5), [1, 2, 3], 1.5), args(real(5), [6, -1], v[:2], mode="wrap"))
row(np.put, args(real(2, 3), [0, 4], v[:2]), args(real(5), [1, 1], v[:2]), args(real(5), [7, 1], v[:1], "clip"))
row(np.place, args(real(3, 4), mask, v), args(real(3, 4), mask, v[:2]))
row(np.putmask, args(real(3, 4), mask, real(3, 4)), args(real(3, 4), mask, v[:2]))
row(np.copyto, args(real(3, 4), v[:4]), args(real(3, 4), 1.5, where=mask), args(real(3, 4), real(3, 1), "same_kind", mask[0]), args(zeros(2), [1.5, 2.5]))
row(np.fill_diagonal, args(real(3, 3), 1.5), args(real(3, 4), v[:2]), args(real(5, 2), v[:2], True), args(real(5, 2), 1.5), args(real(2, 2, 2), v[:2]))
row(np.from_dlpack, args(m), args(v))
row(np.sinc, args(v), args(m), args(0.3), args([0.5, 1.25]))
row(np.i0, args(v), args(m), args(0.3), args([0.5, 1.25]))
row(np.kaiser, args(4, 2.5), args(1, 2.5), args(5, 0.7))
row(np.resize, args(m, (2, 3)), args(v, 12), args(v, (2, 2, 2)))
row(np.meshgrid, args(v, w[:3]), args(v, w[:3], np.array([0.5, 1.5]), indexing="ij"), args(v, w[:3], np.array([0.5]), sparse=True), args(v, 1.5, copy=False), args(v))
row(np.fromstring, args("1.5 2.5 3", sep=" "), args("1,2,3", int, sep=","), args("1.5, 2.5", float, 1, sep=", "))
row(np.fromiter, args([1.5, 2.5], float), args((1.5, 2.5, 3.5), float, 2))
row(nd.view, args(m), args(m, np.complex128), args(m, np.ndarray), args(real(3, 4), dtype=np.float64))
row(nd.item, args(m, 5), args(m, 1, 2), args(m, (0, 1)), args(np.array([[2.5]])), args(v, -1))
row(nd.tolist, args(m), args(v), args(np.array(1.5)))
row(nd.setfield, args(real(3), 1.5, np.float64))
row(vars(nd).get("itemset"), args(real(3, 4), 5, 1.5), args(real(3, 4), (1, 2), 1.5), args(np.array(1.0), 2.5))
row(np.einsum, args("ij,jk->ik", m, n), args("ij,jk", m, n), args("ij->", m), args("ii->i", real(3, 3)), args("ii", real(3, 3)), args("...j,j->...", t, v[:4]), args("...ij,...jk->...ik", t, real(4, 2)), args("i,j->ji", v, w), args(m, [0, 1], n, [1, 2], [0, 2]), args(t, [Ellipsis, 0], v[:4], [0]), args("ij,jk,kl->il", m, n, real(2, 3)), args("ij,jk,kl->il", m, n, real(2, 3), optimize=True), args("b...,b...->...", m, m + 1), args("iji->j", real(2, 3, 2)), args("i->", v), args("ij,ij->i", m, real(1, 4)), args(" i j -> j i ", m), args("...", m), args("i...->...i", t))
row(np.linalg.norm, *[args(m, o) for o in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)], *[args(v, o) for o in (None, 2, 1, 3, 0.5, np.inf, -np.inf, -1, 0)], args(t), args(t, None, (0, 2)), args(t, 2, 1), args(t, "nuc", (2, 0), True), args(t, 1, (1, 2), keepdims=True), args(m, 3.0, axis=1), args(m, axis=0, keepdims=True), args(zeros(3)))
row(np.linalg.cond, *[args(well(3), p) for p in (None, 2, -2, 1, -1, "fro", np.inf, "nuc")], args(m), args(well(3, 2)), args(well(3, 2), 1))
row(np.linalg.tensorsolve, args(well(4).reshape(2, 2, 4), real(2, 2)), args(well(4).reshape(4, 2, 2), real(4)), args(np.moveaxis(well(4).reshape(2, 2, 2, 2), 0, 2), real(2, 2), axes=(2,)))
row(np.nan_to_num, args(v), args(np.array([np.inf, 1.0, -np.inf, np.nan]), posinf=1.5, neginf=2.5), args(np.array([1.0, np.nan]), False), args(1.5))

# Ufuncs and their methods
call = np.ufunc.__call__
row(call, args(np.multiply, m, real(3, 4), out=zeros(3, 4)), args(np.multiply, m, 2.5, zeros(3, 4)), args(np.add, m, v[:4], out=(zeros(3, 4),)), args(np.add, m, v[:4], where=mask, out=real(3, 4)), args(np.divide, 1.5, zeros_in, where=zeros_in != 0, out=zeros(3, 4)), args(np.log, np.abs(m) + 0.1, where=mask[0], out=real(3, 4)), args(np.exp, m, dtype=np.float64), args(np.sqrt, np.abs(m) + 0.1, dtype=complex), args(np.multiply, 1.5, 2.5, subok=True), args(np.modf, m, out=(zeros(3, 4), None)), args(np.modf, m, zeros(3, 4), zeros(3, 4)), args(np.divmod, m, 0.7, out=(None, zeros(3, 4))), args(np.matmul, m, n, out=zeros(3, 2)), args(np.matmul, m, real(2, 4, 3), axes=[(-2, -1), (-2, -1), (-2, -1)]), args(np.subtract, m, 1.5, casting="unsafe", order="C"), args(np.maximum, m, 0.1, out=None))
if np.__version__ >= "2":
    row(call, args(np.vecdot, m, m + 1, axis=0), args(np.vecdot, m, m + 1, axes=[0, 0, ()]), args(np.matvec, m, v[:4], out=zeros(3)))
for ufunc in (np.add, np.multiply, np.subtract, np.divide, np.logaddexp, np.hypot, np.fmax):
    row(np.ufunc.reduce, args(ufunc, distinct(5)), args(ufunc, distinct(3, 4), 1), args(ufunc, distinct(3, 4), axis=0, keepdims=True))
    row(np.ufunc.accumulate, args(ufunc, distinct(5)), args(ufunc, distinct(3, 4), 1))
    row(np.ufunc.reduceat, args(ufunc, distinct(6), [0, 2, 3]), args(ufunc, distinct(3, 4), [2, 0], 1))
    row(np.ufunc.outer, args(ufunc, distinct(3), real(2)), args(ufunc, distinct(2, 2), 1.5))
    row(np.ufunc.at, args(ufunc, distinct(5), [0, 2, 2, 0, 2], real(5)), args(ufunc, distinct(3, 4), ([0, 0], [1, 1]), 1.3), args(ufunc, distinct(3, 4), 1, real(4)), args(ufunc, distinct(4), [], real(0)))
for ufunc in (np.maximum, np.minimum):
    row(np.ufunc.reduce, args(ufunc, distinct(3, 4), 1), args(ufunc, distinct(3, 4), None, initial=0.2), args(ufunc, distinct(3, 4), (0, 1), where=some, initial=0.1))
    row(np.ufunc.accumulate, args(ufunc, distinct(5)), args(ufunc, distinct(3, 4)), args(ufunc, distinct(3, 4), 1, out=zeros(3, 4)))
    row(np.ufunc.at, args(ufunc, distinct(5), [0, 2, 2], real(3)))
row(np.ufunc.reduce, args(np.add, m, axis=(0, 1)), args(np.add, m, None, out=np.array(0.0)), args(np.add, m, where=mask, axis=1), args(np.add, m, initial=1.5), args(np.multiply, zeros_in, 1, initial=2.5), args(np.multiply, m, 0, None, zeros(4)), args(np.logaddexp, m, initial=0.5), args(np.subtract, t, (0,)), args(np.add, np.zeros((0, 2))), args(np.multiply, np.zeros((0, 2))))
row(np.ufunc.accumulate, args(np.add, m, out=zeros(3, 4)), args(np.multiply, zeros_in, axis=1))
row(np.ufunc.at, args(np.negative, real(4), [0, 2, 2]), args(np.exp, real(4), slice(1, 3)))

# Operators by name
for name in ("add", "sub", "mul", "truediv", "mod", "pow", "floordiv"):
    row(vars(nd)[f"__i{name}__"], args(np.abs(m) + 0.2, np.abs(real(4)) + 0.3))
row(vars(nd).get("__imatmul__"), args(real(3, 3), real(3, 3)))
row(vars(nd)["__matmul__"], args(m, n))
row(vars(nd)["__rmatmul__"], args(n, m))
row(vars(nd)["__getitem__"], args(m, (1, 2)), args(m, 1), args(m, ([0, 0], [1, 1])))
row(vars(nd)["__setitem__"], args(real(3, 4), (1, 2), 1.5), args(real(3, 4), 1, v[:4]))

# Random numbers: the generator is made anew for every call
def fresh(function, cls):
    def call(*a, **k):
        g = np.random.default_rng(5) if cls is np.random.Generator else np.random.RandomState(5)
        return function(g, *a, **k)

    call.__name__ = call.__qualname__ = f"{cls.__name__}.{function.__name__}"
    return call


RANDOM = {}
for cls in GENERATORS:
    methods = vars(cls)
    for name in ("normal", "laplace", "logistic", "gumbel"):
        RANDOM[fresh(methods[name], cls)] = methods[name], [args(1.5, 0.7), args(v, 0.7), args(v, np.abs(w)), args(1.5, 0.7, (2, 3)), args(loc=1.5, size=2), args(1.5, np.abs(w), (2, 5))]
    RANDOM[fresh(methods["lognormal"], cls)] = methods["lognormal"], [args(0.3, 0.7), args(v, 0.3), args(0.3, 0.2, 4)]
    for name in ("exponential", "rayleigh"):
        RANDOM[fresh(methods[name], cls)] = methods[name], [args(1.5), args(np.abs(v)), args(1.5, (2, 2))]
    RANDOM[fresh(methods["uniform"], cls)] = methods["uniform"], [args(-1.5, 2.5), args(v, 3.5), args(v, v + 1, (2, 5)), args(0.5)]
    RANDOM[fresh(methods["gamma"], cls)] = methods["gamma"], [args(2, 1.5), args(2, np.abs(v))]
    RANDOM[fresh(methods["choice"], cls)] = methods["choice"], [args(v), args(v, 3), args(v, (2, 2)), args(v, 3, False)]
    RANDOM[fresh(methods["permutation"], cls)] = methods["permutation"], [args(v), args(m), args(t)]
    RANDOM[fresh(methods["shuffle"], cls)] = methods["shuffle"], [args(real(5)), args(real(4, 2)), args(real(3, 2, 2))]
    RANDOM[fresh(methods["multivariate_normal"], cls)] = methods["multivariate_normal"], [args(real(2), np.array([[2, 1], [1, 3]])), args(real(2), np.array([[2, 1], [1, 3]]), 3)]
RANDOM[fresh(vars(np.random.Generator)["choice"], np.random.Generator)] = vars(np.random.Generator)["choice"], [args(m, 3, axis=1)]
RANDOM[fresh(vars(np.random.Generator)["permutation"], np.random.Generator)] = vars(np.random.Generator)["permutation"], [args(m, axis=1)]
RANDOM[fresh(vars(np.random.Generator)["shuffle"], np.random.Generator)] = vars(np.random.Generator)["shuffle"], [args(real(3, 4), axis=1)]
RANDOM[fresh(vars(np.random.Generator)["permuted"], np.random.Generator)] = vars(np.random.Generator)["permuted"], [args(m), args(m, axis=1), args(t, axis=0), args(v), args(m, axis=0, out=zeros(3, 4))]
COMPOSED = {f: s for f, s in COMPOSED.items() if s}
del operator, spd
