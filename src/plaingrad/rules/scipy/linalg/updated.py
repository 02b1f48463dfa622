"""`qr_update`, `qr_insert`, `qr_delete`: the factors of the changed matrix, whose signs are SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import _decomp_update

from plaingrad.rulebook import Rule
from plaingrad.rules.scipy.implicit import Rules, called, carrying, fresh, is_active, outside, refuse
from plaingrad.rules.scipy.linalg.entering import keep, sl

CLOSE = 1e-6  # the most that factors may differ, of their size


@outside
def signs_of(order: int, function: Any, found: Any, factors: Any) -> Any:
    """By what the columns of Q are to be multiplied, 1 or -1, so that the factors are those that were found."""
    (q, r), (new_q, new_r) = found, factors
    if q.shape != new_q.shape:
        refuse(function, "the factors are of another shape than those of the changed matrix")
    signs = np.where((np.conj(new_q) * q).sum(0).real < 0, -1.0, 1.0)
    count = min(r.shape)
    for z, new in ((q[:, :count], (new_q * signs)[:, :count]), (r, signs[:, None] * new_r)):
        if not np.all(np.abs(z - new) <= CLOSE * (1.0 + np.max(np.abs(z), initial=0.0))):
            refuse(function, "factors of a singular or complex matrix are not determined but for signs")
    return signs


def enter(name: str, changed: Any, count_of_arguments: int) -> None:
    """Enter one function by what it changes the matrix to; what follows its arguments allows it to overwrite them."""
    function = getattr(_decomp_update, name, None)
    if function is None:
        return

    def definition(Q: Any, R: Any, *args: Any, **options: Any) -> Any:
        args = args[:count_of_arguments]
        options = {key: options[key] for key in options if not key.startswith("overwrite")}
        found = called(function, ((Q, R, *args), options))
        if not is_active((Q, R, args, tuple(options.values()))):
            return found
        count = min(np.shape(R))  # the other columns of Q meet zeros, and have no derivative
        a = changed(np.asarray(Q)[:, :count] @ np.asarray(R)[:count], *args, **options)
        is_full = found[0].shape[1] == found[0].shape[0]
        factors = sl.qr(a, mode="full" if is_full else "economic")
        signs = signs_of(function, found, factors)
        return carrying(fresh(found[0]), factors[0] * signs), carrying(fresh(found[1]), signs[:, None] * factors[1])

    keep(Rule(function, "composed", definition=definition, source=f"{__file__}:1"))


def updated(a: Any, u: Any, v: Any, *rest: Any, **options: Any) -> Any:
    """A + u v^H, or the sum of several such."""
    u, v = np.asarray(u), np.asarray(v)
    return a + (np.outer(u, np.conj(v)) if u.ndim == 1 else u @ np.conj(v).T)


def inserted(a: Any, u: Any, k: Any, which: str = "row", *rest: Any, **options: Any) -> Any:
    """A with more rows or columns before the k-th."""
    u, axis = np.asarray(u), 0 if which == "row" else 1
    if u.ndim == 1:
        u = u[None] if axis == 0 else u[:, None]
    k = k if k >= 0 else k + a.shape[axis]
    parts = (a[:k], u, a[k:]) if axis == 0 else (a[:, :k], u, a[:, k:])
    return np.concatenate(parts, axis)


def deleted(a: Any, k: Any, p: Any = 1, which: str = "row", *rest: Any, **options: Any) -> Any:
    """A without p rows or columns from the k-th on."""
    axis = 0 if which == "row" else 1
    k = k if k >= 0 else k + a.shape[axis]
    parts = (a[:k], a[k + p :]) if axis == 0 else (a[:, :k], a[:, k + p :])
    return np.concatenate(parts, axis)


enter("qr_update", updated, 2)
enter("qr_insert", inserted, 4)
enter("qr_delete", deleted, 3)
for rule in Rules():
    keep(rule)
