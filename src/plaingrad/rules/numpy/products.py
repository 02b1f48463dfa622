"""Products that sum: matmul, dot, inner, outer, tensordot, cross, kron, convolve, and their kin.

Adjoints take the arrays as `a` and `b`; conjugation is that of a cotangent x_bar + i y_bar.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from plaingrad.define import frule, rrule
from plaingrad.rules.numpy.names import adjoint, array, bilinear, conj, functions, methods, refuse_out
from plaingrad.rules.pushforwards import both_forms, flattened, joined, lined_up, pushed, total, varies
from plaingrad.tangents import Thunk

# ---------------------------------------------------------------------------------------------------------
# matmul: the last two axes are matrices, the others are broadcast (and summed over by the projection)


def matmul_a_bar(z_bar, a, b, *options, **more):
    """z_bar b^H."""
    if a.ndim == b.ndim == 2 and b.dtype.kind != "c":
        return z_bar @ b.T
    if b.ndim == 1:
        return z_bar * conj(b) if a.ndim == 1 else np.expand_dims(z_bar, -1) * conj(b)
    if a.ndim == 1:
        return conj(b) @ z_bar if b.ndim == 2 else (conj(b) @ np.expand_dims(z_bar, -1))[..., 0]
    return z_bar @ adjoint(b)


def matmul_b_bar(z_bar, a, b, *options, **more):
    """a^H z_bar."""
    if a.ndim == b.ndim == 2 and a.dtype.kind != "c":
        return a.T @ z_bar
    if a.ndim == 1:
        if b.ndim == 1:
            return z_bar * conj(a)
        return np.expand_dims(conj(a), -1) * np.expand_dims(z_bar, -2)
    if b.ndim == 1:
        return adjoint(a) @ z_bar if a.ndim == 2 else (adjoint(a) @ np.expand_dims(z_bar, -1))[..., 0]
    return adjoint(a) @ z_bar


def stacked(x: Any, ndim: int) -> Any:
    """A chunk of matrices, or stacks of them, as stacks with `ndim` axes behind the leading one."""
    return np.reshape(x, (len(x), *(1,) * (ndim + 1 - np.ndim(x)), *np.shape(x)[1:]))


def matmul_push_a(a_dot, a, b, *options, **more):
    """a_dot b of every tangent in a chunk; one product where `b` is one matrix."""
    if np.ndim(b) > 2:
        return stacked(a_dot, b.ndim) @ b if np.ndim(a) > 1 else (stacked(a_dot[:, None], b.ndim) @ b)[..., 0, :]
    rows = np.reshape(a_dot, (math.prod(np.shape(a_dot)[:-1]), np.shape(b)[0]))
    return np.reshape(rows @ b, (*np.shape(a_dot)[:-1], *np.shape(b)[1:]))


def matmul_push_b(b_dot, a, b, *options, **more):
    """a b_dot of every tangent in a chunk."""
    if np.ndim(b) == 1:
        return np.moveaxis(a @ b_dot.T, -1, 0)
    return a @ (stacked(b_dot, np.ndim(a)) if np.ndim(a) > np.ndim(b) else b_dot)


for f in (np.matmul, operator.matmul, *functions("matmul", where=np.linalg)):
    bilinear(f, matmul_a_bar, matmul_b_bar, (matmul_push_a, matmul_push_b))


# ---------------------------------------------------------------------------------------------------------
# dot, inner, vdot, outer, tensordot


def dot_a_bar(z_bar, a, b, out=None):
    """z_bar contracted with every axis of b but the one that was summed."""
    refuse_out("np.dot", out)
    n = np.ndim(b)
    if np.ndim(a) == 0 or n == 0:
        return z_bar * conj(b)
    if n == 1:
        return np.expand_dims(z_bar, -1) * conj(b)
    if n == 2:
        return z_bar @ adjoint(b)
    free = [i for i in range(n) if i != n - 2]
    return np.tensordot(z_bar, conj(b), (list(range(-len(free), 0)), free))


def dot_b_bar(z_bar, a, b, out=None):
    """z_bar contracted with every axis of a but its last, which takes the place of the one that was summed."""
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return z_bar * conj(a)
    if np.ndim(a) == 2 and np.ndim(b) <= 2:
        return adjoint(a) @ z_bar
    free = list(range(np.ndim(a) - 1))
    b_bar = np.tensordot(conj(a), z_bar, (free, free))  # the summed axis comes first
    return b_bar if np.ndim(b) <= 2 else np.moveaxis(b_bar, 0, -2)


def dot_push_a(a_dot, a, b, out=None):
    """A chunk is one more axis in front."""
    return scaled_chunk(a_dot, a, b) if np.ndim(a) == 0 or np.ndim(b) == 0 else np.dot(a_dot, b)


def dot_push_b(b_dot, a, b, out=None):
    """The leading axis of the chunk comes after those of `a`, and goes to the front."""
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return scaled_chunk(b_dot, b, a)
    if np.ndim(b) == 1:
        return np.tensordot(b_dot, a, (-1, -1))
    return np.moveaxis(np.tensordot(a, b_dot, (-1, -2)), np.ndim(a) - 1, 0)


def scaled_chunk(x_dot: Any, x: Any, y: Any) -> Any:
    """x_dot y where x or y is a number."""
    return np.reshape(x_dot, (*np.shape(x_dot), *(1,) * np.ndim(y))) * y


for f in (np.dot, *methods("dot")):
    bilinear(f, dot_a_bar, dot_b_bar, (dot_push_a, dot_push_b))


def inner_a_bar(z_bar, a, b):
    """z_bar contracted with the free axes of b."""
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return z_bar * conj(b)
    free = np.ndim(b) - 1
    return np.tensordot(z_bar, conj(b), (list(range(-free, 0)), list(range(free)))) if free else tensor(z_bar, b)


def tensor(z_bar, b):
    """Every product of an element of z_bar and a conjugated element of b, without sums."""
    return np.expand_dims(z_bar, -1) * conj(b)


def inner_b_bar(z_bar, a, b):
    """z_bar contracted with the free axes of a."""
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return z_bar * conj(a)
    free = list(range(np.ndim(a) - 1))
    return np.tensordot(z_bar, conj(a), (free, free)) if free else tensor(z_bar, a)


def inner_push_a(a_dot, a, b):
    """A chunk is one more axis in front."""
    return scaled_chunk(a_dot, a, b) if np.ndim(a) == 0 or np.ndim(b) == 0 else np.inner(a_dot, b)


def inner_push_b(b_dot, a, b):
    """The leading axis of the chunk comes after those of `a`, and goes to the front."""
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return scaled_chunk(b_dot, b, a)
    return np.moveaxis(np.inner(a, b_dot), np.ndim(a) - 1, 0)


bilinear(np.inner, inner_a_bar, inner_b_bar, (inner_push_a, inner_push_b))


@rrule(np.vdot)
def vdot_rrule(a, b):
    a, b = array(a), array(b)

    def vdot_pullback(z_bar):  # z = sum conj(a) b
        return (
            Thunk(lambda: np.reshape(np.conjugate(z_bar) * np.ravel(b), np.shape(a))),
            Thunk(lambda: np.reshape(z_bar * np.ravel(a), np.shape(b))),
        )

    return np.vdot(a, b), vdot_pullback


@both_forms(np.vdot)
def vdot_frule(a, b):
    def vdot_pushforward(dots):
        x, y = array(a), array(b)
        a_dot = pushed(lambda a_dot: conj(flattened(joined(a_dot, a), x)) @ np.ravel(y), dots[0])
        b_dot = pushed(lambda b_dot: flattened(joined(b_dot, b), y) @ conj(np.ravel(x)), dots[1])
        return total(a_dot, b_dot)

    return np.vdot(a, b), vdot_pushforward


def outer_a_bar(z_bar, a, b, out=None):
    """z_bar conj(b)."""
    refuse_out("np.outer", out)
    return np.reshape(z_bar @ conj(np.ravel(b)), np.shape(a))


def outer_b_bar(z_bar, a, b, out=None):
    """conj(a) z_bar."""
    return np.reshape(conj(np.ravel(a)) @ z_bar, np.shape(b))


for f in (np.outer, *functions("outer", where=np.linalg)):
    bilinear(
        f, outer_a_bar, outer_b_bar,
        (lambda a_dot, a, b, out=None: np.expand_dims(flattened(a_dot, a), -1) * np.ravel(b),
         lambda b_dot, a, b, out=None: np.expand_dims(np.ravel(a), -1) * np.expand_dims(flattened(b_dot, b), -2)),
    )  # fmt: skip


def contracted_axes(a: Any, b: Any, axes: Any) -> tuple[list[int], list[int]]:
    """The axes of `a` and of `b` that tensordot sums over, counted from the front."""
    if np.ndim(axes) == 0 and not isinstance(axes, (list, tuple)):
        axes = (list(range(np.ndim(a) - int(axes), np.ndim(a))), list(range(int(axes))))
    pair = [[x] if np.ndim(x) == 0 and not isinstance(x, (list, tuple)) else list(x) for x in axes]
    return [i % np.ndim(a) for i in pair[0]], [i % np.ndim(b) for i in pair[1]]


def tensordot_a_bar(z_bar, a, b, axes=2):
    """z_bar contracted with the free axes of b, the axes then in a's order."""
    in_a, in_b = contracted_axes(a, b, axes)
    free_a = [i for i in range(np.ndim(a)) if i not in in_a]
    free_b = [i for i in range(np.ndim(b)) if i not in in_b]
    k = len(free_a)
    a_bar = np.tensordot(z_bar, conj(b), (list(range(k, k + len(free_b))), free_b))  # free a, then b's summed in order
    places = free_a + [in_a[in_b.index(i)] for i in sorted(in_b)]
    return np.transpose(a_bar, np.argsort(places))


def tensordot_b_bar(z_bar, a, b, axes=2):
    """z_bar contracted with the free axes of a, the axes then in b's order."""
    in_a, in_b = contracted_axes(a, b, axes)
    free_a = [i for i in range(np.ndim(a)) if i not in in_a]
    free_b = [i for i in range(np.ndim(b)) if i not in in_b]
    b_bar = np.tensordot(conj(a), z_bar, (free_a, list(range(len(free_a)))))  # a's summed in order, then free b
    places = [in_b[in_a.index(i)] for i in sorted(in_a)] + free_b
    return np.transpose(b_bar, np.argsort(places))


def tensordot_push_a(a_dot, a, b, axes=2):
    """A chunk is one more axis in front."""
    in_a, in_b = contracted_axes(a, b, axes)
    return np.tensordot(a_dot, b, ([i + 1 for i in in_a], in_b))


def tensordot_push_b(b_dot, a, b, axes=2):
    """The leading axis of the chunk comes after those of `a`, and goes to the front."""
    in_a, in_b = contracted_axes(a, b, axes)
    return np.moveaxis(np.tensordot(a, b_dot, (in_a, [i + 1 for i in in_b])), np.ndim(a) - len(in_a), 0)


for f in (np.tensordot, *functions("tensordot", where=np.linalg)):
    bilinear(f, tensordot_a_bar, tensordot_b_bar, (tensordot_push_a, tensordot_push_b))


# ---------------------------------------------------------------------------------------------------------
# Generalized ufuncs of NumPy 2: vecdot conjugates its first argument, vecmat too


def enter_generalized(function: Any, adjoint_a: Any, adjoint_b: Any, core_a: int, core_b: int) -> None:
    """A function of stacks of vectors and matrices, which have `core` axes; a chunk is one more stack."""

    def lined(x_dot, x, core, other, other_core):
        return lined_up(x_dot, x, max(np.ndim(x), np.ndim(other) - other_core + core))

    bilinear(
        function, adjoint_a, adjoint_b,
        (lambda a_dot, a, b: function(lined(a_dot, a, core_a, b, core_b), b),
         lambda b_dot, a, b: function(a, lined(b_dot, b, core_b, a, core_a))),
    )  # fmt: skip


for f in functions("vecdot"):
    enter_generalized(
        f,
        lambda z_bar, a, b: np.expand_dims(np.conjugate(z_bar), -1) * b,
        lambda z_bar, a, b: np.expand_dims(z_bar, -1) * a,
        1,
        1,
    )
for f in functions("matvec"):
    enter_generalized(
        f,
        lambda z_bar, a, b: np.expand_dims(z_bar, -1) * np.expand_dims(conj(b), -2),
        lambda z_bar, a, b: (adjoint(a) @ np.expand_dims(z_bar, -1))[..., 0],
        2,
        1,
    )
for f in functions("vecmat"):  # z = conj(a) @ b
    enter_generalized(
        f,
        lambda z_bar, a, b: (b @ np.expand_dims(np.conjugate(z_bar), -1))[..., 0],
        lambda z_bar, a, b: np.expand_dims(a, -1) * np.expand_dims(z_bar, -2),
        1,
        2,
    )


# ---------------------------------------------------------------------------------------------------------
# Cross product: a_bar = b x z_bar, b_bar = z_bar x a; vectors of two numbers lie in the plane


def cross_vectors(z_bar, a, b, axisa, axisb, axisc, axis):
    """z_bar, a and b as vectors of three numbers along the last axis."""
    if axis is not None:
        axisa = axisb = axisc = axis
    vectors = [np.moveaxis(a, axisa, -1), np.moveaxis(b, axisb, -1)]
    planar = all(np.shape(v)[-1] == 2 for v in vectors)
    z_bar = np.expand_dims(z_bar, -1) if planar else np.moveaxis(z_bar, axisc, -1)
    if planar:
        z_bar = np.concatenate([np.zeros_like(z_bar), np.zeros_like(z_bar), z_bar], -1)
    for i, v in enumerate(vectors):
        if np.shape(v)[-1] == 2:
            vectors[i] = np.concatenate([v, np.zeros_like(v[..., :1])], -1)
    return z_bar, *vectors, axisa, axisb


def are_vectors(a, b):
    """Whether both are one vector of three numbers: then np.cross takes most of its time to see that."""
    return np.shape(a) == (3,) and np.shape(b) == (3,)


def cross_of_vectors(a, b):
    """np.cross of two such vectors."""
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def cross_a_bar(z_bar, a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """b x z_bar."""
    if are_vectors(a, b):
        return cross_of_vectors(conj(b), z_bar)
    z3, _, b3, axisa, _ = cross_vectors(z_bar, a, b, axisa, axisb, axisc, axis)
    return np.moveaxis(np.cross(conj(b3), z3)[..., : np.shape(a)[axisa]], -1, axisa - np.ndim(a) if axisa >= 0 else axisa)


def cross_b_bar(z_bar, a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """z_bar x a."""
    if are_vectors(a, b):
        return cross_of_vectors(z_bar, conj(a))
    z3, a3, _, _, axisb = cross_vectors(z_bar, a, b, axisa, axisb, axisc, axis)
    return np.moveaxis(np.cross(z3, conj(a3))[..., : np.shape(b)[axisb]], -1, axisb - np.ndim(b) if axisb >= 0 else axisb)


def crossed(a, b, a_ndim, b_ndim, axisa, axisb, axisc, axis):
    """np.cross where `a` and `b` may have an axis of a chunk in front of so many of their own."""
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = np.moveaxis(a, axisa % a_ndim - a_ndim, -1), np.moveaxis(b, axisb % b_ndim - b_ndim, -1)
    ndim = max(a_ndim, b_ndim)
    a, b = [
        np.reshape(x, (*np.shape(x)[:1], *(1,) * (ndim - n), *np.shape(x)[1:])) if np.ndim(x) > n else x
        for x, n in ((a, a_ndim), (b, b_ndim))
    ]
    if all(np.shape(x)[-1:] == (2,) for x in (a, b)):
        return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    return np.moveaxis(np.cross(a, b), -1, axisc % ndim - ndim)


def cross_push_a(a_dot, a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """a_dot x b."""
    return crossed(a_dot, b, np.ndim(a), np.ndim(b), axisa, axisb, axisc, axis)


def cross_push_b(b_dot, a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """a x b_dot."""
    return crossed(a, b_dot, np.ndim(a), np.ndim(b), axisa, axisb, axisc, axis)


bilinear(np.cross, cross_a_bar, cross_b_bar, (cross_push_a, cross_push_b))
for f in functions("cross", where=np.linalg):
    bilinear(
        f,
        lambda z_bar, a, b, axis=-1: cross_a_bar(z_bar, a, b, axis=axis),
        lambda z_bar, a, b, axis=-1: cross_b_bar(z_bar, a, b, axis=axis),
        (lambda a_dot, a, b, axis=-1: cross_push_a(a_dot, a, b, axis=axis),
         lambda b_dot, a, b, axis=-1: cross_push_b(b_dot, a, b, axis=axis)),
    )  # fmt: skip


# ---------------------------------------------------------------------------------------------------------
# Convolution


def whole(z_bar: Any, a: Any, v: Any, mode: Any, start: int) -> Any:
    """z_bar at its place in the cotangent of the full convolution; `start` is that place for mode "same"."""
    mode = {0: "valid", 1: "same", 2: "full"}.get(mode, mode)
    n, m = max(np.size(a), np.size(v)), min(np.size(a), np.size(v))
    if mode.startswith("f"):
        return z_bar
    if mode.startswith("v"):
        start = m - 1
    zeros = np.zeros(n + m - 1 - len(z_bar), np.asarray(z_bar).dtype)
    return np.concatenate([zeros[:start], z_bar, zeros[start:]])


def correlated(z_bar: Any, v: Any) -> Any:
    """sum_k z_bar[i + k] conj(v[k])."""
    return np.correlate(z_bar, np.ravel(v), "valid")


def convolve_a_bar(z_bar, a, v, mode="full"):
    """z_bar correlated with v."""
    return np.reshape(correlated(whole(z_bar, a, v, mode, (min(np.size(a), np.size(v)) - 1) // 2), v), np.shape(a))


bilinear(np.convolve, convolve_a_bar, lambda z_bar, a, v, mode="full": convolve_a_bar(z_bar, v, a, mode))


@rrule(np.correlate)
def correlate_rrule(a, v, mode="valid"):
    a, v = array(a), array(v)

    def correlate_pullback(z_bar):  # the convolution of a with conj(v) read backwards
        m = min(np.size(a), np.size(v))
        full = whole(z_bar, a, v, mode, (m - 1) // 2 if np.size(a) >= np.size(v) else m // 2)
        backwards = conj(np.ravel(v))[::-1]
        return (
            Thunk(lambda: np.reshape(correlated(full, backwards), np.shape(a))),
            Thunk(lambda: np.reshape(conj(correlated(full, a)[::-1]), np.shape(v))),
        )

    return np.correlate(a, v, mode), correlate_pullback


@frule(np.correlate)
def correlate_frule(a, v, mode="valid"):
    def correlate_pushforward(dots):
        a_dot = pushed(np.correlate, dots[0], v, mode)
        return total(a_dot, np.correlate(a, dots[1], mode) if varies(dots[1]) else dots[1])

    return np.correlate(a, v, mode), correlate_pushforward
