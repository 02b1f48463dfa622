"""Builtins, `itertools` and `functools` that hand elements on: they move references, so they need no derivative.

Two of them make numbers on the way (`accumulate`, `count`) and are defined in Python.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from plaingrad import number_classes
from plaingrad.define import composed, higher_order, inspector, mover
from plaingrad.rules.python.containers import enter_methods

higher_order(map, filter, zip, enumerate, iter, sorted, min, max, any, all)
mover(next, aiter, anext)
inspector(len)

higher_order(functools.cmp_to_key)
mover(type(functools.cmp_to_key(min)).__call__)

enter_methods(*[_cls for _cls in vars(itertools).values() if isinstance(_cls, type)])
higher_order(itertools.chain, itertools.chain.from_iterable, itertools.combinations,
             itertools.combinations_with_replacement, itertools.compress, itertools.cycle, itertools.dropwhile,
             itertools.filterfalse, itertools.groupby, itertools.islice, itertools.pairwise, itertools.permutations,
             itertools.product, itertools.starmap, itertools.takewhile, itertools.tee,
             itertools.zip_longest)
inspector(itertools.repeat)
if hasattr(itertools, "batched"):  # since CPython 3.12
    higher_order(itertools.batched)


def _native_reversed(sequence: Any) -> Any:
    return reversed(sequence)


def is_of_other_system(x: Any) -> bool:
    """Whether `x` is an array of PyTorch or JAX."""
    return number_classes.system_of(x) is not None


mover(_native_reversed)
inspector(is_of_other_system)


@composed(reversed)
def reversed_(sequence: Any, /) -> Any:
    """The elements from the last to the first."""
    is_array = isinstance(sequence, np.ndarray) or is_of_other_system(sequence)
    return iter(list(sequence)[::-1]) if is_array else _native_reversed(sequence)


_ABSENT: Any = object()


@composed(functools.reduce)
def reduce(function: Callable[..., Any], sequence: Any, initial: Any = _ABSENT, /) -> Any:
    """function(function(a, b), c) ..."""
    iterator = iter(sequence)
    z = initial
    if initial is _ABSENT:
        try:
            z = next(iterator)
        except StopIteration:
            raise TypeError("reduce() of empty iterable with no initial value") from None
    for x in iterator:
        z = function(z, x)
    return z


def _running_totals(iterator: Iterator[Any], func: Callable[..., Any] | None, initial: Any) -> Iterator[Any]:
    total = initial
    if initial is None:
        try:
            total = next(iterator)
        except StopIteration:
            return
    yield total
    for x in iterator:
        total = total + x if func is None else func(total, x)
        yield total


composed(_running_totals)(_running_totals)


@composed(itertools.accumulate, mutates=True)  # run always: what it draws from may change meanwhile
def accumulate(iterable: Any, func: Callable[..., Any] | None = None, *, initial: Any = None) -> Iterator[Any]:
    """Running totals."""
    return _running_totals(iter(iterable), func, initial)


@composed(itertools.count)
def count(start: Any = 0, step: Any = 1) -> Iterator[Any]:
    """start, start + step, ..."""
    n = start
    while True:
        this, n = n, n + step
        yield this
