"""`scipy.cluster.hierarchy`: which clusters are joined is a constant, their distances are sums over pairs of points.

Every pair of points is separated by exactly one join. The height of a join is the smallest, the largest or a mean of the
distances of its pairs; for `centroid`, `median` and `ward` its square is linear in their squares, less what is inside each side.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.cluster import hierarchy

from plaingrad.rulebook import Rule
from plaingrad.rules.scipy.compiled import constant, definitions
from plaingrad.rules.scipy.forms import keep
from plaingrad.rules.scipy.implicit import Rules, called, carrying, fresh, outside, refuse

METHODS = ("single", "complete", "average", "centroid", "median", "ward", "weighted")  # numbers of SciPy's
HALVING = ("weighted", "median")
SQUARES = ("centroid", "median", "ward")
CLOSE = 1e-6

_hierarchy: Any = vars(hierarchy)["_hierarchy"]  # in one folder with it or in its own, as SciPy's version has it
_optimal_leaf_ordering: Any = vars(hierarchy)["_optimal_leaf_ordering"]
defined = definitions(_hierarchy)


@outside
def joins(order: int, z: Any, n: int, halving: bool) -> Any:
    """For every pair of points, in condensed order, which join separates it, and with which weight; sizes of both sides."""
    which, weights = np.zeros(n * (n - 1) // 2, int), np.zeros(n * (n - 1) // 2)
    members: list[Any] = [(np.array([k]), np.ones(1)) for k in range(n)]
    sizes = []
    for k, (left, right) in enumerate(np.asarray(z)[:, :2].astype(int)):
        (i, a), (j, b) = members[left], members[right]
        low, high = np.minimum(i[:, None], j), np.maximum(i[:, None], j)
        places = low * (2 * n - low - 1) // 2 + high - low - 1
        which[places], weights[places] = k, a[:, None] * b
        scale = (0.5, 0.5) if halving else (len(i) / (len(i) + len(j)), len(j) / (len(i) + len(j)))
        members.append((np.concatenate([i, j]), np.concatenate([a * scale[0], b * scale[1]])))
        members[left] = members[right] = (i[:0], a[:0])
        sizes.append((len(i), len(j)))
    return which, weights, np.array(sizes).reshape(-1, 2), np.asarray(z)[:, :2].astype(int)


@outside
def extreme(order: int, y: Any, which: Any, count: int, largest: bool) -> Any:
    """The first pair of each join with the smallest or largest distance."""
    ranks = np.lexsort((np.arange(len(y)), -y if largest else y, which))
    return ranks[np.searchsorted(which[ranks], np.arange(count))]


def sums_of(x: Any, which: Any, count: int) -> Any:
    """Of the pairs of each join."""
    return np.bincount(which, x, count)


def squared_heights(method: str, sums: Any, sizes: Any, children: Any, n: int) -> Any:
    """|c - d|^2 for the centres c and d of both sides, by the weighted mean squares inside each."""
    inside: list[Any] = [0.0] * n
    found = []
    for k in range(len(sizes)):
        left, right = int(children[k, 0]), int(children[k, 1])
        p, q = sizes[k, 0], sizes[k, 1]
        height = sums[k] - inside[left] - inside[right]
        found.append(height * (2.0 * p * q / (p + q)) if method == "ward" else height)
        a, b = (0.5, 0.5) if method == "median" else (p / (p + q), q / (p + q))
        inside.append(a * a * inside[left] + b * b * inside[right] + a * b * sums[k])
    return np.stack(found)


@outside
def check(order: int, function: Any, heights: Any, formula: Any) -> None:
    """Refuse what is not explained."""
    if not np.all(np.abs(heights - formula) <= CLOSE * (1.0 + np.max(np.abs(heights), initial=0.0))):
        refuse(function, "heights are not those of the clusters that were joined: equal distances, or such that no points have")


def with_heights(z: Any, heights: Any) -> Any:
    """A linkage matrix with these heights."""
    return np.concatenate([z[:, :2], heights[:, None], z[:, 3:]], 1)


def linked(function: Any, call: Any, y: Any, n: int, method: str) -> Any:
    """The linkage matrix."""
    z = fresh(called(function, call))
    which, weights, sizes, children = joins(z, n, method in HALVING)
    count = n - 1
    if method in ("single", "complete"):
        heights = y[extreme(y, which, count, method == "complete")]
    elif method in SQUARES:
        squares = squared_heights(method, sums_of(y * y * weights, which, count), sizes, children, n)
        heights = np.sqrt(np.maximum(squares, 0.0))
    else:
        heights = sums_of(y * weights, which, count)
    check(function, z[:, 2], heights)
    return with_heights(z, carrying(fresh(z[:, 2]), heights))


@defined("mst_single_linkage")
def mst_single_linkage(dists, n):
    return linked(_hierarchy.mst_single_linkage, ((dists, n), {}), dists, n, "single")


@defined("nn_chain")
def nn_chain(dists, n, method):
    return linked(_hierarchy.nn_chain, ((dists, n, method), {}), dists, n, METHODS[method])


@defined("fast_linkage")
def fast_linkage(dists, n, method):
    return linked(_hierarchy.fast_linkage, ((dists, n, method), {}), dists, n, METHODS[method])


@defined("cophenetic_distances", mutates=True)
def cophenetic_distances(Z, d, n):
    d[...] = Z[joins(Z, n, False)[0], 2]


@outside
def best_below(order: int, z: Any, numbers: Any) -> Any:
    """Where the largest of `numbers` is, below each join and at it."""
    n, best = len(z) + 1, []
    for k, pair in enumerate(np.asarray(z)[:, :2].astype(int)):
        places = [k] + [best[child - n] for child in pair if child >= n]
        best.append(max(places, key=lambda place: numbers[place]))
    return np.array(best, int)


@defined("get_max_dist_for_each_cluster", mutates=True)
def get_max_dist_for_each_cluster(Z, MD, n):
    MD[...] = Z[best_below(Z, Z[:, 2]), 2]


@defined("get_max_Rfield_for_each_cluster", mutates=True)
def get_max_field_for_each_cluster(Z, R, max_rfs, n, rf):
    max_rfs[...] = R[best_below(Z, R[:, rf]), rf]


@outside
def levels_below(order: int, z: Any, depth: int) -> Any:
    """For each join those at most depth - 1 levels below it, filled up with itself, and which are not filled up."""
    n, found = len(z) + 1, []
    children = np.asarray(z)[:, :2].astype(int) - n
    for k in range(len(z)):
        level, every = [k], [k]
        for _ in range(depth - 1):
            level = [int(child) for join in level for child in children[join] if child >= 0]
            every += level
        found.append(every)
    wide = max([len(every) for every in found], default=1)
    places = np.array([every + [every[0]] * (wide - len(every)) for every in found], int)
    return places, np.arange(wide) < np.array([[len(every)] for every in found])


@defined("inconsistent", mutates=True)
def inconsistent(Z, R, n, d):
    places, counts = levels_below(Z, int(d))
    heights, number = Z[:, 2], counts.sum(1)
    chosen = heights[places]
    mean = (chosen * counts).sum(1) / number
    off = (chosen - mean[:, None]) * counts
    several = number > 1
    variance = (off * off).sum(1) / np.where(several, number - 1, 1)
    spread = np.where(variance > 0, variance, 1.0)
    deviation = np.where(variance > 0, np.sqrt(spread), 0.0)
    R[...] = np.stack([mean, deviation, number * 1.0, np.where(variance > 0, (heights - mean) / np.sqrt(spread), 0.0)], 1)


def optimal_leaf_ordering(Z, sorted_dists):
    """Children change places only."""
    z = fresh(called(_optimal_leaf_ordering.optimal_leaf_ordering, ((Z, sorted_dists), {})))
    return with_heights(z, carrying(fresh(z[:, 2]), Z[:, 2]))


keep(Rule(_optimal_leaf_ordering.optimal_leaf_ordering, "composed", definition=optimal_leaf_ordering, source=f"{__file__}:1"))
constant(
    *[
        getattr(_hierarchy, name, None)
        for name in (
            "cluster_in", "cluster_dist", "cluster_maxclust_dist", "cluster_monocrit", "cluster_maxclust_monocrit", "prelist",
            "leaders", "calculate_cluster_sizes",
        )
    ]
)  # fmt: skip
for rule in Rules():
    keep(rule)
