"""Nearest neighbours: `KDTree` and `cKDTree`. Which points are near is a constant, how far they are has a derivative.

A tree of differentiated points is an object of a class derived from the tree's own, which knows the points as they are at
this level; the tree itself has their numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse, spatial

from plaingrad.rulebook import Rule
from plaingrad.rules.scipy.compiled import constant
from plaingrad.rules.scipy.forms import keep
from plaingrad.rules.scipy.implicit import Rules, called, carrying, fresh, is_active, outside, refuse


class PointsOfTree:
    """What both derived classes have."""

    points: Any = None

    @property
    def data(self) -> Any:
        """The points."""
        return super().data if self.points is None else self.points  # type: ignore[misc]

    @property
    def maxes(self) -> Any:
        """The largest coordinates of all points."""
        return super().maxes if self.points is None else self.points.max(0)  # type: ignore[misc]

    @property
    def mins(self) -> Any:
        """The smallest."""
        return super().mins if self.points is None else self.points.min(0)  # type: ignore[misc]

    @property
    def tree(self) -> Any:
        """The nodes, where nothing depends on the inputs: they have coordinates as plain numbers."""
        if self.points is not None and is_active(self.points):
            refuse(spatial.KDTree, "its nodes have the coordinates at which they split as plain numbers")
        return super().tree  # type: ignore[misc]


class TreeOfPoints(PointsOfTree, spatial.KDTree):
    """A `KDTree` of differentiated points."""


class CTreeOfPoints(PointsOfTree, spatial.cKDTree):
    """A `cKDTree` of differentiated points."""


@outside
def planted(order: int, kind: Any, args: Any, kwargs: Any) -> Any:
    """The tree, as a constant."""
    return kind(*args, **kwargs)


@outside
def boxsize_of(order: int, tree: Any) -> Any:
    """The lengths of a periodic box, or None."""
    box = getattr(tree, "boxsize", None)
    return None if box is None or not np.any(box) else np.asarray(box)


def enter_tree(plain: Any, derived: Any) -> None:
    """The definition of the class itself."""

    def tree(data: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_active(data):
            return planted(plain, (data, *args), kwargs)
        grown = planted(derived, (data, *args), kwargs)
        grown.points = np.asarray(data) * 1.0
        return grown

    keep(Rule(plain, "composed", definition=tree, source=f"{__file__}:1"))


for plain_tree, derived_tree in ((spatial.KDTree, TreeOfPoints), (spatial.cKDTree, CTreeOfPoints)):
    enter_tree(plain_tree, derived_tree)
    enter_tree(derived_tree, derived_tree)  # one level further out


@outside
def shifts(order: int, u: Any, box: Any) -> Any:
    """By how many boxes the nearest image is off."""
    return np.where(box > 0, np.round(u / np.where(box > 0, box, 1.0)) * box, 0.0)


def lengths(u: Any, p: Any, tree: Any) -> Any:
    """Of differences; slopes are 0 where two points are one."""
    box = boxsize_of(tree)
    if box is not None:
        u = u - shifts(u, box)
    return np.linalg.norm(u, p, -1)


@outside
def neighbours(order: int, i: Any, n: int) -> Any:
    """Which neighbours were found, and where they are."""
    found = np.asarray(i) < n
    return found, np.where(found, i, 0)


def query(self: Any, x: Any, k: Any = 1, eps: Any = 0, p: Any = 2, distance_upper_bound: Any = np.inf, workers: Any = 1) -> Any:
    """(distances, indices)."""
    kind = spatial.KDTree if isinstance(self, spatial.KDTree) else spatial.cKDTree
    d, i = called(kind.query, ((self, x, k, eps, p, distance_upper_bound, workers), {}))
    points, x = self.data, np.asarray(x) * 1.0
    if not is_active(points) and not is_active(x):
        return d, i
    if is_active(p):
        refuse(kind.query, "the order p of the norm has no derivative")
    found, places = neighbours(i, len(points))
    near = points[places]
    far = x if near.ndim == x.ndim else x[..., None, :]
    z = lengths(far - near, p, self)
    return carrying(fresh(d), np.where(found, z, 0.0) if np.ndim(found) else z), i


def sparse_distance_matrix(self: Any, other: Any, max_distance: Any, p: Any = 2.0, output_type: str = "dok_matrix") -> Any:
    """A sparse matrix, or a dictionary, of the distances that are small enough."""
    kind = spatial.KDTree if isinstance(self, spatial.KDTree) else spatial.cKDTree
    if not is_active(self.data) and not is_active(other.data):
        return called(kind.sparse_distance_matrix, ((self, other, max_distance, p, output_type), {}))
    if output_type == "ndarray":
        refuse(kind.sparse_distance_matrix, "records of indices and distances")
    found = called(kind.sparse_distance_matrix, ((self, other, max_distance, p, "coo_matrix"), {}))
    i, j = found.row, found.col
    v = carrying(fresh(found.data), lengths(self.data[i] - other.data[j], p, self))
    if output_type == "dict":
        return {(int(a), int(b)): c for a, b, c in zip(i, j, v, strict=True)}
    matrix = sparse.coo_matrix((v, (i, j)), shape=found.shape)
    return matrix if output_type == "coo_matrix" else matrix.todok()


def count_neighbors(self: Any, other: Any, r: Any, p: Any = 2.0, weights: Any = None, cumulative: Any = True) -> Any:
    """How many pairs are nearer than r, or the sum of their weights."""
    kind = spatial.KDTree if isinstance(self, spatial.KDTree) else spatial.cKDTree
    if is_active(weights):
        refuse(kind.count_neighbors, "sums of weights that depend on the inputs")
    return called(kind.count_neighbors, ((self, other, r, p, weights, cumulative), {}))


for tree_class in (spatial.KDTree, spatial.cKDTree):
    for definition in (query, sparse_distance_matrix, count_neighbors):
        keep(Rule(getattr(tree_class, definition.__name__), "composed", definition=definition, source=f"{__file__}:1"))
    for name in ("query_ball_point", "query_ball_tree", "query_pairs"):
        constant(getattr(tree_class, name))


for rule in Rules():
    keep(rule)
