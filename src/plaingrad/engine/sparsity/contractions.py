"""What products do to index sets: matrices, vectors, tensors, windows. A zero of a constant factor passes nothing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from plaingrad.engine.sparsity.dependent_calls import Call, elementwise, shaped
from plaingrad.rules.numpy import products

MANY = 20_000_000  # terms of a product beyond which the zeros of a constant are not looked at


def contracted(call: Call, at: tuple[int, int], in_a: tuple[int, ...], in_b: tuple[int, ...]) -> Any:
    """Products of `a` and `b` summed over pairs of axes; the axes of the result are the others of a, then of b."""
    a, b = (call.at(k) for k in at)
    free_a = tuple(k for k in range(np.ndim(a)) if k not in in_a)
    free_b = tuple(k for k in range(np.ndim(b)) if k not in in_b)
    shape = tuple(np.shape(a)[k] for k in free_a) + tuple(np.shape(b)[k] for k in free_b)
    parts = []
    for mine, other, my_axes, its_axes, mine_free, its_free in (
        (at[0], b, in_a, in_b, free_a, free_b),
        (at[1], a, in_b, in_a, free_b, free_a),
    ):
        if mine not in call.ids:
            continue
        ids = call.array(mine)
        table = np.transpose(ids, my_axes + mine_free)
        rows = math.prod(table.shape[: len(my_axes)])
        own = math.prod(table.shape[len(my_axes) :])
        factor = np.transpose(np.asarray(other), its_axes + its_free)
        table = table.reshape(rows, own)  # (summed, own)
        factor = factor.reshape(rows, math.prod(factor.shape[len(its_axes) :]))  # (summed, the other's)
        if at[0] in call.ids and at[1] in call.ids:
            at_which, which = None, None
        else:
            at_which, which = np.nonzero(factor)
        if at_which is None or at_which.size == factor.size or at_which.size * own > MANY:
            found = np.broadcast_to(call.sets.reduce(table, (0,)), (factor.shape[1], own))
        else:
            groups = which[:, None] * own + np.arange(own)
            found = call.sets.union_of_groups(groups.ravel(), table[at_which].ravel(), factor.shape[1] * own)
        found = found.reshape(factor.shape[1], own)
        parts.append((found.T if mine == at[0] else found).reshape(shape))
    return call.sets.union(*parts)


def matmul(call: Call) -> Any:
    """a @ b, stacks included."""
    a, b = np.ndim(call.at(0)), np.ndim(call.at(1))
    if a <= 2 and b <= 2:
        return contracted(call, (0, 1), (a - 1,), (max(b - 2, 0),))
    row = call.sets.reduce(call.array(0), (a - 1,))
    column = call.sets.reduce(call.array(1), (max(b - 2, 0),))
    if a > 1 and b > 1:
        row, column = row[..., None], column[..., None, :]
    return call.sets.union(shaped(row, call.y), shaped(column, call.y))


def dot(call: Call) -> Any:
    """np.dot: the last axis of a with the last but one of b."""
    a, b = np.ndim(call.at(0)), np.ndim(call.at(1))
    if a == 0 or b == 0:
        return elementwise(call)
    return contracted(call, (0, 1), (a - 1,), (max(b - 2, 0),))


def inner(call: Call) -> Any:
    """np.inner: the last axes."""
    a, b = np.ndim(call.at(0)), np.ndim(call.at(1))
    return elementwise(call) if a == 0 or b == 0 else contracted(call, (0, 1), (a - 1,), (b - 1,))


def outer(call: Call) -> Any:
    """All pairs."""
    return call.sets.union(call.array(0).reshape(-1, 1), call.array(1).reshape(1, -1))


def tensordot(call: Call) -> Any:
    """The axes that are named."""
    in_a, in_b = products.contracted_axes(call.at(0), call.at(1), call.argument("axes", 2, 2))
    return contracted(call, (0, 1), tuple(in_a), tuple(in_b))


def of_vectors(call: Call) -> Any:
    """np.vecdot, np.matvec, np.vecmat: sums over the last axis, in a matrix on the left over the last but one."""
    if call.kwargs or len(call.args) != 2:
        return None
    name = call.rule.function.__name__
    a, b = call.array(0), call.array(1)
    a = call.sets.reduce(a, (a.ndim - 1,))
    b = call.sets.reduce(b, (b.ndim - (2 if name == "vecmat" else 1),))
    a = a[..., None] if name == "vecmat" else a
    b = b[..., None] if name == "matvec" else b
    return shaped(call.sets.union(a, b), call.y)


def cross(call: Call) -> Any:
    """The vectors along the last axes."""
    if call.kwargs or len(call.args) != 2:
        return None
    parts = [call.sets.reduce(call.array(k), (np.ndim(call.at(k)) - 1,)) for k in (0, 1)]
    found = call.sets.union(*parts)
    return shaped(found[..., None] if np.ndim(call.y) > found.ndim else found, call.y)


def convolution(call: Call) -> Any:
    """Sums along a window; zeros of a constant window pass nothing."""
    mode = call.argument("mode", "full" if call.f is np.convolve else "valid", 2)
    mode = {0: "v", 1: "s", 2: "f"}.get(mode, str(mode)[:1])
    size = [np.size(call.at(k)) for k in (0, 1)]
    turn = -1 if call.f is np.correlate else 1
    total = size[0] + size[1] - 1
    parts = []
    for mine in call.ids:
        other = np.ravel(call.at(1 - mine))
        reach = np.arange(other.size) if 1 - mine in call.ids else np.flatnonzero(other)
        ids = call.array(mine).ravel()
        if turn < 0:  # a convolution with the window read backwards
            ids, reach = (ids, other.size - 1 - reach) if mine == 0 else (ids[::-1], reach)
        groups = np.arange(ids.size)[:, None] + reach
        parts.append(call.sets.union_of_groups(groups.ravel(), np.repeat(ids, reach.size), total))
    full = call.sets.union(*parts)
    small = min(size)
    if mode == "v":
        return full[small - 1 : total - small + 1]
    if mode == "s":
        start = small // 2 if turn < 0 and size[0] < size[1] else (small - 1) // 2
        return full[start : start + max(size)]
    return full


def einsum(call: Call) -> Any:
    """Each operand is summed over what the result does not name; zeros of one constant operand pass nothing."""
    labels, result = call.at(0), call.at(1)
    arrays = call.args[3:]
    sizes = {label: n for a, word in zip(arrays, labels) for label, n in zip(word, np.shape(a)) if n != 1}
    if len(arrays) == 2 and len(call.ids) == 1 and all(len(set(word)) == len(word) for word in labels):
        (mine,) = call.ids
        other = 7 - mine  # positions 3 and 4
        shared = [x for x in labels[mine - 3] if x in labels[other - 3] and x not in result]
        plain = not set(labels[3 - 3]) & set(labels[4 - 3]) & set(result)
        alone = [x for word in labels for x in word if x not in result and x not in shared]
        if plain and not alone and result == [x for word in labels for x in word if x not in shared]:
            axes = [tuple(word.index(x) for x in shared) for word in labels]
            return contracted(call, (3, 4), *axes)
    parts = []
    for position, ids in call.ids.items():
        word = labels[position - 3]
        if len(set(word)) < len(word):
            return None
        found = call.sets.reduce(ids, tuple(k for k, x in enumerate(word) if x not in result))
        kept = [x for x in word if x in result]
        order = sorted(range(len(kept)), key=lambda k: result.index(kept[k]))
        found = np.transpose(found, order)
        kept = [kept[k] for k in order]
        shape = [found.shape[kept.index(x)] if x in kept else 1 for x in result]
        parts.append(np.broadcast_to(found.reshape(shape), [sizes.get(x, 1) for x in result]))
    return shaped(call.sets.union(*parts), call.y)
