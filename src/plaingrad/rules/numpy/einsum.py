"""Einstein summation: subscripts become a list of labels (numbers) for each operand; the rule is one more einsum.

Adjoints take the arrays as `a` and `b`; conjugation is that of a cotangent x_bar + i y_bar.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.define import composed, no_tangent, rrule
from plaingrad.rules.numpy.names import array, conj, linear, written
from plaingrad.rules.pushforwards import both_forms, total, varies
from plaingrad.tangents import NoTangent, Thunk, ZeroTangent


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
