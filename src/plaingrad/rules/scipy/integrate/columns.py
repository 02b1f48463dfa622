"""Right-hand sides at many places at once: times in a vector, a column of unknowns for each.

Many are written in arithmetic that takes columns as well as numbers. That is found out by calling them so: values have to
be those of single calls, and at two places derivatives, too, in the unknowns and in all that the function holds.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np

from plaingrad.rules import derivatives
from plaingrad.rules.scipy.implicit import plainly
from plaingrad.rules.scipy.integrate.planning import flat, remembers

SAME = 1e-11  # relative difference of what is computed at once and one by one
FEWEST = 16  # places that are worth it
TABLES: dict[int, tuple[Any, list[int]]] = {}  # times, and places that are looked at by themselves
KEYS = count()


def right_sides(f: Any, t: Any, y: Any, at_once: bool) -> Any:
    """f at times t, a list, and at the rows of y: one row each."""
    if at_once:
        return np.transpose(np.reshape(f(vector(t), np.transpose(y)), (y.shape[1], len(t))))
    return np.stack([f(t[k], y[k]) for k in range(len(t))])


@plainly
def vector(t: Any) -> Any:
    """Times as constants."""
    return np.array(t)


@plainly
def takes_columns(f: Any, t: Any, y: Any) -> bool:
    """Whether f may be called with all times and unknowns at once."""
    if len(t) < FEWEST or remembers(f, set()):
        return False
    key, some = next(KEYS), [len(t) // 3, len(t) - 2]
    TABLES[key] = t, some
    try:
        with np.errstate(all="ignore"):
            (z, *alone), pullback = derivatives.pulled(all_and_some, f, y, key)
            single = np.stack([f(t[k], y[k]) for k in range(len(t))])
            if z.shape != single.shape or not is_same(z, single):
                return False
            z_bar = np.zeros(z.shape)
            z_bar[some] = np.cos(np.arange(1.0, 1.0 + 2 * z.shape[1]).reshape(2, -1))
            none = [row * 0.0 for row in alone]
            size = np.max(np.abs(flat(pullback((z_bar, *none))[1:3])), initial=0.0)
            off = flat(pullback((z_bar, *[-z_bar[k] for k in some]))[1:3])
            return bool(np.all(np.abs(off) <= SAME * size))
    except Exception:  # whatever it raises, it takes no columns
        return False
    finally:
        del TABLES[key]


def is_same(z: Any, single: Any) -> bool:
    """Whether columns agree but for rounding."""
    return bool(np.all(np.abs(z - single) <= SAME * np.max(np.abs(single), axis=0, initial=0.0)))


def all_and_some(f: Any, y: Any, key: int) -> Any:
    """f at all places of a table at once, and at some by themselves."""
    t, some = TABLES[key]
    return right_sides(f, t, y, True), *[f(t[k], y[k]) for k in some]
