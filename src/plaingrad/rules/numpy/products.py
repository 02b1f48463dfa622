"""Products that sum: matmul, dot, inner, outer, tensordot, einsum, cross, kron, convolve, and their kin.

Adjoints take the arrays as `a` and `b`; conjugation is that of a cotangent x_bar + i y_bar.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from plaingrad.define import composed, frule, no_tangent, rrule
from plaingrad.rules.numpy.names import (
    adjoint,
    array,
    bilinear,
    conj,
    functions,
    linear,
    methods,
    refuse_out,
    written,
)
from plaingrad.rules.pushforwards import both_forms, flattened, joined, lined_up, pushed, total, varies
from plaingrad.tangents import NoTangent, Thunk, ZeroTangent

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


def cross_a_bar(z_bar, a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """b x z_bar."""
    z3, _, b3, axisa, _ = cross_vectors(z_bar, a, b, axisa, axisb, axisc, axis)
    return np.moveaxis(np.cross(conj(b3), z3)[..., : np.shape(a)[axisa]], -1, axisa - np.ndim(a) if axisa >= 0 else axisa)


def cross_b_bar(z_bar, a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """z_bar x a."""
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


# ---------------------------------------------------------------------------------------------------------
# einsum. Subscripts become one list of labels (numbers) for each operand; the rule is then one more einsum


def labels_of(subscripts: Any, ndims: list[int]) -> tuple[list[list[int]], list[int]]:
    """The labels of each operand, and of the result; an ellipsis becomes labels of its own.

    Args:
        subscripts: a string, or the list of labels of each operand, with that of the result last if it is given.
        ndims: how many axes each operand has.
    """
    if isinstance(subscripts, str):
        left, arrow, right = subscripts.replace(" ", "").partition("->")
        words: list[list[Any]] = [symbols(word) for word in left.split(",")]
        result = symbols(right) if arrow else None
    else:
        words = [list(word) for word in subscripts[: len(ndims)]]
        result = list(subscripts[-1]) if len(subscripts) > len(ndims) else None
    if result is None:  # those that occur once, sorted, after the ellipsis
        everything = [x for word in words for x in word if x is not Ellipsis]
        result = [Ellipsis] * any(Ellipsis in word for word in words)
        result += sorted({x for x in everything if everything.count(x) == 1})
    wide = max([ndim - len(w) + 1 for ndim, w in zip(ndims, words) if Ellipsis in w], default=0)
    numbers: dict[Any, int] = {}

    def numbered(word: list[Any], n: int) -> list[int]:
        labels: list[int] = []
        for x in word:
            if x is Ellipsis:
                labels += range(wide - n, wide)
            else:
                labels.append(numbers.setdefault(x, wide + len(numbers)))
        return labels

    labels = [numbered(word, ndim - len(word) + 1) for word, ndim in zip(words, ndims)]
    return labels, numbered(result, wide)


def symbols(word: str) -> list[Any]:
    """The letters of a subscript, with `...` as one symbol."""
    head, dots, tail = word.partition("...")
    return [*head, Ellipsis, *tail] if dots else list(head)


no_tangent(labels_of)


def einsum_bar(z_bar: Any, k: int, arrays: Any, labels: list[list[int]], result: list[int], optimize: Any) -> Any:
    """The cotangent of operand `k`: z_bar and the other operands, conjugated, summed to its labels."""
    own = list(dict.fromkeys(labels[k]))
    others = [(conj(a), word) for i, (a, word) in enumerate(zip(arrays, labels)) if i != k]
    known = set(result).union(*[word for _, word in others])
    found = [x for x in own if x in known]
    arguments = [part for pair in [(z_bar, result), *others] for part in pair]
    a_bar = np.einsum(*arguments, found, optimize=optimize)
    shape = np.shape(arrays[k])
    if len(found) < len(own):  # summed out alone: the cotangent is the same along that axis
        a_bar = np.reshape(a_bar, [np.shape(a_bar)[found.index(x)] if x in found else 1 for x in own])
    if len(own) == len(shape):
        return np.broadcast_to(a_bar, np.broadcast_shapes(np.shape(a_bar), shape)) if len(found) < len(own) else a_bar
    # A repeated label reads a diagonal: the cotangent is zero beside it.
    a_bar = np.transpose(np.reshape(a_bar, (*np.shape(a_bar), *(1,) * (len(shape) - len(own)))), repeats(labels[k], own))
    a_bar = np.broadcast_to(a_bar, shape)
    for i, x in enumerate(labels[k]):
        first = labels[k].index(x)
        if first < i:
            eye = np.eye(shape[i], dtype=bool)
            a_bar = np.where(np.reshape(eye, [n if j in (first, i) else 1 for j, n in enumerate(shape)]), a_bar, 0)
    return a_bar


def repeats(word: list[int], own: list[int]) -> list[int]:
    """For each axis of `word`, the axis among `own` followed by fresh ones of length 1 that it is."""
    fresh = iter(range(len(own), len(word)))
    return [own.index(x) if word.index(x) == i else next(fresh) for i, x in enumerate(word)]


def einsum_of_one(operand: Any, labels: list[int], result: list[int]) -> Any:
    """Diagonals, sums and transposes of one array; a view where nothing is summed."""
    return np.einsum(operand, labels, result)


def einsum_of_many(labels: list[list[int]], result: list[int], options: dict[str, Any], *arrays: Any) -> Any:
    """The sum over all labels that are not in the result."""
    return np.einsum(*[part for pair in zip(arrays, labels) for part in pair], result, **options)


def einsum_of_one_push(x_dot, x, z, labels, result):
    """The same of every tangent; a chunk has a label of its own."""
    if np.ndim(x_dot) == np.ndim(x):
        return np.einsum(x_dot, labels, result)
    chunk = 1 + max(labels, default=-1)
    return np.einsum(x_dot, [chunk, *labels], [chunk, *result])


linear(einsum_of_one, lambda z_bar, x, labels, result: einsum_bar(z_bar, 0, [x], [labels], result, False), einsum_of_one_push)


@rrule(einsum_of_many)
def einsum_of_many_rrule(labels, result, options, *arrays):
    def einsum_pullback(z_bar):
        optimize = bool(options["optimize"]) or len(arrays) > 2 or np.size(z_bar) > 1000

        def bar(k):
            return Thunk(lambda: einsum_bar(z_bar, k, arrays, labels, result, optimize))

        return (NoTangent, NoTangent, NoTangent, *[bar(k) for k in range(len(arrays))])

    return einsum_of_many(labels, result, options, *arrays), einsum_pullback


@both_forms(einsum_of_many)
def einsum_of_many_frule(labels, result, options, *arrays):
    chunk = 1 + max([x for word in labels for x in word], default=-1)  # the label of a leading axis

    def einsum_pushforward(dots):
        z_dot = ZeroTangent
        for k, x_dot in enumerate(dots[3:]):
            if varies(x_dot):
                lead = [chunk] if np.ndim(x_dot) > np.ndim(arrays[k]) else []
                words = [*labels[:k], [*lead, *labels[k]], *labels[k + 1 :]]
                operands = [*arrays[:k], x_dot, *arrays[k + 1 :]]
                quick = {**options, "optimize": True} if len(arrays) > 2 or np.size(x_dot) > 1000 else options
                z_dot = total(z_dot, einsum_of_many(words, [*lead, *result], quick, *operands))
        return z_dot

    return einsum_of_many(labels, result, options, *arrays), einsum_pushforward


@composed(np.einsum)
def einsum(*operands, out=None, optimize=False, **options):
    """One operand may give a view; more never do."""
    if isinstance(operands[0], str):
        subscripts, arrays = operands[0], operands[1:]
    else:  # array, labels, array, labels, ..., and perhaps the labels of the result
        even = len(operands) // 2 * 2
        subscripts, arrays = (*operands[1:even:2], *operands[even:]), operands[0:even:2]
    arrays = [array(a) for a in arrays]
    labels, result = labels_of(subscripts, [np.ndim(a) for a in arrays])
    if len(arrays) == 1 and not options:
        z = einsum_of_one(arrays[0], labels[0], result)
    else:
        z = einsum_of_many(labels, result, {"optimize": optimize, **options}, *arrays)
    return written(z, out, True)
