"""`scipy.cluster.vq`: which centre is nearest is a constant; distances, and means of what belongs to a centre, are not."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.cluster import vq as public

from plaingrad.rulebook import Rule
from plaingrad.rules.scipy.forms import keep
from plaingrad.rules.scipy.implicit import Rules, called, carrying, fresh, outside

_vq: Any = vars(public)["_vq"]  # in one folder with it or in its own, as SciPy's version has it


def vq(obs: Any, codes: Any) -> Any:
    """(nearest centre, its distance)."""
    which, distances = called(_vq.vq, ((obs, codes), {}))
    off = obs - codes[which]
    z = np.abs(off) if np.ndim(off) == 1 else np.linalg.norm(off, axis=-1)
    return which, carrying(fresh(distances), z)


@outside
def membership(order: int, labels: Any, count: int) -> Any:
    """Where observations stand, centre by centre, and how many each has."""
    counts = np.bincount(labels, minlength=count)
    return np.argsort(labels, kind="stable"), np.append(0, np.cumsum(counts)), counts


def update_cluster_means(obs: Any, labels: Any, nc: int) -> Any:
    """(means, whether there are any)."""
    value, has_members = called(_vq.update_cluster_means, ((obs, labels, nc), {}))
    order, ends, counts = membership(labels, nc)
    grouped = obs[order]
    sums = [grouped[ends[k] : ends[k + 1]].sum(0) for k in range(nc)]
    shape = (-1,) + (1,) * (np.ndim(obs) - 1)
    return carrying(fresh(value), np.stack(sums) / np.maximum(counts, 1).reshape(shape)), has_members


for definition in (vq, update_cluster_means):
    keep(Rule(getattr(_vq, definition.__name__), "composed", definition=definition, source=f"{__file__}:1"))
for rule in Rules():
    keep(rule)
